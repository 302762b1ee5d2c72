//! A template's text before it is compiled: line breaks and tags as transformers takes them, and the names that its tags use.

/// Tags that read other files, of which there are none.
const OF_FILES: [&str; 4] = ["include", "import", "from", "extends"];

/// A template whose tags were read.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    /// What is compiled.
    pub text: String,
    pub filters: Vec<Named>,
    pub tests: Vec<Named>,
    /// What is called by its name alone, and what is called of a value.
    pub functions: Vec<Named>,
    pub methods: Vec<Named>,
    /// Tags of other files.
    pub of_files: Vec<Named>,
    /// The macros that the template defines, wherever it does.
    pub macros: Vec<String>,
    /// Branches that are open at the end of what was read.
    branches: usize,
}

/// A name, and the line that it stands in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub name: String,
    pub line: usize,
    /// Whether it stands in a branch, which may never be taken.
    pub in_branch: bool,
}

/// The filter that [`prepare`] puts behind what a loop runs through.
pub(super) const EACH: &str = "each_of_a_list";

/// Reads the tags of `source`. Line breaks become `\n`, as Jinja makes them. `{% generation %}`, by which training finds what a
/// model wrote, becomes a scope: what it holds is rendered as it stands.
pub(super) fn prepare(source: &str) -> Prepared {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut prepared = Prepared::default();
    let mut rest = source.as_str();
    while let Some(start) = next_tag(rest) {
        prepared.text.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = match &rest[..2] {
            "{#" => rest.find("#}").map_or(rest.len(), |end| end + 2),
            "{{" => end_of_tag(rest, "}}"),
            _ => end_of_tag(rest, "%}"),
        };
        let (tag, behind) = rest.split_at(end);
        rest = behind;
        match tag.starts_with("{#") {
            true => prepared.text.push_str(tag),
            false => prepared.take(tag),
        }
        if statement(tag) == Some("raw") {
            let end = end_of_raw(rest);
            // Jinja keeps the line break behind this tag alone, and the engine cuts one.
            prepared.text.push_str(if rest.starts_with('\n') { "\n" } else { "" });
            prepared.text.push_str(&rest[..end]);
            rest = &rest[end..];
        }
    }
    prepared.text.push_str(rest);
    prepared
}

fn next_tag(text: &str) -> Option<usize> {
    ["{{", "{%", "{#"].iter().filter_map(|open| text.find(open)).min()
}

