use model::{Collected, ControlRun, Event, Failure, Need, Part, Probe, Probed, ReplyProbes, Rerun, Step};

use super::*;

fn mask(pairs: &[(&str, &str)]) -> Mask {
    let env: Vec<(String, String)> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Mask::of(env.iter().map(|(name, value)| (name, value)))
}

#[test]
fn a_secret_variable_is_masked_wherever_it_appears() {
    let mask = mask(&[("ANTHROPIC_API_KEY", "dummy-secret-1"), ("PATH", "/usr/local/bin"), ("PIN_TOKEN", "short")]);
    assert_eq!(mask.text("key=dummy-secret-1; PATH=/usr/local/bin short"), "key=[masked]; PATH=/usr/local/bin short");
    let mut value = serde_json::json!({"command": ["echo dummy-secret-1"]});
    mask.value(&mut value);
    assert_eq!(value, serde_json::json!({"command": ["echo [masked]"]}));
}

#[test]
fn a_url_keeps_its_host_and_loses_its_password() {
    let text = "to https://me:hunter2@proxy.example/v1?a=1&api_key=abc and mailto:a@b.example:80";
    let masked = "to https://[masked]@proxy.example/v1?a=1&api_key=[masked] and mailto:a@b.example:80";
    assert_eq!(mask(&[]).text(text), masked);
    assert_eq!(mask(&[]).text("http://127.0.0.1:8080/x?page=2"), "http://127.0.0.1:8080/x?page=2");
}

#[test]
fn a_key_from_an_unknown_source_is_recognised_by_its_format() {
    let key = format!("sk-ant-{}", "api03-abcdefghijklmnop");
    assert_eq!(mask(&[]).text(&format!("x {key} y")), "x [masked] y");
    assert_eq!(mask(&[]).text("sk-test"), "sk-test");
}

#[test]
fn every_key_format_is_recognised() {
    let long = "0123456789abcdefghijABCDEFGHIJ0123456789abcdef";
    let keys = [
        format!("sk-ant-{long}"),
        format!("sk-proj-{long}"),
        format!("sk-or-v1-{long}"),
        format!("AIza{}", &long[..35]),
        format!("gsk_{long}"),
        format!("xai-{long}"),
        format!("hf_{long}"),
        format!("dtn_{long}"),
        format!("ghp_{long}"),
        format!("github_pat_{long}"),
        format!("glpat-{long}"),
        format!("npm_{}", &long[..36]),
        format!("xoxb-{long}"),
        format!("sk_live_{long}"),
        format!("SG.{long}.{long}"),
        "ASIAABCDEFGHIJKLMNOP".to_owned(),
    ];
    for key in keys {
        assert_eq!(mask(&[]).text(&format!("<{key}>")), "<[masked]>", "{key}");
    }
    let plain = "task-012345678901234567890123456789 sk_live_x hf_hub SG.small";
    assert_eq!(mask(&[]).text(plain), plain);
}

#[test]
fn a_canary_is_masked_in_every_encoding() {
    let canary = "canary<&>\"K3y/+é=1";
    let run = mask(&[("BOT_API_KEY", canary)]);
    let json = serde_json::to_string(canary).unwrap();
    let twice = serde_json::to_string(&json).unwrap();
    let url = "canary%3C%26%3E%22K3y%2F%2B%C3%A9%3D1";
    let texts = [
        canary.to_owned(),
        json,
        twice,
        r#"canary\u003c\u0026\u003e\"K3y/+é=1"#.to_owned(),
        r#"canary<&>\"K3y\/+\u00e9=1"#.to_owned(),
        "canary&lt;&amp;&gt;&quot;K3y/+é=1".to_owned(),
        url.to_owned(),
        url.to_lowercase().replace("k3y", "K3y"),
        "canary%3C&%3E%22K3y/+%C3%A9=1".to_owned(),
    ];
    for text in texts {
        let masked = run.text(&text).into_owned();
        assert!(masked.contains(MASKED) && !masked.contains("K3y"), "{text}: {masked}");
    }
}

