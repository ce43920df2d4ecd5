//! Suites that were written for other tools: what becomes of each file of a corpus that was made by hand. The files are
//! in `tests/foreign/FORMAT`, and the expected results in `tests/foreign/FORMAT.txt`; set `TRIALRUN_UPDATE_EXPECTED=1` to
//! rewrite them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use model::{Case, Severity};
use trialrun_suite::{Loaded, Treatment};

use crate::scratch::Scratch;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign")
}

/// Returns the files of a corpus, sorted by name.
pub(crate) fn corpus(format: &str) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder().join(format)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.collect();
    files.sort();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    files.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

/// Describes what was loaded.
fn described(loaded: &Loaded) -> String {
    let mut text = String::new();
    for problem in &loaded.diagnostics {
        let severity = if problem.severity == Severity::Error { "refused" } else { "warning" };
        writeln!(text, "  {severity}: {}", place(&problem.to_string())).unwrap();
    }
    for (suite, case) in loaded.suites.iter().flat_map(|suite| suite.cases.iter().map(move |case| (suite, case))) {
        writeln!(text, "  {}", line(case)).unwrap();
        for (name, variant) in &case.variants {
            let skill = variant.subject.skill().map_or("no skill", |skill| &skill.name);
            let servers: Vec<&str> = variant.mocks.servers.iter().map(|server| server.name.as_str()).collect();
            let broken = if variant.broken.is_empty() { "" } else { "; broken" };
            writeln!(text, "    variant {name}: {}; {skill}; servers {servers:?}{broken}", line(variant)).unwrap();
        }
        if suite.format == "promptfoo" {
            let agent = case.runner.agent.as_ref().map_or("no agent", |(agent, _)| agent.as_str());
            writeln!(text, "    says to {agent}: {:?}", case.messages.first().map(|message| &message.text)).unwrap();
        }
        for spec in case.assertions.iter().filter(|spec| spec.kind.value == "reward") {
            writeln!(text, "    verifies {:?}: {}", spec.about, spec.node.to_json()).unwrap();
        }
        for problem in &case.needs_image {
            writeln!(text, "    needs an image: {}", place(&problem.to_string())).unwrap();
        }
        for problem in &case.broken {
            writeln!(text, "    broken: {}", place(&problem.to_string())).unwrap();
        }
    }
    for key in loaded.coverage.iter().flat_map(|file| &file.keys) {
        let what = match key.treatment {
            Treatment::Honoured => continue,
            Treatment::Ignored => "ignored",
            Treatment::Refused => "not supported",
        };
        let consequence = key.consequence.as_deref().unwrap();
        writeln!(text, "  {what}: {} (line {}): {consequence}", key.key, key.source.line).unwrap();
    }
    text
}

/// Removes the folders of a file from a message that begins with its path.
fn place(message: &str) -> String {
    let (path, rest) = message.split_once(": ").unwrap_or(("", message));
    format!("{}: {rest}", path.rsplit('/').next().unwrap_or(path))
}

