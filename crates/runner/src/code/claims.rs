//! A scenario's claims and their results, which become the findings of its trial, in the order of the calls.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use grade::{ASSERTIONS, Check, Context, KnownTools, Scripts};
use model::{
    Arguments, AssertionScope, AssertionSpec, Claim, Diagnostic, Excerpt, Finding, Node, NodeKind, Spanned, Status,
};
use script::Value;

use super::{AssertionCall, ObservedClaim};

/// Type of the finding about the scenario itself.
const SCENARIO: &str = "scenario";

/// Assertions that the prelude decides itself.
const OWN: [&str; 1] = ["custom"];

/// Claims of a scenario.
#[derive(Default)]
pub(crate) struct Claims {
    /// Findings by the number of their claim.
    findings: BTreeMap<u64, Finding>,
    /// Finding that reports a problem with the scenario itself.
    about_itself: Option<Finding>,
    /// Scores that the scenario recorded.
    pub(crate) scores: BTreeMap<String, f64>,
}

impl Claims {
    /// Compiles `claim` for grading. Relative paths in it start at `directory`; `known_tools` are the agent's tools,
    /// and `scripts` runs their code.
    ///
    /// # Errors
    /// Returns the finding to report for a claim that cannot be compiled.
    pub(crate) fn compile(
        claim: &AssertionCall,
        directory: &Path,
        known_tools: KnownTools<'static>,
        scripts: &Scripts,
    ) -> Result<Check, Box<Finding>> {
        let AssertionCall { name, reply, arguments, place, .. } = claim;
        let head = place.excerpt();
        if grade::find(name).is_none_or(grade::Assertion::is_implicit) {
            return Err(Box::new(unknown(name, head)));
        }
        let kind = kind_of(name);
        if arguments.iter().any(has_function) {
            let reason = format!("`assert.{name}` does not accept a function; use `assert.custom(name, fn, reply)`");
            return Err(Box::new(undecided(&kind, head, &reason)));
        }
        let spec = AssertionSpec {
            node: Node { kind: NodeKind::Map(Vec::new()), ..place.clone() },
            arguments: Arguments::Listed(arguments.clone()),
            about: reply.map_or(AssertionScope::Trial, AssertionScope::Reply),
            id: String::new(),
            kind: Spanned::new(name.clone(), place.span),
            weight: 1.0,
        };
        let context = Context { directory: Some(directory), scripts: Some(scripts), known_tools, ..Context::default() };
        grade::claim(&spec, &context).map_err(|problems| Box::new(misused(&kind, head, &problems)))
    }

    /// Stores the finding of claim `number`.
    pub(crate) fn keep(&mut self, number: u64, finding: Finding) {
        self.findings.insert(number, finding);
    }

    /// Stores a claim that the scenario decides itself, or its result.
    pub(crate) fn observe(&mut self, observed: ObservedClaim) {
        let finding = self.findings.entry(observed.number).or_insert_with(|| {
            let reason = "it did not finish";
            let source = observed.source.clone();
            Finding { claim: Claim::Observed, ..Finding::undecided("", &kind_of(&observed.name), 1.0, source, reason) }
        });
        if let Some(title) = observed.title {
            finding.title = Some(title);
        }
        let Some(status) = observed.status else { return };
        finding.status = status;
        finding.score = match status {
            Status::Met => Some(1.0),
            Status::Unmet => Some(0.0),
            Status::Undecided => None,
        };
        finding.reason = observed.reason.or_else(|| observed.error.clone()).unwrap_or_default();
        finding.error = observed.error;
        finding.expected = observed.expected;
        finding.actual = observed.actual;
        finding.evidence = observed.evidence;
    }

