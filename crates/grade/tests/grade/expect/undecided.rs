//! Tests of how undecided, critical and penalty parts combine.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use expect::{
    Answer, Argument, Data, Expectation, Found, Function, Host, Invalid, Pass, Pattern, Rules, Strict, Trouble,
};
use model::{Detail, Ending, Finding, Outcome, OutcomeRule, ScoreRange, Scoring, Status};
use serde_json::{Value, json};
use trialrun_grade::{Context, Scripts, compile};

use crate::expect::{
    answered, assert_score, case, critical, fails, found, found_by, graded, graded_in, holds, host, keys, node, read,
};

/// The engine with one expression that always times out: `/stop/`.
#[derive(Debug)]
struct Stopping {
    engine: Arc<dyn Host>,
    tried: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Endless(Arc<AtomicUsize>);

impl Pattern for Endless {
    fn is_match(&self, _: &str) -> Result<bool, String> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Err("was stopped".into())
    }
}

impl Host for Stopping {
    fn regex(&self, source: &str, flags: &str) -> Result<Arc<dyn Pattern>, Invalid> {
        match source {
            "stop" => Ok(Arc::new(Endless(Arc::clone(&self.tried)))),
            _ => self.engine.regex(source, flags),
        }
    }

    fn expression(&self, text: &str, names: &[&str]) -> Result<(), Invalid> {
        self.engine.expression(text, names)
    }

    fn evaluate(&self, text: &str, scope: &[(&str, Option<&Value>)]) -> Result<Option<Value>, Trouble> {
        self.engine.evaluate(text, scope)
    }

    fn function(&self, reference: &str, name: &str, directory: &Path) -> Result<Function, Invalid> {
        self.engine.function(reference, name, directory)
    }

