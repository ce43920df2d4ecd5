//! Logs of inspect: `.eval` archives, and the older form as one JSON document.

use std::collections::HashSet;
use std::io::{Cursor, Read};

use model::{Diagnostic, Ending, Excerpt, Source, Span, Step, Tokens, ToolCall, ToolResult, Usage, foreign_json};
use serde_json::{Map, Value};
use zip::ZipArchive;
use zip::read::ZipFile;

use crate::conversation::Conversation;
use crate::json::{arguments, items, owned, plain, text};
use crate::transcript::as_text;

/// Beginning of every archive.
const MAGIC: &[u8] = b"PK\x03\x04";
/// Maximum number of entries in an archive.
const MAX_ENTRIES: usize = 200_000;
/// Maximum size of an entry, decompressed, in bytes.
const MAX_ENTRY_BYTES: u64 = 256 << 20;
/// Maximum size of all entries that are read, decompressed, in bytes.
const MAX_BYTES: u64 = 4 << 30;

/// Beginning of a text that stands elsewhere in the sample, because it is long.
const ATTACHMENT: &str = "attachment://";

/// Types of content that are neither text nor part of a call.
const OTHER_CONTENT: [&str; 6] = ["audio", "data", "document", "image", "reasoning", "video"];

/// Tools of inspect with a canonical name.
const TOOLS: [(&str, &str); 2] = [("bash", "Bash"), ("web_search", "WebSearch")];

/// Returns `true` if `bytes` are an archive.
pub(super) fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Returns `true` if `document` is a log.
pub(super) fn is_document(document: &Map<String, Value>) -> bool {
    document.get("eval").is_some_and(|eval| eval.get("task").is_some())
        && document.get("version").is_some_and(Value::is_number)
}

/// Reads a log that is one document.
pub(super) fn read_document(source: &Source, document: &Value, problems: &mut Vec<Diagnostic>) -> Vec<Conversation> {
    check_status(document, &|| source.excerpt(Span::default()), problems);
    let mut samples: Vec<&Value> = items(document, "samples").iter().collect();
    samples.sort_by_key(|sample| epoch(sample));
    if samples.is_empty() {
        let problem = Diagnostic::error("the log has no samples").at(source.excerpt(Span::default()));
        problems.push(problem.help("logs without samples have only metrics"));
    }
    samples.into_iter().map(|sample| read_sample(source, sample)).collect()
}

/// Reads the archive at `path`.
pub(super) fn read_archive(path: &str, bytes: &[u8], problems: &mut Vec<Diagnostic>) -> Vec<Conversation> {
    read_entries(path, bytes, MAX_ENTRY_BYTES, problems)
}

