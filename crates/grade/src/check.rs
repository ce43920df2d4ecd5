//! Compiles written assertions to checks, and judges evidence with them.

mod claim_problems;
mod unknown_type;

use std::collections::BTreeMap;
use std::sync::Arc;

use expect::SourceLocation;
use model::decode::{Problems, text};
use model::{
    Arguments, AssertionScope, AssertionSpec, Case, Diagnostic, Ending, Evidence, Excerpt, FaultKind, FaultReport,
    Finding, Need, Node, Outcome, OutcomeRule, Position, Probed, SideEffectContract, Status,
};

use crate::arguments::{self, COMMON};
use crate::assertion::expect::cannot_fail;
use crate::assertion::integrity_clean::{self, IntegrityClean};
use crate::assertion::side_effect_contract::{CONTRACT_TITLE, Contract};
use crate::assertion_type::{Assertion, Form, Reported};
use crate::assertions::{ASSERTIONS, find};
use crate::context::{Context, KnownTools};
use crate::contradiction;
use crate::format;
use crate::function_check;
use crate::grader;
use crate::hosted::Hosted;
use crate::judge::Judged;
use crate::judge::reading::judges;
use crate::matcher::{Judgement, Matcher};
use crate::promptfoo;
use crate::reading::{Reading, SYNONYMS, tool_pattern};
use crate::verdict::Verdict;

/// Compiled assertion, ready to judge evidence. Cheap to clone, and usable from any thread.
#[derive(Debug, Clone)]
pub struct Check {
    id: String,
    kind: &'static str,
    weight: f64,
    title: Option<String>,
    about: AssertionScope,
    source: Written,
    matcher: Arc<dyn Matcher>,
    /// Number of judges that the assertion requests. If `None`, the run decides.
    judges: Option<usize>,
}

/// Source position of a check.
#[derive(Debug, Clone)]
enum Written {
    /// The type of an assertion.
    At(SourceLocation),
    /// The head of a case without assertions.
    Head(Excerpt),
    /// The head of a case, for a check that is not written there and must be met whatever the score is.
    Added(Excerpt),
}

impl Written {
    fn excerpt(&self) -> Excerpt {
        match self {
            Self::At(place) => place.excerpt(),
            Self::Head(head) | Self::Added(head) => head.clone(),
        }
    }
}

impl Check {
    /// Returns the id of the assertion.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the type of the assertion, such as `tool_called`.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns the weight of the assertion in the score.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// Returns `true` if the result `found` of the command `need` meets it.
    pub fn is_met_by(&self, need: &Need, found: &Probed) -> bool {
        self.matcher.is_met_by(need, found)
    }

    /// Returns `true` if a model may have to be asked, after everything else is judged.
    pub fn asks_judge(&self) -> bool {
        self.judged().is_some()
    }

    /// Returns `true` if a model must be asked regardless of what the agent answers. If false, some answers are
    /// decided without one.
    pub fn always_asks_judge(&self) -> bool {
        self.asks_judge() && find(self.kind).is_none_or(|assertion| !assertion.may_need_no_judge())
    }

    /// Returns the question for a model and the evaluation of its answers.
    pub(crate) fn judged(&self) -> Option<&dyn Judged> {
        self.matcher.judged()
    }

    /// Returns the request to a hosted model and the evaluation of its response.
    pub(crate) fn hosted(&self) -> Option<&dyn Hosted> {
        self.matcher.hosted()
    }

    /// Returns `true` if a hosted model must be asked.
    pub fn asks_hosted(&self) -> bool {
        self.hosted().is_some()
    }

    /// Returns the number of judges that it requests.
    pub(crate) fn judges(&self) -> Option<usize> {
        self.judges
    }

    /// Returns the part of the evidence that it is about.
    pub fn about(&self) -> AssertionScope {
        self.about
    }

    /// Returns where its type is written.
    pub fn source(&self) -> Excerpt {
        self.source.excerpt()
    }

    /// Returns the part of a trial that it is about, if only some agents report it.
    pub fn reported(&self) -> Option<Reported> {
        find(self.kind)?.reported
    }