    fn call(
        &self,
        function: &Function,
        arguments: &[Argument<'_>],
        answer: &mut Answer<'_>,
    ) -> Result<Option<Value>, Trouble> {
        self.engine.call(function, arguments, answer)
    }
}

/// Judges `actual`. Also returns how often `/stop/` was tried.
fn tried(expected: &Value, actual: &Value) -> (Found, usize) {
    let tried = Arc::new(AtomicUsize::new(0));
    let host: Arc<dyn Host> = Arc::new(Stopping { engine: host(), tried: Arc::clone(&tried) });
    let mut problems = Vec::new();
    let expectation = Expectation::from_value(&node(expected), Rules::default(), &host, None, &mut problems);
    assert!(problems.is_empty(), "{expected}: {problems:#?}");
    let found = expectation.judge(Some(actual), &Data::default());
    assert!(found.pass != Pass::Yes || found.flaws.is_empty(), "{found:#?}");
    assert!(found.pass == Pass::Yes || !found.flaws.is_empty(), "{found:#?}");
    assert!(found.pass != Pass::Unknown || found.flaws.iter().all(|flaw| flaw.undecided), "{found:#?}");
    (found, tried.load(Ordering::Relaxed))
}

/// Returns the verdict, and the lowest and the highest possible score in percent.
fn judged(expected: &Value, actual: &Value) -> (Pass, i64, i64) {
    let (found, _) = tried(expected, actual);
    let percent = |score: f64| (score * 100.0).round() as i64;
    (found.pass, percent(found.score), percent(found.most))
}

const STOP: &str = "/stop/";

fn must(expected: Value) -> Value {
    json!({"$expect": expected, "$critical": true})
}

fn penalty(expected: Value) -> Value {
    json!({"$expect": expected, "$score": -50})
}

fn critical_penalty(expected: Value) -> Value {
    json!({"$expect": expected, "$score": {"value": -50, "critical": true}})
}

#[test]
fn parts_stay_critical_when_an_operator_tries_each_item() {
    let inner = || json!({"r": "a", "c": must(json!("zz"))});
    let list = json!([{"r": "a", "c": "x"}]);
    for expected in [
        json!({"$contains": inner()}),
        json!({"$all": [inner()]}),
        json!({"$sequence": [inner()]}),
        json!({"$contains": {"$or": [inner(), {"r": "q"}]}}),
        json!({"$all": [{"$and": [{"r": "a"}, inner()]}]}),
        json!({"$all": [{"r": "a"}, inner()]}),
        json!({"$sequence": [{"r": "nope"}, inner()]}),
        json!({"$contains": {"$and": [{"r": "a"}, critical_penalty(json!({"c": "x"}))]}}),
        json!({"$sequence": [{"$and": [{"r": "a"}, critical_penalty(json!({"c": "x"}))]}]}),
    ] {
        let found = found(&expected, &list);
        assert!(found.pass == Pass::No && !critical(&found).is_empty(), "{expected}: {:#?}", found.flaws);
        let finding = graded(json!({"output": expected, "scoring": true, "passScore": 0}), &answered(&list));
        assert_eq!(finding.status, Status::Unmet, "{expected}");
    }
    let calls = json!({"messages": [{"tools": [{"name": "get", "args": {"id": 2}}]}]});
    for tools in [
        json!([{"name": "get", "args": {"id": must(json!(1))}}]),
        json!({"$sequence": [{"name": "get", "args": {"id": must(json!(1))}}]}),
        json!({"name": "get", "args": {"id": must(json!(1))}}),
    ] {
        let found = crate::expect::found_in_result(&json!({"tools": tools}), &calls);
        assert!(!critical(&found).is_empty(), "{tools}: {:#?}", found.flaws);
    }
    // If one item matches, critical parts that other items fail do not matter.
    holds(&json!({"$contains": inner()}), &json!([{"r": "a", "c": "x"}, {"r": "a", "c": "zz"}]));
    // A value that is not a list has none of the required items.
    for operator in ["$all", "$sequence"] {
        assert_eq!(critical(&crate::expect::found(&json!({operator: [must(json!("zz"))]}), &json!("zz"))), [""]);
    }
}

#[test]
fn undecided_parts_make_the_score_a_range() {
    for (expected, actual, wanted) in [
        (json!([1, "zzz", STOP]), json!([1, "no", "x"]), (Pass::No, 33, 67)),
        (json!([1, 2, STOP]), json!([1, 2, "x"]), (Pass::Unknown, 67, 100)),
        (
            json!({"$and": [{"$expect": "x", "$score": 80}, {"$expect": STOP, "$score": 20}]}),
            json!("x"),
            (Pass::Unknown, 80, 100),
        ),
        (json!({"$and": ["x", penalty(json!(STOP))]}), json!("x"), (Pass::Unknown, 50, 100)),
        (
            json!({"$or": [{"$expect": "x", "$score": 40}, {"$expect": STOP, "$score": 90}]}),
            json!("x"),
            (Pass::Yes, 40, 90),
        ),
        (json!({"$contains": [1, STOP]}), json!([[1, "a"], [2, "b"]]), (Pass::Unknown, 50, 100)),
        (json!({"$all": ["x", STOP]}), json!(["x"]), (Pass::Unknown, 50, 100)),
        (json!({"$each": [1, STOP]}), json!([[1, "a"], [2, "b"]]), (Pass::No, 25, 75)),
        (json!({"$not": STOP}), json!("x"), (Pass::Unknown, 0, 100)),
    ] {
        assert_eq!(judged(&expected, &actual), wanted, "{expected}");
    }
}

#[test]
fn a_threshold_decides_if_both_ends_of_the_range_agree() {
    let of = |threshold: f64| judged(&json!({"$threshold": threshold, "$and": ["x", "zzz", STOP]}), &json!("x")).0;
    assert_eq!([of(0.3), of(0.5), of(0.7)], [Pass::Yes, Pass::Unknown, Pass::No]);
    // A critical part that failed fails the whole. An undecided one may.
    let with = |other: Value| judged(&json!({"$threshold": 0.3, "$and": ["x", other, STOP]}), &json!("x")).0;
    assert_eq!(with(must(json!("zzz"))), Pass::No);
    assert_eq!(with(must(json!(STOP))), Pass::Unknown);
    // A branch that is sufficient does not determine the value of the other one.
    let or = json!({"$or": [{"$expect": "x", "$score": 40}, {"$expect": STOP, "$score": 90}], "$threshold": 0.6});
    assert_eq!(judged(&or, &json!("x")).0, Pass::Unknown);
}

/// Judges an assertion with three equal parts, of which `b` fails and `c` is undecided.
fn thirds(pass_score: f64, b: Value, c: Value) -> (Status, Finding) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("op.js"), "export default () => { throw new Error('no idea') }").unwrap();
    let fields = json!({
        "output": {"a": "ok", "b": b, "c": c}, "operators": {"op": "./op.js"}, "scoring": true, "passScore": pass_score,
    });
    let given = answered(&json!({"a": "ok", "b": "x", "c": "x"}));
    let own = graded_in(Some(directory.path()), fields.clone(), &given).unwrap();
    let mut part = fields;
    part["ruled"] = "case".into();
    part.as_object_mut().unwrap().remove("passScore");
    let part = graded_in(Some(directory.path()), part, &given).unwrap();
    (own.status, Finding { weight: 100.0, ..part })
}

