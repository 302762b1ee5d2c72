//! Risk and coverage: how many of a run's cases have at least some score, how many of these are wrong, and from which score on so few are that
//! a share is proved for new cases from where these come from (fixed-sequence testing; Angelopoulos et al., Learn then Test, 2021).

use super::metrics::bootstrap::Units;
use super::metrics::near_duplicates::units;
use super::metrics::over_runs::share;
use super::notes::has_error;
use super::outcomes::Outcomes;
use crate::digest::sha256;
use crate::experiment::contents::Contents;
use crate::record::{CallLine, ItemLine};

/// The shares of wrong ones for which a threshold is looked for.
const WANTED: [f64; 2] = [0.05, 0.1];
/// How probable it is at most that a bound is false.
const DELTA: f64 = 0.05;

/// The cases of at least this score, and how many of them are wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    pub threshold: f64,
    pub above: usize,
    pub wrong: usize,
}

/// Of a run's first repetition, since repetitions of an item are no further cases.
pub struct Risk {
    /// Those whose gold is known; of those that ask nearly the same one, for together they would count as more than they prove.
    pub cases: usize,
    /// Of each score that any case has its name and a threshold a distinct score, from the highest down.
    pub curves: Vec<(&'static str, Vec<Threshold>)>,
}

impl Risk {
    pub fn of(run: &Contents) -> Risk {
        let outcomes = Outcomes::of(run);
        let lines = outcomes.lines.first().into_iter().flatten().copied().flatten();
        let graded: Vec<_> = lines.filter_map(|line| Some((line, judged(run, line)?))).collect();
        let texts: Vec<_> = graded.iter().map(|(line, _)| run.texts.get(line.item())).collect();
        // Of a unit the one whose id has the lowest sum: neither its outcome nor the order of a file chooses it.
        let lowest = |unit: &Vec<usize>| {
            let cases = unit.iter().map(|at| graded[*at]);
            cases.min_by_key(|(line, _)| sha256(line.item()))
        };
        let cases: Vec<_> = Units::of(&units(&texts)).0.iter().filter_map(lowest).collect();
        let curve_of = |(name, score): (&'static str, fn(&ItemLine) -> Option<f64>)| {
            let acted = cases.iter().filter(|(_, [can_act, _])| *can_act);
            let scored = acted.filter_map(|(line, [_, wrong])| Some((score(line)?, *wrong)));
            Some((name, curve(scored.collect()))).filter(|(_, points)| !points.is_empty())
        };
        let curves = [
            curve_of(("agreement", agreement)),
            curve_of(("confidence", ItemLine::stated_confidence)),
        ];
        Risk { cases: cases.len(), curves: curves.into_iter().flatten().collect() }
    }

    /// A sentence for each score and wanted share that has a threshold.
    pub fn in_words(&self) -> Vec<String> {
        let wanted = self.curves.iter().flat_map(|curve| WANTED.map(|share| (share, curve)));
        let said = wanted.filter_map(|(share, (score, curve))| {
            let Threshold { threshold, above, wrong } = threshold(curve, share)?;
            // Rounded down: what has the threshold itself is among them.
            let shown = libm::floor(1e3 * threshold + 1e-6) / 1e3;
            let (share, bound) = (100.0 * share, 100.0 * upper_bound(wrong, above));
            Some(format!(
                "For {share:.0} % wrong at most: at {score} {shown:.3} or above, {wrong} of {above} wrong, upper bound {bound:.2} % at 95 %."
            ))
        });
        said.collect()
    }
}

/// Whether one could act upon the outcome, an answer or a note without an error, and whether that would be wrong; `None` without gold.
fn judged(run: &Contents, line: &ItemLine) -> Option<[bool; 2]> {
    let (says, is_wrong) = match line {
        ItemLine::Answer(answer) => (!answer.answer.is_empty(), !line.correct()?),
        ItemLine::Note(note) => {
            // Whether a system that searches clears a note depends on what its turns said.
            let own = |call: &&CallLine| {
                note.search.is_some() && call.run == note.run && call.item == note.item
            };
            let calls: Vec<CallLine> = run.calls.records.iter().filter(own).cloned().collect();
            (has_error(note, &calls) == Some(false), note.gold.as_ref()?.flag)
        }
    };
    Some([says && line.error().is_none(), is_wrong])
}

/// How sure an outcome is: the share of the last round's answers that are it; of a note, of the opinions on whether there is an error.
fn agreement(line: &ItemLine) -> Option<f64> {
    fn of<T: PartialEq>(answers: &[T], outcome: &T) -> Option<f64> {
        share(answers.iter().filter(|answer| *answer == outcome).count(), answers.len())
    }
    match line {
        ItemLine::Answer(line) => of(&line.rounds.last()?.answers, &line.answer),
        ItemLine::Note(line) => of(&line.detection.as_ref()?.flags, &line.flag.said()),
    }
}

fn curve(mut scored: Vec<(f64, bool)>) -> Vec<Threshold> {
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut above, mut wrong) = (0, 0);
    let points = scored.chunk_by(|a, b| a.0 == b.0).map(|equal| {
        above += equal.len();
        wrong += equal.iter().filter(|(_, is_wrong)| *is_wrong).count();
        Threshold { threshold: equal[0].0, above, wrong }
    });
    points.collect()
}

