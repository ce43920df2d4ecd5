//! Assertions as promptfoo decides them.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use llm::{Credentials, Policy, Prices, Providers};
use model::{Arguments, AssertionScope, Case, Excerpt, Node, Source, Span, Spanned};
use serde_json::json;

use super::*;
use crate::check::{Check, compile, grade};
use crate::consult::rehearse;
use crate::consult_hosted::ask_hosted;
use crate::example::EvidenceBuilder;
use crate::judge;
use crate::scripts::Scripts;

/// Returns the findings of an assertion, or the problems with it.
fn findings(entry: &Value, weight: f64, evidence: &Evidence) -> Result<model::Finding, Vec<String>> {
    compiled(entry, weight).map(|checks| grade(&checks, evidence).remove(0))
}

/// Returns the check of an assertion, or the problems with it.
fn compiled(entry: &Value, weight: f64) -> Result<Vec<Check>, Vec<String>> {
    let source = Source::new("promptfooconfig.yaml", entry.to_string());
    let node = Node { tag: Some(TAG.into()), ..Node::from_json(entry, &source) };
    let mut case = Case::new("a", Excerpt::of_file("promptfooconfig.yaml"));
    case.assertions.push(AssertionSpec {
        node,
        arguments: Arguments::Fields,
        about: AssertionScope::Trial,
        id: "a".into(),
        kind: Spanned::new(KIND.into(), Span::default()),
        weight,
    });
    let scripts = Scripts::default();
    let context = Context { scripts: Some(&scripts), ..Context::default() };
    let (checks, problems) = compile(&case, &context);
    let errors: Vec<String> =
        problems.iter().filter(|problem| problem.is_error()).map(|problem| problem.message.clone()).collect();
    if errors.is_empty() { Ok(checks) } else { Err(errors) }
}

/// Answers requests on loopback with `responses`. Returns the address, and the requests once all have arrived.
fn serve(responses: Vec<Value>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let answer = move |response: Value| {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut asked, mut buffer) = (String::new(), [0; 4096]);
        loop {
            let count = stream.read(&mut buffer).unwrap();
            asked.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
            let length = asked
                .to_lowercase()
                .split_once("content-length: ")
                .and_then(|(_, rest)| rest.lines().next().and_then(|length| length.trim().parse::<usize>().ok()));
            let body = asked.split_once("\r\n\r\n").map(|(_, body)| body.len());
            if count == 0 || body.is_some_and(|body| Some(body) >= length) {
                break;
            }
        }
        let body = response.to_string();
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length";
        write!(stream, "{head}: {}\r\n\r\n{body}", body.len()).unwrap();
        asked
    };
    (address, std::thread::spawn(move || responses.into_iter().map(answer).collect()))
}

#[allow(clippy::needless_pass_by_value)]
fn assertion(fields: Value) -> Value {
    json!({"assertion": fields, "vars": {"name": "Ann", "context": "Returns take 30 days."}, "prompt": "Hi", "transforms": []})
}

#[allow(clippy::needless_pass_by_value)]
#[track_caller]
fn graded(fields: Value, answer: &str) -> (Status, f64) {
    let evidence = EvidenceBuilder::new().answer(answer).evidence();
    let finding = findings(&assertion(fields.clone()), 1.0, &evidence);
    let finding = finding.unwrap_or_else(|problems| panic!("{fields}: {problems:?}"));
    (finding.status, finding.score.unwrap_or(-1.0))
}

