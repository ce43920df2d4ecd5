//! Tests of valid and invalid configurations.

use super::*;

fn problems(keys: &Value) -> Vec<String> {
    let config = configured_at(Path::new("."), keys);
    let describe = |problem: Diagnostic| format!("{}; {}", problem.message, problem.help.join("; "));
    Http.check_config(&config.node, &config.directory, &new_run()).into_iter().map(describe).collect()
}

#[test]
fn all_problems_are_reported_together() {
    let messages = problems(&json!({
        "url": "localhost:3000/chat", "method": "GET", "headers": {"a b": "x", "ok": 3, "bad": "a\u{7}b", "Host": "x"},
        "requestFormat": "mesages", "responseParser": "$..a", "stream": "yes", "maxResponseBytes": 0, "retry": 99,
        "retryOn": [200, "closed", "x"], "timeout": 5, "boddyTemplate": "x",
    }));
    let expected = [
        "an address begins with `http://` or `https://`, not `localhost:`; write `http://localhost:3000/chat`",
        "`method` must be one of `POST`, `PUT`, `PATCH`",
        "`a b` is not a valid name of a header",
        "the `ok` header must be a string, not a number",
        "the value of `bad` has characters that a header cannot have",
        "`Host` is set by the connection itself",
        "`request_format` must be one of `legacy`, `messages`, not `mesages`; did you mean `messages`?",
        "`..` is not supported",
        "`stream` must be true or false",
        "`max_response_bytes` must be a whole number of at least 1, not 0",
        "`retry` must be at most 10, not 99",
        "`retry_on` lists statuses from 400 to 599, and `closed`",
        "`retry_on` lists statuses from 400 to 599, and `closed`",
        "an agent cannot have its own `timeout`",
        "unknown key `boddyTemplate` in an `http` agent; did you mean `body_template`?",
    ];
    assert_eq!(messages.len(), expected.len(), "{messages:#?}");
    for (message, expected) in messages.iter().zip(expected) {
        assert!(message.starts_with(expected), "{message}\n{expected}");
    }
    assert_eq!(problems(&json!({}))[0], "an `http` agent has no `url`; ");
    assert!(problems(&json!({"url": "http://"}))[0].starts_with("this is not a valid address: "));
    assert!(problems(&json!({"url": "chat.example"}))[0].contains("an address begins with"));
    let both = json!({"url": "http://a", "bodyTemplate": "{{ message }", "requestFormat": "legacy"});
    let [_, unsent] = &problems(&both)[..] else { panic!("{:?}", problems(&both)) };
    assert!(unsent.starts_with("no request would contain the user's message; write `{{ message }}`"), "{unsent}");
    let misspelt = json!({"url": "http://a", "bodyTemplate": {"q": "{{ mesage }}", "x": "{{ vars.y | nofilter }}"}});
    assert!(problems(&misspelt)[0].starts_with("`mesage` is not a request body variable; did you mean `message`?"));
    assert_eq!(
        problems(&json!({"url": "https://user:pass@a/b?c=d", "body_template": "{{ message }}", "retry": 0})),
        [""; 0]
    );
}

#[test]
fn a_missing_file_of_the_program_to_start_is_reported_before_the_run() {
    let project = tempfile::tempdir().unwrap();
    std::fs::create_dir(project.path().join("bot")).unwrap();
    std::fs::write(project.path().join("bot/serve.js"), "").unwrap();
    let problems = |start: Value| {
        let config = configured_at(project.path(), &json!({"url": "http://127.0.0.1:3000/", "start": start}));
        AgentHarness { config: Some(config.into()), ..AgentHarness::for_case(case("a", &["go"])) }.check(&Http)
    };
    for (start, file) in [
        (json!({"command": "./nope.sh"}), "./nope.sh"),
        (json!("node serve.js"), "serve.js"),
        (json!({"command": "node bot/serve.js", "cwd": "bot"}), "bot/serve.js"),
    ] {
        let found = problems(start);
        assert!(found.len() == 1 && found[0].contains(&format!("has no file `{file}`")), "{found:?}");
    }
    for start in [json!("npm start"), json!({"command": "node serve.js", "cwd": "bot"})] {
        assert_eq!(problems(start.clone()), [""; 0], "{start}");
    }
}

