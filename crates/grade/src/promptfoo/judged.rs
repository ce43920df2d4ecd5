//! Assertions that promptfoo gives to a model. The judge of the run decides them.

use model::decode::Problems;
use model::{Evidence, Node, Status};

use super::{Entry, Graded, kind_of, number, strings};
use crate::judge::reading::{points, reasoning, split};
use crate::judge::{self, Criterion, Form, Judged, Material, Question, Quoted, Votes, prompt};
use crate::verdict::Verdict;

/// Highest score of assertions that have a threshold.
const SCALE: u64 = 11;

/// Type about what the agent did, which needs its calls.
const GOAL: &str = "trajectory:goal-success";

/// Types of assertions, each with the score that promptfoo requires if the assertion has no `threshold`. For types without
/// one, the judge says whether the criteria hold, and gives no score.
const TYPES: [(&str, Option<f64>); 11] = [
    ("llm-rubric", None),
    ("agent-rubric", None),
    ("model-graded-closedqa", None),
    (GOAL, None),
    ("factuality", None),
    ("model-graded-factuality", None),
    ("g-eval", Some(0.7)),
    ("answer-relevance", Some(0.5)),
    ("context-faithfulness", Some(0.5)),
    ("context-recall", Some(0.5)),
    ("context-relevance", Some(0.5)),
];

/// Judged assertion.
#[derive(Debug)]
pub(super) struct Rubric {
    /// Type as it is written.
    kind: String,
    task: String,
    criteria: Vec<String>,
    /// Score that is needed, above 0 and up to 1; a mark decides without it.
    threshold: Option<f64>,
    inverse: bool,
}

/// Returns `true` if a judge decides `assertion`.
pub(super) fn is_judged(assertion: &Node) -> bool {
    kind_of(assertion).is_some_and(|(kind, _)| TYPES.iter().any(|(known, _)| *known == kind))
        && assertion.get("undecided").is_none()
}

/// Reads a judged assertion; `None` if no judge decides it. Problems are reported.
pub(super) fn read(assertion: &Node, entry: &Entry<'_>, problems: &mut Problems) -> Option<Option<Rubric>> {
    if !is_judged(assertion) {
        return None;
    }
    let (kind, inverse) = kind_of(assertion)?;
    let (_, usual) = *TYPES.iter().find(|(known, _)| *known == kind)?;
    let of_test = entry.node.get("transforms").filter(|_| has_transforms(entry));
    if let Some(node) = assertion.get("transform").or(of_test) {
        let problem = node.error("`transform` cannot be combined with a judged assertion");
        problems.push(problem.help("the judge reads the conversation as it was"));
        return Some(None);
    }
    let Some((task, criteria)) = criteria(kind, assertion, entry, problems) else { return Some(None) };
    let threshold = number(assertion, "threshold").or(usual);
    let kind = if inverse { format!("not-{kind}") } else { kind.to_owned() };
    Some(Some(Rubric { kind, task, criteria, threshold, inverse }))
}

/// Returns the task and the criteria of an assertion of the type `kind`. Problems are reported.
fn criteria(kind: &str, assertion: &Node, entry: &Entry<'_>, problems: &mut Problems) -> Option<(String, Vec<String>)> {
    let vars = entry.node.get("vars");
    let var = |name: &str| {
        let node = vars.and_then(|vars| vars.get(name))?;
        Some(node.as_str().map_or_else(|| node.to_json().to_string(), str::to_owned))
    };
    if kind.starts_with("context-") && var("context").is_none() {
        problems.push(assertion.error(format!("`{kind}` needs the variable `context`")));
        return None;
    }
    let mut wanted = || strings(assertion, problems);
    let context = || var("context").unwrap_or_default();
    Some(match kind {
        "factuality" | "model-graded-factuality" => {
            let facts = wanted()?.join("\n");
            let criterion =
                "The last reply is factually consistent with the reference text: it does not contradict it.";
            (format!("The reference text:\n{facts}"), vec![criterion.to_owned()])
        }
        "answer-relevance" => {
            let criterion = "The last reply answers what the user asked, and does not digress.";
            (String::new(), vec![criterion.to_owned()])
        }
        "context-faithfulness" => {
            let criterion = "Every statement of the last reply is supported by the context.";
            (format!("The context:\n{}", context()), vec![criterion.to_owned()])
        }
        "context-recall" => {
            let truth = wanted()?.join("\n");
            let criterion = "Every statement of the reference text is supported by the context.";
            (format!("The context:\n{}\n\nThe reference text:\n{truth}", context()), vec![criterion.to_owned()])
        }
        "context-relevance" => {
            let question = var("query").unwrap_or_else(|| entry.prompt().to_owned());
            let criterion = "The context is relevant to the question, and has little else.";
            (format!("The context:\n{}\n\nThe question:\n{question}", context()), vec![criterion.to_owned()])
        }
        GOAL => {
            let goal = assertion.get("value").and_then(|node| node.get("goal")).and_then(Node::as_str);
            let goal = match goal {
                Some(goal) => goal.to_owned(),
                None => wanted()?.join("\n"),
            };
            (String::new(), vec![format!("The agent achieved this goal: {goal}")])
        }
        _ => (String::new(), wanted()?),
    })
}

