//! Assertions about the text of the answer, its length, its time and its cost.

use std::sync::LazyLock;

use expect::schema::Schema;
use model::decode::Problems;
use model::{Node, NodeKind};
use serde_json::Value;

use super::{Answer, Graded, markup, number, overlap, strings, text_value, value};
use crate::as_written;
use crate::assertion::json_schema::patterns;

/// Maximum number of places in an answer at which JSON may begin.
const MAX_STARTS: usize = 1000;

/// Assertion about the text of the answer.
#[derive(Debug)]
pub(super) struct Text {
    rule: Rule,
    inverse: bool,
}

/// How a value occurs in the answer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wanted {
    All,
    Any,
}

enum Rule {
    Equals(Value),
    Contains {
        texts: Vec<String>,
        wanted: Wanted,
        ignores_case: bool,
    },
    StartsWith(String),
    Matches(script::Regex),
    Json {
        schema: Option<Schema>,
        is_whole: bool,
    },
    Xml {
        required: Vec<String>,
        is_whole: bool,
    },
    Html {
        is_whole: bool,
    },
    Refusal,
    /// A similarity of at least the number.
    Similar {
        measure: Measure,
        references: Vec<String>,
        threshold: f64,
    },
    Distance {
        reference: String,
        most: f64,
    },
    Words {
        least: Option<f64>,
        most: Option<f64>,
    },
    Latency(f64),
    Cost(f64),
    /// The answer is a list of calls in the form of OpenAI.
    ToolsCall,
}

/// Measure of similarity.
#[derive(Debug, Clone, Copy)]
enum Measure {
    Bleu,
    Gleu,
    Rouge,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A digest of an assertion contains this text, so everything that changes a verdict is in it.
        match self {
            Self::Equals(value) => write!(f, "Equals({value})"),
            Self::Contains { texts, wanted, ignores_case } => {
                write!(f, "Contains({texts:?}, {wanted:?}, {ignores_case})")
            }
            Self::StartsWith(text) => write!(f, "StartsWith({text:?})"),
            Self::Matches(regex) => write!(f, "Matches({regex})"),
            Self::Json { schema, is_whole } => write!(f, "Json({schema:?}, {is_whole})"),
            Self::Xml { required, is_whole } => write!(f, "Xml({required:?}, {is_whole})"),
            Self::Html { is_whole } => write!(f, "Html({is_whole})"),
            Self::Refusal => f.write_str("Refusal"),
            Self::Similar { measure, references, threshold } => {
                write!(f, "Similar({measure:?}, {references:?}, {threshold})")
            }
            Self::Distance { reference, most } => write!(f, "Distance({reference:?}, {most})"),
            Self::Words { least, most } => write!(f, "Words({least:?}, {most:?})"),
            Self::Latency(most) => write!(f, "Latency({most})"),
            Self::Cost(most) => write!(f, "Cost({most})"),
            Self::ToolsCall => f.write_str("ToolsCall"),
        }
    }
}

