//! Trials as data, from which another process with a copy of the project can run them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Arm, Limits, SkillInfo, TrialId};
use runner::{PlannedTrial, first_of_each_case};
use serde::{Deserialize, Serialize};

use crate::content_hash::{ContentHashes, files_below, files_of_agent};
use crate::dependencies::{self, Dependencies};
use crate::error::Error;
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
    /// Position of its case among all cases that were loaded, from 0; cases that are not selected count too.
    pub position: usize,
    /// Its case.
    pub case: CaseFile,
    /// Skill or sub-agent that the case is about, with the hash of its files.
    pub skill: Option<SkillInfo>,
    /// SHA-256 of the agent's configuration in the project, without secrets, and of the files that it names; `None` if
    /// the project does not configure the agent.
    pub agent_hash: Option<String>,
    /// Agent by name, model and variant.
    pub arm: Arm,
    /// The limits in force.
    pub limits: Limits,
    /// Permissions of its agent.
    pub policy: Policy,
}

/// The file of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseFile {
    /// Path relative to the project's folder.
    pub file: String,
    /// SHA-256 of the file, of the files that it depends on, and of those in folders that are copied to the sandbox.
    pub content_hash: String,
}

/// Permissions of an agent in a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Kind of sandbox.
    pub sandbox: String,
    /// Hosts that it may reach, in the form of the setting.
    pub network: String,
    /// Remote that it pushes to.
    pub remote: String,
    /// Permission mode of the agent.
    pub permission_mode: String,
}

/// Files that several trials share.
type Files = Arc<BTreeSet<PathBuf>>;

/// The trials of a plan as data. What repetitions share is kept once.
pub struct TrialSpecs {
    /// Each case under one arm, as the trial with its first planned repetition.
    cases: HashMap<[Arc<str>; 3], (TrialSpec, Vec<Files>)>,
}

impl TrialSpecs {
    /// Returns the trial with that id, if its case and its arm are planned.
    pub fn get(&self, id: &TrialId) -> Option<TrialSpec> {
        let (of_case, _) = self.of_case(id)?;
        Some(TrialSpec { id: id.clone(), ..of_case.clone() })
    }

    /// Returns the files that must have the same content wherever the trial runs.
    pub fn files(&self, id: &TrialId) -> impl Iterator<Item = &Path> {
        let sets = self.of_case(id).into_iter().flat_map(|(_, files)| files);
        sets.flat_map(|files| files.iter()).map(PathBuf::as_path)
    }

    fn of_case(&self, id: &TrialId) -> Option<&(TrialSpec, Vec<Files>)> {
        self.cases.get(&[&id.suite, &id.case, &id.arm].map(Arc::clone))
    }
}

impl Session {
    /// Returns the planned trials as data.
    pub fn trial_specs(&self, planned: &Planned) -> TrialSpecs {
        let of_suites = dependencies::of_suites(self, &planned.plan.trials);
        let mut hashes = ContentHashes::new(&self.project.root);
        let mut of_cases: HashMap<(PathBuf, PathBuf, Vec<PathBuf>), (String, Files)> = HashMap::new();
        let mut of_agents: HashMap<String, (String, Files)> = HashMap::new();
        let mut of_skills: HashMap<PathBuf, Files> = HashMap::new();
        let mask = self.mask();
        let sandboxes = &planned.plan.settings.sandbox;
        let mut spec = |trial: &PlannedTrial| {
            let written = &*trial.case.source.file;
            let file = normalize(&self.cwd.join(written));
            let copied: Vec<PathBuf> = trial.case.source_folders().map(|folder| self.cwd.join(folder)).collect();
            let key = (trial.file.to_path_buf(), file.clone(), copied);
            let (content_hash, files) = of_cases.entry(key).or_insert_with_key(|(suite, file, copied)| {
                let depends_on = of_suites.get(suite).into_iter().flat_map(Dependencies::paths);
                let copied = copied.iter().flat_map(|folder| files_below(folder));
                let files = depends_on.chain([file]).filter(|path| path.is_file()).cloned().chain(copied);
                let files: BTreeSet<PathBuf> = files.collect();
                (hashes.of_files(files.iter().cloned()), Arc::new(files))
            });
            let (content_hash, mut files) = (content_hash.clone(), vec![Arc::clone(files)]);
            let agent_hash = trial.config.as_ref().map(|config| {
                let (hash, of_agent) = of_agents.entry(config.name.clone()).or_insert_with(|| {
                    let files = files_of_agent(config);
                    (hashes.of_agent(config, &files, &mask), Arc::new(files))
                });
                files.push(Arc::clone(of_agent));
                hash.clone()
            });
            if let Some(folder) = trial.case.subject.skill().and_then(|skill| skill.directory.as_ref()) {
                let of_skill = of_skills.entry(folder.clone()).or_insert_with(|| {
                    let files = suite::skill_files(folder).unwrap_or_default();
                    Arc::new(files.into_iter().map(|(_, path)| path).collect())
                });
                files.push(Arc::clone(of_skill));
            }
            let spec = TrialSpec {
                id: trial.id(),
                position: trial.position,
                case: CaseFile { file: shown(&file, &self.project.root), content_hash },
                skill: trial.skill_info(),
                agent_hash,
                arm: (*trial.arm).clone(),
                limits: (*trial.limits).clone(),
                policy: Policy {
                    sandbox: sandboxes.kind.clone(),
                    network: sandboxes.network_of(&trial.case).map(ToString::to_string).unwrap_or_default(),
                    remote: sandboxes.remote_of(&trial.case).to_string(),
                    permission_mode: trial.setup.permission_mode.name().to_owned(),
                },
            };
            (spec, files)
        };
        let mut cases = HashMap::new();
        for trial in first_of_each_case(&planned.plan.trials) {
            cases.entry(trial.group()).or_insert_with(|| spec(trial));
        }
        TrialSpecs { cases }
    }

