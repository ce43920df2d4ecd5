use std::collections::BTreeSet;

use model::{Diagnostic, PermissionMode, SettingSource, SideEffectLevel};

use super::*;
use crate::fixture_settings::field::{FIELDS, FRONT_FIELDS};
use crate::format::ASSERTION_TYPES;
use crate::{Loaded, Project, Request, load};

/// Returns the first code block of a page.
fn example(page: &str) -> &str {
    page.split("```").nth(1).and_then(|block| block.split_once('\n')).unwrap().1
}

/// Loads a project with a skill and the file called `name`.
fn loaded(name: &str, text: &str) -> Loaded {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let skill = root.join("skills/release-notes");
    std::fs::create_dir_all(skill.join("evals/files")).unwrap();
    std::fs::create_dir(root.join("scenarios")).unwrap();
    std::fs::write(skill.join("SKILL.md"), "---\nname: release-notes\ndescription: d\n---\n").unwrap();
    std::fs::write(skill.join("evals/files/commits.txt"), "a\n").unwrap();
    std::fs::write(root.join(name), text).unwrap();
    load(&Request {
        root: root.to_owned(),
        skills_dir: root.join("skills"),
        cwd: root.to_owned(),
        targets: vec![name.to_owned()],
        ..Request::default()
    })
}

/// Reads a project with the configuration file `name`.
fn project(name: &str, text: &str) -> (Project, Vec<Diagnostic>) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(name), text).unwrap();
    Project::find(directory.path(), directory.path())
}

