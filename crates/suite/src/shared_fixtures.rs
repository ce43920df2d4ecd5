//! `_fixtures.yaml`: named fixtures blocks that cases can extend.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use model::decode::Problems;
use model::{Diagnostic, Excerpt, NodeKind, nearest};

use crate::document::{self, Language};
use crate::fixtures::Block;

/// Name of the file.
pub const FILE: &str = "_fixtures.yaml";

/// Names that the file has by mistake.
const OTHERS: [&str; 4] = ["_fixtures.yml", "fixtures.yaml", "fixtures.yml", "_fixture.yaml"];

/// Returns the file in `folder` that is probably meant, but is not called so.
pub fn misnamed(folder: &Path) -> Option<PathBuf> {
    OTHERS.iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

/// Blocks in one file, each merged with those that it extends.
#[derive(Debug, Default)]
pub struct SharedFixtures {
    /// Path for messages.
    shown: String,
    blocks: Vec<(String, Block)>,
    /// Block with every name, if the file has none that can be read. The mistake is reported once.
    unread: Option<Block>,
}

impl SharedFixtures {
    /// Reads the file at `path`, which messages call `shown`.
    pub fn read(path: &Path, shown: &str, problems: &mut Problems) -> Self {
        let empty = Self { shown: shown.to_owned(), blocks: Vec::new(), unread: None };
        let source = document::open(path, shown).map_err(|problem| problems.push(*problem)).ok();
        let root = source.and_then(|source| document::read(&source, Language::Yaml, problems));
        let unread = || {
            let mut block = Block::default();
            block.assume_repository();
            Some(block)
        };
        let Some(root) = root else { return Self { unread: unread(), ..empty } };
        let NodeKind::Map(entries) = &root.kind else {
            let problem = root.error(format!("`{FILE}` must be a map of fixtures blocks, not {}", root.kind_name()));
            problems.push(problem.help("write a line `NAME:` for each, and what belongs to it below"));
            return Self { unread: unread(), ..empty };
        };
        let base = path.parent().unwrap_or(Path::new("/"));
        let written = entries
            .iter()
            .map(|(name, node)| (name.value.clone(), Block::read(node, base, problems).unwrap_or_default()))
            .collect();
        let written = Self { blocks: written, ..empty };
        let mut unfolded = HashMap::new();
        for (name, _) in &written.blocks {
            written.unfold(name, &mut Vec::new(), &mut unfolded, problems);
        }
        let blocks =
            written.blocks.iter().filter_map(|(name, _)| Some((name.clone(), unfolded.remove(name.as_str())?)));
        Self { blocks: blocks.collect(), shown: written.shown.clone(), unread: None }
    }

    /// Returns the block called `name`, or an error at `place`.
    pub fn get(&self, name: &str, place: &Excerpt) -> Result<&Block, Box<Diagnostic>> {
        let found = self.blocks.iter().find(|(known, _)| known == name).map(|(_, block)| block);
        found.or(self.unread.as_ref()).ok_or_else(|| {
            let names = || self.blocks.iter().map(|(name, _)| name.as_str());
            let problem = Diagnostic::error(format!("`{}` has no fixtures called `{name}`", self.shown));
            let near = nearest(name, names());
            let problem = problem.at(place.clone()).suggest(near);
            Box::new(if near.is_some() || self.blocks.is_empty() {
                problem
            } else {
                problem.help(format!("it has: {}", names().collect::<Vec<_>>().join(", ")))
            })
        })
    }

    /// Merges the block called `name` with those that it extends, and adds it to `unfolded`. `way` contains the names
    /// that led here.
    fn unfold<'a>(
        &'a self,
        name: &'a str,
        way: &mut Vec<&'a str>,
        unfolded: &mut HashMap<&'a str, Block>,
        problems: &mut Problems,
    ) {
        let Some((_, block)) = self.blocks.iter().find(|(known, _)| known == name) else { return };
        if unfolded.contains_key(name) {
            return;
        }
        way.push(name);
        let mut whole = Block::default();
        for (below, place) in &block.extends {
            if way.contains(&below.as_str()) {
                let circle = way.iter().copied().chain([below.as_str()]).collect::<Vec<_>>().join(" → ");
                problems.push(Diagnostic::error(format!("fixtures extend themselves: {circle}")).at(place.clone()));
                continue;
            }
            match self.get(below, place) {
                Ok(_) => self.unfold(below, way, unfolded, problems),
                Err(problem) => problems.push(*problem),
            }
            if let Some(below) = unfolded.get(below.as_str()) {
                whole.merge(below);
            }
        }
        way.pop();
        whole.merge(block);
        unfolded.insert(name, whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(text: &str) -> (SharedFixtures, Vec<String>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        std::fs::write(&path, text).unwrap();
        let mut problems = Vec::new();
        let shared = SharedFixtures::read(&path, FILE, &mut problems);
        (shared, problems.iter().map(ToString::to_string).collect())
    }

    fn commands(shared: &SharedFixtures, name: &str) -> Vec<String> {
        let block = shared.get(name, &Excerpt::of_file("x")).unwrap().clone();
        let node = model::Node::from_json(&serde_json::Value::Null, &model::Source::new("x", ""));
        let fixtures = block.into_fixtures(&node, &mut Vec::new());
        fixtures.setup_commands.into_iter().map(|command| command.value).collect()
    }

    #[test]
    fn a_block_is_merged_over_the_blocks_it_extends() {
        let (shared, problems) = shared(
            "all: {extends: [left, right], setup_commands: [all]}
left: {extends: base, setup_commands: [left]}
right: {setup_commands: [right]}
base: {setup_commands: [base]}
",
        );
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(commands(&shared, "all"), ["base", "left", "right", "all"]);
    }

    #[test]
    fn cycles_and_unknown_names_are_reported_at_their_location() {
        let (_, problems) = shared("a: {extends: b}\nb:\n  extends: [c]\nc: {extends: [a]}\nd: {extends: bb}\n");
        assert_eq!(
            problems,
            [
                "_fixtures.yaml:4:15: fixtures extend themselves: a → b → c → a",
                "_fixtures.yaml:5:14: `_fixtures.yaml` has no fixtures called `bb`",
            ]
        );
    }

    #[test]
    fn an_unknown_name_gets_the_nearest_suggestion() {
        let (shared, _) = shared("repository: {}\nempty: {}\n");
        let problem = shared.get("repositry", &Excerpt::of_file("s.yaml")).unwrap_err();
        assert_eq!(problem.message, "`_fixtures.yaml` has no fixtures called `repositry`");
        assert_eq!(problem.help, ["did you mean `repository`?"]);
    }
}
