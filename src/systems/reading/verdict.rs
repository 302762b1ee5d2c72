//! Whether a text says that a note has an error, by whole sentences alone: a verdict is never guessed, and two that differ are none.

use super::{agreed, plain, sentences};
use crate::text::Pattern;

/// A sentence that is a verdict, in plain words; the second group is a verdict of an error.
static WHOLE: Pattern = Pattern::new(concat!(
    r"\A (?:(?:therefore|thus|so|hence|overall|in conclusion|final|my|the|label|verdict|answer|assessment|conclusion|classification|output|result|is) )*",
    r"(?:(correct|(?:no|zero) (?:\w+ )?(?:errors?|mistakes?)(?: (?:was|were|is|are))?(?: (?:found|present))?(?: in (?:the|this) (?:\w+ )?(?:text|note|report|narrative))?",
    r"|there (?:is|are|was|were) (?:no|zero) (?:\w+ )?(?:errors?|mistakes?)(?: in (?:the|this) (?:\w+ )?(?:text|note|report|narrative)| in sentence \d+)?",
    r"|(?:the |this )?(?:\w+ )?(?:text|note|report|narrative|sentence|statement) (?:(?:contains|has|holds) (?:no|zero) (?:\w+ )?(?:errors?|mistakes?)|does not (?:contain|have|hold) (?:an|any) (?:\w+ )?(?:errors?|mistakes?)|(?:is|appears to be|is entirely) (?:\w+ly |already )?(?:correct|accurate|error free))",
    r"|error(?: flag)? (?:no|none|false|0))",
    r"|(incorrect|there is (?:an|a|one) (?:\w+ )?(?:error|mistake)(?: in (?:the|this) (?:\w+ )?(?:text|note|report|narrative)| in sentence \d+)?",
    r"|(?:the |this )?(?:\w+ )?(?:text|note|report|narrative|sentence|statement) (?:(?:contains|has|holds) (?:an|a|one) (?:\w+ )?(?:error|mistake)(?: in (?:the|this) (?:\w+ )?(?:text|note|report|narrative)| in sentence \d+)?|is (?:\w+ly )?(?:incorrect|inaccurate))",
    r"|error(?: flag)? (?:yes|true|1))) \z",
));

/// A label behind its name or before reasons: «INCORRECT: the dose …», `{"label": "CORRECT", …`.
static LABEL: Pattern = Pattern::new(concat!(
    r"\A(?:[\s*_\x22'`#>({<$]|\\boxed\{)*(?:(?i:(?:final |my )?(?:label|verdict|answer|result|output|assessment|classification|conclusion|correctness|judgement|judgment",
    r"|结论|判断|答案|结果|الحكم|النتيجة|الإجابة))[\s*_\x22']*[:：=>](?:[\s*_\x22']|\$?\\boxed\{)*)?",
    r"(?:(CORRECT)(?:[\s*_'`.)}$]*(?:\z|<)|\x22[,}])|(INCORRECT)[\s*_\x22'`)$]*(?:[:,(<}–—-]|\z))",
));

/// A label at the end of a sentence: «…, so I return INCORRECT». What is correct may be a part alone: somebody has to say that they label.
static LAST: Pattern = Pattern::new(
    r"(?:\A|[\s:：])(?:(I (?:would |will |can |must |therefore |thus )*(?:return|label|answer|classify|conclude|output)\b[^.!?]*\sCORRECT)|(?:[^.!?]*[\s:：])?(INCORRECT))[\s*_'`\x22)}.。]*\z",
);

/// What makes of a sentence that ends with a label something else: a denial, a doubt, a condition, an instruction, a line of a list.
static HEDGE: Pattern = Pattern::new(
    r"(?i)\b(?:not|cannot|no|none|nothing|never|neither|nor|or|if|unless|whether|may|might|could|either|except|hardly|unlikely|unclear|unsure|one word|(?:sentence|statement|line|item) \d+)\b|n['’]t\b",
);

/// Whether the note has an error by the sentences of a text that are verdicts; nothing where they differ.
pub fn verdict(text: &str) -> Option<bool> {
    let lines = text.lines().flat_map(|line| sentences(line).map(move |one| (line.trim(), one)));
    let is_item = |line: &str| {
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        rest.len() < line.len() && rest.starts_with(['.', ')', ':'])
    };
    // The items of a numbered list are about its sentences.
    let is_list = text.lines().filter(|line| is_item(line.trim())).count() > 1;
    agreed(lines.filter_map(|(line, sentence)| {
        let words = plain(sentence);
        // A question, or what is said of one sentence: «2. He has gout. – correct».
        let is_bare = matches!(words.trim(), "correct" | "incorrect")
            && line != sentence
            && !sentence.contains("CORRECT");
        if is_bare || sentence.ends_with('?') || is_list && is_item(line) {
            return None;
        }
        let last = || {
            let is_one = sentence.matches("CORRECT").count() == 1;
            LAST.captures(sentence).filter(|_| is_one && !HEDGE.is_match(sentence))
        };
        let found = WHOLE.captures(&words).or_else(|| LABEL.captures(sentence)).or_else(last)?;
        Some(found.get(1).is_none())
    }))
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
            "There is an error in the text.",
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
            assert_eq!(verdict(said), Some(true), "{said}");
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
            "The statement is CORRECT.",
            "I label this text as CORRECT.",
            "All fits, so I return CORRECT",
            "Correctness: CORRECT",
            "结论：CORRECT",
        ] {
            assert_eq!(verdict(said), Some(false), "{said}");
        }
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
            "The text is not incorrect.",
            "The note is not correct.",
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
            "1. The text is correct.\n2. The text is correct.\n3. The text is correct.",
        ] {
            assert_eq!(verdict(said), None, "{said}");
        }
    }
}
