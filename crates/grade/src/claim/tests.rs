use model::{SideEffectLevel, SkillEval, Status};
use serde_json::json;

use super::*;
use crate::check::tests::{case, judged};
use crate::check::{Check, compile, grade};
use crate::context::Context;
use crate::example::{EvidenceBuilder, branch_out, commit_on, open_request, push_to};

fn check_of(text: &str, should_trigger: bool) -> (Check, Vec<Diagnostic>) {
    let mut case = case(&[json!({"id": "a", "type": "claim", "text": text})]);
    case.skill_eval = Some(Box::new(SkillEval {
        should_trigger,
        invocation: None,
        side_effect_level: SideEffectLevel::LocalOnly,
        contract: None,
        scripts: Vec::new(),
    }));
    let (mut checks, problems) = compile(&case, &Context::default());
    (checks.remove(0), problems)
}

/// Returns the assertions that `text` is compiled to, in one line. Returns `judge` if a judge is asked.
fn stands_for(text: &str) -> String {
    check_of(text, true).0.compiled_as().map_or_else(|| "judge".to_owned(), |parts| parts.join("; "))
}

#[test]
fn claims_are_compiled_to_the_expected_assertions() {
    for (text, expected) in [
        ("A new git branch was created", "branch_created"),
        ("The branch `feat/x` exists", "branch_created `feat/x`"),
        ("A branch called feat/basket was created", "branch_created `feat/basket`"),
        (
            "The agent created a new branch, committed the changes, pushed it and opened a PR",
            "branch_created; commit_created; pushed; review_request_created",
        ),
        (
            "A branch, a commit and a pull request were created",
            "branch_created; commit_created; review_request_created",
        ),
        ("ci: branch created, commit created, PR opened", "branch_created; commit_created; review_request_created"),
        ("The branch was created and pushed to the remote", "branch_created; pushed"),
        ("The changes were committed with the message \"feat: x\"", "commit_created `feat: x`"),
        ("A commit exists on the new branch", "commit_created; branch_created"),
        ("The changes were pushed to `main`", "pushed `main`"),
        ("A merge request was opened against main", "review_request_created to `main`"),
        ("No new branch was created", "branch_not_created"),
        ("A commit wasn't created", "commit_not_created"),
        ("No branch, commit or PR was created", "branch_not_created; commit_not_created; review_request_not_created"),
        ("Neither a branch nor a commit was created", "branch_not_created; commit_not_created"),
        ("The agent did not commit or push anything", "commit_not_created; not_pushed"),
        ("Nothing was pushed", "not_pushed"),
        ("A branch was created but nothing was pushed", "branch_created; not_pushed"),
        ("A new branch was created but no PR", "branch_created; review_request_not_created"),
        ("The file `a.txt` exists", "file_exists `a.txt`"),
        ("The files `a.txt` and `b.txt` exist", "file_exists `a.txt` and `b.txt`"),
        ("The file `a` or `b` exists", "file_exists `a` or `b`"),
        ("`src/*.py` was created", "file_created `src/*.py`"),
        (
            "README.md, LICENSE.md, and .gitignore were created",
            "file_created `README.md`, `LICENSE.md` and `.gitignore`",
        ),
        ("The file `notes` was not created", "file_not_created `notes`"),
        ("The file `a.txt` no longer exists", "file_not_exists `a.txt`"),
        ("A file named notes exists in `docs`", "file_exists `docs/notes`"),
        ("The agent did not create or modify any files", "file_not_created; file_unchanged"),
        ("No files were created or modified", "file_not_created; file_unchanged"),
        ("The agent created and pushed a new branch", "branch_created; pushed"),
        ("The agent committed and pushed the changes", "commit_created; pushed"),
        ("The agent committed the changes and opened a PR", "commit_created; review_request_created"),
        ("No files were changed", "file_unchanged"),
        ("The workspace is unchanged", "file_unchanged"),
        ("The file `a.txt` was not modified", "file_unchanged `a.txt`"),
        ("The file `a.txt` was updated and `b.txt` was deleted", "file_changed `a.txt`; file_deleted `b.txt`"),
        ("The file `a.txt` contains \"x\" and \"y\"", "file_contains `a.txt` \"x\" and \"y\""),
        ("README.md was created and contains `x`", "file_created `README.md`; file_contains `README.md` \"x\""),
        ("The output does not contain \"secret\"", "output_not_contains \"secret\""),
        ("The agent's answer includes `a` or `b`", "output_contains \"a\" or \"b\""),
        ("\"hello\" appears in the output", "output_contains \"hello\""),
        ("The output is valid JSON and contains \"a\"", "valid_json; output_contains \"a\""),
        ("`data/out.json` is valid JSON", "valid_json `data/out.json`"),
        ("Output is invalid json", "no_valid_json"),
        ("The agent ran `npm test`", "command_ran `npm test`"),
        ("The agent ran git push", "command_ran `git push`"),
        ("It ran npm run build successfully", "command_ran `npm run build`"),
        ("`make` was not run", "command_not_ran `make`"),
        ("The agent ran the `scripts/check.py` script", "command_ran `scripts/check.py`"),
        ("A file `a.txt` exists containing \"x\"", "file_contains `a.txt` \"x\""),
        ("The branch `release/1.2` was pushed", "pushed `release/1.2`"),
        ("A PR exists and is open", "review_request_created"),
        ("The agent ran `npm ci` and `npm test`", "command_ran `npm ci`; command_ran `npm test`"),
        ("A command was executed", "command_ran"),
        ("The working tree is clean", "git_clean"),
        ("git status is clean", "git_clean"),
        ("file exists: a.txt", "file_exists `a.txt`"),
        ("File exists: `a.txt`", "file_exists `a.txt`"),
        ("The file exists: x", "file_exists `x`"),
        ("The files exist: a.txt, notes and `b`.", "file_exists `a.txt`, `notes` and `b`"),
        ("file created: out.json", "file_created `out.json`"),
        ("A file was not created: notes", "file_not_created `notes`"),
        ("The agent ran git status", "command_ran `git status`"),
        ("The agent ran git", "command_ran `git`"),
        ("The agent ran: git log --oneline", "command_ran `git log --oneline`"),
        ("The output contains the word `commit` or `Initial`", "output_contains \"commit\" or \"Initial\""),
        ("contains the word `commit`", "output_contains \"commit\""),
        ("The answer mentions `x`", "output_contains \"x\""),
        ("The answer does not mention `x`", "output_not_contains \"x\""),
        ("`x` is mentioned in the answer", "output_contains \"x\""),
        ("A pull request was created or the PR URL is mentioned.", "review_request_created"),
        ("Exactly one new commit", "commit_created exactly once"),
        ("Only one commit was created and the file `a.txt` exists", "commit_created exactly once; file_exists `a.txt`"),
        ("A draft PR was opened", "review_request_created as a draft"),
        ("The output contains valid JSON", "valid_json"),
        ("x.json exists and is valid JSON", "file_exists `x.json`; valid_json `x.json`"),
        ("`a.json` exists and contains valid JSON", "file_exists `a.json`; valid_json `a.json`"),
        ("A file `a.json` was created and is valid JSON", "file_created `a.json`; valid_json `a.json`"),
        ("The agent ran the python script", "command_ran `python`"),
        ("ran the command: `npm test`", "command_ran `npm test`"),
    ] {
        assert_eq!(stands_for(text), expected, "{text}");
    }
}

