//! Reads the faults that a case injects.

use model::decode::{Fields, Problems, list, parse_duration_ms, text};
use model::{CaseFault, FaultAction, Node, NodeKind, Occurrences};

/// Default stderr of a program that fails on purpose.
const STDERR: &str = "temporary failure, try again";

/// Default delay before each event of a slow response, in milliseconds.
const DELAY_MS: u64 = 500;

/// Statuses of `http_status`.
const STATUSES: [(u64, u64); 2] = [(400, 499), (500, 599)];

/// Reads `faults`: a list of maps, each with a single key, the kind of fault.
pub fn faults(node: &Node, problems: &mut Problems) -> Vec<CaseFault> {
    let items = list(node, "`faults`", problems).unwrap_or_default();
    items.iter().filter_map(|item| fault(item, problems)).collect()
}

fn fault(item: &Node, problems: &mut Problems) -> Option<CaseFault> {
    let mut fields = Fields::of(item, "an item of `faults`", problems)?;
    let known = problems.len();
    let mut actions = Vec::new();
    for (key, read) in KINDS {
        if let Some(node) = fields.get(key) {
            let span = fields.key_span(key).unwrap_or(item.span);
            actions.push((read(node, problems), item.source.excerpt(span)));
        }
    }
    let count = actions.len();
    // Several keys without a kind are another form, which is one mistake.
    if count > 0 || fields.unread().count() < 2 {
        fields.finish(problems);
    }
    if count == 1 {
        let (action, source) = actions.pop()?;
        return action.map(|action| CaseFault { action, source });
    }
    if problems.len() == known {
        let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        let problem = item.error("an item of `faults` must have one key, the kind of the fault");
        problems.push(problem.help(format!("kinds: {}", names.join(", "))));
    }
    None
}

type Read = fn(&Node, &mut Problems) -> Option<FaultAction>;

/// Kinds of faults, in the order of the documentation.
const KINDS: [(&str, Read); 8] = [
    ("http_status", http_status),
    ("cut_stream", |node, problems| {
        of_requests(node, "`cut_stream`", problems, |requests| FaultAction::CutStream { requests })
    }),
    ("slow_stream", slow_stream),
    ("malformed_arguments", |node, problems| {
        of_requests(node, "`malformed_arguments`", problems, |requests| FaultAction::MalformedArguments { requests })
    }),
    ("tool_fails", tool_fails),
    ("disk_full", disk_full),
    ("read_only", read_only),
    ("clock_offset", clock_offset),
];

fn of_requests(
    node: &Node,
    what: &str,
    problems: &mut Problems,
    action: fn(Occurrences) -> FaultAction,
) -> Option<FaultAction> {
    let mut fields = Fields::of(node, what, problems)?;
    let requests = occurrences(&mut fields, problems);
    fields.finish(problems);
    Some(action(requests))
}

/// Reads `at`, `every` and `times`.
fn occurrences(fields: &mut Fields<'_>, problems: &mut Problems) -> Occurrences {
    let at = fields.whole("at", 1, problems).unwrap_or(1);
    let every = fields.whole("every", 1, problems);
    let times = fields.whole("times", 1, problems);
    // Without `every`, one request is hit.
    let times = times.or(every.is_none().then_some(1));
    Occurrences { at, every: every.unwrap_or(1), times }
}

fn http_status(node: &Node, problems: &mut Problems) -> Option<FaultAction> {
    let mut fields = Fields::of(node, "`http_status`", problems)?;
    fields.require("status", problems);
    let status = fields.whole("status", 1, problems);
    let is_error = |status: u64| STATUSES.iter().any(|(least, most)| (*least..=*most).contains(&status));
    if let (Some(wrong), Some(node)) = (status.filter(|status| !is_error(*status)), fields.get("status")) {
        let problem = node.error(format!("`status` must be the status of an error, not {wrong}"));
        problems.push(problem.help("write a status from 400 to 599, such as 429, 500 or 529"));
    }
    let known = problems.len();
    let retry_after = fields.duration_ms("retry_after", problems);
    let is_odd = retry_after.is_some_and(|wait| wait % 1000 != 0);
    if let Some(node) = fields.get("retry_after").filter(|_| is_odd) {
        // A number without a unit is the same mistake.
        problems.truncate(known);
        problems.push(node.error("`retry_after` must be a number of whole seconds, such as `2s`"));
    }
    let requests = occurrences(&mut fields, problems);
    fields.finish(problems);
    let status = status.filter(|status| is_error(*status) && !is_odd)?;
    let status = u16::try_from(status).ok()?;
    Some(FaultAction::HttpStatus { status, retry_after: retry_after.map(|wait| wait / 1000), requests })
}

