//! Whether a text says that a note has an error, by whole sentences. A verdict stands alone or not at all: a text that calls the note right and
//! names an error anywhere, or gives both verdicts, contradicts itself.

use super::{is_nothing, plain, sentences};
use crate::text::Pattern;

/// What a text says of a note.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the note has an error; `None` where it does not say, or contradicts itself.
    pub flag: Option<bool>,
    pub contradicts: bool,
}

/// A sentence that is a verdict, in canonical words; the second group is a verdict of an error, and the third tells where or of what.
static WHOLE: Pattern = Pattern::new(concat!(
    r"\A (?:(?:\w+ )*(?:so|therefore|thus|hence) )?(?:(?:overall|in conclusion|final|my|label|verdict|answer|assessment|conclusion|correctness|classification|output|result|boxed|is|i (?:(?:would|will|can|must) )?(?:return|label|answer|classify)(?: (?:note|it|as))*|结论|判断|答案|结果|الحكم|النتيجة|الإجابة) )*?",
    r"(?:((?:(?:and |with |and it )?(?:correct|(?:note|it) (?:is|appears to be) (?:correct|error free|free of error)|free of error",
    r"|(?:(?:note|it) )?(?:has no|does not has(?: a| any)?) error|(?:there is |(?:i|we) (?:find|found|see) )?no error(?: is)?(?: found)?(?: in (?:it|note))?",
    r"|error(?: flag)? (?:no|none|false|0)|nothing (?:is )?incorrect(?: (?:in|with) (?:it|note))?|all (?:statements|sentences) is correct) ?)+)",
    r"|(incorrect|not correct|(?:(?:note|sentence|statement)(?: \d+)?) is (?:not correct|incorrect)|(?:there is|(?:note|sentence|statement)(?: \d+)? has) a error(?: (?:related to|with|in|of) (\w+(?: \w+){0,3}))?",
    r"|error(?: flag)? (?:yes|true|1)))(?: ?(?:label|answer|output|result|classification|verdict|confidence(?: score)? \d+))* ?\z",
));

/// That something in a note is wrong, in canonical words of a clause; the group is what denies, doubts or asks it.
static FAULT: Pattern = Pattern::new(concat!(
    r" (?:(no|none|nothing|not|cannot|never|neither|nor|if|whether|or|either|would|may|might|could) (?:(?:single|of|in|on|with|these|it|note|sentences?|statements?|parts?|details?|claims?|any|there|i|find|see|found) )*)?",
    r"(?:is (?:\w+ly )?incorrect|is not (?:\w+ )?(?:correct|appropriate|indicated|right|true|consistent|recommended)|there is a (?:\w+ )?error|(?:has|find|found|see|made|makes) a (?:\w+ )?error|error (?:is |lies )?in (?:sentence|line)",
    r"|(?:is|has|names?|gives?|given|uses?|used|chose|states?|got|receive[sd]?|prescribed|administered|made) (?:a )?incorrect \w+|incorrectly|wrongly|erroneously|mistakenly) ",
));

/// Families of words that patterns have one for; of the first, none.
const FAMILIES: [(&str, &str); 12] = [
    (
        "",
        "the this that whole entire entirely full fully completely provided clinical clinically medical medically factual factually already very",
    ),
    ("a", "an one two some"),
    ("is", "are was were isn wasn aren"),
    ("has", "have had contains contain holds hold"),
    ("does", "doesn"),
    ("not", "t"),
    ("no", "zero"),
    ("note", "text report narrative"),
    ("error", "errors mistake mistakes inaccuracy inaccuracies"),
    ("correct", "accurate"),
    ("incorrect", "wrong inaccurate erroneous mistaken inappropriate contraindicated"),
    ("found", "present identified detected"),
];

