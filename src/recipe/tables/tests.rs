//! The paper's figures beside ours, table by table of recipes in the binary.

use serde_json::{Value, json};

use super::*;
use crate::analysis::notes::{Consensus, NoteFigures, Settled};
use crate::analysis::outcomes::Outcomes;
use crate::experiment::contents::Contents;
use crate::recipe::analysis::{CellOutcomes, net_gains};
use crate::recipe::fixtures::{cells, results, rows, run_with};
use crate::recipe::paired;
use crate::record::{NoteStage, SettledBy};

/// The tables and what stands once beside them.
fn markdown(recipe: &Recipe, results: &RecipeResults) -> String {
    let tables = all(recipe, results).into_iter().map(|table| table.markdown());
    tables.chain(remarks(results)).collect::<Vec<_>>().join("\n")
}

/// The row of a method, under a heading that begins so.
fn row<'a>(rows: &'a [Value], group: &str, method: &str) -> &'a Value {
    let found = rows.iter().find(|row| {
        row["group"].as_str().unwrap_or_default().starts_with(group) && row["method"] == method
    });
    found.unwrap_or_else(|| panic!("no row {method} under {group}: {rows:?}"))
}

fn is_near(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap_or_else(|| panic!("{found}: no number"));
    assert!((found - expected).abs() < 1e-12, "{found} against {expected}");
}

/// Two runs of three questions. In the first, of two that were wrong one turns right, and what was right stays so; in the second both that
/// were wrong turn right, and the one that was right turns wrong.
fn debated() -> Contents {
    run_with(|answer| {
        answer.gold = Some("B".to_owned());
        let is_right = match (answer.run, answer.item.as_str()) {
            (1, "q1") => [false, true],
            (1, "q2") => [false, false],
            (1, _) => [true, true],
            (_, "q3") => [true, false],
            _ => [false, true],
        };
        let letter = |is_right: bool| if is_right { "B" } else { "A" }.to_owned();
        answer.rounds[0].aggregate = letter(is_right[0]);
        answer.answer = letter(is_right[1]);
        answer.correct = Some(is_right[1]);
    })
}

#[test]
fn net_gain_is_shown_in_both_readings_and_the_papers_beside_the_conditional_one() {
    let contents = debated();
    for name in ["table1", "table2"] {
        let recipe = Recipe::find(name).unwrap();
        let outcomes = recipe
            .cells()
            .map(|cell| CellOutcomes { cell, outcomes: Outcomes::of(&contents) })
            .collect::<Vec<_>>();
        let netgain = net_gains(&recipe, &outcomes);
        let results = RecipeResults { netgain, ..results(name, &recipe, cells(&recipe)) };
        let rows = rows(&all(&recipe, &results), "netgain");
        let papers = [
            ("MedAgents", [0.094, -0.009, 0.198]),
            ("MDAgents", [-0.001, -0.051, 0.046]),
            ("ReConcile", [0.056, -0.082, 0.197]),
            ("MED-MAD", [0.111, 0.008, 0.217]),
        ];
        for (method, [mean, low, high]) in papers {
            let row = row(&rows, "MMLU-Pro", method);
            // 1/2 and 2/2 of what was wrong; 0/1 and 1/1 of what was right.
            is_near(&row["of those that could turn: P(right at the end, wrong at 0)"], 0.75);
            is_near(&row["of those that could turn: P(wrong at the end, right at 0)"], 0.5);
            is_near(&row["of those that could turn: ours"]["mean"], 0.25);
            // 1/3 and 2/3 of all turned right; 0/3 and 1/3 turned wrong.
            is_near(&row["of all questions: wrong → right"], 0.5);
            is_near(&row["of all questions: right → wrong"], 1.0 / 6.0);
            is_near(&row["of all questions: ours"]["mean"], 1.0 / 3.0);
            let paper = json!({"mean": mean, "low": low, "high": high});
            assert_eq!(row["of those that could turn: paper"], paper, "{name}: {method}");
            assert_eq!(row.get("of all questions: paper"), None);
        }
    }
}

/// The rows of differences where the first method is right on q1 and q2, and the others on q1 alone.
fn differences(name: &str) -> (Vec<Value>, String) {
    let recipe = Recipe::find(name).unwrap();
    let (first, others) = (run_with(all_right), run_with(|_| ()));
    let outcomes = recipe
        .cells()
        .map(|cell| {
            let is_first = cell.method.name == recipe.method[0].name;
            let contents = if is_first { &first } else { &others };
            CellOutcomes { cell, outcomes: Outcomes::of(contents) }
        })
        .collect::<Vec<_>>();
    let paired = paired::paired(&recipe, &outcomes);
    let results = RecipeResults { paired, ..results(name, &recipe, cells(&recipe)) };
    (rows(&all(&recipe, &results), "paired"), markdown(&recipe, &results))
}

