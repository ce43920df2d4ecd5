//! Assertions: their types, and what a case asserts.

use std::collections::HashSet;

use model::decode::{Fields, Problems};
use model::{Arguments, AssertionScope, AssertionSpec, Node, NodeKind, Spanned, nearest};
use template::{Variables, render_nunjucks};

use super::file::{self, FILE};
use super::reading::{Reading, items, map, moved_to, node, placed, text};
use crate::coverage::Treatment;
use crate::document::{self, Language};
use crate::module_tree;

/// Type of an assertion.
pub(super) struct Type {
    pub(super) name: &'static str,
    support: Support,
}

/// How a type is decided.
enum Support {
    Code,
    Judge,
    /// By a model for embeddings or moderation.
    Hosted,
    /// Always undecided, for this reason.
    Undecided(&'static str),
}

const fn by_code(name: &'static str) -> Type {
    Type { name, support: Support::Code }
}

const fn by_judge(name: &'static str) -> Type {
    Type { name, support: Support::Judge }
}

const fn by_hosted_model(name: &'static str) -> Type {
    Type { name, support: Support::Hosted }
}

const fn undecided(name: &'static str, reason: &'static str) -> Type {
    Type { name, support: Support::Undecided(reason) }
}

const HOSTED: &str = "it needs a hosted model, which trialrun does not ask";
const LOG_PROBABILITIES: &str = "agents do not report log probabilities";
const SPANS: &str = "it needs OpenTelemetry spans, which trialrun does not collect from agents";
const SQL: &str = "trialrun has no parser for SQL";
const OTHER_OUTPUTS: &str = "it compares the answers of several providers; use `trialrun compare`";
const BY_A_PERSON: &str = "a person decides it";
const FUNCTIONS: &str = "the functions of the provider are not known";
const RED_TEAM: &str = "trialrun does not have the graders of red teams";

/// The value that promptfoo compares with the `threshold` of a type.
pub(super) enum Threshold {
    /// A score from 0 to 1, which must reach it.
    Share,
    /// A cosine, which must reach it.
    Cosine,
    /// A distance, a time or a cost, which must not exceed it.
    AtMost,
    /// A score of any size.
    AnyScore,
    /// Nothing: it is ignored there too.
    Unused,
}

impl Threshold {
    /// Returns what the threshold of the type `kind` is compared with; `None` if the type is not decided here.
    pub(super) fn of(kind: &str) -> Option<Self> {
        Some(match kind {
            "assert-set"
            | "bleu"
            | "gleu"
            | "rouge-n"
            | "tool-call-f1"
            | "llm-rubric"
            | "agent-rubric"
            | "trajectory:goal-success"
            | "g-eval"
            | "answer-relevance"
            | "context-faithfulness"
            | "context-recall"
            | "context-relevance" => Self::Share,
            "similar" | "similar:cosine" => Self::Cosine,
            "similar:euclidean" | "levenshtein" | "latency" | "cost" => Self::AtMost,
            "similar:dot" | "javascript" | "python" => Self::AnyScore,
            _ => {
                let is_decided = |known: &Type| !matches!(known.support, Support::Undecided(_));
                TYPES.iter().find(|known| known.name == kind).filter(|known| is_decided(known))?;
                Self::Unused
            }
        })
    }