#[test]
fn texts_are_graded() {
    for (fields, answer, pass) in [
        (json!({"type": "equals", "value": "a b"}), "a b", true),
        (json!({"type": "equals", "value": 5}), "5", true),
        (json!({"type": "equals", "value": {"a": [1]}}), "{\"a\": [1.0]}", true),
        (json!({"type": "not-equals", "value": {"a": 1}}), "no JSON", true),
        (json!({"type": "contains", "value": "b"}), "abc", true),
        (json!({"type": "not-contains", "value": "b"}), "abc", false),
        (json!({"type": "icontains", "value": "B"}), "abc", true),
        (json!({"type": "contains-all", "value": ["a", "d"]}), "abc", false),
        (json!({"type": "contains-all", "value": "a, \"b, c\""}), "a b, c", true),
        (json!({"type": "not-contains-all", "value": "a, d"}), "abc", true),
        (json!({"type": "contains-any", "value": ["x", "c"]}), "abc", true),
        (json!({"type": "icontains-any", "value": "X,C"}), "abc", true),
        (json!({"type": "icontains-all", "value": ["A", "B"]}), "abc", true),
        (json!({"type": "starts-with", "value": "ab"}), "abc", true),
        (json!({"type": "regex", "value": "^a\\d{2}$"}), "a12", true),
        (json!({"type": "not-regex", "value": "\\d"}), "a12", false),
        (json!({"type": "is-json"}), "{}", true),
        (json!({"type": "is-json"}), "x", false),
        (json!({"type": "is-json", "value": {"required": ["a"]}}), "{}", false),
        (json!({"type": "not-is-json", "value": {"required": ["a"]}}), "{}", true),
        (json!({"type": "contains-json", "value": {"required": ["a"]}}), "see {\"b\": 1} and {\"a\": {}}", true),
        (json!({"type": "not-contains-json"}), "see {b}", true),
        (json!({"type": "is-xml", "value": "a.b"}), "<a><b/></a>", true),
        (json!({"type": "contains-xml", "value": {"requiredElements": ["a"]}}), "see <a/>", true),
        (json!({"type": "is-html"}), "<p>x</p>", true),
        (json!({"type": "contains-html"}), "see <b>x</b>", true),
        (json!({"type": "is-refusal"}), "I’m sorry, I can't help with that.", true),
        (json!({"type": "not-is-refusal"}), "You can't miss it.", true),
        (json!({"type": "levenshtein", "value": "abc", "threshold": 1}), "abd", true),
        (json!({"type": "word-count", "value": 2}), " a  b ", true),
        (json!({"type": "word-count", "value": {"min": 3}}), "a b", false),
        (json!({"type": "not-word-count", "value": {"min": 1, "max": 3}}), "a b", false),
        (json!({"type": "is-valid-openai-tools-call"}), "text", false),
    ] {
        let (status, score) = graded(fields.clone(), answer);
        assert_eq!((status == Status::Met, status != Status::Undecided), (pass, true), "{fields}");
        assert!((score - f64::from(u8::from(pass))).abs() < 1e-9, "{fields}: {score}");
    }
}

#[test]
fn similarities_have_a_score() {
    let (status, score) = graded(json!({"type": "rouge-n", "value": "a b c d"}), "a b c");
    assert_eq!((status, (score * 1e4).round()), (Status::Met, 8571.0));
    let (status, score) = graded(json!({"type": "not-gleu", "value": "x y"}), "a b");
    assert_eq!((status, score), (Status::Met, 1.0));
    assert_eq!(graded(json!({"type": "bleu", "value": ["x", "a b c d e"]}), "a b c d e").0, Status::Met);
}

#[test]
fn javascript_is_run_in_the_engine() {
    for (code, pass, score) in [
        ("output === 'abc'", true, 1.0),
        ("output.length / 4", true, 0.75),
        ("const n = output.length; n > 5;", false, 0.0),
        ("if (output) {\n  return { pass: true, score: 0.5, reason: context.vars.name };\n}\nreturn false;", true, 0.5),
        ("JSON.parse(output).a === 1", false, 0.0),
        ("Promise.resolve(context.prompt === 'Hi')", true, 1.0),
    ] {
        let (status, found) = graded(json!({"type": "javascript", "value": code}), "abc");
        assert_eq!((status == Status::Met, found), (pass, score), "{code}");
    }
    assert_eq!(graded(json!({"type": "javascript", "value": "0.4", "threshold": 0.5}), "a"), (Status::Unmet, 0.4));
    assert_eq!(graded(json!({"type": "not-javascript", "value": "false"}), "a"), (Status::Met, 1.0));
    assert_eq!(graded(json!({"type": "javascript", "value": "'text'"}), "a").0, Status::Undecided);
    assert_eq!(graded(json!({"type": "javascript", "value": "while (true) {}\nreturn 1"}), "a").0, Status::Undecided);
    let evidence = EvidenceBuilder::new().answer("a").evidence();
    let problems = findings(&assertion(json!({"type": "javascript", "value": "fs.exists(output)"})), 1.0, &evidence);
    assert_eq!(problems.unwrap_err(), ["there is no `fs` in an expression"]);
}

