//! Tests of custom operators: modules on disk, their return values, and operators that misbehave.

use std::path::Path;
use std::time::Duration;

use model::{Detail, Finding, Status};
use serde_json::{Value, json};
use trialrun_grade::Scripts;

use crate::expect::{answered, graded_with};

/// Folder of modules.
struct Modules {
    directory: tempfile::TempDir,
    /// CPU time limit for one call, if it is not the default.
    budget: Option<Duration>,
}

impl Modules {
    fn new(files: &[(&str, &str)]) -> Self {
        let modules = Self { directory: tempfile::tempdir().unwrap(), budget: None };
        for (name, text) in files {
            let path = modules.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        modules
    }

    /// Creates modules whose calls are stopped after a fifth of a second, for those that never end.
    fn endless(files: &[(&str, &str)]) -> Self {
        Self { budget: Some(Duration::from_millis(200)), ..Self::new(files) }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn try_judge(&self, fields: Value, actual: &Value) -> Result<Finding, Vec<String>> {
        let scripts = Scripts::new(self.path());
        let scripts = match self.budget {
            Some(budget) => scripts.with_call_budget(budget),
            None => scripts,
        };
        graded_with(&scripts, Some(self.path()), fields, &answered(actual))
    }

    /// Judges `actual` as an answer with these operators.
    fn judge(&self, operators: Value, output: Value, actual: &Value) -> Finding {
        self.try_judge(json!({"operators": operators, "output": output}), actual).unwrap()
    }

    fn status(&self, operators: Value, output: Value, actual: &Value) -> Status {
        self.judge(operators, output, actual).status
    }
}

/// Creates one operator `$op` with the source `text`.
fn operator(text: &str) -> Modules {
    Modules::new(&[("op.js", text)])
}

/// Judges an answer with the `$op` operator.
fn judged(text: &str, output: Value, actual: &Value) -> Finding {
    operator(text).judge(json!({"op": "./op.js"}), output, actual)
}

fn message(finding: &Finding) -> &str {
    &finding.failures[0].message
}

fn paths(finding: &Finding) -> Vec<&str> {
    finding.failures.iter().map(|failure| failure.key.as_str()).collect()
}

fn detail<'d>(details: &'d [Detail], key: &str) -> &'d Detail {
    let found = details.iter().find(|detail| detail.key == key);
    found.unwrap_or_else(|| panic!("no {key} in {details:#?}"))
}

