//! `--dry-run`: calls, tokens, memory and time of what would run, and what is missing. Nothing is fetched, and no weights are loaded.

use std::path::Path;

use super::options::ScorerFlags;
use super::summary::{self, count};
use crate::bench::environment::BUFFER_BYTES;
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::exemplars::ExemplarSets;
use crate::experiment::forecast::{file, is_there, reply_tokens, weight_bytes};
use crate::experiment::hardware::Hardware;
use crate::experiment::recipe::Recipe;
use crate::experiment::recipe::run::RecipeRun;
use crate::experiment::spec::Spec;
use crate::model::available_memory;
use crate::ops::{Limits, Quantisation};
use crate::panel::memory::{DEFAULT_BATCH, gibibytes};

/// A run, and what it is called.
pub struct Planned {
    pub label: String,
    pub spec: Spec,
}

/// Every cell of a recipe.
pub fn planned(recipe: &RecipeRun) -> Result<Vec<Planned>, Failure> {
    let planned = recipe.manifest.recipe.cells().zip(recipe.specs()?);
    Ok(planned.map(|(cell, spec)| Planned { label: cell.title(), spec }).collect())
}

/// Tells what a recipe would take.
pub fn announce(recipe: &RecipeRun, scorers: &ScorerFlags) -> Result<(), Failure> {
    let Recipe { title, decoding, .. } = &recipe.manifest.recipe;
    console::say(format!("recipe     {title}, {} text", decoding.adjective()))?;
    let mut outlook = Outlook::of(&planned(recipe)?)?;
    if scorers.keywords.is_none() {
        let absent = recipe.manifest.keyword_files().into_iter().filter(|file| !file.is_file());
        let without = "; without it KPCS takes the words that gold corrections change";
        outlook.optional.extend(absent.map(|path| file(&path) + without));
    }
    // What cannot be resolved is told as it would be by the run itself.
    if outlook.is_whole() {
        let local = RecipeRun { hub: recipe.hub.local(), ..recipe.clone() };
        summary::tell_memory(&local.resolve()?.models)?;
    }
    outlook.tell()
}

/// What is known of one model on this machine.
struct Model {
    name: String,
    is_here: bool,
    /// Bytes of its weights as published, two each.
    weights: Option<u64>,
    prompt_tokens: u64,
    reply_tokens: u64,
}

/// All runs together, which share a machine.
#[derive(Default)]
pub struct Outlook {
    hardware: Hardware,
    /// Whether missing models can be fetched.
    fetches: bool,
    lines: Vec<String>,
    models: Vec<Model>,
    /// Besides models, each once.
    missing: Vec<String>,
    /// What it would start without.
    optional: Vec<String>,
}

impl Outlook {
    pub fn of(runs: &[Planned]) -> Result<Outlook, Failure> {
        let mut outlook = Outlook::default();
        let mut sets = ExemplarSets::default();
        let (mut calls, mut prompt_tokens, mut replies) = (0, 0, 0);
        for Planned { label, spec } in runs {
            outlook.hardware = spec.hardware.clone();
            outlook.fetches = spec.hub.fetch_refusal().is_none();
            let is_readable = is_there(&spec.data)
                && spec.exemplars.as_ref().is_none_or(|exemplars| is_there(&exemplars.notes))
                && (spec.exemplars.is_some() || !spec.config.entry.exemplars);
            let inputs = is_readable.then(|| spec.read_with(&mut sets)).transpose();
            // Of several it says which.
            let inputs = inputs.map_err(|error| match runs {
                [_] => error,
                _ => error.about(label),
            })?;
            let forecast = spec.forecast(inputs.as_ref())?;
            let seats = spec.slot_models()?;
            for (name, directory) in spec.local_models()? {
                let own = seats.iter().filter(|seat| ***seat == name).count() as u64;
                let model = outlook.model(name, directory.as_deref());
                model.prompt_tokens += forecast.prompt_tokens * own / seats.len() as u64;
                model.reply_tokens += forecast.reply_tokens * own / seats.len() as u64;
            }
            for one in spec.missing() {
                if !outlook.missing.contains(&one) {
                    outlook.missing.push(one);
                }
            }
            let items = match forecast.items {
                Some(items) => count(items, "item"),
                None => "an unknown number of items, here as one".to_owned(),
            };
            outlook.lines.push(format!(
                "cell       {label}: {items}, {}, at most {} calls of some {} tokens",
                count(spec.runs as usize, "run"),
                forecast.calls,
                reply_tokens(&spec.config),
            ));
            calls += forecast.calls;
            prompt_tokens += forecast.prompt_tokens;
            replies += forecast.reply_tokens;
        }
        let shared = if runs.len() > 1 { ", less what cells share" } else { "" };
        outlook.lines.push(format!("calls      at most {calls}{shared}"));
        outlook.lines.push(format!(
            "tokens     some {} of prompts and {} of replies: an estimate, by four characters a token and the usual length of each system's replies",
            millions(prompt_tokens),
            millions(replies),
        ));
        Ok(outlook)
    }

