//! The GitHub Action in `action.yml`: its scripts, started as its steps start them, and its inputs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use testkit::{Loopback, Project, Ran, git};

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");
const TOKEN: &str = "ghs_canary0123456789";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A GitHub machine with a clone of a repository, on which the scripts run.
struct Runner {
    project: Project,
    bin: tempfile::TempDir,
}

impl Runner {
    fn new() -> Self {
        let bin = tempfile::tempdir().unwrap();
        symlink(PROGRAM, bin.path().join("trialrun")).unwrap();
        let project = Project::new("bash").path_first(bin.path());
        let temp = project.tmp();
        let place = |name: &str| temp.join(name).to_str().unwrap().to_owned();
        let (output, summary, path) = (place("output"), place("summary"), place("path"));
        let project = project
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_ACTION_PATH", root().to_str().unwrap())
            .env("GITHUB_REPOSITORY", "ada/shop")
            .env("GITHUB_RUN_ID", "77")
            .env("GITHUB_OUTPUT", &output)
            .env("GITHUB_PATH", &path)
            .env("GITHUB_STEP_SUMMARY", &summary)
            .env("GITHUB_REF_NAME", "main")
            .env("RUNNER_TEMP", temp.to_str().unwrap())
            .env("TRIALRUN_BASELINE", &place("baseline"))
            .env("INPUT_NAME", "trialrun")
            // Enough that a difference is unlikely to be chance.
            .env("INPUT_TRIALS", "4");
        Self { project, bin }
    }

    fn env(self, name: &str, value: &str) -> Self {
        Self { project: self.project.env(name, value), ..self }
    }

    /// Runs a script of the Action, without the outputs and the summary of earlier steps.
    fn script(&self, name: &str, arguments: &[&str], env: &[(&str, &str)]) -> Ran {
        for file in ["output", "summary", "path"] {
            fs::write(self.project.tmp().join(file), "").unwrap();
        }
        let script = root().join("action").join(name);
        let mut command = self.project.command(&[&[script.to_str().unwrap()], arguments].concat());
        command.envs(env.iter().copied()).output().unwrap().into()
    }

    /// Runs the tests like a step of the Action.
    fn run(&self, env: &[(&str, &str)]) -> Ran {
        self.script("run.sh", &[], env).exits(0)
    }

    fn file(&self, path: &str) -> String {
        fs::read_to_string(self.project.tmp().join(path)).unwrap_or_else(|error| format!("{path}: {error}"))
    }

    /// Returns an output of the last step.
    fn output(&self, name: &str) -> Option<String> {
        let output = self.file("output");
        output.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
    }

    /// Puts the artifact of the last run where the Action would download it.
    fn keep_baseline(&self) {
        let from = PathBuf::from(self.output("baseline").unwrap());
        let to = self.project.tmp().join("baseline");
        fs::create_dir_all(&to).unwrap();
        for file in ["run.trialrun", "run-id"] {
            fs::copy(from.join(file), to.join(file)).unwrap();
        }
    }

    /// Writes a skill that greets with `greeting`, and its test. The model does what the skill says.
    fn write_skill(&self, greeting: &str) {
        let model = format!(
            "steps:\n  - tools: [{{ name: Write, input: {{ file_path: greeting.txt, content: \"{greeting}\" }} }}]\n  \
             - text: \"::error::The agent says {greeting}\"\n"
        );
        self.project
            .write("trialrun.yaml", "skills_dir: ./skills\ndefaults: { agent: chat, jobs: 1 }\n")
            .write(
                "skills/greet/SKILL.md",
                &format!("---\nname: greet\ndescription: Greets. Use it to greet.\n---\nWrite {greeting}.\n"),
            )
            .write("skills/greet/tests/models/m.yaml", &model)
            .write(
                "skills/greet/tests/greets.yaml",
                "scenario: greets\nskill: greet\nmodel: scripted:models/m.yaml\nmax_turns: 5\nassertions:\n  \
                 - { id: greets-ada, type: file_contains, path: greeting.txt, text: Ada }\n",
            );
    }

    fn commit(&self, title: &str) {
        let dir = self.project.dir();
        git(&dir, &["add", "--all"]);
        git(&dir, &["commit", "--quiet", "--message", title]);
    }
}

