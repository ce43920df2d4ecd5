//! Facts about an agent or a skill, from everything that the command line names.

use std::path::PathBuf;

use generate::{Evidence, EvidenceKind, Fact, Profile, Sources};
use mask::Mask;
use model::Diagnostic;

use crate::error::CliError;
use crate::language_model::LanguageModel;
use crate::project::{ProjectContext, shown};
use crate::terminal::Terminal;

/// Name of the evidence on the command line.
const DESCRIPTION: &str = "--description";

/// Sources of facts about an agent or a skill. All of them are combined.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct SourceArgs {
    /// Folders with source code, skills, prompts (`.md`, `.txt`), OpenAPI documents, lists of tools (`.json`, `.yaml`)
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Purpose of the agent, in your words
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// File with the system prompt of the agent
    #[arg(long, value_name = "FILE")]
    pub system_prompt: Option<PathBuf>,
    /// Agent
    #[arg(long, value_name = "URL|NAME")]
    pub agent: Option<String>,
}

impl SourceArgs {
    /// Returns `true` if no source is named.
    pub fn is_empty(&self) -> bool {
        let Self { paths, description, system_prompt, agent } = self;
        paths.is_empty() && description.is_none() && system_prompt.is_none() && agent.is_none()
    }
}

/// Facts of all sources.
#[derive(Debug)]
pub struct Discovered {
    /// Facts with their evidence, without secrets.
    pub profile: Profile,
}

/// Collects the facts of all sources, and prints the problems.
///
/// # Errors
/// Returns an error if no source is named, or if one of them cannot be read.
pub fn discover(
    args: &SourceArgs,
    context: &ProjectContext,
    _model: Option<&LanguageModel>,
    terminal: &Terminal,
) -> Result<Discovered, CliError> {
    if args.is_empty() {
        return Err(CliError::usage("no source is named")
            .hint("name a PATH, such as a folder with the agent's source code, or describe it with `--description`"));
    }
    let place = |path: &PathBuf| (context.cwd.join(path), shown(&context.cwd.join(path), &context.cwd));
    let paths: Vec<(PathBuf, String)> = args.paths.iter().map(place).collect();
    let prompts: Vec<(PathBuf, String)> = args.system_prompt.iter().map(place).collect();
    let Sources { profile: found, problems, mask, .. } =
        generate::discover(&paths, &prompts, &Mask::of(&context.environment));
    let mut profile = Profile { description: args.description.as_deref().map(described), ..Profile::default() };
    profile.merge(found);
    terminal.diagnostics(&problems);
    if problems.iter().any(Diagnostic::is_error) {
        return Err(CliError::usage("a source cannot be read"));
    }
    profile.change_texts(|text| mask.string(text));
    Ok(Discovered { profile })
}

/// Returns the fact that the user states on the command line.
fn described(text: &str) -> Fact {
    let evidence = Evidence { kind: EvidenceKind::Description, ..Evidence::in_file(DESCRIPTION, 1, text) };
    Fact::new(text.trim(), evidence)
}
