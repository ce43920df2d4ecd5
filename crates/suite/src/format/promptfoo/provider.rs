//! Providers, each of which becomes an agent.

use std::path::Path;

use model::decode::{Fields, Problems};
use model::{CopyTree, Excerpt, Node, NodeKind, nearest};
use serde_json::json;

use super::file::{self, FILE, ending};
use super::reading::{Ignored, Reading, entries, items, map, node, placed, short, text};
use crate::document::Language;
use crate::project::ProjectAgent;

/// Calls a provider in Python, and prints its answer as JSON. The arguments are the file, the function, the prompt, the
/// options and the variables.
const PYTHON: &str = r#"
import asyncio, functools, inspect, json, os, sys
path, function, prompt, options, variables = sys.argv[1:6]
sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
names = {"__name__": "provider", "__file__": path}
exec(compile(open(path).read(), path, "exec"), names)
context = {"vars": json.loads(variables), "prompt": {"raw": prompt, "label": prompt}}
out, sys.stdout = sys.stdout, sys.stderr
first, *rest = function.split(".")
result = functools.reduce(getattr, rest, names[first])(prompt, json.loads(options), context)
if inspect.iscoroutine(result):
    result = asyncio.run(result)
if not isinstance(result, dict):
    result = {"output": result}
answer = {}
if result.get("error"):
    answer["error"] = str(result["error"])
else:
    output = result.get("output")
    answer["text"] = output if isinstance(output, str) else json.dumps(output)
usage = result.get("tokenUsage") or {}
if "prompt" in usage or "completion" in usage:
    answer["usage"] = {"input": usage.get("prompt", 0), "output": usage.get("completion", 0)}
print(json.dumps(answer), file=out)
"#;

/// A provider.
pub(super) struct Provider {
    /// Name for ids of cases.
    pub(super) label: String,
    /// Other name by which tests can refer to it.
    pub(super) id: String,
    /// Name of the agent; `None` if it has none.
    pub(super) agent: Option<String>,
    pub(super) model: Option<String>,
    pub(super) system_prompt: Option<String>,
    pub(super) max_turns: Option<u64>,
    /// Exclusive list of tools.
    pub(super) tools: Option<Vec<String>>,
    /// Folder that is copied into the sandbox.
    pub(super) folder: Option<CopyTree>,
    /// True if it receives prompts as they are, even if they are a conversation in JSON.
    pub(super) takes_any_text: bool,
    /// True if it answers with the prompt.
    pub(super) echoes: bool,
    /// Code that changes its answers.
    pub(super) transform: Option<Node>,
    /// Prompts with which it is used; all if `None`.
    pub(super) prompts: Option<Vec<String>>,
    /// Place at which it is written.
    pub(super) place: Excerpt,
    /// Problems that break its cases.
    pub(super) broken: Problems,
}

/// A provider while it is read.
pub(super) struct Written<'a> {
    pub(super) id: String,
    label: Option<String>,
    pub(super) config: Option<&'a Node>,
    pub(super) at: &'a Node,
}

/// Providers of models, which have the same names here.
const MODELS: [&str; 12] = [
    "openai",
    "anthropic",
    "google",
    "ollama",
    "openrouter",
    "groq",
    "mistral",
    "deepseek",
    "togetherai",
    "xai",
    "fireworks",
    "cerebras",
];

/// Keys of providers that change nothing here.
const IGNORED: [(&str, &str); 2] = [
    ("delay", "`providers` in the project's configuration limits requests"),
    ("inputs", "it is for tests that promptfoo generates"),
];

