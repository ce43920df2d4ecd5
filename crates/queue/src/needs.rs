//! What a trial needs of a worker, and what a worker has, as words that the database can compare: `agent:codex`,
//! `version:codex/0.172.0`, `key:OPENAI_API_KEY`, `provider:anthropic`, `sandbox:isolated`, `isolation:isolated/network`,
//! `label:gpu`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agent::{AGENTS, Agent};
use model::{CassetteMode, Isolation};
use runner::{ModelChoice, Plan, PlannedTrial};
use sandbox::{Host, Registry, SANDBOXES, SandboxOptions};

use crate::statements::Announcement;

/// Prefix of tags that name a label: a case with the tag `worker:gpu` runs only on workers with the label `gpu`.
const TAG: &str = "worker:";

/// Returns what a trial needs. `host` is the machine of the coordinator, and `isolation` what its sandboxes guarantee,
/// which the record says of all trials.
pub(crate) fn needs(
    planned: &PlannedTrial,
    plan: &NeedsOfPlan,
    isolation: Option<&Isolation>,
    host: &Host,
) -> Vec<String> {
    let mut needs = BTreeSet::new();
    let agent = planned.agent;
    // A project may configure where the program of its agent is.
    if planned.config.is_none() {
        needs.insert(format!("agent:{}", agent.name()));
    }
    if let (ModelChoice::Vendor(model), false) = (&planned.model, plan.is_replayed) {
        let model = model.as_deref();
        if agent.description().program.is_none() {
            needs.extend(model.and_then(provider_with_key));
        }
        needs.extend(agent.missing_key(&without_keys(host), model).map(|key| format!("key:{key}")));
    }
    if runner::judged(planned) > 0 && !plan.is_replayed {
        needs.extend(plan.judge.as_deref().and_then(provider_with_key));
    }
    if planned.needs_sandbox() {
        let kind = &plan.sandbox;
        needs.insert(format!("sandbox:{kind}"));
        let layers = isolation.into_iter().flat_map(|isolation| &isolation.layers).filter(|layer| layer.holds);
        let held = layers.map(|layer| layer.name.as_str());
        let required = plan.required.iter().chain(&planned.case.required_isolation).map(String::as_str);
        needs.extend(held.chain(required).map(|layer| format!("isolation:{kind}/{layer}")));
    }
    needs
        .extend(planned.case.tags.iter().filter_map(|tag| tag.strip_prefix(TAG)).map(|label| format!("label:{label}")));
    needs.into_iter().collect()
}

/// Returns the need for a key of the provider of the model, if it takes one.
fn provider_with_key(model: &str) -> Option<String> {
    let (provider, _) = llm::provider_of(model)?;
    (!provider.keys().is_empty()).then(|| format!("provider:{}", provider.name))
}

/// What all trials of a plan need.
pub(crate) struct NeedsOfPlan {
    sandbox: String,
    required: Vec<String>,
    judge: Option<String>,
    is_replayed: bool,
}

impl NeedsOfPlan {
    pub(crate) fn of(plan: &Plan) -> Self {
        Self {
            sandbox: plan.settings.sandbox.kind.clone(),
            required: plan.settings.sandbox.require.clone(),
            judge: plan.judging.model().map(str::to_owned),
            is_replayed: plan.settings.cassettes.mode == CassetteMode::Replay,
        }
    }
}

/// Version of an agent that is not chosen yet, so that no worker has it.
const UNCHOSEN: &str = "?";

/// Returns the need for the version of an agent that all its trials have, before it is chosen.
pub(crate) fn unchosen(agent: &str) -> String {
    format!("version:{agent}/{UNCHOSEN}")
}

/// Returns the agent whose version is not chosen yet, if `need` is about that.
pub(crate) fn agent_without_version(need: &str) -> Option<&str> {
    need.strip_prefix("version:")?.strip_suffix(UNCHOSEN)?.strip_suffix('/')
}

/// Returns the need for the version of an agent that most free places of these workers have; of two, the later one in
/// the order of their names. `None` if no worker has the agent.
pub(crate) fn most_common_version(agent: &str, workers: &[Announcement]) -> Option<String> {
    let prefix = format!("version:{agent}/");
    let mut places: BTreeMap<&String, i64> = BTreeMap::new();
    for worker in workers {
        for version in worker.has.iter().filter(|has| has.starts_with(&prefix)) {
            *places.entry(version).or_default() += worker.slots;
        }
    }
    places.into_iter().max_by_key(|(_, slots)| *slots).map(|(version, _)| version.clone())
}

/// Returns the names of the limits that a trial counts against: its agent, its model, and both.
pub(crate) fn caps(planned: &PlannedTrial) -> Vec<String> {
    let agent = &planned.arm.agent;
    let model = planned.arm.model.iter().flat_map(|model| [model.clone(), format!("{agent}/{model}")]);
    std::iter::once(agent.clone()).chain(model).collect()
}

