//! Cells of CSV files, as spreadsheets read them.

use std::borrow::Cow;

/// A cell that no spreadsheet takes for a formula: behind a `'` where it begins as one and is no number.
pub fn cell(text: &str) -> Cow<'_, str> {
    let begins = text.trim_start_matches(['\n', '\u{feff}', ' ']);
    let is_formula = begins.starts_with(['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠']);
    match is_formula && text.parse::<f64>().is_err() {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_as_a_formula_and_is_no_number_is_text() {
        for formula in ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", " =1", "-", "－1"]
        {
            assert_eq!(cell(formula), format!("'{formula}"));
        }
        for plain in ["", "ward", "-1", "-0.5", "+3", "1=1", "2026-01-01", "a\n=1"] {
            assert_eq!(cell(plain), plain);
        }
    }
}
