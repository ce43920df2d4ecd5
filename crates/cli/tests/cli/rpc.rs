//! `trialrun rpc`, from a client that speaks the protocol itself, and from the package for Python.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::needless_pass_by_value, reason = "messages are written where they are sent")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use testkit::{Project, Ran};

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

/// A client.
struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Client {
    /// Starts the server.
    fn start(project: &Project) -> Self {
        let mut command = project.command(&["rpc"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, stdin, stdout }
    }

    /// Starts the server and initializes the connection.
    fn open(project: &Project) -> Self {
        let mut client = Self::start(project);
        let result = client.call(json!(0), "initialize", json!({ "protocol": 1 }));
        assert_eq!(result["result"]["server"]["name"], "trialrun", "{result}");
        client
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{message}").unwrap();
    }

    fn request(&mut self, id: Value, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    /// Returns the next message.
    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let length = self.stdout.read_line(&mut line).unwrap();
        (length > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Returns the next message for which `is_wanted` is true.
    #[track_caller]
    fn find(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().expect("the server goes on");
            if is_wanted(&message) {
                return message;
            }
        }
    }

    #[track_caller]
    fn call(&mut self, id: Value, method: &str, params: Value) -> Value {
        self.request(id.clone(), method, params);
        self.find(|message| message.get("method").is_none() && message["id"] == id)
    }

    /// Answers the next callback.
    fn answer(&mut self, callback: &Value, answer: Value) {
        let mut message = json!({ "jsonrpc": "2.0", "id": callback["id"] });
        message.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        self.send(&message);
    }

    #[track_caller]
    fn callback(&mut self) -> Value {
        self.find(|message| message["method"] == "agent/send")
    }

    /// Closes stdin, and returns what the server printed until it ended.
    fn close(mut self) -> Ran {
        drop(self.stdin.take());
        let mut out = String::new();
        while self.stdout.read_line(&mut out).unwrap() > 0 {}
        let ran: Ran = self.child.wait_with_output().unwrap().into();
        Ran { out, ..ran }
    }
}

/// Parameters of a run of one conversation with the client's agent `bot`.
fn run_of(expected: &str) -> Value {
    let suite = json!({ "name": "greets", "turns": [{ "says": "Hi" }], "assertions": [{ "contains": expected }] });
    json!({
        "suites": [{ "name": "greets", "suite": suite }], "agents": { "bot": { "costs": false } },
        "options": { "agent": ["bot"], "retries": 0, "timeout": "60s" },
    })
}

const ORDER: &str = "name: order\nagent: bot\nturns:\n  - says: One\n    expect: [tool_called: lookup]\n  - says: Two\nassertions:\n  - \
                     contains: second\n";

#[test]
fn a_client_runs_tests_with_its_own_agent_and_reads_the_record() {
    let project = Project::new(PROGRAM);
    project.write("tests/order.yaml", ORDER);
    let mut client = Client::open(&project);
    let agents = json!({ "bot": {} });
    let list = client.call(json!("list"), "list", json!({ "agents": agents }));
    let trial = &list["result"]["trials"][0];
    assert_eq!((&trial["case"], &trial["may_cost"], &trial["line"]), (&json!("order"), &json!(true), &json!(1)));
    let check = client.call(json!(2), "check", json!({}));
    assert_eq!(check["result"]["valid"], false);
    assert!(check["result"]["text"].as_str().unwrap().contains("tests/order.yaml:2"), "{check}");

    client.request(json!("run"), "run", json!({ "agents": agents, "options": { "label": "one" } }));
    let first = client.callback();
    let params = &first["params"];
    assert_eq!((&params["message"], &params["run"], &params["history"]), (&json!("One"), &json!("run"), &json!([])));
    let matched = client.call(json!(3), "expect", json!({ "actual": ["a"], "expected": { "$contains": "b" } }));
    assert_eq!(matched["result"]["passed"], false, "other requests are answered during a callback: {matched}");
    client.answer(&first, json!({ "result": { "text": "first", "tool_calls": [{ "name": "lookup" }] } }));
    let second = client.callback();
    assert_eq!(second["params"]["history"][1], json!({ "role": "assistant", "content": "first" }));
    client.answer(&second, json!({ "result": "second" }));
    let finished = client.find(|message| message["params"]["event"]["event"]["type"] == "trial_finished");
    assert_eq!(finished["params"]["event"]["event"]["outcome"], "passed", "{finished}");
    let result = client.find(|message| message["id"] == "run");
    assert_eq!(result["result"]["exit_code"], 0, "{result}");
    assert!(result["result"]["text"].as_str().unwrap().contains("1 trial passed"), "{result}");

    let shown = client.call(json!(4), "show", json!({ "trial": "order" }));
    assert!(shown["result"]["text"].as_str().unwrap().contains("second"), "{shown}");
    client.request(json!(5), "run", json!({ "agents": agents, "events": "trials" }));
    for _ in 0..2 {
        let callback = client.callback();
        client.answer(&callback, json!({ "result": "second" }));
    }
    let finished = client.find(|message| message["params"]["event"]["event"]["type"] == "trial_finished");
    assert!(finished["params"]["text"].as_str().unwrap().contains("tool_called"), "{finished}");
    client.find(|message| message["id"] == 5);
    let compared = client.call(json!(6), "compare", json!({ "before": "one" }));
    assert!(compared["result"]["text"].as_str().unwrap().contains("order"), "{compared}");
    for (id, name, expected) in [(7, "latest", "is a run, and not a trial"), (8, "0", "is a prefix of several runs")] {
        let refused = client.call(json!(id), "show", json!({ "trial": name }));
        assert!(refused["error"]["message"].as_str().unwrap().contains(expected), "{refused}");
    }
    client.close().exits(0);
    project.no_process_is_left();
}

#[test]
fn what_cannot_be_carried_out_is_an_error_with_its_reason() {
    let project = Project::new(PROGRAM);
    let mut client = Client::start(&project);
    let mut error = |id: u64, method: &str, params: Value| {
        let response = client.call(json!(id), method, params);
        (response["error"]["code"].as_i64().unwrap(), response["error"]["message"].as_str().unwrap().to_owned())
    };
    assert_eq!(error(1, "list", json!({})).0, -32000);
    let (code, message) = error(2, "initialize", json!({ "protocol": 2 }));
    assert!(code == -32001 && message.contains("install the program and the package of the same version"), "{message}");
    let mut client = Client::open(&project);
    let mut error = |id: u64, method: &str, params: Value| {
        let response = client.call(json!(id), method, params);
        (response["error"]["code"].as_i64().unwrap(), response["error"]["message"].as_str().unwrap().to_owned())
    };
    for (id, (method, params, code, expected)) in [
        ("lst", json!({}), -32601, "`lst` is not a method (did you mean `list`?)"),
        ("list", json!({ "path": "x" }), -32602, "unknown field `path`"),
        ("list", json!({ "directory": "none" }), -32602, "is not a directory"),
        ("run", json!({ "options": { "trails": 2 } }), -32602, "did you mean `trials`?"),
        ("run", json!({ "agents": { "codex": {} } }), -32602, "`codex` is a built-in agent"),
        ("run", json!({ "targets": ["none.yaml"] }), -32002, "none.yaml"),
        ("list", json!({ "targets": ["none.yaml"] }), -32002, "none.yaml"),
        ("run", json!({}), -32002, "there are no tests here"),
        ("show", json!({ "trial": "x" }), -32003, "nothing is recorded"),
        ("expect", json!({ "actual": "x", "expected": { "$containz": "x" } }), -32002, "$containz"),
    ]
    .into_iter()
    .enumerate()
    {
        let (found, message) = error(id as u64, method, params);
        assert!(found == code && message.contains(expected), "{method}: {found} {message}");
    }
    client.send(&json!([]));
    assert_eq!(client.next().unwrap()["error"]["code"], -32600);
    client.close().exits(0);
}

#[test]
fn an_error_of_a_callback_fails_or_breaks_the_trial() {
    let project = Project::new(PROGRAM);
    let mut client = Client::open(&project);
    for (id, answer, outcome, reason) in [
        (1, json!({ "error": { "code": 1, "message": "ValueError: no idea" } }), "failed", "ValueError: no idea"),
        (2, json!({ "error": { "code": -32050, "message": "no database" } }), "broken", "no database"),
        (3, json!({ "result": null }), "failed", "returned nothing"),
        (4, json!({ "result": { "mood": 1 } }), "failed", "its answer has no `message`"),
        (5, json!({}), "failed", "neither"),
    ] {
        client.request(json!(id), "run", run_of("Hello"));
        let callback = client.callback();
        client.answer(&callback, answer);
        let finished = client.find(|message| message["params"]["event"]["event"]["type"] == "trial_finished");
        let record = &finished["params"]["event"]["event"];
        assert_eq!(record["outcome"], outcome, "{record}");
        assert!(finished["params"]["text"].as_str().unwrap().contains(reason), "{finished}");
        client.find(|message| message["id"] == id);
    }
    client.close().exits(0);
}

#[test]
fn a_callback_without_an_answer_is_cancelled_at_the_timeout() {
    let project = Project::new(PROGRAM);
    let mut client = Client::open(&project);
    let mut params = run_of("Hello");
    params["options"]["timeout"] = json!("50ms");
    client.request(json!(1), "run", params);
    let callback = client.callback();
    let cancelled = client.find(|message| message["method"] == "cancelCallback");
    assert_eq!(cancelled["params"]["id"], callback["id"]);
    client.answer(&callback, json!({ "result": "Hello" }));
    let result = client.find(|message| message["id"] == 1 && message.get("result").is_some());
    assert_eq!(result["result"]["exit_code"], 1, "{result}");
    client.close().exits(0);
}

#[test]
fn two_runs_at_once_have_their_own_agents_and_are_cancelled_alone() {
    let project = Project::new(PROGRAM);
    let mut client = Client::open(&project);
    client.request(json!("a"), "run", run_of("Hello"));
    let of_a = client.callback();
    client.request(json!("b"), "run", run_of("Hello"));
    let of_b = client.callback();
    assert_eq!((&of_a["params"]["run"], &of_b["params"]["run"]), (&json!("a"), &json!("b")));
    let same = client.call(json!("a"), "run", run_of("Hello"));
    assert_eq!(same["error"]["code"], -32003, "{same}");
    assert_eq!(client.call(json!(1), "cancel", json!({ "id": "none" }))["result"]["found"], false);
    assert_eq!(client.call(json!(2), "cancel", json!({ "id": "a" }))["result"]["found"], true);
    let result = client.find(|message| message["id"] == "a" && message.get("result").is_some());
    assert_eq!(
        (&result["result"]["exit_code"], &result["result"]["stopped_by"]),
        (&json!(3), &json!("the client cancelled it"))
    );
    client.answer(&of_b, json!({ "result": "Hello" }));
    let result = client.find(|message| message["id"] == "b");
    assert_eq!(result["result"]["exit_code"], 0, "{result}");
    client.close().exits(0);
}

#[test]
fn a_client_that_disappears_in_a_callback_stops_its_runs() {
    let project = Project::new(PROGRAM);
    let mut client = Client::open(&project);
    let mut params = run_of("Hello");
    params["suites"][0]["suite"]["fixtures"] = json!({ "git_init": true });
    client.request(json!(1), "run", params);
    client.callback();
    drop(client.stdin.take());
    drop(client.stdout);
    let ran: Ran = client.child.wait_with_output().unwrap().into();
    ran.exits(0);
    project.no_process_is_left();
    assert_eq!(project.left_over(), [""; 0]);
    let status = project.run(&["status", "--json"]);
    assert!(status.out.contains("the client closed the connection"), "{}", status.output());
}

#[test]
fn requests_before_the_end_of_stdin_are_answered() {
    let project = Project::new(PROGRAM);
    let mut client = Client::open(&project);
    client.request(json!(1), "expect", json!({ "actual": "Paris", "expected": "/^P/" }));
    let ran = client.close().exits(0);
    assert!(ran.out.contains("\"passed\":true"), "{}", ran.output());
}

#[test]
fn a_message_that_is_too_long_ends_the_connection() {
    let project = Project::new(PROGRAM);
    let mut client = Client::open(&project);
    let mut stdin = client.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let piece = vec![b' '; 1 << 20];
        // The server may close its end before everything is written.
        (0..66).all(|_| stdin.write_all(&piece).is_ok());
        stdin
    });
    let response = client.next().unwrap();
    assert!(response["error"]["message"].as_str().unwrap().contains("more than 64 MiB"), "{response}");
    drop(writer.join());
    let ran = client.close().exits(2);
    assert!(ran.err.contains("more than 64 MiB"), "{}", ran.output());
}