#[test]
fn partly_understood_claims_go_to_a_judge() {
    for text in [
        "The answer is polite",
        "The agent explains how a new branch is created",
        "The agent asks before a commit is created",
        "A new branch was created only if the tests pass",
        "Push notification branch logic is explained",
        "A committed newsletter was created",
        "The program warranty includes go",
        "The commit message explains the new behaviour",
        "The new branch contains \"x\"",
        "A branch or a commit was created",
        "A branch was created or a commit was created",
        "The branch was created or pushed",
        "A pull request was created or a commit is mentioned",
        "The PR URL is mentioned",
        "Exactly one file was created",
        "The agent did not create exactly one commit",
        "No draft PR was opened to main",
        "The output contains invalid JSON",
        "The agent ran the bundled script",
        "The agent ran the python validation script",
        "Two commits were created",
        "The agent created or modified the file `a.txt`",
        "A commit was created in the style of the project",
        "The file `../x` exists",
        "The file `/etc/passwd` exists",
        "The file `~/.ssh/id` exists",
        "The file `C:\\x` exists",
        "The file exists",
        "The file exists: see the log",
        "file exists: *.{md,txt}",
        "The file `*.{md,txt}` exists",
        "The file was created: it explains the change",
        "The report was created.",
        "`feature` was created",
        "The agent created `a.txt` containing \"x\"",
        "The agent pushed `src/app.py`",
        "The agent ran the script",
        "`a.txt` was committed",
        "`a.txt` was created and committed",
        "Output includes x",
        "The output includes \"\" empty",
        "The agent did not fail to create a branch",
        "A commit was created on main",
        "The PR was not opened against main",
        "not not not",
        "and, or; `",
    ] {
        assert_eq!(stands_for(text), "judge", "{text}");
    }
}