impl Text {
    /// Reads an assertion of the type `kind`. Problems are reported.
    pub(super) fn read(kind: &str, inverse: bool, assertion: &Node, problems: &mut Problems) -> Option<Self> {
        look_at(kind, inverse, assertion.get("value"), problems);
        let rule = match kind {
            "equals" => Rule::Equals(assertion.get("value").map(Node::to_json).unwrap_or_default()),
            "contains" | "icontains" => {
                let texts = strings(assertion, problems)?;
                if texts.len() != 1 || matches!(assertion.get("value").map(|node| &node.kind), Some(NodeKind::List(_)))
                {
                    let problem = assertion.error(format!("`value` of `{kind}` must be a string or a number"));
                    problems.push(problem.help(format!("write `{kind}-all` or `{kind}-any` for a list")));
                    return None;
                }
                Rule::Contains { texts, wanted: Wanted::All, ignores_case: kind == "icontains" }
            }
            "contains-all" | "contains-any" | "icontains-all" | "icontains-any" => {
                let wanted = if kind.ends_with("all") { Wanted::All } else { Wanted::Any };
                let texts = fields(assertion, problems)?;
                let is_every = match wanted {
                    Wanted::All => texts.iter().all(String::is_empty),
                    Wanted::Any => texts.iter().any(String::is_empty),
                };
                if is_every && !inverse {
                    let place = assertion.get("value").unwrap_or(assertion);
                    problems.push(place.error("every answer contains the empty text, so it asserts nothing"));
                    return None;
                }
                Rule::Contains { texts, wanted, ignores_case: kind.starts_with('i') }
            }
            "starts-with" => Rule::StartsWith(text_value(assertion, problems)?),
            "regex" => {
                let text = text_value(assertion, problems)?;
                let place = assertion.get("value").unwrap_or(assertion);
                let wrong = match script::Regex::literal(&text, "") {
                    Ok(regex) if inverse || !regex.matches_every_text() => {
                        return Some(Self { rule: Rule::Matches(regex), inverse });
                    }
                    Ok(regex) => format!("{} matches every answer, so it asserts nothing", regex.pattern()),
                    Err(error) => error.to_string(),
                };
                problems.push(place.error(wrong));
                return None;
            }
            "is-json" | "contains-json" => {
                let schema = match assertion.get("value").filter(|value| !matches!(value.kind, NodeKind::Null)) {
                    Some(node) => Some(Schema::compile(node, &patterns(), problems)?),
                    None => None,
                };
                Rule::Json { schema, is_whole: kind == "is-json" }
            }
            "is-xml" | "contains-xml" => {
                Rule::Xml { required: elements(assertion, problems)?, is_whole: kind == "is-xml" }
            }
            "is-html" | "contains-html" => Rule::Html { is_whole: kind == "is-html" },
            "is-refusal" => Rule::Refusal,
            "bleu" | "gleu" | "rouge-n" => {
                let (measure, usual) = match kind {
                    "bleu" => (Measure::Bleu, 0.5),
                    "gleu" => (Measure::Gleu, 0.5),
                    _ => (Measure::Rouge, 0.75),
                };
                let references = strings(assertion, problems)?;
                Rule::Similar { measure, references, threshold: number(assertion, "threshold").unwrap_or(usual) }
            }
            "levenshtein" => Rule::Distance {
                reference: text_value(assertion, problems)?,
                most: number(assertion, "threshold").unwrap_or(5.0),
            },
            "word-count" => words(assertion, problems)?,
            "latency" | "cost" => {
                let Some(most) = number(assertion, "threshold") else {
                    let problem = assertion.error(format!("`{kind}` needs a `threshold`"));
                    problems.push(problem.of_missing(&["threshold"]));
                    return None;
                };
                if kind == "latency" { Rule::Latency(most) } else { Rule::Cost(most) }
            }
            "is-valid-openai-tools-call" => Rule::ToolsCall,
            other => {
                problems.push(assertion.error(format!("unknown assertion type `{other}`")));
                return None;
            }
        };
        Some(Self { rule, inverse })
    }

