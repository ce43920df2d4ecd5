//! Reads a script from the tree of its file; all problems are reported together.

use std::time::Duration;

use model::decode::{self, Fields, Problems};
use model::{Diagnostic, Node, NodeKind, Tokens, flags_problem, nearest};
use serde_json::{Map, Value};

use super::Script;
use super::conversation::Conversation;
use super::expectation::Expectation;
use super::fault::{Fault, FaultKind, KINDS};
use super::step::{Call, DEFAULT_TOKENS, Step, Times};
use crate::StopReason;
use crate::reply::STOP_REASONS;

impl Script {
    /// Reads a script. On failure, returns every problem in the file, in the file's order.
    pub fn from_node(node: &Node) -> Result<Self, Vec<Diagnostic>> {
        let mut problems = Problems::new();
        let script = script(node, &mut problems);
        problems.sort_by_key(|problem: &Diagnostic| problem.source.as_ref().map(|place| (place.line, place.column)));
        match script {
            Some(script) if !problems.iter().any(Diagnostic::is_error) => Ok(Self { warnings: problems, ..script }),
            _ => Err(problems),
        }
    }
}

fn script(node: &Node, problems: &mut Problems) -> Option<Script> {
    const SYNONYMS: [(&str, &str); 3] = [("responses", "steps"), ("messages", "steps"), ("turns", "steps")];
    if matches!(node.kind, NodeKind::List(_)) {
        problems.push(node.error("a script must be a map, not a list").help("write `steps:` above the list"));
        return None;
    }
    let mut fields = Fields::of(node, "a script", problems)?.with_synonyms(&SYNONYMS);
    let main = match node.get("conversations") {
        Some(_) => fields.get("steps"),
        None => fields.require("steps", problems),
    };
    let main = main.and_then(|node| steps(node, problems));
    let others = fields.list("conversations", problems).unwrap_or_default();
    let conversations = others.iter().filter_map(|node| conversation(node, problems)).collect();
    fields.finish(problems);
    Some(Script {
        name: node.source.path.to_string(),
        steps: main.unwrap_or_default(),
        conversations,
        warnings: Vec::new(),
    })
}

fn conversation(node: &Node, problems: &mut Problems) -> Option<Conversation> {
    let mut fields = Fields::of(node, "a conversation", problems)?;
    let name = fields.text("name", problems);
    let steps = fields.require("steps", problems).and_then(|node| steps(node, problems)).unwrap_or_default();
    let conditions = fields.require("match", problems);
    fields.finish(problems);
    let conditions = conditions?;
    let mut fields = Fields::of(conditions, "`match`", problems)?;
    let conversation = Conversation {
        name,
        subagent: fields.boolean("subagent", problems),
        has_tools: fields.boolean("has_tools", problems),
        first_user_contains: one_or_more(&mut fields, "first_user_contains", problems),
        user_contains: one_or_more(&mut fields, "user_contains", problems),
        system_contains: one_or_more(&mut fields, "system_contains", problems),
        steps,
    };
    if matches!(&conditions.kind, NodeKind::Map(entries) if entries.is_empty()) {
        problems.push(
            conditions
                .error("`match` is empty, so it would match every request")
                .help("write `subagent: true`, or what the conversation's first message or its system prompt contains"),
        );
    }
    fields.finish(problems);
    Some(conversation)
}

fn steps(node: &Node, problems: &mut Problems) -> Option<Vec<Step>> {
    let items = decode::list(node, "`steps`", problems)?;
    if items.is_empty() {
        let problem = node.error("`steps` must not be empty: the model would have no response");
        problems.push(problem.help("a step is one response, such as `- text: Hello`"));
    }
    let mut steps = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let Some(step) = step(item, problems) else { continue };
        let is_last = index + 1 == items.len();
        if step.times == Times::Forever && !is_last {
            problems.push(item.error("this step repeats forever, so the steps after it are never reached"));
        }
        steps.push(step);
    }
    Some(steps)
}

