//! Facts about an agent or a skill, from all sources that the command line names.

mod cache;
mod endpoint;
pub mod probe;
mod repository;

use std::path::{Path, PathBuf};

use generate::{
    EXPLORATION_VERSION, Evidence, EvidenceKind, Exploration, Fact, PROBES, Profile, SourceFile, Sources, explore,
    observe, read_assistant, transcript_files,
};
use mask::Mask;
use model::Diagnostic;
use reqwest::Url;
use runner::Control;
use store::TrialFilter;
use tokio::sync::mpsc::unbounded_channel;

use self::cache::{Cache, key};
use crate::command::regrade::last_attempt;
use crate::error::CliError;
use crate::language_model::LanguageModel;
use crate::named_run::named_run;
use crate::signals;
use crate::terminal::Terminal;
use session::overrides::{Overrides, parse_duration};
use session::{Session, shown};

/// Name of this evidence, as on the command line.
const DESCRIPTION: &str = "--description";

/// Confidence in a tool that was called in a recorded run.
const RECORDED: f64 = 0.9;

/// Prefix for the name of an agent behind HTTP.
const HTTP: &str = "http:";

/// Sources of facts about an agent or a skill. All of them are combined.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct SourceArgs {
    /// Skills by name or folder, folders with source code, prompts (`.md`, `.txt`), OpenAPI documents, lists of tools
    /// (`.json`, `.yaml`)
    #[arg(value_name = "PATH|SKILL")]
    pub paths: Vec<PathBuf>,
    /// Purpose of the agent, in your words
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// File with the system prompt of the agent
    #[arg(long, value_name = "FILE")]
    pub system_prompt: Option<PathBuf>,
    /// Agent to examine: its URL, or its name in the project
    #[arg(long, value_name = "URL|NAME", value_parser = parse_agent)]
    pub agent: Option<String>,
    /// Repository with source code, cloned into a temporary folder
    #[arg(long, value_name = "URL")]
    pub repo: Option<String>,
    /// Assistant of OpenAI's Assistants API
    #[arg(long, value_name = "ID")]
    pub assistant: Option<String>,
    /// Recorded run whose tool calls are facts
    #[arg(long = "run", value_name = "RUN")]
    pub runs: Vec<String>,
    /// Time limit of each probe of the agent [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub probe_timeout: Option<u64>,
    /// Examine everything again instead of using results that are up to 7 days old
    #[arg(long)]
    pub refresh: bool,
}

impl SourceArgs {
    /// Returns `true` if no source is named.
    pub fn is_empty(&self) -> bool {
        !self.names_subject() && self.description.is_none() && self.system_prompt.is_none()
    }

    /// Returns `true` if a source names the agent or the skill, or contains it.
    fn names_subject(&self) -> bool {
        let Self {
            paths,
            description: _,
            system_prompt: _,
            agent,
            repo,
            assistant,
            runs,
            probe_timeout: _,
            refresh: _,
        } = self;
        let is_named = [agent, repo, assistant].iter().any(|option| option.is_some());
        is_named || !paths.is_empty() || !runs.is_empty()
    }

    /// Takes the only path for an agent if there is no such file or skill, and it is a URL or the name of one of the
    /// project's agents: `trialrun gen shop`.
    pub fn with_named_agent(&self, context: &Session) -> Self {
        let named = match (&self.agent, &self.paths[..]) {
            (None, [path]) if !source_path(path, context).exists() => {
                path.to_str().and_then(|name| parse_agent(name).ok())
            }
            _ => None,
        };
        let is_agent =
            |name: &String| name.starts_with(HTTP) || context.project.agents.iter().any(|agent| agent.name == *name);
        match named.filter(is_agent) {
            Some(agent) => Self { agent: Some(agent), paths: Vec::new(), ..self.clone() },
            None => self.clone(),
        }
    }
}

impl SourceArgs {
    /// Completes the sources with the project: the address of a configured agent stands for that agent, with its headers
    /// and its format. If no source names the subject, this is the project's own agent: a description and a prompt only add
    /// to what it shows.
    pub fn in_project(&self, context: &Session) -> Self {
        let agents = &context.project.agents;
        let of_project = || {
            let default = &context.project.defaults.agent.as_ref()?.value;
            agents.iter().find(|known| known.name == *default)
        };
        let configured = match self.agent.as_deref().map(|agent| agent.strip_prefix(HTTP)) {
            Some(Some(url)) => agents.iter().find(|known| {
                let own = known.node.get("url").and_then(model::Node::as_str).unwrap_or_default();
                own.trim_end_matches('/') == url.trim_end_matches('/')
            }),
            None if !self.names_subject() => of_project(),
            _ => None,
        };
        let agent = configured.map(|known| known.name.clone()).or_else(|| self.agent.clone());
        Self { agent, ..self.clone() }
    }
}