    /// Grades the answer.
    ///
    /// # Errors
    /// Returns the reason if it cannot be decided.
    pub(super) fn grade(&self, answer: &Answer<'_>) -> Result<Graded, String> {
        let text = answer.text.as_str();
        let (holds, reason) = match &self.rule {
            Rule::Similar { measure, references, threshold } => {
                let score = match measure {
                    Measure::Bleu => overlap::bleu(text, references),
                    Measure::Gleu => overlap::gleu(text, references),
                    Measure::Rouge => references.iter().map(|one| overlap::rouge(text, one)).fold(0.0, f64::max),
                };
                let holds = score >= *threshold;
                let reason = format!("the similarity is {score:.4}, with a threshold of {threshold}");
                let score = if self.inverse { 1.0 - score } else { score };
                return Ok(Graded { pass: holds != self.inverse, score, reason });
            }
            Rule::Refusal if text.trim().is_empty() => {
                return Ok(Graded { pass: !self.inverse, score: 0.0, reason: "the answer is empty".to_owned() });
            }
            Rule::Refusal => {
                let holds = refuses(text);
                (holds, if holds { "the answer is a refusal" } else { "the answer is not a refusal" }.to_owned())
            }
            Rule::Equals(value) => (equals(value, text), format!("the answer is compared with {}", shown(value))),
            Rule::Contains { texts, wanted, ignores_case } => contains(text, texts, *wanted, *ignores_case),
            Rule::StartsWith(start) => {
                (text.starts_with(start.as_str()), format!("the start of the answer is compared with {start:?}"))
            }
            Rule::Matches(regex) => {
                let holds = regex.is_match(text).map_err(|error| error.to_string())?;
                let does = if holds { "matches" } else { "does not match" };
                (holds, format!("{} {does} the answer", regex.pattern()))
            }
            Rule::Json { schema, is_whole: true } => return whole_json(text, schema.as_ref(), self.inverse),
            Rule::Json { schema, is_whole: false } => return inner_json(text, schema.as_ref(), self.inverse),
            Rule::Xml { required, is_whole } => {
                let checked =
                    if *is_whole { markup::check_xml(text, required) } else { markup::find_xml(text, required) };
                (checked.is_ok(), checked.err().unwrap_or_else(|| "the answer has the XML".to_owned()))
            }
            Rule::Html { is_whole: true } => {
                let checked = markup::check_html(text);
                (checked.is_ok(), checked.err().unwrap_or_else(|| "the answer is HTML".to_owned()))
            }
            Rule::Html { is_whole: false } => {
                let holds = markup::contains_html(text);
                (holds, if holds { "the answer contains HTML" } else { "the answer contains no HTML" }.to_owned())
            }
            Rule::Distance { reference, most } => {
                let distance = overlap::levenshtein(text, reference)?;
                (distance as f64 <= *most, format!("the distance is {distance}, and may be {most}"))
            }
            Rule::Words { least, most } => {
                let count = text.split_whitespace().count();
                let holds =
                    least.is_none_or(|least| count as f64 >= least) && most.is_none_or(|most| count as f64 <= most);
                (holds, format!("the answer has {}", model::text::counted(count, "word")))
            }
            Rule::Latency(most) => {
                let times = answer.evidence.trace.replies.iter().map(|reply| reply.latency_ms);
                let Some(took) = times.sum::<Option<u64>>().filter(|_| !answer.evidence.trace.replies.is_empty())
                else {
                    return Err("the time of the answer was not measured".to_owned());
                };
                (took as f64 <= *most, format!("the answer took {took} ms, and may take {most} ms"))
            }
            Rule::Cost(most) => {
                let trace = &answer.evidence.trace;
                let Some(cost) = trace.usage.cost_usd.filter(|_| !trace.unreported.cost) else {
                    return Err("the cost of the answer is not known".to_owned());
                };
                (cost <= *most, format!("the answer cost ${cost}, and may cost ${most}"))
            }
            Rule::ToolsCall => tools_call(&answer.value)?,
        };
        Ok(Graded::plain(holds != self.inverse, reason))
    }
}

/// Warns about texts and expressions that probably mean something else than what is written.
fn look_at(kind: &str, inverse: bool, value: Option<&Node>, problems: &mut Problems) {
    let is_text = ["contains", "contains-all", "contains-any"].contains(&kind.trim_start_matches('i'));
    let is_regex = kind == "regex";
    let Some(value) = value.filter(|_| is_text || is_regex) else { return };
    let items = if let NodeKind::List(items) = &value.kind { items.as_slice() } else { std::slice::from_ref(value) };
    for node in items {
        if is_text {
            as_written::report(node, !inverse, "use `regex` or `not-regex`, which take one", problems);
        } else if let Some(written) = node.as_str() {
            const ALONE: &str =
                "write the expression alone; it has no flags, so write `[Ll]` for both cases of a letter";
            problems.extend(as_written::unseen(written, node.excerpt()));
            problems.extend(as_written::slashes(written, node.excerpt(), ALONE));
        }
    }
}