#[test]
fn operators_are_found_in_files_and_packages_of_every_kind() {
    let even = "return actual % 2 === (expected ? 0 : 1)";
    let modules = Modules::new(&[
        ("plain.js", &format!("export default function (actual, expected) {{ {even} }}")),
        (
            "typed.ts",
            "type N = number;\nexport const even = (actual: N, expected: boolean): boolean => (actual % 2 === 0) === expected;",
        ),
        ("is-even.mjs", &format!("export const isEven = (actual, expected) => {{ {even} }}")),
        ("old.cjs", &format!("module.exports = function (actual, expected) {{ {even} }}")),
        ("lib/index.js", "export { default as even } from '../plain.js'"),
        ("node_modules/esm/package.json", r#"{"name": "esm", "type": "module", "exports": "./main.js"}"#),
        ("node_modules/esm/main.js", &format!("export const even = (actual, expected) => {{ {even} }}")),
        ("node_modules/cjs/package.json", r#"{"name": "cjs", "main": "lib/main.js"}"#),
        ("node_modules/cjs/lib/main.js", "const inner = require('./inner'); exports.even = inner.even"),
        ("node_modules/cjs/lib/inner.js", &format!("exports.even = function (actual, expected) {{ {even} }}")),
        ("node_modules/@own/scoped/package.json", r#"{"name": "@own/scoped", "main": "index.js"}"#),
        ("node_modules/@own/scoped/index.js", &format!("module.exports = (actual, expected) => {{ {even} }}")),
    ]);
    for reference in [
        "./plain.js",
        "js://./plain.js",
        "./typed.ts#even",
        "./is-even.mjs#isEven",
        "./old.cjs",
        "./lib/index.js#even",
        "esm#even",
        "cjs#even",
        "@own/scoped",
        &modules.path().join("plain.js").display().to_string(),
    ] {
        let status = |actual: u64| {
            modules.status(json!({"even": reference}), json!({"n": {"$even": true}}), &json!({"n": actual}))
        };
        assert_eq!((status(2), status(3)), (Status::Met, Status::Unmet), "{reference}");
    }
    let inferred = |reference: &str, output: Value| modules.status(json!([reference]), output, &json!(2));
    assert_eq!(inferred("./is-even.mjs", json!({"$isEven": true})), Status::Met);
    assert_eq!(inferred("esm#even", json!({"$even": true})), Status::Met);
    assert_eq!(inferred("./plain.js", json!({"$plain": true})), Status::Met);
    let based = json!({"operators": ["./index.js#even"], "baseDir": "lib", "output": {"$even": true}});
    assert_eq!(modules.try_judge(based, &json!(2)).unwrap().status, Status::Met);
}

#[test]
fn a_reference_that_is_not_a_function_is_rejected() {
    let modules = Modules::new(&[
        ("a.js", "export const word = 'x'; export default function () { return true }"),
        ("broken.js", "export default function ( {"),
        ("fs.js", "import fs from 'node:fs'; export default () => fs.existsSync('/')"),
        ("throws.js", "throw new Error('no way'); export default () => true"),
    ]);
    for (reference, words) in [
        ("./none.js", "none.js"),
        ("./a.js#word", "is not a function"),
        ("./a.js#other", "other"),
        ("./broken.js", "broken.js:1:"),
        ("./fs.js", "node:fs"),
        ("./throws.js", "no way"),
        ("no-such-package", "no-such-package"),
        ("http://x/y.js", "is not supported"),
        ("", "must not be empty"),
    ] {
        let messages =
            modules.try_judge(json!({"operators": {"op": reference}, "output": {"$op": 1}}), &json!(1)).unwrap_err();
        assert!(messages.iter().any(|message| message.contains(words)), "{reference}: {messages:#?}");
    }
    let messages = modules.try_judge(json!({"operators": 5, "output": {"$op": 1}}), &json!(1)).unwrap_err();
    assert!(messages[0].contains("must be a map or a list"), "{messages:#?}");
}

#[test]
fn every_return_value_of_an_operator_is_interpreted() {
    for (returned, status, score, expected) in [
        ("true", Status::Met, 1.0, ""),
        ("false", Status::Unmet, 0.0, "it does not match"),
        ("'too loud'", Status::Unmet, 0.0, "too loud"),
        ("''", Status::Unmet, 0.0, "it does not match"),
        ("0.4", Status::Met, 0.4, ""),
        ("7", Status::Met, 1.0, ""),
        ("0", Status::Unmet, 0.0, "a confidence of 0"),
        ("-3", Status::Unmet, 0.0, "a confidence of 0"),
        ("NaN", Status::Unmet, 0.0, ""),
        ("({score: 0.5})", Status::Met, 0.5, ""),
        ("({score: 0.5, pass: false})", Status::Unmet, 0.5, "it does not match"),
        ("({score: 0.5, pass: false, message: 'half'})", Status::Unmet, 0.5, "half"),
        ("({score: 0.5, pass: true})", Status::Met, 0.5, ""),
        ("({pass: true})", Status::Met, 0.0, ""),
        ("({pass: false, message: 'm'})", Status::Unmet, 0.0, "m"),
        ("({score: 5})", Status::Met, 1.0, ""),
        ("({score: -5})", Status::Unmet, 0.0, "a confidence of 0"),
        ("({pass: false, failures: [{message: 'one'}, {key: 'x.y', message: 'two'}]})", Status::Unmet, 0.0, "one"),
        ("({})", Status::Unmet, 0.0, "neither `score` nor `pass`"),
        ("[1]", Status::Unmet, 0.0, "not a result"),
        ("null", Status::Unmet, 0.0, "not a result"),
        ("undefined", Status::Unmet, 0.0, "not a result"),
        ("Promise.resolve(true)", Status::Met, 1.0, ""),
        ("Promise.resolve({score: 0.3})", Status::Met, 0.3, ""),
        ("new Date(0)", Status::Unmet, 0.0, ""),
        ("() => true", Status::Unmet, 0.0, ""),
        ("Symbol('x')", Status::Unmet, 0.0, ""),
        ("10n", Status::Met, 1.0, ""),
    ] {
        let text = format!("export default function (actual, expected) {{ return {returned} }}");
        let finding =
            judged(&text, json!({"a": {"$op": 1}, "b": {"$expect": 2, "$score": 0}}), &json!({"a": 5, "b": 2}));
        assert_eq!(finding.status, status, "{returned}: {finding:#?}");
        let own = detail(&finding.details, "a").score;
        assert!((own - score).abs() < 1e-9, "{returned}: {own}");
        if status == Status::Unmet {
            assert!(message(&finding).contains(expected), "{returned}: {}", message(&finding));
            assert_eq!(
                (finding.failures[0].key.as_str(), &finding.failures[0].actual),
                ("a", &Some(json!(5))),
                "{returned}"
            );
        }
    }
}

#[test]
fn an_operator_that_returns_nothing_never_matches_even_negated() {
    for text in ["export default () => {}", "export default () => ({score: 'high'})"] {
        let status = |output: Value| judged(text, output, &json!(1)).status;
        assert_eq!(status(json!({"$op": 1})), Status::Unmet);
        assert_eq!(status(json!({"$not": {"$op": 1}})), Status::Undecided);
        assert_eq!(status(json!({"$or": [{"$op": 1}, 1]})), Status::Met);
    }
}

#[test]
fn a_threshold_decides_the_verdict_for_a_confidence() {
    let text = "export default (actual, expected) => expected";
    let status = |operand: Value, threshold: f64| {
        judged(text, json!({"$op": operand, "$threshold": threshold}), &json!(1)).status
    };
    assert_eq!(status(json!(0.5), 0.5), Status::Met);
    assert_eq!(status(json!(0.5), 0.6), Status::Unmet);
    assert_eq!(status(json!({"score": 0.5}), 0.5), Status::Met);
    assert_eq!(status(json!({"score": 0.5}), 0.6), Status::Unmet);
    assert_eq!(status(json!(0), 0.0), Status::Met);
}

#[test]
fn a_result_may_contain_details_failures_and_messages() {
    let text = "export default () => ({
        score: 0.25, pass: false, title: 'Tone', dimension: 'style', critical: true,
        details: [{key: 'warm', score: 0.5, weight: 0.5, pass: true}, {key: 'short', score: 0, weight: 0.5, pass: false}],
        failures: [{message: 'too long', expected: 10, actual: 20}, {key: 'own.path', message: 'cold'}],
    })";
    let finding = judged(text, json!({"t": {"$op": 1}}), &json!({"t": "x"}));
    assert_eq!((finding.status, paths(&finding)), (Status::Unmet, vec!["t", "own.path"]));
    assert_eq!((&finding.failures[0].expected, &finding.failures[0].actual), (&Some(json!(10)), &Some(json!(20))));
    assert_eq!(finding.failed_critical, ["t", "own.path"]);
    let part = detail(&finding.details, "t");
    assert_eq!((part.title.as_deref(), part.dimension.as_deref(), part.score), (Some("Tone"), Some("style"), 0.25));
    assert_eq!(part.details.iter().map(|part| part.key.as_str()).collect::<Vec<_>>(), ["warm", "short"]);
    assert_eq!(part.details[0].dimension.as_deref(), None);
    let odd = "export default () => ({pass: false, title: 5, details: [1, null, {}], failures: [1, null, {}, 'x'], score: 'x'})";
    assert_eq!(judged(odd, json!({"$op": 1}), &json!(1)).status, Status::Unmet);
}

#[test]
fn an_operator_receives_its_options_and_the_case() {
    let text = "export default function (actual, expected, fixture) {
        return JSON.stringify([expected, fixture.$options, fixture.$data, fixture.kind, fixture.input])
    }";
    let modules = operator(text);
    let received = |operand: Value| {
        let fields = json!({
            "operators": {"op": "./op.js"}, "output": {"$op": operand}, "vars": {"v": 1}, "input": {"q": 2},
            "fixture": {"kind": "k", "input": {"q": "raw"}, "$data": "not this"}, "templates": false,
        });
        let finding = modules.try_judge(fields, &json!("x")).unwrap();
        serde_json::from_str::<Value>(message(&finding)).unwrap()
    };
    let rest = [json!({"v": 1}), json!("k"), json!({"q": "raw"})];
    let with = |expected: Value, options: Value| json!([expected, options, rest[0], rest[1], rest[2]]);
    assert_eq!(received(json!(5)), with(json!(5), Value::Null));
    assert_eq!(received(json!({"a": 1})), with(json!({"a": 1}), Value::Null));
    assert_eq!(received(json!({"$value": 5})), with(json!(5), json!({})));
    assert_eq!(
        received(json!({"$value": [1], "loose": true, "n": 2})),
        with(json!([1]), json!({"loose": true, "n": 2}))
    );
    let raw = "export default (actual, expected, ctx, validate) => JSON.stringify(expected)";
    assert_eq!(message(&judged(raw, json!({"$op": {"$value": 5}}), &json!(1))), r#"{"$value":5}"#);
}

#[test]
fn an_operator_can_ask_the_engine_to_match_its_parts() {
    let text = "export default async (actual, expected, fixture) => await fixture.$validate(actual.inner, expected)";
    let finding =
        judged(text, json!({"u": {"$op": {"a": 1, "b": {"$gt": 2}}}}), &json!({"u": {"inner": {"a": 1, "b": 1}}}));
    assert_eq!((finding.status, paths(&finding)), (Status::Unmet, vec!["u.b"]));
    assert_eq!(detail(&finding.details, "u").score, 0.5);
    let met = judged(text, json!({"$op": "/x/i"}), &json!({"inner": "aXb"}));
    assert_eq!(met.status, Status::Met);
    // The operand must be valid, and a missing value stays missing.
    let wrong = judged(text, json!({"$op": {"$schema": {"type": 5}}}), &json!({"inner": 1}));
    assert_eq!(wrong.status, Status::Undecided);
    assert_eq!(judged(text, json!({"$op": "/undefined/"}), &json!({})).status, Status::Unmet);
    let nothing = "export default async (actual, expected, fixture) => await fixture.$validate()";
    assert_eq!(judged(nothing, json!({"$op": 1}), &json!(1)).status, Status::Undecided);
    let itself =
        "export default async (actual, expected, fixture) => await fixture.$validate(actual, {$op2: expected})";
    let modules =
        Modules::new(&[("op.js", itself), ("op2.js", "export default (actual, expected) => actual === expected")]);
    let both = json!({"op": "./op.js", "op2": "./op2.js"});
    assert_eq!(modules.status(both.clone(), json!({"$op": 3}), &json!(3)), Status::Met);
    assert_eq!(modules.status(both, json!({"$op": 3}), &json!(4)), Status::Unmet);
}

/// Operator that matches each item of a list with weights, like the built-in operators.
const PARTS: &str = "
    export default async function parts(actual, expected, ctx, validate) {
        const weights = ctx.distribute(expected.map(item => item?.$score))
        const results = []
        for (let at = 0; at < expected.length; at++) {
            results.push(await validate(actual[at], expected[at], ctx.createChildContext(at, expected.length)))
        }
        return ctx.aggregate(results, weights)
    }
";

#[test]
fn a_function_with_four_parameters_distributes_and_aggregates_weights() {
    let operand = json!([{"$expect": 1, "$score": 80}, {"$expect": 2, "$score": 20}]);
    let finding = judged(PARTS, json!({"l": {"$op": operand}}), &json!({"l": [1, 3]}));
    assert_eq!((finding.status, paths(&finding)), (Status::Unmet, vec!["l.$op[1]"]));
    let part = detail(&finding.details, "l");
    assert!((part.score - 0.8).abs() < 1e-9, "{part:#?}");
    let parts: Vec<_> = part.details.iter().map(|part| (part.key.as_str(), part.weight, part.score)).collect();
    assert_eq!(parts, [("l.$op[0]", 0.8, 1.0), ("l.$op[1]", 0.2, 0.0)]);
    assert_eq!(judged(PARTS, json!({"$op": [1, 2, 3]}), &json!([1, 2, 3])).score, Some(1.0));
    let single = judged(PARTS, json!({"l": {"$op": [5]}}), &json!({"l": [1]}));
    assert_eq!(paths(&single), ["l"]);
    let critical = judged(PARTS, json!({"$op": [{"$expect": 1, "$critical": true}, 2]}), &json!([2, 2]));
    assert_eq!(critical.failed_critical, ["$op[0]"]);
    let best = format!("{PARTS}\nparts.strategy = 'max'");
    let met = judged(&best, json!({"$op": [1, 9], "$strategy": "weighted"}), &json!([1, 2]));
    assert_eq!((met.status, met.score), (Status::Met, Some(1.0)));
    let unknown = operator(&format!("{PARTS}\nparts.strategy = 'sum'"));
    let messages = unknown.try_judge(json!({"operators": ["./op.js"], "output": {"$op": []}}), &json!([])).unwrap_err();
    assert!(messages[0].contains("unknown strategy `sum`"), "{messages:#?}");
}

#[test]
fn an_operator_can_choose_the_names_of_its_parts() {
    let paths_of = |naming: &str, operand: Value, actual: Value| {
        let finding = judged(&format!("{PARTS}\n{naming}"), json!({"l": {"$op": operand}}), &json!({"l": actual}));
        finding.failures.iter().map(|failure| failure.key.clone()).collect::<Vec<_>>()
    };
    let two = || json!([1, 2]);
    assert_eq!(paths_of("", two(), json!([1, 9])), ["l.$op[1]"]);
    assert_eq!(paths_of("parts.virtual = true", two(), json!([1, 9])), ["l.$op[1]"]);
    assert_eq!(paths_of("parts.virtual = false", two(), json!([1, 9])), ["l.$op[1]"]);
    assert_eq!(paths_of("parts.virtual = false", json!([1]), json!([9])), ["l.$op[0]"]);
    assert_eq!(paths_of("parts.virtual = ''", two(), json!([9, 9])), ["l", "l"]);
    assert_eq!(
        paths_of("parts.virtual = 'part $key of $count ($operator)'", two(), json!([1, 9])),
        ["l.part 1 of 2 ($op)"]
    );
    assert_eq!(paths_of("parts.virtual = '[$index]'", two(), json!([1, 9])), ["l[1]"]);
    assert_eq!(paths_of("parts.virtual = 'x$key'", json!([1]), json!([9])), ["l"]);
}

#[test]
fn a_context_contains_its_path() {
    let text = "export default (actual, expected, ctx, validate) => JSON.stringify([
        ctx.key, ctx.strict, ctx.scoring, ctx.maxScore, ctx.passScore, ctx.threshold, ctx.isKeyPresent, ctx.data, ctx.input,
        ctx.createSubContext('deep', {threshold: 0.5}).key, ctx.createSubContext('deep', {threshold: 0.5}).threshold,
    ])";
    let modules = operator(text);
    let fields = json!({
        "operators": ["./op.js"], "output": {"a": {"$op": 1}}, "strict": ["object"], "scoring": true, "maxScore": 10,
        "passScore": 5, "vars": {"v": 1}, "input": "in",
    });
    let finding = modules.try_judge(fields, &json!({"a": 1})).unwrap();
    let seen: Value = serde_json::from_str(message(&finding)).unwrap();
    let wanted = json!(["a", ["object"], true, 10, 5, null, true, {"v": 1}, "in", "a.deep", 0.5]);
    assert_eq!(seen, wanted);
}

