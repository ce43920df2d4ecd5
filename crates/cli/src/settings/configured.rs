//! Parts of the project's configuration beside plain values: agents, the judge, and the limits of providers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent::Configured;
use model::Diagnostic;
use suite::{Project, ProviderLimits};

use crate::project::{Workplace, shown};
use crate::run_args::RunArgs;

/// Returns the agents that the project configures.
pub fn agents(project: &Project) -> Vec<Arc<Configured>> {
    let configured = |agent: &suite::ProjectAgent| {
        let (name, node, directory) = (agent.name.clone(), agent.node.clone(), project.root.clone());
        Arc::new(Configured { name, node, directory, is_filled: agent.missing.is_empty() })
    };
    project.agents.iter().map(configured).collect()
}

/// Returns the source of models, with keys and addresses of the environment, the judge's key of the project, and the
/// project's prices and limits.
pub fn providers(args: &RunArgs, workplace: &Workplace, problems: &mut Vec<Diagnostic>) -> llm::Providers {
    let credentials = credentials(workplace);
    let file = pricing(args, workplace);
    let prices = file.map(|file| prices(&file, &workplace.cwd, problems)).unwrap_or_default();
    let policies = workplace.project.providers.iter().filter_map(|limits| policy(limits, problems)).collect();
    llm::Providers::new(credentials, prices, llm::Policy::default()).with_policies(policies)
}

/// The file with the prices of models.
pub fn pricing(args: &RunArgs, workplace: &Workplace) -> Option<PathBuf> {
    let typed = args.budgets.pricing.as_ref().map(|file| workplace.cwd.join(file));
    typed.or_else(|| Some(workplace.project.pricing.as_ref()?.value.clone()))
}

/// The variable that moves OpenAI to another address.
pub const OPENAI_BASE_URL: &str = "OPENAI_BASE_URL";

/// Address of a judge of OpenAI's that has no address of its own: the provider itself goes by this variable.
pub fn openai_address<'w>(run: &runner::Settings, workplace: &'w Workplace) -> Option<&'w str> {
    let address = workplace.environment.get(OPENAI_BASE_URL)?.trim();
    let is_openai = run.judge()?.split_once(':').is_some_and(|(name, _)| name.split('-').next() == Some("openai"));
    (is_openai && !address.is_empty()).then_some(address)
}

fn credentials(workplace: &Workplace) -> llm::Credentials {
    let credentials = llm::Credentials::of(&workplace.environment);
    let judge = &workplace.project.judge;
    let (Some(model), Some(key)) = (&judge.model, &judge.api_key) else { return credentials };
    let vendor = model.value.split_once(':').and_then(|(name, _)| provider(name));
    match vendor.and_then(|vendor| vendor.keys().first()) {
        Some(variable) if judge.missing.is_empty() => credentials.with(*variable, &key.value),
        _ => credentials,
    }
}

fn provider(name: &str) -> Option<&'static llm::Provider> {
    llm::PROVIDERS.iter().find(|provider| provider.name == name)
}

fn prices(file: &Path, cwd: &Path, problems: &mut Vec<Diagnostic>) -> llm::Prices {
    let read = suite::read_document(file, &shown(file, cwd)).and_then(|node| llm::Prices::from_node(&node));
    match read {
        Ok(prices) => prices,
        Err(wrong) => {
            problems.extend(wrong);
            llm::Prices::default()
        }
    }
}

fn policy(limits: &ProviderLimits, problems: &mut Vec<Diagnostic>) -> Option<(String, llm::Policy)> {
    if provider(&limits.name).is_none() {
        let names = || llm::PROVIDERS.iter().map(|provider| provider.name);
        let problem = Diagnostic::error(format!("unknown provider `{}`", limits.name)).at(limits.source.clone());
        let problem = problem.suggest(model::nearest(&limits.name, names()));
        problems.push(problem.help(format!("providers: {}", names().collect::<Vec<_>>().join(", "))));
        return None;
    }
    let mut policy = llm::Policy::default();
    if let Some(concurrency) = limits.concurrency {
        policy.concurrency = usize::try_from(concurrency).unwrap_or(usize::MAX);
    }
    if let Some(requests) = limits.requests_per_minute {
        policy.requests_per_minute = Some(u32::try_from(requests).unwrap_or(u32::MAX));
    }
    if let Some(timeout) = limits.timeout_ms {
        let total = Duration::from_millis(timeout);
        policy.timeouts.total = total;
        policy.timeouts.first_byte = policy.timeouts.first_byte.min(total);
        policy.timeouts.idle = policy.timeouts.idle.min(total);
    }
    Some((limits.name.clone(), policy))
}