#[test]
fn an_answer_can_be_changed_first() {
    let mut entry = assertion(json!({"type": "equals", "value": "A!", "transform": "output + '!'"}));
    entry["transforms"] = json!(["output.toUpperCase()"]);
    let evidence = EvidenceBuilder::new().answer("a").evidence();
    assert_eq!(findings(&entry, 1.0, &evidence).unwrap().status, Status::Met);
    entry["transforms"] = json!(["undefined"]);
    assert_eq!(findings(&entry, 1.0, &evidence).unwrap().status, Status::Undecided);
}

#[test]
fn python_gets_the_answer_and_its_output_is_the_result() {
    let fields = json!({"type": "python", "value": "len(output) > 2", "threshold": 0.5});
    let source = Source::new("a", "");
    let node = Node { tag: Some(TAG.into()), ..Node::from_json(&assertion(fields.clone()), &source) };
    let entry = Entry { node: &node, context: &Context::default() };
    let single = Single::read(node.get("assertion").unwrap(), &entry, &mut Problems::new()).unwrap();
    let needs = single.needs();
    let [Need::Command { run, timeout_ms }] = needs.as_slice() else { panic!("{needs:?}") };
    assert!(run.starts_with("exec python3 -c '") && run.contains("\"$1\""), "{run}");
    let ran = |exit_code: i32, stdout: &str, stderr: &str| {
        let story = EvidenceBuilder::new().answer("abc").ran(run, exit_code, stdout, stderr);
        let mut evidence = story.evidence();
        let need = Need::Command { run: run.clone(), timeout_ms: *timeout_ms };
        for probe in &mut evidence.collected.probes {
            (probe.key, probe.need) = (need.key(), need.clone());
        }
        let finding = findings(&assertion(fields.clone()), 1.0, &evidence).unwrap();
        (finding.status, finding.score)
    };
    assert_eq!(ran(0, "noise\ntrialrun-result:true\n", ""), (Status::Met, Some(1.0)));
    assert_eq!(ran(0, "trialrun-result:\"False\"\n", ""), (Status::Unmet, Some(0.0)));
    assert_eq!(ran(0, "trialrun-result:0.4\n", ""), (Status::Unmet, Some(0.4)));
    assert_eq!(ran(0, "trialrun-result:{\"pass\": true, \"score\": 0.7}\n", ""), (Status::Met, Some(0.7)));
    assert_eq!(ran(1, "", "Traceback\nKeyError: 'a'\n"), (Status::Unmet, Some(0.0)));
    assert_eq!(ran(127, "", "python3: not found"), (Status::Undecided, None));
    assert_eq!(ran(0, "", ""), (Status::Undecided, None));
}

