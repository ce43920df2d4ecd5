//! Prompts: texts, and files with texts.

use std::path::{Path, PathBuf};

use model::decode::{Fields, Problems};
use model::{Node, NodeKind, Span};
use template::{Variables, may_be_template};

use super::file::{self, FILE, ending};
use super::reading::{Reading, items, short, text};
use crate::document::{self, Language};

/// Endings of files that can be prompts without `file://`.
const ENDINGS: [&str; 14] =
    ["txt", "md", "j2", "json", "jsonl", "yaml", "yml", "csv", "js", "cjs", "mjs", "ts", "mts", "py"];

/// Line between several prompts in a text file.
const DELIMITER: &str = "---";

/// A prompt.
pub(super) struct Prompt {
    /// Name for ids of cases.
    pub(super) label: String,
    /// Name by which tests and providers can also refer to it.
    pub(super) id: Option<String>,
    /// Template, or the place of the function that returns it.
    pub(super) text: Node,
    /// Module and name of the function that returns the template.
    pub(super) code: Option<(PathBuf, Option<String>)>,
}

/// Message of a conversation in a prompt that is JSON.
pub(super) struct Conversation {
    pub(super) system: Option<String>,
    pub(super) user: String,
}

impl Prompt {
    /// Returns `true` if `reference`, which may end with `*`, names the prompt.
    pub(super) fn is_named(&self, reference: &str) -> bool {
        let is = |name: &str| match reference.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == reference || name.strip_prefix(reference).is_some_and(|rest| rest.starts_with(':')),
        };
        is(&self.label) || self.id.as_deref().is_some_and(is)
    }
}