#[test]
fn the_bundled_script_is_the_only_one_in_its_language() {
    let stands_for = |text: &str, scripts: &[&str]| {
        let scripts = scripts.iter().map(|script| (*script).to_owned()).collect();
        let setting = ClaimContext { scripts, ..ClaimContext::default() };
        let place = SourceLocation::from_node(&crate::yaml::list_item(&json!({"id": "a"}), "a.yaml"));
        compiled(text, &place, &setting).0.stands_for().map_or_else(|| "judge".to_owned(), |parts| parts.join("; "))
    };
    let text = "The agent ran the bundled python validation script";
    assert_eq!(stands_for(text, &["scripts/validate.py", "scripts/a.sh"]), "command_ran `scripts/validate.py`");
    assert_eq!(stands_for("The bundled script", &["a.sh"]), "judge");
    assert_eq!(stands_for("It did not run the bundled script", &["a.sh"]), "command_not_ran `a.sh`");
    for scripts in [&["scripts/a.sh"][..], &["scripts/validate.py", "scripts/fix.py"], &[]] {
        assert_eq!(stands_for(text, scripts), "judge", "{scripts:?}");
    }
}

#[test]
fn exactly_one_commit_a_draft_and_json_inside_an_answer_are_checked_as_such() {
    let commits = |number: usize| {
        let story = EvidenceBuilder::new().repository(|change| {
            ["b2", "c3"].iter().take(number).for_each(|sha| commit_on(change, sha, "x"));
        });
        finding_of("Exactly one new commit", story)
    };
    assert_eq!([0, 1, 2].map(|number| commits(number).status), [Status::Unmet, Status::Met, Status::Unmet]);
    assert_eq!(commits(2).reason, "2 commits were created");
    let draft = |draft: Option<bool>| {
        let story = EvidenceBuilder::new().repository(|change| {
            branch_out(change, "feat/x");
            open_request(change, 7, "feat/x");
            change.after.remotes.get_mut("origin").unwrap().review_requests.as_mut().unwrap()[0].draft = draft;
        });
        finding_of("A draft PR was opened", story).status
    };
    assert_eq!([Some(true), Some(false), None].map(draft), [Status::Met, Status::Unmet, Status::Undecided]);
    let json =
        |answer: &str| finding_of("The output contains valid JSON", EvidenceBuilder::new().answer(answer)).status;
    for answer in ["It is {\"a\": 1}.", "[1, 2]", "See {x}: [{\"a\": []}]", "```json\n{}\n```"] {
        assert_eq!(json(answer), Status::Met, "{answer}");
    }
    for answer in ["See [1] and {x}.", "{\"a\": 1", ""] {
        assert_eq!(json(answer), Status::Unmet, "{answer}");
    }
}

#[test]
fn in_a_negative_control_the_four_event_kinds_are_inverted_once() {
    let method = |text: &str| check_of(text, false).0.method();
    for (text, expected) in [
        ("A new git branch was created", "branch_not_created"),
        ("A git commit with the message \"x\" was created", "commit_not_created"),
        ("The branch `feat/x` was pushed to the remote", "not_pushed"),
        ("A pull request was opened", "review_request_not_created"),
        ("No new branch was created", "branch_not_created"),
        ("The file `a.txt` exists", "file_exists"),
        ("The agent ran git", "command_ran"),
        ("The working tree is clean", "git_clean"),
        ("The answer is polite", "judge"),
    ] {
        assert_eq!(method(text), expected, "{text}");
    }
    assert_eq!(check_of("A branch `feat/x` was created", false).0.compiled_as().unwrap(), ["branch_not_created"]);
}

#[test]
fn a_claim_that_cannot_be_inverted_causes_a_warning() {
    let (check, problems) = check_of("A new branch was created for the refactoring", false);
    assert_eq!((check.method().as_str(), problems.len()), ("judge", 1));
    assert!(!problems[0].is_error() && problems[0].message.contains("not inverted"));
    assert_eq!(check_of("A new branch was created for the refactoring", true).1, []);
    assert_eq!(check_of("The answer says how many commits there are", true).1, []);
}

