//! What may be written in a scenario and in a configuration, once, as a table: the reference and the editor schemas
//! are made from it, and a test holds it against what the readers know.

use std::fmt::Write as _;

use model::{PermissionMode, SettingSource};
use serde_json::{Map, Value, json};

use crate::format::{OPENING, SECTION_FIELDS, run};

mod config;
mod conversation;
mod evals;
mod fixtures;

use config::CONFIG;

pub use config::config_reference;
pub use conversation::{conversation_reference, conversation_schema};
pub use evals::{evals_reference, evals_schema};
pub use fixtures::{fixture_schema, fixtures_reference};

/// A map with known keys.
struct Block {
    /// What it is called in the reference and in a schema's definitions.
    name: &'static str,
    /// What it is for.
    about: &'static str,
    fields: &'static [Field],
    /// Whether it may hold keys that are not listed.
    open: bool,
    /// Whether keys of several words may be written in snake case and in camel case.
    either_case: bool,
}

/// A key and what belongs under it.
struct Field {
    key: &'static str,
    kind: Kind,
    required: bool,
    about: &'static str,
}

/// The shape of a value.
enum Kind {
    /// Text that is not empty.
    Text,
    /// Text, also empty.
    AnyText,
    TextOrWhole,
    Texts,
    TextOrTexts,
    TextMap,
    Flag,
    /// A whole number of at least this.
    Whole(u64),
    /// A number above zero.
    Positive,
    Duration,
    OneOf(fn() -> Vec<&'static str>),
    SomeOf(fn() -> Vec<&'static str>),
    Map(&'static Block),
    /// A map of names to maps.
    Maps(&'static Block),
    TextOrMap(&'static Block),
    TextsOrMaps(&'static Block),
    /// Entries whose schema is grading's: the block is for the page.
    Assertions(&'static Block),
    FlagOrText,
    /// Whatever YAML can say.
    Any,
    List(&'static Block),
    /// A number from the first to the second.
    Between(f64, f64),
    /// The section of fixtures files, which has a table of its own.
    FixtureSection,
}

const fn field(key: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { key, kind, required: false, about }
}

const fn required(key: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { key, kind, required: true, about }
}

fn modes() -> Vec<&'static str> {
    PermissionMode::ALL.iter().map(|(name, _)| *name).collect()
}

fn sources() -> Vec<&'static str> {
    SettingSource::ALL.iter().map(|(name, _)| *name).collect()
}

static SCENARIO: Block = Block {
    name: "scenario",
    about: "One case in one file. Exactly one of `skill`, `system_prompt` and `system_prompt_file` says what is put to the test.",
    open: false,
    either_case: false,
    fields: &[
        required("scenario", Kind::Text, "The case's id, unique among the tests of a skill."),
        field("description", Kind::AnyText, "A note for people."),
        field("tags", Kind::Texts, "For selection on the command line."),
        field(
            "skill",
            Kind::Text,
            "The skill to test, by the name of its directory. It is installed in the sandbox and its body added to the system prompt.",
        ),
        field("system_prompt", Kind::Text, "A prompt to test, added to the agent's own."),
        field("system_prompt_file", Kind::Text, "The same from a file; the path starts at the scenario's directory."),
        field(
            "argument",
            Kind::AnyText,
            "What the skill is to be run on; added to the first message. Of a prompt it is the first message.",
        ),
        field("user_prompt", Kind::Text, "The first message, sent as it is, instead of the usual one."),
        field(
            "user_prompts",
            Kind::Texts,
            "Several messages, sent one after the other in one session. Not together with `user_prompt`.",
        ),
        field(
            "max_turns",
            Kind::Whole(1),
            "The most model turns over all messages. Not written: no limit, and a warning above 40 turns.",
        ),
        field(
            "token_budget",
            Kind::Positive,
            "The most tokens a trial may use, of every kind. Goes before the skill's own `token-budget`.",
        ),
        field("token-budget", Kind::Positive, "Another spelling of `token_budget`."),
        field("timeout", Kind::Duration, "Wall clock for one trial."),
        field("trials", Kind::Whole(1), "How often the case is repeated."),
        field("agent", Kind::Text, "The agent to run, such as `claude-code` or `chat`."),
        field(
            "model",
            Kind::Text,
            "The model to run it on, or `scripted:FILE` with a path that starts at the scenario's directory.",
        ),
        field("runner", Kind::Map(&RUNNER), "How the agent is run."),
        field("fixtures", Kind::Map(&FIXTURES), "What the sandbox holds before the agent starts."),
        field(
            "user_responses",
            Kind::List(&USER_RESPONSE),
            "Answers to the agent's questions. Each is used once, by the first question it matches.",
        ),
        field("assertions", Kind::Assertions(&ASSERTION), "What must hold afterwards."),
    ],
};

static RUNNER: Block = Block {
    name: "runner",
    about: "How the agent is run.",
    open: false,
    either_case: false,
    fields: &[
        field("runtime", Kind::Text, "The agent; `claude` means `claude-code`."),
        field("agent", Kind::Text, "Another name for `runtime`."),
        field("model", Kind::Text, "The model, or `scripted:FILE`."),
        field(
            "permission_mode",
            Kind::OneOf(modes),
            "How the agent treats permissions. Not written: `bypassPermissions`.",
        ),
        field(
            "allowed_tools_override",
            Kind::Texts,
            "The only tools the agent is to have, instead of the skill's `allowed-tools`.",
        ),
        field(
            "setting_sources",
            Kind::SomeOf(sources),
            "Which of the machine's own settings the agent may read. Not written: none.",
        ),
        field(
            "reasoning_effort",
            Kind::Text,
            "How hard the model is to think, in the agent's words, such as `low` or `high`.",
        ),
    ],
};

static FIXTURES: Block = Block {
    name: "fixtures",
    about: "What the sandbox holds before the agent starts. A `_fixtures.yaml` is a map of names to such blocks.",
    open: false,
    either_case: false,
    fields: &[
        field(
            "extends",
            Kind::TextOrTexts,
            "Blocks of the nearest `_fixtures.yaml` to start from. Lists are added to theirs, other fields replace theirs.",
        ),
        field("git_init", Kind::Flag, "Make the sandbox a git repository with a commit."),
        field("git_branch", Kind::Text, "The branch to be on after that commit. Not written: `main`."),
        field("copy_trees", Kind::List(&COPY_TREE), "Directories whose contents are copied in first."),
        field("files_committed", Kind::List(&FILE), "Files of the commit."),
        field("files_staged", Kind::List(&FILE), "Files added to the index after it."),
        field("files_unstaged", Kind::List(&FILE), "Files left untracked."),
        field("setup_commands", Kind::Texts, "Shell commands run in the finished sandbox, in order."),
        field(
            "env",
            Kind::TextMap,
            "Variables for the setup commands and the agent. Values of names such as `API_KEY` or `DB_PASSWORD` are masked in records and reports; assertions see the text as it was.",
        ),
    ],
};

static COPY_TREE: Block = Block {
    name: "copy_tree",
    about: "A directory whose contents are copied into the sandbox.",
    open: false,
    either_case: false,
    fields: &[
        required("from", Kind::Text, "The directory; the path starts at this file's directory."),
        field("to", Kind::AnyText, "Where its contents go, relative to the sandbox. Not written: its root."),
    ],
};

static FILE: Block = Block {
    name: "file",
    about: "A file of the sandbox. With neither `content` nor `content_from` it is empty.",
    open: false,
    either_case: false,
    fields: &[
        required("path", Kind::Text, "Where it is, relative to the sandbox and inside of it."),
        field("content", Kind::AnyText, "What is in it."),
        field("content_from", Kind::Text, "A file to copy, byte for byte; the path starts at this file's directory."),
    ],
};

static USER_RESPONSE: Block = Block {
    name: "user_response",
    about: "An answer to a question of the agent.",
    open: false,
    either_case: false,
    fields: &[
        required("match_question", Kind::Text, "A regular expression over the question's text."),
        required("choose", Kind::Text, "The label of the option to choose, or free text."),
    ],
};

static ASSERTION: Block = Block {
    name: "assertion",
    about: "Something that must hold after the trial: a `type` with its fields beside it, or the type as the only key beside these, with the field that matters most or a map of its fields under it, such as `contains: 30 days`. A text alone is a type that needs no argument. The types and their fields are told under [assertions](assertions.md).",
    open: true,
    either_case: false,
    fields: &[
        field(
            "id",
            Kind::Text,
            "Its name in reports, unique within the case. In a scenario an entry with a `type` must have one. Not written: the type and a number, such as `contains-2`.",
        ),
        field("type", Kind::Text, "What is asserted, such as `tool_called`."),
        field("weight", Kind::Positive, "Its share of the score. Not written: 1."),
        field("title", Kind::Text, "What people call it."),
    ],
};

/// Where suites are, and what they are called.
const PLACES: &str = "\
## Where files are looked for

Without arguments, `run` and `check` read

- `skills/*/tests/*.yaml`: the tests of every skill, that is, of every directory below `skills_dir` with a `SKILL.md`. A \
  directory that has tests but no `SKILL.md` is an error.
- `scenarios/*.yaml` in the project's root directory: scenarios that belong to no skill.
- the folder `tests` in the project's root directory, or the one that the [configuration](configuration.md) names, with \
  all that is below it. What is no suite is passed over there.
- `skills/*/evals/evals.json`, `examples/*/evals/evals.json` and `*/evals/evals.json`: [the suites of \
  skills](evals.md), which ask whether a skill is of use.

[Fixtures files](fixtures.md), which hold many cases, are read from the first three places. Every other file directly in the \
first two must be a scenario. Files end with `.yaml` or `.yml`; one whose name starts with `_` is \
passed over, such as `_fixtures.yaml`. Scripts of models belong into a folder beside the scenarios, such as \
`tests/models/` or `scenarios/models/`. Folders in `scenarios` are searched for scenarios, too; those in `tests` are not.

On the command line, a skill is named by its name, a file or a directory by its path. A file that is named must be a \
scenario and may also end with `.json`. A directory is searched for scenarios with all that is below it, of skills only their tests. \
What is no scenario is passed over; a file that nearly is one, such as by a mistyped `scenario`, is an error. Folders that start with `.`, \
`fixtures` and `node_modules` are not searched.

All tests of a skill are one suite, which is called like the skill's directory. Any other file is a suite of its own, \
called like the file without its ending, as is every fixtures file; files that would share a name are called by their path. A trial is called \
`SUITE::CASE@ARM#REPETITION`.
";

/// A scenario that shows how one looks.
const EXAMPLE: &str = "\
scenario: reads-before-it-writes
description: The agent looks at the file before it changes it.
system_prompt: You keep a project's notes in order.
user_prompt: Add \"call Ann\" to notes.md.
fixtures:
  files_unstaged:
    - path: notes.md
      content: \"- buy milk\\n\"
assertions:
  - id: reads-first
    type: tool_call_sequence
    sequence:
      - tool: Read
        args_match: { file_path: \"notes\\\\.md$\" }
      - tool: Edit
  - id: stays-inside
    type: no_path_escape
";

/// The reference of scenario files and shared fixtures, in Markdown.
pub fn reference() -> String {
    let mut text = String::from("# Scenario files\n");
    // Writing to a string cannot fail.
    let _ = write!(text, "\n{PLACES}\n## An example\n\n```yaml\n{EXAMPLE}```\n");
    let _ = write!(
        text,
        "\n## The first message\n\nWithout `user_prompt` or `user_prompts`, a skill NAME is asked for by\n\n```text\n{}\n```\n\n\
         and, if there is an `argument`, by a second line `Argument: …`. A prompt is sent its `argument`, and without one \
         `{OPENING}`.\n",
        run("NAME")
    );
    for (title, block) in [
        ("A scenario", &SCENARIO),
        ("`runner`", &RUNNER),
        ("`fixtures`, and each block of `_fixtures.yaml`", &FIXTURES),
        ("An item of `copy_trees`", &COPY_TREE),
        ("An item of `files_committed`, `files_staged`, `files_unstaged`", &FILE),
        ("An item of `user_responses`", &USER_RESPONSE),
        ("An item of `assertions`", &ASSERTION),
    ] {
        block.write(title, &mut text);
    }
    text
}

impl Block {
    /// Adds its section to a page.
    fn write(&self, title: &str, page: &mut String) {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "\n## {title}\n\n{}\n\n| key | value | |\n| --- | --- | --- |", self.about);
        for field in self.fields {
            let need = if field.required { " (required)" } else { "" };
            let _ = writeln!(page, "| `{}` | {}{need} | {} |", field.key, field.kind.words(), field.about);
        }
    }
}

/// A JSON Schema for scenario files, for editors. `assertion` is that of an entry of `assertions`, which has an `id` where it
/// has a `type`.
pub fn scenario_schema(assertion: Value) -> Value {
    let mut schema = document_schema(&SCENARIO);
    let only = |key: &str| json!({ "required": [key] });
    schema.insert("oneOf".to_owned(), json!([only("skill"), only("system_prompt"), only("system_prompt_file")]));
    let both = |one: &str, other: &str| json!({ "not": { "required": [one, other] } });
    schema
        .insert("allOf".to_owned(), json!([both("user_prompt", "user_prompts"), both("token_budget", "token-budget")]));
    with_assertion(schema, assertion)
}

/// A schema in which an entry of `assertions` is as `assertion` says.
fn with_assertion(schema: Map<String, Value>, assertion: Value) -> Value {
    let mut schema = Value::Object(schema);
    if let Some(place) = schema.pointer_mut("/definitions/assertion") {
        *place = assertion;
    }
    schema
}

/// A JSON Schema for `_fixtures.yaml`, for editors.
pub fn fixtures_schema() -> Value {
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), json!(DRAFT));
    schema.insert("title".to_owned(), json!("shared fixtures"));
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("additionalProperties".to_owned(), json!({ "$ref": "#/definitions/fixtures" }));
    let mut definitions = Map::new();
    define(&FIXTURES, &mut definitions);
    schema.insert("definitions".to_owned(), Value::Object(definitions));
    Value::Object(schema)
}

/// A JSON Schema for the project's configuration, for editors.
pub fn config_schema() -> Value {
    Value::Object(document_schema(&CONFIG))
}

/// The draft that editors understand best.
const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

fn document_schema(block: &'static Block) -> Map<String, Value> {
    let mut definitions = Map::new();
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), json!(DRAFT));
    schema.insert("title".to_owned(), json!(block.name));
    schema.extend(block_schema(block, &mut definitions));
    schema.insert("definitions".to_owned(), Value::Object(definitions));
    schema
}

fn block_schema(block: &'static Block, definitions: &mut Map<String, Value>) -> Map<String, Value> {
    let mut properties = Map::new();
    for field in block.fields {
        let mut schema = field.kind.schema(definitions);
        schema.insert("description".to_owned(), json!(field.about));
        if let Some(other) = other_spelling(field.key).filter(|_| block.either_case) {
            properties.insert(other, Value::Object(schema.clone()));
        }
        properties.insert(field.key.to_owned(), Value::Object(schema));
    }
    let needed: Vec<_> = block.fields.iter().filter(|field| field.required).map(|field| field.key).collect();
    let mut schema = Map::new();
    schema.insert("description".to_owned(), json!(block.about));
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !needed.is_empty() {
        schema.insert("required".to_owned(), json!(needed));
    }
    schema.insert("additionalProperties".to_owned(), json!(block.open));
    schema
}

/// A key in camel case if it is written in snake case, and the other way round; none if it is a single word.
fn other_spelling(key: &str) -> Option<String> {
    let mut other = String::with_capacity(key.len() + 4);
    let mut letters = key.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '_' => other.extend(letters.next().map(|next| next.to_ascii_uppercase())),
            _ if letter.is_ascii_uppercase() => other.extend(['_', letter.to_ascii_lowercase()]),
            _ => other.push(letter),
        }
    }
    (other != key).then_some(other)
}

