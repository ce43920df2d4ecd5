//! Options that every command accepts.

use std::path::PathBuf;

use clap::ValueEnum;

/// What every command understands.
#[derive(Debug, Clone, clap::Args)]
pub struct Global {
    /// Where runs are recorded [default: `.trialrun` of the project you stand in, else of the current directory]
    #[arg(long, value_name = "DIR", global = true)]
    pub state: Option<PathBuf>,
    /// When to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    pub color: Color,
}

/// Setting for the use of colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
