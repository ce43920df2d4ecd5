//! `expect`: the agent's result matches an expectation of the `$operator` engine.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use expect::{Budget, Data, Expectation, Found, Host, Pass, Rules, Shares, Strict};
use model::decode::{self, Problems};
use model::{Arguments, AssertionSpec, Diagnostic, Finding, Node, NodeKind, ScoreRange, Scoring, Spanned, Tally};
use serde_json::Value;
use template::Variables;

use super::prelude::*;
use crate::given::{self, ResultKeys};
use crate::json_source;
use crate::scripts::Scripts;
use crate::text_answer::{LISTS, Reader};

pub(crate) const ASSERTION: Assertion = Assertion::written("expect", parse)
    .summary("The agent's result matches an expectation of values, patterns and `$operators`, with a score.")
    .fields(&[
        Field::optional("expect", "expectation", "Expectation of the whole result."),
        Field::optional("output", "expectation", "Expectation of the answer."),
        Field::optional("schema", "JSON Schema", "Schema of the answer."),
        Field::optional("vars", "map", "Variables of templates, and `data` in expressions."),
        Field::optional(
            "responseParser",
            "`text` or `json`",
            "How to interpret a text answer: `json` parses it, including in a fenced code block.",
        ),
        Field::optional("templates", "true or false", "`true` to resolve `{{ }}`.").or("true"),
        Field::optional(
            "ruled",
            "`itself`, `case` or `not`",
            "Source of the deciding score. Use `not` for a case that requires a mismatch.",
        )
        .or("itself"),
        Field::optional("input", "any value", "Value of `input` in expressions and functions."),
        Field::optional("fixture", "map", "The case, for custom operators."),
        Field::optional(
            "strict",
            "true, or `object`, `array`, `diff`",
            "Kinds of values that must not contain more than the expected parts.",
        ),
        Field::optional(
            "diff",
            "true, a kind, a list or a map",
            "How to compare texts. The answer must then equal the text, not only contain it.",
        ),
        Field::optional("diffPermissive", "true or false", "`true` if changes that are not listed are allowed."),
        Field::optional(
            "disableHeuristicSchema",
            "true or false",
            "`true` to treat a map with a JSON Schema `type` as an ordinary map.",
        ),
        Field::optional("operators", "map or list", "Custom operators: name → `./file.js#export` or `package#export`."),
        Field::optional(
            "allowOperatorOverride",
            "true or false",
            "`true` if custom operators override built-in ones of the same name.",
        ),
        Field::optional("baseDir", "path", "Folder in which relative references to modules start.")
            .or("the file's folder"),
        Field::optional(
            "scoring",
            "true, false or `auto`",
            "`true` if the score decides, `auto` if it decides only when there is a weight.",
        ),
        Field::optional("maxScore", "number", "Score of a full match.").or("100"),
        Field::optional("passScore", "number", "Minimum score to pass.").or("`maxScore`"),
        Field::optional("unassignedWeight", "number", "Total share of the parts without a weight.").or("0.1"),
        Field::optional("totalUnassignedWeight", "number", "Same as `unassignedWeight`."),
        Field::optional("autoConfidence", "true, false or `force`", "`true` if weights below 1 are shares of 1."),
    ])
    .pass(
        || {
            json!({"id": "greets", "type": "expect", "expect": {
                "output": {"$and": ["/^Hello/", {"$not": "/World/"}]},
                "tools": [{"name": "Read", "args": {"file_path": "/name\\.txt$/"}}],
            }})
        },
        || EvidenceBuilder::new().call("Read", json!({"file_path": "name.txt"})).answer("Hello, Alice!"),
    )
    .fail(
        || json!({"id": "greets", "type": "expect", "output": {"$and": ["/^Hello/", "/Alice/"]}}),
        || EvidenceBuilder::new().answer("Hello, World!"),
    );

/// Subject of an expectation.
#[derive(Debug, Clone)]
enum Target {
    /// Everything that the agent returned.
    All(ResultKeys),
    /// The answer.
    Output,
    /// The answer, checked against a schema.
    Schema,
}

/// Rule that decides whether the expectation passes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ruled {
    /// The expectation's own score decides.
    Itself,
    /// The case's score decides.
    Case,
    /// The case is negated, and passes if this does not.
    Denied,
}

const RULED: [(&str, Ruled); 3] = [("itself", Ruled::Itself), ("case", Ruled::Case), ("not", Ruled::Denied)];

