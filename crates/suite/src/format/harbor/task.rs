//! Reads a task: its `task.toml`, its instructions, its environment and its verifier.

use std::path::Path;
use std::sync::Arc;

use model::decode::{self, Fields};
use model::{
    Arguments, AssertionScope, AssertionSpec, Case, Diagnostic, Excerpt, Fixtures, Graded, HostPattern, McpServer,
    Mocks, NetworkPolicy, Node, NodeKind, OuterFolder, ServerSource, Source, Span, Spanned, UserMessage,
};

use super::environment::{Environment, below};
use super::reading::{Reading, is_empty};
use super::verifier::{self, REWARDS};
use super::{DOCKERFILE, ENVIRONMENT_FOLDER, INSTRUCTION_FILE, NAME, SOLUTION_FOLDER, STEPS_FOLDER, TESTS_FOLDER};
use crate::coverage::{KeyLog, Treatment};
use crate::document;

/// Default of harbor for a verifier, in seconds.
const VERIFIER_SECONDS: f64 = 600.0;

/// Longest time limit, in seconds: 31 years.
const MOST_SECONDS: f64 = 1e9;

/// Version of the format up to which it is known.
const VERSION: &str = "1.";

/// File with an earlier conversation.
const TRAJECTORY_FILE: &str = "trajectory.json";

/// File that leaves out files of the verifier and of the solution.
const IGNORE_FILE: &str = ".harborignore";

/// Keys of `environment` that change no verdict.
const RESOURCES: [(&str, &str); 7] = [
    ("build_timeout_sec", "no image is built"),
    ("cpus", "sandboxes have no processor limit"),
    ("memory_mb", "the project's own limit holds (`sandbox: {limits: {memory_mb: …}}`)"),
    ("memory", "the project's own limit holds (`sandbox: {limits: {memory_mb: …}}`)"),
    ("storage_mb", "the project's own limit holds (`sandbox: {limits: {disk_mb: …}}`)"),
    ("storage", "the project's own limit holds (`sandbox: {limits: {disk_mb: …}}`)"),
    ("gpu_types", "only a task with `gpus` has a graphics processor"),
];

/// Settings of a task.
#[derive(Default)]
struct Draft {
    description: Option<String>,
    tags: Vec<String>,
    agent_seconds: Option<f64>,
    verifier: Verifier,
    environment: EnvironmentKeys,
    solution_env: Vec<(String, String)>,
    steps: Vec<Step>,
    is_final: bool,
    network: Option<NetworkPolicy>,
}

/// Settings of a verifier.
#[derive(Default, Clone)]
struct Verifier {
    seconds: Option<f64>,
    env: Vec<(String, String)>,
}

/// Settings of an environment.
#[derive(Default)]
struct EnvironmentKeys {
    has_image: bool,
    workdir: Option<String>,
    env: Vec<(String, String)>,
    servers: Vec<McpServer>,
    network: Option<NetworkPolicy>,
}

/// A step of a task.
struct Step {
    name: String,
    agent_seconds: Option<f64>,
    verifier: Verifier,
    /// Rewards without which harbor does not run the next step.
    least: Option<Node>,
    place: Excerpt,
}