/// Describes a case in a line.
fn line(case: &Case) -> String {
    let assertions: Vec<String> = case
        .assertions
        .iter()
        .map(|spec| {
            let mark = if case.indicators.contains(&spec.id) { "?" } else { "" };
            let weight = if (spec.weight - 1.0).abs() < 1e-9 { String::new() } else { format!("*{}", spec.weight) };
            format!("{}={}{weight}{mark}", spec.id, spec.kind.value)
        })
        .collect();
    let fixtures = &case.fixtures;
    let mut files: Vec<&str> = fixtures.files_unstaged.iter().map(|file| file.path.as_str()).collect();
    files.extend(fixtures.copy_trees.iter().map(|tree| tree.to.as_str()));
    files.extend(fixtures.directories.iter().map(String::as_str));
    let outside: Vec<String> = fixtures.outside.iter().map(outer_folder).collect();
    let mut parts = vec![format!("case {}", case.id)];
    let mut part = |name: &str, value: String| {
        if !value.is_empty() {
            parts.push(format!("{name} {value}"));
        }
    };
    part("description", case.description.clone().unwrap_or_default());
    part("tags", case.tags.join(" "));
    part("turns", case.max_turns.map(|turns| turns.to_string()).unwrap_or_default());
    part("ms", case.timeout_ms.map(|ms| ms.to_string()).unwrap_or_default());
    part("trials", case.trials.map(|trials| trials.most().to_string()).unwrap_or_default());
    part("model", case.runner.model.clone().unwrap_or_default());
    part("tools", case.runner.allowed_tools_override.clone().unwrap_or_default().join(" "));
    part("system", case.system_prompt.clone().unwrap_or_default());
    part("env", fixtures.env.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" "));
    part("files", files.join(" "));
    part("workdir", fixtures.workdir.clone().unwrap_or_default());
    part("outside", outside.join(" "));
    part("network", case.network.as_ref().map(ToString::to_string).unwrap_or_default());
    part("graded", case.graded.folders.iter().map(|folder| folder.path.as_str()).collect::<Vec<_>>().join(" "));
    part("solution", case.graded.solution.as_ref().map(|solution| solution.commands.join(" | ")).unwrap_or_default());
    part("servers", case.mocks.servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>().join(" "));
    part(
        "quiet",
        case.skill_eval.as_ref().filter(|eval| !eval.should_trigger).map(|_| "yes".into()).unwrap_or_default(),
    );
    part("asserts", assertions.join(" "));
    parts.join("; ")
}

/// Describes a folder outside of the working directory.
fn outer_folder(folder: &model::OuterFolder) -> String {
    let trees = folder.trees.iter().map(|tree| tree.to.as_str());
    let files = folder.files.iter().map(|file| file.path.as_str());
    let inside: Vec<&str> = folder.directories.iter().map(String::as_str).chain(trees).chain(files).collect();
    format!("{}({})", folder.path, inside.join(" "))
}

/// Compares the results of a corpus with the expected ones. `write` writes the file into a project and returns the
/// target to load.
fn check(format: &str, write: impl Fn(&Scratch, &str, &str) -> String) {
    let mut text = String::new();
    let files = corpus(format);
    assert!(files.len() >= 40, "{format}: {}", files.len());
    for (name, content) in files {
        let scratch = Scratch::new();
        let target = write(&scratch, &name, &content);
        let loaded = scratch.load(&[&target]);
        let described = described(&loaded).replace(&format!("{}/", scratch.root().display()), "");
        writeln!(text, "{name}\n{described}").unwrap();
    }
    let path = folder().join(format!("{format}.txt"));
    if std::env::var_os("TRIALRUN_UPDATE_EXPECTED").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    for (is, was) in text.split("\n\n").zip(expected.split("\n\n")) {
        assert_eq!(is, was, "TRIALRUN_UPDATE_EXPECTED=1 rewrites {}", path.display());
    }
    assert_eq!(text.len(), expected.len());
}

pub(crate) fn skill(scratch: &Scratch) {
    scratch
        .skill("s")
        .write("skills/s/evals/files/a.csv", "a\n")
        .write("skills/s/evals/cases/b.txt", "b\n")
        .write("skills/s/templates/plan.md", "# Plan\n");
}

#[test]
fn skill_evaluations_of_other_tools_are_read() {
    check("evals", |scratch, _, content| {
        skill(scratch);
        scratch.write("skills/s/evals/evals.json", content);
        "s".to_owned()
    });
}

#[test]
fn trigger_lists_are_read() {
    check("trigger-eval", |scratch, _, content| {
        skill(scratch);
        scratch.write("skills/s/evals/trigger-eval.json", content);
        "skills/s/evals/trigger-eval.json".to_owned()
    });
}

#[test]
fn cases_of_claude_plugin_eval_are_read() {
    check("plugin-eval", write_plugin_case);
}