#[test]
fn all_parts_must_hold_and_each_is_reported() {
    let claim = json!({"id": "a", "type": "claim", "text": "Branch created, commit created, PR opened"});
    let half = EvidenceBuilder::new().repository(|change| {
        branch_out(change, "feat/x");
        commit_on(change, "b2", "x");
    });
    let finding = judged(&claim, &half.evidence());
    assert_eq!((finding.status, finding.reason.as_str()), (Status::Unmet, "there is no new review request"));
    assert_eq!(finding.title.as_deref(), Some("Branch created, commit created, PR opened"));
    assert_eq!(
        finding.evidence,
        ["met: branch_created: `feat/x` is new, and checked out", "met: commit_created: 1 commit was created: b2 x"]
    );
    let whole = EvidenceBuilder::new().repository(|change| {
        branch_out(change, "feat/x");
        commit_on(change, "b2", "x");
        push_to(change, "feat/x", "b2");
        open_request(change, 7, "feat/x");
    });
    assert_eq!(judged(&claim, &whole.evidence()).reason, "all 3 parts hold");
    let finding = judged(&claim, &EvidenceBuilder::new().evidence());
    assert_eq!(finding.status, Status::Undecided);
}

fn finding_of(text: &str, story: EvidenceBuilder) -> model::Finding {
    judged(&json!({"id": "a", "type": "claim", "text": text}), &story.evidence())
}

#[test]
fn files_are_found_anywhere_and_created_means_created_by_the_agent() {
    let there = || EvidenceBuilder::new().files(&[("README.md", "hi"), ("src/app.py", "x"), ("empty/", "")]);
    for (text, expected) in [
        ("The file `app.py` exists", Status::Met),
        ("The file `./app.py` exists", Status::Unmet),
        ("The file `app.py` exists in the root", Status::Unmet),
        ("The file `src` exists", Status::Met),
        ("The directory `empty` exists", Status::Met),
        ("The file `**` exists", Status::Met),
        ("The files `app.py` and `nope.py` exist", Status::Unmet),
        ("The file `app.py` or `nope.py` exists", Status::Met),
        ("The file `nope.py` does not exist", Status::Met),
        ("The file `app.py` does not exist", Status::Unmet),
        ("The file `README.md` was not modified", Status::Met),
        ("The file `READ.md` was not modified", Status::Unmet),
    ] {
        assert_eq!(finding_of(text, there()).status, expected, "{text}");
    }
    let old = finding_of("`app.py` was created", there());
    assert_eq!(old.actual.as_deref(), Some("`src/app.py` already existed and is unchanged"));
    assert_eq!(finding_of("`app.py` was created", there().added("src/app.py")).status, Status::Met);
    assert_eq!(
        finding_of("`app.py` was created", there().changed("src/app.py")).actual.as_deref(),
        Some("`src/app.py` was changed")
    );
    assert_eq!(finding_of("`app.py` was written", there().changed("src/app.py")).status, Status::Met);
    assert_eq!(finding_of("The agent created files", there().added("x")).reason, "`x` is new");
    let made = finding_of("No files were created or modified", there().added("x"));
    assert_eq!((made.status, made.reason.as_str()), (Status::Unmet, "1 file created"));
    assert_eq!(finding_of("The file `a` exists", EvidenceBuilder::new()).reason, "the files were not listed");
}

#[test]
fn files_of_installed_skills_do_not_count_unless_the_agent_changed_them() {
    let files = [(".claude/skills/greet/notes.md", "x"), (".claude/skills/written/new.md", "x")];
    let there = || EvidenceBuilder::new().files(&files).added(".claude/skills/written/new.md");
    assert_eq!(finding_of("The file `notes.md` exists", there()).status, Status::Unmet);
    assert_eq!(finding_of("The file `new.md` exists", there()).status, Status::Met);
    assert_eq!(finding_of("The file `.claude/skills/greet/notes.md` exists", there()).status, Status::Met);
    assert_eq!(finding_of("The file `.claude/skills/greet/notes.md` was not modified", there()).status, Status::Met);
}

#[test]
fn all_strings_are_found_ignoring_case() {
    let status_of = |text: &str| finding_of(text, EvidenceBuilder::new().answer("Say HELLO, b")).status;
    assert_eq!(status_of("The output contains \"hello\" and \"b\""), Status::Met);
    assert_eq!(status_of("The output contains \"hello\" and \"c\""), Status::Unmet);
    assert_eq!(status_of("The output contains \"hello\" or \"c\""), Status::Met);
    assert_eq!(status_of("The output does not contain \"hello\" or \"c\""), Status::Unmet);
    let in_file = |text: &str| {
        finding_of(text, EvidenceBuilder::new().file("a.txt", None).files(&[("docs/a.txt", "Hello")]).answer("Done"))
            .status
    };
    assert_eq!(in_file("The file `a.txt` contains \"hello\""), Status::Met);
    assert_eq!(in_file("The file `a.txt` does not contain \"hello\""), Status::Unmet);
}