#[test]
fn calls_and_skills_are_graded() {
    let story = || {
        EvidenceBuilder::new()
            .call("search", json!({"q": "a", "limit": 10}))
            .call("shell", json!({"command": "ls -l"}))
            .call("save", json!({"to": "b"}))
            .answer("done")
    };
    for (fields, pass) in [
        (json!({"type": "trajectory:tool-used", "value": "sea*"}), true),
        (json!({"type": "trajectory:tool-used", "value": ["search", "delete"]}), false),
        (json!({"type": "not-trajectory:tool-used", "value": "delete"}), true),
        (json!({"type": "trajectory:tool-used", "value": {"name": "search", "max": 0, "min": 0}}), false),
        (json!({"type": "trajectory:tool-sequence", "value": ["search", "save"]}), true),
        (json!({"type": "trajectory:tool-sequence", "value": ["save", "search"]}), false),
        (json!({"type": "trajectory:tool-sequence", "value": {"mode": "exact", "steps": ["search", "save"]}}), true),
        (json!({"type": "trajectory:tool-args-match", "value": {"name": "search", "args": {"q": "a"}}}), true),
        (
            json!({"type": "trajectory:tool-args-match", "value": {"name": "search", "args": {"q": "a"}, "mode": "exact"}}),
            false,
        ),
        (
            json!({"type": "trajectory:tool-args-match", "value": {"name": "search", "args": {"q": "a"}, "mode": "exact",
                   "defaults": {"limit": 10}}}),
            true,
        ),
        (
            json!({"type": "trajectory:tool-args-match", "value": {"name": "search", "args": {"q": "a"}, "mode": "exact",
                   "ignore": "lim*"}}),
            true,
        ),
        (
            json!({"type": "trajectory:step-count", "value": {"type": "command", "pattern": "ls", "min": 1, "max": 1}}),
            true,
        ),
        (json!({"type": "trajectory:step-count", "value": {"type": "tool", "max": 1}}), false),
        (json!({"type": "skill-used", "value": "plan"}), false),
        (json!({"type": "not-skill-used", "value": "plan"}), true),
    ] {
        let finding = findings(&assertion(fields.clone()), 1.0, &story().evidence()).unwrap();
        assert_eq!(finding.status == Status::Met, pass, "{fields}: {}", finding.reason);
    }
    let silent = EvidenceBuilder::new().call("search", serde_json::Value::Null).answer("done").evidence();
    for kind in ["trajectory:tool-args-match", "not-trajectory:tool-args-match"] {
        let fields = json!({"type": kind, "value": {"name": "search", "args": {"q": "a"}}});
        let finding = findings(&assertion(fields), 1.0, &silent).unwrap();
        assert_eq!(finding.reason, "the agent does not report with which arguments it called search");
    }
    let f1 = json!({"type": "tool-call-f1", "value": "search, save", "threshold": 0.7});
    let finding = findings(&assertion(f1), 1.0, &story().evidence()).unwrap();
    assert_eq!((finding.status, finding.score), (Status::Met, Some(0.8)));
    let finding = findings(&assertion(json!({"type": "skill-used", "value": "plan"})), 1.0, &{
        EvidenceBuilder::new().call("Skill", json!({"skill": "plan"})).answer("done").evidence()
    });
    assert_eq!(finding.unwrap().status, Status::Met);
}

#[test]
fn calls_are_graded_without_a_reply() {
    let story = || EvidenceBuilder::new().asks("Hi").call("search", json!({"q": "a"})).evidence();
    let calls = |tool: &str| json!({"type": "trajectory:tool-used", "value": tool});
    let set = json!({"type": "assert-set", "threshold": 0.5, "assert": [
        calls("search"), {"type": "contains", "value": "a"},
    ]});
    for (fields, status) in [
        (calls("search"), Status::Met),
        (calls("delete"), Status::Unmet),
        (json!({"type": "tool-call-f1", "value": "search"}), Status::Met),
        (set, Status::Met),
        (json!({"type": "contains", "value": "a"}), Status::Undecided),
    ] {
        let finding = findings(&assertion(fields.clone()), 1.0, &story()).unwrap();
        assert_eq!(finding.status, status, "{fields}: {}", finding.reason);
    }
    let silent = EvidenceBuilder::new().asks("Hi").evidence();
    let not_used = json!({"type": "not-trajectory:tool-used", "value": "delete"});
    assert_eq!(findings(&assertion(not_used), 1.0, &silent).unwrap().status, Status::Undecided);
}

