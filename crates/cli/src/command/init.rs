//! `trialrun init`.

mod agent_skill;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;

use crate::error::CliError;
use crate::terminal::Terminal;
use session::AUTO_SANDBOX;

/// Arguments of `init`.
#[derive(Debug, Clone, clap::Args)]
pub struct InitArgs {
    /// Directory of the project. If it does not exist, a skill of that name is created, unless an option such as
    /// `--template` requests a project
    #[arg(value_name = "DIR|SKILL", default_value = ".")]
    dir: PathBuf,
    /// Template of the project [default: scenario]
    #[arg(long, value_name = "NAME")]
    template: Option<Template>,
    /// Name of the skill; without `--template skill`, create only this skill with a suite
    #[arg(long, value_name = "NAME")]
    skill: Option<String>,
    /// Directory of the project's skills [default: ./skills]
    #[arg(long, value_name = "DIR")]
    skills_dir: Option<String>,
    /// Directory to create the skill in
    #[arg(long, short, value_name = "DIR", hide = true, conflicts_with = "skill")]
    output: Option<PathBuf>,
    /// Default model of scenarios
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// Permission mode of agents: default, acceptEdits, plan or bypassPermissions
    #[arg(long, value_name = "MODE")]
    permission_mode: Option<String>,
    /// Add only a skill that teaches coding agents to write and run tests, and lines about it in `AGENTS.md`
    #[arg(long, conflicts_with_all = ["template", "skill", "skills_dir", "output", "model", "permission_mode"])]
    agent_skill: bool,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
    /// Ask nothing and use the defaults, also on a terminal
    #[arg(long, short)]
    yes: bool,
}

/// Initial content of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Template {
    /// A scenario that tests a prompt.
    Scenario,
    /// A skill with a scenario and a suite of its own.
    Skill,
    /// Tests as code, a conversation, and an agent to talk to.
    #[value(alias = "bot")]
    Code,
}

impl InitArgs {
    fn skills_dir(&self) -> &str {
        self.skills_dir.as_deref().unwrap_or("./skills")
    }

    fn template(&self) -> Template {
        self.template.unwrap_or(Template::Scenario)
    }

    /// Name of the skill.
    fn skill(&self) -> &str {
        self.skill.as_deref().unwrap_or("my-skill")
    }

    /// Returns the name of the skill if the positional argument is one, as in agent-skill-eval: no option requests a
    /// project, and the directory either does not exist or contains a skill.
    fn named_skill(&self) -> Option<&str> {
        let asks_for_project = self.template.is_some()
            || self.skill.is_some()
            || self.skills_dir.is_some()
            || self.model.is_some()
            || self.permission_mode.is_some();
        let target = self.output.as_ref().map_or_else(|| self.dir.clone(), |output| output.join(&self.dir));
        let is_new = self.output.is_some() || !target.exists() || target.join("SKILL.md").is_file();
        self.dir.to_str().filter(|name| !asks_for_project && is_new && is_a_skill_name(name))
    }

    /// Returns `true` if the user has not said what to create: no option does, and the directory, if it exists, does
    /// not contain a skill.
    fn is_open(&self) -> bool {
        let is_of_skill = self.output.is_some() || self.dir.join("SKILL.md").is_file();
        !self.yes && self.template.is_none() && self.skill.is_none() && !is_of_skill
    }

    /// Returns `true` if only a skill is to be created.
    fn is_skill_alone(&self) -> bool {
        self.skill.is_some() && self.template.is_none()
    }
}

const SCENARIO: &str = include_str!("../template/scenario.yaml");
const SCENARIO_MODEL: &str = include_str!("../template/scenario-model.yaml");
const SKILL: &str = include_str!("../template/SKILL.md");
const SKILL_SCENARIO: &str = include_str!("../template/skill-scenario.yaml");
const SKILL_MODEL: &str = include_str!("../template/skill-model.yaml");
const EVALS: &str = include_str!("../template/evals.json");
const EVALS_MODEL: &str = include_str!("../template/evals-model.yaml");
const EVALS_INPUT: &str = include_str!("../template/guest.txt");
const AGENT: &str = include_str!("../template/agent.ts");
const TEST: &str = include_str!("../template/hello.test.ts");
const CONVERSATION: &str = include_str!("../template/edge-case.yaml");
const GLOBALS: &str = include_str!("../template/globals.d.ts");
const TSCONFIG: &str = include_str!("../template/tsconfig.json");
const CONFIG_FILE: &str = "trialrun.yaml";
const SCHEMA_FILE: &str = "scenario.schema.json";
const CONVERSATION_SCHEMA_FILE: &str = "conversation.schema.json";
const EVALS_SCHEMA_FILE: &str = "evals.schema.json";