/// The end of the tag that `text` begins with: `close` outside of texts and brackets, or the end of `text`.
fn end_of_tag(text: &str, close: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 2;
    while let Some(c) = text[at..].chars().next() {
        match c {
            _ if depth == 0 && text[at..].starts_with(close) => return at + close.len(),
            '\'' | '"' => at += end_of_text(&text[at..]) - 1,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += if matches!(c, '\'' | '"') { 1 } else { c.len_utf8() };
    }
    text.len()
}

/// The end of the quoted text that `text` begins with.
fn end_of_text(text: &str) -> usize {
    let mut characters = text.char_indices();
    let mark = characters.next().map(|(_, c)| c);
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => {
                characters.next();
            }
            c if Some(c) == mark => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The first word of a `{% … %}`.
fn statement(tag: &str) -> Option<&str> {
    let inside = tag.strip_prefix("{%")?;
    let inside = inside.strip_prefix(['-', '+']).unwrap_or(inside).trim_start();
    let end = inside.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inside.len());
    Some(&inside[..end])
}

/// Where the tag that ends raw text begins.
fn end_of_raw(text: &str) -> usize {
    let mut tags = text.match_indices("{%");
    let end = tags.find(|(at, _)| statement(&text[*at..]) == Some("endraw"));
    end.map_or(text.len(), |(at, _)| at)
}

impl Prepared {
    /// Takes a tag: its names, and its text for the compiler.
    fn take(&mut self, tag: &str) {
        let line = self.text.matches('\n').count() + 1;
        let tokens = tokens(tag);
        let in_branch = self.branches > 0 || tokens.iter().any(|(token, _)| *token == "if");
        match statement(tag) {
            Some("if") => self.branches += 1,
            Some("endif") => self.branches = self.branches.saturating_sub(1),
            Some("macro") => self.macros.extend(tokens.get(1).map(|(name, _)| (*name).to_owned())),
            _ => {}
        }
        let named = |name: &str, at: usize| Named {
            name: name.to_owned(),
            line: line + tag[..at].matches('\n').count(),
            in_branch,
        };
        for (index, &(token, at)) in tokens.iter().enumerate() {
            let is_called =
                |index: usize| tokens.get(index + 1).is_some_and(|(sign, _)| *sign == "(");
            let before = |back: usize| index.checked_sub(back).map(|index| tokens[index].0);
            if !token.starts_with(|c: char| c.is_alphabetic() || c == '_') {
                continue;
            }
            match (before(2), before(1)) {
                (_, Some("|")) => self.filters.push(named(token, at)),
                (Some("is"), Some("not")) => self.tests.push(named(token, at)),
                (_, Some("is")) if token != "not" => self.tests.push(named(token, at)),
                (_, Some("filter")) if statement(tag) == Some("filter") && index == 1 => {
                    self.filters.push(named(token, at));
                }
                (_, Some(".")) if is_called(index) => self.methods.push(named(token, at)),
                _ if is_called(index) => self.functions.push(named(token, at)),
                _ => {}
            }
        }
        match statement(tag) {
            Some(word) if OF_FILES.contains(&word) => self.of_files.push(named(word, 0)),
            Some("generation") => {
                return self.text.push_str(&tag.replacen("generation", "with", 1));
            }
            Some("endgeneration") => {
                return self.text.push_str(&tag.replacen("endgeneration", "endwith", 1));
            }
            Some("for") => return self.text.push_str(&of_a_list(tag, &tokens)),
            _ => {}
        }
        self.text.push_str(tag);
    }
}

/// The tag of a loop, with [`EACH`] behind what it runs through: up to its condition, to `recursive` or to its end.
fn of_a_list(tag: &str, tokens: &[(&str, usize)]) -> String {
    let mut depth = 0_usize;
    let mut place_of = |words: &[&str], from: usize| {
        tokens.iter().skip(from).position(|(token, _)| {
            match *token {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && words.contains(token)
        })
    };
    let Some(within) = place_of(&["in"], 0).map(|index| index + 1) else { return tag.to_owned() };
    let end = place_of(&["if", "recursive", "%"], within);
    let end = end.map(|count| tokens[within + count]).map(|(token, at)| match token {
        "%" if tag[..at].ends_with(['-', '+']) => at - 1,
        _ => at,
    });
    let (Some((_, start)), Some(end)) = (tokens.get(within), end) else { return tag.to_owned() };
    format!("{}({})|{EACH} {}", &tag[..*start], tag[*start..end].trim_end(), &tag[end..])
}

/// The words, quoted texts and signs of a tag, each with its place.
fn tokens(tag: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    let mut at = 2;
    while let Some(c) = tag[at..].chars().next() {
        let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = match c {
            '\'' | '"' => end_of_text(&tag[at..]),
            c if is_of_word(c) => tag[at..].find(|c| !is_of_word(c)).unwrap_or(tag.len() - at),
            c => c.len_utf8(),
        };
        let is_sign_of_tag = at == 2 && matches!(c, '-' | '+');
        if !c.is_whitespace() && !is_sign_of_tag {
            found.push((&tag[at..at + length], at));
        }
        at += length;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(named: &[Named]) -> Vec<(&str, usize)> {
        named.iter().map(|named| (named.name.as_str(), named.line)).collect()
    }

    #[test]
    fn names_are_found_in_tags_alone() {
        let prepared = prepare(
            "| no is no {# {{ a|no }} #}{% raw %}{{ a|no }}{% endraw %}\r\n{{ 'x|no' | yes }}\r{%- if a is not odd and b\nis even %}{% filter up %}{{ {'a': {}}|on }}",
        );
        assert_eq!(names(&prepared.filters), [("yes", 2), ("up", 4), ("on", 4)]);
        assert_eq!(names(&prepared.tests), [("odd", 3), ("even", 4)]);
        assert!(!prepared.text.contains('\r'));
        let called = prepare("{{ a(b.c(1), d.e) }} f() {% if g (1)|h(2) is i(3) %}");
        assert_eq!(names(&called.functions), [("a", 1), ("g", 1)]);
        assert_eq!(names(&called.methods), [("c", 1)]);
        let of_files = prepare("{%- include 'a' %}");
        assert_eq!(names(&of_files.of_files), [("include", 1)]);
    }

    #[test]
    fn what_a_model_wrote_is_a_scope() {
        let text =
            "{# {% generation %} #}{{ '{% generation %}' }}{%- generation +%}a{%endgeneration%}";
        let wanted = "{# {% generation %} #}{{ '{% generation %}' }}{%- with +%}a{%endwith%}";
        assert_eq!(prepare(text).text, wanted);
    }

    #[test]
    fn what_never_closes_is_left_to_the_compiler() {
        for text in ["{{ 'a", "{% if", "{#", "{{ {", "{% raw %}", "{{ \"\\", "{%", "{{é"] {
            assert_eq!(prepare(text).text, text);
        }
    }
}
