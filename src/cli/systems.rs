//! `systems`: lists the systems, and prints what describes one.

use clap::Subcommand;

use crate::analysis::table::Table;
use crate::cli::exit::Failure;
use crate::cli::sandboxed::Paths;
use crate::cli::terminal;
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
                let table = Table::of("systems", "Systems", SYSTEMS.iter())
                    .text("system", |entry| entry.name)
                    .text("takes", |entry| entry.takes.to_string())
                    .text("is a", |entry| if entry.file.is_some() { "file" } else { "program" })
                    .text("prompts", |entry| entry.wording.to_string());
                terminal::show(&[table.build()])
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
