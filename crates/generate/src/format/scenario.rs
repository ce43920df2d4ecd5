//! Scenarios for a skill, in YAML.

use super::{Context, Format, comment, quoted, yaml};
use crate::candidate::Candidate;

pub(super) const FORMAT: Format = Format {
    name: "scenario",
    extension: ".yaml",
    folder: "scenarios/generated",
    common_file: None,
    is_of_skill: true,
    has_turns: true,
    has_files: true,
    lacks: &[],
    render,
};

fn render(candidate: &Candidate, context: &Context<'_>) -> String {
    let script = &candidate.script;
    let mut text = comment::block("#", candidate, context);
    text.push_str(&format!(
        "scenario: {}\ndescription: {}\ntags: [{}]\nskill: {}\n",
        candidate.slug,
        quoted(&candidate.planned.name),
        candidate.category.name,
        quoted(context.skill.unwrap_or_default()),
    ));
    match &script.turns[..] {
        [turn] => text.push_str(&format!("user_prompt: {}\n", quoted(&turn.says))),
        turns => {
            text.push_str("user_prompts:\n");
            text.extend(turns.iter().map(|turn| format!("  - {}\n", quoted(&turn.says))));
        }
    }
    text.push_str(&yaml::files(&script.files));
    text.push_str("assertions:\n");
    for (at, one) in candidate.assertions().enumerate() {
        let id = format!("{}-{}", one.kind.name().replace('_', "-"), at + 1);
        text.push_str(&format!("  - {}\n", yaml::assertion(one, Some(id))));
    }
    text
}
