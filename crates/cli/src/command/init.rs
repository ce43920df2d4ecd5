//! `trialrun init`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;

use crate::error::CliError;
use crate::terminal::Terminal;

/// Arguments of `init`.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// Where; it is made if it is not there
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// What to begin with
    #[arg(long, value_name = "NAME", default_value = "scenario")]
    template: Template,
    /// The skill's name, for `--template skill`
    #[arg(long, value_name = "NAME", default_value = "my-skill")]
    skill: String,
    /// Where the project's skills are [default: ./skills]
    #[arg(long, value_name = "DIR")]
    skills_dir: Option<String>,
    /// The model of every scenario that names none
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// How agents treat permissions: default, acceptEdits, plan or bypassPermissions
    #[arg(long, value_name = "MODE")]
    permission_mode: Option<String>,
    /// Overwrite files that are there
    #[arg(long)]
    force: bool,
}

/// What a project begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Template {
    /// A scenario that tests a prompt.
    Scenario,
    /// A skill with a scenario of its own.
    Skill,
    /// Tests as code, a conversation, and an agent to talk to.
    Code,
}

impl InitArgs {
    fn skills_dir(&self) -> &str {
        self.skills_dir.as_deref().unwrap_or("./skills")
    }
}

const SCENARIO: &str = include_str!("../template/scenario.yaml");
const SCENARIO_MODEL: &str = include_str!("../template/scenario-model.yaml");
const SKILL: &str = include_str!("../template/SKILL.md");
const SKILL_SCENARIO: &str = include_str!("../template/skill-scenario.yaml");
const SKILL_MODEL: &str = include_str!("../template/skill-model.yaml");
const AGENT: &str = include_str!("../template/agent.ts");
const TEST: &str = include_str!("../template/hello.test.ts");
const CONVERSATION: &str = include_str!("../template/edge-case.yaml");
const TSCONFIG: &str = include_str!("../template/tsconfig.json");
const SCHEMA_FILE: &str = "scenario.schema.json";
const CONVERSATION_SCHEMA_FILE: &str = "conversation.schema.json";

/// Scaffolds a project. Nothing is written unless everything can be.
pub fn run(args: &InitArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    if let Some(mode) = &args.permission_mode {
        let modes = model::PermissionMode::ALL.map(|(name, _)| name);
        if !modes.contains(&mode.as_str()) {
            return Err(CliError::usage(format!("unknown permission mode `{mode}`"))
                .maybe_hint(model::nearest(mode, modes).map(|near| format!("did you mean `{near}`?")))
                .hint(format!("modes: {}", modes.join(", "))));
        }
    }
    if args.template == Template::Skill && !is_a_skill_name(&args.skill) {
        return Err(CliError::usage(format!("`{}` is no name for a skill", args.skill))
            .hint("use lower-case letters, digits and hyphens, such as `release-notes`"));
    }
    let files = files(args);
    if !args.force {
        let there: Vec<String> = files
            .iter()
            .filter(|(path, _)| args.dir.join(path).symlink_metadata().is_ok())
            .map(|(path, _)| args.dir.join(path).display().to_string())
            .collect();
        if !there.is_empty() {
            return Err(CliError::usage(format!("would overwrite {}", there.join(", "))).hint("`--force` overwrites"));
        }
    }
    for (path, content) in &files {
        let path = args.dir.join(path);
        write(&path, content)?;
        terminal.out(&format!("wrote {}\n", path.display()));
    }
    let go = if args.dir == Path::new(".") { String::new() } else { format!("cd {} && ", args.dir.display()) };
    terminal.out(&format!("\nTry it, offline and free:  {go}trialrun run\n"));
    if args.template == Template::Code {
        terminal.out("Then put an agent of your own in the place of `agent` in trialrun.yaml.\n");
    } else {
        terminal.out("Then take the `model:` line out of the scenario and name a real agent in trialrun.yaml;\n");
        terminal.out("`trialrun doctor` says which are ready here.\n");
    }
    Ok(ExitCode::SUCCESS)
}

fn files(args: &InitArgs) -> Vec<(PathBuf, String)> {
    let skills = PathBuf::from(args.skills_dir().trim_start_matches("./"));
    let pretty = |schema: serde_json::Value| serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n";
    let mut files = vec![(PathBuf::from("trialrun.yaml"), config(args))];
    match args.template {
        Template::Scenario => {
            files.push((PathBuf::from("scenarios/first.yaml"), schema_line("..", SCHEMA_FILE) + SCENARIO));
            files.push((PathBuf::from("scenarios/models/first.yaml"), SCENARIO_MODEL.to_owned()));
        }
        Template::Skill => {
            let home = skills.join(&args.skill);
            let up = vec![".."; home.components().count() + 1].join("/");
            let named = |text: &str| text.replace("my-skill", &args.skill);
            files.push((home.join("SKILL.md"), named(SKILL)));
            files.push((home.join("tests/first.yaml"), schema_line(&up, SCHEMA_FILE) + &named(SKILL_SCENARIO)));
            files.push((home.join("tests/models/first.yaml"), named(SKILL_MODEL)));
        }
        Template::Code => {
            let conversation = schema_line("..", CONVERSATION_SCHEMA_FILE) + CONVERSATION;
            files.push((PathBuf::from("agent.ts"), AGENT.to_owned()));
            files.push((PathBuf::from("tests/hello.test.ts"), TEST.to_owned()));
            files.push((PathBuf::from("tests/edge-case.yaml"), conversation));
            // Beside the tests, so that a project that has one of its own keeps it.
            files.push((PathBuf::from("tests/tsconfig.json"), TSCONFIG.to_owned()));
            files.push((PathBuf::from("types/trialrun.d.ts"), grade::declarations()));
            files.push((PathBuf::from(CONVERSATION_SCHEMA_FILE), pretty(suite::conversation_schema())));
        }
    }
    if args.template != Template::Code {
        files.push((PathBuf::from(SCHEMA_FILE), pretty(suite::scenario_schema())));
    }
    files
}

/// Editors with a YAML language server complete and check the file from this line.
fn schema_line(up: &str, file: &str) -> String {
    format!("# yaml-language-server: $schema={up}/{file}\n")
}

fn config(args: &InitArgs) -> String {
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let mut text = String::new();
    // A folder that is not there yet is not worth naming, unless somebody did.
    if args.template == Template::Skill || args.skills_dir.is_some() {
        text.push_str(&format!("skills_dir: {}\n", quoted(args.skills_dir())));
    }
    if args.template == Template::Code {
        text.push_str("agent: custom:agent.ts # a stand-in; see `trialrun list --agents` for others\n");
    }
    if args.template != Template::Code || args.model.is_some() || args.permission_mode.is_some() {
        text.push_str("defaults:\n");
    }
    if args.template != Template::Code {
        text.push_str("  agent: chat # or claude-code\n");
    }
    if let Some(model) = &args.model {
        text.push_str(&format!("  model: {}\n", quoted(model)));
    }
    if let Some(mode) = &args.permission_mode {
        text.push_str(&format!("  permission_mode: {mode}\n"));
    }
    text
}

fn write(path: &Path, content: &str) -> Result<(), CliError> {
    let failed = |error: std::io::Error| CliError::environment(format!("cannot write {}: {error}", path.display()));
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    std::fs::write(path, content).map_err(failed)
}

fn is_a_skill_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && !name.starts_with('-')
        && !name.ends_with('-')
}
