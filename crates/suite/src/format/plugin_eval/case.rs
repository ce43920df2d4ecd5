//! Reads one case: its `case.yaml`, its `prompt.md` and its graders.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::decode::{Fields, Problems};
use model::{
    AssertionSpec, Case, CopyTree, Definition, Diagnostic, Excerpt, Fixtures, McpServer, MockedServer, Mocks, Node,
    NodeKind, RunnerOptions, Scoring, ServerSource, SkillEval, Source, Span, Spanned, Subject, Trials, UserMessage,
};

use super::grader::{self, Grader};
use super::reading::{Reading, unknown};
use super::{CASE_FILE, GRADERS_FOLDER, MOCKS_FOLDER, PROMPT_FILE};
use crate::coverage::{Treatment, Unknown};
use crate::document::{self, Language};
use crate::mocks::{MockFolder, read_folders};
use crate::path;
use crate::plugin;
use crate::skill::SKILL_FILE;

/// Defaults of `claude plugin eval`.
const MAX_TURNS: u64 = 10;
const TIMEOUT_SECONDS: u64 = 300;
const RUNS: u64 = 3;

/// Tools that every session there has, whatever `allowed_tools` says.
const ALWAYS: [&str; 5] = ["Agent", "Glob", "Grep", "Read", "Skill"];

/// Folder in the working directory with the files of the case while its scaffold script runs.
const SCAFFOLD_FOLDER: &str = ".scaffold";

/// Keys of `case.yaml` with the key under which they belong.
const PLACES: [(&str, &str); 11] = [
    ("prompt", "execution"),
    ("max_turns", "execution"),
    ("timeout_seconds", "execution"),
    ("model", "execution"),
    ("allowed_tools", "execution"),
    ("disallowed_tools", "execution"),
    ("append_system_prompt", "execution"),
    ("env", "execution"),
    ("scaffold_script", "context"),
    ("history_file", "context"),
    ("add_dirs", "context"),
];

/// Refuses a key at the wrong place: the author expects that it has an effect.
fn misplaced(key: &str, value: &Node) -> Unknown {
    match PLACES.iter().find(|(known, _)| *known == key) {
        Some((_, place)) => Unknown::Refused(format!("it belongs under `{place}`")),
        None => unknown(key, value),
    }
}

/// Settings of a case, from either file.
#[derive(Default)]
struct Draft {
    name: Option<String>,
    description: Option<String>,
    tags: Vec<String>,
    prompt: Option<String>,
    max_turns: Option<u64>,
    timeout_seconds: Option<u64>,
    model: Option<(String, Excerpt)>,
    allowed_tools: Option<Vec<String>>,
    disallowed_tools: Vec<String>,
    system_prompt: Option<String>,
    env: Vec<(String, String)>,
    runs: Option<u64>,
    scaffold: Option<Spanned<String>>,
    add_dirs: Vec<(String, Excerpt)>,
    history: Option<PathBuf>,
    graders: Vec<Grader>,
}

