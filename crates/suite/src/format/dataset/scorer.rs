//! Scorers of inspect, as a suite names them.

use model::decode::{Fields, Problems};
use model::{AssertionSpec, Node, NodeKind, nearest};

use crate::coverage::Treatment;
use crate::format::foreign::{Keys, Reading, assertion, check, grader, list, share, text, undecided, whole};

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
    /// Which of several targets a judge requires; absent if the suite does not say.
    required: Option<Required>,
}

/// Which of several targets are required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Required {
    All,
    Any,
}

/// Consequences of ignoring arguments of judges that change no verdict here.
const IGNORED: [(&str, &str); 4] = [
    ("model", "the judge of the run decides"),
    ("model_role", "the judge of the run decides"),
    ("reducer", "the majority of the judges of the run decides"),
    ("include_history", "judges get the conversation"),
];

/// Arguments without which a verdict would differ, and what to write instead.
const REFUSED: [(&str, &str); 3] = [
    ("template", "judges have the prompts of trialrun; write the criterion as `instructions`"),
    ("grade_pattern", "judges answer in a form of trialrun"),
    ("partial_credit", "an answer is right or wrong"),
];

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

/// Returns the items of a list, or the only one.
pub(super) fn list_items(node: &Node) -> &[Node] {
    match &node.kind {
        NodeKind::List(items) => items,
        _ => std::slice::from_ref(node),
    }
}

