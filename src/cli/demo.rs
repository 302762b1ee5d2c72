//! `demo`: a whole run with tiny models that are made for it, or with a small real one.

mod real;
mod search;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::options::{HubFlags, QuietFlag};
use super::progress::Terminal;
use super::sandboxed::{Paths, SandboxFlag};
use super::synthetic::SyntheticModels;
use super::{interrupt, summary};
use crate::cli::exit::Failure;
use crate::console;
use crate::data::{DEMO_PATH, Format};
use crate::experiment::contents::Contents;
use crate::experiment::driver::carry_out;
use crate::experiment::spec::Spec;
use crate::record::{AnswerLine, ItemText};
use crate::synth::Shape;
use crate::systems::SystemConfig;

#[derive(Debug, Args)]
pub struct Demo {
    /// What to show: medmad, a debate on questions, or medreflex, notes checked with a small corpus
    #[arg(long, default_value = "medmad", value_parser = ["medmad", "medreflex"])]
    system: String,
    /// Let a small real model debate: SmolLM2-135M-Instruct, fetched by its card (271 MB) unless --models or the hub's cache has it
    #[arg(long, conflicts_with = "system")]
    real: bool,
    /// The run directory [default: wardround-demo, or the next free name]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    models: SyntheticModels,
    #[command(flatten)]
    hub: HubFlags,
    #[command(flatten)]
    sandbox: SandboxFlag,
    #[command(flatten)]
    progress: QuietFlag,
}

impl Demo {
    pub fn run(self) -> Result<(), Failure> {
        let progress = self.progress;
        let out = self.out.clone().unwrap_or_else(free_name);
        if self.real {
            return self.run_real(&out);
        }
        // The models are made inside the sandbox too: it writes only their files and those of the run.
        let paths = Paths::default().write(&self.models.root())?.write(&out)?;
        let sandbox = paths.enter(self.sandbox, "cpu", progress.quiet)?;
        if self.system == "medreflex" {
            return search::run(&self.models, &out, sandbox, progress);
        }
        let panel = self.models.panel(Shape::Tiny, progress)?;
        let config = SystemConfig::parse("medmad", &["record_chars=32"])?;
        let mut spec = Spec::new(config, DEMO_PATH, Format::Mcq)?;
        spec.panel = panel;
        spec.hub = spec.hub.local();
        let contents = execute(spec, &out, sandbox, progress)?;
        if let Some(item) =
            contents.answers().into_values().max_by_key(|item| (item.rounds_run, &item.item))
        {
            print_debate(item, contents.texts.get(&item.item))?;
        }
        console::say("")?;
        Ok(console::say(
            "The three models have random weights: what they say is noise, how they are run is not.",
        )?)
    }
}

impl Demo {
    fn run_real(self, out: &Path) -> Result<(), Failure> {
        let progress = self.progress;
        let config = SystemConfig::parse("medmad", &real::SETTINGS)?;
        let mut spec = Spec::new(config, DEMO_PATH, Format::Mcq)?;
        real::choose(&mut spec, &self.models, self.hub, progress)?;
        let paths = Paths::default().run(&spec)?.write(out)?;
        let sandbox = paths.enter(self.sandbox, "cpu", progress.quiet)?;
        let contents = execute(spec, out, sandbox, progress)?;
        if let Some(item) = real::best_read(&contents) {
            print_debate(item, contents.texts.get(&item.item))?;
            real::print_replies(item, &contents)?;
        }
        console::say("")?;
        Ok(console::say(real::LAST)?)
    }
}

/// Runs `spec` into `out`, and prints the summary.
fn execute(
    spec: Spec,
    out: &Path,
    sandbox: Option<String>,
    progress: QuietFlag,
) -> Result<Contents, Failure> {
    let inputs = spec.read()?;
    let models = spec.describe_models()?;
    let mut run = spec.resolve(inputs, &models)?;
    run.plan.host.sandbox = sandbox;
    let observer = Arc::new(Terminal::new(progress.quiet, None));
    let executed = carry_out(run, models, out, observer, interrupt::watch())?;
    summary::finish(&executed)?;
    Ok(executed.contents)
}

/// Prints one debate, round by round.
fn print_debate(item: &AnswerLine, text: Option<&ItemText>) -> std::io::Result<()> {
    console::say(format!("\nThe debate on {}", item.item))?;
    if let Some(ItemText::Question(text)) = text {
        for line in text.question.lines() {
            console::say(format!("    {line}"))?;
        }
        for (letter, option) in &text.options {
            console::say(format!("    {letter}: {option}"))?;
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
    console::say(format!("  the team says {}; the right answer is {gold}", item.answer))
}

fn free_name() -> PathBuf {
    let name = |number: u32| {
        PathBuf::from(match number {
            1 => "wardround-demo".to_owned(),
            more => format!("wardround-demo-{more}"),
        })
    };
    (1..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(1))
}
