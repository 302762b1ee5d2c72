//! `calibrate`: from finished runs whose right outcomes are known to a policy that says which outcomes may be acted upon.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::options::refuse_existing;
use crate::analysis::policy::{
    Base, Calibrated, Choice, Decided, Guarantee, Policy, Score, calibrate, decisions,
};
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::contents::Contents;
use crate::experiment::whole_file;
use crate::record::{Advice, Decision};

/// Beside a run, what a policy says of its outcomes.
const DECISIONS: &str = "decisions.jsonl";

#[derive(Debug, Args)]
pub struct Calibrate {
    /// Finished runs of one system, whose files have the right outcomes; of each the first repetition counts
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// The share of cases that may be acted upon and wrong: answers that are wrong, notes cleared that have an error
    #[arg(long, value_name = "SHARE", value_parser = share)]
    risk: f64,
    /// The probability with which the guarantee may be false, for calibration cases are a sample
    #[arg(long, value_name = "SHARE", default_value = "0.1", value_parser = share)]
    delta: f64,
    /// What it is a share of
    #[arg(long, value_enum, default_value_t)]
    of: Base,
    /// How sure an outcome is; choose it before you look at the results
    #[arg(long, value_enum, default_value_t)]
    score: Score,
    /// Take what is wrong from the runs' ratings, not from the file's gold: outcomes that a clinician rated below 2
    #[arg(long)]
    by_raters: bool,
    /// Write the policy to this new file
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err("give a number between 0 and 1, such as 0.05".to_owned()),
    }
}

impl Calibrate {
    pub fn run(self) -> Result<(), Failure> {
        refuse_existing(&self.out)?;
        let runs = self.runs.iter().map(|run| Contents::read(run));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        let guarantee = Guarantee { risk: self.risk, delta: self.delta, of: self.of };
        let calibrated =
            calibrate(&runs, &Choice { guarantee, score: self.score, by_raters: self.by_raters })?;
        whole_file::write_public(&self.out, calibrated.policy.to_toml()?.as_bytes())?;
        if calibrated.policy.synthetic {
            console::note(
                "note: synthetic weights answer noise: this policy says nothing about medicine",
            );
        }
        match self.json {
            true => console::say(
                serde_json::to_string_pretty(&calibrated).map_err(std::io::Error::from)?,
            )?,
            false => console::write(&text(&calibrated))?,
        }
        Ok(())
    }
}

/// What a policy says of a run's outcomes: a line of `decisions.jsonl` each.
#[derive(Serialize)]
struct DecisionLine<'a> {
    item: &'a str,
    run: u32,
    #[serde(flatten)]
    decision: &'a Decision,
    /// Whether acting is wrong; `null` without gold.
    is_wrong: Option<bool>,
}

/// Writes what the policy says of each outcome beside the run, and prints the counts.
pub fn apply(policy: &Policy, contents: &Contents) -> Result<(), Failure> {
    let decided = decisions(contents, policy);
    let mut lines = String::new();
    for Decided { key, decision, is_wrong } in &decided {
        let (item, run, is_wrong) = (&*key.item, key.run, *is_wrong);
        let line = DecisionLine { item, run, decision, is_wrong };
        lines += &serde_json::to_string(&line).map_err(std::io::Error::from)?;
        lines.push('\n');
    }
    let path = contents.path.join(DECISIONS);
    whole_file::write_private(&path, lines.as_bytes())?;
    let acted = || decided.iter().filter(|one| one.decision.decision == Advice::Act);
    let count = acted().count();
    let known = acted().filter(|one| one.is_wrong.is_some()).count();
    let wrong = acted().filter(|one| one.is_wrong == Some(true)).count();
    let wrong = match known {
        0 => String::new(),
        _ => format!("; {wrong} of the {known} whose gold is known are wrong"),
    };
    let escalated = decided.len() - count;
    console::say(format!("policy     act on {count}, escalate {escalated}{wrong}"))?;
    Ok(console::say(format!("decisions  {}", path.display()))?)
}

fn text(calibrated: &Calibrated) -> String {
    let Calibrated { policy, curve, groups, missed, left_out } = calibrated;
    let calibration = &policy.calibration;
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{}: {}", policy.subject.system, policy.guarantee);
    let share = 100.0 * calibration.acted as f64 / calibration.cases as f64;
    let _ = writeln!(
        text,
        "act where {} is at least {:.3}: {} of {} cases ({share:.1} %), {} of them wrong; bound {:.2} %",
        policy.score,
        policy.threshold,
        calibration.acted,
        calibration.cases,
        calibration.wrong,
        100.0 * calibration.bound
    );
    let _ = writeln!(text, "\n  threshold   acted upon   wrong");
    for point in curve {
        let mark = if point.threshold == policy.threshold { "  ← the policy" } else { "" };
        let _ = writeln!(
            text,
            "  {:9.3}   {:10}   {:5}{mark}",
            point.threshold, point.acted, point.wrong
        );
    }
    for (group, [cases, acted, wrong]) in groups {
        let _ = writeln!(text, "  {group}: {acted} of {cases} acted upon, {wrong} wrong");
    }
    if *left_out > 0 {
        let _ = writeln!(
            text,
            "\n{left_out} cases left out, which ask nearly the same as others: of such cases one counts"
        );
    }
    if !missed.is_empty() {
        let _ = writeln!(text, "\nacted upon and wrong: {}", missed.join(", "));
    }
    text
}