fn all_right(answer: &mut crate::record::AnswerLine) {
    if let Some(gold) = answer.gold.clone() {
        (answer.answer, answer.correct) = (gold, Some(true));
    }
}

#[test]
fn what_is_taken_out_is_set_against_med_mad_with_the_papers_sign() {
    let (rows, markdown) = differences("table3");
    let papers = [
        ("Homogeneous panel", Some(-0.2783)),
        ("Single role", Some(-0.055)),
        ("w/o confidence", Some(-0.0617)),
        ("w/o CF check", Some(-0.055)),
        ("w/o CF check, strict", None),
        ("CoT-SC (K=5)", Some(-0.1717)),
    ];
    assert_eq!(rows.len(), papers.len());
    for (method, paper) in papers {
        let row = row(&rows, "MMLU-Pro: Δ", method);
        assert_eq!(row["less"], "MED-MAD");
        // 1 of 2 less 2 of 2.
        is_near(&row["ours"]["mean"], -0.5);
        assert_eq!(row["paper"]["mean"].as_f64(), paper, "{method}");
        assert!(row["paper"]["low"].is_null(), "the paper prints no interval of it");
    }
    assert!(markdown.contains(" | -0.2783 | "), "{markdown}");
}

#[test]
fn a_debate_is_set_against_no_debate_with_the_papers_sign() {
    let (rows, markdown) = differences("table4");
    let papers = [
        ("MedQA", "MED-MAD (one round)", Some(0.0534)),
        ("MedQA", "MED-MAD (one round, always)", None),
        ("MMLU-Pro", "MED-MAD (one round)", Some(0.0133)),
        ("MMLU-Pro", "MED-MAD (one round, always)", None),
    ];
    assert_eq!(rows.len(), papers.len());
    for (dataset, method, paper) in papers {
        let row = row(&rows, &format!("{dataset}: Δ"), method);
        assert_eq!(row["less"], "No-Debate Ensemble");
        is_near(&row["ours"]["mean"], -0.5);
        assert_eq!(row["paper"]["mean"].as_f64(), paper, "{dataset}, {method}");
    }
    assert!(markdown.contains(" | +0.0534 | ") && markdown.contains(" | +0.0133 | "));
}

#[test]
fn what_no_three_runs_give_is_said_beside_the_figure() {
    let expected = [
        ("table1", "MED-MAD", "PubMedQA", [0.765, 0.0071], "0.7650 ± 0.0071 are of two runs"),
        ("table1-api", "MedAgents", "MMLU-Pro", [0.87, 0.0094], "0.8700 ± 0.0094 are of no two"),
        ("table3", "MED-MAD", "MMLU-Pro", [0.605, 0.0354], "0.6050 ± 0.0354 are of two runs"),
    ];
    for (name, method, dataset, [mean, std], sentence) in expected {
        let recipe = Recipe::find(name).unwrap();
        let of = format!("{method} on {dataset}: the paper's {sentence}");
        assert!(recipe.readings.iter().any(|reading| reading.starts_with(&of)), "{name}");
        let tables = all(&recipe, &results(name, &recipe, cells(&recipe)));
        let rows = rows(&tables, "accuracy");
        let paper = &row(&rows, "", method)[format!("{dataset}: paper")];
        assert_eq!(*paper, json!({"mean": mean, "std": std, "n": null}), "{name}");
    }
}

/// The tables of a recipe on notes, one cell of which had stages that were settled.
fn tables_of_notes(name: &str) -> Vec<Table> {
    let recipe = Recipe::find(name).unwrap();
    let settled = vec![Settled {
        source: SettledBy::Agreement,
        n: 4,
        n_right: 3,
        share: 1.0,
        accuracy: 0.75,
    }];
    let notes = NoteFigures {
        n_graded: 4,
        detection: None,
        localisation: None,
        correction: None,
        consensus: vec![Consensus { stage: NoteStage::Detection, n: 4, settled }],
        confidence: None,
        stages: Vec::new(),
        search: None,
    };
    let mut cells = cells(&recipe);
    cells[0].notes = Some(notes);
    all(&recipe, &results(name, &recipe, cells))
}

/// The table that the paper prints, which follows ours of agreement and arbitration.
fn printed(name: &str) -> Table {
    let mut tables = tables_of_notes(name);
    let ours = tables.iter().position(|table| table.name == "consensus").unwrap();
    let printed = tables.remove(ours + 1);
    assert_eq!(printed.name, PRINTED, "{name}");
    printed
}