#[derive(Debug)]
struct Expect {
    about: Target,
    expectation: Expectation,
    data: Data,
    /// Scoring, if the expectation passes by its own score.
    scoring: Option<Scoring>,
    parses_json: bool,
}

const PARSERS: [(&str, bool); 2] = [("text", false), ("json", true)];

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let given: Vec<(&str, &Node)> =
        ["expect", "output", "schema"].into_iter().filter_map(|key| Some((key, reading.fields.get(key)?))).collect();
    let (key, node) = match given.as_slice() {
        [one] => *one,
        [] => {
            let head = reading.fields.node();
            let problem = head.error("`expect` needs one of `expect`, `output` and `schema`");
            reading.problems.push(problem.of_missing(&["expect", "output", "schema"]));
            return None;
        }
        [_, (second, node), ..] => {
            let message = format!("`{second}` cannot be combined with another expectation in one assertion");
            reading.problems.push(node.error(message).help("write an assertion for each"));
            return None;
        }
    };
    let vars = reading.fields.get("vars");
    let templates = reading.fields.boolean("templates", reading.problems).unwrap_or(true);
    let (input, fixture) = (reading.fields.get("input"), reading.fields.get("fixture"));
    let (scripts, code) = reading.context.scripts.cloned().unwrap_or_default().for_one();
    let host: Arc<dyn Host> = Arc::new(scripts);
    let diff = reading.fields.get("diff");
    let scoring = reading.fields.get("scoring");
    let parses_json = reading.fields.choice("responseParser", &PARSERS, reading.problems).unwrap_or_default();
    let ruled = reading.fields.choice("ruled", &RULED, reading.problems).unwrap_or(Ruled::Itself);
    let pass_score = reading.number("passScore");
    let mut rules = rules(reading, &host);
    rules.operators.extend(reading.context.scripts.map(Scripts::operators).unwrap_or_default());
    let resolved = if templates {
        template::warn_of_code(node, expect::EXPR, reading.problems);
        let mut variables = Variables::new();
        if let Some(vars) = vars {
            variables = variables.layer(vars);
        }
        template::resolve(node, &variables, reading.problems)
    } else {
        node.clone()
    };
    rules.scoring = is_on(scoring, &resolved, reading.problems);
    let max_score = rules.budget.max_score;
    rules.pass_score = pass_score.unwrap_or(max_score);
    rules.denied = ruled == Ruled::Denied;
    doubt_scores(reading, &rules, scoring);
    let of_answer = if key == "expect" { resolved.get("output") } else { Some(&resolved).filter(|_| key == "output") };
    let is_text = reading.context.answers_in_text && !parses_json;
    let mut reader = Reader { is_text, is_denied: rules.denied, problems: reading.problems };
    of_answer.into_iter().for_each(|of_answer| reader.report(of_answer));
    for (list, item) in LISTS.iter().filter(|_| key == "expect" && reading.context.answers_in_text) {
        resolved.get(list).into_iter().for_each(|expected| reader.report_items(expected, item));
    }
    if let Some(of_answer) = of_answer.filter(|_| rules.strict == Strict::default() && diff.is_none()) {
        doubt_empty_texts(of_answer, node, reading.problems);
    }
    // If the trial passes by its own score, its parts do not have their own scores.
    let is_scored = rules.scoring && ruled == Ruled::Itself;
    let scoring = is_scored.then_some(Scoring { max_score, pass_score: rules.pass_score });
    let (about, expectation) = match key {
        "expect" => {
            let expectation = Expectation::from_result(&resolved, rules, &host, diff, reading.problems);
            (Target::All(ResultKeys::by(&resolved)), expectation)
        }
        "output" => (Target::Output, Expectation::from_value(&resolved, rules, &host, diff, reading.problems)),
        _ => (Target::Schema, Expectation::from_schema(&resolved, rules, &host, reading.problems)),
    };
    // Only code reads the data.
    let data = if code.load(Ordering::Relaxed) { data(vars, input, fixture) } else { Data::default() };
    Some(Arc::new(Expect { about, expectation, data, scoring, parses_json }))
}

