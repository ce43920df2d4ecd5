//! Forms with which an agent asks its user. Each field of a form is a question that `user_responses` answers.

use model::Question;
use serde_json::{Map, Value, json};

use crate::json::{items, owned, text};

/// Options of a request without fields.
const CONSENT: [&str; 2] = ["Accept", "Decline"];

/// A field of a form.
struct Field<'a> {
    name: &'a str,
    schema: &'a Value,
    is_required: bool,
}

/// Answers `elicitation/create`. `ask` asks the user.
pub(super) fn answer(params: &Value, mut ask: impl FnMut(Question) -> Option<String>) -> Value {
    let message = text(params, "message").unwrap_or_default();
    let fields = fields(params);
    let question = |text: String, options: Vec<String>, multi_select: bool| Question {
        call_id: owned(params, "toolCallId"),
        question: text,
        options,
        multi_select,
        ..Question::default()
    };
    if fields.is_empty() {
        // The user may also be asked to visit an address.
        let text = text(params, "url").map_or_else(|| message.to_owned(), |url| format!("{message} ({url})"));
        let accepted = ask(question(text, CONSENT.map(str::to_owned).to_vec(), false));
        return json!({"action": if accepted.as_deref() == Some(CONSENT[0]) { "accept" } else { "decline" }});
    }
    let is_only = fields.len() == 1;
    let mut content = Map::new();
    let mut is_answered = false;
    let mut lacks_answer = false;
    for field in fields {
        let title = text(field.schema, "title").unwrap_or(field.name);
        let asked = if is_only && !message.is_empty() { message.to_owned() } else { format!("{message} {title}") };
        let choices = choices(field.schema);
        let labels = choices.iter().map(|(label, _)| label.clone()).collect();
        let is_list = text(field.schema, "type") == Some("array");
        let given = ask(question(asked.trim().to_owned(), labels, is_list));
        is_answered |= given.is_some();
        let value = given.and_then(|given| value(field.schema, &choices, &given));
        match value.or_else(|| field.schema.get("default").filter(|default| !default.is_null()).cloned()) {
            Some(value) => drop(content.insert(field.name.to_owned(), value)),
            None => lacks_answer |= field.is_required,
        }
    }
    match is_answered && !lacks_answer {
        true => json!({"action": "accept", "content": content}),
        false => json!({"action": "decline"}),
    }
}

fn fields(params: &Value) -> Vec<Field<'_>> {
    let schema = params.get("requestedSchema").unwrap_or(&Value::Null);
    let required: Vec<&str> = items(schema, "required").iter().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| Field { name, schema, is_required: required.contains(&name.as_str()) })
        .collect()
}

/// Returns the labels from which the user chooses, with their values; none if the user writes the value.
fn choices(schema: &Value) -> Vec<(String, Value)> {
    if text(schema, "type") == Some("boolean") {
        return vec![("Yes".to_owned(), json!(true)), ("No".to_owned(), json!(false))];
    }
    let of = schema.get("items").filter(|items| items.is_object()).unwrap_or(schema);
    let plain = items(of, "enum").iter().filter_map(|value| Some((value.as_str()?.to_owned(), value.clone())));
    let titled = ["oneOf", "anyOf"].into_iter().flat_map(|key| items(of, key)).filter_map(|option| {
        let value = option.get("const")?;
        Some((owned(option, "title").or_else(|| value.as_str().map(str::to_owned))?, value.clone()))
    });
    plain.chain(titled).collect()
}

/// Returns the value of an answer; `None` if it is not of the type of the field.
fn value(schema: &Value, choices: &[(String, Value)], given: &str) -> Option<Value> {
    let chosen = |label: &str| {
        let label = label.trim();
        choices.iter().find(|(known, value)| known == label || value == label).map(|(_, value)| value.clone())
    };
    match text(schema, "type") {
        Some("array") => {
            let chosen = given.split(',').map(|label| chosen(label).unwrap_or_else(|| json!(label.trim())));
            Some(chosen.collect())
        }
        Some("boolean") => chosen(given).or_else(|| given.trim().parse().ok().map(Value::Bool)),
        Some("integer") => given.trim().parse::<i64>().ok().map(Value::from),
        Some("number") => given.trim().parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from),
        _ => Some(chosen(given).unwrap_or_else(|| json!(given))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(params: &Value, answers: &[(&str, &str)]) -> (Value, Vec<Question>) {
        let mut asked = Vec::new();
        let answer = answer(params, |question| {
            let found = answers.iter().find(|(text, _)| question.question.contains(text));
            asked.push(question);
            found.map(|(_, answer)| (*answer).to_owned())
        });
        (answer, asked)
    }

    #[test]
    fn each_field_is_a_question_and_its_answer_has_the_type_of_the_field() {
        let form = json!({"mode": "form", "message": "Deploy?", "toolCallId": "c", "requestedSchema": {
        "type": "object", "required": ["where", "count"], "properties": {
            "where": {"type": "string", "title": "Region", "oneOf": [{"const": "eu", "title": "Europe"}, {"const": "us"}]},
            "count": {"type": "integer"}, "force": {"type": "boolean", "default": false},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, "note": {"type": "string"},
        }}});
        let answers = [("Region", "Europe"), ("count", " 3 "), ("tags", "a, b")];
        let (answer, asked) = answered(&form, &answers);
        let content = json!({"where": "eu", "count": 3, "force": false, "tags": ["a", "b"]});
        assert_eq!(answer, json!({"action": "accept", "content": content}));
        let texts: Vec<&str> = asked.iter().map(|question| question.question.as_str()).collect();
        let mut sorted = texts.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, ["Deploy? Region", "Deploy? count", "Deploy? force", "Deploy? note", "Deploy? tags"]);
        let region = asked.iter().find(|question| question.question.ends_with("Region")).unwrap();
        assert_eq!(
            (&region.options[..], region.call_id.as_deref()),
            (&["Europe".to_owned(), "us".to_owned()][..], Some("c"))
        );
        assert_eq!(answered(&form, &[("Region", "us"), ("count", "many")]).0, json!({"action": "decline"}));
        assert_eq!(answered(&form, &[]).0, json!({"action": "decline"}));
    }

    #[test]
    fn a_request_without_fields_asks_for_consent() {
        let page = json!({"mode": "url", "message": "Sign in", "url": "https://example.test/x"});
        let (answer, asked) = answered(&page, &[("https://example.test/x", "Accept")]);
        assert_eq!((answer, asked.len()), (json!({"action": "accept"}), 1));
        assert_eq!(answered(&json!({}), &[]).0, json!({"action": "decline"}));
    }
}
