use std::os::unix::fs::PermissionsExt;

use model::{Case, Ending, Step};
use sandbox::Sandbox;
use serde_json::{Value, json};

use super::*;
use crate::tests::harness::{AgentHarness, Bare, TestRun, case, configured, new_run};

fn harness(config: &Value, case: Case) -> AgentHarness {
    AgentHarness {
        config: Some(configured(config, Path::new("/none"))),
        sandbox: Some(Bare::new()),
        ..AgentHarness::for_case(case)
    }
}

/// Returns the configuration for a shell script that runs for a whole conversation.
fn script(text: &str) -> Value {
    json!({"type": "subprocess", "command": ["sh", "-c", text]})
}

/// Prints lines of 4 kB forever.
const FLOOD: &str = r"yes $(head -c 4000 /dev/zero | tr '\0' x)";

fn once(text: &str) -> Value {
    json!({"type": "subprocess", "command": ["sh", "-c", text], "mode": "oneshot"})
}

async fn run(config: &Value, messages: &[&str]) -> TestRun {
    harness(config, case("a", messages)).play(&Subprocess).await.unwrap()
}

async fn reason(config: &Value, messages: &[&str]) -> String {
    match run(config, messages).await.endings.pop() {
        Some(Ending::GaveUp { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

fn notices(played: &mut TestRun) -> Vec<(String, String)> {
    let steps = played.steps().into_iter();
    steps
        .filter_map(|step| match step {
            Step::Notice { from, text } => Some((from, text)),
            _ => None,
        })
        .collect()
}

fn problems(config: &Value) -> Vec<String> {
    let config = configured(config, Path::new("/none"));
    Subprocess.check_config(&config.node, &config.directory, &new_run()).iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_process_gets_one_line_per_message_and_lives_for_the_whole_conversation() {
    let mut all = case("a", &["one", "two"]);
    all.messages[1].script = Some("p".into());
    all.messages[1].tools = vec![json!("t")];
    all.messages[1].vars.insert("n".into(), json!(1));
    all.messages[1].persona.insert("role".into(), json!("customer"));
    let text = r#"n=0; while read -r line; do n=$((n+1)); printf '{"message":"%s","got":%s}\n' $n "$line"; done"#;
    let mut played = harness(&script(text), all).play(&Subprocess).await.unwrap();
    assert_eq!(played.endings, [Ending::Finished, Ending::Finished]);
    assert_eq!(played.answer(), Some("2"));
    let got = &played.turn.trace().result.as_ref().unwrap()["got"];
    let id = played.turn.trace().session_id.clone().unwrap();
    assert_eq!(
        *got,
        json!({"message": "two", "conversation_id": id, "script": "p", "tools": ["t"], "vars": {"n": 1}, "persona": {"role": "customer"}})
    );
    assert!(played.steps().iter().any(|step| matches!(step, Step::Finished { subtype, .. } if subtype == "success")));
}

#[tokio::test]
async fn calls_and_usage_are_recorded_and_an_error_is_the_agents_failure() {
    let text = r#"read -r line
        echo '{"text":"done","tool_calls":[{"name":"find","arguments":{"q":1},"result":[2]}],"usage":{"input":3,"output":4}}'"#;
    let played = run(&script(text), &["go"]).await;
    assert_eq!((played.answer(), played.tokens()), (Some("done"), Some(7)));
    assert_eq!(played.calls(), [("find", "[2]", false)]);
    assert_eq!(played.turn.trace().result, None);
    let failed = r#"read -r line; echo '{"error":{"message":"out of order"},"usage":{"input":3}}'"#;
    let failed = self::run(&script(failed), &["go"]).await;
    assert_eq!(failed.endings, [Ending::GaveUp { reason: "out of order".into() }]);
    assert_eq!(failed.tokens(), Some(3));
}

#[tokio::test]
async fn other_output_is_recorded_but_is_never_an_answer() {
    let text = r#"echo ready; echo 42; echo '["x"]'; echo >&2 careful; read -r line; echo '{"broken'; echo; echo '{"text":"hi"}'"#;
    let mut played = run(&script(text), &["go"]).await;
    assert_eq!(played.answer(), Some("hi"));
    let mut notices = notices(&mut played);
    notices.sort();
    let expected =
        [("agent", "42"), ("agent", "[\"x\"]"), ("agent", "ready"), ("agent", "{\"broken"), ("stderr", "careful")];
    assert_eq!(notices.iter().map(|(from, text)| (from.as_str(), text.as_str())).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn output_after_an_answer_is_not_the_next_answer() {
    let text = r#"while read -r line; do n=$((n+1)); printf '{"text":"%s"}\n{"text":"more"}\n' $n; done"#;
    let played = run(&script(text), &["one", "two"]).await;
    assert_eq!(played.answer(), Some("2"));
    let (_, _, warnings) = played.turn.into_parts();
    assert_eq!(warnings, ["the agent wrote to stdout after its answer; that output is ignored"]);
}

#[tokio::test]
async fn a_process_that_exits_early_or_answers_garbage_fails() {
    assert_eq!(
        reason(&script("echo >&2 dear me; exit 3"), &["go"]).await,
        "its process ended before it answered (exit code 3: dear me)"
    );
    let signal = reason(&script("kill -9 $$"), &["go"]).await;
    assert!(signal.contains("signal"), "{signal}");
    let gone = reason(&script(r#"read -r line; echo '{"text":"x"}'"#), &["one", "two"]).await;
    assert_eq!(
        gone,
        "its process ended before it answered (exit code 0); a program that ends with each answer needs `mode: oneshot`"
    );
    assert_eq!(
        reason(&script("echo; echo done; echo more"), &["go"]).await,
        "its process ended before it answered (exit code 0); it wrote `done`, which is not a JSON object: `mode: oneshot` \
         takes its output as plain text, and in `jsonl` an answer is a line such as `{\"message\": \"…\"}`"
    );
    assert_eq!(
        reason(&script(r#"read -r line; echo '{"reply":"x"}'; read -r line"#), &["go"]).await,
        r#"its answer has no `message`, `text`, `content` or `response`: {"reply":"x"}"#
    );
    let endless = reason(&script("cat /dev/zero"), &["go"]).await;
    assert_eq!(endless, "it wrote a line of more than 16 MiB");
    let flood = reason(&script(FLOOD), &["go"]).await;
    assert_eq!(flood, "it wrote more than 64 MiB for one message");
}

#[tokio::test]
async fn a_long_answer_is_complete() {
    let text = r#"read -r line; printf '{"text":"'; head -c 4000000 /dev/zero | tr '\0' x; echo '"}'"#;
    let played = run(&script(text), &["go"]).await;
    assert_eq!(played.answer().map(str::len), Some(4_000_000));
}

#[tokio::test]
async fn a_message_longer_than_a_pipe_arrives_while_the_agent_writes() {
    let text = r#"head -c 300000 /dev/zero | tr '\0' 'x'; echo; read -r line; printf '{"text":"%s"}\n' ${#line}"#;
    let played = run(&script(text), &[&"y".repeat(300_000)]).await;
    let id = "{\"message\":\"\",\"conversation_id\":\"\"}".len() + "trialrun-".len() + 32;
    assert_eq!(played.answer(), Some((300_000 + id).to_string().as_str()));
}

#[tokio::test]
async fn a_missing_or_non_executable_program_is_an_environment_fault() {
    let reason = async |config: Value| {
        let harness = harness(&config, case("a", &["go"]));
        std::fs::write(harness.bare().work().join("plain.sh"), "echo").unwrap();
        std::fs::create_dir(harness.bare().work().join("folder")).unwrap();
        let breakage = harness.play(&Subprocess).await.err().unwrap();
        assert_eq!(breakage.fault, model::Fault::Environment);
        breakage.reason
    };
    let command = |command: &str| json!({"type": "subprocess", "command": command});
    assert_eq!(
        reason(command("no-such-program --fast")).await,
        "there is no program named `no-such-program` on the PATH"
    );
    assert_eq!(reason(command("./none.sh")).await, "there is no program named `./none.sh`");
    assert_eq!(reason(command("./plain.sh")).await, "`./plain.sh` cannot be executed: it lacks the permission");
    assert_eq!(reason(command("./folder")).await, "`./folder` is a folder");
    let cwd = json!({"type": "subprocess", "command": "cat", "cwd": "none"});
    assert_eq!(
        reason(cwd).await,
        "the sandbox has no folder `none` to run in (`cwd`); the case's fixtures can create it"
    );
    let lost = json!({"type": "subprocess", "command": "./lost.py"});
    let harness = self::harness(&lost, case("a", &["go"]));
    let file = harness.bare().work().join("lost.py");
    std::fs::write(&file, "#!/usr/bin/env no-such-python\n").unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let breakage = harness.play(&Subprocess).await.err().unwrap();
    assert_eq!(breakage.reason, "`./lost.py` needs the interpreter `no-such-python`, which is not on the PATH");
    // A supervisor's message about a program that it could not run.
    let marked = script("echo >&2 'trialrun supervisor: cannot run x: Exec format error'; exit 126");
    let ended = run(&marked, &["go"]).await;
    assert_eq!(ended.endings, [Ending::Unreachable { reason: "cannot run x: Exec format error".into() }]);
}

#[tokio::test]
async fn what_a_shell_cannot_find_is_an_environment_fault_unless_the_command_does_not_name_it() {
    let ending = async |config: Value| run(&config, &["go"]).await.endings.pop().unwrap();
    for text in ["no-such-agent --fast", "cd . && no-such-agent", "true; exec 'no-such-agent'"] {
        for config in [script(text), once(text)] {
            let Ending::Unreachable { reason } = ending(config).await else { panic!("{text}") };
            assert!(
                reason.starts_with("there is no program named `no-such-agent` on the PATH (exit code 127"),
                "{reason}"
            );
        }
    }
    let lost = ending(once("python3 none.py \"$@\"")).await;
    assert!(
        matches!(&lost, Ending::Unreachable { reason } if reason.starts_with("there is no file named `none.py`")),
        "{lost:?}"
    );
    // The program itself decides to exit with this code, or looks for a program that the command does not name.
    for text in ["exit 127", "x=no-such; $x-agent", "no-such-agent 2>/dev/null; echo no answer >&2; exit 127"] {
        assert!(matches!(ending(once(text)).await, Ending::GaveUp { .. }), "{text}");
    }
}

#[tokio::test]
async fn files_are_looked_up_in_the_sandbox_and_then_in_the_project() {
    let config = json!({"type": "subprocess", "command": "./run.sh", "args": ["a.txt", "b.txt", "--x", "none.txt"], "cwd": "in",
        "env": {"WHERE": "{project}/lib"}, "mode": "oneshot"});
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path();
    let mut harness = harness(&config, case("a", &["hi"]));
    harness.config = Some(configured(&config, project));
    let folder = harness.bare().work().join("in");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("a.txt"), "sandbox").unwrap();
    std::fs::write(project.join("a.txt"), "project").unwrap();
    std::fs::write(project.join("b.txt"), "project").unwrap();
    let program = project.join("run.sh");
    std::fs::write(&program, "#!/bin/sh\necho \"$(cat \"$1\") $(cat \"$2\") $3 $4 $WHERE $(basename \"$PWD\")\"\n")
        .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    let played = harness.play(&Subprocess).await.unwrap();
    let expected = format!("sandbox project --x none.txt {}/lib in", project.display());
    assert_eq!(played.answer(), Some(expected.as_str()));
}

#[tokio::test]
async fn a_program_can_run_in_the_project_directory() {
    let config = json!({"type": "subprocess", "command": "sh", "args": ["-c", "cat message; printf x > \"$TRIALRUN_WORK/made\""],
        "cwd": "{project}/lib", "mode": "oneshot"});
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("lib")).unwrap();
    std::fs::write(folder.path().join("lib/message"), "from the project").unwrap();
    let mut harness = harness(&config, case("a", &["hi"]));
    harness.config = Some(configured(&config, folder.path()));
    assert_eq!(harness.play(&Subprocess).await.unwrap().answer(), Some("from the project"));
    assert_eq!(harness.bare().content("made"), "x");
    for (cwd, is_allowed) in
        [("{project}", true), ("{project}/../up", false), ("{project}up", true), ("/{project}", false)]
    {
        let config = json!({"type": "subprocess", "command": "cat", "cwd": cwd});
        let problems = Subprocess.check_config(&configured(&config, folder.path()).node, folder.path(), &new_run());
        assert_eq!(problems.is_empty(), is_allowed, "{cwd}: {problems:?}");
    }
}

#[tokio::test]
async fn a_program_can_be_run_once_per_message() {
    let memory = once("cat >> said; echo >> said; echo '{\"text\": 1}' >&2; cat said");
    let played = run(&memory, &["one", "two"]).await;
    assert_eq!(played.answer(), Some("one\ntwo"));
    let argument = json!({"type": "subprocess", "command": "printf", "args": ["<%s>", "{message}"], "mode": "oneshot"});
    assert_eq!(self::run(&argument, &["it's $HOME"]).await.answer(), Some("<it's $HOME>"));
    let vars = json!({"type": "subprocess", "command": "echo", "args": ["{message}", "[{vars}]"], "mode": "oneshot"});
    assert_eq!(self::run(&vars, &["{vars}"]).await.answer(), Some("{vars} [{}]"));
    let mut json = once(r#"echo '{"text":"hi",'; echo '"usage":{"input":2}}'"#);
    json["output"] = json!("json");
    let answered = self::run(&json, &["go"]).await;
    assert_eq!((answered.answer(), answered.tokens()), (Some("hi"), Some(2)));
    let silent = self::run(&once("true"), &["go"]).await;
    assert!(matches!(&silent.endings[..], [Ending::GaveUp { .. }]), "{:?}", silent.endings);
}

#[tokio::test]
async fn a_program_run_once_per_message_fails_if_it_exits_with_an_error() {
    let mut played = run(&once("echo so far; exec >&-; echo >&2 oh no; exit 4"), &["go"]).await;
    assert_eq!(notices(&mut played), [("stderr".to_owned(), "oh no".to_owned())]);
    assert_eq!(played.endings, [Ending::GaveUp { reason: "it failed (exit code 4: oh no)".into() }]);
    assert_eq!(played.turn.trace().turns[0].text, "so far");
    let mut json = once("echo nothing of the kind");
    json["output"] = json!("json");
    let odd = reason(&json, &["go"]).await;
    assert_eq!(odd, "its answer is not JSON with a `message`, `text`, `content` or `response`: nothing of the kind");
    let flood = reason(&once(FLOOD), &["go"]).await;
    assert_eq!(flood, "it wrote more than 16 MiB for one message");
}

#[tokio::test]
async fn a_program_that_does_not_exit_is_killed_with_its_trial() {
    for config in
        [script("trap '' TERM; echo up >&2; cat > /dev/null; cat"), once("trap '' TERM; echo up >&2; exec sleep 1000")]
    {
        let harness = harness(&config, case("a", &["go"]));
        let stop = harness.stop.clone();
        let (played, ()) = tokio::join!(harness.play(&Subprocess), async move {
            tokio::task::yield_now().await;
            stop.send_replace(true);
        });
        assert_eq!(played.unwrap().endings, [Ending::Cancelled]);
    }
}

#[tokio::test]
async fn a_command_line_is_a_sufficient_configuration() {
    let mut harness = AgentHarness { sandbox: Some(Bare::new()), ..AgentHarness::for_case(case("a", &["hi"])) };
    harness.argument = Some("sed -u 's/.*/{\"text\":\"hello\"}/'".into());
    assert_eq!(harness.play(&Subprocess).await.unwrap().answer(), Some("hello"));
    let problems = |argument: Option<&str>| {
        Subprocess.check_argument(argument, &new_run()).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(problems(None), ["`subprocess` needs a command"]);
    assert_eq!(problems(Some("a | b")), ["`subprocess`: `|` needs a shell, but the command is not run by a shell"]);
    assert_eq!(problems(Some("python3 agent.py")), [""; 0]);
}

#[test]
fn a_configuration_is_read_strictly_and_all_problems_are_reported_together() {
    assert_eq!(problems(&json!({"type": "subprocess", "command": "python3 agent.py", "env": {"A": ""}})), [""; 0]);
    let wrong =
        json!({"type": "subprocess", "comand": "x", "mode": "json", "cwd": "../up", "env": {"A": 1}, "args": "x"});
    assert_eq!(
        problems(&wrong),
        [
            "agent.yaml:1:1: unknown key `comand` in a `subprocess` agent",
            "agent.yaml:1:1: `args` must be a list, not a string",
            "agent.yaml:1:1: `cwd` must be a folder within the sandbox or the project",
            "agent.yaml:1:1: `env.A` must be a string, not a number",
            "agent.yaml:1:1: `mode` must be one of `jsonl`, `oneshot`, not `json`",
        ]
    );
    let jsonl = json!({"type": "subprocess", "command": [], "args": ["{message}"], "input": "stdin"});
    assert_eq!(
        problems(&jsonl),
        ["agent.yaml:1:1: `command` is empty", "agent.yaml:1:1: `input` is for `mode: oneshot`",]
    );
    let input = json!({"type": "subprocess", "command": "a 'b", "mode": "oneshot", "input": "argument"});
    assert_eq!(
        problems(&input),
        [
            "agent.yaml:1:1: `command`: a `'` is not closed",
            "agent.yaml:1:1: `input: argument` needs `{message}` in `args`",
        ]
    );
    let mut function = configured(&json!({"type": "subprocess", "command": "a"}), Path::new("/none"));
    if let model::NodeKind::Map(entries) = &mut Arc::make_mut(&mut function).node.kind {
        entries[1].1.tag = Some("!function".into());
    }
    let problems = Subprocess.check_config(&function.node, &function.directory, &new_run());
    assert_eq!(problems[0].to_string(), "agent.yaml:1:1: `subprocess` cannot be configured with a function");
}

#[tokio::test]
async fn an_answer_with_several_calls_is_one_turn() {
    let answer = r#"{"message":"done","tool_calls":[{"name":"a"},{"name":"b","result":1},{"name":"c"}]}"#;
    let lines = script(&format!("while read -r line; do echo '{answer}'; done"));
    let json = json!({"type": "subprocess", "command": ["echo", answer], "mode": "oneshot", "output": "json"});
    for config in [lines, json] {
        let mut limited = harness(&config, case("a", &["one", "two"]));
        limited.stop_after(2);
        let played = limited.play(&Subprocess).await.unwrap();
        assert_eq!(played.endings, [Ending::Finished, Ending::Finished], "{config}");
        let trace = played.turn.trace();
        assert_eq!((played.answer(), trace.turn_count(), trace.calls.len()), (Some("done"), 2, 6), "{config}");
    }
}

#[tokio::test]
async fn an_answer_with_too_many_levels_ends_the_conversation_at_once() {
    let answer = |levels: usize| {
        let nested = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"message":"x","tool_calls":[{{"name":"t","arguments":{{"a":{nested}}}}}]}}"#)
    };
    for levels in [105, 130, 5000] {
        let line = answer(levels);
        // The process stays alive, so only the answer can end the conversation.
        let lines = reason(&script(&format!("read -r line; printf '%s\\n' '{line}'; cat > /dev/null")), &["a"]).await;
        assert!(lines.contains("more than 100 levels"), "{levels}: {lines}");
        let mut config = once(&format!("printf '%s' '{line}'"));
        config["output"] = json!("json");
        let once = reason(&config, &["a"]).await;
        assert!(once.contains("more than 100 levels"), "{levels}: {once}");
    }
}

#[test]
fn a_file_that_neither_the_project_nor_a_fixture_provides_is_reported_before_the_run() {
    let project = tempfile::tempdir().unwrap();
    std::fs::create_dir(project.path().join("bin")).unwrap();
    std::fs::write(project.path().join("agent.py"), "").unwrap();
    std::fs::write(project.path().join("bin/agent"), "").unwrap();
    std::fs::set_permissions(project.path().join("bin/agent"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let problems = |config: Value, case: Case| {
        let mut all = json!({"type": "subprocess"});
        all.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
        let config = Some(configured(&all, project.path()));
        AgentHarness { config, ..AgentHarness::for_case(case) }.check(&Subprocess)
    };
    let plain = || case("a", &["go"]);
    for (command, file) in [
        ("python3 agnet.py", "agnet.py"),
        ("bin/agnet --fast", "bin/agnet"),
        ("node --import tsx src/main.ts", "src/main.ts"),
        ("python3 {project}/bin/agent.py", "bin/agent.py"),
        ("./agent.py", "`./agent.py` cannot be executed: it lacks the permission"),
        ("./bin", "`./bin` is a folder, not a program"),
    ] {
        let found = problems(json!({"command": command}), plain());
        assert!(found.len() == 1 && found[0].contains(file), "{command}: {found:?}");
    }
    for command in ["python3 agent.py", "bin/agent", "python3 -m agent", "sh -c 'exit 1'", "node /app/main.js"] {
        assert_eq!(problems(json!({"command": command}), plain()), [""; 0], "{command}");
    }
    assert_eq!(problems(json!({"command": "./agent", "cwd": "{project}/bin"}), plain()), [""; 0]);
    for (cwd, message) in [
        ("{project}/bni", "the project has no folder `{project}/bni` to run in"),
        ("work", "the sandbox has no folder `work` to run in"),
    ] {
        let found = problems(json!({"command": "cat", "cwd": cwd}), plain());
        assert!(found.len() == 1 && found[0].contains(message), "{found:?}");
    }
    let mut with_files = plain();
    let setup_commands = vec![model::Spanned::new("touch agnet.py".to_owned(), model::Span::default())];
    with_files.fixtures = Arc::new(model::Fixtures { setup_commands, ..model::Fixtures::default() });
    assert_eq!(problems(json!({"command": "python3 agnet.py"}), with_files), [""; 0]);
}

#[test]
fn the_name_of_a_package_is_not_taken_for_a_missing_file() {
    let project = tempfile::tempdir().unwrap();
    let config = configured(&json!({"type": "subprocess", "command": "npx -y @scope/agent"}), project.path());
    let harness = AgentHarness { config: Some(config), ..AgentHarness::for_case(case("a", &["go"])) };
    assert_eq!(harness.check(&Subprocess), [""; 0]);
}

#[test]
fn only_a_file_that_a_shell_certainly_runs_is_missing() {
    let project = tempfile::tempdir().unwrap();
    std::fs::write(project.path().join("there.py"), "").unwrap();
    let missing = |text: &str| missing_in_shell(text, project.path());
    for (text, file) in [("./nope.sh x", "./nope.sh"), ("python3 nope.py", "nope.py"), ("/none/run", "/none/run")] {
        assert_eq!(missing(text).as_deref(), Some(file), "{text}");
    }
    for text in [
        "python3 there.py --out result.js",
        "node -e 1",
        "cp a/b.py c/d.py",
        "cd x && ./nope.sh",
        "A=1 ./nope.sh",
        "$HOME/nope.sh",
        "npx tsx/x",
    ] {
        assert_eq!(missing(text), None, "{text}");
    }
}

#[tokio::test]
async fn a_missing_script_is_not_the_agents_failure() {
    for (command, script) in [
        (json!(["sh", "nofile.sh"]), "nofile.sh"),
        (json!(["sh", "./nofile"]), "./nofile"),
        (json!(["sh", "-e", "/none/agent.py", "x"]), "/none/agent.py"),
    ] {
        for mode in ["jsonl", "oneshot"] {
            let config = json!({"type": "subprocess", "command": command, "mode": mode});
            let ending = run(&config, &["a"]).await.endings.remove(0);
            let named = format!("there is no file named `{script}`, which `command` names");
            assert!(matches!(&ending, Ending::Unreachable { reason } if reason.starts_with(&named)), "{ending:?}");
        }
    }
    assert!(reason(&script("exit 2"), &["a"]).await.contains("ended before it answered"));
}
