//! Which single-LLM system all comparisons share: the best on average over the datasets (MED-MAD, Appendix A.4).

use std::collections::{BTreeMap, BTreeSet};

use super::MetricsError;

/// Means nearer than this are equal: sums of the same accuracies in another order differ in their last bits.
const TIE: f64 = 1e-9;

/// The candidate of the greatest mean over all datasets, with that mean; of equal ones the first by name. `accuracies` are
/// by candidate and dataset. `None` where no candidate has a dataset.
///
/// # Errors
/// Two candidates have not the same datasets.
pub fn unified_baseline(
    accuracies: &BTreeMap<String, BTreeMap<String, f64>>,
) -> Result<Option<(&str, f64)>, MetricsError> {
    let candidates = accuracies.iter();
    let mut candidates = candidates.filter(|(_, datasets)| !datasets.is_empty());
    let Some((first, datasets)) = candidates.next() else { return Ok(None) };
    let mut best = (first.as_str(), mean(datasets));
    for (name, others) in candidates {
        refuse_other_datasets((first, datasets), (name, others))?;
        let mean = mean(others);
        if mean > best.1 + TIE {
            best = (name, mean);
        }
    }
    Ok(Some(best))
}

fn mean(accuracies: &BTreeMap<String, f64>) -> f64 {
    accuracies.values().sum::<f64>() / accuracies.len() as f64
}

type System<'a> = (&'a str, &'a BTreeMap<String, f64>);

fn refuse_other_datasets(left: System, right: System) -> Result<(), MetricsError> {
    let names = |system: System<'_>| system.1.keys().cloned().collect::<BTreeSet<_>>();
    match names(left).symmetric_difference(&names(right)).next() {
        None => Ok(()),
        Some(dataset) => Err(MetricsError::Datasets {
            system: left.0.to_owned(),
            other: right.0.to_owned(),
            dataset: dataset.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(&str, &[f64])]) -> BTreeMap<String, BTreeMap<String, f64>> {
        let datasets = ["medqa", "mmlu_pro", "pubmedqa"];
        let row = |accuracies: &[f64]| {
            let named = datasets.iter().map(|name| (*name).to_owned());
            named.zip(accuracies.iter().copied()).collect()
        };
        rows.iter().map(|(name, accuracies)| ((*name).to_owned(), row(accuracies))).collect()
    }

    /// Right answers of 300 in MED-MAD's Table 1, open-source models: 454 of 900 for both, and A.4 names CoT.
    #[test]
    fn the_papers_own_tie_goes_to_the_first_name() {
        let rows: [(&str, &[f64]); 3] = [
            ("SingleLLM_cot_sc", &[117.0 / 300.0, 130.0 / 300.0, 207.0 / 300.0]),
            ("SingleLLM_cot", &[125.0 / 300.0, 120.0 / 300.0, 209.0 / 300.0]),
            ("SingleLLM_self_consistency", &[101.0 / 300.0, 112.0 / 300.0, 184.0 / 300.0]),
        ];
        let table = table(&rows);
        let (name, mean) = unified_baseline(&table).unwrap().unwrap();
        assert_eq!(name, "SingleLLM_cot");
        assert!((mean - 454.0 / 900.0).abs() < 1e-12);
    }

    #[test]
    fn the_greatest_mean_wins_wherever_its_name_stands() {
        let better =
            table(&[("SingleLLM_a", &[0.5, 0.5, 0.5]), ("SingleLLM_b", &[0.9, 0.2, 0.41])]);
        assert_eq!(unified_baseline(&better).unwrap().unwrap().0, "SingleLLM_b");
        let worse = table(&[("SingleLLM_a", &[0.5, 0.5, 0.5]), ("SingleLLM_b", &[0.9, 0.2, 0.39])]);
        assert_eq!(unified_baseline(&worse).unwrap().unwrap().0, "SingleLLM_a");
    }

    #[test]
    fn without_candidates_there_is_none() {
        assert_eq!(unified_baseline(&BTreeMap::new()), Ok(None));
        assert_eq!(unified_baseline(&table(&[("SingleLLM_cot", &[])])), Ok(None));
    }

    #[test]
    fn means_over_different_datasets_are_not_compared() {
        let table = table(&[("SingleLLM_a", &[0.5, 0.5]), ("SingleLLM_b", &[0.5, 0.5, 0.9])]);
        let error = unified_baseline(&table).unwrap_err();
        assert_eq!(
            error.to_string(),
            "SingleLLM_a and SingleLLM_b have not run on the same datasets: one of them lacks pubmedqa"
        );
    }
}
