//! A suite as a whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::GlobBuilder;
use model::decode::Fields;
use model::{Case, McpServer, MockedTool, Mocks, Node, NodeKind, Skill, Subject, Trials};

use crate::document;
use crate::format::SuiteFile;
use crate::format::foreign::{Keys, Names, Reading, assertion, list, map, text, whole};
use crate::mocks;
use crate::skill::SKILL_FILE;

/// Keys of a suite that change nothing here.
const IGNORED: [(&str, &str); 5] = [
    ("description", "it describes the suite"),
    ("version", "it describes the suite"),
    ("metrics", "each grader decides, and no score is computed from metrics"),
    ("baseline", "the run decides if cases also run without the skill"),
    ("$schema", "it is for editors"),
];

/// Settings that change nothing here.
const IGNORED_SETTINGS: [(&str, &str); 13] = [
    ("first_event_timeout_seconds", "the run limits the time of a trial"),
    ("parallel", "the run sets the number of trials at a time"),
    ("workers", "the run sets the number of trials at a time"),
    ("fail_fast", "the run decides if it stops at a failure"),
    ("executor", "the run chooses the agent"),
    ("model", "the run chooses the model of the agent"),
    ("reasoning_effort", "the run chooses the effort of the agent"),
    ("group_by", "reports have their own groups"),
    ("judge_model", "the judge of the run decides"),
    ("judge_reasoning_effort", "the judge of the run decides"),
    ("required_skills", "a skill that is missing breaks the case"),
    ("verbose", "it is an option of another program"),
    ("max_workers", "the run sets the number of trials at a time"),
];

/// Commands around tasks, with the consequences.
const HOOKS: [(&str, &str); 2] =
    [("after_run", "commands after the tasks are not run"), ("after_task", "commands after the tasks are not run")];
const SETUP: &str = "commands before the tasks are not run; write them as hooks in the project's configuration";

/// What holds for all tasks.
pub(super) struct Settings {
    pub(super) trials: Option<u64>,
    pub(super) reruns: Option<u32>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) subject: Subject,
    pub(super) instructions: Vec<String>,
    pub(super) variables: Vec<(String, String)>,
    pub(super) graders: Vec<Node>,
    pub(super) mocks: Mocks,
    /// Assertions about mocked programs.
    pub(super) expected_calls: Vec<model::AssertionSpec>,
    /// Name of the skill, if the suite is about one.
    pub(super) skill: Option<String>,
}

/// Settings of a run while they are read.
#[derive(Default)]
struct Configured {
    trials: Option<u64>,
    reruns: Option<u32>,
    timeout_ms: Option<u64>,
    shelves: Vec<PathBuf>,
    instructions: Vec<String>,
    /// True if the text of the skill is put before the agent.
    presents_skill: bool,
    disabled: Vec<String>,
    servers: Vec<McpServer>,
}

