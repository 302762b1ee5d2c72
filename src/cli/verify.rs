//! `verify`: checks that a run directory or an audit trail is complete and unchanged.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::{Arg, Args};

use super::replay::{AgainFlags, tell};
use super::summary::count;
use crate::analysis::{export, results};
use crate::audit::{head, verify};
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::contents::Contents;
use crate::experiment::error::{RunError, resume};
use crate::experiment::proof::Proof;
use crate::experiment::recompute::{Drawn, chance, draw};
use crate::experiment::replay::Asked;
use crate::experiment::results::Results;

/// What helps where a trail lacks its key.
const WITHOUT_KEY: &str = "put `key` beside the trail, from where it was written; where a copy lacks it on purpose, --without-key says so";

#[derive(Debug, Args)]
#[command(mut_args(of_recompute))]
pub struct Verify {
    /// The run directory
    #[arg(required_unless_present_any = ["audit", "proof"])]
    directory: Option<PathBuf>,
    /// The head that was noted when the run ended
    #[arg(long, value_name = "SHA256")]
    head: Option<String>,
    /// Check the audit trail of this directory instead
    #[arg(long, value_name = "DIR", conflicts_with_all = ["directory", "head"])]
    audit: Option<PathBuf>,
    /// Heads that were kept elsewhere, as `serve` writes them to stderr: a file with lines `audit head NUMBER SHA256`
    #[arg(long, value_name = "FILE", requires = "audit", conflicts_with = "directory")]
    heads: Option<PathBuf>,
    /// Check a copy that lacks the trail's key on purpose: its lines, and not the sums of texts
    #[arg(long, requires = "audit", conflicts_with = "directory")]
    without_key: bool,
    /// Compute K calls of a finished run anew, drawn at random by its head, and say how likely a forgery would have been found
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "audit")]
    recompute: Option<u32>,
    /// A text that the draw depends on too, chosen after the run was handed over: without one, who made the run could try heads until
    /// the draw spared what he forged
    #[arg(long, value_name = "TEXT", requires = "recompute")]
    nonce: Option<String>,
    /// Check what `calls prove` wrote of one item against the head of its run, without the run
    #[arg(long, value_name = "FILE", requires = "head", conflicts_with_all = ["directory", "audit", "recompute"])]
    proof: Option<PathBuf>,
    /// Check that a statement that `export --as in-toto` wrote is of this run, too; whoever signed it is for others to check
    #[arg(long, value_name = "FILE", requires = "directory")]
    attestation: Option<PathBuf>,
    /// Replay the run of another version of wardround
    #[arg(long)]
    allow_version: bool,
    #[command(flatten)]
    again: AgainFlags,
}

/// The flags of a replay mean something with --recompute alone. What the environment may set is not refused: it is there for all commands.
fn of_recompute(argument: Arg) -> Arg {
    let own = [
        "directory",
        "head",
        "audit",
        "heads",
        "without_key",
        "recompute",
        "nonce",
        "proof",
        "attestation",
    ];
    match own.contains(&argument.get_id().as_str()) || argument.get_env().is_some() {
        true => argument,
        false => argument.requires("recompute"),
    }
}

impl Verify {
    pub fn run(self) -> Result<(), Failure> {
        if let (Some(proof), Some(head)) = (&self.proof, &self.head) {
            return proven(proof, head);
        }
        let Some(directory) = &self.directory else {
            return self.audit();
        };
        let (verified, note) = results::verify(directory, self.head.as_deref())?;
        let heads = &verified.heads;
        console::say(format!("plan   {}", heads.plan))?;
        console::say(format!("calls  {} ({} lines)", heads.calls, heads.call_lines))?;
        console::say(format!("items  {} ({} lines)", heads.items, heads.item_lines))?;
        if let [_, _, ..] = verified.contents.versions[..] {
            let versions = verified.contents.versions.join(", ");
            console::say(format!("note   versions {versions} of wardround wrote the run"))?;
        }
        for (path, bytes) in verified.contents.torn() {
            console::say(format!(
                "note   the last line of {} is cut short; `wardround resume` cuts its {bytes} bytes off",
                path.display()
            ))?;
        }
        let Some(results) = &verified.results else {
            if self.attestation.is_some() {
                return Err(RunError::NoResults { path: directory.clone() }.into());
            }
            console::say("intact so far; the run has not finished")?;
            return match self.recompute {
                None => Ok(()),
                Some(_) => Err(Failure::outcome(
                    "calls are drawn by the head of a finished run",
                    Some(resume(directory)),
                )),
            };
        };
        if let Some(note) = note {
            console::say(format!("note   {note}"))?;
        }
        if let Some(path) = &self.attestation {
            export::check(path, &verified.contents, results)?;
            console::say(format!("stated by {}", console::plain(&path.display().to_string())))?;
        }
        console::say(format!("head   {}\nintact", results.head))?;
        match self.recompute {
            None => Ok(()),
            Some(drawn) => self.recompute(&verified.contents, &results.head, drawn as usize),
        }
    }