impl Reading<'_> {
    /// Reads `providers` or `targets`.
    pub(super) fn providers(&mut self, list: &Node) -> Vec<Provider> {
        let (mut providers, known) = (Vec::new(), self.found.len());
        for item in items(Some(list)) {
            self.provider(item, &mut providers);
        }
        if providers.is_empty() && self.found.len() == known {
            self.found.push(list.error("there are no providers, so nothing would run"));
        }
        providers
    }

    /// Reads a provider, or those in a file.
    pub(super) fn provider(&mut self, item: &Node, providers: &mut Vec<Provider>) {
        let mut broken = Problems::new();
        if let Some(reference) = item.as_str().and_then(|id| id.strip_prefix(FILE))
            && Language::from_path(Path::new(reference)).is_some()
        {
            let path = self.path_of(reference);
            if let Some(root) = self.value_in(&path, item, &mut broken) {
                items(Some(&root)).into_iter().for_each(|item| self.provider(item, providers));
            }
            self.found.extend(broken);
            return;
        }
        if let Some(id) = item.as_str() {
            let written = Written { id: id.to_owned(), label: None, config: None, at: item };
            providers.push(self.made(&written, broken));
            return;
        }
        if crate::module_tree::is_function(item) || !matches!(item.kind, NodeKind::Map(_)) {
            self.found
                .push(item.error("a provider must be a string or a map; one that is a function is not supported"));
            return;
        }
        // `{ID: {config: …}}`
        let map = entries(Some(item));
        let (inner, outer_id) = match map {
            [(id, inner)] if item.get("id").is_none() && matches!(inner.kind, NodeKind::Map(_)) => {
                (inner, Some(id.value.clone()))
            }
            _ => (item, None),
        };
        let Some(mut fields) = Fields::of(inner, "a provider", &mut broken) else { return };
        let id = fields.text("id", &mut broken).or(outer_id);
        let label = fields.any_text("label", &mut broken);
        let config = fields.get("config");
        let transform = fields.get("transform").cloned();
        let prompts = fields.texts("prompts", &mut broken);
        let env = fields.get("env").cloned();
        broken.extend(self.close(&fields, "providers[]", &IGNORED, &[]));
        if let Some(env) = env {
            broken.push(self.refuse("providers[]", "env", "set the variables in the environment", &env.excerpt()));
        }
        let Some(id) = id else {
            self.found.push(item.error("a provider needs an `id`"));
            return;
        };
        let written = Written { id, label, config, at: item };
        let provider = self.made(&written, broken);
        providers.push(Provider { transform, prompts, ..provider });
    }

    fn made(&mut self, written: &Written<'_>, broken: Problems) -> Provider {
        let label = written.label.clone().unwrap_or_else(|| short(&written.id));
        let mut provider = Provider {
            label,
            id: written.id.clone(),
            agent: None,
            model: None,
            system_prompt: None,
            max_turns: None,
            tools: None,
            folder: None,
            takes_any_text: false,
            echoes: false,
            transform: None,
            prompts: None,
            place: written.at.excerpt(),
            broken,
        };
        let id = written.id.as_str();
        let (scheme, rest) = id.split_once(':').unwrap_or((id, ""));
        match scheme {
            "echo" => {
                let agent = json!({"type": "echo"});
                (provider.takes_any_text, provider.echoes) = (true, true);
                self.configured(&mut provider, placed(&agent, written.at));
            }
            "exec" => self.exec(rest, written, &mut provider),
            "http" | "https" => self.http(written, &mut provider),
            "python" => self.python(rest, written, &mut provider),
            "file" if ending(Path::new(file::with_function(rest).0)) == "py" => {
                self.python(rest, written, &mut provider);
            }
            "file" => self.module(written, &mut provider),
            _ if file::is_module(Path::new(id)) => self.module(written, &mut provider),
            "openai" if rest == "codex-sdk" || rest.starts_with("codex-sdk:") || rest == "codex" => {
                self.coding_agent("codex", rest.split_once(':').map(|(_, model)| model), written, &mut provider);
            }
            "anthropic" if matches!(rest, "claude-agent-sdk" | "claude-code") => {
                self.coding_agent("claude-code", None, written, &mut provider);
            }
            "opencode" => self.coding_agent("opencode", None, written, &mut provider),
            _ if MODELS.contains(&scheme) => self.model(scheme, rest, written, &mut provider),
            _ => {
                let near = nearest(scheme, MODELS.into_iter().chain(["echo"])).filter(|near| *near != scheme);
                let near = near.map(|near| id.replacen(scheme, near, 1));
                provider.broken.push(no_agent(written, near.as_deref()));
            }
        }
        provider
    }

    /// Configures an agent for `provider`.
    fn configured(&mut self, provider: &mut Provider, node: Node) {
        let apart = |c: char| if c.is_whitespace() || ":=@#,/".contains(c) { '-' } else { c };
        let mut name: String = provider.label.chars().map(apart).collect();
        let folder = self.library.shown(&self.directory);
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        // Several configurations may have providers of the same name.
        let place = match (folder.as_str(), &*stem) {
            (".", super::STEM) => String::new(),
            (".", stem) => stem.to_owned(),
            (folder, super::STEM) => folder.to_owned(),
            (folder, stem) => format!("{folder}/{stem}"),
        };
        if !place.is_empty() {
            name =
                format!("{name}.{}", place.chars().map(|c| if c == '/' { '.' } else { apart(c) }).collect::<String>());
        }
        let agent = ProjectAgent { name, node, missing: Problems::new(), directory: self.directory.clone() };
        provider.agent = Some(self.library.add_agent(agent));
    }

    /// Records the keys of the provider's configuration, and reads those that are honoured.
    pub(super) fn config<'w>(
        &mut self,
        written: &Written<'w>,
        honoured: &[&'static str],
        ignored: &Ignored<'_>,
        refused: &Ignored<'_>,
        provider: &mut Provider,
    ) -> Vec<(&'static str, &'w Node)> {
        let Some(config) = written.config.filter(|config| !matches!(config.kind, NodeKind::Null)) else {
            return Vec::new();
        };
        let Some(mut fields) = Fields::of(config, "`config`", &mut provider.broken) else { return Vec::new() };
        let found = honoured.iter().filter_map(|key| Some((*key, fields.get(key)?))).collect();
        provider.broken.extend(self.close(&fields, "providers[].config", ignored, refused));
        found
    }

    fn exec(&mut self, rest: &str, written: &Written<'_>, provider: &mut Provider) {
        provider.takes_any_text = true;
        let options = written.config.map(Node::to_json).unwrap_or_else(|| json!({}));
        let options = json!({"config": options}).to_string();
        self.log_all(written);
        let command = format!("{} \"$@\"", rest.trim());
        let agent = json!({
            "type": "subprocess", "mode": "oneshot", "input": "argument", "cwd": "{project}",
            "command": ["sh", "-c", command, "exec", "{message}", options, "{\"vars\":{vars}}"],
        });
        self.configured(provider, placed(&agent, written.at));
    }

    fn python(&mut self, rest: &str, written: &Written<'_>, provider: &mut Provider) {
        provider.takes_any_text = true;
        let (file, function) = file::with_function(rest.strip_prefix("//").unwrap_or(rest));
        let path = self.path_of(file);
        if !path.is_file() {
            provider.broken.push(written.at.error(format!("there is no file `{file}`")));
        }
        let config = written.config.map(Node::to_json).unwrap_or_else(|| json!({}));
        self.log_all(written);
        let agent = json!({
            "type": "subprocess", "mode": "oneshot", "output": "json", "cwd": "{project}",
            "command": ["python3", "-c", PYTHON, path.to_string_lossy(), function.unwrap_or("call_api"), "{message}",
                        json!({"config": config}).to_string(), "{vars}"],
        });
        self.configured(provider, placed(&agent, written.at));
    }

    fn module(&mut self, written: &Written<'_>, provider: &mut Provider) {
        provider.takes_any_text = true;
        let path = self.path_of(&written.id);
        if !file::is_module(&path) {
            let problem = written.at.error(format!("`{}` is not a module or a file in Python", written.id));
            provider.broken.push(problem);
            return;
        }
        if !path.is_file() {
            provider.broken.push(written.at.error(format!("there is no file `{}`", written.id)));
            return;
        }
        self.log_all(written);
        let mut agent = vec![
            ("type".to_owned(), text(written.at, "custom")),
            ("module".to_owned(), text(written.at, path.to_string_lossy())),
        ];
        agent.extend(written.config.map(|config| ("options".to_owned(), config.clone())));
        self.configured(provider, map(written.at, agent));
    }

    /// Records all keys of a configuration that is passed on as it is.
    fn log_all(&mut self, written: &Written<'_>) {
        for (key, value) in entries(written.config) {
            let place = value.source.excerpt(key.span);
            let full = format!("providers[].config.{}", key.value);
            self.keys.add(full, crate::coverage::Treatment::Honoured, None, place);
        }
    }

    fn http(&mut self, written: &Written<'_>, provider: &mut Provider) {
        const HONOURED: [&str; 6] = ["url", "method", "headers", "body", "transformResponse", "responseParser"];
        const IGNORED: [(&str, &str); 2] = [
            ("maxRetries", "`retry` and `retryOn` of the agent are the defaults"),
            ("validateStatus", "only answers with a success are answers"),
        ];
        const REFUSED: [(&str, &str); 11] = [
            ("request", "write `url`, `method`, `headers` and `body`"),
            ("queryParams", "write the parameters in the `url`"),
            ("transformRequest", "write the `body` as it is sent"),
            ("requestTransform", "write the `body` as it is sent"),
            ("sessionParser", "sessions are not kept between tests"),
            ("signatureAuth", "requests are not signed"),
            ("auth", "write the header `Authorization`"),
            ("tls", "other certificates are not used"),
            ("multipart", "only text is sent"),
            ("stateful", "sessions are not kept between tests"),
            ("tools", "the tools of a provider are not offered"),
        ];
        provider.takes_any_text = true;
        let found = self.config(written, &HONOURED, &IGNORED, &REFUSED, provider);
        let get = |name: &str| found.iter().find(|(key, _)| *key == name).map(|(_, node)| *node);
        let is_address = written.id.contains("://");
        let url = match get("url") {
            Some(node) => node.clone(),
            None if is_address => text(written.at, written.id.as_str()),
            None => {
                provider.broken.push(written.at.error("an `http` provider needs a `url` in `config`"));
                return;
            }
        };
        let mut agent = vec![("type".to_owned(), text(written.at, "http")), ("url".to_owned(), self.environment(&url))];
        agent.push(("server_errors".to_owned(), text(written.at, "broken")));
        agent.extend(get("method").map(|node| ("method".to_owned(), node.clone())));
        agent.extend(get("headers").map(|node| ("headers".to_owned(), self.environment(node))));
        match get("body") {
            Some(body) => match self.body(body) {
                Ok(body) => agent.push(("body_template".to_owned(), body)),
                Err(problem) => provider.broken.push(*problem),
            },
            None => {
                let problem = written.at.error("requests without a `body` are not supported");
                provider.broken.push(problem.help("write a `body` with `{{prompt}}`"));
            }
        }
        if let Some(parser) = get("transformResponse").or_else(|| get("responseParser")) {
            match self.parser(parser) {
                Ok(parser) => agent.push(("response_parser".to_owned(), parser)),
                Err(problem) => provider.broken.push(*problem),
            }
        } else {
            agent.push(("response_parser".to_owned(), text(written.at, "$")));
        }
        self.configured(provider, map(written.at, agent));
    }

    /// Returns a node in which `{{ env.NAME }}` is written as in the project's configuration.
    fn environment(&self, value: &Node) -> Node {
        let kind = match &value.kind {
            NodeKind::String(written) => {
                let mut out = String::new();
                let mut rest = written.as_str();
                while let Some((before, inside)) = rest.split_once("{{") {
                    let Some((name, after)) = inside.split_once("}}") else { break };
                    let name = name.trim();
                    let variable = name.strip_prefix("env.").filter(|name| !name.contains(['.', '|', ' ', '[']));
                    out.push_str(before);
                    match variable {
                        Some(variable) => out.push_str(&format!("${{env.{variable}}}")),
                        None => out.extend(["{{", &inside[..inside.len() - after.len()]]),
                    }
                    rest = after;
                }
                out.push_str(rest);
                NodeKind::String(out)
            }
            NodeKind::List(list) => NodeKind::List(list.iter().map(|item| self.environment(item)).collect()),
            NodeKind::Map(map) => {
                NodeKind::Map(map.iter().map(|(key, value)| (key.clone(), self.environment(value))).collect())
            }
            other => other.clone(),
        };
        Node { kind, ..value.clone() }
    }

    /// Returns a request body as the template of an agent. The prompt is the message, and every other name a variable
    /// of the test.
    fn body(&self, body: &Node) -> Result<Node, Box<model::Diagnostic>> {
        let body = self.environment(body);
        renamed(&body)
    }

    /// Returns the path, or the function of a module, that takes the answer from a response.
    fn parser(&self, parser: &Node) -> Result<Node, Box<model::Diagnostic>> {
        let unsupported = || {
            let problem = parser.error("this code is not supported: write a path such as `json.answer`");
            Err(Box::new(problem.help("or a function in a module: `file://parser.js`")))
        };
        let Some(code) = parser.as_str() else { return unsupported() };
        if let Some(reference) = code.strip_prefix(FILE) {
            let (path, function) = file::with_function(reference);
            let path = self.path_of(path);
            let reference = format!("{}#{}", path.display(), function.unwrap_or("default"));
            return Ok(Node { tag: Some(crate::module_tree::FUNCTION.into()), ..text(parser, reference) });
        }
        let code = code.trim().trim_end_matches(';');
        match code {
            "text" | "json" => return Ok(text(parser, "$")),
            _ => {}
        }
        let path = code.strip_prefix("json").filter(|path| path.starts_with(['.', '[', '?']));
        let Some(path) = path.map(|path| path.replace("?.", ".")) else { return unsupported() };
        let is_plain = path.chars().all(|c| c.is_alphanumeric() || "._[]'\"-".contains(c));
        if is_plain { Ok(text(parser, format!("${path}"))) } else { unsupported() }
    }

    /// An agent that works in files.
    fn coding_agent(&mut self, agent: &str, model: Option<&str>, written: &Written<'_>, provider: &mut Provider) {
        const HONOURED: [&str; 8] = [
            "model",
            "working_dir",
            "max_turns",
            "system_prompt",
            "append_system_prompt",
            "custom_system_prompt",
            "custom_allowed_tools",
            "base_instructions",
        ];
        const DISALLOWED: &str = "disallowed_tools";
        const IGNORED: [(&str, &str); 14] = [
            ("append_allowed_tools", "without `custom_allowed_tools`, the agent has all of its tools"),
            ("permission_mode", "a trial has a sandbox of its own, in which the agent may do everything"),
            ("sandbox_mode", "the run chooses the sandbox"),
            ("approval_policy", "no user is present who approves"),
            ("skip_git_repo_check", "no repository is needed"),
            ("apiKey", "the agent signs in as it does outside of trialrun"),
            ("ask_user_question", "questions without a prepared answer are reported"),
            ("fallback_model", "no other model is used"),
            ("thread_id", "each trial begins a new conversation"),
            ("persist_threads", "each trial begins a new conversation"),
            ("enable_streaming", "the events of the agent are always read"),
            ("deep_tracing", "the calls of the agent are always recorded"),
            ("max_budget_usd", "the run limits costs"),
            ("setting_sources", "the agent's own settings are not read"),
        ];
        const REFUSED: [(&str, &str); 6] = [
            ("mcp", "the servers of a provider are not started"),
            ("output_format", "the format of the answer is not requested"),
            ("output_schema", "the format of the answer is not requested"),
            ("plugins", "plug-ins of a provider are not loaded"),
            ("agents", "sub-agents of a provider are not defined"),
            ("hooks", "hooks of a provider are not run"),
        ];
        let has_tools = written.config.is_some_and(|config| config.get("custom_allowed_tools").is_some());
        let mut honoured = HONOURED.to_vec();
        let mut refused = REFUSED.to_vec();
        match has_tools {
            true => honoured.push(DISALLOWED),
            false => refused.push((DISALLOWED, "without `custom_allowed_tools`, the agent has all of its tools")),
        }
        let found = self.config(written, &honoured, &IGNORED, &refused, provider);
        let get = |name: &str| found.iter().find(|(key, _)| *key == name).map(|(_, node)| *node);
        let string = |name: &str| get(name).and_then(Node::as_str).map(str::to_owned);
        provider.agent = Some(agent.to_owned());
        provider.model = string("model").or_else(|| model.map(str::to_owned));
        provider.max_turns = super::assertion::number(get("max_turns")).map(|turns| turns.max(1.0) as u64);
        provider.system_prompt = ["append_system_prompt", "system_prompt", "custom_system_prompt", "base_instructions"]
            .iter()
            .find_map(|key| string(key));
        if let Some(tools) = get("custom_allowed_tools") {
            let disallowed: Vec<&str> = items(get(DISALLOWED)).into_iter().filter_map(Node::as_str).collect();
            let tools = items(Some(tools)).into_iter().filter_map(Node::as_str);
            provider.tools = Some(tools.filter(|tool| !disallowed.contains(tool)).map(str::to_owned).collect());
        }
        if let Some(folder) = get("working_dir") {
            let from = folder.as_str().map(|path| self.path_of(path)).filter(|path| path.is_dir());
            match from {
                Some(from) => provider.folder = Some(CopyTree { from, to: ".".to_owned(), source: folder.excerpt() }),
                None => self.found.push(folder.error("`working_dir` must be a folder that exists")),
            }
        }
    }
}

