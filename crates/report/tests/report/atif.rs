//! Trajectories in the Agent Trajectory Interchange Format.

use model::{Event, Step, ToolCall, ToolResult};
use report::ReporterOptions;
use serde_json::{Value, json};

use crate::run_builder::{RunBuilder, id, passed};
use crate::{Paper, plain};

#[test]
fn a_trial_is_written_as_a_trajectory_with_its_sub_agents() {
    let trial = id("asks", "codex:o/x", 1);
    let mut story = RunBuilder::new(vec![trial.clone()], 1);
    story.starts(&trial, &[]);
    story.step(Step::UserMessage { index: 1, of: 1, text: "Count".into() });
    story.step(Step::Text { message: "lost".into(), text: "an attempt that broke".into(), parent: None });
    story.tell(Event::TrialRetried { reason: "no network".into() });
    story.step(Step::UserMessage { index: 1, of: 1, text: "Count".into() });
    story.step(Step::Thinking { message: "m1".into(), text: "Hm".into(), parent: None });
    let call = |id: &str, name: &str, input: Value, message: &str| ToolCall::new(id, name, input, message);
    let mut shell = call("c1", "Bash", json!({"command": "ls"}), "m1");
    shell.raw_name = "exec_command".into();
    story.step(Step::ToolCall(shell));
    story.step(Step::ToolCall(call("c2", "Agent", json!("count"), "m1")));
    let mut below = call("c3", "Glob", Value::Null, "s1");
    below.parent = Some("c2".into());
    story.step(Step::ToolCall(below));
    let result = |id: &str, content: &str, is_error| ToolResult { id: id.into(), content: content.into(), is_error };
    story.step(Step::ToolResult(result("c3", "a", false)));
    story.step(Step::ToolResult(result("c1", "no", true)));
    story.step(Step::ToolResult(result("c2", "One", false)));
    story.step(Step::Text { message: "m2".into(), text: "One file".into(), parent: None });
    story.ends(passed(&trial)).over();

    let folder = tempfile::tempdir().unwrap();
    let mut options = ReporterOptions::new(Paper::default().writer(), plain());
    options.directory = Some(folder.path().to_owned());
    let mut reporter = report::find("atif").unwrap().to_stream(options).unwrap();
    story.events.iter().for_each(|event| reporter.event(event).unwrap());
    reporter.finish().unwrap();
    let text = std::fs::read_to_string(folder.path().join("asks@codex%3Ao%2Fx-1.json")).unwrap();
    let mut written: Value = serde_json::from_str(&text).unwrap();
    for step in written["steps"].as_array_mut().unwrap() {
        step.as_object_mut().unwrap().remove("timestamp");
    }
    assert_eq!(
        written["steps"],
        json!([
            {"step_id": 1, "source": "user", "message": "Count"},
            {
                "step_id": 2, "source": "agent", "message": "", "reasoning_content": "Hm",
                "tool_calls": [
                    {
                        "tool_call_id": "c1", "function_name": "Bash", "arguments": {"command": "ls"},
                        "extra": {"raw_name": "exec_command"},
                    },
                    {"tool_call_id": "c2", "function_name": "Agent", "arguments": {"input": "count"}},
                ],
                "observation": {"results": [
                    {"source_call_id": "c1", "content": "no", "extra": {"is_error": true}},
                    {"source_call_id": "c2", "content": "One", "subagent_trajectory_ref": [{"trajectory_id": "c2"}]},
                ]},
            },
            {"step_id": 3, "source": "agent", "message": "One file"},
        ])
    );
    let sub_agent = &written["subagent_trajectories"][0];
    assert_eq!((&sub_agent["trajectory_id"], &sub_agent["schema_version"]), (&json!("c2"), &json!("ATIF-v1.8")));
    assert_eq!(sub_agent["steps"][0]["tool_calls"][0]["arguments"], json!({}));
    assert_eq!(written["extra"]["trialrun"]["case"], "asks");
}
