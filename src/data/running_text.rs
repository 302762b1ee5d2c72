//! Splits running text into sentences, at their ends.

const ENDS: &str = ".!?。！？؟";
/// Ends that need no whitespace after them.
const FULL_WIDTH_ENDS: &str = "。！？";
const CLOSERS: &str = "\"')]”’」）";
/// Words whose full stop does not end a sentence, in lower case.
const ABBREVIATIONS: [&str; 20] = [
    "dr", "mr", "mrs", "ms", "prof", "st", "vs", "e.g", "i.e", "approx", "no", "fig", "resp",
    "temp", "wt", "ca", "cf", "al", "pt", "pts",
];

/// The sentences of running text: they end at line ends, after . ! ? before whitespace, and after 。 ！ ？.
///
/// No full stop ends a sentence after a common abbreviation; one after a single letter does, as in `hepatitis A.`.
/// Closing quotes and brackets stay with the sentence.
pub(super) fn split(text: &str) -> Vec<&str> {
    text.lines().flat_map(split_line).filter(|sentence| !sentence.is_empty()).collect()
}

fn split_line(line: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, mark) in line.char_indices() {
        if !ENDS.contains(mark) {
            continue;
        }
        let rest = &line[at + mark.len_utf8()..];
        let after = rest.trim_start_matches(|c| CLOSERS.contains(c));
        let end = line.len() - after.len();
        let goes_on = after.starts_with(|c| ENDS.contains(c));
        let is_cut = FULL_WIDTH_ENDS.contains(mark) || after.starts_with(char::is_whitespace);
        let before = line[start..at].trim_start();
        let is_number =
            start == 0 && !before.is_empty() && before.bytes().all(|c| c.is_ascii_digit());
        let is_open = mark == '.' && (is_number || is_abbreviation(before));
        if !goes_on && is_cut && end > start && !is_open {
            sentences.push(line[start..end].trim());
            start = end;
        }
    }
    sentences.push(line[start..].trim());
    sentences
}

/// Whether the text before a full stop ends in an abbreviation.
fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit(char::is_whitespace).next().unwrap_or("");
    let word = word.trim_start_matches(['(', '[', '"']).to_lowercase();
    ABBREVIATIONS.contains(&word.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_text_is_split_at_line_ends_and_after_ends_of_sentences() {
        assert_eq!(
            split(
                "Seen by Dr. Lee at 8 a.m. today.  BP 38.3 C (e.g. high). Why?! \"So.\" Hepatitis A. End\r\n\r\nPlan: rest"
            ),
            [
                "Seen by Dr. Lee at 8 a.m.",
                "today.",
                "BP 38.3 C (e.g. high).",
                "Why?!",
                "\"So.\"",
                "Hepatitis A.",
                "End",
                "Plan: rest"
            ]
        );
        assert_eq!(
            split("头痛。发热！（轻。）查体？无"),
            ["头痛。", "发热！", "（轻。）", "查体？", "无"]
        );
        assert_eq!(split("ألم؟ نعم. لا"), ["ألم؟", "نعم.", "لا"]);
        assert!(split(" \n\t").is_empty());
    }

    #[test]
    fn a_number_of_a_list_is_no_sentence() {
        assert_eq!(split("1. Aspirin 100 mg\n2. Rest."), ["1. Aspirin 100 mg", "2. Rest."]);
    }
}
