//! A finding for hospital systems: as FHIR R4's OperationOutcome, and as a card of CDS Hooks.

use serde_json::{Value, json};

use super::Finding;
use crate::record::{Advice, Decision};

/// Weights that nobody trained say nothing about a note.
const SYNTHETIC: &str = "Synthetic weights answer noise: this says nothing about the note.";

/// An OperationOutcome (<https://hl7.org/fhir/R4/operationoutcome.html>), the outcome first.
pub fn operation_outcome(
    finding: &Finding,
    decision: Option<&Decision>,
    is_synthetic: bool,
) -> Value {
    let (severity, code) = match finding.has_error {
        Some(true) => ("warning", "business-rule"),
        Some(false) => ("information", "informational"),
        // A reader that looks at severities alone must not take what could not be told for a cleared note.
        None => ("error", "processing"),
    };
    let says = |severity: &str, code: &str, text: String| json!({"severity": severity, "code": code, "details": {"text": text}});
    let told = |severity: &str, text: String| says(severity, "informational", text);
    let mut outcome = says(severity, code, finding.headline());
    if let Some([written, due]) = changed(finding) {
        outcome["diagnostics"] = format!("As written: {written}\nShould be: {due}").into();
    }
    let mut issue = vec![outcome];
    issue.extend(ungrounded(finding).map(|text| told("warning", text)));
    issue.extend(decision.map(|decision| match decision.decision {
        Advice::Act => told("information", decision.to_string()),
        Advice::Escalate => told("warning", decision.to_string()),
    }));
    issue.extend(is_synthetic.then(|| told("warning", SYNTHETIC.to_owned())));
    issue.push(told("information", finding.notice.to_owned()));
    json!({"resourceType": "OperationOutcome", "issue": issue})
}

/// A card (<https://cds-hooks.hl7.org/2.0/#card-attributes>) of the system `source`. Its summary is without text of the note, and has 140
/// characters at the most; its detail is GitHub's Markdown.
pub fn card(
    finding: &Finding,
    decision: Option<&Decision>,
    is_synthetic: bool,
    source: &str,
) -> Value {
    let is_for_a_clinician = decision.is_some_and(|decision| decision.decision == Advice::Escalate);
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
    json!({
        "summary": finding.headline(),
        "detail": parts.join("\n\n"),
        "indicator": if is_cleared { "info" } else { "warning" },
        "source": {"label": format!("wardround, {source}")},
    })
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
        let value = operation_outcome(finding, decision, is_synthetic);
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
            card(finding, decision, is_synthetic, "medguards")["indicator"].clone()
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
        let outcome = operation_outcome(&finding, None, false);
        assert_eq!(outcome["issue"][1]["details"]["text"], "No source contains: quinine");
        let card = card(&finding, None, false, "medreflex");
        assert!(card["detail"].as_str().unwrap().contains("No source contains\\: quinine"));
    }

    #[test]
    fn words_of_a_note_make_no_link_in_a_card() {
        let card = card(&finding(Some(true)), None, false, "medguards");
        assert_eq!(card["summary"], "An error in sentence 2");
        assert_eq!(
            card["detail"],
            "As written: Give \\[aspirin\\]\\(http\\:\\/\\/x\\)\\.\n\nShould be: Give quinine\\.\n\n*A notice.*"
        );
        assert_eq!(card["source"]["label"], "wardround, medguards");
    }
}