#[test]
fn assertions_and_operators_of_the_client_are_called_and_its_mistakes_never_count_against_the_agent() {
    let project = Project::new(PROGRAM);
    let mut client = Client::open(&project);
    let matched = json!({ "actual": { "a": 3 }, "expected": { "a": { "$even": true } }, "operators": { "$even": {} } });
    client.request(json!(1), "expect", matched);
    let asked = client.find(|message| message["method"] == "operator/compare");
    let values = json!({ "run": 1, "operator": "$even", "actual": 3, "expected": true });
    assert_eq!(asked["params"], values);
    client.answer(&asked, json!({ "result": "3 is odd" }));
    let matched = client.find(|message| message["id"] == 1 && message.get("result").is_some());
    assert!(matched["result"]["text"].as_str().unwrap().contains("3 is odd"), "{matched}");

    let mut params = run_of("Hello");
    params["suites"][0]["suite"]["assertions"] = json!([{ "polite": { "words": 3 } }, { "contains": "nowhere" }]);
    params["assertions"] = json!({ "polite": { "timeout_ms": 200 } });
    let mut outcome = |id: u64, answer: Option<Value>| {
        client.request(json!(id), "run", params.clone());
        let sent = client.callback();
        client.answer(&sent, json!({ "result": "Hello" }));
        let asked = client.find(|message| message["method"] == "assertion/check");
        let evidence = (
            &asked["params"]["arguments"]["words"],
            &asked["params"]["answer"],
            &asked["params"]["result"]["messages"][1]["content"],
        );
        assert_eq!(evidence, (&json!(3), &json!("Hello"), &json!("Hello")), "{asked}");
        match answer {
            Some(answer) => client.answer(&asked, answer),
            None => {
                assert_eq!(client.find(|message| message["method"] == "cancelCallback")["params"]["id"], asked["id"]);
            }
        }
        let finished = client.find(|message| message["params"]["event"]["event"]["type"] == "trial_finished");
        let trial = &finished["params"]["event"]["event"];
        (trial["outcome"].clone(), trial["fault"].clone(), trial["because"].as_str().unwrap().to_owned())
    };
    assert_eq!(outcome(2, Some(json!({ "result": true }))).0, "failed", "the other assertion");
    let error = json!({ "error": { "code": 1, "message": "KeyError: 'x'" } });
    for (id, answer, expected) in
        [(3, Some(error), "`polite`: KeyError: 'x'"), (4, None, "it did not answer within 0.2 s")]
    {
        let (outcome, fault, because) = outcome(id, answer);
        assert_eq!((outcome, fault), (json!("broken"), json!("test")));
        assert!(because.contains(expected), "{because}");
    }
    // A client that ends in the middle of a callback leaves nothing behind.
    params["assertions"] = json!({ "polite": {} });
    client.request(json!(5), "run", params);
    let sent = client.callback();
    client.answer(&sent, json!({ "result": "Hello" }));
    client.find(|message| message["method"] == "assertion/check");
    client.close().exits(0);
    project.no_process_is_left();
}

