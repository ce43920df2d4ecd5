//! Names of agents and models as users write them.

use std::path::Path;

use model::Node;
use model::decode::Problems;

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
    let Some(script) = written.strip_prefix(SCRIPTED).map(str::trim_start) else {
        return Some(written.to_owned());
    };
    if script.is_empty() {
        problems.push(node.error("`scripted:` needs the path of a script").help("write `scripted:FILE`"));
        return None;
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
