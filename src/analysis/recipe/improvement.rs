//! What one method on notes gains over another (MedGuards, Tables 2, 3 and 11): Δ%, and two P-values, for the paper does not name its test.

use serde::{Deserialize, Serialize};

use crate::analysis::metrics::bootstrap::{self, Estimate};
use crate::analysis::metrics::paired_t::{PairedT, paired_t};
use crate::analysis::notes::{ColumnValues, CorrectionScorer, columns};
use crate::analysis::outcomes::Outcomes;
use crate::diagnosis::Failure;
use crate::experiment::contents::Contents;
use crate::experiment::recipe::cells::Cell;
use crate::experiment::recipe::{NoteColumn, RecipeError};

/// A method beside the one that it is set against, over the columns that both have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImprovementRow {
    pub dataset: String,
    pub method: String,
    pub baseline: String,
    /// Columns compared: fewer than the paper's six where weights of metrics are missing.
    pub columns: Vec<NoteColumn>,
    /// The mean over the columns, of the method and of the baseline.
    pub average: [f64; 2],
    /// The sum of the columns over the baseline's, less 1, in percent; `null` where the baseline's is 0.
    pub delta_percent: Option<f64>,
    /// Over the differences of the columns; `null` where they are too few, or equal.
    pub paired_t: Option<PairedT>,
    /// Of the notes: a note's value is the mean of its columns.
    pub difference: Estimate,
    /// Two-sided, of the same bootstrap.
    pub bootstrap_p: f64,
}

/// For every method that names another.
///
/// # Errors
/// Runs over different notes.
pub fn improvements(
    cells: &[(Cell<'_>, Contents)],
    scorer: &CorrectionScorer,
) -> Result<Vec<ImprovementRow>, Failure> {
    let mut rows = Vec::new();
    for (cell, contents) in cells {
        let Some(against) = &cell.method.against else {
            continue;
        };
        let other = cells.iter().find(|(other, _)| {
            other.method.name == *against && other.dataset.name == cell.dataset.name
        });
        let Some((_, other)) = other else {
            continue;
        };
        let both = [contents, other].map(Outcomes::of);
        if both[0].items() != both[1].items() {
            return Err(RecipeError::Malformed {
                path: contents.path.display().to_string(),
                problem: format!("its notes are not those of {}", other.path.display()),
            }
            .into());
        }
        let [own, base] = both.map(|outcomes| columns(&outcomes, scorer));
        rows.extend(row(cell, against, &own, &base)?);
    }
    Ok(rows)
}

fn row(
    cell: &Cell<'_>,
    against: &str,
    own: &[ColumnValues],
    base: &[ColumnValues],
) -> Result<Option<ImprovementRow>, Failure> {
    let pairs: Vec<(&ColumnValues, &ColumnValues)> = own
        .iter()
        .filter_map(|column| Some((column, base.iter().find(|one| one.name == column.name)?)))
        .collect();
    if pairs.is_empty() {
        return Ok(None);
    }
    let means = |column: &ColumnValues| {
        let values = column.by_note();
        values.iter().sum::<f64>() / values.len() as f64
    };
    let own_means: Vec<f64> = pairs.iter().map(|(own, _)| means(own)).collect();
    let base_means: Vec<f64> = pairs.iter().map(|(_, base)| means(base)).collect();
    let (own_sum, base_sum) = (own_means.iter().sum::<f64>(), base_means.iter().sum::<f64>());
    let by_column: Vec<f64> =
        own_means.iter().zip(&base_means).map(|(own, base)| own - base).collect();
    let count = pairs.len() as f64;
    let mut by_note = vec![0.0; pairs[0].0.by_note().len()];
    for (own, base) in &pairs {
        for (sum, (own, base)) in by_note.iter_mut().zip(own.by_note().iter().zip(base.by_note())) {
            *sum += (own - base) / count;
        }
    }
    Ok(Some(ImprovementRow {
        dataset: cell.dataset.name.clone(),
        method: cell.method.name.clone(),
        baseline: against.to_owned(),
        columns: pairs.iter().map(|(own, _)| own.name).collect(),
        average: [own_sum / count, base_sum / count],
        delta_percent: (base_sum > 0.0).then(|| 100.0 * (own_sum / base_sum - 1.0)),
        paired_t: paired_t(&by_column),
        difference: bootstrap::mean(&by_note, None)?,
        bootstrap_p: bootstrap::p_value(&by_note, None)?,
    }))
}
