//! How similar the trajectories of one question are: the mean cosine of their pairs (MED-MAD, Figures 3 and 6).

use serde_json::Value;

use super::MetricsError;
use super::error::equal;
use super::over_runs::mean;
use crate::systems::exemplars::cluster::cosine;

/// What of a model's record is embedded (Appendix B.7): the steps of its reasoning, or else its support, under the names that
/// systems have for them, every run of whitespace made one space. `None` where both are blank: such a trajectory is left out.
pub fn trajectory_text(record: &Value) -> Option<String> {
    let steps = match &record["cot"] {
        Value::Array(steps) => {
            let steps: Vec<&str> = steps.iter().filter_map(Value::as_str).collect();
            steps.join(" ")
        }
        Value::String(text) => text.clone(),
        _ => String::new(),
    };
    let support = ["reasoning", "explanation", "thought"]
        .iter()
        .map(|name| &record[*name])
        .chain([&record["structured_reasoning"]["final_support"]])
        .find_map(Value::as_str);
    let collapse = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        (!words.is_empty()).then(|| words.join(" "))
    };
    collapse(&steps).or_else(|| collapse(support?))
}

/// The mean over all pairs of `vectors`, −1 to 1; `None` where fewer than two make no pair. A vector of zeros has the
/// cosine 0 with every other, as sentence-transformers has it.
///
/// # Errors
/// Vectors of different widths.
pub fn mean_pairwise_cosine(vectors: &[Vec<f32>]) -> Result<Option<f64>, MetricsError> {
    let mut cosines = Vec::new();
    for (place, left) in vectors.iter().enumerate() {
        for right in &vectors[place + 1..] {
            equal("similarity", "numbers", left.len(), right.len())?;
            cosines.push(cosine(left, right));
        }
    }
    Ok(mean(&cosines))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mean(vectors: &[&[f32]]) -> Option<f64> {
        let vectors: Vec<Vec<f32>> = vectors.iter().map(|vector| vector.to_vec()).collect();
        mean_pairwise_cosine(&vectors).unwrap()
    }

    #[test]
    fn lengths_do_not_matter_and_every_pair_counts_once() {
        assert_eq!(mean(&[&[3.0, 4.0], &[0.3, 0.4]]), Some(1.0));
        assert_eq!(mean(&[&[1.0, 0.0], &[0.0, 2.0]]), Some(0.0));
        assert_eq!(mean(&[&[1.0, 0.0], &[-2.0, 0.0]]), Some(-1.0));
        // Pairs: 1, 0, 0.
        let three = mean(&[&[1.0, 0.0], &[1.0, 0.0], &[0.0, 1.0]]).unwrap();
        assert!((three - 1.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn one_vector_has_no_pair_and_zeros_no_direction() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[&[1.0]]), None);
        assert_eq!(mean(&[&[0.0, 0.0], &[1.0, 0.0]]), Some(0.0));
    }

    #[test]
    fn vectors_of_different_models_are_refused() {
        let error = mean_pairwise_cosine(&[vec![1.0], vec![1.0, 2.0]]).unwrap_err();
        assert_eq!(error.to_string(), "similarity: 1 numbers on one side, 2 on the other");
    }

    #[test]
    fn steps_come_before_the_support_under_any_name_and_whitespace_collapses() {
        let text = |record: Value| trajectory_text(&record);
        let support = json!({"final_support": " A  fits\n"});
        let record = |cot: Value| json!({"cot": cot, "structured_reasoning": support});
        let steps = text(record(json!(["  fever,\n\tcough ", "so A"])));
        assert_eq!(steps.as_deref(), Some("fever, cough so A"));
        for blank in [json!([]), json!([" ", ""]), Value::Null] {
            assert_eq!(text(record(blank)).as_deref(), Some("A fits"));
        }
        for name in ["reasoning", "explanation", "thought"] {
            let said = text(json!({name: "because\n x", "answer": "A"}));
            assert_eq!(said.as_deref(), Some("because x"));
        }
        assert_eq!(text(json!({"cot": [], "reasoning": "\n "})), None);
        assert_eq!(text(json!({"answer": "A"})), None);
        assert_eq!(text(Value::Null), None);
    }
}
