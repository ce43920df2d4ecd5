//! Trials as data, from which another process with a copy of the project can run them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Arm, Limits, TrialId};
use runner::PlannedTrial;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::dependencies::{self, Dependencies};
use crate::error::Error;
use crate::invocation::hash_of;
use crate::path::{normalize, shown};
use crate::plan::Planned;
use crate::session::Session;
use crate::settings::RunSpec;

/// A trial without anything compiled: its checks, its agent, its model and its scripts are compiled from the project
/// where it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialSpec {
    /// Id of the trial.
    pub id: TrialId,
    /// Position of its case among all cases of the plan, from 0.
    pub position: usize,
    /// Its case.
    pub case: CaseFile,
    /// Agent by name, model and variant.
    pub arm: Arm,
    /// The limits in force.
    pub limits: Limits,
    /// What its agent may do.
    pub policy: Policy,
}

/// The file of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseFile {
    /// Path relative to the project's folder.
    pub file: String,
    /// SHA-256 of the file and of the files that it depends on.
    pub content_hash: String,
}

/// What an agent may do in a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Kind of sandbox.
    pub sandbox: String,
    /// Hosts that it may reach, in the form of the setting.
    pub network: String,
    /// Remote that it pushes to.
    pub remote: String,
    /// How it handles permissions.
    pub permission_mode: String,
}

impl Session {
    /// Returns the planned trials as data, in the order of the plan.
    pub fn trial_specs(&self, planned: &Planned) -> Vec<TrialSpec> {
        let of_suites = dependencies::of_suites(self, &planned.plan.trials);
        let mut hashes: HashMap<(PathBuf, String), String> = HashMap::new();
        let sandboxes = &planned.plan.settings.sandbox;
        let spec = |trial: &Arc<PlannedTrial>| {
            let written = &*trial.case.source.file;
            let file = normalize(&self.cwd.join(written));
            let hash = hashes
                .entry((trial.file.to_path_buf(), written.to_owned()))
                .or_insert_with(|| self.hash(&file, of_suites.get(&*trial.file)));
            TrialSpec {
                id: trial.id.clone(),
                position: trial.position,
                case: CaseFile { file: shown(&file, &self.project.root), content_hash: hash.clone() },
                arm: (*trial.arm).clone(),
                limits: (*trial.limits).clone(),
                policy: Policy {
                    sandbox: sandboxes.kind.clone(),
                    network: sandboxes.network_of(&trial.case).map(ToString::to_string).unwrap_or_default(),
                    remote: sandboxes.remote_of(&trial.case).to_string(),
                    permission_mode: trial.setup.permission_mode.name().to_owned(),
                },
            }
        };
        planned.plan.trials.iter().map(spec).collect()
    }

    /// Plans `trials`, which another process planned from `spec`. They are the part `shard` of the run.
    ///
    /// # Errors
    /// Returns an error if a trial, its case or a setting differs in this copy of the project.
    pub fn plan_trials(
        &self,
        spec: &RunSpec,
        trials: &[TrialSpec],
        shard: Option<(u64, u64)>,
    ) -> Result<Planned, Error> {
        self.agrees_with(spec)?;
        let mut planned = self.plan(spec)?;
        let here: HashMap<TrialId, TrialSpec> =
            self.trial_specs(&planned).into_iter().map(|trial| (trial.id.clone(), trial)).collect();
        for wanted in trials {
            let Some(found) = here.get(&wanted.id) else {
                return Err(Error::usage(format!("this copy of the project has no trial {}", wanted.id)));
            };
            if let Some(what) = difference(wanted, found) {
                return Err(Error::usage(format!(
                    "this copy of the project differs: {what} of the trial {}",
                    wanted.id
                )));
            }
        }
        let wanted: HashSet<&TrialId> = trials.iter().map(|trial| &trial.id).collect();
        planned.plan.trials.retain(|trial| wanted.contains(&trial.id));
        planned.shard = shard;
        Ok(planned)
    }

    /// Returns the hash of `file` and of the files on which its suite depends. Folders are not part of it: those of
    /// skills have a hash of their own.
    fn hash(&self, file: &Path, dependencies: Option<&Dependencies>) -> String {
        let mut files: Vec<&PathBuf> = dependencies.into_iter().flat_map(Dependencies::paths).collect();
        let own = file.to_owned();
        files.push(&own);
        files.sort_unstable();
        files.dedup();
        let mut all = Sha256::new();
        for file in files {
            if let Some(hash) = hash_of(file) {
                all.update(shown(file, &self.project.root));
                all.update([0]);
                all.update(hash);
            }
        }
        model::text::hex(&all.finalize())
    }
}

