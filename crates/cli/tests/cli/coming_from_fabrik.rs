//! The commands and files from Fabrik Lite's document, unchanged, in a clean directory. Differences are listed in
//! `docs/coming-from-fabrik.md` and are tested here too.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use crate::shop::{Seen, Shop};
use serde_json::Value;
use testkit::{Project, Ran};

fn specimen(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../../specimens/code/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Returns a project with the layout from the document, whose agent and judge are on the shop's server.
fn project(shop: &Shop) -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"))
        .env("AGENT_API_KEY", "agent-canary-5511aa22bb33")
        .env("OPENAI_API_KEY", "sk-test-canary-9f8e7d6c5b4a39281706")
        .env("DAYTONA_API_KEY", "daytona-canary-9")
        .env("OPENAI_BASE_URL", &shop.url("/judge"));
    let config = specimen("fabrik.config.ts").replace("http://localhost:3000", &shop.url(""));
    project.write("fabrik.config.ts", &config);
    project.write("tests/angry-customer.test.ts", &specimen("tests/angry-customer.test.ts"));
    project.write("tests/inquiry.yaml", &specimen("tests/inquiry.yaml"));
    let generated = specimen("tests/contradictory-info.test.ts");
    project.write("tests/generated/edge-case-contradictory-info.test.ts", &generated);
    project
}

fn typed(project: &Project, line: &str) -> Ran {
    project.run(&line.split(' ').collect::<Vec<_>>())
}

/// Returns the report that a command prints.
fn report(project: &Project, line: &str, code: i32) -> Value {
    typed(project, &format!("{line} --format json")).exits(code).json()
}

fn cases(report: &Value) -> Vec<&str> {
    report["trials"].as_array().unwrap().iter().map(|trial| trial["case"].as_str().unwrap()).collect()
}

#[test]
fn every_command_works_as_before() {
    let shop = Shop::open();
    let project = project(&shop);
    let ran = typed(&project, "run").exits(0);
    assert!(ran.out.contains("PASS  3 trials passed"), "{}", ran.output());
    assert!(
        project.dir().join("fabrik-reports/report.json").exists() && project.dir().join(".fabrik/traces.db").exists()
    );
    for line in ["run --test angry-customer", "run --test ANGRY", "run --test refund"] {
        assert_eq!(cases(&report(&project, line, 0)), ["angry customer refund request"], "{line}");
    }
    assert_eq!(cases(&report(&project, "run --test generated/", 0)), ["contradictory information handling"]);
    let trial = report(&project, "run --test angry-customer", 0)["trials"][0].clone();
    let [first, second] = trial["turns"].as_array().unwrap().as_slice() else { panic!("{trial:#}") };
    assert!(first["message"].as_str().unwrap().contains("RIGHT NOW") && second["latency_ms"].is_u64(), "{trial:#}");
    assert!(first["answer"].as_str().unwrap().starts_with("I am so sorry"), "{trial:#}");
    assert!(trial["findings"][0]["latency_ms"].is_u64(), "{trial:#}");
    typed(&project, "run --tag smoke").exits(4);
    typed(&project, "run --parallel 2 --timeout 30000 --format json --output out.json").exits(0);
    let written: Value = serde_json::from_str(&project.read("out.json")).unwrap();
    assert_eq!(cases(&written).len(), 3);
    for version in ["v1.2", "v1.3"] {
        typed(&project, &format!("run --save --version {version}")).exits(0);
    }
    let diff = typed(&project, "diff --before v1.2 --after v1.3").exits(0).out;
    assert!(diff.contains("(v1.2)") && diff.contains("(v1.3)") && diff.contains("3 cases unchanged"), "{diff}");
    assert_eq!(typed(&project, "diff --before v1.2 --after v1.3 --format terminal").exits(0).out, diff);
    assert_eq!(report(&project, "diff --before v1.2 --after v1.3", 0)["schema"], "trialrun.compare/1");
    assert_eq!(typed(&project, "diff --before previous --after latest").exits(0).out, diff);
    let id = written["run"]["id"].as_str().unwrap();
    assert_eq!(cases(&report(&project, &format!("report --run-id {id}"), 0)).len(), 3);
    assert!(typed(&project, &format!("report --run-id {id} --format terminal")).exits(0).out.contains("PASS"));
    // The judge is called through chat completions, with an answer in a schema.
    let seen = shop.seen();
    let judged: Vec<_> = seen.iter().filter(|seen| seen.path.starts_with("/judge")).collect();
    assert!(judged.iter().all(|seen| seen.path == "/judge/chat/completions" && seen.body["model"] == "gpt-"));
    assert!(judged.iter().all(|seen| seen.body["response_format"]["type"] == "json_schema"));
    let asked = seen.iter().find(|seen| seen.path == "/api/chat").unwrap();
    assert_eq!(asked.headers["authorization"], "Bearer agent-canary-5511aa22bb33");
    assert!(asked.body["message"].is_string() && asked.body["conversation_id"].is_string());
}

