//! Tests with typical configurations.

use model::{PermissionMode, Severity};

use super::*;

fn find(files: &[(&str, &str)], from: &str) -> (Project, Vec<String>, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let (project, problems) = Project::find(&directory.path().join(from), directory.path());
    (project, problems.iter().map(ToString::to_string).collect(), directory)
}

#[test]
fn the_nearest_parent_directory_wins_and_folders_are_relative_to_it() {
    let (project, problems, directory) = find(
        &[
            ("trialrun.yaml", "state: elsewhere\n"),
            ("a/.ai-tester.yaml", "skills_dir: ./my/skills\ndefaults: {model: m, permission_mode: plan}\n"),
            ("a/my/skills/x", ""),
            ("a/b/c/x", ""),
        ],
        "a/b/c",
    );
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(project.root, directory.path().join("a"));
    assert_eq!(project.skills_dir, directory.path().join("a/my/skills"));
    assert_eq!(project.state, directory.path().join("a/.trialrun"));
    let model = project.defaults.model.unwrap();
    assert_eq!((model.value.as_str(), model.source.to_string().as_str()), ("m", "a/.ai-tester.yaml:2:19"));
    assert_eq!(project.defaults.permission_mode.unwrap().value, PermissionMode::Plan);
}

#[test]
fn a_configuration_with_a_name_that_is_nearly_right_is_reported() {
    for (name, text, right) in [
        ("trialrn.yaml", "agent: fake\n", Some("trialrun.yaml")),
        ("trialrun.config.yaml", "agent: fake\n", Some("trialrun.yaml")),
        (".trialrun.yaml", "defaults: { agent: fake }\n", Some("trialrun.yaml")),
        ("trialrun.toml", "agent = 'fake'\n", Some("trialrun.yaml")),
        ("trialrun.ts", "export default { agent: 'fake' };\n", Some("trialrun.config.ts")),
        ("trialrun.ts", "export const agent = 1;\n", None),
        ("trialrun.yaml.json", "[{ \"agent\": \"fake\" }]", None),
        ("trialrun.json", "{\"agents\": {}}", Some("trialrun.config.json")),
        ("trialrun.json", "{\"schema\": \"trialrun.report/1\", \"agents\": []}", None),
        ("trialrun.d.ts", "export interface AgentHandle { agent: string }", None),
        ("notes.yaml", "agent: fake\n", None),
    ] {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(name), text).unwrap();
        let (project, problems) = Project::find(directory.path(), directory.path());
        assert_eq!(project.is_unread, right.is_some(), "{name}");
        assert!(problems.iter().all(model::Diagnostic::is_error), "{name}");
        let helps: Vec<String> = problems.iter().flat_map(|problem| problem.help.clone()).collect();
        let expected = right.map(|right| match name.ends_with(".toml") {
            true => format!("write the settings as YAML, in a file called `{right}`"),
            false => format!("did you mean `{right}`?"),
        });
        assert_eq!(helps, expected.into_iter().collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn trialrun_yaml_takes_precedence_over_ai_tester_yaml() {
    let text =
        "defaults:\n  runtime: claude\n  timeout: 5m\n  max_turns: 9\n  trials: 3\n  token_budget: 1.5\n  jobs: 2\n";
    let (project, problems, _directory) =
        find(&[("trialrun.yaml", text), (".ai-tester.yaml", "defaults: {model: m}")], ".");
    assert!(problems.is_empty(), "{problems:?}");
    let defaults = project.defaults;
    assert!(defaults.model.is_none());
    assert_eq!(defaults.agent.unwrap().value, "claude-code");
    assert_eq!(defaults.timeout_ms.unwrap().value, 300_000);
    assert_eq!((defaults.max_turns.unwrap().value, defaults.trials.unwrap().value), (9, model::Trials::Fixed(3)));
    assert_eq!((defaults.token_budget.unwrap().value, defaults.jobs.unwrap().value), (1.5, 2));
}

#[test]
fn without_a_configuration_the_start_directory_is_the_root() {
    let (project, problems, directory) = find(&[("sub/x", "")], "sub");
    assert!(problems.is_empty());
    // A directory above the temporary one may have a configuration, in which case this checks nothing.
    if project.file.is_none() {
        assert_eq!(project.root, directory.path().join("sub"));
        assert_eq!(project.skills_dir, directory.path().join("sub/skills"));
    }
}

#[test]
fn a_skill_is_not_the_folder_of_skills() {
    let files = [("trialrun.yaml", "skills_dir: skills/notes\n"), ("skills/notes/SKILL.md", "")];
    let (project, problems, directory) = find(&files, ".");
    assert_eq!(problems, ["trialrun.yaml:1:13: `skills/notes` is a skill, and `skills_dir` is the folder of skills"]);
    assert_eq!(project.skills_dir, directory.path().join("skills"));
}

#[test]
fn an_empty_file_has_no_settings() {
    for name in [".ai-tester.yaml", "trialrun.yaml"] {
        let (project, problems, directory) = find(&[(name, "# nothing yet\n")], ".");
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(project.file.unwrap(), directory.path().join(name));
    }
}

#[test]
fn unknown_keys_are_errors_in_both_configuration_formats() {
    let (_, problems, _directory) =
        find(&[("trialrun.yaml", "skill_dir: x\ndefaults: {modle: m, runtime: a, agent: b}\n")], ".");
    assert_eq!(
        problems,
        [
            "trialrun.yaml:1:1: unknown key `skill_dir` in the configuration",
            "trialrun.yaml:2:12: unknown key `modle` in `defaults`",
            "trialrun.yaml:2:22: `agent` and `runtime` are the same; give one of them",
        ]
    );
    let (_, problems, _directory) = find(&[(".ai-tester.yaml", "state: x\ndefaults: {trials: 3}\n")], ".");
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[test]
fn a_key_outside_of_its_section_is_reported_with_its_place() {
    let text = "agent: chat\nmodel: m\nmaxTurns: 3\nnetwork: none\ndefaults: {judge: j, owner: k}\n";
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("trialrun.yaml"), text).unwrap();
    let (_, problems) = Project::find(directory.path(), directory.path());
    let help: Vec<&str> = problems.iter().map(|problem| problem.help[0].as_str()).collect();
    assert_eq!(
        help[..4],
        [
            "write it under `defaults`: `defaults: { model: … }`",
            "write it under `defaults`: `defaults: { maxTurns: … }`",
            "write it under `sandbox`: `sandbox: { network: … }`",
            "write `judge` at the top level of the configuration",
        ]
    );
    assert!(help[4].starts_with("known keys: "), "{help:?}");
}

#[test]
fn keys_of_newer_versions_of_ai_tester_are_named_and_stop_nothing() {
    let text = "runs_dir: ./runs\nacp_agents: {local: {command: x}}\nmcp_servers: {}\nmcp_profiles: {}\n\
                defaults: {runtime: codex, agent: local, mode: review, reasoning: high, mcp_profile: mock}\n";
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(".ai-tester.yaml"), text).unwrap();
    let (project, problems) = Project::find(directory.path(), directory.path());
    assert_eq!(project.defaults.agent.unwrap().value, "codex");
    assert_eq!(problems.len(), 8, "{problems:?}");
    for problem in problems.iter() {
        assert_eq!(problem.severity, Severity::Warning, "{problem}");
        assert!(problem.message.ends_with("of ai-tester has no effect"), "{problem}");
    }
}

#[test]
fn a_variable_as_in_a_shell_that_an_agent_sends_or_gets_causes_a_warning() {
    let problems = |headers: &str| {
        let text = format!("agents:\n  bot:\n    type: http\n    url: http://localhost:1\n    headers: {headers}\n");
        find_with(&[("trialrun.yaml", &text)], &[("TOKEN", "abc")]).1
    };
    let found = problems("{ Authorization: 'Bearer ${TOKEN}' }");
    assert_eq!(found, ["trialrun.yaml:5:31: the variable `TOKEN` is not filled in here, so its name is sent"]);
    assert_eq!(problems("{ Authorization: 'Bearer ${env.TOKEN}', X: 'a ${ b' }"), [""; 0]);
    let text =
        "agents:\n  bot:\n    type: subprocess\n    command: [cat]\n    env: { A: '${TOKEN}', B: 'a ${TOKEN}' }\n";
    let found = find_with(&[("trialrun.yaml", text)], &[]).1;
    assert_eq!(found, ["trialrun.yaml:5:15: the variable `TOKEN` is not filled in here: the program gets its name"]);
}

#[test]
fn two_trialrun_configurations_in_one_directory_are_an_error() {
    let (_, problems, _directory) = find(&[("trialrun.yaml", ""), ("trialrun.config.json", "{}")], ".");
    assert_eq!(
        problems,
        ["trialrun.yaml:1:1: two configurations in one directory: `trialrun.config.json` and `trialrun.yaml`"]
    );
}

#[test]
fn json_configuration_is_strict_json() {
    let (project, problems, _directory) = find(&[("trialrun.config.json", "{\"defaults\": {\"trials\": 2}}")], ".");
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(project.defaults.trials.unwrap().value, model::Trials::Fixed(2));
    let (_, problems, _directory) = find(&[("trialrun.config.json", "{\"defaults\": {},}")], ".");
    assert!(problems[0].contains("trailing comma"), "{problems:?}");
}

/// Example configuration of Fabrik Lite, unchanged.
const FABRIK: &str = r#"import { defineConfig } from "@fabrik/cli";

export default defineConfig({
  agent: {
    type: "http",
    url: "http://localhost:3000/api/chat",
    headers: { "Authorization": "Bearer ${env.AGENT_API_KEY}" },
  },
  tests: "./tests",
  llm: {
    provider: "openai",
    model: "gpt-",
    apiKey: "${env.OPENAI_API_KEY}",
  },
  sandbox: {
    provider: "daytona",  // or "local"
    daytona: {
      apiKey: "${env.DAYTONA_API_KEY}",
      target: "us",
    },
  },
  eval: {
    parallelism: 4,
    retries: 2,
    defaultTimeout: 20000,
  },
  diff: {
    regressionThreshold: 0.05,
  },
  report: {
    formats: ["terminal", "json"],
    outputDir: "./fabrik-reports",
  },
  store: {
    path: "./.fabrik/traces.db",
  },
});
"#;

fn find_with(files: &[(&str, &str)], environment: &[(&str, &str)]) -> (Project, Vec<String>, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let (project, problems) = Project::find_with(directory.path(), directory.path(), &environment);
    (project, problems.iter().map(ToString::to_string).collect(), directory)
}

fn missing(problems: &[Diagnostic]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_configuration_can_be_a_module_with_any_supported_extension() {
    for (name, text) in [
        ("trialrun.config.mts", "const state: string = './s';\nexport default { state };\n"),
        ("trialrun.config.cjs", "module.exports = { state: './s' };\n"),
        ("trialrun.config.cts", "const state: string = './s';\nmodule.exports = { state };\n"),
        (
            "fabrik.config.cjs",
            "const { defineConfig } = require('@fabrik/cli');\nmodule.exports = defineConfig({ state: './s' });\n",
        ),
    ] {
        let (project, problems, directory) = find_with(&[(name, text)], &[]);
        assert_eq!(problems, [""; 0], "{name}");
        assert_eq!(project.state, directory.path().canonicalize().unwrap().join("s"), "{name}");
    }
}

#[test]
fn a_fabrik_configuration_is_read_unchanged() {
    let environment = [("AGENT_API_KEY", "k-agent"), ("OPENAI_API_KEY", "k-judge")];
    let (project, problems, directory) = find_with(&[("fabrik.config.ts", FABRIK), ("tests/x", "")], &environment);
    assert!(problems.is_empty(), "{problems:?}");
    let root = directory.path();
    let [agent] = project.agents.as_slice() else { panic!("{:?}", project.agents) };
    assert_eq!((agent.name.as_str(), agent.missing.len()), ("http", 0));
    assert_eq!(agent.node.to_json()["headers"], serde_json::json!({"Authorization": "Bearer k-agent"}));
    let default = project.defaults.agent.unwrap();
    assert_eq!((default.value.as_str(), default.source.to_string().as_str()), ("http", "fabrik.config.ts:4:10"));
    assert_eq!(project.tests, Some(root.join("tests")));
    let judge = &project.judge;
    assert_eq!(judge.model.as_ref().unwrap().value, "openai:gpt-");
    assert_eq!(judge.api_key.as_ref().unwrap().value, "k-judge");
    assert_eq!(project.defaults.sandbox.unwrap().value, "daytona");
    assert_eq!(project.sandbox_fallback.as_deref(), Some("local"));
    assert_eq!(project.defaults.jobs.unwrap().value, 4);
    assert_eq!(project.defaults.reruns.unwrap().value, 2);
    assert_eq!(project.defaults.timeout_ms.unwrap().value, 20_000);
    assert_eq!(project.regression_threshold.unwrap().value, 0.05);
    let formats: Vec<String> = project.reports.formats.unwrap().into_iter().map(|format| format.value).collect();
    assert_eq!(formats, ["terminal", "json"]);
    assert_eq!(project.reports.directory.unwrap().value, root.join("fabrik-reports"));
    assert_eq!(project.store.unwrap().value, root.join(".fabrik/traces.db"));
    assert_eq!(project.state, root.join(".trialrun"));
}

#[test]
fn a_missing_variable_is_reported_only_when_used() {
    let (project, problems, _directory) = find_with(&[("fabrik.config.ts", FABRIK), ("tests/x", "")], &[]);
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(
        missing(&project.agents[0].missing),
        ["fabrik.config.ts:7:33: `agent.headers.Authorization` needs the `AGENT_API_KEY` variable, which is not set"]
    );
    assert_eq!(
        missing(&project.judge.missing),
        ["fabrik.config.ts:13:13: `llm.apiKey` needs the `OPENAI_API_KEY` variable, which is not set"]
    );
    let text = "state: ${env.STATE_DIR}\nworkers: { queue: \"${env.QUEUE}\" }\n";
    let (project, problems, _directory) = find(&[("trialrun.yaml", text)], ".");
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(
        missing(&project.missing_of_record),
        ["trialrun.yaml:1:8: `state` needs the `STATE_DIR` variable, which is not set"]
    );
    assert_eq!(
        missing(&project.workers.unwrap().missing),
        ["trialrun.yaml:2:19: `workers.queue` needs the `QUEUE` variable, which is not set"]
    );
}

#[test]
fn a_fabrik_configuration_has_its_own_defaults() {
    let (project, problems, _directory) = find(&[("fabrik.config.json", "{}")], ".");
    assert!(problems.is_empty(), "{problems:?}");
    let defaults = project.defaults;
    assert_eq!((defaults.jobs.unwrap().value, defaults.reruns.unwrap().value), (3, 1));
    assert_eq!(defaults.timeout_ms.unwrap().value, 30_000);
}

#[test]
fn functions_of_an_agent_are_kept_and_others_are_rejected() {
    let text = "import { template } from './template.ts';\nexport default {\n  agents: { bot: { type: 'http', bodyTemplate: template, responseParser: (body) => body.text } },\n  state: () => 'x',\n};\n";
    let files = [("trialrun.config.ts", text), ("template.ts", "export const template = (m: string) => ({ m });\n")];
    let (project, problems, directory) = find(&files, ".");
    assert_eq!(problems, ["trialrun.config.ts:4:10: `state` contains a function, which is never called"]);
    let parser = project.agents[0].node.get("responseParser").unwrap().clone();
    assert_eq!(parser.tag.as_deref(), Some("!function"));
    let place = format!("{}#default.agents.bot.responseParser", directory.path().join("trialrun.config.ts").display());
    assert_eq!(parser.as_str(), Some(place.as_str()));
}

#[test]
fn a_broken_module_is_reported_at_its_line() {
    let (_, problems, _directory) = find(&[("trialrun.config.ts", "export default {\n  state: ,\n};\n")], ".");
    assert!(problems[0].starts_with("trialrun.config.ts:2:"), "{problems:?}");
    let (_, problems, _directory) = find(&[("trialrun.config.js", "export const config = {};\n")], ".");
    assert_eq!(problems, ["trialrun.config.js:1:1: the configuration has no default export"]);
    let (_, problems, _directory) = find(&[("trialrun.config.js", "export default () => ({});\n")], ".");
    assert_eq!(problems, ["trialrun.config.js:1:16: the configuration must be a map, not a function"]);
    let (_, problems, _directory) = find(&[("trialrun.config.mjs", "throw new Error('no');\n")], ".");
    assert!(problems[0].starts_with("trialrun.config.mjs:1:") && problems[0].contains("no"), "{problems:?}");
}

#[test]
fn a_module_that_reads_process_env_causes_a_warning() {
    let text = "// process.env is not here\nexport default { state: process.env.STATE };\n";
    let (_, problems, _directory) = find(&[("trialrun.config.ts", text)], ".");
    assert_eq!(problems, ["trialrun.config.ts:2:25: `process.env` is empty in a configuration"]);
}

#[test]
fn a_configuration_in_commonjs_is_read() {
    let (project, problems, _directory) =
        find(&[("fabrik.config.js", "module.exports = { eval: { retries: 0 } };\n")], ".");
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(project.defaults.reruns.unwrap().value, 0);
}

#[test]
fn retries_that_mean_reruns_cause_a_warning_in_trialrun_yaml() {
    let (project, problems, _directory) = find(&[("trialrun.yaml", "eval: { retries: 3 }\n")], ".");
    assert_eq!(project.defaults.reruns.unwrap().value, 3);
    assert_eq!(
        problems,
        ["trialrun.yaml:1:18: `eval.retries` reruns failed trials; the setting is called `reruns` everywhere else"]
    );
}

#[test]
fn a_single_agent_is_the_default_but_not_one_of_several() {
    let default = |text: &str| find(&[("trialrun.yaml", text)], ".").0.defaults.agent.map(|set| set.value);
    let agents = "agents: {one: {type: http}, two: {type: http}}\n";
    assert_eq!(default("agents: {one: {type: http}}").as_deref(), Some("one"));
    assert_eq!(default(agents), None);
    assert_eq!(default(&format!("{agents}agent: two")).as_deref(), Some("two"));
    assert_eq!(default(&format!("{agents}defaults: {{agent: two}}")).as_deref(), Some("two"));
    assert_eq!(default(&format!("{agents}agent: {{type: custom}}")).as_deref(), Some("custom"));
    assert_eq!(default("agent: claude").as_deref(), Some("claude-code"));
}

#[test]
fn settings_given_twice_are_errors() {
    for (text, expected) in [
        ("agent: a\ndefaults: {agent: b}", "1:8: `agent` and `agent` in `defaults` set the same; give one of them"),
        (
            "eval: {parallelism: 2}\ndefaults: {jobs: 3}",
            "1:21: `eval.parallelism` and `jobs` in `defaults` set the same; give one of them",
        ),
        ("defaults: {jobs: 3, parallelism: 2}", "1:21: `jobs` and `parallelism` are the same; give one of them"),
        (
            "sandbox: local\ndefaults: {sandbox: local}",
            "1:10: `sandbox` and `sandbox` in `defaults` set the same; give one of them",
        ),
        ("agents: {http: {type: http}}\nagent: {type: http}", "2:8: `agents` also has a `http`"),
    ] {
        let (_, problems, _directory) = find(&[("trialrun.yaml", text)], ".");
        assert_eq!(problems, [format!("trialrun.yaml:{expected}")], "{text}");
    }
}

#[test]
fn all_invalid_values_are_reported_together() {
    let text = "agents: {'a:b': {type: x}, c: 1}\nsandbox: {fallback: remote}\ndiff: {regressionThreshold: 2}\nproviders: {openai: {concurency: 1}}\njudge: {temperature: -1}\nllm: {provider: openai}\n";
    let (_, problems, _directory) = find(&[("trialrun.yaml", text)], ".");
    assert_eq!(
        problems,
        [
            "trialrun.yaml:1:10: `a:b` is not a valid name of an agent: it contains a space or one of `: = @ # , /`",
            "trialrun.yaml:1:31: an agent must be a map, not a number",
            "trialrun.yaml:2:21: `fallback` must be one of `local`, not `remote`",
            "trialrun.yaml:3:29: `regressionThreshold` must be a number from 0 to 1",
            "trialrun.yaml:4:22: unknown key `concurency` in a provider",
            "trialrun.yaml:5:22: `temperature` must be a number from 0 to 2",
            "trialrun.yaml:6:7: `llm` has no `model`",
        ]
    );
}

#[test]
fn a_separate_judge_does_not_use_the_key_of_another_model() {
    let text =
        "judge: anthropic:claude\nllm: {provider: openai, model: gpt, apiKey: '${env.OPENAI}', temperature: 0.5}\n";
    let (project, problems, _directory) = find(&[("trialrun.yaml", text)], ".");
    assert!(problems.is_empty(), "{problems:?}");
    let judge = project.judge;
    assert_eq!(judge.model.unwrap().value, "anthropic:claude");
    assert!(judge.api_key.is_none() && judge.missing.is_empty());
    assert_eq!(judge.temperature.unwrap().value, 0.5);
}

#[test]
fn an_ignored_configuration_file_is_reported() {
    let (project, problems, directory) = find(&[("fabrik.config.json", "{}"), (".ai-tester.yaml", "")], ".");
    assert_eq!(project.file, Some(directory.path().join("fabrik.config.json")));
    assert_eq!(
        problems,
        [".ai-tester.yaml:1:1: `.ai-tester.yaml` is ignored because `fabrik.config.json` takes precedence"]
    );
}

#[test]
fn a_configuration_that_is_a_pipe_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    assert!(
        std::process::Command::new("mkfifo").arg(directory.path().join("trialrun.yaml")).status().unwrap().success()
    );
    let (_, problems) = Project::find(directory.path(), directory.path());
    let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(messages, ["trialrun.yaml:1:1: cannot read the file: it is not a regular file"]);
}

#[test]
fn a_default_timeout_that_is_probably_in_seconds_causes_a_warning() {
    let default_timeout = |timeout: &str| {
        let text = format!("eval: {{defaultTimeout: {timeout}}}\n");
        let (project, problems, _directory) = find(&[("trialrun.yaml", &text)], ".");
        (project.defaults.timeout_ms.unwrap().value, problems)
    };
    let (timeout, problems) = default_timeout("30");
    assert_eq!((timeout, problems.len()), (30, 1));
    assert!(problems[0].contains("`30` has no unit and is read as 30 milliseconds"), "{problems:?}");
    assert_eq!((default_timeout("10000"), default_timeout("30s")), ((10_000, Vec::new()), (30_000, Vec::new())));
}

#[test]
fn a_visible_path_that_does_not_exist_is_reported_with_its_line() {
    let text = "sandbox:\n  provider: isolated\n  visible:\n    - ./shared-data\n    - lib/shard-data\n    - /nowhere-at-all\n";
    let (project, problems, directory) =
        find(&[("trialrun.yaml", text), ("shared-data/x", ""), ("lib/shared-data/x", "")], ".");
    assert_eq!(project.isolation.visible.len(), 3);
    assert_eq!(
        problems,
        [
            "trialrun.yaml:5:7: there is no file or directory `lib/shard-data`",
            "trialrun.yaml:6:7: there is no file or directory `/nowhere-at-all`",
        ]
    );
    let (_, problems) = Project::find(directory.path(), directory.path());
    assert_eq!(problems[0].help, ["did you mean `lib/shared-data`?"]);
}

#[test]
fn workers_are_used_if_they_are_configured() {
    let read = |text: &str| {
        let (project, problems, _directory) = find(&[("trialrun.yaml", text)], ".");
        (project.workers, problems)
    };
    let (workers, problems) = read(
        "workers:\n  queue: postgres://db/queue\n  limits: {codex: 4, a/b: 1}\n  timeout: 2m\n  same_version: true\n",
    );
    assert!(problems.is_empty(), "{problems:?}");
    let workers = workers.unwrap();
    assert_eq!(workers.queue.unwrap().value, "postgres://db/queue");
    let limits: Vec<_> = workers.limits.iter().map(|(name, most)| (&**name, most.value)).collect();
    assert_eq!(limits, [("codex", 4), ("a/b", 1)]);
    assert_eq!((workers.timeout_ms, workers.same_version), (Some(120_000), true));
    assert!(read("workers: true\n").0.is_some_and(|workers| workers.queue.is_none() && !workers.same_version));
    assert!(read("workers: false\n").0.is_none());
    for (text, expected) in [
        ("workers: {limits: {codex: 0}}", "the limit of `codex` must be a whole number above 0"),
        ("workers: {limits: [codex]}", "`limits` must be a map of names to numbers, not a list"),
        ("workers: {jobs: 3}", "`jobs`"),
    ] {
        let (_, problems) = read(text);
        assert!(problems.iter().any(|problem| problem.contains(expected)), "{text}: {problems:?}");
    }
}