#[test]
fn assertions_that_hold_for_every_answer_are_refused() {
    let evidence = EvidenceBuilder::new().answer("a").evidence();
    for (fields, message) in [
        (json!({"type": "regex", "value": ".*"}), "/.*/ matches every answer"),
        (json!({"type": "contains-all", "value": [""]}), "every answer contains the empty text"),
        (json!({"type": "icontains-any", "value": ["x", ""]}), "every answer contains the empty text"),
        (json!({"type": "word-count", "value": {"min": 0}}), "`min` is not above 0"),
        (json!({"type": "trajectory:tool-used", "value": {"name": "x", "min": 0}}), "`min` is not above 0"),
        (json!({"type": "trajectory:step-count", "value": {"min": 0}}), "`min` is not above 0"),
        (json!({"type": "not-trajectory:step-count", "value": {"min": 2, "max": 1}}), "`max` is 1, which is less than"),
        (json!({"type": "skill-used", "value": {"name": "x", "min": 0}}), "`min` is not above 0"),
    ] {
        let problems = findings(&assertion(fields.clone()), 1.0, &evidence).unwrap_err();
        assert!(problems.len() == 1 && problems[0].contains(message), "{fields}: {problems:?}");
    }
    assert_eq!(graded(json!({"type": "not-regex", "value": ".*"}), "a").0, Status::Unmet);
}

#[test]
fn calls_that_an_answer_does_not_report_are_never_absent() {
    let story =
        || EvidenceBuilder::new().asks("Go").calls_unreported().call("search", json!({"q": "a"})).answer("done");
    for (fields, status) in [
        (json!({"type": "trajectory:tool-used", "value": "search"}), Status::Met),
        (json!({"type": "trajectory:tool-used", "value": "save"}), Status::Undecided),
        (json!({"type": "not-trajectory:tool-used", "value": "save"}), Status::Undecided),
        (json!({"type": "not-trajectory:tool-used", "value": "search"}), Status::Unmet),
        (json!({"type": "trajectory:tool-used", "value": {"name": "search", "min": 1}}), Status::Met),
        (json!({"type": "trajectory:tool-used", "value": {"name": "search", "min": 0, "max": 0}}), Status::Unmet),
        (json!({"type": "trajectory:step-count", "value": {"type": "tool", "max": 3}}), Status::Undecided),
        (json!({"type": "trajectory:tool-sequence", "value": ["search"]}), Status::Met),
        (
            json!({"type": "trajectory:tool-sequence", "value": {"mode": "exact", "steps": ["search"]}}),
            Status::Undecided,
        ),
        (json!({"type": "not-skill-used", "value": "plan"}), Status::Undecided),
        (json!({"type": "tool-call-f1", "value": "search"}), Status::Undecided),
    ] {
        let finding = findings(&assertion(fields.clone()), 1.0, &story().evidence()).unwrap();
        assert_eq!(finding.status, status, "{fields}: {}", finding.reason);
    }
}

#[test]
fn a_set_needs_its_threshold_and_a_weight_of_0_changes_no_finding() {
    let set = |threshold: f64| {
        json!({"type": "assert-set", "threshold": threshold, "assert": [
            {"type": "contains", "value": "a"}, {"type": "contains", "value": "x", "weight": 3},
        ]})
    };
    assert_eq!(graded(set(0.25), "a"), (Status::Met, 0.25));
    assert_eq!(graded(set(0.3), "a"), (Status::Unmet, 0.25));
    let unknown = json!({"type": "assert-set", "threshold": 0.5, "assert": [
        {"type": "contains", "value": "a", "weight": 2}, {"type": "similar", "undecided": "no model"},
    ]});
    assert_eq!(graded(unknown, "a").0, Status::Met);
    let unknown = json!({"type": "assert-set", "threshold": 0.8, "assert": [
        {"type": "contains", "value": "a"}, {"type": "similar", "undecided": "no model"},
    ]});
    assert_eq!(graded(unknown, "a").0, Status::Undecided);
    let judged = json!({"type": "assert-set", "threshold": 0.8, "assert": [{"type": "llm-rubric", "value": "x"}]});
    let evidence = EvidenceBuilder::new().answer("a").evidence();
    assert!(findings(&assertion(judged), 1.0, &evidence).unwrap_err()[0].contains("cannot be part of an `assert-set`"));
    let finding = findings(&assertion(json!({"type": "contains", "value": "x"})), 0.0, &evidence).unwrap();
    assert_eq!((finding.status, finding.score, finding.weight), (Status::Unmet, Some(0.0), 0.0));
    let weightless = json!({"type": "assert-set", "threshold": 1, "assert": [
        {"type": "contains", "value": "a"}, {"type": "contains", "value": "x", "weight": 0},
    ]});
    assert_eq!(graded(weightless, "a"), (Status::Met, 1.0));
}

