//! The systems of `serve`, as its flags say them.

use clap::Args;

use crate::cli::options::PromptFlags;

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Systems")]
pub struct SystemFlags {
    /// Serve a system under its name, such as medmad, or that of a TOML file, with the models in their order or those after =; may be repeated
    #[arg(long, value_name = "SYSTEM[=A,B,C]")]
    pub system: Vec<String>,
    /// Change a setting of a system, such as medmad.t_max=2, as --set of `run` does; may be repeated
    #[arg(long, value_name = "SYSTEM.KEY=VALUE")]
    pub set: Vec<String>,
    #[command(flatten)]
    pub prompts: PromptFlags,
}
