//! Writes a case as a conversation or as a scenario.

use model::{
    Arguments, AssertionScope, AssertionSpec, Case, Quarantine, RunnerOptions, Skill, Subject, Trials, UserMessage,
};
use serde_json::{Map, Value, json};

use super::WrittenFormat;
use super::document::Document;
use super::parts::Parts;

/// Types of assertions about what the agent left behind, which are the same for a reply and for the whole trial.
const ABOUT_STATE: [&str; 14] = [
    "command",
    "tests_pass",
    "reward",
    "file_exists",
    "file_not_exists",
    "file_contains",
    "file_not_contains",
    "file_unchanged",
    "valid_json",
    "json_path",
    "json_path_not_exists",
    "git_clean",
    "integrity_clean",
    "side_effect_contract",
];

/// Writes a case. The error is the reason why the format cannot say what it has.
pub(super) fn write(case: &Case, format: WrittenFormat, parts: &mut Parts<'_>) -> Result<Document, String> {
    // Each field is written, was refused before, or belongs to formats that are not written.
    let Case {
        id,
        source: _,
        description,
        tags,
        subject,
        definition: _,
        messages,
        tools,
        code: _,
        user,
        runner,
        max_turns,
        warn_turns: _,
        token_budget,
        timeout_ms,
        trials,
        pass_rate,
        required_isolation,
        network,
        graded,
        needs_image: _,
        canaries,
        faults,
        mocks,
        remote,
        fixtures,
        user_responses,
        assertions,
        must_assert: _,
        ruling: _,
        skip,
        quarantine,
        broken: _,
        fails_alone: _,
        reruns,
        expected: _,
        expected_trace: _,
        expected_schema: _,
        log_vars: _,
        table: _,
        position: _,
        system_prompt: _,
        history: _,
        indicators: _,
        ends_when_triggered,
        skill_eval,
        variants,
    } = case;
    let is_conversation = format == WrittenFormat::Conversation;
    for (has, what) in [
        (user.is_some(), "a user that a model plays"),
        (canaries.is_some(), "canaries"),
        (!faults.is_empty(), "faults"),
        (remote.is_some(), "a remote"),
        (!tools.is_empty(), "tools"),
        (pass_rate.is_some(), "a pass rate"),
        (!mocks.commands.is_empty(), "mocked programs"),
        (skill_eval.is_some() || *ends_when_triggered, "an expectation about a skill"),
        (!variants.is_empty(), "variants"),
        (!is_conversation && (skip.is_some() || reruns.is_some()), "`skip` or `reruns`"),
    ] {
        if has {
            return Err(format!("it has {what}"));
        }
    }
    let mut document = Document::default();
    document.field(if is_conversation { "id" } else { "scenario" }, &json!(id));
    document.field_if("description", description.as_deref());
    document.field_unless_empty("tags", &json!(tags));
    match subject {
        Subject::Skill(skill) => document.field("skill", &json!(skill.name)),
        Subject::Prompt(prompt) => document.field("system_prompt", &json!(body_of(prompt))),
        Subject::Installed(_) | Subject::Agent => {}
    }
    document.field_if("max_turns", *max_turns);
    document.field_if("token_budget", *token_budget);
    document.field_if("timeout", timeout_ms.map(|ms| format!("{ms}ms")));
    document.field_if("trials", trials.as_ref().map(trials_of));
    document.field_if("reruns", *reruns);
    document.field_if("skip", skip.as_deref());
    document.field_if("quarantine", quarantine.as_ref().map(quarantine_of));
    document.field_unless_empty("runner", &runner_of(runner));
    document.field_unless_empty("fixtures", &parts.fixtures(fixtures));
    document.field_unless_empty("graded", &parts.graded(graded));
    let mut sandbox = Map::new();
    if !required_isolation.is_empty() {
        sandbox.insert("require".to_owned(), json!(required_isolation));
    }
    if let Some(network) = network {
        sandbox.insert("network".to_owned(), network_of(network));
    }
    document.field_unless_empty("sandbox", &Value::Object(sandbox));
    document.field_unless_empty("mcp_servers", &parts.servers(&mocks.servers)?);
    let responses = user_responses.iter();
    let responses: Vec<Value> = responses
        .map(|response| json!({ "match_question": response.match_question.value, "choose": response.choose }))
        .collect();
    document.field_unless_empty("user_responses", &json!(responses));
    let texts = messages.iter().map(text_of).collect::<Result<Vec<&str>, String>>()?;
    if is_conversation {
        let mut turns: Vec<Map<String, Value>> =
            texts.iter().map(|text| Map::from_iter([("says".to_owned(), json!(text))])).collect();
        let mut whole = Vec::new();
        for spec in assertions {
            let entry = assertion(spec)?;
            let is_same = turns.len() < 2 || ABOUT_STATE.contains(&spec.kind.value.as_str());
            match spec.about {
                AssertionScope::Reply(number) => match turns.get_mut(number.wrapping_sub(1)) {
                    Some(turn) => {
                        let expected = turn.entry("expect").or_insert_with(|| json!([]));
                        expected.as_array_mut().into_iter().for_each(|list| list.push(entry.clone()));
                    }
                    None => return Err(format!("the assertion `{}` is about a reply that does not exist", spec.id)),
                },
                AssertionScope::LastReply => whole.push(entry),
                AssertionScope::Trial if is_same => whole.push(entry),
                AssertionScope::Trial => {
                    return Err(format!("the assertion `{}` is about all replies of the conversation", spec.id));
                }
            }
        }
        let turns: Vec<Value> = turns.into_iter().map(Value::Object).collect();
        document.field("turns", &json!(turns));
        document.field_unless_empty("assertions", &json!(whole));
    } else {
        document.field_unless_empty("user_prompts", &json!(texts));
        if let Some(spec) = assertions.iter().find(|spec| spec.about != AssertionScope::Trial) {
            return Err(format!("the assertion `{}` is about one reply", spec.id));
        }
        let entries = assertions.iter().map(assertion).collect::<Result<Vec<Value>, String>>()?;
        document.field_unless_empty("assertions", &json!(entries));
    }
    Ok(document)
}

