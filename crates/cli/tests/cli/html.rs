//! The HTML report in a real browser: every view, filter and key, and hostile transcripts, which must remain text.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::{Arc, Mutex};

use model::{Envelope, Event, TrialId, TrialRecord};
use report::{ReporterOptions, Style};
use serde_json::{Value, json};
use testkit::Project;
use testkit::browser::{self, Browser};

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

/// Opens a report at `address`, such as `#/trial/ID`, and waits until it is shown. An empty page is opened first;
/// otherwise the previous view could be mistaken for this one.
fn open(browser: &mut Browser, page: &Path, address: &str) {
    browser.open("about:blank");
    browser.open(&format!("file://{}{address}", page.display()));
    wait_for_view(browser);
}

/// Waits until the page shows a view.
pub fn wait_for_view(browser: &mut Browser) {
    browser.wait("document.querySelector('#main h1[tabindex]') && !document.querySelector('#main[aria-busy]')");
}

pub fn text(browser: &mut Browser, selector: &str) -> String {
    let expression = format!("document.querySelector({})?.textContent ?? 'absent'", json!(selector));
    browser.evaluate(&expression).as_str().unwrap().to_owned()
}

pub fn count(browser: &mut Browser, selector: &str) -> u64 {
    browser.evaluate(&format!("document.querySelectorAll({}).length", json!(selector))).as_u64().unwrap()
}

/// Types a filter like a reader would, and returns the number of trials listed.
fn listed(browser: &mut Browser, filter: &str) -> u64 {
    let typed = format!(
        "{{ const input = document.getElementById('filter'); input.value = {}; input.dispatchEvent(new Event('input')); }}",
        json!(filter)
    );
    browser.evaluate(&typed);
    count(browser, ".trials tbody tr")
}

/// Returns a project with a skill that is run with and without it, and with two scenarios.
fn project() -> Project {
    let project = Project::new(PROGRAM);
    project.write("trialrun.yaml", "skills_dir: ./skills\n");
    project.write("skills/notes/SKILL.md", "---\nname: notes\ndescription: Writes notes.\n---\nWrite notes.\n");
    let prompt = |name: &str| {
        format!(
            "Write notes ({name}).\n!think Look first.\n!call Bash {{\"command\": \"git log\"}} => 3f1a9c2 Fix\n\
             !with-skill !skill notes\n!with-skill !write NOTES.md done\n!tokens 900 100\n!cost 0.01\n!say Written."
        )
    };
    let eval = |name: &str| {
        json!({
            "id": name,
            "prompt": prompt(name),
            "expected_output": "A file.",
            "assertions": [{ "type": "file_exists", "path": "NOTES.md" }, { "type": "command_ran", "command": "git log" }],
        })
    };
    let evals = json!({ "skill_name": "notes", "evals": [eval("one"), eval("two"), eval("three")] });
    project.write("skills/notes/evals/evals.json", &evals.to_string());
    project.write(
        "scenarios/greets.yaml",
        "scenario: greets\nuser_prompts: [hello, '!ask Which? | Left | Right']\nsystem_prompt: Greet.\n\
         tags: [smoke]\nassertions:\n  - id: says\n    type: output_contains\n    pattern: goodbye\n",
    );
    project
}

#[test]
#[cfg_attr(not(has = "browser"), ignore = "needs a browser; run scripts/test")]
fn trials_in_quarantine_are_marked_and_come_after_failures() {
    let program = browser::installed();
    let project = Project::new(PROGRAM);
    for (name, expected, quarantined) in [("a", "bye", true), ("b", "bye", false), ("c", "hello", false)] {
        let quarantine = if quarantined { "quarantine: { reason: slow, since: 2026-11-01 }\n" } else { "" };
        let text = format!("name: {name}\nturns: [hello]\nassertions: [{{ contains: {expected} }}]\n{quarantine}");
        project.write(&format!("tests/{name}.yaml"), &text);
    }
    project.run(&["run", "tests", "--agent", "fake", "--report", "html=out.html"]).exits(1);
    let mut browser = Browser::start(&program);
    let browser = &mut browser;
    open(browser, &project.dir().join("out.html"), "");
    let row = |number: u64| format!(".trials tbody tr:nth-child({number})");
    for (number, case) in [(1, "b::b"), (2, "a::a"), (3, "c::c")] {
        assert!(text(browser, &row(number)).contains(case), "{number}: {}", text(browser, &row(number)));
    }
    assert!(text(browser, &row(2)).contains("failed, quarantined"));
    assert_eq!(count(browser, &format!("{} .outcome.failed", row(2))), 0, "it does not look like a failure");
    assert_eq!(listed(browser, "outcome:quarantined"), 1);
    assert!(text(browser, "section[aria-label=Result] tbody").contains("1 of 2"), "it is not in the pass rate");
}