/// The lowest threshold at which at most this share of the cases above is wrong, but for a probability of [`DELTA`]; `None` where none shows it.
///
/// Thresholds are tested from the highest down, and the first that fails ends it, so that the probability holds over all of them. The first
/// of all is one with as many cases as could pass without a wrong one, which depends on the scores alone.
fn threshold(curve: &[Threshold], share: f64) -> Option<Threshold> {
    let passes = |wrong: usize, above: usize| at_most(wrong, above, share) <= DELTA;
    let first = curve.iter().position(|point| passes(0, point.above))?;
    let passing = curve[first..].iter().take_while(|point| passes(point.wrong, point.above));
    passing.last().copied()
}

/// P(X ≤ `count`) for X binomial over `n` trials of probability `share`, by logarithms: the first of its terms may be too small for a number.
fn at_most(count: usize, n: usize, share: f64) -> f64 {
    let log_other = libm::log1p(-share);
    let (mut log, odds) = (n as f64 * log_other, libm::log(share) - log_other);
    let terms = (0..=count).map(|k| {
        let term = libm::exp(log);
        log += libm::log((n - k) as f64 / (k + 1) as f64) + odds;
        term
    });
    terms.sum()
}

/// The upper confidence bound of a share of which `count` of `n` were seen (Clopper and Pearson, Biometrika 1934), at 95 %.
fn upper_bound(count: usize, n: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    // Halved until neighbours meet.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        let is_bound = at_most(count, n, middle) <= DELTA;
        (low, high) = if is_bound { (low, middle) } else { (middle, high) };
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Choice, Item, Question};
    use crate::experiment::fixtures::{item, plan, start_with};
    use crate::random::SplitMix64;
    use crate::record::{AnswerLine, RoundLine, Stage};

    #[test]
    fn bounds_and_tails_are_scipys() {
        // beta.ppf(0.95, k + 1, n - k); 1 where all are wrong.
        for (count, n, expected) in [
            (0, 1, 0.95),
            (0, 59, 0.049_507_609_888_226),
            (1, 93, 0.049_993_978_387_988),
            (7, 200, 0.064_732_522_136_849),
            (12, 34, 0.508_227_719_705_428),
            (30, 400, 0.100_354_504_780_852),
            (5, 5, 1.0),
        ] {
            let found = upper_bound(count, n);
            assert!((found - expected).abs() < 1e-9, "{count} of {n}: {found}");
        }
        // binom.cdf(k, n, p)
        for (count, n, share, expected) in [
            (0, 58, 0.05, 0.051_046_868_683_603),
            (3, 120, 0.1, 0.001_574_972_829_154),
            (30, 400, 0.05, 0.988_563_001_813_311),
            // Its first term is 0.1^2000, which no number is.
            (1_790, 2_000, 0.9, 0.237_906_860_616_747),
        ] {
            let found = at_most(count, n, share);
            assert!((found - expected).abs() < 1e-9, "{count} of {n} at {share}: {found}");
        }
    }

    fn cases(groups: &[(f64, usize, usize)]) -> Vec<Threshold> {
        let of = |(score, n, wrong): &(f64, usize, usize)| {
            let (score, wrong) = (*score, *wrong);
            (0..*n).map(move |at| (score, at < wrong))
        };
        curve(groups.iter().flat_map(of).collect())
    }

    #[test]
    fn a_threshold_is_the_lowest_that_shows_the_share_and_none_is_skipped() {
        let at = |curve: &[Threshold], share| threshold(curve, share).map(|point| point.threshold);
        assert_eq!(at(&cases(&[(1.0, 58, 0)]), 0.05), None);
        assert_eq!(at(&cases(&[(1.0, 59, 0)]), 0.05), Some(1.0));
        assert_eq!(at(&cases(&[(1.0, 28, 0)]), 0.1), None);
        let falling = cases(&[(0.5, 31, 1), (0.9, 59, 0), (0.7, 3, 0)]);
        let points = [(0.9, 59, 0), (0.7, 62, 0), (0.5, 93, 1)];
        let of = |point: &Threshold| (point.threshold, point.above, point.wrong);
        assert_eq!(falling.iter().map(of).collect::<Vec<_>>(), points);
        assert_eq!(at(&falling, 0.05), Some(0.5));
        // What fails ends it, though what is below would pass; few cases at the top are not tested.
        assert_eq!(at(&cases(&[(0.9, 59, 1), (0.5, 500, 0)]), 0.05), None);
        assert_eq!(at(&cases(&[(0.9, 1, 1), (0.5, 92, 0)]), 0.05), Some(0.5));
        assert_eq!(threshold(&[], 0.1), None);
    }

    /// Sets of 200 cases whose score is one of ten tenths; of a score s a share of (1 − s) / 2 is wrong.
    #[test]
    fn of_ten_thousand_simulated_sets_the_bound_holds_in_all_but_one_of_twenty() {
        let tenth = |k: u64| (k + 1) as f64 / 10.0;
        let mut random = SplitMix64::new(11);
        let (mut broken, mut found) = (0, 0);
        for _ in 0..10_000 {
            let draw = |_| {
                let score = tenth(random.below(10));
                (score, (random.below(1000) as f64) < 500.0 * (1.0 - score))
            };
            let Some(point) = threshold(&curve((0..200).map(draw).collect()), 0.1) else {
                continue;
            };
            found += 1;
            let above = (0..10).map(tenth).filter(|score| *score >= point.threshold);
            let above: Vec<f64> = above.collect();
            let wrong: f64 = above.iter().map(|score| 0.5 * (1.0 - score)).sum();
            // At the fifth threshold from the top the share is the wanted one itself.
            broken += usize::from(wrong / above.len() as f64 > 0.1 - 1e-9);
        }
        // 500 are allowed; four standard deviations beside it.
        assert!(broken <= 590 && found > 4_000, "{broken} of {found}");
    }

    /// A run whose items are answered with this agreement of four, rightly or not.
    fn risk(items: &[(usize, bool)], text: impl Fn(usize) -> String) -> Risk {
        let out = tempfile::tempdir().unwrap();
        let ids: Vec<String> = (0..items.len()).map(|at| format!("i{at}")).collect();
        let mut plan = plan();
        (plan.runs, plan.dataset.items) = (1, ids.clone());
        let texts = ids.iter().enumerate().map(|(at, id)| {
            Item::Question(Question {
                id: id.clone(),
                question: text(at),
                options: [('A', "yes"), ('B', "no")]
                    .map(|(letter, text)| Choice { letter, text: text.to_owned() })
                    .to_vec(),
                gold: Some('B'),
                ..Question::default()
            })
        });
        let log = start_with(out.path(), &plan, &texts.collect::<Vec<_>>());
        for (id, (agree, is_right)) in ids.iter().zip(items) {
            let [own, other] = if *is_right { ["B", "A"] } else { ["A", "B"] };
            let answers = (0..4).map(|at| if at < *agree { own } else { other }.to_owned());
            let round = RoundLine {
                round: 0,
                stage: Stage::Initial,
                agents: vec!["solo".to_owned(); 4],
                labels: Vec::new(),
                answers: answers.collect(),
                confidences: Vec::new(),
                weights: Vec::new(),
                aggregate: own.to_owned(),
                brief: String::new(),
            };
            log.item(AnswerLine {
                item: id.clone(),
                run: 0,
                gold: Some("B".to_owned()),
                answer: own.to_owned(),
                correct: Some(*is_right),
                rounds: vec![round],
                ..item("q1", 0)
            })
            .unwrap();
        }
        log.finish().unwrap();
        Risk::of(&Contents::read(out.path()).unwrap())
    }

    #[test]
    fn a_threshold_is_said_in_a_sentence_and_where_there_is_none_nothing_is() {
        let sure = [vec![(4, true); 92], vec![(4, false)], vec![(2, false); 7]].concat();
        let told = risk(&sure, |at| format!("Question {at}?"));
        assert_eq!(told.cases, 100);
        assert_eq!(told.curves.len(), 1, "no confidences");
        assert_eq!(
            told.in_words(),
            [
                "For 5 % wrong at most: at agreement 1.000 or above, 1 of 93 wrong, upper bound 5.00 % at 95 %.",
                "For 10 % wrong at most: at agreement 1.000 or above, 1 of 93 wrong, upper bound 5.00 % at 95 %.",
            ]
        );
        assert!(risk(&sure[64..], |at| format!("Question {at}?")).in_words().is_empty());
        // The same question again is no further case.
        let again = risk(&sure, |at| format!("Question {}?", at % 58));
        assert_eq!(again.cases, 58);
    }
}
