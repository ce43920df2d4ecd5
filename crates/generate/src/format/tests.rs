//! Texts from models remain data in every format.

use serde_json::{Value, json};

use super::*;
use crate::candidate::{PlannedTest, StartingFile, TestScript, Turn};
use crate::category;

/// Texts that would be code if they were not quoted.
const HOSTILE: [&str; 6] = [
    "\"); import fs from \"fs\"; (\"",
    "`${process.env.HOME}`",
    "line\nbreak\r\n*/ // end",
    "\u{2028}\u{2029}\u{202e}",
    "{{ env.HOME }} ${env.HOME}",
    "- key: [value, &anchor *alias, !!tag]\n# comment",
];

fn candidate(text: &str, says: &[&str]) -> Candidate {
    let kinds = [AssertionKind::Contains, AssertionKind::NotContains, AssertionKind::ToolCalled];
    let assertions: Vec<_> = kinds
        .into_iter()
        .map(|kind| crate::ProposedAssertion {
            kind,
            value: text.to_owned(),
            tool: text.to_owned(),
            arguments: vec![crate::ExpectedArgument { name: text.to_owned(), pattern: "a/b".to_owned() }],
            path: String::new(),
        })
        .collect();
    let turn = |says: &&str| Turn { says: (*says).to_owned(), assertions: assertions.clone() };
    Candidate {
        category: category::find("happy").unwrap(),
        planned: PlannedTest {
            category: "happy".to_owned(),
            // The plan has folded it into one line.
            name: model::text::one_line(text, 100),
            why: text.to_owned(),
            covers: vec!["purpose".to_owned()],
            situation: String::new(),
            success: vec![text.to_owned()],
            failure: Vec::new(),
        },
        slug: "happy-test".to_owned(),
        script: TestScript {
            role: text.to_owned(),
            tone: String::new(),
            turns: says.iter().map(turn).collect(),
            files: vec![StartingFile { path: "a.txt".to_owned(), content: text.to_owned() }],
        },
    }
}

/// Renders the candidate, and returns the suites loaded from the file.
fn loaded(format: &Format, candidate: &Candidate) -> (String, suite::Loaded) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_owned();
    let skill = root.join("skills/notes");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), "---\nname: notes\ndescription: Keeps notes.\n---\nKeep notes.\n").unwrap();
    let targets = [Target { id: "purpose".to_owned(), text: "Keeps notes.".to_owned(), place: "a.md:1".to_owned() }];
    let text = (format.render)(candidate, &Context { targets: &targets, skill: Some("notes") });
    let name = if format.name == "evals" { "evals.json".to_owned() } else { format!("test{}", format.extension) };
    let file = root.join("tests").join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    for (path, content) in side_files(candidate).filter(|_| format.name == "evals") {
        let path = file.parent().unwrap().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    std::fs::write(&file, &text).unwrap();
    let loaded = suite::load(&suite::Request {
        skills_dir: root.join("skills"),
        cwd: root.clone(),
        root,
        targets: vec![file.display().to_string()],
        skill: (format.name == "evals").then(|| skill.display().to_string()),
        ..suite::Request::default()
    });
    (text, loaded)
}

#[test]
fn texts_from_models_are_never_code() {
    for text in HOSTILE {
        for format in FORMATS {
            let (rendered, loaded) = loaded(format, &candidate(text, &[text]));
            let problems: Vec<_> = loaded.diagnostics.iter().map(ToString::to_string).collect();
            assert_eq!(loaded.suites.len(), 1, "{}: {problems:?}\n{rendered}", format.name);
            let cases = &loaded.suites[0].cases;
            assert_eq!(cases.len(), 1, "{}\n{rendered}", format.name);
            assert!(cases[0].broken.is_empty(), "{}: {:?}\n{rendered}", format.name, cases[0].broken);
        }
    }
}

#[test]
fn messages_are_sent_as_the_model_wrote_them() {
    for text in HOSTILE {
        for format in FORMATS.iter().filter(|format| !matches!(format.name, "ts" | "fixtures")) {
            let (_, loaded) = loaded(format, &candidate(text, &[text]));
            let sent = format!("{:?}", loaded.suites[0].cases[0].messages);
            assert!(sent.contains(&format!("{text:?}")), "{}: {sent}", format.name);
        }
    }
}

#[test]
fn a_test_in_code_reads_as_if_a_person_had_written_it() {
    let mut test = candidate("x", &["Where is A-1042?", "And B-9?"]);
    test.planned.name = "finds both orders".to_owned();
    test.planned.why = "Customers ask for both.".to_owned();
    test.script.role = "customer".to_owned();
    test.script.tone = "calm".to_owned();
    test.script.turns[0].assertions.clear();
    test.script.turns[1].assertions.truncate(1);
    test.script.turns[1].assertions.push(crate::ProposedAssertion {
        kind: AssertionKind::ToolCalled,
        value: String::new(),
        tool: "lookup_order".to_owned(),
        arguments: vec![
            crate::ExpectedArgument { name: "order".to_owned(), pattern: "^B/9$".to_owned() },
            crate::ExpectedArgument { name: "in-stock".to_owned(), pattern: "true".to_owned() },
        ],
        path: String::new(),
    });
    let targets = [Target { id: "purpose".to_owned(), text: "Finds orders.".to_owned(), place: "a.md:1".to_owned() }];
    let text = (find("ts").unwrap().render)(&test, &Context { targets: &targets, skill: None });
    let expected = r#"// Customers ask for both.
// Covers Finds orders. (a.md:1)
import { assert, persona, scenario } from "trialrun";

export default scenario("finds both orders", { tags: ["happy"] }, async ({ agent }) => {
  const user = persona({ role: "customer", tone: "calm" });

  await agent.send(user.says("Where is A-1042?"));

  const second = await agent.send(user.says("And B-9?"));
  assert.contains(second, "x");
  assert.toolCalled(second, "lookup_order", { order: /^B\/9$/i, "in-stock": /true/i });
});
"#;
    assert_eq!(text, expected);
}

#[test]
fn cases_are_added_to_an_existing_suite_of_the_same_skill() {
    let context = Context { targets: &[], skill: Some("notes") };
    let first = candidate("x", &["Hi"]);
    let text = (find("evals").unwrap().render)(&first, &context);
    assert_eq!(add_to_evals(&text, &first, &context), Err(EvalsError::Exists("happy-test".to_owned())));
    let second = Candidate { slug: "happy-other".to_owned(), ..first };
    let both: Value = serde_json::from_str(&add_to_evals(&text, &second, &context).unwrap()).unwrap();
    let ids: Vec<&Value> = both["evals"].as_array().unwrap().iter().map(|case| &case["id"]).collect();
    assert_eq!(ids, [&json!("happy-test"), &json!("happy-other")]);
    let other = Context { skill: Some("other"), ..context };
    assert_eq!(add_to_evals(&text, &second, &other), Err(EvalsError::OtherSkill("notes".to_owned())));
    assert_eq!(add_to_evals("[]", &second, &context), Err(EvalsError::NotASuite));
    let by_hand = text.replace("  ", " ");
    assert_eq!(add_to_evals(&by_hand, &second, &context), Err(EvalsError::OtherLayout));
}
