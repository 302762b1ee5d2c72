//! The options of a question in what a reply says: the one whose text a passage is, and the letter of one beside the text of another.

use std::collections::BTreeSet;

use super::plain;
use crate::data::Choice;

/// The one option whose text a passage is: as it is written, else by its words and signs. Nothing at all is the text of no option.
pub fn whole(said: &str, options: &[Choice]) -> Option<char> {
    let (written, words) = (bare(said), plain(said));
    let by = |is_it: &dyn Fn(&str) -> bool| {
        let mut found = options.iter().filter(|option| is_it(&option.text));
        found.next().filter(|_| found.next().is_none()).map(|option| option.letter)
    };
    let has_signs = |text: &str| signs(text).next().is_none() || signs(text).eq(signs(said));
    by(&|text| !written.is_empty() && bare(text) == written)
        .or_else(|| by(&|text| !words.trim().is_empty() && plain(text) == words && has_signs(text)))
}

/// The option whose text a line begins with, up to its end or to a mark that ends a sentence or a clause.
pub fn leading(line: &str, options: &[Choice]) -> Option<char> {
    const ENDS: [&str; 10] = [".", "(", ";", ",", ":", "!", " - ", " – ", " — ", " -> "];
    let line = near(line, options);
    let ends = ENDS.iter().filter_map(|end| Some(line.split_once(end)?.0));
    std::iter::once(line).chain(ends).find_map(|part| whole(part, options))
}

/// The option whose text a sentence ends with, behind a verb: «The most likely cause of … is increased preload.» or «… is D: increased
/// preload.», where it says no other's.
pub fn concluded(sentence: &str, options: &[Choice]) -> Option<char> {
    let said = plain(sentence);
    // «The least likely is …» names what is not the answer.
    if [" least ", " incorrect ", " wrong ", " except "].iter().any(|word| said.contains(word)) {
        return None;
    }
    let mut named = options.iter().filter(|option| {
        let text = plain(&option.text);
        !text.trim().is_empty() && said.contains(&text)
    });
    let option = named.next().filter(|_| named.next().is_none())?;
    let before = said.strip_suffix(plain(&option.text).trim_start())?;
    let articles = ["a ", "an ", "the ", "to "];
    let before = articles.iter().find_map(|one| before.strip_suffix(one)).unwrap_or(before);
    let own = format!("{} ", option.letter.to_ascii_lowercase());
    let before = before.strip_suffix(&own).unwrap_or(before);
    let ends = |words: &[&str]| words.iter().any(|one| before.ends_with(one));
    let is_denied = ends(&[" not be ", " cannot be ", " never be ", " t be "]);
    let is_words = signs(&option.text).next().is_none();
    (is_words && !is_denied && ends(&[" is ", " are ", " be "])).then_some(option.letter)
}

/// Whether a text has this letter somewhere beside the text of another option, which says both and so neither: «A: No», where A is yes.
pub fn is_contradicted(letter: char, text: &str, options: &[Choice]) -> bool {
    let mut places = text.match_indices(letter).map(|(at, _)| at);
    places.any(|at| {
        let stands_alone = !text[..at].ends_with(char::is_alphanumeric);
        stands_alone && beside(&text[at + 1..], options).is_some_and(|other| other != letter)
    })
}

/// The option whose text follows a letter and a mark, such as a colon.
pub fn beside(after: &str, options: &[Choice]) -> Option<char> {
    let after = near(after, options).trim_start_matches([' ', '*', '_', '"', '\'']);
    let after = after.strip_prefix([':', ')', '.', ']', '=', '-', '–', '—', '(', ','])?;
    let line = after.lines().next()?.trim_start_matches(['*', '_', '"', ' ', '(']);
    leading(line, options).or_else(|| alike(line, options))
}

/// The option that a line's first clause is most like, where hardly a letter differs: «Calcium gluconolate» for calcium gluconate.
fn alike(line: &str, options: &[Choice]) -> Option<char> {
    /// Of the pairs of letters, those that both have, in per cent.
    const ALIKE: usize = 85;
    let said = pairs(line.split(['.', ';', '(']).next()?);
    let share = |option: &Choice| {
        let text = pairs(&option.text);
        let common = said.iter().filter(|pair| text.contains(pair)).count();
        200 * common / (said.len() + text.len()).max(1)
    };
    let mut shares: Vec<_> = options.iter().map(|one| (share(one), one.letter)).collect();
    shares.sort_unstable();
    match shares[..] {
        [.., (second, _), (first, letter)] if first >= ALIKE && first > second => Some(letter),
        _ => None,
    }
}