fn step(node: &Node, problems: &mut Problems) -> Option<Step> {
    let mut fields = Fields::of(node, "a step", problems)?;
    if matches!(&node.kind, NodeKind::Map(entries) if entries.is_empty()) {
        problems.push(node.error("this step is empty").help("give it `text`, `thinking`, `tools` or a `fault`"));
    }
    let text = fields.any_text("text", problems);
    let thinking = fields.any_text("thinking", problems);
    either_or(&fields, "tools", "tool_calls", problems);
    let listed = fields.get("tools").or(fields.get("tool_calls"));
    let calls = listed.and_then(|node| decode::list(node, "`tools` of a step", problems)).unwrap_or_default();
    let tools = calls.iter().filter_map(|node| call(node, problems)).collect();
    let tokens = fields.get("usage").and_then(|node| usage(node, problems)).unwrap_or(DEFAULT_TOKENS);
    either_or(&fields, "stop", "stop_reason", problems);
    let stop = stop_reason(&mut fields, "stop", problems).or(stop_reason(&mut fields, "stop_reason", problems));
    let delay = fields.get("delay").and_then(|node| delay(node, problems)).unwrap_or_default();
    let repeat = times(&mut fields, "repeat", problems);
    let (fault, fault_times) = fields.get("fault").and_then(|node| fault(node, problems)).unzip();
    let fault_times = fault_times.flatten();
    if repeat.is_some() && fault_times.is_some() {
        let problem = node.error("`repeat` and the fault's `times` both say how often this step is used");
        problems.push(problem.help("keep one of them"));
    }
    let expect = fields.get("expect_request").and_then(|node| expectation(node, problems)).unwrap_or_default();
    fields.finish(problems);
    Some(Step {
        text,
        thinking,
        tools,
        tokens,
        stop,
        delay,
        times: repeat.or(fault_times).unwrap_or(Times::Exactly(1)),
        fault,
        expect,
        place: node.excerpt().to_string(),
    })
}

fn call(node: &Node, problems: &mut Problems) -> Option<Call> {
    const SYNONYMS: [(&str, &str); 4] =
        [("tool", "name"), ("arguments", "input"), ("args", "input"), ("params", "input")];
    let mut fields = Fields::of(node, "a tool call", problems)?.with_synonyms(&SYNONYMS);
    let name = fields.required_text("name", problems);
    let input = match fields.get("input") {
        None => Value::Object(Map::new()),
        Some(input) => {
            if !matches!(input.kind, NodeKind::Map(_) | NodeKind::String(_)) {
                let problem = format!("`input` must be a map of arguments or a string, not {}", input.kind_name());
                problems.push(input.error(problem));
            }
            misspelt_placeholders(input, problems);
            input.to_json()
        }
    };
    let id = fields.text("id", problems);
    let is_offered = fields.boolean("offered", problems).unwrap_or(true);
    let place = fields.get("name").map_or_else(|| node.excerpt(), Node::excerpt);
    let input_place = fields.get("input").map_or_else(|| place.clone(), Node::excerpt);
    fields.finish(problems);
    Some(Call { name: name?, input, id, is_offered, place, input_place })
}

/// Warns about texts in the arguments `node` that begin with a misspelt placeholder of the sandbox.
fn misspelt_placeholders(node: &Node, problems: &mut Problems) {
    const NAME: &str = "$SANDBOX";
    match &node.kind {
        NodeKind::Map(entries) => entries.iter().for_each(|(_, value)| misspelt_placeholders(value, problems)),
        NodeKind::List(items) => items.iter().for_each(|item| misspelt_placeholders(item, problems)),
        NodeKind::String(text) => {
            const BRACED: &str = "${SANDBOX}";
            let written = if text.contains(BRACED) { BRACED } else { text.split('/').next().unwrap_or_default() };
            let is_name = written.starts_with('$') && written.chars().skip(1).all(|letter| letter.is_ascii_uppercase());
            let is_near = || is_name && nearest(written, [NAME]).is_some();
            if written != NAME && (written == BRACED || written.eq_ignore_ascii_case(NAME) || is_near()) {
                let problem = node.warning(format!("`{written}` is not a placeholder, so it is sent as it is"));
                problems.push(problem.suggest(Some(NAME)));
            }
        }
        _ => {}
    }
}

