//! Tests as code and agents that run in Node.js.

#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::Value;
use testkit::Project;

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

/// Creates a project whose code runs in `runtime`.
fn project(runtime: &str) -> Project {
    let project = Project::new(PROGRAM);
    project.write("trialrun.yaml", &format!("agent: fake\ncode: {{runtime: {runtime}}}\n"));
    project
}

/// Returns the trial of `case`.
fn trial<'r>(report: &'r Value, case: &str) -> &'r Value {
    report["trials"].as_array().unwrap().iter().find(|trial| trial["case"] == case).unwrap()
}

/// Returns the reason why a trial is broken.
fn reason(trial: &Value) -> &str {
    assert_eq!(trial["outcome"], "broken", "{trial}");
    trial["ending"]["because"].as_str().unwrap_or_else(|| panic!("{trial}"))
}

const TSCONFIG: &str = r#"{"compilerOptions": {"paths": {"@/*": ["./src/*"]}, "experimentalDecorators": true,
    "emitDecoratorMetadata": true, "jsx": "react-jsx", "jsxImportSource": "@/jsx"}}"#;

const RICH: &str = r#"import { scenario } from "trialrun";
import { readFileSync } from "node:fs";
import { createRequire } from "module";
import { shout } from "@/shout";
import data from "./data.json";
import { Shop } from "./shop";

enum Colour { Red, Green }
let played = 0;

export const everything = scenario("everything", async ({ agent, assert }) => {
  played += 1;
  const reply = await agent.send(shout("hello"));
  assert.contains(reply, "HELLO");
  assert.custom("files", () => readFileSync("trialrun.yaml", "utf8").includes("fake"));
  assert.custom("locales", () => new Intl.NumberFormat("de-DE").format(1234.5) === "1.234,5");
  assert.custom("json", () => data.answer === 42 && createRequire(import.meta.url)("./data.json").answer === 42);
  assert.custom("enumerations", () => Colour.Green === 1 && Colour[0] === "Red");
  assert.custom("decorators", () => new Shop().open() === "decorated open" && Shop.parameters.join() === "open:0");
  assert.custom("the environment", () => process.env.HOME.endsWith("home"));
  assert.custom("dynamic imports", async () => (await import("./view")).view === "<b>hi</b>");
  assert.custom("its own state", () => played === 1);
});
export const isolated = scenario("isolated", async ({ agent, assert }) => {
  played += 1;
  assert.contains(await agent.send("hello"), "hello");
  assert.custom("its own state", () => played === 1);
});
"#;

const SHOP: &str = r#"export function loud(target: object, key: string, own: PropertyDescriptor) {
  const plain = own.value;
  own.value = function () { return `decorated ${plain.call(this)}`; };
}
const counted = (target: any, key: string, index: number) => { (target.constructor.parameters ??= []).push(`${key}:${index}`); };
export class Shop {
  static parameters: string[];
  @loud open(@counted at?: Date) { return "open"; }
}
"#;

#[test]
#[cfg_attr(not(has = "node"), ignore = "needs Node.js and npm; run scripts/test")]
fn tests_in_node_have_all_of_node_and_typescript_and_share_nothing() {
    let project = project("node");
    project.write("tsconfig.json", TSCONFIG);
    project.write("src/shout.ts", "export const shout = (text: string) => text.toUpperCase();\n");
    let jsx = "export const jsx = (name: string, given: any) => `<${name}>${given.children}</${name}>`;\nexport const jsxs = jsx;\n";
    project.write("src/jsx/jsx-runtime.ts", jsx);
    project.write("tests/data.json", "{\"answer\": 42}");
    project.write("tests/shop.ts", SHOP);
    project.write("tests/view.tsx", "export const view = <b>hi</b>;\n");
    project.write("tests/rich.test.ts", RICH);
    let report = project.report(&["tests"], 0);
    assert_eq!(trial(&report, "everything")["findings"].as_array().unwrap().len(), 10);
}

/// A test whose findings have locations of all kinds.
const BOTH: &str = "import { scenario, assert, persona } from 'trialrun';
const user = persona({ role: 'customer' });
export default scenario('é both', { tags: ['a'] }, async ({ agent, score }) => {
  const first: any = await agent.send(user.says('hello'));
  assert.contains(first, 'nowhere');
  assert.contains(/* é */ first, 'hello'); assert.matches(first, /HELLO/i);
  assert.custom('throws', () => { throw new RangeError('as planned'); });
  assert.custom('is false', () => false, first);
  assert.contians(first, 'x');
  score('warmth', 0.5);
  console.log('a line');
  assert.fileExists('gone.txt');
  await Promise.resolve();
  throw new TypeError('at the end');
});
";

