//! The one option whose text a reply says, where it gives no letter.

use super::letter::sentence_start;
use super::standing::{is_blank, plain, signs, whole};
use crate::data::Choice;
use crate::text::Pattern;

/// The one option whose text is the reply, or stands in what announces the answer, or in the last sentence.
pub fn by_text<'a>(text: &'a str, options: &[Choice]) -> Option<char> {
    static DECIDES: Pattern = Pattern::new(
        r"(?i)\b(?:so|therefore|thus|hence|conclu\w+|most likely|likeliest|best|correct|right|answer|diagnosis|choos\w+|choice|select\w*|recommend\w*|should|must|would be|leaves|leaving|consistent|indicat\w+|suggest\w*|points?|fits?|explains?|caused|due to|need\w*|treat\w*|first|next step|it is|this is)\b|[^\x00-\x7F]",
    );
    static ANNOUNCES: Pattern = Pattern::new(
        r"(?i:(?:\b(?:answer|diagnosis|choice|response|recommendation|respuesta|réponse|antwort)|(?:\A|\n|\b(?:best|correct|right|chosen|final|likely|closest|nearest|matching|only|the|my))\W*\boption)\b[^.\n:]{0,60}?(?:\bis\b|\bwould be\b|\bes\b|\best\b|\bist\b|:)|答案(?:是|为|：|:)|الإجابة[^:.\n]{0,20}(?:هي|:))",
    );
    let said = ANNOUNCES.find_iter(text).last().map(|found| {
        let rest = &text[found.end()..];
        let end = rest
            .trim_start()
            .find(['\n'])
            .map_or(rest.len(), |end| end + rest.len() - rest.trim_start().len());
        &rest[..end]
    });
    let trimmed = text.trim();
    let last = trimmed
        [sentence_start(trimmed, trimmed.len().saturating_sub(1).min(floor(trimmed)))..]
        .trim();
    let parts = [said, Some(last).filter(|last| last.len() < 400)];
    let without_brackets = text.split('(').next().unwrap_or_default();
    if let Some(option) = whole(without_brackets, options).filter(|_| text.trim().ends_with(')')) {
        return Some(option.letter);
    }
    // Up to a bracket that ends the line: «Escherichia coli (gram-negative)».
    let without_marks = |part: &'a str| {
        let line = part.split(['\n', '.']).next().unwrap_or_default();
        match line.split_once('(') {
            Some((before, inside)) if inside.trim_end().ends_with(')') => before,
            _ => line,
        }
    };
    let alone = parts.into_iter().flatten().find_map(|part| whole(without_marks(part), options));
    let in_parts = || {
        let [said, last] = parts;
        // Where others are named too, a last sentence counts that decides.
        let last = last.filter(|last| {
            let is_only = options.iter().filter(|one| mentions(text, one)).count() < 2;
            is_only || said.is_some() || DECIDES.is_match(last)
        });
        [said, last].into_iter().flatten().find_map(|part| named(part, options))
    };
    alone
        .map(|option| option.letter)
        .or_else(|| first_word(trimmed, options))
        .or_else(in_parts)
        .or_else(|| concluded(trimmed, options))
        .or_else(|| opened(trimmed, options))
}

/// The option whose text ends a text's first sentence: «The most likely cause of … is increased preload. …», where no other is said whole.
fn opened(text: &str, options: &[Choice]) -> Option<char> {
    static OPENS: Pattern = Pattern::new(
        r"(?i)\b(?:most likely|likeliest|best|correct|most appropriate|next step|diagnosis)\b.*\b(?:is|are|would be)\s+(.+?)\s*$",
    );
    let end = text.find(". ").or_else(|| text.find(".\n")).unwrap_or(text.len());
    let first = text[..end].trim_end_matches('.');
    let said = OPENS.captures(first)?.get(1)?.as_str();
    let without_article =
        ["a ", "an ", "the "].iter().find_map(|article| said.strip_prefix(article));
    let option = whole(said, options).or_else(|| whole(without_article?, options))?;
    let is_other = |one: &&Choice| one.letter != option.letter && mentions(&text[end..], one);
    (!options.iter().any(|one| is_other(&one))).then_some(option.letter)
}

