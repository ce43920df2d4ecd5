//! Tests of `run --watch` running next to an editor.

use std::process::Command;

use testkit::{Live, Project};

use super::empty;

fn scenario(says: &str) -> String {
    format!(
        "scenario: s\nsystem_prompt_file: prompt.md\nuser_prompt: {says}\nagent: fake\nassertions: [{{id: hello, type: output_contains, pattern: hello}}]\n"
    )
}

fn project() -> Project {
    let project = empty();
    project
        .write("trialrun.yaml", "tests: tests\n")
        .write("tests/one.yaml", &scenario("hello"))
        .write("tests/prompt.md", "Be brief.\n")
        .write("tests/two.fixture.yaml", "agent: fake\n---\n- input: hello\n  output: hello\n");
    project
}

/// Starts the program with stderr redirected to stdout.
fn both_streams(project: &Project, arguments: &[&str]) -> Live {
    let inner = project.command(arguments);
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" \"$@\" 2>&1"]).arg(inner.get_program()).args(inner.get_args()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = inner.get_current_dir() {
        command.current_dir(folder);
    }
    Live::start(command)
}

#[test]
fn affected_tests_run_again_and_a_broken_file_is_retried_when_fixed() {
    let project = project();
    let mut live = both_streams(&project, &["run", "--watch"]);
    live.line_with("2 trials passed");
    live.line_with("watching ");
    project.write("tests/prompt.md", "Be brief, and friendly.\n");
    live.line_with("changed: tests/prompt.md → 1 suite");
    live.line_with("1 trial passed");
    live.line_with("watching ");
    project.write("tests/one.yaml", "scenario: s\nsystem_prompt: x\nasertions: []\n");
    live.line_with("unknown key `asertions`");
    live.line_with("watching ");
    project.write("tests/one.yaml", &scenario("goodbye"));
    live.line_with("1 trial failed");
    live.line_with("watching ");
    project.write("tests/three.yaml", &scenario("hello again").replace("scenario: s", "scenario: three"));
    live.line_with("tests/three.yaml (new)");
    live.line_with("1 trial passed");
    live.line_with("watching ");
    project.write("trialrun.yaml", "tests: tests\ndefaults: {trials: 2}\n");
    live.line_with("everything");
    live.line_with("watching ");
    live.signal(nix::sys::signal::Signal::SIGINT);
    live.end().exits(130);
    project.no_process_is_left();
}
