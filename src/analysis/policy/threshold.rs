//! The threshold: how many cases one acts upon above each score, how many of these are wrong, and where that is proved to be few enough.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::binomial::{proves, upper_bound};
use super::score::Because;

/// What the share of wrong cases is a share of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Base {
    /// Wrong and acted upon, of all cases
    #[default]
    All,
    /// Wrong, of the cases acted upon
    Acted,
}

/// The guarantee: the share is at most `risk` with confidence 1 − `delta`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guarantee {
    pub risk: f64,
    pub delta: f64,
    pub of: Base,
}

/// A case whose right outcome is known.
#[derive(Clone, Debug)]
pub struct Case {
    pub item: String,
    /// The score, or why nobody would act upon the case whatever the threshold.
    pub score: Result<f64, Because>,
    /// Whether acting upon it is wrong.
    pub is_wrong: bool,
    /// What kinds of case it is, where the file says so.
    pub groups: Vec<String>,
}

/// Where one acts upon every case of at least this score.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    pub threshold: f64,
    pub acted: usize,
    pub wrong: usize,
}

/// The risk–coverage curve: a point a distinct score, from the highest down.
pub fn curve(cases: &[Case]) -> Vec<Point> {
    let scored = cases.iter().filter_map(|case| Some((case.score.ok()?, case.is_wrong)));
    let mut scored: Vec<(f64, bool)> = scored.collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut points: Vec<Point> = Vec::new();
    for (score, is_wrong) in scored {
        let last = points.last().copied();
        let before = last.unwrap_or(Point { threshold: score, acted: 0, wrong: 0 });
        if last.is_some_and(|last| last.threshold == score) {
            points.pop();
        }
        points.push(Point {
            threshold: score,
            acted: before.acted + 1,
            wrong: before.wrong + usize::from(is_wrong),
        });
    }
    points
}

impl Guarantee {
    /// The lowest threshold that keeps it; `None` where none does.
    ///
    /// Thresholds are tested from the highest down, each at level `delta`, and the first that fails ends it: so that the probability of
    /// a false guarantee is at most `delta` over all of them (fixed-sequence testing; Angelopoulos et al., Learn then Test, 2021). Of the
    /// cases acted upon, what is tested first is the first threshold with as many cases as could pass without a wrong one, which depends
    /// on the scores alone.
    pub fn threshold(&self, cases: &[Case]) -> Option<Point> {
        let points = curve(cases);
        let (needed, n) = (self.needed(), cases.len());
        let first = match self.of {
            Base::All => 0,
            Base::Acted => points.iter().position(|point| point.acted >= needed)?,
        };
        let passes = |point: &&Point| self.passes(point, n);
        points[first..].iter().take_while(passes).last().copied()
    }

    pub(super) fn passes(&self, point: &Point, cases: usize) -> bool {
        proves(point.wrong, self.base(point, cases), self.risk, self.delta)
    }

    fn base(&self, point: &Point, cases: usize) -> usize {
        match self.of {
            Base::All => cases,
            Base::Acted => point.acted,
        }
    }

    /// What the share is at most, with confidence 1 − `delta`, at this threshold taken by itself.
    pub fn bound(&self, point: &Point, cases: usize) -> f64 {
        upper_bound(point.wrong, self.base(point, cases), self.delta)
    }

    /// Cases that the base needs at least: with fewer, none wrong proves too little.
    pub fn needed(&self) -> usize {
        let needed = (libm::log(self.delta) / libm::log1p(-self.risk)).ceil() as usize;
        // The quotient may be lifted over a whole number by its rounding.
        match needed {
            2.. if proves(0, needed - 1, self.risk, self.delta) => needed - 1,
            _ => needed,
        }
    }
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Guarantee { risk, delta, of } = self;
        let of = match of {
            Base::All => "all cases are acted upon and wrong",
            Base::Acted => "the cases acted upon are wrong",
        };
        let (risk, sure) = (100.0 * risk, 100.0 * (1.0 - delta));
        write!(f, "at most {risk} % of {of}, with a confidence of {sure} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    fn case(score: f64, is_wrong: bool) -> Case {
        Case { item: String::new(), score: Ok(score), is_wrong, groups: Vec::new() }
    }