#[test]
fn a_custom_operator_overrides_a_built_in_one_only_if_allowed() {
    let modules = operator("export default () => 'mine'");
    let fields =
        |allowed: bool| json!({"operators": {"eq": "./op.js"}, "allowOperatorOverride": allowed, "output": {"$eq": 1}});
    assert_eq!(modules.try_judge(fields(false), &json!(1)).unwrap().status, Status::Met);
    assert_eq!(message(&modules.try_judge(fields(true), &json!(1)).unwrap()), "mine");
}

#[test]
fn an_operator_that_throws_is_undecided() {
    for text in [
        "export default function (actual) {\n  throw new TypeError('not like this')\n}",
        "export default async function (actual) {\n  throw new TypeError('not like this')\n}",
        "export default (actual, expected, ctx, validate) =>\n  Promise.reject(new TypeError('not like this'))",
    ] {
        let finding = judged(text, json!({"a": {"$op": 1}, "b": 1}), &json!({"a": 1, "b": 1}));
        assert_eq!((finding.status, finding.score), (Status::Undecided, None), "{text}");
        let thrown = message(&finding);
        assert!(
            thrown.contains("$op") && thrown.contains("TypeError: not like this") && thrown.contains("op.js:2:"),
            "{thrown}"
        );
        assert_eq!(paths(&finding), ["a"]);
    }
    let odd = judged("export default () => { throw null }", json!({"$op": 1}), &json!(1));
    assert_eq!(odd.status, Status::Undecided);
    let typed = Modules::new(&[(
        "op.ts",
        "type A = { b: number }\n\nexport default function (actual: A) {\n  const b: number = actual.b.c.d\n  return b > 1\n}",
    )]);
    let finding = typed.judge(json!(["./op.ts"]), json!({"$op": 1}), &json!({"b": {}}));
    assert!(message(&finding).contains("op.ts:4:"), "{}", message(&finding));
}