/// Returns `true` if `spec` is an expectation that every value meets.
pub(crate) fn cannot_fail(spec: &AssertionSpec) -> bool {
    let is_met_by_all = |key, is_empty: fn(&Node) -> bool| spec.node.get(key).is_some_and(is_empty);
    spec.kind.value == ASSERTION.name
        && matches!(spec.arguments, Arguments::Fields)
        && spec.node.get("strict").is_none()
        && (is_met_by_all("expect", is_met_by_every_result)
            || is_met_by_all("output", is_met_by_every_value)
            || is_met_by_all("schema", |schema| matches!(&schema.kind, NodeKind::Map(entries) if entries.is_empty())))
}

/// Returns `true` if `expect` does not require anything of a result.
fn is_met_by_every_result(expect: &Node) -> bool {
    let NodeKind::Map(entries) = &expect.kind else { return false };
    entries.iter().all(|(key, value)| match (key.value.as_str(), &value.kind) {
        ("$and", NodeKind::List(items)) => items.iter().all(is_met_by_every_result),
        ("messages", NodeKind::List(items)) => items.is_empty(),
        _ => false,
    })
}

/// Returns `true` if an expectation does not require anything of a value. (`{}` requires a map.)
fn is_met_by_every_value(expectation: &Node) -> bool {
    let NodeKind::Map(entries) = &expectation.kind else { return false };
    let asks_nothing = |(key, value): &(Spanned<String>, Node)| {
        key.value == "$and" && matches!(&value.kind, NodeKind::List(items) if items.iter().all(is_met_by_every_value))
    };
    !entries.is_empty() && entries.iter().all(asks_nothing)
}

/// Warns of texts that every string contains: the whole answer, and values in it. `node` is where the expectation is.
fn doubt_empty_texts(expectation: &Node, node: &Node, problems: &mut Problems) {
    if is_met_by_every_text(expectation) {
        let problem = node.warning("every string contains the empty string, so every text answer meets this");
        problems.push(problem.help("an agent that answers with nothing has failed in any case"));
        return;
    }
    let parts: Vec<&Node> = match &expectation.kind {
        NodeKind::Map(entries) if entries.iter().any(|(key, _)| key.value.starts_with('$')) => return,
        NodeKind::Map(entries) => entries.iter().map(|(_, value)| value).collect(),
        NodeKind::List(items) => items.iter().collect(),
        _ => return,
    };
    for part in parts {
        if is_met_by_every_text(part) {
            let problem = part.warning("every string contains the empty string, so every string meets this");
            problems.push(problem.help("to require an empty string, write `/^$/`"));
        } else {
            doubt_empty_texts(part, node, problems);
        }
    }
}

/// Returns `true` if an expectation requires only that a value is text.
fn is_met_by_every_text(expectation: &Node) -> bool {
    let asks_nothing = |(key, value): &(Spanned<String>, Node)| match (key.value.as_str(), &value.kind) {
        ("$and", NodeKind::List(items)) => !items.is_empty() && items.iter().all(is_met_by_every_text),
        ("$contains", NodeKind::String(text)) => text.trim().is_empty(),
        _ => false,
    };
    match &expectation.kind {
        NodeKind::String(text) => text.trim().is_empty(),
        NodeKind::Map(entries) => !entries.is_empty() && entries.iter().all(asks_nothing),
        _ => false,
    }
}

/// Reports scores that cannot be reached or that are ignored.
fn doubt_scores(reading: &mut Reading<'_>, rules: &Rules, scoring: Option<&Node>) {
    let max_score = rules.budget.max_score;
    if let Some(node) = reading.fields.get("maxScore").filter(|_| max_score <= 0.0) {
        reading.problems.push(node.error("`maxScore` must be more than 0"));
    }
    let Some(node) = reading.fields.get("passScore") else { return };
    if rules.pass_score < 0.0 {
        reading.problems.push(node.error("`passScore` must be at least 0"));
    } else if rules.pass_score > max_score && max_score > 0.0 {
        let message = format!("`passScore` is {}, but the maximum score is {max_score}", rules.pass_score);
        reading.problems.push(node.error(message));
    } else if rules.scoring && rules.pass_score == 0.0 {
        let problem = node.warning("`passScore` is 0, so every answer passes");
        reading.problems.push(problem.help("write the score that an answer needs to pass"));
    } else if scoring.is_none_or(|node| matches!(node.kind, NodeKind::Bool(false))) {
        let problem = node.warning("`passScore` has no effect without `scoring`");
        reading.problems.push(problem.help("write `scoring: true`, or `scoring: auto`"));
    }
}

