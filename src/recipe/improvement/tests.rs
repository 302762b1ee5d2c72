//! What the paper prints of its gains, beside what its own columns give.

use serde_json::Value;

use super::*;
use crate::analysis::metrics::bootstrap::Estimate;
use crate::recipe::fixtures::{cells, results};

/// With one row of ours, without which there is no table.
fn table_of(name: &str) -> Table {
    let recipe = Recipe::find(name).unwrap();
    let ours = ImprovementRow {
        dataset: recipe.dataset[0].name.clone(),
        method: "a-medguards".to_owned(),
        baseline: "a-base".to_owned(),
        columns: vec![Measure::Detection, Measure::Localisation],
        pairs: Some(Gain::of(&[[0.6, 0.5], [0.3, 0.25]])),
        composites: Gain::of(&[[0.6, 0.5], [0.3, 0.25]]),
        difference: Estimate {
            mean: 0.075,
            low: Some(0.0),
            high: Some(0.1),
            n_questions: 4,
            n_units: 4,
            exact: false,
        },
        p_value: Some(0.2),
    };
    let mut results = results(name, &recipe, cells(&recipe));
    results.improvements.push(ours);
    table(&recipe, &results).unwrap()
}

/// The paper's row of a label, under a dataset's.
fn row(table: &Table, dataset: &str, label: &str) -> Value {
    let rows = table.json()["rows"].as_array().unwrap().clone();
    let start = format!("paper: {label} against ");
    let is_it = |row: &Value| {
        row["group"] == dataset && row["method"].as_str().unwrap().starts_with(&start)
    };
    rows.into_iter().find(is_it).unwrap_or_else(|| panic!("no row {label} on {dataset}"))
}

/// What is printed and what the columns' sums give, in percent with one digit.
fn percentages(table: &Table, dataset: &str, label: &str) -> [String; 2] {
    let row = row(table, dataset, label);
    ["as the paper prints it: Δ%", "pairs: Δ%"].map(|name| row[name].as_str().unwrap().to_owned())
}

fn contradictions(table: &Table) -> Vec<&String> {
    table.notes.iter().filter(|note| note.contains("its own columns give")).collect()
}

#[test]
fn table_two_has_the_printed_percentages_and_p_values_and_one_contradiction() {
    let table = table_of("medguards-table2");
    // The sums of the six columns: 3.429 over 2.528, 3.417 over 2.054, 4.190 over 3.071, 4.018 over 2.869, 3.051 over 1.990, 3.341 over 2.504.
    let expected = [
        ("Gemini 2.0 Flash", ["+35.6 %", "+35.6 %"], "4.03e-4", 3.429 / 6.0),
        ("GPT-4o-mini", ["+66.2 %", "+66.4 %"], "8.31e-5", 3.417 / 6.0),
        ("Doubao-1.5-thinking-pro", ["+36.4 %", "+36.4 %"], "1.33e-2", 4.190 / 6.0),
        ("Deepseek-V3", ["+40.0 %", "+40.0 %"], "3.15e-4", 4.018 / 6.0),
        ("Gemini 2.5 Flash Lite", ["+53.3 %", "+53.3 %"], "5.69e-3", 3.051 / 6.0),
        ("Llama-3.3-70B-Instruct", ["+33.1 %", "+33.4 %"], "4.23e-3", 3.341 / 6.0),
    ];
    for (model, expected, p, average) in expected {
        let label = format!("{model} + MedGuards");
        assert_eq!(percentages(&table, "MEDEC", &label), expected, "{model}");
        let row = row(&table, "MEDEC", &label);
        assert_eq!(row["as the paper prints it: P"], p, "{model}");
        assert!(row["as the paper prints it: average"].is_null(), "Table 2 prints none");
        assert!((row["pairs: average"].as_f64().unwrap() - average).abs() < 1e-12, "{row}");
    }
    assert_eq!(
        contradictions(&table),
        [
            "paper: Llama-3.3-70B-Instruct + MedGuards on MEDEC: +33.1 % is printed; its own columns give +33.4 %."
        ]
    );
    // Ours has nothing that is printed, and its own sums: 0.9 over 0.75.
    let ours = &table.json()["rows"][0];
    assert_eq!(ours["pairs: Δ%"], "+20.0 %");
    assert!(ours["as the paper prints it: Δ%"].is_null());
}

