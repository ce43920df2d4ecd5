//! Conformance of an agent with the Agent Client Protocol, version 1. A client plays one conversation with the agent, breaks
//! rules in it on purpose, and each check judges what the agent wrote.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use model::text::shortened;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::json::{items, text};
use crate::process::{Output, Process};

/// Time limit for the first response.
const TO_START: Duration = Duration::from_secs(120);
/// Time limit for any other response.
const TO_RESPOND: Duration = Duration::from_secs(60);
/// Time after which the user hears what is waited for.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time limit for a cancelled reply.
const TO_CANCEL: Duration = Duration::from_secs(15);
/// Time in which messages that come too late are noticed.
const LATE: Duration = Duration::from_millis(300);
/// Time limit for the end of the process after its stdin was closed.
const TO_END: Duration = Duration::from_secs(5);

/// Importance of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// The protocol requires it of every agent.
    Mandatory,
    /// The protocol requires it of agents that offer a capability.
    Capability,
    /// Clients work better with it.
    Advisory,
}

impl Tier {
    /// Returns the name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mandatory => "mandatory",
            Self::Capability => "capability",
            Self::Advisory => "advisory",
        }
    }
}

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conformance {
    /// The agent keeps the rule.
    Kept,
    /// The agent breaks the rule, as described.
    Broken(String),
    /// The agent was not asked, for this reason.
    Skipped(String),
}

/// A rule of the protocol, and whether the agent keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConformanceCheck {
    /// Name, unique among the checks.
    pub id: &'static str,
    /// Importance.
    pub tier: Tier,
    /// The rule.
    pub rule: &'static str,
    /// Result.
    pub result: Conformance,
}

const KINDS: [&str; 10] =
    ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"];
const STATUSES: [&str; 4] = ["pending", "in_progress", "completed", "failed"];
const STOP_REASONS: [&str; 5] = ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"];
const OPTION_KINDS: [&str; 4] = ["allow_once", "allow_always", "reject_once", "reject_always"];
const UPDATES: [&str; 11] = [
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
    "session_info_update",
    "usage_update",
];
const BLOCKS: [&str; 5] = ["text", "image", "audio", "resource_link", "resource"];
const METHODS: [&str; 8] = [
    "session/request_permission",
    "fs/read_text_file",
    "fs/write_text_file",
    "terminal/create",
    "terminal/output",
    "terminal/wait_for_exit",
    "terminal/kill",
    "terminal/release",
];

/// A message of the agent, with the number of the request that was open when it arrived.
struct Heard {
    message: Value,
    during: u64,
}

/// Client that plays the conversation.
struct Probe<'p> {
    process: Process,
    /// Is told what is waited for, if it takes long.
    progress: &'p (dyn Fn(&str) + Sync),
    last_id: u64,
    heard: Vec<Heard>,
    noise: Vec<String>,
    has_ended: bool,
    work: String,
}

/// Response to a request.
#[derive(Debug, Clone, PartialEq)]
enum Reply {
    Result(Value),
    Error(i64, Value),
    /// There was none in time.
    None,
    /// The agent ended before there was one.
    Ended,
}

impl Reply {
    fn result(&self) -> Option<&Value> {
        if let Self::Result(result) = self { Some(result) } else { None }
    }

    fn wants_sign_in(&self) -> bool {
        matches!(self, Self::Error(-32000, _))
    }

    fn shown(&self) -> String {
        match self {
            Self::Result(result) => format!("result {}", shortened(&result.to_string(), 200)),
            Self::Error(code, error) => format!("error {code}: {}", shortened(&error.to_string(), 200)),
            Self::None => "no response in time".to_owned(),
            Self::Ended => "the agent ended without a response".to_owned(),
        }
    }
}

