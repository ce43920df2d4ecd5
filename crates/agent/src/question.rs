//! Questions to the user in the arguments of a call.

use model::Question;
use serde_json::Value;

/// Returns the questions in the arguments of an AskUserQuestion call. Questions without text are skipped.
pub(crate) fn questions(input: &Value) -> Vec<Question> {
    let ask = |from: &Value| {
        let question = from.get("question")?.as_str().filter(|text| !text.is_empty())?.to_owned();
        let options = from.get("options").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let label = |option: &Value| option.get("label").unwrap_or(option).as_str().map(str::to_owned);
        Some(Question {
            question,
            options: options.iter().filter_map(label).collect(),
            multi_select: from.get("multiSelect").and_then(Value::as_bool).unwrap_or(false),
            ..Question::default()
        })
    };
    match input.get("questions").and_then(Value::as_array) {
        Some(batch) => batch.iter().filter_map(ask).collect(),
        None => ask(input).into_iter().collect(),
    }
}
