//! `trialrun doctor`.

mod acp;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use agent::{AGENTS, Readiness};
use model::{Diagnostic, FaultAction};
use report::columns;
use sandbox::supervise::{self, Containment};
use sandbox::{Host, SandboxKind, SandboxOptions};
use serde_json::json;

use crate::error::CliError;
use crate::global::Global;
use crate::place;
use crate::terminal::Terminal;
use crate::{exit, machine};
use session::overrides::Overrides;
use session::{Session, shown};

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Run the documented examples of all assertions and operators, and compare the results
    #[arg(long)]
    self_test: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Check the agent that this command starts against the Agent Client Protocol, instead of the machine
    #[arg(long, value_name = "COMMAND", conflicts_with = "self_test")]
    acp: Option<String>,
    /// Pass a variable to that agent; without a value, it is taken from the environment
    #[arg(long, value_name = "NAME[=VALUE]", requires = "acp")]
    env: Vec<String>,
    /// Also write the results of `--acp` to this file as JUnit XML
    #[arg(long, value_name = "FILE", requires = "acp")]
    junit: Option<PathBuf>,
}

/// Kinds of findings that test this program itself, with the examples of the assertions and of the operators.
const SELF_TEST: &str = "self-test";
const OPERATOR: &str = "operator";
const CONFIGURATION: &str = "config";
const RECORD: &str = "record";
const SANDBOX: &str = "sandbox";

/// The sandbox kind that is a plain directory on this machine.
const LOCAL: &str = "local";

/// The sandbox kind that hides this machine's files.
const ISOLATED: &str = "isolated";

/// Time limit for a program to report its version.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Result of one check.
struct Finding {
    kind: &'static str,
    name: String,
    ready: bool,
    about: Vec<String>,
    hints: Vec<String>,
}

impl Finding {
    fn tests_itself(&self) -> bool {
        matches!(self.kind, SELF_TEST | OPERATOR)
    }

    /// Returns `true` for what every run needs.
    fn is_needed(&self) -> bool {
        matches!(self.kind, CONFIGURATION | RECORD) || (self.kind == SANDBOX && self.name == LOCAL)
    }
}

/// Checks the machine.
pub fn run(global: &Global, args: &DoctorArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    if let Some(line) = &args.acp {
        return acp::run(line, args, terminal);
    }
    let host = machine::host()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::environment(format!("cannot start threads: {error}")))?;
    let mut findings = runtime.block_on(agents(&host));
    findings.push(runtime.block_on(git(&host)));
    findings.push(runtime.block_on(containment(&host)));
    findings.extend(faults());
    let session = place::open(global, &[])?;
    let settings = session.settings(&session.resolve(&Overrides::default())?);
    findings.extend(isolation(&host, &settings));
    findings.extend(configuration(&session));
    findings.push(record(&session));
    findings.extend(own_agents(&settings));
    findings.extend(models(&settings));
    findings.extend(prices());
    findings.push(log());
    if args.self_test {
        findings.extend(self_test());
        findings.extend(operator_self_test());
    }
    // A missing agent does not mean that the machine is broken; a failing self-test is a bug.
    let missing = || findings.iter().filter(|found| !found.ready);
    let code = if missing().any(Finding::tests_itself) {
        exit::BUG
    } else if missing().any(Finding::is_needed) {
        exit::INCOMPLETE
    } else {
        exit::PASSED
    };
    if args.json {
        let rows: Vec<_> = findings
            .iter()
            .map(|found| {
                json!({"kind": found.kind, "name": found.name, "ready": found.ready, "about": found.about, "hints": found.hints})
            })
            .collect();
        terminal.json(&rows);
    } else {
        terminal.out(&draw(&in_short(findings), terminal));
    }
    Ok(ExitCode::from(code))
}

async fn agents(host: &Host) -> Vec<Finding> {
    let mut findings = Vec::new();
    for agent in AGENTS {
        let Readiness { ready, version, auth, hints } = agent.ready(host).await;
        let mut about: Vec<String> = version.into_iter().collect();
        about.extend(auth.map(|auth| format!("sign-in: {auth}")));
        if about.is_empty() {
            about.push(agent.description().summary.to_owned());
        }
        findings.push(Finding { kind: "agent", name: agent.name().to_owned(), ready, about, hints });
    }
    findings
}