/// Returns what differs between two versions of a trial.
fn difference(one: &TrialSpec, other: &TrialSpec) -> Option<&'static str> {
    [
        ("the file", one.case == other.case && one.position == other.position),
        ("the arm", one.arm == other.arm),
        ("the limits", one.limits == other.limits),
        ("the policy", one.policy == other.policy),
    ]
    .into_iter()
    .find_map(|(what, is_same)| (!is_same).then_some(what))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use serde_json::Value;
    use store::TrialFilter;

    use super::*;
    use crate::overrides::Overrides;
    use crate::run::Launch;
    use crate::tests::session_in;

    /// Variable with the folder of the process that runs a part of the trials.
    const FOLDER: &str = "TRIALRUN_SESSION_PART";
    const THIS: &str = "trial_spec::tests::trials_from_files_run_in_another_process_and_make_the_same_record";

    fn project(root: &Path) {
        fs::create_dir_all(root.join("tests")).unwrap();
        fs::write(root.join("trialrun.yaml"), "defaults:\n  agent: fake\n  retries: 0\n").unwrap();
        fs::write(root.join("tests/answers.jsonl"), "{\"input\": \"a\", \"output\": \"b\"}\n").unwrap();
        for name in ["one", "two", "three", "four"] {
            let expected = if name == "three" { "something else" } else { "hello" };
            let assertion = format!("assertions:\n  - contains: {expected}\n");
            let text = format!("scenario: {name}\nsystem_prompt: x\nuser_prompt: say hello\n{assertion}");
            fs::write(root.join(format!("tests/{name}.yaml")), text).unwrap();
        }
    }

    fn run(session: &Session, planned: Planned) -> String {
        let started = session.start(&planned, None).unwrap();
        let id = started.info.id.clone();
        let (_, recorded) = session.run(planned, started, Launch::default()).unwrap();
        assert!(recorded.error.is_none() && recorded.report_errors.is_empty());
        id
    }

    /// Runs the part of the trials in `folder`, with its own copy of the project.
    fn run_part(folder: &Path) {
        project(&folder.join("copy"));
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        let spec: RunSpec = serde_json::from_str(&read("run.json")).unwrap();
        let trials: Vec<TrialSpec> = serde_json::from_str(&read("trials.json")).unwrap();
        let session = session_in(&folder.join("copy"));
        let planned = session.plan_trials(&spec, &trials, Some((2, 2))).unwrap();
        let id = run(&session, planned);
        fs::write(folder.join("id"), id).unwrap();
    }

    /// Returns the records of a run without ids, hashes and times.
    fn records(store: &dyn store::Store, run: &str) -> Vec<Value> {
        let rows = store.trials(&TrialFilter::of_run(run)).unwrap();
        let record = |row: &model::TrialRow| {
            let mut record = serde_json::to_value(store.trial(run, &row.id).unwrap()).unwrap();
            forget_times(&mut record);
            record
        };
        let mut records: Vec<Value> = rows.iter().map(record).collect();
        records.sort_by_key(|record| record["id"].to_string());
        records
    }

    fn forget_times(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, _| !name.ends_with("_ms") && !name.ends_with("_at") && name != "phases");
                fields.values_mut().for_each(forget_times);
            }
            Value::Array(items) => items.iter_mut().for_each(forget_times),
            _ => {}
        }
    }

    #[test]
    fn trials_from_files_run_in_another_process_and_make_the_same_record() {
        if let Some(folder) = std::env::var_os(FOLDER) {
            return run_part(Path::new(&folder));
        }
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let whole = root.join("whole");
        project(&whole);
        let session = session_in(&whole);
        let mut overrides = Overrides::default();
        overrides.arms.trials = Some(model::Trials::Fixed(2));
        overrides.schedule.jobs = Some(2);
        let spec = session.resolve(&overrides).unwrap();
        let planned = session.plan(&spec).unwrap();
        let trials = session.trial_specs(&planned);
        assert_eq!(trials.len(), 8);
        let one_process = run(&session, planned);

        let (other, ours): (Vec<TrialSpec>, Vec<TrialSpec>) = trials.into_iter().partition(|trial| trial.position >= 2);
        fs::write(root.join("run.json"), session.spec_to_json(&spec).unwrap()).unwrap();
        fs::write(root.join("trials.json"), serde_json::to_string(&other).unwrap()).unwrap();
        let mut worker = Command::new(std::env::current_exe().unwrap());
        let worker =
            worker.args(["--exact", THIS, "--nocapture"]).env(FOLDER, &root).current_dir("/").output().unwrap();
        assert!(worker.status.success(), "{}", String::from_utf8_lossy(&worker.stderr));
        let here = root.join("here");
        project(&here);
        let session_here = session_in(&here);
        let ours = run(&session_here, session_here.plan_trials(&spec, &ours, Some((1, 2))).unwrap());

        let mut shards = store::open(&root.join("shards.db").as_path().into(), &crate::owner()).unwrap();
        let theirs = fs::read_to_string(root.join("id")).unwrap();
        for (copy, run) in [("here", &ours), ("copy", &theirs)] {
            let store = store::open_existing(&root.join(copy).join("state/runs.db").as_path().into()).unwrap().unwrap();
            let mut archive = Vec::new();
            store::export(&*store, run, &mut archive).unwrap();
            store::import(&mut *shards, &archive[..]).unwrap();
        }
        let mut target = session.open_store().unwrap();
        let merged = store::merge(&*shards, &[ours, theirs], &mut *target, "merged", None).unwrap();
        assert_eq!((merged.planned, merged.missing), (8, vec![]));
        assert_eq!(records(&*target, "merged"), records(&*target, &one_process));
        let [together, apart] = ["merged", &one_process].map(|run| target.info(run).unwrap());
        assert_eq!(together.settings, apart.settings);
    }

    #[test]
    fn another_version_of_a_case_or_a_setting_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        project(&root);
        let session = session_in(&root);
        let spec = session.resolve(&Overrides::default()).unwrap();
        let trials = session.trial_specs(&session.plan(&spec).unwrap());
        let refusal = || {
            let refused = session_in(&root).plan_trials(&spec, &trials, None);
            refused.err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(refusal(), "");
        fs::write(root.join("tests/one.yaml"), "scenario: one\nsystem_prompt: y\nuser_prompt: say hello\n").unwrap();
        assert!(refusal().contains("differs: the file of the trial one::"), "{}", refusal());
        fs::write(root.join("trialrun.yaml"), "defaults:\n  agent: fake\n  retries: 3\n").unwrap();
        assert!(refusal().contains("`retries` is 3 here and 0 in the run"), "{}", refusal());
    }
}
