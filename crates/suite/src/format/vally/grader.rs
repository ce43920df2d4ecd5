//! Graders, each of which becomes an assertion.

use model::decode::{Fields, Problems};
use model::{AssertionSpec, Node, NodeKind, UserMessage, nearest};

use super::settings::{Settings, duration};
use crate::coverage::Treatment;
use crate::format::foreign::{
    Keys, Names, Reading, assertion, check, flag, grader, list, map, of_machine, quoted, text, undecided, whole,
};

/// Assertions of a case while it is read.
pub(super) struct Graders<'a> {
    pub(super) settings: &'a Settings,
    /// Criteria of the stimulus for judges.
    pub(super) rubric: &'a [String],
    /// First message of the user.
    pub(super) prompt: &'a str,
    /// True if the user sends several messages.
    pub(super) has_turns: bool,
    pub(super) specs: Vec<AssertionSpec>,
    pub(super) names: Names,
    /// Ids of assertions about skills.
    pub(super) indicators: Vec<String>,
    /// True if a command is run, which needs a sandbox.
    pub(super) run_commands: bool,
}

impl<'a> Graders<'a> {
    pub(super) fn new(settings: &'a Settings, rubric: &'a [String], messages: &'a [UserMessage]) -> Self {
        let (names, specs, indicators) = (Names::default(), Vec::new(), Vec::new());
        let prompt = messages.first().map(|message| message.text.as_str()).unwrap_or_default();
        let has_turns = messages.len() > 1;
        Self { settings, rubric, prompt, has_turns, specs, names, indicators, run_commands: false }
    }
}

/// A grader while it is read.
pub(super) struct Entry<'n> {
    /// The whole grader.
    pub(super) node: &'n Node,
    pub(super) kind: &'n str,
    pub(super) id: String,
    pub(super) weight: f64,
}

impl Entry<'_> {
    /// Returns the assertion whose checks must all hold.
    fn checks(&self, checks: Vec<Node>) -> AssertionSpec {
        grader(self.node, &self.id, checks, false, self.weight)
    }

    /// Returns an assertion of trialrun.
    pub(super) fn assertion(&self, kind: &str, fields: Vec<(&str, Node)>) -> AssertionSpec {
        assertion(self.node, &self.id, kind, fields, self.weight)
    }
}

/// Types of graders, with a reason for those that are undecided.
pub(super) const TYPES: [(&str, Option<&str>); 38] = [
    ("completed", None),
    ("exit-success", None),
    ("error-count", None),
    ("tool-call-count", None),
    ("turn-count", None),
    ("step-count", None),
    ("token-budget", None),
    ("wall-time", None),
    ("output-contains", None),
    ("output-not-contains", None),
    ("output-matches", None),
    ("output-not-matches", None),
    ("file-exists", None),
    ("file-not-exists", None),
    ("file-contains", None),
    ("file-not-contains", None),
    ("file-matches", None),
    ("file-not-matches", None),
    ("tool-calls", None),
    ("skill-invocation", None),
    ("prompt", None),
    ("panel", None),
    ("program", None),
    ("run-command", None),
    ("pairwise", None),
    ("diff-empty", Some(CHANGES)),
    ("diff-contains", Some(CHANGES)),
    ("diff-not-contains", Some(CHANGES)),
    ("diff-matches", Some(CHANGES)),
    ("diff-not-matches", Some(CHANGES)),
    ("diff-size", Some(CHANGES)),
    ("max-repeat", Some("use the assertion `no_loop`")),
    ("loop-outcome", Some("use the assertion `no_loop`")),
    ("system-event", Some("agents do not report such events")),
    ("custom-metrics", Some("trialrun does not read files of metrics")),
    ("assistant-contains-tool-output", Some("trialrun has no such assertion")),
    ("json-path", Some("use the assertion `json_path`")),
    ("classifier", Some("it needs a hosted model, which trialrun does not ask")),
];

const CHANGES: &str = "trialrun has no assertion on the difference of the whole workspace";

/// Consequence of a comparison of two runs.
const PAIRWISE: &str = "it compares two runs, which `trialrun compare` does by a criterion";

/// Keys of a judge that change nothing here.
const OF_JUDGE: [(&str, &str); 3] = [
    ("model", "the judge of the run decides"),
    ("reasoning_effort", "the judge of the run decides"),
    ("output_delivery", "judges get the conversation"),
];

