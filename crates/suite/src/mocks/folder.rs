//! Folders with mocks, in the form of `claude plugin eval`: `mocks/SERVER/TOOL.md`, `_server.md` and `_tools.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mock::Scope;
use model::decode::{Fields, Problems};
use model::{Diagnostic, Excerpt, MockedAnswer, MockedReply, MockedServer, MockedTool, Node, PlayedMock, Span};
use serde_json::{Map, Value};

use super::{guards, is_name, names};
use crate::document::{self, Language};

/// File with a model that plays several tools.
const SERVER_FILE: &str = "_server.md";

/// File with the descriptions and schemas of the tools: the saved response to `tools/list`.
const TOOLS_FILE: &str = "_tools.json";

/// A folder that is read, and how messages name the files in it.
pub struct MockFolder<'a> {
    /// The folder.
    pub path: PathBuf,
    /// Returns the path of a file as the user would write it.
    pub shown: &'a dyn Fn(&Path) -> String,
}

/// Reports the keys of a front matter that were not read.
pub type Finish<'a> = dyn FnMut(Fields<'_>, &mut Problems) + 'a;

/// What one file answers.
#[derive(Clone)]
struct Responder {
    expect: Vec<model::ArgumentGuard>,
    answer: MockedAnswer,
    /// Front matter of the file.
    root: Node,
}

/// Reads the servers in folders called `mocks`. For each tool, the last folder with an answer decides.
pub fn read(
    folders: &[MockFolder<'_>],
    finish: &mut Finish<'_>,
    problems: &mut Problems,
) -> Vec<(String, MockedServer)> {
    let mut names: Vec<String> = Vec::new();
    for folder in folders {
        for path in entries(&folder.path, problems).into_iter().filter(|path| path.is_dir()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') || names.contains(&name) {
                continue;
            }
            if !is_name(&name) {
                let message = format!("the folder `{}` is not named after a server", (folder.shown)(&path));
                problems.push(Diagnostic::error(message).help("use letters, digits, `_` and `-`"));
                continue;
            }
            names.push(name);
        }
    }
    let mut servers = Vec::new();
    for name in names {
        let own = folders.iter().map(|folder| MockFolder { path: folder.path.join(&name), shown: folder.shown });
        let own: Vec<_> = own.filter(|folder| folder.path.is_dir()).collect();
        let server = read_server(&own, finish, problems);
        // A folder that only lists tools mocks nothing.
        if !server.tools.is_empty() {
            servers.push((name, server));
        }
    }
    servers
}

/// Reads one server from its folders.
pub(super) fn read_server(
    folders: &[MockFolder<'_>],
    finish: &mut Finish<'_>,
    problems: &mut Problems,
) -> MockedServer {
    let mut listed: BTreeMap<String, (String, Option<Map<String, Value>>)> = BTreeMap::new();
    let mut played: BTreeMap<String, Responder> = BTreeMap::new();
    let mut own: BTreeMap<String, Responder> = BTreeMap::new();
    for folder in folders {
        for path in entries(&folder.path, problems) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name == TOOLS_FILE {
                listed.extend(tool_list(&path, folder, problems));
            }
            let Some(tool) = name.strip_suffix(".md").filter(|_| !name.starts_with('.') && path.is_file()) else {
                continue;
            };
            if name != SERVER_FILE && !is_name(tool) {
                let message = format!("`{}` is not named after a tool", (folder.shown)(&path));
                problems.push(Diagnostic::error(message).help("use letters, digits, `_` and `-`"));
                continue;
            }
            let Some((responder, tools)) = responder(&path, folder, finish, problems) else { continue };
            if name == SERVER_FILE {
                played = tools.into_iter().map(|tool| (tool, responder.clone())).collect();
            } else {
                own.insert(tool.to_owned(), responder);
            }
        }
    }
    // The answer for one tool takes precedence over the model that plays several.
    played.extend(own);
    let tools = played.into_iter().map(|(name, Responder { expect, answer, root })| {
        let (description, input_schema) = listed.remove(&name).unwrap_or_default();
        let scope = Scope::of_tool(input_schema.as_ref());
        names::check(&root, &scope, &answer.directory, problems);
        let text = match &answer.reply {
            MockedReply::Text { text, .. } => text.as_str(),
            MockedReply::Played(played) => played.description.as_str(),
            _ => "",
        };
        let whole = Span::new(0, root.source.text.len());
        names::check_text(text, &root.source, whole, &scope, &answer.directory, problems);
        MockedTool { name, description, input_schema, expect, answers: vec![answer] }
    });
    MockedServer { instructions: None, tools: tools.collect() }
}

