use std::time::Duration;

use serde_json::json;

use crate::test_project::{BUDGET, TestProject};
use crate::{Language, Library, Options, Runtime, ScriptError, Value, positions};

fn json_of(project: &mut TestProject, file: &str, export: &str) -> serde_json::Value {
    project.value(file, export).to_json()
}

fn missing(result: Result<crate::Module, ScriptError>) -> (String, Option<String>, Option<String>) {
    match result {
        Err(ScriptError::Missing { what, place, help, .. }) => (what, place.map(|place| place.to_string()), help),
        other => panic!("{other:?}"),
    }
}

#[test]
fn packages_are_found_by_their_exports_and_conditions() {
    let mut project = TestProject::new(&[
        (
            "node_modules/dual/package.json",
            r#"{"exports": {".": {"import": "./a.mjs", "require": "./a.cjs"}, "./sub": "./sub.mjs"}}"#,
        ),
        ("node_modules/dual/a.mjs", "export default 'esm'; export const named = 1;"),
        ("node_modules/dual/a.cjs", "module.exports = 'cjs';"),
        ("node_modules/dual/sub.mjs", "export const sub = 'sub';"),
        ("node_modules/dual/hidden.mjs", "export const hidden = 1;"),
        (
            "node_modules/@scope/own/package.json",
            r##"{"type": "module", "main": "./lib/index.js", "imports": {"#inner": "./lib/inner.js"}}"##,
        ),
        ("node_modules/@scope/own/lib/index.js", "export { inner } from '#inner';"),
        ("node_modules/@scope/own/lib/inner.js", "export const inner = 'inner';"),
        ("cjs.cjs", "exports.dual = require('dual');"),
        (
            "all.ts",
            "import dual, { named } from 'dual';\nimport { sub } from 'dual/sub';\nimport { inner } from '@scope/own';\nimport { dual as cjs } from './cjs.cjs';\nexport const all = [dual, named, sub, inner, cjs];\n",
        ),
        ("deep/er/also.mjs", "export { sub as default } from 'dual/sub';"),
    ]);
    assert_eq!(json_of(&mut project, "./all.ts", "all"), json!(["esm", 1, "sub", "inner", "cjs"]));
    assert_eq!(json_of(&mut project, "./deep/er/also.mjs", "default"), json!("sub"));
    assert_eq!(json_of(&mut project, "dual", "named"), json!(1));
    let (what, _, help) = missing(project.import("dual/hidden.mjs"));
    assert_eq!(what, "the package `dual` does not export `./hidden.mjs`");
    assert!(help.unwrap().contains("exports"));
}

#[test]
fn aliases_of_the_typescript_configuration_are_resolved() {
    let mut project = TestProject::new(&[
        (
            "tsconfig.json",
            "{\n  // strict\n  \"include\": [\"src\"],\n  \"compilerOptions\": { \"paths\": { \"@/*\": [\"./src/*\"], \"pack\": [\"./stub.ts\"] } },\n}",
        ),
        ("src/lib/a.ts", "export const a: string = 'a';"),
        ("stub.ts", "export const pack = 'stub';"),
        ("node_modules/pack/package.json", "{\"main\": \"index.js\"}"),
        ("node_modules/pack/index.js", "exports.pack = 'real';"),
        ("tests/all.ts", "import { a } from '@/lib/a';\nimport { pack } from 'pack';\nexport const all = [a, pack];"),
        ("tests/none.ts", "import '@/lib/b';"),
        ("own/jsconfig.json", "{\"compilerOptions\": {\"baseUrl\": \".\"}}"),
        ("own/lib/c.js", "export const c = 'c';"),
        ("own/tests/all.js", "export { c } from 'lib/c';"),
        ("sick/tsconfig.json", "{"),
        ("sick/fine.mjs", "export { pack } from 'pack';"),
    ]);
    assert_eq!(json_of(&mut project, "./tests/all.ts", "all"), json!(["a", "stub"]));
    assert_eq!(json_of(&mut project, "./own/tests/all.js", "c"), json!("c"));
    assert_eq!(json_of(&mut project, "./sick/fine.mjs", "pack"), json!("real"));
}