/// Writes a case of a plug-in, and returns its file.
pub(crate) fn write_plugin_case(scratch: &Scratch, name: &str, content: &str) -> String {
    let (stem, extension) = name.rsplit_once('.').unwrap();
    let case = format!("plug/evals/{stem}");
    scratch
        .write("plug/.claude-plugin/plugin.json", "{\"name\": \"picnics\", \"version\": \"1.2.0\"}")
        .write("plug/skills/plan/SKILL.md", "---\nname: plan\ndescription: Plans.\n---\nPlan.\n")
        .write(&format!("{case}/fixture.sh"), "touch a.txt\n")
        .write(&format!("{case}/resources/r.txt"), "r\n")
        .write(&format!("{case}/history.jsonl"), "{}\n")
        .write(
            &format!("{case}/reference.jsonl"),
            "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"At the lake.\"}]}}\n",
        );
    if extension == "md" {
        scratch
            .write(&format!("{case}/prompt.md"), content)
            .write(&format!("{case}/graders/place.md"), "---\ntype: regex\nweight: 2\n---\nlake\n")
            .write(&format!("{case}/graders/tone.md"), "Is friendly.\n");
        return format!("{case}/prompt.md");
    }
    scratch.write(&format!("{case}/case.yaml"), content);
    format!("{case}/case.yaml")
}

#[test]
fn configurations_of_promptfoo_are_read() {
    check("promptfoo", |scratch, name, content| {
        let ending = name.rsplit_once('.').unwrap().1;
        write_promptfoo_files(scratch);
        scratch.write(&format!("promptfooconfig.{ending}"), content);
        format!("promptfooconfig.{ending}")
    });
}

#[test]
fn suites_of_vally_are_read() {
    check("vally", write_vally_suite);
}

/// Writes a suite of Vally, and returns its file.
pub(crate) fn write_vally_suite(scratch: &Scratch, _: &str, content: &str) -> String {
    for skill in ["skills/plan", "skills/other", "plug/skills/one", "plug/skills/two"] {
        let name = skill.rsplit('/').next().unwrap();
        scratch.write(&format!("{skill}/SKILL.md"), format!("---\nname: {name}\ndescription: d\n---\nDo.\n"));
    }
    scratch
        .write("plug/.claude-plugin/plugin.json", "{\"name\": \"plug\"}")
        .write("data/menu.txt", "bread\n")
        .write("graders/check.py", "print('{\"passed\": true}')\n")
        .write("broken.yaml", "stimuli: [\n")
        .write("evals/lake/eval.yaml", LAKE)
        .write("evals/shore/eval.yaml", "stimuli: [{name: shore, prompt: Go., graders: [{type: completed}]}]\n")
        .write(
            ".vally.yaml",
            "environments:\n  kitchen: {commands: [touch kitchen]}\n  garden: {files: [{src: data/menu.txt, dest: a.txt}]}\n",
        )
        .write("eval.yaml", content);
    "eval.yaml".to_owned()
}

#[test]
fn tasks_of_harbor_are_read() {
    check("harbor", |scratch, name, content| {
        let folder = format!("tasks/{}", name.trim_end_matches(".txt"));
        write_harbor_task(scratch, &folder, content);
        folder
    });
}

/// Writes a task of harbor to `folder`. `content` has a line `# ==> PATH <==` before each file, and `# ==> no PATH <==` for a
/// file that every task has otherwise.
pub(crate) fn write_harbor_task(scratch: &Scratch, folder: &str, content: &str) {
    let mut files = vec![
        ("instruction.md", "Write the sum to `sum.txt`.\n".to_owned()),
        ("environment/Dockerfile", "FROM ubuntu:24.04\nWORKDIR /app\n".to_owned()),
        ("tests/test.sh", "test -f /app/sum.txt && echo 1 > /logs/verifier/reward.txt\n".to_owned()),
    ];
    for line in content.split_inclusive('\n') {
        match line.strip_prefix("# ==> ").and_then(|rest| rest.strip_suffix(" <==\n")) {
            Some(head) => {
                let path = head.strip_prefix("no ").unwrap_or(head);
                files.retain(|(known, _)| *known != path);
                if path == head {
                    files.push((path, String::new()));
                }
            }
            None => files.last_mut().unwrap().1.push_str(line),
        }
    }
    for (path, text) in files {
        scratch.write(&format!("{folder}/{path}"), text);
    }
}