    /// Plans all trials of `spec`, which another process resolved, and returns them also as data.
    ///
    /// # Errors
    /// Returns an error if a setting differs in this copy of the project, or if the trials cannot be planned with it.
    pub fn plan_again(&self, spec: &RunSpec) -> Result<(Planned, TrialSpecs), Error> {
        self.agrees_with(spec)?;
        let planned = self.plan(spec)?;
        if let Some(problem) = planned.first_error() {
            return Err(Error::usage(format!("the run cannot be planned with this copy of the project: {problem}")));
        }
        let trials = self.trial_specs(&planned);
        Ok((planned, trials))
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
        let (mut planned, here) = self.plan_again(spec)?;
        let ids: HashSet<TrialId> = planned.plan.trials.iter().map(PlannedTrial::id).collect();
        for wanted in trials {
            let found = here.get(&wanted.id).filter(|_| ids.contains(&wanted.id));
            wanted.agrees_with(found.as_ref())?;
            if found.is_some_and(|found| found.position != wanted.position) {
                return Err(wanted.differs("the position"));
            }
        }
        let wanted: HashSet<&TrialId> = trials.iter().map(|trial| &trial.id).collect();
        planned.plan.trials.retain(|trial| wanted.contains(&trial.id()));
        planned.shard = shard;
        Ok(planned)
    }
}

impl TrialSpec {
    /// Checks that the trial means the same as `here`, the trial with its id in another copy of the project. That copy
    /// may lack other cases, so the position does not count.
    ///
    /// # Errors
    /// Returns an error that names the first part that differs.
    pub fn agrees_with(&self, here: Option<&Self>) -> Result<(), Error> {
        let Some(here) = here else {
            return Err(Error::usage(format!("this copy of the project has no trial {}", self.id)));
        };
        difference(self, here).map_or(Ok(()), |what| Err(self.differs(what)))
    }

    fn differs(&self, what: &str) -> Error {
        Error::usage(format!("this copy of the project differs: {what} of the trial {}", self.id))
    }
}