/// Reads an archive with entries of at most `most` bytes.
pub(super) fn read_entries(path: &str, bytes: &[u8], most: u64, problems: &mut Vec<Diagnostic>) -> Vec<Conversation> {
    let mut archive = match ZipArchive::new(Cursor::new(bytes)) {
        Ok(archive) if archive.len() <= MAX_ENTRIES => archive,
        Ok(archive) => {
            let problem = Diagnostic::error(format!("the archive has {} entries", archive.len()));
            problems.push(problem.at(Excerpt::of_file(path)).help(format!("the limit is {MAX_ENTRIES}")));
            return Vec::new();
        }
        Err(error) => {
            let problem = Diagnostic::error(format!("the archive cannot be read: {error}"));
            problems.push(problem.at(Excerpt::of_file(path)));
            return Vec::new();
        }
    };
    let mut left = MAX_BYTES;
    let (mut has_header, mut samples) = (false, Vec::new());
    for index in 0..archive.len() {
        let Ok(mut entry) = archive.by_index(index).inspect_err(|error| {
            let problem = Diagnostic::error(format!("entry {index} of the archive cannot be read: {error}"));
            problems.push(problem.at(Excerpt::of_file(path)));
        }) else {
            continue;
        };
        let Ok(name) = entry.name().map(|name| name.into_owned()) else { continue };
        let is_sample = name.starts_with("samples/") && name.ends_with(".json");
        if !is_sample && name != "header.json" {
            continue;
        }
        let place = format!("{path}/{name}");
        let read = match text_of(&mut entry, most, &mut left) {
            Ok(read) => read,
            Err(reason) => {
                problems.push(Diagnostic::error(reason).at(Excerpt::of_file(place)));
                continue;
            }
        };
        let source = Source::new(place, read);
        let document = match foreign_json::parse(&source.text) {
            Ok(document) => document,
            Err(error) => {
                problems.push(super::unreadable(&source, &error));
                continue;
            }
        };
        if is_sample {
            samples.push((epoch(&document), read_sample(&source, &document)));
        } else {
            has_header = true;
            check_status(&document, &|| source.excerpt(Span::default()), problems);
        }
    }
    let has_errors = problems.iter().any(Diagnostic::is_error);
    if samples.is_empty() && !has_errors {
        let problem = Diagnostic::error("the archive has no samples of inspect").at(Excerpt::of_file(path));
        problems.push(problem);
    } else if !has_header && !has_errors {
        let problem = Diagnostic::warning("the log has no header: its run is in progress or was killed");
        problems.push(problem.at(Excerpt::of_file(path)));
    }
    samples.sort_by_key(|(epoch, _)| *epoch);
    samples.into_iter().map(|(_, sample)| sample).collect()
}

/// Returns the text of an entry of at most `most` bytes. `left` is the number of bytes that may still be read from the
/// archive.
fn text_of(entry: &mut ZipFile<'_, Cursor<&[u8]>>, most: u64, left: &mut u64) -> Result<String, String> {
    let most = most.min(*left);
    let mut bytes = Vec::new();
    // The size in the archive may be wrong.
    entry.take(most + 1).read_to_end(&mut bytes).map_err(|error| format!("the entry cannot be read: {error}"))?;
    let size = bytes.len() as u64;
    if size > most {
        return Err(format!("the entry is too large: at most {most} bytes can be read"));
    }
    *left -= size;
    String::from_utf8(bytes).map_err(|_| "the entry is not UTF-8".to_owned())
}

/// Warns about a log whose run did not end well.
fn check_status(log: &Value, place: &dyn Fn() -> Excerpt, problems: &mut Vec<Diagnostic>) {
    if let Some(status) = text(log, "status").filter(|status| *status != "success") {
        problems.push(Diagnostic::warning(format!("the status of the log is `{status}`")).at(place()));
    }
}

fn epoch(sample: &Value) -> u64 {
    sample.get("epoch").and_then(Value::as_u64).unwrap_or(0)
}

fn read_sample(source: &Source, sample: &Value) -> Conversation {
    let mut read = Conversation::of_agent("inspect");
    read.case = sample.get("id").filter(|id| !id.is_null()).map(as_text);
    read.session_id = owned(sample, "uuid");
    let mut reader = SampleReader { source, sample, read, called: HashSet::new() };
    match sample.get("messages").and_then(Value::as_array) {
        Some(messages) => messages.iter().enumerate().for_each(|(index, message)| reader.message(index, message)),
        None => {
            let what = "the sample has no messages".to_owned();
            reader.read.is_incomplete(source, Span::default(), what);
        }
    }
    reader.check_events();
    reader.read.usage = usage(sample);
    reader.read.answer = reader.completion();
    reader.read.ending = ending(sample, &reader.read);
    reader.read.close();
    reader.read
}

struct SampleReader<'a> {
    source: &'a Source,
    sample: &'a Value,
    read: Conversation,
    /// Ids of the calls.
    called: HashSet<&'a str>,
}

impl<'a> SampleReader<'a> {
    fn message(&mut self, index: usize, message: &'a Value) {
        match text(message, "role") {
            Some("user") => {
                let said = self.content(index, message);
                self.read.user(said);
            }
            Some("assistant") => self.answer(index, message),
            Some("tool") => self.result(index, message),
            Some("system") => {}
            role => {
                let what = format!("`messages[{index}]` has the unknown role `{}`", role.unwrap_or("none"));
                self.is_incomplete(message, what);
            }
        }
    }

