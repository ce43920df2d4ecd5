//! Compares how we read recorded streams and bills with how other programs read them. Intended differences are listed
//! with their reasons.

use std::collections::BTreeMap;
use std::sync::Arc;

use llm::{Credentials, ListPrices, Policy, Prices, Providers};
use model::{Node, PermissionMode, Source, Step, Trace, Usage};
use sandbox::Host;
use serde_json::{Value, json};
use testkit::vectors::{Vector, compare};

use crate::pricing::Pricing;
use crate::{Agent, claude_code, codex, find, opencode};
use sandbox::supervise::Supervisor;

const PARSE_OUTPUT: &str = include_str!("../../tests/vectors/agent-skill-eval/parse_output.jsonl");
const BUILD_COMMAND: &str = include_str!("../../tests/vectors/agent-skill-eval/build_command.jsonl");
const RECONCILE: &str = include_str!("../../tests/vectors/agent-skill-eval/openrouter_reconcile.jsonl");
const SLUGS: &str = include_str!("../../tests/vectors/agent-skill-eval/slug_candidates.jsonl");
const PRICING: &str = include_str!("../../tests/vectors/agent-skill-eval/pricing.json");
const DIFFERENCES: &str = include_str!("../../tests/vectors/agent-skill-eval/differences.json");

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn providers(pricing: &Value) -> Result<Providers, String> {
    let node = Node::from_json(pricing, &Source::new("pricing.json", ""));
    let prices = Prices::from_node(&node).map_err(|problems| problems[0].to_string())?;
    Ok(Providers::new(Credentials::default(), prices, Policy::default()))
}

/// Returns the recorded prices, without the model whose price is invalid: that model is an error in the file.
fn priced() -> Providers {
    let mut pricing: Value = serde_json::from_str(PRICING).unwrap();
    assert!(providers(&pricing).unwrap_err().contains("US dollars"));
    pricing.as_object_mut().unwrap().remove("junk");
    providers(&pricing).unwrap()
}

/// Rounds a number, because its last bits do not matter.
fn rounded(value: &Value) -> Value {
    value.as_f64().map_or_else(|| value.clone(), |number| json!(format!("{number:.12}")))
}

fn steps(agent: &str, stdout: &str) -> Vec<Step> {
    match agent {
        // `--output-format json` prints the event that ends the stream.
        "claude" => {
            let line = serde_json::from_str(stdout).ok().filter(Value::is_object).map(|mut line: Value| {
                line["type"] = json!("result");
                line.to_string()
            });
            claude_code::tests::steps(line.as_deref().unwrap_or(stdout))
        }
        "codex" => codex::tests::steps(stdout),
        _ => opencode::tests::steps(&stdout.lines().map(whole).collect::<Vec<_>>().join("\n")),
    }
}

/// Adds the type to the part in an OpenCode event, as in real events.
fn whole(line: &str) -> String {
    let Ok(mut event) = serde_json::from_str::<Value>(line) else { return line.to_owned() };
    let kind = event["type"].as_str().unwrap_or_default().replace('_', "-");
    if let Some(part) = event["part"].as_object_mut() {
        part.insert("type".into(), json!(kind));
    }
    event.to_string()
}

/// Reads a stream as text and numbers, as in the recordings. Unknown values are 0, as there.
fn read(agent: &str, model: Option<&str>, stdout: &str) -> Value {
    let mut pricing = Pricing::of_program(priced(), model, None);
    let mut trace = Trace::default();
    for mut step in steps(agent, stdout) {
        if let Step::Finished { usage, .. } = &mut step {
            pricing.settle(usage, None);
        }
        trace.push(&step);
    }
    let tokens = trace.usage.tokens.unwrap_or_default();
    // Only Codex's input includes cached tokens.
    let cached = if agent == "codex" { tokens.cache_read + tokens.cache_write } else { 0 };
    let bill = pricing.bill();
    json!({
        "text": trace.answer.unwrap_or_default(),
        "input": tokens.input + cached,
        "output": tokens.output,
        "cached": tokens.cache_read,
        "cache_creation": tokens.cache_write,
        "non_cached_input": tokens.input,
        "reasoning": tokens.reasoning.filter(|count| *count > 0),
        "cost": rounded(&json!(trace.usage.cost_usd)),
        "source": trace.usage.cost_usd.and(bill.source),
        "cost_cli": bill.reported_usd,
    })
}

fn parse_output() -> Vec<Vector> {
    let vector = |vector: Value| {
        let (agent, stdout) = (vector["agent"].as_str().unwrap(), vector["stdout"].as_str().unwrap());
        let timing = &vector["result"]["timing"];
        let recorded = match timing {
            Value::Null => json!("raises"),
            timing => json!({
                "text": vector["result"]["text"],
                "input": timing["input_tokens"],
                "output": timing["output_tokens"],
                "cached": timing["cached_tokens"],
                "cache_creation": timing["cache_creation_tokens"],
                "non_cached_input": timing["non_cached_input_tokens"],
                "reasoning": timing["reasoning_output_tokens"].as_u64().filter(|count| *count > 0),
                "cost": rounded(&timing["cost_usd"]),
                "source": timing["cost_usd_source"],
                "cost_cli": timing["cost_usd_cli"],
            }),
        };
        let beginning: String = stdout.chars().take(60).collect();
        let model = vector["model"].as_str();
        let name = format!("parse: {agent}, {}: {beginning}", model.unwrap_or("-"));
        (name, recorded, read(agent, model, stdout))
    };
    lines(PARSE_OUTPUT).into_iter().map(vector).collect()
}