/// Returns what differs between two versions of a trial.
fn difference(one: &TrialSpec, other: &TrialSpec) -> Option<&'static str> {
    [
        ("the file", one.case == other.case),
        ("the skill", one.skill == other.skill),
        ("the configuration of the agent", one.agent_hash == other.agent_hash),
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
    use std::path::Path;
    use std::process::Command;

    use serde_json::Value;
    use store::TrialFilter;

    use super::*;
    use crate::overrides::Overrides;
    use crate::run::Launch;
    use crate::tests::{session_in, session_with};

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

    /// Returns all planned trials as data, in the order of the plan.
    fn specs(session: &Session, planned: &Planned) -> Vec<TrialSpec> {
        let specs = session.trial_specs(planned);
        planned.plan.trials.iter().map(|trial| specs.get(&trial.id()).unwrap()).collect()
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
        let trials = specs(&session, &planned);
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
        let trials = specs(&session, &session.plan(&spec).unwrap());
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

    /// Files of a project with a skill, a configured agent, and a folder that is copied.
    const CONFIGURED: [(&str, &str); 7] = [
        (
            "trialrun.yaml",
            "agents:\n  mine:\n    type: custom\n    module: ./agent/index.ts\n    options: { key: \"${env.MY_API_KEY}\" }\n\
             defaults:\n  agent: mine\npricing: prices.yaml\n",
        ),
        ("agent/index.ts", "import { answer } from './answer.ts';\nexport const execute = async () => answer;\n"),
        ("agent/answer.ts", "export const answer = 'yes';\n"),
        ("prices.yaml", "{}\n"),
        ("skills/refunds/SKILL.md", "---\nname: refunds\ndescription: Refunds orders.\n---\nRefund it.\n"),
        ("skills/refunds/tests/one.yaml", ONE),
        ("skills/refunds/tests/shop/orders.csv", "1,paid\n"),
    ];

    const ONE: &str = "scenario: one\nskill: refunds\nuser_prompt: refund order 1\nfixtures:\n  copy_trees:\n    - from: shop\n\
                       assertions:\n  - contains: yes\n";

    #[test]
    fn a_copy_with_another_skill_agent_or_configuration_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let [one, other] = ["one", "other"].map(|name| root.join(name));
        for (copy, (file, text)) in [&one, &other].iter().flat_map(|copy| CONFIGURED.map(|file| (copy, file))) {
            fs::create_dir_all(copy.join(file).parent().unwrap()).unwrap();
            fs::write(copy.join(file), text).unwrap();
        }
        let session = session_with(&one, &[("MY_API_KEY", "sk-proj-4f9a7c1e2b8d6053")]);
        let spec = session.resolve(&Overrides::default()).unwrap();
        let planned = session.plan(&spec).unwrap();
        assert_eq!(planned.diagnostics, []);
        let trials = specs(&session, &planned);
        let refusal = || {
            let other = session_with(&other, &[("MY_API_KEY", "sk-proj-0a1b2c3d4e5f6071")]);
            other.plan_trials(&spec, &trials, None).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(refusal(), "", "the folder and the key may differ");
        for (file, text, expected) in [
            ("skills/refunds/notes.md", "Ask first.", "the skill of the trial"),
            ("agent/answer.ts", "export const answer = 'no';", "the configuration of the agent of the trial"),
            ("skills/refunds/tests/shop/orders.csv", "1,open", "the file of the trial"),
            ("prices.yaml", "# none\n{}\n", "prices.yaml is not that of the run"),
        ] {
            let before = fs::read_to_string(other.join(file)).ok();
            fs::write(other.join(file), text).unwrap();
            assert!(refusal().contains(expected), "{file}: {}", refusal());
            match before {
                Some(before) => fs::write(other.join(file), before).unwrap(),
                None => fs::remove_file(other.join(file)).unwrap(),
            }
        }
    }

    #[test]
    fn settings_of_another_version_or_machine_are_compared_by_name() {
        let folder = tempfile::tempdir().unwrap();
        project(folder.path());
        let session = session_in(folder.path());
        let spec = serde_json::to_value(session.resolve(&Overrides::default()).unwrap()).unwrap();
        let agreement = |change: &dyn Fn(&mut Vec<Value>)| {
            let mut spec = spec.clone();
            change(spec["rows"].as_array_mut().unwrap());
            let spec: RunSpec = serde_json::from_value(spec).unwrap();
            session.agrees_with(&spec).map_err(|error| error.to_string())
        };
        let set = |rows: &mut Vec<Value>, name: &str, value: Value| {
            rows.iter_mut().filter(|row| row["name"] == name).for_each(|row| row["value"] = value.clone());
        };
        assert_eq!(agreement(&|rows| rows.reverse()), Ok(()));
        for name in ["jobs", "state", "tests"] {
            assert_eq!(agreement(&|rows| set(rows, name, "other".into())), Ok(()), "{name}");
        }
        let refused = |change: &dyn Fn(&mut Vec<Value>)| agreement(change).unwrap_err();
        assert!(refused(&|rows| set(rows, "retries", 9.into())).contains("`retries` is 0 here and 9 in the run"));
        let is_unknown = refused(&|rows| set(rows, "seed", Value::Null));
        assert!(is_unknown.contains("`seed`"), "{is_unknown}");
        let older = refused(&|rows| rows.retain(|row| row["name"] != "retries"));
        assert!(older.contains("`retries` is not a setting of the version"), "{older}");
        let newer = refused(&|rows| rows[0]["name"] = "new".into());
        assert!(newer.contains("this version") || newer.contains("the version"), "{newer}");
    }

    #[test]
    fn failures_of_an_earlier_run_are_part_of_the_specification() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        project(&root);
        let session = session_in(&root);
        let mut overrides = Overrides::default();
        overrides.output.label = Some("nightly".to_owned());
        for _ in 0..2 {
            run(&session, session.plan(&session.resolve(&overrides).unwrap()).unwrap());
        }
        overrides.selection.failed_in = Some("nightly".to_owned());
        let spec = session.resolve(&overrides).unwrap();
        assert!(spec.notes()[0].starts_with("2 runs have the label `nightly`; "), "{:?}", spec.notes());
        let mut overrides = Overrides::default();
        overrides.selection.last_failed = true;
        let spec = session.resolve(&overrides).unwrap();
        // Another machine has no record, and the one here has a newer run.
        fs::remove_dir_all(root.join("state")).unwrap();
        let spec: RunSpec = serde_json::from_str(&session.spec_to_json(&spec).unwrap()).unwrap();
        let planned = session.plan(&spec).unwrap();
        let cases: Vec<&str> = planned.plan.trials.iter().map(|trial| &*trial.case_id).collect();
        assert_eq!(cases, ["three"]);
    }
}
