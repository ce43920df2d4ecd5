//! Reads the trees in which commands of assertions work.

use std::path::Path;
use std::sync::Arc;

use globset::Glob;
use model::decode::{Fields, Problems, any_text, text};
use model::{Graded, GradedFolder, Node, NodeKind, Solution};

use crate::fixtures::{absolute_path, outer_folder};
use crate::path;

/// Reads `graded`; its paths are relative to `base`.
pub fn graded(node: &Node, base: &Path, problems: &mut Problems) -> Graded {
    let Some(mut fields) = Fields::of(node, "`graded`", problems) else { return Graded::default() };
    let mut taken_files = Vec::new();
    for item in fields.list("take", problems).unwrap_or_default() {
        let Some(glob) = text(item, "an item of `take`", problems) else { continue };
        match (Glob::new(&glob), path::inside_sandbox(&glob)) {
            (Err(error), _) => {
                problems.push(item.error(format!("`{glob}` is not a valid glob pattern: {}", error.kind())));
            }
            (_, Err(fault)) => {
                let problem = item.error(format!("`{glob}` {fault}, so it matches no file of the working directory"));
                problems.push(problem.help("write it relative to the working directory"));
            }
            (_, Ok(inside)) if inside != glob => {
                let right = if glob.ends_with('/') { format!("{inside}/**") } else { inside };
                let problem = item.error(format!("`{glob}` matches no file of the working directory"));
                problems.push(problem.suggest(Some(&right)));
            }
            _ => taken_files.push(glob),
        }
    }
    let takes_fixture = fields.boolean("take_fixture", problems).unwrap_or_default();
    let is_shared = fields.boolean("shared", problems).unwrap_or_default();
    let folders = fields.get("folders").map(|node| folders(node, base, problems)).unwrap_or_default();
    let rewards = fields.get("rewards").and_then(|node| absolute_path(node, "`rewards`", problems));
    let solution = fields.get("solution").and_then(|node| solution(node, base, problems));
    let absolute = ["folders", "rewards", "solution"].iter().find_map(|key| fields.get(key));
    let absolute_source = absolute.map(Node::excerpt);
    fields.finish(problems);
    let solution = solution.map(Arc::new);
    Graded { taken_files, is_shared, takes_fixture, folders, rewards, solution, absolute_source }
}

/// Reads `folders`: a map from absolute paths to folders. An empty text stands for an empty folder.
fn folders(node: &Node, base: &Path, problems: &mut Problems) -> Vec<GradedFolder> {
    let NodeKind::Map(entries) = &node.kind else {
        problems.push(node.error(format!("`folders` must be a map from paths to folders, not {}", node.kind_name())));
        return Vec::new();
    };
    let mut folders = Vec::new();
    for (name, value) in entries {
        let key = Node { kind: NodeKind::String(name.value.clone()), span: name.span, ..value.clone() };
        let path = absolute_path(&key, "a key of `folders`", problems);
        let Some(written) = any_text(value, "a value of `folders`", problems) else { continue };
        let from = (!written.is_empty()).then(|| path::resolve(base, &written));
        if from.as_ref().is_some_and(|from| !from.is_dir()) {
            let problem = value.error(format!("`{written}` is not a directory"));
            problems.push(problem.help("it is relative to the directory of this file"));
        }
        folders.extend(path.map(|path| GradedFolder { path, from }));
    }
    folders
}

/// Reads `solution`: the commands that do the work, and folders that only they see.
fn solution(node: &Node, base: &Path, problems: &mut Problems) -> Option<Solution> {
    let mut fields = Fields::of(node, "`solution`", problems)?;
    let _ = fields.require("commands", problems);
    let commands = fields.texts("commands", problems).unwrap_or_default();
    let items = fields.list("outside", problems).unwrap_or_default();
    let outside = items.iter().filter_map(|item| outer_folder(item, base, problems)).collect();
    fields.finish(problems);
    Some(Solution { outside, commands })
}
