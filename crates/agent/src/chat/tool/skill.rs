//! The tool that loads a skill.

use model::nearest;
use serde_json::{Value, json};

use super::{Arguments, Call, Run, Tool, ToolOutput};

pub(super) const TOOL: Tool = Tool {
    name: "Skill",
    description: "Loads an installed skill, that is, instructions for a kind of task. Do this before you start a task \
                  that an installed skill covers.",
    properties,
    required: &["skill"],
    run: Run::InContext(|arguments, call| Box::pin(std::future::ready(load(arguments, &call)))),
};

fn properties() -> Value {
    json!({
        "skill": {"type": "string", "description": "The skill's name"},
        "args": {"type": "string", "description": "Arguments for the skill"},
    })
}

fn load(mut arguments: Arguments, call: &Call<'_>) -> ToolOutput {
    let name = arguments.required("skill")?;
    let args = arguments.text("args")?;
    let skills = &call.tool_context.skills;
    let Some(skill) = skills.iter().find(|skill| skill.name == name) else {
        let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
        let known = match &names[..] {
            [] => "No skill is installed".to_owned(),
            names => format!("Installed skills: {}", names.join(", ")),
        };
        let hint = nearest(&name, names).map(|near| format!(" Did you mean `{near}`?")).unwrap_or_default();
        return Err(format!("There is no skill named `{name}`. {known}.{hint}"));
    };
    let mut text = format!("The files of this skill are in {}/.\n\n", skill.folder);
    let body = skill.body(&call.tool_context.access)?;
    match args {
        Some(args) if body.contains("$ARGUMENTS") => text.push_str(&body.replace("$ARGUMENTS", &args)),
        Some(args) if !args.is_empty() => text.push_str(&format!("{body}\n\nArguments: {args}")),
        _ => text.push_str(&body),
    }
    Ok(text)
}
