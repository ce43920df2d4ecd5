//! `SKILL.md`: frontmatter, body and hashes of an agent skill.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::decode::{self, Fields, Problems};
use model::{Diagnostic, Excerpt, Frontmatter, Node, NodeKind, Skill, Source, Span, nearest};
use sha2::{Digest, Sha256};

use crate::document::Language;
use crate::{allowed_tools, document};

/// File that makes a directory a skill.
pub const SKILL_FILE: &str = "SKILL.md";

/// Folder of a skill that contains its test suites; it is neither installed nor hashed.
pub const TESTS_FOLDER: &str = "tests";

/// Folder of a skill that contains its own suite; it is neither installed nor hashed.
pub const EVALS_FOLDER: &str = "evals";

/// Folder of sub-agents, next to a folder of suites.
pub const SUB_AGENTS_FOLDER: &str = "agents";

/// Reads the definition of a sub-agent in the file at `path`, which messages call `shown`. It is named after its file.
pub fn read_sub_agent(path: &Path, shown: &str, problems: &mut Problems) -> Option<Skill> {
    let source = document::open(path, shown).map_err(|problem| problems.push(*problem)).ok()?;
    let content_hash = reported(hash_of(path), "cannot read the sub-agent", shown, problems)?;
    let own = path.file_stem()?.to_string_lossy().into_owned();
    let (root, body) = frontmatter(&source, "sub-agent", problems)?;
    let mut fields = Fields::of(&root, "the frontmatter", problems)?;
    fields.open();
    let description = fields.required_text("description", problems)?;
    if let Some(name) = fields.text("name", problems)
        && name != own
        && let Some(node) = fields.get("name")
    {
        problems.push(
            node.error(format!("the sub-agent is named `{name}` but its file `{own}.md`"))
                .help("give both the same name"),
        );
        return None;
    }
    let serde_json::Value::Object(frontmatter) = root.to_json() else { return None };
    let directory = Some(path.to_owned());
    Some(Skill { name: own, description, directory, content_hash, frontmatter, ..of_body(source.text[body].trim()) })
}

/// Returns the result of reading a skill, or reports why it failed.
fn reported<T>(read: std::io::Result<T>, what: &str, shown: &str, problems: &mut Problems) -> Option<T> {
    let failed = |error| Diagnostic::error(format!("{what}: {error}")).at(Excerpt::of_file(shown));
    read.map_err(|error| problems.push(failed(error))).ok()
}

/// Returns the frontmatter in `source`, which is a skill or a sub-agent, and the range of its body.
fn frontmatter(source: &Arc<Source>, what: &str, problems: &mut Problems) -> Option<(Node, Range<usize>)> {
    match Frontmatter::of(&source.text) {
        Ok(Frontmatter { data, is_json, body }) => {
            let language = if is_json { Language::Json } else { Language::Yaml };
            Some((document::read_part(source, data, language, problems)?, body))
        }
        Err(fault) => {
            let problem = Diagnostic::error(format!("the {what} {fault}")).at(source.excerpt(Span::new(0, 0)));
            problems.push(problem.help(format!(
                "a {what} starts with a `---` line, then `name` and `description` as YAML, then another `---` line; use \
                 `---json` for JSON"
            )));
            None
        }
    }
}

/// Reads the skill in `directory`, which messages call `shown`.
pub fn read(directory: &Path, shown: &str, problems: &mut Problems) -> Option<Skill> {
    let file = format!("{shown}/{SKILL_FILE}");
    let source = document::open(&directory.join(SKILL_FILE), &file).map_err(|problem| problems.push(*problem)).ok()?;
    // The directory of a repository may have any name.
    let folder = directory.file_name().filter(|_| !directory.join(".git").exists());
    let folder = folder.map(|name| name.to_string_lossy().into_owned());
    let skill = parse(&source, folder.as_deref(), problems)?;
    let files = files_of(directory).and_then(|files| Ok((hash_of_files(&files)?, files)));
    let (content_hash, files) = reported(files, "cannot read every file of the skill", shown, problems)?;
    let names = files.iter().filter_map(|(relative, _)| std::str::from_utf8(relative).ok());
    let scripts = names.filter(|name| is_script(name)).map(str::to_owned).collect();
    Some(Skill { content_hash, scripts, directory: Some(directory.to_owned()), ..skill })
}

