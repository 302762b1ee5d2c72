//! The sentences of a note: read off their numbers, or found in running text.

/// What may stand between a sentence and the number of the next.
const PUNCTUATION: &str = ".!?:;)\"”。！？：；）،؛؟";
const ENDS: &str = ".!?。！？؟";
/// Ends that need no blank after them.
const FULL_WIDTH_ENDS: &str = "。！？";
const CLOSERS: &str = "\"')]”’」）";
/// Words with a full stop that ends no sentence, in lower case.
const ABBREVIATIONS: [&str; 20] = [
    "dr", "mr", "mrs", "ms", "prof", "st", "vs", "e.g", "i.e", "approx", "no", "fig", "resp",
    "temp", "wt", "ca", "cf", "al", "pt", "pts",
];

/// The sentences of a text that numbers them 0, 1, 2, …: after `0`, whatever comes before `1`, and so on.
///
/// Where a line begins with `1`, every number begins a line, and a line without the next number goes on with the
/// sentence before. Else numbers stand between blanks on one line, where `type 2 diabetes` has one too: of the places
/// of a number the first one after punctuation is taken, failing that the first one, failing that one that misses a
/// blank, as in `ago.1 He` and `، 3و`. Empty where the text does not begin with `0`.
pub(super) fn numbered(text: &str) -> Vec<&str> {
    let by_line = place_in_lines(text, 0, 1).is_some();
    let mut places: Vec<(usize, usize)> = Vec::new();
    let mut from = 0;
    while let Some((start, end)) = match by_line {
        true => place_in_lines(text, from, places.len()),
        false => place_in_text(text, from, places.len()),
    } {
        if places.is_empty() && !text[..start].trim().is_empty() {
            break;
        }
        places.push((start, end));
        from = end;
    }
    let ends = places.iter().skip(1).map(|(start, _)| *start);
    let ends = ends.chain([text.len()]);
    let sentences = places.iter().zip(ends);
    sentences.map(|((_, from), to)| text[*from..to].trim()).collect()
}

/// The sentences of a text that numbers them; of any other those that `otherwise` finds.
pub(super) fn numbered_or(text: &str, otherwise: fn(&str) -> Vec<&str>) -> Vec<&str> {
    match numbered(text) {
        numbered if numbered.is_empty() => otherwise(text),
        numbered => numbered,
    }
}

/// The lines of a text that are not blank, trimmed.
pub(super) fn lines(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty()).collect()
}

/// Where a line begins with `number` and a blank: the number's start and end.
fn place_in_lines(text: &str, from: usize, number: usize) -> Option<(usize, usize)> {
    let number = number.to_string();
    let mut start = from;
    for line in text[from..].split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        let is_line_start = start == 0 || text[..start].ends_with('\n');
        if let Some(rest) = line[indent..].strip_prefix(&number)
            && is_line_start
            && rest.starts_with([' ', '\t'])
        {
            return Some((start + indent, start + indent + number.len()));
        }
        start += line.len();
    }
    None
}

/// Where `number` stands as a word, or as the beginning of one after punctuation: its start and end.
fn place_in_text(text: &str, from: usize, number: usize) -> Option<(usize, usize)> {
    let number = number.to_string();
    let (mut first, mut joined) = (None, None);
    for (offset, _) in text[from..].match_indices(&number) {
        let (start, end) = (from + offset, from + offset + number.len());
        let (before, after) = (&text[..start], &text[end..]);
        let follows_blank = before.is_empty() || before.ends_with(char::is_whitespace);
        let precedes_blank = after.starts_with(char::is_whitespace);
        let word_before = before.trim_end();
        let follows_punctuation = word_before.is_empty() || word_before.ends_with(is_punctuation);
        if follows_blank && precedes_blank {
            if follows_punctuation {
                return Some((start, end));
            }
            first.get_or_insert((start, end));
        }
        // Not the decimals of 7.1.
        let mut last_two = before.chars().rev();
        let joins_before = last_two.next().is_some_and(is_punctuation)
            && last_two.next().is_some_and(|c| !c.is_numeric() && !c.is_whitespace());
        let joins_after = after.starts_with(char::is_alphabetic);
        if (joins_before && (precedes_blank || joins_after))
            || (follows_blank && joins_after && follows_punctuation && !before.is_empty())
        {
            joined.get_or_insert((start, end));
        }
    }
    first.or(joined)
}

fn is_punctuation(c: char) -> bool {
    PUNCTUATION.contains(c)
}

/// The sentences of running text, which ends one at every line end, and after . ! ? before a blank, or after 。 ！ ？.
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
        if !goes_on && is_cut && end > start && !(mark == '.' && is_abbreviation(&line[start..at]))
        {
            sentences.push(line[start..end].trim());
            start = end;
        }
    }
    sentences.push(line[start..].trim());
    sentences
}

/// Whether the text before a full stop ends in a word that takes one.
fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit(char::is_whitespace).next().unwrap_or("");
    let word = word.trim_start_matches(['(', '[', '"']).to_lowercase();
    ABBREVIATIONS.contains(&word.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_lines_where_one_does() {
        let text = "0 He took 1 tablet.\r\n1 BP is\r\n2 120/80 mm\r\nand so on.\r\n3 Done.\r\n";
        assert_eq!(
            numbered(text),
            ["He took 1 tablet.", "BP is", "120/80 mm\r\nand so on.", "Done."]
        );
        let out_of_order = "0 a.\n2 b.\n1 c.\n2 d.";
        assert_eq!(numbered(out_of_order), ["a.\n2 b.", "c.", "d."]);
        assert_eq!(numbered("  0 a\n 1\tb"), ["a", "b"]);
    }

    #[test]
    fn numbers_between_blanks_are_preferred_after_punctuation() {
        let text =
            "0 He has type 1 diabetes. 1 He takes 2 tablets. 2 BP 120/80 3 He is 4 feet tall";
        let sentences = numbered(text);
        assert_eq!(sentences[..3], ["He has type 1 diabetes.", "He takes 2 tablets.", "BP 120/80"]);
        // Nothing says that this 4 is none.
        assert_eq!(sentences[3..], ["He is", "feet tall"]);
    }

    #[test]
    fn a_number_that_misses_a_blank_is_found() {
        assert_eq!(
            numbered("0 Ten days ago.1 He is 2.2 m tall. 2 So."),
            ["Ten days ago.", "He is 2.2 m tall.", "So."]
        );
        assert_eq!(numbered("0 كبيرة،1 إلا"), ["كبيرة،", "إلا"]);
        assert_eq!(numbered("0 a. 1 +4،  2ويظهر"), ["a.", "+4،", "ويظهر"]);
        assert_eq!(numbered("0 pH is 7.1 now"), ["pH is 7.1 now"]);
    }

    #[test]
    fn text_that_does_not_begin_with_0_is_not_numbered() {
        for text in ["", "1 a", "Seen 0 times. 1 More.", "10 a", "0"] {
            assert!(numbered(text).is_empty(), "{text:?}");
        }
        assert_eq!(numbered("0 a"), ["a"]);
    }

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
}