async fn git(host: &Host) -> Finding {
    let version = match host.find_program("git") {
        Some(program) => {
            let asked = host.supervisor.command(program, ["--version"]);
            let output = supervise::run(asked, TIMEOUT, 4096).await.ok().filter(|output| output.status.success());
            output.map(|output| output.stdout.text().trim().trim_start_matches("git version ").to_owned())
        }
        None => None,
    };
    let hints = if version.is_none() {
        vec!["install git: trials whose agent works in a repository need it".to_owned()]
    } else {
        Vec::new()
    };
    Finding { kind: "tool", name: "git".into(), ready: version.is_some(), about: version.into_iter().collect(), hints }
}

async fn containment(host: &Host) -> Finding {
    let asked = tokio::time::timeout(TIMEOUT, host.supervisor.containment()).await;
    let (ready, about) = match asked.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into())) {
        Ok(Containment::Namespace) => (true, "each trial runs in its own PID namespace".to_owned()),
        Ok(Containment::Floor { reason }) => (true, format!("by a supervisor that adopts orphans ({reason})")),
        Err(error) => (false, format!("the program cannot start itself: {error}")),
    };
    let mut hints: Vec<String> =
        session::steering(&host.temp).into_iter().map(|(what, help)| format!("{what}: {help}")).collect();
    let unusable = sandbox::SandboxFactory::open(LOCAL, host).err();
    hints.extend(unusable.as_ref().map(|error| format!("{error}; TMPDIR selects another directory")));
    Finding { kind: SANDBOX, name: LOCAL.into(), ready: ready && unusable.is_none(), about: vec![about], hints }
}

/// Checks which sandbox kinds work on this machine with the project's settings, and what each one guarantees.
fn isolation(host: &Host, settings: &runner::Settings) -> Vec<Finding> {
    let others = sandbox::SANDBOXES.iter().filter(|kind| kind.name() != LOCAL);
    let mut findings: Vec<Finding> = others.map(|kind| held(*kind, host, &settings.sandbox.isolation)).collect();
    let isolated = findings.iter_mut().find(|found| found.name == ISOLATED && found.ready);
    if let Some(isolated) = isolated.filter(|_| settings.sandbox.kind == LOCAL) {
        isolated.hints.push(
            "not used by this project: `sandbox: auto` in the configuration, or `--sandbox isolated`, hides your files \
             from agents"
                .to_owned(),
        );
    }
    findings
}

fn held(kind: &dyn SandboxKind, host: &Host, options: &SandboxOptions) -> Finding {
    let engine = kind.engine(host, options);
    let mut about: Vec<String> = engine.iter().filter_map(|engine| engine.found.clone()).collect();
    let of_kind = |ready, about, hints| Finding { kind: SANDBOX, name: kind.name().into(), ready, about, hints };
    if let Some(engine) = &engine
        && let Some(reason) = engine.problem.as_ref().or(engine.missing.as_ref())
    {
        // An engine that works is ready, even if this project does not use it.
        return of_kind(engine.problem.is_none(), about, vec![reason.clone()]);
    }
    let works = match kind.missing(host, options) {
        Some(missing) => Err(missing),
        // Listing its sandboxes shows that a service can be reached.
        None if kind.is_remote() => kind.leftovers(host, options).map(drop).map_err(|error| error.to_string()),
        None => Ok(()),
    };
    let opened =
        works.and_then(|()| kind.open(host, &sandbox::Registry::new(), options).map_err(|error| error.to_string()));
    let backend = match opened {
        Ok(backend) => backend,
        Err(reason) => return of_kind(false, about, vec![reason]),
    };
    let isolation = backend.isolation();
    let (holds, lacks): (Vec<_>, Vec<_>) = isolation.layers.iter().partition(|layer| layer.holds);
    let line = |layer: &&model::IsolationLayer| format!("without {}: {}", layer.name, layer.detail);
    let names: Vec<&str> = holds.iter().map(|layer| layer.name.as_str()).collect();
    about.extend(engine.and(options.image.as_ref()).map(|image| format!("has the image `{image}`")));
    about.push(format!("isolates with {}", names.join(", ")));
    of_kind(true, about, lacks.iter().map(line).collect())
}

/// Checks whether this machine can inject the faults that depend on it.
fn faults() -> Vec<Finding> {
    let of_machine = [
        (FaultAction::DiskFull { free: 0 }, "mounts a file system of limited size"),
        (FaultAction::ClockOffset { seconds: 1 }, "uses libfaketime"),
    ];
    let finding = |(fault, about): (FaultAction, &str)| {
        let refusal = sandbox::fault_refusal("isolated", &fault);
        let about = refusal.as_ref().map_or_else(|| about.to_owned(), |(reason, _)| reason.clone());
        let (ready, hints) = (refusal.is_none(), refusal.into_iter().map(|(_, help)| help).collect());
        Finding { kind: "fault", name: fault.kind().name().to_owned(), ready, about: vec![about], hints }
    };
    of_machine.into_iter().map(finding).collect()
}

