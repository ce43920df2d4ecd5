//! `claim`: a requirement in natural language.

use std::sync::Arc;

use serde_json::json;

use super::{Assertion, Field, Form, JUDGES, Matcher, Parameter};
use crate::claim::{Setting, compiled};
use crate::example::{Example, Story, branch_out, commit_on};
use crate::judge::reading::judges;
use crate::reading::Reading;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "claim",
    aliases: &[],
    parameters: &[Parameter::Value("text")],
    summary: "What must hold, in people's words: checked if it is understood, else judged.",
    details: "Texts among the `assertions` of `evals.json` are claims. A claim is understood if every word of it is; then \
              it stands for the assertions of the table below, all of which must hold, and no model is asked. `check` \
              tells what each claim stands for.\n\n\
              | the claim says | it stands for |\n| --- | --- |\n\
              | a branch is new, created, or exists | `branch_created`, with a name in quotes |\n\
              | a commit is new, created, or exists; changes are committed | `commit_created`, with `with the message \
              \"…\"` |\n\
              | a branch, a commit or changes are pushed | `pushed`, with a branch in quotes or behind `to` |\n\
              | a PR, pull request or merge request exists, is created or opened | `review_request_created`, with the \
              branch behind `to` or `against` |\n\
              | the working tree is clean | `git_clean` |\n\
              | a file exists | a file or directory of that name somewhere in the working directory |\n\
              | a file is created; written, added, generated, saved | it is new; new or changed |\n\
              | a file is modified, edited, updated; changed, touched; deleted, removed | what became of it |\n\
              | the agent ran a command | `command_ran`, in quotes or beginning with a well-known program |\n\
              | the output contains or includes `\"…\"` | the answer has it, in whatever case |\n\
              | a file contains `\"…\"` | the file has it, in whatever case |\n\
              | the output, or a file, is valid JSON | `valid_json` |\n\n\
              Each may be said not to be so: `no`, `not`, `without`, `nothing`. Several names, and several statements \
              joined by commas, `and` or `but`, must all hold; of names joined by `or` one is enough. Names of files stand \
              in quotes or backticks, or have an ending; they may have wildcards, and begin anywhere unless they begin with \
              `./`.\n\n\
              In a case whose `should_trigger` is `false`, what a claim says about branches, commits, pushes and review \
              requests is turned round: nothing of the kind may have happened, under whatever name. What is said not to be \
              so already is not turned again, and neither is anything else.\n\n\
              A claim with any other word in it goes to a judge, who sees the prompt, the expected output, the answer, the \
              calls, the files, and what became of the repository.",
    fields: &[Field { name: "text", holds: "text", required: true, default: None, doc: "What must hold." }, JUDGES],
    pass: Example {
        assertion: || json!({"id": "works-on-a-branch", "type": "claim", "text": "A new branch and a commit were created"}),
        evidence: || {
            let worked = Story::new().repository(|change| {
                branch_out(change, "feat/basket");
                commit_on(change, "b2", "feat: add a basket");
            });
            worked.answer("Committed on `feat/basket`.").evidence()
        },
    },
    fail: Example {
        assertion: || json!({"id": "only-answers", "type": "claim", "text": "No files were created or modified"}),
        evidence: || Story::new().changed("basket.ts").answer("Three.").evidence(),
    },
    form: Form::Written { parse },
};

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let judges = judges(reading);
    let (text, place) = reading.required_text("text")?;
    let setting = Setting::of(reading.context.case);
    let (matcher, warning) = compiled(&text, &place, &setting, judges);
    reading.problems.extend(warning);
    reading.title = Some(text);
    Some(matcher)
}
