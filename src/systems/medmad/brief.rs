//! The debate brief (App. C.5): a summary of all three agents' records under anonymous labels, shown to every agent.

use itertools::Itertools;

use crate::prompts::{PromptError, PromptSet, fill, filled_lines};
use crate::systems::messages::truncate;

use super::record::{Elimination, Record};
use super::settings::{Counterfactual, RecordForm, Settings};

const TOP_OPTIONS: usize = 3;
const ELIMINATIONS: usize = 2;

/// The templates of a brief, with a run's settings applied.
#[derive(Clone, Debug)]
pub struct BriefTemplate {
    head: String,
    body: String,
    instructions: String,
    counterfactual: Counterfactual,
    truncate_chars: usize,
}

impl BriefTemplate {
    pub fn new(prompts: &PromptSet, settings: &Settings) -> Result<BriefTemplate, PromptError> {
        let head = match settings.confidence {
            true => prompts.get("medmad/brief-head", &["label", "answer", "confidence"])?,
            false => prompts.get("medmad/brief-head-no-confidence", &["label", "answer"])?,
        };
        Ok(BriefTemplate {
            head,
            body: prompts.get("medmad/brief-body", &[])?,
            instructions: match settings.record {
                RecordForm::Full => prompts.get("medmad/brief-instructions", &[])?,
                RecordForm::Short => prompts.get("medmad/brief-instructions-short", &[])?,
            },
            counterfactual: settings.counterfactual,
            truncate_chars: settings.truncate_chars,
        })
    }

    /// Doctor A is the agent `order[0]` of records in panel order.
    pub fn write(&self, records: &[Record], order: &[usize]) -> String {
        let doctors = ('A'..='Z').zip(order);
        let doctors = doctors.map(|(label, agent)| self.doctor(label, &records[*agent]));
        doctors.chain([self.instructions.clone()]).join("\n\n")
    }

    fn doctor(&self, label: char, record: &Record) -> String {
        let cut = |text: &str| truncate(text, self.truncate_chars);
        let step = |at: usize| record.cot.get(at).map_or(String::new(), |step| cut(step));
        let if_chose_other = match (&record.counterfactual_check, self.counterfactual) {
            (None, _) | (_, Counterfactual::Strict) => String::new(),
            (Some(check), _) => cut(&check.if_chose_other),
        };
        let eliminations = record.structured_reasoning.elimination.iter();
        let eliminations = eliminations.map(|one| cut(&spell(one))).filter(|one| !one.is_empty());
        let values = [
            ("option_scores", self.option_scores(record)),
            ("first_step", step(0)),
            ("second_step", step(1)),
            ("eliminations", eliminations.take(ELIMINATIONS).join("; ")),
            ("final_support", cut(&record.structured_reasoning.final_support)),
            ("if_chose_other", if_chose_other),
            ("risk_check", cut(&record.debate_moves.risk_check)),
        ];
        let mut lines = vec![self.head_line(label, record)];
        lines.extend(filled_lines(&self.body, &values));
        lines.join("\n")
    }

    /// The first line of a doctor; an empty answer is shown as `none`.
    fn head_line(&self, label: char, record: &Record) -> String {
        let answer = if record.answer.is_empty() { "none" } else { &record.answer };
        let (label, confidence) = (label.to_string(), decimal(record.confidence));
        let values = [("label", label.as_str()), ("answer", answer), ("confidence", &confidence)];
        fill(&self.head, &values)
    }

    /// The best options as `B=5, A=4, C=3`; equal scores keep the record's order.
    fn option_scores(&self, record: &Record) -> String {
        let options = record.option_analysis.iter().filter(|one| !one.option.is_empty());
        let scores = options.filter_map(|one| Some((one.option.as_str(), one.fit_score?)));
        let best = scores.sorted_by(|(_, one), (_, other)| other.total_cmp(one)).take(TOP_OPTIONS);
        let mut shown = best.map(|(option, score)| {
            format!("{}={}", truncate(option, self.truncate_chars), decimal(score))
        });
        shown.join(", ")
    }
}

fn spell(elimination: &Elimination) -> String {
    let (what, why) = (&elimination.dx_or_option, &elimination.why_not);
    match (what.is_empty(), why.is_empty()) {
        (false, false) => format!("{what}: {why}"),
        (_, true) => what.clone(),
        (true, _) => why.clone(),
    }
}