/// Checks the agents that the project configures. They are not started.
fn own_agents(settings: &runner::Settings) -> Vec<Finding> {
    let looked_at = |config: &agent::Configured| {
        let problems = match config.agent() {
            Ok(agent) if config.is_filled => {
                let state =
                    agent::RunState::new(script::Library::default(), &config.directory, mask::Secrets::default());
                agent.check_config(&config.node, &config.directory, &Arc::new(state))
            }
            Ok(_) => vec![Diagnostic::error("an environment variable that it uses is not set")],
            Err(problem) => vec![*problem],
        };
        let about = config.agent().map_or("unknown", |agent| agent.name());
        Finding {
            kind: "agent",
            name: config.name.clone(),
            ready: !problems.iter().any(Diagnostic::is_error),
            about: vec![format!("{about}, of this project")],
            hints: problems
                .into_iter()
                .flat_map(|problem| std::iter::once(problem.to_string()).chain(problem.help))
                .collect(),
        }
    };
    settings.configured.iter().map(|config| looked_at(config)).collect()
}

/// Lists the model providers with their keys, and the judge. Sends no requests and shows no keys.
fn models(settings: &runner::Settings) -> Vec<Finding> {
    let providers = &settings.providers;
    let asked = llm::PROVIDERS.iter().filter(|provider| !provider.variables.is_empty());
    let mut findings: Vec<Finding> = asked.map(|provider| model(provider, providers)).collect();
    let keys: Vec<&str> = grade::judge::DEFAULT_JUDGES.iter().map(|judge| judge.key).collect();
    let hint = format!("set {}, or give `--judge PROVIDER:MODEL` or `judge` in the configuration", keys.join(" or "));
    let chosen = settings.judge.model.as_deref().filter(|judge| !judge.is_empty());
    let (about, wrong) = match chosen.or_else(|| grade::judge::default_judge(providers)) {
        None => ("none: judged assertions stay undecided".to_owned(), Some(hint)),
        Some(judge) => {
            let base_url = settings.judge.base_url.as_deref();
            let judge = grade::judge::named_judge(judge, base_url, providers);
            let opened = providers.open(&judge, base_url, &|_| Err(Vec::new()));
            (judge, opened.err().map(|error| error.to_string()))
        }
    };
    let name = if chosen.is_some() { "chosen" } else { "default" };
    let ready = wrong.is_none();
    findings.push(Finding {
        kind: "judge",
        name: name.into(),
        ready,
        about: vec![about],
        hints: wrong.into_iter().collect(),
    });
    findings
}

fn model(provider: &llm::Provider, providers: &llm::Providers) -> Finding {
    let keys: Vec<&str> = provider.keys().iter().copied().filter(|key| providers.holds(key)).collect();
    let opened = providers.open(&format!("{}:any", provider.name), None, &|_| Err(Vec::new()));
    let about = match (&opened, keys.as_slice()) {
        (Err(error), _) => error.to_string(),
        (Ok(_), []) => "needs no key; not contacted".to_owned(),
        (Ok(_), keys) => format!("{} is set", keys.join(" and ")),
    };
    let (name, ready) = (provider.name.to_owned(), opened.is_ok());
    Finding { kind: "provider", name, ready, about: vec![about], hints: Vec::new() }
}

/// Lists the built-in prices: one line per vendor, with its newest list and the number of models in older ones.
fn prices() -> Vec<Finding> {
    let mut vendors: BTreeMap<&str, Vec<&llm::PriceList>> = BTreeMap::new();
    for list in llm::price_lists() {
        vendors.entry(&list.vendor).or_default().push(list);
    }
    let finding = |(vendor, mut lists): (&str, Vec<&llm::PriceList>)| {
        lists.sort_by_key(|list| std::cmp::Reverse(list.as_of));
        let (newest, older) = lists.split_first()?;
        let mut about = vec![format!("{} models as of {}, from {}", newest.len(), newest.as_of, newest.source)];
        let more: usize = older.iter().map(|list| list.len()).sum();
        about.extend((more > 0).then(|| format!("{more} as of earlier dates")));
        Some(Finding { kind: "prices", name: vendor.to_owned(), ready: true, about, hints: Vec::new() })
    };
    vendors.into_iter().filter_map(finding).collect()
}

/// Checks the configuration, if there is one.
fn configuration(session: &Session) -> Option<Finding> {
    let name = shown(session.project.file.as_ref()?, &session.cwd);
    let ready = !session.diagnostics.iter().any(Diagnostic::is_error);
    let hints = session.diagnostics.iter().map(ToString::to_string).collect();
    Some(Finding { kind: CONFIGURATION, name, ready, about: Vec::new(), hints })
}

