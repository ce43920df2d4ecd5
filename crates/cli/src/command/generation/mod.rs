//! `trialrun gen`.

mod configuration;
mod folder;
mod host;
mod recorded_session;
mod session_files;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use generate::{
    CATEGORIES, Category, ExistingTest, FORMATS, Format, Generated, GenerationRequest, PlannedTest, Subject, distribute,
};
use model::Diagnostic;
use runner::Control;
use tokio::sync::mpsc::unbounded_channel;

use self::folder::TestFolder;
use self::host::GenerationHost;
use crate::discovery::{SourceArgs, address, check_sources, discover, no_answer, no_source, probe, source_path};
use crate::error::CliError;
use crate::global::Global;
use crate::language_model::{self, LanguageModel};
use crate::terminal::Terminal;
use crate::{exit, limits, place, signals};
use session::RunSpec;
use session::overrides::Overrides;
use session::{Session, shown};

/// Default number of tests.
const COUNT: usize = 10;
/// Default number of trials of each test, if there is an agent.
const VERIFY: u64 = 2;

/// Arguments of `gen`.
#[derive(Debug, Clone, clap::Args)]
pub struct GenArgs {
    #[command(flatten)]
    pub sources: SourceArgs,
    /// Number of tests in the output folder, including those that are already there
    #[arg(long, short = 'n', value_name = "N", default_value_t = COUNT)]
    count: usize,
    /// Categories of tests, separated by commas [default: all that suit the agent or skill]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    categories: Vec<String>,
    /// Format of the tests: ts, yaml, scenario, evals or fixtures [default: evals for a skill, otherwise ts]
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
    /// Folder for the tests [default: `tests/generated`, `scenarios/generated`, or `evals` of the skill]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Model that plans and writes the tests, as `provider:model` [default: the project's judge]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Number of times to run each test with the agent; tests with different outcomes are rejected [default: 2 if
    /// there is an agent, otherwise 0]
    #[arg(long, value_name = "N")]
    verify: Option<u64>,
    /// Maximum cost of the requests to the model, in US dollars
    #[arg(long, value_name = "USD", value_parser = parse_budget)]
    budget: Option<f64>,
    /// Order in which facts are offered to the model: another seed results in other tests
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Write a scenario from a session with a coding agent: its file, or `latest` for the newest one in this project
    #[arg(long, value_name = "FILE|latest", conflicts_with_all = [
        "categories", "format", "model", "verify", "budget", "dry_run", "agent", "description", "system_prompt",
        "repo", "assistant", "runs", "paths",
    ])]
    from_session: Option<String>,
    /// Plan the tests and list them, without writing any
    #[arg(long)]
    dry_run: bool,
    /// Replace tests that have the same name
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Discovers facts about an agent or a skill, and writes tests for it.
pub fn run(global: &Global, args: &GenArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    limits::raise_open_files();
    let categories = chosen_categories(&args.categories)?;
    let named_format = args.format.as_deref().map(chosen_format).transpose()?;
    let context = place::open(global, &[])?;
    if let Some(session) = &args.from_session {
        return recorded_session::run(session, args, &context, terminal);
    }
    let args = &GenArgs { sources: args.sources.with_named_agent(&context).in_project(&context), ..args.clone() };
    let mut run_args = Overrides::default();
    run_args.arms.agent.extend(args.sources.agent.clone());
    run_args.arms.no_baseline = true;
    let spec = context.resolve(&run_args)?;
    refuse(&context.diagnostics, terminal)?;
    refuse(spec.problems(), terminal)?;
    let skill = Skill::of(&args.sources, &context);
    let format = named_format.unwrap_or_else(|| default_format(skill.as_ref()));
    let folder = TestFolder::open(args, format, skill.as_ref(), &context)?;
    let existing = folder.existing()?;
    let quotas = quotas(args, categories, format, skill.as_ref(), &existing)?;
    if args.sources.is_empty() {
        return Err(no_source());
    }
    let model =
        language_model::open(args.model.as_deref(), &context.settings(&spec), &context)?.ok_or_else(no_model)?;
    if quotas.is_empty() {
        check_sources(&args.sources, &context, terminal)?;
        let there = report::counted(existing.len(), "test");
        terminal.out(&format!("{there} already in {}; `--count N` asks for more\n", folder.shown()));
        return Ok(ExitCode::SUCCESS);
    }
    let verify = args.verify.unwrap_or(if args.sources.agent.is_some() { VERIFY } else { 0 });
    if let (Some(agent), true) = (&args.sources.agent, verify > 0) {
        probe::try_sandbox(agent, &context, terminal)
            .map_err(|error| error.hint("use `--verify 0` to write tests without running them"))?;
    }
    let found = discover(&args.sources, &context, Some(&model), verify > 0, terminal)?;
    if found.profile.is_empty() && found.silence.is_none() {
        return Err(CliError::nothing("nothing is known about the agent")
            .hint("describe it with `--description`, or name its source code, its prompt or its skill"));
    }
    if let (Some(reason), Some(agent), true) = (&found.silence, &args.sources.agent, verify > 0) {
        return Err(CliError::environment(no_answer(agent, reason))
            .hint("start it, or use `--verify 0` to write tests without running them"));
    }
    let request = GenerationRequest {
        profile: &found.profile,
        skill: skill.as_ref().map(|skill| skill.name.as_str()),
        quotas,
        format,
        seed: args.seed,
        budget: remaining_budget(args.budget, found.cost_usd)?,
        existing: if args.force { &[] } else { &existing },
        in_order: model.is_script,
    };
    if args.dry_run {
        return plan(&request, &model, args.json, terminal);
    }
    let (generated, stopped) = generate(&request, &model, verify, folder, skill.as_ref(), (&context, &spec), terminal)?;
    let configured = match (&args.sources.agent, generated.admitted.is_empty()) {
        (Some(agent), false) => configuration::add_agent(agent, &context)?,
        _ => None,
    };
    if args.json {
        terminal.json(&text::Document::of(&generated, &model.name));
    } else {
        // `run` uses the project's own agent.
        let default = context.project.defaults.agent.as_ref().map(|set| address(&set.value));
        let agent = args.sources.agent.as_deref().map(address).filter(|agent| default != Some(*agent));
        terminal.out(&report::clean(&text::summary(&generated, &request, agent, configured.as_deref())));
    }
    if let Some(reason) = stopped {
        return Ok(ExitCode::from(exit::of_stop(&reason)));
    }
    let is_incomplete = generated.admitted.is_empty() || generated.rejected.iter().any(|test| test.is_trouble);
    Ok(ExitCode::from(if is_incomplete { exit::INCOMPLETE } else { exit::PASSED }))
}

