//! Reads MCP servers, real and mocked, and mocked programs.

mod folder;
mod guards;
mod names;
mod schema;
mod values;

use std::path::Path;
use std::sync::Arc;

use mock::Scope;
use model::decode::{self, Fields, Problems};
use model::{
    ArgumentGuard, McpServer, MockFault, MockedAnswer, MockedReply, MockedServer, MockedTool, Mocks, Node, NodeKind,
    PlayedMock, ServerSource, WantedArgument,
};

use crate::shell::variable_in_capitals;
use crate::{model_name, path};

pub use self::folder::{MockFolder, read as read_folders};

/// Keys of other programs for those of a mocked tool.
const TOOL_SYNONYMS: [(&str, &str); 8] = [
    ("parameters", "input_schema"),
    ("schema", "input_schema"),
    ("result", "answer"),
    ("response", "answer"),
    ("returns", "answer"),
    ("output", "answer"),
    ("responses", "answers"),
    ("results", "answers"),
];

/// Keys of other programs for those of one answer.
const ANSWER_SYNONYMS: [(&str, &str); 10] = [
    ("result", "answer"),
    ("response", "answer"),
    ("returns", "answer"),
    ("output", "answer"),
    ("output", "stdout"),
    ("exit", "exit_code"),
    ("code", "exit_code"),
    ("status", "exit_code"),
    ("responses", "answers"),
    ("answer", "answers"),
];

/// Keys that belong to one answer.
const OF_ANSWERS: [&str; 4] = ["args", "delay", "abort_when", "model"];

/// Reads the servers and programs of a map, if it has any. Paths are relative to `directory`.
pub fn mocks(fields: &mut Fields<'_>, directory: &Path, problems: &mut Problems) -> Mocks {
    from_nodes(fields.get("mcp_servers"), fields.get("mock_commands"), directory, problems)
}

/// Reads the values of `mcp_servers` and `mock_commands`.
pub fn from_nodes(
    written_servers: Option<&Node>,
    written_commands: Option<&Node>,
    directory: &Path,
    problems: &mut Problems,
) -> Mocks {
    Mocks {
        servers: written_servers.map_or_else(Vec::new, |node| servers(node, directory, problems)),
        commands: written_commands.map_or_else(Vec::new, |node| commands(node, directory, problems)),
    }
}

/// Returns `true` if agents accept the name of a server or a tool.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Returns `name` with `-` between its words.
fn with_hyphens(name: &str) -> String {
    let words = name.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

/// Returns the entries of a map with names. `is_valid` tells which names are valid, and `meant` returns what may be
/// meant by one that is not.
fn named<'a>(
    node: &'a Node,
    what: &str,
    is_valid: fn(&str) -> bool,
    meant: impl Fn(&str) -> String,
    problems: &mut Problems,
) -> Vec<(&'a str, &'a Node)> {
    let entries = match &node.kind {
        NodeKind::Map(entries) => entries.as_slice(),
        _ => {
            let problem = node.error(format!("{what} must be a map of names, not {}", node.kind_name()));
            problems.push(problem.help("write a line `NAME:` for each, and what belongs to it below"));
            &[]
        }
    };
    for (name, _) in entries.iter().filter(|(name, _)| !is_valid(&name.value)) {
        let message = format!("`{}` is not a valid name in {what}", name.value);
        let problem = model::Diagnostic::error(message).at(node.source.excerpt(name.span));
        let near = Some(meant(&name.value)).filter(|near| is_valid(near));
        problems.push(problem.suggest(near.as_deref()).help("use letters, digits, `_` and `-`"));
    }
    entries.iter().map(|(name, value)| (name.value.as_str(), value)).collect()
}

fn servers(node: &Node, directory: &Path, problems: &mut Problems) -> Vec<McpServer> {
    let is_valid = |name: &str| is_name(name) && !name.contains("__");
    let entries = named(node, "`mcp_servers`", is_valid, with_hyphens, problems);
    let server = |(name, node): (&str, &Node)| {
        let source = server(node, directory, problems)?;
        Some(McpServer { name: name.to_owned(), source, is_of_plugin: false, place: node.excerpt() })
    };
    entries.into_iter().filter_map(server).collect()
}