#[test]
#[cfg_attr(not(has = "browser"), ignore = "needs a browser; run scripts/test")]
fn every_view_filter_and_key_works() {
    let program = browser::installed();
    let project = project();
    project.run(&["run", "--agent", "fake", "--trials", "2", "--report", "html=out.html"]).exits(1);
    let page = project.dir().join("out.html");
    let mut browser = Browser::start(&program);
    let browser = &mut browser;

    // The overview.
    open(browser, &page, "");
    assert_eq!(text(browser, "h1"), "FAIL 2 of 8 trials failed, 6 passed");
    assert_eq!(text(browser, "h1 .result.FAIL"), "FAIL");
    assert!(text(browser, ".verdict").contains("The skill helps: in 3 cases"), "{}", text(browser, ".verdict"));
    let sections = "[...document.querySelectorAll('section')].map((section) => section.ariaLabel).slice(0, 2)";
    assert_eq!(browser.evaluate(sections), json!(["Not passed", "Arms"]));
    assert_eq!(count(browser, ".failure .dots a"), 2, "a dot for each repetition");
    assert_eq!(count(browser, "section[aria-label=Arms] svg[role=img]"), 8);
    assert!(text(browser, "#found").starts_with("14 of 14 trials"));
    assert_eq!(count(browser, "#list tbody tr"), 4, "trials are grouped by case");
    assert_eq!(count(browser, "#list .dots a"), 14);
    open(browser, &page, "#/?view=trials");
    assert!(text(browser, ".trials tbody tr").contains("greets"), "failures come first");
    let (all, failures) = (listed(browser, ""), listed(browser, "outcome:failed"));
    assert_eq!((all, failures), (14, 2), "the arm without the skill has no failures");
    for (filter, expected) in [
        ("outcome:baseline", 6),
        ("outcome:quarantined", 0),
        ("outcome:failed outcome:passed", 8),
        ("tag:smoke", 2),
        ("tag:other", 0),
        ("arm:fake+with_skill", 6),
        ("arm:fake+with_skill case:two", 2),
        ("suite:notes/evals -without_skill", 6),
        ("goodbye", 2),
        ("\"no such words\"", 0),
        ("scenarios/greets.yaml:1", 2),
        ("greets.yaml:12", 0),
    ] {
        assert_eq!(listed(browser, filter), expected, "{filter}");
    }
    listed(browser, "");
    browser
        .evaluate("[...document.querySelectorAll('.choices button')].find((b) => b.innerText === 'failed 2').click()");
    assert_eq!(count(browser, ".trials tbody tr"), 2);
    assert_eq!(browser.evaluate("document.getElementById('filter').value"), "outcome:failed");
    let address = browser.evaluate("location.hash");
    open(browser, &page, address.as_str().unwrap());
    assert_eq!(count(browser, ".trials tbody tr"), 2, "the address holds the filter");
    open(browser, &page, "#/?sort=time");
    assert_eq!(browser.evaluate("document.querySelector('[aria-sort]').innerText"), "Agent time");
    open(browser, &page, "#/?view=cases");
    assert_eq!(count(browser, "#list tbody tr"), 4);
    // A run with three arms, where each case has only some of them.
    let links = "[...document.querySelectorAll('#list tbody tr')].map((row) => \
                 decodeURIComponent(row.lastElementChild.querySelector('a').hash))";
    let links = browser.evaluate(links);
    let of = |case: &str| links.as_array().unwrap().iter().filter_map(Value::as_str).find(|link| link.contains(case));
    assert_eq!(of("greets"), Some("#/compare/greets::greets@fake#1/greets::greets@fake#2"));
    assert_eq!(of("one"), Some("#/compare/notes/evals::one@fake+with_skill#1/notes/evals::one@fake+without_skill#1"));

    // Keys.
    open(browser, &page, "#/?view=trials");
    browser.press("/");
    assert_eq!(browser.evaluate("document.activeElement.id"), "filter");
    browser.press("Escape");
    browser.press("j");
    browser.press("j");
    browser.press("k");
    assert_eq!(browser.evaluate("document.activeElement === document.querySelector('#main [data-stop]')"), true);
    browser.press("?");
    assert!(text(browser, "dialog").contains("next, previous"));
    browser.evaluate("document.querySelector('dialog').close()");

    // A trial.
    browser.evaluate("document.activeElement.blur(); document.querySelector('.trials a').click()");
    browser.wait("document.querySelector('.timeline .item')");
    assert!(text(browser, "h1").contains("greets"));
    assert_eq!(browser.evaluate("document.activeElement.tagName"), "H1");
    let first = browser.evaluate("location.hash");
    browser.press("ArrowRight");
    browser.wait(&format!("location.hash !== {first} && document.querySelector('a[rel=prev]')"));
    browser.press("ArrowLeft");
    browser.wait(&format!("location.hash === {first} && !document.querySelector('a[rel=prev]')"));
    browser.wait("document.activeElement.tagName === 'H1'");
    browser.press("j");
    assert_eq!(browser.evaluate("document.activeElement.textContent.startsWith('User, message 1 of 2')"), true);
    let timeline = text(browser, ".timeline");
    assert!(timeline.contains("Which?") && timeline.contains("Right"), "{timeline}");
    assert!(text(browser, "[aria-label=Checks]").contains("goodbye"));
    browser.press("Escape");
    browser.wait("document.querySelector('.trials')");

    // Deep links, what is shown, the whole input and result, and the files.
    open(browser, &page, "#/trial/notes%2Fevals%3A%3Aone%40fake%2Bwith_skill%231");
    assert_eq!(count(browser, ".timeline .thinking"), 1);
    let toggle = |browser: &mut Browser, label: &str| {
        let find = "[...document.querySelectorAll('.choices label')]";
        browser.evaluate(&format!("{find}.find((l) => l.innerText === '{label}').click()"));
    };
    toggle(browser, "Thinking");
    assert_eq!(browser.evaluate("document.querySelector('.thinking').checkVisibility()"), false);
    toggle(browser, "Open all calls");
    assert!(text(browser, ".call .input").contains("git log"));
    assert!(text(browser, ".call .result").contains("3f1a9c2 Fix"));
    assert!(text(browser, "[aria-label='Files changed']").contains("NOTES.md"));
    assert_eq!(text(browser, "[aria-label='Files changed'] .diff .added"), "+done\n");
    assert!(text(browser, ".usage").contains("900 tokens in"));
    assert_eq!(count(browser, ".others a[href^='#/compare/']"), 2);
    browser.evaluate("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }");
    browser.press("c");
    browser.wait("window.copied");
    let prompt = browser.evaluate("window.copied");
    assert!(prompt.as_str().unwrap().contains("CALL Bash {\"command\":\"git log\"}"), "{prompt}");

    // Side by side.
    let (with, without) =
        ("notes%2Fevals%3A%3Aone%40fake%2Bwith_skill%231", "notes%2Fevals%3A%3Aone%40fake%2Bwithout_skill%231");
    open(browser, &page, &format!("#/compare/{with}/{without}"));
    assert_eq!(text(browser, "#apart"), "First difference: step 4");
    assert!(text(browser, "[aria-label=Checks]").contains("unmet"));
    assert!(count(browser, ".pair.same") >= 4, "the answer after the difference is the same again");
    open(browser, &page, "#/trial/no-such");
    assert!(text(browser, "h1").contains("no such trial"));

    // Landmarks and names, and a phone.
    open(browser, &page, "");
    let unnamed =
        "document.querySelectorAll('section:not([aria-label]), svg:not([aria-label]), input:not([aria-label])').length";
    assert_eq!(browser.evaluate(unnamed), 0);
    assert_eq!([count(browser, "main"), count(browser, "header"), count(browser, "h1")], [1, 1, 1]);
    for width in [390, 1280] {
        browser.resize(width, 800);
        for address in ["#/", "#/?view=cases", &format!("#/trial/{with}"), &format!("#/compare/{with}/{without}")] {
            open(browser, &page, address);
            let wider = "document.documentElement.scrollWidth > innerWidth";
            assert_eq!(browser.evaluate(wider), false, "{address} at {width}");
        }
    }
    assert!(browser.problems.is_empty(), "{:?}", browser.problems);
}