/// Parses a budget in US dollars, above 0.
fn parse_budget(written: &str) -> Result<f64, String> {
    let budget: Option<f64> = written.trim_start_matches('$').parse().ok();
    budget.filter(|budget| *budget > 0.0 && budget.is_finite()).ok_or_else(|| "it is an amount above 0".to_owned())
}

/// Returns the remaining budget after discovery.
fn remaining_budget(budget: Option<f64>, spent: Option<f64>) -> Result<Option<f64>, CliError> {
    match (budget, spent) {
        (None, _) => Ok(None),
        (Some(_), None) => Err(failed(&generate::GenerationError::UnknownCost)),
        (Some(budget), Some(spent)) if spent >= budget => {
            Err(CliError::environment("discovering the agent used up the budget").hint("use a higher `--budget`"))
        }
        (Some(budget), Some(spent)) => Ok(Some(budget - spent)),
    }
}

/// Skill to generate tests for.
pub(super) struct Skill {
    /// Name of its folder.
    name: String,
    /// Its folder, absolute.
    folder: PathBuf,
}

impl Skill {
    /// Returns the first source that is a skill.
    fn of(sources: &SourceArgs, context: &Session) -> Option<Self> {
        let folder = sources.paths.iter().find_map(|path| {
            let path = source_path(path, context);
            let folder = if path.ends_with("SKILL.md") { path.parent()?.to_owned() } else { path };
            folder.join("SKILL.md").is_file().then_some(folder)
        })?;
        // Resolves `.` and links, so that the folder has a name.
        let folder = folder.canonicalize().unwrap_or(folder);
        let name = folder.file_name()?.to_str()?.to_owned();
        Some(Self { name, folder })
    }
}

/// Plans the tests, and prints the plan.
fn plan(
    request: &GenerationRequest<'_>,
    model: &LanguageModel,
    json: bool,
    terminal: &Terminal,
) -> Result<ExitCode, CliError> {
    let (sender, mut controls) = unbounded_channel::<Control>();
    let planned: Result<Option<Vec<PlannedTest>>, CliError> = runtime()?.block_on(async {
        signals::forward(&sender).map_err(|error| cannot_start(&error))?;
        tokio::select! {
            planned = generate::plan_only(request, &*model.model) => planned.map(Some).map_err(|error| failed(&error)),
            _ = controls.recv() => Ok(None),
        }
    });
    let Some(planned) = planned? else { return Ok(ExitCode::from(signals::exit_code().unwrap_or(exit::INCOMPLETE))) };
    if json {
        terminal.json(&planned);
    } else {
        terminal.out(&report::clean(&text::plan(&planned, &generate::targets(request.profile))));
    }
    Ok(ExitCode::SUCCESS)
}