fn server(node: &Node, directory: &Path, problems: &mut Problems) -> Option<ServerSource> {
    let mut fields = Fields::of(node, "an MCP server", problems)?;
    let command = fields.text("command", problems);
    let args = fields.texts("args", problems);
    let env = fields.text_map("env", problems);
    let url = fields.text("url", problems);
    let written_url = fields.get("url");
    let headers = fields.text_map("headers", problems);
    let folder = fields.text("mocks", problems);
    let instructions = fields.any_text("instructions", problems);
    let tools = fields.get("tools");
    let kinds = ["command", "url", "mocks", "tools"];
    let given: Vec<&str> = kinds.into_iter().filter(|key| node.get(key).is_some()).collect();
    let known = problems.len();
    let is_tool = |node: &Node| ["answer", "answers", "error", "play"].iter().any(|key| node.get(key).is_some());
    let misplaced = fields.unread().next().filter(|(_, node)| given.is_empty() && is_tool(node));
    if let Some((tool, _)) = misplaced {
        let problem = model::Diagnostic::error(format!("the tool `{}` must be below `tools`", tool.value));
        problems.push(problem.at(node.source.excerpt(tool.span)).help("write `tools:` above it, and indent the tools"));
        return None;
    }
    fields.finish(problems);
    if problems.len() > known {
        return None;
    }
    if given.len() != 1 {
        let message = "an MCP server has one of `command`, `url`, `tools` and `mocks`";
        let help = "`command` and `url` are real servers; `tools` and `mocks` are mocks";
        problems.push(node.error(message).help(help));
        return None;
    }
    let wrong = |key: &str, of: &str| node.get(key).map(|node| node.error(format!("`{key}` belongs to `{of}`")));
    let belongs = [("args", "command"), ("env", "command"), ("headers", "url"), ("instructions", "tools")];
    problems.extend(belongs.into_iter().filter(|(_, of)| given != [*of]).filter_map(|(key, of)| wrong(key, of)));
    report_variables(node, problems);
    let pairs = |map: Option<Vec<(String, model::Spanned<String>)>>| {
        map.unwrap_or_default().into_iter().map(|(key, value)| (key, value.value)).collect()
    };
    Some(match (command, url, folder) {
        (Some(command), ..) => {
            let mut files = Vec::new();
            let mut local = |text: String, is_local: bool| match is_local {
                true => {
                    let path = path::resolve(directory, &text);
                    files.push(path.clone());
                    path.to_string_lossy().into_owned()
                }
                false => text,
            };
            let mut is_path = command.contains('/');
            let is_file = is_path && path::resolve(directory, &command).exists();
            if let (false, Some((program, rest))) = (is_file, command.trim().split_once(char::is_whitespace))
                && let Some(node) = node.get("command")
            {
                let rest: Vec<String> = rest.split_whitespace().map(|part| format!("{part:?}")).collect();
                is_path &= program.contains('/');
                let problem = node.warning("`command` is the name of a program, without its arguments");
                let help = format!("write `command: {program}` and `args: [{}]`", rest.join(", "));
                problems.push(problem.help(help));
            }
            let command = local(command, is_path);
            let args = args.unwrap_or_default();
            let args = args.into_iter().map(|arg| {
                let is_path = arg.starts_with("./") || arg.starts_with("../");
                local(arg, is_path)
            });
            let args = args.collect();
            ServerSource::Stdio { command, args, env: pairs(env), files }
        }
        (_, Some(url), _) => {
            let is_address = ["http://", "https://", "$"].iter().any(|start| url.starts_with(start));
            if let Some(node) = written_url.filter(|_| !is_address) {
                let problem = node.error("an address begins with `http://` or `https://`");
                problems.push(if url.contains("://") {
                    problem
                } else {
                    problem.help(format!("write `http://{url}`"))
                });
            }
            ServerSource::Http { url, headers: pairs(headers) }
        }
        (_, _, Some(folder)) => {
            let shown = |path: &Path| path.display().to_string();
            let own = MockFolder { path: path::resolve(directory, &folder), shown: &shown };
            if !own.path.is_dir() {
                let place = node.get("mocks").unwrap_or(node);
                problems.push(place.error(format!("there is no folder `{folder}`")));
                return None;
            }
            let mut finish = |fields: Fields<'_>, problems: &mut Problems| fields.finish(problems);
            let found = folder::read_server(&[own], &mut finish, problems);
            if found.tools.is_empty() {
                let place = node.get("mocks").unwrap_or(node);
                problems.push(place.error(format!("the folder `{folder}` mocks no tools")));
            }
            ServerSource::Mock(found)
        }
        _ => {
            let tools = tools.map_or_else(Vec::new, |tools| mocked_tools(tools, directory, problems));
            ServerSource::Mock(MockedServer { instructions, tools })
        }
    })
}

