//! A script's expectations about a request.

use model::{Excerpt, nearest};

use super::context::ScriptContext;
use crate::Request;

/// Expectations of a step about the request it answers. Every string is searched for literally; none is a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Expectation {
    pub(super) model: Option<String>,
    pub(super) system_contains: Vec<String>,
    pub(super) last_user_contains: Vec<String>,
    pub(super) tool_result_contains: Vec<String>,
    pub(super) contains: Vec<String>,
    pub(super) not_contains: Vec<String>,
    pub(super) tools_include: Vec<String>,
    pub(super) tools_exclude: Vec<String>,
    /// Location of `tools_include`.
    pub(super) tools_source: Option<Excerpt>,
}

/// Result of one condition, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Checked {
    pub(super) met: bool,
    pub(super) reason: String,
}

impl Expectation {
    /// Checks `request`: one result for each condition, in the order of the documentation.
    pub(super) fn check(&self, request: &Request, context: &ScriptContext) -> Vec<Checked> {
        let mut results = Vec::new();
        if let Some(wanted) = &self.model {
            let met = request.model == *wanted;
            let instead = if met { "" } else { &format!(", not `{wanted}`") };
            results.push(Checked { met, reason: format!("the model is `{}`{instead}", request.model) });
        }
        let mut within = |what: &str, wanted: &[String], text: &dyn Fn() -> Option<String>| {
            if wanted.is_empty() {
                return;
            }
            let text = text();
            for part in wanted {
                let part = context.fill(part);
                let met = text.as_ref().is_some_and(|text| text.contains(&part));
                let reason = match &text {
                    _ if met => format!("{what} contains `{part}`"),
                    Some(text) if !text.is_empty() => {
                        format!("{what} does not contain `{part}`; it is: {}", shortened(text))
                    }
                    _ => format!("{what} should contain `{part}`, but there is none"),
                };
                results.push(Checked { met, reason });
            }
        };
        let system = || Some(request.system_text());
        let tool_results = || Some(request.fresh_tool_results().join("\n"));
        within("the system prompt", &self.system_contains, &system);
        within("the last user message", &self.last_user_contains, &|| request.last_user_text());
        within("the tool result", &self.tool_result_contains, &tool_results);

        for (wanted, all) in [(true, &self.contains), (false, &self.not_contains)] {
            for part in all {
                let part = context.fill(part);
                let mut found = false;
                request.each_text(&mut |text| found |= text.contains(&part));
                let verb = if found { "contains" } else { "does not contain" };
                results.push(Checked { met: found == wanted, reason: format!("the request {verb} `{part}`") });
            }
        }
        for (wanted, all) in [(true, &self.tools_include), (false, &self.tools_exclude)] {
            for name in all {
                let has = request.tool_names().any(|tool| tool == name);
                let reason = if has {
                    format!("the request has the `{name}` tool")
                } else {
                    let near = nearest(name, request.tool_names()).filter(|_| wanted);
                    let near = near.map_or_else(String::new, |near| format!(", but `{near}`"));
                    let all = request.tool_names().collect::<Vec<_>>().join(", ");
                    let all = if all.is_empty() { "no tool at all".to_owned() } else { all };
                    let all = if wanted { format!("; it has: {all}") } else { String::new() };
                    format!("the request does not have the `{name}` tool{near}{all}")
                };
                results.push(Checked { met: has == wanted, reason });
            }
        }
        results
    }
}

/// Returns the start of a string on one line.
fn shortened(text: &str) -> String {
    model::text::one_line(text, 200)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Block, Message, Role, ToolSpec};

    fn request() -> Request {
        Request {
            model: "m1".into(),
            system: vec!["You are terse.".into()],
            messages: vec![
                Message::text(Role::User, "Count the lines."),
                Message::text(Role::System, "Skills: commit."),
                Message {
                    role: Role::Assistant,
                    content: vec![Block::ToolUse {
                        id: "c1".into(),
                        name: "Bash".into(),
                        input: json!({"command": "wc"}),
                    }],
                },
                Message {
                    role: Role::User,
                    content: vec![Block::ToolResult {
                        id: "c1".into(),
                        content: vec![Block::Text { text: "42 lines".into() }],
                        is_error: false,
                    }],
                },
            ],
            tools: vec![ToolSpec { name: "Bash".into(), ..ToolSpec::default() }],
            ..Request::default()
        }
    }

    fn check(expectation: &Expectation) -> Vec<(bool, String)> {
        let results = expectation.check(&request(), &ScriptContext::default());
        results.into_iter().map(|one| (one.met, one.reason)).collect()
    }

    #[test]
    fn matching_request_conditions_are_met() {
        let expectation = Expectation {
            model: Some("m1".into()),
            system_contains: vec!["terse".into(), "commit".into()],
            last_user_contains: vec!["Count".into()],
            tool_result_contains: vec!["42".into()],
            contains: vec!["wc".into()],
            not_contains: vec!["rm -rf".into()],
            tools_include: vec!["Bash".into()],
            tools_exclude: vec!["Write".into()],
            tools_source: None,
        };
        let results = check(&expectation);
        assert_eq!(results.len(), 9);
        assert!(results.iter().all(|(met, _)| *met), "{results:#?}");
    }

    #[test]
    fn unmet_request_conditions_show_the_actual_value() {
        let one = |text: &str| vec![text.to_owned()];
        let expectation = Expectation {
            model: Some("m2".into()),
            system_contains: one("verbose"),
            last_user_contains: one("words"),
            tool_result_contains: one("43"),
            contains: one("absent"),
            not_contains: one("wc"),
            tools_include: one("bash"),
            tools_exclude: one("Bash"),
            tools_source: None,
        };
        let expected = [
            "the model is `m1`, not `m2`",
            "the system prompt does not contain `verbose`; it is: You are terse. Skills: commit.",
            "the last user message does not contain `words`; it is: Count the lines.",
            "the tool result does not contain `43`; it is: 42 lines",
            "the request does not contain `absent`",
            "the request contains `wc`",
            "the request does not have the `bash` tool, but `Bash`; it has: Bash",
            "the request has the `Bash` tool",
        ];
        let results = check(&expectation);
        assert!(results.iter().all(|(met, _)| !*met), "{results:#?}");
        assert_eq!(results.into_iter().map(|(_, reason)| reason).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_long_text_is_shown_shortened_on_one_line() {
        let long = format!("first\nsecond {}", "é".repeat(300));
        let shown = shortened(&long);
        assert_eq!(shown.chars().count(), 201);
        assert!(shown.starts_with("first second é") && shown.ends_with('…'));
    }
}
