//! Whether a text says that a note has an error: CORRECT or INCORRECT, as models write it; nothing where it says both or neither.

use crate::text::Pattern;

/// What a text says of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Correct,
    Incorrect,
}

impl Verdict {
    pub fn has_error(self) -> bool {
        self == Verdict::Incorrect
    }
}

/// Both words as the prompts name them, which says nothing: «CORRECT or INCORRECT».
static BOTH: Pattern = Pattern::new(
    r#"(?i)["'“*]*\b(?:in)?correct\b["'”*]*\s*(?:or|/|\||und|oder|ou|o|或|或者|أو)\s*["'“*]*\b(?:in)?correct\b["'”*]*"#,
);

/// The label in capitals; before a noun it is no verdict: «CORRECT SENTENCE: …».
static CAPITALS: Pattern = Pattern::new(
    r"\b(?:(NOT|NO|(?i:no|not|nothing|nothing is|isn't|never))\s+)?(IN-?CORRECT|CORRECT)\b(,?\s+(?:(?i:except|but|apart from|save for)\b|SENTENCE|VERSION|DIAGNOSIS|TREATMENT|ANSWER|ORGANISM|DOSE|TEXT IS|STATEMENT|TERM|DRUG|MEDICATION|CAUSE|FORM)\b)?",
);

/// A line that is a label.
static LINE: Pattern = Pattern::new(
    r#"(?m)^[\s>#*_"'`(\[{.:-]*(?:(?i:final|my)?\s*(?i:label|verdict|answer|result|assessment|judge?ment|decision|conclusion|detection|final)[\s*_]*[:：][\s*_"'`]*)?(INCORRECT|CORRECT)[\s*_"'`)\]}.!]*$"#,
);

/// What says that a label is doubted, or that it is another's.
static DOUBTS: Pattern = Pattern::new(
    r"(?i)\b(?:cannot|can't|could not|unable to|hard to|not able to|not sure|unsure|whether|if|return (?:one|the|a)(?: single)? word)\b[^.\n]*?\b(?:in)?correct\b|\b(?:hard to|not sure|unsure|whether|if|(?:cannot|can't) (?:say|tell|determine|decide))\b[^.\n]*?\b(?:an?|any) (?:\w+ )?(?:errors?|mistakes?)\b",
);

/// A peer who is right or wrong.
static OF_PEER: Pattern = Pattern::new(
    r"\b(?i:doctor|agent|colleague|opinion)s?\b(?: [\w']+){0,3} (?:is|are|was|were) (?:in)?correct\b",
);

/// A label of one sentence, not of the note.
static OF_SENTENCE: Pattern = Pattern::new(
    r"(?im)^[\s>#*_|-]*(?:sentence|line)?\s*#?\d{1,2}\s*[*_]*\s*[:.)|–—-]+[\s*_]*(in)?correct\b[^\n]*$",
);

/// Likewise behind the sentence, in capitals.
static BEHIND_SENTENCE: Pattern = Pattern::new(
    r"(?m)^[\s>#*_|-]*(?:(?i:sentence|line))?\s*#?\d{1,2}\s*[*_]*\s*[:.)|–—-]+[^\n]*[.!?:)\x22”→–—-]\s*[*_(]*(IN)?CORRECT[\s*_.)]*$",
);

/// A label that is a sentence of its own.
static ALONE: Pattern = Pattern::new(
    r"(?:\A|[.!?:>\x22*\n])[\s*_\x22(]*\b(INCORRECT|CORRECT)\b[\s*_\x22)]*(?:[.!<\n]|\z|->|→|[–—-])",
);

/// Who takes back what was said.
static TURN: Pattern = Pattern::new(
    r"(?i)\b(?:wait|actually|however|on (?:second thought|reflection)|let me re\w+|correction|scratch that|no,|i (?:have to |must |will |should )?(?:revise|change|withdraw))\b",
);

/// A label that is taken back in part.
static EXCEPT: Pattern = Pattern::new(
    r"(?i)\b(?:correct|accurate|fine|right)\b,?\s+(?:except|apart from|aside from|save for|other than|but for)\b",
);

/// A question about errors and its answer.
static ASKS: Pattern =
    Pattern::new(r"(?i)\b(?:error|errors|mistake|incorrect|wrong)\b[^.?\n]*\?[\s*_]*(yes|no)\b");