impl Reading<'_> {
    /// Adds the assertion for a grader.
    pub(super) fn grader(&mut self, node: &Node, graders: &mut Graders<'_>) {
        let start = self.found.len();
        let Some(mut fields) = Fields::of(node, "a grader", &mut self.found) else { return };
        let kind = fields.required_text("type", &mut self.found);
        let name = fields.text("name", &mut self.found);
        let config = fields.get("config").filter(|config| !matches!(config.kind, NodeKind::Null));
        self.close(&fields, "stimuli[].graders[]", &[("description", "it describes the grader")], &[] as &Keys<'_>);
        let Some(kind) = kind else { return };
        let known = TYPES.iter().find(|(known, _)| *known == kind);
        let is_of_output = |known: &&str| known.strip_prefix("output-") == Some(&kind);
        let mut names = TYPES.iter().map(|(known, _)| *known);
        let near = names.clone().find(is_of_output).or_else(|| nearest(&kind, names.by_ref()));
        if known.is_none()
            && let Some(near) = near
        {
            let place = node.get("type").unwrap_or(node);
            self.found.push(place.error(format!("unknown grader `{kind}`")).suggest(Some(near)));
            return;
        }
        let id = graders.names.unique(name.as_deref().unwrap_or(&kind));
        let weight = graders.settings.weight(name.as_deref(), &kind);
        let entry = Entry { node, kind: &kind, id, weight };
        let reason = match known {
            Some((_, reason)) => *reason,
            None => Some("it belongs to a plug-in, and trialrun does not run those"),
        };
        if let Some(reason) = reason {
            let key = format!("stimuli[].graders[].type: {kind}");
            let consequence = format!("the assertion is undecided: {reason}");
            self.keys.add(key, Treatment::Ignored, Some(consequence), node.excerpt());
            graders.specs.push(entry.checks(vec![undecided(node, reason)]));
            return;
        }
        let empty = map(node, Vec::new());
        let config = config.unwrap_or(&empty);
        let outer = fields;
        let Some(mut fields) = Fields::of(config, "`config`", &mut self.found) else { return };
        let known = self.found.len();
        let spec = self.vally_config(&entry, &mut fields, graders);
        let ignored: &Keys<'_> = if matches!(entry.kind, "prompt" | "panel" | "pairwise") { &OF_JUDGE } else { &[] };
        let refused = [("evidence", "judges get the conversation, and no files or patches are chosen for them")];
        let refused: &Keys<'_> = if matches!(entry.kind, "prompt" | "panel") { &refused } else { &[] };
        self.close(&fields, &format!("stimuli[].graders[{kind}].config"), ignored, refused);
        match spec {
            Some(spec) => {
                if kind == "skill-invocation" {
                    graders.indicators.push(spec.id.clone());
                }
                graders.specs.push(spec);
            }
            // The comparison of two runs asserts nothing about one.
            None if kind == "pairwise" => {}
            None if self.found.len() == known => {
                self.found.push(node.error(format!("the grader `{kind}` asserts nothing")));
            }
            None => {}
        }
        self.report_beside_config(&outer, &fields, start);
    }

    /// Reads the configuration of a grader.
    fn vally_config(
        &mut self,
        entry: &Entry<'_>,
        fields: &mut Fields<'_>,
        graders: &mut Graders<'_>,
    ) -> Option<AssertionSpec> {
        let node = entry.node;
        let found = &mut self.found;
        match entry.kind {
            "completed" => Some(entry.checks(vec![check(node, "answered", vec![("ended", flag(node, true))])])),
            "exit-success" => Some(entry.checks(vec![check(node, "answered", Vec::new())])),
            "error-count" => at_most(entry, "errors", fields.whole("max", 0, found)),
            "tool-call-count" => match fields.texts("tools", found) {
                None => at_most(entry, "calls", fields.whole("max", 0, found)),
                Some(tools) => {
                    let most = fields.whole("max", 0, found)?;
                    let patterns = tools.iter().map(|tool| map(node, vec![("name", text(node, tool))])).collect();
                    let fields = vec![("patterns", list(node, patterns)), ("max", whole(node, most))];
                    Some(entry.checks(vec![check(node, "calls", fields)]))
                }
            },
            "turn-count" | "step-count" => {
                let most = fields.whole("max", 1, found)?;
                Some(entry.assertion("turn_count_at_most", vec![("max", whole(node, most))]))
            }
            "token-budget" => {
                let most = fields.whole("max", 1, found)?;
                Some(entry.assertion("token_usage", vec![("max", whole(node, most))]))
            }
            "wall-time" => {
                let most = fields.require("max", found).and_then(|node| duration(node, "max", found));
                at_most(entry, "milliseconds", most)
            }
            kind if kind.starts_with("output-") => {
                let check = self.text_check(entry, "answer", fields, Vec::new())?;
                Some(entry.checks(vec![check]))
            }
            kind if kind.starts_with("file-") => {
                let path = fields.required_text("path", found)?;
                let path = vec![("path", text(fields.get("path")?, path))];
                self.check_path(&path[0].1);
                if kind.ends_with("exists") {
                    let negate = fields.boolean("negate", &mut self.found);
                    let is_absent = kind == "file-not-exists" || negate.unwrap_or_default();
                    let mut fields = path;
                    fields.push(("not", flag(node, is_absent)));
                    return Some(entry.checks(vec![check(node, "files", fields)]));
                }
                let check = self.text_check(entry, "files", fields, path)?;
                Some(entry.checks(vec![check]))
            }
            "tool-calls" => self.tool_calls(entry, fields),
            "skill-invocation" => {
                let mut lists = Vec::new();
                for (key, name) in [("required", "required"), ("disallowed", "forbidden")] {
                    let names = fields.texts(key, &mut self.found).unwrap_or_default();
                    if !names.is_empty() {
                        lists.push((name, list(node, names.iter().map(|name| text(node, name)).collect())));
                    }
                }
                (!lists.is_empty()).then(|| entry.checks(vec![check(node, "skills", lists)]))
            }
            "prompt" | "panel" => self.judged(entry, fields, graders),
            "pairwise" => {
                fields.get("prompt");
                fields.get("threshold");
                self.ignore("stimuli[].graders[].type: pairwise", PAIRWISE, node);
                None
            }
            "run-command" => {
                graders.run_commands = true;
                self.run_command(entry, fields)
            }
            _ => {
                graders.run_commands = true;
                self.program(entry, fields, graders)
            }
        }
    }

    /// Reads a condition on a text. `rest` are further fields of the check.
    fn text_check<'n>(
        &mut self,
        entry: &Entry<'_>,
        of: &str,
        fields: &mut Fields<'n>,
        mut rest: Vec<(&'static str, Node)>,
    ) -> Option<Node> {
        let is_negated = fields.boolean("negate", &mut self.found).unwrap_or_default();
        let is_not = is_negated || entry.kind.contains("-not-");
        if entry.kind.ends_with("matches") {
            fields.required_text("pattern", &mut self.found)?;
            rest.push(("matches", fields.get("pattern")?.clone()));
        } else {
            let key = if fields.get("substring").is_some() || of == "answer" { "substring" } else { "value" };
            let key = if fields.node().get("value").is_some() && fields.node().get("substring").is_none() {
                "value"
            } else {
                key
            };
            fields.required_text(key, &mut self.found)?;
            rest.push(("contains", fields.get(key)?.clone()));
            // Answers are compared without regard to case there, and files with it.
            let is_cased = fields.boolean("case_sensitive", &mut self.found).unwrap_or(of == "files");
            rest.push(("case", flag(entry.node, is_cased)));
        }
        rest.push(("not", flag(entry.node, is_not)));
        Some(check(entry.node, of, rest))
    }

    fn tool_calls(&mut self, entry: &Entry<'_>, fields: &mut Fields<'_>) -> Option<AssertionSpec> {
        let node = entry.node;
        let mut checks = Vec::new();
        let path = "stimuli[].graders[tool-calls].config";
        for item in fields.list("required", &mut self.found).unwrap_or_default() {
            let Some(pattern) = self.tool_match(item, &format!("{path}.required[]")) else { continue };
            let least = as_whole(item.get("min_count"), &mut self.found).unwrap_or(1);
            let is_final = matches!(item.get("final").map(|node| &node.kind), Some(NodeKind::Bool(true)));
            let patterns = list(item, vec![pattern]);
            checks.push(check(item, "calls", vec![("patterns", patterns.clone()), ("min", whole(item, least))]));
            if is_final {
                checks.push(check(item, "calls", vec![("patterns", patterns), ("final", flag(item, true))]));
            }
        }
        for item in fields.list("disallowed", &mut self.found).unwrap_or_default() {
            let Some(pattern) = self.tool_match(item, &format!("{path}.disallowed[]")) else { continue };
            let fields = vec![("patterns", list(item, vec![pattern])), ("max", whole(item, 0))];
            checks.push(check(item, "calls", fields));
        }
        let steps = fields.list("sequence", &mut self.found).unwrap_or_default();
        let steps: Vec<Node> =
            steps.iter().filter_map(|item| self.tool_match(item, &format!("{path}.sequence[]"))).collect();
        if !steps.is_empty() {
            checks.push(check(node, "sequence", vec![("steps", list(node, steps))]));
        }
        (!checks.is_empty()).then(|| entry.checks(checks))
    }

    /// Returns the pattern of a call: the name of a tool, or a map.
    fn tool_match(&mut self, item: &Node, path: &str) -> Option<Node> {
        if item.as_str().is_some() {
            return Some(map(item, vec![("name", item.clone())]));
        }
        let mut fields = Fields::of(item, "a call", &mut self.found)?;
        let mut pattern = Vec::new();
        for key in ["name", "command", "path", "result"] {
            if fields.text(key, &mut self.found).is_some() {
                pattern.extend(fields.get(key).map(|node| (key, node.clone())));
            }
        }
        if let Some(args) = fields.get("args") {
            match &args.kind {
                NodeKind::Map(_) => pattern.push(("args", args.clone())),
                _ => self.found.push(args.error(format!("`args` must be a map, not {}", args.kind_name()))),
            }
        }
        if path.contains("required") {
            fields.get("min_count");
            fields.get("final");
        }
        if fields.get("name").is_none() {
            self.found.push(item.error("a call has no `name`").of_missing(&["name"]));
        }
        let refused = [("at_step", "the position of a call is not compared")];
        self.close(&fields, path, &[], &refused);
        Some(map(item, pattern))
    }

    fn run_command(&mut self, entry: &Entry<'_>, fields: &mut Fields<'_>) -> Option<AssertionSpec> {
        let command = fields.required_text("command", &mut self.found)?;
        let args = fields.texts("args", &mut self.found);
        let mut rest = Vec::new();
        // Without arguments, it is a line for a shell.
        let line = match &args {
            None => command,
            Some(args) => {
                rest.extend(of_machine(entry.node, &command));
                words(&command, args)
            }
        };
        let exit_code = fields.whole("expected_exit_code", 0, &mut self.found).unwrap_or(0);
        rest.push(("exit_code", whole(entry.node, exit_code)));
        for (key, stream, find, is_not) in [
            ("stdout_contains", "stdout", "contains", false),
            ("stderr_contains", "stderr", "contains", false),
            ("stdout_matches", "stdout", "matches", false),
            ("stdout_not_matches", "stdout", "matches", true),
        ] {
            for node in one_or_more(fields.get(key)) {
                if node.as_str().is_none_or(str::is_empty) {
                    self.found.push(node.error(format!("`{key}` must be a string that is not empty")));
                    continue;
                }
                let of = vec![("of", text(node, stream)), (find, node.clone())];
                let rule = [of, vec![("case", flag(node, true)), ("not", flag(node, is_not))]].concat();
                rest.push(("text", map(node, rule)));
            }
        }
        let texts: Vec<Node> = rest.iter().filter(|(key, _)| *key == "text").map(|(_, node)| node.clone()).collect();
        rest.retain(|(key, _)| *key != "text");
        rest.push(("texts", list(entry.node, texts)));
        self.command(entry, fields, &line, 30_000, rest)
    }

    fn program(&mut self, entry: &Entry<'_>, fields: &mut Fields<'_>, graders: &Graders<'_>) -> Option<AssertionSpec> {
        let program = fields.required_text("program", &mut self.found)?;
        let args = fields.texts("args", &mut self.found).unwrap_or_default();
        let is_shell = fields.boolean("shell", &mut self.found).unwrap_or_default();
        let place = fields.get("args").unwrap_or(entry.node);
        let (front, own) = self.scripts(&args, place)?;
        let name = program.clone();
        let line = match is_shell {
            true => [program].into_iter().chain(args).collect::<Vec<_>>().join(" "),
            false => [quoted(&program)].into_iter().chain(own).collect::<Vec<_>>().join(" "),
        };
        let line = format!("{front}{}{line}", input(graders.prompt));
        let mut rest = vec![("exit_code", whole(entry.node, 0)), ("result", flag(entry.node, true))];
        rest.extend(of_machine(entry.node, &name).filter(|_| !is_shell));
        self.command(entry, fields, &line, 60_000, rest)
    }

    /// Returns the assertion that runs a command in the grading tree.
    fn command(
        &mut self,
        entry: &Entry<'_>,
        fields: &mut Fields<'_>,
        line: &str,
        usual_ms: u64,
        mut rest: Vec<(&str, Node)>,
    ) -> Option<AssertionSpec> {
        let folder = fields.text("sub_path", &mut self.found);
        let timeout = fields.get("timeout").map(|node| duration(node, "timeout", &mut self.found));
        let variables = fields.text_map("env", &mut self.found).unwrap_or_default();
        let timeout_ms = match timeout {
            Some(timeout) => timeout?,
            None => usual_ms,
        };
        let mut run = String::new();
        for (name, value) in variables {
            let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.is_empty();
            if !is_name || name.to_ascii_uppercase().starts_with("EVALUATE_") {
                self.found.push(entry.node.error(format!("`{name}` cannot be set for a grader")));
            }
            run.push_str(&format!("export {name}={}\n", quoted(&value.value)));
        }
        if let Some(folder) = folder {
            match crate::path::inside_sandbox(&folder.replace('\\', "/")) {
                Ok(folder) => run.push_str(&format!("cd {} || exit 125\n", quoted(&folder))),
                Err(fault) => self.found.push(entry.node.error(format!("`{folder}` {fault}"))),
            }
        }
        // The workspace is set before the working directory changes.
        let run = format!("export EVALUATE_WORKSPACE=\"$PWD\"\n{run}{line}");
        if run.contains('\0') {
            self.found.push(entry.node.error("the command contains a NUL character"));
            return None;
        }
        rest.insert(0, ("run", text(entry.node, run)));
        rest.push(("timeout_ms", whole(entry.node, timeout_ms)));
        Some(entry.checks(vec![check(entry.node, "command", rest)]))
    }
}