/// Warns about `$NAME` in the texts of a real server in which only `${NAME}` is replaced.
fn report_variables(node: &Node, problems: &mut Problems) {
    let values = |key: &str| match node.get(key).map(|values| &values.kind) {
        Some(NodeKind::Map(entries)) => entries.iter().map(|(_, value)| value).collect(),
        _ => Vec::new(),
    };
    // Within other text, a variable may be what the program wants.
    let of_program = values("env").into_iter().filter(|value| value.as_str().is_some_and(|text| text.starts_with('$')));
    for value in values("headers").into_iter().chain(node.get("url")).chain(of_program) {
        if let Some(name) = value.as_str().and_then(variable_in_capitals) {
            let problem = value.warning(format!("the variable `{name}` is not filled in here"));
            problems.push(problem.help(format!("write `${{{name}}}` for the value of the variable")));
        }
    }
}

fn mocked_tools(node: &Node, directory: &Path, problems: &mut Problems) -> Vec<MockedTool> {
    let entries = named(node, "`tools`", is_name, with_hyphens, problems);
    if let Some(tools) = names::of_list(node) {
        return tools;
    }
    entries.into_iter().filter_map(|(name, node)| tool(name, node, directory, problems)).collect()
}

fn tool(name: &str, node: &Node, directory: &Path, problems: &mut Problems) -> Option<MockedTool> {
    let mut fields = Fields::of(node, "a mocked tool", problems)?.with_synonyms(&TOOL_SYNONYMS);
    let description = fields.any_text("description", problems).unwrap_or_default();
    let input_schema = fields.get("input_schema").and_then(|node| match node.to_json() {
        serde_json::Value::Object(schema) if schema.get("type").is_none_or(|kind| kind == "object") => Some(schema),
        _ => {
            let known = problems.len();
            schema::check(node, problems);
            if problems.len() == known {
                problems.push(node.error("`input_schema` must be a JSON Schema with `type: object`"));
            }
            None
        }
    });
    if let Some(node) = fields.get("input_schema").filter(|_| input_schema.is_some()) {
        schema::check(node, problems);
    }
    let expect = fields.get("expect").map_or_else(Vec::new, |node| guards::read(node, "`expect`", problems));
    let answers = answers(&mut fields, directory, problems, tool_answer);
    if let Some(node) = fields.get("answer").filter(|node| is_like_answers(node)) {
        let problem = node.warning("`answer` is one answer, so each call gets this list itself");
        problems.push(problem.help("for a list of answers to choose from, write `answers`"));
    }
    fields.finish(problems);
    let scope = Scope::of_tool(input_schema.as_ref()).mentioning(names::mentioned(node));
    names::check(node, &scope, directory, problems);
    let properties = node.get("input_schema").and_then(|schema| schema.get("properties"));
    for (key, is_optional) in [("expect", false), ("when", true)] {
        let required = names::parts(node).filter_map(|part| part.get(key));
        required.for_each(|required| values::check(required, properties, is_optional, problems));
    }
    Some(MockedTool { name: name.to_owned(), description, input_schema, expect, answers })
}

/// Returns `true` if `node` is a list of maps that look like items of `answers`.
fn is_like_answers(node: &Node) -> bool {
    const KEYS: [&str; 2] = ["when", "times"];
    let is_like = |item: &Node| KEYS.iter().any(|key| item.get(key).is_some()) && item.get("answer").is_some();
    matches!(&node.kind, NodeKind::List(items) if items.iter().any(is_like))
}

