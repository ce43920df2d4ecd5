//! From an assertion as it is written to a check, and from evidence to findings.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use model::decode::{Problems, text};
use model::{
    About, Arguments, AssertionSpec, Case, Claim, Diagnostic, Evidence, Excerpt, Finding, Need, Status, nearest,
};

use crate::arguments::{self, COMMON};
use crate::assertion::{ASSERTIONS, Form, Matcher, find};
use crate::judge::Judged;
use crate::place::Place;
use crate::reading::Reading;
use crate::scripts::Scripts;
use crate::verdict::Verdict;

/// What is known when assertions are compiled.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'a> {
    /// The names of the tools that the agent may have. `None` where anything may be called, and no name is doubted.
    pub known_tools: Option<&'a [&'a str]>,
    /// The folder of the file that asserts, absolute; where relative references to modules start.
    pub directory: Option<&'a Path>,
    /// What runs the code of expectations.
    pub scripts: Option<&'a Scripts>,
}

/// An assertion that is ready to judge evidence. Cheap to clone, usable from any thread.
#[derive(Debug, Clone)]
pub struct Check {
    id: String,
    kind: &'static str,
    weight: f64,
    title: Option<String>,
    about: About,
    source: Written,
    matcher: Arc<dyn Matcher>,
}

/// Where a check comes from.
#[derive(Debug, Clone)]
enum Written {
    /// The type of an assertion.
    At(Place),
    /// The head of a case that has none.
    Head(Excerpt),
}

impl Written {
    fn excerpt(&self) -> Excerpt {
        match self {
            Self::At(place) => place.excerpt(),
            Self::Head(head) => head.clone(),
        }
    }
}

impl Check {
    /// The assertion's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The assertion's type, such as `tool_called`.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Its share of the score.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// Whether judging runs code of the user's, which may take long, and may not come to an end.
    pub fn runs_code(&self) -> bool {
        self.matcher.runs_code()
    }

    /// Whether a model has to be asked, once all else is judged.
    pub fn asks_judge(&self) -> bool {
        self.judged().is_some()
    }

    /// What a model is asked, and what its answers come to.
    pub(crate) fn judged(&self) -> Option<&dyn Judged> {
        self.matcher.judged()
    }

    /// What it is about.
    pub(crate) fn about(&self) -> About {
        self.about
    }

    /// Where its type is written.
    pub fn source(&self) -> Excerpt {
        self.source.excerpt()
    }

    /// What must be looked at in the sandbox, after the agent has ended, before it can judge.
    pub fn needs(&self) -> Vec<Need> {
        self.matcher.needs()
    }

    /// Compiles one assertion, or reports everything that is wrong with it.
    pub(crate) fn compile(spec: &AssertionSpec, context: &Context<'_>, problems: &mut Problems) -> Option<Self> {
        let place = Place::at(&spec.node, spec.kind.span);
        let Some((assertion, parse)) = find(&spec.kind.value).and_then(|assertion| match assertion.form {
            Form::Written { parse } | Form::Judged { parse, .. } => Some((assertion, parse)),
            Form::Implicit { .. } => None,
        }) else {
            problems.push(unknown_type(&spec.kind.value).at(place.excerpt()));
            return None;
        };
        let what = format!("`{}`", assertion.name);
        let entry = arguments::entry(spec, assertion, problems)?;
        let mut reading = Reading::of(&entry, &what, problems, context)?;
        let own = Own::read(spec, &mut reading);
        let matcher = parse(&mut reading);
        let Reading { fields, problems, .. } = reading;
        fields.finish(problems);
        matcher.map(|matcher| Self {
            id: own.id,
            kind: assertion.name,
            weight: own.weight,
            title: own.title,
            about: spec.about,
            source: Written::At(place),
            matcher,
        })
    }

    /// Judges what it is about.
    fn judge_part(&self, parts: &mut Parts<'_>) -> Finding {
        match parts.of(self.about) {
            Some(evidence) => self.judge(evidence),
            None => {
                let because = match self.about {
                    About::Reply(number) => format!("there is no reply to message {number}"),
                    About::Trial | About::LastReply => "there is no reply".into(),
                };
                let verdict = Verdict::unmet(because, "a reply", "none");
                self.finding(verdict)
            }
        }
    }