impl Probe<'_> {
    fn write(&self, message: &Value) {
        self.process.write(format!("{message}\n"));
    }

    async fn ask(&mut self, method: &str, params: Value, limit: Duration) -> Reply {
        let id = self.send(method, params);
        self.reply(method, id, limit).await
    }

    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let mut message = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method});
        message["params"] = params;
        self.write(&message);
        self.last_id
    }

    async fn reply(&mut self, method: &str, id: u64, limit: Duration) -> Reply {
        let progress = self.progress;
        let mut wait = Box::pin(async {
            loop {
                let Some(message) = self.next(id).await else { return Reply::Ended };
                if message.get("method").is_some() || !is_id(&message["id"], id) {
                    continue;
                }
                return match message.get("error") {
                    Some(error) => Reply::Error(error["code"].as_i64().unwrap_or_default(), error.clone()),
                    None => Reply::Result(message.get("result").cloned().unwrap_or(Value::Null)),
                };
            }
        });
        if let Ok(reply) = tokio::time::timeout(PATIENCE.min(limit), &mut wait).await {
            return reply;
        }
        progress(&format!("waiting for `{method}`, at most {} s", limit.as_secs()));
        tokio::time::timeout(limit.saturating_sub(PATIENCE), wait).await.unwrap_or(Reply::None)
    }

    /// Hears what comes within `limit`.
    async fn listen(&mut self, during: u64, limit: Duration) {
        let all = async { while self.next(during).await.is_some() {} };
        let _ = tokio::time::timeout(limit, all).await;
    }

    /// Returns the next message, after it was answered if it is a request.
    async fn next(&mut self, during: u64) -> Option<Value> {
        loop {
            let line = match self.process.next_output().await {
                Output::Stderr(_) => continue,
                Output::Stdout(line) => line.text,
                Output::End => {
                    self.has_ended = true;
                    return None;
                }
            };
            let message = model::foreign_json::parse(&line).ok().filter(is_message);
            let Some(message) = message else {
                if !line.trim().is_empty() {
                    self.noise.push(shortened(&line, 100));
                }
                continue;
            };
            self.heard.push(Heard { message: message.clone(), during });
            if let (Some(method), Some(id)) = (text(&message, "method"), message.get("id")) {
                let answer = self.answer(method, &message["params"]);
                let mut response = json!({"jsonrpc": "2.0", "id": id});
                match answer {
                    Some(result) => response["result"] = result,
                    None => response["error"] = json!({"code": -32601, "message": "not offered"}),
                }
                self.write(&response);
            }
            return Some(message);
        }
    }

    fn answer(&self, method: &str, params: &Value) -> Option<Value> {
        match method {
            "session/request_permission" => {
                let options = items(params, "options");
                let wanted = options.iter().find(|option| text(option, "kind") == Some("reject_once"));
                let option = wanted.or(options.first())?;
                Some(json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}}))
            }
            "fs/read_text_file" => Some(json!({"content": ""})),
            "fs/write_text_file" => Some(json!({})),
            _ => None,
        }
    }
}

/// Returns `true` for a message, even if it lacks `jsonrpc`.
fn is_message(value: &Value) -> bool {
    let has = |key: &str| value.get(key).is_some();
    has("jsonrpc") || has("method") || (has("id") && (has("result") || has("error")))
}

fn is_id(id: &Value, number: u64) -> bool {
    id.as_u64() == Some(number) || id.as_str() == Some(number.to_string().as_str())
}

/// Results so far.
#[derive(Default)]
struct Report {
    checks: Vec<ConformanceCheck>,
}

impl Report {
    fn add(&mut self, tier: Tier, id: &'static str, rule: &'static str, result: Conformance) {
        self.checks.push(ConformanceCheck { id, tier, rule, result });
    }

    /// Adds a rule. The agent breaks it if there are problems, and the first one is shown.
    fn none(&mut self, tier: Tier, id: &'static str, rule: &'static str, problems: impl IntoIterator<Item = String>) {
        let mut problems = problems.into_iter();
        let result = problems.next().map_or(Conformance::Kept, Conformance::Broken);
        self.add(tier, id, rule, result);
    }

    /// Adds a rule that holds or not, with what was seen instead.
    fn holds(&mut self, tier: Tier, id: &'static str, rule: &'static str, holds: bool, seen: impl FnOnce() -> String) {
        self.none(tier, id, rule, (!holds).then(seen));
    }

    fn skip(&mut self, tier: Tier, id: &'static str, rule: &'static str, reason: &str) {
        self.add(tier, id, rule, Conformance::Skipped(reason.to_owned()));
    }
}