/// Scaffolds a project. Nothing is written unless all files can be written.
pub fn run(args: &InitArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    if let Some(mode) = &args.permission_mode {
        let modes = model::PermissionMode::ALL.map(|(name, _)| name);
        if !modes.contains(&mode.as_str()) {
            return Err(CliError::usage(format!("unknown permission mode `{mode}`"))
                .maybe_hint(model::nearest(mode, modes).map(|near| format!("did you mean `{near}`?")))
                .hint(format!("modes: {}", modes.join(", "))));
        }
    }
    if args.agent_skill {
        return add_agent_skill(args, terminal);
    }
    if args.dir.is_file() {
        return Err(CliError::usage(format!("`{}` is a file", args.dir.display()))
            .hint("name the folder in which to create a project"));
    }
    check_skill(args)?;
    let asked;
    let args = if args.is_open() && terminal.can_ask() {
        let template = ask_template(terminal)?;
        // A name and a skill mean the skill of that name, not a project with a skill.
        let is_named_skill = template == Template::Skill && args.named_skill().is_some();
        asked = InitArgs { template: Some(template).filter(|_| !is_named_skill), ..args.clone() };
        &asked
    } else {
        args
    };
    let (dir, files) = match args.named_skill() {
        Some(name) => named_skill(args, name),
        None if args.is_skill_alone() => skill_alone(args)?,
        None => (args.dir.clone(), files(args)),
    };
    if files.iter().any(|(path, _)| path == Path::new(CONFIG_FILE)) {
        keep_other_configuration(args)?;
    }
    if !args.force {
        let there: Vec<String> = files
            .iter()
            .filter(|(path, content)| {
                dir.join(path).symlink_metadata().is_ok() && !is_same_schema(&dir.join(path), content)
            })
            .map(|(path, _)| dir.join(path).display().to_string())
            .collect();
        if !there.is_empty() {
            return Err(CliError::usage(format!("would overwrite {}", there.join(", "))).hint("`--force` overwrites"));
        }
    }
    for (path, content) in &files {
        let path = dir.join(path);
        write(&path, content)?;
        terminal.out(&format!("wrote {}\n", path.display()));
    }
    if files.iter().any(|(path, _)| Path::new(path) == Path::new(CONFIG_FILE))
        && let Some(hidden) = hidden_configuration(&args.dir)
    {
        let file = dir.join(CONFIG_FILE);
        terminal.err(&format!("note: {} is now read there instead of {}\n", file.display(), hidden.display()));
    }
    terminal.out(&match args.named_skill() {
        Some(name) => next_steps_of_skill(&dir.join(name), name),
        None => next_steps(args, &files),
    });
    Ok(ExitCode::SUCCESS)
}

/// Returns `true` if the file at `path` is a schema with this `content`, which several commands write.
fn is_same_schema(path: &Path, content: &str) -> bool {
    path.to_string_lossy().ends_with(".schema.json")
        && path.symlink_metadata().is_ok_and(|there| there.is_file())
        && std::fs::read(path).is_ok_and(|there| there == content.as_bytes())
}

/// Returns a path as a word of a command line.
fn word(path: &Path) -> String {
    let text = path.display().to_string();
    shlex::try_quote(&text).map(String::from).unwrap_or(text)
}

/// Asks the user what to test.
fn ask_template(terminal: &Terminal) -> Result<Template, CliError> {
    let question = "What do you want to test?\n  1  a prompt (default)\n  2  a skill\n  3  an agent of your own, or one \
                    behind HTTP\n";
    loop {
        match terminal.ask(question, "1, 2 or 3: ")?.trim() {
            "" | "1" => return Ok(Template::Scenario),
            "2" => return Ok(Template::Skill),
            "3" => return Ok(Template::Code),
            other => terminal.err(&format!("`{other}` is not one of the answers\n")),
        }
    }
}

