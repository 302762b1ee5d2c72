//! What one method on notes gains over another (MedGuards, Tables 2, 3 and 11): Δ%, and two P-values, for the paper does not name its test.

use serde::{Deserialize, Serialize};

use crate::analysis::metrics::bootstrap::{self, Estimate, PValues};
use crate::analysis::metrics::paired_t::{PairedT, paired_t};
use crate::analysis::notes::{ColumnValues, CorrectionScorer, columns};
use crate::analysis::outcomes::Outcomes;
use crate::diagnosis::Failure;
use crate::experiment::contents::Contents;
use crate::experiment::recipe::cells::Cell;
use crate::experiment::recipe::{NoteColumn, Recipe, RecipeError};

/// A method compared with its baseline, over the columns that both have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImprovementRow {
    pub dataset: String,
    pub method: String,
    pub baseline: String,
    /// The paper's own columns, those without weights of metrics left out: KPCS is one in Table 2 alone.
    pub columns: Vec<NoteColumn>,
    /// Corrections over the pairs; `null` where a run of either has no pair.
    pub pairs: Option<Gain>,
    /// Corrections over all notes: 1 where neither side corrects, 0 where one does.
    pub composites: Gain,
    /// Of the notes: a note's value is the mean of its columns' composites. Near-duplicates are drawn together.
    pub difference: Estimate,
    /// Of the same bootstrap.
    pub bootstrap: PValues,
}

/// What is gained over the columns' means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// The mean over the columns, of the method and of the baseline.
    pub average: [f64; 2],
    /// The sum of the columns over the baseline's, less 1, in percent; `null` where the baseline's is 0.
    pub delta_percent: Option<f64>,
    /// Over the differences of the columns; `null` where they are too few, or equal.
    pub paired_t: Option<PairedT>,
}

impl Gain {
    /// From each column's mean, of the method and of the baseline.
    pub(super) fn of(own: &[f64], base: &[f64]) -> Gain {
        let count = own.len() as f64;
        let (own_sum, base_sum) = (own.iter().sum::<f64>(), base.iter().sum::<f64>());
        let by_column: Vec<f64> = own.iter().zip(base).map(|(own, base)| own - base).collect();
        Gain {
            average: [own_sum / count, base_sum / count],
            delta_percent: (base_sum > 0.0).then(|| 100.0 * (own_sum / base_sum - 1.0)),
            paired_t: paired_t(&by_column),
        }
    }
}

/// The columns that the paper's own rows have on a dataset; all but KPCS where it has none there.
fn papers_columns(recipe: &Recipe, dataset: &str) -> Vec<NoteColumn> {
    let rows = || recipe.published.iter().filter_map(|row| row.figures.get(dataset));
    let columns = NoteColumn::ALL.into_iter();
    let is_papers = |column: &NoteColumn| match rows().next() {
        Some(_) => rows().any(|row| row.contains_key(column)),
        None => !matches!(column, NoteColumn::Kpcs | NoteColumn::Aggregate),
    };
    columns.filter(is_papers).collect()
}

/// For every method that names another.
///
/// # Errors
/// Runs over different notes.
pub fn improvements(
    recipe: &Recipe,
    cells: &[(Cell<'_>, Contents)],
    scorer: &CorrectionScorer,
) -> Result<Vec<ImprovementRow>, Failure> {
    let mut rows = Vec::new();
    for (cell, contents) in cells {
        let Some(against) = &cell.method.against else { continue };
        let other = cells.iter().find(|(other, _)| {
            other.method.name == *against && other.dataset.name == cell.dataset.name
        });
        let Some((_, other)) = other else { continue };
        let both = [contents, other].map(Outcomes::of);
        if both[0].items() != both[1].items() {
            let problem = format!("its notes are not those of {}", other.path.display());
            return Err(RecipeError::malformed(contents.path.display(), problem).into());
        }
        let wanted = papers_columns(recipe, &cell.dataset.name);
        let units = both[0].units();
        let [own, base] = both.map(|outcomes| columns(&outcomes, scorer));
        let pairs: Vec<(&ColumnValues, &ColumnValues)> = own
            .iter()
            .filter(|column| wanted.contains(&column.name))
            .filter_map(|column| Some((column, base.iter().find(|one| one.name == column.name)?)))
            .collect();
        let Some((first, _)) = pairs.first() else { continue };
        let mut by_note = vec![0.0; first.by_note().len()];
        for (own, base) in &pairs {
            let both = own.by_note().into_iter().zip(base.by_note());
            for (sum, (own, base)) in by_note.iter_mut().zip(both) {
                *sum += (own - base) / pairs.len() as f64;
            }
        }
        let composites: (Vec<f64>, Vec<f64>) =
            pairs.iter().map(|(own, base)| (own.composite(), base.composite())).unzip();
        let over_pairs: Option<Vec<(f64, f64)>> =
            pairs.iter().map(|(own, base)| own.over_pairs.zip(base.over_pairs)).collect();
        let over_pairs = over_pairs.map(|means| means.into_iter().unzip::<_, _, Vec<_>, Vec<_>>());
        rows.push(ImprovementRow {
            dataset: cell.dataset.name.clone(),
            method: cell.method.name.clone(),
            baseline: against.clone(),
            columns: pairs.iter().map(|(own, _)| own.name).collect(),
            pairs: over_pairs.map(|(own, base)| Gain::of(&own, &base)),
            composites: Gain::of(&composites.0, &composites.1),
            difference: bootstrap::mean(&by_note, Some(&units))?,
            bootstrap: bootstrap::p_values(&by_note, Some(&units))?,
        });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gain_is_over_the_papers_own_columns() {
        let columns =
            |recipe: &str, dataset: &str| papers_columns(&Recipe::find(recipe).unwrap(), dataset);
        let mut six = NoteColumn::ALL.to_vec();
        six.retain(|column| *column != NoteColumn::Aggregate);
        assert_eq!(columns("medguards-table2", "medec"), six);
        assert_eq!(columns("medguards-table3", "arabic"), six[..5]);
        assert_eq!(columns("medguards-table11", "medec"), six[..5]);
        // The paper has no rows there.
        assert_eq!(columns("medguards-table12", "medec"), six[..5]);
    }

    /// Table 2 of the paper, Gemini 2.0 Flash alone and guarded: +35.6 % as printed there is over its six columns.
    #[test]
    fn the_gain_is_of_the_sums() {
        let base = [0.589, 0.415, 0.379, 0.380, 0.395, 0.370];
        let with = [0.713, 0.609, 0.537, 0.549, 0.549, 0.472];
        let gain = Gain::of(&with, &base);
        let delta = 100.0 * (3.429 / 2.528 - 1.0);
        assert!((gain.delta_percent.unwrap() - delta).abs() < 1e-9, "{gain:?}");
        assert!((gain.average[0] - 3.429 / 6.0).abs() < 1e-12);
        assert_eq!(Gain::of(&[0.5, 0.5], &[0.0, 0.0]).delta_percent, None);
    }
}