    /// Returns `true` if it is written in natural language.
    pub fn is_claim(&self) -> bool {
        find(self.kind).is_some_and(Assertion::is_claim)
    }

    /// Returns how it is decided: its type, `judge` if a model is asked, and for a claim the types that it was
    /// compiled to.
    pub fn method(&self) -> String {
        match self.compiled_as() {
            Some(parts) => {
                let mut methods: Vec<&str> =
                    parts.iter().map(|part| part.split(' ').next().unwrap_or(part.as_str())).collect();
                methods.dedup();
                methods.join(" + ")
            }
            None if self.asks_judge() => "judge".to_owned(),
            None => self.kind.to_owned(),
        }
    }

    /// Returns the assertions that a claim was compiled to and what they look for, such as ``file_exists `a.txt` ``.
    /// Returns `None` if a model is asked.
    pub fn compiled_as(&self) -> Option<Vec<String>> {
        self.matcher.stands_for()
    }

    /// Returns a digest of the assertion with its arguments.
    pub fn digest(&self) -> String {
        model::digest(format!("{}\0{:?}\0{:?}\0{:?}", self.kind, self.about, self.matcher, self.judges).bytes())
    }

    /// Returns its `title`, or the text of a claim.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Returns the sandbox probes that it needs. They are made after the agent has ended.
    pub fn needs(&self) -> Vec<Need> {
        self.matcher.needs()
    }

    /// Compiles one assertion. Reports all problems.
    pub(crate) fn compile(spec: &AssertionSpec, context: &Context<'_>, problems: &mut Problems) -> Option<Self> {
        let place = SourceLocation::at(&spec.node, spec.kind.span);
        let other = if promptfoo::is_meant(spec) {
            Some((promptfoo::KIND, promptfoo::compile(spec, context, problems)?))
        } else if grader::is_meant(spec) {
            Some((grader::KIND, grader::compile(spec, problems)?))
        } else {
            function_check::compile(spec, context)
        };
        if let Some((kind, matcher)) = other {
            return Some(Self {
                id: spec.id.clone(),
                kind,
                weight: spec.weight,
                title: spec.node.get("title").and_then(Node::as_str).map(str::to_owned),
                about: spec.about,
                source: Written::At(place),
                matcher,
                judges: None,
            });
        }
        let Some((assertion, parse)) = find(&spec.kind.value).and_then(|assertion| match assertion.form {
            Form::Written { parse } | Form::Judged { parse, .. } => Some((assertion, parse)),
            Form::Implicit { .. } => None,
        }) else {
            problems.push(unknown_type::unknown_type(&spec.kind.value).at(place.excerpt()));
            return None;
        };
        let what = format!("`{}`", assertion.name);
        if context.known_tools == KnownTools::Only(&[]) && assertion.reported == Some(Reported::ToolCalls) {
            let message = format!("{what} is about tools that the agent calls, and this agent calls none");
            let problem = Diagnostic::warning(message).at(place.excerpt());
            problems.push(problem.help("in the suite of an MCP server, `call` names the tool that is called"));
        }
        let entry = arguments::entry(spec, assertion, problems)?;
        if let Some(problem) = tool_pattern(&entry, &what) {
            problems.push(problem.help("`tool` is the exact name of a tool: write one assertion for each tool"));
            return None;
        }
        let mut reading = Reading::new(&entry, &what, problems, context)?;
        let known = reading.problems.len();
        let own = CommonFields::read(spec, &mut reading);
        if assertion.has_caption() {
            reading.caption();
        } else {
            reading.fields = reading.fields.with_synonyms(&SYNONYMS);
        }
        let judges = if assertion.has_judges() { judges(&mut reading) } else { None };
        let matcher = parse(&mut reading);
        if matcher.is_none() {
            // A mistake in one field ends the reading before the others are read.
            for field in assertion.fields {
                reading.fields.get(field.name);
            }
        }
        let Reading { fields, problems, title, knows_arguments, .. } = reading;
        fields.finish(problems);
        problems.extend(arguments::doubtful(spec, assertion).filter(|_| !knows_arguments));
        arguments::suggest_single_values(&entry, assertion, problems.get_mut(known..).unwrap_or_default());
        arguments::name_as_written(spec, &entry, problems.get_mut(known..).unwrap_or_default());
        matcher.map(|matcher| Self {
            id: own.id,
            kind: assertion.name,
            weight: own.weight,
            title: own.title.or(title),
            about: spec.about,
            source: Written::At(place),
            matcher,
            judges,
        })
    }

