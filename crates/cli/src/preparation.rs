//! Loading and planning: everything that is known before anything runs.

use std::path::Path;

use model::Diagnostic;
use runner::{Plan, PlanRequest, Selection};
use store::{Store, TrialFilter};
use suite::Loaded;

use crate::error::CliError;
use crate::global::Global;
use crate::project::Workplace;
use crate::run_args::RunArgs;
use crate::settings::Resolved;

/// Everything that is known before anything runs.
pub struct Prepared {
    /// The project.
    pub workplace: Workplace,
    /// The settings.
    pub resolved: Resolved,
    /// What would run.
    pub plan: Plan,
    /// Every problem of loading and planning.
    pub diagnostics: Vec<Diagnostic>,
    /// The case whose id is nearest to one that was asked for and is not there.
    pub nearest_case: Option<String>,
}

/// Loads and plans.
pub fn prepare(global: &Global, args: &RunArgs) -> Result<Prepared, CliError> {
    let targets: Vec<String> = args.targets.iter().chain(&args.files).cloned().collect();
    let workplace = Workplace::find(global, &targets)?;
    let resolved = Resolved::of(args, &workplace);
    if !runner::sandbox::SANDBOXES.iter().any(|kind| kind.name() == resolved.run.sandbox) {
        let names: Vec<&str> = runner::sandbox::SANDBOXES.iter().map(|kind| kind.name()).collect();
        return Err(CliError::usage(format!("unknown sandbox `{}`", resolved.run.sandbox))
            .hint(format!("sandboxes: {}", names.join(", "))));
    }
    let Loaded { suites, diagnostics } = suite::load(&suite::Request {
        root: workplace.project.root.clone(),
        skills_dir: workplace.project.skills_dir.clone(),
        cwd: workplace.cwd.clone(),
        targets,
        fixtures: workplace.project.fixtures.clone(),
        now_ms: now_ms(),
    });
    let selection = Selection {
        cases: args.cases.clone(),
        filter: args.filter.clone(),
        test: args.test.clone(),
        tags: args.tags.clone(),
        only: args.failed_in.as_deref().map(|run| failed_cases(&workplace, run)).transpose()?,
        shard: args.shard,
    };
    let read_script = |file: &Path| read_script(file, &workplace.cwd);
    let request = PlanRequest {
        suites: &suites,
        settings: &resolved.run,
        selection: &selection,
        cwd: &workplace.cwd,
        read_script: &read_script,
    };
    let (plan, planning) = runner::plan(&request);
    let ids = || suites.iter().flat_map(|suite| suite.cases.iter().map(|case| case.id.as_str()));
    let nearest_case = args.cases.iter().find_map(|wanted| model::nearest(wanted, ids())).map(str::to_owned);
    let mut all = workplace.diagnostics.clone();
    all.extend(diagnostics);
    all.extend(planning);
    Ok(Prepared { workplace, resolved, plan, diagnostics: all, nearest_case })
}

/// Milliseconds since 1970.
fn now_ms() -> Option<i64> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

/// `suite::case` of what failed, broke or stayed undecided in that run.
fn failed_cases(workplace: &Workplace, run: &str) -> Result<Vec<String>, CliError> {
    let store = workplace.read_store()?;
    let run = store.select(run)?;
    let trials = store.trials(&TrialFilter::of_run(&run.id))?;
    Ok(trials
        .iter()
        .filter(|trial| !matches!(trial.outcome, model::Outcome::Passed | model::Outcome::Skipped))
        .map(|trial| format!("{}::{}", trial.suite, trial.case))
        .collect())
}

/// A scripted model's file, read by the one who knows the format of documents.
fn read_script(file: &Path, cwd: &Path) -> Result<llm::Script, Vec<Diagnostic>> {
    let path = cwd.join(file);
    let shown = crate::project::shown(&path, cwd);
    let node = suite::read_document(&path, &shown)?;
    llm::Script::from_node(&node)
}
