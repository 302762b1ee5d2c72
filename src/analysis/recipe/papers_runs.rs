//! How many runs a paper's mean ± sample deviation can be of: accuracies of so many questions are whole counts, so that few pairs are possible.

use super::results::RecipeResults;
use super::tables::{dataset, method};
use crate::experiment::recipe::Recipe;
use crate::experiment::recipe::built_in::ids;

/// The runs that MED-MAD's tables promise.
const PROMISED: usize = 3;
/// Half of the last digit that is printed, and what a sum of doubles is off.
const ROUNDING: f64 = 0.5e-4 + 1e-9;

/// A sentence for each of the paper's figures that no three runs give.
pub fn notes(recipe: &Recipe, results: &RecipeResults) -> Vec<String> {
    let cells = results.cells.iter().filter_map(|cell| {
        let own = recipe.dataset.iter().find(|one| one.name == cell.dataset)?;
        let list = ids(own.ids.as_deref()?)?;
        let questions = list.lines().filter(|line| !line.starts_with('#')).count();
        let paper @ [mean, std] = cell.paper?;
        let fit = |runs: usize| fits(paper, runs, questions);
        let of = match (fit(PROMISED), fit(2), fit(4)) {
            (true, ..) => return None,
            (_, true, _) => "are of two runs, not of three",
            (_, _, true) => "are of four runs, not of three",
            _ => "are of no two, three or four runs",
        };
        let (method, dataset) = (method(recipe, &cell.method), dataset(recipe, &cell.dataset));
        Some(format!("{method} on {dataset}: the paper's {mean:.4} ± {std:.4} {of}, where each is a share of {questions} questions."))
    });
    cells.collect()
}

/// Whether so many shares of so many questions have this mean and this sample deviation, both rounded to four digits.
fn fits(paper: [f64; 2], runs: usize, questions: usize) -> bool {
    let [mean, std] = paper;
    let of = runs as f64 * questions as f64;
    let least = ((mean - ROUNDING) * of).ceil() as usize;
    let most = ((mean + ROUNDING) * of).floor() as usize;
    (least..=most).any(|sum| {
        // No count is further from the mean than this.
        let reach = ((std + ROUNDING) * questions as f64 * ((runs - 1) as f64).sqrt()).ceil();
        let lowest = (sum / runs).saturating_sub(reach as usize);
        let is_std = |squares: usize| {
            let about_mean = squares as f64 - (sum * sum) as f64 / runs as f64;
            let found = (about_mean.max(0.0) / (runs - 1) as f64).sqrt() / questions as f64;
            (found - std).abs() <= ROUNDING
        };
        any_squares(runs, sum, [lowest, questions], &is_std)
    })
}

/// Whether any counts in ascending order, at least the first of `range` and at most the second, have this sum and such a sum of squares.
fn any_squares(
    runs: usize,
    sum: usize,
    range: [usize; 2],
    is_wanted: &dyn Fn(usize) -> bool,
) -> bool {
    let [lowest, most] = range;
    match runs {
        1 => (lowest..=most).contains(&sum) && is_wanted(sum * sum),
        _ => (lowest..=sum / runs).any(|count| {
            let rest = |squares: usize| is_wanted(squares + count * count);
            any_squares(runs - 1, sum - count, [count, most], &rest)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::recipe::built_in::names;

    #[test]
    fn three_of_the_papers_figures_are_of_no_three_runs() {
        let mut found = Vec::new();
        for name in names().filter(|name| name.starts_with("table")) {
            for method in Recipe::find(name).unwrap().method {
                for paper in method.paper.values().filter(|paper| !fits(**paper, 3, 100)) {
                    let two_to_four = [2, 3, 4].map(|runs| fits(*paper, runs, 100));
                    found.push((name, *paper, two_to_four));
                }
            }
        }
        found.sort_by(|one, other| one.0.cmp(other.0));
        let expected = [
            ("table1", [0.765, 0.0071], [true, false, false]),
            ("table1-api", [0.87, 0.0094], [false; 3]),
            ("table3", [0.605, 0.0354], [true, false, false]),
        ];
        assert_eq!(found, expected);
    }
}