#[test]
#[cfg_attr(not(has = "action"), ignore = "needs bash, curl and jq; run scripts/test")]
fn a_pull_request_that_breaks_a_skill_is_reported_from_an_empty_repository_on() {
    let runner = Runner::new();
    let dir = runner.project.dir();
    git(&dir, &["init", "--quiet"]);

    // The first run of the default branch has nothing to compare with.
    runner.write_skill("Hello, Ada!");
    runner.commit("Greet Ada");
    let main = runner.run(&[]);
    assert_eq!(runner.output("exit-code").as_deref(), Some("0"), "{}", main.output());
    assert_eq!(runner.output("result").as_deref(), Some("Passed."));
    assert!(runner.file("summary").contains("There is no baseline yet."), "{}", runner.file("summary"));
    runner.keep_baseline();

    // The pull request changes the skill.
    git(&dir, &["switch", "--quiet", "--create", "shorter"]);
    runner.write_skill("Hello!");
    runner.commit("Greet shortly");
    let branch = runner.run(&[("INPUT_LABEL", "shorter")]);
    assert_eq!(runner.output("exit-code").as_deref(), Some("1"), "{}", branch.output());
    assert_eq!(runner.output("regression").as_deref(), Some("true"));

    let comment = fs::read_to_string(runner.output("comment").unwrap()).unwrap();
    let parts = [
        "<!-- trialrun: trialrun -->\n",
        "**Failed: the agent did not meet the expectations. The run is worse than the baseline.**",
        "### Compared with the baseline",
        "greets",
        "FAIL",
        "greets-ada",
        "https://github.com/ada/shop/actions/runs/77",
    ];
    let mut rest = comment.as_str();
    for part in parts {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("{part:?} is missing or too early in {comment}")).1;
    }
    assert_eq!(runner.file("summary"), comment);

    let reports = "trialrun/trialrun/reports";
    let junit = runner.file(&format!("{reports}/junit.xml"));
    assert!(junit.contains("<failure") && junit.contains("greets"), "{junit}");
    let report: Value = serde_json::from_str(&runner.file(&format!("{reports}/report.json"))).unwrap();
    assert_eq!(report["run"]["label"], "shorter");
    let compared: Value = serde_json::from_str(&runner.file(&format!("{reports}/compare.json"))).unwrap();
    assert_eq!(compared["before"]["label"], "main", "{compared}");
    let problems: Value = serde_json::from_str(&runner.file(&format!("{reports}/check.sarif"))).unwrap();
    assert_eq!(problems["version"], "2.1.0");
    assert!(runner.file(&format!("{reports}/report.html")).contains("<html"));

    // The annotation is a command for GitHub. While the agent's words are printed, commands are turned off.
    let (mut on, mut commands) = (None, Vec::new());
    for line in branch.out.lines() {
        if let Some(token) = line.strip_prefix("::stop-commands::") {
            assert!(token.len() == 32 && on.is_none(), "{line}");
            on = Some(format!("::{token}::"));
        } else if on.as_deref() == Some(line) {
            on = None;
        } else if on.is_none() && line.trim_start().starts_with("::") {
            commands.push(line);
        }
    }
    assert_eq!((on, commands.len()), (None, 1), "{}", branch.output());
    assert!(commands[0].starts_with("::error file=skills/greet/tests/greets.yaml,line=6,"), "{commands:?}");
    assert!(branch.out.contains("= actual:   \"Hello!\""), "{}", branch.output());

    // The skill is repaired.
    runner.write_skill("Hello, dear Ada!");
    runner.run(&[]);
    assert_eq!(runner.output("exit-code").as_deref(), Some("0"));
    assert_eq!(runner.output("regression").as_deref(), Some("false"));
}