/// A text in plain words, each as its family has it, with one space around each.
fn in_canonical_words(text: &str) -> String {
    let words = plain(text);
    let words = words.split_whitespace().map(|word| {
        FAMILIES.iter().find(|(_, family)| has(family, word)).map_or(word, |(name, _)| name)
    });
    words.filter(|word| !word.is_empty()).fold(" ".to_owned(), |all, word| all + word + " ")
}

/// Whether words hold one of these.
fn has(words: &str, any: &str) -> bool {
    words.split_whitespace().any(|word| any.split(' ').any(|one| one == word))
}

/// What the sentences of a text that are verdicts say.
pub fn verdict(text: &str) -> Verdict {
    let is_item = |line: &str| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        rest.len() < line.len() && rest.starts_with(['.', ')', ':'])
    };
    // The items of a numbered list are about its sentences.
    let is_list = text.lines().filter(|line| is_item(line.trim())).count() > 1;
    let (mut said, mut names_one, mut is_right_in_part) = (Verdict::default(), false, false);
    for line in text.lines().map(str::trim) {
        let (label, is_of_list) = (names_a_sentence(line), is_list && is_item(line));
        names_one |= label == Some(true);
        for sentence in sentences(line) {
            let is_alone = line == sentence;
            let one = of_sentence(sentence, is_alone, label).filter(|_| !is_of_list);
            let is_label = sentence.trim_start_matches(['*', '_', '`', ' ']).starts_with("CORRECT");
            is_right_in_part |= one.is_none() && is_label && !is_of_list;
            said.contradicts |= match (said.flag, one) {
                (Some(before), Some(one)) => before != one,
                (Some(false), None) => label.unwrap_or_else(|| doubts(sentence)),
                _ => false,
            };
            said.flag = said.flag.or(one);
        }
    }
    said.contradicts |= match said.flag {
        Some(true) => is_right_in_part,
        Some(false) => names_one || names_error(text),
        // «The text is correct, and the error is …» is no verdict, and yet says both.
        None => {
            let whole = |one: &str| WHOLE.captures(one).is_some_and(|it| it.get(1).is_some());
            clauses(text).any(|one| has(&one, "note") && whole(&one))
                && (names_error(text) || clauses(text).any(|one| doubts(&one)))
        }
    };
    said.flag = said.flag.filter(|_| !said.contradicts);
    said
}

/// The verdict that a sentence is, alone on its line or not, behind a label or none.
fn of_sentence(sentence: &str, is_alone: bool, label: Option<bool>) -> Option<bool> {
    /// Before the word; behind it only what may take it back.
    const HEDGES: &str = "not cannot no none nothing never neither nor or if unless whether may might could either except hardly unlikely unclear unsure said says say called returned";
    let words = in_canonical_words(sentence);
    // What is said of one sentence: «2. He has gout. – correct»; or no more than its beginning: «It fits. The incorrect».
    let is_bare = !is_alone
        && matches!(words.trim(), "correct" | "incorrect")
        && !sentence.contains("CORRECT");
    if is_bare || sentence.ends_with(['?', ':', '：']) {
        return None;
    }
    if let Some(found) = WHOLE.captures(&words) {
        let is_hedged = found.get(3).is_some_and(|of| has(of.as_str(), HEDGES));
        return Some(found.get(1).is_none()).filter(|_| !is_hedged);
    }
    // The word that was asked for, wherever the sentence has it.
    let (before, behind) = sentence.split_once("INCORRECT")?;
    let is_one = sentence.matches("CORRECT").count() == 1;
    let is_hedged = has(&in_canonical_words(before), HEDGES)
        || has(&in_canonical_words(behind), "if unless except or not");
    (is_one && !is_hedged && label != Some(false)).then_some(true)
}

/// Whether a text says anywhere that something in a note is wrong.
pub fn names_error(text: &str) -> bool {
    clauses(text).any(|one| FAULT.captures_iter(&one).any(|fault| fault.get(1).is_none()))
}

