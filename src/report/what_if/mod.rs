//! The page «why this answer»: each item with its votes before and after what was changed, the agents' Shapley values, and what went wrong.

use std::collections::BTreeMap;

use minijinja::context;
use minijinja::value::{Serde, Value};

use super::{ReportError, kit};
use crate::experiment::what_if::{Course, WhatIf};
use crate::record::ItemText;

const PAGE: kit::Page = kit::Page { template: "what-if.html", style: "", script: "" };

/// The page; `texts` are the items as the run put them.
///
/// # Errors
/// A template that cannot be filled in.
pub fn render(found: &WhatIf, texts: &BTreeMap<String, ItemText>) -> Result<String, ReportError> {
    let course = |course: &Course| {
        context! {
            course => Serde(course),
            text => Serde(texts.get(&course.item)),
            changed => course.is_changed(),
            diagnoses => course.diagnoses.in_words(),
            shares => course.shapley.iter().flat_map(|shapley| &shapley.values).map(|value| {
                // A value below 0 has no bar.
                context! { agent => value.agent.clone(), shown => value.to_string(), percent => (100.0 * value.value.max(0.0)).round() }
            }).collect::<Vec<_>>(),
        }
    };
    let courses: Vec<Value> = found.items.iter().map(course).collect();
    PAGE.render(context! { found => Serde(found), courses })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::what_if::{Calls, Diagnoses, Vote};
    use crate::record::QuestionText;

    #[test]
    fn the_page_says_what_turned_and_escapes_it() {
        let vote = Vote {
            round: 1,
            agent: "<i>ddx</i>".to_owned(),
            purpose: "debate".to_owned(),
            sample: 0,
            before: Some("B".to_owned()),
            after: None,
        };
        let course = Course {
            item: "q1".to_owned(),
            run: 1,
            gold: Some("B".to_owned()),
            before: "B".to_owned(),
            after: "C".to_owned(),
            error: None,
            dropped: vec!["He is <b>ill</b>.".to_owned()],
            votes: vec![vote],
            logged: 2,
            new: 1,
            diagnoses: Diagnoses { authority: vec!["ddx".to_owned()], ..Diagnoses::default() },
            shapley: None,
            calls: Vec::new(),
        };
        let found = WhatIf {
            schema: 1,
            version: "0.1.0".to_owned(),
            system: "medmad".to_owned(),
            dataset: "medqa".to_owned(),
            plan_sha256: "0".repeat(64),
            synthetic: true,
            changes: vec!["without ddx".to_owned()],
            calls: Calls { logged: 2, stored: 0, computed: 1 },
            items: vec![course],
        };
        let text = ItemText::Question(QuestionText {
            item: "q1".to_owned(),
            question: "Which <u>one</u>?".to_owned(),
            options: [('B', "two".to_owned()), ('C', "three".to_owned())].into(),
            answer: Some("B".to_owned()),
            ..QuestionText::default()
        });
        let page = render(&found, &[("q1".to_owned(), text)].into()).unwrap();
        for part in [
            "without ddx",
            "&lt;i&gt;ddx",
            "He is &lt;b&gt;ill",
            "Which &lt;u&gt;one",
            "not asked",
            "alone turns the answer: ddx",
            "Synthetic weights",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
        assert!(!page.contains("Shapley value of"), "none was asked for");
    }
}
