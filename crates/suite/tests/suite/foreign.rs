//! Suites that were written for other tools: what becomes of each file of a corpus that was made by hand. The files are
//! in `tests/foreign/FORMAT`, and the expected results in `tests/foreign/FORMAT.txt`; set `TRIALRUN_UPDATE_EXPECTED=1` to
//! rewrite them.

use std::fmt::Write as _;

use model::{Case, Severity};
use testkit::foreign::{compare, corpus, folder, write};
use trialrun_suite::{Loaded, Treatment};

use crate::scratch::Scratch;

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
        for spec in case.assertions.iter().filter(|spec| spec.kind.value == "rubric" && suite.format == "waza") {
            writeln!(text, "    asks a judge: {}", spec.node.get("criteria").unwrap().to_json()).unwrap();
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
            Treatment::Honoured if key.consequence.is_some() => "note",
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

/// Compares the results of a corpus with the expected ones.
fn check(format: &str) {
    let mut text = String::new();
    let files = corpus(format);
    assert!(files.len() >= 40, "{format}: {}", files.len());
    for (name, content) in files {
        let scratch = Scratch::new();
        let target = write(format, scratch.root(), &name, &content);
        let loaded = scratch.load(&[&target]);
        let described = described(&loaded).replace(&format!("{}/", scratch.root().display()), "");
        writeln!(text, "{name}\n{described}").unwrap();
    }
    compare(&format!("{format}.txt"), &text);
}

#[test]
fn skill_evaluations_of_other_tools_are_read() {
    check("evals");
}

#[test]
fn trigger_lists_are_read() {
    check("trigger-eval");
}

#[test]
fn cases_of_claude_plugin_eval_are_read() {
    check("plugin-eval");
}

#[test]
fn configurations_of_promptfoo_are_read() {
    check("promptfoo");
}

#[test]
fn suites_of_vally_are_read() {
    check("vally");
}

#[test]
fn tasks_of_harbor_are_read() {
    check("harbor");
}

#[test]
fn suites_of_waza_are_read() {
    check("waza");
}

#[test]
fn samples_of_inspect_are_read() {
    check("inspect");
}

#[test]
fn goldens_of_deepeval_are_read() {
    check("deepeval");
}

/// Returns the assertions of the first case of a file of a corpus.
fn assertions(format: &str, name: &str) -> Vec<serde_json::Value> {
    let scratch = Scratch::new();
    let content = std::fs::read_to_string(folder().join(format).join(name)).unwrap();
    let loaded = scratch.load(&[&write(format, scratch.root(), name, &content)]);
    loaded.suites[0].cases[0].assertions.iter().map(|spec| spec.node.to_json()).collect()
}

#[test]
fn what_a_metric_compares_and_shows_is_what_its_arguments_say() {
    let checks: Vec<_> = assertions("deepeval", "tool-correctness-parts.yaml")[..2]
        .iter()
        .map(|spec| (spec["checks"][0]["input"].clone(), spec["checks"][0]["output"].clone()))
        .collect();
    assert_eq!(checks, [(true.into(), false.into()), (true.into(), true.into())]);

    let judged = assertions("deepeval", "g-eval-parameters.yaml");
    assert_eq!(
        judged[0]["criteria"],
        "c\n\nThe expected output:\nAt the lake.\n\nThe context:\nOpen at nine.\n\nWhat was retrieved:\nIt is free.\n\n\
         The expected tool calls:\n{\"name\":\"search\",\"input\":{\"q\":\"lake\"}}"
    );
    assert_eq!((&judged[0]["needs_calls"], &judged[1]["needs_calls"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(judged[3]["criteria"], "c\n\nThe expected output:\nAt the lake.\n\nThe context:\nOpen at nine.");

    let rated = &assertions("deepeval", "g-eval-rubric.yaml")[0];
    let criteria = "c\n\nThe expected output:\nAt the lake.\n\nThe context:\nOpen at nine.\n\n\
                    What the ratings mean:\n1 to 4: bad\n5 to 7: good";
    assert_eq!((&rated["criteria"], &rated["scale"], &rated["threshold"]), (&criteria.into(), &7.into(), &4.0.into()));
}

#[test]
fn metrics_about_what_the_agent_did_need_its_calls() {
    let of_calls: Vec<String> = assertions("deepeval", "rated.yaml")
        .iter()
        .filter(|spec| spec["needs_calls"] == true)
        .map(|spec| spec["id"].as_str().unwrap().to_owned())
        .collect();
    let expected = [
        "TaskCompletion",
        "GoalAccuracy",
        "StepEfficiency",
        "PlanQuality",
        "PlanAdherence",
        "ArgumentCorrectness",
        "ToolUse",
    ];
    assert_eq!(of_calls, expected);
}

/// Returns the type and a field of each assertion.
fn kinds(judged: &[serde_json::Value], field: &str) -> Vec<String> {
    let kind = |spec: &serde_json::Value| format!("{} {}", spec["type"].as_str().unwrap(), spec[field]);
    judged.iter().map(kind).collect()
}

#[test]
fn a_judge_rates_all_replies_of_a_conversation() {
    let whole = ["llm_judge true"; 3];
    assert_eq!(kinds(&assertions("deepeval", "conversation.yaml"), "all_replies"), whole);
    assert_eq!(kinds(&assertions("deepeval", "rated.yaml")[..1], "all_replies"), ["llm_judge null"]);
    let several = ["llm_judge true", "rubric null", "llm_judge true"];
    assert_eq!(kinds(&assertions("vally", "turns-judged.yaml"), "all_replies"), several);
    assert_eq!(kinds(&assertions("vally", "prompt-bare.yaml"), "all_replies"), ["llm_judge null"]);
}

#[test]
fn the_threshold_of_a_metric_is_the_lowest_rating_and_strict_metrics_need_the_highest() {
    let rated = assertions("deepeval", "threshold-of-good.yaml");
    let expected =
        ["llm_judge 2.0", "llm_judge 10.0", "llm_judge 6.0", "llm_judge 3.5", "llm_judge 2.0", "rubric null"];
    assert_eq!(kinds(&rated, "threshold"), expected);
    let strict = assertions("deepeval", "strict.yaml");
    assert_eq!(kinds(&strict, "threshold"), ["rubric null", "llm_judge 11.0", "rubric null"]);
    assert_eq!(strict[0]["criteria"], serde_json::json!(["c"]));
}

#[test]
fn rubrics_of_waza_about_calls_need_them() {
    let judged = assertions("waza", "prompt-rubrics.yaml");
    let needs: Vec<(&str, bool)> =
        judged.iter().map(|spec| (spec["id"].as_str().unwrap(), spec["needs_calls"] == true)).collect();
    let expected = [
        ("missing", false),
        ("named-like-a-file", false),
        ("misspelt", false),
        ("words", false),
        ("grounded", true),
        ("calls", true),
        ("lake", false),
    ];
    assert_eq!(needs, expected);
}

#[test]
fn variables_of_waza_are_set_in_prompt_files_and_rubric_files() {
    let scratch = Scratch::new();
    let suite = "name: picnics\nconfig: {trials_per_task: 1}\ninputs: {place: lake}\ntasks: [tasks/filed.yaml]\n\
                 graders: [{type: prompt, name: known, config: {rubric: place.md}}]\n";
    let target = write("waza", scratch.root(), "eval.yaml", suite);
    let evals = scratch.root().join("evals");
    std::fs::write(evals.join("tasks/filed.yaml"), "id: filed\ninputs: {prompt_file: ../place.md}\n").unwrap();
    let load = |text: &str| {
        std::fs::write(evals.join("place.md"), text).unwrap();
        scratch.load(&[&target]).suites[0].cases[0].clone()
    };
    let case = load("Names the {{ .Vars.place }}.\n");
    assert_eq!(case.broken, []);
    assert_eq!(case.messages[0].text, "Names the lake.\n");
    assert_eq!(case.assertions[0].node.get("criteria").unwrap().to_json(), serde_json::json!(["Names the lake."]));
    let case = load("Compare {{ .Output }} with {{.Vars.plaice}}, {{ place }} and {{ other }}.");
    let problems: Vec<&str> = case.broken.iter().map(|problem| problem.message.as_str()).collect();
    let expected = [
        "`{{ .Output }}` has no value: only variables are known",
        "there is no variable `plaice`",
        "`{{ place }}` is not how a variable is written",
    ];
    assert_eq!(problems, [expected, expected].concat());
}

#[test]
fn a_judge_is_told_how_several_targets_belong_together() {
    let judged = assertions("inspect", "several-targets-judged.yaml");
    assert_eq!(judged[0]["expected"], "One of these expected answers is enough:\n- Oslo\n- Kristiania");
    assert_eq!(judged[1]["expected"], "The expected answer is all of these together:\n- Oslo\n- Kristiania");
}

#[test]
fn a_configuration_of_promptfoo_may_have_any_name() {
    let scratch = Scratch::new();
    let config = "prompts: ['Say {{x}}']\nproviders: [echo]\ntests: [{ vars: { x: a }, assert: [{ type: contains, value: a }] }]\n";
    std::fs::write(scratch.root().join("capitals.yaml"), config).unwrap();
    let loaded = scratch.load(&["capitals.yaml"]);
    let [suite] = &*loaded.suites else { panic!("{:?}", loaded.diagnostics) };
    assert_eq!((&*suite.name, suite.format, &*suite.cases[0].messages[0].text), ("capitals", "promptfoo", "Say a"));
    // Too broken to be parsed.
    std::fs::write(scratch.root().join("capitals.yaml"), "prompts: [a]\nproviders: [echo\n").unwrap();
    assert_eq!(scratch.load(&["capitals.yaml"]).suites[0].format, "promptfoo");
}

#[test]
fn providers_become_agents_and_an_agent_of_the_run_replaces_them() {
    let scratch = Scratch::new();
    let config = std::fs::read_to_string(folder().join("promptfoo/provider-http.yaml")).unwrap();
    write("promptfoo", scratch.root(), "provider-http.yaml", &config);
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
    let cases = |loaded: Loaded| loaded.suites.iter().map(|suite| suite.cases.len()).sum::<usize>();
    assert_eq!((cases(scratch.load(&["."])), cases(scratch.load(&["tests"]))), (2, 0));
    let parent = scratch.root().parent().unwrap();
    let name = scratch.root().file_name().unwrap().to_str().unwrap();
    assert_eq!(cases(scratch.load_from(parent, &[name])), 2);

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
