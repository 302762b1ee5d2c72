//! What a file has twice and should not: a question, with another right answer each, of which one must be wrong; an option of a question.

use std::collections::HashMap;

use super::error::shortened;
use super::{Item, Question, notice};

/// How many questions have as their answer what an equal one offers and does not have, and the first two.
pub(super) fn contradictions(items: &[Item]) -> Option<String> {
    let mut earlier: HashMap<(String, String), &Question> = HashMap::new();
    let mut found: Vec<[&str; 2]> = Vec::new();
    let questions: Vec<&Question> = items.iter().filter_map(Item::question).collect();
    for question in &questions {
        let Some(gold) = question.gold.and_then(|gold| question.option(gold)).map(plain) else {
            continue;
        };
        let asked = plain(&question.question) + question.image.as_deref().unwrap_or_default();
        let is_other = |option: &&String| **option != gold;
        let options: Vec<String> = question.options.iter().map(|one| plain(&one.text)).collect();
        let offers = |other: &&&Question| other.options.iter().any(|one| plain(&one.text) == gold);
        let others = options.iter().filter(is_other);
        let mut others = others.filter_map(|option| earlier.get(&(asked.clone(), option.clone())));
        if let Some(other) = others.find(offers) {
            found.push([&other.id, &question.id]);
        }
        earlier.entry((asked, gold)).or_insert(question);
    }
    let [one, other] = found.first()?;
    let (one, other) = (shortened(one), shortened(other));
    notice(
        &format!(
            "questions that come again with another right answer, the first {one} and {other}"
        ),
        found.len(),
        questions.len(),
    )
}

/// How many questions have an option of theirs twice, and the first of them.
pub(super) fn options(items: &[Item]) -> Option<String> {
    let questions: Vec<&Question> = items.iter().filter_map(Item::question).collect();
    let is_twice = |question: &&&Question| {
        let mut options = question.options.iter().enumerate();
        options.any(|(at, one)| question.options[..at].iter().any(|other| other.reads_as(one)))
    };
    let found: Vec<&&Question> = questions.iter().filter(is_twice).collect();
    let what = format!(
        "questions with an option that stands twice, either letter of which counts, the first {}",
        shortened(&found.first()?.id)
    );
    notice(&what, found.len(), questions.len())
}

/// In lower case, with single blanks.
fn plain(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Choice;

    fn item(id: &str, asked: &str, options: [&str; 2], gold: char) -> Item {
        let options = ('A'..).zip(options);
        let options = options.map(|(letter, text)| Choice { letter, text: text.to_owned() });
        Item::from(Question {
            id: id.to_owned(),
            question: asked.to_owned(),
            options: options.collect(),
            gold: Some(gold),
            ..Question::default()
        })
    }

    #[test]
    fn options_that_stand_twice_are_told() {
        let items = [
            item("1", "Which?", ["Mg", "mg"], 'A'),
            item("2", "Which?", [" iron\nsalts", "iron salts"], 'B'),
        ];
        assert_eq!(options(&items[..1]), None);
        assert_eq!(
            options(&items).unwrap(),
            "questions with an option that stands twice, either letter of which counts, the first 2: 1 of 2"
        );
    }

    #[test]
    fn equal_questions_of_other_answers_are_named() {
        let items = [
            item("1", "Which is first?", ["Iron", "zinc"], 'A'),
            item("2", "Which is last?", ["iron", "zinc"], 'B'),
            // The same answer at another letter, and one that the first does not offer.
            item("3", "which is  first?", ["zinc", "iron"], 'B'),
            item("4", "Which is first?", ["copper", "iron"], 'A'),
            item("5", "Which is first?", ["iron ", "Zinc"], 'B'),
        ];
        assert_eq!(contradictions(&items[..4]), None);
        assert_eq!(
            contradictions(&items).unwrap(),
            "questions that come again with another right answer, the first 1 and 5: 1 of 5"
        );
    }
}
