//! `selftest`: whether the models here are what they should be, and answer the same in every way that an answer may be computed.

use clap::Args;

use super::options::{HubFlags, QuietFlag};
use super::sandboxed::Paths;
use super::terminal;
use crate::analysis::table::Table;
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::hardware::Compute;
use crate::hub::{self, Card, HubError, HubOptions};
use crate::record::count;
use crate::selftest::{HEAD, Row, against, test};

#[derive(Debug, Args)]
pub struct Selftest {
    /// Models to test: cards, hub ids or directories [default: all cards whose files are in the cache]
    #[arg(long, value_name = "MODEL", num_args = 1..)]
    model: Vec<String>,
    /// Compare logits and greedy tokens with candle's, on the CPU in f32, in place of batches
    #[arg(long, value_name = "candle", value_parser = ["candle"], conflicts_with = "quant")]
    against: Option<String>,
    #[command(flatten)]
    compute: Compute,
    #[command(flatten)]
    progress: QuietFlag,
}

impl Selftest {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        let hub = HubFlags::default().options(true)?.local();
        let models = if self.model.is_empty() { cached(&hub)? } else { self.model.clone() };
        if self.against.is_some() {
            return self.compare(&models, &hub);
        }
        let mut rows: Vec<Row> = Vec::with_capacity(models.len());
        for model in &models {
            self.progress.note(format!("testing {model}"));
            let row = test(model, &self.compute, &hub)?;
            for problem in &row.problems {
                console::note(format!("{model}: {problem}"));
            }
            rows.push(row);
        }
        let mut table = Table::of("selftest", "Files, and answers alone and in batches", &rows);
        for (place, heading) in HEAD.into_iter().enumerate() {
            table = table.text(heading, |row| &row.cells[place]);
        }
        terminal::show(&[table.build()])?;
        let wrong = rows.iter().filter(|row| !row.problems.is_empty()).count();
        let message = format!("something is wrong with {wrong} of {}", count(rows.len(), "model"));
        let hint = "the lines above the table say what";
        match rows.iter().any(|row| row.is_broken) {
            true => Err(Failure::missing(message, hint)),
            false if wrong > 0 => Err(Failure::outcome(message, Some(hint.to_owned()))),
            false => Ok(()),
        }
    }

    /// A line a prompt.
    fn compare(&self, models: &[String], hub: &HubOptions) -> Result<(), Failure> {
        let mut far = 0;
        for model in models {
            self.progress.note(format!("comparing {model}"));
            for compared in against::compare(model, &self.compute, hub)? {
                console::say(compared.line)?;
                far += usize::from(!compared.is_near);
            }
        }
        match far {
            0 => Ok(()),
            _ => {
                let message = format!("other logits than candle's on {}", count(far, "prompt"));
                Err(Failure::outcome(message, None))
            }
        }
    }
}

/// The names of the cards whose files are in the cache.
fn cached(hub: &HubOptions) -> Result<Vec<String>, Failure> {
    let is_here =
        |name: &String| !matches!(hub::resolve(name, hub), Err(HubError::NotCached { .. }));
    let names = Card::all().iter().map(|card| card.name.clone());
    let models: Vec<String> = names.filter(is_here).collect();
    match models.is_empty() {
        false => Ok(models),
        true => Err(Failure::usage(
            format!("no model of a card is in {}", hub.cache()?.display()),
            "name models by --model; HF_HOME names a bundle",
        )),
    }
}
