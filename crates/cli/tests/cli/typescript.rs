//! The TypeScript compiler accepts the declarations and the files that `init` writes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::PathBuf;
use std::process::Command;

use generate::{
    AssertionKind, Candidate, Context, ExpectedArgument, PlannedTest, ProposedAssertion, TestScript, Turn,
    find_category, find_format,
};
use testkit::{Project, packages};

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

/// Tests as other projects write them: the first examples of the system from which tests as code originate, and every
/// name that it exports.
const FOREIGN: &str = r#"import { scenario, persona, assert, AgentResponse } from "@fabrik/core";
import type {
  AgentAdapter, AgentConfig, AgentHandle, AssertionResult, LLMProvider, Persona, RunResult, Scenario, ScenarioContext, ScenarioFn, ToolCall,
  Turn,
} from "@fabrik/core";
import { defineConfig } from "@fabrik/cli";

export default scenario("angry customer refund request", async ({ agent }) => {
  const karen = persona({ role: "customer", tone: "frustrated", backstory: "Received damaged laptop 3 days ago" });
  const r1 = await agent.send(karen.says("I want a full refund RIGHT NOW or I'm disputing the charge."));
  assert.sentiment(r1, "empathetic");
  assert.notContains(r1, "blame the customer");
  assert.toolCalled(r1, "lookup_order");
  if (r1.mentions("refund")) {
    const r2 = await agent.send(karen.says("Fine, but I want it processed TODAY."));
    assert.llmJudge(r2, { criteria: "Did the agent set realistic expectations?", threshold: 3, scale: 5 });
  }
  assert.guardrail(r1, { mustNot: ["you're wrong"], must: ["acknowledge", "look into"] });
  assert.matches(r1, /refund/i);
  assert.jsonSchema(r1, { type: "object" });
  assert.jsonSchema(r1, { safeParse: (value: unknown) => ({ success: value !== null }) });
  assert.latency(r1, { max: 2000 });
  assert.tokenUsage(r1, { max: 500 });
  assert.toolNotCalled(r1, "initiate_refund");
  await assert.factuality(r1, { groundTruth: "30 days", context: "policy" });
  await assert.custom("is short", (response: AgentResponse) => response.text.length < 500);
  await assert.custom("is kind", async (response) => response.mentions("please"));
});

const fn: ScenarioFn = async ({ agent, agents, score, scores }: ScenarioContext) => {
  await Promise.all([agent.send("hi"), agents.second.send("hi")]);
  const reply = await agent.send("hi");
  score("warmth", scores.get("warmth") ?? (reply.raw?.warmth as number));
  const result: AssertionResult = await assert.contains(reply, "hi");
  console.log(result.passed, process.env.HOME, crypto.randomUUID(), new URL("http://h/").host);
  const ending = new AbortController();
  setTimeout(() => ending.abort(), 5);
};
export const skipped: Scenario = scenario.skip("later", fn);
export const only = scenario.only("now", { tags: ["smoke"], retries: 1 }, fn);
export const rows = scenario.each([["A-17", 1], ["B-99", 2]])("order %s", async ({ agent }, order, count) => {
  assert.contains(await agent.send(order.toUpperCase()), count.toFixed(0));
});
export const maps = scenario.each([{ order: "A-17" }])("order $order", async ({ agent }, { order }) => {
  assert.contains(await agent.send(order), order);
});

export class Bot implements AgentAdapter {
  async connect(config: AgentConfig): Promise<void> {
    console.log(config.type);
  }
  async send(message: string): Promise<AgentResponse> {
    return new AgentResponse({ text: message, toolCalls: [], latencyMs: 0 });
  }
  async reset(): Promise<void> {}
  async disconnect(): Promise<void> {}
}

export const again = ({ tags, fn }: Scenario): [string[] | undefined, ScenarioFn] => [tags, fn];
export const calls = (reply: AgentResponse): ToolCall[] => reply.toolCalls;
export const turn: Turn = { role: "persona", message: "hi" };
export const slowest = (results: RunResult[]) => Math.max(...results.map((result) => result.duration));
export const greet = (agent: AgentHandle, who: Persona = { role: "customer" }) => agent.send(`I am a ${who.role}`);
export const failed = (result: AssertionResult = { type: "contains", passed: false }) => result.error;
export const ask = async (model: LLMProvider, who: Persona) =>
  (await model.generate({ messages: [{ role: "user", content: who.role }], maxTokens: 5 })).tokenUsage.total;

export const config = defineConfig({
  agent: { type: "http", url: "http://localhost:3000/api/chat", headers: { Authorization: "Bearer ${env.AGENT_API_KEY}" } },
  tests: "./tests",
  llm: { provider: "openai", model: "gpt-", apiKey: "${env.OPENAI_API_KEY}" },
  sandbox: { provider: "daytona", daytona: { apiKey: "${env.DAYTONA_API_KEY}", target: "us" } },
  eval: { parallelism: 3, retries: 1, defaultTimeout: 30000 },
  diff: { regressionThreshold: 0.05 },
  report: { formats: ["terminal", "json"], outputDir: "./fabrik-reports" },
  store: { path: "./.fabrik/traces.db" },
});
"#;

fn compiler() -> PathBuf {
    packages().join("node_modules/typescript/bin/tsc")
}