impl Reading<'_> {
    /// Reads the suite.
    pub(super) fn waza(&mut self, file: &SuiteFile<'_>) -> Vec<Case> {
        let root = file.root;
        let Some(mut fields) = Fields::of(root, "the suite", &mut self.found) else { return Vec::new() };
        fields.any_text("name", &mut self.found);
        let scenario = fields.text("scenario", &mut self.found);
        self.version(&mut fields, scenario.is_some());
        let skill = fields.text("skill", &mut self.found);
        let variables = fields.text_map("inputs", &mut self.found).unwrap_or_default();
        let variables: Vec<(String, String)> = variables.into_iter().map(|(name, value)| (name, value.value)).collect();
        let configured = fields.get("config").map(|node| self.config(node)).unwrap_or_default();
        let mut mocks = Mocks { servers: configured.servers, commands: Vec::new() };
        if let Some(node) = fields.get("mcp_mocks") {
            mocks.servers.extend(self.mocked_servers(node));
        }
        let mut expected_calls = Vec::new();
        if let Some(node) = fields.get("command_mocks") {
            mocks.commands = self.mocked_commands(node, &mut expected_calls);
        }
        if let Some(node) = fields.get("hooks") {
            self.hooks(node);
        }
        let graders = self.maps(fields.get("graders"), "graders").into_iter().cloned().collect();
        let (tasks, rows, range) =
            (fields.get("tasks"), fields.text("tasks_from", &mut self.found), fields.get("range"));
        let rows = rows.zip(fields.get("tasks_from"));
        self.close(&fields, "", &IGNORED, &[] as &Keys<'_>);

        let is_disabled = |name: &String| configured.disabled.iter().any(|other| other == "*" || other == name);
        let subject = match (skill.as_ref().filter(|name| !is_disabled(name)), fields.get("skill")) {
            (Some(name), Some(place)) => match self.subject(name, file.path, &configured.shelves, place) {
                Some(skill) if configured.presents_skill => Subject::Skill(skill),
                Some(skill) => Subject::Installed(skill),
                None => Subject::Agent,
            },
            _ => Subject::Agent,
        };
        let settings = Settings {
            trials: configured.trials,
            reruns: configured.reruns,
            timeout_ms: configured.timeout_ms,
            subject,
            instructions: configured.instructions,
            variables,
            graders,
            mocks,
            expected_calls,
            skill,
        };
        let whole = std::mem::take(&mut self.found);
        let mut names = Names::default();
        let mut cases = Vec::new();
        let mut broken = whole;
        match rows {
            Some((written, place)) => {
                for row in self.rows(&written, range, place) {
                    cases.push(self.row(&row, cases.len(), &settings, &mut names));
                }
                if let Some(tasks) = tasks {
                    self.ignore("tasks", "`tasks_from` takes precedence", tasks);
                }
            }
            None => {
                for path in self.task_files(tasks) {
                    let shown = self.library.shown(&path);
                    let file = match document::read_document(&path, &shown) {
                        Ok(file) => file,
                        Err(problems) => {
                            let mut case = Case::new(names.unique(&shown), model::Excerpt::of_file(shown.clone()));
                            case.broken.extend(problems);
                            cases.push(case);
                            continue;
                        }
                    };
                    let mut case = self.task(&file, &path, &settings, &mut names);
                    case.broken.extend(std::mem::take(&mut self.found));
                    cases.push(case);
                }
            }
        }
        broken.append(&mut self.found);
        broken.append(&mut names.twins);
        if cases.is_empty() && broken.is_empty() {
            broken.push(match tasks {
                None => root.error("the suite has no `tasks`").of_missing(&["tasks"]),
                Some(_) => root.error("the suite has no tasks"),
            });
        }
        self.found = broken;
        cases
    }

    /// Checks the version of the schema.
    fn version(&mut self, fields: &mut Fields<'_>, has_scenario: bool) {
        let Some(node) = fields.get("schemaVersion") else {
            if has_scenario {
                let problem = fields.node().error("a suite with `scenario` needs `schemaVersion: \"2.0\"`");
                self.found.push(problem.of_missing(&["schemaVersion"]));
            }
            return;
        };
        let written = node.as_str().map_or_else(|| node.to_json().to_string(), str::to_owned);
        let is_known = written == "2.0" || written.strip_prefix("1.").is_some_and(|minor| minor.parse::<u32>().is_ok());
        if !is_known {
            self.found.push(node.error(format!("the schema {written} of waza is not known; 1.x and 2.0 are")));
        } else if has_scenario != (written == "2.0") {
            self.found.push(node.error("schema 2.0 is for suites with `scenario`, and 1.x for those without"));
        }
    }

    fn config(&mut self, node: &Node) -> Configured {
        let mut configured = Configured { presents_skill: true, ..Configured::default() };
        let Some(mut fields) = Fields::of(node, "`config`", &mut self.found) else { return configured };
        configured.trials = fields.whole("trials_per_task", 1, &mut self.found);
        configured.timeout_ms = fields.whole("timeout_seconds", 1, &mut self.found).map(|s| s.saturating_mul(1000));
        let attempts = fields.whole("max_attempts", 1, &mut self.found);
        configured.reruns = attempts.map(|attempts| u32::try_from(attempts - 1).unwrap_or(u32::MAX));
        let shelves = fields.texts("skill_directories", &mut self.found).unwrap_or_default();
        configured.shelves = shelves.iter().map(|shelf| self.path_of(shelf)).collect();
        configured.instructions = fields.texts("instruction_files", &mut self.found).unwrap_or_default();
        if let Some(presents) = fields.boolean("inject_skill_body", &mut self.found) {
            configured.presents_skill = presents;
        }
        if fields.boolean("trigger_skill_routing", &mut self.found) == Some(true)
            && let Some(node) = fields.get("trigger_skill_routing")
        {
            self.refuse("config.trigger_skill_routing", "the agent gets no instruction to use the skill", node);
        }
        configured.disabled = fields.texts("disabled_skills", &mut self.found).unwrap_or_default();
        if let Some(node) = fields.get("mcp_servers") {
            configured.servers = self.servers(node);
        }
        self.close(&fields, "config", &IGNORED_SETTINGS, &[] as &Keys<'_>);
        configured
    }

    /// Reads real MCP servers, which may have a `type` that their other keys show.
    fn servers(&mut self, node: &Node) -> Vec<McpServer> {
        let NodeKind::Map(entries) = &node.kind else {
            self.found.push(node.error(format!("`mcp_servers` must be a map, not {}", node.kind_name())));
            return Vec::new();
        };
        let bare = |server: &Node| match &server.kind {
            NodeKind::Map(all) => {
                let kept = all.iter().filter(|(key, _)| key.value != "type").cloned().collect();
                Node { kind: NodeKind::Map(kept), ..server.clone() }
            }
            _ => server.clone(),
        };
        let entries = entries.iter().map(|(name, server)| (name.clone(), bare(server))).collect();
        let node = Node { kind: NodeKind::Map(entries), ..node.clone() };
        mocks::from_nodes(Some(&node), None, &self.directory, &mut self.found).servers
    }

    /// Reads mocked MCP servers.
    fn mocked_servers(&mut self, node: &Node) -> Vec<McpServer> {
        let mut servers = Vec::new();
        for item in self.maps(Some(node), "mcp_mocks") {
            let Some(mut fields) = Fields::of(item, "a mock", &mut self.found) else { continue };
            let name = fields.required_text("name", &mut self.found);
            let mut tools = Vec::new();
            if let Some(NodeKind::Map(entries)) = fields.get("tools").map(|node| &node.kind) {
                for (tool, node) in entries {
                    tools.extend(self.mocked_tool(node).map(|node| (tool.value.as_str(), node)));
                }
            }
            let refused = [("fixtures", "answers in files are not read; write them under `tools`")];
            self.close(&fields, "mcp_mocks[]", &[], &refused);
            let Some(name) = name else { continue };
            let server = map(item, vec![(name.as_str(), map(item, vec![("tools", map(item, tools))]))]);
            servers.extend(mocks::from_nodes(Some(&server), None, &self.directory, &mut self.found).servers);
        }
        servers
    }

    /// Returns a mocked tool as trialrun writes it.
    fn mocked_tool(&mut self, node: &Node) -> Option<Node> {
        let mut fields = Fields::of(node, "a tool", &mut self.found)?;
        let mut entries = Vec::new();
        for key in ["description", "input_schema"] {
            entries.extend(fields.get(key).map(|node| (key, node.clone())));
        }
        let mut answers = Vec::new();
        for item in fields.list("responses", &mut self.found).unwrap_or_default() {
            let mut response = Fields::of(item, "a response", &mut self.found)?;
            let mut answer = Vec::new();
            answer.extend(response.get("match").map(|node| ("when", node.clone())));
            if let Some(NodeKind::Map(patterns)) = response.get("match_regex").map(|node| &node.kind) {
                let pattern = |node: &Node| text(node, format!("/^(?:{})$/", node.as_str().unwrap_or_default()));
                let when = patterns.iter().map(|(name, node)| (name.value.as_str(), pattern(node))).collect();
                answer.push(("when", map(item, when)));
            }
            answer.extend(response.get("return").map(|node| ("answer", node.clone())));
            answer.extend(response.get("error").map(|node| ("error", node.clone())));
            let refused = [("match_schema", "answers are not chosen by a schema")];
            self.close(&response, "mcp_mocks[].tools.*.responses[]", &[], &refused);
            answers.push(map(item, answer));
        }
        self.close(&fields, "mcp_mocks[].tools.*", &[], &[] as &Keys<'_>);
        entries.push(("answers", list(node, answers)));
        Some(map(node, entries))
    }

    /// Reads mocked programs, and adds assertions about the number of their calls.
    fn mocked_commands(&mut self, node: &Node, calls: &mut Vec<model::AssertionSpec>) -> Vec<MockedTool> {
        let mut commands = Vec::new();
        for item in self.maps(Some(node), "command_mocks") {
            let Some(mut fields) = Fields::of(item, "a mock", &mut self.found) else { continue };
            let name = fields.required_text("name", &mut self.found);
            let count = fields.whole("expect_calls", 0, &mut self.found);
            let mut answers = Vec::new();
            for response in fields.list("responses", &mut self.found).unwrap_or_default() {
                let Some(mut own) = Fields::of(response, "a response", &mut self.found) else { continue };
                let mut answer = Vec::new();
                for key in ["args", "stdout", "stderr", "exit_code"] {
                    answer.extend(own.get(key).map(|node| (key, plain(key, node))));
                }
                let refused = [
                    ("args_regex", "arguments are not compared by expressions"),
                    ("environment", "answers are not chosen by variables"),
                    ("workdir", "answers are not chosen by the working directory"),
                    ("fixture", "answers in files are not read; write them as `stdout`"),
                ];
                self.close(&own, "command_mocks[].responses[]", &[], &refused);
                answers.push(map(response, answer));
            }
            self.close(&fields, "command_mocks[]", &[], &[] as &Keys<'_>);
            let Some(name) = name else { continue };
            if let Some(count) = count {
                let mut expected = vec![("command", text(item, &name))];
                let kind = if count == 0 { "mock_not_called" } else { "mock_called" };
                if count > 0 {
                    expected.extend([("min", whole(item, count)), ("max", whole(item, count))]);
                }
                calls.push(assertion(item, &format!("calls of {name}"), kind, expected, 1.0));
            }
            let mock = map(item, vec![(name.as_str(), map(item, vec![("answers", list(item, answers))]))]);
            commands.extend(mocks::from_nodes(None, Some(&mock), &self.directory, &mut self.found).commands);
        }
        commands
    }

    fn hooks(&mut self, node: &Node) {
        let Some(mut fields) = Fields::of(node, "`hooks`", &mut self.found) else { return };
        for key in ["before_run", "before_task"] {
            if let Some(node) =
                fields.get(key).filter(|node| matches!(&node.kind, NodeKind::List(all) if !all.is_empty()))
            {
                self.refuse(&format!("hooks.{key}"), SETUP, node);
            }
        }
        self.close(&fields, "hooks", &HOOKS, &[] as &Keys<'_>);
    }

    /// Returns the skill called `name`: the one whose folder contains the suite, or one on a shelf.
    fn subject(&mut self, name: &str, path: &Path, shelves: &[PathBuf], place: &Node) -> Option<Arc<Skill>> {
        let folders = || path.ancestors().skip(1).filter(|folder| folder.join(SKILL_FILE).is_file());
        if let Some(own) = folders().find(|folder| folder.file_name().is_some_and(|own| own == name)) {
            return self.library.skill_at(own);
        }
        let mut all = shelves.to_vec();
        all.extend(self.library.shelves(path));
        // A clone of a repository may have any name.
        if !all.iter().any(|shelf| shelf.join(name).join(SKILL_FILE).is_file())
            && let Some(own) = folders().next().and_then(|folder| self.library.skill_at(folder))
            && own.name == name
        {
            return Some(own);
        }
        self.library.skill_on(name, &all, place, &mut self.found)
    }

    /// Returns the files of the tasks, sorted by path within each pattern.
    fn task_files(&mut self, tasks: Option<&Node>) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = Vec::new();
        for item in self.maps(tasks, "tasks") {
            let Some(pattern) = item.as_str() else {
                let problem = item.error("an item of `tasks` must be a path or a pattern");
                self.found.push(problem.help("write each task into a file of its own"));
                if matches!(item.kind, NodeKind::Map(_)) {
                    // The others are written in the same way.
                    break;
                }
                continue;
            };
            let mut own = self.matching(pattern, item);
            if own.is_empty() {
                self.found.push(item.error(format!("no file matches `{pattern}`")));
            }
            own.retain(|path| !files.contains(path));
            files.extend(own);
        }
        files
    }

    /// Returns the files that match `pattern`, which is relative to the suite.
    fn matching(&mut self, pattern: &str, place: &Node) -> Vec<PathBuf> {
        if !pattern.contains(['*', '?', '[', '{']) {
            return Some(self.path_of(pattern)).filter(|path| path.is_file()).into_iter().collect();
        }
        let full = self.path_of(pattern);
        let base: PathBuf = full
            .components()
            .take_while(|part| !part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']))
            .collect();
        let glob = GlobBuilder::new(&full.to_string_lossy()).literal_separator(true).build();
        let Ok(glob) = glob.map(|glob| glob.compile_matcher()) else {
            self.found.push(place.error(format!("`{pattern}` is not a valid pattern")));
            return Vec::new();
        };
        let entries = walkdir::WalkDir::new(base).sort_by_file_name().into_iter().flatten();
        entries
            .filter(|entry| entry.file_type().is_file())
            .map(|entry| entry.into_path())
            .filter(|path| glob.is_match(path))
            .collect()
    }

    /// Returns the rows of a table. `range` has the first and the last of them, from 1.
    fn rows(&mut self, written: &str, range: Option<&Node>, place: &Node) -> Vec<Node> {
        let Some(source) = self.open(written, place) else { return Vec::new() };
        self.library.use_table(&self.path_of(written));
        let rows = document::read_csv(&source, b',', &mut self.found);
        let Some(range) = range else { return rows };
        let bounds: Vec<usize> = match &range.kind {
            NodeKind::List(items) => items
                .iter()
                .filter_map(|item| match &item.kind {
                    NodeKind::Number(number) => usize::try_from(model::decode::as_whole(number)?).ok(),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        match bounds.as_slice() {
            [first, last] if *first >= 1 && first <= last => {
                rows.into_iter().skip(first - 1).take(last - first + 1).collect()
            }
            _ => {
                self.found.push(range.error("`range` must be a list of the first and the last row, from 1"));
                Vec::new()
            }
        }
    }

    /// Creates the settings of trials that all tasks share.
    pub(super) fn trials(settings: &Settings) -> Option<Trials> {
        settings.trials.map(Trials::Fixed)
    }
}

/// Returns what a mocked program prints. Structured values are JSON.
fn plain(key: &str, node: &Node) -> Node {
    match (key, &node.kind) {
        ("stdout", NodeKind::Map(_) | NodeKind::List(_) | NodeKind::Number(_) | NodeKind::Bool(_)) => {
            text(node, node.to_json().to_string())
        }
        _ => node.clone(),
    }
}