#[test]
fn suites_of_waza_are_read() {
    check("waza", write_waza_suite);
}

/// Writes a suite of waza with its tasks, and returns its file.
pub(crate) fn write_waza_suite(scratch: &Scratch, _: &str, content: &str) -> String {
    scratch
        .write("skills/plan/SKILL.md", "---\nname: plan\ndescription: d\n---\nPlan.\n")
        .write("evals/rows.csv", "id,prompt,place\none,Plan at the {{.Vars.place}}.,lake\n,Plan again.,shore\n")
        .write("evals/bare.csv", "id,question\none,Where?\n")
        .write("evals/fixtures/rules.md", "Be brief.\n")
        .write("evals/fixtures/menu.txt", "bread\n")
        .write("evals/fixtures/app/a.txt", "a\n")
        .write("evals/snapshots/menu.txt", "bread\n")
        .write("evals/schema.json", "{\"type\": \"object\"}")
        .write("evals/rubric.md", "Names a day.\n")
        .write("evals/graders/check.py", "import sys\nsys.exit(0)\n")
        .write("evals/eval.yaml", content);
    for (name, task) in WAZA_TASKS {
        scratch.write(&format!("evals/tasks/{name}.yaml"), task);
    }
    "evals/eval.yaml".to_owned()
}

/// Suite that experiments name.
const LAKE: &str = "environment: {skills: [../../skills/plan], mcpServers: {shop: {command: node}}}\n\
    defaults: {runs: 2}\n\
    stimuli: [{name: lake, prompt: Go., environment: {skills: [../../skills/plan]}, graders: [{type: completed}]}]\n";

/// Tasks of the suites in the corpus.
pub(crate) const WAZA_TASKS: [(&str, &str); 8] = [
    ("lake", "id: lake\nname: Lake\ninputs: {prompt: Plan a picnic at the lake.}\n"),
    ("bare", "id: bare\nname: Bare\ninputs: {prompt: Plan.}\n"),
    (
        "all",
        "id: all\nname: All\ndescription: d\nenabled: false\ngolden: true\ncontext_dir: fixtures\ntimeout_seconds: 30\n\
         first_event_timeout_seconds: 3\ntags: [smoke]\nskill_directories: [x]\ninstruction_files: [rules.md]\n\
         inputs:\n  prompt_file: ../rubric.md\n  context: {fixture: app, level: easy}\n\
         \x20 files: [{path: menu.txt}, {path: b.txt, content: b}]\n  environment: {MODE: fast}\n  follow_up_prompts: [And then?]\n\
         expected:\n  outcomes: [{type: done, value: 1, condition: x}]\n  tool_calls: {required: []}\n\
         \x20 behavior: {max_tool_calls: 5, max_iterations: 3, max_tokens: 900, required_tools: [bash], forbidden_tools: [rm], max_response_time_ms: 9000}\n\
         \x20 output_contains: [lake]\n  output_not_contains: [rain]\n  should_trigger: true\n\
         graders: [{name: short, type: code, weight: 0.5, assertions: ['len(output) < 900']}]\n",
    ),
    (
        "mistakes",
        "id: mistakes\nname: M\nseed: 3\ninputs: {prompts: Plan., repos: [{type: worktree, source: ., dest: r}], workdir: sub, files: [{path: ../x, content: y}, {path: none.txt}]}\n\
         expected: {output_contain: [x], should_trigger: maybe}\n",
    ),
    (
        "both",
        "id: both\nname: B\ninputs: {prompt: Plan., prompt_file: a.md, follow_up_prompts: [x], responder: {instructions: i, max_followups: 1}}\n",
    ),
    ("text", "just text\n"),
    (
        "responder",
        "id: talk\nname: T\ninputs: {prompt: Plan., responder: {model: m, instructions: You want a lake., max_followups: 3}}\n",
    ),
    ("broken", "id: broken\ninputs: [\n"),
];