    /// Returns the problem with a threshold that decides regardless of the answer. `inverse` is `true` for a type that
    /// begins with `not-`.
    pub(super) fn problem(&self, node: &Node, inverse: bool) -> Option<String> {
        if matches!(self, Self::Unused) {
            return None;
        }
        let Some(threshold) = number(Some(node)) else { return Some("`threshold` must be a number".to_owned()) };
        let (fault, is_met) = match self {
            Self::Share if threshold <= 0.0 => ("not above 0", true),
            Self::Cosine if threshold <= -1.0 => ("not above -1", true),
            Self::Share | Self::Cosine if threshold > 1.0 => ("above 1", false),
            Self::AtMost if threshold < 0.0 => ("below 0", false),
            _ => return None,
        };
        let passes = if is_met == inverse { "no answer passes" } else { "any answer passes" };
        Some(format!("`threshold` is {fault}, so {passes}"))
    }
}

/// All types.
pub(super) const TYPES: [Type; 68] = [
    by_code("equals"),
    by_code("contains"),
    by_code("contains-all"),
    by_code("contains-any"),
    by_code("icontains"),
    by_code("icontains-all"),
    by_code("icontains-any"),
    by_code("starts-with"),
    by_code("regex"),
    by_code("is-json"),
    by_code("contains-json"),
    by_code("is-xml"),
    by_code("contains-xml"),
    by_code("is-html"),
    by_code("contains-html"),
    undecided("is-sql", SQL),
    undecided("contains-sql", SQL),
    by_code("is-refusal"),
    undecided("is-valid-function-call", FUNCTIONS),
    undecided("is-valid-openai-function-call", FUNCTIONS),
    by_code("is-valid-openai-tools-call"),
    by_code("levenshtein"),
    by_code("bleu"),
    by_code("gleu"),
    undecided("meteor", "it needs WordNet"),
    by_code("rouge-n"),
    by_code("word-count"),
    by_code("latency"),
    by_code("cost"),
    undecided("perplexity", LOG_PROBABILITIES),
    undecided("perplexity-score", LOG_PROBABILITIES),
    undecided("finish-reason", "agents do not report why a model stopped"),
    by_code("javascript"),
    by_code("python"),
    undecided("ruby", "trialrun does not run Ruby"),
    undecided("webhook", "trialrun sends no answers to other services while it grades"),
    by_code("skill-used"),
    by_code("tool-call-f1"),
    by_judge("trajectory:goal-success"),
    by_code("trajectory:tool-args-match"),
    by_code("trajectory:step-count"),
    by_code("trajectory:tool-sequence"),
    by_code("trajectory:tool-used"),
    undecided("trace-error-spans", SPANS),
    undecided("trace-span-count", SPANS),
    undecided("trace-span-duration", SPANS),
    by_judge("llm-rubric"),
    by_judge("agent-rubric"),
    by_judge("g-eval"),
    by_judge("factuality"),
    by_judge("model-graded-closedqa"),
    by_judge("model-graded-factuality"),
    by_judge("answer-relevance"),
    by_judge("context-faithfulness"),
    by_judge("context-recall"),
    by_judge("context-relevance"),
    undecided("conversation-relevance", "it needs the turns of a conversation, and a case has one message"),
    undecided("search-rubric", "it needs a judge that searches the web"),
    undecided("classifier", HOSTED),
    by_hosted_model("moderation"),
    undecided("guardrails", "agents do not report guardrails"),
    undecided("pi", HOSTED),
    by_hosted_model("similar"),
    by_hosted_model("similar:cosine"),
    by_hosted_model("similar:dot"),
    by_hosted_model("similar:euclidean"),
    undecided("select-best", OTHER_OUTPUTS),
    undecided("max-score", OTHER_OUTPUTS),
];

/// Types whose code or prompt receives the variables.
const WITH_VARS: [&str; 6] =
    ["javascript", "python", "assert-set", "context-faithfulness", "context-recall", "context-relevance"];

/// Keys of assertions that change nothing here.
const IGNORED: [(&str, &str); 2] = [("provider", "the judge of the run decides"), ("config", "only code receives it")];

/// Consequence of a threshold that promptfoo does not use.
const UNUSED_THRESHOLD: (&str, &str) = ("threshold", "promptfoo does not use it with this type either");

/// Consequence of an `assert-set` whose weight is 0.
const WEIGHTLESS_SET: (&str, &str) =
    ("weight", "in promptfoo, a set with a weight of 0 still fails its test; write `weight: 0` at its assertions");

/// Keys of assertions without which a verdict would differ.
const REFUSED: [(&str, &str); 2] = [
    ("rubricPrompt", "judges have the prompts of trialrun"),
    ("contextTransform", "the context of an assertion is the variable `context`"),
];

/// Returns the model of a provider that decides assertions of the type `kind`, as `PROVIDER:MODEL`, or the reason why
/// there is none. The provider may be a map with one for each purpose.
pub(super) fn hosted_model(provider: &Node, kind: &str) -> Result<String, String> {
    let purpose = if kind == "moderation" { "moderation" } else { "embedding" };
    let provider = provider.get(purpose).unwrap_or(provider);
    let Some(written) = provider.as_str().or_else(|| provider.get("id")?.as_str()) else {
        return Err(format!("the `provider` names no model for `{purpose}`"));
    };
    let mut parts = written.splitn(3, ':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("openai"), Some(of), Some(model)) if of.trim_end_matches('s') == purpose => Ok(format!("openai:{model}")),
        (Some("ollama"), Some("embedding" | "embeddings"), Some(model)) if purpose == "embedding" => {
            Ok(format!("ollama:{model}"))
        }
        (Some("compatible"), Some(model), None) => Ok(format!("compatible:{model}")),
        _ => Err(format!("trialrun cannot ask `{written}` for `{kind}`")),
    }
}

/// Returns the type whose name is similar to `written`. A negated type is similar only to a negated one.
fn near_type(written: &str) -> Option<String> {
    let near = |text: &str| nearest(text, TYPES.iter().map(|known| known.name));
    let inner = ["not-", "not_", "not ", "!"].iter().find_map(|negation| written.strip_prefix(negation));
    match inner {
        Some(inner) => near(&inner.replace('_', "-")).map(|known| format!("not-{known}")),
        None => near(written).map(str::to_owned),
    }
}

/// Returns the reason why assertions of a type that is not in [`TYPES`] are undecided, if promptfoo knows it.
fn beyond_types(kind: &str) -> Option<&'static str> {
    match kind {
        "human" => Some(BY_A_PERSON),
        _ => kind.starts_with("promptfoo:redteam:").then_some(RED_TEAM),
    }
}