#[test]
fn configuration_values_of_secret_settings_are_masked() {
    let source = model::Source::new("c", "");
    let config = serde_json::json!({"agents": {"bot": {"headers": {"Authorization": "Bearer canary-bearer-1", "X-Org":
        "acme"}, "url": "https://me:canary-pass@host/x", "apiKey": "canary-key-1", "max_tokens": "123456789"}}});
    let secrets = Secrets::of(&model::Node::from_json(&config, &source));
    let run = Mask::default().with_secrets(&secrets);
    let text = "canary-bearer-1 canary-pass canary-key-1 acme 123456789";
    assert_eq!(run.text(text), "[masked] [masked] [masked] acme 123456789");
    assert!(!format!("{secrets:?}").contains("canary"));
}

#[test]
fn keys_are_masked_and_no_entry_is_lost() {
    let mask = mask(&[("A_KEY", "dummy-secret-1"), ("B_KEY", "dummy-secret-2")]);
    let mut value = serde_json::json!([{"first": 1, "dummy-secret-1": {"x": "dummy-secret-2"}, "dummy-secret-2": 2}]);
    mask.value(&mut value);
    assert_eq!(value.to_string(), r#"[{"first":1,"[masked]":{"x":"[masked]"},"[masked] 2":2}]"#);
}

#[test]
fn session_ids_and_resolved_paths_contain_no_secret() {
    let mask = mask(&[("A_KEY", "dummy-secret-1")]);
    let secret = || Some("x dummy-secret-1".to_owned());
    let tools = vec!["mcp__dummy-secret-1".to_owned()];
    let (session_id, model, agent_version, auth) = (secret(), secret(), secret(), secret());
    let session = Step::Session { session_id, model, agent_version, tools, auth };
    let mut call = model::ToolCall::new("c", "Read", serde_json::json!({"file_path": "link"}), "m");
    call.touches = vec![model::Touch {
        raw: "link".into(),
        resolved: "/x/dummy-secret-1".into(),
        access: model::Access::Read,
        certainty: model::Certainty::Named,
    }];
    call.raw_name = "mcp__dummy-secret-1".into();
    let call = Step::ToolCall(call);
    for step in [&session, &call] {
        let mut event = Event::Step(step.clone());
        assert!(mask.event(&mut event));
        let masked = testkit::json::of_event(&event);
        assert!(masked.contains("[masked]") && !masked.contains("dummy"), "{masked}");
    }
}

#[test]
fn results_and_records_contain_no_secret_in_any_field() {
    let mask = mask(&[("A_KEY", "dummy-secret-1")]);
    let secret = "x dummy-secret-1";
    let value = serde_json::json!({"a": [secret], "dummy-secret-1": 1});
    let (usage, text) = (model::Usage::default(), Some(secret.to_owned()));
    let step = Step::Finished { subtype: "s".into(), is_error: false, usage, text, result: Some(value.clone()) };
    let mut event = Event::Step(step);
    mask.event(&mut event);
    let masked = testkit::json::of_event(&event);
    assert!(masked.contains(r#"{"a":["x [masked]"],"[masked]":1}"#) && !masked.contains("dummy"), "{masked}");
    let source = serde_json::json!({"file": "f", "line": 1, "column": 1, "text": secret});
    let detail = serde_json::json!({"key": secret, "title": secret, "dimension": secret, "weight": 1, "score": 0,
        "status": "unmet"});
    let mut outer = detail.clone();
    outer["details"] = serde_json::json!([detail]);
    let piece = |part: &str, text: &str| serde_json::json!({"part": part, "text": text});
    let failure = serde_json::json!({"key": secret, "message": secret, "expected": value, "actual": value,
        "diff": [piece("same", "dummy-"), piece("missing", "secret-1"), piece("extra", "other")], "source": source});
    let finding = serde_json::json!({"id": "f", "type": "t", "title": secret, "status": "unmet", "score": 0,
        "weight": 1, "because": secret, "expected": secret, "actual": secret, "evidence": [secret],
        "error": secret, "source": source, "key": secret, "dimension": secret, "failed_critical": [secret],
        "details": [outer], "failures": [failure]});
    let mut record = testkit::json::record(serde_json::json!({
        "id": "i", "suite": "s", "case": "c", "title": secret, "arm": "a", "agent": "a", "repetition": 1,
        "outcome": "failed", "because": secret, "findings": [finding], "input": [secret], "input_value": value,
        "answer": null, "result": value, "expected": value, "script": secret, "tools": [value, secret],
        "vars": {"v": value, "dummy-secret-1": secret},
        "replies": [{"answer": secret}], "turn_count": 0, "tool_calls": [], "questions": [],
        "duration_ms": 0, "started_at": "2026-01-01T00:00:00Z", "attempts": [], "files_changed": [],
        "errors": [secret], "warnings": [secret],
    }));
    mask.record(&mut record);
    let masked = testkit::json::of_record(&record);
    assert!(masked.contains("[masked]") && !masked.contains("dummy") && !masked.contains("secret-1"), "{masked}");
    assert_eq!(record.findings[0].failures[0].diff, []);
}

#[test]
fn a_diff_without_a_secret_is_unchanged() {
    let piece = |part, text: &str| model::Segment { part, text: text.into() };
    let diff = vec![piece(Part::Same, "dummy-"), piece(Part::Missing, "secret"), piece(Part::Extra, "-1")];
    let mut failure: Failure = serde_json::from_value(serde_json::json!({"key": "", "message": ""})).unwrap();
    failure.diff.clone_from(&diff);
    let mask = mask(&[("A_KEY", "dummy-secret-1")]);
    Pass::new(&mask).failure(&mut failure);
    assert_eq!(failure.diff, diff);
}

#[test]
fn probes_contain_no_secret_and_are_still_found() {
    let need = Need::Command { run: "deploy dummy-secret-1".into(), timeout_ms: 1 };
    let echo = |text: &str| Probed::Failed { reason: text.to_owned() };
    let ran = |text: &str| Probed::Ran {
        exit_code: Some(0),
        stdout: format!("{text} "),
        stderr: text.to_owned(),
        clipped: false,
        restored: vec![text.to_owned()],
        edited: vec![text.to_owned()],
        control: Some(Box::new(ControlRun { files: Vec::new(), with_files: echo(text), fixture: None })),
        scripts: Some(Box::new(Rerun { files: vec![text.to_owned()], found: echo(text) })),
        new_tests: Some(Box::new(Rerun { files: vec![text.to_owned()], found: echo(text) })),
        failing_test: Some(Box::new(Rerun { files: vec![text.to_owned()], found: echo(text) })),
        rewards: vec![model::RewardFile { name: "reward.txt".to_owned(), text: text.to_owned(), unusable: None }],
        solution: Some(Box::new(Rerun { files: Vec::new(), found: echo(text) })),
        missing_program: Some(text.to_owned()),
    };
    let probe = Probe { key: need.key(), need: need.clone(), found: ran("dummy-secret-1") };
    let reply_probes = vec![ReplyProbes { reply: 1, probes: vec![probe.clone()] }];
    let mut collected = Collected { probes: vec![probe], reply_probes, ..Collected::default() };
    mask(&[("A_KEY", "dummy-secret-1")]).collected(&mut collected);
    assert!(!format!("{collected:?}").contains("dummy"));
    assert_eq!(collected.probed(&need), Some(&ran("[masked]")));
}

#[test]
fn secrets_of_a_fixture_are_masked_in_its_trial_and_in_debug_output() {
    let env = [("DB_PASSWORD".to_owned(), "dummy-secret-1-and-more".to_owned()), ("X".to_owned(), "plain-text".into())];
    let run = mask(&[("A_KEY", "dummy-secret-1")]);
    assert_eq!(run.text("dummy-secret-1-and-more"), "[masked]-and-more");
    assert_eq!(run.with_fixture(&env).text("dummy-secret-1-and-more plain-text"), "[masked] plain-text");
    assert!(!format!("{run:?}").contains("dummy"));
}
#[test]
fn a_key_is_found_in_every_escaped_form_and_after_any_character() {
    let key = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let coloured = format!("\u{1b}[31mghp_\u{1b}[0m{}", &key[4..]);
    let wide: String = key.chars().flat_map(|letter| [letter, '\0']).collect();
    let spelt: String = key.chars().map(|letter| format!("\\u{:04x}", u32::from(letter))).collect();
    let twice: String = key.bytes().map(|byte| format!("%25{byte:02x}")).collect();
    for text in [format!("\\n{key}"), format!("GITHUB_TOKEN_{key}"), coloured, wide, spelt, twice] {
        let masked = mask(&[]).text(&text).into_owned();
        assert!(masked.contains(MASKED) && !masked.contains("0123456789"), "{text}: {masked}");
    }
    assert_eq!(mask(&[]).text("\u{1b}[1mplain\u{1b}[0m 100% \\n &amp;"), "\u{1b}[1mplain\u{1b}[0m 100% \\n &amp;");
}

#[test]
fn tokens_headers_and_urls_are_masked_and_plain_words_are_not() {
    let long = "0123456789abcdefghijABCDEFGHIJ0123456789abcdef";
    let header = format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{long}");
    let headers = [
        format!("x {header}"),
        format!("token{header}"),
        format!("Authorization: Bearer {long}"),
        "-u Authorization: Basic dXNlcjpodW50ZXIyMQ==".to_owned(),
        format!("https://hooks.slack.com/services/T000/B000/{long}"),
        format!("glrt-{long}"),
        format!("dckr_pat_{long}"),
        format!("AccountKey={long}=="),
        format!("https://x.example/?access_token={long}"),
        format!("-----BEGIN OPENSSH PRIVATE KEY-----\\n{long}"),
        format!("hvs.{long}"),
    ];
    for text in headers {
        let masked = mask(&[]).text(&text).into_owned();
        assert!(masked.contains(MASKED) && !masked.contains("0123456789") && !masked.contains("dXNlc"), "{masked}");
    }
    for plain in ["Bearer responsibilities_and_more", "a task-list-of-seven-hundred-words", "sha256:0123456789abcdef"] {
        assert_eq!(mask(&[]).text(plain), plain);
    }
}

#[test]
fn a_key_with_a_truncated_start_or_end_is_masked() {
    let key = "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8";
    let masked = |text: &str| mask(&[]).text(text).into_owned();
    assert_eq!(masked(&format!("\"…{} error\"", &key[2..])), "\"…[masked] error\"");
    assert_eq!(masked(&format!("x GITHUB_TOKEN_{}…", &key[..20])), "x GITHUB_TOKEN_[masked]…");
    assert_eq!(masked("…arer abcdefghijklmnop rest"), "…[masked] rest");
    assert_eq!(masked(&format!("(exit code 3: {}…)", &key[..30])), "(exit code 3: [masked]…)");
    for plain in ["…er responsibilities", "…is long", "a short text…", "…12345678901234", "…d3adb33f"] {
        assert_eq!(masked(plain), plain);
    }
}

#[test]
fn a_secret_split_across_two_frames_of_a_stream_is_masked_in_both() {
    let mask = mask(&[("A_KEY", "dummy-secret-1")]);
    let frame = |text: &str| format!("data: {{\"delta\":{{\"text\":\"{text}\"}}}}");
    let stream =
        |second: &str, third: &str| [&frame("x "), "", &frame(second), &frame(third), "data: [DONE]"].join("\n");
    let mut event = Event::Output { stream: "http".into(), text: stream("it is dummy-se", "cret-1.") };
    mask.event(&mut event);
    let Event::Output { text, .. } = event else { panic!("output") };
    assert_eq!(text, stream("[masked]", "[masked]"));
    assert_eq!(mask.frames(&stream("plain", "text")), None);
}

#[test]
fn only_known_values_are_withheld_from_judges() {
    let key = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let text = format!("dummy-secret-1 {key}");
    assert_eq!(mask(&[("A_KEY", "dummy-secret-1")]).without_values(&text), format!("[masked] {key}"));
}

#[test]
fn a_partial_secret_in_shortened_text_is_masked() {
    let mask = mask(&[("A_KEY", "dummy-secret-1")]);
    assert_eq!(mask.text("the answer \"it is dummy-sec…\""), "the answer \"it is [masked]…\"");
    assert_eq!(mask.text("…cret-1 is it, ghp_0123456… too…"), "…[masked] is it, [masked]… too…");
    assert_eq!(mask.text("dummy-sec\n[… 9 bytes omitted …]\ncret-1"), "[masked]\n[… 9 bytes omitted …]\n[masked]");
    assert_eq!(mask.text("dummy… and a … plain one…"), "dummy… and a … plain one…");
    for key in [
        "ghp_abcdefghijklmnopqrstuv\u{1b}[31mwxyz",
        "ghp_abcdefghijklmnopqrstuv\\u001b[31mwxyz",
        "ghp_abcdefgh\u{200b}ijklmnopqrst",
        "dummy-\u{1b}[1mse",
        "dummy\\u002dse",
    ] {
        assert_eq!(mask.text(&format!("\"y {key}…\"")), "\"y [masked]…\"", "{key}");
    }
    for (key, left) in [
        ("ghp_abcdefghijklmnop\\u00", "\\u00"),
        ("ghp_abcdefghijklmnop%1", "%1"),
        ("ghp_abcdefghijklmnop\u{1b}[3", "\u{1b}[3"),
        ("dummy-s\\", "\\"),
    ] {
        assert_eq!(mask.text(&format!("\"y {key}…\"")), format!("\"y [masked]{left}…\""), "{key}");
    }
    let long = "x".repeat(2000);
    assert_eq!(mask.text(&format!("{long}dummy-sec")), format!("{long}[masked]"));
}

/// Asserts that `masked` shows no part of `secret` that has `most` bytes or more.
fn assert_hidden(masked: &str, secret: &str, most: usize) {
    for part in secret.as_bytes().windows(most) {
        assert!(!masked.as_bytes().windows(most).any(|window| window == part), "{secret}: {masked}");
    }
}

#[test]
fn a_known_secret_is_masked_wherever_it_is_truncated() {
    for secret in ["wordsWithoutAnyDigit", "correct horse battery staple", "S3cr3t/+=é<&>\"x", "aaaaaaaaaaaaaaab"] {
        let mask = mask(&[("A_KEY", secret)]);
        let forms = [secret.to_owned(), serde_json::to_string(secret).unwrap().trim_matches('"').to_owned()];
        for (form, index) in forms.iter().flat_map(|form| (0..=form.len()).map(move |index| (form, index))) {
            let Some((front, rest)) = form.split_at_checked(index) else { continue };
            let long = "x".repeat(200);
            // An escape does not hide any part of the secret.
            let most = 6 + form.len() - secret.len();
            for around in ["…", "\n[… 9 bytes omitted …]\n", "\"…", ""] {
                assert_hidden(&mask.text(&format!("{long} is {front}{around}")), form, most);
                assert_hidden(&mask.text(&format!("{around}{rest} is {long}")), form, most);
            }
            assert_hidden(&mask.text(&format!("it is {front}… and …{rest} too")), form, most);
        }
    }
    assert_eq!(mask(&[("A_KEY", "production-1")]).text("it runs in product"), "it runs in product");
}

#[test]
fn a_password_in_a_url_is_masked_even_if_truncated() {
    let none = mask(&[]);
    for password in ["hunter", "letters", "p@ssword", "12345678", "a:b:c:d"] {
        let url = format!("https://me:{password}@proxy.example:8080/x");
        assert_eq!(none.text(&format!("<{url}>")), "<https://[masked]@proxy.example:8080/x>");
        let begin = url.find(password).unwrap();
        for index in begin..begin + password.len() {
            let masked = none.text(&format!("…{} failed", &url[index..])).into_owned();
            assert_eq!(masked, "…[masked]@proxy.example:8080/x failed", "{password} {index}");
        }
        for index in begin + 6..begin + password.len() {
            assert_eq!(none.text(&format!("to {}…", &url[..index])), "to https://[masked]…", "{password} {index}");
        }
    }
    for plain in ["to http://127.0.0.1:8080…", "at https://host/a:b…", "http://[::1]:80…", "…plain words @ home"]
    {
        assert_eq!(none.text(plain), plain);
    }
}

#[test]
fn an_encoded_secret_is_masked_where_a_program_wraps_it_into_lines() {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    let secret = format!("v17{}", "correct-horse-battery-staple");
    let mask = mask(&[("A_TOKEN", &secret)]);
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    for before in 0..120 {
        let text = format!("{}{secret} and more text behind it", "x".repeat(before));
        for (encoded, width) in
            [(BASE64_STANDARD.encode(&text), 76), (BASE64_STANDARD.encode(&text), 20), (hex(&text), 60)]
        {
            let lines: Vec<&str> = encoded.as_bytes().chunks(width).map(|line| str::from_utf8(line).unwrap()).collect();
            let whole = mask.text(&lines.join("\n")).replace('\n', "");
            let apart: String = lines.iter().map(|line| mask.text(line)).collect();
            // At most 11 digits of the secret are shown in a row.
            let all = [0, 1, 2].map(|offset| BASE64_STANDARD.encode(format!("{}{secret}", "x".repeat(offset))));
            for masked in [whole, apart] {
                let has = |digits: &str| masked.contains(digits);
                let is_shown = |digits: &String| (4..digits.len() - 16).any(|index| has(&digits[index..index + 12]));
                assert!(!all.iter().any(is_shown) && !is_shown(&hex(&secret)), "{before} {width}: {masked}");
            }
        }
    }
    let ordinary = "SGVsbG8sIHdvcmxkIQ==\ncorrect\nhorse-battery";
    assert_eq!(mask.text(ordinary), ordinary);
}

#[test]
fn no_text_makes_the_mask_panic() {
    let mask = mask(&[("ANTHROPIC_API_KEY", "dummy-secret-1")]);
    let seeds = [
        "key=dummy-secret-1 https://ada:dummy-secret-1@host/a?b#c",
        "-----BEGIN PRIVATE KEY-----\nZHVtbXk=\n-----END \
                  PRIVATE KEY-----",
        "ZHVtbXktc2VjcmV0LTE= 64756d6d792d7365637265742d31 sk-ant-api03-abcdefghijklmnop",
    ];
    testkit::fuzz(&seeds.map(|seed| seed.as_bytes().to_vec()), |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let masked = mask.text(&text);
        assert!(!masked.contains("dummy-secret-1"), "{masked}");
    });
}

#[test]
fn the_examples_of_the_documentation_are_right() {
    let page = include_str!("../../../docs/masking.md");
    let rows =
        page.split("| variable | text | shown as |").nth(1).unwrap().lines().filter(|line| line.starts_with("| "));
    let mut count = 0;
    for row in rows.skip(1) {
        let [_, variable, text, expected] = row.split(" | ").flat_map(|cell| cell.split("| ")).collect::<Vec<_>>()[..]
        else {
            panic!("{row}")
        };
        let code = |cell: &str| cell.trim_end_matches(" |").trim_matches('`').to_owned();
        let pairs: Vec<(String, String)> = code(variable)
            .split_once('=')
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .collect();
        let mask = Mask::of(pairs.iter().map(|(name, value)| (name, value)));
        let expected = if code(expected) == "not masked" { code(text) } else { code(expected) };
        assert_eq!(mask.text(&code(text)), expected, "{row}");
        count += 1;
    }
    assert!(count > 30, "{count}");
}

#[test]
fn a_private_key_that_was_seen_is_masked_however_it_is_cut() {
    let digit = |index: u64| {
        let mixed = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        char::from(b"ABCDEFGHijklmnop0123456789+/"[mixed as usize % 28])
    };
    let line = |number: u64| (number * 64..number * 64 + 64).map(digit).collect();
    let lines: Vec<String> = (1..20).map(line).collect();
    let key = format!("-----BEGIN RSA PRIVATE KEY-----\n{}\nqQ8=\n-----END RSA PRIVATE KEY-----", lines.join("\n"));
    let digits = lines.concat();
    let assert_masked = |mask: &Mask, text: &str| {
        let masked = mask.text(text).into_owned();
        let shown = digits.as_bytes().windows(16).find(|part| masked.as_bytes().windows(16).any(|at| at == *part));
        assert_eq!(shown, None, "{text}: {masked}");
    };
    let unseen = mask(&[]);
    // The beginning or the end of the key is in the text.
    for (from, to) in [(0, 300), (10, 300), (700, key.len()), (1100, key.len() - 3)] {
        assert_masked(&unseen, &key[from..to]);
        assert_masked(&unseen, &key[from..to].replace('\n', " "));
    }
    // Neither is.
    let plain = ["the file has 3 lines", "responsibilities", "MIIEowIBAAKCAQEA"];
    for seen in
        [key.clone(), serde_json::to_string(&key).unwrap(), format!("cat: \n{}", key.replace('\n', "\n    7\t"))]
    {
        let mask = unseen.remembering();
        mask.text(&seen);
        for from in (40..1000).step_by(37) {
            let part = &key[from..from + 200];
            assert_masked(&mask, &format!("…{part}…"));
            assert_masked(&mask, &format!("{:?}…", format!("…{part}")));
            part.lines().filter(|line| line.len() == 64).for_each(|line| assert_masked(&mask, line));
        }
        assert_masked(&mask, &digits[70..190]);
        plain.iter().for_each(|text| assert_eq!(mask.text(text), *text));
        assert_eq!(mask.forgetful().text(&lines[3]), lines[3]);
    }
    // A marker alone teaches nothing.
    let mask = unseen.remembering();
    mask.text("-----BEGIN PRIVATE KEY----- is how documentation about responsibilities begins, at c0ffee0123456789abc");
    assert_eq!(mask.text("responsibilities c0ffee0123456789abc"), "responsibilities c0ffee0123456789abc");
}

#[test]
fn a_secret_that_is_learned_is_masked_from_then_on_by_all_masks_of_its_run() {
    let (run, other) = (Secrets::default(), Secrets::default());
    let mask = Mask::of([]).with_secrets(&run);
    let of_trial = mask.with_fixture(&[]).remembering();
    let text = r#"{"token": "plain-words-only"}"#;
    assert_eq!((of_trial.text(text), of_trial.learned()), (text.into(), 0));
    run.learn_header("Accept", "plain-words-only");
    run.learn_header("Authorization", "Bearer plain-words-only");
    assert!(of_trial.learned() > 0);
    assert_eq!(of_trial.text(text), r#"{"token": "[masked]"}"#);
    assert_eq!(mask.without_values(text), r#"{"token": "[masked]"}"#);
    assert_eq!(Mask::of([]).with_secrets(&other).text(text), text, "another run");
    (0..2_000).for_each(|number| run.learn_header("Authorization", &format!("Bearer many-words-{number:04}")));
    assert_eq!(mask.text("many-words-1999"), "[masked]");
}