fn outcome(finding: &Finding, pass_score: f64, not: bool) -> Outcome {
    let scoring = Some(Scoring { max_score: 100.0, pass_score });
    Outcome::of(std::slice::from_ref(finding), &Ending::Finished, &OutcomeRule { scoring, not })
}

#[test]
fn a_score_decides_if_undecided_parts_cannot_change_the_result() {
    let op = || json!({"$op": 1});
    for (pass_score, status, straight, turned) in [
        (30.0, Status::Met, Outcome::Passed, Outcome::Failed),
        (50.0, Status::Undecided, Outcome::Undecided, Outcome::Undecided),
        (70.0, Status::Unmet, Outcome::Failed, Outcome::Passed),
    ] {
        let (own, part) = thirds(pass_score, json!("zzz"), op());
        assert_eq!(own, status, "{pass_score}");
        let leeway = part.leeway.unwrap();
        assert!((leeway.least - 1.0 / 3.0).abs() < 1e-9 && (leeway.most - 2.0 / 3.0).abs() < 1e-9, "{leeway:?}");
        assert_eq!([outcome(&part, pass_score, false), outcome(&part, pass_score, true)], [straight, turned]);
    }
    // An undecided critical part may fail the whole. A failed one has.
    let (own, part) = thirds(30.0, json!("zzz"), json!({"$op": 1, "$critical": true}));
    assert_eq!((own, part.failed_critical.len()), (Status::Undecided, 0));
    assert_eq!(outcome(&part, 30.0, false), Outcome::Undecided);
    assert!(part.failures.iter().all(|failure| !failure.critical), "{:#?}", part.failures);
    let (own, part) = thirds(0.0, must(json!("zzz")), op());
    assert_eq!((own, part.failed_critical.as_slice()), (Status::Unmet, &["b".to_owned()][..]));
    assert_eq!(outcome(&part, 0.0, false), Outcome::Failed);
}

#[test]
fn an_older_record_without_a_range_keeps_its_verdict() {
    let (_, part) = thirds(50.0, json!("x"), json!("x"));
    assert_eq!((part.leeway, part.score), (None, Some(1.0)));
    let half = Finding { score: Some(0.5), ..part.clone() };
    assert_eq!([outcome(&half, 50.0, false), outcome(&half, 51.0, false)], [Outcome::Passed, Outcome::Failed]);
    let unknown = Finding { status: Status::Undecided, score: None, ..part };
    assert_eq!(outcome(&unknown, 50.0, false), Outcome::Undecided);
    let range = Finding { leeway: Some(ScoreRange { least: 0.6, most: 0.7, critical: false }), ..unknown };
    assert_eq!([outcome(&range, 50.0, false), outcome(&range, 80.0, false)], [Outcome::Passed, Outcome::Failed]);
}

