//! The Keyword-Prioritized Correction Score of MedGuards (§3.4): whether the words that matter are in a correction, and how
//! alike it is to the reference.
//!
//! `similarity` is the paper's M, Eq. 8: the mean of ROUGE-1, BERTScore and BLEURT. `alpha` (0 to 1) is the keywords' weight.
//! Keywords are found as they are written, inside of words too.

/// The weight of the keywords in all of the paper's experiments (§A.8).
pub const ALPHA: f64 = 0.5;
/// Those of Table 12.
pub const ALPHAS: [f64; 3] = [0.2, ALPHA, 0.8];

/// Eq. 9: αK + (1-α)M, K the share of the keywords that the correction has; 0 where it has none of them. `None` where the
/// reference has no keywords: nothing can then be asked for.
pub fn kpcs<S: AsRef<str>>(
    keywords: &[S],
    correction: &str,
    similarity: f64,
    alpha: f64,
) -> Option<f64> {
    let found = keywords.iter().filter(|keyword| correction.contains(keyword.as_ref()));
    match (found.count(), keywords.len()) {
        (_, 0) => None,
        (0, _) => Some(0.0),
        (found, wanted) => Some(alpha * found as f64 / wanted as f64 + (1.0 - alpha) * similarity),
    }
}

/// As the authors' code has it: K(α + (1-α)M), K being 1 where the correction has `keywords`, one string, whole, else 0.
/// Where the string is empty every correction has it.
pub fn kpcs_gated(keywords: &str, correction: &str, similarity: f64, alpha: f64) -> f64 {
    if correction.contains(keywords) { alpha + (1.0 - alpha) * similarity } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORRECTION: &str = "He was given oral vancomycin for C. difficile colitis.";

    #[test]
    fn the_share_of_keywords_is_weighed_with_the_similarity() {
        let keywords = ["oral", "vancomycin", "fidaxomicin", "C. difficile"];
        assert_eq!(kpcs(&keywords, CORRECTION, 0.5, 0.5), Some(0.625));
        assert_eq!(kpcs(&keywords, CORRECTION, 0.5, 0.0), Some(0.5));
        assert_eq!(kpcs(&keywords, CORRECTION, 0.5, 1.0), Some(0.75));
        let whole = kpcs(&keywords[..2], CORRECTION, 1.0, 0.2);
        assert_eq!(whole, Some(1.0));
    }

    #[test]
    fn a_correction_without_any_keyword_scores_zero() {
        assert_eq!(kpcs(&["Vancomycin"], CORRECTION, 0.9, 0.2), Some(0.0));
        assert_eq!(kpcs(&["oral"], "", 0.9, 0.2), Some(0.0));
    }

    #[test]
    fn a_reference_without_keywords_has_no_score() {
        assert_eq!(kpcs::<&str>(&[], CORRECTION, 0.9, ALPHA), None);
    }

    #[test]
    fn the_gate_wants_the_whole_string() {
        let gated = |keywords| kpcs_gated(keywords, CORRECTION, 0.5, 0.2);
        assert_eq!(gated("oral vancomycin"), 0.2 + 0.8 * 0.5);
        assert_eq!(gated("vancomycin oral"), 0.0);
        assert_eq!(gated(""), gated("colitis"));
    }

    #[test]
    fn the_two_agree_where_every_keyword_is_found_and_alpha_is_one() {
        let keywords = ["oral vancomycin"];
        let one = kpcs(&keywords, CORRECTION, 0.3, 1.0);
        assert_eq!(one, Some(kpcs_gated(keywords[0], CORRECTION, 0.3, 1.0)));
    }
}