/// Generates the tests. Also returns the signal that stopped it.
fn generate(
    request: &GenerationRequest<'_>,
    model: &LanguageModel,
    verify: u64,
    folder: TestFolder,
    skill: Option<&Skill>,
    (context, spec): (&Session, &RunSpec),
    terminal: &Terminal,
) -> Result<(Generated, Option<String>), CliError> {
    let host = GenerationHost::new(context, spec, folder, skill, verify, terminal)?;
    let (sender, mut controls) = unbounded_channel::<Control>();
    runtime()?.block_on(async {
        signals::forward(&sender).map_err(|error| cannot_start(&error))?;
        let mut reason = None;
        let stop = async {
            if let Some(Control::Stop(signal)) = controls.recv().await {
                reason = Some(signal);
            }
        };
        let generated = generate::generate(request, &*model.model, &host, stop).await;
        host.finish().await;
        Ok((generated.map_err(|error| failed(&error))?, reason))
    })
}

fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    let built = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    built.map_err(|error| cannot_start(&error))
}

fn cannot_start(error: &std::io::Error) -> CliError {
    CliError::environment(format!("cannot start threads: {error}"))
}

fn failed(error: &generate::GenerationError) -> CliError {
    let hint = match error {
        generate::GenerationError::UnknownCost => {
            "leave out `--budget`, or set the price of the model with `pricing` in the configuration"
        }
        generate::GenerationError::NoPlan(_) => {
            "`trialrun doctor` shows which models can be used; `--model` names another one"
        }
        generate::GenerationError::NotSaved(_) => "tests that were written before stay",
    };
    CliError::environment(error.to_string()).hint(hint)
}

fn no_model() -> CliError {
    CliError::usage("no model is available to write the tests")
        .hint("name one with `--model`, such as `anthropic:MODEL`, and set its key, such as `ANTHROPIC_API_KEY`")
        .hint("`trialrun doctor` shows which models can be used")
}

/// Prints errors in the configuration, which would otherwise appear again for every test.
fn refuse(problems: &[Diagnostic], terminal: &Terminal) -> Result<(), CliError> {
    terminal.diagnostics(problems);
    match problems.iter().any(Diagnostic::is_error) {
        true => Err(CliError::usage("the configuration of the project is invalid")),
        false => Ok(()),
    }
}

fn chosen_format(name: &str) -> Result<&'static Format, CliError> {
    generate::find_format(name).ok_or_else(|| {
        let names = || FORMATS.iter().map(|format| format.name);
        let near = model::nearest(name, names()).map(|near| format!("did you mean `{near}`?"));
        let formats = names().collect::<Vec<_>>().join(", ");
        CliError::usage(format!("unknown format `{name}`")).maybe_hint(near).hint(format!("formats: {formats}"))
    })
}

fn default_format(skill: Option<&Skill>) -> &'static Format {
    let is_wanted = |format: &&Format| skill.is_none() || format.name == "evals";
    FORMATS.iter().find(is_wanted).unwrap_or(&FORMATS[0])
}

fn chosen_categories(names: &[String]) -> Result<Vec<&'static Category>, CliError> {
    let find = |name: &String| {
        generate::find_category(name.trim()).ok_or_else(|| {
            let known = || CATEGORIES.iter().map(|category| category.name);
            let near = model::nearest(name, known()).map(|near| format!("did you mean `{near}`?"));
            let categories = known().collect::<Vec<_>>().join(", ");
            CliError::usage(format!("unknown category `{name}`"))
                .maybe_hint(near)
                .hint(format!("categories: {categories}"))
        })
    };
    names.iter().map(find).collect()
}

/// Returns the number of tests to write for each category.
fn quotas(
    args: &GenArgs,
    named: Vec<&'static Category>,
    format: &Format,
    skill: Option<&Skill>,
    existing: &[ExistingTest],
) -> Result<Vec<(&'static Category, usize)>, CliError> {
    // Other formats of skill tests put the skill into the prompt, so they cannot test whether it is used.
    let tells_use = skill.is_some() && format.name == "evals";
    let suits = |category: &Category| match category.subject {
        Subject::Skill => tells_use,
        Subject::Any => format.has_turns || !category.needs_turns,
    };
    if let Some(other) = named.iter().find(|category| !suits(category)) {
        let reason = match other.subject {
            Subject::Skill => "needs a skill and the format `evals`",
            Subject::Any => "needs a format whose tests have several messages, such as `ts`",
        };
        return Err(CliError::usage(format!("the category `{}` {reason}", other.name)));
    }
    let categories = match named.is_empty() {
        true => CATEGORIES.iter().filter(|category| suits(category)).collect(),
        false => named,
    };
    let is_of = |test: &ExistingTest, category: &Category| {
        test.name.strip_prefix(category.name).is_some_and(|rest| rest.starts_with('-'))
    };
    let numbers: Vec<usize> =
        categories.iter().map(|category| existing.iter().filter(|test| is_of(test, category)).count()).collect();
    let missing = if args.force { args.count } else { args.count.saturating_sub(existing.len()) };
    Ok(distribute(missing, &categories, &numbers))
}

/// Returns the path as the user would write it.
fn shown_path(path: &std::path::Path, context: &Session) -> String {
    shown(path, &context.cwd)
}
