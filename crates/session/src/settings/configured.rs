//! Parts of the project's configuration other than simple values: agents, the judge, and the limits of providers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent::{AGENTS, Configured};
use model::{Diagnostic, DiagnosticKind};
use suite::{Project, ProviderLimits};

use crate::overrides::Overrides;
use crate::path::shown;
use crate::session::Session;

/// Report on the terminal.
pub const TERMINAL: &str = "terminal";

/// Report for GitHub Actions.
pub const GITHUB: &str = "github";

/// Returns the agents that the project configures.
pub fn agents(project: &Project) -> Vec<Arc<Configured>> {
    project.agents.iter().map(|agent| configured(agent, false)).collect()
}

/// Returns an agent that the project configures, or a suite.
pub fn configured(agent: &suite::ProjectAgent, is_of_suite: bool) -> Arc<Configured> {
    let (name, node, directory) = (agent.name.clone(), agent.node.clone(), agent.directory.clone());
    Arc::new(Configured { name, node, directory, is_filled: agent.missing.is_empty(), is_of_suite })
}

/// Returns the source of models, with keys and addresses from the environment, the project's key for the judge, and
/// the project's prices and limits.
pub fn providers(args: &Overrides, session: &Session, problems: &mut Vec<Diagnostic>) -> llm::Providers {
    let credentials = credentials(session);
    let file = pricing(args, session);
    let known = problems.len();
    let prices = file.map(|file| prices(&file, &session.cwd, problems)).unwrap_or_default();
    if let Some(set) = session.project.pricing.as_ref().filter(|_| args.budgets.pricing.is_none()) {
        let is_unread = |problem: &&mut Diagnostic| matches!(problem.kind, DiagnosticKind::UnreadFile(_));
        problems[known..].iter_mut().filter(is_unread).for_each(|problem| problem.source = Some(set.source.clone()));
    }
    for (name, most) in session.project.workers.iter().flat_map(|workers| &workers.limits) {
        problems.extend(misspelt_limit(name, &session.project).map(|problem| problem.at(most.source.clone())));
    }
    let policies = session.project.providers.iter().filter_map(|limits| policy(limits, problems)).collect();
    llm::Providers::new(credentials, prices, llm::Policy::default()).with_policies(policies)
}

/// Returns a warning about a limit of workers whose name is probably a misspelt agent, or the alias of one: no trial counts
/// against it. A name with a digit, or of a provider, is that of a model.
pub fn misspelt_limit(written: &str, project: &Project) -> Option<Diagnostic> {
    let name = written.split('/').next().unwrap_or(written);
    let own = project.agents.iter().map(|agent| &*agent.name);
    let known: Vec<&str> = own.chain(AGENTS.iter().map(|agent| agent.name())).collect();
    if known.contains(&name) || name.contains(|c: char| c.is_ascii_digit()) || provider(name).is_some() {
        return None;
    }
    let alias = || Some(agent::find(name)?.0.name());
    let near = known.iter().copied().find(|known| model::is_one_mistake(name, known)).or_else(alias)?;
    let message = format!("trials of the agent `{near}` do not count against the limit `{written}`");
    Some(Diagnostic::warning(message).suggest(Some(&written.replacen(name, near, 1))))
}

/// Returns the reports of a run in the form of `--report`: those of the command line, otherwise those of the project.
pub fn reports(args: &Overrides, session: &Session) -> Vec<String> {
    let (typed, project) = (&args.output.report.reports, &session.project.reports);
    let Some(formats) = project.formats.as_ref().filter(|_| typed.is_empty()) else {
        return if typed.is_empty() { vec![TERMINAL.to_owned()] } else { typed.clone() };
    };
    let folder = match &project.directory {
        Some(folder) => Some(&folder.value),
        None => (formats.len() > 1).then_some(&session.state.folder),
    };
    // Preparation has already warned about unknown reports.
    let known = formats.iter().filter_map(|format| report::find(&format.value));
    let report = |kind: &report::Report| match folder.filter(|_| ![TERMINAL, GITHUB].contains(&kind.name)) {
        Some(folder) => format!("{}={}/report.{}", kind.name, folder.display(), kind.extension),
        None => kind.name.to_owned(),
    };
    known.map(report).collect()
}

/// Returns the project's default model, if it applies to one of the chosen agents. A model belongs to the agent that
/// is named next to it; without such an agent, it applies to all agents that can use it.
pub fn default_model(run: &runner::Settings) -> Option<&str> {
    let model = run.defaults.model.as_deref()?;
    let agents = &run.arms.agents;
    if agents.is_empty() {
        return Some(model);
    }
    let Some(owner) = run.defaults.agent.as_deref() else {
        return agents.iter().any(|agent| run.can_use(agent, model)).then_some(model);
    };
    let name = |written: &str| agent::find(written).map(|(agent, _)| agent.name());
    let is_owner = |agent: &String| agent == owner || name(owner).is_some_and(|owner| name(agent) == Some(owner));
    (model.starts_with("scripted:") || agents.iter().any(is_owner)).then_some(model)
}

/// Returns the file with the prices of models.
pub fn pricing(args: &Overrides, session: &Session) -> Option<PathBuf> {
    let typed = args.budgets.pricing.as_ref().map(|file| session.cwd.join(file));
    typed.or_else(|| Some(session.project.pricing.as_ref()?.value.clone()))
}

/// The variable that changes OpenAI's address.
pub const OPENAI_BASE_URL: &str = "OPENAI_BASE_URL";

/// Returns the address for an OpenAI judge without a configured address, because the provider itself also reads this
/// variable.
pub fn openai_address<'w>(run: &runner::Settings, session: &'w Session) -> Option<&'w str> {
    let address = session.environment().get(OPENAI_BASE_URL)?.trim();
    let is_openai = run.judge()?.split_once(':').is_some_and(|(name, _)| name.split('-').next() == Some("openai"));
    (is_openai && !address.is_empty()).then_some(address)
}

fn credentials(session: &Session) -> llm::Credentials {
    let credentials = llm::Credentials::of(session.environment());
    let judge = &session.project.judge;
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
