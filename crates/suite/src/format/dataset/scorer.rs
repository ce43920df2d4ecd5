//! Scorers of inspect, as a suite names them.

use model::decode::{Fields, Problems};
use model::{AssertionSpec, Node, NodeKind, nearest};

use crate::format::foreign::{assertion, check, grader, list, share, text, undecided, whole};

/// Scorers, with a reason for those that are undecided.
const SCORERS: [(&str, Option<&str>); 12] = [
    ("match", None),
    ("includes", None),
    ("pattern", None),
    ("answer", None),
    ("exact", None),
    ("f1", None),
    ("choice", None),
    ("model_graded_qa", None),
    ("model_graded_fact", None),
    ("math", Some("trialrun does not compare formulas")),
    ("perplexity", Some("agents do not report log probabilities")),
    ("multi_scorer", Some("name the scorers one by one")),
];

/// A scorer with its arguments.
pub(super) struct Scorer {
    node: Node,
    kind: &'static str,
    /// Reason why it is undecided.
    reason: Option<&'static str>,
    /// Fields of the check.
    fields: Vec<(&'static str, Node)>,
    /// Instructions for a judge.
    instructions: Option<String>,
}

/// Reads `scorers`, of which there must be one.
pub(super) fn scorers(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<Scorer> {
    let Some(node) = fields.get("scorers") else {
        let problem = fields.node().error("a dataset of inspect needs `scorers`, because samples assert nothing");
        problems.push(problem.help("for example `scorers: [match]`"));
        return Vec::new();
    };
    let items = match &node.kind {
        NodeKind::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let scorers: Vec<Scorer> = items.iter().filter_map(|item| scorer(item, problems)).collect();
    if items.is_empty() {
        problems.push(node.error("`scorers` is empty, so nothing is asserted"));
    }
    scorers
}

/// Returns the name and the arguments of an item: `NAME`, or `{NAME: {…}}`.
pub(super) fn named<'n>(item: &'n Node, what: &str, problems: &mut Problems) -> Option<(&'n str, Option<&'n Node>)> {
    match &item.kind {
        NodeKind::String(name) => Some((name.as_str(), None)),
        NodeKind::Map(entries) if entries.len() == 1 => {
            entries.first().map(|(key, value)| (key.value.as_str(), Some(value)))
        }
        _ => {
            problems.push(item.error(format!("{what} must be a name, or a map with a name and its arguments")));
            None
        }
    }
}

fn scorer(item: &Node, problems: &mut Problems) -> Option<Scorer> {
    let (name, arguments) = named(item, "a scorer", problems)?;
    let Some((kind, reason)) = SCORERS.iter().find(|(known, _)| *known == name) else {
        let problem = item.error(format!("unknown scorer `{name}`"));
        problems.push(problem.suggest(nearest(name, SCORERS.iter().map(|(known, _)| *known))));
        return None;
    };
    let mut scorer = Scorer { node: item.clone(), kind, reason: *reason, fields: Vec::new(), instructions: None };
    let Some(arguments) = arguments.filter(|_| reason.is_none()) else {
        if matches!(*kind, "pattern" | "answer") {
            problems.push(item.error(format!("`{kind}` needs a `pattern`")));
        }
        return Some(scorer);
    };
    let mut fields = Fields::of(arguments, "the arguments of a scorer", problems)?;
    let mut add = |key, node: Option<&Node>| scorer.fields.extend(node.map(|node| (key, node.clone())));
    match *kind {
        "match" => {
            let places = [("begin", ()), ("end", ()), ("any", ()), ("exact", ())];
            fields.choice("location", &places, problems);
            add("location", fields.get("location"));
            fields.boolean("numeric", problems);
            add("numeric", fields.get("numeric"));
        }
        "pattern" => {
            fields.required_text("pattern", problems);
            add("pattern", fields.get("pattern"));
            fields.boolean("match_all", problems);
            add("match_all", fields.get("match_all"));
        }
        "answer" => {
            fields.require("pattern", problems);
            fields.choice("pattern", &[("letter", ()), ("word", ()), ("line", ())], problems);
            add("pattern", fields.get("pattern"));
        }
        "f1" => {
            fields.texts("stop_words", problems);
            add("stop_words", fields.get("stop_words"));
            if let Some(node) = fields.get("threshold") {
                add("threshold", share(node, "threshold", problems).map(|_| node));
            }
        }
        "model_graded_qa" | "model_graded_fact" => {
            scorer.instructions = fields.text("instructions", problems);
        }
        _ => {}
    }
    if matches!(*kind, "match" | "includes" | "pattern") && fields.boolean("ignore_case", problems) == Some(false) {
        scorer.fields.push(("case", crate::format::foreign::flag(item, true)));
    }
    fields.finish(problems);
    Some(scorer)
}

impl Scorer {
    /// Returns the assertion about an answer to a sample with these targets.
    ///
    /// # Errors
    /// Returns the reason if the sample cannot be scored.
    pub(super) fn assertion(
        &self,
        id: &str,
        row: &Node,
        targets: &[String],
        choices: usize,
        multiple_correct: bool,
    ) -> Result<AssertionSpec, String> {
        let node = &self.node;
        if let Some(reason) = self.reason {
            return Ok(grader(node, id, vec![undecided(node, reason)], false, 1.0));
        }
        // There, an empty target is in every answer.
        if targets.iter().all(|target| target.trim().is_empty()) {
            return Err(format!("the sample has no target, which `{}` needs", self.kind));
        }
        if self.kind.starts_with("model_graded") {
            let usual = match self.kind {
                "model_graded_qa" => "The last reply answers the question as the expected answer does.",
                _ => "The last reply contains the facts of the expected answer, and does not contradict them.",
            };
            let criterion = self.instructions.as_deref().unwrap_or(usual);
            let fields = vec![
                ("criteria", list(node, vec![text(node, criterion)])),
                ("expected", text(row, targets.join("\n"))),
            ];
            return Ok(assertion(node, id, "rubric", fields, 1.0));
        }
        let mut fields = vec![
            ("scorer", text(node, self.kind)),
            ("targets", list(row, targets.iter().map(|target| text(row, target)).collect())),
        ];
        if self.kind == "choice" {
            if choices == 0 {
                return Err("the sample has no choices, which `choice` needs".to_owned());
            }
            fields.push(("choices", whole(row, choices as u64)));
            fields.push(("multiple_correct", crate::format::foreign::flag(node, multiple_correct)));
        }
        fields.extend(self.fields.iter().cloned());
        Ok(grader(node, id, vec![check(node, "scorer", fields)], true, 1.0))
    }

    pub(super) fn name(&self) -> &'static str {
        self.kind
    }
}