#[test]
fn a_part_that_certainly_fails_fails_despite_an_undecided_operator() {
    let throws = "export default () => { throw new Error('x') }";
    let sure = judged(throws, json!({"a": {"$op": 1}, "b": 1}), &json!({"a": 1, "b": 2}));
    assert_eq!(sure.status, Status::Unmet);
    let not = judged(throws, json!({"$not": {"$op": 1}}), &json!(1));
    assert_eq!(not.status, Status::Undecided);
    let or = judged(throws, json!({"$or": [{"$op": 1}, 1]}), &json!(1));
    assert_eq!(or.status, Status::Met);
    let either = judged(throws, json!({"$or": [{"$op": 1}, 2]}), &json!(1));
    assert_eq!(either.status, Status::Undecided);
    let each = judged(throws, json!({"$each": {"$op": 1}}), &json!([1, 2]));
    assert_eq!(each.status, Status::Undecided);
    for operator in ["$all", "$sequence"] {
        let list = judged(throws, json!({operator: [{"$op": 1}]}), &json!([1, 2]));
        assert_eq!(list.status, Status::Undecided, "{operator}");
    }
    let contains = judged(throws, json!({"$contains": {"$op": 1}}), &json!([1, 2]));
    assert_eq!(contains.status, Status::Undecided);
    // Also if another operator calls it, and with scores.
    let modules = Modules::new(&[
        ("op.js", throws),
        (
            "ask.js",
            "export default async (actual, expected, fixture) => !(await fixture.$validate(actual, expected)).pass",
        ),
    ]);
    let both = json!({"op": "./op.js", "ask": "./ask.js"});
    assert_eq!(modules.status(both.clone(), json!({"$ask": {"$op": 1}}), &json!(1)), Status::Undecided);
    for (pass_score, b, wanted) in [(60, 1, Status::Undecided), (50, 1, Status::Met), (60, 2, Status::Unmet)] {
        let output = json!({"a": {"$op": 1}, "b": 1});
        let fields = json!({"operators": both, "output": output, "scoring": true, "passScore": pass_score});
        assert_eq!(modules.try_judge(fields, &json!({"a": 1, "b": b})).unwrap().status, wanted, "{pass_score}");
    }
}