/// The clauses of what a text states, in canonical words.
fn clauses(text: &str) -> impl Iterator<Item = String> {
    let stated = sentences(text).filter(|sentence| !sentence.ends_with('?'));
    let clauses = stated.flat_map(|one| one.split([',', ';', ':', '：', '(', ')', '–', '—', '，']));
    clauses.map(in_canonical_words)
}

/// Whether a sentence behind a verdict that all is right takes a part of it back.
fn doubts(sentence: &str) -> bool {
    const TURNS: &str =
        "however except unless unfortunately should instead rather too misdiagnosed";
    let words = in_canonical_words(sentence);
    let is_denied = has(&words, "no not nothing none without free");
    has(&words, TURNS) || words.starts_with(" but ") || has(&words, "incorrect error") && !is_denied
}

/// Whether a line with the label or tag of a wrong sentence or its correction gives one, or leaves it empty; `None` of any other line.
fn names_a_sentence(line: &str) -> Option<bool> {
    const NAMES: &str = "incorrect error correct corrected correction revised";
    let (label, value) = line.split_once([':', '：', '>'])?;
    let value = value.split_once("</").map_or(value, |(inside, _)| inside);
    let label = in_canonical_words(label);
    let (first, rest) = label.trim().split_once(' ').unwrap_or((label.trim(), ""));
    let is_beside =
        |word| has("sentence statement note version id flag is", word) || has(NAMES, word);
    let is_label = has(NAMES, first) && rest.split_whitespace().all(is_beside);
    let value = value.trim_matches(|c: char| !c.is_alphanumeric() && c != '-').to_lowercase();
    let is_none = is_nothing(&value) || "no false 0 -1".split(' ').any(|one| one == value);
    is_label.then_some(!is_none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_sentences_are_verdicts() {
        for said in [
            "INCORRECT",
            "**INCORRECT**",
            "Label: INCORRECT",
            "INCORRECT\n\nThe correct agent is another.",
            "INCORRECT: the dose is too high",
            "It is too much. The text contains a medical error in sentence 4.",
            "The note has one error.",
            "The note is not correct.",
            "There is an error in the text.",
            "There is a mistake in the treatment.",
            "The text has a medical error with a surgical procedure.",
            "This note is incorrect.",
            "error: yes",
            "Verdict: INCORRECT (diagnosis)",
            "<answer>INCORRECT</answer>",
            "{\"label\": \"INCORRECT\", \"confidence\": 90}",
            "\\boxed{INCORRECT}",
            "The answer is wrong.\n$\\boxed{INCORRECT}$",
            "Final answer: \\boxed{INCORRECT}",
            "<output>INCORRECT</output>",
            "The statement is INCORRECT",
            "I would label this text as INCORRECT.",
            "The dose is tenfold, so I return INCORRECT.",
            "There is an issue related to diagnosis: INCORRECT",
            "Correctness: INCORRECT",
            "结论：INCORRECT",
            "الحكم: INCORRECT",
        ] {
            assert_eq!(verdict(said).flag, Some(true), "{said}");
        }
        for said in [
            "CORRECT",
            "`CORRECT`.",
            "correct",
            "The note is correct.",
            "The narrative is medically accurate.",
            "No errors were found.",
            "No error was found in the note.",
            "There is no error.",
            "The note holds no mistake.",
            "The note does not contain any errors. CORRECT",
            "Error: no",
            "{\"label\": \"CORRECT\", \"confidence\": 90}",
            "\\boxed{CORRECT}",
            "<output>CORRECT</output>",
            "I label this text as CORRECT.",
            "All fits, so I return CORRECT",
            "Correctness: CORRECT",
            "结论：CORRECT",
        ] {
            assert_eq!(verdict(said).flag, Some(false), "{said}");
        }
    }

    #[test]
    fn a_verdict_stands_alone_or_not_at_all() {
        for said in [
            "CORRECT\n\nHowever, sentence 3 is wrong: the dose should be 5 mg.",
            "CORRECT\nWrong: He was given penicillin.\nCorrect: He was given azithromycin.",
            "CORRECT\nIncorrect sentence:\nCorrect:",
            "CORRECT: He has gout. INCORRECT: He has lupus.",
            "The note is correct. The dose of metoprolol is wrong.",
            "The diagnosis is not correct. CORRECT",
            "There is an error in the dose.\nThe note is correct.",
            "No errors were found. The therapy was too short.",
            "CORRECT\nThe drug was incorrectly stopped.",
            "CORRECT\nHe was given the wrong drug.",
            "INCORRECT. The note is correct.",
            "The text is correct, and the error is the wrong use of a word.",
            "The text is correct, and the error is in the dose.",
            "The note is correct, but the dose is ten times too high.",
            "There is no error in the note; the drug is wrong.",
        ] {
            assert_eq!(verdict(said), Verdict { flag: None, contradicts: true }, "{said}");
        }
        for said in [
            "Nothing is wrong with the dose. The note is correct.",
            "No sentence is incorrect. Is there an error? No. CORRECT",
            "CORRECT\nIncorrect sentence: NA\nCorrected sentence: N/A",
            "CORRECT\n\nThe diagnosis fits, and no statement contradicts it.",
            "The text is correct and contains no medical errors.",
        ] {
            assert_eq!(verdict(said), Verdict { flag: Some(false), contradicts: false }, "{said}");
        }
        for said in [
            "The text is correct, and it tells of a patient.",
            "Wrong: He was given penicillin. Correct: He was given azithromycin, not the wrong drug.",
            "If the text is correct, return CORRECT. Is it correct, or is it wrong?",
        ] {
            assert_eq!(verdict(said), Verdict::default(), "{said}");
        }
        let corrected =
            "INCORRECT\nWrong: He was given penicillin.\nCorrect: He was given azithromycin.";
        assert_eq!(verdict(corrected).flag, Some(true));
        assert!(names_error("The dose in sentence 2 is clearly wrong."));
        assert!(!names_error("This may be incorrect. Is it wrong? If so, the label is another."));
    }

    #[test]
    fn what_a_simple_pattern_would_turn_is_unread() {
        for said in [
            "",
            "CORRECT\n...\nINCORRECT",
            "CORRECT or INCORRECT",
            "If the text has a medical error return one word INCORRECT.",
            "I would not label this text as INCORRECT.",
            "I cannot say whether it is INCORRECT",
            "Sentence 1: CORRECT\nSentence 2: CORRECT",
            "The diagnosis is CORRECT.",
            "Agent 1 says CORRECT, and agent 2 says INCORRECT.",
            "I find that the diagnosis is CORRECT.",
            "It is unlikely that the note is INCORRECT.",
            "Is it CORRECT or INCORRECT?",
            "Nothing in this narrative strikes me as erroneous.",
            "I am not sure that the note is correct.",
            "I would not say that there is no error.",
            "There may be an error.",
            "The diagnosis is another. The incorrect",
            "There is an error in no sentence.",
            "The text is not incorrect.",
            "If the text is correct return one word CORRECT.",
            "The text is CORRECT except for the dose.",
            "CORRECT, except for the dose.",
            "CORRECT (but for the dose)",
            "The note would be correct if the drug were another.",
            "There is no error in the dose, but the drug is wrong.",
            "The correct diagnosis is sepsis.",
            "This is consistent with gout.",
            "The patient is 45.",
            "The note is correct in sentence 1 and incorrect in sentence 2.",
            // Of a part alone.
            "The statement is CORRECT.",
            "There is no error in sentence 1.",
            "The note is mostly correct.",
            "There are no other errors.",
            // The label of an answer that is not there.
            "Correct:",
            "1. The text is correct.\n2. The text is correct.\n3. The text is correct.",
        ] {
            assert_eq!(verdict(said).flag, None, "{said}");
        }
    }
}
