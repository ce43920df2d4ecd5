//! Tables of the fields of scenarios, conversations, evaluations, fixtures files and configurations. The reference pages
//! and the schemas for editors are made from them, and tests compare them with what the readers know.

use model::{PermissionMode, SettingSource};
use serde_json::{Map, Value, json};

use crate::fixture_settings::field::{FIELDS, FRONT_FIELDS, SECTION_FIELDS};
use crate::format::run;

mod config;
mod conversation;
mod evals;
mod fixtures;

use config::CONFIG;

pub use conversation::conversation_schema;
pub use evals::evals_schema;
pub use fixtures::fixture_schema;

/// A map with known keys.
struct Block {
    /// Name in the sections of the reference and in the definitions of a schema.
    name: &'static str,
    /// Its purpose.
    about: &'static str,
    fields: &'static [Field],
    /// True if keys that are not listed are allowed.
    open: bool,
    /// True if keys of several words can be written in snake case and in camel case.
    either_case: bool,
}

/// A key and its value.
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
    /// Assertions. The schema of an entry comes from grading; the block is for the page.
    Assertions(&'static Block),
    FlagOrText,
    /// Any value.
    Any,
    List(&'static Block),
    /// A number from the first to the second.
    Between(f64, f64),
    /// The section of fixtures files, which has a table of its own.
    FixtureSection,
}

const fn block(name: &'static str, about: &'static str, fields: &'static [Field]) -> Block {
    Block { name, about, fields, open: false, either_case: false }
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

static SCENARIO: Block = block(
    "scenario",
    "One case in one file. Exactly one of `skill`, `system_prompt` and `system_prompt_file` is \
             required: it is what the case tests.",
    &[
        required("scenario", Kind::Text, "Id of the case, unique among the tests of a skill."),
        field("description", Kind::AnyText, "A note for people."),
        field("tags", Kind::Texts, "Tags, to select cases on the command line."),
        field(
            "skill",
            Kind::Text,
            "Name of the folder of the skill to test. The skill is installed in the sandbox, and its body is \
             added to the system prompt.",
        ),
        field("system_prompt", Kind::Text, "System prompt to test. It is added to the agent's own."),
        field("system_prompt_file", Kind::Text, "File with the system prompt, relative to the scenario's folder."),
        field(
            "argument",
            Kind::AnyText,
            "Argument for the skill, added to the first message. For a system prompt, it is the first message.",
        ),
        field("user_prompt", Kind::Text, "First message, sent as it is."),
        field(
            "user_prompts",
            Kind::Texts,
            "Several messages, sent one after the other in one session. Cannot be combined with `user_prompt`.",
        ),
        field(
            "max_turns",
            Kind::Whole(1),
            "Maximum number of model turns over all messages. Default: no limit, and a warning above 40 turns.",
        ),
        field(
            "token_budget",
            Kind::Positive,
            "Maximum number of tokens of a trial, of all kinds. Overrides the skill's own `token-budget`.",
        ),
        field("token-budget", Kind::Positive, "Alias of `token_budget`."),
        field("timeout", Kind::Duration, "Time limit of one trial."),
        field("trials", Kind::Whole(1), "Number of times that the case runs."),
        field("agent", Kind::Text, "Agent to run, such as `claude-code` or `chat`."),
        field("model", Kind::Text, "Model of the agent, or `scripted:FILE`, relative to the scenario's folder."),
        field("runner", Kind::Map(&RUNNER), "Settings of the agent."),
        field("fixtures", Kind::Map(&FIXTURES), "Contents of the sandbox before the agent starts."),
        field(
            "user_responses",
            Kind::List(&USER_RESPONSE),
            "Answers to the agent's questions. Each is used once, for the first question that it matches.",
        ),
        field("assertions", Kind::Assertions(&ASSERTION), "Assertions about the trial."),
    ],
);

static RUNNER: Block = block(
    "runner",
    "Settings of the agent.",
    &[
        field("runtime", Kind::Text, "Agent to run; `claude` is an alias of `claude-code`."),
        field("agent", Kind::Text, "Alias of `runtime`."),
        field("model", Kind::Text, "Model, or `scripted:FILE`."),
        field("permission_mode", Kind::OneOf(modes), "Permission mode of the agent. Default: `bypassPermissions`."),
        field(
            "allowed_tools_override",
            Kind::Texts,
            "The only tools that the agent has, instead of the skill's `allowed-tools`.",
        ),
        field(
            "setting_sources",
            Kind::SomeOf(sources),
            "Settings of the machine and the project that the agent can read. Default: none.",
        ),
        field("reasoning_effort", Kind::Text, "Reasoning effort passed to the agent, such as `low` or `high`."),
    ],
);

static FIXTURES: Block = block(
    "fixtures",
    "Contents of the sandbox before the agent starts. A `_fixtures.yaml` is a map from names to such \
             blocks.",
    &[
        field(
            "extends",
            Kind::TextOrTexts,
            "Blocks of the nearest `_fixtures.yaml` to extend. Lists are appended, other fields are replaced.",
        ),
        field("git_init", Kind::Flag, "Create a git repository with a commit in the sandbox."),
        field("git_branch", Kind::Text, "Branch of that commit. Default: `main`."),
        field("copy_trees", Kind::List(&COPY_TREE), "Folders whose contents are copied first."),
        field("files_committed", Kind::List(&FILE), "Files in the commit."),
        field("files_staged", Kind::List(&FILE), "Files that are staged after the commit."),
        field("files_unstaged", Kind::List(&FILE), "Files that stay untracked."),
        field(
            "setup_commands",
            Kind::Texts,
            "Shell commands to run in the sandbox, in order, when all files are in place.",
        ),
        field(
            "env",
            Kind::TextMap,
            "Environment variables of the setup commands and the agent. Values of variables such as `API_KEY` \
             or `DB_PASSWORD` are masked in records and reports, but not for assertions.",
        ),
    ],
);

static COPY_TREE: Block = block(
    "copy_tree",
    "A folder whose contents are copied into the sandbox.",
    &[
        required("from", Kind::Text, "Folder to copy, relative to this file's folder."),
        field("to", Kind::AnyText, "Target folder in the sandbox. Default: its root."),
    ],
);

static FILE: Block = block(
    "file",
    "A file in the sandbox. Without `content` and `content_from`, it is empty.",
    &[
        required("path", Kind::Text, "Path in the sandbox."),
        field("content", Kind::AnyText, "Contents."),
        field("content_from", Kind::Text, "File to copy, relative to this file's folder."),
    ],
);

static USER_RESPONSE: Block = block(
    "user_response",
    "An answer to a question of the agent.",
    &[
        required("match_question", Kind::Text, "Regular expression that matches the text of the question."),
        required("choose", Kind::Text, "Label of the option to choose, or free text."),
    ],
);

static ASSERTION: Block = block(
    "assertion",
    "An assertion about the trial. Write a `type` and its fields, or the type as a key with its main \
             field or a map of its fields as the value, such as `contains: 30 days`. A string is a type without \
             fields. [Assertions](assertions.md) lists the types and their fields.",
    &[
        field(
            "id",
            Kind::Text,
            "Name in reports, unique in the case. Required in scenarios for entries with a `type`. Default: the \
             type and a number, such as `contains-2`.",
        ),
        field("type", Kind::Text, "Type of the assertion, such as `tool_called`."),
        field("weight", Kind::Positive, "Weight in the score. Default: 1."),
        field("title", Kind::Text, "Title in reports."),
    ],
)
.open();

/// Generated sections of the reference pages, as names and Markdown.
pub fn reference() -> Vec<(String, String)> {
    let scenario = [&RUNNER, &FIXTURES, &COPY_TREE, &FILE, &USER_RESPONSE, &ASSERTION];
    let mut sections = vec![
        ("scenario opening".to_owned(), format!("```text\n{}\n```", run("NAME"))),
        ("scenario".to_owned(), SCENARIO.table()),
        ("conversation".to_owned(), conversation::CONVERSATION.table()),
        ("evals".to_owned(), evals::EVALS.table()),
        ("evals assertion types".to_owned(), evals::assertion_types()),
        ("configuration".to_owned(), CONFIG.table()),
        ("configuration fixtures".to_owned(), fixtures::table(SECTION_FIELDS)),
        ("fixtures case".to_owned(), fixtures::table(FIELDS)),
        ("fixtures front matter".to_owned(), fixtures::table(FRONT_FIELDS)),
    ];
    for (page, blocks) in [
        ("scenario", &scenario[..]),
        ("conversation", &conversation::BLOCKS),
        ("evals", &evals::BLOCKS),
        ("configuration", &config::BLOCKS),
    ] {
        sections.extend(blocks.iter().map(|block| (format!("{page} {}", block.name), block.table())));
    }
    sections
}

impl Block {
    const fn open(self) -> Self {
        Self { open: true, ..self }
    }

    const fn either_case(self) -> Self {
        Self { either_case: true, ..self }
    }

    /// Its description and its fields as Markdown.
    fn table(&self) -> String {
        let row = |field: &Field| {
            let need = if field.required { " (required)" } else { "" };
            format!("| `{}` | {}{need} | {} |\n", field.key, field.kind.words(), field.about)
        };
        let rows: String = self.fields.iter().map(row).collect();
        format!("{}\n\n| key | value | meaning |\n| --- | --- | --- |\n{rows}", self.about)
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
            // This draft ignores keywords beside a reference, hence the wrapping.
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
            Self::Text | Self::AnyText => "string".to_owned(),
            Self::TextOrWhole => "string or integer".to_owned(),
            Self::Texts => "list of strings".to_owned(),
            Self::TextOrTexts => "string or list of strings".to_owned(),
            Self::TextMap => "map of strings".to_owned(),
            Self::Flag => "`true` or `false`".to_owned(),
            Self::Whole(least) => format!("integer, at least {least}"),
            Self::Positive => "number above 0".to_owned(),
            Self::Duration => "duration such as `500ms`, `30s`, `5m` or `1h`; a number is milliseconds".to_owned(),
            Self::OneOf(names) => format!("one of {}", list(&names())),
            Self::SomeOf(names) => format!("list of {}", list(&names())),
            Self::Map(_) | Self::FixtureSection => "map, see below".to_owned(),
            Self::Maps(_) => "map of names to maps, see below".to_owned(),
            Self::TextOrMap(_) => "string, or map, see below".to_owned(),
            Self::TextsOrMaps(_) | Self::Assertions(_) => "list of strings and maps, see below".to_owned(),
            Self::FlagOrText => "`true`, `false` or string".to_owned(),
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

    /// The first block of code of a page.
    pub(super) fn example(page: &str) -> &str {
        page.split("```").nth(1).and_then(|block| block.split_once('\n')).unwrap().1
    }

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
        let page = include_str!("../../../docs/reference/scenario.md");
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::create_dir(root.join("scenarios")).unwrap();
        std::fs::write(root.join("scenarios/example.yaml"), example(page)).unwrap();
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
}