fn usage(node: &Node, problems: &mut Problems) -> Option<Tokens> {
    let mut fields = Fields::of(node, "`usage`", problems)?;
    let tokens = Tokens {
        input: fields.whole("input", 0, problems).unwrap_or_default(),
        output: fields.whole("output", 0, problems).unwrap_or_default(),
        cache_read: fields.whole("cache_read", 0, problems).unwrap_or_default(),
        cache_write: fields.whole("cache_write", 0, problems).unwrap_or_default(),
        reasoning: fields.whole("reasoning", 0, problems),
    };
    fields.finish(problems);
    Some(tokens)
}

fn stop_reason(fields: &mut Fields<'_>, key: &'static str, problems: &mut Problems) -> Option<StopReason> {
    let indices: Vec<(&'static str, usize)> =
        STOP_REASONS.iter().enumerate().map(|(index, (name, _))| (*name, index)).collect();
    let known = problems.len();
    let at = fields.choice(key, &indices, problems);
    // The names of OpenAI.
    let of_openai = [("stop", "end_turn"), ("length", "max_tokens"), ("tool_calls", "tool_use")];
    let written = fields.get(key).and_then(Node::as_str);
    let meant = of_openai.iter().find(|(name, _)| Some(*name) == written);
    if let Some((problem, (_, meant))) = problems.get_mut(known).zip(meant) {
        problem.help = vec![format!("did you mean `{meant}`?")];
    }
    let at = at?;
    STOP_REASONS.get(at).map(|(_, reason)| reason.clone())
}

/// Reads a delay: a duration with its unit, or seconds as a bare number, with a warning because a bare number means
/// milliseconds in other files.
fn delay(node: &Node, problems: &mut Problems) -> Option<Duration> {
    const MAX_SECONDS: f64 = 24.0 * 60.0 * 60.0;
    let seconds = match &node.kind {
        NodeKind::Number(number) => number.as_f64(),
        NodeKind::String(written) => decode::parse_duration_ms(written).map(|ms| ms as f64 / 1000.0),
        _ => None,
    };
    let delay = seconds.filter(|seconds| (0.0..=MAX_SECONDS).contains(seconds)).map(Duration::from_secs_f64);
    if delay.is_none() {
        let problem = node.error("`delay` must be a duration of at most one day");
        problems.push(problem.help("write `500ms`, `30s` or `5m`"));
    } else if let NodeKind::Number(number) = &node.kind
        && delay != Some(Duration::ZERO)
    {
        let message = format!("`delay: {number}` has no unit and is read as {number} seconds");
        let milliseconds = decode::as_whole(number).filter(|number| *number >= 100);
        let other = milliseconds.map(|number| format!(" or `{number}ms`")).unwrap_or_default();
        problems.push(node.warning(message).help(format!("write `{number}s`{other}")));
    }
    delay
}

fn times(fields: &mut Fields<'_>, key: &'static str, problems: &mut Problems) -> Option<Times> {
    let node = fields.get(key)?;
    let times = match &node.kind {
        NodeKind::String(word) if word == "forever" => Some(Times::Forever),
        NodeKind::Number(number) => decode::as_whole(number).filter(|times| *times > 0).map(Times::Exactly),
        _ => None,
    };
    if times.is_none() {
        problems.push(node.error(format!("`{key}` must be a whole number of at least 1, or `forever`")));
    }
    times
}

fn fault(node: &Node, problems: &mut Problems) -> Option<(Fault, Option<Times>)> {
    let mut fields = Fields::of(node, "a fault", problems)?;
    let kind = fields.require("kind", problems).and_then(|node| decode::choice(node, "`kind`", KINDS, problems));
    let times = times(&mut fields, "times", problems);
    let status = fields.get("status").and_then(|node| status(node, problems));
    let code = fields.text("type", problems);
    let message = fields.text("message", problems);
    let headers = headers(&mut fields, problems);
    if let Some(kind) = kind {
        let speaks = matches!(kind, FaultKind::Http | FaultKind::ErrorEvent);
        let only_for = |key: &str, allowed: bool, problems: &mut Problems| {
            if let Some(node) = node.get(key).filter(|_| !allowed) {
                let kind = KINDS.iter().find(|(_, known)| *known == kind).map_or("", |(name, _)| name);
                problems.push(node.error(format!("`{key}` does not apply to a fault of kind `{kind}`")));
            }
        };
        only_for("status", kind == FaultKind::Http, problems);
        only_for("headers", kind == FaultKind::Http, problems);
        only_for("type", speaks, problems);
        only_for("message", speaks, problems);
    }
    fields.finish(problems);
    Some((Fault { kind: kind?, status: status.unwrap_or(500), code, message, headers }, times))
}

fn status(node: &Node, problems: &mut Problems) -> Option<u16> {
    let whole = match &node.kind {
        NodeKind::Number(number) => decode::as_whole(number),
        _ => None,
    };
    let status = whole.and_then(|status| u16::try_from(status).ok()).filter(|status| (400..600).contains(status));
    if status.is_none() {
        problems.push(node.error("`status` must be an HTTP error status, from 400 to 599"));
    }
    status
}

/// Reads headers that can be sent as written. The gateway sets those of the connection itself.
fn headers(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<(String, String)> {
    const RESERVED: [&str; 4] = ["connection", "content-length", "content-type", "transfer-encoding"];
    let Some(node) = fields.get("headers") else { return Vec::new() };
    let NodeKind::Map(entries) = &node.kind else {
        problems.push(node.error(format!("`headers` must be a map of strings, not {}", node.kind_name())));
        return Vec::new();
    };
    let mut headers = Vec::with_capacity(entries.len());
    for (name, value) in entries {
        let place = node.source.excerpt(name.span);
        let is_name = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.value.is_empty() || !name.value.chars().all(is_name) {
            problems.push(Diagnostic::error(format!("`{}` is not a valid header name", name.value)).at(place));
            continue;
        }
        if RESERVED.iter().any(|reserved| name.value.eq_ignore_ascii_case(reserved)) {
            problems.push(Diagnostic::error(format!("the `{}` header cannot be scripted", name.value)).at(place));
            continue;
        }
        let text = match &value.kind {
            NodeKind::String(text) => Some(text.clone()),
            NodeKind::Number(number) => Some(number.to_string()),
            _ => None,
        };
        match text.filter(|text| text.chars().all(|c| c == ' ' || c.is_ascii_graphic())) {
            Some(text) => headers.push((name.value.clone(), text)),
            None => problems.push(value.error(format!("the `{}` header must be a line of ASCII text", name.value))),
        }
    }
    headers
}

fn expectation(node: &Node, problems: &mut Problems) -> Option<Expectation> {
    let mut fields = Fields::of(node, "`expect_request`", problems)?;
    let expectation = Expectation {
        model: fields.text("model", problems),
        system_contains: one_or_more(&mut fields, "system_contains", problems),
        last_user_contains: one_or_more(&mut fields, "last_user_contains", problems),
        tool_result_contains: one_or_more(&mut fields, "tool_result_contains", problems),
        contains: one_or_more(&mut fields, "contains", problems),
        not_contains: one_or_more(&mut fields, "not_contains", problems),
        tools_include: tools(&mut fields, "tools_include", problems),
        tools_exclude: tools(&mut fields, "tools_exclude", problems),
        tools_source: fields.get("tools_include").map(Node::excerpt),
    };
    if matches!(&node.kind, NodeKind::Map(entries) if entries.is_empty()) {
        problems.push(node.error("`expect_request` expects nothing"));
    }
    fields.finish(problems);
    Some(expectation)
}

/// Reads a string, or a list of strings; none may be empty.
fn one_or_more(fields: &mut Fields<'_>, key: &'static str, problems: &mut Problems) -> Vec<String> {
    let Some(node) = fields.get(key) else { return Vec::new() };
    match &node.kind {
        NodeKind::List(items) => {
            if items.is_empty() {
                problems.push(node.warning(format!("`{key}` is empty, so it expects nothing")));
            }
            problems.extend(items.iter().filter_map(like_expression));
            let what = format!("an item of `{key}`");
            items.iter().filter_map(|item| decode::text(item, &what, problems)).collect()
        }
        _ => {
            problems.extend(like_expression(node));
            decode::text(node, &format!("`{key}`"), problems).into_iter().collect()
        }
    }
}

/// Returns the warning about a text that is certainly written like a regular expression.
fn like_expression(node: &Node) -> Option<Diagnostic> {
    let (source, flags) = node.as_str()?.strip_prefix('/')?.rsplit_once('/')?;
    let is_certain = flags == "i" || source.contains(['\\', '^', '$', '*', '+', '(', '|', '[']);
    if source.contains('/') || flags_problem(flags).is_some() || !is_certain {
        return None;
    }
    let problem = node.warning(format!("`/{source}/{flags}` looks like a regular expression but is compared as text"));
    Some(problem.help("write the text, and several texts as a list"))
}

/// Reads the name of a tool, or a list of names. The tools of agents are not known here, but a name that is nearly that of
/// a known tool is probably misspelt.
fn tools(fields: &mut Fields<'_>, key: &'static str, problems: &mut Problems) -> Vec<String> {
    let names = one_or_more(fields, key, problems);
    let Some(node) = fields.get(key) else { return names };
    let items = if let NodeKind::List(items) = &node.kind { items.as_slice() } else { std::slice::from_ref(node) };
    for item in items {
        let Some(name) = item.as_str() else { continue };
        if let Some(near) = model::tool::misspelt(name) {
            problems.push(item.warning(format!("`{name}` in `{key}` is not a known tool")).suggest(Some(near)));
        }
    }
    names
}

/// Reports two spellings of one key that are both present.
fn either_or(fields: &Fields<'_>, one: &str, other: &str, problems: &mut Problems) {
    if let (Some(_), Some(second)) = (fields.node().get(one), fields.node().get(other)) {
        problems
            .push(second.error(format!("`{one}` and `{other}` are two names for the same thing; keep one of them")));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::specimen;
    use super::*;

    /// Returns `line:column: message` and help of every problem.
    fn problems(text: &str) -> Vec<String> {
        let problems = Script::from_node(&specimen::node("s.yaml", text)).unwrap_err();
        let messages = problems.iter().map(|problem| {
            let place = problem.source.as_ref().map(|place| format!("{}:{}", place.line, place.column));
            let mut text = format!("{}: {}", place.unwrap_or_default(), problem.message);
            for help in &problem.help {
                text.push_str(" / ");
                text.push_str(help);
            }
            text
        });
        messages.collect()
    }

    #[test]
    fn all_problems_are_found_together_with_their_locations() {
        let text = "\
steps:
  - txet: Hello.
  - text: 4
    usage: { input: -1 }
    repeat: 0
  - fault: { kind: htpt, status: 200 }
  - tools: [{ input: 15 }]
    delay: soon
    stop: end_tern
";
        assert_eq!(
            problems(text),
            [
                "2:5: unknown key `txet` in a step / did you mean `text`?",
                "3:11: `text` must be a string, not a number / put it in quotes",
                "4:21: `input` must be a whole number of at least 0, not -1",
                "5:13: `repeat` must be a whole number of at least 1, or `forever`",
                "6:20: `kind` must be one of `http`, `cut`, `malformed`, `hang`, `hang_stream`, `error_event`, \
                 `sse_error`, not `htpt` / did you mean `http`?",
                "6:34: `status` must be an HTTP error status, from 400 to 599",
                "7:15: a tool call has no `name`",
                "7:22: `input` must be a map of arguments or a string, not a number",
                "8:12: `delay` must be a duration of at most one day / write `500ms`, \
                 `30s` or `5m`",
                "9:11: `stop` must be one of `end_turn`, `tool_use`, `max_tokens`, `stop_sequence`, `refusal`, \
                 `pause_turn`, not `end_tern` / did you mean `end_turn`?",
            ]
        );
    }

    #[test]
    fn unplayable_steps_are_errors() {
        let first = |text: &str| problems(text).swap_remove(0);
        assert_eq!(first("[]"), "1:1: a script must be a map, not a list / write `steps:` above the list");
        assert_eq!(first("{step: []}"), "1:2: unknown key `step` in a script / did you mean `steps`?");
        assert_eq!(problems("responses: []"), ["1:1: unknown key `responses` in a script / did you mean `steps`?"]);
        assert_eq!(
            problems("steps: [{tools: [{name: a, arguments: {}}]}]"),
            ["1:28: unknown key `arguments` in a tool call / did you mean `input`?"]
        );
        assert!(first("steps: [{}]").starts_with("1:9: this step is empty"));
        assert!(first("steps: [{text: a, repeat: forever}, {text: b}]").starts_with("1:9: this step repeats forever"));
        assert!(
            first("steps: [{text: a, stop: end_turn, stop_reason: refusal}]")
                .ends_with("`stop` and `stop_reason` are two names for the same thing; keep one of them")
        );
        assert!(first("steps: [{repeat: 2, fault: {kind: cut, times: 2}}]").contains("both say how often"));
        assert!(first("conversations: [{match: {}, steps: [{text: a}]}]").contains("it would match every request"));
        assert!(first("steps: [{text: a, expect_request: {}}]").contains("expects nothing"));
    }

    #[test]
    fn reasons_of_other_vendors_and_misspelt_placeholders_get_a_suggestion() {
        let first = |text: &str| problems(text).swap_remove(0);
        for (written, meant) in [("stop", "end_turn"), ("length", "max_tokens"), ("tool_calls", "tool_use")] {
            let help = format!("not `{written}` / did you mean `{meant}`?");
            let found = first(&format!("steps: [{{text: a, stop: {written}}}]"));
            assert!(found.ends_with(&help), "{found}");
        }
        let script = specimen::script(
            "steps: [{tools: [{name: Read, \
             input: {path: [$sandbox/a, $SANDBOX/a, $sandboxes, echo $sandbox, $SANDBX/a]}}]}]",
        );
        let warnings: Vec<&str> = script.warnings.iter().map(|warning| warning.message.as_str()).collect();
        let expected =
            ["$sandbox", "$SANDBX"].map(|name| format!("`{name}` is not a placeholder, so it is sent as it is"));
        assert_eq!(warnings, expected);
        assert_eq!(script.warnings[0].help, ["did you mean `$SANDBOX`?"]);
    }

    #[test]
    fn a_fault_accepts_only_the_keys_of_its_kind() {
        let messages = problems("steps: [{fault: {kind: cut, status: 500, message: x}}]");
        assert_eq!(
            messages,
            [
                "1:37: `status` does not apply to a fault of kind `cut`",
                "1:51: `message` does not apply to a fault of kind `cut`"
            ]
        );
        let messages =
            problems("steps: [{fault: {kind: http, headers: {a b: x, Content-Length: '1', ok: \"a\\nb\"}}}]");
        assert_eq!(
            messages,
            [
                "1:40: `a b` is not a valid header name",
                "1:48: the `Content-Length` header cannot be scripted",
                "1:73: the `ok` header must be a line of ASCII text"
            ]
        );
    }

    #[test]
    fn a_step_is_read_as_documented() {
        let script = specimen::script(
            "steps: [{text: a, tool_calls: [{name: Bash}], usage: {input: 5}, delay: 30, stop_reason: refusal}, \
             {fault: {kind: sse_error, times: 3}, delay: 500ms}, {text: ''}]",
        );
        let warnings: Vec<&str> = script.warnings.iter().map(|warning| warning.message.as_str()).collect();
        assert_eq!(warnings, ["`delay: 30` has no unit and is read as 30 seconds"]);
        let [first, second, third] = &script.steps[..] else { panic!("{script:?}") };
        let [call] = &first.tools[..] else { panic!("{first:?}") };
        assert_eq!((call.name.as_str(), &call.input), ("Bash", &Value::Object(Map::new())));
        assert_eq!((&call.id, call.is_offered, call.place.to_string().as_str()), (&None, true, "s.yaml:1:39"));
        assert_eq!(first.tokens, Tokens { input: 5, ..Tokens::default() });
        assert_eq!((first.delay, first.stop.clone()), (Duration::from_secs(30), Some(StopReason::Refusal)));
        assert_eq!((second.delay, second.times), (Duration::from_millis(500), Times::Exactly(3)));
        assert_eq!(second.fault.as_ref().map(|fault| fault.kind), Some(FaultKind::ErrorEvent));
        assert_eq!((third.tokens, third.times), (DEFAULT_TOKENS, Times::Exactly(1)));
    }
}