/// Plays a conversation with the agent that `command` starts, and returns the checks. The agent works in `work`. `progress` is
/// told what is waited for, if it takes long.
///
/// # Errors
/// Returns the reason if the program cannot be started, or ends without a message.
pub async fn check_conformance(
    command: Command,
    work: &Path,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Vec<ConformanceCheck>, String> {
    let process = Process::start(command).map_err(|error| format!("cannot start the agent: {error}"))?;
    let work = work.to_string_lossy().into_owned();
    let mut probe =
        Probe { process, progress, last_id: 0, heard: Vec::new(), noise: Vec::new(), has_ended: false, work };
    let mut report = Report::default();
    let opened = opening(&mut probe, &mut report).await;
    if let Some(reason) = probe.process.start_error() {
        return Err(reason.to_owned());
    }
    if opened.is_none() && probe.has_ended && probe.heard.is_empty() {
        return Err(format!("the agent ended before it answered: {}", probe.process.describe_end().await));
    }
    if let Some(agent) = opened {
        conversation(&mut probe, &mut report, &agent).await;
    } else {
        let _ = probe.process.stop().await;
    }
    messages(&probe, &mut report);
    report.checks.sort_by_key(|check| check.tier);
    Ok(report.checks)
}

/// Checks `initialize`; returns the agent's response.
async fn opening(probe: &mut Probe<'_>, report: &mut Report) -> Option<Value> {
    use Tier::{Advisory, Mandatory};
    let capabilities = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": false});
    let info = json!({"name": "trialrun", "title": "trialrun", "version": env!("CARGO_PKG_VERSION")});
    let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": info});
    let reply = probe.ask("initialize", params, TO_START).await;
    let rule = "`initialize` returns a result";
    let Some(agent) = reply.result().filter(|agent| agent.is_object()).cloned() else {
        report.add(Mandatory, "initialize_result", rule, Conformance::Broken(reply.shown()));
        return None;
    };
    report.add(Mandatory, "initialize_result", rule, Conformance::Kept);
    let version = &agent["protocolVersion"];
    report.holds(Mandatory, "version_is_integer", "`protocolVersion` is an integer", version.is_u64(), || {
        version.to_string()
    });
    let rule = "a client that offers version 1 gets version 1";
    report.holds(Mandatory, "version_is_offered", rule, version.as_f64() == Some(1.0), || version.to_string());
    let offered = agent.get("agentCapabilities").unwrap_or(&Value::Null);
    let is_map = |value: &Value| value.is_object() || value.is_null();
    report.holds(Mandatory, "capabilities_are_an_object", "`agentCapabilities` is an object", is_map(offered), || {
        offered.to_string()
    });
    let wrong = |path: &str| {
        let value = offered.pointer(path).unwrap_or(&Value::Null);
        (!value.is_boolean() && !value.is_null()).then(|| format!("`{path}` is {value}"))
    };
    let flags = [
        "/loadSession",
        "/promptCapabilities/image",
        "/promptCapabilities/audio",
        "/promptCapabilities/embeddedContext",
        "/mcpCapabilities/http",
        "/mcpCapabilities/sse",
    ];
    let rule = "capabilities that are flags are booleans";
    report.none(Mandatory, "capability_flags", rule, flags.into_iter().filter_map(wrong));
    let sessions = offered.get("sessionCapabilities").unwrap_or(&Value::Null);
    let entries = sessions.as_object().into_iter().flatten();
    let wrong = entries.filter(|(name, value)| *name != "_meta" && !is_map(value));
    let rule = "`sessionCapabilities` are objects";
    report.none(Mandatory, "session_capabilities", rule, wrong.map(|(name, value)| format!("`{name}` is {value}")));
    let methods = agent.get("authMethods").unwrap_or(&Value::Null);
    let rule = "`authMethods` is a list";
    report.holds(Mandatory, "auth_methods_are_a_list", rule, methods.is_array() || methods.is_null(), || {
        methods.to_string()
    });
    let methods = items(&agent, "authMethods");
    let unnamed = methods.iter().filter(|method| text(method, "id").is_none() || text(method, "name").is_none());
    let rule = "each authentication method has an `id` and a `name`";
    report.none(Mandatory, "auth_methods_have_names", rule, unnamed.map(ToString::to_string));
    report.none(Mandatory, "auth_methods_are_unique", "ids of authentication methods are unique", twice(methods, "id"));
    let info = agent.get("agentInfo").unwrap_or(&Value::Null);
    let has = |key: &str| text(info, key).is_some_and(|value| !value.is_empty());
    report.holds(Advisory, "agent_name", "`agentInfo` has a `name`", has("name"), || info.to_string());
    report.holds(Advisory, "agent_version", "`agentInfo` has a `version`", has("version"), || info.to_string());
    Some(agent)
}

/// Returns the values of `key` that occur more than once.
fn twice(list: &[Value], key: &str) -> Vec<String> {
    let mut known = BTreeSet::new();
    let ids = list.iter().filter_map(|item| text(item, key));
    ids.filter(|id| !known.insert(*id)).map(|id| format!("`{id}` occurs twice")).collect()
}

/// Checks sessions and prompts.
async fn conversation(probe: &mut Probe<'_>, report: &mut Report, agent: &Value) {
    use Tier::{Advisory, Capability, Mandatory};
    let reply = probe.ask("trialrun/unknown", json!({}), TO_RESPOND).await;
    let rule = "an unknown method is answered with error -32601";
    report.holds(Mandatory, "unknown_method", rule, matches!(reply, Reply::Error(-32601, _)), || reply.shown());
    let id = probe.last_id;
    probe.write(&json!({"jsonrpc": "2.0", "method": "trialrun/unknown", "params": {}}));
    let parameters = json!({"cwd": probe.work, "mcpServers": []});
    let first = probe.ask("session/new", parameters.clone(), TO_START).await;
    let answered = probe.heard.iter().filter(|heard| heard.during > id && heard.message.get("method").is_none());
    let extra =
        answered.filter(|heard| !is_id(&heard.message["id"], probe.last_id)).map(|heard| heard.message.to_string());
    let rule = "a notification gets no response";
    report.none(Mandatory, "no_response_to_notification", rule, extra.collect::<Vec<_>>());
    let opens = "`session/new` returns a `sessionId`";
    let session = first.result().and_then(|session| text(session, "sessionId")).filter(|id| !id.is_empty());
    let Some(session) = session.map(str::to_owned) else {
        if first.wants_sign_in() {
            let offers = !items(agent, "authMethods").is_empty();
            let rule = "an agent that wants a sign-in offers a method for it";
            report.holds(Mandatory, "sign_in_is_offered", rule, offers, || "`authMethods` is empty".to_owned());
            report.skip(Mandatory, "session_id", opens, "the agent wants a sign-in; the checks of sessions need one");
        } else {
            report.add(Mandatory, "session_id", opens, Conformance::Broken(first.shown()));
        }
        let _ = probe.process.stop().await;
        return;
    };
    report.add(Mandatory, "session_id", opens, Conformance::Kept);
    let whole = first.result().cloned().unwrap_or_default();
    settings(report, &whole);
    let reply = probe.ask("session/new", json!({"mcpServers": []}), TO_RESPOND).await;
    let rule = "`session/new` without `cwd` is an error";
    report.holds(Advisory, "missing_cwd", rule, matches!(reply, Reply::Error(..)), || reply.shown());
    let second = probe.ask("session/new", parameters, TO_RESPOND).await;
    let second = second.result().and_then(|session| text(session, "sessionId")).map(str::to_owned);
    let rule = "two sessions have different ids";
    report.holds(Mandatory, "session_ids_differ", rule, second.as_ref() != Some(&session), || session.clone());
    let prompt =
        |session: &str, words: &str| json!({"sessionId": session, "prompt": [{"type": "text", "text": words}]});
    let reply = probe.ask("session/prompt", prompt("trialrun-unknown", "hello"), TO_RESPOND).await;
    let rule = "a prompt for an unknown session is an error";
    report.holds(Mandatory, "unknown_session", rule, matches!(reply, Reply::Error(..)), || reply.shown());

    let reply = probe.ask("session/prompt", prompt(&session, "Reply with the word ok."), TO_RESPOND).await;
    let prompted = probe.last_id;
    probe.listen(prompted + 1, LATE).await;
    if let Reply::Error(..) = reply {
        report.skip(
            Mandatory,
            "stop_reason",
            "a prompt ends with a known `stopReason`",
            &format!("the prompt failed: {}", reply.shown()),
        );
    } else {
        let reason = reply.result().and_then(|result| text(result, "stopReason"));
        let known = reason.is_some_and(|reason| STOP_REASONS.contains(&reason));
        report.holds(Mandatory, "stop_reason", "a prompt ends with a known `stopReason`", known, || reply.shown());
        let updates =
            probe.heard.iter().filter(|heard| heard.during == prompted).filter_map(|heard| update(&heard.message));
        let said = updates.filter(|update| text(update, "sessionUpdate") == Some("agent_message_chunk")).count();
        report.holds(Advisory, "prompt_is_answered", "a reply has text", said > 0, || {
            "no `agent_message_chunk`".to_owned()
        });
        let late =
            probe.heard.iter().filter(|heard| heard.during == prompted + 1).filter_map(|heard| update(&heard.message));
        let late =
            late.filter(|update| text(update, "sessionUpdate").is_some_and(is_of_reply)).map(ToString::to_string);
        let rule = "no part of the reply comes after the response to the prompt";
        report.none(Mandatory, "no_late_updates", rule, late.collect::<Vec<_>>());
    }
    cancelling(probe, report, &session, &prompt(&session, "Count slowly from one to one thousand.")).await;
    modes(probe, report, &session, &whole).await;

    let can = |path: &str| {
        agent
            .pointer(&format!("/agentCapabilities{path}"))
            .is_some_and(|value| value.is_object() || *value == json!(true))
    };
    let not_offered = "the agent does not offer it";
    let rule = "`session/list` returns the sessions";
    if can("/sessionCapabilities/list") {
        let reply = probe.ask("session/list", json!({}), TO_RESPOND).await;
        let listed = reply.result().is_some_and(|result| result["sessions"].is_array());
        report.holds(Capability, "list_sessions", rule, listed, || reply.shown());
    } else {
        report.skip(Capability, "list_sessions", rule, not_offered);
    }
    let rule = "`session/load` of an unknown session is an error";
    if can("/loadSession") {
        let parameters = json!({"sessionId": "trialrun-unknown", "cwd": probe.work, "mcpServers": []});
        let reply = probe.ask("session/load", parameters, TO_RESPOND).await;
        report.holds(Capability, "load_unknown_session", rule, matches!(reply, Reply::Error(..)), || reply.shown());
    } else {
        report.skip(Capability, "load_unknown_session", rule, not_offered);
    }
    let (closes, refuses) = ("`session/close` returns a result", "a prompt for a closed session is an error");
    if can("/sessionCapabilities/close") {
        let reply = probe.ask("session/close", json!({"sessionId": session}), TO_RESPOND).await;
        report.holds(Capability, "close_session", closes, matches!(reply, Reply::Result(_)), || reply.shown());
        let reply = probe.ask("session/prompt", prompt(&session, "hello"), TO_RESPOND).await;
        report.holds(Capability, "prompt_of_closed_session", refuses, matches!(reply, Reply::Error(..)), || {
            reply.shown()
        });
    } else {
        report.skip(Capability, "close_session", closes, not_offered);
        report.skip(Capability, "prompt_of_closed_session", refuses, not_offered);
    }
    let rule = "the agent survives a line that is not JSON";
    probe.process.write("{not json\n".to_owned());
    let reply = probe.ask("trialrun/unknown", json!({}), TO_CANCEL).await;
    report.holds(Advisory, "survives_bad_json", rule, !matches!(reply, Reply::None | Reply::Ended), || reply.shown());
    probe.process.close_stdin();
    let ended = tokio::time::timeout(TO_END, probe.process.own_end()).await.is_ok();
    let rule = "the agent ends when its stdin is closed";
    report.holds(Advisory, "ends_with_stdin", rule, ended, || {
        format!("it was still running after {} s", TO_END.as_secs())
    });
    let _ = probe.process.stop().await;
}

/// Checks the settings of a session.
fn settings(report: &mut Report, session: &Value) {
    use Tier::Capability;
    let listed = |list: &str, key: &str, current: &str| {
        let values: Vec<&str> = session
            .pointer(list)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|item| text(item, key))
            .collect();
        let current = session.pointer(current).and_then(Value::as_str);
        (session.pointer(list).is_some() && !current.is_some_and(|current| values.contains(&current)))
            .then(|| format!("{current:?} is not among {}", values.join(", ")))
    };
    let rule = "the current mode is one of the available modes";
    report.none(Capability, "current_mode", rule, listed("/modes/availableModes", "id", "/modes/currentModeId"));
    let modes = session.pointer("/modes").map(|modes| twice(items(modes, "availableModes"), "id")).unwrap_or_default();
    report.none(Capability, "mode_ids_are_unique", "ids of modes are unique", modes);
    let options = items(session, "configOptions");
    let of_lists = items(session, "configOptions").iter().filter(|option| text(option, "type") == Some("select"));
    let unlisted = of_lists.filter(|option| {
        let lists = items(option, "options").iter();
        let mut values = lists.flat_map(|item| match item.get("options") {
            Some(_) => items(item, "options").iter().collect(),
            None => vec![item],
        });
        !values.any(|item| item["value"] == option["currentValue"])
    });
    let rule = "the current value of a configuration option is one of its options";
    report.none(Capability, "config_values", rule, unlisted.map(ToString::to_string));
    let rule = "each configuration option has an `id` and a `name`";
    let unnamed = options.iter().filter(|option| text(option, "id").is_none() || text(option, "name").is_none());
    report.none(Capability, "config_options_have_names", rule, unnamed.map(ToString::to_string));
    report.none(Capability, "config_ids_are_unique", "ids of configuration options are unique", twice(options, "id"));
}