#[test]
fn a_missing_file_behind_an_alias_is_not_a_package_to_install() {
    let mut project = TestProject::new(&[
        (
            "tsconfig.json",
            "{\"compilerOptions\": {\"paths\": {\"*\": [\"./types/*\"], \"app/*\": [\"./src/*\", \"./lib/*\"], \"@org/*\": [\"./src/*\"], \"one\": [\"./src/1\"]}}}",
        ),
        ("app.ts", "import 'app/gone';"),
        ("org.ts", "import '@org/ui';"),
        ("one.ts", "import 'one';"),
        ("none.ts", "import 'none';"),
    ]);
    for (file, specifier, advice) in [
        (
            "./app.ts",
            "`app/gone`",
            "`app/*` in the `paths` of `tsconfig.json` maps it to `src/gone` or `lib/gone`, which do not exist",
        ),
        (
            "./org.ts",
            "`@org/ui`",
            "`@org/*` in the `paths` of `tsconfig.json` maps it to `src/ui`, which does not exist",
        ),
        ("./one.ts", "`one`", "`one` in the `paths` of `tsconfig.json` maps it to `src/1`, which does not exist"),
        ("./none.ts", "the package `none`", "install it: `npm install none` in this directory or one above it"),
    ] {
        let (what, _, help) = missing(project.import(file));
        assert_eq!((what, help.as_deref()), (format!("cannot find {specifier}"), Some(advice)));
    }
}

#[test]
fn commonjs_modules_have_their_usual_variables() {
    let mut project = TestProject::new(&[
        (
            "main.cjs",
            "#!/usr/bin/env node\n'use strict';\nconst data = require('./data.json');\nconst other = require('./other');\nexports.data = data;\nexports.other = other();\nexports.here = [__dirname === require.resolve('./other').replace('/other/index.js', ''), __filename.endsWith('main.cjs')];\nexports.same = module.exports === exports && this === exports && require('./data.json') === data;\nexports['not-a-name'] = 1;\nexports.class = 2;\nexports.default = 3;\n",
        ),
        ("data.json", "{\"n\": [1, 2]}"),
        ("other/index.js", "module.exports = function () { return typeof require + typeof exports };"),
        (
            "use.mjs",
            "import main, { data, other, here, same, class as c, 'not-a-name' as odd } from './main.cjs';\nexport const all = [main.data === data, data, other, here, same, c, odd, main.default];\n",
        ),
    ]);
    assert_eq!(
        json_of(&mut project, "./use.mjs", "all"),
        json!([true, {"n": [1, 2]}, "functionobject", [true, true], true, 2, 1, 3])
    );
}

#[test]
fn commonjs_cycles_see_partial_exports() {
    let mut project = TestProject::new(&[
        ("a.cjs", "exports.early = 1;\nconst b = require('./b.cjs');\nexports.late = 2;\nexports.seen = b.seen;\n"),
        ("b.cjs", "const a = require('./a.cjs');\nexports.seen = Object.keys(a);\n"),
    ]);
    assert_eq!(json_of(&mut project, "./a.cjs", "seen"), json!(["early"]));
    assert_eq!(json_of(&mut project, "./a.cjs", "late"), json!(2));
}

#[test]
fn ecmascript_cycles_work() {
    let mut project = TestProject::new(&[
        ("a.mjs", "import { b } from './b.mjs';\nexport const a = () => 'a';\nexport const both = a() + b();\n"),
        ("b.mjs", "import { a } from './a.mjs';\nexport const b = () => 'b' + typeof a;\n"),
    ]);
    assert_eq!(json_of(&mut project, "./a.mjs", "both"), json!("abfunction"));
}

#[test]
fn commonjs_can_require_modules_without_top_level_await() {
    let mut project = TestProject::new(&[
        ("ready.mjs", "export default 1; export const named = 2;"),
        ("waits.mjs", "export default await Promise.resolve(new Promise((done) => setTimeout(done, 1)));"),
        ("good.cjs", "const m = require('./ready.mjs'); module.exports = [m.default, m.named];"),
        ("bad.cjs", "require('./waits.mjs');"),
    ]);
    assert_eq!(json_of(&mut project, "./good.cjs", "default"), json!([1, 2]));
    let error = project.import("./bad.cjs").unwrap_err().to_string();
    assert!(error.contains("`waits.mjs` uses top-level `await`"), "{error}");
}

