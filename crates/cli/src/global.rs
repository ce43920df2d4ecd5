//! Options that every command accepts.

use std::path::PathBuf;

use clap::ValueEnum;

/// Options of every command.
#[derive(Debug, Clone, clap::Args)]
pub struct Global {
    /// Folder for recorded runs, or URL of a PostgreSQL database [default: `.trialrun` in the project, else in the
    /// current directory]
    #[arg(long, value_name = "DIR|URL", global = true, hide_short_help = true)]
    pub state: Option<PathBuf>,
    /// When to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true, hide_short_help = true)]
    pub color: Color,
}

/// Setting for the use of colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// Use colour on a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always use colour.
    Always,
    /// Never use colour.
    Never,
}