/// Reads `answers`, or the single answer in the map itself.
fn answers(
    fields: &mut Fields<'_>,
    directory: &Path,
    problems: &mut Problems,
    read: fn(&mut Fields<'_>, &Path, &mut Problems) -> Option<MockedAnswer>,
) -> Vec<MockedAnswer> {
    let items = fields.list("answers", problems);
    let is_written = fields.get("answers").is_some();
    guards::refuse_outside(fields, is_written, problems);
    // The keys of an answer are also read if there is a list, so that they are known.
    let mut own = Problems::new();
    let single = read(fields, directory, &mut own);
    match (items, single) {
        (Some(items), single) => {
            if items.is_empty()
                && let Some(node) = fields.get("answers")
            {
                problems.push(node.warning("`answers` is empty, so no call gets an answer"));
            }
            if single.is_some() {
                problems.push(fields.node().error("a mock has `answers` or an answer of its own, not both"));
            } else if let Some(key) = OF_ANSWERS.iter().find(|key| fields.key_span(key).is_some()) {
                let node = fields.node().get(key).unwrap_or(fields.node());
                let problem = node.error(format!("`{key}` has no effect beside `answers`"));
                problems.push(problem.help("write it into the items of `answers`"));
            }
            let mut read = |item: &Node| {
                let known = problems.len();
                let fields = Fields::of(item, "an answer of a mock", problems)?;
                let mut fields = fields.with_synonyms(&ANSWER_SYNONYMS);
                let when = fields.get("when");
                let times = fields.whole("times", 1, problems);
                let answer = read(&mut fields, directory, problems);
                fields.finish(problems);
                let mut answer = answer?;
                answer.when.extend(when.map_or_else(Vec::new, |node| guards::read(node, "`when`", problems)));
                // Which calls it answers is not known if there is a mistake in it.
                (problems.len() == known).then_some(MockedAnswer { times, ..answer })
            };
            let read: Vec<(&Node, MockedAnswer)> = items.iter().filter_map(|item| Some((item, read(item)?))).collect();
            guards::report_unreachable(&read, problems);
            read.into_iter().map(|(_, answer)| answer).collect()
        }
        (None, _) if is_written => Vec::new(),
        (None, single) => {
            problems.extend(own);
            single.into_iter().collect()
        }
    }
}

fn answer_of(reply: MockedReply, delay: Option<u64>, directory: &Path) -> MockedAnswer {
    let directory = Arc::new(directory.to_owned());
    MockedAnswer { when: Vec::new(), times: None, delay_ms: delay.unwrap_or_default(), reply, directory }
}

fn tool_answer(fields: &mut Fields<'_>, directory: &Path, problems: &mut Problems) -> Option<MockedAnswer> {
    let delay = fields.duration_ms("delay", problems);
    let replies = [
        fields.get("answer").map(|node| match &node.kind {
            NodeKind::String(text) => MockedReply::Text { text: text.clone(), is_error: false },
            _ => MockedReply::Json(node.to_json()),
        }),
        fields.any_text("error", problems).map(|text| MockedReply::Text { text, is_error: true }),
        fields.choice("fault", &MockFault::NAMED, problems).map(MockedReply::Fault),
        played(fields, directory, problems),
    ];
    const KINDS: &str = "`answer`, `error`, `fault` and `play`";
    let keys = ["answer", "error", "fault", "play"];
    only(fields, replies, (&keys, KINDS), problems).map(|reply| answer_of(reply, delay, directory))
}

fn played(fields: &mut Fields<'_>, directory: &Path, problems: &mut Problems) -> Option<MockedReply> {
    let description = fields.text("play", problems);
    let abort_when = fields.text("abort_when", problems);
    let model = fields.text("model", problems).zip(fields.get("model"));
    let model = model.and_then(|(name, place)| model_name::model(&name, place, directory, problems));
    let Some(play) = fields.get("play") else {
        let idle = ["abort_when", "model"].into_iter().find_map(|key| Some((key, fields.node().get(key)?)));
        // A misspelt key is reported as such.
        let idle = idle.filter(|_| fields.unread().all(|(name, _)| fields.meant_by(&name.value) != Some("play")));
        problems.extend(idle.map(|(key, node)| node.error(format!("`{key}` belongs to `play`"))));
        return None;
    };
    // Problems with a model are reported where it is named.
    let place = fields.get("model").unwrap_or(play).excerpt();
    Some(MockedReply::Played(Box::new(PlayedMock { description: description?, abort_when, model, place })))
}

/// Returns the only reply, or reports that it is not one of `kinds`, which have `keys`. A reply that cannot be read was
/// reported already.
fn only<const N: usize>(
    fields: &Fields<'_>,
    replies: [Option<MockedReply>; N],
    (keys, kinds): (&[&str], &str),
    problems: &mut Problems,
) -> Option<MockedReply> {
    let is_reply = |key: &str| keys.contains(&key) || key == "answers";
    let mut given = replies.into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(reply), None) => Some(reply),
        (None, _) if keys.iter().any(|key| fields.key_span(key).is_some()) => None,
        // A misspelt key is reported as such.
        (None, _) if fields.unread().any(|(name, _)| fields.meant_by(&name.value).is_some_and(is_reply)) => None,
        (first, _) => {
            let how = if first.is_some() { "only one" } else { "one" };
            let message = format!("{} needs {how} of {kinds}", fields.what());
            let last = keys.iter().filter_map(|key| fields.key_span(key)).next_back();
            problems.push(match last {
                Some(last) => model::Diagnostic::error(message).at(fields.node().source.excerpt(last)),
                None => fields.node().error(message).of_missing(keys),
            });
            None
        }
    }
}

