//! Tests of every command: the real binary in its own project.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod arms;
mod assertions;
mod check;
mod configuration;
mod evals;
mod formats;
mod generated;
mod project;
mod record;
mod run;
mod schema;
mod selection;
mod verification;
mod watch;

use testkit::{Project, Ran};

fn empty() -> Project {
    Project::new(env!("CARGO_BIN_EXE_trialrun"))
}

/// Returns a scenario for the fake agent, which answers `says`; the expected answer is `hello`.
fn scenario(id: &str, says: &str) -> String {
    format!(
        "scenario: {id}\ndescription: The {id} case.\ntags: [{tag}]\nskill: greet\nuser_prompt: {says}\nassertions:\n  - {{ id: \
         says-hello, type: output_contains, pattern: hello }}\n",
        tag = if id == "third" { "slow" } else { "fast" }
    )
}

/// Returns a skill with three cases: the second fails, the others pass.
fn demo() -> Project {
    let project = empty();
    project
        .write("trialrun.yaml", "defaults: { agent: fake, jobs: 1 }\n")
        .write("skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets.\nversion: 2.0.0\n---\nSay hello.\n")
        .write("skills/greet/tests/a.yaml", &scenario("first", "hello"))
        .write("skills/greet/tests/b.yaml", &scenario("second", "goodbye"))
        .write("skills/greet/tests/c.yaml", &scenario("third", "hello again"));
    project
}

/// Returns the ids that `list` shows with these arguments.
fn listed(project: &Project, arguments: &[&str]) -> Vec<String> {
    let ran = project.run(&[&["list", "--json"], arguments].concat());
    ran.json().as_array().unwrap().iter().map(|row| row["case"].as_str().unwrap().to_owned()).collect()
}

fn lines(ran: &Ran) -> Vec<&str> {
    ran.out.lines().collect()
}