/// Returns the compiler's output for the project defined by the folder's `tsconfig.json`.
fn compile(compiler: &PathBuf, project: &Project, folder: &str) -> String {
    let output = Command::new("node").arg(compiler).args(["-p", folder]).current_dir(project.dir()).output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
#[cfg_attr(not(has = "packages"), ignore = "needs npm packages; run scripts/test")]
fn the_compiler_accepts_what_init_writes_and_tests_of_other_projects() {
    let compiler = compiler();
    let project = Project::new(PROGRAM);
    project.run(&["init", "--template", "code"]).exits(0);
    project.write("tests/foreign.test.ts", FOREIGN);
    let pack = format!("{}/../../packs/customer-support", env!("CARGO_MANIFEST_DIR"));
    for file in ["package.json", "index.ts"]
        .map(str::to_owned)
        .into_iter()
        .chain(["angry-customer", "billing-dispute", "product-inquiry"].map(|test| format!("tests/{test}.test.ts")))
    {
        let text = std::fs::read_to_string(format!("{pack}/{file}")).unwrap();
        project.write(&format!("node_modules/@trialrun/pack-customer-support/{file}"), &text);
    }
    project.write("tests/pack.test.ts", "export * from \"@trialrun/pack-customer-support\";\n");
    assert_eq!(compile(&compiler, &project, "tests"), "");
    // The agent is next to the folder of the tests.
    let settings = project.read("tests/tsconfig.json").replace("**/*.ts", "../agent.ts");
    project.write("agent/tsconfig.json", &settings);
    assert_eq!(compile(&compiler, &project, "agent"), "");
}

#[test]
#[cfg_attr(not(has = "packages"), ignore = "needs npm packages; run scripts/test")]
fn the_compiler_accepts_generated_tests() {
    let compiler = compiler();
    let project = Project::new(PROGRAM);
    project.run(&["init", "--template", "code"]).exits(0);
    let text = "It's \"quoted\"\n`${code}` // */";
    let assertions = AssertionKind::ALL.map(|kind| ProposedAssertion {
        kind,
        value: text.to_owned(),
        tool: "lookup_order".to_owned(),
        arguments: vec![ExpectedArgument { name: "order-id".to_owned(), pattern: "a/b\\d[/]".to_owned() }],
        path: "a.txt".to_owned(),
    });
    let turn = |says: &str| Turn { says: says.to_owned(), assertions: assertions.to_vec() };
    let candidate = Candidate {
        category: find_category("happy").unwrap(),
        planned: PlannedTest {
            category: "happy".to_owned(),
            name: text.to_owned(),
            why: text.to_owned(),
            covers: Vec::new(),
            situation: String::new(),
            success: Vec::new(),
            failure: Vec::new(),
        },
        slug: "happy-quotes".to_owned(),
        script: TestScript {
            role: text.to_owned(),
            tone: text.to_owned(),
            turns: vec![turn(text), turn("again")],
            files: Vec::new(),
        },
    };
    let rendered = (find_format("ts").unwrap().render)(&candidate, &Context { targets: &[], skill: None });
    project.write("tests/happy-quotes.test.ts", &rendered);
    assert_eq!(compile(&compiler, &project, "tests"), "", "{rendered}");
}

#[test]
#[cfg_attr(not(has = "packages"), ignore = "needs npm packages; run scripts/test")]
fn the_compiler_accepts_every_example() {
    let compiler = compiler();
    let examples = format!("{}/../../examples", env!("CARGO_MANIFEST_DIR"));
    let mut compiled = 0;
    for example in std::fs::read_dir(examples).unwrap().map(|entry| entry.unwrap().path()) {
        if !example.join("trialrun.config.ts").exists() {
            continue;
        }
        let project = Project::new(PROGRAM);
        project.run(&["init", "--template", "code"]).exits(0);
        project.write("example/tsconfig.json", &project.read("tests/tsconfig.json"));
        for file in ["trialrun.config.ts", "tests/hello.test.ts"] {
            let text = std::fs::read_to_string(example.join(file)).unwrap();
            project.write(&format!("example/{file}"), &text);
        }
        assert_eq!(compile(&compiler, &project, "example"), "", "{}", example.display());
        compiled += 1;
    }
    assert_eq!(compiled, 3);
}

#[test]
#[cfg_attr(not(has = "packages"), ignore = "needs npm packages; run scripts/test")]
fn the_compiler_rejects_invalid_tests() {
    let compiler = compiler();
    let project = Project::new(PROGRAM);
    project.run(&["init", "--template", "code"]).exits(0);
    let text = "import { assert, scenario } from 'trialrun';
export default scenario('x', async ({ agent }) => {
  const reply = await agent.send('hi');
  assert.contians(reply, 'hi');
  assert.branchCreated({ checkedOut: 'true' });
  reply.text = 'other';
  fetch('http://h/');
});
";
    project.write("tests/wrong.test.ts", text);
    let output = compile(&compiler, &project, "tests");
    for line in ["(4,10)", "(5,26)", "(6,9)", "(7,3)"] {
        assert!(output.contains(&format!("wrong.test.ts{line}: error")), "{line}: {output}");
    }
    assert_eq!(output.matches("error TS").count(), 4, "{output}");
}
