//! Checks before the run that the costs which its limits cap will be known.

use agent::{Agent, CaseContext, Costs};
use model::{Case, Diagnostic, Severity};

use super::planner::Planner;
use super::settings::{LimitNames, Settings};
use super::trial::{ModelChoice, SCRIPTED};

impl Planner<'_> {
    /// Reports a limit on costs if the cost of `agent` with this model cannot be known.
    pub(super) fn check_costs(&mut self, agent: &dyn Agent, case_context: &CaseContext<'_>, model: &ModelChoice) {
        let settings = self.request.settings;
        let limits = &settings.limits;
        let is_hard = limits.max_run_cost.is_some() || !limits.on_budget.only_warns();
        let ModelChoice::Vendor(model) = model else { return };
        let Some(limit) = cost_limit(settings) else { return };
        let is_by_price = match agent.description().costs {
            Costs::ByPrice => true,
            Costs::ByPriceElsewhere => case_context.base_url.is_some(),
            Costs::MayReport | Costs::Nothing => false,
        };
        if !is_by_price || !will_run(case_context.case) {
            return;
        }
        let prices = settings.providers.prices();
        let is_known = match model {
            Some(name) if agent.description().asks_providers => {
                settings.providers.has_price(name, case_context.base_url)
            }
            Some(name) => prices.own(name).is_some(),
            // The program chooses the model.
            None => !prices.has_no_own(),
        };
        if is_known {
            return;
        }
        let what = match model {
            Some(name) => format!("the price of `{name}`"),
            None => "the price of its model".to_owned(),
        };
        let problem =
            unpriced(settings, limit, &format!("`{}` does not report its cost, and {what} is not known", agent.name()));
        let severity = if is_hard { Severity::Error } else { Severity::Warning };
        self.problems.push(Diagnostic { severity, ..problem });
    }
}

/// Returns the diagnostic about a model that judges or plays users, if the run's cost has a limit and the price of the
/// model is not known.
pub(super) fn unpriced_aside(settings: &Settings, name: &str, base_url: Option<&str>) -> Option<Diagnostic> {
    settings.limits.max_run_cost?;
    let is_known = name.starts_with(SCRIPTED) || settings.providers.has_price(name, base_url);
    let reason = format!("the price of `{name}`, which judges or plays users, is not known");
    (!is_known).then(|| unpriced(settings, settings.limits.names.run_cost, &reason))
}

fn unpriced(settings: &Settings, limit: &str, reason: &str) -> Diagnostic {
    let LimitNames { total_tokens, run_cost, run_tokens, pricing, .. } = settings.limits.names;
    let tokens = match limit == run_cost {
        true => format!("or limit the tokens of the run: `{run_tokens}`"),
        false => format!("or limit tokens: `{total_tokens}` for a trial, `{run_tokens}` for the run"),
    };
    Diagnostic::error(format!("`{limit}` cannot be kept: {reason}"))
        .help(format!("set the price with `{pricing}`"))
        .help(tokens)
}

/// Returns the name of a limit on costs, if there is one.
fn cost_limit(settings: &Settings) -> Option<&'static str> {
    let LimitNames { cost, run_cost, .. } = settings.limits.names;
    let of_run = settings.limits.max_run_cost.map(|_| run_cost);
    of_run.or(settings.limits.budgets.cost_usd.map(|_| cost))
}

fn will_run(case: &Case) -> bool {
    case.skip.is_none() && case.broken.is_empty()
}
