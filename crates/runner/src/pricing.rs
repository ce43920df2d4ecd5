//! Prices for calculating the cost of a trial.

use agent::Pricing;
use sandbox::Host;

use crate::plan::{ModelChoice, PlannedTrial, Settings};

/// Returns the prices for `planned`. Fetches OpenRouter's price list if it is needed and has not been fetched yet; the
/// warning says why there is no list.
pub(crate) async fn pricing_of(planned: &PlannedTrial, settings: &Settings, host: &Host) -> (Pricing, Option<String>) {
    let is_script = matches!(planned.model, ModelChoice::Scripted(_));
    let (mut list, mut warning) = (None, None);
    if !is_script && planned.agent.is_billed_by_openrouter(host, settings.arms.base_url.as_deref()) {
        list = Some(match settings.providers.openrouter_list().await {
            Ok(list) => Some(std::sync::Arc::clone(list)),
            Err(reason) => {
                warning = Some(format!("could not fetch OpenRouter prices: {reason}"));
                None
            }
        });
    }
    let model = planned.arm.model.as_deref();
    (Pricing::of(planned.agent, model, is_script, &settings.providers, list), warning)
}