fn define(block: &'static Block, definitions: &mut Map<String, Value>) {
    if !definitions.contains_key(block.name) {
        definitions.insert(block.name.to_owned(), Value::Null);
        let schema = block_schema(block, definitions);
        definitions.insert(block.name.to_owned(), Value::Object(schema));
    }
}

impl Kind {
    fn schema(&self, definitions: &mut Map<String, Value>) -> Map<String, Value> {
        let text = || json!({ "type": "string", "minLength": 1 });
        let mut refer = |block: &'static Block| {
            define(block, definitions);
            json!({ "$ref": format!("#/definitions/{}", block.name) })
        };
        let schema = match self {
            Self::Text => text(),
            Self::AnyText => json!({ "type": "string" }),
            Self::TextOrWhole => json!({ "anyOf": [text(), { "type": "integer" }] }),
            Self::Texts => json!({ "type": "array", "items": text() }),
            Self::TextOrTexts => json!({ "anyOf": [text(), { "type": "array", "items": text() }] }),
            Self::TextMap => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            Self::Flag => json!({ "type": "boolean" }),
            Self::Whole(least) => json!({ "type": "integer", "minimum": least }),
            Self::Positive => json!({ "type": "number", "exclusiveMinimum": 0 }),
            Self::Duration => json!({ "anyOf": [
                { "type": "integer", "minimum": 1 },
                { "type": "string", "pattern": "^\\s*[0-9.]+\\s*(ms|s|m|h)\\s*$" }
            ] }),
            Self::OneOf(names) => json!({ "enum": names() }),
            Self::SomeOf(names) => json!({ "type": "array", "items": { "enum": names() } }),
            // What stands beside a reference is ignored by this draft, hence the wrapping.
            Self::Map(block) => json!({ "allOf": [refer(block)] }),
            Self::Maps(block) => json!({ "type": "object", "additionalProperties": refer(block) }),
            Self::TextOrMap(block) => json!({ "anyOf": [text(), refer(block)] }),
            Self::TextsOrMaps(block) => json!({ "type": "array", "items": { "anyOf": [text(), refer(block)] } }),
            Self::Assertions(block) => json!({ "type": "array", "items": refer(block) }),
            Self::FlagOrText => json!({ "anyOf": [{ "type": "boolean" }, text()] }),
            Self::Any => json!({}),
            Self::List(block) => json!({ "type": "array", "items": refer(block) }),
            Self::Between(least, most) => json!({ "type": "number", "minimum": least, "maximum": most }),
            Self::FixtureSection => fixtures::map_schema(SECTION_FIELDS, false),
        };
        match schema {
            Value::Object(schema) => schema,
            _ => Map::new(),
        }
    }

    /// The shape in words.
    fn words(&self) -> String {
        let list = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        match self {
            Self::Text | Self::AnyText => "text".to_owned(),
            Self::TextOrWhole => "text or whole number".to_owned(),
            Self::Texts => "list of texts".to_owned(),
            Self::TextOrTexts => "text or list of texts".to_owned(),
            Self::TextMap => "map of texts".to_owned(),
            Self::Flag => "`true` or `false`".to_owned(),
            Self::Whole(least) => format!("whole number of at least {least}"),
            Self::Positive => "number above 0".to_owned(),
            Self::Duration => "`500ms`, `30s`, `5m` or `1h`; a bare number is milliseconds".to_owned(),
            Self::OneOf(names) => format!("one of {}", list(&names())),
            Self::SomeOf(names) => format!("list of {}", list(&names())),
            Self::Map(_) | Self::FixtureSection => "map, see below".to_owned(),
            Self::Maps(_) => "map of names to maps, see below".to_owned(),
            Self::TextOrMap(_) => "text, or map, see below".to_owned(),
            Self::TextsOrMaps(_) | Self::Assertions(_) => "list of texts and maps, see below".to_owned(),
            Self::FlagOrText => "`true`, `false` or text".to_owned(),
            Self::Any => "any value".to_owned(),
            Self::List(_) => "list of maps, see below".to_owned(),
            Self::Between(least, most) => format!("number from {least} to {most}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Project, Request, load};

    /// The keys that the reader of a block says it knows, when it meets one that it does not.
    fn keys_read(file: &str, text: &str) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(file);
        std::fs::write(&path, text).unwrap();
        let root = directory.path();
        let diagnostics = if file == "trialrun.yaml" {
            Project::find(root, root).1
        } else {
            let request = Request {
                root: root.to_owned(),
                skills_dir: root.join("skills"),
                cwd: root.to_owned(),
                targets: vec![file.to_owned()],
                ..Request::default()
            };
            load(&request).diagnostics
        };
        let unknown = diagnostics.iter().find(|problem| problem.message.starts_with("unknown key `0000`"));
        let help = unknown.unwrap_or_else(|| panic!("{text}: {diagnostics:#?}")).help.join("\n");
        let mut keys: Vec<_> = help.trim_start_matches("known keys: ").split(", ").map(str::to_owned).collect();
        keys.sort();
        keys
    }

    #[test]
    fn the_table_holds_exactly_the_keys_that_are_read() {
        let scenario = |rest: &str| format!("scenario: s\nsystem_prompt: p\n{rest}\n");
        for (block, file, text) in [
            (&SCENARIO, "s.yaml", scenario("'0000': x")),
            (&RUNNER, "s.yaml", scenario("runner: {'0000': x}")),
            (&FIXTURES, "s.yaml", scenario("fixtures: {'0000': x}")),
            (&COPY_TREE, "s.yaml", scenario("fixtures: {copy_trees: [{'0000': x}]}")),
            (&FILE, "s.yaml", scenario("fixtures: {files_staged: [{'0000': x}]}")),
            (&USER_RESPONSE, "s.yaml", scenario("user_responses: [{'0000': x}]")),
        ] {
            let mut told: Vec<_> = block.fields.iter().map(|field| field.key.to_owned()).collect();
            told.sort();
            assert_eq!(keys_read(file, &text), told, "{}", block.name);
        }
        for (block, text) in config::EXAMPLES_OF_WRONG_KEYS {
            let mut told: Vec<_> = block.fields.iter().map(|field| field.key.to_owned()).collect();
            told.sort();
            assert_eq!(keys_read("trialrun.yaml", text), told, "{}", block.name);
        }
    }

    #[test]
    fn every_reference_in_a_schema_is_defined() {
        for schema in [scenario_schema(json!({ "properties": {} })), fixtures_schema(), config_schema()] {
            let text = schema.to_string();
            for reference in text.split("#/definitions/").skip(1) {
                let name = &reference[..reference.find('"').unwrap()];
                assert!(schema["definitions"][name]["properties"].is_object(), "{name}");
            }
        }
        let schema = scenario_schema(json!({ "properties": {} }));
        assert_eq!(schema["required"], json!(["scenario"]));
        assert_eq!(schema["properties"]["runner"]["allOf"][0]["$ref"], "#/definitions/runner");
        assert_eq!(schema["definitions"]["runner"]["properties"]["permission_mode"]["enum"], json!(modes()));
    }

    #[test]
    fn the_example_loads() {
        let text = reference();
        let example = text.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::create_dir(root.join("scenarios")).unwrap();
        std::fs::write(root.join("scenarios/example.yaml"), example).unwrap();
        let loaded = load(&Request {
            root: root.to_owned(),
            skills_dir: root.join("skills"),
            cwd: root.to_owned(),
            targets: Vec::new(),
            ..Request::default()
        });
        assert_eq!(loaded.diagnostics, []);
        let case = &loaded.suites[0].cases[0];
        assert_eq!((case.fixtures.files_unstaged.len(), case.assertions.len()), (1, 2));
        assert_eq!(loaded.suites[0].name, "example");
    }

    #[test]
    fn the_reference_names_every_key() {
        let text = reference();
        for block in [&SCENARIO, &RUNNER, &FIXTURES, &COPY_TREE, &FILE, &USER_RESPONSE, &ASSERTION] {
            for field in block.fields {
                assert!(text.contains(&format!("| `{}` |", field.key)), "{}", field.key);
            }
        }
    }
}