#[test]
fn a_judge_is_not_asked_about_nothing_or_about_calls_that_are_not_reported() {
    let asked = |fields: Value, evidence: &model::Evidence| {
        let checks = compiled(&assertion(fields), 1.0).unwrap();
        checks[0].judged().unwrap().question(evidence).err().map(|verdict| verdict.status)
    };
    let rubric = |kind: &str| json!({"type": kind, "value": "It is polite."});
    let silent = EvidenceBuilder::new().asks("Hi").evidence();
    assert_eq!(asked(rubric("llm-rubric"), &silent), Some(Status::Unmet));
    assert_eq!(asked(rubric("not-llm-rubric"), &silent), Some(Status::Undecided));
    let wordless = EvidenceBuilder::new().asks("Hi").call("search", json!({"q": "a"})).evidence();
    for (kind, of_kind, of_inverse) in [
        ("llm-rubric", None, Some(Status::Undecided)),
        ("g-eval", None, Some(Status::Undecided)),
        ("model-graded-closedqa", None, Some(Status::Undecided)),
        ("factuality", Some(Status::Unmet), Some(Status::Undecided)),
        ("answer-relevance", Some(Status::Unmet), Some(Status::Undecided)),
        ("context-faithfulness", Some(Status::Unmet), Some(Status::Undecided)),
        ("context-recall", None, None),
        ("agent-rubric", None, None),
        ("trajectory:goal-success", None, None),
    ] {
        assert_eq!(asked(rubric(kind), &wordless), of_kind, "{kind}");
        assert_eq!(asked(rubric(&format!("not-{kind}")), &wordless), of_inverse, "not-{kind}");
    }
    let unreported = EvidenceBuilder::new().asks("Hi").calls_unreported().answer("Hello").evidence();
    assert_eq!(asked(rubric("llm-rubric"), &unreported), None);
    assert_eq!(asked(rubric("trajectory:goal-success"), &unreported), Some(Status::Undecided));
    assert_eq!(asked(rubric("not-trajectory:goal-success"), &unreported), Some(Status::Undecided));
}

/// Returns the finding of a judged assertion if the judge answers with `answers`: the verdict and the score of each
/// criterion.
#[allow(clippy::needless_pass_by_value)]
#[track_caller]
fn judged(fields: Value, answers: &[(&str, u64)]) -> model::Finding {
    let evidence = EvidenceBuilder::new().asks("Hi").answer("Hello").evidence();
    let checks = compiled(&assertion(fields.clone()), 1.0).unwrap_or_else(|problems| panic!("{fields}: {problems:?}"));
    let question = checks[0].judged().unwrap().question(&evidence).unwrap();
    let is_scored = question.form.scale().is_some();
    let row = |(criterion, (verdict, score)): (&judge::Criterion, &(&str, u64))| {
        let mut row =
            json!({"id": criterion.id, "quote": "Hello", "absent": false, "reasoning": format!("{verdict}.")});
        match is_scored {
            true => row["score"] = json!(score),
            false => row["verdict"] = json!(verdict),
        }
        row
    };
    let rows: Vec<Value> = question.criteria.iter().zip(answers).map(row).collect();
    rehearse(&checks[0], &evidence, &json!({"answers": rows})).unwrap_or_else(|problem| panic!("{fields}: {problem}"))
}

