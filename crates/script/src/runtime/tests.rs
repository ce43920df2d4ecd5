use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::test_project::{BUDGET, TestProject};
use crate::{Expression, HostFunction, Native};

fn runtime() -> Runtime {
    Runtime::new(Options::new("/")).unwrap()
}

fn evaluate(text: &str, names: &[(&str, Value)]) -> Result<Value, ScriptError> {
    evaluate_in(&mut runtime(), text, names)
}

/// Asserts that it was stopped because it exceeded the time limit.
fn is_stopped(outcome: &Result<Value, ScriptError>, expected: Duration) {
    assert!(matches!(outcome, Err(ScriptError::TimedOut { budget, .. }) if *budget == expected), "{outcome:?}");
}

fn evaluate_in(runtime: &mut Runtime, text: &str, names: &[(&str, Value)]) -> Result<Value, ScriptError> {
    let expression = Expression::parse(text).unwrap();
    let scope = |name: &str| names.iter().find(|(known, _)| *known == name).map(|(_, value)| Cow::Borrowed(value));
    runtime.evaluate(&expression, &scope, BUDGET)
}

fn thrown(result: Result<Value, ScriptError>) -> (String, String) {
    match result {
        Err(ScriptError::Thrown { name, message, .. }) => (name, message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_expression_sees_the_variables_it_is_given() {
    let data = Value::from(json!({"threshold": 2, "list": [1, 2]}));
    let names = [("actual", Value::from(3.0)), ("data", data)];
    assert_eq!(evaluate("actual > data.threshold", &names), Ok(true.into()));
    assert_eq!(
        evaluate("({score: actual / 4, pass: true})", &names).unwrap().to_json(),
        json!({"score": 0.75, "pass": true})
    );
    assert_eq!(evaluate("{score: 1}", &names).unwrap().to_json(), json!({"score": 1}));
    assert_eq!(evaluate("const n = data.list.length; return n === 2;", &names), Ok(true.into()));
    assert_eq!(evaluate("() => actual", &names), Ok(3.0.into()));
    assert_eq!(evaluate("function () { return actual + 1 }", &names), Ok(4.0.into()));
    assert_eq!(evaluate("function named() { return actual + 1 }", &names), Ok(4.0.into()));
    assert_eq!(evaluate("async () => (await Promise.resolve(actual)) + 1;", &names), Ok(4.0.into()));
    assert_eq!(evaluate("await new Promise((done) => setTimeout(done, 1, actual))", &names), Ok(3.0.into()));
    assert_eq!(evaluate("actual > 2; // why", &names), Ok(true.into()));
    assert_eq!(evaluate("Math.max(actual, 9)", &names), Ok(9.0.into()));
}

#[test]
fn undefined_names_are_errors_with_their_location() {
    let error = evaluate("actual +\n  missing.x", &[("actual", 1.0.into())]).unwrap_err();
    assert_eq!(error.to_string(), "ReferenceError: missing is not defined");
    let place = error.place().unwrap();
    assert_eq!((&*place.file, place.line, place.column), ("expression", 2, 3), "{place:?}");
}

#[test]
fn a_typescript_module_can_send_requests_to_its_host() {
    let mut project = TestProject::new(&[
        (
            "op.ts",
            "import { twice, type Unused } from './lib.js';\nenum Level { Low = 1, High = 5 }\nexport async function check(actual: number, ask: (n: number) => Promise<number>): Promise<number> {\n  return twice(await ask(actual)) + Level.High;\n}\n",
        ),
        ("lib.ts", "export type Unused = string;\nexport const twice = (n: number): number => n * 2;\n"),
    ]);
    let check = project.function("./op.ts", "check");
    assert_eq!((check.name(), check.length()), ("check", 2));
    let mut asked = Vec::new();
    let arguments = [Value::from(4.0), HostFunction::new("grade").bind(vec!["bound".into()]).into()];
    let result = project.runtime.call(&check, &arguments, BUDGET, &mut |request| {
        asked.push((request.name.to_string(), request.arguments));
        Ok(Value::from(10.0))
    });
    assert_eq!(result, Ok(25.0.into()));
    assert_eq!(asked, [("grade".to_owned(), vec!["bound".into(), 4.0.into()])]);
}

#[test]
fn a_native_function_is_called_at_once_and_its_error_is_thrown() {
    let sum = Native::new("sum", |arguments| {
        let numbers: Option<Vec<f64>> = arguments.iter().map(Value::as_number).collect();
        numbers.map(|numbers| numbers.iter().sum::<f64>().into()).ok_or_else(|| "numbers only".to_owned())
    });
    let names = [("sum", Value::from(sum.bind(vec![1.0.into()])))];
    assert_eq!(evaluate("sum(2, 3)", &names), Ok(6.0.into()));
    assert_eq!(evaluate("sum.name", &names), Ok("sum".into()));
    assert_eq!(thrown(evaluate("sum('x')", &names)), ("Error".into(), "numbers only".into()));
}

#[test]
fn endless_work_is_stopped_and_cannot_be_caught() {
    let mut runtime = runtime();
    let budget = Duration::from_millis(50);
    for text in [
        "while (true) {}; return 1",
        "try { while (true) {} } catch {} return 1",
        "/^(a+)+$/.test('a'.repeat(60) + 'b')",
        "for (;;) { try { for (;;) {} } finally { continue } } return 1",
    ] {
        let expression = Expression::parse(text).unwrap();
        is_stopped(&runtime.evaluate(&expression, &|_| None, budget), budget);
        assert!(runtime.is_usable(), "{text}");
    }
    assert_eq!(evaluate_in(&mut runtime, "1 + 1", &[]), Ok(2.0.into()));
}

#[test]
fn a_stopped_script_is_reported_with_its_loop_or_a_line_in_it() {
    let text = "let n = 0;\nconst step = () => n++;\nexport const idle = () => {\n  for (;;) {}\n};\n\
                export const busy = () => {\n  for (;;) {\n    step();\n  }\n};\n";
    let mut project = TestProject::new(&[("a.mjs", text)]);
    let module = project.import("./a.mjs").unwrap();
    let mut stopped_at = |name: &str| {
        let Some(Value::Function(f)) = project.runtime.export(&module, name).unwrap() else { panic!("{name}") };
        let budget = Duration::from_millis(30);
        let stopped = project.runtime.call(&f, &[], budget, &mut |_| Ok(Value::Null)).unwrap_err();
        stopped.place().map(ToString::to_string)
    };
    assert_eq!(stopped_at("idle").as_deref(), Some("a.mjs:4:3"));
    let busy = stopped_at("busy").unwrap();
    assert!(["a.mjs:7:", "a.mjs:8:", "a.mjs:2:"].iter().any(|line| busy.starts_with(line)), "{busy}");
}

#[test]
fn endless_jobs_are_stopped_and_make_the_runtime_unusable() {
    let budget = Duration::from_millis(50);
    for text in [
        "await (async function again() { await null; return again() })()",
        "const again = () => Promise.resolve().then(again); await again(); return 1",
    ] {
        let mut runtime = runtime();
        let expression = Expression::parse(text).unwrap();
        is_stopped(&runtime.evaluate(&expression, &|_| None, budget), budget);
        assert!(!runtime.is_usable());
        assert!(matches!(evaluate_in(&mut runtime, "1", &[]), Err(ScriptError::Failed(_))));
    }
}

#[test]
fn memory_bombs_are_stopped() {
    for text in [
        "const a = []; while (true) a.push(new Array(1000).fill(0)); return 1",
        "'x'.repeat(1 << 29)",
        "let s = 'x'; while (true) s += s; return 1",
        "new Uint8Array(1 << 30)",
    ] {
        let mut runtime = Runtime::new(Options { memory: 16 << 20, ..Options::new("/") }).unwrap();
        let outcome = evaluate_in(&mut runtime, text, &[]);
        let expected = matches!(outcome, Err(ScriptError::OutOfMemory { .. })) && !runtime.is_usable();
        let refused = matches!(&outcome, Err(ScriptError::Thrown { message, .. }) if message.contains("string"));
        assert!(expected || refused, "{text}: {outcome:?}");
    }
}

#[test]
fn an_error_in_typescript_points_at_the_line_the_user_wrote() {
    let mut project = TestProject::new(&[(
        "a.ts",
        "interface Shape {\n  a: string;\n  b: number;\n}\n\nexport function boom(x: Shape): void {\n  // wide 😀\n  throw new TypeError('no ' + x);\n}\nexport const indirect = (x: Shape) => {\n  boom(x);\n};\n",
    )]);
    match project.call("./a.ts", "indirect", &["x".into()]) {
        Err(ScriptError::Thrown { name, message, place, stack }) => {
            assert_eq!((name.as_str(), message.as_str()), ("TypeError", "no x"));
            let place = place.unwrap();
            assert_eq!((&*place.file, place.line, place.column), ("a.ts", 8, 9), "{place:?}");
            assert_eq!(place.text, "  throw new TypeError('no ' + x);");
            let stack: Vec<_> = stack.iter().map(ToString::to_string).collect();
            assert_eq!(stack, ["boom (a.ts:8:9)", "indirect (a.ts:11:8)"]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn script_values_are_converted_to_plain_data() {
    let value = evaluate(
        "({ d: new Date(0), e: new RangeError('r'), s: new Set([1]), m: new Map([['k', 1]]), big: 10n ** 30n, small: 5n, \
         symbol: Symbol('x'), t: new Uint8Array([1, 2]), n: Object.create(null), lone: '\\ud800x', minus: -0, \
         instance: new (class A { x = 1; get y() { return 2 } })(), r: /a\\/b/gi, u: undefined, f(a, b) {}, __proto__: null })",
        &[],
    );
    let value = value.unwrap();
    let json = json!({
        "d": "1970-01-01T00:00:00.000Z", "e": {"name": "RangeError", "message": "r"}, "s": [1], "m": {"k": 1},
        "big": "1000000000000000000000000000000", "small": 5, "t": [1, 2], "n": {}, "lone": "\u{fffd}x", "minus": 0,
        "instance": {"x": 1}, "r": "/a\\/b/gi",
    });
    assert_eq!(value.to_json(), json);
    assert_eq!(value.get("r"), Some(&Value::Regex { source: "a\\/b".into(), flags: "gi".into() }));
    match value.get("f") {
        Some(Value::Function(function)) => assert_eq!((function.name(), function.length()), ("f", 2)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn values_are_passed_to_scripts_unchanged() {
    let value = Value::Map(vec![
        ("list".into(), Value::List(vec![Value::Null, true.into(), (-1.5).into(), "é😀\0".into()])),
        ("__proto__".into(), Value::Map(vec![("x".into(), 1.0.into())])),
        ("r".into(), Value::Regex { source: "a".into(), flags: "i".into() }),
    ]);
    assert_eq!(evaluate("v", &[("v", value.clone())]), Ok(value.clone()));
    assert_eq!(
        evaluate("Object.getPrototypeOf(v) === Object.prototype && v.r.test('A')", &[("v", value)]),
        Ok(true.into())
    );
}

#[test]
fn a_nul_in_a_string_is_an_ordinary_character() {
    assert_eq!(evaluate("'a\0b'.length + /\0/.source.length", &[]), Ok(7.0.into()));
    let mut project =
        TestProject::new(&[("a.mjs", "export default 'a\0b'.length;"), ("b.cjs", "module.exports = `\0`.length;")]);
    assert_eq!((project.value("./a.mjs", "default"), project.value("./b.cjs", "default")), (3.0.into(), 1.0.into()));
    assert_eq!(evaluate("text", &[("text", "\0".into())]), Ok("\0".into()));
}

#[test]
fn a_script_cannot_block_its_thread() {
    let (name, _) = thrown(evaluate("Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)", &[]));
    assert_eq!(name, "TypeError");
}

#[test]
fn running_out_of_memory_in_the_background_is_reported_as_such() {
    let text = "await (async () => { const a = []; while (true) a.push(new Array(1000).fill(0)) })()";
    let mut runtime = Runtime::new(Options { memory: 16 << 20, ..Options::new("/") }).unwrap();
    let outcome = evaluate_in(&mut runtime, text, &[]);
    assert!(matches!(outcome, Err(ScriptError::OutOfMemory { limit, .. }) if limit == 16 << 20), "{outcome:?}");
    assert!(!runtime.is_usable());
}

#[test]
fn changes_to_a_value_stay_in_the_script() {
    let data = [("data", Value::from(json!({"n": 1})))];
    let mut runtime = runtime();
    assert_eq!(evaluate_in(&mut runtime, "data.n += 1, data.n", &data), Ok(2.0.into()));
    assert_eq!(evaluate_in(&mut runtime, "data.n", &data), Ok(1.0.into()));
    assert_eq!(thrown(evaluate_in(&mut runtime, "leaked = 1", &data)).0, "ReferenceError");
}

#[test]
fn values_that_cannot_be_converted_are_errors() {
    for (text, words) in [
        ("const a = {}; a.a = a; return a", "contains itself"),
        ("let a = {}; for (let i = 0; i < 400; i++) a = { a }; return a", "nested too deeply"),
        ("new Array(3e6).fill(0)", "too large"),
        ("({ get a() { throw new Error('from a getter') } })", "from a getter"),
    ] {
        let (_, message) = thrown(evaluate(text, &[]));
        assert!(message.contains(words), "{text}: {message}");
    }
    let deep = (0..400).fold(Value::Null, |inside, _| Value::List(vec![inside]));
    assert!(thrown(evaluate("deep", &[("deep", deep)])).1.contains("nested too deeply"));
}

#[test]
fn a_function_keeps_its_properties_and_its_handle() {
    let mut project = TestProject::new(&[(
        "op.js",
        "export function a(actual, expected, ctx, validate) {}\na.virtual = '$operator($key)'; a.expects = ['array'];\nexport { a as b };\nexport const c = (x, y = 1, ...z) => x;\n",
    )]);
    let (a, b, c) =
        (project.function("./op.js", "a"), project.function("./op.js", "b"), project.function("./op.js", "c"));
    assert_eq!(a, b);
    assert_eq!((a.length(), c.length()), (4, 1));
    assert_eq!(project.runtime.property(&a, "virtual"), Ok("$operator($key)".into()));
    assert_eq!(project.runtime.property(&a, "expects"), Ok(Value::List(vec!["array".into()])));
    assert_eq!(project.runtime.property(&a, "strategy"), Ok(Value::Undefined));
}

#[test]
fn a_handle_from_another_runtime_is_refused() {
    let mut project = TestProject::new(&[("a.js", "export const f = () => 1;\n")]);
    let function = project.function("./a.js", "f");
    let module = project.import("./a.js").unwrap();
    let mut other = runtime();
    assert!(other.call(&function, &[], BUDGET, &mut refuse).unwrap_err().to_string().contains("another runtime"));
    assert!(other.export(&module, "f").unwrap_err().to_string().contains("another runtime"));
}

#[test]
fn a_function_is_found_by_its_path_in_another_runtime() {
    let text = "export default [{ expect: /x/, deep: [{ check: (n) => n * 2 }] }];\n";
    let mut first = TestProject::new(&[("f.fixture.ts", text)]);
    let list = first.value("./f.fixture.ts", "default");
    assert!(matches!(&list, Value::List(items) if matches!(items[0].get("expect"), Some(Value::Regex { .. }))));
    let mut second = TestProject::new(&[("f.fixture.ts", text)]);
    let module = second.import("./f.fixture.ts").unwrap();
    let path = ["default".into(), 0.into(), "deep".into(), 0.into(), "check".into()];
    let Ok(Some(Value::Function(check))) = second.runtime.at(&module, &path) else { panic!() };
    assert_eq!(second.runtime.call(&check, &[4.0.into()], BUDGET, &mut refuse), Ok(8.0.into()));
    assert_eq!(second.runtime.at(&module, &["default".into(), 1.into()]), Ok(None));
    assert_eq!(second.runtime.at(&module, &["default".into(), 0.into(), "toString".into()]), Ok(None));
}

#[test]
fn an_unhandled_rejection_is_an_error_and_does_not_persist() {
    let mut runtime = runtime();
    let outcome = evaluate_in(&mut runtime, "Promise.reject(new TypeError('lost')); return 1", &[]);
    assert_eq!(thrown(outcome), ("TypeError".into(), "lost".into()));
    assert_eq!(
        evaluate_in(&mut runtime, "const p = Promise.reject(1); p.catch(() => {}); return 1", &[]),
        Ok(1.0.into())
    );
    assert_eq!(thrown(evaluate_in(&mut runtime, "Promise.reject(new TypeError('seen'))", &[])).1, "seen");
    assert_eq!(evaluate_in(&mut runtime, "2", &[]), Ok(2.0.into()));
}

#[test]
fn a_promise_that_is_never_settled_is_an_error() {
    assert_eq!(evaluate("new Promise(() => {})", &[]), Err(ScriptError::NeverSettled));
    let late = evaluate_within("new Promise((done) => setTimeout(done, 100000))", Duration::from_millis(50));
    // The call does not wait for a timer that is due after its time limit.
    is_stopped(&late, Duration::from_millis(50));
}

fn evaluate_within(text: &str, budget: Duration) -> Result<Value, ScriptError> {
    runtime().evaluate(&Expression::parse(text).unwrap(), &|_| None, budget)
}

#[test]
fn an_endless_async_function_is_stopped_and_leaves_nothing_behind() {
    let mut runtime = runtime();
    let budget = Duration::from_millis(30);
    let endless = Expression::parse("await (async () => { try { for (;;) {} } catch {} })()").unwrap();
    is_stopped(&runtime.evaluate(&endless, &|_| None, budget), budget);
    if runtime.is_usable() {
        assert_eq!(evaluate_in(&mut runtime, "1", &[]), Ok(1.0.into()));
    }
}

#[test]
fn thrown_values_that_are_not_errors_are_reported() {
    for (text, message) in [
        ("throw 'text'; return", "text"),
        ("throw { code: 4 }; return", "{\"code\":4}"),
        ("throw undefined; return", "undefined"),
        ("throw null; return", "null"),
        ("throw (null); return", "null"),
        ("await Promise.reject( null); return", "null"),
    ] {
        assert_eq!(thrown(evaluate(text, &[])), ("Error".into(), message.into()), "{text}");
    }
    assert_eq!(thrown(evaluate("throw { name: 'Odd', message: 'm' }; return", &[])), ("Odd".into(), "m".into()));
}

#[test]
fn deep_recursion_is_an_error_the_runtime_survives() {
    let mut runtime = runtime();
    let (name, message) = thrown(evaluate_in(&mut runtime, "const f = () => f() + 1; return f()", &[]));
    assert!(name == "RangeError" && message.contains("stack"), "{name}: {message}");
    assert_eq!(evaluate_in(&mut runtime, "1", &[]), Ok(1.0.into()));
}

#[test]
fn only_known_globals_are_defined() {
    let names =
        evaluate("Object.getOwnPropertyNames(globalThis).filter((name) => !/^[A-Z]/.test(name)).sort().join(' ')", &[]);
    let known = "atob btoa clearInterval clearTimeout console crypto decodeURI decodeURIComponent encodeURI encodeURIComponent \
                 escape eval globalThis isFinite isNaN parseFloat parseInt performance process queueMicrotask setInterval \
                 setTimeout structuredClone undefined unescape";
    assert_eq!(names, Ok(known.into()));
    assert_eq!(
        evaluate("Object.keys(globalThis)", &[]),
        Ok(Value::List(vec!["performance".into()])),
        "that message comes from the engine"
    );
}

#[test]
fn a_request_that_is_refused_rejects_its_promise() {
    let names = [("ask", Value::from(HostFunction::new("ask")))];
    assert_eq!(thrown(evaluate("await ask(1)", &names)), ("Error".into(), "`ask` cannot be used here".into()));
    assert_eq!(
        evaluate("await ask(1).catch((error) => error.message)", &names),
        Ok("`ask` cannot be used here".into())
    );
    let expression = Expression::parse("(await Promise.all([ask(1), ask(2)])).join()").unwrap();
    let scope = |name: &str| names.iter().find(|(known, _)| *known == name).map(|(_, value)| Cow::Borrowed(value));
    let mut host = |request: Request| Ok(Value::from(request.arguments[0].as_number().unwrap() * 10.0));
    assert_eq!(runtime().evaluate_with(&expression, &scope, BUDGET, &mut host), Ok("10,20".into()));
}

#[test]
fn a_source_without_a_file_can_be_a_module() {
    let mut project = TestProject::new(&[("lib.ts", "export const n: number = 20;\n")]);
    let name = project.path().join("generated.ts");
    let text = "import { n } from './lib.ts';\nexport const value: number = n + 1;\n";
    let module = project.runtime.import_source(text, &name, BUDGET).unwrap();
    assert_eq!(project.runtime.export(&module, "value"), Ok(Some(21.0.into())));
    let error = project.runtime.import_source("export const = 1", &project.path().join("bad.ts"), BUDGET).unwrap_err();
    assert!(matches!(&error, ScriptError::Syntax { place: Some(place), .. } if *place.file == *"bad.ts"), "{error:?}");
}

#[test]
fn a_memory_limit_too_small_for_the_engine_is_an_error() {
    assert!(Runtime::new(Options { memory: 10 << 10, ..Options::new("/") }).is_err());
}

#[test]
fn a_frozen_runtime_keeps_no_changes_by_a_script() {
    let mut options = Options::new("/");
    options.frozen = true;
    let mut runtime = Runtime::new(options).unwrap();
    let mut run = |text: &str| {
        let expression = crate::Expression::parse(text).unwrap();
        runtime.evaluate(&expression, &|_| None, Duration::from_secs(1))
    };
    for attempt in [
        "globalThis.leak = 1",
        "Array.prototype.map = () => 1",
        "delete Object.prototype.toString",
        "Object.getPrototypeOf(async () => {}).x = 1",
        "Object.getPrototypeOf([][Symbol.iterator]()).next = null",
        "JSON.parse = null",
        "new URL('http://a.b').constructor.prototype.x = 1",
        "console.log.x = 1",
        "Object.defineProperty(Math, 'max', { value: () => 0 })",
        "process.env.x = '1'",
        "(Symbol.x = 1)",
        "RegExp.prototype.test = () => true",
    ] {
        let error = run(attempt).expect_err(attempt).to_string();
        assert!(error.starts_with("TypeError"), "{attempt}: {error}");
    }
    let usual = "[3, 1].map(x => x * 2).sort().join() + new URL('http://a.b/c').pathname + new Date(0).toISOString()";
    assert_eq!(run(usual).unwrap(), Value::String("2,6/c1970-01-01T00:00:00.000Z".into()));
    assert_eq!(
        run("class A extends Error { get name() { return 'A' } }; return new A('m').message").unwrap(),
        Value::String("m".into())
    );
    assert_eq!(run("structuredClone({ a: [1] }).a[0] + Number(atob(btoa('1')))").unwrap(), Value::Number(2.0));
}

fn frozen() -> Runtime {
    Runtime::new(Options { frozen: true, ..Options::new("/") }).unwrap()
}

#[test]
fn a_list_with_an_infinite_length_cannot_be_converted() {
    for text in ["new Array(2**31)", "new Array(2**32 - 1)", "({a: [new Array(2**31 + 1)]})"] {
        assert_eq!(thrown(evaluate(text, &[])), ("RangeError".into(), "the value is too large".into()), "{text}");
    }
}

#[test]
fn values_larger_than_the_memory_limit_cannot_be_converted() {
    let mut runtime = Runtime::new(Options { memory: 8 << 20, ..Options::new("/") }).unwrap();
    let text = "const s = 'x'.repeat(1 << 20); return new Array(64).fill(s)";
    assert_eq!(thrown(evaluate_in(&mut runtime, text, &[])).1, "the value is too large");
    let ask = [("ask", Value::from(HostFunction::new("ask")))];
    let text = "const s = 'x'.repeat(1 << 20); for (let i = 0; i < 64; i++) ask(s); return 1";
    assert_eq!(thrown(evaluate_in(&mut runtime, text, &ask)).0, "RangeError");
    assert_eq!(evaluate_in(&mut runtime, "1 + 1", &[]), Ok(2.0.into()));
}

#[test]
fn work_left_by_a_failed_call_does_not_run_in_the_next() {
    let mut runtime = runtime();
    let text = "Promise.resolve().then(() => { globalThis.late = 1 }); throw new Error('x')";
    assert_eq!(thrown(evaluate_in(&mut runtime, &format!("{text}; return 1"), &[])).1, "x");
    assert!(!runtime.is_usable());
    let mut runtime = self::runtime();
    let text = "await null; return {toJSON() { Promise.resolve().then(() => { globalThis.late = 1 }); return 1 }}";
    assert_eq!(evaluate_in(&mut runtime, text, &[]), Ok(1.0.into()));
    assert_eq!(evaluate_in(&mut runtime, "globalThis.late", &[]), Ok(1.0.into()), "it ran before the call was over");
}

#[test]
fn function_handles_are_valid_until_their_call_ends() {
    let mut project = TestProject::new(&[("a.mjs", "export const f = () => () => 1; export const g = (h) => h();")]);
    let make = project.function("./a.mjs", "f");
    let Ok(Value::Function(made)) = project.runtime.call(&make, &[], BUDGET, &mut refuse) else { panic!() };
    let late = project.runtime.call(&made, &[], BUDGET, &mut refuse);
    assert_eq!(thrown(late).1, "`` came from a call that has ended");
    assert_eq!(project.runtime.call(&make, &[], BUDGET, &mut refuse).map(|value| value.is_callable()), Ok(true));
    let again = project.function("./a.mjs", "f");
    assert_eq!(again, make);
}

#[test]
fn earlier_timers_are_not_awaited() {
    let mut project =
        TestProject::new(&[("a.mjs", "setInterval(() => {}, 5); export const f = () => new Promise(() => {});")]);
    assert_eq!(project.call("./a.mjs", "f", &[]), Err(ScriptError::NeverSettled));
}

#[test]
fn built_in_accessors_keep_no_state_in_a_frozen_runtime() {
    let text = "const left = [globalThis], seen = new Set(), bad = [];
        while (left.length) {
          const object = left.pop();
          if ((typeof object !== 'object' && typeof object !== 'function') || object === null || seen.has(object)) continue;
          seen.add(object);
          left.push(Object.getPrototypeOf(object));
          for (const key of Reflect.ownKeys(object)) {
            const { value, get, set } = Object.getOwnPropertyDescriptor(object, key);
            left.push(value, get, set);
            for (const part of [object, value, get, set, get?.prototype, set?.prototype]) {
              if (part !== null && (typeof part === 'object' || typeof part === 'function') && !Object.isFrozen(part)) bad.push(String(key));
            }
            if (!set) continue;
            const read = () => { try { return get?.call(object) } catch { return undefined } };
            const before = read();
            const mark = typeof before === 'number' ? before + 1 : () => 'mark';
            try { set.call(object, mark) } catch {}
            if (!Object.is(read(), before)) bad.push(String(key));
          }
        }
        return bad.join()";
    assert_eq!(evaluate_in(&mut frozen(), text, &[]), Ok("".into()));
    for text in ["Error.stackTraceLimit = 1", "Error.prepareStackTrace = () => 1", "Object.prototype.toString = 1"] {
        assert_eq!(thrown(evaluate_in(&mut frozen(), text, &[])).0, "TypeError", "{text}");
    }
}

#[test]
fn inherited_property_names_work_in_a_frozen_runtime() {
    let data =
        json!({"constructor": "Ferrari", "toString": 1, "__proto__": {"a": 1}, "valueOf": [{"hasOwnProperty": 2}]});
    let names = [("data", Value::from(&data))];
    assert_eq!(evaluate_in(&mut frozen(), "data", &names).unwrap().to_json(), data);
    for (text, value) in [
        ("const e = new Error('x'); e.name = 'Y'; e.message = 'z'; return String(e)", json!("Y: z")),
        ("const e = new TypeError('x'); e.name = 'Y'; return `${e}`", json!("Y: x")),
        (
            "const counts = {}; for (const w of ['constructor', 'valueOf']) counts[w] = 1; return counts",
            json!({"constructor": 1, "valueOf": 1}),
        ),
        ("class A {}; A.prototype.toString = () => 'a'; return `${new A()}`", json!("a")),
        ("class A extends Array {}; const a = new A(); a.constructor = 1; return a.constructor", json!(1)),
        ("Object.assign({}, {toString: 5})", json!({"toString": 5})),
        ("new Map([['constructor', 1], ['toString', 2]])", json!({"constructor": 1, "toString": 2})),
        ("structuredClone({constructor: 1, toString: [2]})", json!({"constructor": 1, "toString": [2]})),
        (
            "[1, 2].constructor === Array && ({}).constructor === Object && String({}) === '[object Object]'",
            json!(true),
        ),
        ("try { null.x } catch (e) { return e instanceof TypeError && e.constructor === TypeError }", json!(true)),
    ] {
        assert_eq!(evaluate_in(&mut frozen(), text, &names).unwrap().to_json(), value, "{text}");
    }
}

#[test]
fn a_lone_surrogate_breaks_neither_the_console_nor_an_error() {
    assert_eq!(evaluate("console.log('a\\ud800'); return 1", &[]), Ok(1.0.into()));
    assert_eq!(thrown(evaluate("throw new Error('a\\ud800'); return 1", &[])).1, "a\u{fffd}");
}

#[test]
fn a_renewed_runtime_has_a_fresh_console() {
    let lines = Rc::<RefCell<Vec<String>>>::default();
    let seen = Rc::clone(&lines);
    let mut options = Options::new("/");
    options.console = Some(Box::new(move |_, line: &str| seen.borrow_mut().push(line.to_owned())));
    let mut runtime = Runtime::new(options).unwrap();
    for _ in 0..2 {
        evaluate_in(&mut runtime, "console.group('a'); console.count(); return 1", &[]).unwrap();
        assert!(runtime.renew());
    }
    assert_eq!(*lines.borrow(), ["a", "  default: 1", "a", "  default: 1"]);
}

#[test]
fn a_runtime_with_a_frozen_global_object_is_not_used_again() {
    for text in ["Object.freeze(globalThis)", "Reflect.preventExtensions(globalThis)"] {
        let mut runtime = runtime();
        evaluate_in(&mut runtime, &format!("{text}; return 1"), &[]).unwrap();
        assert!(!runtime.renew(), "{text}");
    }
}