#[test]
#[cfg_attr(not(has = "node"), ignore = "needs Node.js and npm; run scripts/test")]
fn the_files_run_in_node_as_well() {
    let shop = Shop::open();
    let project = project(&shop);
    let config = project.read("fabrik.config.ts");
    project.write("fabrik.config.ts", &config.replace("defineConfig({", "defineConfig({ code: { runtime: \"node\" },"));
    let ran = typed(&project, "run").exits(0);
    assert!(ran.out.contains("PASS  3 trials passed"), "{}", ran.output());
}

#[test]
fn a_worse_run_is_a_regression() {
    let shop = Shop::open();
    let project = project(&shop);
    typed(&project, "run --test inquiry --save --version v1.2").exits(0);
    project.write("tests/inquiry.yaml", &specimen("tests/inquiry.yaml").replace("30 days", "90 days"));
    typed(&project, "run --test inquiry --save --version v1.3").exits(1);
    assert!(typed(&project, "diff --any --before v1.2 --after v1.3").exits(1).out.contains("simple product inquiry"));
}

#[test]
fn a_broken_test_file_does_not_stop_the_others() {
    let shop = Shop::open();
    let project = project(&shop);
    project.write(
        "tests/syntax.test.ts",
        "import { scenario } from \"@fabrik/core\";\nexport default scenario(\"x\", ;\n",
    );
    project.write("tests/syntax.yaml", "name: s\nturns:\n  - says: [\nassertions: []\n");
    project.write(
        "tests/typo.test.ts",
        "import { scenario, assert } from \"@fabrik/core\";\nexport default scenario(\"typo\", async ({ agent }) => {\n  \
         assert.contians(await agent.send(\"Hello\"), \"Hello\");\n});\n",
    );
    let report = report(&project, "run", 3);
    let outcome = |wanted: &str| {
        let trials = report["trials"].as_array().unwrap().iter();
        trials.filter(|trial| trial["outcome"] == wanted).count()
    };
    assert_eq!((outcome("passed"), outcome("broken")), (3, 3));
}

/// An adapter as declared in the document, with the classes and types that it imports.
const ADAPTER: &str = r#"import { AgentResponse } from "@fabrik/core";
import type { AgentAdapter, AgentConfig } from "@fabrik/core";

export class ShopAdapter implements AgentAdapter {
  private id = 0;
  private address = "";
  async connect(config: AgentConfig): Promise<void> {
    this.address = config.address;
  }
  async send(message: string): Promise<AgentResponse> {
    const answer = await fetch(this.address, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ message, conversation_id: `own-${this.id}` }),
    });
    return new AgentResponse({ text: (await answer.json()).message, toolCalls: [], latencyMs: 1 });
  }
  async reset(): Promise<void> {
    this.id += 1;
  }
  async disconnect(): Promise<void> {}
}
"#;

#[test]
fn every_kind_of_agent_is_configured_as_before() {
    let shop = Shop::open();
    let project = project(&shop);
    project.write("adapter.ts", ADAPTER);
    let says = r#"{"message": "You can return it within 30 days."}"#;
    project.write("myagent/main.sh", &format!("while read -r line; do echo '{says}'; done\n"));
    let host = shop.url("/").replace("http://", "");
    let host = host.trim_end_matches('/');
    for agent in [
        format!(
            "{{ type: 'http', url: '{}', bodyTemplate: (msg) => ({{ message: msg }}), responseParser: (data) => data.message }}",
            shop.url("/api/chat")
        ),
        "{ type: 'subprocess', command: 'sh', args: ['myagent/main.sh'], cwd: '{project}' }".to_owned(),
        format!(
            "{{ type: 'custom', module: './adapter.ts', network: ['{host}'], options: {{ address: '{}' }} }}",
            shop.url("/api/chat")
        ),
    ] {
        let config = format!(
            "import {{ defineConfig }} from '@fabrik/cli';\nexport default defineConfig({{ agent: {agent}, llm: {{ provider: 'openai', model: 'judge', apiKey: '${{env.OPENAI_API_KEY}}' }} }});\n"
        );
        project.write("fabrik.config.ts", &config);
        let ran = typed(&project, "run --test inquiry").exits(0);
        assert!(ran.out.contains("PASS"), "{agent}: {}", ran.output());
    }
}

