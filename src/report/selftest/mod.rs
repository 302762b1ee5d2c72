//! The page of a selftest: every check, what each model's answers were compared with, and the sums of its files.

use minijinja::context;
use minijinja::value::{Serde, Value};

use super::ReportError;
use super::kit;
use crate::selftest::Report;

const PAGE: kit::Page =
    kit::Page { template: "selftest.html", style: include_str!("page.css"), script: "" };

/// The page.
///
/// # Errors
/// A template that cannot be filled in.
pub fn render(report: &Report) -> Result<String, ReportError> {
    PAGE.render(context! { test => Value::from(Serde(report)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::{Check, ModelReport, SCHEMA, State};

    #[test]
    fn the_page_says_what_differs_and_escapes_it() {
        let model = ModelReport {
            name: "<b>tiny</b>".to_owned(),
            path: "models/tiny".into(),
            repository: None,
            revision: None,
            is_synthetic: true,
            checks: vec![Check::differs("calls", "greedy: token 2 is 7")],
            files: Vec::new(),
            trials: Vec::new(),
        };
        let report = Report {
            schema: SCHEMA,
            created_at: "2026-03-01T09:30:00Z".to_owned(),
            version: "0.1.0",
            outcome: State::Differs,
            elapsed_ms: 1500,
            checks: vec![Check::note("memory", "8.0 GiB free")],
            models: vec![model],
        };
        let page = render(&report).unwrap();
        for part in ["greedy: token 2 is 7", "&lt;b&gt;tiny&lt;/b&gt;", "8.0 GiB free", "1.5 s"] {
            assert!(page.contains(part), "{part}\n{page}");
        }
        assert!(page.contains("Synthetic weights") && !page.contains("<b>tiny"));
        assert!(page.contains("It differs.") && !page.contains("All is as it should be"));
    }
}