    fn judge(&self, evidence: &Evidence) -> Finding {
        self.finding(self.matcher.judge(evidence))
    }

    /// What `verdict` is as a finding of this check.
    pub(crate) fn finding(&self, verdict: Verdict) -> Finding {
        let source = verdict.place.as_ref().map_or_else(|| self.source.excerpt(), Place::excerpt);
        let finding = finding(&self.id, self.kind, self.weight, verdict);
        Finding { source: Some(source), title: finding.title.or_else(|| self.title.clone()), judged: self.asks_judge(), ..finding }
    }
}

/// What an assertion has whatever its type is.
struct Own {
    id: String,
    weight: f64,
    title: Option<String>,
}

impl Own {
    /// What a file says beside the arguments; code says it among the last one's.
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

/// A check that says of every trial that nothing was checked: for a case that must assert something, and does not.
/// `head` is where the case is written.
pub fn nothing_asserted(head: Excerpt) -> Check {
    Check {
        id: NothingAsserted::KIND.to_owned(),
        kind: NothingAsserted::KIND,
        weight: 1.0,
        title: None,
        about: About::Trial,
        source: Written::Head(head),
        matcher: Arc::new(NothingAsserted),
    }
}

/// Whoever asserts nothing learns nothing.
#[derive(Debug)]
struct NothingAsserted;

impl NothingAsserted {
    const KIND: &'static str = "nothing_asserted";
}

impl Matcher for NothingAsserted {
    fn judge(&self, _: &Evidence) -> Verdict {
        Verdict::undecided("it asserts nothing, so it checked nothing")
    }
}

/// Compiles what `case` asserts. All problems are reported at once; with an error among them the checks are not to be
/// used.
pub fn compile(case: &Case, context: &Context<'_>) -> (Vec<Check>, Vec<Diagnostic>) {
    let mut problems = Problems::new();
    let mut checks = Vec::with_capacity(case.assertions.len());
    // Formats that count their cases tell of those that expect nothing themselves, and code asserts while it runs.
    if case.assertions.is_empty() && case.position.is_none() && case.code.is_none() && case.broken.is_empty() {
        let help = if case.must_assert {
            checks.push(nothing_asserted(case.source.clone()));
            "a trial of which nothing is asserted has checked nothing: it does not pass, and is no failure of the agent"
        } else {
            "without `assertions`, a trial passes if the agent finishes and its questions are answered"
        };
        let problem = Diagnostic::warning(format!("`{}` asserts nothing", case.id));
        problems.push(problem.at(case.source.clone()).help(help));
    }
    for (at, spec) in case.assertions.iter().enumerate() {
        if let Some(first) = case.assertions[..at].iter().find(|other| other.id == spec.id) {
            let place = id_place(first).excerpt();
            problems.push(
                Diagnostic::error(format!("two assertions have the id `{}`", spec.id))
                    .at(id_place(spec).excerpt())
                    .help(format!("the first one is at {place}")),
            );
        }
        checks.extend(Check::compile(spec, context, &mut problems));
    }
    (checks, problems)
}

/// Compiles one assertion that code makes while it runs.
///
/// # Errors
/// Everything that is wrong with it.
pub fn claim(spec: &AssertionSpec, context: &Context<'_>) -> Result<Check, Vec<Diagnostic>> {
    let mut problems = Problems::new();
    let check = Check::compile(spec, context, &mut problems);
    problems.retain(Diagnostic::is_error);
    check.filter(|_| problems.is_empty()).ok_or(problems)
}

/// Judges `evidence`: a finding for each of `checks` in their order, then one for each implicit assertion that has
/// something to say.
pub fn grade(checks: &[Check], evidence: &Evidence) -> Vec<Finding> {
    let mut parts = Parts::of_evidence(evidence);
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

/// Evidence and the parts of it that assertions are about, each made once.
pub(crate) struct Parts<'e> {
    whole: &'e Evidence,
    replies: BTreeMap<usize, Option<Evidence>>,
}

impl<'e> Parts<'e> {
    /// None of them made yet.
    pub(crate) fn of_evidence(whole: &'e Evidence) -> Self {
        Self { whole, replies: BTreeMap::new() }
    }