#[test]
fn differences_are_as_documented() {
    let shop = Shop::open();
    let project = project(&shop);
    // An existing configuration is kept.
    let refused = typed(&project, "init").exits(2).err;
    assert!(refused.contains("this project already has a configuration: `fabrik.config.ts`"), "{refused}");
    // A description is added to what the project's own agent shows.
    typed(&project, "discover --description Shop").exits(0);
    let asked = shop.seen();
    let key = |seen: &Seen| seen.headers.get("authorization").cloned();
    assert!(asked.iter().any(|seen| key(seen).as_deref() == Some("Bearer agent-canary-5511aa22bb33")), "{asked:?}");
    // A case that checks nothing, or that cannot be decided, does not pass.
    project.write(
        "tests/empty.test.ts",
        "import { scenario } from \"@fabrik/core\";\nexport default scenario(\"empty\", async ({ agent }) => {\n  await \
         agent.send(\"Hello\");\n});\n",
    );
    project.write("tests/tokens.yaml", "name: tokens\nturns: [{says: Hello}]\nassertions: [{token_usage: {max: 1}}]\n");
    let ran = typed(&project, "run --test empty").exits(3);
    assert!(ran.out.contains("1 of 1 trial has no result (undecided: "), "{}", ran.output());
    typed(&project, "run --test tokens --agent fake").exits(3);
    // A report that does not exist.
    let unknown = typed(&project, "run --format pdf").exits(2).err;
    assert!(unknown.contains("unknown report `pdf`"), "{unknown}");
    let config = project.read("fabrik.config.ts").replace("\"json\"]", "\"json\", \"pdf\"]");
    project.write("fabrik.config.ts", &config);
    let ran = typed(&project, "run --test inquiry").exits(0);
    assert!(ran.err.contains("unknown report `pdf`; it is not written"), "{}", ran.err);
    // Parallel messages belong to one conversation; a second conversation has a name.
    project.write(
        "tests/two.test.ts",
        "import { scenario, assert } from \"@fabrik/core\";\nexport default scenario(\"two\", async ({ agent, agents }) => {\n  \
         const [, b] = await Promise.all([agent.send(\"one\"), agents.other.send(\"what have I said before?\")]);\n  \
         const c = await agent.send(\"what have I said before?\");\n  assert.notContains(b, \"one\");\n  \
         assert.contains(c, \"one\");\n});\n",
    );
    typed(&project, "run --test two.test").exits(0);
    let rows = typed(&project, "config --json").exits(0).json();
    assert!(!rows.to_string().contains("canary"), "{rows}");
}

#[test]
fn a_pack_of_tests_can_be_an_npm_package() {
    let shop = Shop::open();
    let project = project(&shop);
    let pack = format!("{}/../../packs/customer-support", env!("CARGO_MANIFEST_DIR"));
    let files = [
        "package.json",
        "index.ts",
        "tests/angry-customer.test.ts",
        "tests/billing-dispute.test.ts",
        "tests/product-inquiry.test.ts",
    ];
    for file in files {
        let text = std::fs::read_to_string(format!("{pack}/{file}")).unwrap();
        project.write(&format!("node_modules/@trialrun/pack-customer-support/{file}"), &text);
    }
    project.write("tests/pack.test.ts", "export * from \"@trialrun/pack-customer-support\";\n");
    project.write("tests/one.test.ts", "export { billingDispute } from \"@trialrun/pack-customer-support\";\n");
    assert_eq!(cases(&report(&project, "run --test pack.test.ts --judge openai:judge", 3)).len(), 3);
    assert_eq!(
        cases(&report(&project, "run --test one.test.ts --judge openai:judge", 0)),
        ["billing dispute over two prices"]
    );
    typed(&project, "run node_modules/@trialrun/pack-customer-support --dry-run").exits(0);
}
