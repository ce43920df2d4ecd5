//! Options of the command line that have no effect on the planned run.

use agent::Costs;
use model::{CassetteMode, Diagnostic};
use runner::{Plan, PlannedTrial};

use crate::layer::Layer;
use crate::settings::{Row, RunSpec};

/// Returns a warning about each option that has no effect. A variable may be set for many runs, so it is not reported.
pub(super) fn idle_options(spec: &RunSpec, plan: &Plan) -> Vec<Diagnostic> {
    let is_planned = !plan.trials.is_empty();
    let of_plan = [without_subject, without_sandbox, without_model, without_budget].into_iter().filter(|_| is_planned);
    of_plan.filter_map(|find| find(spec, plan)).chain(idle_cassettes(spec)).chain(without_calibration(spec)).collect()
}

/// Returns a warning about the agreement that a calibration needs in a run without one.
fn without_calibration(spec: &RunSpec) -> Option<Diagnostic> {
    let problem = Diagnostic::warning("`--judge-min-kappa` has no effect: the judge of the run needs no calibration");
    let is_set = |row: &Row| row.name == "judge_calibration" && !row.value.is_null();
    let is_idle = is_typed(spec, "judge_min_kappa") && !spec.rows().iter().any(is_set);
    is_idle.then(|| problem.help("add `--judge-calibration FILE`; `trialrun calibrate --output FILE` writes one"))
}

/// Returns a warning about what happens when a budget is exceeded in a run without budgets.
fn without_budget(spec: &RunSpec, plan: &Plan) -> Option<Diagnostic> {
    let has_budget = |trial: &PlannedTrial| trial.limits.token_budget.is_some();
    let is_limit = |name: &str| name.starts_with("max_") && name != "max_turns";
    let is_idle = is_typed(spec, "on_budget")
        && !spec.rows().iter().any(|row| is_limit(&row.name) && !row.value.is_null())
        && !plan.trials.iter().any(has_budget);
    let problem = Diagnostic::warning("`--on-budget` has no effect: neither the run nor its trials have a budget");
    is_idle.then(|| problem.help("add one, such as `--max-cost USD`"))
}

/// Returns a warning about options for arms with and without the skill in a run of which no case has one.
fn without_subject(spec: &RunSpec, plan: &Plan) -> Option<Diagnostic> {
    let typed = &spec.overrides().arms;
    let option = typed.baseline.then_some("--baseline").or((!typed.arms.is_empty()).then_some("--arms"))?;
    let has_subject = |trial: &PlannedTrial| {
        let case = &trial.case;
        case.subject.installed().is_some() || !case.variants.is_empty() || trial.arm.variant.is_some()
    };
    let problem = Diagnostic::warning(format!("`{option}` has no effect: no case tests a skill"));
    let help = "it runs each case with and without the skill that the case tests, which is then `skill` in its file";
    (!plan.trials.iter().any(has_subject)).then(|| problem.help(help))
}

/// Returns a warning about options for sandboxes in a run without any.
fn without_sandbox(spec: &RunSpec, plan: &Plan) -> Option<Diagnostic> {
    let options = [("source_repo", "--source-repo"), ("keep_sandbox", "--keep-sandbox")];
    let (_, option) = options.into_iter().find(|(name, _)| is_typed(spec, name))?;
    let problem = Diagnostic::warning(format!("`{option}` has no effect: no trial has a sandbox"));
    let help = "a trial has one if its agent works on files, such as `claude-code` or `chat`";
    (!plan.trials.iter().any(|trial| trial.needs_sandbox())).then(|| problem.help(help))
}

/// Returns a warning about the address of the models in a run whose agents ask none.
fn without_model(spec: &RunSpec, plan: &Plan) -> Option<Diagnostic> {
    let asks_model = |trial: &PlannedTrial| trial.agent.description().costs != Costs::Nothing;
    let problem = Diagnostic::warning("`--base-url` has no effect: the agents of the run ask no model");
    let is_idle = is_typed(spec, "base_url") && !plan.trials.iter().any(asks_model);
    is_idle.then(|| problem.help("it is the address of the API for the model of an agent"))
}

/// Returns a warning about options for cassettes in a run without any.
fn idle_cassettes(spec: &RunSpec) -> Option<Diagnostic> {
    let typed = &spec.overrides().cassettes;
    let named = typed.cassette_dir.as_ref().map(|_| "--cassette-dir");
    let option = named.or(typed.cassette_delays.then_some("--cassette-delays"))?;
    let is_idle = spec.cassette() == CassetteMode::Off && spec.overrides().fork.is_none();
    let problem = Diagnostic::warning(format!("`{option}` has no effect: the run has no cassettes"));
    is_idle.then(|| problem.help("add `--cassette auto`, `record` or `replay`"))
}

/// Returns `true` if the command line sets the setting `name`.
fn is_typed(spec: &RunSpec, name: &str) -> bool {
    spec.rows().iter().any(|row| row.name == name && row.layer == Layer::CommandLine)
}