/// Statements that a note has an error.
static SAYS_ERROR: Pattern = Pattern::new(concat!(
    r"(?i)\b(?:is|are|was|be|as|therefore|thus|appears|seems|:)\s+(?:to be |clearly |medically |factually |likely |probably |therefore |thus )*",
    r"(?:\*\*|\x22)?(?:incorrect|inaccurate|erroneous|wrong|flawed)\b",
    r"|\b(?:not|\w+n['’]t)\s+(?:entirely |completely |fully |quite |medically |factually )?(?:correct|accurate)\b",
    r"|\b(?:contains?|has|have|includes?|there is|there's|there appears to be|there seems to be|found|identified|detected|spotted)\s+(?:exactly |at least |only )?",
    r"(?:an?|one|1|the following)\s+(?:\w+[\s-]+){0,3}(?:error|mistake|inaccuracy|inconsistency)\b",
    r"|\b(?:incorrectly|wrongly|erroneously|inaccurately)\s+(?:stated|states|diagnosed|identified|identifies|attributed|attributes|described|describes|listed|named|names|treated|called)\b",
    r"|\b(?:error|mistake) (?:is|lies|was found|found|detected|present)\b|\berror\s*:\s*(?:yes|true|1)\b",
    r"|\berror(?:[ _]?flag| present| found)?\s*[:=]\s*(?:1|yes|true)\b|^\W*incorrect\b|\bis (?:\w+ )?in error\b",
    r"|存在[^。，\n]{0,8}错误",
    r"|不正确|有误|存在错误|有错误|有一处错误|غير صحيح|غير دقيق|يحتوي على خطأ|هناك خطأ|يوجد خطأ",
    r"|\b(?:inkorrekt|fehlerhaft|nicht korrekt|incorrecto|incorrecta|incorrecte?|contiene un error|contient une erreur|enthält einen fehler)\b",
));

/// Statements that it has none.
static SAYS_NONE: Pattern = Pattern::new(concat!(
    r"(?i)\b(?:text|note|report|narrative|document|passage|everything|it|this|all of them|every sentence|each sentence|all (?:the |of the )?(?:\d+ )?sentences|all statements|summary|case|vignette|label|verdict|result|answer|conclusion|judge?ment|assessment)\b",
    r"(?:\s+\w+){0,3}?(?:\s+(?:is|are|as|appears?|seems?|looks?)|\s*:)\s+(?:to be |clearly |medically |factually |clinically |entirely |completely |therefore |thus |all |overall |largely )*(?:\*\*|\x22)?(?:correct|accurate|error-free)\b",
    r"|\b(?:no|without any|without|free of|free from|zero)\s+(?:\w+[\s-]+){0,3}(?:errors?|mistakes?|inaccurac(?:y|ies)|inconsistenc(?:y|ies))\b",
    r"|\b(?:do|does|did|could|can) ?(?:not|n't) (?:find|see|identify|detect|contain|have|spot) (?:an?y? )?(?:\w+[\s-]+){0,2}(?:errors?|mistakes?)\b",
    r"|\bnothing (?:is )?(?:\w+ )?(?:wrong|incorrect|inaccurate|erroneous)\b|\bno (?:incorrect|inaccurate|wrong|erroneous)\b|\berrors?(?:[ _]?flag| present| found)?\s*[:=]\s*(?:0|no|none|false)\b",
    r"|\bnot (?:incorrect|inaccurate|wrong|erroneous)\b|\b(?:would|need) not (?:change|correct) anything\b",
    r"|\bnothing\b[^.,\n]{0,40}\b(?:is|was|appears|seems) (?:\w+ )?(?:wrong|incorrect|inaccurate|erroneous)\b",
    r"|^\W*correct\b\W*$|^\W*correct[.\n]",
    r"|(?:^|[^不])正确(?:[^的]|$)|是正确的(?:[。，,.！!]|\s|$)|没有错误|无错误|没有发现错误|未发现错误|无误|لا يوجد خطأ|لا توجد أخطاء|لا يحتوي على (?:أي )?(?:خطأ|أخطاء)|النص صحيح|صحيحة? تماما",
    r"|\b(?:ist korrekt|keine fehler|keinen fehler|es correcto|es correcta|sin errores|no contiene errores|est correct|aucune erreur|pas d'erreur)\b",
));