/// Returns the lines that write what a program reads: the message and the answer, in `$1`, as JSON.
fn input(prompt: &str) -> String {
    let prompt = serde_json::Value::from(prompt).to_string();
    let escape = r#"awk 'BEGIN { printf "\"" } { gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); gsub(/\t/, "\\t"); gsub(/\r/, "\\r"); gsub(/[\001-\010\013\014\016-\037]/, " "); if (NR > 1) printf "\\n"; printf "%s", $0 } END { printf "\"" }'"#;
    format!(
        "export EVALUATE_GRADER_INPUT=\"${{TMPDIR:-/tmp}}/grader-input.json\"\n\
         {{ printf '{{\"stimulus\":{{\"prompt\":%s}},\"trajectory\":{{\"output\":' {}\n\
         printf '%s\\n' \"$1\" | {escape}\n\
         printf ',\"events\":[]}},\"config\":{{}}}}\\n'; }} > \"$EVALUATE_GRADER_INPUT\" || exit 126\n",
        quoted(&prompt)
    )
}

/// Returns the line that runs a program with these arguments.
fn words(program: &str, args: &[String]) -> String {
    std::iter::once(program).chain(args.iter().map(String::as_str)).map(quoted).collect::<Vec<_>>().join(" ")
}

fn at_most(entry: &Entry<'_>, of: &str, most: Option<u64>) -> Option<AssertionSpec> {
    let node = entry.node;
    let fields = vec![("of", text(node, of)), ("max", whole(node, most?))];
    Some(entry.checks(vec![check(node, "at_most", fields)]))
}

/// Returns the whole number that a node is.
fn as_whole(node: Option<&Node>, problems: &mut Problems) -> Option<u64> {
    let node = node?;
    let number = match &node.kind {
        NodeKind::Number(number) => model::decode::as_whole(number),
        _ => None,
    };
    if number.is_none() {
        problems.push(node.error("`min_count` must be a whole number"));
    }
    number
}

/// Returns the items of a list, or the only value.
fn one_or_more(node: Option<&Node>) -> Vec<&Node> {
    match node.map(|node| (node, &node.kind)) {
        None => Vec::new(),
        Some((_, NodeKind::List(items))) => items.iter().collect(),
        Some((only, _)) => vec![only],
    }
}