/// Returns the record of a finished trial.
fn record(id: &TrialId) -> TrialRecord {
    let printed = Arc::<str>::from(id);
    serde_json::from_value(json!({
        "id": printed, "suite": id.suite, "case": id.case, "arm": id.arm, "agent": "fake", "repetition": id.repetition,
        "outcome": "failed", "because": id.case, "findings": [], "input": ["go"], "answer": "done", "turn_count": 1,
        "duration_ms": 1, "started_at": "2026-11-21T21:48:00Z",
    }))
    .unwrap()
}

/// A writer into memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes the report of a run with one trial that has these steps.
fn written(page: &Path, case: &str, steps: &[Value]) {
    written_all(page, case, &[steps]);
}

/// Writes the report of a run with repetitions of one case, each with its own steps.
fn written_all(page: &Path, case: &str, repetitions: &[&[Value]]) {
    let ids: Vec<TrialId> = (1..=repetitions.len() as u64)
        .map(|repetition| TrialId { suite: "s".into(), case: case.into(), arm: "fake".into(), repetition })
        .collect();
    let at = "2026-11-21T21:48:00Z";
    let info = json!({
        "type": "run_started", "id": "r", "label": case, "started_at": at, "trialrun_version": "0", "settings": {},
        "agents": [], "skills": [], "trials": ids, "jobs": 1,
    });
    let mut events: Vec<(Option<Arc<str>>, Event)> = vec![(None, serde_json::from_value(info).unwrap())];
    for (id, steps) in ids.iter().zip(repetitions) {
        let trial = Some(Arc::<str>::from(id));
        events.extend(steps.iter().map(|step| {
            let mut event = step.clone();
            event["type"] = json!("step");
            (trial.clone(), serde_json::from_value(event).unwrap())
        }));
        events.push((trial, Event::TrialFinished(Box::new(record(id)))));
    }
    let memory = Memory::default();
    let options = ReporterOptions::new(Box::new(memory.clone()), Style::plain());
    let mut reporter = report::find("html").unwrap().to_stream(options).unwrap();
    for (number, (trial, event)) in events.into_iter().enumerate() {
        let attempt = trial.as_ref().map(|_| 1);
        let envelope =
            Envelope { v: 1, seq: number as u64 + 1, at: at.parse().unwrap(), run: "r".into(), trial, attempt, event };
        reporter.event(&envelope).unwrap();
    }
    reporter.finish().unwrap();
    std::fs::write(page, &*memory.0.lock().unwrap()).unwrap();
}