impl Reading<'_> {
    /// Reads the case whose first file is `source`, at `path`.
    pub(super) fn case(&mut self, path: &Path, source: &Arc<Source>) -> Case {
        let mut draft = Draft::default();
        if path.file_name().is_some_and(|name| name == CASE_FILE) {
            if let Some(root) = document::read(source, Language::Yaml, &mut self.found) {
                self.case_file(&root, &mut draft);
            }
            let prompt = self.own.join(PROMPT_FILE);
            if prompt.is_file()
                && let Some(source) = self.open(&prompt)
            {
                self.prompt_file(&source, &mut draft);
            }
        } else {
            self.prompt_file(source, &mut draft);
        }
        self.grader_files(&mut draft);
        let place = source.excerpt(Span::new(0, 0));
        if draft.prompt.is_none() && self.found.is_empty() {
            self.found.push(Diagnostic::error("the case has no prompt").at(place.clone()));
        }
        if draft.graders.is_empty() && self.found.is_empty() {
            self.found.push(Diagnostic::error("the case has no graders").at(place.clone()));
        }
        if !draft.graders.is_empty() && draft.graders.iter().all(|grader| grader.spec.weight == 0.0) {
            let problem = Diagnostic::error("no grader has a weight above 0, so any answer passes");
            self.found.push(problem.at(place.clone()));
        }
        self.finish(draft, place)
    }

    fn open(&mut self, path: &Path) -> Option<Arc<Source>> {
        document::open(path, &self.library.shown(path)).map_err(|problem| self.found.push(*problem)).ok()
    }

    /// Refuses a key that is not supported.
    fn refuse(&mut self, fields: &Fields<'_>, key: &str, full: &str, consequence: &str) {
        let Some(span) = fields.key_span(key) else { return };
        let place = fields.node().source.excerpt(span);
        self.keys.add(full.to_owned(), Treatment::Refused, Some(consequence.to_owned()), place.clone());
        self.found.push(Diagnostic::error(format!("`{key}` is not supported: {consequence}")).at(place));
    }

    fn case_file(&mut self, root: &Node, draft: &mut Draft) {
        let Some(mut fields) = Fields::of(root, "the case", &mut self.found) else { return };
        fields.get("schema_version");
        draft.name = fields.text("name", &mut self.found);
        draft.description = fields.any_text("description", &mut self.found);
        draft.tags = fields.texts("tags", &mut self.found).unwrap_or_default();
        draft.runs = fields.whole("runs", 1, &mut self.found);
        if let Some(node) = fields.get("context") {
            self.context(node, draft);
        }
        if let Some(node) = fields.get("execution") {
            self.execution(node, draft);
        }
        for (index, node) in fields.list("graders", &mut self.found).unwrap_or_default().iter().enumerate() {
            let fallback = format!("grader-{}", index + 1);
            draft.graders.extend(grader::read(node, None, &fallback, self));
        }
        const NOT_USED: [(&str, &str); 1] =
            [("plugins", "only the plug-in that contains the suite is loaded, and no others are added")];
        let others = fields.node().get("plugins").is_some_and(|node| !names_only_own(node));
        if others {
            self.refuse(&fields, "plugins", "plugins", "only the plug-in that contains the suite is loaded");
            fields.get("plugins");
        }
        self.close(&fields, "", &NOT_USED, misplaced);
    }

    fn context(&mut self, node: &Node, draft: &mut Draft) {
        let Some(mut fields) = Fields::of(node, "`context`", &mut self.found) else { return };
        draft.scaffold = fields
            .text("scaffold_script", &mut self.found)
            .zip(fields.get("scaffold_script"))
            .map(|(script, node)| Spanned::new(script, node.span));
        if let Some(script) = &draft.scaffold {
            self.check_inside(&script.value, fields.get("scaffold_script"), Path::is_file);
        }
        for item in fields.list("add_dirs", &mut self.found).unwrap_or_default() {
            let Some(written) = model::decode::text(item, "an item of `add_dirs`", &mut self.found) else { continue };
            if self.check_inside(&written, Some(item), Path::is_dir) {
                draft.add_dirs.push((written, item.excerpt()));
            }
        }
        if let Some(written) = fields.text("history_file", &mut self.found)
            && self.check_inside(&written, fields.get("history_file"), Path::is_file)
        {
            draft.history = path::inside_sandbox(&written).ok().map(|inside| self.own.join(inside));
        }
        self.close(&fields, "context", &[], misplaced);
    }

    /// Returns `true` if `written` is a path inside the case's folder of the kind that `is` tests, or reports it.
    fn check_inside(&mut self, written: &str, place: Option<&Node>, is: fn(&Path) -> bool) -> bool {
        let fault = match path::inside_sandbox(written) {
            Err(fault) => fault,
            Ok(inside) if is(&self.own.join(&inside)) => return true,
            Ok(_) => "does not exist in the folder of the case",
        };
        if let Some(place) = place {
            self.found.push(place.error(format!("`{written}` {fault}")));
        }
        false
    }

    fn execution(&mut self, node: &Node, draft: &mut Draft) {
        let Some(mut fields) = Fields::of(node, "`execution`", &mut self.found) else { return };
        draft.prompt = fields.text("prompt", &mut self.found);
        self.limits(&mut fields, draft);
        draft.model = fields.text("model", &mut self.found).zip(fields.get("model").map(Node::excerpt));
        draft.disallowed_tools = fields.texts("disallowed_tools", &mut self.found).unwrap_or_default();
        if !draft.disallowed_tools.is_empty() && draft.allowed_tools.is_none() {
            let consequence = "without `allowed_tools`, the agent has all of its tools; list those that it may use";
            self.refuse(&fields, "disallowed_tools", "execution.disallowed_tools", consequence);
        }
        draft.system_prompt = fields.any_text("append_system_prompt", &mut self.found);
        for (name, value) in fields.text_map("env", &mut self.found).unwrap_or_default() {
            if !name.starts_with("EVAL_") {
                let message = format!("`{name}` cannot be set: the names of variables in a case begin with `EVAL_`");
                self.found.push(Diagnostic::error(message).at(node.source.excerpt(value.span)));
            }
            draft.env.push((name, value.value));
        }
        const IGNORED: [(&str, &str); 1] = [("artifact_publish", "nothing is published")];
        self.close(&fields, "execution", &IGNORED, misplaced);
    }

    /// Reads the keys that both files have.
    fn limits(&mut self, fields: &mut Fields<'_>, draft: &mut Draft) {
        draft.max_turns = fields.whole("max_turns", 1, &mut self.found).or(draft.max_turns);
        draft.timeout_seconds = fields.whole("timeout_seconds", 1, &mut self.found).or(draft.timeout_seconds);
        draft.allowed_tools = fields.texts("allowed_tools", &mut self.found).or(draft.allowed_tools.take());
    }

    fn prompt_file(&mut self, source: &Arc<Source>, draft: &mut Draft) {
        let Some((root, body)) = self.markdown(source) else { return };
        if !body.is_empty() {
            draft.prompt = Some(body);
        }
        let Some(root) = root else { return };
        let Some(mut fields) = Fields::of(&root, "the front matter", &mut self.found) else { return };
        self.limits(&mut fields, draft);
        draft.name = fields.text("name", &mut self.found).or(draft.name.take());
        draft.description = fields.any_text("description", &mut self.found).or(draft.description.take());
        draft.tags.extend(fields.texts("tags", &mut self.found).unwrap_or_default());
        draft.runs = fields.whole("runs", 1, &mut self.found).or(draft.runs);
        self.close(&fields, PROMPT_FILE, &[], unknown);
    }

    /// Returns the front matter and the text of a Markdown file. Either may be missing.
    fn markdown(&mut self, source: &Arc<Source>) -> Option<(Option<Node>, String)> {
        let (root, body) = document::markdown(source, &mut self.found)?;
        Some((root, body.trim().to_owned()))
    }

    /// Reads the graders that have a file each, sorted by name.
    fn grader_files(&mut self, draft: &mut Draft) {
        let folder = self.own.join(GRADERS_FOLDER);
        if !folder.is_dir() {
            return;
        }
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                let problem = Diagnostic::error(format!("cannot read the folder: {error}"));
                self.found.push(problem.at(Excerpt::of_file(self.library.shown(&folder))));
                return;
            }
        };
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
        files.sort();
        for path in files {
            let Some(source) = self.open(&path) else { continue };
            let Some((root, body)) = self.markdown(&source) else { continue };
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            // A file without front matter is a rubric.
            let root = root.unwrap_or_else(|| Node {
                kind: NodeKind::Map(Vec::new()),
                span: Span::new(0, 0),
                tag: None,
                source: Arc::clone(&source),
            });
            draft.graders.extend(grader::read(&root, Some(body), &stem, self));
        }
    }

    /// Reads a file that belongs to the case.
    pub(super) fn text_of(&mut self, written: &str, place: &Node) -> Option<String> {
        if !self.check_inside(written, Some(place), Path::is_file) {
            return None;
        }
        let inside = path::inside_sandbox(written).ok()?;
        self.open(&self.own.join(inside)).map(|source| source.text.clone())
    }

    /// Creates the case from what was read.
    fn finish(&mut self, draft: Draft, source: Excerpt) -> Case {
        let subject = self.subject();
        let folder = self.own.file_name().unwrap_or_default().to_string_lossy();
        let id = draft.name.clone().unwrap_or_else(|| folder.into_owned());
        let mocks = Mocks { servers: self.servers(&subject, &source), commands: Vec::new() };
        let only_of_plugin = !mocks.servers.is_empty() && mocks.servers.iter().all(|server| server.is_of_plugin);
        let should_trigger = !draft.graders.iter().any(|grader| grader.forbids_skill);
        let is_indicator = |grader: &&Grader| grader.is_indicator || (grader.is_about_mocks && only_of_plugin);
        let indicators: Vec<String> =
            draft.graders.iter().filter(is_indicator).map(|grader| grader.spec.id.clone()).collect();
        let assertions: Vec<AssertionSpec> = draft.graders.into_iter().map(|grader| grader.spec).collect();
        let max_score = assertions.iter().map(|spec| spec.weight).sum();
        let allowed = draft.allowed_tools.map(|mut tools| {
            tools.extend(
                ALWAYS
                    .iter()
                    .filter(|tool| !tools.iter().any(|own| own == *tool))
                    .map(|tool| (*tool).to_owned())
                    .collect::<Vec<_>>(),
            );
            tools.retain(|tool| !draft.disallowed_tools.contains(tool));
            tools
        });
        let (model, model_source) = draft.model.unzip();
        let runner = RunnerOptions {
            agent: model.is_some().then(|| ("claude-code".to_owned(), source.clone())),
            model,
            model_source,
            allowed_tools_override: allowed,
            ..RunnerOptions::default()
        };
        let mut fixtures = Fixtures { env: draft.env, source: Some(source.clone()), ..Fixtures::default() };
        for (written, place) in draft.add_dirs {
            let to = path::inside_sandbox(&written).unwrap_or(written);
            fixtures.copy_trees.push(CopyTree { from: self.own.join(&to), to, source: place });
        }
        if let Some(Spanned { value, span }) = draft.scaffold {
            let to = SCAFFOLD_FOLDER.to_owned();
            fixtures.copy_trees.push(CopyTree { from: self.own.to_owned(), to, source: source.clone() });
            let run = format!(
                "bash '{SCAFFOLD_FOLDER}/{}'; status=$?; rm -rf {SCAFFOLD_FOLDER}; exit $status",
                value.replace('\'', "'\\''")
            );
            fixtures.setup_commands.push(Spanned::new(run, span));
        }
        let skill_eval = subject.installed().is_some().then(|| {
            Box::new(SkillEval {
                should_trigger,
                invocation: None,
                side_effect_level: model::SideEffectLevel::default(),
                contract: None,
                scripts: Vec::new(),
            })
        });
        let definition = match &subject {
            Subject::Installed(skill) if skill.plugin.is_some() => Definition::Plugin,
            _ => Definition::Skill,
        };
        let mut case = Case {
            description: draft.description,
            tags: draft.tags,
            subject,
            definition,
            messages: draft.prompt.map(UserMessage::text).into_iter().collect(),
            runner: Arc::new(runner),
            max_turns: Some(draft.max_turns.unwrap_or(MAX_TURNS)),
            timeout_ms: Some(draft.timeout_seconds.unwrap_or(TIMEOUT_SECONDS).saturating_mul(1000)),
            trials: Some(Trials::Fixed(draft.runs.unwrap_or(RUNS))),
            fixtures: Arc::new(fixtures),
            assertions,
            skill_eval,
            mocks: Arc::new(mocks),
            system_prompt: draft.system_prompt,
            history: draft.history,
            indicators,
            fails_alone: true,
            ..Case::new(id, source)
        };
        case.ruling.scoring = Some(Scoring::with_share(max_score, 1.0));
        case
    }

    /// Returns the MCP servers of the plug-in and those that only the suite has. If the suite has mocks, real servers of
    /// the plug-in are not started.
    fn servers(&mut self, subject: &Subject, place: &Excerpt) -> Vec<McpServer> {
        let library = self.library;
        let shown = move |path: &Path| library.shown(path);
        let folders = [self.suite, self.own].map(|folder| folder.join(MOCKS_FOLDER));
        let folders = folders.into_iter().filter(|folder| folder.is_dir());
        let folders: Vec<MockFolder<'_>> = folders.map(|path| MockFolder { path, shown: &shown }).collect();
        let keys = &mut self.keys;
        let mut finish = |fields: Fields<'_>, problems: &mut Problems| {
            let broken = keys.close(&fields, "mocks[]", &[], unknown_in_mock, problems);
            problems.extend(broken);
        };
        let mut mocked = read_folders(&folders, &mut finish, &mut self.found);
        let skill = subject.installed();
        let plugin = skill.and_then(|skill| skill.plugin.clone()).unwrap_or_default();
        let name = skill.map(|skill| skill.name.clone()).unwrap_or_default();
        let mut servers = Vec::new();
        for server in &plugin.servers {
            let is_it = |(folder, _): &(String, MockedServer)| {
                *folder == server.name || plugin::full_name(&name, folder) == server.name
            };
            match mocked.iter().position(is_it).map(|at| mocked.remove(at).1) {
                Some(mock) => servers.push(McpServer { source: ServerSource::Mock(mock), ..server.clone() }),
                None if folders.is_empty() => servers.push(server.clone()),
                None => {
                    let message = format!("the MCP server `{}` of the plug-in is not mocked", server.name);
                    let help = "the agent does not have it, because the suite mocks other servers";
                    self.found.push(Diagnostic::warning(message).at(place.clone()).help(help));
                }
            }
        }
        servers.extend(mocked.into_iter().map(|(name, mock)| McpServer {
            name,
            source: ServerSource::Mock(mock),
            is_of_plugin: false,
            place: place.clone(),
        }));
        servers
    }

    /// Returns the plug-in or the skill whose folder contains the suite.
    fn subject(&mut self) -> Subject {
        let Some(home) = self.suite.parent() else { return Subject::Agent };
        let found = match plugin::manifest_in(home) {
            Some(manifest) => self.library.skill_at(&manifest),
            None if home.join(SKILL_FILE).is_file() => self.library.skill_at(home),
            None => return Subject::Agent,
        };
        match found {
            Some(skill) => Subject::Installed(skill),
            None => {
                let shown = self.library.shown(home);
                self.found.push(Diagnostic::error(format!("the subject in `{shown}` cannot be read")));
                Subject::Agent
            }
        }
    }
}

/// Decides about a key of a mock that trialrun does not know.
fn unknown_in_mock(_: &str, _: &Node) -> Unknown {
    Unknown::Refused("it may change the answer of the mock".to_owned())
}

/// Returns `true` for a list of plug-ins that names only the one that contains the suite.
fn names_only_own(node: &Node) -> bool {
    match &node.kind {
        NodeKind::List(items) => {
            items.iter().all(|item| item.as_str().is_some_and(|path| matches!(path, "." | "../.." | "./")))
        }
        _ => false,
    }
}
