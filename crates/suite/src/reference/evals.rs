//! What may be written in an `evals.json`.

use std::fmt::Write as _;

use model::SideEffectLevel;
use serde_json::{Map, Value, json};

use super::{Block, Kind, document_schema, field, required};
use crate::format::{ASSERTION_KEYS, ASSERTION_TYPES, AssertionType};

fn levels() -> Vec<&'static str> {
    SideEffectLevel::ALL.iter().map(|(name, _)| *name).collect()
}

fn types() -> Vec<&'static str> {
    ASSERTION_TYPES.iter().map(|one| one.name).collect()
}

static EVALS: Block = Block {
    name: "evals",
    about: "The cases of one skill.",
    open: false,
    either_case: false,
    fields: &[
        field("$schema", Kind::Text, "Where an editor finds the schema of the file."),
        field(
            "skill_name",
            Kind::Text,
            "The skill that is put to the test, by its name. Every suite has this or the next key.",
        ),
        field("subagent_name", Kind::Text, "The sub-agent that is put to the test, by its name."),
        field("agent", Kind::Text, "The agent that runs the cases unless `--agent` names one, such as `claude-code`."),
        required("evals", Kind::List(&CASE), "The cases."),
    ],
};

static CASE: Block = Block {
    name: "case",
    about: "One case.",
    open: false,
    either_case: false,
    fields: &[
        required(
            "id",
            Kind::TextOrWhole,
            "Its id, unique in the suite; `1` and `\"1\"` are the same. No `/`, no `..`.",
        ),
        required("prompt", Kind::Text, "What the user says, sent as it is written."),
        required("expected_output", Kind::AnyText, "What a good answer comes to, for a judge to compare with."),
        field("files", Kind::Texts, "Files and directories that lie where the agent works, see below."),
        field("stage_files", Kind::Flag, "The files are added to git's index. Not written: they are untracked."),
        field("commit_files", Kind::Flag, "The files are committed. Not together with `stage_files`."),
        field(
            "assertions",
            Kind::TextsOrMaps(&ASSERTION),
            "What must hold afterwards: sentences, of which those that can be looked at are, and the rest is up to a judge; \
             or maps that leave nothing open.",
        ),
        field(
            "should_trigger",
            Kind::Flag,
            "Whether the agent is to use the skill. If not, its use is a failure, and what is said about branches, commits, \
             pushes and review requests must not have happened. Not written: `true`.",
        ),
        field(
            "force_skill_invocation",
            Kind::Flag,
            "Where the skill is installed, the prompt starts with `Use the $NAME skill. `. Not together with \
             `should_trigger: false`.",
        ),
        field(
            "side_effect_level",
            Kind::OneOf(levels),
            "How far the case reaches out: it only reads, changes only its sandbox, reaches services without harm, or changes \
             what others see. Not written: `local-only`.",
        ),
        field("side_effect_contract", Kind::Map(&CONTRACT), "What the agent may leave behind."),
    ],
};

static ASSERTION: Block = Block {
    name: "assertion",
    about: "Something that must hold after the trial. Which keys it has depends on its type, see below.",
    open: false,
    either_case: false,
    fields: &[
        required("type", Kind::OneOf(types), "What is asserted."),
        field("text", Kind::Text, "What people call it."),
        field("path", Kind::Text, "A file, relative to where the agent works."),
        field("contains", Kind::Text, "A text, in upper or lower case."),
        field("command", Kind::Text, "A part of a command line."),
        field("json_path", Kind::Text, "Keys and positions in lists with dots between them, such as `items.0.name`."),
        field("equals", Kind::Any, "What the value must be, `null` included. Not written: anything."),
    ],
};

static CONTRACT: Block = Block {
    name: "contract",
    about: "What the agent may leave behind. What is not written is allowed.",
    open: false,
    either_case: false,
    fields: &[
        field("allow_new_local_branches", Kind::Flag, "Branches here."),
        field("allow_new_remote_branches", Kind::Flag, "Branches on a remote."),
        field("allow_new_commits", Kind::Flag, "Commits."),
        field("allow_new_review_requests", Kind::Flag, "Pull requests and merge requests."),
        field(
            "allow_worktree_changes",
            Kind::Flag,
            "Files that are added, changed or gone, compared with those that were there when the agent started.",
        ),
    ],
};

/// A suite that shows how one looks.
const EXAMPLE: &str = r#"{
  "skill_name": "release-notes",
  "evals": [
    {
      "id": "from-a-log",
      "prompt": "Write release notes for the commits in commits.txt.",
      "expected_output": "A RELEASE_NOTES.md with the changes by type, and what breaks at the top.",
      "files": ["files/commits.txt"],
      "assertions": [
        "The file `RELEASE_NOTES.md` exists",
        "What breaks is easy to find",
        { "type": "file_unchanged", "path": "commits.txt" }
      ]
    },
    {
      "id": "only-a-question",
      "prompt": "How many commits are in commits.txt?",
      "expected_output": "A number.",
      "files": ["files/commits.txt"],
      "should_trigger": false,
      "assertions": ["A git commit was created"],
      "side_effect_contract": { "allow_worktree_changes": false }
    }
  ]
}
"#;