#[test]
fn an_endless_check_is_stopped_and_the_next_one_runs() {
    let modules = Modules::endless(&[
        ("endless.js", "export default (actual) => { while (actual) {} return true }"),
        ("bomb.js", "export default () => { const all = []; for (;;) all.push(new Uint8Array(1 << 20)) }"),
        ("never.js", "export default () => new Promise(() => {})"),
        ("deep.js", "const deep = (n) => deep(n + 1) + 1; export default () => deep(0)"),
        ("fine.js", "export default (actual, expected) => actual === expected"),
    ]);
    let operators = json!({"endless": "./endless.js", "bomb": "./bomb.js", "never": "./never.js", "deep": "./deep.js", "fine": "./fine.js"});
    for (name, words) in
        [("endless", "stopped after"), ("bomb", "of memory"), ("never", "never settled"), ("deep", "stack")]
    {
        let finding = modules.judge(operators.clone(), json!({(format!("${name}")): 1}), &json!(1));
        assert_eq!(finding.status, Status::Undecided, "{name}");
        assert!(message(&finding).contains(words), "{name}: {}", message(&finding));
        assert_eq!(modules.status(operators.clone(), json!({"$fine": 1}), &json!(1)), Status::Met, "after {name}");
        assert_eq!(modules.status(operators.clone(), json!({"$fine": 1}), &json!(2)), Status::Unmet, "after {name}");
    }
    let finding = modules.judge(operators.clone(), json!({"$expr": "(() => { for (;;) {} })()"}), &json!(1));
    assert_eq!(finding.status, Status::Undecided);
    assert!(message(&finding).contains("stopped after"), "{}", message(&finding));
    assert_eq!(modules.status(operators, json!({"$fine": 1, "$expr": "actual === 1"}), &json!(1)), Status::Met);
}