    fn answer(&mut self, index: usize, message: &'a Value) {
        let id = text(message, "id").map_or_else(|| format!("message-{index}"), str::to_owned);
        if self.read.model.is_none() {
            self.read.model = owned(message, "model");
        }
        let said = self.content(index, message);
        let calls = items(message, "tool_calls");
        if !said.is_empty() || calls.is_empty() {
            self.read.push(Step::Text { message: id.clone(), text: said, parent: None });
        }
        for (nth, call) in calls.iter().enumerate() {
            let (Some(call_id), Some(name)) = (text(call, "id"), text(call, "function")) else {
                self.is_incomplete(message, format!("`messages[{index}].tool_calls[{nth}]` has no id or no function"));
                continue;
            };
            self.called.insert(call_id);
            self.read.push(Step::ToolCall(tool_call(call_id, name, self.resolved(arguments(call, "arguments")), &id)));
        }
        // Tools that the provider runs itself.
        for (nth, block) in
            items(message, "content").iter().enumerate().filter(|(_, it)| text(it, "type") == Some("tool_use"))
        {
            let call_id = text(block, "id").map_or_else(|| format!("{id}-{nth}"), str::to_owned);
            let Some(name) = text(block, "name") else {
                self.is_incomplete(message, format!("`messages[{index}].content[{nth}]` is a call without a name"));
                continue;
            };
            let input = block.get("arguments").map_or(Value::Null, |written| {
                let parsed = written.as_str().and_then(|text| foreign_json::parse(text).ok());
                parsed.unwrap_or_else(|| written.clone())
            });
            self.read.push(Step::ToolCall(tool_call(&call_id, name, input, &id)));
            let error = owned(block, "error");
            let content = error.clone().or_else(|| block.get("result").map(plain)).unwrap_or_default();
            self.read.push(Step::ToolResult(ToolResult { id: call_id, content, is_error: error.is_some() }));
        }
    }

    fn result(&mut self, index: usize, message: &'a Value) {
        let error = message.get("error").filter(|error| !error.is_null());
        let said = self.content(index, message);
        let content = match error.and_then(|error| text(error, "message")) {
            Some(reason) if said.is_empty() => reason.to_owned(),
            _ => said,
        };
        match text(message, "tool_call_id") {
            Some(id) => {
                let result = ToolResult { id: id.to_owned(), content, is_error: error.is_some() };
                self.read.push(Step::ToolResult(result));
            }
            None => self.is_incomplete(message, format!("`messages[{index}]` does not name its call")),
        }
    }

    /// Returns the text of a message.
    fn content(&mut self, index: usize, message: &'a Value) -> String {
        let blocks = match message.get("content") {
            Some(Value::Array(blocks)) => blocks,
            Some(Value::String(said)) => return self.attached(said).to_owned(),
            _ => return String::new(),
        };
        let mut said = Vec::new();
        for (nth, block) in blocks.iter().enumerate() {
            match text(block, "type").unwrap_or_default() {
                "text" => said.push(self.attached(text(block, "text").unwrap_or_default()).to_owned()),
                "tool_use" => {}
                kind if OTHER_CONTENT.contains(&kind) => {}
                kind => {
                    let what = format!("`messages[{index}].content[{nth}]` has the unknown type `{kind}`");
                    self.is_incomplete(message, what);
                }
            }
        }
        said.join("\n")
    }