/// Checks that a reply can be cancelled.
async fn cancelling(probe: &mut Probe<'_>, report: &mut Report, session: &str, prompt: &Value) {
    let id = probe.send("session/prompt", prompt.clone());
    probe.listen(id, LATE).await;
    probe.write(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}));
    let early =
        probe.heard.iter().any(|heard| heard.message.get("method").is_none() && is_id(&heard.message["id"], id));
    let rule = "a cancelled prompt ends with the `stopReason` `cancelled`";
    if early {
        return report.skip(Tier::Mandatory, "cancel", rule, "the reply was over before it was cancelled");
    }
    let reply = probe.reply("session/prompt", id, TO_CANCEL).await;
    let reason = reply.result().and_then(|result| text(result, "stopReason"));
    let result = match (&reply, reason) {
        (_, Some("cancelled")) => Conformance::Kept,
        (_, Some("end_turn")) => Conformance::Skipped("the reply was over before it was cancelled".to_owned()),
        (reply, _) => Conformance::Broken(reply.shown()),
    };
    report.add(Tier::Mandatory, "cancel", rule, result);
}

/// Checks that modes can be selected.
async fn modes(probe: &mut Probe<'_>, report: &mut Report, session: &str, whole: &Value) {
    use Tier::Capability;
    let (selects, refuses) =
        ("`session/set_mode` selects an available mode", "`session/set_mode` with an unknown mode is an error");
    let modes = whole.pointer("/modes").map(|modes| items(modes, "availableModes")).unwrap_or_default();
    let Some(last) = modes.last().and_then(|mode| text(mode, "id")) else {
        report.skip(Capability, "set_mode", selects, "the agent has no modes");
        return report.skip(Capability, "set_unknown_mode", refuses, "the agent has no modes");
    };
    let reply = probe.ask("session/set_mode", json!({"sessionId": session, "modeId": last}), TO_RESPOND).await;
    report.holds(Capability, "set_mode", selects, matches!(reply, Reply::Result(_)), || reply.shown());
    let unknown = json!({"sessionId": session, "modeId": "trialrun-unknown"});
    let reply = probe.ask("session/set_mode", unknown, TO_RESPOND).await;
    report.holds(Capability, "set_unknown_mode", refuses, matches!(reply, Reply::Error(..)), || reply.shown());
}