/// Returns `true` if a program may have that name.
fn is_program(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    !name.is_empty() && !name.starts_with(['.', '-']) && name.chars().all(is_plain)
}

/// Returns the name of the program in `written`, which may be a path or a command line.
fn program_of(written: &str) -> &str {
    let path = written.split_whitespace().next().unwrap_or(written);
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(written)
}

fn commands(node: &Node, directory: &Path, problems: &mut Problems) -> Vec<MockedTool> {
    let entries = named(node, "`mock_commands`", is_program, |name| program_of(name).to_owned(), problems);
    if let Some(programs) = names::of_list(node) {
        return programs;
    }
    let command = |(name, node): (&str, &Node)| {
        let name = program_of(name);
        let Some(fields) = Fields::of(node, "a mocked program", problems) else {
            return Some(MockedTool { name: name.to_owned(), ..MockedTool::default() });
        };
        let mut fields = fields.with_synonyms(&ANSWER_SYNONYMS);
        let answers = answers(&mut fields, directory, problems, command_answer);
        fields.finish(problems);
        report_first_word(name, node, problems);
        names::check(node, &Scope::of_program(), directory, problems);
        Some(MockedTool { name: name.to_owned(), answers, ..MockedTool::default() })
    };
    entries.into_iter().filter_map(command).collect()
}

/// Warns about arguments that begin with the name of the program `name`, which is not one of its arguments, or with
/// `^`, which is a part of the first word.
fn report_first_word(name: &str, node: &Node, problems: &mut Problems) {
    for args in names::parts(node).filter_map(|part| part.get("args")) {
        let first = match &args.kind {
            NodeKind::List(items) => items.first().and_then(Node::as_str),
            _ => args.as_str().map(str::trim_start),
        };
        if let Some(line) = like_expression(args) {
            let problem =
                args.warning(format!("`{line}` looks like a regular expression but is compared word by word"));
            problems.push(problem.help(format!("write `/{}/`", line.replace('/', "\\/"))));
        }
        if let Some((word, help)) = args.as_str().and_then(word_of_shell) {
            let message = format!("`{word}` is compared as it is, because no shell reads `args`");
            problems.push(args.warning(message).help(help));
        }
        let rest = first.and_then(|first| first.strip_prefix(name));
        if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace)) {
            let problem = args.warning(format!("`args` are the arguments of `{name}`, without its name"));
            let is_rest = !rest.trim().is_empty();
            problems.push(if is_rest { problem.help(format!("write `{}`", rest.trim())) } else { problem });
        }
    }
}

