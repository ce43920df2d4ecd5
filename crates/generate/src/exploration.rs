//! Lets a model read the files of an agent, and keeps the facts that the files prove.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use llm::{Conversation, Message, Model, Request, ResponseSchema, Role, structured_reply};
use regex::Regex;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer;
use crate::profile::{Evidence, Fact, Parameter, Profile, ToolFact, Trait, TraitKind};
use crate::prompt::{Fence, explore as prompt};
use crate::source::SourceFile;

/// Maximum number of files that a model may choose.
const MOST_RANKED: usize = 25;

/// Maximum number of files that a model may read.
const MOST_READ: usize = 20;

/// Maximum number of file names that are sent.
const MOST_NAMES: usize = 2_000;

/// Maximum length of a piece of a file, in bytes.
const PIECE: usize = 16_000;

/// Maximum number of pieces of a file.
const MOST_PIECES: usize = 3;

/// Number of concurrent requests.
const CONCURRENT: usize = 6;

/// Timeout of one request.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Confidence in a fact that a model found and that a quote proves.
const CONFIDENCE: f64 = 0.8;

/// Words in the names of files that determine how an agent behaves. Used if no model ranks the files.
const NAMES: [&str; 10] =
    ["prompt", "system", "instruction", "persona", "guardrail", "tool", "agent", "config", "route", "readme"];

/// Facts that a model found in files.
#[derive(Debug, Default)]
pub struct Exploration {
    /// Facts that the files prove.
    pub profile: Profile,
    /// Number of files that were read.
    pub files: usize,
    /// Number of facts that were omitted because their quotes are not in the file.
    pub unproven: usize,
    /// Problems with individual requests.
    pub problems: Vec<String>,
    /// Cost of all requests in US dollars; `None` if the cost of one of them is unknown.
    pub cost_usd: Option<f64>,
}

/// Lets `model` read `files`, which must not contain secrets. Facts on lines that are already evidence in `known` are
/// omitted. `in_order` sends the requests one after another, for models whose answers depend on the order.
pub async fn explore(files: &[SourceFile], known: &Profile, model: &dyn Model, in_order: bool) -> Exploration {
    let mut exploration = Exploration { cost_usd: Some(0.0), ..Exploration::default() };
    let chosen = ranked(files, model, &mut exploration).await;
    exploration.files = chosen.len();
    let pieces: Vec<Piece<'_>> = chosen.iter().flat_map(|file| pieces(file)).collect();
    let most = if in_order { 1 } else { CONCURRENT };
    let answers: Vec<(Piece<'_>, Answer)> = stream::iter(pieces)
        .map(|piece| async move {
            let answer = ask(model, &extraction(&piece), &valid::<Facts>).await;
            (piece, answer)
        })
        .buffered(most)
        .collect()
        .await;
    // Files, grouped by the reason why they could not be read.
    let mut failed: Vec<(String, Vec<&str>)> = Vec::new();
    for (piece, answer) in answers {
        exploration.add_cost(answer.cost_usd);
        match answer.value.and_then(|value| answer::read(&value)) {
            Ok(facts) => exploration.add(&piece, facts, known),
            Err(reason) => match failed.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, names)) if names.contains(&piece.file.name.as_str()) => {}
                Some((_, names)) => names.push(&piece.file.name),
                None => failed.push((reason, vec![&piece.file.name])),
            },
        }
    }
    exploration.problems.extend(failed.iter().map(|(reason, names)| {
        let more = if names.len() > 1 { format!(" and {} more", names.len() - 1) } else { String::new() };
        format!("`{}`{more}: {reason}", names[0])
    }));
    exploration
}

/// Part of a file.
#[derive(Clone, Copy)]
struct Piece<'f> {
    file: &'f SourceFile,
    text: &'f str,
    /// Line on which it begins, from 1.
    line: usize,
}

fn pieces(file: &SourceFile) -> Vec<Piece<'_>> {
    let (mut found, mut rest, mut line) = (Vec::new(), file.text.as_str(), 1);
    while !rest.trim().is_empty() && found.len() < MOST_PIECES {
        let most = rest.floor_char_boundary(PIECE.min(rest.len()));
        let end = if most == rest.len() { most } else { rest[..most].rfind('\n').map_or(most, |end| end + 1) };
        found.push(Piece { file, text: &rest[..end], line });
        line += rest[..end].matches('\n').count();
        rest = &rest[end..];
    }
    found
}

/// Answer from a model.
struct Answer {
    value: Result<Value, String>,
    cost_usd: Option<f64>,
}

