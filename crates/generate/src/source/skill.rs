//! A folder with a `SKILL.md`.

use std::path::Path;

use model::{Diagnostic, Excerpt};

use super::{ReadResult, Reading, SourceFile, text};
use crate::profile::{Evidence, Fact, ToolFact};

/// Maximum size of a `SKILL.md`, in bytes.
const LARGEST: u64 = 4 * 1024 * 1024;

pub(super) fn read(path: &Path, shown: &str) -> Option<ReadResult> {
    let (folder, shown) = match path.file_name().is_some_and(|name| name == "SKILL.md") {
        true => (path.parent()?, shown.strip_suffix("SKILL.md")?.trim_end_matches('/')),
        false => (path, shown.trim_end_matches('/')),
    };
    let file = folder.join("SKILL.md");
    file.is_file().then(|| reading(folder, shown, &file))
}

fn reading(folder: &Path, shown: &str, file: &Path) -> ReadResult {
    let mut problems = Vec::new();
    let Some(skill) = suite::read_skill(folder, shown, &mut problems) else { return Err(problems) };
    let name = if shown.is_empty() { "SKILL.md".to_owned() } else { format!("{shown}/SKILL.md") };
    let failed = |error: std::io::Error| vec![Diagnostic::error(format!("cannot read `{name}`: {error}"))];
    let written = files::read_named_text(file, LARGEST).map_err(failed)?;
    let start = written.find(&skill.body).unwrap_or(0);
    let first_line = written[..start].matches('\n').count() + 1;
    let mut profile = text::read(&skill.body, &name, first_line);
    let of_key = |key: &str| {
        let lines = || written.lines().enumerate().take(first_line);
        let found = lines().find(|(_, line)| line.trim_start().starts_with(&format!("{key}:")));
        let (index, text) = found.or_else(|| lines().next()).unwrap_or((0, ""));
        let place = Excerpt { line: index + 1, text: text.to_owned(), ..Excerpt::of_file(name.as_str()) };
        vec![Evidence::at(&place)]
    };
    profile.name = Some(skill.name.clone());
    if !skill.description.is_empty() {
        profile.description = Some(Fact { text: skill.description.clone(), evidence: of_key("description") });
    }
    for tool in &skill.allowed_tools {
        let evidence = of_key("allowed-tools");
        profile.tools.push(ToolFact { name: tool.name.clone(), evidence, ..ToolFact::default() });
    }
    Ok(Reading { files: vec![SourceFile { name, text: written.clone() }], ..Reading::from(profile) })
}
