//! Determines the paths that a call uses, while links are still as they were at the time of the call.

use std::path::PathBuf;

use model::{Access, Certainty, Effect, ToolCall, Touch, tool};

/// File name of a skill; a command that names such a file most likely reads the skill.
const SKILL_FILE: &str = "SKILL.md";

/// Resolves paths in the same way as the agent's tools.
#[derive(Debug, Clone)]
pub struct Resolver {
    /// The agent's working directory; without a sandbox it is `None`, and nothing is resolved.
    pub work: Option<PathBuf>,
    /// Directory to which `~` refers.
    pub home: Option<PathBuf>,
}

impl Resolver {
    /// Returns all paths that `call` names, in the order of its arguments.
    pub fn touches(&self, call: &ToolCall) -> Vec<Touch> {
        let Some(tool) = tool::find(&call.name) else { return Vec::new() };
        let argument =
            |name: &str| call.input.get(name).and_then(|value| value.as_str()).filter(|text| !text.is_empty());
        let mut touches = Vec::new();
        for (name, access) in tool.paths {
            touches.extend(argument(name).and_then(|raw| self.touch(raw, raw, *access, Certainty::Named)));
        }
        for name in tool.globs {
            // A pattern is relative to `path`; the fixed part before its wildcards determines the location.
            let base = argument("path").unwrap_or(".");
            let Some(pattern) = argument(name) else { continue };
            touches.extend(grade::glob_fronts(pattern).into_iter().filter_map(|front| {
                let path = if front.starts_with(['/', '~']) { front } else { format!("{base}/{front}") };
                self.touch(pattern, &path, Access::Read, Certainty::Named)
            }));
        }
        if tool.effect == Effect::Shell
            && let Some(command) = argument("command")
        {
            let words = command.split(|c: char| c.is_whitespace() || "\"'`;|&()<>=".contains(c));
            // Folder against which the path of a skill file is resolved.
            let mut folder = argument("workdir").unwrap_or(".").to_owned();
            let mut before = "";
            for word in words.filter(|word| !word.is_empty()) {
                if before == "cd" {
                    folder = below(&folder, word);
                }
                if looks_like_a_path(word) {
                    touches.extend(self.touch(word, word, Access::Read, Certainty::Guessed));
                } else if word == SKILL_FILE || word.ends_with("/SKILL.md") {
                    touches.extend(self.touch(word, &below(&folder, word), Access::Read, Certainty::Guessed));
                }
                before = word;
            }
        }
        touches
    }

    fn touch(&self, raw: &str, path: &str, access: Access, certainty: Certainty) -> Option<Touch> {
        let resolved = self.resolve(path)?.to_string_lossy().into_owned();
        Some(Touch { raw: raw.to_owned(), resolved, access, certainty })
    }

    /// Returns the absolute path of `place` as the agent sees it, with links resolved. `None` without a sandbox.
    pub fn resolve(&self, place: &str) -> Option<PathBuf> {
        let work = self.work.as_ref()?;
        let path = match place.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                self.home.as_deref().unwrap_or(work).join(rest.trim_start_matches('/'))
            }
            _ => work.join(place),
        };
        Some(files::follow(&path).path)
    }
}

/// Returns the part of a glob pattern before its first special character, cut at a `/`.
pub fn fixed_part(pattern: &str) -> String {
    match pattern.find(['*', '?', '[', '{']) {
        Some(offset) => pattern[..offset].rfind('/').map_or(String::new(), |slash| pattern[..=slash].to_owned()),
        None => pattern.to_owned(),
    }
}

/// Resolves `path` against `folder`.
fn below(folder: &str, path: &str) -> String {
    if path.starts_with(['/', '~']) { path.to_owned() } else { format!("{folder}/{path}") }
}