    /// Returns the result of claim `number` so far, as a value for the script.
    pub(crate) fn result(&self, number: u64, latency_ms: f64) -> Value {
        let Some(finding) = self.findings.get(&number) else { return Value::Map(Vec::new()) };
        let text = |text: &Option<String>| text.as_deref().map_or(Value::Undefined, Value::from);
        let status = match finding.status {
            Status::Met => "met",
            Status::Unmet => "unmet",
            Status::Undecided => "undecided",
        };
        Value::Map(vec![
            ("type".into(), finding.kind.as_str().into()),
            ("passed".into(), (finding.status == Status::Met).into()),
            ("status".into(), status.into()),
            ("expected".into(), text(&finding.expected)),
            ("actual".into(), text(&finding.actual)),
            ("reasoning".into(), finding.reason.as_str().into()),
            ("latencyMs".into(), latency_ms.into()),
            ("error".into(), text(&finding.error)),
        ])
    }

    /// Records that something is wrong with the scenario itself, so its trial cannot pass.
    pub(crate) fn failed(&mut self, reason: &str, source: Excerpt, evidence: Vec<String>) {
        let finding = Finding::undecided(SCENARIO, SCENARIO, 1.0, Some(source), reason);
        let failed = Finding { status: Status::Unmet, score: Some(0.0), claim: Claim::Observed, evidence, ..finding };
        self.about_itself.get_or_insert(failed);
    }

    /// Returns `true` if there are no claims and no problem with the scenario.
    pub(crate) fn is_empty(&self) -> bool {
        self.findings.is_empty() && self.about_itself.is_none()
    }

    /// Returns all findings in order, each with an id: its title, or its type and a number among those of that type.
    pub(crate) fn into_findings(self) -> Vec<Finding> {
        let mut count: HashMap<String, usize> = HashMap::new();
        let mut taken = HashSet::new();
        let mut findings: Vec<Finding> = self.findings.into_values().chain(self.about_itself).collect();
        for finding in &mut findings {
            if finding.id.is_empty() {
                let number = count.entry(finding.kind.clone()).or_default();
                *number += 1;
                finding.id = format!("{}-{number}", finding.kind);
            }
            let written = finding.id.clone();
            let mut again = 2;
            while !taken.insert(finding.id.clone()) {
                finding.id = format!("{written} ({again})");
                again += 1;
            }
        }
        findings
    }
}

/// Returns the type of the assertion called `name` in code.
fn kind_of(name: &str) -> String {
    grade::find(name).map_or(name, |assertion| assertion.name).to_owned()
}

fn has_function(node: &Node) -> bool {
    node.tag.as_deref() == Some("!function")
        || match &node.kind {
            NodeKind::List(items) => items.iter().any(has_function),
            NodeKind::Map(entries) => entries.iter().any(|(_, node)| has_function(node)),
            _ => false,
        }
}

fn undecided(kind: &str, source: Excerpt, reason: &str) -> Finding {
    Finding::undecided("", kind, 1.0, Some(source), reason)
}

fn unknown(name: &str, source: Excerpt) -> Finding {
    let written = ASSERTIONS.iter().filter(|assertion| !assertion.is_implicit());
    let names: Vec<String> = written.map(|assertion| assertion.code_name()).collect();
    let near = model::nearest(name, names.iter().map(String::as_str).chain(OWN));
    let help = match near {
        Some(near) => format!("did you mean `assert.{near}`?"),
        None => format!("there are {}", names.join(", ")),
    };
    let finding = undecided(name, source, &format!("there is no assertion `assert.{name}`"));
    Finding { evidence: vec![help], ..finding }
}

/// Returns the finding for a claim with invalid arguments: the first problem, with the others as evidence.
fn misused(kind: &str, head: Excerpt, problems: &[Diagnostic]) -> Finding {
    let first = problems.first();
    let reason = first.map_or_else(|| "it cannot be read".to_owned(), |problem| problem.message.clone());
    let source = first.and_then(|problem| problem.source.clone()).unwrap_or(head);
    let help = first.map(|problem| problem.help.clone()).unwrap_or_default();
    let others = problems.iter().skip(1).map(|problem| problem.message.clone());
    let evidence = help.into_iter().chain(others).collect();
    Finding { evidence, ..undecided(kind, source, &reason) }
}