/// Writes a suite, which is followed by its datasets: each begins with `--- NAME`.
pub(crate) fn write_dataset(scratch: &Scratch, _: &str, content: &str) -> String {
    let mut parts = content.split("--- ");
    scratch
        .write("note.txt", "note\n")
        .write("folder/c.txt", "c\n")
        .write("setup.sh", "touch ready\n")
        .write("model.yaml", "steps: []\n")
        .write("suite.yaml", parts.next().unwrap());
    for part in parts {
        let (name, data) = part.split_once('\n').unwrap();
        scratch.write(name, data);
    }
    "suite.yaml".to_owned()
}

#[test]
fn samples_of_inspect_are_read() {
    check("inspect", write_dataset);
}

#[test]
fn goldens_of_deepeval_are_read() {
    check("deepeval", write_dataset);
}

/// Writes the files that the configurations of the corpus name.
pub(crate) fn write_promptfoo_files(scratch: &Scratch) {
    scratch
        .write("prompts/two.txt", "One {{word}}.\n---\nTwo {{word}}.\n")
        .write("prompts/a.md", "# {{word}}\n")
        .write("prompts/lines.jsonl", "{\"q\": \"{{word}}\"}\n[\"{{word}}\"]\n")
        .write(
            "prompts/chat.json",
            "[{\"role\": \"system\", \"content\": \"Be brief.\"}, {\"role\": \"user\", \"content\": \"{{word}}?\"}]",
        )
        .write("prompts/make.js", "export default () => 'a';\n")
        .write(
            "tests.csv",
            "word,__expected,__expected2,__description,__threshold,__metric,__config:__expected2:threshold,__suffix\n\
             hi,contains: hi,levenshtein(3): Say hi.,first,0.5,m,2,!\n\
             bye,Say bye.,,,,,,\n",
        )
        .write("mistakes.csv", "word,_expected,__other,__config:__expected:weight\nhi,hi,x,2\n")
        .write(
            "tests.jsonl",
            "{\"vars\": {\"word\": \"hi\"}, \"assert\": [{\"type\": \"contains\", \"value\": \"hi\"}]}\n{\"vars\": {\"word\": \"bye\"}}\n",
        )
        .write("more/a.yaml", "- vars: {word: hi}\n  assert: [{type: contains, value: hi}]\n")
        .write("more/b.yaml", "vars: {word: bye}\nassert: [{type: contains, value: bye}]\n")
        .write("tests.js", "export default [{ vars: { word: 'hi' }, assert: [{ type: 'contains', value: 'hi' }] }];\n")
        .write("data.txt", "text\n")
        .write("data.yaml", "a: [1]\n")
        .write("texts/a.txt", "a\n")
        .write("texts/b.txt", "b\n")
        .write("word.js", "export default () => ({ output: 'a' });\n")
        .write("schema.json", "{\"type\": \"object\"}\n")
        .write("check.js", "export const longer = (output) => output.length > 2;\n")
        .write("check.py", "def get_assert(output, context):\n    return len(output) > 2\n")
        .write("parse.js", "export default (json) => json.reply;\n")
        .write("provider.js", "export default class { async callApi(prompt) { return { output: prompt }; } }\n")
        .write("provider.py", "def answer(prompt, options, context):\n    return {'output': prompt}\n")
        .write("providers.yaml", "- echo\n- {id: echo, label: second}\n")
        .write("defaults.yaml", "assert: [{type: contains, value: hi}]\n")
        .write("asserts.yaml", "- {type: contains, value: a}\n- {type: nonsense, value: a}\n");
}