/// Returns the consequence of a key that leaves an assertion undecided.
fn undecided_as(reason: &str) -> String {
    format!("the assertion is undecided: {reason}")
}

/// Values with which the assertions of a case are read.
pub(super) struct Subject<'a> {
    pub(super) vars: &'a [(String, Node)],
    pub(super) variables: &'a Variables,
    /// The rendered prompt.
    pub(super) prompt: &'a str,
    /// Provider of the test's options, which decides assertions that name none.
    pub(super) grader: Option<&'a Node>,
    /// Code that changes the answer before anything else.
    pub(super) transforms: Vec<Node>,
}

/// Assertions of a case.
#[derive(Default)]
pub(super) struct Assertions {
    pub(super) specs: Vec<AssertionSpec>,
    taken: HashSet<String>,
    /// True if a command is run, which needs a sandbox.
    pub(super) runs_commands: bool,
}

impl Reading<'_> {
    /// Records the keys of assertions as they are written. Returns the problems with them.
    pub(super) fn log_assertions(&mut self, list: &[&Node], path: &str) -> Problems {
        let mut broken = Problems::new();
        for &item in list {
            let Some(mut fields) = Fields::of(item, "an assertion", &mut broken) else { continue };
            let kind = fields.text("type", &mut broken);
            for key in ["value", "metric", "transform"] {
                fields.get(key);
            }
            let Some(kind) = kind else {
                broken.push(item.error("an assertion needs a `type`").of_missing(&["type"]));
                continue;
            };
            let bare = kind.strip_prefix("not-").unwrap_or(&kind).to_owned();
            let is_unused = matches!(Threshold::of(&bare), Some(Threshold::Unused)) && item.get("threshold").is_some();
            let is_weightless_set = bare == "assert-set" && number(item.get("weight")) == Some(0.0);
            for key in [(!is_unused).then_some("threshold"), (!is_weightless_set).then_some("weight")] {
                key.and_then(|key| fields.get(key));
            }
            if bare == "assert-set" {
                let inner = items(fields.get("assert"));
                let is_misspelt = fields.unread().any(|(name, _)| fields.meant_by(&name.value) == Some("assert"));
                if inner.is_empty() && !is_misspelt {
                    broken.push(item.error("an `assert-set` needs assertions in `assert`"));
                }
                broken.extend(self.log_assertions(&inner, &format!("{path}[].assert")));
            }
            if matches!(bare.as_str(), "javascript" | "python") {
                fields.get("config");
            }
            let found = TYPES.iter().find(|known| known.name == bare);
            let place = item.get("type").unwrap_or(item);
            match found.map(|found| &found.support) {
                Some(Support::Undecided(reason)) => self.log_undecided(&bare, reason, path, item),
                None if bare != "assert-set" => match beyond_types(&bare) {
                    Some(reason) => self.log_undecided(&bare, reason, path, item),
                    None => {
                        let problem = place.error(format!("unknown assertion type `{kind}`"));
                        broken.push(problem.suggest(near_type(&kind).as_deref()));
                    }
                },
                _ => {}
            }
            let is_hosted = matches!(found.map(|found| &found.support), Some(Support::Hosted));
            let model = item.get("provider").filter(|_| is_hosted).map(|provider| hosted_model(provider, &bare));
            let consequence = model.as_ref().and_then(|model| model.as_ref().err()).map(|reason| undecided_as(reason));
            let mut ignored: Vec<(&str, &str)> =
                consequence.iter().map(|consequence| ("provider", consequence.as_str())).collect();
            if let Some(Ok(_)) = model {
                fields.get("provider");
            }
            ignored.extend(IGNORED);
            let is_judged = matches!(found.map(|found| &found.support), Some(Support::Judge));
            let mut refused = if is_judged { REFUSED.to_vec() } else { REFUSED[1..].to_vec() };
            if !is_judged {
                ignored.push(("rubricPrompt", "no judge decides the assertion"));
            }
            ignored.extend(is_unused.then_some(UNUSED_THRESHOLD));
            refused.extend(is_weightless_set.then_some(WEIGHTLESS_SET));
            broken.extend(self.close(&fields, &format!("{path}[]"), &ignored, &refused));
        }
        broken
    }

    /// Records that assertions of the type `kind` in the list `path` are undecided for `reason`.
    fn log_undecided(&mut self, kind: &str, reason: &str, path: &str, item: &Node) {
        let key = format!("{path}[].type: {kind}");
        self.keys.add(key, Treatment::Ignored, Some(undecided_as(reason)), item.excerpt());
    }

    /// Adds the assertions in `list` to those of a case. Each has its weight multiplied by `share`.
    pub(super) fn assertions(
        &self,
        list: &[&Node],
        share: f64,
        subject: &Subject<'_>,
        all: &mut Assertions,
        problems: &mut Problems,
    ) {
        for item in list {
            let Some(kind) = item.get("type").and_then(Node::as_str) else { continue };
            let weight = weight(item, problems);
            let inner = items(item.get("assert"));
            if kind == "assert-set" {
                let total: f64 = inner.iter().map(|inner| self::weight(inner, &mut Problems::new())).sum();
                if total <= 0.0 && !inner.is_empty() {
                    problems.push(item.error("no assertion of the `assert-set` has a weight above 0"));
                    continue;
                }
                if threshold_of(item).is_none() {
                    self.assertions(&inner, share * weight / total.max(f64::MIN_POSITIVE), subject, all, problems);
                    continue;
                }
            }
            let Some(assertion) = self.assertion(item, subject, all, problems) else { continue };
            let title = item.get("metric").and_then(|metric| self.rendered(metric, subject.variables, problems));
            all.push(item, kind, assertion, weight * share, title, subject);
        }
    }

    /// Returns an assertion with its templates rendered and its files read.
    fn assertion(
        &self,
        item: &Node,
        subject: &Subject<'_>,
        all: &mut Assertions,
        problems: &mut Problems,
    ) -> Option<Node> {
        let kind = item.get("type").and_then(Node::as_str)?;
        let bare = kind.strip_prefix("not-").unwrap_or(kind);
        let mut fields = vec![("type".to_owned(), item.get("type")?.clone())];
        if let Some((threshold, node)) = Threshold::of(bare).zip(threshold_of(item)) {
            if let Some(problem) = threshold.problem(node, bare != kind) {
                problems.push(node.error(problem));
                return None;
            }
            if !matches!(threshold, Threshold::Unused) {
                fields.push(("threshold".to_owned(), node.clone()));
            }
        }
        for key in ["weight", "transform", "config"] {
            fields.extend(item.get(key).map(|node| (key.to_owned(), node.clone())));
        }
        if bare == "assert-set" {
            let inner = items(item.get("assert"));
            for inner in &inner {
                weight(inner, problems);
            }
            let inner: Option<Vec<Node>> =
                inner.iter().map(|inner| self.assertion(inner, subject, all, problems)).collect();
            fields.push(("assert".to_owned(), node(item, NodeKind::List(inner?))));
            return Some(map(item, fields));
        }
        let known = TYPES.iter().find(|known| known.name == bare);
        if let Some(Support::Undecided(reason)) = known.map(|known| &known.support) {
            fields.push(("undecided".to_owned(), text(item, *reason)));
            return Some(map(item, fields));
        }
        if known.is_none() {
            let reason = beyond_types(bare).unwrap_or("its type is not known");
            fields.push(("undecided".to_owned(), text(item, reason)));
            return Some(map(item, fields));
        }
        if matches!(known.map(|known| &known.support), Some(Support::Hosted)) {
            let provider = item.get("provider").or(subject.grader);
            match provider.map(|provider| hosted_model(provider, bare)) {
                Some(Ok(model)) => fields.push(("provider".to_owned(), text(item, model))),
                Some(Err(reason)) => fields.push(("undecided".to_owned(), text(item, reason))),
                None => {}
            }
        }
        all.runs_commands |= bare == "python";
        let Some(written) = item.get("value") else { return Some(map(item, fields)) };
        if let (Some(reference), "python") = (written.as_str().and_then(|text| text.strip_prefix(FILE)), bare) {
            let (file, function) = file::with_function(reference);
            let path = self.path_of(file);
            let source = self.open(&path, written, problems)?;
            let folder = path.parent().unwrap_or(&path).to_string_lossy().into_owned();
            fields.push(("value".to_owned(), written.clone()));
            fields.push(("code".to_owned(), text(written, source.text.clone())));
            fields.push(("function".to_owned(), text(written, function.unwrap_or("get_assert"))));
            fields.push(("directory".to_owned(), text(written, folder)));
            return Some(map(item, fields));
        }
        let value = self.value(written, bare, subject, problems)?;
        fields.push(("value".to_owned(), value));
        Some(map(item, fields))
    }

    /// Returns the value of an assertion of the type `kind`.
    fn value(&self, written: &Node, kind: &str, subject: &Subject<'_>, problems: &mut Problems) -> Option<Node> {
        let is_module = |text: &str| {
            let reference = text.strip_prefix(FILE);
            reference.is_some_and(|reference| file::is_module(file::with_function(reference).0.as_ref()))
        };
        if module_tree::is_function(written) {
            if kind == "javascript" {
                return Some(written.clone());
            }
            problems.push(written.error(format!("a value of `{kind}` that code computes is not supported")));
            return None;
        }
        let value = match &written.kind {
            NodeKind::String(text) if is_module(text) && kind == "javascript" => return Some(written.clone()),
            NodeKind::String(text) if is_module(text) || text.starts_with(FILE) && text.ends_with(".py") => {
                problems.push(written.error(format!("a value of `{kind}` that code computes is not supported")));
                return None;
            }
            NodeKind::String(reference) if reference.starts_with(FILE) => {
                moved_to(self.value_in(&self.path_of(reference), written, problems)?, written)
            }
            NodeKind::String(_) => text(written, self.rendered(written, subject.variables, problems)?),
            NodeKind::List(list) => {
                let each = |item: &Node, problems: &mut Problems| match item.as_str() {
                    Some(reference) if reference.starts_with(FILE) => {
                        Some(moved_to(self.value_in(&self.path_of(reference), item, problems)?, item))
                    }
                    Some(_) => Some(text(item, self.rendered(item, subject.variables, problems)?)),
                    None => Some(item.clone()),
                };
                let list: Option<Vec<Node>> = list.iter().map(|item| each(item, problems)).collect();
                node(written, NodeKind::List(list?))
            }
            _ => written.clone(),
        };
        // A schema may be written as YAML in a string.
        if let (Some(schema), "is-json" | "contains-json") =
            (value.as_str().filter(|text| !text.trim().is_empty()), kind)
        {
            let source = model::Source::new(&*written.source.path, schema);
            let mut found = Problems::new();
            let root = document::read(&source, Language::Yaml, &mut found);
            return match root.filter(|_| found.is_empty()) {
                Some(root) => Some(placed(&root.to_json(), written)),
                None => {
                    problems.push(written.error("the schema is not valid YAML"));
                    None
                }
            };
        }
        Some(value)
    }

    /// Returns a string with its templates rendered. Problems are reported at their lines.
    pub(super) fn rendered(&self, node: &Node, variables: &Variables, problems: &mut Problems) -> Option<String> {
        render_nunjucks(node, variables, problems)
    }
}