/// Returns the name of an agent: a URL becomes the name of an agent behind HTTP.
fn parse_agent(written: &str) -> Result<String, String> {
    match ["http://", "https://"].iter().any(|scheme| written.starts_with(scheme)) {
        true => Url::parse(written).map(|_| format!("{HTTP}{written}")).map_err(|error| error.to_string()),
        false => Ok(written.to_owned()),
    }
}

/// Facts of all sources.
#[derive(Debug)]
pub struct Discovered {
    /// Facts with their evidence, without secrets.
    pub profile: Profile,
    /// Cost of the requests to the model, in US dollars; `None` if it is unknown.
    pub cost_usd: Option<f64>,
    /// Reason why the agent did not answer any probe.
    pub silence: Option<String>,
}

/// Collects the facts from all sources, and prints the problems. With `model`, that model also reads the files of the
/// sources and the agent's answers, unless the agent does not answer and `must_answer` is true.
///
/// # Errors
/// Returns an error if no source is named, or if one of them cannot be read.
pub fn discover(
    args: &SourceArgs,
    context: &Session,
    model: Option<&LanguageModel>,
    must_answer: bool,
    terminal: &Terminal,
) -> Result<Discovered, CliError> {
    if args.is_empty() {
        return Err(no_source());
    }
    let failed = |error: std::io::Error| CliError::environment(format!("cannot start threads: {error}"));
    let built = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let mut collection = Collection {
        args,
        context,
        terminal,
        mask: Mask::of(context.environment()),
        cache: Cache::open(context, args.refresh),
        profile: Profile { description: args.description.as_deref().map(described), ..Profile::default() },
        files: Vec::new(),
        cost_usd: Some(0.0),
        silence: None,
        must_answer,
    };
    built.map_err(failed)?.block_on(collection.run(model))?;
    let Collection { mut profile, mask, cost_usd, silence, .. } = collection;
    profile.change_texts(|text| mask.string(text));
    Ok(Discovered { profile, cost_usd, silence })
}

/// Returns the error if no source is named.
pub fn no_source() -> CliError {
    CliError::usage("no source is named")
        .hint("name a PATH, such as a folder with the agent's source code, or describe it with `--description`")
}

/// Checks that the sources on this machine can be read, and that the agent is known. Sends nothing.
///
/// # Errors
/// Returns an error if a source cannot be read or the agent is not known.
pub fn check_sources(args: &SourceArgs, context: &Session, terminal: &Terminal) -> Result<(), CliError> {
    read_sources(args, context, None, &Mask::of(context.environment()), terminal)?;
    for run in &args.runs {
        named_run(&*context.read_store()?, run, terminal)?;
    }
    args.agent.as_ref().map_or(Ok(()), |agent| probe::check(agent, context, terminal))
}

/// Reads the paths, the system prompt and the clone of a repository, and prints the problems.
fn read_sources(
    args: &SourceArgs,
    context: &Session,
    clone: Option<(PathBuf, String)>,
    mask: &Mask,
    terminal: &Terminal,
) -> Result<Sources, CliError> {
    let with_name = |path: PathBuf| (path.clone(), shown(&path, &context.cwd));
    let mut paths: Vec<(PathBuf, String)> =
        args.paths.iter().map(|path| with_name(source_path(path, context))).collect();
    paths.extend(clone);
    let prompts: Vec<(PathBuf, String)> =
        args.system_prompt.iter().map(|path| with_name(context.cwd.join(path))).collect();
    let sources = generate::discover(&paths, &prompts, mask);
    terminal.diagnostics(&sources.problems);
    match sources.problems.iter().any(Diagnostic::is_error) {
        true => Err(CliError::usage("a source cannot be read")),
        false => Ok(sources),
    }
}

/// Returns the absolute path of a source: a path, or the folder of the project's skill with that name.
pub fn source_path(written: &Path, context: &Session) -> PathBuf {
    let path = context.cwd.join(written);
    let skill = context.project.skills_dir.join(written);
    let is_skill = written.components().count() == 1 && !path.exists() && skill.join("SKILL.md").is_file();
    if is_skill { skill } else { path }
}

/// Returns the address of an agent behind HTTP as a user writes it, without the prefix of the agent's name.
pub fn address(agent: &str) -> &str {
    agent.strip_prefix(HTTP).filter(|address| !address.starts_with("//")).unwrap_or(agent)
}

/// Returns the message for an agent that did not answer any probe.
pub fn no_answer(agent: &str, reason: &str) -> String {
    format!("the agent `{}` did not answer: {reason}", address(agent))
}