    /// Returns the text to which `said` refers, if it stands elsewhere in the sample.
    fn attached(&self, said: &'a str) -> &'a str {
        let found = said.strip_prefix(ATTACHMENT).and_then(|key| text(self.sample.get("attachments")?, key));
        found.unwrap_or(said)
    }

    /// Replaces references in arguments.
    fn resolved(&self, mut value: Value) -> Value {
        match &mut value {
            Value::String(said) => {
                let key = said.strip_prefix(ATTACHMENT);
                let found = key.and_then(|key| owned(self.sample.get("attachments")?, key));
                return found.map_or(value, Value::String);
            }
            Value::Array(items) => items.iter_mut().for_each(|item| *item = self.resolved(item.take())),
            Value::Object(entries) => entries.values_mut().for_each(|item| *item = self.resolved(item.take())),
            _ => {}
        }
        value
    }

    /// Finds calls that only the events contain: agents may leave messages out, or use others for their work.
    fn check_events(&mut self) {
        let events = items(self.sample, "events").iter().filter(|event| text(event, "event") == Some("tool"));
        let missing = events.filter(|event| text(event, "id").is_none_or(|id| !self.called.contains(id))).count();
        if missing > 0 {
            let calls = model::text::counted(missing, "tool call");
            let what = format!("the events have {calls} that the messages of the sample do not contain");
            self.read.is_incomplete(self.source, Span::default(), what);
        }
    }

    fn completion(&self) -> Option<String> {
        let completion = self.sample.pointer("/output/completion").and_then(Value::as_str)?;
        Some(self.attached(completion).to_owned()).filter(|completion| !completion.is_empty())
    }

    fn is_incomplete(&mut self, message: &Value, what: String) {
        let at = self.read.position(self.source, text(message, "id").unwrap_or_default());
        self.read.is_incomplete(self.source, at, what);
    }
}

fn tool_call(id: &str, name: &str, mut input: Value, message: &str) -> ToolCall {
    let canonical = TOOLS.iter().find(|(own, _)| *own == name).map_or(name, |(_, canonical)| canonical);
    if canonical == "Bash"
        && let Value::Object(fields) = &mut input
        && let Some(command) = fields.remove("cmd")
    {
        fields.insert("command".to_owned(), command);
    }
    let mut call = ToolCall::new(id, canonical, input, message);
    name.clone_into(&mut call.raw_name);
    call
}

/// Returns the usage of all models. The counts of inspect do not overlap, except that output includes reasoning.
fn usage(sample: &Value) -> Usage {
    let models = sample.get("model_usage").and_then(Value::as_object).into_iter().flatten();
    let mut usage = Usage::default();
    for (_, used) in models {
        let count = |key: &str| used.get(key).and_then(Value::as_u64);
        let part = |key: &str| count(key).unwrap_or(0);
        *usage.tokens.get_or_insert_default() += Tokens {
            input: part("input_tokens"),
            cache_read: part("input_tokens_cache_read"),
            cache_write: part("input_tokens_cache_write"),
            output: part("output_tokens"),
            reasoning: count("reasoning_tokens"),
        };
        if let Some(cost) = used.get("total_cost").and_then(Value::as_f64) {
            *usage.cost_usd.get_or_insert_default() += cost;
        }
    }
    usage
}

fn ending(sample: &Value, read: &Conversation) -> Ending {
    if let Some(error) = sample.get("error").filter(|error| !error.is_null()) {
        let reason = text(error, "message").map_or_else(|| error.to_string(), str::to_owned);
        return Ending::Aborted { reason: format!("inspect reports an error: {reason}") };
    }
    if let Some(limit) = sample.get("limit").filter(|limit| !limit.is_null()) {
        let kind = text(limit, "type").unwrap_or("unknown");
        if kind == "operator" {
            return Ending::Aborted { reason: "an operator stopped the sample".to_owned() };
        }
        let value = limit.get("limit").map(plain).unwrap_or_default();
        return Ending::GaveUp { reason: format!("inspect stopped it at the {kind} limit ({value})") };
    }
    if read.steps.is_empty() {
        return Ending::Aborted { reason: "the sample has no step of an agent".to_owned() };
    }
    match sample.pointer("/output/choices/0/stop_reason").and_then(Value::as_str) {
        Some("content_filter") => Ending::GaveUp { reason: "the model refused to answer".to_owned() },
        Some("max_tokens") => Ending::GaveUp { reason: "its answer is longer than the model's limit".to_owned() },
        _ => Ending::Finished,
    }
}
