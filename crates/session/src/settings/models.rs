//! `--model`: the models that the command line gives to all agents, or to one.

use std::sync::Arc;

use model::Diagnostic;

/// Reports a `--model` whose text before the `=` looks like an agent's name but is not one.
pub(super) fn unknown_agent(
    written: &str,
    is_agent: impl Fn(&str) -> bool,
    own: &[Arc<agent::Configured>],
) -> Option<Diagnostic> {
    let (agent, _) = written.split_once('=')?;
    let is_name = |text: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
    if !is_name(agent) || is_agent(agent) {
        return None;
    }
    let built_in = agent::AGENTS.iter().map(|agent| agent.name());
    let names: Vec<&str> = built_in.chain(own.iter().map(|agent| agent.name.as_str())).collect();
    let problem = Diagnostic::error(format!("unknown agent `{agent}` in `--model {written}`"));
    Some(problem.suggest(model::nearest(agent, names.iter().copied())).help(format!("agents: {}", names.join(", "))))
}

/// Returns a warning about the first of `models` that a later one for the same agents replaces.
pub(super) fn replaced_model(models: &[(Option<String>, String)]) -> Option<Diagnostic> {
    let is_replaced = |(index, (agent, model)): &(usize, &(Option<String>, String))| {
        let mut later = models[index + 1..].iter();
        later.any(|(other, another)| other == agent && another != model)
    };
    let (_, (agent, model)) = models.iter().enumerate().find(is_replaced)?;
    let whose = agent.as_ref().map_or_else(String::new, |agent| format!(" of `{agent}`"));
    let problem = Diagnostic::warning(format!("the model `{model}`{whose} is not used: a later one replaces it"));
    Some(problem.help("a run has one model for each agent: run twice, and compare the two runs"))
}

/// Returns a warning about the first of `models` that is for none of the `agents` that the run names.
pub(super) fn unused_model(
    models: &[(Option<String>, String)],
    agents: &[String],
    own: &[Arc<agent::Configured>],
) -> Option<Diagnostic> {
    let is = |agent: &dyn agent::Agent, name: &str| agent.name() == name || agent.description().aliases.contains(&name);
    let is_for = |name: &str, written: &String| {
        let configured = own.iter().find(|agent| agent.name == *written);
        let kind = configured.and_then(|configured| configured.agent().ok());
        let kind = kind.or_else(|| agent::find(written).map(|(agent, _)| agent));
        written == name || kind.is_some_and(|kind| is(kind, name))
    };
    let mut named = models.iter().filter_map(|(name, model)| Some((name.as_deref()?, model)));
    let (name, model) =
        named.find(|(name, _)| !agents.is_empty() && !agents.iter().any(|written| is_for(name, written)))?;
    Some(Diagnostic::warning(format!("the model `{model}` is not used: the run has no agent `{name}`")))
}

/// Splits `agent=model`; otherwise returns only the model. A model whose name contains `=` must follow an agent's
/// name.
pub(super) fn split_model(written: &str, is_agent: impl Fn(&str) -> bool) -> (Option<String>, String) {
    match written.split_once('=') {
        Some((agent, model)) if is_agent(agent) => (Some(agent.to_owned()), model.to_owned()),
        _ => (None, written.to_owned()),
    }
}