fn body_of(prompt: &Skill) -> &str {
    &prompt.body
}

fn text_of(message: &UserMessage) -> Result<&str, String> {
    let UserMessage { text, input: _, script, persona, tools, vars, options } = message;
    let is_plain = script.is_none() && persona.is_empty() && tools.is_empty() && options.is_empty();
    // Variables are for scripts and templates, and the text is rendered.
    let _ = vars;
    if is_plain { Ok(text) } else { Err("a message has more than its text".to_owned()) }
}

fn trials_of(trials: &Trials) -> Value {
    match trials {
        Trials::Fixed(number) => json!(number),
        Trials::Auto { most } => json!(format!("auto:{most}")),
    }
}

fn quarantine_of(quarantine: &Quarantine) -> Value {
    serde_json::to_value(quarantine).unwrap_or(Value::Bool(true))
}

pub(super) fn runner_of(runner: &RunnerOptions) -> Value {
    let RunnerOptions {
        agent,
        model,
        model_source: _,
        permission_mode,
        allowed_tools_override,
        setting_sources,
        reasoning_effort,
    } = runner;
    let mut map = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        map.extend(value.map(|value| (key.to_owned(), value)));
    };
    put("agent", agent.as_ref().map(|(name, _)| json!(name)));
    put("model", model.as_ref().map(|model| json!(model)));
    put("permission_mode", permission_mode.map(|mode| json!(mode.name())));
    put("allowed_tools_override", allowed_tools_override.as_ref().map(|tools| json!(tools)));
    let sources: Vec<&str> = setting_sources.iter().map(|source| source.name()).collect();
    put("setting_sources", (!sources.is_empty()).then(|| json!(sources)));
    put("reasoning_effort", reasoning_effort.as_ref().map(|effort| json!(effort)));
    Value::Object(map)
}

fn network_of(network: &model::NetworkPolicy) -> Value {
    match network {
        model::NetworkPolicy::Allow(hosts) => {
            json!({ "allow": hosts.iter().map(ToString::to_string).collect::<Vec<_>>() })
        }
        named => json!(named.to_string()),
    }
}

/// Returns an assertion as it is written in a conversation or a scenario.
fn assertion(spec: &AssertionSpec) -> Result<Value, String> {
    let AssertionSpec { node, arguments, about: _, id, kind, weight } = spec;
    let kind = kind.value.as_str();
    if node.tag.is_some() {
        let of_promptfoo = (kind == "promptfoo").then(|| promptfoo(spec)).flatten();
        return of_promptfoo.ok_or_else(|| format!("only its own format has the assertion `{id}`"));
    }
    let mut map = Map::new();
    map.insert("id".to_owned(), json!(id));
    match arguments {
        Arguments::Fields => {
            map.insert("type".to_owned(), json!(kind));
            let Value::Object(fields) = node.to_json() else {
                return Err(format!("the assertion `{id}` is not a map"));
            };
            map.extend(fields.into_iter().filter(|(key, _)| !["id", "type", "weight"].contains(&key.as_str())));
        }
        Arguments::Brief(value) => {
            map.insert(kind.to_owned(), value.to_json());
        }
        Arguments::Listed(_) => return Err(format!("the assertion `{id}` is written in code")),
    }
    if (weight - 1.0).abs() > f64::EPSILON {
        map.insert("weight".to_owned(), json!(weight));
    }
    Ok(Value::Object(map))
}

/// Returns an assertion of promptfoo about text as one about a pattern. `None` if there is none with the same verdicts.
fn promptfoo(spec: &AssertionSpec) -> Option<Value> {
    let assertion = spec.node.get("assertion")?;
    let is_list = |node: &model::Node| matches!(&node.kind, model::NodeKind::List(items) if !items.is_empty());
    if ["transform", "threshold"].iter().any(|key| assertion.get(key).is_some())
        || spec.node.get("transforms").is_some_and(is_list)
    {
        return None;
    }
    let kind = assertion.get("type")?.as_str()?;
    let value = assertion.get("value")?.as_str().filter(|text| !text.is_empty())?;
    let (bare, wanted) = kind.strip_prefix("not-").map_or((kind, true), |bare| (bare, false));
    let pattern = match bare {
        "contains" => escaped(value),
        "icontains" => format!("(?i){}", escaped(value)),
        _ => return None,
    };
    let kind = if wanted { "output_contains" } else { "no_output_contains" };
    Some(json!({ "id": spec.id, "type": kind, "pattern": pattern, "weight": spec.weight }))
}

/// Returns a pattern that matches `text` itself.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut pattern, letter| {
        if "\\^$.|?*+()[]{}/".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
        pattern
    })
}