async fn ask(
    model: &dyn Model,
    request: &Request,
    valid: &(dyn Fn(&Value) -> Result<(), String> + Send + Sync),
) -> Answer {
    match tokio::time::timeout(TIMEOUT, structured_reply(model, request, valid)).await {
        Ok(reply) => {
            let cost_usd = if reply.replies == 0 { Some(0.0) } else { reply.cost_usd };
            Answer { value: reply.value.map_err(|error| error.to_string()), cost_usd }
        }
        Err(_) => {
            let value = Err(format!("the model did not answer within {} seconds", TIMEOUT.as_secs()));
            Answer { value, cost_usd: None }
        }
    }
}

fn valid<T: for<'d> Deserialize<'d>>(value: &Value) -> Result<(), String> {
    answer::read::<T>(value).map(drop)
}

/// Returns the files to read, the most important one first.
async fn ranked<'f>(files: &'f [SourceFile], model: &dyn Model, exploration: &mut Exploration) -> Vec<&'f SourceFile> {
    if files.len() <= MOST_READ {
        return files.iter().collect();
    }
    let names: Vec<&str> = files.iter().take(MOST_NAMES).map(|file| file.name.as_str()).collect();
    let schema = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["files"],
        "properties": { "files": { "type": "array", "items": { "type": "string" } } },
    });
    let answer = ask(model, &request("files", prompt::RANK, &names.join("\n"), schema), &valid::<Ranking>).await;
    exploration.add_cost(answer.cost_usd);
    let wanted = match answer.value.and_then(|value| answer::read::<Ranking>(&value)) {
        Ok(ranking) => ranking.files,
        Err(problem) => {
            exploration.problems.push(format!("the files were chosen by their names: {problem}"));
            Vec::new()
        }
    };
    let mut chosen: Vec<&SourceFile> = Vec::new();
    for name in wanted.iter().take(MOST_RANKED) {
        let file = files.iter().find(|file| file.name == *name);
        chosen.extend(file.filter(|file| !chosen.iter().any(|known| known.name == file.name)));
    }
    if chosen.is_empty() {
        chosen = by_name(files);
    }
    chosen.truncate(MOST_READ);
    chosen
}

/// Returns the files sorted by how much their names suggest about an agent.
fn by_name(files: &[SourceFile]) -> Vec<&SourceFile> {
    let rank = |file: &SourceFile| {
        let lower = file.name.to_ascii_lowercase();
        NAMES.iter().position(|name| lower.contains(name)).unwrap_or(NAMES.len())
    };
    let mut sorted: Vec<&SourceFile> = files.iter().collect();
    sorted.sort_by_key(|file| rank(file));
    sorted
}

/// Answer to a request for a ranking.
#[derive(Deserialize)]
struct Ranking {
    files: Vec<String>,
}

/// Answer to a request for facts.
#[derive(Deserialize)]
struct Facts {
    facts: Vec<FoundFact>,
    tools: Vec<FoundTool>,
}

#[derive(Deserialize)]
struct FoundFact {
    kind: Kind,
    text: String,
    line: usize,
    quote: String,
}

#[derive(Deserialize)]
struct FoundTool {
    name: String,
    description: String,
    parameters: Vec<FoundParameter>,
    line: usize,
    quote: String,
}

#[derive(Deserialize)]
struct FoundParameter {
    name: String,
    r#type: String,
    required: bool,
}

/// Kind of a fact.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Purpose,
    Capability,
    Constraint,
    Instruction,
    Domain,
    Tone,
    Language,
    Model,
}

/// Names of the kinds, for the schema.
const KINDS: [&str; 8] = ["purpose", "capability", "constraint", "instruction", "domain", "tone", "language", "model"];

/// Returns the request for the facts in a piece.
fn extraction(piece: &Piece<'_>) -> Request {
    let numbered = piece.text.lines().enumerate().map(|(at, line)| format!("{}: {line}", piece.line + at));
    let data = format!("file: {}\n{}", piece.file.name, numbered.collect::<Vec<_>>().join("\n"));
    let (text, line) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    let object = |properties: Value| {
        let names: Vec<&String> = properties.as_object().map(|map| map.keys().collect()).unwrap_or_default();
        json!({ "type": "object", "additionalProperties": false, "required": names, "properties": properties })
    };
    let list = |items: Value| json!({ "type": "array", "items": items });
    let parameter = object(json!({ "name": text, "type": text, "required": { "type": "boolean" } }));
    let fact = object(json!({
        "kind": { "type": "string", "enum": KINDS }, "text": text, "line": line, "quote": text,
    }));
    let tool = object(json!({
        "name": text, "description": text, "parameters": list(parameter), "line": line, "quote": text,
    }));
    request("facts", prompt::EXTRACT, &data, object(json!({ "facts": list(fact), "tools": list(tool) })))
}