#[test]
fn catastrophic_backtracking_is_undecided_with_a_reason() {
    let text = format!("{}!", "a".repeat(64));
    for expected in [json!("/^(a+)+$/"), json!({"$schema": {"type": "string", "pattern": "^(a+)+$"}})] {
        let finding = crate::expect::graded(json!({"output": expected}), &answered(&json!(text)));
        assert_eq!(finding.status, Status::Undecided, "{expected}");
        assert!(message(&finding).contains("stopped after"), "{expected}: {}", message(&finding));
    }
    let key = crate::expect::graded(json!({"output": {"/^(a+)+$/": 1}}), &answered(&json!({text.as_str(): 1})));
    assert_eq!(key.status, Status::Undecided);
    let within = judged(
        "export default async (actual, expected, fixture) => (await fixture.$validate(actual, expected)).pass",
        json!({"$op": "/^(a+)+$/"}),
        &json!(text),
    );
    assert_eq!(within.status, Status::Undecided, "{within:#?}");
    assert_eq!(crate::expect::graded(json!({"output": "/^(a+)+$/"}), &answered(&json!("aaa"))).status, Status::Met);
}

#[test]
fn endlessly_recursive_operators_are_stopped() {
    for text in [
        "export default async (actual, expected, fixture) => await fixture.$validate(actual, {$op: expected})",
        "export default async (actual, expected, ctx, validate) => await validate(actual, {$op: expected}, ctx)",
        // Each call makes two more.
        "export default async (actual, expected, fixture) => {
            const first = await fixture.$validate(actual, {$op: expected})
            const second = await fixture.$validate(actual, {$op: expected})
            return first.pass && second.pass
        }",
        // Ignores that a call is refused.
        "export default async (actual, expected, fixture) => {
            for (let tries = 0; tries < 3; tries++) {
                try { await fixture.$validate(actual, {$op: expected}) } catch {}
            }
            throw new Error('tired')
        }",
        // The innermost call uses up the stack.
        "const deep = (n) => deep(n + 1) + 1
        export default async (actual, expected, fixture) => {
            try { return await fixture.$validate(actual, {$op: expected}) } catch { return deep(0) }
        }",
    ] {
        let modules = Modules::endless(&[
            ("op.js", text),
            ("fine.js", "export default (actual, expected) => actual === expected"),
        ]);
        let finding = modules.judge(json!(["./op.js"]), json!({"$op": 1}), &json!(1));
        assert_eq!(finding.status, Status::Undecided, "{text}");
        assert_eq!(modules.status(json!(["./fine.js"]), json!({"$fine": 1}), &json!(1)), Status::Met);
    }
}