impl Assertions {
    /// Adds an assertion, which is written at `item`.
    fn push(
        &mut self,
        item: &Node,
        kind: &str,
        assertion: Node,
        weight: f64,
        title: Option<String>,
        subject: &Subject<'_>,
    ) {
        let bare = kind.strip_prefix("not-").unwrap_or(kind);
        let mut entry = vec![("assertion".to_owned(), assertion)];
        if WITH_VARS.contains(&bare) || item.get("transform").is_some() || !subject.transforms.is_empty() {
            entry.push(("vars".to_owned(), map(item, subject.vars.to_vec())));
            entry.push(("prompt".to_owned(), text(item, subject.prompt)));
        }
        entry.push(("transforms".to_owned(), node(item, NodeKind::List(subject.transforms.clone()))));
        entry.extend(title.iter().map(|title| ("title".to_owned(), text(item, title.as_str()))));
        let stem = title.unwrap_or_else(|| kind.to_owned());
        let mut number = 1;
        let mut id = stem.clone();
        while !self.taken.insert(id.clone()) {
            number += 1;
            id = format!("{stem}-{number}");
        }
        let place = item.get("type").unwrap_or(item).span;
        self.specs.push(AssertionSpec {
            node: Node { tag: Some("!promptfoo".into()), ..map(item, entry) },
            arguments: Arguments::Fields,
            about: AssertionScope::Trial,
            id,
            kind: Spanned::new("promptfoo".to_owned(), place),
            weight,
        });
    }
}

/// Returns the weight of an assertion, which is not below 0.
fn weight(item: &Node, problems: &mut Problems) -> f64 {
    let Some(node) = item.get("weight") else { return 1.0 };
    match number(Some(node)).filter(|weight| *weight >= 0.0) {
        Some(weight) => weight,
        None => {
            problems.push(node.error("`weight` must be a number that is not below 0"));
            1.0
        }
    }
}

/// Returns the threshold of an assertion. `null` counts as none.
fn threshold_of(item: &Node) -> Option<&Node> {
    item.get("threshold").filter(|node| !matches!(node.kind, NodeKind::Null))
}

/// Returns the number in `node`.
pub(super) fn number(node: Option<&Node>) -> Option<f64> {
    match &node?.kind {
        NodeKind::Number(number) => number.as_f64(),
        _ => None,
    }
}