/// Returns `true` for kinds of updates that are part of a reply.
fn is_of_reply(kind: &str) -> bool {
    kind.starts_with("agent_") || kind.starts_with("tool_call")
}

/// Returns the update in a message.
fn update(message: &Value) -> Option<&Value> {
    message.pointer("/params/update").filter(|_| text(message, "method") == Some("session/update"))
}

/// Checks all messages that were heard.
fn messages(probe: &Probe<'_>, report: &mut Report) {
    use Tier::{Advisory, Mandatory};
    let all = || probe.heard.iter().map(|heard| &heard.message);
    let shown = |message: &Value| shortened(&message.to_string(), 200);
    let rule = "stdout contains only messages, one per line";
    report.none(Mandatory, "only_messages", rule, probe.noise.clone());
    let odd = all().filter(|message| message["jsonrpc"] != json!("2.0")).map(shown);
    report.none(Mandatory, "jsonrpc_version", "each message has `jsonrpc` `2.0`", odd);
    let responses = || all().filter(|message| message.get("method").is_none());
    let sent = |id: &Value| id.as_u64().is_some_and(|id| (1..=probe.last_id).contains(&id));
    let odd = responses().filter(|message| !message["id"].is_null() && !sent(&message["id"])).map(shown);
    report.none(Mandatory, "ids_are_returned", "a response has the id of a request, unchanged", odd);
    let mut known = BTreeSet::new();
    let again =
        responses().filter(|message| sent(&message["id"]) && !known.insert(message["id"].to_string())).map(shown);
    report.none(Mandatory, "one_response_each", "a request gets one response", again.collect::<Vec<_>>());
    let odd =
        responses().filter(|message| message.get("result").is_some() == message.get("error").is_some()).map(shown);
    report.none(Mandatory, "result_or_error", "a response has either a `result` or an `error`", odd);
    let errors = responses().filter_map(|message| message.get("error"));
    let odd = errors.filter(|error| !error["code"].is_i64() || !error["message"].is_string()).map(shown);
    report.none(Mandatory, "errors_have_a_code", "an error has an integer `code` and a `message`", odd);
    let requests = || all().filter(|message| message.get("method").is_some() && message.get("id").is_some());
    let mut known = BTreeSet::new();
    let again = requests().filter(|message| !known.insert(message["id"].to_string())).map(shown);
    report.none(
        Mandatory,
        "request_ids_are_unique",
        "requests of the agent have unique ids",
        again.collect::<Vec<_>>(),
    );
    let method = |message: &&Value| {
        text(message, "method").is_some_and(|name| !name.starts_with('_') && !METHODS.contains(&name))
    };
    report.none(
        Mandatory,
        "known_requests",
        "the agent sends only requests of the protocol",
        requests().filter(method).map(shown),
    );
    let terminal =
        requests().filter(|message| text(message, "method").is_some_and(|name| name.starts_with("terminal/")));
    let rule = "the agent does not use a capability that the client did not offer";
    report.none(Mandatory, "client_capabilities", rule, terminal.map(shown));
    let paths = requests().filter(|message| text(message, "method").is_some_and(|name| name.starts_with("fs/")));
    let relative =
        paths.filter(|message| !message["params"]["path"].as_str().is_some_and(|path| path.starts_with('/')));
    report.none(Mandatory, "paths_are_absolute", "paths of files are absolute", relative.map(shown));
    let asks = || {
        requests()
            .filter(|message| text(message, "method") == Some("session/request_permission"))
            .map(|message| &message["params"])
    };
    let rule = "a request for permission names its call and has options";
    let odd = asks()
        .filter(|params| text(&params["toolCall"], "toolCallId").is_none() || items(params, "options").is_empty());
    report.none(Mandatory, "permission_requests", rule, odd.map(shown));
    let odd = asks().flat_map(|params| items(params, "options")).filter(|option| {
        text(option, "optionId").is_none()
            || text(option, "name").is_none()
            || !text(option, "kind").is_some_and(|kind| OPTION_KINDS.contains(&kind))
    });
    report.none(Mandatory, "permission_options", "each option has an id, a name and a known kind", odd.map(shown));
    let same = asks().flat_map(|params| twice(items(params, "options"), "optionId"));
    report.none(Mandatory, "option_ids_are_unique", "ids of options are unique", same.collect::<Vec<_>>());
    let refusable = |params: &&Value| {
        !items(params, "options")
            .iter()
            .any(|option| text(option, "kind").is_some_and(|kind| kind.starts_with("reject")))
    };
    report.none(
        Advisory,
        "permission_can_be_denied",
        "a request for permission can be denied",
        asks().filter(refusable).map(shown),
    );

    let updates = || all().filter_map(update);
    let without = all().filter(|message| {
        text(message, "method") == Some("session/update") && text(&message["params"], "sessionId").is_none()
    });
    report.none(Mandatory, "updates_name_the_session", "each update names its session", without.map(shown));
    let odd = updates().filter(|update| text(update, "sessionUpdate").is_none()).map(shown);
    report.none(Mandatory, "updates_have_a_kind", "each update has a kind", odd);
    let odd = updates()
        .filter(|update| text(update, "sessionUpdate").is_some_and(|kind| !UPDATES.contains(&kind)))
        .map(shown);
    report.none(Advisory, "known_updates", "kinds of updates are those of the protocol", odd);
    let chunks =
        || updates().filter(|update| text(update, "sessionUpdate").is_some_and(|kind| kind.ends_with("_chunk")));
    let odd = chunks()
        .filter(|update| !text(&update["content"], "type").is_some_and(|kind| BLOCKS.contains(&kind)))
        .map(shown);
    report.none(Mandatory, "chunks_are_blocks", "a chunk is a content block of a known type", odd);
    let odd = chunks().filter(|update| {
        text(&update["content"], "type") == Some("text") && text(&update["content"], "text").is_none()
    });
    report.none(Mandatory, "text_blocks_have_text", "a text block has `text`", odd.map(shown));
    let calls = |kind: &'static str| updates().filter(move |update| text(update, "sessionUpdate") == Some(kind));
    let odd = calls("tool_call")
        .filter(|call| text(call, "toolCallId").is_none() || text(call, "title").is_none())
        .map(shown);
    report.none(Mandatory, "calls_have_a_title", "a tool call has a `toolCallId` and a `title`", odd);
    let both = || calls("tool_call").chain(calls("tool_call_update"));
    let unknown = |call: &&Value, key: &str, known: &[&str]| {
        call.get(key)
            .is_some_and(|value| !value.is_null() && !value.as_str().is_some_and(|value| known.contains(&value)))
    };
    report.none(
        Mandatory,
        "call_kinds",
        "kinds of tool calls are known",
        both().filter(|call| unknown(call, "kind", &KINDS)).map(shown),
    );
    report.none(
        Mandatory,
        "call_statuses",
        "statuses of tool calls are known",
        both().filter(|call| unknown(call, "status", &STATUSES)).map(shown),
    );
    let begun: BTreeSet<&str> = calls("tool_call")
        .filter_map(|call| text(call, "toolCallId"))
        .chain(asks().filter_map(|params| text(&params["toolCall"], "toolCallId")))
        .collect();
    let odd = calls("tool_call_update")
        .filter(|call| !text(call, "toolCallId").is_some_and(|id| begun.contains(id)))
        .map(shown);
    report.none(Mandatory, "updates_of_known_calls", "an update of a tool call follows the call", odd);
    let over: BTreeSet<&str> = both()
        .filter(|call| matches!(text(call, "status"), Some("completed" | "failed")))
        .filter_map(|call| text(call, "toolCallId"))
        .collect();
    let open =
        begun.iter().filter(|id| !over.contains(*id)).map(|id| format!("`{id}` has neither completed nor failed"));
    report.none(Advisory, "calls_end", "each tool call is completed or has failed", open.collect::<Vec<_>>());
    let plans = calls("plan").flat_map(|plan| items(plan, "entries"));
    let odd = plans.filter(|entry| {
        text(entry, "content").is_none()
            || !matches!(text(entry, "status"), Some("pending" | "in_progress" | "completed"))
            || !matches!(text(entry, "priority"), Some("high" | "medium" | "low"))
    });
    report.none(Mandatory, "plan_entries", "entries of a plan have a content, a status and a priority", odd.map(shown));
    let odd = calls("available_commands_update")
        .flat_map(|update| items(update, "availableCommands"))
        .filter(|command| text(command, "name").is_none() || text(command, "description").is_none());
    report.none(Mandatory, "commands_have_names", "commands have a name and a description", odd.map(shown));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An agent without defects.
    const AGENT: &str = r#"
out() { printf '%s\n' "$1"; }
answer() { out '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
fail() { out '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":'"$1"',"message":"no"}}'; }
ask() { out '{"jsonrpc":"2.0","id":"'"$1"'","method":"'"$2"'","params":'"$3"'}'; read -r reply; }
update() { out '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":'"$1"'}}'; }
say() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
reply() {
    update '{"sessionUpdate":"plan","entries":[{"content":"Do it","status":"pending","priority":"high"}]}'
    update '{"sessionUpdate":"tool_call","toolCallId":"c","title":"Run","kind":"execute","status":"pending"}'
    ask p session/request_permission '{"sessionId":"s1","toolCall":{"toolCallId":"c"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}'
    update '{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed"}'
    ask f fs/read_text_file '{"sessionId":"s1","path":"/a"}'
    say ok
    answer '{"stopReason":"end_turn"}'
}
while read -r line; do
    id=
    case $line in *'"id":'*) id=${line#*'"id":'} id=${id%%,*} ;; esac
    case $line in
        *'"method":"initialize"'*) answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":false},"sessionCapabilities":{"list":{},"close":{}}},"authMethods":[{"id":"key","name":"Key"}],"agentInfo":{"name":"fixture","version":"1.0.0"}}' ;;
        *'"method":"session/new"'*'"cwd"'*) n=$((n + 1)); answer '{"sessionId":"s'$n'","modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A"},{"id":"b","name":"B"}]}}' ;;
        *'"method":"session/new"'*) fail -32602 ;;
        *'"method":"session/prompt"'*'"sessionId":"s1"'*'Count slowly'*) pending=$id; say one ;;
        *'"method":"session/prompt"'*'"sessionId":"s1"'*) if [ -n "$closed" ]; then fail -32602; else reply; fi ;;
        *'"method":"session/prompt"'*) fail -32602 ;;
        *'"method":"session/cancel"'*) id=$pending; answer '{"stopReason":"cancelled"}' ;;
        *'"method":"session/set_mode"'*'"modeId":"b"'*) answer '{}' ;;
        *'"method":"session/set_mode"'*) fail -32602 ;;
        *'"method":"session/list"'*) answer '{"sessions":[]}' ;;
        *'"method":"session/load"'*) fail -32602 ;;
        *'"method":"session/close"'*) closed=1; answer '{}' ;;
        *'"id":'*) fail -32601 ;;
    esac
