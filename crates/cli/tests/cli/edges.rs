//! The dependencies between crates are exactly those that ARCHITECTURE.md lists.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn short(package: &str) -> Option<&str> {
    if package == "trialrun" { Some("cli") } else { package.strip_prefix("trialrun-") }
}

#[test]
fn crate_dependencies_match_the_architecture() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(&root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();

    let mut found = BTreeSet::new();
    // Examples stand for third-party programs, which may use any crate.
    let is_example = |package: &&Value| package["name"].as_str().is_some_and(|name| name.contains("-example-"));
    for package in metadata["packages"].as_array().unwrap().iter().filter(|package| !is_example(package)) {
        let from = short(package["name"].as_str().unwrap()).unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            if let Some(to) = short(dependency["name"].as_str().unwrap())
                && to != "model"
            {
                found.insert(format!("{from} -> {to}"));
            }
        }
    }

    let libraries = metadata["packages"].as_array().unwrap().iter().filter(|package| package["publish"].is_null());
    let stable = std::fs::read_to_string(root.join("docs/how-to/embed.md")).unwrap();
    for name in libraries.map(|package| package["name"].as_str().unwrap()) {
        assert!(stable.contains(&format!("| `{name}` |")), "embed.md does not say what is stable in {name}");
    }

    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let listed: BTreeSet<String> = text
        .split("```edges\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    assert_eq!(found, listed, "left: the workspace; right: ARCHITECTURE.md");
}

/// Passes each file of the libraries to `check` with its lines, without comments and without tests at its end.
fn for_each_library_file(check: impl Fn(&Path, &[&str])) {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = for_each_file(&crates, &["cli", "testkit", "tests", "benches", "examples"], check);
    assert!(read > 300, "{read}");
}

/// Passes each file below `folder` to `check`, except in folders with these names. Returns the number of files.
fn for_each_file(folder: &Path, except: &[&str], check: impl Fn(&Path, &[&str])) -> usize {
    let mut folders = vec![folder.to_owned()];
    let mut read = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && !except.contains(&name) {
                folders.push(path);
            } else if name.ends_with(".rs") && name != "tests.rs" {
                let text = std::fs::read_to_string(&path).unwrap();
                let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
                check(&path, &lines.filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>());
                read += 1;
            }
        }
    }
    read
}

/// `session` makes the same checks before every run.
#[test]
fn only_a_session_loads_plans_and_runs_suites() {
    const CALLS: [&str; 4] = ["suite::load(", "runner::plan(", "runner::plan_regrade(", "runner::run("];
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in ["cli", "queue"] {
        let read = for_each_file(&crates.join(name).join("src"), &[], |path, lines| {
            let called = |line: &&&str| CALLS.iter().any(|call| line.contains(call));
            let calls: Vec<_> = lines.iter().filter(called).collect();
            assert!(calls.is_empty(), "{}: {calls:#?}", path.display());
        });
        assert!(read > 5, "{name}: {read}");
    }
}

/// Comments and reference pages may name options; messages in libraries use the plain name of the setting. `session`
/// owns the settings with their options.
#[test]
fn library_messages_do_not_mention_command_line_options() {
    for_each_library_file(|path, lines| {
        let is_reference =
            path.iter().any(|part| ["reference", "reference.rs", "session"].iter().any(|name| part == *name));
        let options = |line: &&&str| line.replace("`---", "").contains("`--");
        let named: Vec<_> = lines.iter().filter(|line| !is_reference && options(line)).collect();
        assert!(named.is_empty(), "{}: {named:#?}", path.display());
    });
}

/// ARCHITECTURE.md lists the exceptions.
#[test]
fn libraries_neither_read_the_environment_nor_print_nor_exit() {
    const CALLS: [&str; 8] = [
        "env::var",
        "env::args",
        "env::home_dir",
        "env::temp_dir",
        "env::current_dir",
        "println!",
        "print!",
        "process::exit",
    ];
    for_each_library_file(|path, lines| {
        let is_supervisor = path.iter().any(|part| part == "supervise" || part == "build.rs");
        let called = |line: &&&str| CALLS.iter().any(|call| line.contains(call));
        let calls: Vec<_> = lines.iter().filter(|line| !is_supervisor && called(line)).collect();
        assert!(calls.is_empty(), "{}: {calls:#?}", path.display());
    });
}

/// A package contains only the files of its own folder, so others would be missing where it is compiled.
#[test]
fn libraries_include_no_files_from_outside_of_their_folders() {
    for_each_library_file(|path, lines| {
        let depth = path.iter().rev().skip(1).take_while(|part| *part != "src").count();
        for line in lines.iter().filter(|line| line.contains("include_str!(") || line.contains("include_bytes!(")) {
            assert!(line.matches("../").count() <= depth + 1, "{}: {line}", path.display());
        }
    });
}