#[test]
fn providers_become_agents_and_an_agent_of_the_run_replaces_them() {
    let scratch = Scratch::new();
    write_promptfoo_files(&scratch);
    let config = std::fs::read_to_string(folder().join("promptfoo/provider-http.yaml")).unwrap();
    scratch.write("promptfooconfig.yaml", config);
    let loaded = scratch.load(&["promptfooconfig.yaml"]);
    let shop = loaded.agents.iter().find(|agent| agent.name == "shop").unwrap();
    assert_eq!(
        shop.node.to_json(),
        serde_json::json!({
            "type": "http", "url": "https://bots.example/${env.STAGE}/chat", "server_errors": "broken", "method": "POST",
            "headers": {"Authorization": "Bearer ${env.BOT_KEY}"},
            "body_template": {"question": "{{ message }}", "lang": "{{ vars.lang }}", "all": "{{ vars.items|tojson }}"},
            "response_parser": "$.data.reply",
        })
    );
    assert_eq!(loaded.suites[0].cases.len(), 5);
    let request = trialrun_suite::Request {
        agent_is_chosen: true,
        root: scratch.path(""),
        cwd: scratch.path(""),
        skills_dir: scratch.path("skills"),
        targets: vec!["promptfooconfig.yaml".into()],
        ..trialrun_suite::Request::default()
    };
    let loaded = trialrun_suite::load(&request);
    let cases = &loaded.suites[0].cases;
    assert_eq!((cases.len(), cases[0].id.as_str(), cases[0].broken.len()), (1, "test 1", 0));
    assert!(cases[0].runner.agent.is_none());
}

#[test]
fn a_repository_that_is_a_skill_may_have_any_name() {
    let scratch = Scratch::new();
    let suite =
        "{\"skill_name\": \"picnics\", \"evals\": [{\"id\": 1, \"prompt\": \"p\", \"expected_output\": \"x\"}]}";
    scratch
        .write(".git/HEAD", "ref: refs/heads/main\n")
        .write("SKILL.md", "---\nname: picnics\ndescription: d\n---\n")
        .write("evals/evals.json", suite);
    for targets in [&[][..], &["."], &["evals/evals.json"]] {
        let loaded = scratch.load(targets);
        assert_eq!(crate::scratch::describe(&loaded.diagnostics), [] as [&str; 0], "{targets:?}");
        let skill = loaded.suites[0].cases[0].subject.installed().unwrap();
        assert_eq!((skill.file_name().as_str(), skill.name.as_str()), ("picnics", "picnics"));
    }
}

#[cfg(unix)]
#[test]
fn skills_that_were_installed_for_agents_are_found_once() {
    let scratch = Scratch::new();
    std::fs::remove_dir(scratch.path("skills")).unwrap();
    for name in ["one", "two"] {
        let folder = format!(".agents/skills/{name}");
        scratch
            .write(&format!("{folder}/SKILL.md"), format!("---\nname: {name}\ndescription: d\n---\n"))
            .write(&format!("{folder}/evals/trigger-eval.json"), "[{\"query\": \"Go.\", \"should_trigger\": true}]");
        let link = scratch.path(&format!(".claude/skills/{name}"));
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(format!("../../.agents/skills/{name}"), link).unwrap();
    }
    // Tests of another runner are not tests of the project.
    scratch.write("tests/sum.test.js", "test('adds', () => {});\n").write("tests/config.yaml", "browser: firefox\n");
    let loaded = scratch.load_with_tests();
    assert_eq!(crate::scratch::describe(&loaded.diagnostics), [] as [&str; 0]);
    let cases: Vec<_> = loaded.suites.iter().flat_map(|suite| &suite.cases).collect();
    let skills: Vec<&str> = cases.iter().map(|case| case.subject.skill().unwrap().name.as_str()).collect();
    assert_eq!(skills, ["one", "two"]);
    assert_eq!(crate::scratch::outline(&loaded).len(), 2);
    assert_eq!(crate::scratch::outline(&scratch.load(&["two"])).len(), 1);

    // A project with tests of its own does not run those that came with a skill.
    scratch.write("scenarios/own.yaml", "{scenario: own, system_prompt: p}");
    let loaded = scratch.load(&[]);
    assert_eq!(crate::scratch::outline(&loaded).len(), 1);
}

