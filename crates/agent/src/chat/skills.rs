//! Skills installed in the sandbox.

use model::Frontmatter;
use serde_json::Value;

use super::access::FileAccess;

/// Folder of the skills, relative to the working directory.
pub(super) const FOLDER: &str = ".claude/skills";

/// An installed skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InstalledSkill {
    /// Name of its directory.
    pub(super) name: String,
    /// Description from its frontmatter; empty if there is none.
    pub(super) description: String,
    /// Its directory, relative to the working directory.
    pub(super) folder: String,
}

impl InstalledSkill {
    /// Returns all installed skills, sorted by name.
    pub(super) fn all(access: &FileAccess) -> Vec<Self> {
        let Ok(entries) = access.locate(FOLDER).and_then(|path| path.read_dir().map_err(|error| error.to_string()))
        else {
            return Vec::new();
        };
        let mut skills: Vec<Self> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let folder = format!("{FOLDER}/{name}");
                let text = access.read(&format!("{folder}/SKILL.md")).ok()?;
                let description = description(&String::from_utf8_lossy(&text));
                Some(Self { name, description, folder })
            })
            .collect();
        skills.sort_by(|a, b| a.name.cmp(&b.name));
        skills
    }

    /// Reads the current text after the frontmatter.
    pub(super) fn body(&self, access: &FileAccess) -> Result<String, String> {
        let text = access.read(&format!("{}/SKILL.md", self.folder))?;
        let text = String::from_utf8_lossy(&text);
        Ok(split(&text).2.trim().to_owned())
    }
}

/// Splits the text of a file into its frontmatter, with `true` if that is JSON, and the rest.
fn split(text: &str) -> (&str, bool, &str) {
    match Frontmatter::of(text) {
        Ok(Frontmatter { data, is_json, body }) => (&text[data], is_json, &text[body]),
        Err(_) => ("", false, text),
    }
}

/// Returns the description in a skill's frontmatter. The skill under test was fully parsed when it was loaded. This
/// text is only for the model, so the first line of a value and its folded lines are sufficient.
fn description(text: &str) -> String {
    let (data, is_json, _) = split(text);
    if is_json {
        let data: Value = serde_json::from_str(data).unwrap_or_default();
        return data["description"].as_str().unwrap_or_default().to_owned();
    }
    let mut lines = data.lines();
    let Some(first) = lines.find_map(|line| line.strip_prefix("description:")) else { return String::new() };
    let first = first.trim();
    let folded = lines.take_while(|line| line.starts_with([' ', '\t'])).map(str::trim);
    let first = if matches!(first, ">" | "|" | ">-" | "|-") { "" } else { first };
    let whole = std::iter::once(first).chain(folded).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let quoted = ['"', '\''].iter().find_map(|quote| whole.strip_prefix(*quote)?.strip_suffix(*quote));
    quoted.unwrap_or(&whole).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skills_are_found_with_their_descriptions() {
        let dir = tempfile::tempdir().unwrap();
        let access = FileAccess::new(dir.path(), dir.path(), dir.path());
        access
            .write(".claude/skills/b/SKILL.md", b"---\nname: b\ndescription: \"Commits: well\"\n---\n\nBody.\n")
            .unwrap();
        access
            .write(".claude/skills/a/SKILL.md", b"---\r\ndescription: >\r\n  Two\r\n  lines\r\nx: y\r\n---\r\nDo it.")
            .unwrap();
        access.write(".claude/skills/c/other.md", b"").unwrap();
        access.write(".claude/skills/d/SKILL.md", b"No frontmatter").unwrap();
        access.write(".claude/skills/e/SKILL.md", b"---json\n{\"description\": \"E\"}\n---\nSee.").unwrap();
        let skills = InstalledSkill::all(&access);
        let descriptions: Vec<_> =
            skills.iter().map(|skill| (skill.name.as_str(), skill.description.as_str())).collect();
        assert_eq!(descriptions, [("a", "Two lines"), ("b", "Commits: well"), ("d", ""), ("e", "E")]);
        let bodies: Vec<_> = skills.iter().map(|skill| skill.body(&access).unwrap()).collect();
        assert_eq!(bodies, ["Do it.", "Body.", "No frontmatter", "See."]);
    }

    #[test]
    fn without_a_folder_there_are_no_skills() {
        let dir = tempfile::tempdir().unwrap();
        assert!(InstalledSkill::all(&FileAccess::new(dir.path(), dir.path(), dir.path())).is_empty());
    }
}
