//! Environment variables for the commands around trials: `ASE_…` as in agent-skill-eval, and the same as `TRIALRUN_…`.
//! Paths are absolute; variables without a value are empty.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{RunInfo, Skill};
use report::Tree;
use runner::hook::GradedTrial;
use runner::{Plan, PlannedTrial};
use sandbox::Host;

/// Prefix of this program's names.
const OURS: &str = "TRIALRUN_";

/// All names, without the prefix, with their meanings.
const NAMES: [(&str, &str); 23] = [
    ("AGENT", "after grading: name of the agent"),
    ("EVALS_PATH", "file of the tests, if there is only one"),
    ("EVAL_ID", "after grading: name of the case"),
    ("EVAL_IDS", "names of all cases of the run, separated by commas"),
    ("GRADING_PATH", "after grading: `grading.json`"),
    ("HOOK_TIMEOUT", "a setting, not set by trialrun: time limit of each command"),
    ("ITERATION", "label of the run, or `1`"),
    ("ITERATION_DIR", "folder of artefacts"),
    ("OUTPUT_DIR", "after grading: folder `outputs` of the trial"),
    ("POST_STATE_PATH", "after grading: state of the repository after the agent"),
    ("PRE_STATE_PATH", "after grading: state of the repository before the agent"),
    ("RUN_ID", "id of the run"),
    ("RUN_INDEX", "after grading: number of the repetition"),
    ("RUN_META_PATH", "after grading: `run_meta.json`"),
    ("SIDE_EFFECT_LEVELS", "side effect levels of the cases, separated by commas"),
    ("SKILL_DIR", "folder of the skill, if there is only one"),
    ("SKILL_HASH", "hash of the skill's files"),
    ("SKILL_NAME", "name of the skill, if there is only one"),
    ("SOURCE_REPO", "the source repository; after grading, the trial's copy of it if it is a folder"),
    ("TIMING_PATH", "after grading: `timing.json`"),
    ("WITH_SKILL", "after grading: `1` in the arm with the skill, otherwise `0`"),
    ("WORKSPACE_BASE", "folder with the sandboxes"),
    ("WORKSPACE_PATH", "after grading: copy of the agent's working directory, empty if it has none"),
];

/// Returns the generated table of the documentation.
pub fn reference() -> Vec<(String, String)> {
    let rows: String = NAMES.iter().map(|(name, meaning)| format!("| `ASE_{name}` | {meaning} |\n")).collect();
    vec![("hook variables".to_owned(), format!("| variable | value |\n| --- | --- |\n{rows}"))]
}

/// Returns `true` if `name` is a variable that commands around trials receive, or that configures them. They are set
/// when such a command calls this program again.
pub fn is_hook_variable(name: &str) -> bool {
    name.strip_prefix(OURS).is_some_and(|name| NAMES.iter().any(|(known, _)| *known == name))
}

/// Skill and file of a suite.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct SuiteSubject {
    skill: String,
    directory: String,
    hash: String,
    file: String,
}