#[test]
fn table_three_has_the_printed_percentage_of_each_language() {
    let table = table_of("medguards-table3");
    // The sums of the five columns of English: 3.035 over 1.545; of Arabic: 2.504 over 1.773; of Chinese: 3.206 over 2.965; and so on.
    let expected = [
        ("Gemini 2.0 Flash", "English", ["+96.1 %", "+96.4 %"]),
        ("Gemini 2.0 Flash", "Arabic", ["+41.2 %", "+41.2 %"]),
        ("Gemini 2.0 Flash", "Chinese", ["+8.2 %", "+8.1 %"]),
        ("GPT-4o-mini", "English", ["+4.4 %", "+4.3 %"]),
        ("GPT-4o-mini", "Arabic", ["+28.9 %", "+29.0 %"]),
        ("GPT-4o-mini", "Chinese", ["+65.2 %", "+65.1 %"]),
        ("Deepseek-v3", "English", ["+33.7 %", "+33.8 %"]),
        ("Deepseek-v3", "Arabic", ["+14.8 %", "+14.9 %"]),
        ("Deepseek-v3", "Chinese", ["+21.4 %", "+21.5 %"]),
        ("Gemini 2.5 Flash Lite", "English", ["+43.5 %", "+43.6 %"]),
        ("Gemini 2.5 Flash Lite", "Arabic", ["+34.8 %", "+34.7 %"]),
        ("Gemini 2.5 Flash Lite", "Chinese", ["+17.0 %", "+17.0 %"]),
    ];
    for (model, language, expected) in expected {
        let label = format!("{model} + MedGuards");
        assert_eq!(percentages(&table, language, &label), expected, "{model}, {language}");
        assert!(row(&table, language, &label)["as the paper prints it: P"].is_null());
    }
    assert_eq!(
        contradictions(&table),
        [
            "paper: Gemini 2.0 Flash + MedGuards on English: +96.1 % is printed; its own columns give +96.4 %."
        ]
    );
}

#[test]
fn table_eleven_has_the_printed_averages_which_are_those_of_its_columns() {
    let table = table_of("medguards-table11");
    let rows = table.json()["rows"].as_array().unwrap().clone();
    let alone = rows.iter().find(|row| row["method"] == "paper: One agent for all tasks (1)");
    let alone = alone.expect("the row of one agent, whose average is printed, too");
    assert_eq!(alone["as the paper prints it: average"], "0.432");
    assert!((alone["pairs: average"].as_f64().unwrap() - 2.158 / 5.0).abs() < 1e-12);
    assert!(alone["pairs: its baseline's"].is_null() && alone["pairs: Δ%"].is_null());
    let printed = rows.iter().filter(|row| !row["as the paper prints it: average"].is_null());
    assert_eq!(printed.count(), 6);
    // Over one agent's 2.158.
    let expected = [
        ("One detects and locates, one corrects (2)", "0.508", 2.539, ["+17.6 %", "+17.7 %"]),
        ("1 detects, 1 locates, 1 corrects (3)", "0.454", 2.268, ["+5.1 %", "+5.1 %"]),
        ("3 detect, one locates and corrects (4)", "0.557", 2.785, ["+28.9 %", "+29.1 %"]),
        ("3 detect, 3 locate, 1 corrects (7)", "0.591", 2.957, ["+36.8 %", "+37.0 %"]),
        ("3 detect, 3 locate, 2 correct (8)", "0.486", 2.430, ["+12.5 %", "+12.6 %"]),
    ];
    for (label, printed, sum, expected) in expected {
        assert_eq!(percentages(&table, "MEDEC", label), expected, "{label}");
        let row = row(&table, "MEDEC", label);
        assert_eq!(row["as the paper prints it: average"], printed, "{label}");
        let average = row["pairs: average"].as_f64().unwrap();
        assert!((average - sum / 5.0).abs() < 1e-12, "{row}");
        assert_eq!(format!("{average:.3}"), printed);
        assert!((row["pairs: its baseline's"].as_f64().unwrap() - 2.158 / 5.0).abs() < 1e-12);
    }
    assert_eq!(contradictions(&table), [""; 0]);
}