impl Reading<'_> {
    /// Reads the task with the file `source`.
    pub(super) fn task(&mut self, source: &Arc<Source>) -> Case {
        let place = source.excerpt(Span::new(0, 0));
        let id = self.own.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut draft = Draft::default();
        if let Some(root) = document::read_toml(source, &mut self.found) {
            self.root(&root, &mut draft);
        }
        self.other_files();
        let environment = self.image(&draft, source);
        let steps: Vec<String> = draft.steps.iter().map(|step| step.name.clone()).collect();
        let messages = self.messages(&steps, &place);
        let assertions = self.assertions(&draft, &place, source);
        let mut outside = environment.outside;
        if !outside.iter().any(|folder: &OuterFolder| below("/logs", &folder.path).is_some()) {
            outside.push(verifier::logs());
        }
        let seconds = match draft.steps.is_empty() {
            true => draft.agent_seconds,
            // Each step has its own time there.
            false => draft.steps.iter().map(|step| step.agent_seconds.or(draft.agent_seconds)).sum(),
        };
        let EnvironmentKeys { env, servers, network, .. } = draft.environment;
        let fixtures = Fixtures {
            directories: environment.directories,
            copy_trees: environment.trees,
            files_unstaged: environment.files,
            env: environment
                .env
                .into_iter()
                .filter(|(name, _)| !env.iter().any(|(own, _)| own == name))
                .chain(env.iter().cloned())
                .collect(),
            workdir: environment.workdir,
            outside,
            source: Some(place.clone()),
            ..Fixtures::default()
        };
        Case {
            description: draft.description,
            tags: draft.tags,
            messages,
            timeout_ms: seconds.map(milliseconds),
            network: draft.network.or(network),
            graded: Graded {
                // A task says what the agent may do in its instruction, and verifies it with files of its own.
                takes_fixture: true,
                folders: verifier::folders(self, &steps),
                rewards: Some(REWARDS.to_owned()),
                solution: verifier::solution(self, &steps, &draft.solution_env, &place),
                ..Graded::default()
            },
            mocks: Arc::new(Mocks { servers, commands: Vec::new() }),
            fixtures: Arc::new(fixtures),
            assertions,
            needs_image: std::mem::take(&mut self.needs_image),
            fails_alone: true,
            ..Case::new(id, place)
        }
    }

    fn root(&mut self, root: &Node, draft: &mut Draft) {
        let Some(mut fields) = Fields::of(root, "the task", &mut self.found) else { return };
        for key in ["schema_version", "version"] {
            let version = fields.any_text(key, &mut self.found);
            if let Some(version) = version.filter(|version| !version.starts_with(VERSION)) {
                let consequence = format!("only versions that begin with `{VERSION}` are known, not `{version}`");
                self.refuse(&mut fields, key, key, &consequence);
            }
        }
        if let Some(node) = fields.get("task") {
            self.about(node, draft);
        }
        if let Some(node) = fields.get("metadata") {
            self.metadata(node, draft);
        }
        if let Some(node) = fields.get("agent") {
            let (seconds, network) = self.agent(node, "agent");
            (draft.agent_seconds, draft.network) = (seconds, network);
        }
        if let Some(node) = fields.get("verifier") {
            draft.verifier = self.verifier(node, "verifier");
        }
        if let Some(node) = fields.get("environment") {
            draft.environment = self.environment_keys(node);
        }
        if let Some(node) = fields.get("solution")
            && let Some(mut solution) = Fields::of(node, "`solution`", &mut self.found)
        {
            draft.solution_env = self.variables(&mut solution, "solution.env");
            self.close(&solution, "solution", &[]);
        }
        let strategies = [("mean", false), ("final", true)];
        draft.is_final = fields.choice("multi_step_reward_strategy", &strategies, &mut self.found).unwrap_or_default();
        for node in fields.list("steps", &mut self.found).unwrap_or_default() {
            draft.steps.extend(self.step(node));
        }
        for (at, step) in draft.steps.iter().enumerate() {
            if draft.steps[..at].iter().any(|other| other.name == step.name) {
                let message = format!("there are two steps called `{}`", step.name);
                self.found.push(Diagnostic::error(message).at(step.place.clone()));
            }
        }
        const IGNORED: [(&str, &str); 2] =
            [("source", "it describes the task"), ("artifacts", "they stay in the sandbox, which can be kept")];
        self.close(&fields, "", &IGNORED);
    }

    fn about(&mut self, node: &Node, draft: &mut Draft) {
        let Some(mut fields) = Fields::of(node, "`task`", &mut self.found) else { return };
        draft.description = fields.any_text("description", &mut self.found).filter(|text| !text.is_empty());
        draft.tags = fields.texts("keywords", &mut self.found).unwrap_or_default();
        const IGNORED: [(&str, &str); 3] = [
            ("name", "the case is called like its folder"),
            ("version", "it describes the task"),
            ("authors", "it describes the task"),
        ];
        self.close(&fields, "task", &IGNORED);
    }

    /// Reads `metadata`, whose keys are free.
    fn metadata(&mut self, node: &Node, draft: &mut Draft) {
        let NodeKind::Map(entries) = &node.kind else {
            self.found.push(node.error(format!("`metadata` must be a map, not {}", node.kind_name())));
            return;
        };
        self.keys.add("metadata".to_owned(), Treatment::Honoured, None, node.excerpt());
        for (name, value) in entries {
            let (key, place) = (format!("metadata.{}", name.value), node.source.excerpt(name.span));
            if name.value != "tags" {
                self.ignore(&key, place, "it describes the task");
                continue;
            }
            let tags = decode::list(value, "`tags`", &mut self.found).unwrap_or_default();
            let new = tags.iter().filter_map(Node::as_str).filter(|tag| !draft.tags.iter().any(|known| known == tag));
            let new: Vec<String> = new.map(str::to_owned).collect();
            draft.tags.extend(new);
            self.keys.add(key, Treatment::Honoured, None, place);
        }
    }

    /// Reads `agent` of the task or of a step: the time limit, and the network.
    fn agent(&mut self, node: &Node, full: &str) -> (Option<f64>, Option<NetworkPolicy>) {
        let Some(mut fields) = Fields::of(node, "`agent`", &mut self.found) else { return (None, None) };
        let seconds = self.seconds(&mut fields);
        let network = self.network(&mut fields, full);
        const IGNORED: [(&str, &str); 1] = [("user", "all processes run as the user of trialrun")];
        self.close(&fields, full, &IGNORED);
        (seconds, network)
    }

    /// Reads a time limit in seconds.
    fn seconds(&mut self, fields: &mut Fields<'_>) -> Option<f64> {
        let seconds = fields.positive("timeout_sec", &mut self.found)?;
        if seconds <= MOST_SECONDS {
            return Some(seconds);
        }
        let place = fields.get("timeout_sec").unwrap_or(fields.node());
        let message = format!("`timeout_sec` must be at most {MOST_SECONDS} seconds, not {seconds:e}");
        self.found.push(place.error(message));
        None
    }

    /// Reads the keys of the network that the environment and the agent have.
    fn network(&mut self, fields: &mut Fields<'_>, full: &str) -> Option<NetworkPolicy> {
        let hosts = fields.texts("allowed_hosts", &mut self.found);
        let modes = [("public", 0), ("no-network", 1), ("allowlist", 2)];
        let mode = fields.choice("network_mode", &modes, &mut self.found);
        let place =
            |fields: &Fields<'_>, key: &str| fields.node().source.excerpt(fields.key_span(key).unwrap_or_default());
        match mode {
            Some(0) => {
                let consequence = "the network of the run holds: `sandbox: {network: open}` opens it";
                self.ignore(&format!("{full}.network_mode = public"), place(fields, "network_mode"), consequence);
                None
            }
            // An agent without its model cannot work.
            Some(1) => Some(NetworkPolicy::ModelOnly),
            Some(2) => {
                let mut allowed = Vec::new();
                for host in hosts.unwrap_or_default() {
                    match HostPattern::of_policy(&host) {
                        Ok(pattern) => allowed.push(pattern),
                        Err(error) => {
                            let place = place(fields, "allowed_hosts");
                            self.refuse_at(&format!("{full}.allowed_hosts"), place, &error.to_string());
                        }
                    }
                }
                Some(NetworkPolicy::Allow(allowed))
            }
            _ => {
                if hosts.is_some() {
                    let consequence = "only `network_mode = \"allowlist\"` has hosts";
                    self.refuse_at(&format!("{full}.allowed_hosts"), place(fields, "allowed_hosts"), consequence);
                }
                None
            }
        }
    }

    fn verifier(&mut self, node: &Node, full: &str) -> Verifier {
        let Some(mut fields) = Fields::of(node, "`verifier`", &mut self.found) else { return Verifier::default() };
        let seconds = self.seconds(&mut fields);
        let env = self.variables(&mut fields, &format!("{full}.env"));
        fields.choice("environment_mode", &[("shared", ()), ("separate", ())], &mut self.found);
        let consequence = "the verifier works in a copy of the agent's sandbox, not in an environment of its own";
        self.refuse(&mut fields, "environment", &format!("{full}.environment"), consequence);
        if fields.get("collect").is_some_and(|node| !is_empty(node)) {
            let consequence = "no command is run between the agent and the verifier";
            self.refuse(&mut fields, "collect", &format!("{full}.collect"), consequence);
        }
        const IGNORED: [(&str, &str); 3] = [
            ("user", "all processes run as the user of trialrun"),
            ("network_mode", "the verifier has the network of the sandbox"),
            ("allowed_hosts", "the verifier has the network of the sandbox"),
        ];
        self.close(&fields, full, &IGNORED);
        Verifier { seconds, env }
    }

    fn environment_keys(&mut self, node: &Node) -> EnvironmentKeys {
        let full = |key: &str| format!("environment.{key}");
        let Some(mut fields) = Fields::of(node, "`environment`", &mut self.found) else {
            return EnvironmentKeys::default();
        };
        let image = fields.text("docker_image", &mut self.found);
        if let Some(image) = &image {
            let place = fields.node().source.excerpt(fields.key_span("docker_image").unwrap_or_default());
            let reason = format!("its programs and files are in the image `{image}`");
            self.need_image(&full("docker_image"), place, &reason);
        }
        let workdir = fields.text("workdir", &mut self.found);
        if let Some(written) = &workdir
            && (!written.starts_with('/') || written.split('/').any(|part| part == ".."))
            && let Some(node) = fields.get("workdir")
        {
            self.found.push(node.error(format!("`workdir` must be an absolute path without `..`, not `{written}`")));
        }
        let workdir = workdir.map(|path| path.trim_end_matches('/').to_owned()).filter(|path| path.starts_with('/'));
        let env = self.variables(&mut fields, &full("env"));
        let mut network = self.network(&mut fields, "environment");
        if fields.boolean("allow_internet", &mut self.found) == Some(false) && network.is_none() {
            network = Some(NetworkPolicy::ModelOnly);
        }
        let mut servers = Vec::new();
        for node in fields.list("mcp_servers", &mut self.found).unwrap_or_default() {
            servers.extend(self.server(node));
        }
        let os = fields.text("os", &mut self.found);
        if os.is_some_and(|os| !os.eq_ignore_ascii_case("linux")) {
            self.refuse(&mut fields, "os", &full("os"), "sandboxes run Linux");
        }
        let is_none = |node: &Node| matches!(&node.kind, NodeKind::Number(number) if number.as_f64() == Some(0.0));
        if fields.get("gpus").is_some_and(|node| !is_none(node)) {
            self.refuse(&mut fields, "gpus", &full("gpus"), "sandboxes have no graphics processor");
        }
        for (key, consequence) in [
            ("tpu", "sandboxes have no such processor"),
            ("healthcheck", "no program runs beside the agent"),
            ("skills_dir", "skills of the environment are not installed"),
        ] {
            self.refuse(&mut fields, key, &full(key), consequence);
        }
        self.close(&fields, "environment", &RESOURCES);
        EnvironmentKeys { has_image: image.is_some(), workdir, env, servers, network }
    }

    fn server(&mut self, node: &Node) -> Option<McpServer> {
        const FULL: &str = "environment.mcp_servers[]";
        let mut fields = Fields::of(node, "an MCP server", &mut self.found)?;
        let name = fields.required_text("name", &mut self.found);
        let transports = [("sse", 0), ("streamable-http", 1), ("http", 1), ("stdio", 2)];
        let transport = fields.choice("transport", &transports, &mut self.found);
        let is_written = fields.get("transport").is_some();
        let url = fields.text("url", &mut self.found);
        let command = fields.text("command", &mut self.found);
        let args = fields.texts("args", &mut self.found).unwrap_or_default();
        let headers = fields.text_map("headers", &mut self.found).unwrap_or_default();
        let headers = headers.into_iter().map(|(name, value)| (name, value.value));
        // The default there is `sse`.
        let source = match (transport, is_written) {
            (Some(2), _) => {
                command.map(|command| ServerSource::Stdio { command, args, env: Vec::new(), files: Vec::new() })
            }
            (Some(1), _) => url.map(|url| ServerSource::Http { url, headers: headers.collect() }),
            (Some(_), _) | (None, false) => {
                self.refuse_at(
                    &format!("{FULL}.transport"),
                    node.excerpt(),
                    "agents are given `stdio` and `streamable-http` servers",
                );
                self.close(&fields, FULL, &[]);
                return None;
            }
            (None, true) => None,
        };
        if source.is_none() && transport.is_some() {
            self.found.push(node.error("an MCP server needs `command` with `stdio`, and `url` with `streamable-http`"));
        }
        self.close(&fields, FULL, &[]);
        Some(McpServer { name: name?, source: source?, is_of_plugin: false, place: node.excerpt() })
    }

    fn step(&mut self, node: &Node) -> Option<Step> {
        let mut fields = Fields::of(node, "a step", &mut self.found)?;
        let name = fields.required_text("name", &mut self.found);
        let is_name = |name: &String| {
            let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
            name.chars().all(is_plain) && !name.starts_with('.')
        };
        if let Some(name) = name.as_ref().filter(|name| !is_name(name)) {
            let problem = node.error(format!("`{name}` cannot be the name of a step: it is the name of a folder"));
            self.found.push(problem);
        }
        let name = name.filter(is_name);
        let agent = fields.get("agent").map(|node| self.agent(node, "steps[].agent"));
        let (agent_seconds, network) = agent.unwrap_or_default();
        if network.is_some() {
            let consequence = "all steps have the network of the task";
            self.refuse_at("steps[].agent.network_mode", node.excerpt(), consequence);
        }
        let verifier = fields.get("verifier").map(|node| self.verifier(node, "steps[].verifier")).unwrap_or_default();
        let least = fields.get("min_reward").cloned();
        self.refuse(&mut fields, "healthcheck", "steps[].healthcheck", "no program runs beside the agent");
        const IGNORED: [(&str, &str); 1] = [("artifacts", "they stay in the sandbox, which can be kept")];
        self.close(&fields, "steps[]", &IGNORED);
        Some(Step { name: name?, agent_seconds, verifier, least, place: node.excerpt() })
    }

    /// Names files of the task that are not used.
    fn other_files(&mut self) {
        let file = |path: &Path| Excerpt::of_file(self.library.shown(path));
        let mut refused = Vec::new();
        for (names, consequence) in [
            (&[TRAJECTORY_FILE][..], "an earlier conversation in this form is not continued"),
            (&[ENVIRONMENT_FOLDER, "docker-compose.yaml"], "services beside the agent are not started"),
            (&[ENVIRONMENT_FOLDER, ".dockerignore"], "all files of the folder would be copied"),
        ] {
            refused.extend(self.part(names).map(|path| (names.join("/"), file(&path), consequence)));
        }
        if let Some(tests) = self.part(&[TESTS_FOLDER])
            && let Some(name) = verifier::has_own_image(&tests)
        {
            let consequence = "the verifier works in a copy of the agent's sandbox, not in an image of its own";
            refused.push((format!("{TESTS_FOLDER}/{name}"), file(&tests.join(name)), consequence));
        }
        for (key, place, consequence) in refused {
            self.refuse_at(&key, place, consequence);
        }
        for folder in [TESTS_FOLDER, SOLUTION_FOLDER] {
            if let Some(path) = self.part(&[folder, IGNORE_FILE]) {
                let place = Excerpt::of_file(self.library.shown(&path));
                self.ignore(&format!("{folder}/{IGNORE_FILE}"), place, "all files of the folder are given");
            }
        }
    }

    /// Reads the Dockerfile. Its keys are listed separately.
    fn image(&mut self, draft: &Draft, source: &Arc<Source>) -> Environment {
        let chosen = draft.environment.workdir.clone();
        let Some(path) = self.part(&[ENVIRONMENT_FOLDER, DOCKERFILE]) else {
            if !draft.environment.has_image {
                let message =
                    format!("the task has no environment: `{ENVIRONMENT_FOLDER}/{DOCKERFILE}` does not exist");
                self.found.push(Diagnostic::error(message).at(Excerpt::of_file(Arc::clone(&source.path))));
            }
            return Environment { workdir: chosen, ..Environment::default() };
        };
        let Some(file) = self.open(&path) else { return Environment::default() };
        let of_task = std::mem::take(&mut self.keys);
        let context = self.own.join(ENVIRONMENT_FOLDER);
        let environment = self.environment(&file, &context, chosen);
        let of_image: KeyLog = std::mem::replace(&mut self.keys, of_task);
        self.library.cover(of_image.finish(&file.path, NAME));
        environment
    }

    fn messages(&mut self, steps: &[String], place: &Excerpt) -> Vec<UserMessage> {
        let paths: Vec<Vec<&str>> = match steps {
            [] => vec![vec![INSTRUCTION_FILE]],
            steps => steps.iter().map(|step| vec![STEPS_FOLDER, step.as_str(), INSTRUCTION_FILE]).collect(),
        };
        let mut messages = Vec::new();
        for names in paths {
            let Some(path) = self.part(&names) else {
                let message = format!("the task has no instruction: `{}` does not exist", names.join("/"));
                self.found.push(Diagnostic::error(message).at(place.clone()));
                continue;
            };
            let Some(source) = self.open(&path) else { continue };
            let text = without_canaries(&source.text);
            if text.is_empty() {
                self.found
                    .push(Diagnostic::error("the instruction is empty").at(Excerpt::of_file(Arc::clone(&source.path))));
            }
            messages.push(UserMessage::text(text));
        }
        for step in steps {
            if let Some(path) = self.part(&[STEPS_FOLDER, step, "workdir"]) {
                let place = Excerpt::of_file(self.library.shown(&path));
                self.refuse_at("steps/NAME/workdir", place, "no files are added between the steps");
            }
        }
        messages
    }

    /// Returns an assertion for each verifier.
    fn assertions(&mut self, draft: &Draft, place: &Excerpt, source: &Arc<Source>) -> Vec<AssertionSpec> {
        let start = document::start(source);
        if draft.steps.is_empty() {
            let line = verifier::line(self, None, &draft.verifier.env, place);
            let seconds = draft.verifier.seconds.unwrap_or(VERIFIER_SECONDS);
            return line
                .map(|line| reward("verifier", line, seconds, None, AssertionScope::Trial, &start))
                .into_iter()
                .collect();
        }
        let mut assertions = Vec::new();
        for (at, step) in draft.steps.iter().enumerate() {
            let is_last = at + 1 == draft.steps.len();
            let env: Vec<(String, String)> = draft.verifier.env.iter().chain(&step.verifier.env).cloned().collect();
            let Some(line) = verifier::line(self, Some(&step.name), &env, &step.place) else { continue };
            let seconds = step.verifier.seconds.or(draft.verifier.seconds).unwrap_or(VERIFIER_SECONDS);
            // With `final`, the rewards of other steps only decide whether the next one runs.
            let least = match (draft.is_final && !is_last, &step.least) {
                (true, None) => continue,
                (true, least) => least.clone(),
                (false, _) => None,
            };
            let scope = AssertionScope::Reply(at + 1);
            assertions.push(reward(&step.name, line, seconds, least, scope, &start));
        }
        assertions
    }
}

