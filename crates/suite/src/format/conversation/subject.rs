//! Reads what is installed for the agent: a skill, a sub-agent or a plug-in.

use std::path::Path;
use std::sync::Arc;

use model::decode::{Fields, Problems};
use model::{AssertionSpec, Definition, Mocks, Node, SideEffectLevel, Skill, SkillEval, Subject};

use super::super::SuiteFile;
use crate::library::Library;
use crate::path;
use crate::plugin;
use crate::skill::SKILL_FILE;

/// Keys that need `install`.
const WITH_INSTALL: [&str; 2] = ["should_trigger", "indicators"];

/// Skill, sub-agent or plug-in that is installed for the agent.
pub(super) struct Installed {
    pub(super) subject: Subject,
    pub(super) definition: Definition,
    /// Expectation about its use, if the case also runs without it.
    pub(super) skill_eval: Option<SkillEval>,
    /// Ids of the assertions that only show whether the agent used it.
    pub(super) indicators: Vec<String>,
}

/// Reads `install` and the keys about it. The servers of a plug-in are added to `mocks`, unless it has servers with the same
/// names.
pub(super) fn read(
    fields: &mut Fields<'_>,
    mocks: &mut Mocks,
    assertions: &[AssertionSpec],
    file: &SuiteFile<'_>,
    library: &Library,
    problems: &mut Problems,
) -> Installed {
    let written = fields.text("install", problems).zip(fields.get("install"));
    let should_trigger = fields.boolean("should_trigger", problems);
    let indicators = fields.texts("indicators", problems).unwrap_or_default();
    let mut installed =
        Installed { subject: Subject::Agent, definition: Definition::default(), skill_eval: None, indicators };
    let Some((written, place)) = written else {
        for key in WITH_INSTALL {
            if let Some(node) = fields.get(key).filter(|_| fields.get("install").is_none()) {
                problems.push(node.error(format!("`{key}` needs `install`: nothing is installed for the agent")));
            }
        }
        return installed;
    };
    for item in fields.list("indicators", problems).unwrap_or_default() {
        let is_known = |id: &str| assertions.iter().any(|spec| spec.id == id);
        if let Some(id) = item.as_str().filter(|id| !is_known(id)) {
            let problem = item.error(format!("there is no assertion called `{id}`"));
            problems.push(problem.suggest(model::nearest(id, assertions.iter().map(|spec| spec.id.as_str()))));
        }
    }
    let Some((skill, definition)) = find(&path::resolve(file.directory(), &written), place, library, problems) else {
        return installed;
    };
    for server in skill.plugin.iter().flat_map(|plugin| &plugin.servers) {
        match mocks.servers.iter_mut().find(|own| own.name == server.name) {
            Some(own) => own.is_of_plugin = true,
            None => mocks.servers.push(server.clone()),
        }
    }
    (installed.subject, installed.definition) = (Subject::Installed(skill), definition);
    installed.skill_eval = should_trigger.map(|should_trigger| SkillEval {
        should_trigger,
        invocation: None,
        side_effect_level: SideEffectLevel::default(),
        contract: None,
        scripts: Vec::new(),
    });
    installed
}

/// Returns the skill, the sub-agent or the plug-in at `path`.
fn find(path: &Path, place: &Node, library: &Library, problems: &mut Problems) -> Option<(Arc<Skill>, Definition)> {
    let (path, definition) = match plugin::manifest_in(path) {
        Some(manifest) => (manifest, Definition::Plugin),
        None if path.join(SKILL_FILE).is_file() => (path.to_owned(), Definition::Skill),
        None if path.is_file() && path.extension().is_some_and(|extension| extension == "md") => {
            (path.to_owned(), Definition::SubAgent)
        }
        None => {
            let shown = library.shown(path);
            let problem = place.error(format!("`{shown}` is not a skill, a plug-in or a sub-agent"));
            let help = "name a folder with `SKILL.md` or `.claude-plugin/plugin.json`, or the file of a sub-agent";
            problems.push(problem.help(help));
            return None;
        }
    };
    Some((library.skill_at(&path)?, definition))
}