#[test]
fn the_format_of_a_js_file_depends_on_its_package_and_its_content() {
    let mut project = TestProject::new(&[
        ("esm/package.json", r#"{"type": "module"}"#),
        ("esm/a.js", "export default typeof require;"),
        ("cjs/package.json", r#"{"type": "commonjs"}"#),
        ("cjs/a.js", "module.exports = typeof require;"),
        ("none/a.js", "// no export here, nor import\nmodule.exports = typeof require;"),
        ("none/b.js", "import a from './a.js';\nexport default a;"),
        ("none/c.js", "globalThis.ran = true;"),
        ("none/d.ts", "const fs: string = 'x';\nmodule.exports = { fs };"),
    ]);
    for (file, value) in [("esm/a.js", "undefined"), ("cjs/a.js", "function"), ("none/b.js", "function")] {
        assert_eq!(json_of(&mut project, &format!("./{file}"), "default"), json!(value), "{file}");
    }
    assert_eq!(json_of(&mut project, "./none/d.ts", "default"), json!({"fs": "x"}));
    assert!(project.import("./none/c.js").is_ok());
}

#[test]
fn typescript_only_syntax_is_compiled_away() {
    let mut project = TestProject::new(&[
        (
            "all.mts",
            "import type { Only } from './nowhere';\nimport { Only2, value, type Only3 } from './types.js';\nimport data from './data.json' with { type: 'json' };\nenum Color { Red, Green = 'g' }\nconst enum Size { Big = 10 }\nnamespace Space { export const inside = 1; }\nabstract class Base<T> { constructor(protected readonly n: T, private m = 2) {} sum(this: Base<any>) { return this.n + this.m } declare later: string; }\nclass Sub extends Base<number> { override sum() { return super.sum() + 1 } }\nfunction over(a: string): string;\nfunction over(a: any) { return a! as string }\nconst only: Only2 = <any>1;\nexport type { Only };\nexport const all = [Color.Red, Color[0], Color.Green, Size.Big, Space.inside, new Sub(1).sum(), over('o'), only, value, data.n satisfies number];\n",
        ),
        ("types.ts", "export interface Only2 {}\nexport interface Only3 {}\nexport const value = 'v';\n"),
        ("data.json", "{\"n\": 7}"),
    ]);
    assert_eq!(json_of(&mut project, "./all.mts", "all"), json!([0, "Red", "g", 10, 1, 4, "o", 1, "v", 7]));
}

#[test]
fn a_module_is_evaluated_once_and_can_await_while_it_loads() {
    let mut project = TestProject::new(&[
        (
            "count.mjs",
            "globalThis.count = (globalThis.count ?? 0) + 1;\nawait new Promise((done) => setTimeout(done, 2));\nexport const count = globalThis.count;\n",
        ),
        (
            "a.mjs",
            "import { count } from './count.mjs';\nimport { count as again } from './b/../count.mjs';\nexport const all = [count, again, import.meta.filename.endsWith('/a.mjs'), import.meta.url.startsWith('file:///')];\n",
        ),
        ("late.mjs", "export const late = async () => (await import('./count.mjs')).count;\n"),
    ]);
    assert_eq!(json_of(&mut project, "./a.mjs", "all"), json!([1, 1, true, true]));
    assert_eq!(json_of(&mut project, "./count.mjs", "count"), json!(1));
    assert_eq!(project.call("./late.mjs", "late", &[]), Ok(1.0.into()));
}

#[test]
fn a_missing_module_is_reported_with_the_import() {
    let mut project = TestProject::new(&[
        ("fs.ts", "type T = string;\nimport { readFile } from 'node:fs';\nexport const x = readFile;\n"),
        ("net.mjs", "import 'https';\n"),
        ("child.cjs", "const ok = 1;\nconst { exec } = require('child_process');\n"),
        ("helper.ts", "export const x = 1;\n"),
        ("near.ts", "export { x } from './helpr';\n"),
        ("package.ts", "import x from 'left-pad-of-nowhere/sub';\nexport default x;\n"),
        ("name.ts", "import { y } from './helper';\nexport const z = y;\n"),
        ("deep.ts", "import './name';\n"),
        ("jsx.ts", "import './page.tsx';\n"),
        ("page.tsx", "export default 1;"),
        ("url.ts", "import 'https://example.com/x.js';\n"),
    ]);
    for (file, words, at, way_out) in [
        ("fs.ts", "node:fs is not available here: scripts have no access to the machine", "fs.ts:2:26", None),
        ("net.mjs", "https is not available here: scripts have no access to the network", "net.mjs:1:8", None),
        (
            "child.cjs",
            "child_process is not available here: scripts cannot start programs or threads",
            "child.cjs:2:26",
            None,
        ),
        ("near.ts", "cannot find `./helpr`", "near.ts:1:19", Some("did you mean `./helper`?")),
        (
            "package.ts",
            "cannot find the package `left-pad-of-nowhere`",
            "package.ts:1:15",
            Some("npm install left-pad-of-nowhere"),
        ),
        ("name.ts", "`helper.ts` has no export `y`", "name.ts:1:10", None),
        ("deep.ts", "`helper.ts` has no export `y`", "name.ts:1:10", None),
        ("url.ts", "not over `https`", "url.ts:1:8", None),
    ] {
        let (what, place, help) = missing(project.import(&format!("./{file}")));
        assert!(what.contains(words), "{file}: {what}");
        assert_eq!(place.as_deref(), Some(at), "{file}");
        assert!(way_out.is_none_or(|words| help.clone().unwrap_or_default().contains(words)), "{file}: {help:?}");
    }
    assert!(missing(project.import("./jsx.ts")).0.contains("JSX"));
    assert!(missing(project.import("./nowhere.ts")).0.contains("cannot find"));
}

#[test]
fn an_invalid_file_is_reported_with_its_location() {
    let mut project = TestProject::new(&[
        ("bad.ts", "export const a = 1;\nexport const b: = 2;\n"),
        ("uses.ts", "import { a } from './bad';\nexport default a;\n"),
        ("bad.mjs", "export const a = 1;\nlet let = 2;\n"),
        ("bad.cjs", "var a = 1;\nvar b = ;\n"),
        ("bad.json", "{\n  \"a\": 1,\n  b: 2\n}"),
        ("json.ts", "import data from './bad.json';\nexport default data;\n"),
    ]);
    for (file, at) in [
        ("bad.ts", "bad.ts:2:17"),
        ("uses.ts", "bad.ts:2:17"),
        ("bad.mjs", "bad.mjs:2:5"),
        ("bad.cjs", "bad.cjs:2:9"),
        ("json.ts", "bad.json:3:3"),
    ] {
        match project.import(&format!("./{file}")) {
            Err(ScriptError::Syntax { place, message, .. }) => {
                assert_eq!(place.map(|place| place.to_string()).as_deref(), Some(at), "{file}: {message}");
            }
            other => panic!("{file}: {other:?}"),
        }
    }
}

#[test]
fn an_error_while_a_module_loads_points_at_its_line() {
    let mut project = TestProject::new(&[
        ("a.ts", "import './b.cjs';\n"),
        ("b.cjs", "// one\nfunction f() {\n  null.x;\n}\nf();\n"),
        ("c.ts", "interface X {\n  a: 1;\n}\nexport const x: X = undefined!;\nx.a.b;\n"),
    ]);
    let at = |error: ScriptError| error.place().map(ToString::to_string);
    assert_eq!(at(project.import("./a.ts").unwrap_err()).as_deref(), Some("b.cjs:3:3"));
    assert_eq!(at(project.import("./c.ts").unwrap_err()).as_deref(), Some("c.ts:5:1"));
    assert_eq!(at(project.import("./c.ts").unwrap_err()).as_deref(), Some("c.ts:5:1"), "the second time, too");
}

#[test]
fn a_module_that_never_ends_is_stopped() {
    let mut project = TestProject::new(&[("loop.mjs", "for (;;) {}"), ("wait.mjs", "await new Promise(() => {});")]);
    let from = project.path();
    let budget = Duration::from_millis(30);
    let stopped = project.runtime.import("./loop.mjs", &from, budget).unwrap_err();
    assert_eq!(stopped.to_string(), "stopped after 0.03 s");
    let mut project = TestProject::new(&[("wait.mjs", "await new Promise(() => {});")]);
    assert_eq!(project.import("./wait.mjs"), Err(ScriptError::NeverSettled));
}

#[test]
fn built_in_modules_need_no_file() {
    let mut project =
        TestProject::new(&[("a.test.ts", "import { scenario } from '@fabrik/core';\nexport default scenario('n');\n")]);
    project.runtime.builtin("@fabrik/core", "export const scenario = (name) => ({ name });");
    assert_eq!(json_of(&mut project, "./a.test.ts", "default"), json!({"name": "n"}));
    assert_eq!(project.import("@fabrik/core").unwrap().path(), "builtin:@fabrik/core");
}

#[test]
fn node_shims_work() {
    let mut project = TestProject::new(&[(
        "a.ts",
        "import path, { join } from 'node:path';\nimport assert from 'assert';\nimport strict from 'node:assert/strict';\nimport { promisify, isDeepStrictEqual, inspect } from 'util';\nimport { fileURLToPath } from 'url';\nimport process from 'node:process';\nimport { setTimeout as sleep } from 'node:timers/promises';\nexport async function all() {\n  assert.deepEqual({ a: 1 }, { a: '1' });\n  assert.throws(() => strict.deepEqual({ a: 1 }, { a: '1' }), { name: 'AssertionError' });\n  assert.throws(() => { throw new TypeError('t') }, TypeError);\n  assert.throws(() => assert.equal(1, 2), /1/);\n  await assert.rejects(Promise.reject(new Error('r')), /r/);\n  return [join('a', '..', 'b/./c'), path.extname('x/y.tar.gz'), path.relative('/a/b', '/a/c/d'), path.resolve('/a', '../b'), await promisify((x, done) => done(null, x))(3), isDeepStrictEqual(new Map([[1, { a: [2] }]]), new Map([[1, { a: [2] }]])), inspect({ a: 'x' }), fileURLToPath('file:///a%20b'), typeof process.env, await sleep(1, 'slept')];\n}\n",
    )]);
    assert_eq!(
        project.call("./a.ts", "all", &[]).unwrap().to_json(),
        json!(["b/c", ".gz", "../c/d", "/b", 3, true, "{ a: 'x' }", "/a b", "object", "slept"])
    );
    assert!(
        missing(project.import("compare")).0.contains("cannot find the package"),
        "internal modules are not visible"
    );
}

#[test]
fn a_library_reads_each_file_once_until_it_is_cleared() {
    let project = TestProject::new(&[("a.ts", "export const n: number = 1;\n")]);
    let library = Library::new();
    let read = || {
        let options = Options { library: library.clone(), ..Options::new(project.path()) };
        let mut runtime = Runtime::new(options).unwrap();
        let module = runtime.import("./a.ts", &project.path(), BUDGET).unwrap();
        runtime.export(&module, "n").unwrap()
    };
    assert_eq!(read(), Some(Value::Number(1.0)));
    std::fs::write(project.path().join("a.ts"), "export const n: number = 2;\n").unwrap();
    assert_eq!(read(), Some(Value::Number(1.0)));
    library.forget();
    assert_eq!(read(), Some(Value::Number(2.0)));
}

#[test]
fn no_input_causes_a_panic() {
    let corpus = [
        "",
        "\u{feff}export default 1",
        "#!",
        "#!x\nexport {}",
        "export",
        "import",
        "export default",
        "import x from 'x'",
        "export * from './a.ts'",
        "import './a.mjs'",
        "export default [,,...a,...[1],{...b,[c]:1,'d':2,e(){}}]",
        "enum A { B = A.B, C = `x${1}`, D }",
        "namespace A { export namespace B { export const c = A.B } }",
        "declare module 'x' { export default y }",
        "import x = require('./a.cjs'); export = x",
        "export as namespace x",
        "abstract class A { abstract b(): void; constructor(private c?: number, readonly d = 1) {} }",
        "@d class A {}",
        "using x = y",
        "await 1",
        "await using a = b",
        "let x: (typeof y)['z'] = <any>w!",
        "type A<B extends C = D> = B extends infer E ? E : never",
        "module.exports = module",
        "exports.x = require",
        "require()",
        "require(1)",
        "require('.')",
        "import('')",
        "import.meta.url = 1",
        "{",
        "}",
        "[1",
        "{\"a\": }",
        "{\"a\":1}",
        "nul",
        "\0",
        "export const a = '\0'",
        "\u{2028}\u{2029}",
        "/* */ // x",
        "<!-- x",
        "😀",
        "for (const x of [1]) { break }",
        "throw null",
        "throw undefined",
        "throw { get message() { throw 1 } }",
        "throw new Proxy({}, { get() { throw 2 } })",
        "Error.prepareStackTrace = () => 1; throw new Error('x')",
        "Object.prototype.then = function (a) { a(1) }",
        "delete globalThis.Promise; export default async () => 1",
        "Error.stackTraceLimit = 'x'; null.y",
        "Object.defineProperty(Error.prototype, 'stack', { get() { throw 3 } }); null.z",
        "Array.prototype[Symbol.iterator] = 1; export default [1]",
        "Object.prototype.toJSON = () => 1; export default {}",
        "JSON.parse = null; RegExp = null; WeakMap = null; export default /x/",
    ];
    let project = TestProject::new(&[]);
    for text in corpus {
        for name in ["f.ts", "f.mts", "f.cts", "f.js", "f.mjs", "f.cjs", "f.json", "f"] {
            let mut runtime = Runtime::new(Options::new(project.path())).unwrap();
            if let Ok(module) = runtime.import_source(text, &project.path().join(name), BUDGET) {
                let _ = runtime.export(&module, "default");
                let _ = runtime.exports(&module);
            }
        }
        for language in [Language::JavaScript, Language::TypeScript] {
            for export in ["default", "a"] {
                let _ = positions(text, language, export);
            }
        }
    }
}

#[test]
fn deep_nesting_in_a_file_is_never_fatal() {
    let project = TestProject::new(&[]);
    for piece in
        ["(", "[", "{a:", "!", "a=>", "a?b:", "a+", "f(", "`${", "if(a)", "namespace A {", "A<", "class extends "]
    {
        for count in [100, 3_000, 20_000] {
            let text = format!("export default {}1", piece.repeat(count));
            for name in ["f.ts", "f.mjs"] {
                let mut runtime = Runtime::new(Options::new(project.path())).unwrap();
                let _ = runtime.import_source(&text, &project.path().join(name), BUDGET);
            }
        }
    }
    let balanced = format!("export default {}1{}", "(".repeat(3_000), ")".repeat(3_000));
    for name in ["f.ts", "f.mjs"] {
        let mut runtime = Runtime::new(Options::new(project.path())).unwrap();
        let _ = runtime.import_source(&balanced, &project.path().join(name), BUDGET);
    }
}

#[test]
fn scripts_can_access_modules_but_no_other_files() {
    let secret = tempfile::TempDir::new().unwrap();
    let secret_path = std::fs::canonicalize(secret.path()).unwrap();
    for (name, text) in [("a.json", "{\"key\": \"hush\"}"), ("b.json", "hush = 1"), ("c", "hush = (")] {
        std::fs::write(secret_path.join(name), text).unwrap();
    }
    let shown = secret_path.display();
    let mut project = TestProject::new(&[
        ("lib.mjs", "export default 1;"),
        ("try.mjs", "export const load = async (what) => (await import(what)).default;"),
        ("try.cjs", "exports.load = (what) => require(what);"),
        ("evil.mjs", "export const run = async (text) => (0, eval)(text);"),
    ]);
    let own = format!("{}/lib.mjs", project.path().display());
    assert_eq!(project.call("./try.mjs", "load", &[own.as_str().into()]), Ok(1.0.into()));
    for file in ["./try.mjs", "./try.cjs"] {
        for what in [
            format!("{shown}/a.json"),
            format!("file://{shown}/a.json"),
            format!("{shown}/b.json"),
            format!("{}/../..{shown}/a.json", project.path().display()),
            format!("resolved:{shown}/a.json"),
            "resolved:internal:compare".into(),
            "internal:compare".into(),
            "/dev/zero".into(),
        ] {
            let error = project.call(file, "load", &[what.as_str().into()]).unwrap_err();
            assert!(matches!(error, ScriptError::Missing { .. }), "{what}: {error:?}");
            assert!(!error.diagnostic().to_string().contains("hush"), "{error:?}");
        }
    }
    for text in [format!("import('resolved:{shown}/a.json')"), format!("import('{shown}/a.json')")] {
        let error = project.call("./evil.mjs", "run", &[text.as_str().into()]).unwrap_err();
        assert!(matches!(error, ScriptError::Missing { .. }), "{error:?}");
    }
    let up = "../".repeat(project.path().components().count());
    for (file, word) in [("b.json", "is not valid JSON"), ("c", "is not a module")] {
        let what = format!("{up}{}/{file}", secret_path.strip_prefix("/").unwrap().display());
        let error = project.call("./try.mjs", "load", &[what.as_str().into()]).unwrap_err();
        assert!(
            error.to_string().contains(word) && error.place().is_none_or(|place| !place.to_string().contains("hush")),
            "{error:?}"
        );
    }
}

#[test]
fn a_module_that_is_too_large_is_rejected() {
    let mut project = TestProject::new(&[("big.mjs", &" ".repeat((16 << 20) + 1))]);
    assert_eq!(missing(project.import("./big.mjs")).0, "`big.mjs` is too large for a module: more than 16 MiB");
}

#[test]
fn typescript_with_an_export_assignment_is_commonjs() {
    let mut project = TestProject::new(&[
        ("a.ts", "import lib = require('./lib.cjs');\nconst f = (n: number): number => n + lib.one;\nexport = f;\n"),
        ("lib.cjs", "exports.one = 1;"),
    ]);
    assert_eq!(project.call("./a.ts", "default", &[2.0.into()]), Ok(3.0.into()));
}

#[test]
fn decorators_are_rejected_at_their_location() {
    for file in ["a.ts", "a.mjs"] {
        let mut project = TestProject::new(&[(file, "const d = (x) => x;\n@d\nexport class A {}\n")]);
        match project.import(&format!("./{file}")) {
            Err(ScriptError::Syntax { message, place: Some(place), .. }) => {
                assert_eq!((message.as_str(), place.line, place.column), ("decorators are not supported here", 2, 1));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_default_export_of_a_compiled_module_is_found() {
    let mut project = TestProject::new(&[(
        "op.cjs",
        "Object.defineProperty(exports, '__esModule', {value: true}); exports.default = () => 7;",
    )]);
    let from = project.path();
    let reference = crate::Reference::parse("./op.cjs").unwrap();
    let found = project.runtime.refer(&reference, &from, "op", BUDGET).unwrap();
    let Value::Function(function) = found.value else { panic!("{found:?}") };
    assert_eq!(project.runtime.call(&function, &[], BUDGET, &mut crate::runtime::refuse), Ok(7.0.into()));
}

#[test]
fn a_compiled_package_is_shared_by_all_runtimes_until_it_changes() {
    let files = |result: &str| {
        let code = format!(
            "export default function f() {{ return import.meta.url.endsWith('index.js') && {result}; }}\n\nexport const fail = () => {{ throw new TypeError('here'); }};\n"
        );
        vec![
            ("node_modules/p/package.json".to_owned(), "{\"type\": \"module\"}".to_owned()),
            ("node_modules/p/index.js".to_owned(), code),
            (
                "a.js".to_owned(),
                "import f, { fail } from 'p';\nexport const value = f();\nexport { fail };\n".to_owned(),
            ),
        ]
    };
    let write = |directory: &std::path::Path, result: &str| {
        for (name, text) in files(result) {
            let path = directory.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    };
    let project = TestProject::new(&[]);
    let value = || {
        let mut runtime = crate::Runtime::new(crate::Options::new(project.path())).unwrap();
        let module = runtime.import("./a.js", &project.path(), BUDGET).unwrap();
        let value = runtime.export(&module, "value").unwrap().unwrap().to_json();
        let Some(crate::Value::Function(fail)) = runtime.export(&module, "fail").unwrap() else { panic!() };
        let error = runtime.call(&fail, &[], BUDGET, &mut crate::runtime::refuse).unwrap_err();
        (value, error.place().unwrap().to_string())
    };
    write(&project.path(), "1");
    let thrown = "node_modules/p/index.js:3:35".to_owned();
    assert_eq!((value(), value()), ((json!(1), thrown.clone()), (json!(1), thrown.clone())));
    write(&project.path(), "2");
    assert_eq!(value(), (json!(2), thrown));
}