impl Reading<'_> {
    /// Reads `scorers`, of which there must be one.
    pub(super) fn scorers(&mut self, fields: &mut Fields<'_>) -> Vec<Scorer> {
        let Some(node) = fields.get("scorers") else {
            let problem = fields.node().error("a dataset of inspect needs `scorers`, because samples assert nothing");
            let problem = problem.of_missing(&["scorers"]);
            self.found.push(problem.help("for example `scorers: [match]`"));
            return Vec::new();
        };
        let items = list_items(node);
        if items.is_empty() {
            self.found.push(node.error("`scorers` is empty, so nothing is asserted"));
        }
        items.iter().filter_map(|item| self.scorer(item)).collect()
    }

    /// Records the arguments of a scorer or a metric. A refused one that is null or false is not used there either.
    pub(super) fn close_arguments(
        &mut self,
        mut fields: Fields<'_>,
        path: &str,
        ignored: &Keys<'static>,
        refused: &Keys<'static>,
    ) {
        let NodeKind::Map(entries) = &fields.node().kind else { return };
        let unread: Vec<&str> = fields.unread().map(|(name, _)| name.value.as_str()).collect();
        for (name, value) in entries {
            let key = name.value.as_str();
            let full = format!("{path}.{key}");
            let of = |keys: &Keys<'static>| keys.iter().find(|(known, _)| *known == key).copied();
            let is_used = !matches!(value.kind, NodeKind::Null | NodeKind::Bool(false));
            if let Some((known, consequence)) = of(ignored) {
                fields.get(known);
                self.ignore(&full, consequence, value);
            } else if let Some((known, consequence)) = of(refused).filter(|_| is_used) {
                fields.get(known);
                self.refuse(&full, consequence, value);
            } else if !unread.contains(&key) {
                self.keys.add(full, Treatment::Honoured, None, value.source.excerpt(name.span));
            } else if let Some((known, _)) = of(refused) {
                fields.get(known);
            }
        }
        fields.finish(&mut self.found);
    }

    fn scorer(&mut self, item: &Node) -> Option<Scorer> {
        let (name, arguments) = named(item, "a scorer", &mut self.found)?;
        let Some((kind, reason)) = SCORERS.iter().find(|(known, _)| *known == name) else {
            let problem = item.error(format!("unknown scorer `{name}`"));
            self.found.push(problem.suggest(nearest(name, SCORERS.iter().map(|(known, _)| *known))));
            return None;
        };
        let key = format!("scorers[]: {kind}");
        match reason {
            Some(reason) => self.ignore(&key, &format!("the assertion is undecided: {reason}"), item),
            None => self.keys.add(key, Treatment::Honoured, None, item.excerpt()),
        }
        let mut scorer = Scorer {
            node: item.clone(),
            kind,
            reason: *reason,
            fields: Vec::new(),
            instructions: None,
            required: None,
        };
        let Some(arguments) = arguments.filter(|_| reason.is_none()) else {
            if matches!(*kind, "pattern" | "answer") {
                self.found.push(item.error(format!("`{kind}` needs a `pattern`")));
                return None;
            }
            return Some(scorer);
        };
        let mut fields = Fields::of(arguments, "the arguments of a scorer", &mut self.found)?;
        // False if the problem with an argument is reported.
        let mut is_usable = true;
        let mut add = |key, node: Option<&Node>| scorer.fields.extend(node.map(|node| (key, node.clone())));
        match *kind {
            "match" => {
                let places = [("begin", ()), ("end", ()), ("any", ()), ("exact", ())];
                is_usable =
                    fields.choice("location", &places, &mut self.found).is_some() || fields.get("location").is_none();
                add("location", fields.get("location"));
                fields.boolean("numeric", &mut self.found);
                add("numeric", fields.get("numeric"));
            }
            "pattern" => {
                is_usable = fields.required_text("pattern", &mut self.found).is_some();
                add("pattern", fields.get("pattern"));
                fields.boolean("match_all", &mut self.found);
                add("match_all", fields.get("match_all"));
            }
            "answer" => {
                fields.require("pattern", &mut self.found);
                let patterns = [("letter", ()), ("word", ()), ("line", ())];
                is_usable = fields.choice("pattern", &patterns, &mut self.found).is_some();
                add("pattern", fields.get("pattern"));
            }
            "f1" => {
                fields.texts("stop_words", &mut self.found);
                add("stop_words", fields.get("stop_words"));
                if let Some(node) = fields.get("threshold") {
                    add("threshold", share(node, "threshold", &mut self.found).map(|_| node));
                }
            }
            "model_graded_qa" | "model_graded_fact" => {
                scorer.instructions = fields.text("instructions", &mut self.found);
                scorer.required =
                    fields.choice("require", &[("all", Required::All), ("any", Required::Any)], &mut self.found);
                // An unknown word is reported once, and not as a missing one.
                if fields.get("require").is_some() {
                    scorer.required.get_or_insert(Required::All);
                }
            }
            _ => {}
        }
        if matches!(*kind, "match" | "includes" | "pattern")
            && fields.boolean("ignore_case", &mut self.found) == Some(false)
        {
            scorer.fields.push(("case", crate::format::foreign::flag(item, true)));
        }
        let is_judged = kind.starts_with("model_graded");
        let (ignored, refused): (&Keys<'static>, &Keys<'static>) =
            if is_judged { (&IGNORED, &REFUSED) } else { (&[], &[]) };
        self.close_arguments(fields, &format!("scorers[{kind}]"), ignored, refused);
        is_usable.then_some(scorer)
    }
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
                ("expected", text(row, self.expected(targets)?)),
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
            // A target can name several choices. Further ones than the 26th have numbers.
            let last = b'A'.saturating_add(u8::try_from(choices - 1).unwrap_or(u8::MAX));
            let is_beyond =
                |c: char| c.is_ascii_digit() || (c.is_ascii_alphabetic() && c.to_ascii_uppercase() > last.into());
            if let Some(target) = targets.iter().find(|target| choices <= 26 && target.contains(is_beyond)) {
                let last = char::from(last);
                return Err(format!("the target `{target}` is not one of the letters of the choices, `A` to `{last}`"));
            }
            fields.push(("choices", whole(row, choices as u64)));
            fields.push(("multiple_correct", crate::format::foreign::flag(node, multiple_correct)));
        }
        fields.extend(self.fields.iter().cloned());
        Ok(grader(node, id, vec![check(node, "scorer", fields)], true, 1.0))
    }

    /// Returns the expected answer for a judge. There, a judge gets several targets as one text without anything
    /// between them, which does not say if one of them is enough.
    ///
    /// # Errors
    /// Returns the reason if it is not known which targets are required.
    fn expected(&self, targets: &[String]) -> Result<String, String> {
        let targets: Vec<&str> =
            targets.iter().map(|target| target.trim()).filter(|target| !target.is_empty()).collect();
        if let [target] = targets.as_slice() {
            return Ok((*target).to_owned());
        }
        let title = match self.required {
            Some(Required::Any) => "One of these expected answers is enough:",
            Some(Required::All) => "The expected answer is all of these together:",
            None => {
                let kind = self.kind;
                return Err(format!(
                    "the sample has several targets, and `{kind}` does not say if one is enough; write \
                     `{{ {kind}: {{ require: any }} }}` or `require: all`"
                ));
            }
        };
        let lines = targets.iter().map(|target| format!("\n- {target}"));
        Ok(std::iter::once(title.to_owned()).chain(lines).collect())
    }

    pub(super) fn name(&self) -> &'static str {
        self.kind
    }
}