#[test]
#[cfg_attr(not(has = "action"), ignore = "needs bash, curl and jq; run scripts/test")]
fn gates_are_inputs() {
    let runner = Runner::new();
    runner.write_skill("Hello, Ada!");
    runner.run(&[]);
    runner.keep_baseline();
    runner.write_skill("Hello!");
    let code = |env: &[(&str, &str)]| {
        runner.run(env);
        (runner.output("exit-code").unwrap(), runner.output("result").unwrap())
    };
    let worse = "Failed: the run is worse than the baseline.";
    assert_eq!(code(&[("INPUT_FAIL_ON_FAILURE", "false")]), ("1".to_owned(), worse.to_owned()));
    assert_eq!(code(&[("INPUT_MIN_PASS_RATE", "0")]), ("1".to_owned(), worse.to_owned()));
    let lenient = [("INPUT_FAIL_ON_FAILURE", "false"), ("INPUT_FAIL_ON_REGRESSION", "false")];
    assert_eq!(code(&lenient), ("0".to_owned(), "Passed. The run is worse than the baseline.".to_owned()));

    // A broken trial says nothing about the agent.
    runner.project.write(
        "skills/greet/tests/models/m.yaml",
        "steps: [{ tools: [{ name: Write, input: { file_path: a, content: b } }] }]\n",
    );
    let (exit, result) = code(&[]);
    assert_eq!(exit, "3");
    assert!(result.starts_with("Incomplete: "), "{result}");
    assert_eq!(code(&[("INPUT_FAIL_ON_INCOMPLETE", "false"), ("INPUT_FAIL_ON_REGRESSION", "false")]).0, "0");

    // Each line is one argument.
    runner.write_skill("Hello, Ada!");
    let selected =
        [("INPUT_TESTS", "skills/greet\n"), ("INPUT_TRIALS", "2"), ("INPUT_ARGUMENTS", "--filter\n^greets$\n")];
    assert_eq!(code(&selected).0, "0");
    let report: Value = serde_json::from_str(&runner.file("trialrun/trialrun/reports/report.json")).unwrap();
    assert_eq!(report["trials"].as_array().unwrap().len(), 2);
    assert_eq!(code(&[("INPUT_ARGUMENTS", "--case\nnone")]).1, "Failed: no trial was run whose result counts.");
}

#[test]
#[cfg_attr(not(has = "action"), ignore = "needs bash, curl and jq; run scripts/test")]
fn tests_that_are_invalid_stop_the_run_and_are_shown() {
    let runner = Runner::new();
    runner.write_skill("Hello, Ada!");
    let test = runner.project.read("skills/greet/tests/greets.yaml").replace("file_contains", "file_<b>");
    runner.project.write("skills/greet/tests/greets.yaml", &test);
    let ran = runner.run(&[]);
    let annotations: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("::error ")).collect();
    let line = 1 + test.lines().position(|line| line.contains("file_<b>")).unwrap();
    let place = format!("::error file=skills/greet/tests/greets.yaml,line={line},title=trialrun::");
    assert!(annotations.len() == 1 && annotations[0].starts_with(&place), "{}", ran.output());
    assert_eq!(runner.output("exit-code").as_deref(), Some("2"));
    assert_eq!(runner.output("run-id").as_deref(), Some(""));
    assert_eq!(runner.output("baseline"), None);
    let summary = runner.file("summary");
    assert!(summary.contains("nothing ran") && summary.contains("file_&lt;b&gt;"), "{summary}");
    runner.write_skill("Hello, Ada!");
    let ran = runner.run(&[("INPUT_ARGUMENTS", "--agent fake")]);
    assert!(ran.out.contains("write an option and its value on two lines"), "{}", ran.output());
    assert!(runner.file("summary").contains("unexpected argument"), "{}", runner.file("summary"));
    let ran = runner.script("run.sh", &[], &[("INPUT_NAME", "../x")]).exits(1);
    assert!(ran.out.contains("The input name may contain"), "{}", ran.output());
}