#[test]
fn a_sequence_keeps_track_of_undecided_items() {
    let steps = |steps: Value| json!({"$sequence": steps});
    for (expected, actual, wanted) in [
        // One item cannot be both steps, whichever it is. The score of an undecided item that is not a step is not
        // known.
        (steps(json!([STOP, "b"])), json!(["b"]), (Pass::No, 50, 100)),
        (steps(json!([{"$or": ["b", STOP]}, "b"])), json!(["x", "b"]), (Pass::Unknown, 50, 100)),
        (steps(json!([{"$or": ["b", STOP]}, "b"])), json!(["x", "b", "b"]), (Pass::Yes, 100, 100)),
        (steps(json!(["a", STOP])), json!(["a", "x"]), (Pass::Unknown, 50, 100)),
        (steps(json!([STOP])), json!([]), (Pass::No, 0, 0)),
        // A penalty that may be incurred.
        (steps(json!(["a", penalty(json!(STOP))])), json!(["a", "x"]), (Pass::Unknown, 50, 100)),
        (steps(json!(["a", critical_penalty(json!(STOP))])), json!(["a", "x"]), (Pass::Unknown, 50, 100)),
        (steps(json!(["a", penalty(json!("bad"))])), json!(["a", "bad"]), (Pass::Yes, 50, 50)),
        (steps(json!(["a", critical_penalty(json!("bad"))])), json!(["a", "bad"]), (Pass::No, 50, 50)),
        (steps(json!(["a", penalty(json!(STOP))])), json!(["a"]), (Pass::Yes, 100, 100)),
    ] {
        assert_eq!(judged(&expected, &actual), wanted, "{expected} of {actual}");
    }
    // A critical item that is undecided may be missing.
    let (found, _) = tried(&steps(json!([must(json!(STOP))])), &json!(["x"]));
    assert!(found.flaws.iter().any(|flaw| flaw.critical && flaw.undecided), "{:#?}", found.flaws);
}

#[test]
fn a_threshold_does_not_make_up_for_strict_violations() {
    let strict = Rules { strict: Strict { object: true, ..Strict::default() }, ..Rules::default() };
    let extra = json!({"a": 1, "b": 2});
    for (expected, actual) in [
        (json!({"$threshold": 0.5, "a": 1}), extra.clone()),
        (json!({"$threshold": 0.5, "x": {"a": 1}}), json!({"x": extra})),
        (json!({"$threshold": 0.5, "$and": [{"a": 1}, {"$exists": true}]}), extra.clone()),
        (json!({"$threshold": 0.5, "$or": [{"a": 1}]}), extra.clone()),
        (json!({"$threshold": 0.5, "$contains": {"a": 1}}), json!([extra])),
        (json!({"$threshold": 0.5, "$all": [{"a": 1}]}), json!([extra])),
        (json!({"$threshold": 0.5, "$sequence": [{"a": 1}]}), json!([extra])),
        (json!({"$threshold": 0.5, "$each": {"a": 1}}), json!([extra, {"a": 1}])),
    ] {
        assert_eq!(found_by(&strict, &expected, &actual).pass, Pass::No, "{expected}");
        assert_eq!(found(&expected, &actual).pass, Pass::Yes, "{expected}");
    }
    assert_eq!(found_by(&strict, &json!({"$threshold": 0.5, "a": 1, "b": 3}), &extra).pass, Pass::Yes);
}

#[test]
fn a_lone_critical_penalty_reduces_the_whole_score() {
    let secret = json!({"$expect": "/secret/", "$score": {"value": -50, "critical": true, "title": "leaks"}});
    let leaked = found(&secret, &json!("the secret"));
    assert_eq!(
        (leaked.pass, critical(&leaked), leaked.flaws[0].message.as_deref()),
        (Pass::No, vec![""], Some("leaks"))
    );
    assert_score(&leaked, 0.5);
    holds(&secret, &json!("fine"));
    let scored = |text: &str| graded(json!({"output": secret, "scoring": true}), &answered(&json!(text)));
    assert_eq!((scored("fine").status, scored("the secret").status), (Status::Met, Status::Unmet));
    assert_eq!(scored("the secret").failed_critical.len(), 1);
}

#[test]
fn a_lone_penalty_is_reported() {
    let bad = || penalty(json!("bad"));
    for operator in ["$not", "$contains", "$each", "$first", "$last", "$expect"] {
        let (_, messages) = read(&Rules::default(), &json!({"a": {operator: bad()}}));
        assert!(
            messages.iter().any(|message| message.contains(&format!("there is no other score in `{operator}`"))),
            "{messages:#?}"
        );
    }
    let (_, messages) = read(&Rules::default(), &bad());
    assert!(messages.iter().any(|message| message.contains("a penalty has no effect")), "{messages:#?}");
    for fine in [
        json!({"$and": ["x", bad()]}),
        json!({"a": 1, "b": bad()}),
        json!({"$contains": {"a": 1, "b": bad()}}),
        json!({"$eq": {"$not": {"$score": -5}}}),
        json!({"$not": {"$expect": 1, "$score": 5}}),
    ] {
        assert_eq!(read(&Rules::default(), &fine).1, Vec::<String>::new(), "{fine}");
    }
}