    /// What `about` names; `None` if there is no such reply.
    pub(crate) fn of(&mut self, about: About) -> Option<&Evidence> {
        let number = match about {
            About::Trial => return Some(self.whole),
            About::Reply(number) => number,
            About::LastReply => self.whole.trace.replies.len(),
        };
        let part = || self.whole.trace.reply(number).map(|trace| Evidence { trace, ..self.whole.clone() });
        self.replies.entry(number).or_insert_with(part).as_ref()
    }
}

fn finding(id: &str, kind: &str, weight: f64, mut verdict: Verdict) -> Finding {
    let matched = verdict.matched.take();
    let plain = plain_finding(id, kind, weight, verdict);
    let Some(matched) = matched else { return plain };
    Finding {
        title: matched.title,
        score: plain.score.map(|_| matched.score),
        key: Some(matched.key.to_owned()),
        dimension: matched.dimension,
        failed_critical: matched.failed_critical,
        leeway: matched.leeway,
        details: matched.details,
        failures: matched.failures,
        ..plain
    }
}

fn plain_finding(id: &str, kind: &str, weight: f64, verdict: Verdict) -> Finding {
    Finding {
        id: id.to_owned(),
        kind: kind.to_owned(),
        title: None,
        status: verdict.status,
        claim: Claim::Declared,
        score: match verdict.status {
            Status::Met | Status::Unmet if verdict.score.is_some() => verdict.score,
            Status::Met => Some(1.0),
            Status::Unmet => Some(0.0),
            Status::Undecided => None,
        },
        weight,
        because: verdict.because,
        expected: verdict.expected,
        actual: verdict.actual,
        evidence: verdict.evidence,
        error: verdict.error,
        captures: verdict.captures,
        source: None,
        at: verdict.at,
        implicit: false,
        judged: false,
        key: None,
        dimension: None,
        failed_critical: Vec::new(),
        leeway: None,
        details: Vec::new(),
        failures: Vec::new(),
    }
}

fn id_place(spec: &AssertionSpec) -> Place {
    spec.node.get("id").map_or_else(|| Place::at(&spec.node, spec.kind.span), Place::of)
}

fn unknown_type(written: &str) -> Diagnostic {
    let problem = Diagnostic::error(format!("unknown assertion type `{written}`"));
    if find(written).is_some() {
        return problem.help(format!("`{written}` goes with every trial by itself; it is not written down"));
    }
    let names = || {
        let written = ASSERTIONS.iter().filter(|assertion| !assertion.is_implicit());
        written.map(|assertion| assertion.name)
    };
    let known = names().collect::<Vec<_>>().join(", ");
    problem.suggest(nearest(written, names())).help(format!("the types are {known}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use model::{Severity, UserMessage};
    use serde_json::{Value, json};

    use super::*;
    use crate::example::Story;
    use crate::self_test::spec_of;
    use crate::yaml;

    /// A case that asserts `assertions`.
    pub(crate) fn case(assertions: &[Value]) -> Case {
        let spec = |value: &Value| spec_of(yaml::list_item(value, "case.yaml")).unwrap();
        Case {
            messages: vec![UserMessage::text("Begin.")],
            assertions: assertions.iter().map(spec).collect(),
            ..Case::new("case", Excerpt::of_file("case.yaml"))
        }
    }

    /// The finding of one assertion about `evidence`.
    pub(crate) fn judged(assertion: &Value, evidence: &Evidence) -> Finding {
        let (checks, problems) = compile(&case(std::slice::from_ref(assertion)), &Context::default());
        assert_eq!(problems, [], "{assertion}");
        grade(&checks, evidence).remove(0)
    }

    /// What `finding` underlines.
    pub(crate) fn underlined(finding: &Finding) -> String {
        let source = finding.source.as_ref().unwrap();
        source.text.chars().skip(source.column - 1).take(source.length).collect()
    }

    fn problems(assertions: &[Value], context: &Context<'_>) -> Vec<String> {
        let told = |problem: &Diagnostic| {
            let source = problem.source.as_ref().unwrap();
            let marked: String = source.text.chars().skip(source.column - 1).take(source.length).collect();
            let severity = if problem.severity == Severity::Error { "error" } else { "warning" };
            let help = problem.help.join("; ");
            format!("{severity} at {}:{marked}: {} ({help})", source.line, problem.message)
        };
        compile(&case(assertions), context).1.iter().map(told).collect()
    }

    #[test]
    fn everything_wrong_with_a_case_is_reported_at_once_and_in_place() {
        let found = problems(
            &[
                json!({"id": "a", "type": "tool_caled", "tool": "Bash"}),
                json!({"id": "b", "type": "tool_called", "tol": "Bash"}),
                json!({"id": "c", "type": "output_contains", "pattern": "a(?i)b"}),
                json!({"id": "d", "type": "no_tool_called", "tool": "Bash", "args_match": {"command": "[", "x": "ok", "y": "("}}),
                json!({"id": "e", "type": "token_budget"}),
                json!({"id": "f", "type": "tool_call_sequence", "sequence": []}),
                json!({"id": "g", "type": "tool_call_sequence", "sequence": [{"tool": "Read", "index": 1}, {"args_match": {}}]}),
                json!({"id": "h", "type": "turn_count_at_most", "max": 0}),
                json!({"id": "i", "type": "tool_called", "tool": "Bash", "call_index": -1, "capture": [""], "capture_max_chars": 0}),
                json!({"id": "j", "type": "no_path_escape", "tools": ["Read", 5], "allow_outside": "x"}),
                json!({"id": "j", "type": "turn_count_at_most", "max": 3}),
            ],
            &Context::default(),
        );
        let expected = [
            ("2:tool_caled", "did you mean `tool_called`"),
            ("1:id", "has no `tool`"),
            ("3:tol", "did you mean `tool`"),
            ("3:\"a(?i)b\"", "(?i:…)"),
            ("5:\"[\"", "invalid regular expression"),
            ("7:\"(\"", "invalid regular expression"),
            ("2:token_budget", "goes with every trial"),
            ("3:[]", "at least one step"),
            ("5:index", "unknown key"),
            ("6:args_match", "has no `tool`"),
            ("3:0", "at least 1"),
            ("4:-1", "at least 0"),
            ("5:\"\"", "must not be empty"),
            ("6:0", "at least 1"),
            ("3:5", "must be a string"),
            ("4:x", "must be a list"),
            ("1:j", "the first one is at case.yaml:1:7"),
        ];
        for (place, words) in expected {
            let wanted = format!("error at {place}: ");
            assert!(
                found.iter().any(|problem| problem.starts_with(&wanted) && problem.contains(words)),
                "{place} {words}\n{found:#?}"
            );
        }
        assert_eq!(found.len(), expected.len(), "{found:#?}");
    }

    #[test]
    fn an_error_in_one_assertion_leaves_the_others_as_they_are() {
        let case = case(&[
            json!({"id": "a", "type": "tool_called", "tool": 1}),
            json!({"id": "b", "type": "tool_called", "tool": "Bash", "weight": 2}),
        ]);
        let (checks, problems) = compile(&case, &Context::default());
        assert_eq!((checks.len(), problems.len()), (1, 1));
        assert_eq!((checks[0].id(), checks[0].kind(), checks[0].weight()), ("b", "tool_called", 2.0));
        assert_eq!(checks[0].source().to_string(), "case.yaml:2:9");
    }

    #[test]
    fn an_unknown_tool_is_a_warning_with_a_suggestion() {
        let assertions = [
            json!({"id": "a", "type": "tool_called", "tool": "bash"}),
            json!({"id": "b", "type": "no_tool_called", "tool": "Bash(git *)"}),
            json!({"id": "c", "type": "tool_called", "tool": "mcp__db__query"}),
            json!({"id": "d", "type": "tool_call_sequence", "sequence": [{"tool": "Bash"}, {"tool": "Raed"}]}),
            json!({"id": "e", "type": "no_path_escape", "tools": ["Read", "Wirte", "WebFetch"]}),
        ];
        let known = ["Bash", "Read", "Write", "WebFetch"];
        let found = problems(&assertions, &Context { known_tools: Some(&known), ..Context::default() });
        let expected = [
            ("bash", "did you mean `Bash`"),
            ("\"Bash(git *)\"", "write `Bash` here"),
            ("Raed", "did you mean `Read`"),
            ("Wirte", "did you mean `Write`"),
            ("WebFetch", "no path among its arguments"),
        ];
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for ((place, words), problem) in expected.iter().zip(&found) {
            assert!(
                problem.starts_with("warning at ") && problem.contains(place) && problem.contains(words),
                "{problem}"
            );
        }
        assert_eq!(problems(&assertions[..4], &Context::default()), Vec::<String>::new());
    }

    #[test]
    fn an_unknown_argument_is_a_warning_with_a_suggestion() {
        let assertion = |tool: &str, argument: &str| {
            [json!({"id": "a", "type": "no_tool_called", "tool": tool, "args_match": {argument: "x"}})]
        };
        let context = Context { known_tools: Some(&["Write", "Task"]), ..Context::default() };
        let found = problems(&assertion("Write", "file_pth"), &context);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].contains("`file_pth`") && found[0].contains("did you mean `file_path`"), "{found:#?}");
        for quiet in [assertion("Write", "content"), assertion("Task", "anything")] {
            assert_eq!(problems(&quiet, &context), Vec::<String>::new());
        }
        assert_eq!(problems(&assertion("Write", "file_pth"), &Context::default()), Vec::<String>::new());
    }

    #[test]
    fn a_check_says_whether_it_runs_code_of_the_users() {
        let runs_code = |output: Value| {
            let (checks, problems) =
                compile(&case(&[json!({"id": "a", "type": "expect", "output": output})]), &Context::default());
            assert_eq!(problems, []);
            checks[0].runs_code()
        };
        assert!(runs_code(json!({"$expr": "actual > 1"})) && runs_code(json!({"a": [{"$expr": "actual"}]})));
        assert!(!runs_code(json!("/a+/")) && !runs_code(json!({"$contains": {"a": 1}})));
    }

    #[test]
    fn a_case_that_must_assert_and_does_not_checks_nothing() {
        let silent = Case { must_assert: true, ..case(&[]) };
        let (checks, problems) = compile(&silent, &Context::default());
        assert!(problems.len() == 1 && !problems[0].is_error());
        let finding = grade(&checks, &Story::new().answer("x").evidence()).remove(0);
        assert_eq!((finding.status, finding.kind.as_str()), (Status::Undecided, "nothing_asserted"));
        assert_eq!(finding.source.unwrap().file, "case.yaml");
    }

    #[test]
    fn keys_may_be_written_as_code_writes_them() {
        let assertion =
            json!({"id": "a", "type": "toolCalled", "tool": "Bash", "argsMatch": {"command": "^ls"}, "title": "Looks"});
        let finding = judged(&assertion, &Story::new().call("Bash", json!({"command": "ls"})).evidence());
        assert_eq!((finding.status, finding.title.as_deref()), (Status::Met, Some("Looks")));
        let found =
            problems(&[json!({"id": "a", "type": "tool_called", "tool": "x", "argMatch": {}})], &Context::default());
        assert!(found[0].contains("did you mean `args_match`"), "{found:?}");
    }

    #[test]
    fn a_case_that_asserts_nothing_is_a_warning() {
        let (checks, problems) = compile(&case(&[]), &Context::default());
        assert!(checks.is_empty() && problems.len() == 1 && !problems[0].is_error());
    }

    #[test]
    fn implicit_findings_come_last_and_have_no_place() {
        let (checks, _) = compile(
            &case(&[json!({"id": "a", "type": "turn_count_at_most", "max": 3, "weight": 4})]),
            &Context::default(),
        );
        let evidence = Story::new().answer("x").evidence();
        let findings = grade(&checks, &evidence);
        assert_eq!(
            findings.iter().map(|finding| finding.id.as_str()).collect::<Vec<_>>(),
            ["a", "no_unanswered_questions"]
        );
        assert_eq!((findings[0].weight, findings[0].score, findings[0].implicit), (4.0, Some(1.0), false));
        assert!(findings[1].implicit && findings[1].source.is_none());
    }
}
