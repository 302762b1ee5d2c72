//! `demo`: a whole run with tiny models that are made for it, or with a small real one.

use std::path::{Path, PathBuf};

use clap::Args;

use super::options::{ExecutionFlags, QuietFlag};
use super::sandboxed::Paths;
use super::summary;
use crate::cli::exit::{Failure, on_interrupt};
use crate::console;
use crate::data::{Choice, DEMO_PATH, Format, Item};
use crate::experiment::contents::Contents;
use crate::experiment::driver::execute;
use crate::experiment::spec::Spec;
use crate::model::Family;
use crate::record::AnswerLine;
use crate::synth::{Recipe, Shape, write_checkpoint};
use crate::systems::SystemConfig;
use crate::text::ellipsis;

/// Must change whenever a synthetic model of the same seed changes.
const MODELS: &str = "1";
/// Of noise the record is short; of the real model it is what a small one can fill in, in one round.
const NOISE: &[&str] = &["record_chars=32"];
const REAL: &[&str] = &["t_max=1", "record=short", "record_chars=60", "max_tokens=200"];
/// Characters of a reply that the terminal shows.
const SHOWN: usize = 240;

#[derive(Debug, Args)]
pub struct Demo {
    /// Let a small real model play all three doctors: SmolLM2-135M-Instruct, fetched by its card (271 MB) unless it is there, or another
    #[arg(long, value_name = "MODEL", num_args = 0..=1, default_missing_value = "smollm2-135m")]
    real: Option<String>,
    /// The run directory [default: wardround-demo, or the next free name]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    execution: ExecutionFlags,
}

impl Demo {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        let out = self.out.clone().unwrap_or_else(free_name);
        let spec = match &self.real {
            Some(model) => {
                let spec = self.debate(vec![model.clone()])?;
                given.run(&spec)?.write(&out)?.enter()?;
                spec
            }
            // The models are made inside too.
            None => {
                let cache = cache();
                given.write(&cache)?.write(&out)?.enter()?;
                self.debate(synthetic(&cache, self.execution.progress)?)?
            }
        };
        self.execution.progress.loading(std::slice::from_ref(&spec))?;
        let executed = execute(spec, &out, self.execution.observer(), on_interrupt())?;
        summary::finish(&executed)?;
        print_debate(&executed.contents, self.real.is_some())?;
        Ok(console::say(match self.real {
            Some(_) => {
                "\nOne small model played all three doctors, with the records that small models can fill in (--set record=short): it writes as models write and knows no medicine."
            }
            None => {
                "\nThe three models have random weights: what they say is noise, how they are run is not."
            }
        })?)
    }

    fn debate(&self, panel: Vec<String>) -> Result<Spec, Failure> {
        let config = SystemConfig::parse("medmad", if self.real.is_some() { REAL } else { NOISE })?;
        let mut spec = Spec::new(config, DEMO_PATH, Format::Mcq)?;
        spec.panel = panel;
        spec.hub = self.execution.hub_options()?;
        Ok(spec)
    }
}

/// Tiny models, one for each doctor, made in a directory where they are not there, in the order of the default panel.
fn synthetic(directory: &Path, progress: QuietFlag) -> Result<Vec<String>, Failure> {
    let models = [Family::Gemma3, Family::Llama, Family::Qwen3].into_iter().map(|family| {
        let model = directory.join(format!("tiny-{}", family.name()));
        if !model.join("config.json").is_file() {
            progress.note(format!("making {}", model.display()));
            let recipe = Recipe { family, shape: Shape::Tiny, seed: 1, tokenizer: None };
            write_checkpoint(&recipe, &model)?;
        }
        Ok(model.display().to_string())
    });
    models.collect()
}

/// The directory in the user's cache that has them.
fn cache() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    let name = format!("wardround/synthetic-{}-{MODELS}", env!("CARGO_PKG_VERSION"));
    cache.unwrap_or_else(std::env::temp_dir).join(name)
}

/// Prints, round by round, the debate with the most replies that could be read; `is_whole`: with what the doctors wrote.
fn print_debate(contents: &Contents, is_whole: bool) -> std::io::Result<()> {
    let read = |item: &AnswerLine| {
        let answers = item.rounds.iter().flat_map(|round| &round.answers);
        answers.filter(|answer| !answer.is_empty()).count()
    };
    let items = contents.answers().into_values();
    let Some(item) = items.max_by_key(|item| (read(item), &item.item)) else { return Ok(()) };
    console::say(format!("\nThe debate on {}", item.item))?;
    if let Some(Item::Question(text)) = contents.texts.get(&item.item) {
        for line in text.question.lines() {
            console::say(format!("    {line}"))?;
        }
        for Choice { letter, text } in &text.options {
            console::say(format!("    {letter}: {text}"))?;
        }
    }
    for round in &item.rounds {
        console::say(format!("  round {}", round.round))?;
        for (index, (agent, answer)) in round.agents.iter().zip(&round.answers).enumerate() {
            let answer = if answer.is_empty() { "no answer" } else { answer };
            console::say(format!(
                "    {agent:6} says {answer}, confidence {}, weight {}",
                round.confidences[index], round.weights[index]
            ))?;
        }
        console::say(format!("    the vote: {}", round.aggregate))?;
    }
    let gold = item.gold.as_deref().unwrap_or("not given");
    console::say(format!("  the team says {}; the right answer is {gold}", item.answer))?;
    let calls = contents.calls.records.iter();
    for call in calls.filter(|call| is_whole && call.item == item.item) {
        let text = Vec::from_iter(call.text.split_whitespace()).join(" ");
        let (agent, round, text) = (&call.agent, call.round, ellipsis(&text, SHOWN));
        console::say(format!("    {agent:6} wrote in round {round}: {text}"))?;
    }
    Ok(())
}

fn free_name() -> PathBuf {
    let next = (2..).map(|number: u32| format!("wardround-demo-{number}"));
    let mut names = std::iter::once("wardround-demo".to_owned()).chain(next).map(PathBuf::from);
    names.find(|path| !path.exists()).unwrap_or_default()
}