#[test]
fn a_penalty_does_not_count_as_a_branch() {
    let or = json!({"$or": [penalty(json!("bad")), "good"]});
    fails(&or, &json!("bad"), &[""]);
    holds(&or, &json!("good"));
    holds(&or, &json!("good bad"));
    fails(&json!({"$or": [penalty(json!("bad"))]}), &json!("bad"), &[""]);
    fails(&json!({"$or": [critical_penalty(json!("bad")), "good"]}), &json!("good bad"), &["$or[0]"]);
    fails(&json!({"$strategy": "max", "a": penalty(json!(1)), "b": 1}), &json!({"a": 1}), &[""]);
}

#[test]
fn an_expectation_without_requirements_matches_fully_with_either_strategy() {
    holds(&json!({"$strategy": "max"}), &json!({"a": 1}));
    holds(&json!({"$expect": [], "$strategy": "max"}), &json!([1]));
    holds(&json!({"$expect": {}, "$strategy": "or"}), &json!({}));
}

#[test]
fn a_failure_keeps_no_copy_of_a_large_value() {
    let list: Value = (0..10_000).map(|id| json!({"id": id, "text": "something of a text"})).collect();
    let wanted: Value = (0..20).map(|id| json!({"id": format!("n{id}")})).collect();
    let found = found(&json!({"$all": wanted}), &list);
    assert_eq!(found.flaws.len(), 20);
    for flaw in &found.flaws {
        let kept = flaw.actual.as_ref().and_then(Value::as_str).unwrap();
        assert!(kept.len() < 3_000 && kept.ends_with("(a list of 10000 items)"), "{kept}");
    }
    let small = crate::expect::found(&json!({"$contains": 3}), &json!([1, 2]));
    assert_eq!(small.flaws[0].actual, Some(json!([1, 2])));
}

#[test]
fn no_more_code_runs_after_eight_timeouts() {
    let list: Value = (0..50).map(|_| "x").collect();
    let (found, times) = tried(&json!({"$each": STOP}), &list);
    assert_eq!((found.pass, times), (Pass::Unknown, 8));
    let last = found.flaws.last().and_then(|flaw| flaw.message.as_deref()).unwrap();
    assert!(last.contains("8 pieces"), "{last}");
    // Parts that do not need the host are judged as before, and the next judgement starts with a new limit.
    let (found, times) = tried(&json!([{"$each": STOP}, 1]), &json!([list, 2]));
    assert_eq!((found.pass, times), (Pass::No, 8));
    let (found, _) = tried(&json!({"$and": [{"$each": STOP}, {"$each": {"$expr": "true"}}]}), &list);
    assert_eq!((found.score, found.most), (0.0, 1.0));
}

#[test]
fn an_assertion_without_templates_has_its_own_score() {
    let output = json!({"a": 1, "b": 2});
    let given = answered(&json!({"a": 1, "b": 3}));
    let fields =
        |ruled: &str| json!({"output": output, "templates": false, "scoring": true, "passScore": 50, "ruled": ruled});
    assert_eq!(graded(fields("itself"), &given).status, Status::Met);
    assert_eq!(graded(fields("case"), &given).status, Status::Unmet);
}

