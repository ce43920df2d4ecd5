//! `blank-object` and `blank-list`: answer with a value that has the right form and no content. They pass assertions
//! that accept any value.

use model::Case;
use serde_json::{Value, json};

use super::{Action, Adversary, Role};

pub(super) static OBJECT: Adversary =
    Adversary::new("blank-object", Role::Idle, "only answers with an empty object", |_| {
        vec![Action::Answer(json!({}))]
    })
    .only_if(asks_for_value);

pub(super) static LIST: Adversary = Adversary::new("blank-list", Role::Idle, "only answers with an empty list", |_| {
    vec![Action::Answer(Value::Array(Vec::new()))]
})
.only_if(asks_for_value);

/// Returns `true` if the case has an assertion about a value rather than a text.
fn asks_for_value(case: &Case) -> bool {
    const ABOUT_VALUES: [&str; 4] = ["expect", "json_path", "json_schema", "valid_json"];
    let claims = case.code.iter().flat_map(|code| &code.claims);
    let kinds = case
        .assertions
        .iter()
        .map(|spec| spec.kind.value.as_str())
        .chain(claims.map(|claim| claim.name.value.as_str()));
    kinds.into_iter().any(|kind| ABOUT_VALUES.contains(&model::decode::snake_case(kind).as_str()))
}