    fn model(&mut self, name: String, directory: Option<&Path>) -> &mut Model {
        let known = self.models.iter().position(|model| model.name == name);
        let place = known.unwrap_or_else(|| {
            let (weights, is_here) = (weight_bytes(&name, directory), directory.is_some());
            self.models.push(Model { name, is_here, weights, prompt_tokens: 0, reply_tokens: 0 });
            self.models.len() - 1
        });
        &mut self.models[place]
    }

    /// Whether everything is on this machine.
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.models.iter().all(|model| model.is_here)
    }

    fn batch(&self) -> usize {
        self.hardware.max_batch.unwrap_or(DEFAULT_BATCH).max(1)
    }

    /// What is told of it; `limits` are the machine's, where a model runs on it.
    fn told(&self, limits: Option<&Limits>) -> Vec<String> {
        let mut lines = self.lines.clone();
        for Model { name, weights, .. } in &self.models {
            let weights = weights.map_or("an unknown size".to_owned(), |bytes| {
                gibibytes(stored(bytes, self.hardware.compute.quant))
            });
            lines.push(format!(
                "memory     {name}: {weights} of weights, and what its KV cache is given"
            ));
        }
        if !self.models.is_empty() {
            lines.push(format!("memory     {} free", gibibytes(available_memory())));
        }
        lines.push(match limits.map(|limits| self.seconds(limits)) {
            None => "time       the endpoints' own: no model runs on this machine".to_owned(),
            Some(None) => "time       unknown: the size of a model is not known".to_owned(),
            Some(Some(seconds)) => format!(
                "time       some {} for these tokens on this machine, by its measured limits, {} at once, without what prompts share",
                spell(seconds),
                count(self.batch(), "sequence"),
            ),
        });
        for Model { name, weights, .. } in self.models.iter().filter(|model| !model.is_here) {
            let size = weights.map_or(String::new(), |bytes| {
                let gigabytes = bytes as f64 / 1e9;
                format!(
                    ": {gigabytes:.1} GB, fetched when it runs, or by `wardround models fetch {name}`"
                )
            });
            lines.push(format!("missing    the model {name}{size}"));
        }
        let all = self.missing.iter().chain(&self.optional);
        lines.extend(all.map(|one| format!("missing    {one}")));
        lines
    }

    /// One model after another: weights are read once for each step of a batch, and every token is multiplied with them.
    fn seconds(&self, limits: &Limits) -> Option<f64> {
        let rate = limits.bf16_multiply_adds_per_second;
        let rate = rate.unwrap_or(limits.f32_multiply_adds_per_second);
        let of_model = |model: &Model| {
            let published = model.weights?;
            let bytes = stored(published, self.hardware.compute.quant) as f64;
            let steps = model.reply_tokens as f64 / self.batch() as f64;
            let tokens = (model.prompt_tokens + model.reply_tokens) as f64;
            Some(steps * bytes / limits.bytes_per_second + tokens * published as f64 / 2.0 / rate)
        };
        self.models.iter().map(of_model).sum()
    }

    /// Measures the machine, and prints all of it.
    pub fn tell(&self) -> Result<(), Failure> {
        let limits = match self.models.is_empty() {
            true => None,
            false => {
                let devices = self.hardware.compute.devices()?;
                let bytes = BUFFER_BYTES.min(available_memory() / 4);
                devices.first().map(|device| device.measure_limits(bytes)).transpose()?
            }
        };
        self.told(limits.as_ref()).into_iter().try_for_each(console::say)?;
        let lacking = self.models.iter().filter(|model| !model.is_here).count();
        // Models are fetched when it runs, where they may be.
        match self.missing.len() + if self.fetches { 0 } else { lacking } {
            0 => Ok(()),
            things => Err(Failure::missing(
                format!(
                    "{} {} missing, so it would not start",
                    count(things, "thing"),
                    if things == 1 { "is" } else { "are" }
                ),
                "the lines that begin with `missing` say what brings each",
            )),
        }
    }
}

