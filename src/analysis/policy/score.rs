//! How sure an outcome is: a number of the log alone, that a policy compares with its threshold.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::analysis::notes::has_error;
use crate::record::{AnswerLine, CallLine, ItemLine, NoteLine};

/// What sureness is measured by. It is chosen before the cases are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Score {
    /// The share of the last round's answers that are the outcome; of a note, of the opinions on whether there is an error
    #[default]
    Agreement,
    /// The share of the last vote's weights that the answer has; of questions alone
    Weight,
    /// The confidence that the agents state
    Confidence,
}

/// Why nobody may act upon an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "because")]
pub enum Because {
    /// The case ended with an error.
    Failed,
    /// There is no answer, or none that could be read.
    NoAnswer,
    /// The system says that the note has an error: a person looks at it.
    ErrorFound,
    /// The outcome has no such score.
    NoScore,
    Unsure {
        score: f64,
        threshold: f64,
    },
    /// Recent scores are not distributed as those of the calibration.
    Shifted,
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Because::Failed => f.write_str("the case ended with an error"),
            Because::NoAnswer => f.write_str("there is no answer that could be read"),
            Because::ErrorFound => f.write_str("an error was found in the note"),
            Because::NoScore => f.write_str("the outcome has no score of this kind"),
            Because::Unsure { score, threshold } => {
                write!(f, "its score of {score:.3} is below the threshold of {threshold:.3}")
            }
            Because::Shifted => f.write_str(
                "the scores of recent cases are not distributed as those of the calibration",
            ),
        }
    }
}

impl Score {
    /// The score of an outcome that one could act upon: of a question its answer, of a note that it has no error. `calls` are the note's.
    ///
    /// # Errors
    /// Why one cannot.
    pub fn of(self, line: &ItemLine, calls: &[CallLine]) -> Result<f64, Because> {
        if line.error().is_some() {
            return Err(Because::Failed);
        }
        let score = match line {
            ItemLine::Answer(line) if line.answer.is_empty() => return Err(Because::NoAnswer),
            ItemLine::Answer(line) => self.of_answer(line),
            ItemLine::Note(line) => match has_error(line, calls) {
                None => return Err(Because::NoAnswer),
                Some(true) => return Err(Because::ErrorFound),
                Some(false) => self.of_note(line),
            },
        };
        score.filter(|score| score.is_finite()).ok_or(Because::NoScore)
    }

    fn of_answer(self, line: &AnswerLine) -> Option<f64> {
        let (last, letter) = (line.rounds.last(), line.letter());
        match self {
            Score::Agreement => {
                let answers = &last?.answers;
                share(answers.iter().map(|answer| (*answer == letter, 1.0)))
            }
            Score::Weight => {
                let last = last.filter(|last| last.weights.len() == last.answers.len())?;
                let weights = last.answers.iter().zip(&last.weights);
                share(weights.map(|(answer, weight)| (*answer == letter, *weight)))
            }
            Score::Confidence => line.stated_confidence(),
        }
    }

    fn of_note(self, line: &NoteLine) -> Option<f64> {
        match self {
            Score::Agreement => {
                let flags = &line.detection.as_ref()?.flags;
                share(flags.iter().map(|flag| (*flag == line.flag.said(), 1.0)))
            }
            Score::Weight => None,
            Score::Confidence => line.stated_confidence(),
        }
    }
}

impl fmt::Display for Score {
    /// As policies write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The share of the weights that count; `None` of nothing.
fn share(weights: impl Iterator<Item = (bool, f64)>) -> Option<f64> {
    let (mut counted, mut all) = (0.0, 0.0);
    for (counts, weight) in weights {
        counted += if counts { weight } else { 0.0 };
        all += weight;
    }
    (all > 0.0).then(|| counted / all)
}