    #[test]
    fn the_curve_counts_equal_scores_together() {
        let mut cases = vec![case(0.5, true), case(1.0, false), case(0.5, false), case(0.25, true)];
        cases.push(Case { score: Err(Because::NoAnswer), ..case(0.0, true) });
        let points = curve(&cases).into_iter().map(|at| (at.threshold, at.acted, at.wrong));
        assert_eq!(points.collect::<Vec<_>>(), [(1.0, 1, 0), (0.5, 3, 1), (0.25, 4, 2)]);
    }

    #[test]
    fn too_few_cases_prove_nothing() {
        let guarantee = Guarantee { risk: 0.05, delta: 0.1, of: Base::All };
        assert_eq!(guarantee.needed(), 45);
        for of in [Base::All, Base::Acted] {
            let guarantee = Guarantee { of, ..guarantee };
            let right = |n| vec![case(1.0, false); n];
            assert_eq!(guarantee.threshold(&right(44)), None);
            assert_eq!(guarantee.threshold(&right(45)).unwrap().acted, 45);
            // Nor does a wrong one at the top.
            assert_eq!(guarantee.threshold(&[right(44), vec![case(1.0, true)]].concat()), None);
        }
    }

    #[test]
    fn at_an_exact_boundary_what_is_needed_is_enough() {
        // 0.5³ and 0.9²; a little less needs one more.
        for (risk, delta, needed) in
            [(0.5, 0.125, 3), (0.5, 0.124, 4), (0.1, 0.81, 2), (0.1, 0.809, 3)]
        {
            for of in [Base::All, Base::Acted] {
                let guarantee = Guarantee { risk, delta, of };
                assert_eq!(guarantee.needed(), needed, "{guarantee:?}");
                let right = |n| vec![case(1.0, false); n];
                let point = guarantee.threshold(&right(needed)).unwrap();
                assert!(guarantee.bound(&point, needed) <= risk * (1.0 + 1e-9));
                assert_eq!(guarantee.threshold(&right(needed - 1)), None, "{guarantee:?}");
            }
        }
    }

    /// Sets of 100 cases whose score is one of ten tenths; of a score s a share of (1 − s) / 2 is wrong, and a tenth has no answer. The true
    /// shares are known.
    #[test]
    fn of_ten_thousand_simulated_sets_the_bound_holds_in_all_but_delta() {
        const CASES: usize = 100;
        let tenth = |k: u64| (k + 1) as f64 / 10.0;
        let mut random = SplitMix64::new(11);
        for of in [Base::All, Base::Acted] {
            let guarantee = Guarantee { risk: 0.1, delta: 0.1, of };
            let (mut broken, mut acted) = (0, 0);
            for _ in 0..10_000 {
                let draw = |_| {
                    let score = tenth(random.below(10));
                    let is_wrong = (random.below(1000) as f64) < 500.0 * (1.0 - score);
                    let lacks = random.below(10) == 0;
                    let score = if lacks { Err(Because::NoAnswer) } else { Ok(score) };
                    Case { score, ..case(0.0, is_wrong) }
                };
                let cases: Vec<Case> = (0..CASES).map(draw).collect();
                let Some(point) = guarantee.threshold(&cases) else { continue };
                acted += 1;
                let above = (0..10).map(tenth).filter(|score| *score >= point.threshold);
                let (count, wrong) = above.fold((0.0, 0.0), |(count, wrong), score| {
                    (count + 1.0, wrong + 0.5 * (1.0 - score))
                });
                let share = match of {
                    Base::All => 0.9 * wrong / 10.0,
                    Base::Acted => wrong / count,
                };
                broken += usize::from(share > guarantee.risk);
            }
            // A thousand are allowed; four standard deviations beside it.
            assert!(broken <= 1_120, "{of:?}: {broken} of {acted}");
            assert!(acted > 1_000, "{of:?}: {acted}");
        }
    }
}