    /// Judges the part of the evidence that it is about.
    fn judge_part(&self, parts: &mut Parts<'_>) -> Finding {
        let broken = broken(&parts.whole.ending);
        match parts.of(self.about) {
            Some(evidence) => {
                let mut finding = self.judge(evidence);
                finding.at = parts.position(self.about, finding.status, finding.at);
                // Otherwise, a reason such as "was never called" is read as a statement about the whole trial.
                if let Some(number) = parts.number(self.about)
                    && parts.whole.trace.replies.len() > 1
                    && finding.status != Status::Undecided
                    && self.needs().is_empty()
                {
                    finding.reason.push_str(&format!(" (reply {number})"));
                }
                finding
            }
            None => {
                let reason = match self.about {
                    AssertionScope::Reply(number) => format!("there is no reply to message {number}"),
                    AssertionScope::Trial | AssertionScope::LastReply => "there is no reply".into(),
                };
                let verdict = Verdict::unmet(reason, "a reply", "none");
                self.finding(broken.map_or(verdict, Verdict::undecided))
            }
        }
    }

    fn judge(&self, evidence: &Evidence) -> Finding {
        let verdict = self.matcher.verdict(evidence);
        // If the agent could not do anything, what it did not do says nothing about it.
        let reason = broken(&evidence.ending).filter(|_| verdict.status == Status::Unmet && did_nothing(evidence));
        self.finding(match reason {
            Some(reason) => Verdict::undecided(reason).place(&verdict.place),
            None => verdict,
        })
    }

    /// Converts `verdict` to a finding of this check.
    pub(crate) fn finding(&self, verdict: Verdict) -> Finding {
        let source = verdict.place.as_ref().map_or_else(|| self.source.excerpt(), SourceLocation::excerpt);
        let finding = finding(&self.id, self.kind, self.weight, verdict);
        Finding {
            source: Some(source),
            title: finding.title.or_else(|| self.title.clone()),
            judged: self.asks_judge(),
            implicit: matches!(self.source, Written::Added(_)),
            ..finding
        }
    }
}

/// Returns the reason why the agent's work is not known, if infrastructure or the test ended the trial.
fn broken(ending: &Ending) -> Option<String> {
    let outcome = Outcome::of(&[], ending, &OutcomeRule::default());
    outcome.is_error().then(|| format!("the trial is {}, and the agent gave no answer", outcome.name()))
}

/// Returns `true` if there is no sign of anything that the agent said or did.
fn did_nothing(evidence: &Evidence) -> bool {
    let Evidence { trace, collected, .. } = evidence;
    let is_silent = trace.answer.is_none()
        && trace.result.is_none()
        && trace.questions.is_empty()
        && trace.turns.iter().all(|turn| turn.calls.is_empty() && model::text::is_blank(&turn.text));
    let is_idle = trace.mock_calls.is_empty()
        && trace.egress.is_empty()
        && collected.files_changed.is_empty()
        && collected.outside_changes.is_empty();
    is_silent && is_idle
}

/// Fields that an assertion has regardless of its type.
struct CommonFields {
    id: String,
    weight: f64,
    title: Option<String>,
}

impl CommonFields {
    /// Reads these fields. A file has them next to the arguments, code has them in the last argument.
    fn read(spec: &AssertionSpec, reading: &mut Reading<'_>) -> Self {
        let (mut id, mut weight) = (spec.id.clone(), spec.weight);
        if let Arguments::Listed(_) = spec.arguments {
            id = reading.fields.text("id", reading.problems).unwrap_or(id);
            weight = reading.fields.positive("weight", reading.problems).unwrap_or(weight);
        }
        for common in COMMON {
            reading.fields.get(common);
        }
        let title = match &spec.arguments {
            Arguments::Brief(_) => spec.node.get("title").and_then(|node| text(node, "`title`", reading.problems)),
            Arguments::Fields | Arguments::Listed(_) => reading.fields.text("title", reading.problems),
        };
        Self { id, weight, title }
    }
}