/// Returns what this machine has.
pub(crate) async fn offer(host: &Arc<Host>, agents: &[&'static dyn Agent], labels: &[String]) -> Vec<String> {
    let mut has: BTreeSet<String> = labels.iter().map(|label| format!("label:{label}")).collect();
    let blank = without_keys(host);
    for agent in AGENTS.iter().chain(agents) {
        let readiness = agent.ready(host).await;
        if readiness.ready {
            has.insert(format!("agent:{}", agent.name()));
            has.extend(readiness.version.map(|version| format!("version:{}/{version}", agent.name())));
        }
        // A program that is signed in needs no key.
        if agent.missing_key(host, None).is_none() {
            has.extend(agent.missing_key(&blank, None).map(|key| format!("key:{key}")));
        }
    }
    let is_key = |(name, value): &(&String, &String)| !value.is_empty() && name.ends_with("_API_KEY");
    has.extend(host.env.iter().filter(is_key).map(|(name, _)| format!("key:{name}")));
    let credentials = llm::Credentials::of(&host.env);
    let providers = llm::Providers::new(credentials, llm::Prices::default(), llm::Policy::default());
    for provider in llm::PROVIDERS {
        if providers.open(&format!("{}:any", provider.name), None, &|_| Err(Vec::new())).is_ok() {
            has.insert(format!("provider:{}", provider.name));
        }
    }
    let host = Arc::clone(host);
    let of_sandboxes = tokio::task::spawn_blocking(move || sandboxes(&host)).await.unwrap_or_default();
    has.extend(of_sandboxes);
    has.into_iter().collect()
}

/// Returns the kinds of sandbox that this machine can create, with their guarantees.
fn sandboxes(host: &Host) -> Vec<String> {
    let options = SandboxOptions::default();
    let mut has = Vec::new();
    for kind in SANDBOXES.iter().filter(|kind| kind.missing(host, &options).is_none()) {
        if kind.engine(host, &options).is_some_and(|engine| engine.missing.is_some() || engine.problem.is_some()) {
            continue;
        }
        let Ok(backend) = kind.open(host, &Registry::new(), &options) else { continue };
        has.push(format!("sandbox:{}", kind.name()));
        let layers = backend.isolation().layers;
        let held = layers.iter().filter(|layer| layer.holds);
        has.extend(held.map(|layer| format!("isolation:{}/{}", kind.name(), layer.name)));
    }
    has
}

/// Returns the machine as it would be without keys and sign-ins.
fn without_keys(host: &Host) -> Host {
    Host { env: BTreeMap::new(), home: None, ..host.clone() }
}

/// Returns what is missing for `needs` on the worker that lacks the least, in words; `None` if a worker has all.
pub(crate) fn missing<'a>(needs: &[String], workers: impl Iterator<Item = &'a [String]>) -> Option<String> {
    let lacks = |has: &[String]| needs.iter().filter(|need| !has.contains(need)).cloned().collect::<Vec<_>>();
    let least = workers.map(lacks).min_by_key(Vec::len)?;
    let words = |need: &String| match need.split_once(':') {
        Some(("agent", name)) => format!("the agent `{name}`"),
        Some(("version", name)) => match agent_without_version(need) {
            Some(agent) => format!("a known version of the agent `{agent}`"),
            None => format!("the version `{name}` that the first trials have"),
        },
        Some(("key", name)) => format!("the key `{name}`"),
        Some(("provider", name)) => format!("the key for `{name}` models"),
        Some(("sandbox", name)) => format!("`{name}` sandboxes"),
        Some(("isolation", name)) => format!("the guarantee `{name}`"),
        Some(("label", name)) => format!("the label `{name}`"),
        _ => format!("`{need}`"),
    };
    (!least.is_empty()).then(|| least.iter().map(words).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_with_most_places_is_chosen() {
        let worker = |has: &[&str], slots| Announcement {
            id: "w".into(),
            host: "h".into(),
            pid: 1,
            program: "1".into(),
            has: has.iter().map(|has| (*has).to_owned()).collect(),
            slots,
        };
        let workers = [
            worker(&["agent:codex", "version:codex/1.0"], 2),
            worker(&["version:codex/1.1"], 3),
            worker(&["version:codex/1.0", "version:codex-x/9"], 2),
        ];
        assert_eq!(most_common_version("codex", &workers).as_deref(), Some("version:codex/1.0"));
        assert_eq!(most_common_version("opencode", &workers), None);
        assert_eq!(agent_without_version(&unchosen("codex")), Some("codex"));
        assert_eq!(agent_without_version("version:codex/1.0"), None);
    }

    #[test]
    fn the_worker_that_lacks_the_least_decides_what_is_missing() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let needs = words(&["agent:codex", "label:gpu", "sandbox:local"]);
        let [one, other] = [words(&["sandbox:local"]), words(&["agent:codex", "sandbox:local"])];
        let missing = |workers: &[&Vec<String>]| missing(&needs, workers.iter().map(|worker| worker.as_slice()));
        assert_eq!(missing(&[&one, &other]).unwrap(), "the label `gpu`");
        assert_eq!(missing(&[&one]).unwrap(), "the agent `codex`, the label `gpu`");
        assert_eq!(missing(&[&needs]), None);
        assert_eq!(missing(&[]), None, "without any worker, nothing is known to be missing");
    }
}