fn slow_stream(node: &Node, problems: &mut Problems) -> Option<FaultAction> {
    let mut fields = Fields::of(node, "`slow_stream`", problems)?;
    let delay_ms = fields.duration_ms("delay", problems).unwrap_or(DELAY_MS);
    let requests = occurrences(&mut fields, problems);
    fields.finish(problems);
    Some(FaultAction::SlowStream { delay_ms, requests })
}

fn tool_fails(node: &Node, problems: &mut Problems) -> Option<FaultAction> {
    const SYNONYMS: [(&str, &str); 3] = [("cmd", "command"), ("program", "command"), ("tool", "command")];
    let mut fields = Fields::of(node, "`tool_fails`", problems)?.with_synonyms(&SYNONYMS);
    let command = fields.required_text("command", problems);
    let is_name = |name: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
        !name.starts_with(['.', '-']) && name.chars().all(is_plain)
    };
    if let (Some(wrong), Some(node)) = (command.as_deref().filter(|name| !is_name(name)), fields.get("command")) {
        let problem = node.error(format!("`command` must be the name of a program, not `{wrong}`"));
        problems.push(problem.help("write the name without a folder and without arguments, such as `npm`"));
    }
    let times = fields.whole("times", 1, problems).unwrap_or(1);
    let exit_code = fields.whole("exit_code", 1, problems).unwrap_or(1);
    if let (true, Some(node)) = (exit_code > 255, fields.get("exit_code")) {
        problems.push(node.error(format!("`exit_code` must be a number from 1 to 255, not {exit_code}")));
    }
    let stderr = fields.any_text("stderr", problems).unwrap_or_else(|| STDERR.to_owned());
    fields.finish(problems);
    let command = command.filter(|name| is_name(name))?;
    Some(FaultAction::ToolFails { command, times, exit_code: u8::try_from(exit_code).ok()?, stderr })
}

fn disk_full(node: &Node, problems: &mut Problems) -> Option<FaultAction> {
    let mut fields = Fields::of(node, "`disk_full`", problems)?;
    let free = fields.whole("free_kb", 0, problems).unwrap_or(0);
    fields.finish(problems);
    Some(FaultAction::DiskFull { free: free.saturating_mul(1024) })
}

fn read_only(node: &Node, problems: &mut Problems) -> Option<FaultAction> {
    let NodeKind::List(items) = &node.kind else {
        problems.push(node.error(format!("`read_only` must be a list of paths, not {}", node.kind_name())));
        return None;
    };
    if items.is_empty() {
        problems.push(node.error("`read_only` must name a path"));
        return None;
    }
    let path = |item: &Node, problems: &mut Problems| {
        let written = text(item, "an item of `read_only`", problems)?;
        let path = written.trim_end_matches('/').trim_start_matches("./");
        let is_inside = !path.is_empty()
            && !path.starts_with(['/', '~'])
            && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !is_inside {
            let problem = item.error(format!("`{written}` is not a path in the working directory"));
            problems.push(problem.help("write a path relative to the working directory, without `..`"));
        }
        is_inside.then(|| path.to_owned())
    };
    let paths: Vec<String> = items.iter().filter_map(|item| path(item, problems)).collect();
    (paths.len() == items.len()).then_some(FaultAction::ReadOnly { paths })
}

/// Reads an offset such as `+2d` or `-90m`.
fn clock_offset(node: &Node, problems: &mut Problems) -> Option<FaultAction> {
    let written = text(node, "`clock_offset`", problems)?;
    let seconds = seconds_of(&written);
    if seconds.is_none() {
        let problem = node.error(format!("`clock_offset` must be an offset, not `{written}`"));
        problems.push(problem.help("write `+2d`, `-3h`, `+90m` or `-30s`"));
    }
    Some(FaultAction::ClockOffset { seconds: seconds? })
}