/// Returns a check that leaves every trial of `case` undecided, because the case does not assert anything.
pub fn nothing_asserted(case: &Case) -> Check {
    Check {
        id: NothingAsserted::KIND.to_owned(),
        kind: NothingAsserted::KIND,
        // The whole score of the trial depends on this check.
        weight: case.ruling.scoring.map_or(1.0, |scoring| scoring.max_score),
        title: None,
        about: AssertionScope::Trial,
        source: Written::Head(case.source.clone()),
        matcher: Arc::new(NothingAsserted),
        judges: None,
    }
}

/// Check of a case without assertions. It is always undecided.
#[derive(Debug)]
struct NothingAsserted;

impl NothingAsserted {
    const KIND: &'static str = "nothing_asserted";
}

impl Matcher for NothingAsserted {
    fn judge(&self, _: &Evidence) -> Judgement {
        Ok(Verdict::undecided("it has no assertions, so nothing was checked"))
    }
}

/// Compiles the assertions of `case`. All problems are reported at once. If there is an error among them, the checks
/// must not be used.
pub fn compile(case: &Case, context: &Context<'_>) -> (Vec<Check>, Vec<Diagnostic>) {
    let context = &Context { case: Some(case), ..*context };
    let mut problems = Problems::new();
    let mut checks = Vec::with_capacity(case.assertions.len());
    let contract = case.skill_eval.as_ref().and_then(|asked| asked.contract.as_ref());
    if asserts_nothing(case) {
        checks.push(nothing_asserted(case));
        // Formats that count their cases report this warning themselves, once for a file.
        if case.position.is_none() || !case.assertions.is_empty() {
            let problem = Diagnostic::warning(format!("`{}` has no assertions, so its trials are undecided", case.id));
            problems.push(problem.at(case.source.clone()).help("add an assertion: `trialrun list --assertions`"));
        }
    }
    for claim in case.code.iter().flat_map(|code| &code.claims) {
        problems.extend(claim_problems::problems(claim, context));
    }
    for (index, spec) in case.assertions.iter().enumerate() {
        if let Some(first) = case.assertions[..index].iter().find(|other| other.id == spec.id) {
            let place = id_place(first).excerpt();
            problems.push(
                Diagnostic::error(format!("two assertions have the id `{}`", spec.id))
                    .at(id_place(spec).excerpt())
                    .help(format!("the first one is at {place}")),
            );
        }
        checks.extend(Check::compile(spec, context, &mut problems));
    }
    contradiction::report(&case.assertions, &mut problems);
    if asserts_nothing(case) {
        // An assertion that passes regardless of what the agent does must not look like a decision.
        checks.truncate(1);
    }
    checks.extend(contract.map(|(contract, place)| contract_check(*contract, place.clone())));
    checks.extend(case.faults.first().filter(|_| case.skip.is_none()).map(|fault| reached_check(fault.source.clone())));
    checks.extend((context.requires_integrity && case.skip.is_none()).then(|| integrity_check(case)));
    (checks, problems)
}

/// Returns `true` if `case` runs, must have assertions, and has neither a contract nor an assertion that can fail.
/// False for cases that are code, because code asserts while it runs.
fn asserts_nothing(case: &Case) -> bool {
    let has_contract = case.skill_eval.as_ref().is_some_and(|asked| asked.contract.is_some());
    let is_run = case.code.is_none() && case.broken.is_empty() && case.skip.is_none();
    is_run && case.must_assert && case.assertions.iter().all(cannot_fail) && !has_contract
}

