//! The proposed correction compared with the gold one, word by word.

use serde::Serialize;

use super::diff::Diff;
use crate::analysis::notes::{Measure, ScoresByPair, quality};
use crate::record::NoteLine;

#[derive(Serialize)]
pub struct Correction {
    /// From the located sentence to the proposed one.
    proposed: Option<Diff>,
    /// From the gold sentence to the gold correction.
    gold: Option<Diff>,
    /// From the gold correction to the proposed one, where both are and differ.
    between: Option<Diff>,
    same: bool,
    /// Whether the note has gold at all.
    is_graded: bool,
    /// Measures of the pair, as the tables round them.
    scores: Vec<(&'static str, String)>,
}

impl Correction {
    /// `None` where neither side corrects.
    pub fn of(note: &NoteLine, neural: &ScoresByPair) -> Option<Correction> {
        let language = note.language;
        let gold = note.gold.as_ref();
        let wanted = gold.and_then(|gold| gold.correction.as_deref());
        let given = note.correction.as_deref();
        if wanted.is_none() && given.is_none() {
            return None;
        }
        let wrong = gold.and_then(|gold| gold.sentence.as_deref());
        let both = wanted.zip(given);
        let same = both.is_some_and(|(wanted, given)| wanted == given);
        let quality = quality(note, neural);
        let scores = Measure::OF_TEXTS.into_iter().filter_map(|measure| {
            Some((measure.label(), format!("{:.4}", quality.as_ref()?.get(measure)?)))
        });
        Some(Correction {
            proposed: given.map(|given| Diff::of(language, &note.sentence, given)),
            gold: wanted.map(|wanted| Diff::of(language, wrong.unwrap_or_default(), wanted)),
            between: both
                .filter(|_| !same)
                .map(|(wanted, given)| Diff::of(language, wanted, given)),
            same,
            is_graded: gold.is_some(),
            scores: scores.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::notes::{gold, note};

    #[test]
    fn either_side_may_be_missing() {
        let mut judged = note("x");
        let of = |note: &NoteLine| Correction::of(note, &ScoresByPair::new());
        assert!(of(&judged).is_none());
        judged.gold = Some(gold(Some(1)));
        let missed = of(&judged).unwrap();
        assert!(missed.proposed.is_none() && missed.gold.is_some() && missed.between.is_none());
        assert!(missed.scores.is_empty());
        judged.flag = Some(true).into();
        judged.correction = judged.gold.as_ref().unwrap().correction.clone();
        let equal = of(&judged).unwrap();
        assert!(equal.same && equal.between.is_none());
        // Four of the package `rouge`, four with stems; no neural measure without its weights.
        let values: Vec<&str> = equal.scores.iter().map(|one| one.1.as_str()).collect();
        assert_eq!(values, ["1.0000"; 8]);
        judged.correction = Some("Something else.".into());
        assert!(of(&judged).unwrap().between.is_some());
    }
}