/// Returns the problem that there is no agent for a provider.
pub(super) fn no_agent(written: &Written<'_>, near: Option<&str>) -> model::Diagnostic {
    let problem = written.at.error(format!("trialrun has no agent for the provider `{}`", short(&written.id)));
    problem.suggest(near).help("name an agent for the run, which replaces all providers")
}

/// Renames the names in the templates of a body.
fn renamed(body: &Node) -> Result<Node, Box<model::Diagnostic>> {
    let kind = match &body.kind {
        NodeKind::String(written) => {
            let mut out = String::new();
            let mut rest = written.as_str();
            while let Some((before, inside)) = rest.split_once("{{") {
                let Some((name, after)) = inside.split_once("}}") else { break };
                let name = name.trim();
                let (name, filter) =
                    name.split_once('|').map_or((name, None), |(name, filter)| (name.trim(), Some(filter.trim())));
                let is_path = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_.[]".contains(c));
                let becomes = match name {
                    "prompt" => "message".to_owned(),
                    name => format!("vars.{name}"),
                };
                let becomes = match filter {
                    None => becomes,
                    Some("dump" | "tojson") => format!("{becomes}|tojson"),
                    Some("safe" | "trim") => becomes,
                    Some(_) => String::new(),
                };
                if !is_path || becomes.is_empty() {
                    return Err(Box::new(
                        body.error(format!("`{{{{ {} }}}}` is not supported in a `body`", short(name))),
                    ));
                }
                out.push_str(before);
                out.push_str(&format!("{{{{ {becomes} }}}}"));
                rest = after;
            }
            if rest.contains("{%") || out.contains("{%") {
                return Err(Box::new(body.error("statements are not supported in a `body`")));
            }
            out.push_str(rest);
            NodeKind::String(out)
        }
        NodeKind::List(list) => NodeKind::List(list.iter().map(renamed).collect::<Result<_, _>>()?),
        NodeKind::Map(map) => NodeKind::Map(
            map.iter()
                .map(|(key, value)| Ok((key.clone(), renamed(value)?)))
                .collect::<Result<_, Box<model::Diagnostic>>>()?,
        ),
        other => other.clone(),
    };
    Ok(node(body, kind))
}
