//! A finding for hospital systems: as FHIR R4's OperationOutcome, and as a card of CDS Hooks.

use serde::Serialize;

use super::Finding;
use crate::record::{Advice, Decision};

/// Weights that nobody trained say nothing about a note.
const SYNTHETIC: &str = "Synthetic weights answer noise: this says nothing about the note.";

/// <https://hl7.org/fhir/R4/operationoutcome.html>
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationOutcome {
    resource_type: &'static str,
    /// The outcome first.
    issue: Vec<Issue>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Issue {
    severity: Severity,
    code: IssueType,
    details: Details,
    /// With text of the note.
    #[serde(skip_serializing_if = "Option::is_none")]
    diagnostics: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Details {
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    /// What could not be told: a reader that looks at severities alone must not take it for a cleared note.
    Error,
    Warning,
    Information,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum IssueType {
    BusinessRule,
    Processing,
    Informational,
}

impl OperationOutcome {
    pub fn of(
        finding: &Finding,
        decision: Option<&Decision>,
        is_synthetic: bool,
    ) -> OperationOutcome {
        let (severity, code) = match finding.has_error {
            Some(true) => (Severity::Warning, IssueType::BusinessRule),
            Some(false) => (Severity::Information, IssueType::Informational),
            None => (Severity::Error, IssueType::Processing),
        };
        let mut issue = vec![Issue {
            severity,
            code,
            details: Details { text: finding.headline() },
            diagnostics: changed(finding)
                .map(|[written, due]| format!("As written: {written}\nShould be: {due}")),
        }];
        let says = |severity, text: String| Issue {
            severity,
            code: IssueType::Informational,
            details: Details { text },
            diagnostics: None,
        };
        issue.extend(ungrounded(finding).map(|text| says(Severity::Warning, text)));
        issue.extend(decision.map(|decision| match decision.decision {
            Advice::Act => says(Severity::Information, decision.to_string()),
            Advice::Escalate => says(Severity::Warning, decision.to_string()),
        }));
        if is_synthetic {
            issue.push(says(Severity::Warning, SYNTHETIC.to_owned()));
        }
        issue.push(says(Severity::Information, finding.notice.to_owned()));
        OperationOutcome { resource_type: "OperationOutcome", issue }
    }
}

/// <https://cds-hooks.hl7.org/2.0/#card-attributes>
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Card {
    /// Without text of the note; the specification has 140 characters at the most.
    summary: String,
    /// GitHub's Markdown.
    detail: String,
    indicator: Indicator,
    source: Source,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Source {
    label: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Indicator {
    Info,
    Warning,
}

impl Card {
    /// `source`: the system that found it.
    pub fn of(
        finding: &Finding,
        decision: Option<&Decision>,
        is_synthetic: bool,
        source: &str,
    ) -> Card {
        let is_for_a_clinician =
            decision.is_some_and(|decision| decision.decision == Advice::Escalate);
        let is_cleared = finding.has_error == Some(false) && !is_for_a_clinician && !is_synthetic;
        let mut parts = Vec::new();
        if let Some([written, due]) = changed(finding) {
            parts.push(format!("As written: {}", escaped(written)));
            parts.push(format!("Should be: {}", escaped(due)));
        }
        parts.extend(ungrounded(finding).map(|text| escaped(&text)));
        parts.extend(decision.map(|decision| escaped(&decision.to_string())));
        parts.extend(is_synthetic.then(|| SYNTHETIC.to_owned()));
        parts.push(format!("*{}*", finding.notice));
        Card {
            summary: finding.headline(),
            detail: parts.join("\n\n"),
            indicator: if is_cleared { Indicator::Info } else { Indicator::Warning },
            source: Source { label: format!("wardround, {source}") },
        }
    }
}

/// The located sentence and what it should be.
fn changed(finding: &Finding) -> Option<[&str; 2]> {
    let written = finding.sentence.as_deref()?;
    Some([written, finding.correction.as_deref().unwrap_or("no correction was given")])
}

/// What the correction says and no source does.
fn ungrounded(finding: &Finding) -> Option<String> {
    let words = &finding.sources.as_ref()?.ungrounded;
    (!words.is_empty()).then(|| format!("No source contains: {}", words.join(", ")))
}

/// Text that Markdown shows as it is: what a model or a note says makes no link, image or markup.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if character.is_ascii_punctuation() {
            escaped.push('\\');
        }
        escaped.push(if character.is_control() { ' ' } else { character });
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::analysis::notes::finding::Sources;

    fn finding(has_error: Option<bool>) -> Finding {
        let said = |text: &str| (has_error == Some(true)).then(|| text.to_owned());
        Finding {
            note: "n1".into(),
            has_error,
            sentence_id: has_error.filter(|&is| is).map(|_| 1),
            sentence: said("Give [aspirin](http://x)."),
            correction: said("Give quinine."),
            confidence: None,
            agents: Vec::new(),
            sources: None,
            notice: "A notice.",
        }
    }

    fn severities(
        finding: &Finding,
        decision: Option<&Decision>,
        is_synthetic: bool,
    ) -> Vec<Value> {
        let value = json!(OperationOutcome::of(finding, decision, is_synthetic));
        assert_eq!(value["resourceType"], "OperationOutcome");
        value["issue"].as_array().unwrap().iter().map(|one| one["severity"].clone()).collect()
    }

    fn escalated() -> Decision {
        Decision { decision: Advice::Escalate, because: Some("why".into()), score: None }
    }

    #[test]
    fn what_could_not_be_told_is_an_error_and_no_cleared_note() {
        assert_eq!(severities(&finding(Some(true)), None, false), ["warning", "information"]);
        assert_eq!(severities(&finding(Some(false)), None, false), ["information", "information"]);
        assert_eq!(severities(&finding(None), None, false), ["error", "information"]);
        assert_eq!(
            severities(&finding(Some(false)), Some(&escalated()), true),
            ["information", "warning", "warning", "information"]
        );
        let indicator = |finding: &Finding, decision: Option<&Decision>, is_synthetic: bool| {
            json!(Card::of(finding, decision, is_synthetic, "medguards"))["indicator"].clone()
        };
        assert_eq!(indicator(&finding(Some(false)), None, false), "info");
        assert_eq!(indicator(&finding(Some(false)), None, true), "warning");
        assert_eq!(indicator(&finding(Some(false)), Some(&escalated()), false), "warning");
        assert_eq!(indicator(&finding(None), None, false), "warning");
    }

    #[test]
    fn what_no_source_says_is_told() {
        let sources = Sources {
            named: true,
            grounded: Some(false),
            ungrounded: vec!["quinine".into()],
            exhausted: false,
            shared: Vec::new(),
            passages: Vec::new(),
        };
        let finding = Finding { sources: Some(sources), ..finding(Some(true)) };
        assert_eq!(severities(&finding, None, false), ["warning", "warning", "information"]);
        let outcome = json!(OperationOutcome::of(&finding, None, false));
        assert_eq!(outcome["issue"][1]["details"]["text"], "No source contains: quinine");
        let card = json!(Card::of(&finding, None, false, "medreflex"));
        assert!(card["detail"].as_str().unwrap().contains("No source contains\\: quinine"));
    }

    #[test]
    fn words_of_a_note_make_no_link_in_a_card() {
        let card = json!(Card::of(&finding(Some(true)), None, false, "medguards"));
        assert_eq!(card["summary"], "An error in sentence 2");
        assert_eq!(
            card["detail"],
            "As written: Give \\[aspirin\\]\\(http\\:\\/\\/x\\)\\.\n\nShould be: Give quinine\\.\n\n*A notice.*"
        );
        assert_eq!(card["source"]["label"], "wardround, medguards");
    }
}
