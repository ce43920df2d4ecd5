//! Generated texts: completions, help, reference pages, and former names.

use std::path::Path;

use testkit::Ran;

use super::{demo, empty, lines};

/// The commands listed in the help.
const COMMANDS: [&str; 17] = [
    "docs",
    "run",
    "check",
    "list",
    "doctor",
    "config",
    "init",
    "show",
    "history",
    "status",
    "report",
    "trend",
    "compare",
    "prune",
    "schema",
    "completions",
    "man",
];

#[test]
fn completions_include_every_command() {
    let project = empty();
    for shell in ["bash", "zsh", "fish"] {
        let ran = project.run(&["completions", shell]).exits(0);
        for command in COMMANDS {
            assert!(ran.out.contains(command), "{shell}: {command}");
        }
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let project = empty();
    assert!(project.run(&["man"]).exits(0).out.contains(".TH trialrun 1"));
    project.run(&["man", "pages"]).exits(0);
    for command in COMMANDS {
        assert!(project.read(&format!("pages/trialrun-{command}.1")).contains(command), "{command}");
    }
    project.write("taken", "");
    project.run(&["man", "taken/pages"]).exits(3);
}

#[test]
fn help_lists_every_command_by_group() {
    let project = empty();
    let help = project.run(&["--help"]).exits(0);
    for command in COMMANDS {
        assert!(
            lines(&help).iter().any(|line| line.trim_start().starts_with(&format!("{command} "))),
            "{command}: {}",
            help.out
        );
        project.run(&[command, "--help"]).exits(0);
    }
    let run = project.run(&["run", "--help"]).exits(0);
    for heading in ["Selection:", "Agents and trials:", "Limits:", "Gates:", "Sandbox:", "Output:"] {
        assert!(run.out.contains(heading), "{heading}: {}", run.out);
    }
    assert!(project.run(&["--version"]).exits(0).out.contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn option_names_of_the_original_tools_work() {
    let project = demo();
    let report =
        project.report(&["--scenario", "first", "--runtime", "fake", "--save", "--runs", "2", "--parallel", "2"], 0);
    assert_eq!(report["trials"].as_array().unwrap().len(), 2);
    let report = project.report(&["--file", "skills/greet/tests/a.yaml", "--concurrency", "1"], 0);
    assert_eq!(report["trials"][0]["case"], "first");
    project.write(
        "as-before.yaml",
        "scenario: as-before\nsystem_prompt: x\nrunner: { runtime: claude }\nassertions: [{ id: a, type: output_contains, pattern: x }]\n",
    );
    assert_eq!(project.run(&["list", "as-before.yaml", "--json"]).exits(0).json()[0]["agent"], "claude-code");
    project.run(&["run", "--format", "json", "--case", "first"]).exits(0).json();
}

#[test]
fn reference_pages_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let project = empty();
    let ran: Ran = project.command(&["reference"]).current_dir(root).output().unwrap().into();
    assert_eq!(ran.code, 0, "run `cargo run -- reference --write` and read the difference\n{}", ran.output());
}

#[test]
fn reference_updates_only_generated_sections() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let project = empty();
    project.run(&["reference"]).exits(3);
    project.write("pages/notes.txt", "");
    assert!(project.run(&["reference", "--dir", "pages"]).exits(2).err.contains("pages has no pages"));
    for folder in ["reference", "how-to", "explanation"] {
        for page in std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()) {
            let name = page.file_name().unwrap().to_str().unwrap();
            project.write(&format!("pages/{folder}/{name}"), &std::fs::read_to_string(&page).unwrap());
        }
    }
    let fresh = project.read("pages/reference/fake-agent.md");
    let edited = fresh.replace("`!say", "`!shout").replace("# The `fake` agent", "# Fakes");
    project.write("pages/reference/fake-agent.md", &edited);
    let stale = project.run(&["reference", "--dir", "pages"]).exits(2).err;
    assert!(stale.contains("stale: pages/reference/fake-agent.md\n"), "{stale}");
    project.run(&["reference", "--dir", "pages", "--write"]).exits(0);
    assert_eq!(project.read("pages/reference/fake-agent.md"), edited.replace("`!shout", "`!say"));
    for (from, to, expected) in [
        ("fake directives -->", "fake commands -->", "unknown section `fake commands`"),
        ("<!-- end -->", "", "the `fake directives` section has no `<!-- end -->`"),
        ("<!-- generated: fake directives -->", "", "no page in pages has the `fake directives` section"),
    ] {
        project.write("pages/reference/fake-agent.md", &fresh.replace(from, to));
        let refused = project.run(&["reference", "--dir", "pages", "--write"]).exits(2).err;
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn help_is_short_has_examples_and_shows_only_effective_options() {
    let project = demo();
    let short = project.run(&["run", "-h"]).exits(0).out;
    for word in ["Examples:", "-k, --test <TEXT>", "--case", "--agent", "(see more with '--help')"] {
        assert!(short.contains(word), "{word}: {short}");
    }
    let long = project.run(&["run", "--help"]).exits(0).out;
    for rare in ["--max-reasoning-tokens", "--pre-run-command", "--shard"] {
        assert!(!short.contains(rare) && long.contains(rare), "{rare}");
    }
    let list = project.run(&["list", "-h"]).exits(0).out;
    for word in ["--case", "--agent", "--trials", "--assertions"] {
        assert!(list.contains(word), "{word}: {list}");
    }
    for idle in
        ["--max-cost", "--judge", "--keep-sandbox", "--watch", "--min-pass-rate", "--seed", "--post-run-command"]
    {
        assert!(!list.contains(idle), "{idle}: {list}");
    }
    // Hidden options are accepted too, so that both commands have the same options.
    let rows = project.run(&["list", "--max-cost", "1", "--case", "first"]).exits(0).out;
    assert_eq!(rows, "greet::first  fake  #fast\n");
}
