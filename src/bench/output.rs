//! A report as a table for people, as JSON, or as CSV.

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use crate::text::spreadsheet;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Markdown tables, rounded
    Md,
    /// JSON, full precision
    Json,
    /// CSV, full precision; a line with # and its name before each of several tables
    Csv,
}

impl OutputFormat {
    /// Writes a report whose list `rows` has the lines of a CSV file; `markdown` is its table for people.
    ///
    /// # Errors
    /// A figure cannot be written in the format.
    pub fn write(
        self,
        report: &impl Serialize,
        rows: &str,
        markdown: impl FnOnce() -> String,
    ) -> std::io::Result<String> {
        match self {
            OutputFormat::Md => Ok(markdown()),
            OutputFormat::Json => json(report),
            OutputFormat::Csv => csv(report, rows),
        }
    }
}

/// Pretty-printed, with a newline at the end.
///
/// # Errors
/// A figure cannot be written as JSON.
pub fn json(report: &impl Serialize) -> std::io::Result<String> {
    Ok(serde_json::to_string_pretty(report)? + "\n")
}

/// A line for each entry of the list `rows`, then whatever else the report holds. Names inside names join by `_`, the
/// values of a list by a space; other lists of objects are left out. No cell is a spreadsheet's formula.
///
/// # Errors
/// A figure cannot be written as CSV.
pub fn csv(report: &impl Serialize, rows: &str) -> std::io::Result<String> {
    let mut report = serde_json::to_value(report)?;
    let rows = match report.as_object_mut().and_then(|fields| fields.shift_remove(rows)) {
        Some(Value::Array(rows)) => rows,
        _ => Vec::new(),
    };
    let mut shared = Vec::new();
    flatten("", &report, &mut shared);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let guarded = |text: &String| spreadsheet::cell(text).into_owned();
    for (index, row) in rows.iter().enumerate() {
        let mut cells = Vec::new();
        flatten("", row, &mut cells);
        cells.extend_from_slice(&shared);
        if index == 0 {
            writer.write_record(cells.iter().map(|(name, _)| guarded(name)))?;
        }
        writer.write_record(cells.iter().map(|(_, value)| guarded(value)))?;
    }
    let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn flatten(name: &str, value: &Value, cells: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let name = match name {
                    "" => field.clone(),
                    name => format!("{name}_{field}"),
                };
                flatten(&name, value, cells);
            }
        }
        Value::Array(values) if values.iter().any(Value::is_object) => {}
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(cell).collect();
            cells.push((name.to_owned(), values.join(" ")));
        }
        value => cells.push((name.to_owned(), cell(value))),
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_has_a_line_a_row_and_repeats_what_is_shared() {
        let report = serde_json::json!({
            "results": [
                {"test": "pp512", "seconds": [1.5, 2], "std": null},
                {"test": "tg, or so", "seconds": [3], "std": 0.5},
            ],
            "environment": {"build": {"profile": "release"}, "others": [{"a": 1}]},
            "seed": 7,
        });
        let text = csv(&report, "results").unwrap();
        let expected = "test,seconds,std,environment_build_profile,seed\n\
            pp512,1.5 2,,release,7\n\
            \"tg, or so\",3,0.5,release,7\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn no_cell_is_a_formula() {
        let report = serde_json::json!({"rows": [{"model": "=1+1", "change": -0.5}], "@a": "b"});
        let text = csv(&report, "rows").unwrap();
        assert_eq!(text, "model,change,'@a\n'=1+1,-0.5,b\n");
    }
}