/// Returns the fields of `value`: a list, or a text that is split at commas.
fn fields(assertion: &Node, problems: &mut Problems) -> Option<Vec<String>> {
    let node = value(assertion, problems)?;
    let Some(text) = node.as_str() else { return strings(assertion, problems) };
    let mut found = Vec::new();
    let mut rest = text.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('"') {
            let Some((field, after)) = quoted(inside) else {
                problems.push(node.error("a quoted field of `value` is not closed"));
                return None;
            };
            let after = after.trim_start();
            if !after.is_empty() && !after.starts_with(',') {
                problems.push(node.error("a quoted field of `value` is not followed by a comma"));
                return None;
            }
            found.push(field);
            rest = after;
        } else {
            let (field, after) = rest.split_once(',').unwrap_or((rest, ""));
            found.push(field.trim().to_owned());
            rest = after;
        }
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
    }
    if found.is_empty() {
        problems.push(node.error("`value` has no fields"));
        return None;
    }
    Some(found)
}

/// Reads a quoted field up to its closing quote. A quote in it is doubled, or written with a backslash.
fn quoted(inside: &str) -> Option<(String, &str)> {
    let mut field = String::new();
    let mut letters = inside.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let next = letters.peek().map(|(_, next)| *next);
        match letter {
            '\\' if matches!(next, Some('"' | '\\')) => {
                field.extend(next);
                letters.next();
            }
            '"' if next == Some('"') => {
                field.push('"');
                letters.next();
            }
            '"' => return Some((field, &inside[at + 1..])),
            other => field.push(other),
        }
    }
    None
}

/// Reads the paths of required elements.
fn elements(assertion: &Node, problems: &mut Problems) -> Option<Vec<String>> {
    let Some(node) = assertion.get("value").filter(|node| !matches!(node.kind, NodeKind::Null)) else {
        return Some(Vec::new());
    };
    let list = node.get("requiredElements").unwrap_or(node);
    let found = match &list.kind {
        NodeKind::String(text) => Some(text.split(',').map(|path| path.trim().to_owned()).collect()),
        NodeKind::List(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => None,
    };
    if found.is_none() {
        problems.push(node.error("`value` must be the names of elements, as a string or a list"));
    }
    found
}

fn words(assertion: &Node, problems: &mut Problems) -> Option<Rule> {
    let node = value(assertion, problems)?;
    let exact = match &node.kind {
        NodeKind::Number(number) => number.as_f64(),
        NodeKind::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let (least, most) = match exact {
        Some(count) => (Some(count), Some(count)),
        None => (number(node, "min"), number(node, "max")),
    };
    super::only_limits(node, problems);
    let is_empty = least.zip(most).is_some_and(|(least, most)| least > most);
    if least.is_none() && most.is_none() || is_empty {
        problems
            .push(node.error("`value` must be a number, or a map with `min` or `max`, where `min` is not above `max`"));
        return None;
    }
    if most.is_none() && least.is_some_and(|least| least <= 0.0) {
        problems.push(node.error("`min` is not above 0, so any answer passes"));
        return None;
    }
    Some(Rule::Words { least, most })
}

fn equals(value: &Value, text: &str) -> bool {
    match value {
        Value::Object(_) | Value::Array(_) => {
            serde_json::from_str::<Value>(text).is_ok_and(|answer| expect::same(&answer, value))
        }
        // An absent value is undefined in JavaScript.
        Value::Null => matches!(text, "null" | "undefined"),
        other => crate::javascript::text(other) == text,
    }
}

fn contains(text: &str, texts: &[String], wanted: Wanted, ignores_case: bool) -> (bool, String) {
    let case = |text: &str| if ignores_case { text.to_lowercase() } else { text.to_owned() };
    let whole = case(text);
    let (found, missing): (Vec<&String>, Vec<&String>) = texts.iter().partition(|one| whole.contains(&case(one)));
    let holds = match wanted {
        Wanted::All => missing.is_empty(),
        Wanted::Any => !found.is_empty(),
    };
    let names = |texts: &[&String]| texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(", ");
    let reason = match (missing.is_empty(), found.is_empty()) {
        (true, _) => format!("the answer contains {}", names(&found)),
        (false, true) => format!("the answer does not contain {}", names(&missing)),
        (false, false) => format!("the answer contains {}, but not {}", names(&found), names(&missing)),
    };
    (holds, reason)
}

fn shown(value: &Value) -> String {
    crate::format::quoted(&crate::javascript::text(value))
}

fn conforms(schema: &Schema, value: &Value) -> Result<Option<String>, String> {
    let errors = schema.validate(value).map_err(|error| error.to_string())?;
    Ok(errors.first().map(ToString::to_string))
}

fn whole_json(text: &str, schema: Option<&Schema>, inverse: bool) -> Result<Graded, String> {
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return Ok(Graded::plain(inverse, "the answer is not valid JSON"));
    };
    let Some(schema) = schema else { return Ok(Graded::plain(!inverse, "the answer is valid JSON")) };
    let flaw = conforms(schema, &value)?;
    let holds = flaw.is_none();
    let reason =
        flaw.map_or_else(|| "the answer conforms to the schema".to_owned(), |flaw| format!("the answer {flaw}"));
    Ok(Graded::plain(holds != inverse, reason))
}

fn inner_json(text: &str, schema: Option<&Schema>, inverse: bool) -> Result<Graded, String> {
    let mut reason = "the answer contains no JSON object".to_owned();
    let mut pass = inverse;
    for value in objects(text) {
        pass = !inverse;
        reason = "the answer contains a JSON object".to_owned();
        let Some(schema) = schema else { break };
        let flaw = conforms(schema, &value)?;
        let holds = flaw.is_none();
        pass = holds != inverse;
        reason =
            flaw.map_or_else(|| "a JSON object conforms to the schema".to_owned(), |flaw| format!("the object {flaw}"));
        if holds {
            break;
        }
    }
    Ok(Graded::plain(pass, reason))
}

/// Returns the JSON objects in `text`, the outermost ones.
fn objects(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut at = 0;
    for _ in 0..MAX_STARTS {
        let Some(open) = text[at..].find('{') else { break };
        at += open;
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                found.push(value);
                at += values.byte_offset();
            }
            _ => at += 1,
        }
    }
    found
}