#[test]
fn an_operator_can_validate_many_parts() {
    let text = "export default async (actual, expected, fixture) => {
        for (const item of actual) if (!(await fixture.$validate(item, expected)).pass) return false
        return true
    }";
    let many: Value = (0..3_000).collect();
    assert_eq!(judged(text, json!({"$op": {"$gte": 0}}), &many).status, Status::Met);
}

#[test]
fn deeply_nested_values_from_a_script_do_not_crash() {
    let deep = |inner: &str| {
        format!(
            "export default async (actual, expected, fixture) => {{
                let deep = 1
                for (let at = 0; at < 100000; at++) deep = {inner}
                return (await fixture.$validate(deep, deep)).pass
            }}"
        )
    };
    for inner in ["[deep]", "({a: deep})", "({$not: deep})", "({$expect: deep})"] {
        let finding = judged(&deep(inner), json!({"$op": 1}), &json!(1));
        assert_eq!(finding.status, Status::Undecided, "{inner}");
    }
    let returned = "export default () => { let d = {pass: false}; for (let at = 0; at < 100000; at++) d = {pass: false, details: [d]}; return d }";
    assert_ne!(judged(returned, json!({"$op": 1}), &json!(1)).status, Status::Met);
    let circle = "export default () => { const d = {pass: false}; d.self = d; return d }";
    assert_ne!(judged(circle, json!({"$op": 1}), &json!(1)).status, Status::Met);
}

