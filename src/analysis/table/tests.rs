//! A table as Markdown, CSV and JSON.

use super::*;
use crate::analysis::metrics::over_runs::{Estimate, Spread};

pub(crate) fn table() -> Table {
    let spread =
        |mean, best| Some(Cell::Spread(Spread { mean, std: Some(0.125), n: Some(3) }, best));
    let less = Some(Cell::Estimate(Estimate::of(0.1, Some([-0.2, 0.4]))));
    let rows = [
        ("Single", "a, \"b\" | c", spread(1.0 / 3.0, true), None),
        ("Single", "<script>", spread(0.25, false), less),
        ("Panel", "d", None, None),
    ];
    Table::of("accuracy", "Accuracy <all>", &rows)
        .grouped_by(|row| row.0.to_owned())
        .text("method", |row| row.1)
        .under("MedQA")
        .spread("ours", |row| row.2.clone())
        .interval("less paper", |row| row.3.clone())
        .note("A note & more.")
        .build()
}

#[test]
fn markdown_rounds_marks_the_best_and_keeps_its_columns() {
    let text = table().markdown();
    assert!(text.contains("| method | MedQA: ours | MedQA: less paper |\n| --- | ---: | ---: |"));
    assert!(
        text.contains("| *Single* |  |  |\n| a, \"b\" \\| c | **0.3333 ± 0.1250 (3 runs)** | – |")
    );
    assert!(text.contains("| +0.1000 [-0.2000, +0.4000] |\n| *Panel* |"));
    assert!(text.ends_with("\nA note & more.\n"));
}

#[test]
fn csv_has_a_field_for_every_number_and_every_digit() {
    let text = table().csv().unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let heads: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    assert_eq!(heads[..2], ["group", "method"]);
    assert_eq!(heads[2..5], ["mean", "std", "n"].map(|figure| format!("medqa_ours_{figure}")));
    let less = ["mean", "low", "high"].map(|figure| format!("medqa_less_paper_{figure}"));
    assert_eq!(heads[5..], less);
    let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(&records[0][1], "a, \"b\" | c");
    assert_eq!(records[0][2].parse::<f64>().unwrap(), 1.0 / 3.0);
    assert_eq!((&records[0][3], &records[0][4], &records[0][5]), ("0.125", "3", ""));
    assert_eq!(&records[1][7], "0.4");
    assert_eq!(records.len(), 3);
}

#[test]
fn csv_has_headings_that_scripts_write_easily_and_a_figure_a_field() {
    let interval = || Cell::Figures("[0.1, …]".to_owned(), vec![json!(0.1), Value::Null]);
    let table = Table::of("flips", "Flips", ["a"])
        .text("", |row| row)
        .spread("ours − paper", |_| "no gold")
        .number("right → wrong", |_| 1_usize)
        .number("read %", |_| 0.5)
        .under("MedQA")
        .figures("95 %", ["low", "high"], |_| interval())
        .number("items × runs: P(wrong at 0), Cohen's", |_| 2_usize)
        .build();
    let heads = "row,ours_less_paper_mean,ours_less_paper_std,ours_less_paper_n,right_to_wrong,read_percent,medqa_low,medqa_high,medqa_items_runs_p_wrong_at_0_cohens";
    assert_eq!(table.csv().unwrap(), format!("{heads}\na,,,,1,0.5,0.1,,2\n"));
    assert!(table.markdown().contains("| 0.5000 | [0.1, …] | 2 |"));
    assert_eq!(table.json()["rows"][0]["MedQA: 95 %"], "[0.1, …]");
}

#[test]
fn json_keeps_numbers_as_numbers() {
    let json = table().json();
    assert_eq!(json["rows"][0]["MedQA: ours"]["mean"], 1.0 / 3.0);
    assert_eq!(json["rows"][0]["MedQA: less paper"], Value::Null);
    assert_eq!(json["rows"][2]["group"], "Panel");
}