#[test]
#[cfg_attr(not(has = "action"), ignore = "needs bash, curl and jq; run scripts/test")]
fn a_comparison_in_markdown_is_part_of_the_comment_if_it_fits() {
    let runner = Runner::new();
    runner.write_skill("Hello, Ada!");
    runner.run(&[]);
    runner.keep_baseline();
    // Stands in for a trialrun whose `compare` prints a file and exits with a code.
    let program = runner.bin.path().join("trialrun");
    fs::remove_file(&program).unwrap();
    let compare = "[ \"$2\" = --help ] && { echo '  - markdown: For a comment'; exit; }\n  \
                   echo \"$@\" > asked\n  cat text\n  exit \"$(cat code)\"";
    let stand_in = format!("#!/bin/sh\nif [ \"$1\" = compare ]; then\n  {compare}\nfi\nexec {PROGRAM} \"$@\"\n");
    fs::write(&program, stand_in).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let comment = |text: &str, code: &str| {
        runner.project.write("text", text).write("code", code);
        runner.run(&[]);
        fs::read_to_string(runner.output("comment").unwrap()).unwrap()
    };
    let spoken = comment("**Two cases regressed.**\n", "1");
    assert!(spoken.contains("### Compared with the baseline\n\n**Two cases regressed.**\n\n## PASS"), "{spoken}");
    assert!(spoken.contains("**Failed: the run is worse than the baseline.**"), "{spoken}");

    let too_long = "The details are too long for a comment.";
    let spoken = comment(&"ü | ".repeat(12_900), "0");
    assert!(spoken.len() <= 65_000 && spoken.contains("ü | ") && spoken.contains(too_long), "{}", spoken.len());
    let spoken = comment(&"ü | ".repeat(20_000), "0");
    assert!(spoken.len() < 1_000 && spoken.contains(too_long), "{spoken}");
    assert!(spoken.ends_with("[Reports and log](https://github.com/ada/shop/actions/runs/77)\n"), "{spoken}");
    assert!(runner.file("summary").len() > 65_000);

    assert!(!runner.project.read("asked").contains("--any"));
    runner.run(&[("INPUT_FAIL_ON_REGRESSION", "any")]);
    assert!(runner.project.read("asked").contains(" --any --format markdown"));

    let spoken = comment("**Nothing was compared.**\n", "3");
    let incomplete = "**Incomplete: the comparison with the baseline lacks results.**";
    assert!(spoken.contains(incomplete) && spoken.contains("**Nothing was compared.**\n\n## PASS"), "{spoken}");

    let spoken = comment("", "2");
    assert!(spoken.contains("**Failed: the run could not be compared with the baseline.**"), "{spoken}");
}

#[test]
#[cfg_attr(not(has = "action"), ignore = "needs bash, curl and jq; run scripts/test")]
fn a_baseline_that_cannot_be_read_fails_the_gate_with_its_reason() {
    let runner = Runner::new();
    runner.write_skill("Hello, Ada!");
    runner.run(&[]);
    runner.keep_baseline();
    fs::write(runner.project.tmp().join("baseline/run.trialrun"), "not a <run>").unwrap();
    let ended = |env: &[(&str, &str)]| {
        runner.run(env);
        let comment = fs::read_to_string(runner.output("comment").unwrap()).unwrap();
        (runner.output("exit-code").unwrap(), runner.output("result").unwrap(), comment)
    };
    let (code, result, comment) = ended(&[]);
    assert_eq!((code.as_str(), result.as_str()), ("1", "Failed: the run could not be compared with the baseline."));
    assert!(comment.contains("<pre>\nerror: ") && comment.contains("run.trialrun"), "{comment}");
    let (code, result, _) = ended(&[("INPUT_FAIL_ON_REGRESSION", "false")]);
    assert_eq!((code.as_str(), result.as_str()), ("0", "Passed. The run could not be compared with the baseline."));

    fs::remove_dir_all(runner.project.tmp().join("baseline")).unwrap();
    let (code, _, comment) = ended(&[("TRIALRUN_BASELINE_RUN", "41")]);
    assert!(code == "1" && comment.contains("workflow run 41 could not be downloaded"), "{code} {comment}");

    // Nothing could be downloaded, because nothing has been published yet.
    let branch = [("GITHUB_REF", "refs/heads/main"), ("TRIALRUN_DEFAULT_BRANCH", "main")];
    assert!(ended(&branch).2.contains("There is no baseline yet. This run becomes the baseline."));
    let request = [&branch[..], &[("GITHUB_EVENT_NAME", "pull_request")]].concat();
    assert!(ended(&request).2.contains("The next run of the default branch becomes the baseline."));
}

/// Puts a program in front of curl that records its arguments.
fn watch_curl(runner: &Runner) -> PathBuf {
    let log = runner.project.tmp().join("arguments");
    let real = Command::new("sh").args(["-c", "command -v curl"]).output().unwrap().stdout;
    let real = String::from_utf8(real).unwrap();
    let script = format!("#!/bin/sh\necho \"$@\" >> {}\nexec {} \"$@\"\n", log.display(), real.trim());
    let path = runner.bin.path().join("curl");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    log
}

