//! `claim`: a requirement in natural language.

use std::sync::Arc;

use serde_json::json;

use super::{ClaimContext, compiled};
use crate::assertion_type::{Assertion, Field, JUDGES, Parameter};
use crate::example::{EvidenceBuilder, branch_out, commit_on};
use crate::matcher::Matcher;
use crate::reading::Reading;

pub(crate) const ASSERTION: Assertion = Assertion::written("claim", parse)
    .summary("A statement in plain English. Code decides it if trialrun can parse it; otherwise a judge does.")
    .fields(&[Field::required("text", "string", "The statement."), JUDGES])
    .parameters(&[Parameter::Value("text")])
    .pass(
        || json!({"id": "works-on-a-branch", "type": "claim", "text": "A new branch and a commit were created"}),
        || {
            EvidenceBuilder::new()
                .repository(|change| {
                    branch_out(change, "feat/basket");
                    commit_on(change, "b2", "feat: add a basket");
                })
                .answer("Committed on `feat/basket`.")
        },
    )
    .fail(
        || json!({"id": "only-answers", "type": "claim", "text": "No files were created or modified"}),
        || EvidenceBuilder::new().changed("basket.ts").answer("Three."),
    );

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let (text, place) = reading.required_text("text")?;
    let setting = ClaimContext::for_case(reading.context.case);
    let (matcher, warning) = compiled(&text, &place, &setting);
    reading.problems.extend(warning);
    reading.title = Some(text);
    Some(matcher)
}