#[test]
fn a_repository_of_skills_is_found_without_configuration() {
    let scratch = Scratch::new();
    let suite = |name: &str| {
        format!(
            "{{\"skill_name\": \"{name}\", \"evals\": [{{\"id\": 1, \"prompt\": \"p\", \"expected_output\": \"x\"}}]}}"
        )
    };
    scratch
        .write("plugins/picnics/.claude-plugin/plugin.json", "{\"name\": \"picnics\"}")
        .write("plugins/picnics/evals/lake/prompt.md", "Plan a picnic.\n")
        .write("plugins/picnics/evals/lake/graders/place.md", "Names a lake.\n")
        .write("plugins/picnics/evals/results/old/case.yaml", "schema_version: \"1.1\"\n")
        .write("plugins/games/.claude-plugin/plugin.json", "{\"name\": \"games\"}")
        .write("plugins/games/skills/chess/SKILL.md", "---\nname: chess\ndescription: d\n---\n")
        .write("plugins/games/skills/chess/evals/evals.json", suite("chess"))
        .write("one/SKILL.md", "---\nname: one\ndescription: d\n---\n")
        .write("one/evals/evals.json", suite("one"))
        .write("one/evals/trigger-eval.json", "[{\"query\": \"Go.\", \"should_trigger\": true}]")
        .write("one/evals/results.json", "{\"passed\": 3}")
        .write("two/SKILL.md", "---\nname: two\ndescription: d\n---\n")
        .write("two/evals/evals.json", suite("two"))
        .write("plugins/games/skills/chess/tests/test_board.py", "def test(): pass\n")
        .write("plugins/games/skills/chess/tests/board.yaml", "size: 8\n")
        .write("tests/test_tool.py", "def test(): pass\n");
    let loaded = scratch.load(&[]);
    assert_eq!(crate::scratch::describe(&loaded.diagnostics), [] as [&str; 0]);
    let mut found = crate::scratch::outline(&loaded);
    found.sort();
    assert_eq!(found, ["chess/evals: 1", "one/evals: 1", "picnics: lake", "trigger-eval: query-1", "two/evals: 1"]);
}

#[test]
fn a_case_of_a_plugin_that_cannot_be_read_is_not_skipped_in_silence() {
    let scratch = Scratch::new();
    let case = "execution: {prompt: p}\ngraders: [{type: regex, pattern: x}]\n";
    scratch
        .write(".claude-plugin/plugin.json", "{\"name\": \"picnics\"}")
        .write("evals/list/case.yaml", "- a\n")
        .write("evals/other-keys/case.yaml", "name: x\ntask: hi\n")
        .write("evals/other-name/case.yml", case)
        .write("evals/good/case.yaml", case)
        .write("evals/good/data/case.yaml", "rows: []\n");
    let loaded = scratch.load(&["evals"]);
    let described = crate::scratch::describe(&loaded.diagnostics);
    assert_eq!(described, ["evals/other-name/case.yml:1:1: this file is not read as a test because of its name"]);
    let cases = loaded.suites.iter().flat_map(|suite| &suite.cases);
    let broken: Vec<(&str, usize)> = cases.map(|case| (&*case.id, case.broken.len())).collect();
    assert_eq!(broken, [("good", 0), ("list", 1), ("x", 1)]);
}
