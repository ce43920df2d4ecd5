//! Conversations in YAML.

use super::{ABOUT_SANDBOX, Context, Format, comment, quoted, yaml};
use crate::candidate::Candidate;

pub(super) const FORMAT: Format = Format {
    name: "yaml",
    extension: ".yaml",
    folder: "tests/generated",
    common_file: None,
    is_of_skill: false,
    has_turns: true,
    has_files: false,
    lacks: ABOUT_SANDBOX,
    render,
};

fn render(candidate: &Candidate, context: &Context<'_>) -> String {
    let script = &candidate.script;
    let mut text = comment::block("#", candidate, context);
    text.push_str(&format!("name: {}\ntags: [{}]\n", quoted(&candidate.planned.name), candidate.category.name));
    if !script.role.trim().is_empty() {
        let tone =
            if script.tone.trim().is_empty() { String::new() } else { format!(", tone: {}", quoted(&script.tone)) };
        text.push_str(&format!("persona: {{ role: {}{tone} }}\n", quoted(&script.role)));
    }
    text.push_str("turns:\n");
    for turn in &script.turns {
        text.push_str(&format!("  - says: {}\n", quoted(&turn.says)));
        if !turn.assertions.is_empty() {
            text.push_str("    expect:\n");
        }
        text.extend(turn.assertions.iter().map(|one| format!("      - {}\n", yaml::assertion(one, None))));
    }
    text
}