#[test]
#[cfg_attr(not(has = "node"), ignore = "needs Node.js and npm; run scripts/test")]
fn evidence_and_verdicts_are_the_same_in_both_runtimes() {
    let run = |runtime: &str| {
        let project = project(runtime);
        project.write("tests/both.test.ts", &BOTH.replace("  assert.contians(first, 'x');\n", ""));
        let mut report = project.report(&["tests"], 1);
        let trial = &mut report["trials"][0];
        let findings = trial["findings"].take();
        (findings, trial["outcome"].take(), trial["scores"].take(), trial["score"].take())
    };
    let (embedded, node) = (run("embedded"), run("node"));
    assert_eq!(embedded, node);
    let of_misspelt = |runtime: &str| {
        let project = project(runtime);
        project.write("tests/both.test.ts", BOTH);
        project.run(&["check", "tests"]).exits(2).output()
    };
    assert_eq!(of_misspelt("embedded"), of_misspelt("node"));
}

#[test]
#[cfg_attr(not(has = "node"), ignore = "needs Node.js and npm; run scripts/test")]
fn what_goes_wrong_in_node_is_the_fault_of_the_test() {
    let project = project("node");
    let tests = [
        ("exits", "process.exit(7)", "ended its own process with `process.exit(7)`"),
        ("aborts", "process.abort()", "Node.js was killed by signal 6 while it ran the code"),
        ("loops", "for (;;) {}", "it was still running"),
        (
            "closes",
            "(await import('node:fs')).closeSync(4); for (;;) {}",
            "Node.js closed its pipe to trialrun while it ran the code",
        ),
        ("lies", "(await import('node:fs')).writeSync(4, 'x\\n')", "wrote something that is not a message"),
        ("waits", "await new Promise(() => {})", "a promise that is never settled"),
        ("misspells", "await eval('nowhere')()", "nowhere is not defined"),
    ];
    for (name, code, _) in &tests {
        let timeout = if *name == "loops" { "2s" } else { "30s" };
        let text = format!(
            "import {{ scenario }} from 'trialrun';\n\nexport default scenario('{name}', {{ timeout: '{timeout}' }}, async ({{ agent }}) => {{
  await agent.send('hi');\n  {code};\n}});\n"
        );
        project.write(&format!("tests/{name}.test.ts"), &text);
    }
    project.write(
        "tests/prints.test.ts",
        "import { scenario } from 'trialrun';\nexport default scenario('prints', async ({ agent, assert }) => {
  const text = 'x'.repeat(1 << 20);
  for (let count = 0; count < 1024; count += 1) console.log(text);
  assert.contains(await agent.send('hi'), 'hi');
});\n",
    );
    for (name, use_of) in [
        ("refused", "await ask();"),
        ("claimed", "assert.custom('answers', ask);"),
        ("named", "await agent.send(`http://127.0.0.1:${port}`); await ask();"),
    ] {
        let text = format!(
            "import {{ scenario }} from 'trialrun';\nimport {{ createServer }} from 'node:net';
export default scenario('{name}', async ({{ agent, assert }}) => {{
  await agent.send('hi');
  const server = createServer();
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const {{ port }} = server.address();
  await new Promise((done) => server.close(done));
  const ask = async () => (await fetch(`http://127.0.0.1:${{port}}`)).ok;
  {use_of}\n}});\n"
        );
        project.write(&format!("tests/{name}.test.ts"), &text);
    }
    let report = project.report(&["tests", "--retries", "0"], 1);
    // The fake agent repeats the address.
    assert_eq!(trial(&report, "named")["outcome"], "failed", "{}", trial(&report, "named"));
    for name in ["refused", "claimed"] {
        let trial = trial(&report, name);
        assert_eq!((&trial["outcome"], &trial["fault"]), (&"broken".into(), &"environment".into()), "{trial}");
        let reason = trial["because"].as_str().unwrap();
        assert!(reason.starts_with(&format!("tests/{name}.test.ts:9:")), "{reason}");
        assert!(
            reason.contains("the test's own code failed: TypeError: fetch failed (connect ECONNREFUSED"),
            "{reason}"
        );
    }
    for (name, _, expected) in tests {
        let reason = reason(trial(&report, name));
        assert!(reason.contains(expected) && reason.contains(&format!("tests/{name}.test.ts:")), "{name}: {reason}");
    }
    assert!(reason(trial(&report, "exits")).starts_with("tests/exits.test.ts:5:11: "));
    assert_eq!(trial(&report, "prints")["outcome"], "passed");
    assert!(project.read("report.json").len() < 8 << 20);
}