fn record(session: &Session) -> Finding {
    let about = session.state.shown(&session.cwd);
    let unusable = session.find_store().err().map(|error| error.to_string()).or_else(|| unwritable(&session.state));
    let hints: Vec<_> = unusable.into_iter().collect();
    Finding { kind: RECORD, name: "runs".into(), ready: hints.is_empty(), about: vec![about], hints }
}

/// Returns the reason why a run could not be recorded, if the record is a file.
fn unwritable(state: &session::State) -> Option<String> {
    let folder = state.record_folder()?;
    // A folder that does not exist is created by a run.
    let existing = folder.ancestors().find(|folder| folder.exists())?;
    let error = tempfile::tempfile_in(existing).err()?;
    let folder = existing.display();
    Some(format!("nothing can be written into {folder} ({}); `--state DIR` selects another folder", error.kind()))
}

/// Says how to make a log, which a report about a problem should include.
fn log() -> Finding {
    let about = "`TRIALRUN_LOG=debug` writes what trialrun does to stderr, or to the file in `TRIALRUN_LOG_FILE`";
    Finding { kind: "log", name: "TRIALRUN_LOG".into(), ready: true, about: vec![about.to_owned()], hints: Vec::new() }
}

fn self_test() -> Vec<Finding> {
    grade::self_test()
        .into_iter()
        .map(|test| Finding {
            kind: SELF_TEST,
            name: format!("{} ({})", test.assertion, test.example),
            ready: test.ok,
            about: Vec::new(),
            hints: if test.ok { Vec::new() } else { vec![test.reason] },
        })
        .collect()
}

/// The page that describes the operators in expectations, with their examples.
const OPERATORS_PAGE: &str = include_str!("../../../../docs/reference/operators.md");

fn operator_self_test() -> Vec<Finding> {
    grade::operator_self_test(OPERATORS_PAGE)
        .into_iter()
        .map(|test| Finding {
            kind: OPERATOR,
            name: test.operator.to_owned(),
            ready: test.wrong.is_empty(),
            about: Vec::new(),
            hints: test.wrong,
        })
        .collect()
}

/// Merges the assertions and the operators with the documented results into one line each.
fn in_short(findings: Vec<Finding>) -> Vec<Finding> {
    let is_missing = |found: &Finding| {
        let named = AGENTS.iter().find(|agent| found.kind == "agent" && agent.name() == found.name);
        !found.ready && named.is_some_and(|agent| agent.description().is_by_protocol)
    };
    let (missing, mut findings): (Vec<_>, Vec<_>) = findings.into_iter().partition(is_missing);
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().map(|found| found.name.as_str()).collect();
        let at = findings.iter().rposition(|found| found.kind == "agent").map_or(0, |last| last + 1);
        let name = format!("{} others", missing.len());
        let about = vec![format!("not ready: {}", names.join(", "))];
        let hints = vec!["`--json` lists the reasons".to_owned()];
        findings.insert(at, Finding { kind: "agent", name, ready: false, about, hints });
    }
    let (good, mut names): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|found| found.tests_itself() && found.ready);
    for (kind, name, what) in [
        (SELF_TEST, "assertions", "documented examples have the documented results"),
        (OPERATOR, "operators", "have the documented results"),
    ] {
        let count = good.iter().filter(|found| found.kind == kind).count();
        if count > 0 {
            let about = vec![format!("{count} {what}")];
            names.push(Finding { kind, name: name.into(), ready: true, about, hints: Vec::new() });
        }
    }
    names
}

fn draw(findings: &[Finding], terminal: &Terminal) -> String {
    let style = &terminal.out_style;
    let paint = |code: &str, text: &str| {
        if style.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    };
    let (yes, no) = if style.unicode { ("✓", "✗") } else { ("ok", "--") };
    let kinds = findings.iter().map(|found| found.kind.len()).max().unwrap_or(0);
    let names = columns::widest(findings.iter().map(|found| &found.name));
    let mut text = String::new();
    for found in findings {
        let mark = if found.ready { paint("32", yes) } else { paint("33", no) };
        let name = columns::padded(&found.name, names);
        let line = format!("{mark} {:kinds$}  {name}  {}", found.kind, found.about.join(", "));
        text.push_str(line.trim_end());
        text.push('\n');
        for hint in &found.hints {
            text.push_str(&format!("  {:kinds$}  {}\n", "", paint("2", hint)));
        }
    }
    text
}
