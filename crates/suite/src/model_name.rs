//! Names of agents and models as users write them.

use std::path::Path;

use model::Node;
use model::decode::Problems;

use crate::path;

/// What a model that plays a script is called, before the script's path.
const SCRIPTED: &str = "scripted:";

/// What agents that are files are called, before the file's path: one that answers from it, and one that is a module.
const OF_FILES: [&str; 2] = ["recorded:", "custom:"];

/// An agent by today's name; Claude Code was `claude` where these formats come from. The file of an agent that has one is
/// made absolute, seen from `base`; what is in it is for planning to read.
pub fn agent(written: String, base: &Path) -> String {
    for kind in OF_FILES {
        if let Some(file) = written.strip_prefix(kind).filter(|file| !file.is_empty()) {
            return format!("{kind}{}", path::resolve(base, file).display());
        }
    }
    if written == "claude" { "claude-code".to_owned() } else { written }
}

/// A model; a script's path is made absolute, seen from `base`. One that cannot be read is reported here, and the model is
/// still named, so that none is missed.
pub fn model(written: &str, node: &Node, base: &Path, problems: &mut Problems) -> Option<String> {
    let Some(script) = written.strip_prefix(SCRIPTED) else {
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
                .help("the path starts at the directory of this file"),
        ),
    }
    Some(format!("{SCRIPTED}{}", file.display()))
}