/// The only option that a text names, in a sentence that concludes it from what was found: «…, which strongly suggests a yolk sac tumor. …»
fn concluded(text: &str, options: &[Choice]) -> Option<char> {
    static CONCLUDES: Pattern = Pattern::new(
        r"(?i)\b(?:(?:strongly|clearly|most) (?:suggests?|indicates?|favou?rs|supports?)|points? to|is diagnostic of|diagnosis is|confirms?)\b",
    );
    let option = options.iter().find(|one| Some(one.letter) == named(text, options))?;
    let sentences = text.split_inclusive(['.', '\n', '!', '?']);
    let mut naming = sentences.filter(|sentence| mentions(sentence, option));
    let is_only = options.iter().filter(|one| mentions(text, one)).count() == 1;
    (is_only && naming.any(|sentence| CONCLUDES.is_match(sentence))).then_some(option.letter)
}

fn mentions(text: &str, option: &Choice) -> bool {
    let option = plain(&option.text);
    option.trim().len() > 2 && plain(text).contains(&option)
}

fn has_words(option: &Choice) -> bool {
    !is_blank(&plain(&option.text))
}

/// The option of one word that a text begins with: «No, the trial …».
fn first_word(text: &str, options: &[Choice]) -> Option<char> {
    let sentence = text.split(['.', '\n', ';', '!']).next().unwrap_or_default();
    let (first, rest) = match sentence.split_once([',', ':', '–', '—']) {
        Some((first, rest)) => (first, plain(rest)),
        None => (sentence, String::new()),
    };
    let option =
        whole(first, options).filter(|option| option.text.split_whitespace().count() == 1)?;
    let mut others = options.iter().filter(|other| other.letter != option.letter);
    let says = |other: &Choice| has_words(other) && rest.contains(&plain(&other.text));
    others.all(|other| !says(other)).then_some(option.letter)
}

/// The last place before the last character.
fn floor(text: &str) -> usize {
    text.char_indices().next_back().map_or(0, |(at, _)| at)
}

/// The one option whose text is said in a part of a text; options that are part of another's text do not count beside it.
pub fn named(part: &str, options: &[Choice]) -> Option<char> {
    let against = ["rather than", "instead of", ", not ", " but not ", " unlike "];
    let end = against.iter().filter_map(|word| part.find(word)).filter(|end| *end > 0).min();
    let written = &part[..end.unwrap_or(part.len())];
    let part = plain(written);
    let has = |option: &&Choice| {
        let text = plain(&option.text);
        text.trim().len() > 2
            // «↑ sodium» and «↓ sodium» have the same words.
            && (signs(&option.text).next().is_none() || written.contains(option.text.trim()))
            && part
                .match_indices(&text)
                .any(|(at, found)| !denied(&part[..at]) && !dismissed(&part[at + found.len()..]))
    };
    let found: Vec<&Choice> = options.iter().filter(has).collect();
    let longest = found.iter().copied().filter(|option| {
        let text = plain(&option.text);
        !found.iter().any(|other| {
            other.letter != option.letter
                && plain(&other.text).contains(&text)
                && plain(&other.text).len() > text.len()
        })
    });
    let longest: Vec<&Choice> = longest.collect();
    match longest[..] {
        [one] => Some(one.letter),
        _ => None,
    }
}

fn denied(before: &str) -> bool {
    [" not ", " rule out ", " rules out ", " excludes ", " without ", " unlike ", " than "]
        .iter()
        .any(|no| before.ends_with(no.trim_end()))
}

/// Whether what follows an option's text, in plain words, says that it is not the answer.
fn dismissed(after: &str) -> bool {
    static DISMISSED: Pattern = Pattern::new(
        r"^(?:[a-j] )?(?:is|are|was|were|would be|can|could|should|may|does|do|will) (?:\w+ )?(?:not|n t|unlikely|unnecessary|wrong|incorrect|contraindicated|inappropriate|wait|be excluded|be avoided|be ruled out|excluded|ruled out)\b",
    );
    DISMISSED.is_match(after)
}