/// Creates a stand-in for a bare prompt, so that the prompt can be reported and recorded like a skill.
pub fn of_prompt(case: &str, prompt: &str) -> Skill {
    Skill { name: format!("inline:{case}"), ..of_body(prompt) }
}

/// Creates a skill that has only a body.
fn of_body(body: &str) -> Skill {
    let hash = model::text::hex(&Sha256::digest(body.as_bytes()));
    Skill { body: body.to_owned(), content_hash: hash, ..Skill::default() }
}

/// Reads the text of a `SKILL.md`; `folder` is the name of its directory, which must equal the skill's name. The
/// caller sets `content_hash`.
fn parse(source: &Arc<Source>, folder: Option<&str>, problems: &mut Problems) -> Option<Skill> {
    let (root, body) = frontmatter(source, "skill", problems)?;
    let before = problems.iter().filter(|problem| problem.is_error()).count();
    let mut fields = Fields::of(&root, "the frontmatter", problems)?;
    fields.open();
    let name = fields.required_text("name", problems);
    let description = fields.required_text("description", problems);
    let version = fields.get("version").and_then(|node| as_written(node, problems));
    let token_budget = fields.tokens("token-budget", problems);
    let raw = fields.get("allowed-tools").map(|node| tools(node, problems)).unwrap_or_default();
    refuse_misspelt(&fields, problems);
    if let (Some(name), Some(folder)) = (&name, folder)
        && name != folder
        && let Some(node) = fields.get("name")
    {
        problems.push(
            node.error(format!("the skill is named `{name}` but its directory `{folder}`"))
                .help("give both the same name: agents find a skill by its directory"),
        );
    }
    if problems.iter().filter(|problem| problem.is_error()).count() > before {
        return None;
    }
    let serde_json::Value::Object(frontmatter) = root.to_json() else {
        return None;
    };
    Some(Skill {
        name: name?,
        description: description?,
        version,
        allowed_tools: allowed_tools::merged(&raw),
        allowed_tools_raw: raw,
        token_budget,
        frontmatter,
        ..of_body(&source.text[body])
    })
}

/// Rejects keys that are similar to `token-budget` or `allowed-tools`, because they would have no effect. Other keys
/// belong to the agents that read the skill.
fn refuse_misspelt(fields: &Fields<'_>, problems: &mut Problems) {
    for (key, value) in fields.unread() {
        let written = key.value.len();
        let alike = ["token-budget", "allowed-tools"].into_iter().filter(|known| known.len().abs_diff(written) <= 1);
        if let Some(near) = nearest(&key.value, alike) {
            let problem = Diagnostic::error(format!("unknown key `{}` in the frontmatter", key.value));
            problems.push(problem.at(value.source.excerpt(key.span)).suggest(Some(near)));
        }
    }
}

/// Returns a scalar as the user wrote it, so that version `1.0` does not become `1`.
fn as_written(node: &Node, problems: &mut Problems) -> Option<String> {
    match &node.kind {
        NodeKind::Null => None,
        NodeKind::String(text) => Some(text.clone()),
        NodeKind::Bool(_) | NodeKind::Number(_) => {
            node.source.text.get(node.span.start()..node.span.end()).map(str::to_owned)
        }
        NodeKind::List(_) | NodeKind::Map(_) => {
            problems.push(node.error(format!("`version` must be a single value, not {}", node.kind_name())));
            None
        }
    }
}

/// Reads the tools in `allowed-tools`: a string, or a list of strings.
fn tools(node: &Node, problems: &mut Problems) -> Vec<String> {
    let mut found = Vec::new();
    let mut take = |node: &Node, problems: &mut Problems| {
        let Some(written) = decode::any_text(node, "`allowed-tools`", problems) else { return };
        for token in allowed_tools::tokens(&written) {
            if let Some(fault) = allowed_tools::fault(&token) {
                problems.push(node.error(format!("`{token}` in `allowed-tools` {fault}")));
            } else if let Some(near) = allowed_tools::misspelt(&token) {
                let problem = node.warning(format!("`{token}` in `allowed-tools` is not a known tool"));
                problems.push(problem.suggest(Some(near)));
            }
            found.push(token);
        }
    };
    match &node.kind {
        NodeKind::Null => {}
        NodeKind::List(items) => items.iter().for_each(|item| take(item, problems)),
        _ => take(node, problems),
    }
    found
}