/// Returns the check that the faults of a trial's case occurred. The first of them is written at `place`. The check
/// does not affect scores.
fn reached_check(place: Excerpt) -> Check {
    Check {
        id: FaultsReached::KIND.to_owned(),
        kind: FaultsReached::KIND,
        weight: 0.0,
        title: Some("the trial met the faults of its case".to_owned()),
        about: AssertionScope::Trial,
        source: Written::Added(place),
        matcher: Arc::new(FaultsReached),
        judges: None,
    }
}

/// Returns the check that a trial of `case` has no signs of tampering. It does not affect scores.
fn integrity_check(case: &Case) -> Check {
    Check {
        id: "required_integrity".to_owned(),
        kind: integrity_clean::KIND,
        weight: 0.0,
        title: Some("the agent did not tamper with its grading".to_owned()),
        about: AssertionScope::Trial,
        source: Written::Added(case.source.clone()),
        matcher: Arc::new(IntegrityClean),
        judges: None,
    }
}

/// Check that the faults of a case occurred. A trial without them says nothing about recovery from them.
#[derive(Debug)]
struct FaultsReached;

impl FaultsReached {
    const KIND: &'static str = "faults_reached";
}

impl Matcher for FaultsReached {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let reports = &evidence.collected.faults;
        if reports.is_empty() {
            return Ok(Verdict::undecided("it is not known whether the faults of the case occurred"));
        }
        let missed: Vec<&FaultReport> = reports.iter().filter(|report| !report.has_occurred()).collect();
        let Some((first, others)) = missed.split_first() else {
            return Ok(Verdict::met(format!("{} occurred", format::count(reports.len(), "fault"))));
        };
        let seen = match first.fault {
            FaultKind::ToolFails => format!("the program ran {}", format::count(first.total as usize, "time")),
            _ => format!("the agent sent {}", format::count(first.total as usize, "model request")),
        };
        let more = if others.is_empty() { String::new() } else { format!(" (and {} more)", others.len()) };
        Ok(Verdict::undecided(format!("the fault {} did not occur: {seen}{more}", first.fault.name())))
    }
}

/// Returns the check that a trial left behind only what `contract` allows. The contract is written at `place`.
fn contract_check(contract: SideEffectContract, place: Excerpt) -> Check {
    Check {
        id: "side_effect_contract".to_owned(),
        kind: "side_effect_contract",
        weight: 1.0,
        title: Some(CONTRACT_TITLE.to_owned()),
        about: AssertionScope::Trial,
        source: Written::Head(place),
        matcher: Arc::new(Contract(contract)),
        judges: None,
    }
}

/// Compiles one assertion that code makes while it runs.
///
/// # Errors
/// Returns all problems with the assertion.
pub fn claim(spec: &AssertionSpec, context: &Context<'_>) -> Result<Check, Vec<Diagnostic>> {
    let mut problems = Problems::new();
    let check = Check::compile(spec, context, &mut problems);
    problems.retain(Diagnostic::is_error);
    check.filter(|_| problems.is_empty()).ok_or(problems)
}

/// Judges `evidence`. Returns a finding for each of `checks` in their order, then one for each implicit assertion that
/// is relevant.
pub fn grade(checks: &[Check], evidence: &Evidence) -> Vec<Finding> {
    let mut parts = Parts::new(evidence);
    let mut findings: Vec<Finding> = checks.iter().map(|check| check.judge_part(&mut parts)).collect();
    for assertion in ASSERTIONS {
        if let Form::Implicit { judge } = assertion.form
            && let Some(verdict) = judge(evidence)
        {
            findings.push(Finding { implicit: true, ..finding(assertion.name, assertion.name, 1.0, verdict) });
        }
    }
    findings
}

/// Returns the first mistake in a function of the program that uses trialrun: its location and the reason. `findings` are
/// those of `checks`, in their order.
pub fn mistake(checks: &[Check], findings: &[Finding]) -> Option<String> {
    checks.iter().zip(findings).find_map(|(check, finding)| {
        let error = finding.error.as_ref().filter(|_| check.matcher.is_function())?;
        Some(format!("{}: {error}", check.source()))
    })
}

/// Evidence and the parts of it that assertions are about. Each part is created once, on first use.
pub(crate) struct Parts<'e> {
    whole: &'e Evidence,
    replies: BTreeMap<usize, Option<Evidence>>,
}