done"#;

    /// Defects: text of the agent, its replacement, and the check that finds the defect.
    const DEFECTS: [(&str, &str, &str); 30] = [
        ("\"jsonrpc\":\"2.0\",\"id\":", "\"id\":", "jsonrpc_version"),
        ("\"protocolVersion\":1", "\"protocolVersion\":\"1\"", "version_is_integer"),
        ("\"protocolVersion\":1", "\"protocolVersion\":2", "version_is_offered"),
        ("\"image\":false", "\"image\":\"no\"", "capability_flags"),
        ("\"list\":{}", "\"list\":true", "session_capabilities"),
        ("[{\"id\":\"key\",\"name\":\"Key\"}]", "{}", "auth_methods_are_a_list"),
        (",\"name\":\"Key\"", "", "auth_methods_have_names"),
        (",\"version\":\"1.0.0\"", "", "agent_version"),
        ("fail -32601", "answer '{}'", "unknown_method"),
        ("\"id\":'\"$id\"',\"result\"", "\"id\":\"'\"$id\"'\",\"result\"", "ids_are_returned"),
        ("while read", "echo Starting\nwhile read", "only_messages"),
        ("\"currentModeId\":\"a\"", "\"currentModeId\":\"z\"", "current_mode"),
        (
            "{\"id\":\"b\",\"name\":\"B\"}",
            "{\"id\":\"b\",\"name\":\"B\"},{\"id\":\"b\",\"name\":\"C\"}",
            "mode_ids_are_unique",
        ),
        ("n=$((n + 1))", "n=1", "session_ids_differ"),
        ("prompt\"'*) fail -32602", "prompt\"'*) answer '{\"stopReason\":\"end_turn\"}'", "unknown_session"),
        ("\"stopReason\":\"end_turn\"", "\"stopReason\":\"done\"", "stop_reason"),
        (
            "answer '{\"stopReason\":\"end_turn\"}'",
            "answer '{\"stopReason\":\"end_turn\"}'; say late",
            "no_late_updates",
        ),
        ("answer '{\"stopReason\":\"cancelled\"}'", "fail -32603", "cancel"),
        ("set_mode\"'*) fail -32602", "set_mode\"'*) answer '{}'", "set_unknown_mode"),
        ("\"kind\":\"execute\"", "\"kind\":\"run\"", "call_kinds"),
        ("\"execute\",\"status\":\"pending\"", "\"execute\",\"status\":\"waiting\"", "call_statuses"),
        ("\"title\":\"Run\",", "", "calls_have_a_title"),
        (
            "tool_call_update\",\"toolCallId\":\"c\"",
            "tool_call_update\",\"toolCallId\":\"d\"",
            "updates_of_known_calls",
        ),
        ("\"kind\":\"reject_once\"", "\"kind\":\"no\"", "permission_options"),
        ("\"optionId\":\"n\"", "\"optionId\":\"y\"", "option_ids_are_unique"),
        ("\"path\":\"/a\"", "\"path\":\"a\"", "paths_are_absolute"),
        ("{\"sessions\":[]}", "{}", "list_sessions"),
        ("closed=1; ", "", "prompt_of_closed_session"),
        ("\"type\":\"text\",\"text\":", "\"type\":\"text\",\"words\":", "text_blocks_have_text"),
        (",\"priority\":\"high\"", "", "plan_entries"),
    ];

    async fn check(agent: String) -> Vec<ConformanceCheck> {
        let mut command = Command::new("sh");
        command.args(["-c", &agent]);
        check_conformance(command, Path::new("/tmp"), &|_| {}).await.unwrap()
    }

    fn broken(checks: &[ConformanceCheck]) -> Vec<&'static str> {
        checks.iter().filter(|check| matches!(check.result, Conformance::Broken(_))).map(|check| check.id).collect()
    }

    #[tokio::test]
    async fn every_defect_is_found_and_an_agent_without_defects_has_none() {
        let clean = tokio::spawn(check(AGENT.to_owned()));
        let runs: Vec<_> = DEFECTS
            .iter()
            .map(|(from, to, id)| {
                assert!(AGENT.contains(from), "{id}");
                (*id, tokio::spawn(check(AGENT.replacen(from, to, 1))))
            })
            .collect();
        let clean = clean.await.unwrap();
        assert_eq!(broken(&clean), [""; 0], "{clean:#?}");
        assert!(clean.iter().all(|check| check.result == Conformance::Kept), "{clean:#?}");
        assert!(clean.len() >= 60, "{}", clean.len());
        let ids: BTreeSet<&str> = clean.iter().map(|check| check.id).collect();
        assert_eq!(ids.len(), clean.len());
        for (id, run) in runs {
            let found = run.await.unwrap();
            assert!(broken(&found).contains(&id), "{id}: {:?}", broken(&found));
        }
    }
}