/// Returns the first word of a line of arguments that a shell would read and not pass on, and what to write instead.
fn word_of_shell(line: &str) -> Option<(&str, &'static str)> {
    let words = || line.split_whitespace().filter(|_| !guards::is_pattern(line));
    let quoted = words().find(|word| word.starts_with(['"', '\'']));
    if let Some(word) = quoted {
        return Some((word, "write a list of the arguments, `[…]`, in which one can have spaces"));
    }
    let joins = words().find(|word| ["|", "||", "&&", ";", ">", ">>"].contains(word));
    if let Some(word) = joins {
        return Some((word, "write only the arguments that are before it"));
    }
    let glob = words().next_back().filter(|word| *word == "*");
    glob.map(|word| (word, "leave it out: further arguments are always accepted"))
}

/// Returns the line of arguments that `args` describe, if it seems to be a regular expression.
fn like_expression(args: &Node) -> Option<String> {
    let words: Vec<&str> = match &args.kind {
        NodeKind::List(items) => items.iter().map(Node::as_str).collect::<Option<_>>()?,
        _ => args.as_str().filter(|text| !guards::is_pattern(text))?.split_whitespace().collect(),
    };
    let begins = words.first().is_some_and(|first| first.starts_with('^'));
    (begins || words.contains(&".*")).then(|| words.join(" "))
}

fn command_answer(fields: &mut Fields<'_>, directory: &Path, problems: &mut Problems) -> Option<MockedAnswer> {
    let delay = fields.duration_ms("delay", problems);
    let args = fields.get("args").and_then(|node| arguments(node, problems));
    let stdout = fields.any_text("stdout", problems);
    let stderr = fields.any_text("stderr", problems);
    let exit_code = fields.whole("exit_code", 0, problems);
    let is_output = stdout.is_some() || stderr.is_some() || exit_code.is_some();
    let exit_code = u8::try_from(exit_code.unwrap_or_default());
    if let (Err(_), Some(node)) = (&exit_code, fields.get("exit_code")) {
        problems.push(node.error("`exit_code` must be a number from 0 to 255"));
    }
    let output = is_output.then(|| MockedReply::Output {
        stdout: stdout.unwrap_or_default(),
        stderr: stderr.unwrap_or_default(),
        exit_code: exit_code.unwrap_or_default(),
    });
    let replies = [output, played(fields, directory, problems)];
    const KINDS: &str = "an output (`stdout`, `stderr`, `exit_code`) and `play`";
    let keys = ["stdout", "stderr", "exit_code", "play"];
    let reply = only(fields, replies, (&keys, KINDS), problems)?;
    Some(MockedAnswer { when: args.into_iter().collect(), ..answer_of(reply, delay, directory) })
}

/// Reads the arguments of a program: its first words, or a regular expression for the whole line.
fn arguments(node: &Node, problems: &mut Problems) -> Option<ArgumentGuard> {
    let words = match &node.kind {
        NodeKind::List(items) => {
            let word = |item: &Node| decode::text(item, "an item of `args`", problems);
            Some(items.iter().filter_map(word).collect())
        }
        _ => None,
    };
    if let Some(words) = words {
        return Some(ArgumentGuard { path: "args".to_owned(), wanted: WantedArgument::Words(words) });
    }
    let text = decode::text(node, "`args`", problems)?;
    if guards::is_pattern(&text) {
        return guards::scalar("line".to_owned(), node, problems);
    }
    let words = text.split_whitespace().map(str::to_owned).collect();
    Some(ArgumentGuard { path: "args".to_owned(), wanted: WantedArgument::Words(words) })
}

#[cfg(test)]
mod tests {
    use model::{NodeKind, Source};

    use super::*;
    use crate::document::{self, Language};

    fn read(text: &str, directory: &Path) -> (Mocks, Vec<String>) {
        let mut problems = Problems::new();
        let source = Source::new("case.yaml", text);
        let root = document::read(&source, Language::Yaml, &mut problems).unwrap();
        assert!(matches!(root.kind, NodeKind::Map(_)));
        let mut fields = Fields::of(&root, "the case", &mut problems).unwrap();
        let mocks = mocks(&mut fields, directory, &mut problems);
        fields.finish(&mut problems);
        (mocks, problems.iter().map(|problem| problem.message.clone()).collect())
    }