impl<'e> Parts<'e> {
    /// Creates the value without any parts.
    pub(crate) fn new(whole: &'e Evidence) -> Self {
        Self { whole, replies: BTreeMap::new() }
    }

    /// Returns the number of the reply to which `about` refers, or `None` if it refers to the whole trial.
    fn number(&self, about: AssertionScope) -> Option<usize> {
        match about {
            AssertionScope::Trial => None,
            AssertionScope::Reply(number) => Some(number),
            AssertionScope::LastReply => Some(self.whole.trace.replies.len()),
        }
    }

    /// Returns the position in the whole trace of a finding about `about`, which has the position `at` in that part. An
    /// assertion about a reply that does not hold and has no position is at the end of the reply.
    fn position(&self, about: AssertionScope, status: Status, at: Option<Position>) -> Option<Position> {
        let trace = &self.whole.trace;
        let Some(number) = self.number(about) else { return at };
        let turns: Vec<usize> =
            (0..trace.turns.len()).filter(|turn| trace.turns[*turn].user_message == number).collect();
        let calls: Vec<usize> = turns.iter().flat_map(|turn| trace.turns[*turn].calls.iter().copied()).collect();
        match at {
            Some(Position { turn, call }) => Some(Position {
                turn: turn.and_then(|turn| turns.get(turn).copied()),
                call: call.and_then(|call| calls.get(call).copied()),
            }),
            None if status == Status::Met => None,
            None => turns.last().map(|turn| Position { turn: Some(*turn), call: None }),
        }
    }

    /// Returns the part to which `about` refers, or `None` if there is no such reply.
    pub(crate) fn of(&mut self, about: AssertionScope) -> Option<&Evidence> {
        let Some(number) = self.number(about) else { return Some(self.whole) };
        let part = || {
            let trace = self.whole.trace.reply(number)?;
            let mut part = Evidence { trace, ..self.whole.clone() };
            part.collected.look_back(number);
            Some(part)
        };
        self.replies.entry(number).or_insert_with(part).as_ref()
    }
}

/// Returns a hint if the actual text looks like the expected one, as far as the finding shows them.
fn lookalike(verdict: &Verdict) -> Option<String> {
    let (expected, actual) = (verdict.expected.as_deref()?, verdict.actual.as_deref()?);
    let quoted = |text: &str| {
        let (from, to) = (text.find('"')?, text.rfind('"')?);
        serde_json::from_str::<String>(text.get(from..=to)?).ok()
    };
    let expected = quoted(expected).unwrap_or_else(|| expected.to_owned());
    let actual = quoted(actual).unwrap_or_else(|| actual.to_owned());
    let is_new = |hint: &String| !verdict.evidence.contains(hint) && !verdict.reason.contains(hint.as_str());
    model::lookalike(&expected, &actual).filter(is_new)
}

fn finding(id: &str, kind: &str, weight: f64, mut verdict: Verdict) -> Finding {
    if verdict.status == Status::Unmet {
        let hint = lookalike(&verdict);
        verdict.evidence.extend(hint);
    }
    let matched = verdict.matched.map(|matched| *matched).unwrap_or_default();
    let score = matched.score.or(verdict.score);
    Finding {
        id: id.to_owned(),
        kind: kind.to_owned(),
        weight,
        status: verdict.status,
        score: match verdict.status {
            Status::Met => Some(score.unwrap_or(1.0)),
            Status::Unmet => Some(score.unwrap_or(0.0)),
            Status::Undecided => None,
        },
        reason: verdict.reason,
        expected: verdict.expected,
        actual: verdict.actual,
        evidence: verdict.evidence,
        error: verdict.error,
        captures: verdict.captures,
        at: verdict.at,
        ..matched
    }
}

fn id_place(spec: &AssertionSpec) -> SourceLocation {
    spec.node.get("id").map_or_else(|| SourceLocation::at(&spec.node, spec.kind.span), SourceLocation::from_node)
}

#[cfg(test)]
pub(crate) mod tests;
