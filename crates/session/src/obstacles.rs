//! Obstacles that show before a run: programs, variables and isolation that trials need and do not get.

use std::collections::{BTreeMap, HashMap};

use model::{Diagnostic, DiagnosticKind, Excerpt, Isolation, ServerSource};
use runner::{Plan, PlannedTrial, WITH_ISOLATION};

use crate::session::Session;

/// Returns a warning about each program of an agent or a server that is given by its name and is not on the `PATH` of
/// this machine. Workers may be other machines.
pub fn missing_programs(session: &Session, plan: &Plan) -> Vec<Diagnostic> {
    let has_own_system = sandbox::find(&plan.settings.sandbox.kind).is_none_or(|kind| kind.has_own_system());
    if has_own_system || session.project.workers.is_some() {
        return Vec::new();
    }
    // A path is another matter, and a command with arguments is reported where it is read.
    let is_apart = |letter: char| letter == '/' || letter.is_whitespace();
    let mut found: HashMap<String, bool> = HashMap::new();
    let mut missing: BTreeMap<String, Diagnostic> = BTreeMap::new();
    let runs = plan.trials.iter().filter(|trial| trial.repetition == 1 && trial.case.skip.is_none());
    for trial in runs {
        let fixtures = &trial.case.fixtures;
        if sets_path(&fixtures.env) {
            continue;
        }
        let of_servers = trial.mocks.servers.iter().filter(|server| !server.is_of_plugin);
        let of_servers = of_servers.filter_map(|server| match &server.source {
            ServerSource::Stdio { command, env, .. } if !sets_path(env) => {
                Some((command.clone(), format!("the MCP server `{}`", server.name), Some(server.place.clone())))
            }
            _ => None,
        });
        let of_agent = trial.config.as_deref().and_then(agent::named_program);
        let of_argument = || {
            let named = agent::named_in_argument(trial.agent.name(), trial.argument.as_deref())?;
            Some((named, place_of_agent(trial, plan)))
        };
        let of_agent = of_agent.map(|(name, place)| (name, Some(place))).or_else(of_argument);
        let of_agent = of_agent.map(|(name, place)| (name, format!("the agent `{}`", trial.arm.agent), place));
        let is_mocked = |name: &str| trial.mocks.commands.iter().any(|mocked| mocked.name == name);
        for (name, owner, place) in
            of_servers.chain(of_agent).filter(|(name, ..)| !name.contains(is_apart) && !is_mocked(name))
        {
            if fixtures.setup_commands.iter().any(|command| may_bring(name.as_str(), &command.value)) {
                continue;
            }
            if *found.entry(name.clone()).or_insert_with_key(|name| session.host.find_program(name).is_some()) {
                continue;
            }
            let problem =
                Diagnostic::warning(format!("there is no program named `{name}` on the PATH, and {owner} needs it"));
            let problem = problem.help("install it, or write its path; without it, the trials are broken");
            let problem = Diagnostic { source: place, ..problem };
            missing.insert(problem.to_string(), problem);
        }
    }
    missing.into_values().collect()
}

/// Programs that only change files of the sandbox or print something.
const PLAIN: [&str; 16] = [
    "mkdir", "touch", "echo", "printf", "cat", "git", "true", "cd", "sleep", "test", "rm", "rmdir", "sed", "seq", "ls",
    "pwd",
];

/// Returns `true` if the setup command `command` may install the program `name`.
fn may_bring(name: &str, command: &str) -> bool {
    let mut first_words = command.split([';', '&', '|', '\n']).filter_map(|part| part.split_whitespace().next());
    command.contains(name) || first_words.any(|word| !PLAIN.contains(&word))
}

/// Returns a warning about each variable of this machine that a server refers to and that is not set. Workers may be other
/// machines.
pub fn unset_variables(session: &Session, plan: &Plan) -> Vec<Diagnostic> {
    let mut unset: BTreeMap<String, Diagnostic> = BTreeMap::new();
    let runs = plan.trials.iter().filter(|trial| trial.repetition == 1 && trial.case.skip.is_none());
    for server in runs.filter(|_| session.project.workers.is_none()).flat_map(|trial| &trial.mocks.servers) {
        for name in server.source.variables().filter(|name| !session.environment().contains_key(*name)) {
            let message = format!("the MCP server `{}` needs the variable `{name}`, which is not set", server.name);
            let near = model::nearest(name, session.environment().keys().map(String::as_str));
            let problem = Diagnostic::warning(message).at(server.place.clone()).suggest(near);
            let problem = problem.help(format!("set `{name}` in the environment of this command"));
            let problem = problem.of(DiagnosticKind::UnsetVariable(name.to_owned()));
            unset.insert(problem.to_string(), problem);
        }
    }
    unset.into_values().collect()
}

/// Returns an error if the project requires isolation that its kind of sandbox never has, and warnings about assertions
/// that need it.
pub fn no_isolation(session: &Session, plan: &Plan) -> Vec<Diagnostic> {
    let settings = &plan.settings.sandbox;
    let Some(kind) = sandbox::find(&settings.kind).filter(|kind| !kind.isolates()) else { return Vec::new() };
    if plan.trials.is_empty() {
        return Vec::new();
    }
    let isolation = Isolation::none(kind.name());
    let required = isolation.check("the project", &settings.require).err();
    let network = settings.network.as_ref().filter(|policy| !policy.is_open());
    let closed = network.and_then(|_| isolation.check("the network policy of the run", &["network".to_owned()]).err());
    if let Some(missing) = required.or(closed) {
        let written = session.project.tree.as_ref().and_then(|tree| tree.get("sandbox"));
        let place = written.and_then(|written| written.get("require")).filter(|_| !settings.require.is_empty());
        let place = place.map(model::Node::excerpt).or_else(|| {
            let network = session.project.isolation.network.as_ref()?;
            (settings.network.as_ref() == Some(&network.value)).then(|| network.source.clone())
        });
        let problem = Diagnostic::error(missing.to_string()).help(WITH_ISOLATION);
        return vec![Diagnostic { source: place, ..problem }];
    }
    let checks = plan.trials.iter().filter(|trial| trial.repetition == 1).flat_map(|trial| trial.checks.iter());
    let mut undecided: Vec<Diagnostic> = Vec::new();
    for check in checks.filter(|check| OF_NETWORK.contains(&check.kind())) {
        let message = format!("`{}` stays undecided: `{}` sandboxes do not record attempts", check.kind(), kind.name());
        let problem = Diagnostic::warning(message).at(check.source());
        let problem = problem.help(format!("{WITH_ISOLATION}, and a `network` that is not `open`"));
        if !undecided.contains(&problem) {
            undecided.push(problem);
        }
    }
    undecided
}

/// Assertions about the hosts that agents try to reach, which only isolated sandboxes record.
const OF_NETWORK: [&str; 2] = ["no_egress", "egress_only"];

/// Returns where the agent of `trial` is set; `None` on the command line, and for the default agent.
pub fn place_of_agent(trial: &PlannedTrial, plan: &Plan) -> Option<Excerpt> {
    let settings = &plan.settings;
    if !settings.arms.agents.is_empty() {
        return None;
    }
    let of_case = trial.case.runner.agent.as_ref().map(|(_, place)| place);
    of_case.or(settings.defaults.agent_source.as_ref()).cloned()
}

/// Returns `true` if `variables` set the `PATH`.
pub fn sets_path(variables: &[(String, String)]) -> bool {
    variables.iter().any(|(name, _)| name == "PATH")
}