/// The variables of a run.
pub(super) struct Variables {
    /// Variables that every command receives, without the prefix.
    run: Vec<(&'static str, String)>,
    /// Subject of each suite, by name; also used for trials without the skill.
    suites: BTreeMap<Arc<str>, SuiteSubject>,
}

impl Variables {
    pub(super) fn new(plan: &Plan, info: &RunInfo, host: &Arc<Host>, cwd: &Path, root: &Path) -> Self {
        let mut suites: BTreeMap<Arc<str>, SuiteSubject> = BTreeMap::new();
        for planned in &plan.trials {
            let subject = suites.entry(Arc::clone(&planned.suite)).or_default();
            subject.file = text(&cwd.join(&planned.file));
            if let Some(skill) = planned.case.subject.skill().filter(|skill| skill.directory.is_some()) {
                subject.set_skill(skill, cwd);
            }
        }
        let trials = || plan.trials.iter();
        // If all suites have the same value, it is used; otherwise the variable is empty.
        let only = |of: fn(&SuiteSubject) -> &String| {
            let all: BTreeSet<&String> = suites.values().map(of).collect();
            if all.len() == 1 { all.into_iter().next().cloned().unwrap_or_default() } else { String::new() }
        };
        let mut seen = BTreeSet::new();
        let ids: Vec<&str> = trials().map(|trial| &*trial.case_id).filter(|id| seen.insert(*id)).collect();
        let levels: BTreeSet<_> =
            trials().filter_map(|trial| trial.case.skill_eval.as_ref()).map(|eval| eval.side_effect_level).collect();
        let levels: Vec<&str> = levels.into_iter().map(|level| level.name()).collect();
        let run = vec![
            ("SKILL_NAME", only(|subject| &subject.skill)),
            ("SKILL_DIR", only(|subject| &subject.directory)),
            ("SKILL_HASH", only(|subject| &subject.hash)),
            ("EVALS_PATH", only(|subject| &subject.file)),
            ("ITERATION", info.label.clone().unwrap_or_else(|| "1".to_owned())),
            ("ITERATION_DIR", text(root)),
            ("WORKSPACE_BASE", text(&host.temp)),
            ("SOURCE_REPO", plan.settings.sandbox.source_repo.clone().unwrap_or_default()),
            ("RUN_ID", info.id.clone()),
            ("EVAL_IDS", ids.join(",")),
            ("SIDE_EFFECT_LEVELS", levels.join(",")),
        ];
        Self { run, suites }
    }

    /// Returns the variables for a command; a post-grade command also gets those of its trial.
    pub(super) fn of_trial(&self, graded: Option<&GradedTrial>, tree: &Tree) -> Vec<(String, String)> {
        let mut all: BTreeMap<&str, String> = self.run.iter().map(|(name, value)| (*name, value.clone())).collect();
        if let Some(graded) = graded {
            self.add_trial(&mut all, graded, tree);
        }
        let both =
            |(name, value): (&str, String)| [(format!("ASE_{name}"), value.clone()), (format!("{OURS}{name}"), value)];
        all.into_iter().flat_map(both).collect()
    }

    fn add_trial(&self, all: &mut BTreeMap<&str, String>, graded: &GradedTrial, tree: &Tree) {
        let planned = &graded.planned;
        let subject = self.suites.get(&planned.suite).cloned().unwrap_or_default();
        let files = tree.files(&graded.record.id);
        let file =
            |of: fn(&report::TrialFiles) -> &PathBuf| files.as_ref().map(|files| text(of(files))).unwrap_or_default();
        all.extend([
            ("SKILL_NAME", subject.skill),
            ("SKILL_DIR", subject.directory),
            ("SKILL_HASH", subject.hash),
            ("EVALS_PATH", subject.file),
            ("EVAL_ID", planned.case_id.to_string()),
            ("AGENT", planned.arm.agent.clone()),
            ("WITH_SKILL", if has_skill(planned) { "1" } else { "0" }.to_owned()),
            ("RUN_INDEX", planned.repetition.to_string()),
            ("WORKSPACE_PATH", graded.work.as_deref().map(text).unwrap_or_default()),
            ("OUTPUT_DIR", file(|files| &files.outputs)),
            ("PRE_STATE_PATH", file(|files| &files.pre_state)),
            ("POST_STATE_PATH", file(|files| &files.post_state)),
            ("TIMING_PATH", file(|files| &files.timing)),
            ("RUN_META_PATH", file(|files| &files.run_meta)),
            ("GRADING_PATH", file(|files| &files.grading)),
        ]);
        all.extend(graded.remote.as_deref().map(|remote| ("SOURCE_REPO", text(remote))));
    }
}

impl SuiteSubject {
    fn set_skill(&mut self, skill: &Skill, cwd: &Path) {
        self.skill.clone_from(&skill.name);
        self.hash.clone_from(&skill.content_hash);
        self.directory = skill.directory.as_ref().map(|directory| text(&cwd.join(directory))).unwrap_or_default();
    }
}

fn has_skill(planned: &PlannedTrial) -> bool {
    planned.case.subject.installed().is_some()
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
