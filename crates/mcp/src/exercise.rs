//! Calls of a server's tools: with generated arguments, and to see if its tools stay the same.

use std::collections::HashSet;
use std::time::Duration;

use model::nearest;
use model::text::shortened;
use serde_json::{Value, json};

use crate::client::{Client, Options};
use crate::definition;
use crate::era::Era;
use crate::exchange::{Answer, Exchange, Failure, Unchecked, text_of};
use crate::fuzz::{Input, inputs};
use crate::protocol::Connector;
use crate::rule::{Report, SchemaCheck, Tier};
use crate::safety;
use crate::tool_list::{ToolList, ToolListLimits};

/// Maximum number of times that a server is started again because it ended or did not answer.
const MAX_RESTARTS: usize = 5;

/// Parts of texts in which a program shows where it failed.
const STACK_TRACES: [&str; 7] = [
    "Traceback (most recent call last)",
    "\n    at ",
    "panicked at",
    "goroutine 1 [",
    "Exception in thread",
    "NullPointerException",
    "Segmentation fault",
];

/// Options of calls with generated arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct FuzzOptions {
    /// Seed of the arguments.
    pub seed: u64,
    /// Maximum number of inputs for each tool.
    pub inputs: usize,
    /// The only tools that are called; `None` for all that do not say that they are destructive.
    pub only: Option<Vec<String>>,
    /// Tools that are not called.
    pub except: Vec<String>,
    /// Time after which the server counts as hanging.
    pub limit: Duration,
}

impl Default for FuzzOptions {
    fn default() -> Self {
        Self { seed: 1, inputs: 40, only: None, except: Vec::new(), limit: Duration::from_secs(10) }
    }
}

impl FuzzOptions {
    fn chooses(&self, tool: &Value) -> bool {
        let name = tool["name"].as_str().unwrap_or_default();
        let is_chosen = match &self.only {
            Some(only) => only.iter().any(|chosen| chosen == name),
            None => !is_destructive(tool),
        };
        is_chosen && !self.except.iter().any(|left| left == name)
    }
}

/// Options of the check of what a server says to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct SafetyOptions {
    /// Number of calls after which the tools must still be the same.
    pub calls: usize,
    /// Tools that are not called.
    pub except: Vec<String>,
    /// Time limit for a call.
    pub limit: Duration,
    /// Limits on the list of tools.
    pub most: ToolListLimits,
}

impl Default for SafetyOptions {
    fn default() -> Self {
        Self { calls: 5, except: Vec::new(), limit: Duration::from_secs(10), most: ToolListLimits::default() }
    }
}

fn is_destructive(tool: &Value) -> bool {
    tool["annotations"]["destructiveHint"] == true && tool["annotations"]["readOnlyHint"] != true
}

/// Connects to a server in the era that it speaks. A program that ends at the first message of the newer era is started
/// again.
///
/// # Errors
/// Returns an error if the server cannot be started, or does not open a connection.
pub async fn open(connector: &mut dyn Connector, options: &Options) -> Result<Client, Unchecked> {
    let not_started = Unchecked::NotStarted;
    let transport = connector.connect().await.map_err(not_started)?;
    match Client::connect(transport, options.clone()).await {
        Err(Failure::Ended) if options.era.is_none() => {
            let transport = connector.connect().await.map_err(not_started)?;
            let options = Options { era: Some(Era::Sessions), ..options.clone() };
            Client::connect(transport, options).await.map_err(Unchecked::Server)
        }
        connected => connected.map_err(Unchecked::Server),
    }
}

/// Refuses names in `only` that no tool has, and names in `except` that are nearly those of tools, which would be called.
fn refuse_unknown(tools: &[Value], only: &[String], except: &[String]) -> Result<(), Unchecked> {
    let known = || tools.iter().filter_map(|tool| tool["name"].as_str());
    for (key, names) in [("only", only), ("except", except)] {
        for name in names.iter().filter(|name| !known().any(|known| known == name.as_str())) {
            let near = nearest(name, known());
            if near.is_some() || key == "only" {
                let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                let reason = format!("`{key}` has `{name}`, which is not a tool of the server{near}");
                return Err(Unchecked::Options(reason));
            }
        }
    }
    Ok(())
}

async fn tools(client: &mut Client) -> Result<Vec<Value>, Unchecked> {
    client.tools().await.map_err(Unchecked::Server)
}

/// Observations of calls with generated arguments.
#[derive(Default)]
struct Observations {
    calls: usize,
    crashes: Vec<String>,
    hangs: Vec<String>,
    malformed: Vec<String>,
    accepted: Vec<String>,
    refused: Vec<String>,
    internal: Vec<String>,
    traces: Vec<String>,
    outputs: Vec<String>,
    results: Vec<String>,
    /// Results that were checked, because many are equal and a check takes long.
    checked: HashSet<String>,
}

