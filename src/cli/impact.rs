//! `impact`: generates kept runs and the lines of an audit trail anew, and says what of them is changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;

use super::interrupt;
use super::options::{PromptFlags, refuse_existing};
use super::replay::AgainFlags;
use super::summary::count;
use crate::cli::exit::Failure;
use crate::console::say;
use crate::experiment::contents::Contents;
use crate::experiment::hardware::MOST_DRAFT;
use crate::experiment::impact::{self, Class, Kept};
use crate::experiment::whole_file;
use crate::report::impact::render;
use crate::text::ellipsis;

/// The most characters of an outcome on a line.
const SHOWN_CHARS: usize = 80;

#[derive(Debug, Args)]
#[command(after_help = "Exits with 1 if a case has another outcome or could not be compared.")]
#[command(mut_arg("panel", |panel| panel.help("Other models, or where they have moved; of a trail as NAME=MODEL")))]
pub struct Impact {
    /// Run directories; with --audit also numbers of its lines
    #[arg(required_unless_present = "audit", value_name = "RUN")]
    what: Vec<String>,
    /// Take the audit trail in this directory: the lines whose numbers are given, or all of its requests and cases
    #[arg(long, value_name = "DIR")]
    audit: Option<PathBuf>,
    /// Write impact.json and impact.html into this new directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    prompts: PromptFlags,
    #[command(flatten)]
    again: AgainFlags,
}

impl Impact {
    pub fn run(self) -> Result<(), Failure> {
        self.out.as_deref().map_or(Ok(()), refuse_existing)?;
        let number = |text: &String| text.parse().ok().filter(|_: &u64| self.audit.is_some());
        let lines: Vec<u64> = self.what.iter().filter_map(number).collect();
        let mut kept = match &self.audit {
            Some(directory) => self.trail(directory, &lines)?,
            None => Vec::new(),
        };
        let stop = interrupt::watch();
        for directory in self.what.iter().filter(|text| number(text).is_none()) {
            let contents = Contents::read(Path::new(directory))?;
            let mut again = self.again.clone();
            // What was said is checked all positions at once, whatever the plan drafted; where it is another, that only costs time.
            again.execution.hardware.draft.get_or_insert(MOST_DRAFT as usize);
            let mut spec = again.spec(&contents.plan)?;
            spec.prompts = self.prompts.prompts.clone().or(spec.prompts);
            kept.push(impact::of_run(&contents, spec, stop.clone())?);
        }
        let impact = impact::Impact::of(kept);
        if let Some(out) = &self.out {
            whole_file::create_private_directory(out)?;
            let json = serde_json::to_string_pretty(&impact).map_err(std::io::Error::from)? + "\n";
            whole_file::write_private(&out.join("impact.json"), json.as_bytes())?;
            whole_file::write_private(&out.join("impact.html"), render(&impact)?.as_bytes())?;
        }
        impact.kept.iter().try_for_each(tell)?;
        let [changed, same, equal, apart] =
            [Class::Changed, Class::SameOutcome, Class::Equal, Class::NotComparable]
                .map(|class| impact.counts[&class]);
        say(format!(
            "{changed} changed, {same} with the same outcome, {equal} equal, {apart} not comparable"
        ))?;
        let problem = match (changed, same + equal) {
            (0, 0) => "nothing could be compared".to_owned(),
            (0, _) if apart == 0 => return Ok(()),
            (0, _) => format!("{} could not be compared", count(apart, "case")),
            _ => format!("{} changed in outcome", count(changed, "case")),
        };
        Err(Failure::outcome(problem, None))
    }

    #[cfg(not(feature = "serve"))]
    fn trail(&self, _directory: &Path, _lines: &[u64]) -> Result<Vec<Kept>, Failure> {
        let hint = "build with the feature `serve`";
        Err(Failure::usage("what a server answered is not repeated without one", hint))
    }

    /// What is loaded alike is loaded once.
    #[cfg(feature = "serve")]
    fn trail(&self, directory: &Path, lines: &[u64]) -> Result<Vec<Kept>, Failure> {
        let mut groups: Vec<Vec<crate::audit::kept::Retained>> = Vec::new();
        for one in crate::audit::kept::all(directory, &["request", "case"], lines)? {
            match groups.iter_mut().find(|group| group[0].arguments == one.arguments) {
                Some(group) => group.push(one),
                None => groups.push(vec![one]),
            }
        }
        let of_group = |group: Vec<crate::audit::kept::Retained>| {
            let arguments = group[0].arguments.clone();
            crate::serve::impact::impact(directory, group, || {
                let AgainFlags { panel, corpus, execution, .. } = &self.again;
                let (models, mut systems) = super::replay::requested(&arguments, panel, corpus)?;
                let prompts = &mut systems.prompts.prompts;
                *prompts = self.prompts.prompts.clone().or(prompts.take());
                let (hardware, hub) = (&execution.hardware, execution.hub_options()?);
                super::serve::sources::Sources::check(&models, &systems, hardware, hub)?.load()
            })
        };
        groups.into_iter().map(of_group).collect()
    }
}

/// Prints what is another, each case that differs, and how many cannot be compared for which reason.
fn tell(kept: &Kept) -> Result<(), Failure> {
    let cases = count(kept.cases.len(), "case");
    say(format!("{}: {}, {cases}", kept.path.display(), kept.system))?;
    for one in &kept.changed {
        say(format!("  now another: {} {} → {}", one.field, one.left, one.right))?;
    }
    let mut apart: BTreeMap<&str, usize> = BTreeMap::new();
    for case in &kept.cases {
        let why = case.why.as_deref().unwrap_or_default();
        let [from, to] = [&case.from, &case.to]
            .map(|words| ellipsis(words.as_deref().unwrap_or_default(), SHOWN_CHARS));
        match case.class {
            Class::Equal => {}
            Class::NotComparable => *apart.entry(why).or_default() += 1,
            Class::Changed => say(format!("  changed: {}, {from} → {to}; {why}", case.name))?,
            Class::SameOutcome => say(format!("  same outcome: {}, {from}; {why}", case.name))?,
        }
    }
    for (why, number) in apart {
        say(format!("  not comparable: {}; {why}", count(number, "case")))?;
    }
    Ok(())
}
