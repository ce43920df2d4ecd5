//! Tests of templates as written in fixtures.

mod fuzz;
mod limits;
mod messages;
mod nunjucks;
mod rendering;
mod resolving;

use model::{Node, Source};
use serde_json::Value;

use crate::{Template, TemplateError, Variables};

#[allow(clippy::needless_pass_by_value)]
fn variables(values: Value) -> Variables {
    Variables::new().layer(&Node::from_json(&values, &Source::new("variables", "")))
}

/// Renders `text`. A string that is not a template is returned unchanged.
fn rendered(text: &str, values: Value) -> Result<Value, TemplateError> {
    Ok(match Template::parse(text)? {
        Some(template) => template.render(&variables(values))?,
        None => text.into(),
    })
}

#[track_caller]
fn shown(text: &str, values: Value) -> String {
    match rendered(text, values) {
        Ok(Value::String(shown)) => shown,
        other => panic!("{text}: {other:?}"),
    }
}

/// Returns the message, the range and the help of an error.
#[track_caller]
fn refused(text: &str, values: Value) -> (String, String, String) {
    match rendered(text, values) {
        Err(error) => (error.message, text[error.range].to_owned(), error.help.unwrap_or_default()),
        Ok(value) => panic!("{text}: {value}"),
    }
}