#[test]
#[cfg_attr(not(has = "action"), ignore = "needs bash, curl and jq; run scripts/test")]
fn a_comment_is_posted_once_and_then_replaced() {
    let runner = Runner::new().env("PULL_REQUEST", "12");
    let log = watch_curl(&runner);
    runner.project.write("comment.md", "<!-- trialrun: trialrun -->\n**Passed.** \"quoted\" \\ ü\n");
    let post = |api: &Loopback| {
        let url = api.url();
        runner.script("comment.sh", &["comment.md"], &[("GITHUB_API_URL", &url), ("GITHUB_TOKEN", TOKEN)]).exits(0)
    };
    let lines = |api: &Loopback| api.asked().into_iter().map(|asked| asked.line).collect::<Vec<_>>();
    let list = "GET /repos/ada/shop/issues/12/comments?per_page=100&page=1";

    let people = json!([{ "id": 3, "user": { "type": "User" }, "body": "<!-- trialrun: trialrun -->\nfake" },
        { "id": 4, "user": { "type": "Bot" }, "body": "other" }]);
    let api = Loopback::answering(200, people.to_string());
    let spoken = post(&api);
    assert_eq!(lines(&api), [list, "POST /repos/ada/shop/issues/12/comments"], "{}", spoken.output());
    let sent: Value = serde_json::from_str(&api.asked()[1].body).unwrap();
    assert_eq!(sent, json!({ "body": runner.project.read("comment.md") }));
    assert!(api.asked()[1].headers.contains(&format!("Bearer {TOKEN}")), "{}", api.asked()[1].headers);

    let ours = json!([{ "id": 9, "user": { "type": "Bot" }, "body": "<!-- trialrun: trialrun -->\n**Failed.**" }]);
    let api = Loopback::answering(200, ours.to_string());
    let spoken = post(&api);
    assert_eq!(lines(&api), [list, "PATCH /repos/ada/shop/issues/comments/9"], "{}", spoken.output());

    // A pull request from a fork may not comment.
    let api = Loopback::answering(403, "{}");
    let ran = post(&api);
    assert!(ran.out.starts_with("::warning title=trialrun::Could not post the comment."), "{}", ran.output());
    assert!(!ran.output().contains(TOKEN), "{}", ran.output());

    let arguments = fs::read_to_string(log).unwrap();
    assert!(arguments.contains("/issues/12/comments") && !arguments.contains(TOKEN), "{arguments}");

    let api = Loopback::answering(200, "[]");
    let url = api.url();
    let ran = runner.script("comment.sh", &["comment.md"], &[("GITHUB_API_URL", &url)]).exits(0);
    assert_eq!((ran.out.as_str(), api.asked().len()), ("There is no token, so no comment is posted.\n", 0));
}

#[test]
#[cfg_attr(not(has = "action"), ignore = "needs bash, curl and jq; run scripts/test")]
fn the_baseline_is_the_newest_artifact_of_the_repositorys_own_default_branch() {
    let runner = Runner::new().env("DEFAULT_BRANCH", "main").env("INPUT_NAME", "trialrun-baseline");
    let artifact = |id: u64, branch: &str, repository: u64, expired: bool| {
        let run = json!({ "id": id * 10, "repository_id": 1, "head_repository_id": repository, "head_branch": branch });
        json!({ "id": id, "expired": expired, "workflow_run": run })
    };
    let find = |status: u16, artifacts: &[Value]| {
        let api = Loopback::answering(status, json!({ "artifacts": artifacts }).to_string());
        let url = api.url();
        let ran = runner.script("baseline.sh", &[], &[("GITHUB_API_URL", &url), ("GITHUB_TOKEN", TOKEN)]).exits(0);
        let asked = api.asked().remove(0).line;
        assert_eq!(
            asked,
            "GET /repos/ada/shop/actions/artifacts?per_page=100&name=trialrun-baseline",
            "{}",
            ran.output()
        );
        (runner.output("run-id"), ran.out)
    };
    let mixed = [
        artifact(5, "main", 2, false), // a fork's branch of the same name
        artifact(4, "main", 1, true),
        artifact(2, "main", 1, false),
        artifact(3, "main", 1, false),
        artifact(6, "other", 1, false),
    ];
    assert_eq!(find(200, &mixed).0.as_deref(), Some("30"));
    let (run, spoken) = find(200, &mixed[..2]);
    assert!(run.is_none() && spoken.starts_with("There is no baseline yet"), "{spoken}");
    let (run, spoken) = find(403, &[]);
    assert!(run.is_none() && spoken.starts_with("::warning title=trialrun::Could not list the artifacts"), "{spoken}");
}