const SCRIPT: &str = r#"
import asyncio, trialrun

@trialrun.agent(costs=False)
async def bot(message: trialrun.Message):
    await asyncio.sleep(0)
    return {"text": f"You said {message}.", "tool_calls": []}

passed = trialrun.trial("Hi", agent=bot, expect=[{"contains": "You said Hi."}], trials=2)
failed = trialrun.trial("Hi", agent=bot, expect=[{"contains": "Goodbye"}])
assert passed.passed and not failed.passed, (passed.text, failed.text)
assert "Goodbye" in failed.failure, failed.failure
trialrun.expect({"a": [1]}).matches({"a": {"$contains": 1}})
print("done")
"#;

#[test]
#[cfg_attr(not(has = "python-packages"), ignore = "needs Python packages; run scripts/test")]
fn the_package_for_python_runs_trials_with_a_coroutine() {
    let project = Project::new(PROGRAM);
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/python/src");
    let mut command = Command::new("python3");
    command.args(["-B", "-c", SCRIPT]).current_dir(project.dir()).env_clear();
    command.envs(project.command(&[]).get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("PYTHONPATH", package).env("TRIALRUN_PROGRAM", PROGRAM);
    let ran: Ran = command.output().unwrap().into();
    assert_eq!(ran.out, "done\n", "{}", ran.output());
    project.no_process_is_left();
}