/// Bytes of weights that were published in two bytes each.
fn stored(bytes: u64, quantisation: Quantisation) -> usize {
    let bits = match quantisation {
        Quantisation::None => 16.0,
        Quantisation::Q8_0 => 8.5,
        Quantisation::Int8 => 8.0,
        // Of models of some four billion weights, whose token tables have eight bits.
        Quantisation::Q4K => 5.1,
    };
    (bytes as f64 * bits / 16.0) as usize
}

fn millions(tokens: u64) -> String {
    match tokens {
        0..100_000 => tokens.to_string(),
        _ => format!("{:.1} million", tokens as f64 / 1e6),
    }
}

fn spell(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{seconds:.0} seconds"),
        ..5400.0 => format!("{:.0} minutes", seconds / 60.0),
        ..172_800.0 => format!("{:.1} hours", seconds / 3600.0),
        _ => format!("{:.1} days", seconds / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::recipe::RecipeVerb;
    use super::*;
    use crate::experiment::recipe::built_in::names;
    use crate::hub::{Environment, HubOptions};

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        verb: RecipeVerb,
    }

    /// Of a user's machine with nothing on it: no data, no models, no network.
    #[test]
    fn every_recipe_says_what_it_would_take_and_what_is_missing() {
        let empty = tempfile::tempdir().unwrap();
        let limits = Limits {
            bytes_per_second: 1e11,
            f32_multiply_adds_per_second: 1e12,
            bf16_multiply_adds_per_second: None,
            i8_multiply_adds_per_second: None,
        };
        let mut environment = Environment::capture().unwrap();
        environment.cache = Some(empty.path().join("hub"));
        environment.offline = None;
        let hub = HubOptions::new(environment);
        for name in names() {
            let recipe = Recipe::find(name).unwrap();
            let names_endpoints = recipe.panel.iter().all(|model| model.starts_with("openai:"));
            let data = empty.path().display().to_string();
            let verb = Only::parse_from(["recipe", name, "--data-dir", &data]).verb;
            let run = RecipeRun { hub: hub.clone(), ..verb.recipe().unwrap() };
            let runs = planned(&run).unwrap();
            let outlook = Outlook::of(&runs).unwrap();
            let told = outlook.told(Some(&limits)).join("\n");
            for word in ["calls      at most ", "tokens     some ", "time       "] {
                assert!(told.contains(word), "{name}: {told}");
            }
            assert!(
                !told.contains("unknown size") && !told.contains("time       unknown"),
                "{told}"
            );
            assert!(told.contains(": `wardround data fetch "), "{name}: {told}");
            let fetches = told.contains("fetched when it runs") && told.contains("GiB of weights");
            assert_eq!(fetches, !names_endpoints, "{name}: {told}");
            if name.starts_with("medreact-") {
                assert!(told.contains("missing    a corpus to search"), "{name}: {told}");
            }
            let left = std::fs::read_dir(empty.path()).unwrap().count();
            assert_eq!(left, 0, "{name}: something was fetched");
        }
    }

    /// A record of MED-MAD has 700 to 1,500 tokens: 200 would be a fifth of what it takes.
    #[test]
    fn a_call_of_med_mad_is_counted_as_eleven_hundred_tokens() {
        let empty = tempfile::tempdir().unwrap();
        let data = empty.path().display().to_string();
        let verb = Only::parse_from(["recipe", "table4", "--data-dir", &data]).verb;
        let runs = planned(&verb.recipe().unwrap()).unwrap();
        let outlook = Outlook::of(&runs).unwrap();
        // 100 questions, 3 runs; three agents answer twice, or once and debate once.
        for label in ["No-Debate Ensemble", "MED-MAD (one round)"] {
            let line = format!(
                "cell       {label} on MedQA: 100 items, 3 runs, at most 1800 calls of some 1100 tokens"
            );
            assert!(outlook.lines.contains(&line), "{line}: {:?}", outlook.lines);
        }
        let limited = ["recipe", "table4", "--data-dir", &data, "--set", "max_tokens=500"];
        let runs = planned(&Only::parse_from(limited).verb.recipe().unwrap()).unwrap();
        let outlook = Outlook::of(&runs).unwrap();
        assert!(outlook.lines[0].ends_with(" calls of some 500 tokens"), "{:?}", outlook.lines);
    }
}
