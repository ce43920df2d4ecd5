//! The files from the documentation of `@isdk/ai-test-runner`, unchanged, run from the command line instead of with
//! `new AITestRunner(executor).run(script, fixtures)`. Differences are listed in `docs/coming-from-ai-test-runner.md`
//! and are tested here too.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use testkit::Project;

/// Step 1 of the quick start; `export default` is added.
const EXECUTOR: &str = r#"import { AITestRunner, AIScriptExecutor } from '@isdk/ai-test-runner';

const myExecutor: AIScriptExecutor = {
  async execute({ script, args }) {
    // Connect to your AI logic here
    return { output: "Hello World", messages: [] };
  }
};
export default myExecutor;
"#;

/// Step 2; `export` is added.
const FIXTURES: &str = r#"export const fixtures = [
  {
    input: "Hi",
    expect: {
      output: /Hello/i  // Recommended: Use expect.output instead of top-level output
    }
  }
];
"#;

/// The example executor from the technical reference, with a model that is a string.
const REFERENCE_EXECUTOR: &str = r#"import { AIScriptExecutor, AIExecutionContext, AIExecutionResult } from '@isdk/ai-test-runner';

const someAIService = {
  async ask({ model, prompt, variables }: any) {
    return { text: `${model} ${prompt} ${variables.input}`, fullHistory: [{ role: 'assistant', content: 'ok' }] };
  }
};

export class MyAIExecutor implements AIScriptExecutor {
  async execute(context: AIExecutionContext): Promise<AIExecutionResult> {
    const { script, args, options } = context;

    // Example: Calling an AI service
    const response = await someAIService.ask({
      model: options.model || 'gpt-4',
      prompt: script, // Load content if it's an ID
      variables: args
    });

    return {
      output: response.text,           // For output validation
      messages: response.fullHistory,  // For tool call validation
    };
  }
}
export default new MyAIExecutor();
"#;

/// Returns the YAML examples, each with an answer that matches and one that does not.
fn examples() -> Vec<(&'static str, Value, Value)> {
    let call = |name: &str| json!([{"role": "assistant", "tools": [{"name": name, "args": {"city": "Shanghai"}}]}]);
    vec![
        (
            "- input: { name: 'Alice' }\n  output: \"Hello Alice\"  # Validates the main output string\n  expect:\n    messages:            # Validates the internal execution trace\n      $contains: { role: 'assistant', content: /Alice/ }\n",
            json!({"output": "Hello Alice", "messages": [{"role": "assistant", "content": "Hi Alice"}]}),
            json!({"output": "Hello Alice", "messages": [{"role": "assistant", "content": "Hi"}]}),
        ),
        (
            "- input: hi\n  expect:\n    output: '/^Hello, .+\\!$/i' # Matches \"Hello, Alice!\"\n",
            json!({"output": "Hello, Alice!"}),
            json!({"output": "Hello"}),
        ),
        (
            "- input: { name: 'Alice' }\n  output: \"/{{name}}/i\"  # Will be resolved to /Alice/i\n",
            json!({"output": "dear alice"}),
            json!({"output": "dear Bob"}),
        ),
        (
            "- input: hi\n  expect:\n    output:\n      $sort:\n        $by:\n          - { $expr: \"item.score * 1.2\", order: \"desc\" }\n          - \"-createdAt\"\n        $first: { status: \"success\" }\n",
            json!({"output": [{"score": 1, "status": "failed"}, {"score": 2, "status": "success"}]}),
            json!({"output": [{"score": 3, "status": "failed"}, {"score": 2, "status": "success"}]}),
        ),
        (
            "- input: hi\n  expect:\n    output:\n      legacy_field:\n        $exists:\n          $value: false\n          strict: true  # Key must be physically absent from the object\n",
            json!({"output": {"new": 1}}),
            json!({"output": {"legacy_field": null}}),
        ),
        (
            "- input: hi\n  expect:\n    output:\n      $and:\n        - \"/^Hello/\"         # Must start with Hello\n        - { $not: \"/World/\" } # AND must not contain World\n    messages:\n      $or:\n        - $contains: { role: 'assistant', tools: [{ name: 'get_user' }] }\n        - $contains: { role: 'assistant', tools: [{ name: 'find_person' }] }\n",
            json!({"output": "Hello you", "messages": call("find_person")}),
            json!({"output": "Hello you", "messages": call("mail")}),
        ),
        (
            "- input:\n    user: { id: 1, name: 'Alice' }\n  expect:\n    output: \"{{user}}\"  # Resolved directly to { id: 1, name: 'Alice' }\n",
            json!({"output": {"id": 1, "name": "Alice"}}),
            json!({"output": {"id": 2, "name": "Alice"}}),
        ),
        (
            "# Test configuration for weather.ai.yaml\n---\ntools: true  # Automatically uses weather.ai.yaml as the available tool\n---\n- input: \"What's the weather in Shanghai?\"\n  expect:\n    tools: [{ name: 'weather', args: { city: /Shanghai|上海/ } }]\n",
            json!({"output": "sunny", "messages": call("weather")}),
            json!({"output": "sunny", "messages": call("mail")}),
        ),
        (
            "- input: hi\n  expect:\n    output:\n      profile:\n        $schema:\n          type: object\n          properties:\n            age: { type: number, minimum: 18 }\n",
            json!({"output": {"profile": {"age": 18}}}),
            json!({"output": {"profile": {"age": 17}}}),
        ),
        (
            "- input: hi\n  expect:\n    output: \"Hello\"\n    diff:\n      permissive: true # Ignore all other variations\n      items:\n        - { value: \" User\", added: true, required: true }\n",
            json!({"output": "Hello User"}),
            json!({"output": "Hello"}),
        ),
        (
            "- input: { language: 'en', user: { name: 'Bob' } }\n  output:\n    lang: \"{{input.language}}\"    # Accesses deep input property\n    text: \"Hi {{input.user.name}}\" # Accesses nested input property\n",
            json!({"output": {"lang": "en", "text": "Hi Bob"}}),
            json!({"output": {"lang": "en", "text": "Hi"}}),
        ),
    ]
}

