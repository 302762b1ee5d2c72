//! When a letter in a text stands for an option: not as an article, a pronoun or part of a name, nor where it is ruled out.

use crate::data::Choice;
use crate::text::Pattern;

/// Words after which a letter names something else.
const COMPOUND_BEFORE: &str = "vitamin vitamins hepatitis type types group influenza amphotericin factor stage class grade protein phase \
     coagulation immunoglobulin blood category child-pugh apolipoprotein hemoglobin haemophilia hemophilia \
     cyclosporin streptococcus botulinum toxin lipid complex step trial patient doctor agent appendix figure fig image panel table";
/// Words before which one does.
const COMPOUND_AFTER: &str = "cell cells lymphocyte lymphocytes symptom symptoms wave waves fiber fibers fibre fibres line lines receptor \
     receptors virus coli streptococcus streptococci";
/// Words that follow an option's letter, not an article.
const AFTER_OPTION: &str = "is was as seems appears because since and or with but over in for would fits best remains matches on at instead \
     rather here";
/// Words that rule out the option whose letter follows.
const AGAINST_BEFORE: &str = "not|n't|cannot|rule out|rules out|ruled out|ruling out|exclude|excludes|excluding|eliminate|eliminates|\
     eliminating|eliminated|reject|rejects|instead of|rather than|unlike|over|against|neither|nor|except";
/// Words that rule out the option whose letter stands before.
const AGAINST_AFTER: &str = "is wrong|is incorrect|is not|isn't|is unlikely|is less|is ruled out|is out|is excluded|is eliminated|are wrong|\
     are incorrect|are not|can be ruled out|can be excluded|can be eliminated|does not|doesn't|would not|wouldn't|\
     cannot|was wrong|was incorrect|seems unlikely|are ruled out|are less|are unlikely|is false|is inappropriate|\
     could be ruled out|is contraindicated|be avoided|is the wrong|must wait";

/// How far a clause is looked through, in bytes: hostile text has no full stops.
const MAX_CLAUSE: usize = 200;

/// A letter of a text, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub letter: char,
    pub at: usize,
}

/// Whether a letter is a word of its own, and neither article, pronoun nor part of a name.
pub fn stands_alone(text: &str, at: usize, options: &[Choice]) -> bool {
    let (before, letter, after) =
        (&text[..at], text[at..].chars().next().unwrap_or(' '), &text[at + 1..]);
    let is_word = |c: char| c.is_alphanumeric() && !is_han(c) || c == '_' && !before.ends_with('_');
    if before
        .chars()
        .next_back()
        .is_some_and(|c| is_word(c) || matches!(c, '/' | '&' | '-' | '–' | '.' | '+' | '^'))
        && !before.ends_with("--")
    {
        let c = before.chars().next_back().unwrap_or(' ');
        if is_word(c)
            || !before.trim_end_matches(c).is_empty()
                && !before.trim_end_matches(c).ends_with([' ', '\n'])
        {
            return false;
        }
    }
    let mut next = after.chars();
    let (first, second) = (next.next().unwrap_or(' '), next.next().unwrap_or(' '));
    if is_word(first) && first != '_' || matches!(first, '/' | '&' | '+' | '^' | '%' | '°') {
        return false;
    }
    // C-reactive, D-dimer; I'm; E. coli.
    if matches!(first, '-' | '\u{2011}' | '\'' | '’') && second.is_alphanumeric() {
        return false;
    }
    let words = after.trim_start_matches('.').trim_start();
    let is_option =
        options.iter().any(|option| option.letter == letter && starts_with(words, &option.text));
    if first == '.' && second == ' ' && words.starts_with(|c: char| c.is_lowercase()) && !is_option
    {
        return false;
    }
    if first == ' ' && !is_option {
        let next = words.chars().next().unwrap_or(' ');
        let is_article =
            letter == 'A' && (next.is_lowercase() || next.is_ascii_digit()) && !is_verb(words);
        let is_pronoun = letter == 'I' && next.is_lowercase() && !words.starts_with("is ");
        let is_lower = letter.is_lowercase() && next.is_alphabetic();
        if is_article || is_pronoun || is_lower {
            return false;
        }
    }
    // C.E.B.M.
    if first == '.' && second.is_alphabetic() && !is_option {
        return false;
    }
    // Elizabeth F. Loftus, Dr. B. Smith
    let before_word = before.trim_end().rsplit(char::is_whitespace).next().unwrap_or_default();
    let is_name = |word: &str| {
        word.starts_with(char::is_uppercase)
            && word.chars().skip(1).all(char::is_lowercase)
            && word.len() > 2
    };
    let is_title = ["Dr.", "Prof.", "Mr.", "Mrs.", "Ms."].contains(&before_word);
    let is_heading = ["Option", "Answer", "Choice", "Letter"].contains(&before_word);
    if first == '.'
        && second == ' '
        && (is_name(before_word) || is_title)
        && !is_heading
        && words.starts_with(char::is_uppercase)
    {
        return false;
    }
    let after_word: String = words.chars().take_while(|c| c.is_alphanumeric()).collect();
    let before_word = last_word(before);
    let adjoins = before.ends_with(' ');
    !(adjoins && COMPOUND_BEFORE.split(' ').any(|one| one == before_word)
        || first == ' ' && COMPOUND_AFTER.split(' ').any(|one| one == after_word.to_lowercase()))
}

fn is_han(c: char) -> bool {
    ('\u{2E80}'..='\u{9FFF}').contains(&c) || ('\u{FF00}'..='\u{FFEF}').contains(&c)
}

