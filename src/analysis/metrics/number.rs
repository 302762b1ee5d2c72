//! A figure as text: what rounds to zero has no minus before it.

/// With as many digits behind the point.
pub fn plain(value: f64, digits: usize) -> String {
    without_minus(format!("{value:.digits$}"))
}

/// A difference, with its sign.
pub fn signed(value: f64, digits: usize) -> String {
    let text = without_minus(format!("{value:.digits$}"));
    if text.starts_with(['-', 'N']) { text } else { format!("+{text}") }
}

fn without_minus(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| matches!(c, '0' | '.')) => rest.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rounds_to_zero_has_no_minus() {
        assert_eq!(signed(-1e-17, 4), "+0.0000");
        assert_eq!(signed(-0.0, 1), "+0.0");
        assert_eq!(signed(-0.00005001, 4), "-0.0001");
        assert_eq!(signed(0.02, 4), "+0.0200");
        assert_eq!(plain(-0.00001, 4), "0.0000");
        assert_eq!(plain(-0.4, 0), "0");
        assert_eq!(plain(-0.25, 4), "-0.2500");
    }
}