fn seconds_of(written: &str) -> Option<i64> {
    let (sign, amount) = match written.strip_prefix('-') {
        Some(amount) => (-1, amount),
        None => (1, written.strip_prefix('+')?),
    };
    let amount = match amount.strip_suffix('d') {
        Some(days) => days.parse::<u64>().ok()?.checked_mul(86_400)?,
        None => parse_duration_ms(amount).filter(|ms| ms % 1000 == 0)? / 1000,
    };
    i64::try_from(amount).ok().filter(|amount| *amount > 0).map(|amount| sign * amount)
}

#[cfg(test)]
mod tests {
    use model::Source;
    use serde_json::{Value, json};

    use super::*;

    fn read(written: &Value) -> (Vec<FaultAction>, Vec<String>) {
        let node = Node::from_json(written, &Source::new("f.yaml", ""));
        let mut problems = Problems::new();
        let actions = faults(&node, &mut problems).into_iter().map(|fault| fault.action).collect();
        (actions, problems.into_iter().map(|problem| problem.message).collect())
    }

    #[test]
    fn every_kind_is_read_with_its_defaults() {
        let (actions, problems) = read(&json!([
            {"http_status": {"status": 529}},
            {"http_status": {"status": 429, "retry_after": "2s", "at": 3}},
            {"cut_stream": {"at": 2, "times": 2}},
            {"slow_stream": {"every": 2}},
            {"malformed_arguments": {}},
            {"tool_fails": {"command": "npm"}},
            {"disk_full": {}},
            {"read_only": ["docs/", "./a/b"]},
            {"clock_offset": "+2d"},
            {"clock_offset": "-90m"},
        ]));
        assert!(problems.is_empty(), "{problems:?}");
        let once = Occurrences { at: 1, every: 1, times: Some(1) };
        assert_eq!(
            actions,
            [
                FaultAction::HttpStatus { status: 529, retry_after: None, requests: once },
                FaultAction::HttpStatus { status: 429, retry_after: Some(2), requests: Occurrences { at: 3, ..once } },
                FaultAction::CutStream { requests: Occurrences { at: 2, times: Some(2), ..once } },
                FaultAction::SlowStream { delay_ms: 500, requests: Occurrences { every: 2, times: None, ..once } },
                FaultAction::MalformedArguments { requests: once },
                FaultAction::ToolFails { command: "npm".into(), times: 1, exit_code: 1, stderr: STDERR.into() },
                FaultAction::DiskFull { free: 0 },
                FaultAction::ReadOnly { paths: vec!["docs".into(), "a/b".into()] },
                FaultAction::ClockOffset { seconds: 172_800 },
                FaultAction::ClockOffset { seconds: -5400 },
            ]
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (written, expected) in [
            (json!([{"http_statsu": {}}]), "unknown key `http_statsu` in an item of `faults`"),
            (json!([{}]), "an item of `faults` must have one key, the kind of the fault"),
            (
                json!([{"cut_stream": {}, "slow_stream": {}}]),
                "an item of `faults` must have one key, the kind of the fault",
            ),
            (json!([{"http_status": {"status": 200}}]), "`status` must be the status of an error, not 200"),
            (json!([{"http_status": {}}]), "`http_status` has no `status`"),
            (
                json!([{"http_status": {"status": 500, "retry_after": "1500ms"}}]),
                "`retry_after` must be a number of whole seconds, such as `2s`",
            ),
            (
                json!([{"http_status": {"status": 500, "retry_after": 2}}]),
                "`retry_after` must be a number of whole seconds, such as `2s`",
            ),
            (json!([{"cut_stream": {"at": 0}}]), "`at` must be a whole number of at least 1, not 0"),
            (
                json!([{"tool_fails": {"command": "npm test"}}]),
                "`command` must be the name of a program, not `npm test`",
            ),
            (
                json!([{"tool_fails": {"command": "npm", "exit_code": 256}}]),
                "`exit_code` must be a number from 1 to 255, not 256",
            ),
            (json!([{"read_only": ["../x"]}]), "`../x` is not a path in the working directory"),
            (json!([{"read_only": []}]), "`read_only` must name a path"),
            (json!([{"clock_offset": "2 days"}]), "`clock_offset` must be an offset, not `2 days`"),
        ] {
            assert_eq!(read(&written).1, [expected], "{written}");
        }
    }
}
