//! Tables at the widths of terminals, and in a pipe.

use super::*;
use crate::analysis::metrics::over_runs::{Estimate, Spread};

fn screen(width: Option<u16>) -> Screen {
    Screen { width, is_styled: false }
}

/// A method a row, with its figures on two datasets.
fn table() -> Table {
    let spread = |mean, best| Cell::Spread(Spread { mean, std: Some(0.125), n: Some(3) }, best);
    let rows = [
        ("One model", "Chain of thought", spread(1.0 / 3.0, false)),
        ("Panels", "多智能体辩论", spread(0.5, true)),
        ("Panels", "نقاش بين عدة أطباء", spread(0.25, false)),
    ];
    let less = Cell::Estimate(Estimate::of(0.1, Some([-0.2, 0.4])));
    Table::of("accuracy", "Accuracy of all methods", &rows)
        .grouped_by(|row| row.0.to_owned())
        .text("method", |row| row.1)
        .under("MedQA")
        .spread("ours", |row| row.2.clone())
        .interval("ours − paper", |_| less.clone())
        .under("PubMedQA")
        .spread("ours", |row| row.2.clone())
        .interval("ours − paper", |_| less.clone())
        .note("Mean ± sample standard deviation over the runs; the best of a column in bold.")
        .build()
}

#[test]
fn no_line_is_wider_than_the_terminal_and_no_figure_is_broken() {
    for width in [60, 80, 200] {
        let text = screen(Some(width)).draw(&[table()]);
        for line in text.lines() {
            assert!(line.width() <= usize::from(width), "{width}: {line:?}\n{text}");
            assert_eq!(line, line.trim_end());
        }
        assert_eq!(text.matches("0.3333 ± 0.1250").count(), 2, "{text}");
        assert_eq!(text.matches("[-0.2000, +0.4000]").count(), 6, "{text}");
        assert!(text.contains("多智能体辩论"), "{text}");
    }
}

#[test]
fn a_table_that_is_too_wide_is_told_dataset_by_dataset() {
    let wide = screen(Some(200)).draw(&[table()]);
    assert_eq!(wide.matches("Chain of thought").count(), 1, "{wide}");
    assert!(wide.contains("MedQA: ours"), "{wide}");
    let narrow = screen(Some(80)).draw(&[table()]);
    assert_eq!(narrow.matches("Chain of thought").count(), 2, "{narrow}");
    assert!(narrow.contains("\nMedQA\n") && narrow.contains("\nPubMedQA\n"), "{narrow}");
}

#[test]
fn where_no_column_fits_each_figure_has_its_line() {
    let text = screen(Some(40)).draw(&[table()]);
    assert!(text.contains("\n    ours: 0.3333 ± 0.1250 (3 runs)\n"), "{text}");
    assert!(text.lines().all(|line| line.width() <= 40), "{text}");
}

#[test]
fn a_pipe_gets_every_row_on_a_line_aligned_and_without_colour() {
    let text = screen(None).draw(&[table()]);
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("± 0.1250")).collect();
    assert_eq!(rows.len(), 3, "{text}");
    let ends = rows.iter().map(|row| row.split("runs)").next().unwrap().width());
    assert!(ends.clone().all_equal(), "{:?}\n{text}", ends.collect::<Vec<_>>());
    assert!(!text.contains('\u{1b}') && !text.contains(KEPT), "{text}");
    assert!(text.starts_with("Accuracy of all methods\n"), "{text}");
    assert!(text.contains("\nOne model\n  Chain of thought"), "{text}");
}

#[test]
fn the_best_is_bold_where_there_is_style_and_a_terminal_obeys_no_cell() {
    let styled = Screen { width: Some(200), is_styled: true };
    let bold = "\u{1b}[1m0.5000 ± 0.1250\u{1b}[0m \u{1b}[1m(3 runs)\u{1b}[0m";
    assert!(styled.draw(&[table()]).contains(bold));
    let rows = ["\u{1b}[2J\ntwo lines"];
    let hostile = Table::of("x", "X", &rows).text("cell", |row| *row).build();
    let text = screen(Some(80)).draw(&[hostile]);
    assert!(text.contains("\\u001b[2J two lines"), "{text}");
}