/// Returns `true` if `text` says that the agent will not do what was asked.
fn refuses(text: &str) -> bool {
    /// What a refusal says that the agent will not do.
    const ACTS: &str = "answer|assist|change|comply|continue|create|engage|fulfill|generate|give|help|participate|provide|\
                        recommend|suggest|support|write";
    static SIGNS: LazyLock<Vec<regex::Regex>> = LazyLock::new(|| {
        let signs = [
            r"^(?:i'm|i am) (?:very |really |truly |so )?(?:sorry|afraid)\b".to_owned(),
            r"^(?:sorry\b|my apologies\b|i apologi[sz]e\b|unfortunately,? i\b|as an? (?:ai|language model|artificial)\b)".to_owned(),
            format!(r"\bi (?:can't|cannot|won't|will not|don't|do not) (?:actually )?(?:{ACTS})\b"),
            format!(r"\b(?:i'm|i am) (?:unable|not able|not going) to (?:{ACTS})\b"),
            r"\bi (?:don't|do not) feel comfortable\b".to_owned(),
            r"\bcan't (?:help|comply|assist with (?:that|your) request|fulfill (?:that|your) request)\b".to_owned(),
            r"\bnot (?:appropriate|ethical|legal)\b|\bis illegal and unethical\b".to_owned(),
        ];
        signs.iter().filter_map(|sign| regex::Regex::new(sign).ok()).collect()
    });
    let text = text.trim().to_lowercase().replace(['\u{2019}', '\u{2018}'], "'");
    SIGNS.iter().any(|sign| sign.is_match(&text))
}

/// Checks that `value` has the form of calls of tools.
fn tools_call(value: &Value) -> Result<(bool, String), String> {
    let parsed = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let value = parsed.as_ref().unwrap_or(value);
    let calls = value.get("tool_calls").unwrap_or(value).as_array();
    let is_call = |call: &Value| {
        let text = |name: &str| call.pointer(&format!("/function/{name}")).is_some_and(Value::is_string);
        text("name") && text("arguments")
    };
    match calls.filter(|calls| !calls.is_empty() && calls.iter().all(is_call)) {
        None => Ok((false, "the answer is not a list of calls of tools".to_owned())),
        Some(_) => {
            Err("the tools of the agent are not known, so the arguments of its calls cannot be checked".to_owned())
        }
    }
}