/// Returns a request about `data`. The data is fenced, because its authors may have put instructions into it.
fn request(name: &str, role: &str, data: &str, schema: Value) -> Request {
    let fence = Fence::around(data);
    Request {
        system: vec![format!("{role}\n\n{}", fence.rule())],
        messages: vec![Message::text(Role::User, fence.enclose(data))],
        response_schema: Some(ResponseSchema { name: name.to_owned(), schema }),
        gives_up_on_silence: true,
        conversation: Conversation::main(),
        ..Request::default()
    }
}

impl Exploration {
    fn add_cost(&mut self, cost: Option<f64>) {
        self.cost_usd = self.cost_usd.zip(cost).map(|(sum, cost)| sum + cost);
    }

    /// Adds the facts whose quotes are in the file.
    fn add(&mut self, piece: &Piece<'_>, facts: Facts, known: &Profile) {
        for fact in facts.facts {
            let Some(evidence) = proof(piece, &fact.quote, fact.line) else {
                self.unproven += 1;
                continue;
            };
            if !is_known(known, &evidence) && !fact.text.trim().is_empty() {
                self.profile.merge(of_kind(fact.kind, Fact::new(fact.text.trim(), evidence)));
            }
        }
        for tool in facts.tools {
            // If the quote does not contain the name, it does not prove it.
            let evidence = proof(piece, &tool.quote, tool.line).filter(|_| tool.quote.contains(&tool.name));
            let Some(evidence) = evidence.filter(|_| !tool.name.trim().is_empty()) else {
                self.unproven += 1;
                continue;
            };
            let parameter = |one: FoundParameter| Parameter {
                name: one.name,
                kind: Some(one.r#type).filter(|kind| !kind.is_empty()),
                required: one.required,
                description: None,
            };
            let tool = ToolFact {
                name: tool.name,
                description: Some(tool.description).filter(|text| !text.trim().is_empty()),
                parameters: tool.parameters.into_iter().map(parameter).collect(),
                evidence: vec![evidence],
            };
            self.profile.merge(Profile { tools: vec![tool], ..Profile::default() });
        }
    }
}

/// Returns a profile with a single fact.
fn of_kind(kind: Kind, fact: Fact) -> Profile {
    let property = |kind| Profile { traits: vec![Trait { kind, fact: fact.clone() }], ..Profile::default() };
    match kind {
        Kind::Purpose => Profile { description: Some(fact), ..Profile::default() },
        Kind::Capability => Profile { capabilities: vec![fact], ..Profile::default() },
        Kind::Constraint => Profile { constraints: vec![fact], ..Profile::default() },
        Kind::Instruction => Profile { instructions: vec![fact], ..Profile::default() },
        Kind::Domain => property(TraitKind::Domain),
        Kind::Tone => property(TraitKind::Tone),
        Kind::Language => property(TraitKind::Language),
        Kind::Model => property(TraitKind::Model),
    }
}

/// Returns `true` if the profile already has a fact from the same line, in the words of the file.
fn is_known(known: &Profile, evidence: &Evidence) -> bool {
    let facts = known.constraints.iter().chain(&known.instructions);
    let mut stated = facts.flat_map(|fact| &fact.evidence);
    stated.any(|one| one.file == evidence.file && one.line == evidence.line)
}

/// Returns the location of a quote in a piece: the one nearest to `line`. Differences in white space do not matter.
fn proof(piece: &Piece<'_>, quote: &str, line: usize) -> Option<Evidence> {
    let words: Vec<String> = quote.split_whitespace().map(regex::escape).collect();
    if quote.trim().chars().count() < 4 {
        return None;
    }
    let pattern = Regex::new(&words.join(r"\s+")).ok()?;
    let lines = pattern.find_iter(piece.text).map(|found| piece.text[..found.start()].matches('\n').count());
    let nearest = lines.min_by_key(|at| (piece.line + at).abs_diff(line))?;
    let text = piece.text.lines().nth(nearest).unwrap_or_default();
    Some(Evidence { confidence: CONFIDENCE, ..Evidence::in_file(&piece.file.name, piece.line + nearest, text) })
}

/// Version of the prompts for reading files.
pub const EXPLORATION_VERSION: &str = prompt::VERSION;

#[cfg(test)]
mod tests;