fn call(id: &str, input: &Value, parent: Option<&str>) -> Value {
    json!({
        "kind": "tool_call", "id": id, "name": "Bash", "raw_name": "Bash", "input": input, "message": id,
        "parent": parent, "effect": "shell",
    })
}

/// Text that tries to run scripts, hide text, reverse the direction of writing, and control a terminal.
pub const HOSTILE: &str = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'><!-- \
                           \u{202e}evil\u{2066} \u{1b}[31mred\u{7} \u{0}nul \u{7f} javascript:alert(1) {{x}} ${1+1}";

/// Parts of the hostile text as they appear when shown as text.
pub const HOSTILE_SHOWN: [&str; 5] = ["</script><script>", "⟨U+202E⟩evil", "␛[31mred␇", "␀nul", "${1+1}"];

#[test]
#[cfg_attr(not(has = "browser"), ignore = "needs a browser; run scripts/test")]
fn hostile_transcripts_stay_text() {
    let hostile = HOSTILE;
    let program = browser::installed();
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("hostile.html");
    let steps = [
        json!({ "kind": "user_message", "index": 1, "of": 1, "text": hostile }),
        json!({ "kind": "thinking", "message": hostile, "text": hostile }),
        json!({ "kind": "text", "message": hostile, "text": hostile }),
        call("c", &json!({ "command": hostile, hostile: hostile, "old_string": hostile, "new_string": hostile }), None),
        call("sub", &json!({ "command": hostile }), Some("c")),
        json!({ "kind": "tool_result", "id": "sub", "content": hostile, "is_error": true }),
        json!({ "kind": "tool_result", "id": "c", "content": hostile, "is_error": false }),
        json!({ "kind": "notice", "from": "stderr", "text": hostile }),
    ];
    written(&page, hostile, &steps);
    let mut browser = Browser::start(&program);
    let browser = &mut browser;
    open(browser, &page, "");
    assert!(text(browser, ".trials").contains("<img src=x"));
    browser.evaluate("document.querySelector('.trials a').click()");
    browser.wait("document.querySelector('.timeline .call')");
    browser.evaluate("document.querySelectorAll('.choices input').forEach((input) => input.checked || input.click())");
    assert_eq!(count(browser, ".sub .call"), 1, "the call of the sub-agent is inside that of its parent");
    let shown = text(browser, ".timeline");
    for sign in HOSTILE_SHOWN {
        assert!(shown.matches(sign).count() >= 6, "{sign}: {shown}");
    }
    assert!(!shown.contains(['\u{202e}', '\u{1b}', '\u{0}']));
    assert_eq!(browser.evaluate("window.hacked ?? null"), Value::Null);
    assert_eq!(count(browser, "img, iframe, object, a[href^=javascript]"), 0);
    assert!(browser.problems.is_empty(), "{:?}", browser.problems);
    // The policy holds even for a script that has been injected into the page.
    let injected = "{ const script = document.createElement('script'); script.textContent = 'window.hacked = 3'; \
                    document.body.append(script); window.hacked ?? null }";
    assert_eq!(browser.evaluate(injected), Value::Null);
}

