//! A question's own part of its case: letters against gold, round by round; and the answers of a round as a step: each card, who changed, and
//! the vote.

use minijinja::context;
use minijinja::value::{Serde, Value};
use serde::Deserialize;

use super::card::{Head, card};
use super::prompts::Prompts;
use super::step::{Group, before, places};
use super::{Correctness, Leg, Mark, Own, Turn};
use crate::data::Item;
use crate::record::{AnswerLine, CallLine, Parse, RoundLine, Stage, count};
use crate::systems::medmad::record::Note;
use crate::systems::vote::WHOLE;

pub fn found(item: &AnswerLine) -> Mark {
    mark(&item.letter(), item)
}

fn mark(letter: &str, item: &AnswerLine) -> Mark {
    Mark { said: letter.to_owned(), verdict: Correctness::of(letter, item.gold.as_deref()) }
}

pub fn own(item: &AnswerLine) -> Own<'_> {
    // An answer that could not be read has none, nor has a system that asks for none.
    let confidence = item.stated_confidence().map(|stated| format!("{stated:.2}"));
    let sure = confidence.as_ref().map(|stated| format!("Team confidence {stated}, "));
    Own {
        first: item.rounds.first().map(|round| mark(&round.aggregate, item)),
        trail: trail(item),
        outcome: outcome(item),
        counts: format!(
            "{}{} after the first, {}.",
            sure.unwrap_or_default(),
            count(item.rounds_run, "round"),
            count(item.calls, "call")
        ),
        confidence: confidence.unwrap_or("–".to_owned()),
        tie: item.tie,
        rationale: &item.rationale,
        ..Own::default()
    }
}

/// How the answer stands to gold; and where nobody could be read in the last round, that earlier votes do not count.
fn outcome(item: &AnswerLine) -> Vec<String> {
    let stands = match (&item.gold, found(item).verdict) {
        (None, _) => "The question has no gold answer.".to_owned(),
        (Some(gold), Correctness::Right) => format!("Right: the gold answer is {gold}."),
        (Some(gold), _) => format!("Wrong: the gold answer is {gold}."),
    };
    let is_silent = |round: &RoundLine| round.answers.iter().all(String::is_empty);
    let is_last = item.answer.is_empty() && item.rounds.last().is_some_and(is_silent);
    let is_lost = is_last && !item.rounds.iter().all(is_silent);
    let lost = "Nobody could be read in the last round. Its answers alone are voted on, as in the papers: those of earlier rounds are not used.";
    [stands].into_iter().chain(is_lost.then(|| lost.to_owned())).collect()
}

fn trail(item: &AnswerLine) -> Vec<Leg<'_>> {
    let leg = |number: usize| -> Leg<'_> {
        let round = &item.rounds[number];
        let last = number.checked_sub(1).map(|last| &item.rounds[last]);
        let turn = |(place, said): (usize, &'_ String)| Turn {
            agent: round.agents.get(place).map_or("?", String::as_str),
            said: said.clone(),
            verdict: Correctness::of(said, item.gold.as_deref()),
            changed: before(last, round, place).is_some_and(|before| before != said),
        };
        (format!("round {number}"), round.answers.iter().enumerate().map(turn).collect())
    };
    (0..item.rounds.len()).map(leg).collect()
}

/// What MED-MAD's parser found irregular; nothing in other systems' records.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Remarks {
    notes: Vec<Note>,
}

/// What a round's answers are compared with.
pub struct Answers<'a> {
    /// Letters and texts.
    pub options: Vec<(String, &'a str)>,
    pub gold: Option<&'a str>,
    /// The round before.
    pub last: Option<&'a RoundLine>,
}

impl<'a> Answers<'a> {
    pub fn step(&self, group: &Group<'a>, prompts: &mut Prompts<'a>) -> Value {
        let record = group.record;
        let agents = record.map_or(&[][..], |record| &record.agents);
        let calls = group.calls.iter().zip(places(&group.calls, agents));
        let cards = calls.map(|(&call, place)| {
            let counted = record.zip(place);
            card(call, &self.said(call, counted), prompts.number(call), false)
        });
        let labelled = record.map_or(&[][..], |record| &record.labels).iter().zip('A'..='Z');
        let aside = group.stage == Stage::Aside;
        context! {
            title => format!("Round {}", group.round),
            about => match group.stage {
                Stage::Initial => "first answers, each agent alone",
                Stage::Round => "answers after seeing the others'",
                Stage::Final => "the decision",
                Stage::Aside => group.purpose,
            },
            // Whether the step is shown closed: it gives no answer.
            folded => aside,
            // The agent behind each label of the brief.
            doctors => Serde(labelled.map(|(agent, letter)| (letter, agent)).collect::<Vec<_>>()),
            brief => record.map_or("", |record| &*record.brief),
            cards => cards.collect::<Vec<_>>(),
            vote => record.map(|record| self.vote(record)),
            // Whether answers were given that no vote counts.
            uncounted => record.is_none() && !aside,
        }
    }

