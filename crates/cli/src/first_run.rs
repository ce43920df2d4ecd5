//! The announcement of a plain `trialrun run` that is the first one in which real models would work on its cases.

use model::CassetteMode;
use report::counted;
use runner::{ModelChoice, Plan, PlannedTrial};

use crate::command::plan::history::History;
use crate::error::CliError;
use crate::terminal::Terminal;
use session::Session;
use session::overrides::Overrides;

/// Announces trials with real models that nothing on the command line asks for, and asks on a terminal whether to run
/// them. Returns `false` if the user does not want them.
///
/// # Errors
/// Returns an error if the record or the answer cannot be read.
pub fn confirm(args: &Overrides, plan: &Plan, context: &Session, terminal: &Terminal) -> Result<bool, CliError> {
    if is_deliberate(args) || plan.settings.cassettes.mode == CassetteMode::Replay {
        return Ok(true);
    }
    let real: Vec<&PlannedTrial> = plan.trials.iter().filter(|trial| uses_real_model(trial)).collect();
    if real.is_empty() || has_earlier(&real, plan, context)? {
        return Ok(true);
    }
    let mut agents: Vec<&str> = real.iter().map(|trial| &*trial.arm.agent).collect();
    agents.sort_unstable();
    agents.dedup();
    let mut text = format!(
        "note: {} with a real model ({}). No earlier trial tells what this costs; `--max-run-cost USD` limits it.\n",
        match real.len() {
            1 => "1 trial runs".to_owned(),
            many => format!("{} run", counted(many, "trial")),
        },
        agents.join(", ")
    );
    if plan.settings.sandbox.kind == "local" {
        text.push_str(
            "note: agents in `local` sandboxes can reach your files and the network; `--sandbox auto` hides your files \
             where this machine can\n",
        );
    }
    if !terminal.can_ask() {
        terminal.err(&text);
        return Ok(true);
    }
    let answer = terminal.ask(&text, "Run them? [y/N] ")?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// Returns `true` if the command line says what to run, with which agent or model, or what it may cost.
fn is_deliberate(args: &Overrides) -> bool {
    let by = &args.selection;
    let is_selected = by.skill.is_some() || by.filter.is_some() || by.test.is_some() || by.failures_of().is_some();
    let is_listed = !args.named().is_empty() || !by.cases.is_empty() || !by.tags.is_empty();
    let is_limited = args.budgets.max_run_cost.is_some() || args.budgets.max_cost.is_some();
    is_selected || is_listed || is_limited || !args.arms.agent.is_empty() || !args.arms.model.is_empty()
}

/// Returns `true` if a vendor's model takes part in the trial.
fn uses_real_model(trial: &PlannedTrial) -> bool {
    let agent = trial.agent.description();
    let is_run = trial.case.skip.is_none() && trial.case.broken.is_empty();
    is_run && matches!(trial.model, ModelChoice::Vendor(_)) && (agent.program.is_some() || agent.asks_providers)
}

/// Returns `true` if any of the trials has earlier results.
fn has_earlier(real: &[&PlannedTrial], plan: &Plan, context: &Session) -> Result<bool, CliError> {
    let Some(store) = context.find_store()? else { return Ok(false) };
    let history = History::read(&*store, plan)?;
    let is_known = |trial: &&PlannedTrial| history.get(&trial.suite, &trial.case_id, &trial.arm_name).is_some();
    Ok(real.iter().any(is_known))
}