/// Creates an assertion about the reward of a verifier.
fn reward(
    id: &str,
    line: String,
    seconds: f64,
    least: Option<Node>,
    about: AssertionScope,
    place: &Node,
) -> AssertionSpec {
    let at = |kind: NodeKind| Node { kind, ..place.clone() };
    let key = |name: &str| Spanned::new(name.to_owned(), place.span);
    let mut entries = vec![
        (key("id"), at(NodeKind::String(id.to_owned()))),
        (key("type"), at(NodeKind::String("reward".to_owned()))),
        (key("run"), at(NodeKind::String(line))),
        (key("timeout"), at(NodeKind::String(format!("{}ms", milliseconds(seconds))))),
    ];
    entries.extend(least.map(|least| (key("min"), least)));
    AssertionSpec {
        node: at(NodeKind::Map(entries)),
        arguments: Arguments::Fields,
        about,
        id: id.to_owned(),
        kind: Spanned::new("reward".to_owned(), place.span),
        weight: 1.0,
    }
}

fn milliseconds(seconds: f64) -> u64 {
    (seconds * 1000.0).ceil() as u64
}

/// Returns an instruction without the lines at its beginning that mark it for those who train models.
fn without_canaries(text: &str) -> String {
    let is_canary = |line: &str| {
        let line = line.trim().to_lowercase();
        line.contains("canary") && (line.starts_with('#') || (line.starts_with("<!--") && line.ends_with("-->")))
    };
    let skipped = text.lines().take_while(|line| is_canary(line)).count();
    let lines: Vec<&str> = text.lines().skip(skipped).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::without_canaries;

    #[test]
    fn marks_for_training_are_not_part_of_an_instruction() {
        let text = "<!-- dummy CANARY 1 -->\n# canary 2\n\nWrite a.txt.\n# canary 3\n";
        assert_eq!(without_canaries(text), "Write a.txt.\n# canary 3");
        assert_eq!(without_canaries("# Canaries\n\nx\n"), "# Canaries\n\nx");
    }
}