/// The pairs of neighbouring letters of a text, each once.
fn pairs(text: &str) -> BTreeSet<(char, char)> {
    let text = plain(text);
    text.chars().zip(text.chars().skip(1)).collect()
}

/// The beginning of what follows, as far as an option may reach: every letter of a text is looked behind, and the text may be one line.
fn near<'a>(after: &'a str, options: &[Choice]) -> &'a str {
    /// Of spaces and marks around the words.
    const AROUND: usize = 200;
    let longest = options.iter().map(|option| option.text.len()).max().unwrap_or_default();
    &after[..after.floor_char_boundary(2 * longest + AROUND)]
}

/// The arrows and comparisons of a text, which its words leave out: `↑ sodium`, `< 5 mm`.
fn signs(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| matches!(c, '\u{2190}'..='\u{21FF}' | '<' | '>' | '≤' | '≥'))
}

/// A text as it is written, with one space between words and without marks around it.
fn bare(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_mark = |c: char| c.is_whitespace() || "*_`\"'“”.".contains(c);
    text.trim_matches(is_mark).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::reading::answer::{contradicts_itself, of_field, of_text};

    fn options(texts: &[&str]) -> Vec<Choice> {
        let choice = |(letter, text): (char, &&str)| Choice { letter, text: (*text).to_owned() };
        ('A'..='J').zip(texts).map(choice).collect()
    }

    #[test]
    fn an_option_is_said_as_it_is_written_or_by_its_words() {
        let letter = |said: &str, texts: &[&str]| whole(said, &options(texts));
        assert_eq!(letter("**ct scan**.", &["MRI", "CT-scan"]), Some('B'));
        assert_eq!(letter("< 5 mm", &["> 5 mm", "< 5 mm"]), Some('B'));
        assert_eq!(letter("5 mm", &["> 5 mm", "< 5 mm"]), None);
        assert_eq!(letter(" ↓  ↑ ↓.", &["↑ ↓ ↓", "↓ ↑ ↓"]), Some('B'));
        for nothing in ["", "...", "**", "↑", "?"] {
            assert_eq!(letter(nothing, &["↑ ↓ ↓", "", "↓ ↑ ↓"]), None, "{nothing}");
        }
    }

    #[test]
    fn the_letter_of_one_option_with_the_text_of_another_is_no_answer() {
        let options = options(&["Yes", "No", "Maybe"]);
        for said in
            ["A: No", "A. No", "(A) No", "**A**: No.", "The answer is A: No", "A: No, it is not"]
        {
            assert_eq!(of_text(said, &options), "", "{said}");
            assert!(contradicts_itself(said, &options), "{said}");
        }
        for field in ["A: No", "A) No", "(A) No, since"] {
            assert_eq!(of_field(field, "", &options), "", "{field}");
        }
        for said in ["A: Yes", "A. Yes, it is", "A", "The answer is A: Yes. B: No is wrong"] {
            assert_eq!(of_text(said, &options), "A", "{said}");
            assert!(!contradicts_itself(said, &options), "{said}");
        }
        assert_eq!(of_field("A: since nothing else fits", "", &options), "A");
        let options = self::options(&["Potassium iodide therapy", "Calcium gluconate therapy"]);
        assert_eq!(of_field("A: Calcium gluconolate therapy", "", &options), "");
        assert_eq!(of_field("B: Calcium gluconolate therapy", "", &options), "B");
        assert_eq!(of_field("A: Potassium iodine therapy", "", &options), "A");
    }

    #[test]
    fn a_first_sentence_that_ends_with_the_text_of_one_option_concludes_it() {
        let options =
            options(&["Increased right ventricular preload", "Increased preload", "Asthma"]);
        let found = |text: &str| concluded(text, &options);
        assert_eq!(
            found("The most likely cause of it is increased right ventricular preload."),
            Some('A')
        );
        assert_eq!(found("The likely cause is not asthma."), None);
        for denied in ["The least likely cause is asthma.", "What is wrong is asthma."] {
            assert_eq!(found(denied), None, "{denied}");
        }
        assert_eq!(found("Asthma or increased preload is the cause."), None);
        assert_eq!(found("Asthma is why the cause is increased preload."), None);
    }
}