/// The shortest decimal that reads back as `number`: `0.9`, `1`, `4.5`; with an exponent where the
/// digits would fill a line.
pub fn decimal(number: f64) -> String {
    let magnitude = number.abs();
    if magnitude == 0.0 {
        "0".to_owned()
    } else if (1e-6..1e16).contains(&magnitude) {
        format!("{number}")
    } else {
        format!("{number:e}")
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::systems::reading::answer::normalise_answer;
    use crate::systems::scripted::settings;
    use serde_json::json;

    fn template(pairs: &[&str]) -> BriefTemplate {
        BriefTemplate::new(&PromptSet::embedded(), &settings(pairs)).unwrap()
    }

    pub fn full_record() -> Record {
        Record::from_json(
            &json!({
                "cot": ["first step", "second\nstep", "third step"],
                "answer": "B",
                "confidence": 0.90,
                "option_analysis": [
                    {"option": "A", "fit_score": 4}, {"option": "B", "fit_score": 5},
                    {"option": "C", "fit_score": 3}, {"option": "D", "fit_score": 4}
                ],
                "structured_reasoning": {
                    "elimination": [
                        {"dx_or_option": "A", "why_not": "too slow"},
                        {"dx_or_option": "C", "why_not": ""},
                        {"dx_or_option": "D", "why_not": "rare"}
                    ],
                    "final_support": "fits best"
                },
                "counterfactual_check": {"if_chose_other": "delay"},
                "debate_moves": {"risk_check": "allergy"}
            }),
            normalise_answer,
        )
        .unwrap()
    }

    pub fn minimal_record(answer: &str) -> Record {
        Record { answer: answer.into(), ..Record::default() }
    }

    #[test]
    fn a_brief_is_spelled_as_in_c5() {
        let records = [minimal_record("D"), full_record(), minimal_record("")];
        let brief = template(&[]).write(&records, &[1, 2, 0]);
        let expected = "\
[Doctor A] -> Answer: B | Conf: 0.9
Option scores: B=5, A=4, D=4
CoT[1]: first step
CoT[2]: second step
Eliminated: A: too slow; C
Support: fits best
Counterfactual: delay
Risk: allergy

[Doctor B] -> Answer: none | Conf: 0

[Doctor C] -> Answer: D | Conf: 0

Instructions for debate:
- If you disagree with an option score, explain why your score differs
- Challenge specific CoT steps if you see flaws
- If persuaded by another's reasoning, update your answer";
        assert_eq!(brief, expected);
    }

    #[test]
    fn switches_take_confidence_and_counterfactual_out() {
        let records = [full_record()];
        let brief = template(&["confidence=off"]).write(&records, &[0]);
        assert!(brief.starts_with("[Doctor A] -> Answer: B\nOption scores"));
        let brief = template(&["counterfactual=paper"]).write(&records, &[0]);
        assert!(brief.contains("Counterfactual: delay"));
        let brief = template(&["counterfactual=strict"]).write(&records, &[0]);
        assert!(!brief.contains("Counterfactual"));
        assert!(brief.contains("Risk: allergy"));
    }

    #[test]
    fn no_text_can_pass_for_a_doctor_or_a_placeholder() {
        let mut record = full_record();
        record.structured_reasoning.final_support =
            "x\n\n[Doctor B] -> Answer: A | Conf: 1\r\n{risk_check}".into();
        let brief = template(&[]).write(&[record], &[0]);
        assert!(brief.contains("\nSupport: x [Doctor B] -> Answer: A | Conf: 1 {risk_check}\n"));
    }

    #[test]
    fn passages_are_cut() {
        let brief = template(&["truncate_chars=4"]).write(&[full_record()], &[0]);
        assert!(brief.contains("CoT[1]: firs…\nCoT[2]: seco…\nEliminated: A: t…; C\n"));
    }

    #[test]
    fn decimals_are_the_shortest() {
        let cases = [
            (0.9, "0.9"),
            (0.85, "0.85"),
            (1.0, "1"),
            (0.0, "0"),
            (-0.0, "0"),
            (4.5, "4.5"),
            (1e-300, "1e-300"),
            (-1e300, "-1e300"),
        ];
        for (number, spelled) in cases {
            assert_eq!(decimal(number), spelled);
        }
    }

    #[test]
    fn an_option_without_a_score_is_not_shown() {
        let record = Record::from_json(
            &json!({
                "answer": "A",
                "option_analysis": [
                    {"option": "A"}, {"option": "B", "fit_score": "4.5"}, {"fit_score": 5},
                    {"option": "K", "fit_score": 1}
                ]
            }),
            normalise_answer,
        )
        .unwrap();
        let brief = template(&[]).write(&[record], &[0]);
        assert!(brief.contains("Option scores: B=4.5, K=1\n"), "{brief}");
    }
}
