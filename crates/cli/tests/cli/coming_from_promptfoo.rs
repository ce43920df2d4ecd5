//! Configurations of promptfoo, run where they are. Differences are listed in `docs/coming-from-promptfoo.md`; the
//! program itself is compared in `scripts/promptfoo`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};
use testkit::{Loopback, Project};

fn project(config: &Value) -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun"));
    project
        .write("promptfooconfig.json", &config.to_string())
        .write("shop/stock.txt", "tea\n")
        .write("bot.sh", "echo \"$1 | $3\"\n")
        .write("provider.js", "export default { callApi: async (prompt) => ({ output: `js ${prompt}` }) };\n");
    project
}

/// Returns the outcomes by case.
fn outcomes(report: &Value) -> Vec<(String, String)> {
    let trials = report["trials"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut outcomes: Vec<_> = trials.map(|trial| (text(&trial["case"]), text(&trial["outcome"]))).collect();
    outcomes.sort();
    outcomes
}

#[test]
fn each_provider_is_an_agent_and_an_error_of_a_server_breaks_its_trial() {
    let server = Loopback::answering(500, "{\"error\": \"down\"}");
    let http = json!({"id": "http", "label": "http", "config": {"url": server.url(), "body": {"q": "{{prompt}}"}}});
    let config = json!({
        "prompts": ["Say {{word}}."],
        "providers": [
            "echo", {"id": "exec:sh bot.sh", "label": "exec"}, {"id": "file://provider.js", "label": "js"}, http,
        ],
        "tests": [
            {"description": "hi", "vars": {"word": "hi"}, "assert": [
                {"type": "contains", "value": "Say {{word}}."},
                {"type": "javascript", "value": "output.length > context.vars.word.length"},
            ]},
            {"description": "scored", "providers": ["echo"], "vars": {"word": "hi"}, "threshold": 0.5, "assert": [
                {"type": "contains", "value": "hi", "metric": "greets"}, {"type": "contains", "value": "bye"},
                {"type": "similar", "value": "x", "weight": 0}, {"type": "classifier", "value": "x", "weight": 0},
            ]},
            {"description": "vars", "providers": ["exec"], "vars": {"word": "hi"}, "assert": [
                {"type": "contains", "value": "{\"vars\":{\"word\":\"hi\"}}"},
            ]},
            {"description": "fails", "providers": ["echo"], "vars": {"word": "hi"}, "assert": [
                {"type": "equals", "value": "bye"},
            ]},
            {"description": "nothing", "providers": ["echo"], "vars": {"word": "hi"}},
            {"description": "typo", "providers": ["echo"], "vars": {"word": "hi"}, "assert": [
                {"type": "contains", "valu": "hi"},
            ]},
        ],
    });
    let project = project(&config);
    let report = project.report(&["promptfooconfig.json"], 1);
    let expected = [
        ("fails [echo]", "failed"),
        ("hi [echo]", "passed"),
        ("hi [exec]", "passed"),
        ("hi [http]", "broken"),
        ("hi [js]", "passed"),
        ("nothing [echo]", "undecided"),
        ("scored [echo]", "passed"),
        ("typo [echo]", "broken"),
        ("vars [exec]", "passed"),
    ];
    let expected = expected.map(|(case, outcome)| (case.to_owned(), outcome.to_owned()));
    assert_eq!(outcomes(&report), expected);
    let checked = project.run(&["check", "promptfooconfig.json", "--format", "json"]).json();
    let keys = checked["coverage"][0]["keys"].as_array().unwrap();
    let undecided = keys.iter().find(|key| key["key"] == "tests[].assert[].type: classifier").unwrap();
    assert!(undecided["consequence"].as_str().unwrap().contains("hosted model"));
}

#[test]
#[cfg_attr(not(has = "python-packages"), ignore = "needs Python packages; run scripts/test")]
fn an_agent_of_the_run_replaces_the_providers_and_python_grades_in_a_copy_of_the_sandbox() {
    let config = json!({
        "prompts": ["!say hello {{word}}\n!call search {\"q\": 1}\n!write out.txt x"],
        "providers": [
            "openai:gpt-5", "bedrock:none", {"id": "anthropic:claude-agent-sdk", "config": {"working_dir": "shop"}},
        ],
        "tests": [{"vars": {"word": "you"}, "assert": [
            {"type": "python", "value": "output.startswith('hello') and open('out.txt').read().strip() == 'x'"},
            {"type": "python", "value": "open('stock.txt').read() == 'tea\\n'"},
            {"type": "python", "value": "file://check.py:Check.longer"},
            {"type": "trajectory:tool-used", "value": "search"},
            {"type": "not-trajectory:tool-used", "value": "delete"},
        ]}],
    });
    let project = project(&config);
    project.write(
        "check.py",
        "class Check:\n    @staticmethod\n    def longer(output, context):\n        return len(output) > 2\n",
    );
    let report = project.report(&["promptfooconfig.json", "--agent", "fake"], 0);
    assert_eq!(outcomes(&report), [("test 1".to_owned(), "passed".to_owned())]);
}
