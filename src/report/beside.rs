//! What the pages of several runs share: their tables, and what each run answered to every item.

use itertools::Itertools;
use minijinja::context;
use minijinja::value::{Serde, Value};

use super::ReportError;
use super::item::{elsewhere, gold};
use super::kit;
use super::table::{Table, explanations};
use crate::analysis::metrics::bootstrap::Estimate;
use crate::analysis::metrics::over_runs::signed;
use crate::analysis::{Outcomes, by_key};
use crate::experiment::contents::Contents;
use crate::record::ItemLine;

const PAGE: kit::Page =
    kit::Page { template: "beside.html", style: include_str!("beside.css"), script: "" };

/// A run beside others.
pub struct Column<'a> {
    /// Where its own page lies, seen from this one.
    pub page: String,
    pub label: String,
    pub contents: &'a Contents,
}

/// The page of these tables, with what else its template takes.
///
/// # Errors
/// A template that cannot be filled in.
pub fn render(tables: &[Table], page: Value) -> Result<String, ReportError> {
    let section = |(place, table): (usize, &Table)| {
        context! {
            id => format!("{}-{}", table.name, place + 1),
            title => &table.title,
            table => Value::from_safe_string(table.html()),
        }
    };
    let sections: Vec<Value> = tables.iter().enumerate().map(section).collect();
    PAGE.render(context! { page, sections, notes => Serde(explanations(tables)) })
}

/// What each run answered to each item, those on which they differ first.
pub fn items(label: &str, ids: &[String], columns: &[Column<'_>]) -> Value {
    let outcomes = columns.iter().map(|column| column.contents.outcomes().into_values());
    let found = outcomes.map(|all| by_key(all, ItemLine::item)).collect_vec();
    let runs = columns.iter().map(|column| Outcomes::of(column.contents)).collect_vec();
    let row = |id: &String| {
        let lines = found.iter().map(|run| run.get(id.as_str()).map_or(&[][..], Vec::as_slice));
        let lines: Vec<&[&ItemLine]> = lines.collect();
        let said = runs.iter().zip(&lines);
        let mut said = said.flat_map(|(run, lines)| lines.iter().map(move |line| run.chosen(line)));
        let differs = !said.all_equal();
        let answers = lines.iter().map(|run| run.iter().map(|line| elsewhere(line)).collect_vec());
        let gold = lines.iter().copied().flatten().next();
        let shown = context! {
            id,
            gold => gold.map_or("–".to_owned(), |line| self::gold(line)),
            answers => answers.collect_vec(),
        };
        (differs, shown)
    };
    let mut rows = ids.iter().map(row).collect_vec();
    rows.sort_by_key(|(differs, _)| !*differs);
    let cell = |column: &Column<'_>| context! { page => &column.page, label => &column.label };
    context! {
        label,
        cells => columns.iter().map(cell).collect_vec(),
        n_differ => rows.iter().filter(|(differs, _)| *differs).count(),
        rows => rows.into_iter().map(|(_, shown)| shown).collect_vec(),
    }
}

/// What a paired difference of accuracies comes to.
pub fn difference(method: &str, baseline: &str, found: &Estimate) -> String {
    let points = |share: f64| signed(100.0 * share, 1);
    let told = format!("{method} against {baseline}: {} points", points(found.mean));
    match found.low.zip(found.high) {
        None => format!("{told}; too few items differ for an interval."),
        Some((low, high)) => {
            let so = if low > 0.0 || high < 0.0 {
                "more than chance gives"
            } else {
                "chance may give it"
            };
            format!("{told} (95 % interval {} to {}): {so}.", points(low), points(high))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::questions;

    #[test]
    fn what_runs_differ_on_comes_first_and_leads_to_its_case() {
        let contents = questions::contents();
        let column = |page: &str| Column {
            page: page.to_owned(),
            label: page.to_owned(),
            contents: &contents,
        };
        let ids = &contents.plan.dataset.items;
        let columns = [column("a/report.html"), column("b/report.html")];
        let page = context! {
            kicker => "", title => "", text => "", about => "", version => "", synthetic => false,
            verdict => ["even"], warnings => ["One sentence: a remedy.\nof a; of b"], links => "",
            items => [items("questions", ids, &columns)], method => ["so"], making => "",
            readings => Vec::<String>::new(),
        };
        let page = render(&[], page).unwrap();
        // Of one run the first answer is wrong and of the other right.
        assert!(page.contains("questions: the answers differ on 1 of 8"), "{page}");
        let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
        assert!(place(">ward-003</th>") < place(">the same answer</th>"));
        assert!(place(">the same answer</th>") < place(">ward-001</th>"));
        assert!(page.contains("href=\"b/report.html#ward/2/ward-003\" title=\"run 2\">B ✓</a>"));
        assert!(page.contains("<summary>Which ones</summary><p>of a; of b</p>"));
    }

    #[test]
    fn a_difference_says_whether_chance_may_give_it() {
        let found = |low, high| Estimate {
            mean: 0.05,
            low,
            high,
            n_questions: 40,
            n_units: 40,
            exact: false,
        };
        for (low, high, told) in [
            (None, None, "; too few items differ for an interval."),
            (Some(-0.01), Some(0.11), " (95 % interval -1.0 to +11.0): chance may give it."),
            (Some(0.01), Some(0.11), " (95 % interval +1.0 to +11.0): more than chance gives."),
        ] {
            let whole = format!("a against b: +5.0 points{told}");
            assert_eq!(difference("a", "b", &found(low, high)), whole);
        }
    }
}