/// Returns `true` for words in a shell command that can only be paths and may point outside the working directory (a
/// heuristic).
fn looks_like_a_path(word: &str) -> bool {
    (word.len() > 1 && word.starts_with('/') && !word.starts_with("//"))
        || word == "~"
        || word.starts_with("~/")
        || word == ".."
        || word.starts_with("../")
        || word.contains("/../")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use serde_json::json;

    fn resolver(work: &Path) -> Resolver {
        Resolver { work: Some(work.to_owned()), home: Some(PathBuf::from("/agent-home")) }
    }

    fn resolved(resolver: &Resolver, name: &str, input: serde_json::Value) -> Vec<String> {
        let call = ToolCall::new("c", name, input, "m");
        resolver.touches(&call).into_iter().map(|touch| touch.resolved).collect()
    }

    #[test]
    fn links_are_followed_and_missing_parts_kept() {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("/etc", work.join("link")).unwrap();
        let resolver = resolver(&work);
        assert_eq!(resolved(&resolver, "Read", json!({"file_path": "link/none/x"})), ["/etc/none/x"]);
        assert_eq!(resolved(&resolver, "Read", json!({"file_path": "link/../tmp"})), ["/tmp"]);
        assert_eq!(resolved(&resolver, "Write", json!({"file_path": "a/./b"})), [work.join("a/b").to_string_lossy()]);
        assert_eq!(resolved(&resolver, "NotebookEdit", json!({"notebook_path": "~/n"})), ["/agent-home/n"]);
    }

    #[test]
    fn a_glob_is_resolved_by_its_fixed_prefix_and_a_link_loop_ends() {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("loop", work.join("loop")).unwrap();
        let resolver = resolver(&work);
        assert_eq!(resolved(&resolver, "Glob", json!({"pattern": "/etc/**/*.conf"})), ["/etc"]);
        assert_eq!(resolved(&resolver, "Glob", json!({"pattern": "*.rs"})), [work.to_string_lossy()]);
        assert_eq!(resolved(&resolver, "Read", json!({"file_path": "loop"})).len(), 1);
    }

    #[test]
    fn a_glob_resolves_to_all_brace_alternatives_and_to_parents_of_wildcards() {
        let dir = tempfile::tempdir().unwrap();
        let outer = dir.path().canonicalize().unwrap();
        let work = outer.join("work");
        std::fs::create_dir(&work).unwrap();
        std::os::unix::fs::symlink("/usr/lib", work.join("link")).unwrap();
        let resolver = resolver(&work);
        let globbed = |pattern: &str| resolved(&resolver, "Glob", json!({"pattern": pattern}));
        let at = |path: &str| outer.join(path).to_string_lossy().into_owned();
        assert_eq!(globbed("{src,../other}/*"), [at("work/src"), at("other")]);
        assert_eq!(globbed("*/../../x*"), [outer.to_string_lossy()]);
        assert_eq!(globbed("**/../*"), [outer.to_string_lossy()]);
        assert_eq!(globbed("{src,link}/*.so"), [at("work/src"), "/usr/lib".to_owned()]);
        assert_eq!(globbed("link/../*"), ["/usr"], "the parent of a link is the parent of its target");
        let elsewhere = json!({"path": "/usr", "pattern": "*/../../etc/*"});
        assert_eq!(resolved(&resolver, "Glob", elsewhere), ["/usr", "/etc"]);
    }

    #[test]
    fn a_skill_file_is_recognised_from_any_working_directory() {
        let resolver = resolver(Path::new("/w"));
        let seen = |input: serde_json::Value| resolved(&resolver, "Bash", input);
        let skill = ["/w/.agents/skills/s/SKILL.md"];
        assert_eq!(seen(json!({"command": "cat .agents/skills/s/SKILL.md"})), skill);
        assert_eq!(seen(json!({"command": "cat SKILL.md", "workdir": ".agents/skills/s"})), skill);
        assert_eq!(seen(json!({"command": "cd .agents/skills && cd s; head -5 ./SKILL.md"})), skill);
        let both = seen(json!({"command": "cd /w/.agents && cat 'skills/s/SKILL.md'"}));
        assert_eq!(both, ["/w/.agents", skill[0]]);
        assert_eq!(seen(json!({"command": "cat notes/SKILLS.md MY-SKILL.md"})), Vec::<String>::new());
    }

    #[test]
    fn paths_in_a_shell_command_are_guessed() {
        let resolver = resolver(Path::new("/w"));
        let call =
            ToolCall::new("c", "Bash", json!({"command": "cat '/etc/passwd' ../x >~/y; echo a/b http://h/p"}), "m");
        let touches = resolver.touches(&call);
        let raw: Vec<&str> = touches.iter().map(|touch| touch.raw.as_str()).collect();
        assert_eq!(raw, ["/etc/passwd", "../x", "~/y"]);
        assert!(touches.iter().all(|touch| touch.certainty == Certainty::Guessed));
    }
}
