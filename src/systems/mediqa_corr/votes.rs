//! Votes on several opinions of a note.

use super::Opinion;
use crate::record;
use crate::systems::vote::most;

/// Votes as knowlab_AIMed's code does: on a tie the flag is 0, and so is the sentence's number.
pub fn apart(said: &[&Opinion]) -> Opinion {
    let read: Vec<&&Opinion> = said.iter().filter(|one| one.flag.is_read()).collect();
    let flags: Vec<record::Flag> = read.iter().map(|one| one.flag).collect();
    // −1 where there is none.
    let ids: Vec<Option<usize>> = read.iter().map(|one| one.sentence_id).collect();
    let is_tied = |most: usize, all: usize| 2 * most <= all;
    let Some((flag, votes, _)) = most(&flags) else { return Opinion::default() };
    let has_error = flag.has_error() && !is_tied(votes, flags.len());
    let flag = record::Flag::on(flag.basis(), Some(has_error));
    let sentence_id = most(&ids).and_then(|(id, votes, _)| match is_tied(votes, ids.len()) {
        true => Some(0),
        false => id,
    });
    let correction = read.iter().find_map(|one| one.correction.clone());
    match has_error {
        true => Opinion { flag, sentence_id, correction },
        false => Opinion { flag, ..Opinion::default() },
    }
}

/// The most common opinion by flag and sentence, without those that could not be parsed.
pub fn together(said: &[&Opinion]) -> Opinion {
    let read: Vec<&&Opinion> = said.iter().filter(|one| one.flag.is_read()).collect();
    let pairs: Vec<_> = read.iter().map(|one| (one.flag, one.sentence_id)).collect();
    let Some((pair, ..)) = most(&pairs) else { return Opinion::default() };
    let same = read.iter().filter(|one| (one.flag, one.sentence_id) == pair);
    let correction = same.filter_map(|one| one.correction.clone()).next();
    Opinion { flag: pair.0, sentence_id: pair.1, correction }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opinion(flag: bool, sentence_id: Option<usize>, correction: &str) -> Opinion {
        let correction = Some(correction.to_owned()).filter(|text| !text.is_empty());
        Opinion { flag: Some(flag).into(), sentence_id, correction }
    }

    #[test]
    fn knowlab_counts_flags_and_sentences_apart_and_a_tie_is_0() {
        let (a, b) = (opinion(true, Some(1), "x"), opinion(true, Some(2), "y"));
        let (none, unread) = (opinion(false, None, ""), Opinion::default());
        assert_eq!(apart(&[&a, &none, &a]), a);
        // Two say that there is an error, and each names another sentence: sentence 0.
        assert_eq!(apart(&[&b, &a, &none]), opinion(true, Some(0), "y"));
        assert_eq!(apart(&[&a, &none, &unread]), none);
        assert_eq!(apart(&[&none, &none, &a]), none);
        assert_eq!(apart(&[&unread, &unread]), unread);
    }

    #[test]
    fn pairs_are_counted_together_and_the_first_wins() {
        let (a, b) = (opinion(true, Some(1), "x"), opinion(true, Some(2), "y"));
        let (c, unread) = (opinion(true, Some(2), "z"), Opinion::default());
        assert_eq!(together(&[&a, &b, &c]), b);
        assert_eq!(together(&[&unread, &a, &b]), a);
        assert_eq!(together(&[&opinion(true, Some(2), ""), &c]), c);
        assert_eq!(together(&[&unread]), unread);
    }
}
