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
fn crates_use_each_other_as_the_architecture_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(&root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();

    let mut found = BTreeSet::new();
    for package in metadata["packages"].as_array().unwrap() {
        let from = short(package["name"].as_str().unwrap()).unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            if let Some(to) = short(dependency["name"].as_str().unwrap())
                && to != "model"
            {
                found.insert(format!("{from} -> {to}"));
            }
        }
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