/// Adds the skill for coding agents to a project.
fn add_agent_skill(args: &InitArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let files = agent_skill::files(&args.dir, args.force)?;
    for (path, content) in &files {
        let path = args.dir.join(path);
        write(&path, content)?;
        terminal.out(&format!("wrote {}\n", path.display()));
    }
    if files.is_empty() {
        terminal.out("the skill and the lines in AGENTS.md are up to date\n");
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses to write a configuration next to another one, which would no longer be read. `--force` allows it if the
/// other one belongs to a tool that this program replaces.
fn keep_other_configuration(args: &InitArgs) -> Result<(), CliError> {
    let is_there = |name: &&str| *name != CONFIG_FILE && args.dir.join(name).symlink_metadata().is_ok();
    let Some(other) = suite::config_names().find(is_there) else { return Ok(()) };
    let is_own = other.starts_with("trialrun.");
    if args.force && !is_own {
        return Ok(());
    }
    let other = args.dir.join(other);
    let shown = other.strip_prefix(".").unwrap_or(&other).display();
    let refused = CliError::usage(format!("this project already has a configuration: `{shown}`"));
    let refused =
        refused.hint("`trialrun run` runs its tests; `trialrun schema types` prints the TypeScript declarations");
    Err(match is_own {
        true => refused.hint(format!("remove `{shown}` to start again")),
        false => {
            refused.hint(format!("use `--force` to write `{CONFIG_FILE}`, which is then read instead of `{shown}`"))
        }
    })
}

/// Returns the configuration in a parent folder of `dir` that a configuration in `dir` would hide.
fn hidden_configuration(dir: &Path) -> Option<PathBuf> {
    let dir = std::path::absolute(dir).ok()?;
    let in_folder = |folder: &Path| suite::config_names().map(|name| folder.join(name)).find(|file| file.is_file());
    dir.ancestors().skip(1).find_map(in_folder)
}

fn check_skill(args: &InitArgs) -> Result<(), CliError> {
    if args.skill.is_some() && args.template.is_some_and(|template| template != Template::Skill) {
        return Err(CliError::usage("`--skill` needs a template with a skill")
            .hint("omit `--template`, or use `--template skill`"));
    }
    if args.output.is_some() && args.named_skill().is_none() {
        return Err(CliError::usage("`--output` takes the name of a skill: `trialrun init NAME --output DIR`")
            .hint("a name has lower-case letters, digits and hyphens, such as `release-notes`"));
    }
    if !is_a_skill_name(args.skill()) {
        return Err(CliError::usage(format!("`{}` is not a valid name of a skill", args.skill()))
            .hint("use lower-case letters, digits and hyphens, such as `release-notes`"));
    }
    Ok(())
}

/// Returns the next steps for a skill that was created in `home`.
fn next_steps_of_skill(home: &Path, name: &str) -> String {
    let home = word(home);
    format!(
        "\nWrite the skill, then its suite; `trialrun check --skill {home} --strict` reports problems.\n\
         To measure whether the skill helps, with a real agent:  trialrun run --skill {home}\n\
         To create a project of tests instead:  trialrun init {name} --template scenario\n"
    )
}

/// Returns the next steps for the created files.
fn next_steps(args: &InitArgs, files: &[(PathBuf, String)]) -> String {
    let go = if args.dir == Path::new(".") { String::new() } else { format!("cd {} && ", word(&args.dir)) };
    // A skill that is there already is not among the files, but its suite is.
    let home = files.iter().find_map(|(path, _)| match path.ends_with("evals/evals.json") {
        true => path.parent()?.parent(),
        false => path.parent().filter(|_| path.ends_with("SKILL.md")),
    });
    let home = home.map(word).unwrap_or_default();
    let measure = format!("To measure whether the skill helps, with a real agent:  {go}trialrun run --skill {home}\n");
    if args.is_skill_alone() {
        return format!("\nWrite the skill, then its suite; `trialrun check --strict` reports problems.\n{measure}");
    }
    match args.template() {
        Template::Code => format!(
            "\nTry it, offline and free:  {go}trialrun run\nThen replace `agent` in trialrun.yaml with your own agent.\n{GENERATE}"
        ),
        Template::Scenario => format!("\nTry it, offline and free:  {go}trialrun run\n{REAL_AGENT}{GENERATE}"),
        Template::Skill => {
            let generate = format!("To let a model write tests of the skill:  {go}trialrun gen {home}\n");
            format!("\nTry it, offline and free:  {go}trialrun run\n{REAL_AGENT_AND_EVALS}{measure}{generate}")
        }
    }
}

const REAL_AGENT: &str = "Then remove the lines `agent:` and `model:` from the scenario, which then runs Claude Code, or name another\n\
                          agent in trialrun.yaml; `trialrun doctor` shows which agents are ready.\n";

const REAL_AGENT_AND_EVALS: &str = "Then remove `agent` and `model` from the scenario and from evals.json; trialrun.yaml names the real agent, and\n\
                                    `trialrun doctor` shows which agents are ready.\n";

const GENERATE: &str =
    "To let a model write tests of an agent:  trialrun gen --agent URL --description \"what it does\"\n";

fn files(args: &InitArgs) -> Vec<(PathBuf, String)> {
    let skills = PathBuf::from(args.skills_dir().trim_start_matches("./"));
    let mut files = vec![(PathBuf::from(CONFIG_FILE), config(args))];
    match args.template() {
        Template::Scenario => {
            files.push((PathBuf::from("scenarios/first.yaml"), schema_line("..", SCHEMA_FILE) + SCENARIO));
            files.push((PathBuf::from("scenarios/models/first.yaml"), SCENARIO_MODEL.to_owned()));
        }
        Template::Skill => {
            let home = skills.join(args.skill());
            let named = |text: &str| text.replace("my-skill", args.skill());
            let first = schema_line(&up_from(&home.join("tests")), SCHEMA_FILE) + &named(SKILL_SCENARIO);
            files.extend(scripted(args, &home, skill(args, &home)));
            files.push((home.join("tests/first.yaml"), first));
            files.push((home.join("tests/models/first.yaml"), named(SKILL_MODEL)));
            files.push((PathBuf::from(EVALS_SCHEMA_FILE), pretty(&suite::evals_schema())));
        }
        Template::Code => {
            let conversation = schema_line("..", CONVERSATION_SCHEMA_FILE) + CONVERSATION;
            files.push((PathBuf::from("agent.ts"), AGENT.to_owned()));
            files.push((PathBuf::from("tests/hello.test.ts"), TEST.to_owned()));
            files.push((PathBuf::from("tests/edge-case.yaml"), conversation));
            // Placed in the folder of the tests, so that a project keeps its own `tsconfig.json`.
            files.push((PathBuf::from("tests/tsconfig.json"), TSCONFIG.to_owned()));
            files.push((PathBuf::from("types/trialrun.d.ts"), grade::declarations()));
            files.push((PathBuf::from("types/globals.d.ts"), GLOBALS.to_owned()));
            files.push((
                PathBuf::from(CONVERSATION_SCHEMA_FILE),
                pretty(&suite::conversation_schema(grade::assertion_schema(&[]))),
            ));
        }
    }
    if args.template() != Template::Code {
        files.push((PathBuf::from(SCHEMA_FILE), pretty(&suite::scenario_schema(grade::assertion_schema(&["id"])))));
    }
    files
}

/// Returns the files of a skill with its suite in `home`, which is below the folder with the schema.
fn skill(args: &InitArgs, home: &Path) -> Vec<(PathBuf, String)> {
    let evals = EVALS.replace("my-skill", args.skill());
    let schema = format!("{}/{EVALS_SCHEMA_FILE}", up_from(&home.join("evals")));
    vec![
        (home.join("SKILL.md"), SKILL.replace("my-skill", args.skill())),
        (home.join("evals/evals.json"), evals.replace("evals.schema.json", &schema)),
        (home.join("evals/files/guest.txt"), EVALS_INPUT.to_owned()),
    ]
}

/// Returns the files of a skill in `home` with a scripted model for its suite, so that running it costs nothing.
fn scripted(args: &InitArgs, home: &Path, mut files: Vec<(PathBuf, String)>) -> Vec<(PathBuf, String)> {
    let name = format!("\"skill_name\": \"{}\",", args.skill());
    for (_, text) in files.iter_mut().filter(|(path, _)| path.ends_with("evals/evals.json")) {
        *text = text
            .replace(&name, &format!("{name}\n  \"agent\": \"chat\",\n  \"model\": \"scripted:models/first.yaml\","));
    }
    files.push((home.join("evals/models/first.yaml"), EVALS_MODEL.replace("my-skill", args.skill())));
    files
}

/// Returns the folder of the skill `name`, and its files including a suite. An existing `SKILL.md` is kept. The schema
/// is placed next to the suite, so that the skill is self-contained.
fn named_skill(args: &InitArgs, name: &str) -> (PathBuf, Vec<(PathBuf, String)>) {
    let dir = args.output.clone().unwrap_or_else(|| PathBuf::from("."));
    let home = PathBuf::from(name);
    let files = [
        (home.join("SKILL.md"), SKILL.replace("my-skill", name)),
        (home.join("evals/evals.json"), EVALS.replace("my-skill", name)),
        (home.join("evals/files/guest.txt"), EVALS_INPUT.to_owned()),
        (home.join("evals").join(EVALS_SCHEMA_FILE), pretty(&suite::evals_schema())),
    ];
    let files = without_own_skill(args, &dir, files.into());
    (dir, files)
}

/// Omits `SKILL.md` if the user already has one. The suite next to it is still created.
fn without_own_skill(args: &InitArgs, dir: &Path, files: Vec<(PathBuf, String)>) -> Vec<(PathBuf, String)> {
    let is_wanted = |file: &PathBuf| args.force || !file.ends_with("SKILL.md") || !dir.join(file).exists();
    files.into_iter().filter(|(file, _)| is_wanted(file)).collect()
}

/// Returns the base folder and the files of a skill for a project that may already exist.
fn skill_alone(args: &InitArgs) -> Result<(PathBuf, Vec<(PathBuf, String)>), CliError> {
    let cwd = std::env::current_dir()
        .map_err(|error| CliError::environment(format!("the current directory cannot be read: {error}")))?;
    let (project, _) = suite::Project::find(&args.dir, &cwd);
    let configured =
        project.skills_dir.strip_prefix(&project.root).ok().filter(|_| project.root == cwd.join(&args.dir));
    let skills = match (&args.skills_dir, configured) {
        (None, Some(configured)) => configured.to_owned(),
        _ => PathBuf::from(args.skills_dir().trim_start_matches("./")),
    };
    let mut files = without_own_skill(args, &args.dir, skill(args, &skills.join(args.skill())));
    // Another skill may have created it.
    if !args.dir.join(EVALS_SCHEMA_FILE).exists() {
        files.push((PathBuf::from(EVALS_SCHEMA_FILE), pretty(&suite::evals_schema())));
    }
    Ok((args.dir.clone(), files))
}

fn pretty(schema: &serde_json::Value) -> String {
    serde_json::to_string_pretty(schema).unwrap_or_default() + "\n"
}

/// Returns the relative path from a folder up to its base folder.
fn up_from(folder: &Path) -> String {
    vec![".."; folder.components().count()].join("/")
}

/// Returns the line that lets editors with a YAML language server complete and validate the file.
fn schema_line(up: &str, file: &str) -> String {
    format!("# yaml-language-server: $schema={up}/{file}\n")
}

fn config(args: &InitArgs) -> String {
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let mut text = String::new();
    // An agent of the other template runs in this program, and what replaces it is often a service.
    if args.template() != Template::Code {
        text.push_str(&format!(
            "sandbox: {AUTO_SANDBOX} # where this machine can isolate agents, they see only their sandbox and the system\n"
        ));
    }
    // The folder is omitted if it does not exist yet, unless an option names it.
    if args.template() == Template::Skill || args.skills_dir.is_some() {
        text.push_str(&format!("skills_dir: {}\n", quoted(args.skills_dir())));
    }
    if args.template() == Template::Code {
        text.push_str("agent: custom:agent.ts # a placeholder; `trialrun list --agents` lists all agents\n");
    }
    if args.template() == Template::Scenario {
        text.push_str("# agent: codex # or opencode, chat; tests that name no agent use claude-code\n");
    }
    if args.template() == Template::Skill || args.model.is_some() || args.permission_mode.is_some() {
        text.push_str("defaults:\n");
    }
    if args.template() == Template::Skill {
        // The first scenario selects `chat` with a scripted model.
        text.push_str("  agent: claude-code # or codex, opencode, chat\n");
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
