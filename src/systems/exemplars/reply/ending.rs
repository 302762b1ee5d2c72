//! The closing sentence of KU-DMIS' fine-tuned model: which sentence should be corrected to which, or that there is no error.

use super::{Judgement, most_similar, sentence, without_number};
use crate::data::Note;

const ERROR: &str = "therefore, the error sentence ";
const CORRECTED: &str = " should be corrected to the corrected sentence ";
const NO_ERROR: &str = "therefore, the note does not contain an error";

/// Parses the last such sentence; `None` where there is none.
pub fn read(reply: &str, note: &Note) -> Option<Judgement> {
    // ASCII lower case keeps every byte's position.
    let lower = reply.to_ascii_lowercase();
    let error = lower.match_indices(ERROR).filter_map(|(at, _)| {
        let start = at + ERROR.len();
        let between = lower[start..].find(CORRECTED)?;
        Some((start, start + between))
    });
    let (error, no_error) = (error.last(), lower.rfind(NO_ERROR));
    let (start, end) = match (error, no_error) {
        (Some((start, end)), no_error) if no_error.is_none_or(|at| at < start) => (start, end),
        (_, Some(_)) => return Some(Judgement { flag: Some(false), ..Judgement::default() }),
        (_, None) => return None,
    };
    let wrong = sentence(&reply[start..end]);
    let right = reply[end + CORRECTED.len()..].lines().next().unwrap_or_default();
    let right = sentence(without_closing(right.trim(), wrong.as_deref()));
    let sentence_id = wrong.and_then(|wrong| most_similar(note, &wrong));
    let correction = right.map(|text| without_number(&text, sentence_id, note));
    Some(Judgement { flag: Some(true), sentence_id, correction, ..Judgement::default() })
}

/// A correction without the full stop of the closing sentence itself.
fn without_closing<'a>(right: &'a str, wrong: Option<&str>) -> &'a str {
    let Some(rest) = right.strip_suffix('.') else { return right };
    let has_own = wrong.is_some_and(|wrong| wrong.ends_with('.'));
    if has_own && !rest.ends_with(['.', '"', '”', '}']) { right } else { rest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::scripted::{WRONG, note};

    const BETTER: &str = "Beta agonists were given for the attack.";

    #[test]
    fn the_last_closing_sentence_counts() {
        let ending = |wrong: &str, right: &str| {
            format!(
                "Therefore, the error sentence {wrong} should be corrected to the corrected sentence {right}."
            )
        };
        let found = Judgement {
            flag: Some(true),
            sentence_id: Some(1),
            correction: Some(BETTER.to_owned()),
            ..Judgement::default()
        };
        let whole = ending(WRONG, BETTER);
        let bare = ending(WRONG.trim_end_matches('.'), BETTER.trim_end_matches('.'));
        let quoted = ending(&format!("\"{WRONG}\""), &format!("\"{BETTER}\""));
        for reply in [&whole, &whole.replace("..", "."), &quoted, &format!("Why.\n{whole}\nDone.")]
        {
            assert_eq!(read(reply, &note()), Some(found.clone()), "{reply}");
        }
        let bare = read(&bare, &note()).unwrap();
        assert_eq!(bare.correction.as_deref(), Some(BETTER.trim_end_matches('.')));
        let none = "Therefore, the note does not contain an error.";
        let right = Judgement { flag: Some(false), ..Judgement::default() };
        assert_eq!(read(none, &note()), Some(right.clone()));
        assert_eq!(read(&format!("{none} No: {whole}"), &note()), Some(found));
        assert_eq!(read(&format!("{whole} No: {none}"), &note()), Some(right));
        assert_eq!(read("Therefore, the error sentence is unclear.", &note()), None);
    }
}
