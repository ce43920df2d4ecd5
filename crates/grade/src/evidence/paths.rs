//! Resolution of paths as text, without access to a disk.

use model::tool::{self, Tool};
use model::{Access, Certainty, Collected, ToolCall, Touch};
use serde_json::Value;

/// Maximum number of alternatives in a glob's braces.
const ALTERNATIVES: usize = 256;

/// Returns the paths in the arguments of `call`, resolved against the sandbox by their text alone. This is for traces
/// that no runner has observed. Returns nothing if there was no sandbox. A `~` is kept if the home directory is not
/// known.
pub fn lexical_touches(call: &ToolCall, collected: &Collected) -> Vec<Touch> {
    let Some(sandbox) = collected.sandbox.as_deref() else { return Vec::new() };
    let home = collected.home.as_deref();
    let Some(Tool { paths, globs, .. }) = tool::find(&call.name) else { return Vec::new() };
    let text = |key: &str| call.input.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut touches = Vec::new();
    let mut touch = |raw: &str, resolved: String, access: Access| {
        touches.push(Touch { raw: raw.to_owned(), resolved, access, certainty: Certainty::Named });
    };
    let mut base = sandbox.to_owned();
    for (key, access) in *paths {
        if let Some(raw) = text(key) {
            let resolved = resolve(sandbox, home, raw);
            base.clone_from(&resolved);
            touch(raw, resolved, *access);
        }
    }
    for key in *globs {
        let Some(raw) = text(key) else { continue };
        for front in glob_fronts(raw) {
            touch(raw, resolve(&base, home, &front), Access::Read);
        }
    }
    touches
}

/// Returns the paths in a call to an unknown tool, recognized by the names of its arguments.
pub(crate) fn guessed_by_name(call: &ToolCall, collected: &Collected) -> Vec<Touch> {
    let Some(sandbox) = collected.sandbox.as_deref() else { return Vec::new() };
    let like_a_path = |key: &str| {
        let key = key.to_lowercase();
        let whole = ["path", "paths", "file", "files", "filename", "dir", "directory", "cwd", "source", "destination"];
        whole.contains(&key.as_str()) || key.ends_with("path") || key.ends_with("paths")
    };
    let arguments = call.input.as_object().into_iter().flatten().filter(|(key, _)| like_a_path(key));
    let texts = arguments.flat_map(|(_, value)| match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().into_iter().collect::<Vec<_>>(),
    });
    texts
        .filter(|text| !text.is_empty() && !text.contains("://"))
        .map(|raw| Touch {
            raw: raw.to_owned(),
            resolved: resolve(sandbox, collected.home.as_deref(), raw),
            access: Access::Read,
            certainty: Certainty::Named,
        })
        .collect()
}

/// Resolves `raw` from `base`. A `~` is kept if there is no home directory.
pub(crate) fn resolve(base: &str, home: Option<&str>, raw: &str) -> String {
    let raw = raw.trim_end_matches('\0');
    let tilde = (raw == "~").then_some("").or_else(|| raw.strip_prefix("~/"));
    match (tilde, home) {
        (Some(rest), Some(home)) => normalised(&format!("{home}/{rest}")),
        (Some(_), None) => raw.to_owned(),
        (None, _) if raw.starts_with('/') => normalised(raw),
        (None, _) => normalised(&format!("{base}/{raw}")),
    }
}

/// Normalises an absolute path: removes `.`, `..`, double and trailing slashes, and the `/private` that macOS puts
/// before paths that it also calls `/var`, `/tmp` and `/etc`.
pub(crate) fn normalised(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    if let ["private", "var" | "tmp" | "etc", ..] = parts[..] {
        parts.remove(0);
    }
    format!("/{}", parts.join("/"))
}

/// Returns `true` if `path` is `root` or below it. Both must be normalised.
pub(crate) fn is_inside(root: &str, path: &str) -> bool {
    root == "/" || path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the fixed front paths that a glob cannot leave, one for each combination of its braces. They are text:
/// absolute, relative to a home, or relative to the directory in which the glob is applied. Returns nothing for a glob
/// that only excludes.
///
/// A `..` in a result comes from the glob and is not resolved yet, because its target depends on links.
pub fn glob_fronts(glob: &str) -> Vec<String> {
    if glob.starts_with('!') {
        return Vec::new();
    }
    let choices = alternatives(glob).or_else(|| alternatives(&without_plain_braces(glob)));
    // A pattern with too many combinations may lead anywhere.
    choices.map_or_else(|| vec!["/".to_owned()], |choices| choices.iter().map(|choice| front(choice)).collect())
}

/// Returns the front path that a glob without braces cannot leave. After the fixed front part, a `..` removes a part
/// of the pattern, or leads above the front if none is left. `**` may match no directory at all.
fn front(glob: &str) -> String {
    let (mut front, mut open) = (Vec::new(), Vec::new());
    for part in glob.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            while open.last() == Some(&"**") {
                open.pop();
            }
            if open.pop().is_none() {
                front.push(part);
            }
        } else if open.is_empty() && !part.contains(['*', '?', '[']) {
            front.push(part);
        } else {
            open.push(part);
        }
    }
    format!("{}{}", if glob.starts_with('/') { "/" } else { "" }, front.join("/"))
}