fn has_transforms(entry: &Entry<'_>) -> bool {
    let transforms = entry.node.get("transforms").map(|node| &node.kind);
    matches!(transforms, Some(model::NodeKind::List(items)) if !items.is_empty())
}

impl Judged for Rubric {
    fn question(&self, evidence: &Evidence) -> Result<Question, Box<Verdict>> {
        if self.kind.ends_with(GOAL)
            && let Some(verdict) = judge::without_calls(&evidence.trace)
        {
            return Err(verdict);
        }
        let material = Material::from_evidence(evidence);
        if material.is_empty() || (!material.is_answered && self.needs_reply()) {
            return Err(match self.inverse {
                true => Box::new(Verdict::undecided("the agent gave no answer")),
                false => judge::nothing_to_judge(&self.criteria.join("; ")),
            });
        }
        let (prompt, form, quoted) = match self.threshold {
            Some(_) => (prompt::CRITERION, Form::Scores(SCALE), Quoted::Always),
            None => (prompt::RUBRIC, Form::Marks, Quoted::WhenMet),
        };
        let mut task = prompt.to_owned();
        if !self.task.is_empty() {
            task.push_str(&format!("\n\n{}", self.task));
        }
        let criterion = |(index, text): (usize, &String)| Criterion::new(index, text.as_str(), quoted);
        let criteria = self.criteria.iter().enumerate().map(criterion).collect();
        Ok(Question { task, criteria, form, material, has_sandbox: false })
    }

    fn decide(&self, _: &Question, votes: &Votes<'_>) -> Verdict {
        let decided = match self.threshold {
            None => self.by_marks(votes),
            Some(threshold) => self.by_scores(votes, threshold),
        };
        let Some(Graded { pass, score, reason }) = decided else { return Verdict::undecided(split(votes)) };
        let verdict = match pass {
            true => Verdict::met(reason),
            false => Verdict { status: Status::Unmet, ..Verdict::met(reason) },
        };
        verdict.scored(score)
    }
}

impl Rubric {
    /// Returns `true` if nothing but a reply can be judged. Calls without a reply can show that a criterion holds, and
    /// never that it does not.
    fn needs_reply(&self) -> bool {
        match self.kind.strip_prefix("not-").unwrap_or(&self.kind) {
            "agent-rubric" | GOAL | "context-recall" | "context-relevance" => false,
            "llm-rubric" | "g-eval" | "model-graded-closedqa" => self.inverse,
            _ => true,
        }
    }

    /// Returns the result if the judges say whether each criterion holds; `None` if they do not decide it.
    fn by_marks(&self, votes: &Votes<'_>) -> Option<Graded> {
        let marks: Vec<Option<bool>> = (0..self.criteria.len()).map(|index| votes.tally(index).majority()).collect();
        let failed = marks.iter().position(|mark| *mark == Some(false));
        let holds = failed.is_none();
        if holds && marks.contains(&None) {
            return None;
        }
        let (count, met) = (marks.len(), marks.iter().filter(|mark| **mark == Some(true)).count());
        let found = match (count, holds) {
            (1, true) => "the judge says that the criterion holds".to_owned(),
            (1, false) => "the judge says that the criterion does not hold".to_owned(),
            _ => format!("the judge says that {met} of {count} criteria hold"),
        };
        let kind = &self.kind;
        let wanted = match (self.inverse, holds) {
            (false, _) => String::new(),
            (true, true) => format!(", and `{kind}` forbids that"),
            (true, false) => format!(", as `{kind}` requires"),
        };
        let reasoning = reasoning(votes, failed.unwrap_or_default());
        Some(self.graded(holds, met as f64 / count.max(1) as f64, format!("{found}{wanted}{reasoning}")))
    }

    /// Returns the result if the judges give each criterion a score; `None` if they do not decide it.
    fn by_scores(&self, votes: &Votes<'_>, threshold: f64) -> Option<Graded> {
        let count = self.criteria.len();
        let scores: Vec<_> = (0..count).map(|index| votes.scores(index, SCALE, |mark| mark.score)).collect();
        let share = |mean: f64| (mean - 1.0) / (SCALE - 1) as f64;
        let mean = |of: fn(&judge::Scores) -> f64| {
            scores.iter().map(|scores| share(of(scores))).sum::<f64>() / count.max(1) as f64
        };
        let reaches = |score: f64| score >= threshold - 1e-9;
        let (least, most) = (reaches(mean(|all| all.min_mean)), reaches(mean(|all| all.max_mean)));
        let score = mean(judge::Scores::mean);
        let wanted = if self.inverse { "must be below" } else { "needs" };
        let found = format!("the judge's score is {}, and {wanted} {threshold}", points(score));
        (least == most).then(|| self.graded(least, score, format!("{found}{}", reasoning(votes, 0))))
    }

    /// Returns the result for criteria that hold or not, with the score of the judge.
    fn graded(&self, holds: bool, score: f64, reason: String) -> Graded {
        Graded { pass: holds != self.inverse, score: if self.inverse { 1.0 - score } else { score }, reason }
    }
}