#[test]
fn a_score_that_is_too_low_is_reported() {
    let reason = |pass_score: f64| {
        let fields = json!({"output": {"a": 1, "b": 2}, "scoring": true, "passScore": pass_score});
        graded(fields, &answered(&json!({"a": 1, "b": 3}))).reason
    };
    assert!(reason(80.0).starts_with("scores 50 of 100, and needs 80: b: "), "{}", reason(80.0));
    assert_eq!(reason(50.0), "it matches");
    // Also if every part passes by a threshold.
    let output = json!({"$threshold": 0.5, "a": 1, "b": 2});
    let part = graded(json!({"output": output, "scoring": true, "ruled": "case"}), &answered(&json!({"a": 1})));
    let scoring = Scoring { max_score: 100.0, pass_score: 80.0 };
    let part = Finding { weight: 100.0, ..part };
    assert_eq!(part.status, Status::Met);
    assert_eq!(scoring.reason(std::slice::from_ref(&part)).as_deref(), Some("scores 50 of 100, and needs 80"));
    let close = Finding { score: Some(0.799_999_9), ..part.clone() };
    assert_eq!(scoring.reason(&[close]).as_deref(), Some("scores 79.99999 of 100, and needs 80"));
    let range = Finding { leeway: Some(ScoreRange { least: 0.5, most: 0.9, critical: false }), ..part.clone() };
    assert_eq!(scoring.reason(&[range]).as_deref(), Some("scores 50 to 90 of 100, and needs 80"));
    assert_eq!(scoring.reason(&[Finding { score: Some(1.0), ..part }]), None);
}

#[test]
fn throwing_code_does_not_pass_a_negated_case() {
    for output in [json!({"$expr": "actual.a.b.c > 1"}), json!({"n": {"$expr": "actual.call()"}})] {
        let output = json!({"$and": [output, "/./"]});
        let status =
            |ruled: &str| graded(json!({"output": output, "ruled": ruled}), &answered(&json!({"n": 1}))).status;
        assert_eq!((status("case"), status("not")), (Status::Unmet, Status::Undecided), "{output}");
    }
    let holds_not = json!({"$and": [{"$expr": "actual.a.b.c > 1"}, {"n": 2}]});
    let finding = graded(json!({"output": holds_not, "ruled": "not"}), &answered(&json!({"n": 1})));
    assert_eq!(finding.status, Status::Unmet, "the other part fails, regardless of what the code returns");
}

#[test]
fn a_template_in_an_expression_causes_a_warning() {
    let warnings = |output: Value| {
        let assertion = json!({"id": "it", "type": "expect", "vars": {"n": 1}, "output": output});
        let scripts = Scripts::default();
        let context = Context { scripts: Some(&scripts), ..Context::default() };
        let (_, problems) = compile(&case(&assertion), &context);
        problems.iter().map(|problem| format!("{problem} {}", problem.help.join(" "))).collect::<Vec<_>>()
    };
    let [doubt] = <[String; 1]>::try_from(warnings(json!({"a": {"$expr": "actual > {{ n }}"}}))).unwrap();
    assert!(doubt.contains("a template in `$expr` becomes part of the code") && doubt.ends_with("`data.n`"), "{doubt}");
    assert_eq!(warnings(json!({"a": {"$expr": "actual > data.n"}, "b": "{{ n }}"})), [""; 0]);
}

#[test]
fn scores_that_cannot_be_reached_are_refused() {
    let refusal = |fields: Value| {
        let mut fields = fields;
        fields["output"] = json!("x");
        graded_in(None, fields, &answered(&json!("x"))).map(|_| ()).unwrap_err().join("\n")
    };
    assert!(refusal(json!({"scoring": true, "passScore": 120})).contains("the maximum score is 100"));
    assert!(refusal(json!({"scoring": true, "passScore": 20, "maxScore": 10})).contains("the maximum score is 10"));
    assert!(refusal(json!({"scoring": true, "passScore": -1})).contains("at least 0"));
    assert!(refusal(json!({"scoring": true, "maxScore": 0})).contains("more than 0"));
    assert!(graded_in(None, json!({"output": "x", "passScore": 50}), &answered(&json!("x"))).is_ok());
}

#[test]
fn only_the_best_branch_counts_and_others_are_ignored() {
    let found = found(&json!({"o": {"$or": [{"a": 1}, {"b": 1}]}, "c": 1}), &json!({"o": {"b": 1}, "c": 1}));
    let parts =
        |details: &[Detail]| details.iter().map(|part| (part.key.clone(), part.passed_over)).collect::<Vec<_>>();
    assert_eq!(keys(&found), Vec::<&str>::new());
    assert_eq!(parts(&found.details), [("o".into(), false), ("c".into(), false)]);
    let branches = parts(&found.details[0].details);
    assert_eq!(branches, [("o.$or[0]".into(), true), ("o.$or[1]".into(), false)]);
}