impl Reading<'_> {
    /// Reads `prompts`.
    pub(super) fn prompts(&mut self, list: &Node) -> Vec<Prompt> {
        let mut prompts = Vec::new();
        let mut problems = Problems::new();
        if let NodeKind::Map(entries) = &list.kind {
            for (file, label) in entries {
                let place = text(label, file.value.clone());
                self.prompt(&place, label.as_str(), None, &mut prompts, &mut problems);
            }
        } else {
            for item in items(Some(list)) {
                match &item.kind {
                    NodeKind::Map(_) => self.prompt_map(item, &mut prompts, &mut problems),
                    _ if crate::module_tree::is_function(item) => {
                        problems.push(item.error("a prompt that is a function is not supported"));
                    }
                    _ => self.prompt(item, None, None, &mut prompts, &mut problems),
                }
            }
        }
        if prompts.is_empty() && problems.is_empty() {
            problems.push(list.error("`prompts` is empty, so nothing would run"));
        }
        self.found.extend(problems);
        prompts
    }

    fn prompt_map(&mut self, item: &Node, prompts: &mut Vec<Prompt>, problems: &mut Problems) {
        let Some(mut fields) = Fields::of(item, "a prompt", problems) else { return };
        let label = fields.any_text("label", problems).or_else(|| fields.any_text("display", problems));
        let id = fields.any_text("id", problems);
        fields.get("display");
        let raw = fields.get("raw").or_else(|| fields.get("template")).or_else(|| fields.get("id"));
        const REFUSED: [(&str, &str); 2] = [
            ("function", "a prompt that is a function cannot be read"),
            ("config", "a prompt cannot change the provider"),
        ];
        let broken = self.close(&fields, "prompts[]", &[], &REFUSED);
        problems.extend(broken);
        match raw {
            Some(raw) if fields.node().get("raw").is_some() || fields.node().get("template").is_some() => {
                let label = label.unwrap_or_else(|| short(raw.as_str().unwrap_or_default()));
                prompts.push(Prompt { label, id, text: raw.clone(), code: None });
            }
            Some(raw) => self.prompt(raw, label.as_deref(), id.as_deref(), prompts, problems),
            None => problems.push(item.error("a prompt needs `raw` or `id`").of_missing(&["raw", "id"])),
        }
    }

    /// Reads a prompt that is a text or names a file.
    fn prompt(
        &self,
        item: &Node,
        label: Option<&str>,
        id: Option<&str>,
        prompts: &mut Vec<Prompt>,
        problems: &mut Problems,
    ) {
        let Some(written) = item.as_str() else {
            problems.push(item.error(format!("a prompt must be a string or a map, not {}", item.kind_name())));
            return;
        };
        let name = |fallback: String| label.map_or(fallback, str::to_owned);
        if !is_file(written, |reference| self.path_of(reference).is_file()) {
            prompts.push(Prompt {
                label: name(short(written)),
                id: id.map(str::to_owned),
                text: item.clone(),
                code: None,
            });
            return;
        }
        for scheme in ["langfuse://", "portkey://", "helicone://", "exec:"] {
            if written.starts_with(scheme) {
                problems.push(item.error(format!("prompts from `{scheme}` are not supported")));
                return;
            }
        }
        let (reference, function) = file::with_function(written.strip_prefix(FILE).unwrap_or(written));
        for path in self.files(reference, item, problems) {
            let shown = self.library.shown(&path);
            if ending(&path) == "py" {
                problems.push(item.error(format!("`{shown}` is code in Python, which cannot make prompts here")));
                continue;
            }
            if file::is_module(&path) {
                let written = function.map_or_else(|| shown.clone(), |function| format!("{shown}:{function}"));
                let code = Some((path, function.map(str::to_owned)));
                let id = Some(id.map_or_else(|| written.clone(), str::to_owned));
                prompts.push(Prompt { label: name(written), id, text: item.clone(), code });
                continue;
            }
            let found = self.prompts_in(&path, item, problems);
            let many = found.len() > 1;
            for (index, text) in found.into_iter().enumerate() {
                let base = name(shown.clone());
                let label = if many { format!("{base}:{}", index + 1) } else { base };
                prompts.push(Prompt {
                    label,
                    id: Some(id.map_or_else(|| shown.clone(), str::to_owned)),
                    text,
                    code: None,
                });
            }
        }
    }

    /// Returns the prompts in a file.
    fn prompts_in(&self, path: &Path, item: &Node, problems: &mut Problems) -> Vec<Node> {
        let Some(source) = self.open(path, item, problems) else { return Vec::new() };
        let whole = |content: &str| {
            let span = match source.text.find(content) {
                Some(start) => Span::new(start, start + content.len()),
                None => Span::new(0, source.text.len()),
            };
            Node { kind: NodeKind::String(content.to_owned()), span, ..document::start(&source) }
        };
        match ending(path).as_str() {
            "txt" => {
                let mut parts: Vec<String> = vec![String::new()];
                for line in source.text.lines() {
                    match (line.trim() == DELIMITER, parts.last_mut()) {
                        (false, Some(part)) => part.extend([line, "\n"]),
                        _ => parts.push(String::new()),
                    }
                }
                let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
                parts.map(whole).collect()
            }
            "jsonl" => source.text.lines().filter(|line| !line.trim().is_empty()).map(whole).collect(),
            "csv" => {
                let rows = document::read_csv(&source, b',', problems);
                let cell = |row: &Node| Some(whole(row.get("prompt").or_else(|| first(row))?.as_str()?));
                rows.iter().filter_map(cell).collect()
            }
            "yaml" | "yml" => match document::read(&source, Language::Yaml, problems) {
                Some(root) => match root.as_str() {
                    Some(text) => vec![whole(text)],
                    None => vec![whole(&root.to_json().to_string())],
                },
                None => Vec::new(),
            },
            _ => vec![whole(&source.text)],
        }
    }

    /// Renders a prompt with the variables of a test. In a prompt that is JSON, each string is rendered.
    pub(super) fn prompt_text(
        &self,
        prompt: &Prompt,
        options: (&str, &str),
        vars: &serde_json::Value,
        variables: &Variables,
        problems: &mut Problems,
    ) -> Option<String> {
        let template = match &prompt.code {
            None => prompt.text.as_str().unwrap_or_default().to_owned(),
            Some((path, name)) => {
                let given = serde_json::json!({"vars": vars, "provider": {}});
                match self.modules.call(path, name.as_deref(), &[given], self.library) {
                    Ok(serde_json::Value::String(text)) => text,
                    Ok(serde_json::Value::Null) => {
                        problems.push(prompt.text.error("the function of the prompt returned nothing"));
                        return None;
                    }
                    Ok(made) => match made.get("prompt") {
                        Some(serde_json::Value::String(text)) => text.clone(),
                        Some(other) => other.to_string(),
                        None => made.to_string(),
                    },
                    Err(reason) => {
                        problems.push(prompt.text.error(format!("the function of the prompt failed: {reason}")));
                        return None;
                    }
                }
            }
        };
        let written = format!("{}{template}{}", options.0, options.1);
        let whole = text(&prompt.text, written.as_str());
        if let Ok(json) = serde_json::from_str::<serde_json::Value>(&written)
            && (json.is_array() || json.is_object())
        {
            let known = problems.len();
            let rendered = self.in_json(&json, &whole, variables, problems);
            return (problems.len() == known).then(|| serde_json::to_string_pretty(&rendered).unwrap_or_default());
        }
        self.rendered(&whole, variables, problems)
    }

    fn in_json(
        &self,
        value: &serde_json::Value,
        at: &Node,
        variables: &Variables,
        problems: &mut Problems,
    ) -> serde_json::Value {
        use serde_json::Value;
        match value {
            Value::String(written) if may_be_template(written) => {
                self.rendered(&text(at, written.as_str()), variables, problems).map_or(Value::Null, Value::String)
            }
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.in_json(item, at, variables, problems)).collect())
            }
            Value::Object(map) => Value::Object(
                map.iter().map(|(key, value)| (key.clone(), self.in_json(value, at, variables, problems))).collect(),
            ),
            other => other.clone(),
        }
    }
}