const PLACES: &str = "\
## Where the suite and its skill are

A suite is a file `evals.json`, most of all `evals/evals.json` in the directory of its skill, of which it never becomes a \
part: neither `evals` nor `tests` is installed, and neither is part of the skill's hash.

| what is typed | which suites | which skill |
| --- | --- | --- |
| `run --skill DIR --evals FILE` | the file | the one in `DIR` |
| `run --skill DIR` | `DIR/evals/evals.json` | the one in `DIR` |
| `run --evals FILE`, `run FILE` | the file | see below |
| `run skills/`, `run DIR` | those of all skills in the folder; else each `evals.json` below it | see below |
| `run` | those of the project's skills, `examples/*/evals/evals.json` and `*/evals/evals.json` | see below |

Unless it is named, the skill is the one in whose directory `evals/evals.json` lies, and else the one that is called \
`skill_name` in a folder `skills` above the suite, or in the project's folder of skills: `examples/NAME/evals/evals.json` \
belongs to `skills/NAME/SKILL.md`. `skill_name` must be the skill's name in any case.

A suite is called like its skill, and `NAME/evals` where the skill or the project has other tests of that name. Several \
suites of one skill are called by their folders. What a suite is called does not depend on what is typed.

`\"agent\"` in a suite names the agent that runs it, whatever the project's default is. An agent that reads no skills \
from files, such as a bot behind HTTP, would be the same with and without one: a suite that names no agent is then skipped, \
with a warning, and the other tests run.

`\"subagent_name\"` in the place of `\"skill_name\"` puts a sub-agent to the test: the file `NAME.md` in a folder `agents` above the \
suite, or the one that `--skill FILE` names. It is installed in one arm and not in the other, and counts as used when the agent \
hands it a task. Claude Code and OpenCode have such files. The suite of a project's own sub-agent lies in \
`agents/NAME/evals/evals.json`.
";

const FILES: &str = "\
## Where the files lie in the sandbox

Paths start at the folder of `evals.json` and stay in it. A leading `files/` is taken away; if then all that lies in folders \
lies in one and the same, that is taken away, too. A directory is copied with all that is in it, and keeps its own name.

| `files` | in the sandbox |
| --- | --- |
| `files/a.txt` | `a.txt` |
| `files/case-1/a.txt`, `files/case-1/src/b.txt` | `a.txt`, `src/b.txt` |
| `files/one/a.txt`, `files/two/a.txt` | `one/a.txt`, `two/a.txt` |
| `files/src` (a directory with `b.txt`) | `src/b.txt` |
| `files/case-1/src` (the same) | `src/b.txt` |
| `files` (a directory with both) | `a.txt`, `src/b.txt` |

Two files in one place are an error, as is a file where git or the skill is. The sandbox is a git repository with one commit; \
files are untracked unless `stage_files` or `commit_files` says otherwise.
";

/// The reference of suites of skills in Markdown.
pub fn evals_reference() -> String {
    let mut text = String::from(
        "# Suites of skills: `evals.json`\n\n<!-- Generated by `trialrun reference --write`; do not edit. -->\n\n",
    );
    text.push_str(
        "Whether a skill makes an agent better: every case runs with the skill installed, and without it. The skill is \
         only installed; its text never gets into a prompt, so that whether it is used is up to the agent. Keys are \
         checked: one that nobody knows is an error.\n",
    );
    // Writing to a string cannot fail.
    let _ = write!(text, "\n{PLACES}\n## An example\n\n```json\n{EXAMPLE}```\n");
    EVALS.write("The suite", &mut text);
    CASE.write("An item of `evals`", &mut text);
    let _ = write!(text, "\n{FILES}");
    ASSERTION.write("An item of `assertions` that is a map", &mut text);
    let _ = write!(text, "\n| type | keys | |\n| --- | --- | --- |\n");
    for one in &ASSERTION_TYPES {
        let _ = writeln!(text, "| `{}` | {} | {} |", one.name, keys(one), one.about);
    }
    CONTRACT.write("`side_effect_contract`", &mut text);
    text.push_str(
        "\n## Design\n\n`trialrun check --strict` also tells what a suite cannot show as it is made: that everything is up to \
         a judge, that there is no negative control, that in no case the agent finds the skill by itself, that no case stays \
         on this machine.\n",
    );
    text
}

/// The keys of a type in words.
fn keys(one: &AssertionType) -> String {
    let needs = one.needs.iter().map(|key| format!("`{key}`"));
    let may = one.may.iter().map(|key| format!("`{key}`, if you like"));
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

/// What an id that is a text looks like, but for its dots.
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
    fn the_example_loads_and_the_page_is_right() {
        let loaded = loaded(EXAMPLE);
        assert_eq!(loaded.diagnostics, []);
        assert_eq!((loaded.suites[0].format, loaded.suites[0].cases.len()), ("evals", 2));
        let page = evals_reference();
        for block in [&EVALS, &CASE, &ASSERTION, &CONTRACT] {
            assert!(block.fields.iter().all(|field| page.contains(&format!("| `{}` |", field.key))), "{}", block.name);
        }
        assert!(ASSERTION_TYPES.iter().all(|one| page.contains(&format!("| `{}` |", one.name))));
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