#[test]
#[cfg_attr(not(has = "node"), ignore = "needs Node.js and npm; run scripts/test")]
fn files_that_the_engine_cannot_load_run_in_node_if_it_is_there() {
    let project = Project::new(PROGRAM);
    project.write("trialrun.yaml", "agent: fake\n");
    let test = |import: &str| {
        format!(
            "import {{ scenario }} from 'trialrun';\n{import}\nexport default scenario('x', async ({{ agent, assert }}) => {{\n  assert.contains(await agent.send('hi'), typeof process.versions.v8 === 'string' ? 'hi' : 'gone');\n}});\n"
        )
    };
    project.write(
        "tests/node.test.ts",
        &test("import { existsSync } from 'node:fs';\nif (!existsSync('trialrun.yaml')) throw new Error('no file');"),
    );
    project.report(&["tests"], 0);
    let without = Project::new(PROGRAM).env("PATH", "/none");
    without.write("trialrun.yaml", "agent: fake\n");
    without.write("tests/node.test.ts", &test("import { existsSync } from 'node:fs';\nexistsSync('x');"));
    let ran = without.run(&["check", "tests"]).exits(2);
    let shown = ran.output();
    assert!(shown.contains("node:fs is not available here"), "{shown}");
    assert!(shown.contains("Node.js 20 or later has it: install it, and the file runs there"), "{shown}");
}

#[test]
fn a_runtime_that_is_not_installed_is_reported_once_where_it_is_chosen() {
    let project = Project::new(PROGRAM).env("PATH", "/none");
    for name in ["one", "two"] {
        let test =
            format!("import {{ scenario }} from 'trialrun';\nexport default scenario('{name}', async () => {{}});\n");
        project.write(&format!("tests/{name}.test.ts"), &test);
    }
    for (name, program) in [("Node.js", "node"), ("Bun", "bun"), ("Deno", "deno")] {
        project.write("trialrun.yaml", &format!("agent: fake\ncode: {{runtime: {program}}}\n"));
        let shown = project.run(&["check", "tests"]).exits(2).output();
        let message =
            format!("{name} is not installed: there is no `{program}` on the `PATH`\n --> trialrun.yaml:2:17\n");
        assert!(shown.contains(&message), "{shown}");
        assert_eq!(shown.matches("not installed").count(), 1, "{shown}");
    }
}

#[test]
#[cfg_attr(not(has = "node"), ignore = "needs Node.js and npm; run scripts/test")]
fn configurations_and_agents_that_are_modules_run_in_node() {
    let project = Project::new(PROGRAM);
    project.write(
        "trialrun.config.ts",
        "import { existsSync } from 'node:fs';
import { defineConfig } from 'trialrun/config';
const module = existsSync('bot.ts') ? './bot.ts' : './gone.ts';
export default defineConfig({ agent: 'bot', agents: { bot: { type: 'custom', module } }, code: { runtime: 'node' } });\n",
    );
    project.write(
        "bot.ts",
        "import { readFileSync } from 'node:fs';
let sent = 0;
export async function send(message: string, { history }: { history: unknown[] }) {
  if (message === 'die') process.exit(3);
  return { text: `${message} ${++sent} ${history.length} ${readFileSync('bot.ts', 'utf8').length > 0}` };
}\n",
    );
    project.write(
        "tests/talk.test.ts",
        "import { scenario } from 'trialrun';
export const talk = scenario('talk', async ({ agent, assert }) => {
  assert.contains(await agent.send('one'), 'one 1 0 true');
  assert.contains(await agent.send('two'), 'two 2 2 true');
});
export const dies = scenario('dies', async ({ agent, assert }) => {
  assert.contains(await agent.send('die'), 'x');
});\n",
    );
    let report = project.report(&["tests"], 3);
    assert_eq!(trial(&report, "talk")["outcome"], "passed");
    let reason = reason(trial(&report, "dies"));
    assert!(reason.contains("process.exit(3)") && reason.contains("bot.ts:4:"), "{reason}");
}