#[test]
fn warnings_and_conditions_stand_once_beside_the_tables() {
    let recipe = Recipe::find("medreact-table1").unwrap();
    let mut found = results("medreact-table1", &recipe, cells(&recipe));
    (found.synthetic, found.warnings) = (true, vec!["Warning: unread".to_owned()]);
    let text = markdown(&recipe, &found);
    for once in ["Warning: unread", "Synthetic weights: "] {
        assert_eq!(text.matches(once).count(), 1, "{once}: {text}");
    }
}

#[test]
fn table_thirteen_stands_under_ours_as_it_is_printed_with_what_it_contradicts() {
    let table = printed("medguards-table13");
    assert_eq!(table.title, "The paper's Table 13, of 925 notes");
    let json = table.json();
    let rows = json["rows"].as_array().unwrap();
    let find = |model: &str, stage: &str, by: &str| {
        let found = rows.iter().find(|row| {
            row["model"] == format!("{model} + MedGuards")
                && row["stage"] == stage
                && row["settled by"] == by
        });
        found.unwrap_or_else(|| panic!("{model}, {stage}, {by}"))
    };
    let number = |text: &Value| text.as_str().unwrap().trim_end_matches(" %").parse::<f64>();
    // What the stage saw, and the digits' rounding.
    for (model, stage, saw, most) in [
        ("Doubao-1.5-thinking-pro", "detection", [925.0; 2], 0.006),
        // The shares are of one note more and of their sum.
        ("Doubao-1.5-thinking-pro", "localisation", [463.0, 462.0], 0.006),
        ("GPT-4o-mini", "detection", [925.0; 2], 0.051),
        ("GPT-4o-mini", "localisation", [566.0; 2], 0.051),
    ] {
        for (by, saw) in ["agreement", "arbitration"].into_iter().zip(saw) {
            let row = find(model, stage, by);
            let [notes, share, right, of_them] =
                ["notes", "share", "right", "of them"].map(|name| number(&row[name]).unwrap());
            assert!((share - 100.0 * notes / saw).abs() < most, "{row}");
            assert!((of_them - 100.0 * right / notes).abs() < most, "{row}");
        }
    }
    let right = |model: &str| {
        ["agreement", "arbitration"]
            .map(|by| number(&find(model, "detection", by)["right"]).unwrap())
            .iter()
            .sum::<f64>()
    };
    let [gpt, doubao] = ["GPT-4o-mini", "Doubao-1.5-thinking-pro"].map(right);
    assert_eq!((gpt, doubao), (599.0, 708.0));
    // Table 2 of the same models: 0.695 and 0.770.
    assert_eq!(format!("{:.3} {:.3}", gpt / 925.0, doubao / 925.0), "0.648 0.765");
    for said in [
        "right on 599 of 925 notes, 0.648, where Table 2 has 0.695 of the same model; Doubao's on 708, 0.765, where it has 0.770.",
        "Figure 2 has 20.2 and 37.8 % of GPT-4o-mini's detections and localisations arbitrated, not 21.6 and 51.6 %.",
        "Doubao's shares of localisation come to 99.81 %: 401 notes are 86.61 % of 463, 61 are 13.20 % of 462.",
        "The arbiter is right on about half of what it decides but for GPT-4o-mini's localisations, 33.2 %.",
    ] {
        assert!(table.notes.iter().any(|note| note.contains(said)), "{said}: {:?}", table.notes);
    }
}

#[test]
fn figure_two_has_the_papers_shares_of_arbitration_of_gemini_and_gpt() {
    let table = printed("medguards-figure2");
    assert_eq!(
        table.json()["rows"],
        json!([
            {"model": "Gemini 2.0 Flash", "detection": "11.6 %", "localisation": "31.9 %"},
            {"model": "GPT-4o-mini", "detection": "20.2 %", "localisation": "37.8 %"},
        ])
    );
    assert_eq!(table.notes, ["Of GPT-4o-mini, Table 13 counts 21.6 and 51.6 %."]);
}

/// A name that no table has would put what is printed at the end.
#[test]
fn every_table_that_is_printed_names_the_one_that_it_follows() {
    let known = [
        "notes",
        "consensus",
        "confidence",
        "low-confidence",
        "stages",
        "correction",
        "search-effort",
    ];
    for name in crate::recipe::built_in::names() {
        for printed in Recipe::find(name).unwrap().printed {
            assert!(known.contains(&printed.beside.as_str()), "{name}: {}", printed.beside);
        }
    }
}
