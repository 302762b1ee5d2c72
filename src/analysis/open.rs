//! Answers to open questions, beside their references and beside one another; no judge is asked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::metrics::over_runs::{OverRuns, mean};
use super::notes::{Measure, NeuralScores, Quality, ScoresByPair};
use crate::data::language;
use crate::experiment::contents::Contents;
use crate::record::{AnswerLine, ItemText, Language};
use crate::systems::proposals::PURPOSE;

/// Figures of a run's answers in words. An item without an answer has 0 in common with its reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenFigures {
    /// Items times runs.
    pub n: usize,
    /// Of these, those with an answer.
    pub answered: usize,
    /// Of these, those with a reference.
    pub with_reference: usize,
    /// F of words, of stems in English; `null` without references.
    pub rouge1: Option<OverRuns>,
    pub rouge_l: Option<OverRuns>,
    /// Where the weights are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bertscore: Option<OverRuns>,
    /// The share of answers that begin with the reference's yes, no or maybe; `null` where not every reference begins so.
    pub decision: Option<OverRuns>,
    /// The mean ROUGE-L between two of the agents' own answers to a question; `null` where there is no pair.
    pub agreement: Option<f64>,
    /// Of the questions that were answered several times, the share to which all of these are the same; one that could not be read is not.
    pub unanimous: Option<f64>,
}

/// Whether the items of a run are open questions.
pub fn is_open(contents: &Contents) -> bool {
    contents.texts.values().next().and_then(ItemText::open).is_some()
}

/// Those that a reference can be held against: reference and answer of each line.
pub fn pair(line: &AnswerLine) -> Option<(&str, &str)> {
    let reference = line.reference.as_deref()?;
    (!line.answer.is_empty() && line.error.is_none()).then_some((reference, &line.answer))
}

impl OpenFigures {
    /// `None` of a run on other items, and of one without any.
    pub fn of(contents: &Contents, neural: &ScoresByPair) -> Option<OpenFigures> {
        let lines: Vec<&AnswerLine> = contents.answers().into_values().collect();
        if !is_open(contents) || lines.is_empty() {
            return None;
        }
        let mut runs: BTreeMap<u32, Vec<&AnswerLine>> = BTreeMap::new();
        for line in lines.iter().filter(|line| line.reference.is_some()) {
            runs.entry(line.run).or_default().push(line);
        }
        let over_runs = |of: &dyn Fn(&AnswerLine) -> Option<f64>| {
            let of_run = |lines: &Vec<&AnswerLine>| {
                mean(&lines.iter().filter_map(|line| of(line)).collect::<Vec<f64>>())
            };
            OverRuns::of(runs.values().map(of_run).collect::<Option<_>>()?)
        };
        let rouge = |line: &AnswerLine, measure: Measure| {
            Some(pair(line).map_or(0.0, |(reference, answer)| overlap(reference, answer, measure)))
        };
        let begins = |line: &&AnswerLine| {
            line.reference.as_deref().is_none_or(|text| decision(text).is_some())
        };
        let has_bertscore = neural.values().any(|scores| scores.bertscore.is_some());
        let (agreement, unanimous) = agreement(contents, &lines);
        Some(OpenFigures {
            n: lines.len(),
            answered: lines.iter().filter(|line| !line.answer.is_empty()).count(),
            with_reference: lines.iter().filter(|line| line.reference.is_some()).count(),
            rouge1: over_runs(&|line| rouge(line, Measure::Rouge1)),
            rouge_l: over_runs(&|line| rouge(line, Measure::RougeL)),
            bertscore: over_runs(&|line| match pair(line) {
                Some((reference, answer)) => {
                    neural.get(&(reference.to_owned(), answer.to_owned()))?.bertscore
                }
                None => has_bertscore.then_some(0.0),
            }),
            decision: match lines.iter().all(begins) {
                true => over_runs(&|line| {
                    let said = pair(line).and_then(|(_, answer)| decision(answer));
                    let wanted = line.reference.as_deref().and_then(decision);
                    Some(f64::from(u8::from(said.is_some() && said == wanted)))
                }),
                false => None,
            },
            agreement,
            unanimous,
        })
    }
}

/// ROUGE by the words of the reference's language, of stems where it has them. Stems are of ASCII alone: of a text with other letters they
/// would leave out all of those.
fn overlap(reference: &str, answer: &str, measure: Measure) -> f64 {
    let language = language(reference);
    let of = |reference: &str, answer: &str| {
        Quality::of(language, reference, answer, NeuralScores::default())
    };
    let is_ascii = |text: &str| text.chars().all(|c| c.is_ascii() || !c.is_alphabetic());
    if language == Language::English && !(is_ascii(reference) && is_ascii(answer)) {
        return of(&words(reference), &words(answer)).get(measure).unwrap_or(0.0);
    }
    let quality = of(reference, answer);
    let stemmed = match measure {
        Measure::Rouge1 => Measure::Rouge1Stemmed,
        _ => Measure::RougeLStemmed,
    };
    quality.get(stemmed).or(quality.get(measure)).unwrap_or(0.0)
}

/// In lower case, without what stands between words.
fn words(text: &str) -> String {
    text.to_lowercase().replace(|c: char| !c.is_alphanumeric(), " ")
}

/// The yes, no or maybe that a text begins with.
fn decision(text: &str) -> Option<&'static str> {
    let mut words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let first = words.next()?.to_lowercase();
    ["yes", "no", "maybe"].into_iter().find(|word| *word == first)
}

