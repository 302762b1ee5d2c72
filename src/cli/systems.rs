//! `systems`: lists the systems, and prints what describes one.

use clap::Subcommand;

use crate::cli::exit::Failure;
use crate::cli::sandboxed::Paths;
use crate::console;
use crate::systems::{SYSTEMS, SystemConfig, Which};

#[derive(Debug, Subcommand)]
pub enum Systems {
    /// List the systems: what each works on, what describes it, whose its prompts are
    Ls,
    /// Print a system: its file, from which `run FILE.toml` makes others, or the settings of one that is a program
    Show {
        /// The system
        name: String,
    },
}

impl Systems {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        match self {
            Systems::Ls => {
                for entry in SYSTEMS.iter() {
                    let kind = if entry.file.is_some() { "file" } else { "program" };
                    let (name, takes) = (entry.name, entry.takes.to_string());
                    console::say(format!("{name:17} {takes:10} {kind:8} {}", entry.wording))?;
                }
                Ok(())
            }
            Systems::Show { name } => show(&name),
        }
    }
}

fn show(name: &str) -> Result<(), Failure> {
    let entry = Which::read(name)?.entry()?;
    if let Some(file) = entry.file {
        return Ok(console::write(&file.source.text)?);
    }
    let (name, system) = (entry.name, SystemConfig::with(entry, &toml::Table::new())?);
    console::say(format!("# {name} is a program of its own. Its settings, with their defaults:"))?;
    Ok(console::write(&system.table.to_string())?)
}