/// Returns the fact that the user states on the command line.
fn described(text: &str) -> Fact {
    let evidence = Evidence { kind: EvidenceKind::Description, ..Evidence::in_file(DESCRIPTION, 1, text) };
    Fact::new(text.trim(), evidence)
}

/// Facts collected so far.
struct Collection<'a> {
    args: &'a SourceArgs,
    context: &'a Session,
    terminal: &'a Terminal,
    mask: Mask,
    cache: Cache,
    profile: Profile,
    /// Files for the model, without secrets.
    files: Vec<SourceFile>,
    /// Cost of the requests to the model so far.
    cost_usd: Option<f64>,
    /// Reason why the agent did not answer any probe.
    silence: Option<String>,
    /// True if the model is not asked about an agent that does not answer.
    must_answer: bool,
}

impl Collection<'_> {
    async fn run(&mut self, model: Option<&LanguageModel>) -> Result<(), CliError> {
        self.read_files().await?;
        if let Some(id) = &self.args.assistant {
            self.read_assistant(id).await?;
        }
        for run in &self.args.runs {
            self.read_run(run)?;
        }
        if let Some(agent) = &self.args.agent {
            self.examine(agent).await?;
        }
        let Some(model) = model.filter(|_| !self.must_answer || self.silence.is_none()) else { return Ok(()) };
        // Probing the agent has already installed the signal handlers.
        let (sender, mut controls) = unbounded_channel::<Control>();
        signals::forward(&sender).map_err(no_signals)?;
        let is_stopped = signals::was_received()
            || tokio::select! {
                () = self.explore(model) => false,
                _ = controls.recv() => true,
            };
        if is_stopped { Err(CliError::stopped("stopped before the model answered")) } else { Ok(()) }
    }

    fn note(&self, text: &str) {
        self.terminal.err(&format!("note: {}\n", report::clean(&self.mask.text(text))));
    }

    /// Reads the paths, the system prompt and the repository.
    async fn read_files(&mut self) -> Result<(), CliError> {
        let clone = match &self.args.repo {
            Some(url) => Some((repository::clone(url).await?, url)),
            None => None,
        };
        let named = clone.as_ref().map(|(folder, url)| (folder.path().to_owned(), repository_name(url)));
        let Sources { profile, mask, files, .. } =
            read_sources(self.args, self.context, named, &self.mask, self.terminal)?;
        (self.mask, self.files) = (mask, files);
        self.profile.merge(profile);
        Ok(())
    }

    async fn read_assistant(&mut self, id: &str) -> Result<(), CliError> {
        let is_id = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        if id.is_empty() || !id.chars().all(is_id) {
            return Err(CliError::usage(format!("`{id}` is not the id of an assistant")));
        }
        let settings = self.context.settings(&self.context.resolve(&Overrides::default())?);
        let base_url = settings.arms.base_url.as_deref();
        let documents = settings.providers.assistants(base_url);
        let documents =
            documents.map_err(|error| CliError::usage(format!("cannot read the assistant `{id}`: {error}")))?;
        let assistant = documents.get(&format!("/assistants/{id}")).await;
        let assistant = assistant
            .map_err(|failure| CliError::environment(format!("cannot read the assistant `{id}`: {failure}")))?;
        self.profile.merge(read_assistant(&assistant, &format!("assistant {id}")));
        Ok(())
    }

    /// Adds the tools that were called in a recorded run.
    fn read_run(&mut self, name: &str) -> Result<(), CliError> {
        let store = self.context.read_store()?;
        let run = named_run(&*store, name, self.terminal)?;
        for row in store.trials(&TrialFilter::of_run(&run.id))? {
            let steps = last_attempt(store.trial_events(&run.id, &row.id)?).steps;
            let mut found = observe(&format!("run {} {}", run.short, row.id), &steps, EvidenceKind::Run, RECORDED);
            // Transcripts without tool calls prove nothing.
            if found.tools.is_empty() {
                found.transcripts.clear();
            }
            self.profile.merge(found);
        }
        Ok(())
    }

    /// Reads the documents of an agent, and sends it the probes.
    async fn examine(&mut self, agent: &str) -> Result<(), CliError> {
        let configured = self.context.project.agents.iter().find(|known| known.name == agent);
        let settings = configured.map(|known| known.node.to_json().to_string()).unwrap_or_default();
        let messages = PROBES.iter().map(|probe| probe.message);
        let key = key(["agent", agent, &settings].into_iter().chain(messages));
        if let Some(cached) = self.cache.get(&key) {
            let age = match cached.days {
                0 => "less than a day old".to_owned(),
                days => report::counted(usize::try_from(days).unwrap_or_default(), "day") + " old",
            };
            self.note(&format!("the answers of `{agent}` are {age}; `--refresh` asks again"));
            self.add_observed(cached.profile);
            return Ok(());
        }
        let written = match agent.strip_prefix(HTTP) {
            Some(url) => Some(url),
            None => configured.and_then(|known| known.node.get("url")?.as_str()),
        };
        let timeout_ms = self.args.probe_timeout.unwrap_or(probe::TIMEOUT_MS);
        let mut found = Profile::default();
        if let Some(url) = written.and_then(|url| Url::parse(url).ok()) {
            let (documents, notes) = endpoint::documents(&url, timeout_ms, self.context).await?;
            found.merge(documents);
            notes.iter().for_each(|note| self.note(note));
        }
        let (sender, controls) = unbounded_channel::<Control>();
        signals::forward(&sender).map_err(no_signals)?;
        let probed = probe::probe(agent, timeout_ms, self.context, controls, self.terminal).await?;
        let Some((answers, problems)) = probed else {
            return Err(CliError::stopped("stopped before the agent answered"));
        };
        let first = problems.first().map(|(_, reason)| reason);
        if problems.len() == PROBES.len() {
            self.silence = first.map(|reason| self.mask.text(reason).into_owned());
        }
        // If every probe failed for the same reason, that is the reason for the silence.
        if self.silence.is_none() || problems.iter().any(|(_, reason)| Some(reason) != first) {
            problems.iter().for_each(|(probe, reason)| self.note(&format!("{probe}: {reason}")));
        }
        found.merge(answers);
        found.change_texts(|text| self.mask.string(text));
        // An agent that did not answer may answer next time, so this is not cached.
        if problems.is_empty() {
            self.store(key, &found);
        }
        self.add_observed(found);
        Ok(())
    }

    /// Adds what an agent said and did. Its answers may also be read by a model.
    fn add_observed(&mut self, found: Profile) {
        self.files.extend(transcript_files(&found));
        self.profile.merge(found);
    }

    /// Lets a model read the files.
    async fn explore(&mut self, model: &LanguageModel) {
        if self.files.is_empty() {
            return;
        }
        let contents = self.files.iter().flat_map(|file| [file.name.as_str(), file.text.as_str()]);
        let key = key(["files", EXPLORATION_VERSION, &model.name].into_iter().chain(contents));
        if let Some(cached) = self.cache.get(&key) {
            return self.profile.merge(cached.profile);
        }
        let exploration = explore(&self.files, &self.profile, &*model.model, model.is_script).await;
        let Exploration { profile: mut found, files, unproven, problems, cost_usd } = exploration;
        self.cost_usd = self.cost_usd.zip(cost_usd).map(|(sum, cost)| sum + cost);
        self.adjust(&mut found);
        found.change_texts(|text| self.mask.string(text));
        problems.iter().for_each(|problem| self.note(problem));
        if unproven > 0 {
            let facts = report::counted(unproven, "fact");
            self.note(&format!("omitted {facts} from `{}`: the quote is not in the file", model.name));
        }
        if problems.is_empty() && files > 0 {
            self.store(key, &found);
        }
        self.profile.merge(found);
    }

    /// Facts from transcripts get the confidence of the transcripts: the agent said them, and may be wrong.
    fn adjust(&self, found: &mut Profile) {
        found.change_evidence(|evidence| {
            if let Some(probe) = PROBES.iter().find(|probe| evidence.file == format!("probe {}", probe.name)) {
                (evidence.kind, evidence.confidence) = (EvidenceKind::Probe, probe.confidence);
            }
        });
    }

    fn store(&mut self, key: String, found: &Profile) {
        if let Err(error) = self.cache.put(key, found) {
            self.note(&format!("cannot store the results: {error}"));
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to `map_err`")]
fn no_signals(error: std::io::Error) -> CliError {
    CliError::environment(format!("cannot handle signals: {error}"))
}

/// Returns the name of a repository from its address.
fn repository_name(url: &str) -> String {
    let path = url.trim_end_matches('/');
    let name = path.rsplit(['/', ':']).next().unwrap_or(path);
    name.strip_suffix(".git").unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_an_agent_behind_http_and_a_repository_is_named_after_the_end_of_its_address() {
        assert_eq!(parse_agent("https://a.example/chat").unwrap(), "http:https://a.example/chat");
        assert_eq!(parse_agent("shop").unwrap(), "shop");
        assert!(parse_agent("http://").is_err());
        for url in ["https://a.example/team/shop.git", "git@a.example:shop.git", "/tmp/shop/"] {
            assert_eq!(repository_name(url), "shop");
        }
    }
}