#[test]
#[cfg_attr(not(has = "action"), ignore = "needs bash, curl and jq; run scripts/test")]
fn a_release_is_installed_only_if_its_checksum_is_right() {
    let runner = Runner::new();
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    if !cfg!(target_os = "linux") {
        return;
    }
    let releases = runner.project.tmp().join("releases");
    let folder = releases.join("download/v0.1.0");
    // A script that starts the program, because packing the program takes seconds.
    let program = runner.project.tmp().join("program");
    fs::write(&program, format!("#!/bin/sh\nexec {PROGRAM} \"$@\"\n")).unwrap();
    let pack = Command::new(root().join("scripts/release-archive"))
        .args([&target, program.to_str().unwrap(), folder.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(pack.status.success(), "{pack:?}");
    let name = format!("trialrun-{target}.tar.gz");
    let sum = Command::new("sha256sum").arg(&name).current_dir(&folder).output().unwrap().stdout;
    fs::write(folder.join("checksums.txt"), &sum).unwrap();

    let address = format!("file://{}", releases.display());
    let install = |env: &[(&str, &str)]| {
        runner.script("install.sh", &[], &[&[("TRIALRUN_RELEASES", address.as_str())], env].concat())
    };
    let ran = install(&[("ACTION_REF", "v0.1.0")]).exits(0);
    assert!(ran.out.starts_with("trialrun 0.1.0"), "{}", ran.output());
    assert!(Path::new(runner.file("path").trim()).join("trialrun").is_file());
    install(&[("INPUT_VERSION", "0.1.0")]).exits(0);

    let missing = install(&[("ACTION_REF", "main")]).exits(1);
    assert!(missing.out.contains("latest/download") && runner.file("path").is_empty(), "{}", missing.output());

    let mut archive = fs::read(folder.join(&name)).unwrap();
    archive.push(0);
    fs::write(folder.join(&name), archive).unwrap();
    let changed = install(&[("INPUT_VERSION", "v0.1.0")]).exits(1);
    assert!(changed.out.contains("Nothing was installed") && runner.file("path").is_empty(), "{}", changed.output());
    fs::write(folder.join("checksums.txt"), "").unwrap();
    install(&[("INPUT_VERSION", "v0.1.0")]).exits(1);

    // Without a release, it is built from source, or the installed program is used.
    let cargo = runner.bin.path().join("cargo");
    let built = format!("#!/bin/sh\necho \"$@\"\nmkdir -p \"$6/bin\"\ncp {PROGRAM} \"$6/bin/trialrun\"\n");
    fs::write(&cargo, built).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    let built = install(&[("INPUT_INSTALL", "source")]).exits(0);
    assert!(built.out.starts_with("install --locked --path /"), "{}", built.output());
    install(&[("INPUT_INSTALL", "none")]).exits(0);
    assert_eq!(runner.file("path").trim(), runner.bin.path().to_str().unwrap());
    install(&[("INPUT_INSTALL", "magic")]).exits(1);
    let missing = install(&[("INPUT_INSTALL", "none"), ("PATH", "/usr/bin:/bin")]).exits(1);
    assert!(missing.out.contains("::error title=trialrun::install: none needs"), "{}", missing.output());
}

#[test]
fn every_input_reaches_a_script_and_every_variable_of_a_script_is_set() {
    let text = fs::read_to_string(root().join("action.yml")).unwrap();
    let (inputs, steps) = text.split_once("\noutputs:").unwrap();
    let declared = regex::Regex::new(r"(?m)^  ([a-z-]+):\n").unwrap();
    let used = regex::Regex::new(r"inputs\.([a-z-]+)").unwrap();
    let names = |pattern: &regex::Regex, text: &str| -> BTreeSet<String> {
        pattern.captures_iter(text).map(|found| found[1].to_owned()).collect()
    };
    assert_eq!(names(&declared, inputs), names(&used, steps));

    let read = regex::Regex::new(r"\b(INPUT_[A-Z_]+)").unwrap();
    let set = regex::Regex::new(r"(?m)^ +(INPUT_[A-Z_]+):").unwrap();
    let scripts: String = fs::read_dir(root().join("action"))
        .unwrap()
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap().replace("INPUT_NAME, see", ""))
        .collect();
    assert_eq!(names(&read, &scripts), names(&set, steps));

    // Commands receive values through variables, because an expression in a command would let a branch name become
    // code.
    for (number, line) in text.lines().enumerate() {
        let command = line.trim_start().starts_with("run: ") || line.starts_with("        ");
        assert!(
            !(command && line.contains("${{") && !line.contains(": ${{")) || line.contains("&&"),
            "{}: {line}",
            number + 1
        );
    }
}