/// Returns `true` if `path`, relative to a skill's directory, belongs to the skill. Its tests and suites do not,
/// because they contain the answers, and neither do files generated by programs.
fn is_part(path: &Path) -> bool {
    let omitted = [TESTS_FOLDER, EVALS_FOLDER, ".git"];
    !path.ends_with("__pycache__") && !omitted.iter().any(|name| path == Path::new(name))
}

/// Returns `true` if the extension of a file is that of a script.
fn is_script(name: &str) -> bool {
    const EXTENSIONS: [&str; 12] = ["py", "sh", "bash", "js", "mjs", "cjs", "ts", "mts", "rb", "pl", "php", "ps1"];
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    EXTENSIONS.contains(&extension)
}

/// Returns the regular files below `directory` that belong to the skill, each with its path as bytes with `/`, in the
/// order of these. Symbolic links are omitted.
///
/// # Errors
/// Returns an error if a folder cannot be read.
pub fn files_of(directory: &Path) -> std::io::Result<Vec<(Vec<u8>, PathBuf)>> {
    let mut files: Vec<(Vec<u8>, PathBuf)> = Vec::new();
    let is_entered = |entry: &walkdir::DirEntry| entry.path().strip_prefix(directory).is_ok_and(is_part);
    let walk = walkdir::WalkDir::new(directory).into_iter().filter_entry(is_entered);
    for entry in walk {
        let entry = entry?;
        if entry.file_type().is_file()
            && let Ok(relative) = entry.path().strip_prefix(directory)
        {
            let parts: Vec<_> = relative.iter().map(|part| part.as_encoded_bytes()).collect();
            files.push((parts.join(&b'/'), entry.into_path()));
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the SHA-256 over all files below `directory` that belong to the skill, or over the file of a sub-agent.
fn hash_of(directory: &Path) -> std::io::Result<String> {
    hash_of_files(&files_of(directory)?)
}

/// Returns the SHA-256 over all files below `directory` that would belong to a skill there, or reports why they cannot
/// be read.
pub fn hash_of_directory(directory: &Path, shown: &str, problems: &mut Problems) -> Option<String> {
    reported(hash_of(directory), "cannot read every file", shown, problems)
}

/// Returns the SHA-256 over files. Each contributes `path:`, its path with `/`, a line feed, its bytes, and a line feed.
fn hash_of_files(files: &[(Vec<u8>, PathBuf)]) -> std::io::Result<String> {
    let mut hash = Sha256::new();
    for (relative, path) in files {
        hash.update(b"path:");
        hash.update(relative);
        hash.update(b"\n");
        hash.update(files::read_named(path, MAX_FILE_BYTES)?);
        hash.update(b"\n");
    }
    Ok(model::text::hex(&hash.finalize()))
}

/// Maximum size of a skill file in bytes.
const MAX_FILE_BYTES: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_text(text: &str) -> Result<Skill, Vec<String>> {
        let mut problems = Vec::new();
        parse(&Source::new("SKILL.md", text), None, &mut problems)
            .ok_or_else(|| problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_body_keeps_its_leading_blank_lines_and_its_line_ends() {
        let skill = parse_text("---\nname: a\ndescription: d\n---\n\n# T\r\nx").unwrap();
        assert_eq!(skill.body, "\n# T\r\nx");
        let skill = parse_text("---\r\nname: a\r\ndescription: d\r\n---\r\nbody ---\n").unwrap();
        assert_eq!(skill.body, "body ---\n");
        assert_eq!(parse_text("---\nname: a\ndescription: d\n---").unwrap().body, "");
    }

    #[test]
    fn a_version_is_kept_as_written() {
        let version = |written: &str| {
            parse_text(&format!("---\nname: a\ndescription: d\nversion: {written}\n---\n")).unwrap().version
        };
        assert_eq!(version("1.0").as_deref(), Some("1.0"));
        assert_eq!(version("017").as_deref(), Some("017"));
        assert_eq!(version("\"1.10\"").as_deref(), Some("1.10"));
        assert_eq!(version("2.0.0").as_deref(), Some("2.0.0"));
        assert_eq!(version(""), None);
    }

    #[test]
    fn the_frontmatter_may_be_json() {
        let skill = parse_text(
            "---json\n{\n\t\"name\": \"a\",\n\t\"description\": \"d\",\n\t\"token-budget\": 5\n}\n---\n# T\n",
        );
        let skill = skill.unwrap();
        assert_eq!((skill.name.as_str(), skill.token_budget, skill.body.as_str()), ("a", Some(5.0), "# T\n"));
        assert_eq!(parse_text("---yaml\nname: a\ndescription: d\n---\n").unwrap().name, "a");
        let problems = parse_text("---json\n{\n  \"name\": \"a\",\n}\n---\n").unwrap_err();
        assert_eq!(problems, ["SKILL.md:4:1: not valid JSON: trailing comma"]);
    }

    #[test]
    fn unknown_keys_are_kept() {
        let skill = parse_text("---\nname: a\ndescription: d\nlicense: MIT\nmetadata: {x: [1]}\n---\n").unwrap();
        assert_eq!(skill.frontmatter["license"], "MIT");
        assert_eq!(skill.frontmatter["metadata"]["x"][0], 1);
    }

    #[test]
    fn a_key_similar_to_a_known_one_is_rejected() {
        let problems =
            |key: &str| parse_text(&format!("---\nname: a\ndescription: d\n{key}: 5\n---\n")).err().unwrap_or_default();
        assert_eq!(problems("token_budget"), ["SKILL.md:4:1: unknown key `token_budget` in the frontmatter"]);
        assert_eq!(problems("alowed-tools").len(), 1);
        assert_eq!(problems("disallowed-tools"), Vec::<String>::new());
    }

    #[test]
    fn allowed_tools_may_be_a_list() {
        let skill =
            parse_text("---\nname: a\ndescription: d\nallowed-tools: [Read, 'Bash(git *, ls)', \"Grep Glob\"]\n---\n")
                .unwrap();
        assert_eq!(skill.allowed_tools_raw, ["Read", "Bash(git *, ls)", "Grep", "Glob"]);
        assert_eq!(skill.allowed_tools[1].scopes, ["git *", "ls"]);
    }

    #[test]
    fn missing_and_invalid_values_are_reported_with_their_line() {
        let problems = |text: &str| parse_text(text).unwrap_err();
        assert_eq!(problems("# no\n"), ["SKILL.md:1:1: the skill has no frontmatter"]);
        assert_eq!(
            problems("---\nname: a\n"),
            ["SKILL.md:1:1: the skill has a frontmatter that is not closed by a second `---`"]
        );
        assert_eq!(problems("---\nname: a\n---\n"), ["SKILL.md:2:1: the frontmatter has no `description`"]);
        assert_eq!(
            problems("---\nname: a\ndescription: ''\ntoken-budget: '5'\nallowed-tools: Bash(git\n---\n"),
            [
                "SKILL.md:3:14: `description` must not be empty",
                "SKILL.md:4:15: `token-budget` must be a number greater than 0, not a string",
                "SKILL.md:5:16: `Bash(git` in `allowed-tools` opens a parenthesis that is never closed",
            ]
        );
        assert_eq!(problems("---\nname: [\n---\n"), ["SKILL.md:2:7: this `[` is never closed"]);
    }

    #[test]
    fn the_content_hash_covers_every_file_except_tests_and_suites() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::create_dir_all(root.join("tests")).unwrap();
        std::fs::create_dir_all(root.join("references/tests")).unwrap();
        std::fs::write(root.join(SKILL_FILE), "a").unwrap();
        std::fs::write(root.join("references/B.md"), "b").unwrap();
        std::fs::write(root.join("references/tests/c"), [0xff]).unwrap();
        std::fs::write(root.join("tests/t.yaml"), "x").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc/hostname", root.join("link")).unwrap();
        let mut expected = b"path:SKILL.md\na\npath:references/B.md\nb\npath:references/tests/c\n".to_vec();
        expected.extend([0xff, b'\n']);
        assert_eq!(hash_of(root).unwrap(), model::text::hex(&Sha256::digest(&expected)));
        std::fs::write(root.join("tests/t.yaml"), "y").unwrap();
        for omitted in ["evals", "__pycache__", "references/__pycache__", ".git"] {
            std::fs::create_dir_all(root.join(omitted).join("files")).unwrap();
            std::fs::write(root.join(omitted).join("files/x"), "x").unwrap();
        }
        assert_eq!(hash_of(root).unwrap(), model::text::hex(&Sha256::digest(&expected)));
    }

    #[test]
    fn a_prompt_can_take_the_place_of_a_skill() {
        let skill = of_prompt("c", "Be terse.");
        assert_eq!(skill.name, "inline:c");
        assert_eq!(skill.content_hash.len(), 64);
        assert!(skill.directory.is_none());
    }
}