    /// What an agent said: by the round's record where that counts the call, else by the call itself.
    fn said(&self, call: &'a CallLine, counted: Option<(&'a RoundLine, usize)>) -> Head<'a> {
        // One that could not be read counts as 0 and was not stated.
        let Remarks { notes } = call.record.read();
        let is_zero = call.record.confidence() == Some(0.0);
        let is_unread = call.parse == Parse::Unread || notes.contains(&Note::AnswerFromText);
        let is_stated = !(notes.contains(&Note::ConfidenceNotNumeric) || is_zero && is_unread);
        let counts = |values: fn(&RoundLine) -> &Vec<f64>| {
            let (record, place) = counted?;
            values(record).get(place).map(f64::to_string)
        };
        let stated = call.record.confidence().map(|share| share.to_string());
        let stated = counts(|record| &record.confidences).or(stated).unwrap_or_default();
        let confidence = if is_stated { stated } else { "not stated".to_owned() };
        let written = call.record.answer();
        let answer = counted.and_then(|(record, place)| record.answers.get(place).cloned());
        let answer = answer.unwrap_or_else(|| written.to_owned());
        let before = counted.and_then(|(record, place)| before(self.last, record, place));
        let known = self.options.iter().any(|(letter, _)| *letter == answer);
        Head {
            expected: call.stage != Stage::Aside,
            verdict: Correctness::of(&answer, self.gold),
            beyond: !answer.is_empty() && !self.options.is_empty() && !known,
            before: before.filter(|before| *before != answer),
            as_written: Some(written).filter(|written| *written != answer && !written.is_empty()),
            words: answer,
            confidence,
            weight: counts(|record| &record.weights),
        }
    }

    /// A vote for every option, then for every answer beyond them. Weights add up as whole thousandths, as the system adds them.
    fn vote(&self, record: &RoundLine) -> Vec<Value> {
        let mut candidates = self.options.clone();
        for answer in record.answers.iter().filter(|answer| !answer.is_empty()) {
            if !candidates.iter().any(|(letter, _)| letter == answer) {
                candidates.push((answer.clone(), ""));
            }
        }
        let parts = |weight: &f64| (weight * f64::from(WHOLE)).round() as i64;
        let total: i64 = record.weights.iter().map(parts).sum();
        let vote = |(letter, text): (String, &'a str)| {
            let answers = record.answers.iter().zip(&record.weights).enumerate();
            let supporting = || answers.clone().filter(|(_, (answer, _))| **answer == letter);
            let sum: i64 = supporting().map(|(_, (_, weight))| parts(weight)).sum();
            let agent = |place: usize| record.agents.get(place).map_or("?", String::as_str);
            let supporters = supporting().map(|(place, _)| Value::from(agent(place)));
            context! {
                text,
                weight => spell(sum),
                // Of all weights.
                percent => if total > 0 { sum * 100 / total } else { 0 },
                supporters => supporters.collect::<Vec<_>>(),
                winner => letter == record.aggregate,
                gold => self.gold == Some(letter.as_str()),
                letter,
            }
        };
        candidates.into_iter().map(vote).collect()
    }
}

/// With one decimal, and with as many more as it has.
fn spell(sum: i64) -> String {
    let sum = sum as f64 / f64::from(WHOLE);
    let tenths = format!("{sum:.1}");
    if tenths.parse() == Ok(sum) { tenths } else { sum.to_string() }
}

/// Letters and texts; none where the item's text is missing.
pub fn options(text: Option<&Item>) -> Vec<(String, &str)> {
    match text {
        Some(Item::Question(text)) => {
            let options = text.options.iter();
            options.map(|one| (one.letter.to_string(), one.text.as_str())).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Stage;
    use crate::systems::vote::round_line;

    fn round(number: u32, answers: &[&str]) -> RoundLine {
        let agents = answers.iter().map(|_| "a".to_owned()).collect();
        let answers = answers.iter().map(|answer| (*answer).to_owned()).collect();
        round_line(number, Stage::Round, agents, answers, String::new())
    }

    #[test]
    fn a_last_round_in_which_nobody_could_be_read_says_that_earlier_votes_do_not_count() {
        let told = |rounds: Vec<RoundLine>, answer: &str| {
            let item = AnswerLine { rounds, answer: answer.to_owned(), ..AnswerLine::default() };
            own(&item).outcome.len() > 1
        };
        assert!(told(vec![round(0, &["D", "D", "E"]), round(1, &["", "", ""])], ""));
        assert!(!told(vec![round(0, &["D", "D", "E"]), round(1, &["", "D", ""])], "D"));
        assert!(!told(vec![round(0, &["D", "D", "E"]), round(1, &["", "", ""])], "D"));
        assert!(!told(vec![round(0, &["", "", ""]), round(1, &["", "", ""])], ""));
        assert!(!told(vec![round(0, &["", "", ""])], "") && !told(vec![], ""));
    }
}

#[cfg(test)]
mod answers_tests {
    use super::*;
    use crate::report::tests::fixtures::round;
    use serde_json::json;

    fn agents(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn weights_add_up_exactly_and_answers_beyond_the_options_come_last() {
        let answers = Answers {
            options: ["A", "B"].map(|letter| (letter.to_owned(), "x")).to_vec(),
            gold: Some("A"),
            last: None,
        };
        let mut record = round(0, ["B", "J", "B"]);
        record.weights = vec![0.1, 0.7, 0.2];
        let votes = |record: &RoundLine| serde_json::to_value(answers.vote(record)).unwrap();
        let found = votes(&record);
        for (place, summary) in
            [json!(["A", "0.0", 0]), json!(["B", "0.3", 30]), json!(["J", "0.7", 70])]
                .iter()
                .enumerate()
        {
            let vote = &found[place];
            assert_eq!(json!([vote["letter"], vote["weight"], vote["percent"]]), *summary);
        }
        assert_eq!(found.as_array().unwrap().len(), 3);
        assert_eq!(found[1]["supporters"], json!(["sym", "guide"]));
        assert_eq!([&found[0]["gold"], &found[1]["winner"]], [&json!(true); 2]);
        record.agents = agents(&["solo"; 3]);
        assert_eq!(votes(&record)[1]["supporters"], json!(["solo", "solo"]));
    }
}
