//! Names of agents and models as users write them.

use std::path::Path;

use model::decode::Problems;
use model::{DiagnosticKind, Node, nearest};

use crate::path;

/// Prefix of a scripted model, before the script's path.
const SCRIPTED: &str = "scripted:";

/// Prefixes of agents that are files, before the file's path: one that answers from the file, and one that is a
/// module.
const OF_FILES: [&str; 2] = ["recorded:", "custom:"];

/// Returns the current name of an agent; where these formats come from, Claude Code was called `claude`. The file of
/// an agent that has one is made absolute, relative to `base`; planning reads its contents.
pub fn agent(written: String, base: &Path) -> String {
    for kind in OF_FILES {
        if let Some(file) = written.strip_prefix(kind).map(str::trim_start).filter(|file| !file.is_empty()) {
            return format!("{kind}{}", path::resolve(base, file).display());
        }
    }
    if written == "claude" { "claude-code".to_owned() } else { written }
}

/// Returns the name of a model; a script's path is made absolute, relative to `base`. A script that cannot be read is
/// reported here, but the model is still returned, so that no misleading problem about a missing model follows.
pub fn model(written: &str, node: &Node, base: &Path, problems: &mut Problems) -> Option<String> {
    let (provider, script) = written.split_once(':').unwrap_or((written, ""));
    let known = SCRIPTED.trim_end_matches(':');
    if nearest(provider, [known]).is_none() {
        return Some(written.to_owned());
    }
    let script = script.trim_start();
    if script.is_empty() {
        // That the case has no model only follows from this.
        let kind = DiagnosticKind::UnknownKey { key: written.to_owned(), meant: Some("model".to_owned()) };
        problems.push(node.error("`scripted:` needs the path of a script").help("write `scripted:FILE`").of(kind));
        return None;
    }
    if provider != known {
        let problem = node.error(format!("`{written}` is not the name of a model"));
        problems.push(problem.suggest(Some(&format!("{SCRIPTED}{script}"))));
    }
    let file = path::resolve(base, script);
    match std::fs::metadata(&file) {
        Ok(found) if found.is_file() => {}
        Ok(_) => problems.push(node.error(format!("the script `{script}` is not a file"))),
        Err(error) => problems.push(
            node.error(format!("cannot read the script `{script}`: {error}"))
                .suggest(path::near(&file, script).as_deref())
                .help("the path is relative to the directory of this file"),
        ),
    }
    Some(format!("{SCRIPTED}{}", file.display()))
}