#[test]
fn the_reason_of_a_judged_assertion_says_what_the_judge_found_and_what_is_wanted() {
    let (met, violated) = (("met", 10), ("violated", 3));
    let one = |kind: &str| json!({"type": kind, "value": "Is kind."});
    let scored = |kind: &str| json!({"type": kind, "value": "Is kind.", "threshold": 0.8});
    let both = |kind: &str| json!({"type": kind, "value": ["Is kind.", "Is short."]});
    for (fields, answers, status, score, reason) in [
        (one("llm-rubric"), vec![met], Status::Met, 1.0, "the judge says that the criterion holds: met."),
        (
            one("llm-rubric"),
            vec![violated],
            Status::Unmet,
            0.0,
            "the judge says that the criterion does not hold: violated.",
        ),
        (
            one("not-llm-rubric"),
            vec![violated],
            Status::Met,
            1.0,
            "the judge says that the criterion does not hold, as `not-llm-rubric` requires: violated.",
        ),
        (
            one("not-llm-rubric"),
            vec![met],
            Status::Unmet,
            0.0,
            "the judge says that the criterion holds, and `not-llm-rubric` forbids that: met.",
        ),
        (
            both("llm-rubric"),
            vec![met, violated],
            Status::Unmet,
            0.5,
            "the judge says that 1 of 2 criteria hold: violated.",
        ),
        (
            both("not-llm-rubric"),
            vec![met, met],
            Status::Unmet,
            0.0,
            "the judge says that 2 of 2 criteria hold, and `not-llm-rubric` forbids that: met.",
        ),
        (scored("g-eval"), vec![met], Status::Met, 0.9, "the judge's score is 0.9, and needs 0.8: met."),
        (scored("g-eval"), vec![violated], Status::Unmet, 0.2, "the judge's score is 0.2, and needs 0.8: violated."),
        (scored("not-g-eval"), vec![met], Status::Unmet, 0.1, "the judge's score is 0.9, and must be below 0.8: met."),
        (
            scored("not-g-eval"),
            vec![violated],
            Status::Met,
            0.8,
            "the judge's score is 0.2, and must be below 0.8: violated.",
        ),
    ] {
        let finding = judged(fields.clone(), &answers);
        assert_eq!((finding.status, finding.reason.as_str()), (status, reason), "{fields}");
        assert!((finding.score.unwrap() - score).abs() < 1e-9, "{fields}: {:?}", finding.score);
    }
}

#[test]
fn a_judged_assertion_without_a_threshold_has_that_of_promptfoo() {
    for (kind, least) in [
        ("g-eval", 8),
        ("answer-relevance", 6),
        ("context-faithfulness", 6),
        ("context-recall", 6),
        ("context-relevance", 6),
    ] {
        let status = |score: u64| judged(json!({"type": kind, "value": "Is kind."}), &[("met", score)]).status;
        assert_eq!((status(least), status(least - 1)), (Status::Met, Status::Unmet), "{kind}");
        let inverse = json!({"type": format!("not-{kind}"), "value": "Is kind."});
        assert_eq!(judged(inverse.clone(), &[("met", least)]).status, Status::Unmet, "{kind}");
        assert_eq!(judged(inverse, &[("met", least - 1)]).status, Status::Met, "{kind}");
    }
    for kind in [
        "llm-rubric",
        "agent-rubric",
        "trajectory:goal-success",
        "factuality",
        "model-graded-factuality",
        "model-graded-closedqa",
    ] {
        let status = |verdict: &str| judged(json!({"type": kind, "value": "Is kind."}), &[(verdict, 1)]).status;
        assert_eq!((status("met"), status("violated")), (Status::Met, Status::Unmet), "{kind}");
    }
}

