//! Which skill a suite is about: the one that was named, the one whose suite it is, or one by its name.

use std::sync::Arc;

use model::decode::Problems;
use model::{Node, Skill};

use super::super::SuiteFile;
use super::home_of;
use crate::library::Library;

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
    let known = problems.len();
    let skill = library.skill_on(name, &library.shelves(file.path), place, problems);
    if let Some(problem) = problems.get_mut(known..).and_then(<[_]>::last_mut) {
        problem.help.push("`--skill DIR` says where it is".to_owned());
    }
    skill
}
