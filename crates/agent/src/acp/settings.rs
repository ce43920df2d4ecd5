//! Settings of a session that agents offer: models and modes, in the form of lists of their own or of configuration
//! options.

use serde_json::{Value, json};

use crate::json::{items, owned, text};

/// A request that changes a setting.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Change {
    pub(super) method: &'static str,
    pub(super) params: Value,
}

/// Returns the current model of a session.
pub(super) fn current_model(session: &Value) -> Option<String> {
    let listed = session.pointer("/models/currentModelId").and_then(Value::as_str).map(str::to_owned);
    listed.or_else(|| owned(option(session, "model")?, "currentValue"))
}

/// Returns the request that selects the model `name`; `None` if it is already selected.
///
/// # Errors
/// Returns the models that the agent offers if it has no such model, or an empty list if it offers none.
pub(super) fn select_model(session: &Value, id: &str, name: &str) -> Result<Option<Change>, Vec<String>> {
    if let Some(option) = option(session, "model") {
        let values = values(option);
        let value = find(&values, name).ok_or_else(|| values.clone())?;
        let is_selected = text(option, "currentValue") == Some(value.as_str());
        return Ok((!is_selected).then(|| set(option, id, &value)));
    }
    let models: Vec<String> = session
        .pointer("/models/availableModels")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|model| owned(model, "modelId"))
        .collect();
    let value = find(&models, name).ok_or_else(|| models.clone())?;
    if current_model(session).as_deref() == Some(value.as_str()) {
        return Ok(None);
    }
    Ok(Some(Change { method: "session/set_model", params: json!({"sessionId": id, "modelId": value}) }))
}

/// Returns the request that selects the mode `name`; `None` if the agent has no such mode or has selected it.
pub(super) fn select_mode(session: &Value, id: &str, name: &str) -> Option<Change> {
    if let Some(option) = option(session, "mode") {
        let value = find(&values(option), name)?;
        return (text(option, "currentValue") != Some(value.as_str())).then(|| set(option, id, &value));
    }
    let modes = session.get("modes")?;
    let is_there = items(modes, "availableModes").iter().any(|mode| text(mode, "id") == Some(name));
    let is_selected = text(modes, "currentModeId") == Some(name);
    let change = || Change { method: "session/set_mode", params: json!({"sessionId": id, "modeId": name}) };
    (is_there && !is_selected).then(change)
}

/// Returns the configuration option of a category.
fn option<'a>(session: &'a Value, category: &str) -> Option<&'a Value> {
    let options = items(session, "configOptions");
    let of = |key: &str| options.iter().find(|option| text(option, key) == Some(category));
    of("category").or_else(|| of("id"))
}

fn set(option: &Value, id: &str, value: &str) -> Change {
    let config = text(option, "id").unwrap_or_default();
    Change { method: "session/set_config_option", params: json!({"sessionId": id, "configId": config, "value": value}) }
}

/// Returns the values of an option, also those in groups.
fn values(option: &Value) -> Vec<String> {
    let all = items(option, "options").iter().flat_map(|item| match item.get("options") {
        Some(_) => items(item, "options").iter().collect(),
        None => vec![item],
    });
    all.filter_map(|item| owned(item, "value")).collect()
}

/// Returns the value `name`, or the only one that ends with it after a `/`.
fn find(values: &[String], name: &str) -> Option<String> {
    let exact = values.iter().find(|value| *value == name);
    let ending = format!("/{name}");
    let mut ends = values.iter().filter(|value| value.ends_with(&ending));
    let only = match (ends.next(), ends.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    };
    exact.or(only).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_selected_in_both_forms() {
        let options = json!({"configOptions": [{"id": "m", "category": "model", "currentValue": "a/x",
            "options": [{"value": "a/x"}, {"name": "group", "options": [{"value": "a/y"}]}]}]});
        let change = select_model(&options, "s", "y").unwrap().unwrap();
        assert_eq!(change.method, "session/set_config_option");
        assert_eq!(change.params, json!({"sessionId": "s", "configId": "m", "value": "a/y"}));
        assert_eq!(select_model(&options, "s", "a/x"), Ok(None));
        assert_eq!(select_model(&options, "s", "z"), Err(vec!["a/x".to_owned(), "a/y".to_owned()]));

        let lists = json!({"models": {"currentModelId": "x", "availableModels": [{"modelId": "x"}, {"modelId": "y"}]},
            "modes": {"currentModeId": "default", "availableModes": [{"id": "default"}, {"id": "plan"}]}});
        let change = select_model(&lists, "s", "y").unwrap().unwrap();
        assert_eq!((change.method, &change.params["modelId"]), ("session/set_model", &json!("y")));
        assert_eq!(select_mode(&lists, "s", "plan").unwrap().method, "session/set_mode");
        assert_eq!((select_mode(&lists, "s", "default"), select_mode(&lists, "s", "none")), (None, None));
        assert_eq!(select_model(&json!({}), "s", "y"), Err(Vec::new()));
    }
}