/// Calls tools with generated arguments. Arguments that the schema does not allow must be errors, and no arguments may
/// crash the server.
///
/// # Errors
/// Returns an error if the server cannot be used at all.
pub async fn check_fuzz(
    connector: &mut dyn Connector,
    fuzz: &FuzzOptions,
    options: &Options,
    schemas: SchemaCheck,
) -> Result<Report, Unchecked> {
    let mut client = open(connector, options).await?;
    let tools = tools(&mut client).await?;
    refuse_unknown(&tools, fuzz.only.as_deref().unwrap_or_default(), &fuzz.except)?;
    let mut seen = Observations::default();
    let mut restarts = 0;
    'tools: for tool in tools.iter().filter(|tool| fuzz.chooses(tool)) {
        let name = tool["name"].as_str().unwrap_or_default();
        for input in inputs(&tool["inputSchema"], fuzz.seed, fuzz.inputs) {
            seen.calls += 1;
            let id = client.begin_call(name, &input.arguments, false);
            let outcome = client.finish(id, fuzz.limit).await;
            let era = client.era();
            if seen.take(tool, &input, outcome, era, schemas) {
                continue;
            }
            restarts += 1;
            if restarts > MAX_RESTARTS {
                break 'tools;
            }
            client.cancel(id, "no answer in time");
            client = open(connector, options).await?;
        }
    }
    let usable = client.tools().await.err().map(|failure| format!("`tools/list` afterwards: {failure}"));
    seen.crashes.extend(usable.filter(|_| restarts <= MAX_RESTARTS));
    client.close().await;
    Ok(seen.report())
}

impl Observations {
    /// Takes the outcome of a call. Returns `false` if the server must be started again.
    fn take(
        &mut self,
        tool: &Value,
        input: &Input,
        outcome: Result<Exchange, Failure>,
        era: Era,
        schemas: SchemaCheck,
    ) -> bool {
        let name = tool["name"].as_str().unwrap_or_default();
        let at = format!("`{name}`, {}: {}", input.about, shortened(&input.arguments.to_string(), 120));
        let exchange = match outcome {
            Ok(exchange) => exchange,
            Err(Failure::TimedOut(limit)) => {
                self.hangs.push(format!("{at}: no answer within {} s", limit.as_secs_f64()));
                return false;
            }
            Err(Failure::Malformed(what)) => {
                self.malformed.push(format!("{at}: {what}"));
                return true;
            }
            Err(Failure::Http { status, .. }) if (400..500).contains(&status) => return true,
            Err(failure) => {
                self.crashes.push(format!("{at}: {failure}"));
                return false;
            }
        };
        let is_valid = schemas(&tool["inputSchema"], &input.arguments).map(|errors| errors.is_empty());
        let text = match (&exchange.answer.as_result(), &exchange.result()) {
            (Some(result), _) => text_of(result),
            (None, Err(failure)) => failure.to_string(),
            (None, Ok(_)) => String::new(),
        };
        let is_error = exchange.answer.code().is_some() || exchange.answer.is_tool_error();
        if is_valid == Ok(false) && !is_error {
            self.accepted.push(format!("{at}: {}", shortened(&text, 80)));
        }
        if is_valid == Ok(true) && exchange.answer.code() == Some(-32602) {
            self.refused.push(format!("{at}: {}", shortened(&text, 80)));
        }
        if exchange.answer.code() == Some(-32603) {
            self.internal.push(format!("{at}: {}", shortened(&text, 80)));
        }
        if is_error && STACK_TRACES.iter().any(|trace| text.contains(trace)) {
            self.traces.push(format!("{at}: {}", shortened(&text, 120)));
        }
        if let Some(result) = exchange.answer.as_result()
            && self.checked.insert(result.to_string())
        {
            let is_input = result["resultType"] == "input_required";
            let definition = if is_input { "InputRequiredResult" } else { "CallToolResult" };
            let errors = definition::errors(era, definition, result, schemas);
            self.results.extend(errors.into_iter().take(1).map(|error| format!("{at}: {error}")));
            if !is_input {
                self.outputs.extend(
                    output_errors(tool, result, schemas).into_iter().take(1).map(|error| format!("{at}: {error}")),
                );
            }
        }
        true
    }

