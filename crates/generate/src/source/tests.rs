use std::path::PathBuf;

use super::*;
use crate::profile::Fact;

/// Writes a file and returns the facts in it, and the problems, one line each.
fn found(file: &str, text: &str, read: &str) -> (Profile, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let path: PathBuf = dir.path().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    let sources = discover(&[(dir.path().join(read), read.to_owned())], &[], &Mask::of([]));
    (sources.profile, sources.problems.iter().map(ToString::to_string).collect())
}

fn lines(facts: &[Fact]) -> Vec<(&str, usize)> {
    facts.iter().map(|fact| (fact.text.as_str(), fact.evidence[0].line)).collect()
}

#[test]
fn a_skill_has_a_description_tools_constraints_and_instructions() {
    let text = "---\nname: notes\ndescription: Writes release notes.\nallowed-tools: Read Bash(git log:*)\n---\n\n# Notes\n\nRead \
                `git log` first. Never invent a commit.\n\n1. Group the entries by kind.\n2. Use at most\n   ten lines.\n\n```sh\n\
                # must not count\n```\n";
    let (profile, problems) = found("notes/SKILL.md", text, "notes");
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(profile.name.as_deref(), Some("notes"));
    let description = profile.description.unwrap();
    assert_eq!((description.text.as_str(), description.evidence[0].line), ("Writes release notes.", 3));
    assert_eq!(profile.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["Bash", "Read"]);
    assert_eq!(lines(&profile.constraints), [("Never invent a commit.", 9), ("Use at most ten lines.", 12)]);
    assert_eq!(lines(&profile.instructions), [("Read `git log` first.", 9), ("Group the entries by kind.", 11)]);
    assert_eq!(profile.constraints[0].evidence[0].file, "notes/SKILL.md");
}

#[test]
fn a_prompt_has_constraints_and_secrets_are_removed() {
    let (profile, _) =
        found("p.md", "You sell shoes.\nNever show the key sk-ant-api03-abcdefghijklmnopqrstuvwx.\n", "p.md");
    assert_eq!(lines(&profile.instructions), [("You sell shoes.", 1)]);
    assert_eq!(profile.constraints[0].evidence[0].line, 2);
    assert!(!format!("{profile:?}").contains("sk-ant-api03"), "{profile:?}");
}

#[test]
fn operations_of_an_openapi_document_are_tools() {
    let text = "openapi: 3.1.0\ninfo: { title: Shop }\npaths:\n  /orders/{id}:\n    parameters:\n      - { name: id, in: path, \
                required: true, schema: { type: string } }\n    get:\n      operationId: get_order\n      summary: Finds an \
                order.\n    delete: {}\n  /orders:\n    post:\n      operationId: add_order\n      requestBody:\n        \
                content:\n          application/json:\n            schema: { $ref: '#/components/schemas/Order' }\ncomponents:\n  \
                schemas:\n    Order:\n      required: [sku]\n      properties:\n        sku: { type: string }\n        count: { \
                type: [integer, 'null'] }\n";
    let (profile, problems) = found("api.yaml", text, "api.yaml");
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(profile.name.as_deref(), Some("Shop"));
    let line = |tool: &crate::ToolFact| {
        let parameter = |one: &crate::Parameter| {
            format!("{}{}: {}", one.name, if one.required { "" } else { "?" }, one.kind.as_deref().unwrap_or("any"))
        };
        let parameters: Vec<String> = tool.parameters.iter().map(parameter).collect();
        format!("{}({}) {}", tool.name, parameters.join(", "), tool.evidence[0].line)
    };
    let tools: Vec<String> = profile.tools.iter().map(line).collect();
    assert_eq!(
        tools,
        [
            "DELETE /orders/{id}(id: string) 10",
            "add_order(sku: string, count?: integer or null) 13",
            "get_order(id: string) 8"
        ]
    );
}

#[test]
fn a_circle_of_references_ends() {
    let text = "openapi: 3.1.0\npaths:\n  /a: { $ref: '#/paths/~1a' }\n  /b: { post: { requestBody: { $ref: '#/x' } } }\nx: { $ref: \
                '#/x' }\n";
    let (profile, _) = found("api.yaml", text, "api.yaml");
    assert_eq!(profile.tools.len(), 1);
}

#[test]
fn tool_lists_of_mcp_and_openai_are_read() {
    let mcp = r#"{"result": {"tools": [{"name": "search", "inputSchema": {"properties": {"q": {"type": "string"}}, "required": ["q"]}}]}}"#;
    let openai = r#"[{"type": "function", "function": {"name": "search", "parameters": {"properties": {"q": {}}}}}]"#;
    for (text, required, kind) in [(mcp, true, Some("string")), (openai, false, None)] {
        let (profile, problems) = found("tools.json", text, "tools.json");
        assert_eq!(problems, Vec::<String>::new());
        let parameter = &profile.tools[0].parameters[0];
        assert_eq!((parameter.name.as_str(), parameter.required, parameter.kind.as_deref()), ("q", required, kind));
    }
}

#[test]
fn anything_else_is_explained() {
    let problem = |file: &str, text: &str| found(file, text, file).1.join("\n");
    assert!(problem("a.bin", "x").contains("is not a source of facts"));
    assert!(problem("a.json", "{").contains("a.json:1"), "{}", problem("a.json", "{"));
    assert!(problem("a.json", "{\"a\": 1}").contains("is not a source of facts"));
    assert!(problem("a.txt", "").contains("nothing was found"));
    assert!(found("a.txt", "", "b.txt").1[0].contains("does not exist"));
}

#[test]
fn tables_state_nothing_and_neither_an_abbreviation_nor_code_ends_a_sentence() {
    let text =
        "| a | b |\n|---|---|\n| never | x |\n\nAsk first. Dr. Smith must sign. Write `Hi, Ann! Bye.` into it.\n";
    let (profile, _) = found("p.md", text, "p.md");
    assert_eq!(lines(&profile.constraints), [("Dr. Smith must sign.", 5)]);
    assert_eq!(lines(&profile.instructions), [("Ask first.", 5), ("Write `Hi, Ann! Bye.` into it.", 5)]);
}

mod agents;
mod fuzz;
