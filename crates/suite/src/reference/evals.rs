//! Fields of `evals.json`.

use model::SideEffectLevel;
use serde_json::{Map, Value, json};

use super::{Block, Kind, block, document_schema, field, required};
use crate::format::{ASSERTION_KEYS, ASSERTION_TYPES, AssertionType};

fn levels() -> Vec<&'static str> {
    SideEffectLevel::ALL.iter().map(|(name, _)| *name).collect()
}

fn types() -> Vec<&'static str> {
    ASSERTION_TYPES.iter().map(|one| one.name).collect()
}

pub(super) static EVALS: Block = block(
    "evals",
    "The cases of one skill or sub-agent.",
    &[
        field("$schema", Kind::Text, "JSON Schema of the file, for editors."),
        field(
            "skill_name",
            Kind::Text,
            "Name of the skill to evaluate. Either this key or `subagent_name` is required.",
        ),
        field("subagent_name", Kind::Text, "Name of the sub-agent to evaluate."),
        field("agent", Kind::Text, "Agent to run, such as `claude-code`. `--agent` overrides it."),
        required("evals", Kind::List(&CASE), "Cases."),
    ],
);

static CASE: Block = block(
    "case",
    "One case.",
    &[
        required(
            "id",
            Kind::TextOrWhole,
            "Id, unique in the suite, without `/` and `..`. `1` and `\"1\"` are the same id.",
        ),
        required("prompt", Kind::Text, "Message of the user, sent as it is written."),
        required("expected_output", Kind::AnyText, "Description of a good answer, for judges."),
        field("files", Kind::Texts, "Files and folders in the agent's working directory, see below."),
        field("stage_files", Kind::Flag, "Stage the files. Default: they are untracked."),
        field("commit_files", Kind::Flag, "Commit the files. Cannot be combined with `stage_files`."),
        field(
            "assertions",
            Kind::TextsOrMaps(&ASSERTION),
            "Assertions about the trial: sentences, which are checked directly where possible and by a judge \
             otherwise, or maps.",
        ),
        field(
            "should_trigger",
            Kind::Flag,
            "`false` if the agent should not use the skill. Using it then fails the trial, and sentences about \
             branches, commits, pushes and review requests describe what must not happen. Default: `true`.",
        ),
        field(
            "force_skill_invocation",
            Kind::Flag,
            "In the arm with the skill, start the prompt with `Use the $NAME skill. `. Cannot be combined with \
             `should_trigger: false`.",
        ),
        field(
            "side_effect_level",
            Kind::OneOf(levels),
            "Side effects of the case: it only reads, changes only its sandbox, uses services without changing \
             them, or changes what others can see. Default: `local-only`.",
        ),
        field("side_effect_contract", Kind::Map(&CONTRACT), "Changes that the agent can leave behind."),
    ],
);

static ASSERTION: Block = block(
    "assertion",
    "An assertion about the trial. Its type determines its keys, see below.",
    &[
        required("type", Kind::OneOf(types), "Type of the assertion."),
        field("text", Kind::Text, "Title in reports."),
        field("path", Kind::Text, "File, relative to the agent's working directory."),
        field("contains", Kind::Text, "Text to find, ignoring case."),
        field("command", Kind::Text, "Part of a command line."),
        field("json_path", Kind::Text, "Keys and list positions, separated by dots, such as `items.0.name`."),
        field("equals", Kind::Any, "Expected value, which can be `null`. Default: any value."),
    ],
);

static CONTRACT: Block = block(
    "contract",
    "Changes that the agent can leave behind. Each is allowed by default.",
    &[
        field("allow_new_local_branches", Kind::Flag, "Allow new local branches."),
        field("allow_new_remote_branches", Kind::Flag, "Allow new branches on remotes."),
        field("allow_new_commits", Kind::Flag, "Allow new commits."),
        field("allow_new_review_requests", Kind::Flag, "Allow new pull requests and merge requests."),
        field("allow_worktree_changes", Kind::Flag, "Allow files to be added, changed or deleted."),
    ],
);

/// Every block but the outermost one.
pub(super) static BLOCKS: [&Block; 3] = [&CASE, &ASSERTION, &CONTRACT];

/// Table of the types of assertions.
pub(super) fn assertion_types() -> String {
    let row = |one: &AssertionType| format!("| `{}` | {} | {} |\n", one.name, keys(one), one.about);
    let rows: String = ASSERTION_TYPES.iter().map(row).collect();
    format!("| type | keys | meaning |\n| --- | --- | --- |\n{rows}")
}

/// The keys of a type in words.
fn keys(one: &AssertionType) -> String {
    let needs = one.needs.iter().map(|key| format!("`{key}`"));
    let may = one.may.iter().map(|key| format!("`{key}` (optional)"));
    let keys: Vec<String> = needs.chain(may).collect();
    if keys.is_empty() { "none".to_owned() } else { keys.join("; ") }
}

