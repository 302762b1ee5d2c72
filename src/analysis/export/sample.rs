//! One item in one run as others call it: a sample, with its conversation and its score.

use std::collections::HashMap;

use crate::analysis::outcomes::Outcomes;
use crate::experiment::contents::Contents;
use crate::experiment::error::RunError;
use crate::experiment::results::Tokens;
use crate::prompts::passages;
use crate::record::{
    CallLine, ItemLine, ItemText, Message, Parse, Says, SearchKey, SearchPlace, Stage,
};

/// An item in a run, and how it was worked on.
pub struct Sample<'a> {
    /// The number of its run, from 1.
    pub epoch: usize,
    pub line: &'a ItemLine,
    pub text: &'a ItemText,
    /// In the order of the log.
    pub calls: Vec<Call<'a>>,
}

pub struct Call<'a> {
    pub line: &'a CallLine,
    /// With the passages that they quote.
    pub messages: Vec<Message>,
}

/// Why a sample has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack<'a> {
    /// The item broke off.
    Failed(&'a str),
    /// No answer could be read.
    Unread,
}

impl Lack<'_> {
    pub fn in_words(self) -> String {
        match self {
            Lack::Failed(why) => format!("failed: {why}"),
            Lack::Unread => "unread: no answer could be read of what the models wrote".to_owned(),
        }
    }
}

impl<'a> Sample<'a> {
    /// The samples of a finished run: run by run, in the order of the plan's items.
    ///
    /// # Errors
    /// An item that has no line.
    pub fn all(contents: &'a Contents) -> Result<Vec<Sample<'a>>, RunError> {
        let mut calls: HashMap<(u32, &str), Vec<Call<'a>>> = HashMap::new();
        let searches = contents.searches.by_key();
        let template = contents.plan.corpus.as_ref().map_or("", |corpus| &corpus.passage);
        for line in &contents.calls.records {
            let mut messages = line.messages.clone();
            let found = |SearchPlace { round, step }| {
                let (dataset, item) = (line.dataset.clone(), line.item.clone());
                let key = SearchKey { dataset, run: line.run, item, round, step };
                searches.get(&key).map_or_else(String::new, |found| passages(template, found))
            };
            messages.iter_mut().for_each(|message| message.fill_in(found));
            calls.entry((line.run, &line.item)).or_default().push(Call { line, messages });
        }
        let mut samples = Vec::new();
        for (run, lines) in Outcomes::of(contents).lines.into_iter().enumerate() {
            for (item, line) in contents.plan.dataset.items.iter().zip(lines) {
                let (Some(line), Some(text)) = (line, contents.texts.get(item)) else {
                    return Err(RunError::NoItem {
                        path: contents.path.clone(),
                        item: item.clone(),
                    });
                };
                let calls = calls.remove(&(line.run(), item.as_str())).unwrap_or_default();
                samples.push(Sample { epoch: run + 1, line, text, calls });
            }
        }
        Ok(samples)
    }

    pub fn input(&self) -> &'a str {
        match self.text {
            ItemText::Question(question) => &question.question,
            ItemText::Note(note) => &note.text,
        }
    }

    /// The options of a question, in the order of their letters; `None` of one without.
    pub fn choices(&self) -> Option<Vec<&'a str>> {
        match self.text {
            ItemText::Question(question) if !question.options.is_empty() => {
                Some(question.options.values().map(String::as_str).collect())
            }
            _ => None,
        }
    }

    /// The gold letter or flag, of an open question the answer that others are held against; empty where there is none.
    pub fn target(&self) -> &'a str {
        let reference = || self.text.open()?.reference.as_deref();
        self.line.gold().or_else(reference).unwrap_or_default()
    }

    /// `None` where there is an answer.
    pub fn lack(&self) -> Option<Lack<'a>> {
        match self.line.error() {
            Some(why) => Some(Lack::Failed(why)),
            None => self.line.says().is_empty().then_some(Lack::Unread),
        }
    }

    /// What was answered; `None` where nothing was.
    pub fn answer(&self) -> Option<&'a str> {
        self.lack().is_none().then(|| self.line.says())
    }

    pub fn tokens(&self) -> Tokens {
        Tokens::of(self.calls.iter().map(|call| call.line))
    }
}

impl<'a> Call<'a> {
    /// What the reply answers about the item; `None` of one that could not be read, and of what is no answer.
    pub fn answer(&self) -> Option<&'a str> {
        if matches!(self.line.parse, Parse::Refused | Parse::Unread) {
            return None;
        }
        match self.line.record.says() {
            Says::Answer(letter) => Some(letter).filter(|letter| !letter.is_empty()),
            Says::Flag(flag, _) => flag.map(|has| if has { "error" } else { "no error" }),
            _ => None,
        }
    }

    /// Who said it, and when in the protocol.
    pub fn turn(&self) -> String {
        let CallLine { agent, round, purpose, sample, .. } = self.line;
        format!("{agent}, round {round}, {purpose}, sample {sample}")
    }

    /// Whether it decides alone.
    pub fn is_final(&self) -> bool {
        self.line.stage == Stage::Final
    }
}