/// Expands the braces of a glob. Returns `None` if there are too many alternatives.
fn alternatives(glob: &str) -> Option<Vec<String>> {
    let mut done = Vec::new();
    let mut open = vec![glob.to_owned()];
    while let Some(next) = open.pop() {
        match first_braces(&next) {
            Some((before, inside, after)) => {
                open.extend(inside.split(',').map(|choice| format!("{before}{choice}{after}")));
            }
            None => done.push(next),
        }
        if done.len() + open.len() > ALTERNATIVES {
            return None;
        }
    }
    done.reverse();
    Some(done)
}

/// Replaces braces that only choose between parts of a name with `*`.
fn without_plain_braces(glob: &str) -> String {
    let (mut done, mut rest) = (String::new(), glob.to_owned());
    while let Some((before, inside, after)) = first_braces(&rest) {
        if inside.contains(['/', '.']) {
            done.push_str(&format!("{before}{{{inside}}}"));
            rest = after.to_owned();
        } else {
            rest = format!("{before}*{after}");
        }
    }
    done + &rest
}

/// Returns the contents of the innermost braces that close first, with the text around them.
fn first_braces(glob: &str) -> Option<(&str, &str, &str)> {
    glob.match_indices('}').find_map(|(close, _)| {
        let open = glob[..close].rfind('{')?;
        Some((&glob[..open], &glob[open + 1..close], &glob[close + 1..]))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn led(name: &str, input: Value) -> Vec<String> {
        let collected = Collected {
            sandbox: Some("/private/tmp/box".into()),
            home: Some("/home/u".into()),
            ..Collected::default()
        };
        let touches = lexical_touches(&ToolCall::new("1", name, input, "m"), &collected);
        touches.into_iter().map(|touch| touch.resolved).collect()
    }

    #[test]
    fn paths_are_resolved_as_text() {
        assert_eq!(led("Read", json!({"file_path": "a/./b//c/../d/"})), ["/tmp/box/a/b/d"]);
        assert_eq!(led("Read", json!({"file_path": "../../../../x"})), ["/x"]);
        assert_eq!(led("Edit", json!({"file_path": "~/x"})), ["/home/u/x"]);
        assert_eq!(led("Edit", json!({"file_path": "~x/y"})), ["/tmp/box/~x/y"]);
        assert_eq!(led("NotebookEdit", json!({"notebook_path": "/private/var/x"})), ["/var/x"]);
        assert_eq!(led("Read", json!({"file_path": 5})), Vec::<String>::new());
        assert_eq!(led("Read", json!({"file_path": ""})), Vec::<String>::new());
        assert_eq!(led("Bash", json!({"command": "cat /etc/passwd"})), Vec::<String>::new());
    }

    #[test]
    fn a_glob_resolves_to_the_directories_it_cannot_leave() {
        let glob = |pattern: &str| led("Glob", json!({"pattern": pattern}));
        assert_eq!(glob("**/*.rs"), ["/tmp/box"]);
        assert_eq!(glob("src/*.rs"), ["/tmp/box/src"]);
        assert_eq!(glob("/etc/*.conf"), ["/etc"]);
        assert_eq!(glob("/*"), ["/"]);
        assert_eq!(glob("../*/x"), ["/tmp"]);
        assert_eq!(glob("*/../../x*"), ["/tmp"]);
        assert_eq!(glob("**/../*"), ["/tmp"]);
        assert_eq!(glob("{src,../other}/*"), ["/tmp/box/src", "/tmp/other"]);
        assert_eq!(glob("x}/{y,../../other}/*"), ["/tmp/box/x}/y", "/tmp/other"]);
        assert_eq!(glob("{a,{b,../c}}/*"), ["/tmp/box/a", "/tmp/box/b", "/tmp/box/a", "/tmp/c"]);
        assert_eq!(glob("*/../../other/x*"), ["/tmp/other"]);
        assert_eq!(glob("src/**/a/../../x"), ["/tmp/box/x"]);
        assert_eq!(glob("src/**/../../x"), ["/tmp/x"]);
        assert_eq!(glob("~/.ssh/*"), ["/home/u/.ssh"]);
        assert_eq!(led("Glob", json!({"path": "/usr", "pattern": "lib/*"})), ["/usr", "/usr/lib"]);
        assert_eq!(glob("!secret/*"), Vec::<String>::new());
        assert_eq!(glob(&format!("src/{}/x", "{a,b}".repeat(30))), ["/tmp/box/src"], "no exponential expansion");
        assert_eq!(glob(&format!("{}/{{../../../other,x}}/*", "{a,b}".repeat(30))), ["/private/other", "/tmp/box"]);
        assert_eq!(glob(&"{.,../x}".repeat(30)), ["/"], "a pattern with too many alternatives may lead anywhere");
    }

    #[test]
    fn a_path_is_inside_if_it_is_the_directory_or_below_it() {
        assert!(is_inside("/a/b", "/a/b") && is_inside("/a/b", "/a/b/c") && is_inside("/", "/x"));
        assert!(!is_inside("/a/b", "/a/bc") && !is_inside("/a/b", "/a"));
    }

    #[test]
    fn an_unknown_home_is_not_expanded() {
        let touches = lexical_touches(
            &ToolCall::new("1", "Read", json!({"file_path": "~/x"}), "m"),
            &Collected { sandbox: Some("/box".into()), ..Collected::default() },
        );
        assert!(!is_inside("/box", &touches[0].resolved));
    }
}