    #[test]
    fn servers_are_programs_addresses_or_mocks() {
        let text = r#"
mcp_servers:
  db: { command: node, args: [./server.js, --fast], env: { TOKEN: "${TOKEN}" } }
  docs: { url: "https://example.com/mcp", headers: { Authorization: "Bearer ${TOKEN}" } }
  issues:
    tools:
      get:
        expect: { id: number, filter: { state: [open, closed], owner: /^a/i } }
        answers:
          - { when: { id: 7 }, times: 2, delay: 5ms, answer: { id: 7 } }
          - { error: no such issue }
mock_commands:
  gh:
    answers:
      - { args: pr list, stdout: "1 open" }
      - { args: /^api /, stderr: no network, exit_code: 4 }
"#;
        let (mocks, problems) = read(text, Path::new("/suite"));
        assert_eq!(problems, Vec::<String>::new());
        let ServerSource::Stdio { command, args, files, .. } = &mocks.servers[0].source else { panic!("a program") };
        assert_eq!(
            (command.as_str(), args.as_slice()),
            ("node", ["/suite/server.js".to_owned(), "--fast".to_owned()].as_slice())
        );
        assert_eq!(files, &[Path::new("/suite/server.js")]);
        assert!(matches!(&mocks.servers[1].source, ServerSource::Http { headers, .. } if headers.len() == 1));
        let (_, issues) = mocks.mocked().next().unwrap();
        let get = &issues.tools[0];
        let paths: Vec<&str> = get.expect.iter().map(|guard| guard.path.as_str()).collect();
        assert_eq!(paths, ["id", "filter.state", "filter.owner"]);
        assert_eq!((get.answers[0].times, get.answers[0].delay_ms, get.answers.len()), (Some(2), 5, 2));
        let gh = &mocks.commands[0];
        assert_eq!(gh.answers[0].when[0].wanted, WantedArgument::Words(vec!["pr".into(), "list".into()]));
        assert!(matches!(gh.answers[1].reply, MockedReply::Output { exit_code: 4, .. }));
    }

    #[test]
    fn mistakes_in_mocks_are_reported() {
        for (text, message) in [
            ("mcp_servers: [a]", "`mcp_servers` must be a map of names, not a list"),
            ("mcp_servers: { a__b: { tools: {} } }", "`a__b` is not a valid name in `mcp_servers`"),
            ("mcp_servers: { a: {} }", "an MCP server has one of `command`, `url`, `tools` and `mocks`"),
            ("mcp_servers: { a: { url: 'http://x', args: [y] } }", "`args` belongs to `command`"),
            ("mcp_servers: { a: { url: 'localhost:80/mcp' } }", "an address begins with `http://` or `https://`"),
            ("mcp_servers: { a: { mocks: no-such } }", "there is no folder `no-such`"),
            ("mcp_servers: { a: { tools: { t: { anwser: x } } } }", "unknown key `anwser` in a mocked tool"),
            ("mock_commands: { gh: { stdot: x } }", "unknown key `stdot` in a mocked program"),
            ("mock_commands: { gh: { answers: [] } }", "`answers` is empty, so no call gets an answer"),
            (
                "mcp_servers: { a: { tools: { t: { answer: x, input_schema: { properties: { n: { type: strnig } } } } } } }",
                "`strnig` is not a type of JSON Schema",
            ),
            (
                "mcp_servers: { a: { tools: { t: {} } } }",
                "a mocked tool needs one of `answer`, `error`, `fault` and `play`",
            ),
            (
                "mcp_servers: { a: { tools: { t: { answer: x, error: y } } } }",
                "a mocked tool needs only one of `answer`, `error`, `fault` and `play`",
            ),
            (
                "mcp_servers: { a: { tools: { t: { answers: [{ answer: x, when: { a: [] } }] } } } }",
                "an empty list can never match",
            ),
            (
                "mcp_servers: { a: { tools: { t: { fault: hangs } } } }",
                "`fault` must be one of `disconnect`, `hang`, `malformed`, `protocol_error`, not `hangs`",
            ),
            ("mock_commands: { ../gh: { stdout: x } }", "`../gh` is not a valid name in `mock_commands`"),
            ("mock_commands: { gh: { exit_code: 300 } }", "`exit_code` must be a number from 0 to 255"),
        ] {
            let (_, problems) = read(text, Path::new("/suite"));
            assert_eq!(problems, [message], "{text}");
        }
    }

