//! Settings of a session that agents offer: models and modes, in the form of lists of their own or of configuration
//! options.

use serde_json::{Value, json};

use crate::json::{items, owned, text};

/// Method that sets a configuration option.
const SET_OPTION: &str = "session/set_config_option";

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

/// Returns the request that selects the reasoning effort `name`; `None` if it is already selected.
///
/// # Errors
/// Returns the efforts that the agent offers if it has no such effort, or an empty list if it offers none.
pub(super) fn select_effort(session: &Value, id: &str, name: &str) -> Result<Option<Change>, Vec<String>> {
    let option = option(session, "thought_level").ok_or_else(Vec::new)?;
    let values = values(option);
    let value = find(&values, name).ok_or_else(|| values.clone())?;
    Ok((text(option, "currentValue") != Some(value.as_str())).then(|| set(option, id, &value)))
}

/// Returns the request that sets the configuration option `name`.
///
/// # Errors
/// Returns the reason if the agent has no such option, or the option has no such value.
pub(super) fn select_option(session: &Value, id: &str, name: &str, value: &Value) -> Result<Change, String> {
    let options = items(session, "configOptions");
    let Some(option) = options.iter().find(|option| text(option, "id") == Some(name)) else {
        let known: Vec<&str> = options.iter().filter_map(|option| text(option, "id")).collect();
        let offers =
            if known.is_empty() { "it offers none".to_owned() } else { format!("it offers {}", known.join(", ")) };
        return Err(format!("it has no configuration option `{name}`; {offers}"));
    };
    if text(option, "type") == Some("boolean") {
        let is_set = value.as_bool().ok_or_else(|| format!("its configuration option `{name}` is true or false"))?;
        let params = json!({"sessionId": id, "configId": name, "type": "boolean", "value": is_set});
        return Ok(Change { method: SET_OPTION, params });
    }
    let values = values(option);
    let found = value.as_str().and_then(|value| find(&values, value));
    let found = found.ok_or_else(|| format!("its configuration option `{name}` is one of {}", values.join(", ")))?;
    Ok(set(option, id, &found))
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
    Change { method: SET_OPTION, params: json!({"sessionId": id, "configId": config, "value": value}) }
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

    #[test]
    fn efforts_and_other_options_are_set() {
        let session = json!({"configOptions": [
            {"id": "effort", "category": "thought_level", "type": "select", "currentValue": "low",
                "options": [{"value": "low"}, {"value": "high"}]},
            {"id": "fast", "type": "boolean", "currentValue": false},
        ]});
        let change = select_effort(&session, "s", "high").unwrap().unwrap();
        assert_eq!(change.params, json!({"sessionId": "s", "configId": "effort", "value": "high"}));
        assert_eq!(select_effort(&session, "s", "low"), Ok(None));
        assert_eq!(select_effort(&session, "s", "max"), Err(vec!["low".to_owned(), "high".to_owned()]));
        let set = |name: &str, value: Value| select_option(&session, "s", name, &value).map(|change| change.params);
        let fast = json!({"sessionId": "s", "configId": "fast", "type": "boolean", "value": true});
        assert_eq!(set("fast", json!(true)), Ok(fast));
        assert_eq!(set("fast", json!("on")), Err("its configuration option `fast` is true or false".to_owned()));
        assert_eq!(
            set("effort", json!("max")),
            Err("its configuration option `effort` is one of low, high".to_owned())
        );
        let unknown = "it has no configuration option `slow`; it offers effort, fast";
        assert_eq!(set("slow", json!(true)), Err(unknown.to_owned()));
    }
}
