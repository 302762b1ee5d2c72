//! The options of a question in what a reply says: the one whose text a passage is, and the letter of one beside the text of another.

use super::correction::without_number;
use super::{agreed, plain, sentences};
use crate::data::Choice;
use crate::record::Language;
use crate::text::align;

/// The one option whose text a passage is, which may be numbered: as it is written, else by its words and signs. Nothing at all is the text
/// of no option.
pub fn whole(said: &str, options: &[Choice]) -> Option<char> {
    let by = |is_it: &dyn Fn(&str) -> bool| {
        agreed(options.iter().filter(|one| is_it(&one.text)).map(|one| one.letter))
    };
    [said, without_number(said)].into_iter().find_map(|said| {
        let (written, words) = (bare(said), plain(said));
        let has_signs = |text: &str| signs(text).next().is_none() || signs(text).eq(signs(said));
        by(&|text| !written.is_empty() && bare(text) == written).or_else(|| {
            by(&|text| !words.trim().is_empty() && plain(text) == words && has_signs(text))
        })
    })
}

/// The option whose text a line begins with, up to its end or to a mark that ends a sentence or a clause.
pub fn leading(line: &str, options: &[Choice]) -> Option<char> {
    const ENDS: [&str; 11] = ["**", ".", "(", ";", ",", ":", "!", " - ", " – ", " — ", " -> "];
    let line = near(line, options);
    let ends = ENDS.iter().filter_map(|end| Some(line.split_once(end)?.0));
    std::iter::once(line).chain(ends).find_map(|part| whole(part, options))
}

/// Whether a passage that says one option has the text of another beside it.
pub fn has_others(said: &str, own: char, options: &[Choice]) -> bool {
    let texts = options.iter().map(|one| (one.letter == own, plain(&one.text)));
    let (own, others): (Vec<_>, Vec<_>) =
        texts.filter(|(_, text)| text != " ").partition(|(is_own, _)| *is_own);
    let rest = own.iter().fold(plain(said), |rest, (_, text)| rest.replace(text, " "));
    others.iter().any(|(_, text)| rest.contains(text))
}

/// The one option whose whole text stands in a passage, with the words before and behind it. One that lies in another's text is not meant.
fn named(said: &str, options: &[Choice]) -> Option<(char, [String; 3])> {
    let words = plain(said);
    let texts = options.iter().filter(|one| signs(&one.text).next().is_none());
    let texts = texts.map(|one| (plain(&one.text), one.letter));
    let said_there = texts.filter(|(text, _)| text != " " && words.contains(text));
    let (text, letter) = said_there.max_by_key(|(text, _)| text.len())?;
    let (before, behind) = words.split_once(&text)?;
    let parts = [before, text.trim(), behind].map(str::to_owned);
    (!has_others(said, letter, options)).then_some((letter, parts))
}

/// The option whose text a sentence ends with, behind a verb: «The most likely cause of … is increased preload.» or «… is D: increased
/// preload.», where it says no other's.
pub fn concluded(sentence: &str, options: &[Choice]) -> Option<char> {
    let (letter, [before, _, behind]) = named(sentence, options)?;
    let own = letter.to_ascii_lowercase().to_string();
    let is_article = |word: &&str| ["a", "an", "the", "to", own.as_str()].contains(word);
    let verb = before.split_whitespace().rev().find(|word| !is_article(word));
    let is_verb = verb.is_some_and(|verb| ["is", "are", "be"].contains(&verb));
    (behind.is_empty() && is_verb && !denies(&before)).then_some(letter)
}

/// The option whose text of several words stands in a record's field: «I would add propranolol». A number may be the end of another.
pub fn in_field(field: &str, options: &[Choice]) -> Option<char> {
    let (letter, [before, text, behind]) = named(field, options)?;
    let is_told = text.contains(' ') && text.starts_with(char::is_alphabetic);
    (is_told && !denies(&before) && !denies(&behind)).then_some(letter)
}

/// The option that a passage leads with, or whose text of several words its first sentence has: «to add propranolol to the regimen, as …».
pub fn told(said: &str, options: &[Choice]) -> Option<char> {
    leading(said, options).or_else(|| in_field(sentences(near(said, options)).next()?, options))
}

/// Whether a passage is about an option: it leads with its text or is most like it, or has a longer word of it.
pub fn is_of(said: &str, letter: char, options: &[Choice]) -> bool {
    let words = plain(said);
    let has = |word: &str| word.len() > 3 && words.contains(&format!(" {word} "));
    let mut own = options.iter().filter(|one| one.letter == letter);
    leading(said, options).or_else(|| alike(said, options)) == Some(letter)
        || own.any(|one| plain(&one.text).split_whitespace().any(has))
}

/// Whether words say of what they are about that it is not so, or another.
pub fn denies(said: &str) -> bool {
    const DENIALS: &str = " not no never neither nor none cannot without except but than rather instead least less wrong incorrect worst avoid unless if or other another alternative t ";
    plain(said).split_whitespace().any(|word| DENIALS.contains(&format!(" {word} ")))
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
    const ALIKE: f64 = 0.85;
    let said = plain(line.split(['.', ';', '(']).next()?);
    let said = Some(said).filter(|said| !said.trim().is_empty())?;
    let texts: Vec<String> = options.iter().map(|option| plain(&option.text)).collect();
    let found = align(&texts, &said, Language::English)?;
    (found.ratio >= ALIKE).then(|| options[found.index].letter)
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
    use crate::record::Parse;
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
            assert_eq!(of_text(said, &options).0, "", "{said}");
            assert!(contradicts_itself(said, &options), "{said}");
        }
        for field in ["A: No", "A) No", "(A) No, since"] {
            assert_eq!(of_field(field, "", &options, Parse::Ok).0, "", "{field}");
        }
        for said in ["A: Yes", "A. Yes, it is", "A", "The answer is A: Yes. B: No is wrong"] {
            assert_eq!(of_text(said, &options).0, "A", "{said}");
            assert!(!contradicts_itself(said, &options), "{said}");
        }
        assert_eq!(of_field("A: since nothing else fits", "", &options, Parse::Ok).0, "");
        let options = self::options(&["Potassium iodide therapy", "Calcium gluconate therapy"]);
        assert_eq!(of_field("A: Calcium gluconolate therapy", "", &options, Parse::Ok).0, "");
        assert_eq!(of_field("B: Calcium gluconolate therapy", "", &options, Parse::Ok).0, "B");
        assert_eq!(of_field("A: Potassium iodine therapy", "", &options, Parse::Ok).0, "A");
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