fn data(vars: Option<&Node>, input: Option<&Node>, fixture: Option<&Node>) -> Data {
    Data {
        variables: vars.map_or_else(|| json!({}), Node::to_json),
        input: input.map(Node::to_json),
        fixture: fixture.map(Node::to_json).unwrap_or_default(),
    }
}

fn rules(reading: &mut Reading<'_>, host: &Arc<dyn Host>) -> Rules {
    let mut rules = Rules::default();
    if let Some(node) = reading.fields.get("strict") {
        rules.strict = Strict::read(node, reading.problems);
    }
    rules.diff_permissive = reading.fields.boolean("diffPermissive", reading.problems);
    let disabled = reading.fields.boolean("disableHeuristicSchema", reading.problems);
    rules.heuristic_schema = !disabled.unwrap_or_default();
    rules.allow_override = reading.fields.boolean("allowOperatorOverride", reading.problems).unwrap_or_default();
    let suite = reading.context.directory.map(PathBuf::from).unwrap_or_default();
    let base = reading.fields.text("baseDir", reading.problems);
    rules.directory = base.map_or_else(|| suite.clone(), |base| suite.join(base));
    rules.budget = budget(reading);
    if let Some(node) = reading.fields.get("operators") {
        operators(node, host, &mut rules, reading.problems);
    }
    rules
}

fn budget(reading: &mut Reading<'_>) -> Budget {
    let usual = Budget::default();
    let max_score = reading.number("maxScore");
    let alias = reading.number("unassignedWeight");
    let unassigned = reading.number("totalUnassignedWeight").or(alias);
    let shares = match reading.fields.get("autoConfidence") {
        None => Shares::Guessed,
        Some(node) => match &node.kind {
            NodeKind::Bool(true) => Shares::Guessed,
            NodeKind::Bool(false) => Shares::Never,
            NodeKind::String(word) if word == "force" => Shares::Always,
            _ => {
                reading.problems.push(node.error("`autoConfidence` must be true, false or `force`"));
                Shares::Guessed
            }
        },
    };
    Budget {
        max_score: max_score.unwrap_or(usual.max_score),
        unassigned: unassigned.unwrap_or(usual.unassigned),
        shares,
    }
}

/// Reads the custom operators, which are written as a map of names or as a list.
fn operators(node: &Node, host: &Arc<dyn Host>, rules: &mut Rules, problems: &mut Problems) {
    let named: Vec<(String, &Node)> = match &node.kind {
        NodeKind::Map(entries) => entries.iter().map(|(name, node)| (name.value.clone(), node)).collect(),
        NodeKind::List(items) => items.iter().filter_map(|item| Some((inferred(item, problems)?, item))).collect(),
        _ => {
            problems.push(node.error(format!("`operators` must be a map or a list, not {}", node.kind_name())));
            return;
        }
    };
    for (name, node) in named {
        let name = if name.starts_with('$') { name } else { format!("${name}") };
        let Some(reference) = decode::text(node, &format!("the `{name}` operator"), problems) else { continue };
        let is_function = node.tag.as_deref() == Some(expect::FUNCTION_TAG);
        let found = host.function(&reference, if is_function { "" } else { &name }, &rules.directory);
        match found {
            Ok(function) => rules.operators.push((name, function)),
            Err(invalid) => {
                problems.push(invalid.diagnostic(node));
                // The name is still registered, so that each use of the operator is not reported as a second problem.
                rules.operators.push((name, expect::Function::missing()));
            }
        }
    }
}

/// Returns the name of an operator that is given by its module reference alone.
fn inferred(node: &Node, problems: &mut Problems) -> Option<String> {
    let text = decode::text(node, "an operator", problems)?;
    match script::Reference::parse(&text) {
        Ok(reference) => Some(reference.inferred_name()),
        Err(error) => {
            let problem = node.error(&error.message);
            problems.push(error.help.into_iter().fold(problem, Diagnostic::help));
            None
        }
    }
}

/// Returns `true` if the score decides.
fn is_on(node: Option<&Node>, expectation: &Node, problems: &mut Problems) -> bool {
    let Some(node) = node else { return false };
    match &node.kind {
        NodeKind::Bool(on) => *on,
        NodeKind::String(word) if word == "auto" => Scoring::is_wanted_by(expectation),
        _ => {
            problems.push(node.error("`scoring` must be true, false or `auto`"));
            false
        }
    }
}