    fn report(self) -> Report {
        use Tier::{Advisory, Mandatory};
        let mut report = Report::default();
        let rules = [
            (Mandatory, "no_crash", "the server does not end because of arguments", self.crashes),
            (Mandatory, "no_hang", "each call is answered in time", self.hangs),
            (Mandatory, "well_formed", "each answer has the form of a response", self.malformed),
            (Mandatory, "invalid_arguments", "arguments that the schema does not allow are errors", self.accepted),
            (Mandatory, "valid_arguments", "arguments that the schema allows are not refused as invalid", self.refused),
            (Mandatory, "results", "results have the form that the protocol requires", self.results),
            (Mandatory, "outputs", "structured content satisfies the output schema", self.outputs),
            (Advisory, "internal_errors", "arguments do not cause internal errors", self.internal),
            (Advisory, "stack_traces", "errors do not show the code of the server", self.traces),
        ];
        for (tier, id, rule, problems) in rules {
            if self.calls == 0 {
                report.skip(tier, id, rule, "there is no tool to call");
            } else {
                report.none(tier, id, rule, problems);
            }
        }
        report
    }
}

/// Returns what is wrong with the structured content of a result.
pub fn output_errors(tool: &Value, result: &Value, schemas: SchemaCheck) -> Vec<String> {
    let Some(schema) = tool.get("outputSchema").filter(|_| result["isError"] != true) else { return Vec::new() };
    match result.get("structuredContent") {
        None => vec!["there is an output schema, but no structured content".to_owned()],
        Some(content) => schemas(schema, content).unwrap_or_else(|reason| vec![reason]),
    }
}

/// Returns what is wrong with the form of an answer to a call of a tool.
pub fn answer_errors(era: Era, answer: &Answer, schemas: SchemaCheck) -> Vec<String> {
    match answer {
        Answer::Error { error, .. } => definition::errors(era, "Error", error, schemas),
        Answer::Result(result) => definition::errors(era, "CallToolResult", result, schemas),
    }
}

/// Checks what a server says to a model, and that its tools stay the same over several calls and in another connection. Also
/// returns the size of the list of tools.
///
/// # Errors
/// Returns an error if the server cannot be used at all.
pub async fn check_safety(
    connector: &mut dyn Connector,
    asked: &SafetyOptions,
    options: &Options,
) -> Result<(Report, ToolList), Unchecked> {
    use Tier::Mandatory;
    let SafetyOptions { calls, except, limit, most } = asked;
    let mut report = Report::default();
    let mut client = open(connector, options).await?;
    let first = tools(&mut client).await?;
    refuse_unknown(&first, &[], except)?;
    safety::check_texts(client.server(), &first, &mut report);
    let list = ToolList::of(&first);
    list.check(most, &mut report);
    let callable: Vec<(&str, Value)> = first
        .iter()
        .filter(|tool| !is_destructive(tool))
        .filter(|tool| !except.iter().any(|left| tool["name"] == left.as_str()))
        .filter_map(|tool| {
            let plain = inputs(&tool["inputSchema"], 1, 1).into_iter().next()?;
            Some((tool["name"].as_str()?, plain.arguments))
        })
        .collect();
    let mut changed = Vec::new();
    let mut said = Vec::new();
    for number in 0..*calls {
        if let Some((name, arguments)) = callable.get(number % callable.len().max(1)) {
            let id = client.begin_call(name, arguments, false);
            if let Ok(exchange) = client.finish(id, *limit).await
                && let Some(result) = exchange.answer.as_result()
                && let Some(what) = safety::suspicious(&text_of(result))
            {
                said.push(format!("`{name}`: {what}"));
            }
        }
        let now = match client.tools().await {
            Ok(now) => now,
            Err(failure) => {
                changed.push(format!("after {} calls: {failure}", number + 1));
                break;
            }
        };
        if let Some(difference) = safety::difference(&first, &now) {
            let is_announced =
                client.take_heard().iter().any(|message| message["method"] == "notifications/tools/list_changed");
            let how = if is_announced { ", which the server announced" } else { "" };
            changed.push(format!("after {} calls: {difference}{how}", number + 1));
            break;
        }
    }
    client.close().await;
    report.none(Mandatory, "same_tools", "the tools stay the same while they are called", changed);
    report.none(Mandatory, "results_with_instructions", "results have no instructions and no hidden text", said);
    let mut again = open(connector, options).await?;
    let second = tools(&mut again).await?;
    again.close().await;
    let rule = "the tools are the same in another connection";
    report.none(Mandatory, "same_tools_again", rule, safety::difference(&first, &second));
    Ok((report, list))
}

/// Returns the contract of a server, for a file.
///
/// # Errors
/// Returns an error if the server cannot be used.
pub async fn read_contract(connector: &mut dyn Connector, options: &Options) -> Result<Value, Unchecked> {
    let mut client = open(connector, options).await?;
    let tools = tools(&mut client).await?;
    let mut contract = crate::contract::contract(client.server(), &tools);
    contract["protocol"] = json!(client.server().protocol);
    client.close().await;
    Ok(contract)
}