#[test]
fn matches_requested_by_an_operator_follow_the_rules_of_the_case() {
    let modules = Modules::new(&[(
        "ops.js",
        "export const three = (actual, expected, fixture) => fixture.$validate(actual, expected);\n\
         export const four = (actual, expected, ctx, validate) => validate(actual, expected, ctx);\n\
         export const strictly = (actual, expected, ctx, validate) =>\n\
           validate(actual, expected, ctx.createSubContext('', { strict: true }));\n\
         export const freely = (actual, expected, ctx, validate) =>\n\
           validate(actual, expected, ctx.createSubContext('', { strict: false }));",
    )]);
    let operators = json!(["./ops.js#three", "./ops.js#four", "./ops.js#strictly", "./ops.js#freely"]);
    let judged = |rules: Value, output: Value, actual: Value| {
        let mut fields = rules;
        fields["operators"] = operators.clone();
        fields["output"] = output;
        modules.try_judge(fields, &actual).unwrap().status
    };
    for operator in ["$three", "$four"] {
        assert_eq!(judged(json!({}), json!({ operator: "T" }), json!("Th")), Status::Met, "{operator}");
        assert_eq!(
            judged(json!({"diff": "chars"}), json!({ operator: "T" }), json!("Th")),
            Status::Unmet,
            "{operator}"
        );
        let more = json!({"a": 1, "b": 2});
        assert_eq!(judged(json!({"strict": true}), json!({ operator: {"a": 1} }), more), Status::Unmet, "{operator}");
    }
    let more = json!({"a": 1, "b": 2});
    assert_eq!(judged(json!({}), json!({"$strictly": {"a": 1}}), more.clone()), Status::Unmet);
    assert_eq!(judged(json!({"strict": true}), json!({"$freely": {"a": 1}}), more), Status::Met);
}

#[test]
fn operators_do_not_affect_each_other_but_may_extend_globals_while_loading() {
    let modules = Modules::new(&[
        ("pollutes.js", "export default () => { Array.prototype.includes = () => true; return true; };"),
        ("looks.js", "export default (actual) => [1].includes(actual);"),
        (
            "both.js",
            "export const stain = () => { Object.prototype.leak = 1; return true; };\n\
          export const clean = () => ({}).leak === undefined;",
        ),
        (
            "adds.js",
            "Array.prototype.second = function () { return this[1]; };\n\
          export default (actual) => actual.second() === 2;",
        ),
    ]);
    let judged = |operator: &str, reference: &str, actual: Value| {
        let fields = json!({"operators": {operator: reference}, "output": {operator: 1}});
        modules.try_judge(fields, &actual).unwrap().status
    };
    assert_ne!(judged("$pollutes", "./pollutes.js", json!(2)), Status::Met);
    assert_eq!(judged("$looks", "./looks.js", json!(2)), Status::Unmet);
    assert_ne!(judged("$stain", "./both.js#stain", json!(2)), Status::Met);
    assert_eq!(judged("$clean", "./both.js#clean", json!(2)), Status::Met);
    assert_eq!(judged("$adds", "./adds.js", json!([1, 2])), Status::Met);
}