/// Compares properties of recorded command lines with those of our agents.
fn build_command() -> Vec<Vector> {
    let vectors = |vector: Value| {
        let argv: Vec<&str> = vector["argv"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        let agent: &dyn Agent = find(vector["agent"].as_str().unwrap()).unwrap().0;
        let effort = vector["effort"].as_str();
        let name =
            |what: &str| format!("command: {}, {}, {}: {what}", agent.name(), vector["model"], effort.unwrap_or("-"));
        let confined = argv.contains(&"workspace-write");
        let is_passed = effort.is_some_and(|effort| argv.iter().any(|word| word.contains(effort)));
        [
            (
                name("confined"),
                json!(confined),
                json!(agent.description().evaluation_mode != PermissionMode::BypassPermissions),
            ),
            (
                name("effort"),
                json!(is_passed),
                json!(
                    effort
                        .is_some_and(|effort| agent.description().efforts.is_none_or(|known| known.contains(&effort)))
                ),
            ),
            // The tests of each launch check that the command line does not contain the prompt.
            (name("prompt is an argument"), json!(argv.last() == Some(&"PROMPT")), json!(false)),
        ]
    };
    lines(BUILD_COMMAND).into_iter().flat_map(vectors).collect()
}

/// Compares the recorded bills with ours, computed from the same prices.
fn reconcile() -> Vec<Vector> {
    let list = ListPrices::parse(&json!({"data": [
        {"id": "anthropic/claude-haiku-4.5", "pricing": {"prompt": "0.000001", "completion": "0.000005",
            "input_cache_read": "0.0000001", "input_cache_write": "0.00000125"}},
        {"id": "anthropic/free", "pricing": {"prompt": "0", "completion": "0"}},
    ]}));
    let list = Arc::new(list.unwrap());
    let pricing = json!({"haiku": {"prompt": 1e-6, "completion": 1e-6}});
    let supervisor = Supervisor::unchecked("/none").unwrap();
    let host = Host { env: BTreeMap::new(), home: None, temp: std::env::temp_dir(), supervisor };
    let vector = |vector: Value| {
        let (base_url, model) = (vector["base_url"].as_str(), vector["model"].as_str());
        let is_billed = claude_code::ClaudeCode.is_billed_by_openrouter(&host, base_url);
        let mut pricing =
            Pricing::of_program(providers(&pricing).unwrap(), model, is_billed.then(|| Some(Arc::clone(&list))));
        let tokens = model::Tokens { input: 10, output: 20, cache_read: 300, cache_write: 40, reasoning: None };
        let mut usage = Usage { tokens: Some(tokens), cost_usd: vector["cli_cost"].as_f64() };
        pricing.settle(&mut usage, None);
        let bill = pricing.bill();
        let now = json!({"cost": rounded(&json!(usage.cost_usd)), "source": usage.cost_usd.and(bill.source)});
        let recorded = json!({"cost": rounded(&vector["cost_usd"]), "source": vector["source"]});
        let name = format!("bill: {}, {}, {}", vector["base_url"], vector["model"], vector["cli_cost"]);
        (name, recorded, now)
    };
    lines(RECONCILE).into_iter().map(vector).collect()
}

fn slugs() -> Vec<Vector> {
    let vector = |vector: Value| {
        let now = json!(llm::slug_candidates(vector["in"].as_str().unwrap()));
        (format!("slug: {}", vector["in"]), vector["out"].clone(), now)
    };
    lines(SLUGS).into_iter().map(vector).collect()
}

#[test]
fn every_vector_agrees_or_is_listed_with_its_reason() {
    let vectors = [parse_output(), build_command(), reconcile(), slugs()].concat();
    compare("streams and bills of agents", DIFFERENCES, &vectors);
}

#[test]
fn null_telemetry_is_unknown_and_not_an_error() {
    let usage = |steps: &[Step]| Trace::of(steps).usage;
    for result in [
        json!({"result": null, "usage": null, "total_cost_usd": null, "modelUsage": null}),
        json!({"result": "hi", "usage": {"input_tokens": null, "output_tokens": null}, "modelUsage": {}}),
        json!({"result": "hi", "model_usage_since_last_result": null, "usage": []}),
    ] {
        let mut line = result;
        line["type"] = json!("result");
        line["subtype"] = json!("success");
        assert_eq!(usage(&steps("claude", &line.to_string())), Usage::default(), "{line}");
    }
    for completed in [json!(null), json!({}), json!({"input_tokens": null, "output_tokens": null}), json!([1])] {
        let line = json!({"type": "turn.completed", "usage": completed});
        assert_eq!(usage(&steps("codex", &line.to_string())), Usage::default(), "{line}");
    }
    assert_eq!(steps("codex", "[1]\nnull\n5\n\"x\"\n{}").len(), 0);
    for part in [json!(null), json!({"tokens": null, "cost": null}), json!({"tokens": {"input": null, "cache": null}})]
    {
        let line = json!({"type": "step_finish", "part": part});
        assert_eq!(usage(&steps("opencode", &line.to_string())), Usage::default(), "{line}");
    }
    for nulls in [
        json!({"type": "text", "part": {"text": null}}),
        json!({"type": "tool_use", "part": null}),
        json!({"type": "error", "error": null}),
    ] {
        let _ = steps("opencode", &nulls.to_string());
    }
}