#[test]
fn a_program_to_start_needs_a_command_and_a_sign_that_it_is_ready() {
    let of = |start: Value| problems(&json!({"url": "http://127.0.0.1:3000/", "start": start}));
    for (start, expected) in [
        (json!({}), "`start` has no `command`"),
        (json!("npm start && true"), "`command`: `&` needs a shell"),
        (json!({"command": "x", "ready": 0}), "a port is a number from 1 to 65535"),
        (json!({"command": "x", "ready": "/(/"}), "regex parse error"),
        (json!({"command": "x", "ready": "ftp://a"}), "an address begins with `http://`"),
        (json!({"command": "x", "ready": "soon"}), "`soon` does not say how the program shows that it is ready"),
        (json!({"command": "x", "redy": 3000}), "unknown key `redy` in `start`; did you mean `ready`?"),
    ] {
        let found = of(start.clone());
        assert!(found.len() == 1 && found[0].starts_with(expected), "{start}: {found:?}");
    }
    for start in
        [json!("npm start"), json!(["npm", "start"]), json!({"command": "x", "ready": "3000", "timeout": "9s"})]
    {
        assert_eq!(of(start), [""; 0]);
    }
}

#[test]
fn an_argument_must_be_an_address() {
    let messages = |argument| {
        Http.check_argument(argument, &new_run()).iter().map(|problem| problem.message.clone()).collect::<Vec<_>>()
    };
    assert_eq!(messages(None), ["`http` requires a URL"]);
    assert_eq!(messages(Some("http://127.0.0.1:1/chat")), [""; 0]);
    assert_eq!(messages(Some("//127.0.0.1:1/chat")), [""; 0]);
    assert!(messages(Some("ftp://a"))[0].starts_with("`http:ftp://a`: an address begins with"));
}

#[test]
fn a_skill_that_the_agent_cannot_use_causes_a_warning() {
    let skill = |directory: Option<&str>| model::Skill {
        name: "greet".into(),
        description: String::new(),
        directory: directory.map(Into::into),
        version: None,
        body: "Greet.".into(),
        content_hash: String::new(),
        allowed_tools_raw: Vec::new(),
        allowed_tools: Vec::new(),
        token_budget: None,
        scripts: Vec::new(),
        frontmatter: serde_json::Map::new(),
        plugin: None,
    };
    let check = |directory| {
        let mut case = case("a", &["go"]);
        case.subject = model::Subject::Skill(std::sync::Arc::new(skill(directory)));
        harness(case, &json!({"url": "http://a"})).check(&Http)
    };
    let messages = check(Some("/skills/greet"));
    assert!(messages.len() == 1 && messages[0].contains("the `greet` skill is not passed"), "{messages:?}");
    assert_eq!(check(None), [""; 0], "a prompt that the suite brings itself");
}

#[test]
fn case_data_that_the_request_would_not_contain_is_reported() {
    let mut case = case("a", &["go"]);
    case.messages[0].script = Some("p".into());
    case.messages[0].tools = vec![json!("get")];
    let check = |keys: Value| harness(case.clone(), &keys).check(&Http);
    assert_eq!(
        check(json!({"url": "http://a"})),
        [
            "case.yaml:1:1: the case has `script`, but the request does not send it",
            "case.yaml:1:1: the case has `tools`, but the request does not send it",
        ]
    );
    let template = json!({"url": "http://a", "bodyTemplate": {"{{ script }}": "{{ tools | tojson }}"}});
    assert_eq!(check(template), [""; 0]);
    let missing = check(json!({"url": "http://a", "bodyTemplate": "{{ script }} {{ tools }} {{ vars.who }}"}));
    assert!(missing.len() == 1 && missing[0].contains("who"), "{missing:?}");
}