#[test]
fn a_judge_sees_what_was_left_behind() {
    let claim = json!({"id": "a", "type": "claim", "text": "The notes are friendly"});
    let mut case = case(&[claim]);
    case.expected = Some(json!("A friendly NOTES.md"));
    case.skill_eval = Some(Box::new(SkillEval {
        should_trigger: false,
        invocation: None,
        side_effect_level: SideEffectLevel::LocalOnly,
        contract: None,
        scripts: Vec::new(),
    }));
    let (checks, _) = compile(&case, &Context::default());
    assert!(
        checks[0].asks_judge() && checks[0].needs() == [Need::Files, Need::Repository] && checks[0].method() == "judge"
    );
    let evidence = EvidenceBuilder::new()
        .asks("Write notes")
        .files(&[("NOTES.md", "Hi there!"), ("old.txt", "old"), (".opencode/skills/greet/SKILL.md", "Greet.")])
        .added("NOTES.md")
        .repository(|change| branch_out(change, "feat/x"))
        .answer("Written.")
        .evidence();
    let question = checks[0].judged().unwrap().question(&evidence).ok().unwrap();
    assert!(question.task.contains("A friendly NOTES.md") && question.task.contains("Nothing more was expected"));
    let parts: Vec<String> = question
        .material
        .parts
        .iter()
        .map(|part| format!("{}: {}", part.title, part.text.replace('\n', " ")))
        .collect();
    assert_eq!(
        parts,
        [
            "context: message 1 of the user: Write notes",
            "files that the agent changed: added NOTES.md",
            "what became of the repository: checked out: branch `feat/x` new branch: `feat/x`",
            "context: all files in the working directory: NOTES.md (9 bytes) old.txt (3 bytes)",
            "file that the agent changed, 1: NOTES.md: Hi there!",
            "context: file as it was, 2: old.txt: old",
            "last reply of the agent: Written.",
        ]
    );
    assert!(question.material.has("Hi there") && !question.material.has("old.txt"));
    assert_eq!(grade(&checks, &evidence)[0].status, Status::Undecided);
}

mod anything {
    use proptest::prelude::*;

    use super::*;

    const PIECES: [&str; 40] = [
        "the",
        "a",
        "no",
        "not",
        "new",
        "branch",
        "commit",
        "pr",
        "file",
        "output",
        "json",
        "command",
        "nothing",
        "created",
        "exists",
        "pushed",
        "committed",
        "ran",
        "contains",
        "modified",
        "deleted",
        "valid",
        "clean",
        "worktree",
        "and",
        "or",
        ",",
        ".",
        "to",
        "in",
        "with",
        "message",
        "called",
        "main",
        "`a.txt`",
        "\"x\"",
        "README.md",
        "git",
        "root",
        "appears",
    ];

    proptest! {
        #[test]
        fn every_claim_can_be_compiled(
            picks in proptest::collection::vec(0..PIECES.len(), 1..14),
            noise in "(?s).{0,40}",
        ) {
            let text: Vec<&str> = picks.iter().map(|index| PIECES[*index]).collect();
            let evidence = EvidenceBuilder::new().files(&[("a.txt", "x")]).repository(|_| {}).answer("x").evidence();
            for text in [text.join(" "), format!("{} {noise}", text.join(" "))] {
                let node = crate::yaml::list_item(&json!({"id": "a"}), "a.yaml");
                for is_turned in [false, true] {
                    let setting = ClaimContext { is_turned, ..ClaimContext::default() };
                    let (matcher, _) = compiled(&text, &SourceLocation::from_node(&node), &setting);
                    matcher.verdict(&evidence);
                }
            }
        }

        #[test]
        fn every_command_line_can_be_parsed(
            line in "[a-z $`(){}\"'\\\\;|&<>#\n-]{0,80}",
            noise in "(?s).{0,40}",
        ) {
            for line in [&line, &noise] {
                for simple in crate::shell::commands(line) {
                    crate::shell::invocations(&simple.words);
                }
            }
        }
    }
}