/// The draft that this format was always described in.
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A JSON Schema for `evals.json`, for editors and checkers.
pub fn evals_schema() -> Value {
    let mut schema = Value::Object(document_schema(&EVALS));
    at(&mut schema, "/definitions/case/properties/id", |id| {
        let refused = json!({ "anyOf": [{ "const": "." }, { "pattern": r"\.\." }] });
        let text = json!({ "type": "string", "minLength": 1, "pattern": ID, "not": refused });
        id.insert("anyOf".to_owned(), json!([text, { "type": "integer" }]));
    });
    at(&mut schema, "/definitions/case/properties/prompt", |prompt| {
        prompt.insert("pattern".to_owned(), json!("\\S"));
    });
    at(&mut schema, "/definitions/case", |case| {
        let both = |one: &str, is: bool, other: &str| {
            json!({ "not": {
                "properties": { one: { "const": is }, other: { "const": true } }, "required": [one, other]
            } })
        };
        let contradictions =
            [both("should_trigger", false, "force_skill_invocation"), both("stage_files", true, "commit_files")];
        case.insert("allOf".to_owned(), json!(contradictions));
    });
    at(&mut schema, "/definitions/assertion", |assertion| {
        let types: Vec<Value> = ASSERTION_TYPES.iter().map(needed).collect();
        assertion.insert("allOf".to_owned(), Value::Array(types));
    });
    if let Value::Object(schema) = &mut schema {
        schema.insert("$schema".to_owned(), json!(DRAFT));
        let definitions = schema.remove("definitions").unwrap_or_default();
        schema.insert("$defs".to_owned(), definitions);
    }
    refer_to_defs(&mut schema);
    schema
}

/// Pattern of an id that is a string, without its dots.
const ID: &str = r"^[^\s/\\\u0000-\u001f]([^/\\\u0000-\u001f]*[^\s/\\\u0000-\u001f])?$";

fn at(schema: &mut Value, pointer: &str, change: impl FnOnce(&mut Map<String, Value>)) {
    if let Some(part) = schema.pointer_mut(pointer).and_then(Value::as_object_mut) {
        change(part);
    }
}

/// That an assertion of this type has the keys it needs, and no other than it may have.
fn needed(one: &AssertionType) -> Value {
    let known = |key: &&str| ["type", "text"].contains(key) || one.needs.contains(key) || one.may.contains(key);
    let needless = ASSERTION_KEYS.iter().filter(|key| !known(key));
    let needless: Map<String, Value> = needless.map(|key| ((*key).to_owned(), Value::Bool(false))).collect();
    json!({
        "if": { "properties": { "type": { "const": one.name } }, "required": ["type"] },
        "then": { "required": one.needs, "properties": needless },
    })
}

/// In this draft, definitions are called `$defs`.
fn refer_to_defs(schema: &mut Value) {
    match schema {
        Value::Object(entries) => {
            for (key, value) in entries.iter_mut() {
                match value {
                    Value::String(reference) if key == "$ref" => {
                        *reference = reference.replacen("#/definitions/", "#/$defs/", 1);
                    }
                    other => refer_to_defs(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(refer_to_defs),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Loaded, Request, load};

    fn loaded(text: &str) -> Loaded {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let skill = root.join("skills/release-notes");
        std::fs::create_dir_all(skill.join("evals/files")).unwrap();
        std::fs::write(skill.join("SKILL.md"), "---\nname: release-notes\ndescription: d\n---\n").unwrap();
        std::fs::write(skill.join("evals/files/commits.txt"), "a\n").unwrap();
        std::fs::write(skill.join("evals/evals.json"), text).unwrap();
        load(&Request {
            root: root.to_owned(),
            skills_dir: root.join("skills"),
            cwd: root.to_owned(),
            ..Request::default()
        })
    }

    #[test]
    fn the_tables_hold_exactly_the_keys_that_are_read() {
        let case = |rest: &str| format!(r#"{{"skill_name": "release-notes", "evals": [{{{rest}}}]}}"#);
        for (block, text) in [
            (&EVALS, r#"{"skill_name": "release-notes", "evals": [], "0000": 1}"#.to_owned()),
            (&CASE, case(r#""0000": 1"#)),
            (&ASSERTION, case(r#""assertions": [{"type": "git_clean", "0000": 1}]"#)),
            (&CONTRACT, case(r#""side_effect_contract": {"0000": 1}"#)),
        ] {
            let diagnostics = loaded(&text).diagnostics;
            let unknown = diagnostics.iter().find(|problem| problem.message.starts_with("unknown key `0000`"));
            let help = unknown.unwrap_or_else(|| panic!("{text}: {diagnostics:#?}")).help.join("\n");
            let mut read: Vec<&str> = help.trim_start_matches("known keys: ").split(", ").collect();
            let mut told: Vec<&str> = block.fields.iter().map(|field| field.key).collect();
            read.sort_unstable();
            told.sort_unstable();
            assert_eq!(read, told, "{}", block.name);
        }
        let told: Vec<&str> = ASSERTION.fields.iter().map(|field| field.key).collect();
        assert_eq!(told, ASSERTION_KEYS);
    }

    #[test]
    fn the_example_loads() {
        let page = include_str!("../../../../docs/reference/evals.md");
        let loaded = loaded(super::super::tests::example(page));
        assert_eq!(loaded.diagnostics, []);
        assert_eq!((loaded.suites[0].format, loaded.suites[0].cases.len()), ("evals", 2));
    }

    #[test]
    fn every_reference_in_the_schema_is_defined() {
        let schema = evals_schema();
        assert_eq!((&schema["$schema"], &schema["title"]), (&json!(DRAFT), &json!("evals")));
        let text = schema.to_string();
        assert!(!text.contains("#/definitions/"));
        for reference in text.split("#/$defs/").skip(1) {
            let name = &reference[..reference.find('"').unwrap()];
            assert!(schema["$defs"][name]["properties"].is_object(), "{name}");
        }
        assert_eq!(schema["$defs"]["case"]["required"], json!(["id", "prompt", "expected_output"]));
        let first = &schema["$defs"]["assertion"]["allOf"][0];
        assert_eq!(first["then"]["required"], json!(["path"]));
        assert_eq!(first["then"]["properties"]["command"], json!(false));
    }
}
