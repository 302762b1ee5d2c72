//! `demo`: the whole way at once, with models made on the spot.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::options::{ComputeFlags, MachineFlags, RemoteFlags};
use super::order::{Order, Share};
use super::workplace::Workplace;
use super::{interrupt, synthetic};
use crate::cli::exit::Failure;
use crate::console;
use crate::data::subset::Subset;
use crate::data::{DEMO_PATH, Format};
use crate::experiment::contents::Contents;
use crate::experiment::directory::{Directory, Finished};
use crate::hub::{Environment, HubOptions};
use crate::model::WantedType;
use crate::ops::Quantisation;
use crate::record::{AnswerLine, ItemText};
use crate::synth::Shape;
use crate::systems::SystemConfig;

#[derive(Debug, Args)]
pub struct Demo {
    /// The run directory [default: wardround-demo, or the next free name]
    #[arg(long, env = "WARDROUND_OUT", value_name = "DIR")]
    out: Option<PathBuf>,
    /// Where the synthetic models are kept [default: the user's cache]
    #[arg(long, env = "WARDROUND_DEMO_MODELS", value_name = "DIR")]
    models: Option<PathBuf>,
    /// Write no progress to stderr
    #[arg(long, env = "WARDROUND_QUIET")]
    quiet: bool,
}

impl Demo {
    pub fn run(self) -> Result<(), Failure> {
        let models = self.models.unwrap_or_else(synthetic::cache_directory);
        let panel = synthetic::panel(&models, Shape::Tiny, self.quiet)?;
        let out = self.out.unwrap_or_else(free_name);
        let mut hub = HubOptions::new(Environment::capture()?);
        hub.offline = true;
        let order = Order {
            data: DEMO_PATH.into(),
            format: Format::Mcq,
            subset: Subset::All,
            share: Share::All,
            runs: 1,
            panel,
            slots: BTreeMap::new(),
            protocol: SystemConfig::parse("medmad", &["record_chars=32"])?,
            seed: 42,
            free: false,
            prompts: None,
            machine: MachineFlags {
                compute: ComputeFlags {
                    device: "cpu".to_owned(),
                    dtype: WantedType::Auto,
                    quant: Quantisation::None,
                    fast: false,
                    threads: None,
                },
                max_batch: None,
                draft: None,
                context: None,
                kv_tokens: None,
                kv_fraction: None,
                remote: RemoteFlags::default(),
            },
            max_in_flight: None,
            hub,
        };
        let inputs = order.read()?;
        let crew = order.crew()?;
        let prepared = order.prepare(inputs, &crew)?;
        let directory = Directory::create(&out, &prepared.plan, &prepared.texts)?;
        let workplace = Workplace {
            crew: crew.start()?,
            stop: interrupt::watch(),
            shared: Arc::default(),
            quiet: self.quiet,
        };
        workplace.run(prepared, (directory, Finished::default()), &out)?;
        let contents = Contents::read(&out)?;
        if let Some(item) = contents
            .answers()
            .into_values()
            .max_by_key(|item| (item.rounds_run, &item.item))
        {
            tell_debate(item, contents.texts.get(&item.item))?;
        }
        console::say("")?;
        Ok(console::say(
            "The three models have random weights: what they say is noise, how they are run is not.",
        )?)
    }
}

/// One debate, round by round.
fn tell_debate(item: &AnswerLine, text: Option<&ItemText>) -> std::io::Result<()> {
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
            let answer = if answer.is_empty() {
                "no answer"
            } else {
                answer
            };
            console::say(format!(
                "    {agent:6} says {answer}, confidence {}, weight {}",
                round.confidences[index], round.weights[index]
            ))?;
        }
        console::say(format!("    the vote: {}", round.aggregate))?;
    }
    let gold = item.gold.as_deref().unwrap_or("not given");
    console::say(format!(
        "  the team says {}; the right answer is {gold}",
        item.answer
    ))
}

fn free_name() -> PathBuf {
    let name = |number: u32| {
        PathBuf::from(match number {
            1 => "wardround-demo".to_owned(),
            more => format!("wardround-demo-{more}"),
        })
    };
    (1..)
        .map(name)
        .find(|path| !path.exists())
        .unwrap_or_else(|| name(1))
}