/// Words that follow an option's letter, not an article.
fn is_verb(words: &str) -> bool {
    let word = words.split(|c: char| !c.is_alphanumeric() && c != '\'').next().unwrap_or_default();
    AFTER_OPTION.split(' ').any(|one| one == word)
}

/// Where the clause begins that has this place.
pub fn clause_start(text: &str, at: usize) -> usize {
    let floor = text.floor_char_boundary(at.saturating_sub(MAX_CLAUSE));
    let stop = text[floor..at].rfind(['.', '\n', ';', ',', '!', '?']);
    stop.map_or(floor, |stop| floor + stop + 1)
}

pub fn last_word(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '\'');
    words.rev().find(|word| !word.is_empty()).unwrap_or_default().to_lowercase()
}

/// Whether a letter is followed by another one that may be meant instead.
pub fn is_one_of_several(text: &str) -> bool {
    static OTHERS: Pattern = Pattern::new(
        r#"^[A-Ja-j][\s)\]}*_.'"”]*(?:/|\||\bor\b|\boder\b|\bou\b|\bo\b|或|أو)[\s(\[{*_'"“]*(?:(?:also|possibly|perhaps|maybe|option|choice)\s+)?[(*]*([A-J])(?:[\s)\]}*_.,;/'"”?!]|$)"#,
    );
    let other = OTHERS.captures(text).and_then(|found| found.get(1));
    // «B or C is right» says which.
    other.is_some_and(|other| !text[other.end()..].trim_start().starts_with("is "))
}

pub fn is_ruled_out(text: &str, place: Place) -> bool {
    /// «The incorrect answer is B», «the least likely option: E», «none of the options A to E».
    static WORST: Pattern = Pattern::new(
        r"\b(?:(?:incorrect|wrong|false|worst|unlikel(?:y|iest)|least \w+|poorest) (?:answer|option|choice|one|diagnosis)s?\b[^,]*|none of\b[^,]*)$",
    );
    let clause = text[clause_start(text, place.at)..place.at].to_lowercase();
    if WORST.is_match(&clause) {
        return true;
    }
    let after =
        text[place.at + 1..].trim_start_matches([')', ']', '*', '_', '.', ':', ' ', '"', '\'']);
    let sentence: String = after
        .chars()
        .take(MAX_CLAUSE)
        .take_while(|c| !matches!(c, '.' | '\n' | ';' | ','))
        .collect();
    let sentence = sentence.to_lowercase();
    let ends_with_word = |word: &str| {
        let words = clause.trim_end_matches(|c: char| !c.is_alphanumeric());
        let words = words
            .trim_end_matches("option")
            .trim_end_matches("options")
            .trim_end_matches("choice")
            .trim_end();
        words.ends_with(word)
    };
    AGAINST_BEFORE.split('|').any(ends_with_word)
        || AGAINST_AFTER.split('|').any(|words| sentence.contains(words))
}

/// In lower case, words alone, with one space around each.
pub fn plain(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(" ".to_owned(), |plain, word| plain + &word.to_lowercase() + " ")
}

/// The one option whose text a passage is: as it is written, else by its words and signs. Nothing at all is the text of no option.
pub fn whole<'a>(said: &str, options: &'a [Choice]) -> Option<&'a Choice> {
    let (written, words) = (bare(said), plain(said));
    let by = |is_it: &dyn Fn(&str) -> bool| {
        let mut found = options.iter().filter(|option| is_it(&option.text));
        found.next().filter(|_| found.next().is_none())
    };
    let has_signs = |text: &str| signs(text).next().is_none() || signs(text).eq(signs(said));
    by(&|text| !written.is_empty() && bare(text) == written)
        .or_else(|| by(&|text| !is_blank(&words) && plain(text) == words && has_signs(text)))
}

/// The arrows and comparisons of a text, which its words leave out: `↑ sodium`, `< 5 mm`.
pub fn signs(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| matches!(c, '\u{2190}'..='\u{21FF}' | '<' | '>' | '≤' | '≥'))
}

/// Whether plain text has no words.
pub fn is_blank(plain: &str) -> bool {
    plain.trim().is_empty()
}

/// A text as it is written, with one space between words and without marks around it.
fn bare(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_mark = |c: char| c.is_whitespace() || "*_`\"'“”.".contains(c);
    text.trim_matches(is_mark).to_owned()
}

fn starts_with(words: &str, option: &str) -> bool {
    let option = plain(option);
    let words: String = words.chars().take(2 * option.chars().count() + 20).collect();
    option.trim().len() > 1 && plain(&words).starts_with(&option)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(texts: &[&str]) -> Vec<Choice> {
        let choice = |(letter, text): (char, &&str)| Choice { letter, text: (*text).to_owned() };
        ('A'..='J').zip(texts).map(choice).collect()
    }

    #[test]
    fn an_option_is_said_as_it_is_written_or_by_its_words() {
        let letter = |said: &str, texts: &[&str]| {
            let options = options(texts);
            whole(said, &options).map(|option| option.letter)
        };
        assert_eq!(letter("**ct scan**.", &["MRI", "CT-scan"]), Some('B'));
        assert_eq!(letter("< 5 mm", &["> 5 mm", "< 5 mm"]), Some('B'));
        assert_eq!(letter("5 mm", &["> 5 mm", "< 5 mm"]), None);
        assert_eq!(letter(" ↓  ↑ ↓.", &["↑ ↓ ↓", "↓ ↑ ↓"]), Some('B'));
        for nothing in ["", "...", "**", "↑", "?"] {
            assert_eq!(letter(nothing, &["↑ ↓ ↓", "", "↓ ↑ ↓"]), None, "{nothing}");
        }
    }
}