fn first(row: &Node) -> Option<&Node> {
    super::reading::entries(Some(row)).first().map(|(_, cell)| cell)
}

/// Returns `true` if `written` names a file rather than being a prompt itself.
fn is_file(written: &str, exists: impl Fn(&str) -> bool) -> bool {
    if written.starts_with(FILE) || written.starts_with("exec:") {
        return true;
    }
    if ["langfuse://", "portkey://", "helicone://"].iter().any(|scheme| written.starts_with(scheme)) {
        return true;
    }
    if written.contains('\n') || written.contains("{{") {
        return false;
    }
    let (path, _) = file::with_function(written);
    let has_ending = ENDINGS.contains(&ending(Path::new(path)).as_str());
    has_ending && (exists(path) || !written.contains(' '))
}

/// Returns the conversation in a prompt that is a list of messages in JSON; `None` if it is another text.
///
/// # Errors
/// Returns the reason if an agent cannot receive it.
pub(super) fn conversation(prompt: &str) -> Result<Option<Conversation>, &'static str> {
    let Ok(serde_json::Value::Array(messages)) = serde_json::from_str::<serde_json::Value>(prompt) else {
        return Ok(None);
    };
    let role = |message: &serde_json::Value| message.get("role").and_then(|role| role.as_str()).map(str::to_owned);
    if messages.is_empty() || !messages.iter().all(|message| role(message).is_some()) {
        return Ok(None);
    }
    let (mut system, mut user) = (Vec::new(), Vec::new());
    for message in &messages {
        let content = match message.get("content") {
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(serde_json::Value::Array(parts)) => {
                let text = |part: &serde_json::Value| part.get("text")?.as_str().map(str::to_owned);
                match parts.iter().map(text).collect::<Option<Vec<_>>>() {
                    Some(texts) => texts.join("\n"),
                    None => return Err("it contains something other than text"),
                }
            }
            _ => return Err("a message has no text"),
        };
        match role(message).as_deref() {
            Some("system" | "developer") => system.push(content),
            Some("user") => user.push(content),
            _ => return Err("the conversation cannot begin with earlier answers"),
        }
    }
    match user.as_slice() {
        [] => Err("it has no message of the user"),
        _ => Ok(Some(Conversation {
            system: (!system.is_empty()).then(|| system.join("\n\n")),
            user: user.join("\n\n"),
        })),
    }
}