    /// Computes calls anew, and prints what that says.
    fn recompute(self, contents: &Contents, head: &str, wanted: usize) -> Result<(), Failure> {
        let nonce = self.nonce.as_deref();
        let Drawn { keys, of, left_out } = draw(contents, head, nonce.unwrap_or_default(), wanted);
        let by = if nonce.is_some() { "the head and the nonce" } else { "the head" };
        console::say(format!("drawn  {} of {}, by {by}", keys.len(), count(of, "call")))?;
        if left_out > 0 {
            let left_out = count(left_out, "call");
            console::say(format!("note   {left_out} of items without an answer: not drawn"))?;
        }
        let items: HashSet<&str> = keys.iter().map(|key| key.item.as_str()).collect();
        let items: Vec<String> = items.into_iter().map(str::to_owned).collect();
        let allow_version = self.allow_version;
        let asked = Asked { items: &items, allow_version, by_prefill: true, only: Some(&keys) };
        let replayed = self.again.replay(contents, &asked)?;
        for percent in [1, 5, 10] {
            let chance = 100.0 * chance(of, keys.len(), percent);
            console::say(format!(
                "chance {chance:.1} % to draw one, were {percent} % of the calls forged"
            ))?;
        }
        if nonce.is_none() {
            console::say(
                "note   if whoever made the run did not choose its head; a --nonce of your own rules that out",
            )?;
        }
        let recomputed = format!("{} computed anew", count(replayed.calls, "call"));
        tell(&replayed.differences, &recomputed, &contents.path)
    }

    fn audit(&self) -> Result<(), Failure> {
        let directory = self.audit.clone().unwrap_or_default();
        let heads = self.heads.as_deref().map(head::read).transpose()?.unwrap_or_default();
        let found = verify::verify(&directory, &heads)?;
        let files = count(found.files, "file");
        console::say(format!("lines  {} in {files}", found.lines))?;
        console::say(format!("heads  {} compared", found.heads))?;
        let verify::Texts { kept, forgotten } = found.texts;
        console::say(format!("texts  {kept} kept, {forgotten} deleted"))?;
        for note in &found.notes {
            console::say(format!("note   {}", console::plain(note)))?;
        }
        for problem in &found.problems {
            console::say(format!("wrong  {}", console::plain(problem)))?;
        }
        if found.problem_count > 0 {
            let problems = count(found.problem_count, "problem");
            let message = format!("the audit trail {} has {problems}", directory.display());
            return Err(Failure::mismatch(message));
        }
        if let Some(head) = found.head {
            console::say(format!("head   {} {}", head.seq, head.hash))?;
        }
        if found.unchecked == 0 {
            return Ok(console::say("intact")?);
        }
        let words = match found.unchecked {
            1 => "1 sum was".to_owned(),
            many => format!("{many} sums were"),
        };
        console::say(format!("lines are chained; {words} not checked for want of the key"))?;
        match self.without_key {
            true => Ok(()),
            false => Err(Failure::outcome(
                format!("{words} not checked: {} lacks their key", directory.display()),
                Some(WITHOUT_KEY.to_owned()),
            )),
        }
    }
}

/// Prints what a proof shows.
fn proven(path: &Path, head: &str) -> Result<(), Failure> {
    let proof = Proof::check(path, head)?;
    let Results { system, dataset, n_items, .. } = &proof.results;
    let (system, dataset) = (console::plain(system), console::plain(dataset));
    let number = proof.index + 1;
    console::say(format!("run    {system} on {dataset}, {}", count(*n_items, "item")))?;
    console::say(format!("item   {} (number {number})", console::plain(proof.text.item())))?;
    console::say(format!("calls  {}, all of this item", proof.calls.len()))?;
    Ok(console::say(format!("head   {}\nproven", proof.results.head))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{AuditOptions, Event, Trail};

    #[test]
    fn a_trail_without_its_key_is_not_called_intact() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("audit");
        let trail = Trail::open(&AuditOptions::new(&directory)).unwrap();
        trail.write(Event::new("login").with_sum("request", "a digest")).unwrap();
        trail.finish(Event::new("stop")).unwrap();
        let code = |without_key: bool| {
            #[derive(clap::Parser)]
            struct Line {
                #[command(flatten)]
                verify: Verify,
            }
            let flag = without_key.then_some("--without-key");
            let line = ["verify", "--audit", directory.to_str().unwrap()].into_iter().chain(flag);
            let Line { verify } = clap::Parser::parse_from(line);
            verify.run().map_err(|failure| failure.blame().exit_code())
        };
        assert_eq!(code(false), Ok(()));
        fs_err::remove_file(directory.join("key")).unwrap();
        assert_eq!((code(false), code(true)), (Err(1), Ok(())));
    }
}