impl Matcher for Expect {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let mut actual = match &self.about {
            Target::All(wanted) => Some(given::all(evidence, wanted)),
            Target::Output | Target::Schema => given::output(&evidence.trace),
        };
        let output = match &self.about {
            Target::All(_) => actual.as_mut().and_then(|all| all.get_mut("output")),
            Target::Output | Target::Schema => actual.as_mut(),
        };
        if let Some(output) = output.filter(|output| self.parses_json && output.is_string()) {
            match json_source::in_answer(evidence)? {
                json_source::JsonLookup::Value(value) | json_source::JsonLookup::Blocks(value, _) => *output = value,
                json_source::JsonLookup::None { reason, .. } => {
                    let message = format!("{reason}, and `responseParser` is `json`");
                    let flaw = expect::Flaw::new(self.expectation.place(), message).actual(Some(output));
                    let key = if matches!(self.about, Target::All(_)) { "output" } else { "" };
                    let found = Found::flawed(expect::Flaw { key: Some(key.to_owned()), ..flaw });
                    return Ok(self.verdict_of(found, actual.as_ref()));
                }
            }
        }
        let found = self.expectation.judge(actual.as_ref(), &self.data);
        Ok(self.verdict_of(found, actual.as_ref()))
    }
}

impl Expect {
    fn verdict_of(&self, mut found: Found, actual: Option<&Value>) -> Verdict {
        let critical = |undecided: bool| {
            let flaws = found.flaws.iter().filter(move |flaw| flaw.critical && flaw.undecided == undecided);
            flaws.map(|flaw| flaw.key.clone().unwrap_or_default())
        };
        let failed_critical: Vec<String> = critical(false).collect();
        let is_open = critical(true).next().is_some();
        let leeway = ScoreRange { least: found.score, most: found.most, critical: is_open };
        let not_enough = self.scoring.and_then(|scoring| {
            let tally = Tally {
                least: leeway.least * scoring.max_score,
                most: leeway.most * scoring.max_score,
                failed_critical: !failed_critical.is_empty(),
                open_critical: is_open,
            };
            found.pass = scoring.allows(&tally).map_or(Pass::Unknown, Pass::from_bool);
            scoring.because_of(&tally)
        });
        let is_certain = found.pass != Pass::Unknown && !is_open && leeway.least >= leeway.most;
        let key = match self.about {
            Target::All(_) => "expect",
            Target::Output => "output",
            Target::Schema => "schema",
        };
        let place = found.flaws.first().map_or_else(|| self.expectation.place().clone(), |flaw| flaw.place.clone());
        let failures: Vec<model::Failure> = found.flaws.into_iter().map(expect::Flaw::into_failure).collect();
        let reason = reason(found.pass, not_enough, &failures);
        let mut verdict = match found.pass {
            Pass::Yes => Verdict::met(reason),
            Pass::No => {
                let first = failures.first();
                let expected = first.and_then(|failure| failure.expected.as_ref());
                let text_or_nothing = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), text);
                let there = first.map_or(actual, |failure| failure.actual.as_ref());
                Verdict { expected: expected.map(text), ..Verdict::unmet(reason, "", text_or_nothing(there)) }
            }
            Pass::Unknown => Verdict::undecided(reason),
        };
        verdict.place = Some(place).filter(SourceLocation::is_in_file);
        verdict.matched = Some(Box::new(Finding {
            key: Some(key.to_owned()),
            score: Some(found.score),
            leeway: (!is_certain).then_some(leeway),
            title: found.title,
            dimension: found.dimension,
            failed_critical,
            details: found.details,
            failures,
            ..Finding::default()
        }));
        verdict
    }
}

/// Explains the result `pass`. `not_enough` describes the score, if the score decides.
fn reason(pass: Pass, not_enough: Option<String>, failures: &[model::Failure]) -> String {
    let what = match (pass, failures) {
        (Pass::Yes, _) => return "it matches".to_owned(),
        (_, []) => return not_enough.unwrap_or_else(|| "it does not match".to_owned()),
        (_, [only]) => describe(only),
        (_, [first, rest @ ..]) => format!("{} (and {} more)", describe(first), rest.len()),
    };
    match not_enough {
        Some(score) => format!("{score}: {what}"),
        None => what,
    }
}

fn describe(failure: &model::Failure) -> String {
    if failure.key.is_empty() { failure.message.clone() } else { format!("{}: {}", failure.key, failure.message) }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