/// Returns every map of a file with the unknown key `0000`, by the section with its table.
fn with_unknown_keys() -> Vec<(&'static str, &'static str, String)> {
    let scenario = |rest: &str| format!("scenario: s\nsystem_prompt: p\n{rest}\n");
    let evals = |rest: &str| format!(r#"{{"skill_name": "release-notes", "evals": [{{{rest}}}]}}"#);
    let mut files = vec![
        ("scenario", "s.yaml", scenario("'0000': x")),
        ("scenario runner", "s.yaml", scenario("runner: {'0000': x}")),
        ("scenario fixtures", "s.yaml", scenario("fixtures: {'0000': x}")),
        ("scenario copy_tree", "s.yaml", scenario("fixtures: {copy_trees: [{'0000': x}]}")),
        ("scenario file", "s.yaml", scenario("fixtures: {files_staged: [{'0000': x}]}")),
        ("scenario sandbox", "s.yaml", scenario("sandbox: {'0000': x}")),
        ("scenario network", "s.yaml", scenario("sandbox: {network: {'0000': x}}")),
        ("scenario quarantine", "s.yaml", scenario("quarantine: {'0000': x}")),
        ("scenario pass_rate", "s.yaml", scenario("pass_rate: {at_least: 0.5, '0000': x}")),
        ("scenario graded", "s.yaml", scenario("graded: {'0000': x}")),
        ("scenario fault", "s.yaml", scenario("faults: [{'0000': x}]")),
        ("scenario requests", "s.yaml", scenario("faults: [{cut_stream: {'0000': x}}]")),
        ("scenario http_status", "s.yaml", scenario("faults: [{http_status: {'0000': x}}]")),
        ("scenario slow_stream", "s.yaml", scenario("faults: [{slow_stream: {'0000': x}}]")),
        ("scenario tool_fails", "s.yaml", scenario("faults: [{tool_fails: {'0000': x}}]")),
        ("scenario disk_full", "s.yaml", scenario("faults: [{disk_full: {'0000': x}}]")),
        ("scenario outer_folder", "s.yaml", scenario("fixtures: {outside: [{'0000': x}]}")),
        ("scenario solution", "s.yaml", scenario("graded: {solution: {commands: [x], '0000': x}}")),
        ("scenario mcp_server", "s.yaml", scenario("mcp_servers: {s: {'0000': x}}")),
        ("scenario mock_tool", "s.yaml", scenario("mcp_servers: {s: {tools: {t: {'0000': x}}}}")),
        ("scenario mock_answer", "s.yaml", scenario("mcp_servers: {s: {tools: {t: {answers: [{'0000': x}]}}}}")),
        ("scenario mock_command", "s.yaml", scenario("mock_commands: {c: {'0000': x}}")),
        ("scenario command_answer", "s.yaml", scenario("mock_commands: {c: {answers: [{'0000': x}]}}")),
        ("scenario user_response", "s.yaml", scenario("user_responses: [{'0000': x}]")),
        ("evals contract", "evals.json", evals(r#""side_effect_contract": {"0000": 1}"#)),
    ];
    files.extend(
        [
            ("conversation", "c.yaml", "turns: [x]\n'0000': x"),
            ("conversation persona", "c.yaml", "turns: [x]\npersona: {role: x, '0000': x}"),
            ("conversation turn", "c.yaml", "turns: [{says: x, '0000': x}]"),
            ("conversation user", "c.yaml", "user: {goal: x, '0000': x}"),
            ("mcp", "m.yaml", "suite: mcp\n'0000': x"),
            ("mcp contract", "m.yaml", "suite: mcp\ncontract: {file: x, '0000': x}"),
            ("mcp protocol", "m.yaml", "suite: mcp\nprotocol: {'0000': x}"),
            ("mcp safety", "m.yaml", "suite: mcp\nsafety: {'0000': x}"),
            ("mcp fuzz", "m.yaml", "suite: mcp\nfuzz: {'0000': x}"),
            ("mcp call", "m.yaml", "suite: mcp\ncalls: [{call: x, '0000': x}]"),
            ("mcp step", "m.yaml", "suite: mcp\ncalls: [{steps: [{call: x, '0000': x}]}]"),
            ("configuration", "trialrun.yaml", "'0000': x"),
            ("configuration defaults", "trialrun.yaml", "defaults: {'0000': x}"),
            ("configuration eval", "trialrun.yaml", "eval: {'0000': x}"),
            ("configuration judge", "trialrun.yaml", "judge: {'0000': x}"),
            ("configuration llm", "trialrun.yaml", "llm: {'0000': x}"),
            ("configuration provider", "trialrun.yaml", "providers: {openai: {'0000': x}}"),
            ("configuration workers", "trialrun.yaml", "workers: {'0000': x}"),
            ("configuration sandbox", "trialrun.yaml", "sandbox: {'0000': x}"),
            ("configuration network", "trialrun.yaml", "sandbox: {network: {'0000': x}}"),
            ("configuration limits", "trialrun.yaml", "sandbox: {limits: {'0000': x}}"),
            ("configuration daytona", "trialrun.yaml", "sandbox: {daytona: {'0000': x}}"),
            ("configuration report", "trialrun.yaml", "report: {'0000': x}"),
            ("configuration diff", "trialrun.yaml", "diff: {'0000': x}"),
            ("configuration code", "trialrun.yaml", "code: {'0000': x}"),
            ("configuration store", "trialrun.yaml", "store: {'0000': x}"),
        ]
        .map(|(section, file, text)| (section, file, text.to_owned())),
    );
    files
}

#[test]
fn the_tables_have_exactly_the_keys_that_are_read() {
    let mut left: BTreeSet<&str> = Table::all().map(|table| table.section).collect();
    for (section, file, text) in with_unknown_keys() {
        let diagnostics = match file {
            "trialrun.yaml" => project(file, &text).1,
            _ => {
                let Loaded { diagnostics, suites, .. } = loaded(file, &text);
                let broken = suites.iter().flat_map(|suite| &suite.cases).flat_map(|case| case.broken.clone());
                diagnostics.into_iter().chain(broken).collect()
            }
        };
        let unknown = diagnostics.iter().find(|problem| problem.message.starts_with("unknown key `0000`"));
        let help = unknown.unwrap_or_else(|| panic!("{text}: {diagnostics:#?}")).help.join("\n");
        let keys = help.lines().find_map(|line| line.strip_prefix("known keys: ")).unwrap_or(&help);
        let read: BTreeSet<&str> = keys.split(", ").collect();
        let table = Table::all().find(|table| table.section == section).unwrap();
        let written: BTreeSet<&str> = table.fields.iter().map(|field| field.key).collect();
        assert_eq!(read, written, "{section}");
        left.remove(section);
    }
    // Fixtures files are read by their tables, and the keys of the others depend on a type.
    left.retain(|section| !section.starts_with("fixtures ") && *section != "configuration fixtures");
    for section in ["evals", "evals case", "evals assertion", "evals assertion types"] {
        left.remove(section);
    }
    assert_eq!(left, BTreeSet::from(["configuration agent", "scenario assertion"]));
}

#[test]
fn every_key_in_the_tables_of_skill_evaluations_is_read() {
    for (section, path) in [("evals", ""), ("evals case", "evals[]."), ("evals assertion", "evals[].assertions[].")] {
        for field in Table::fields_of(section) {
            let key = field.key;
            let text = match section {
                "evals" => format!(r#"{{"{key}": null, "evals_": []}}"#),
                "evals case" => format!(r#"{{"skill_name": "release-notes", "evals": [{{"{key}": null}}]}}"#),
                _ => format!(r#"{{"skill_name": "release-notes", "evals": [{{"assertions": [{{"{key}": null}}]}}]}}"#),
            };
            let coverage = loaded("evals.json", &text).coverage;
            let covered = coverage[0].keys.iter().find(|covered| covered.key == format!("{path}{key}"));
            assert_eq!(covered.map(|covered| covered.treatment), Some(crate::Treatment::Honoured), "{section} {key}");
        }
    }
}

#[test]
fn every_reference_in_a_schema_is_defined() {
    let assertion = || json!({ "properties": {} });
    for (schema, definitions) in [
        (scenario_schema(assertion()), "definitions"),
        (conversation_schema(assertion()), "definitions"),
        (config_schema(), "definitions"),
        (evals_schema(), "$defs"),
    ] {
        let text = schema.to_string();
        let mut references = text.split("\"$ref\":\"").skip(1).peekable();
        assert!(references.peek().is_some());
        for reference in references {
            let name = reference.strip_prefix(&format!("#/{definitions}/")).unwrap();
            let name = &name[..name.find('"').unwrap()];
            assert!(schema[definitions][name]["properties"].is_object(), "{name}");
        }
    }
}

#[test]
fn schemas_match_the_tables() {
    let schema = scenario_schema(json!({ "properties": {} }));
    assert_eq!(schema["required"], json!(["scenario"]));
    assert_eq!(schema["properties"]["runner"]["allOf"][0]["$ref"], "#/definitions/runner");
    let runner = &schema["definitions"]["runner"]["properties"];
    let modes: Vec<&str> = PermissionMode::ALL.iter().map(|(name, _)| *name).collect();
    let sources: Vec<&str> = SettingSource::ALL.iter().map(|(name, _)| *name).collect();
    assert_eq!(runner["permission_mode"]["enum"], json!(modes));
    assert_eq!(runner["setting_sources"]["items"]["enum"], json!(sources));
    let conversation = conversation_schema(json!({ "properties": {} }));
    for name in ["fixtures", "runner", "copy_tree", "file", "user_response"] {
        assert_eq!(conversation["definitions"][name], schema["definitions"][name], "{name}");
    }
    let config = config_schema();
    assert_eq!(config["definitions"]["defaults"]["properties"]["permissionMode"]["enum"], json!(modes));
    let judge = &config["definitions"]["judge"]["properties"];
    assert!(judge["base_url"].is_object() && judge["baseUrl"].is_object() && judge["base_u_r_l"].is_null());
    let eval = &config["definitions"]["eval"]["properties"];
    assert!(eval["defaultTimeout"].is_object() && eval["default_timeout"].is_object());
}

#[test]
fn the_evals_schema_covers_every_assertion_type() {
    let schema = evals_schema();
    assert_eq!(schema["title"], "evals");
    assert_eq!(schema["$defs"]["case"]["required"], json!(["prompt"]));
    let levels: Vec<&str> = SideEffectLevel::ALL.iter().map(|(name, _)| *name).collect();
    assert_eq!(schema["$defs"]["case"]["properties"]["side_effect_level"]["enum"], json!(levels));
    let assertion = &schema["$defs"]["assertion"];
    let types: Vec<&str> = ASSERTION_TYPES.iter().map(|one| one.name).collect();
    assert_eq!(assertion["properties"]["type"]["enum"], json!(types));
    assert_eq!(assertion["allOf"][0]["then"]["required"], json!(["path"]));
    assert_eq!(assertion["allOf"][0]["then"]["properties"]["command"], json!(false));
    let keys = |name: &str| {
        let one = ASSERTION_TYPES.iter().find(|one| one.name == name).unwrap();
        (one.needs.join(" "), one.may.join(" "))
    };
    assert_eq!(keys("json_path"), ("json_path".to_owned(), "path equals".to_owned()));
    assert_eq!(keys("tests_pass"), (String::new(), String::new()));
}

#[test]
fn the_schema_of_fixtures_files_has_every_key() {
    let schema = fixture_schema();
    for field in FIELDS.iter().chain(FRONT_FIELDS.iter()) {
        assert!(schema["definitions"]["document"]["properties"][field.key].is_object(), "{}", field.key);
    }
    assert!(schema["definitions"]["case"]["properties"]["agent"].is_null());
}

#[test]
fn the_page_states_the_default_max_turns_of_a_played_user() {
    let loaded = loaded("c.yaml", "user: {goal: x}\nassertions: [{contains: x}]");
    let written = format!("Default: {}.", loaded.suites[0].cases[0].user.as_ref().unwrap().max_turns);
    let table = Table::named("conversation", "user").unwrap();
    assert!(table.fields.iter().any(|field| field.key == "max_turns" && field.about.contains(&written)));
}

#[test]
fn the_examples_on_the_pages_load() {
    let load = |name: &str, page: &str| {
        let loaded = loaded(name, example(page));
        assert_eq!((&loaded.diagnostics, &loaded.suites[0].cases[0].broken), (&vec![], &vec![]), "{name}");
        loaded.suites.into_iter().next().unwrap()
    };
    let scenario = load("scenarios/example.yaml", include_str!("../../../../docs/reference/scenario.md"));
    let case = &scenario.cases[0];
    assert_eq!((case.fixtures.files_unstaged.len(), case.assertions.len()), (1, 2));
    assert_eq!((scenario.name.as_str(), scenario.format), ("example", "scenario"));
    let conversation = load("scenarios/c.yaml", include_str!("../../../../docs/reference/conversation.md"));
    assert_eq!((conversation.format, conversation.cases[0].assertions.len()), ("conversation", 6));
    let evals = "skills/release-notes/evals/evals.json";
    let evals = load(evals, include_str!("../../../../docs/reference/evals.md"));
    assert_eq!((evals.format, evals.cases.len()), ("evals", 2));
    let fixtures = load("hello.fixture.yaml", include_str!("../../../../docs/reference/fixtures.md"));
    assert_eq!((fixtures.name.as_str(), fixtures.cases.len()), ("hello", 3));
    assert_eq!(fixtures.cases[1].messages[0].text, "Say hello to Ann in German.");
    let page = include_str!("../../../../docs/reference/configuration.md");
    let (project, problems) = project("trialrun.config.ts", example(page));
    assert_eq!(problems, []);
    assert_eq!(project.agents[0].missing.len(), 1);
    assert_eq!(project.defaults.agent.unwrap().value, "shop");
}
