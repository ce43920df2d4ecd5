//! Facts about an agent or a skill, from everything that the command line names.

use std::path::PathBuf;

use generate::Profile;
use mask::Mask;

use crate::error::CliError;
use crate::language_model::LanguageModel;
use crate::project::ProjectContext;
use crate::terminal::Terminal;

/// Sources of facts about an agent or a skill. All of them are combined.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct SourceArgs {
    /// Skills, prompts
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Purpose of the agent, in your words
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Agent
    #[arg(long, value_name = "URL|NAME")]
    pub agent: Option<String>,
}

/// Facts of all sources.
#[derive(Debug)]
pub struct Discovered {
    /// Facts with their evidence, without secrets.
    pub profile: Profile,
}

pub fn discover(
    args: &SourceArgs,
    context: &ProjectContext,
    _model: Option<&LanguageModel>,
    terminal: &Terminal,
) -> Result<Discovered, CliError> {
    let place = |path: &PathBuf| (context.cwd.join(path), path.display().to_string());
    let paths: Vec<(PathBuf, String)> = args.paths.iter().map(place).collect();
    let (mut profile, problems) = generate::discover(&paths, &Mask::of(&context.environment));
    if let Some(text) = &args.description {
        profile.description = Some(generate::Fact { text: text.clone(), evidence: Vec::new() });
    }
    terminal.diagnostics(&problems);
    Ok(Discovered { profile })
}
