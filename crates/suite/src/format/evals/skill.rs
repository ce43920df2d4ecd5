//! Which skill a suite is about: the one that was named, the one whose suite it is, or one by its name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::decode::Problems;
use model::{Node, Skill};

use super::super::SuiteFile;
use super::home_of;
use crate::library::Library;

/// What a folder of skills is called beside a folder of suites.
const SKILLS_FOLDER: &str = "skills";

/// How far above a suite that is no part of the project skills are looked for.
const FOLDERS_ABOVE: usize = 4;

/// The skill that `file` calls `name`, which is written at `place`.
pub(super) fn find(
    name: &str,
    place: &Node,
    file: &SuiteFile<'_>,
    library: &Library,
    problems: &mut Problems,
) -> Option<Arc<Skill>> {
    if let Some(directory) = library.chosen_skill().or_else(|| home_of(file.path)) {
        let skill = library.skill_at(directory)?;
        if skill.name != name {
            let message = format!("the suite is about `{name}`, but the skill is called `{}`", skill.name);
            let shown = library.shown(directory);
            let problem = place.error(message).help(format!("did you mean `{}`?", skill.name));
            problems.push(problem.help(format!("the skill is in `{shown}`; `--skill DIR` takes another")));
        }
        return Some(skill);
    }
    let shelves = shelves(file.path, library);
    let shelves: Vec<&Path> = shelves.iter().map(PathBuf::as_path).collect();
    let known = problems.len();
    let skill = library.skill_on(name, &shelves, place, problems);
    if let Some(problem) = problems.get_mut(known..).and_then(<[_]>::last_mut) {
        problem.help.push("`--skill DIR` says where it is".to_owned());
    }
    skill
}

/// The folders of skills that are near the file at `path`, nearest first, and the project's.
fn shelves(path: &Path, library: &Library) -> Vec<PathBuf> {
    let bound = [library.cwd(), library.root()].into_iter().find(|bound| path.starts_with(bound));
    let above = path.ancestors().skip(1);
    let count = match bound {
        Some(bound) => path.components().count() - bound.components().count(),
        None => FOLDERS_ABOVE,
    };
    let mut shelves: Vec<PathBuf> = above.take(count).map(|folder| folder.join(SKILLS_FOLDER)).collect();
    shelves.retain(|shelf| shelf.is_dir() && shelf != library.skills_dir());
    shelves.push(library.skills_dir().to_owned());
    shelves
}