/// How alike the agents' own answers are, and how often all are the same.
fn agreement(contents: &Contents, lines: &[&AnswerLine]) -> (Option<f64>, Option<f64>) {
    let mut said: BTreeMap<(u32, &str), Vec<&str>> = BTreeMap::new();
    for call in contents.calls.by_key().into_values() {
        if call.purpose == PURPOSE {
            said.entry((call.run, &call.item)).or_default().push(call.record.text().trim());
        }
    }
    let (mut alike, mut same) = (Vec::new(), Vec::new());
    for line in lines {
        let Some(texts) = said.get(&(line.run, line.item.as_str())) else { continue };
        if texts.len() < 2 {
            continue;
        }
        let is_read = texts.iter().all(|text| !text.is_empty());
        same.push(f64::from(u8::from(is_read && line.options.len() == 1)));
        let texts: Vec<&str> = texts.iter().copied().filter(|text| !text.is_empty()).collect();
        for (at, one) in texts.iter().enumerate() {
            alike.extend(texts[at + 1..].iter().map(|two| overlap(one, two, Measure::RougeL)));
        }
    }
    (mean(&alike), mean(&same))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixtures::{call, plan, start_with};
    use crate::record::{QuestionText, Reply};

    /// Of each question its reference, what two agents said, and the answer.
    fn figures(items: &[(Option<&str>, [&str; 2], &str)]) -> OpenFigures {
        let out = tempfile::tempdir().unwrap();
        let mut plan = plan();
        (plan.runs, plan.dataset.format) = (1, "open".to_owned());
        let text = |(at, (reference, ..)): (usize, &(Option<&str>, [&str; 2], &str))| {
            ItemText::Question(QuestionText {
                item: at.to_string(),
                question: "Why?".to_owned(),
                reference: reference.map(str::to_owned),
                ..QuestionText::default()
            })
        };
        let texts: Vec<ItemText> = items.iter().enumerate().map(text).collect();
        let log = start_with(out.path(), &plan, &texts);
        for (at, (reference, said, answer)) in items.iter().enumerate() {
            for (agent, text) in ["sym", "ddx"].into_iter().zip(said) {
                let mut one = call(&at.to_string(), 0, agent);
                one.purpose = PURPOSE.to_owned();
                one.record = Reply::of(serde_json::json!({ "text": text }));
                log.call(one).unwrap();
            }
            let mut options: Vec<String> = said.map(str::to_owned).to_vec();
            options.dedup();
            options.retain(|option| !option.is_empty());
            let line = AnswerLine {
                dataset: "medqa".to_owned(),
                item: at.to_string(),
                reference: reference.map(str::to_owned),
                answer: (*answer).to_owned(),
                options,
                ..AnswerLine::default()
            };
            log.item(line).unwrap();
        }
        log.finish().unwrap();
        OpenFigures::of(&Contents::read(out.path()).unwrap(), &ScoresByPair::new()).unwrap()
    }

    #[test]
    fn answers_stand_beside_their_references_and_nothing_is_worth_nothing() {
        let figures = figures(&[
            (Some("Yes. It lowers the risk."), ["Yes, it lowers risk"; 2], "Yes, it lowers risk"),
            (Some("No. Not at all."), ["yes", "no"], ""),
            (
                Some("Maybe. More trials are needed."),
                ["Yes. More are needed.", "x"],
                "Yes. More are needed.",
            ),
            (None, ["a", "a"], "a"),
        ]);
        assert_eq!((figures.n, figures.answered, figures.with_reference), (4, 3, 3));
        // Stems: 4 of 4 and of 5; nothing; 3 of 4 and of 5 (more, are, needed).
        let rouge = (8.0 / 9.0 + 6.0 / 9.0) / 3.0;
        assert!((figures.rouge1.unwrap().mean - rouge).abs() < 1e-12);
        assert_eq!(figures.decision.unwrap().mean, 1.0 / 3.0);
        assert_eq!(figures.unanimous, Some(0.5));
        assert!((figures.agreement.unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(figures.bertscore, None);
    }

    #[test]
    fn one_that_could_not_be_read_agrees_with_nobody() {
        let figures = figures(&[(Some("a"), ["a", ""], "a"), (Some("b"), ["b", "b"], "b")]);
        assert_eq!((figures.unanimous, figures.agreement), (Some(0.5), Some(1.0)));
    }

    #[test]
    fn references_of_any_beginning_have_no_decision() {
        let one = figures(&[(Some("Protamine."), ["Protamine", "Protamine"], "Protamine")]);
        assert_eq!((one.decision, one.rouge_l.unwrap().mean), (None, 1.0));
        let none = figures(&[(None, ["x", "y"], "x")]);
        assert_eq!((none.rouge1, none.decision, none.answered), (None, None, 1));
        // Letters that are not of ASCII are letters.
        let (cyrillic, greek) = ("Протамин сульфат", "Θειική πρωταμίνη");
        for text in [cyrillic, greek, "médicament à éviter"] {
            let same = figures(&[(Some(text), [text; 2], text)]);
            let found =
                [same.rouge1.unwrap().mean, same.rouge_l.unwrap().mean, same.agreement.unwrap()];
            // `rouge` itself divides by a little more than the sum.
            assert!(found.iter().all(|share| *share > 0.999_999), "{text}: {found:?}");
        }
        let one = figures(&[(Some("Протамин."), ["протамин", "Гепарин"], "протамин")]);
        assert!(one.rouge1.unwrap().mean > 0.999_999 && one.agreement == Some(0.0));
        let chinese = figures(&[(Some("肝素的解毒剂是鱼精蛋白。"), ["鱼精蛋白"; 2], "鱼精蛋白")]);
        assert!(chinese.rouge1.unwrap().mean > 0.2);
    }
}