fn project() -> Project {
    Project::new(env!("CARGO_BIN_EXE_trialrun"))
}

/// Returns the outcome of the only case of `file` with an executor that returns `given`.
fn outcome(project: &Project, file: &str, given: &Value) -> String {
    project.write("executor.mjs", &format!("export const execute = () => ({given});\n"));
    let ran = project.run(&["run", file, "--agent", "custom:executor.mjs", "--report", "json=out.json"]);
    let report: Value = serde_json::from_str(&project.read("out.json")).unwrap_or_else(|_| panic!("{}", ran.output()));
    report["trials"][0]["outcome"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn the_quick_start_runs_with_a_command() {
    let project = project();
    project.write("executor.ts", EXECUTOR).write("my.fixture.ts", FIXTURES);
    project.run(&["run", "my.fixture.ts", "--agent", "custom:executor.ts"]).exits(0);
    project
        .write("reference.ts", REFERENCE_EXECUTOR)
        .write("trialrun.yaml", "fixtures: { userConfig: { model: big } }\n")
        .write("options.fixture.yaml", "script: my-script-id\n---\n- { input: Hi, output: big my-script-id Hi }\n");
    project.run(&["run", "options.fixture.yaml", "--agent", "custom:reference.ts"]).exits(0);
}

#[test]
fn every_example_is_read_unchanged() {
    let project = project();
    for (text, right, wrong) in examples() {
        project.write("weather.fixture.yaml", text);
        for (given, expected) in [(right, "passed"), (wrong, "failed")] {
            assert_eq!(outcome(&project, "weather.fixture.yaml", &given), expected, "{text}\n{given}");
        }
    }
}

#[test]
fn differences_are_as_documented() {
    let project = project();
    for (text, given, expected) in [
        // Both fields of one item must match.
        ("{output: {$contains: {a: 1, b: 2}}}", json!({"output": [{"a": 1}]}), "failed"),
        // Two operators next to each other must both hold.
        ("{output: {$gte: 1, $lte: 5}}", json!({"output": 3}), "passed"),
        ("{output: {$gte: 1, $lte: 5}}", json!({"output": 7}), "failed"),
        // A missing value is not the text `undefined`.
        ("{output: {a: /.+/}}", json!({"output": {}}), "failed"),
        // A single call, which @isdk/ai-test-runner drops.
        ("{expect: {tools: {name: mail}}}", json!({"output": "x", "messages": []}), "failed"),
        // Equality is deep.
        ("{output: {$eq: {a: [1]}}}", json!({"output": {"a": [1]}}), "passed"),
        // A penalty counts the same inside an operator: 40 of 100.
        (
            "{scoring: true, passScore: 41, output: {x: {$and: [[{$expect: 1, $score: -20}, 2]]}, y: 1}}",
            json!({"output": {"x": [1, 3], "y": 1}}),
            "failed",
        ),
        ("{output: {$sort: {$first: {a: 1}}}}", json!({"output": [{"a": 2}, {"a": 1}]}), "passed"),
        ("{output: {$schema: {type: number, multipleOf: 0.1}}}", json!({"output": 0.3}), "passed"),
        ("{output: {a: 1}, responseParser: json}", json!({"output": "{\"a\": 1}"}), "passed"),
        ("{title: nothing}", json!({"output": "x"}), "undecided"),
    ] {
        project.write("one.fixture.yaml", &format!("- {text}\n"));
        assert_eq!(outcome(&project, "one.fixture.yaml", &given), expected, "{text}");
    }
    for (text, problem) in [
        ("{output: '{{nmae}}', name: x}", "unknown variable `nmae`"),
        ("{expcet: {output: x}}", "did you mean `expect`?"),
        ("{output: '/(/'}", "invalid regular expression"),
        ("{output: {$schema: {type: number, minimum: {$data: 1/a}}}}", "`minimum` must be a number"),
    ] {
        project.write("one.fixture.yaml", &format!("- {text}\n"));
        let messages = project.run(&["check", "one.fixture.yaml"]).exits(2).err;
        assert!(messages.contains(problem), "{text}: {messages}");
    }
}