/// Reads a text without its reasons and confidence. A label in capitals counts before words in lower case; two that contradict each other
/// are none.
pub fn verdict(text: &str) -> Option<Verdict> {
    let text = BOTH.replace_all(text, " ");
    let text = DOUBTS.replace_all(&text, " ");
    if let Some(answer) = ASKS.captures(&text) {
        return Some(if answer[1].eq_ignore_ascii_case("yes") {
            Verdict::Incorrect
        } else {
            Verdict::Correct
        });
    }
    let of =
        |label: &str| if label.starts_with("IN") { Verdict::Incorrect } else { Verdict::Correct };
    let text = OF_PEER.replace_all(&text, " ");
    let mut of_sentences = OF_SENTENCE.captures_iter(&text);
    let has_wrong_sentence = of_sentences.any(|one| one.get(1).is_some());
    let text = OF_SENTENCE.replace_all(&text, " ");
    // One numbered line may be the last of the reasons.
    let text = match BEHIND_SENTENCE.captures_iter(&text).count() {
        0 | 1 => text,
        _ => BEHIND_SENTENCE.replace_all(&text, " ").into_owned().into(),
    };
    let alone = ALONE.captures_iter(&text).filter_map(|label| label.get(1));
    let alone: Vec<_> = alone.map(|label| (label.start(), of(label.as_str()))).collect();
    if let [.., (before, one), (after, other)] = alone[..]
        && one != other
        && TURN.is_match(&text[before..after])
    {
        return Some(other);
    }
    let lines: Vec<Verdict> = LINE.captures_iter(&text).map(|line| of(&line[1])).collect();
    if let Some(found) = agreed(&lines) {
        return found;
    }
    if let Some(found) = agreed(&alone.iter().map(|(_, label)| *label).collect::<Vec<_>>()) {
        return found;
    }
    let labels = CAPITALS.captures_iter(&text).filter_map(|label| {
        let excepts = label.get(3).map_or("", |after| after.as_str().trim());
        let is_exception = excepts.starts_with(|c: char| c.is_lowercase());
        match (of(&label[2]), label.get(1).is_some()) {
            // «nothing INCORRECT», «NOT CORRECT», «CORRECT except for …»
            (Verdict::Incorrect, true) => Some(Verdict::Correct),
            (Verdict::Correct, true) => Some(Verdict::Incorrect),
            (Verdict::Correct, false) if is_exception => Some(Verdict::Incorrect),
            (verdict, false) => (excepts.is_empty() || is_exception).then_some(verdict),
        }
    });
    let labels: Vec<Verdict> = labels.collect();
    let said = agreed(&labels).unwrap_or_else(|| in_words(&text));
    said.or_else(|| has_wrong_sentence.then_some(Verdict::Incorrect))
}

/// What all say; `None` inside where they contradict each other, outside where there are none.
fn agreed(labels: &[Verdict]) -> Option<Option<Verdict>> {
    let first = labels.first()?;
    Some(labels.iter().all(|label| label == first).then_some(*first))
}

fn in_words(text: &str) -> Option<Verdict> {
    if EXCEPT.is_match(text) {
        return Some(Verdict::Incorrect);
    }
    // What denies an error names one.
    let without = SAYS_NONE.replace_all(text, " ");
    match (SAYS_NONE.is_match(text), SAYS_ERROR.is_match(&without)) {
        (true, false) => Some(Verdict::Correct),
        (false, true) => Some(Verdict::Incorrect),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        let patterns = [
            &BOTH,
            &CAPITALS,
            &LINE,
            &DOUBTS,
            &ASKS,
            &SAYS_ERROR,
            &SAYS_NONE,
            &OF_PEER,
            &OF_SENTENCE,
            &BEHIND_SENTENCE,
            &ALONE,
            &TURN,
            &EXCEPT,
        ];
        assert!(patterns.iter().all(|pattern| pattern.regex().is_some()));
    }

    #[test]
    fn labels_and_words() {
        let error = [
            "INCORRECT\n\nThe correct causative agent is Streptococcus pyogenes.",
            "**INCORRECT**",
            "The note is not correct.",
            "this note is incorrect: the dose is too high",
            "Label: INCORRECT. The text is either CORRECT or INCORRECT.",
            "INCORRECT\nCORRECT SENTENCE: He was given penicillin.",
            "The text contains a medical error in sentence 4.",
            "NOT CORRECT",
            "该文本不正确。",
            "النص غير صحيح",
            "There is one error: the antibiotic.",
            "1. A man has a cough. CORRECT\n2. He is given insulin. CORRECT\nThe text is INCORRECT.",
        ];
        for text in error {
            assert_eq!(verdict(text), Some(Verdict::Incorrect), "{text}");
        }
        let correct = [
            "CORRECT",
            "The text is correct.",
            "No errors were found.",
            "I could not find any errors in this note.",
            "`CORRECT`.",
            "The note does not contain any errors. CORRECT",
            "文本正确",
            "The narrative appears to be medically accurate; there are no errors.",
            "The text is not incorrect.",
        ];
        for text in correct {
            assert_eq!(verdict(text), Some(Verdict::Correct), "{text}");
        }
        for text in [
            "",
            "CORRECT\n...\nINCORRECT",
            "The correct diagnosis is sepsis.",
            "This is consistent with gout.",
            "正确的诊断应为肺炎。",
            "Is it CORRECT or INCORRECT?",
            "The patient is 45.",
        ] {
            assert_eq!(verdict(text), None, "{text}");
        }
    }
}
