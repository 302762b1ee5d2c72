//! Cells of CSV files, as spreadsheets read them.

use std::borrow::Cow;

use crate::console;

/// A cell that no spreadsheet takes for a formula, behind a `'` where it begins as one and is no number; and that no terminal obeys, its
/// control characters written out.
pub fn cell(text: &str) -> Cow<'_, str> {
    let text = console::obeyed_by_none(text);
    let begins = text.trim_start_matches(['\n', '\u{feff}', ' ']);
    let is_formula = begins.starts_with(['=', '+', '-', '@', '\t', '＝', '＋', '－', '＠']);
    match is_formula && text.parse::<f64>().is_err() {
        true => Cow::Owned(format!("'{text}")),
        false => text,
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

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        assert_eq!(cell("x\u{1b}[2J\u{7}\u{9b}1m\u{7f}"), "x\\u001b[2J\\u0007\\u009b1m\\u007f");
        // Nor is a formula behind it one.
        for hidden in ["\u{1b}=1", "\r=1", "\u{0}@SUM(A1)"] {
            assert!(cell(hidden).starts_with("\\u00"), "{}", cell(hidden));
        }
        assert_eq!(cell("a\tb\nc"), "a\tb\nc");
    }
}