    #[test]
    fn an_answer_that_no_call_gets_is_reported() {
        let read =
            |answers: &str| read(&format!("mock_commands: {{ gh: {{ answers: [{answers}] }} }}"), Path::new("/s")).1;
        for (answers, which) in [
            ("{ stdout: a }, { args: x, stdout: b }", "all calls"),
            ("{ args: x, stdout: a }, { args: x, stdout: b }", "these calls"),
        ] {
            let problems = read(answers);
            assert!(problems.len() == 1 && problems[0].ends_with(&format!(" answers {which}")), "{problems:?}");
        }
        for answers in [
            "{ args: x, stdout: a }, { stdout: b }",
            "{ args: x, stdout: a }, { args: y, stdout: b }",
            "{ times: 1, stdout: a }, { stdout: b }",
        ] {
            assert_eq!(read(answers), Vec::<String>::new(), "{answers}");
        }
    }

    #[test]
    fn misspelt_names_are_reported_where_they_are_written() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("open.json"), "[]").unwrap();
        let text = r#"mcp_servers:
  issues:
    tools:
      list:
        input_schema: { type: object, properties: { state: { type: string } } }
        expect: { sate: open }
        answers:
          - { when: { state: open }, answer: ["{{file:opne.json}}", { state: "is {{ input.stat }}" }] }
          - { error: "unknown {{imput.state}}" }
mock_commands:
  gh: { stdout: "{{input.arg}}" }
"#;
        let source = Source::new("case.yaml", text);
        let mut problems = Problems::new();
        let root = document::read(&source, Language::Yaml, &mut problems).unwrap();
        let mut fields = Fields::of(&root, "the case", &mut problems).unwrap();
        mocks(&mut fields, folder.path(), &mut problems);
        let found: Vec<String> =
            problems.iter().map(|problem| format!("{problem} {}", problem.help.join(" "))).collect();
        let expected = [
            "case.yaml:6:19: `input_schema` has no argument `sate` did you mean `state`?",
            "case.yaml:8:48: there is no file `opne.json` in the folder of the mock did you mean `{{file:open.json}}`?",
            "case.yaml:8:82: `input_schema` has no argument `stat` did you mean `{{input.state}}`?",
            "case.yaml:9:31: `{{imput.state}}` is not a placeholder, so it would be sent as it is did you mean \
             `{{input.state}}`?",
            "case.yaml:11:18: the call of a program has no `arg`, only `args` and `line` did you mean `{{input.args}}`?",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_folder_has_a_file_for_each_tool() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "all/db/_server.md",
            "---\ntype: agent\ntools: [query, drop]\nabort_when: A table is dropped.\n---\nA database.",
        );
        write("all/db/_tools.json", r#"{"tools": [{"name": "query", "description": "Runs SQL."}, {"name": "other"}]}"#);
        write("all/db/query.md", "---\nexpect: { sql: /^select/i }\n---\n\n[{{input.sql}}]\n");
        write("own/db/query.md", "---\nerror: true\n---\ntoo slow");
        write("all/empty/_tools.json", r#"{"tools": []}"#);
        let shown = |path: &Path| path.display().to_string();
        let folders = ["all", "own"].map(|name| MockFolder { path: folder.path().join(name), shown: &shown });
        let mut finish = |fields: Fields<'_>, problems: &mut Problems| fields.finish(problems);
        let mut problems = Problems::new();
        let servers = read_folders(&folders, &mut finish, &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        let [(name, server)] = servers.as_slice() else { panic!("{servers:?}") };
        assert_eq!(name, "db");
        let [drop, query] = server.tools.as_slice() else { panic!("{server:?}") };
        assert!(matches!(&drop.answers[0].reply, MockedReply::Played(played) if played.abort_when.is_some()));
        assert_eq!((query.name.as_str(), query.description.as_str()), ("query", "Runs SQL."));
        // The file of the case replaces that of the suite, with its requirements.
        assert!(query.expect.is_empty());
        let wanted = MockedReply::Text { text: "too slow".into(), is_error: true };
        assert_eq!(query.answers[0].reply, wanted);
        write("own/db/_server.md", "---\ntype: fixed\n---\nx");
        let _ = read_folders(&folders, &mut finish, &mut problems);
        assert!(problems[0].message.contains("`_server.md` must have `type: agent`"));
    }
}