/// Returns the entries of a folder, sorted by name.
fn entries(folder: &Path, problems: &mut Problems) -> Vec<PathBuf> {
    match std::fs::read_dir(folder) {
        Ok(entries) => {
            let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            paths.sort();
            paths
        }
        Err(error) => {
            problems.push(Diagnostic::error(format!("cannot read the folder `{}`: {error}", folder.display())));
            Vec::new()
        }
    }
}

/// Reads one file with an answer: the answer, and the tools in its front matter.
fn responder(
    path: &Path,
    folder: &MockFolder<'_>,
    finish: &mut Finish<'_>,
    problems: &mut Problems,
) -> Option<(Responder, Vec<String>)> {
    let source = document::open(path, &(folder.shown)(path)).map_err(|problem| problems.push(*problem)).ok()?;
    let (root, body) = document::markdown(&source, problems)?;
    let body = body.trim_start_matches(['\n', '\r']).trim_end().to_owned();
    let root = root.unwrap_or_else(|| Node { kind: model::NodeKind::Map(Vec::new()), ..document::start(&source) });
    let mut fields = Fields::of(&root, "the front matter of a mock", problems)?;
    let is_server = path.file_name().is_some_and(|name| name == SERVER_FILE);
    let is_played = fields.choice("type", &[("fixed", false), ("agent", true)], problems).unwrap_or(false);
    let expect = fields.get("expect").map_or_else(Vec::new, |node| guards::read(node, "`expect`", problems));
    let is_error = fields.boolean("error", problems);
    let abort_when = fields.text("abort_when", problems);
    let tools = fields.texts("tools", problems);
    let place = source.excerpt(Span::new(0, 0));
    let mut refuse = |key: &str, reason: &str| {
        let place = root.get(key).map_or_else(|| place.clone(), Node::excerpt);
        problems.push(Diagnostic::error(reason.to_owned()).at(place));
    };
    match (is_played, is_server) {
        (false, true) => refuse("type", "`_server.md` must have `type: agent`; a fixed answer belongs into `TOOL.md`"),
        (true, true) if tools.as_ref().is_none_or(Vec::is_empty) => {
            refuse("tools", "`_server.md` needs `tools: [NAME]`");
        }
        (_, false) if tools.is_some() => refuse("tools", "`tools` belongs into `_server.md`"),
        (true, true) if !expect.is_empty() && tools.as_ref().is_some_and(|tools| tools.len() > 1) => {
            refuse("expect", "`expect` belongs into the file of one tool");
        }
        _ => {}
    }
    match is_played {
        true if is_error.is_some() => refuse("error", "`error` needs `type: fixed`"),
        true if body.is_empty() => {
            refuse("type", "a mock with `type: agent` needs a description of the server as its text");
        }
        false if abort_when.is_some() => refuse("abort_when", "`abort_when` needs `type: agent`"),
        _ => {}
    }
    finish(fields, problems);
    let reply = match is_played {
        true => MockedReply::Played(Box::new(PlayedMock { description: body, abort_when, model: None, place })),
        false => MockedReply::Text { text: body, is_error: is_error.unwrap_or(false) },
    };
    let directory = Arc::new(path.parent().unwrap_or(path).to_owned());
    let answer = MockedAnswer { when: Vec::new(), times: None, delay_ms: 0, reply, directory };
    Some((Responder { expect, answer, root }, tools.unwrap_or_default()))
}

type Listed = (String, (String, Option<Map<String, Value>>));

/// Reads the saved response to `tools/list`.
fn tool_list(path: &Path, folder: &MockFolder<'_>, problems: &mut Problems) -> Vec<Listed> {
    let shown = (folder.shown)(path);
    let wrong = |reason: &str| Diagnostic::error(format!("`{shown}` {reason}")).at(Excerpt::of_file(shown.as_str()));
    let Ok(source) = document::open(path, &shown).map_err(|problem| problems.push(*problem)) else {
        return Vec::new();
    };
    let Some(root) = document::read(&source, Language::Json, problems) else { return Vec::new() };
    let root = root.to_json();
    let tools = root.pointer("/result/tools").or_else(|| root.get("tools")).and_then(Value::as_array);
    let Some(tools) = tools else {
        problems.push(wrong("is not a saved response to `tools/list`").help("write `{\"tools\": [{\"name\": …}]}`"));
        return Vec::new();
    };
    let mut listed = Vec::new();
    for tool in tools {
        let Some(name) = tool.get("name").and_then(Value::as_str) else {
            problems.push(wrong("has a tool without a name"));
            continue;
        };
        let description = tool.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        let schema = tool.get("inputSchema").and_then(Value::as_object).cloned();
        listed.push((name.to_owned(), (description, schema)));
    }
    listed
}
