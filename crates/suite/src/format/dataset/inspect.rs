//! Samples of inspect, each of which becomes a case.

use std::sync::Arc;

use model::decode::Fields;
use model::{Case, FixtureFile, Fixtures, Node, NodeKind, Spanned, UserMessage, nearest};

use super::{Asserted, Shared, completed, parsed, plain};
use crate::format::foreign::{Names, Reading, quoted};

/// Consequences of ignoring fields of a sample.
const IGNORED: [(&str, &str); 4] = [
    ("metadata", "it describes the sample"),
    ("sandbox", "the run chooses the sandbox"),
    ("checkpoint", "trials have no checkpoints"),
    ("source", "it describes the sample"),
];

/// Start of the name of another sandbox, of which a sample can have several.
const USUAL_SANDBOX: &str = "default:";

/// Help for a sample without a field that it needs.
const NAMES_FIELDS: &str = "`fields: { input: NAME, target: NAME }` in the suite names the fields of its samples";

impl Reading<'_> {
    /// Reads the sample at this position.
    pub(super) fn sample(&mut self, row: &Node, index: usize, shared: &Shared, names: &mut Names) -> Case {
        let fallback = (index + 1).to_string();
        let Some(mut fields) = Fields::of(row, "a sample", &mut self.found) else {
            return completed(Case::new(names.unique(&fallback), row.excerpt()), shared, Vec::new());
        };
        let column = |key: &'static str| {
            let own = shared.columns.iter().find(|(known, _)| known == key).and_then(|(_, names)| names.first());
            own.map_or(key, String::as_str).to_owned()
        };
        let value = |fields: &mut Fields<'_>, key: &'static str| {
            fields.get(key);
            row.get(&column(key)).filter(|node| !is_empty(node))
        };
        let id = value(&mut fields, "id").and_then(|node| Some(names.written(&plain(node)?, node)));
        let mut case = Case::new(id.unwrap_or_else(|| names.unique(&fallback)), row.excerpt());
        case.description = value(&mut fields, "description").and_then(plain);
        let targets = self.targets(value(&mut fields, "target"));
        let choices = value(&mut fields, "choices").map(choices).unwrap_or_default();
        match value(&mut fields, "input") {
            Some(input) => self.input(input, &choices, shared, &mut case),
            None => {
                let name = column("input");
                let problem = row.error(format!("the sample has no `{name}`")).of_missing(&[&name]);
                self.found.push(problem.help(NAMES_FIELDS));
            }
        }
        let mut fixtures = Fixtures::clone(&shared.case.fixtures);
        if let Some(node) = value(&mut fields, "files") {
            self.sample_files(node, &mut fixtures);
        }
        if let Some(setup) = value(&mut fields, "setup") {
            self.setup(setup, &mut fixtures);
        }
        if let Some(sandbox) = row.get(&column("sandbox")).filter(|node| !is_empty(node)) {
            self.sandbox(sandbox);
        }
        self.close_sample(row, &fields, shared);
        if !fixtures.is_empty() && fixtures.source.is_none() {
            fixtures.source = Some(row.excerpt());
        }
        case.fixtures = Arc::new(fixtures);
        let Asserted::Scorers(scorers) = &shared.asserted else { return completed(case, shared, Vec::new()) };
        let mut ids = Names::default();
        let mut assertions = Vec::with_capacity(scorers.len());
        for scorer in scorers {
            let id = ids.unique(scorer.name());
            match scorer.assertion(&id, row, &targets, choices.len(), shared.multiple_correct) {
                Ok(spec) => assertions.push(spec),
                // Without a message, the names of the fields are probably wrong.
                Err(_) if value(&mut fields, "input").is_none() => {}
                Err(reason) if targets.is_empty() => {
                    self.found.push(row.error(reason).of_missing(&[column("target")]).help(NAMES_FIELDS));
                }
                Err(reason) => self.found.push(row.error(reason)),
            }
        }
        if !targets.is_empty() {
            case.expected = Some(targets.join("\n").into());
        }
        completed(case, shared, assertions)
    }

    /// Records the columns of a row. Those of other fields, under other names, are honoured.
    fn close_sample(&mut self, row: &Node, fields: &Fields<'_>, shared: &Shared) {
        let NodeKind::Map(entries) = &row.kind else { return };
        let renamed = |name: &str| shared.columns.iter().any(|(_, names)| names.iter().any(|own| own == name));
        let own: Vec<(Spanned<String>, Node)> =
            entries.iter().filter(|(key, _)| !renamed(&key.value)).cloned().collect();
        for (key, value) in entries.iter().filter(|(key, _)| renamed(&key.value)) {
            let place = value.source.excerpt(key.span);
            self.keys.add(key.value.clone(), crate::coverage::Treatment::Honoured, None, place);
        }
        let rest = Node { kind: NodeKind::Map(own), ..row.clone() };
        let mut problems = Vec::new();
        if let Some(mut rest) = Fields::of(&rest, "a sample", &mut problems) {
            for key in fields.known() {
                rest.get(key);
            }
            let ignored = |_: &str, _: &Node| {
                crate::coverage::Unknown::Ignored(
                    "it is not a field of samples, and inspect does not read it".to_owned(),
                )
            };
            let broken = self.keys.close(&rest, "", &IGNORED, ignored, &mut problems);
            self.found.extend(broken);
        }
        self.found.extend(problems);
    }

    fn targets(&mut self, node: Option<&Node>) -> Vec<String> {
        match node.map(|node| (node, &node.kind)) {
            None => Vec::new(),
            Some((_, NodeKind::List(items))) => items.iter().filter_map(plain).collect(),
            Some((node, _)) => match plain(node) {
                Some(target) => vec![target],
                None => {
                    self.found
                        .push(node.error(format!("`target` must be a string or a list, not {}", node.kind_name())));
                    Vec::new()
                }
            },
        }
    }

    /// Reads the input, which is text or a list of messages.
    fn input(&mut self, node: &Node, choices: &[String], shared: &Shared, case: &mut Case) {
        let mut message = String::new();
        let known = self.found.len();
        match &node.kind {
            NodeKind::List(items) => {
                let mut texts = Vec::new();
                let mut systems = Vec::new();
                for item in items {
                    let Some(mut fields) = Fields::of(item, "a message", &mut self.found) else { continue };
                    let role = fields.text("role", &mut self.found).unwrap_or_default();
                    let content = fields.get("content").and_then(Node::as_str);
                    let Some(content) = content else {
                        self.found.push(item.error("a message needs `content`, a string"));
                        continue;
                    };
                    match role.as_str() {
                        "system" => systems.push(content.to_owned()),
                        "user" => texts.push(content.to_owned()),
                        _ => {
                            let problem =
                                item.error(format!("a message of the role `{role}` cannot be sent to an agent"));
                            self.found.push(problem.suggest(nearest(&role, ["system", "user"])));
                        }
                    }
                    for key in ["id", "source", "metadata", "tool_calls"] {
                        fields.get(key);
                    }
                }
                case.system_prompt = (!systems.is_empty()).then(|| systems.join("\n\n"));
                message.push_str(&texts.join("\n\n"));
            }
            _ => match plain(node) {
                Some(input) => message.push_str(&input),
                None => {
                    let problem =
                        node.error(format!("`input` must be a string or a list of messages, not {}", node.kind_name()));
                    self.found.push(problem);
                    return;
                }
            },
        }
        if message.trim().is_empty() && self.found.len() == known {
            self.found.push(node.error("the input has no message of the user"));
            return;
        }
        if !choices.is_empty() {
            message = question(&message, choices, shared.multiple_correct);
        }
        case.messages = vec![UserMessage::text(message)];
    }

    /// Adds files: their contents, or the names of files next to the dataset.
    fn sample_files(&mut self, node: &Node, fixtures: &mut Fixtures) {
        let Some(Node { kind: NodeKind::Map(entries), .. }) = parsed(node) else {
            self.found.push(node.error("`files` must be a map of paths"));
            return;
        };
        for (path, value) in &entries {
            let target = path.value.strip_prefix(USUAL_SANDBOX).unwrap_or(&path.value);
            if let Some((sandbox, _)) = target.split_once(':') {
                self.found.push(value.error(format!("there is one sandbox, and none called `{sandbox}`")));
                continue;
            }
            let Some(content) = value.as_str() else {
                self.found
                    .push(value.error(format!("the file `{target}` must be a string, not {}", value.kind_name())));
                continue;
            };
            if content.starts_with("data:") {
                self.refuse("files", "data URLs are not decoded; write a file next to the dataset", value);
            } else if !content.contains('\n') && !content.is_empty() && self.path_of(content).exists() {
                self.stage(content, target, fixtures, value);
            } else {
                match crate::path::inside_sandbox(target) {
                    Ok(path) => fixtures.files_unstaged.push(FixtureFile {
                        path,
                        content: content.as_bytes().into(),
                        executable: false,
                        source: value.excerpt(),
                    }),
                    Err(fault) => self.found.push(value.error(format!("`{target}` {fault}"))),
                }
            }
        }
    }

    /// Adds a script that prepares the sandbox: its text, or the name of a file.
    fn setup(&mut self, node: &Node, fixtures: &mut Fixtures) {
        let Some(written) = plain(node) else {
            self.found.push(node.error(format!("`setup` must be a string, not {}", node.kind_name())));
            return;
        };
        let is_file = !written.contains('\n') && self.path_of(&written).is_file();
        let script = match is_file {
            true => match self.open(&written, node) {
                Some(source) => source.text.clone(),
                None => return,
            },
            false => written,
        };
        let script = if script.starts_with("#!") { script } else { format!("#!/usr/bin/env bash\n{script}") };
        let run = format!(
            "f=$(mktemp) && printf %s {} > \"$f\" && chmod +x \"$f\" && \"$f\"; status=$?; rm -f \"$f\"; exit $status",
            quoted(&script)
        );
        fixtures.setup_commands.push(Spanned::new(run, node.span));
    }

    fn sandbox(&mut self, node: &Node) {
        if matches!(parsed(node), Some(Node { kind: NodeKind::List(items), .. }) if items.len() > 1) {
            self.refuse("sandbox", "the environment of a sample is not built", node);
        }
    }
}

