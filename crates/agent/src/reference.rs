//! Generated sections of the reference pages about agents.

use serde_json::Value;

use crate::Description;
use crate::chat::tool::{TOOLS, Tool};
use crate::{acp, claude_code, fake, opencode};

/// Returns the generated sections of the reference pages, as names and Markdown.
pub fn reference() -> Vec<(String, String)> {
    let sections = [
        ("acp agents", acp_agents()),
        ("chat models", chat_models()),
        ("chat tools", TOOLS.iter().map(chat_tool).collect::<Vec<_>>().join("\n")),
        ("claude-code settings", claude_code_settings()),
        ("fake directives", fake_directives()),
        ("opencode tools", opencode_tools()),
    ];
    sections.map(|(name, text)| (name.to_owned(), text)).into()
}

fn code_list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn chat_models() -> String {
    let row = |provider: &llm::Provider| {
        let (name, argument) = (provider.name, provider.argument);
        format!("| `{name}:{argument}` | {} | {} |\n", provider.summary, code_list(provider.variables.iter().copied()))
    };
    format!(
        "| model | provider | variables |\n| --- | --- | --- |\n{}",
        llm::PROVIDERS.iter().map(row).collect::<String>()
    )
}

fn chat_tool(tool: &Tool) -> String {
    let schema = tool.schema();
    let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let row = |(name, about): (&String, &Value)| {
        let kind = about["type"].as_str().unwrap_or("any");
        let needed = if required(name) { ", required" } else { "" };
        let mut text = about["description"].as_str().unwrap_or_default().replace('|', "\\|");
        if let Some(values) = about["enum"].as_array() {
            text.push_str(&format!(": {}", code_list(values.iter().filter_map(Value::as_str))));
        }
        format!("| `{name}` | {kind}{needed} | {text} |\n")
    };
    let rows: String = schema["properties"].as_object().into_iter().flatten().map(row).collect();
    format!("### `{}`\n\n{}\n\n| argument | type | |\n| --- | --- | --- |\n{rows}", tool.name, tool.description)
}

fn claude_code_settings() -> String {
    format!(
        "| setting | value |\n| --- | --- |\n| default model | `{}` |\n| values of `--reasoning-effort` | {} |\n| tools | \
         {}; and `mcp__SERVER__TOOL` |\n",
        claude_code::DESCRIPTION.default_model.unwrap_or_default(),
        code_list(claude_code::EFFORTS),
        code_list(claude_code::TOOLS.iter().copied()),
    )
}

fn acp_agents() -> String {
    let row = |(agent, line): (&Description, String)| {
        let program = agent.program?;
        let tested = program.min_version.map(|[major, minor, patch]| format!("{major}.{minor}.{patch}"));
        let model = if agent.wire.is_some() { "yes" } else { "" };
        let cells = [
            format!("`{}`", agent.name),
            format!("`{line}`"),
            format!("`{}`", program.install.replace('|', "\\|")),
            tested.unwrap_or_default(),
            program.sign_in.to_owned(),
            model.to_owned(),
        ];
        Some(format!("| {} |\n", cells.join(" | ")))
    };
    let rows: String = acp::named().into_iter().filter_map(row).collect();
    format!(
        "| agent | command | installation | tried from | sign-in | scripted models |\n{}{rows}",
        "| --- | --- | --- | --- | --- | --- |\n"
    )
}

fn fake_directives() -> String {
    let row = |directive: &fake::DirectiveKind| {
        let form = directive.form.replace('|', "\\|");
        format!("| `{}` | {} |\n", format!("!{} {form}", directive.name).trim_end(), directive.summary)
    };
    let rows: String = fake::DIRECTIVES.iter().map(row).collect();
    format!("| directive | effect |\n| --- | --- |\n{rows}")
}

fn opencode_tools() -> String {
    let row = |(own, canonical, arguments): (&str, &str, &[(&str, &str)])| {
        let arguments: Vec<String> = arguments.iter().map(|(own, name)| format!("`{own}` → `{name}`")).collect();
        format!("| `{own}` | `{canonical}` | {} |\n", arguments.join(", "))
    };
    let rows: String = opencode::tool::table().map(row).collect();
    format!(
        "| OpenCode | trace | renamed arguments |\n| --- | --- | --- |\n{rows}| `apply_patch` | `Write`, `Edit`, and \
         `Bash` with `rm` | one call per file |\n| any other | the same name | |\n"
    )
}
