//! Finds the skill that a suite is about: the one that the user chose, the one that contains the suite, or one with
//! the given name.

use std::sync::Arc;

use model::decode::Problems;
use model::{Definition, Node, Skill};

use super::super::SuiteFile;
use super::home_of;
use crate::library::Library;

/// Returns the skill or the sub-agent that `file` calls `name`. The name is written at `place`.
pub(super) fn find(
    name: &str,
    definition: Definition,
    place: &Node,
    file: &SuiteFile<'_>,
    library: &Library,
    problems: &mut Problems,
) -> Option<Arc<Skill>> {
    if let Some(chosen) = library.chosen_skill.as_deref()
        && chosen.is_file() != (definition == Definition::SubAgent)
    {
        let message = format!("the suite is about a {}, and the chosen skill is not one", definition.name());
        problems.push(place.error(message).help(format!("`{}` was named", library.shown(chosen))));
        return None;
    }
    let home = || home_of(file.path).filter(|_| definition == Definition::Skill);
    if let Some(directory) = library.chosen_skill.as_deref().or_else(home) {
        let skill = library.skill_at(directory)?;
        if skill.name != name {
            let message =
                format!("the suite is about `{name}`, but the {} is called `{}`", definition.name(), skill.name);
            let shown = library.shown(directory);
            let problem = place.error(message).help(format!("did you mean `{}`?", skill.name));
            problems.push(problem.help(format!("the {} is in `{shown}`; choose another one", definition.name())));
        }
        return Some(skill);
    }
    if definition == Definition::SubAgent {
        return library.sub_agent(name, file.path, place, problems);
    }
    let known = problems.len();
    let skill = library.skill_on(name, &library.shelves(file.path), place, problems);
    if let Some(problem) = problems.get_mut(known..).and_then(<[_]>::last_mut) {
        problem.help.push("choose its directory as the skill to test".to_owned());
    }
    skill
}