/// Returns `true` for null and for an empty cell.
fn is_empty(node: &Node) -> bool {
    matches!(&node.kind, NodeKind::Null) || node.as_str() == Some("")
}

/// Returns the choices of a sample. Those in one cell are separated by commas or, without any, by spaces.
fn choices(node: &Node) -> Vec<String> {
    let found: Vec<String> = match &node.kind {
        NodeKind::List(items) => items.iter().filter_map(plain).collect(),
        NodeKind::String(cell) if cell.contains(',') => cell.split(',').map(str::to_owned).collect(),
        NodeKind::String(cell) => cell.split_whitespace().map(str::to_owned).collect(),
        _ => plain(node).into_iter().collect(),
    };
    found.iter().map(|choice| choice.trim().to_owned()).filter(|choice| !choice.is_empty()).collect()
}

/// Returns the question with its choices, and the form of the answer.
fn question(input: &str, choices: &[String], multiple_correct: bool) -> String {
    let letter = |index: usize| match u8::try_from(index) {
        Ok(index @ 0..26) => char::from(b'A' + index).to_string(),
        _ => (index - 25).to_string(),
    };
    let letters: Vec<String> = (0..choices.len()).map(letter).collect();
    let options: Vec<String> =
        letters.iter().zip(choices).map(|(letter, choice)| format!("{letter}) {choice}")).collect();
    let form = match multiple_correct {
        true => "several letters may be right: `ANSWER: A,B`",
        false => "one letter is right: `ANSWER: A`",
    };
    format!(
        "{input}\n\n{}\n\nEnd your reply with a line that names your choice from {}; {form}.",
        options.join("\n"),
        letters.join(", ")
    )
}
