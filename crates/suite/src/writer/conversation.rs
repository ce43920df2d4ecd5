//! Writes a case as a conversation or as a scenario.

use model::{
    Arguments, AssertionScope, AssertionSpec, Case, McpServer, Quarantine, RunnerOptions, SideEffectLevel, Skill,
    SkillEval, Subject, Trials, UserMessage,
};
use serde_json::{Map, Value, json};

use super::document::Document;
use super::parts::Parts;
use super::{WrittenFormat, graders, threshold};

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
        tools_source: _,
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
        isolation_source: _,
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
        only: _,
        quarantine,
        broken: _,
        fails_alone: _,
        reruns,
        expected,
        expected_trace: _,
        expected_schema: _,
        log_vars: _,
        table: _,
        position: _,
        system_prompt,
        history: _,
        indicators,
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
        (*ends_when_triggered, "an end with the use of a skill"),
        (skill_eval.as_ref().is_some_and(|eval| !is_plain(eval)), "more than a skill that should be used or not"),
        (!variants.is_empty(), "variants"),
        (expected.is_some() && skill_eval.is_some(), "an expected output"),
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
        Subject::Installed(skill) => match &skill.directory {
            Some(directory) => document.field("install", &json!(parts.path_to(directory))),
            None => return Err("its skill is not in a file".to_owned()),
        },
        Subject::Agent => {}
    }
    document.field_if("should_trigger", skill_eval.as_ref().map(|eval| eval.should_trigger));
    document.field_unless_empty("indicators", &json!(indicators));
    document.field_if("append_system_prompt", system_prompt.as_deref());
    document.field_if("threshold", threshold(case));
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
    document.field_unless_empty("mcp_servers", &parts.servers(&servers_besides_plugin(case)?)?);
    let responses = user_responses.iter();
    let responses: Vec<Value> = responses
        .map(|response| json!({ "match_question": response.match_question.value, "choose": response.choose }))
        .collect();
    document.field_unless_empty("user_responses", &json!(responses));
    let texts = messages.iter().map(text_of).collect::<Result<Vec<&str>, String>>()?;
    let mut entries = Vec::new();
    for spec in assertions {
        if spec.weight <= 0.0 && (case.ruling.scoring.is_some() || spec.kind.value == "promptfoo") {
            document.comment(&format!("Not written, because it has no weight: `{}`", spec.id));
            continue;
        }
        entries.extend(self::entries(spec, case.ruling.scoring.is_some())?.into_iter().map(|entry| (spec, entry)));
    }
    if is_conversation {
        let mut turns: Vec<Map<String, Value>> =
            texts.iter().map(|text| Map::from_iter([("says".to_owned(), json!(text))])).collect();
        let mut whole = Vec::new();
        for (spec, entry) in &entries {
            let is_same = turns.len() < 2 || ABOUT_STATE.contains(&spec.kind.value.as_str());
            let entry = entry.clone();
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
        let entries: Vec<Value> = entries.into_iter().map(|(_, entry)| entry).collect();
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
        places: _,
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

/// Returns `true` if an expectation about a skill is only whether it should be used.
fn is_plain(eval: &SkillEval) -> bool {
    let SkillEval { should_trigger: _, invocation, side_effect_level, contract, scripts: _ } = eval;
    invocation.is_none() && contract.is_none() && *side_effect_level == SideEffectLevel::default()
}

/// Returns the servers of a case besides those that its plug-in starts.
///
/// # Errors
/// Returns the reason if the case lacks one of them.
fn servers_besides_plugin(case: &Case) -> Result<Vec<McpServer>, String> {
    let servers = &case.mocks.servers;
    let of_plugin = case.subject.installed().and_then(|skill| skill.plugin.as_ref()).map(|plugin| &plugin.servers);
    if let Some(missing) = of_plugin.into_iter().flatten().find(|own| !servers.iter().any(|one| one.name == own.name)) {
        return Err(format!("it does not start the MCP server `{}` of its plug-in", missing.name));
    }
    let is_of_plugin = |server: &&McpServer| of_plugin.is_some_and(|own| own.contains(server));
    Ok(servers.iter().filter(|server| !is_of_plugin(server)).cloned().collect())
}

/// Returns the entries for an assertion as they are written in a conversation or a scenario. `is_scored` is true if weights
/// decide.
fn entries(spec: &AssertionSpec, is_scored: bool) -> Result<Vec<Value>, String> {
    let AssertionSpec { node, arguments, about: _, id, kind, weight } = spec;
    let kind = kind.value.as_str();
    if node.tag.is_some() {
        let of_tool = match kind {
            "promptfoo" => graders::of_promptfoo(spec).map(|entry| vec![entry]),
            // The parts of a grader together have its weight.
            _ => graders::of_checks(spec).filter(|entries| entries.len() == 1 || !is_scored),
        };
        let weigh = |mut entry: Value| {
            if is_scored && (weight - 1.0).abs() > f64::EPSILON {
                entry["weight"] = json!(weight);
            }
            entry
        };
        let entries = of_tool.ok_or_else(|| format!("only its own format has the assertion `{id}`"))?;
        return Ok(entries.into_iter().map(weigh).collect());
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
    if *weight > 0.0 && (weight - 1.0).abs() > f64::EPSILON {
        map.insert("weight".to_owned(), json!(weight));
    }
    Ok(vec![Value::Object(map)])
}