#[test]
#[cfg_attr(not(has = "browser"), ignore = "needs a browser; run scripts/test")]
fn trials_that_differ_inside_a_sub_agent_are_aligned_there() {
    let program = browser::installed();
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("sub.html");
    let steps = |command: &str, id: u64| {
        [
            call("task", &json!({ "command": "delegate" }), None),
            call("same", &json!({ "command": "ls" }), Some("task")),
            call("sub", &json!({ "command": command }), Some("task")),
            call("last", &json!({ "command": "git push" }), None),
            call("id", &json!({ "id": id }), None),
        ]
    };
    written_all(&page, "sub", &[&steps("cat a", 9_007_199_254_740_992), &steps("cat b", 9_007_199_254_740_993)]);
    let mut browser = Browser::start(&program);
    let browser = &mut browser;
    open(browser, &page, "#/compare/s%3A%3Asub%40fake%231/s%3A%3Asub%40fake%232");
    assert_eq!(text(browser, "#apart"), "First difference: step 3");
    assert_eq!(text(browser, ".pair:not(.same):not(.head) .label"), "Turn 3, sub-agent, #1");
    assert_eq!(count(browser, ".pair.same"), 3, "the steps after the sub-agent are the same again");
    assert_eq!(count(browser, ".pair:not(.same):not(.head)"), 2, "ids of 64 bits are told apart");
    assert!(browser.problems.is_empty(), "{:?}", browser.problems);
}

#[test]
#[cfg_attr(not(has = "browser"), ignore = "needs a browser; run scripts/test")]
fn a_trial_of_fifty_megabytes_opens() {
    let program = browser::installed();
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("huge.html");
    let line = "0123456789".repeat(1_000_000);
    let mut steps = Vec::new();
    for number in 0..5 {
        let id = format!("c{number}");
        steps.push(call(&id, &json!({ "command": "cat huge" }), None));
        steps.push(json!({ "kind": "tool_result", "id": id, "content": line, "is_error": false }));
    }
    written(&page, "huge", &steps);
    let mut browser = Browser::start(&program);
    let browser = &mut browser;
    open(browser, &page, "#/trial/s%3A%3Ahuge%40fake%231");
    assert_eq!(count(browser, ".timeline .call"), 5);
    browser.evaluate("document.querySelector('.call').open = true");
    browser.wait("document.querySelector('.call .result button')");
    assert_eq!(text(browser, ".call .result button"), "Show all 10,000,000 characters");
    browser.evaluate("document.querySelector('.call .result button').click()");
    assert_eq!(browser.evaluate("document.querySelector('.call .result pre').textContent.length"), 10_000_000);
    assert!(browser.problems.is_empty(), "{:?}", browser.problems);
}