#[tokio::test]
async fn hosted_models_decide_similarity_and_moderation() {
    let embeddings = json!({"usage": {"prompt_tokens": 3}, "data": [
        {"index": 0, "embedding": [1.0, 0.0]}, {"index": 1, "embedding": [0.0, 1.0]}, {"index": 2, "embedding": [0.8, 0.6]},
    ]});
    let moderation = json!({"results": [{"flagged": true, "categories": {"violence": true}}]});
    let (address, asked) = serve(vec![embeddings, moderation, json!({"data": []})]);
    let credentials = Credentials::default().with("OPENAI_BASE_URL", &address).with("OPENAI_API_KEY", "k");
    let policy = Policy { tries: 1, ..Policy::default() };
    let providers = Providers::new(credentials, Prices::default(), policy);
    let evidence = EvidenceBuilder::new().answer("a secret").evidence();
    let withhold = |text: &str| text.replace("secret", "[masked]");
    let ask = async |fields: Value| {
        let checks = compiled(&assertion(fields), 1.0).unwrap();
        let mut findings = grade(&checks, &evidence);
        assert_eq!(findings[0].status, Status::Undecided);
        let spent = ask_hosted(&checks, &evidence, &providers, &withhold, &mut findings).await;
        (findings.remove(0), spent)
    };
    let (similar, spent) = ask(json!({"type": "similar", "value": ["x", "y"], "provider": "openai:small"})).await;
    assert_eq!((similar.status, similar.score), (Status::Met, Some(0.8)));
    assert_eq!((spent.unwrap().requests, spent.unwrap().tokens.unwrap().input), (1, 3));
    let (moderated, _) = ask(json!({"type": "moderation"})).await;
    assert_eq!((moderated.status, moderated.reason.as_str()), (Status::Unmet, "moderation flags violence"));
    let (unread, _) = ask(json!({"type": "similar", "value": "x"})).await;
    assert_eq!(unread.reason, "the response of `openai:text-embedding-3-large` cannot be read");
    let asked = asked.join().unwrap();
    assert!(asked[0].starts_with("POST /v1/embeddings ") && asked[0].contains("\"model\":\"small\""), "{}", asked[0]);
    assert!(asked[0].contains("[\"a [masked]\",\"x\",\"y\"]"), "{}", asked[0]);
    assert!(asked[1].starts_with("POST /v1/moderations "), "{}", asked[1]);
    let (refused, spent) = ask(json!({"type": "similar", "value": "x"})).await;
    assert!(refused.reason.contains("could not be asked"), "{}", refused.reason);
    assert_eq!(spent, Some(model::AuxiliaryUsage::default()), "a request was sent, and none was answered");
    let providers = Providers::new(Credentials::default(), Prices::default(), Policy::default());
    let checks = compiled(&assertion(json!({"type": "similar", "value": "x"})), 1.0).unwrap();
    let mut findings = grade(&checks, &evidence);
    assert_eq!(ask_hosted(&checks, &evidence, &providers, &withhold, &mut findings).await, None);
    assert!(findings[0].reason.contains("`openai` needs a key: OPENAI_API_KEY is not set"), "{findings:?}");
}

#[test]
fn what_is_not_known_is_undecided_and_mistakes_are_reported() {
    assert_eq!(graded(json!({"type": "latency", "threshold": 10}), "a").0, Status::Undecided);
    assert_eq!(graded(json!({"type": "similar", "undecided": "there is no model"}), "a").0, Status::Undecided);
    let silent = EvidenceBuilder::new().evidence();
    let finding = findings(&assertion(json!({"type": "not-contains", "value": "x"})), 1.0, &silent).unwrap();
    assert_eq!(finding.status, Status::Undecided);
    for (fields, problem) in [
        (json!({"type": "contains"}), "`contains` needs a `value`"),
        (json!({"type": "contains", "value": ["a"]}), "`value` of `contains` must be a string or a number"),
        (json!({"type": "contains-any", "value": "\"a"}), "a quoted field of `value` is not closed"),
        (json!({"type": "latency"}), "`latency` needs a `threshold`"),
        (json!({"type": "word-count", "value": {"min": 3, "max": 1}}), "`value` must be a number, or a map"),
        (json!({"type": "context-recall", "value": 5}), ""),
        (json!({"type": "trajectory:tool-sequence", "value": {"mode": "any", "steps": ["a"]}}), "`mode` must be"),
        (json!({"type": "not-skill-used", "value": {"name": "a", "min": 1}}), "`not-skill-used` has no `min`"),
        (json!({"type": "llm-rubric"}), "`llm-rubric` needs a `value`"),
        (json!({"type": "python", "value": "1", "transform": "output"}), "`transform` cannot be combined"),
        (json!({"type": "nonsense"}), "unknown assertion type `nonsense`"),
    ] {
        match findings(&assertion(fields.clone()), 1.0, &silent) {
            Err(problems) => assert!(!problem.is_empty() && problems[0].starts_with(problem), "{fields}: {problems:?}"),
            Ok(_) => assert!(problem.is_empty(), "{fields}"),
        }
    }
}
