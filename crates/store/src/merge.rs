//! Merges the runs of all shards of a plan into one run, as if the plan had been run as a whole.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use model::{Envelope, Event, Invocation, MissingShards, RunInfo, SETTINGS_WITHOUT_EFFECT, Shard, Summary, TrialId};

use crate::{Store, StoreError, StoredEvent};

/// A merged run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// Number of planned trials.
    pub planned: usize,
    /// Number of shards into which the plan was split.
    pub of: u64,
    /// Numbers of the shards that are missing.
    pub missing: Vec<u64>,
}

/// Reason why runs cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The record cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A run has a complete plan.
    #[error("run {0} is not a shard: it has a whole plan")]
    NotAShard(String),
    /// Two runs are not shards of the same plan.
    #[error("runs {one} and {other} cannot be merged: {reason}")]
    Different {
        /// Id of one run.
        one: String,
        /// Id of the other run.
        other: String,
        /// Difference.
        reason: String,
    },
}

/// A run to merge.
struct Part {
    info: RunInfo,
    shard: Shard,
    end: Option<(u64, Option<String>)>,
    duration_ms: u64,
    has_chain: bool,
}

/// Merges `runs` in `source`, which are shards of one plan, into the new run `id` in `target`. If `label` is absent,
/// the run gets the label that all shards have in common.
///
/// # Errors
/// Returns an error if they are not shards of one plan, or a record cannot be used. In that case nothing is added to
/// `target`.
pub fn merge(
    source: &dyn Store,
    runs: &[String],
    target: &mut dyn Store,
    id: &str,
    label: Option<String>,
) -> Result<Merged, MergeError> {
    let mut parts = runs.iter().map(|run| part(source, run)).collect::<Result<Vec<Part>, _>>()?;
    parts.sort_by_key(|part| part.shard.index);
    for pair in parts.windows(2) {
        if let Some(reason) = difference(&pair[0], &pair[1]) {
            let [one, other] = [&pair[0], &pair[1]].map(|part| part.info.id.clone());
            return Err(MergeError::Different { one, other, reason });
        }
    }
    let Some(first) = parts.first() else { return Err(StoreError::Select(crate::SelectError::NoRuns).into()) };
    let of = first.shard.of;
    let missing: Vec<u64> = (1..=of).filter(|index| parts.iter().all(|part| part.shard.index != *index)).collect();
    let trials = in_order(&parts)?;
    let mut info = info(&parts, &trials, id, label);
    info.missing_shards = (!missing.is_empty()).then(|| MissingShards { missing: missing.clone(), of });
    let planned = info.trials.len();
    let mut copy = Copy { target, run: id.into(), seq: 0, batch: Vec::new() };
    let written = write(source, &parts, &trials, info, &mut copy).and_then(|()| {
        // Copying a run that was recorded without a chain must not make it look verified.
        if parts.iter().all(|part| part.has_chain) { Ok(()) } else { target.remove_chain(id) }
    });
    match written {
        Ok(()) => Ok(Merged { planned, of, missing }),
        Err(error) => {
            // The first error is the one to report.
            let _ = target.remove(id);
            Err(error.into())
        }
    }
}

fn part(source: &dyn Store, run: &str) -> Result<Part, MergeError> {
    let info = source.info(run)?;
    let shard = info.shard.clone().ok_or_else(|| MergeError::NotAShard(run.to_owned()))?;
    let row = source.select(run)?;
    let (duration_ms, has_chain) = (row.duration_ms.unwrap_or(0), row.hash.is_some());
    Ok(Part { info, shard, end: row.duration_ms.map(|ms| (ms, row.signal)), duration_ms, has_chain })
}

/// Returns the reason if two runs are not different shards of one plan.
fn difference(one: &Part, other: &Part) -> Option<String> {
    let Shard { index, of, .. } = one.shard;
    if of != other.shard.of {
        return Some(format!("their plans were split into {of} and {} shards", other.shard.of));
    }
    if index == other.shard.index {
        return Some(format!("both are shard {index} of {of}"));
    }
    for (name, value) in &one.info.settings {
        if !SETTINGS_WITHOUT_EFFECT.contains(&name.as_str()) && other.info.settings.get(name) != Some(value) {
            return Some(format!("the `{name}` setting differs"));
        }
    }
    let mut skills = one.info.skills.iter().flat_map(|skill| other.info.skills.iter().map(move |other| (skill, other)));
    if let Some((skill, _)) = skills.find(|(skill, other)| skill.name == other.name && skill != other) {
        return Some(format!("the `{}` skill differs", skill.name));
    }
    let files = [one, other].map(|part| part.info.invocation.as_ref().map(|invocation| &invocation.suites));
    if let [Some(one), Some(other)] = files
        && let Some((file, _)) = one.iter().find(|(file, hash)| other.get(*file).is_some_and(|other| other != *hash))
    {
        return Some(format!("the file {file} differs"));
    }
    let hashes = one.shard.cases_hash.as_ref().zip(other.shard.cases_hash.as_ref());
    hashes.filter(|(one, other)| one != other).map(|_| {
        "the cases of their whole plans differ, so they belong to different projects, versions or selections".to_owned()
    })
}

/// Returns the trials of all parts in the order of the whole plan, each with the index of its part.
fn in_order(parts: &[Part]) -> Result<Vec<(TrialId, usize)>, MergeError> {
    let mut trials: Vec<(usize, &TrialId, usize)> = Vec::new();
    let mut owners: HashMap<&TrialId, &Part> = HashMap::new();
    let mut arms: HashMap<usize, &str> = HashMap::new();
    let mut compares = false;
    for (index, part) in parts.iter().enumerate() {
        for (id, position) in part.info.trials.iter().zip(&part.shard.positions) {
            if let Some(owner) = owners.insert(id, part) {
                let [one, other] = [owner, part].map(|part| part.info.id.clone());
                return Err(MergeError::Different { one, other, reason: format!("both have the trial {id}") });
            }
            compares |= *arms.entry(*position).or_insert(&id.arm) != &*id.arm;
            trials.push((*position, id, index));
        }
    }
    // The same order as in planning: if arms are compared, every case runs once before any case is repeated.
    trials.sort_by_key(|(position, id, _)| (if compares { id.repetition } else { 0 }, *position));
    Ok(trials.into_iter().map(|(_, id, at)| (id.clone(), at)).collect())
}

fn info(parts: &[Part], trials: &[(TrialId, usize)], id: &str, label: Option<String>) -> RunInfo {
    let first = &parts[0].info;
    let labels: HashSet<&Option<String>> = parts.iter().map(|part| &part.info.label).collect();
    let label = label.or_else(|| first.label.clone().filter(|_| labels.len() == 1));
    let mut info = RunInfo {
        id: id.to_owned(),
        label,
        regrade_of: None,
        started_at: parts.iter().map(|part| part.info.started_at).min().unwrap_or(first.started_at),
        trials: trials.iter().map(|(id, _)| id.clone()).collect(),
        agents: Vec::new(),
        skills: Vec::new(),
        decisions: parts.iter().map(|part| part.info.decisions).sum(),
        jobs: parts.iter().map(|part| part.info.jobs).max().unwrap_or(1),
        invocation: None,
        shard: None,
        ..first.clone()
    };
    // No command starts a merged run, but its test files are known.
    let invocations = parts.iter().filter_map(|part| part.info.invocation.as_ref());
    let mut files = Invocation::default();
    for invocation in invocations {
        files.suites.extend(invocation.suites.clone());
        for (file, depends_on) in &invocation.dependencies {
            files.dependencies.entry(file.clone()).or_default().extend(depends_on.iter().cloned());
        }
    }
    info.invocation = (!files.suites.is_empty()).then_some(files);
    // The agents are in the order in which the trials of the plan first name them.
    let mut seen = HashSet::new();
    for part in trials.iter().filter(|(_, at)| seen.insert(*at)).map(|(_, index)| &parts[*index].info) {
        for agent in &part.agents {
            if !info.agents.contains(agent) {
                info.agents.push(agent.clone());
            }
        }
        for skill in &part.skills {
            if !info.skills.contains(skill) {
                info.skills.push(skill.clone());
            }
        }
    }
    info.skills.sort_by(|one, other| one.name.cmp(&other.name));
    info
}

/// Writes the events of the merged run: its start, the events of the runs themselves, the events of each trial in the
/// order of the plan, and its end if all parts have one.
fn write(
    source: &dyn Store,
    parts: &[Part],
    trials: &[(TrialId, usize)],
    info: RunInfo,
    copy: &mut Copy<'_>,
) -> Result<(), StoreError> {
    let mut last = info.started_at;
    let mut summary = Summary::default();
    copy.add(last, None, None, Event::RunStarted(Box::new(info)))?;
    for part in parts {
        for event in source.events(&part.info.id)? {
            let event = into_envelope(event?)?;
            last = last.max(event.at);
            if event.trial.is_none() && !matches!(event.event, Event::RunStarted(_) | Event::RunFinished { .. }) {
                if let Event::Decided(decision) = &event.event {
                    summary.decide(decision);
                }
                copy.add(event.at, None, None, event.event)?;
            }
        }
    }
    for (id, at) in trials {
        for event in source.trial_events(&parts[*at].info.id, &id.to_string())? {
            let event = into_envelope(event)?;
            if let Event::TrialFinished(record) = &event.event {
                summary.add(record);
            }
            copy.add(event.at, event.trial, event.attempt, event.event)?;
        }
    }
    if parts.iter().all(|part| part.end.is_some()) {
        let duration_ms = parts.iter().map(|part| part.duration_ms).max().unwrap_or(0);
        let signal = parts.iter().find_map(|part| part.end.as_ref()?.1.clone());
        copy.add(last, None, None, Event::RunFinished { summary, duration_ms, signal })?;
    }
    copy.flush()
}

fn into_envelope(event: StoredEvent) -> Result<Envelope, StoreError> {
    event.known().ok_or_else(|| StoreError::Damaged("an event is of another version".to_owned()))
}

/// Writes events to a run and renumbers them.
struct Copy<'a> {
    target: &'a mut dyn Store,
    run: Arc<str>,
    seq: u64,
    batch: Vec<Envelope>,
}

impl Copy<'_> {
    fn add(
        &mut self,
        at: jiff::Timestamp,
        trial: Option<Arc<str>>,
        attempt: Option<u32>,
        event: Event,
    ) -> Result<(), StoreError> {
        self.seq += 1;
        let run = Arc::clone(&self.run);
        self.batch.push(Envelope { v: model::EVENT_VERSION, seq: self.seq, at, run, trial, attempt, event });
        if self.batch.len() >= crate::archive::BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.target.append(&self.batch)?;
        self.batch.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use model::Outcome;

    use super::*;
    use crate::tests::contract::{RunBuilder, id, owner, record, replayed};
    use crate::{RunFilter, Verification};

    const OTHER: &str = "0193a000-0000-7000-8000-000000000002";
    const WHOLE: &str = "0193a000-0000-7000-8000-000000000003";

    /// Records shard `index` of `of`, whose cases are at `positions` in the plan.
    fn shard(store: &mut dyn Store, run: &str, part: (u64, u64), cases: &[(&str, usize)], ends: bool) {
        shard_of(store, run, "ours", part, cases, ends);
    }

    /// The same for the plan with this hash.
    fn shard_of(
        store: &mut dyn Store,
        run: &str,
        plan: &str,
        (index, of): (u64, u64),
        cases: &[(&str, usize)],
        ends: bool,
    ) {
        let mut story = RunBuilder::of(run);
        let names: Vec<&str> = cases.iter().map(|(case, _)| *case).collect();
        let mut events = vec![story.started(&names)];
        if let Event::RunStarted(info) = &mut events[0].event {
            info.settings.insert("state".to_owned(), format!("shard-{index}").into());
            let positions = cases.iter().map(|(_, position)| *position).collect();
            info.shard = Some(Shard { index, of, positions, cases_hash: Some(plan.to_owned()) });
        }
        for name in &names {
            events.extend([story.began(name), story.finished(name, Outcome::Passed)]);
        }
        if ends {
            events.push(story.over(Summary::default()));
        }
        store.append(&events).unwrap();
    }

    fn stores() -> (tempfile::TempDir, Box<dyn Store>, Box<dyn Store>) {
        let folder = tempfile::tempdir().unwrap();
        let open = |name| crate::open(&folder.path().join(name).as_path().into(), &owner(1)).unwrap();
        let [from, to] = ["from", "to"].map(open);
        (folder, from, to)
    }

    const RUN: &str = crate::tests::contract::RUN;

    #[test]
    fn merged_shards_form_the_whole_run_in_any_order() {
        for order in [[RUN, OTHER], [OTHER, RUN]] {
            let (_folder, mut from, mut to) = stores();
            shard(&mut *from, RUN, (1, 2), &[("a", 0), ("c", 2)], true);
            shard(&mut *from, OTHER, (2, 2), &[("b", 1), ("d", 3)], true);
            let merged = merge(&*from, &order.map(str::to_owned), &mut *to, WHOLE, None).unwrap();
            assert_eq!(merged, Merged { planned: 4, of: 2, missing: vec![] });
            let info = to.info(WHOLE).unwrap();
            assert_eq!(info.trials, ["a", "b", "c", "d"].map(id));
            assert_eq!((info.label.as_deref(), info.shard), (Some("nightly"), None));
            let row = to.select(WHOLE).unwrap();
            let passed: Vec<_> = ["a", "b", "c", "d"].map(|case| record(case, Outcome::Passed)).into();
            assert_eq!((row.finished, row.is_interrupted(), row.summary), (4, false, Some(Summary::of(&passed))));
            assert_eq!(to.trial(WHOLE, &id("b").to_string()).unwrap(), record("b", Outcome::Passed));
            assert!(replayed(&*to, WHOLE).iter().map(|event| event.seq).eq(1..=10));
            assert!(matches!(to.verify(WHOLE).unwrap(), Verification::Intact { trials: 4, .. }));
        }
    }

    #[test]
    fn a_merge_lists_missing_shards_and_stays_interrupted_if_one_was() {
        let (_folder, mut from, mut to) = stores();
        shard(&mut *from, RUN, (2, 4), &[("a", 1)], true);
        shard(&mut *from, OTHER, (3, 4), &[("b", 2)], false);
        let merged = merge(&*from, &[RUN.to_owned(), OTHER.to_owned()], &mut *to, WHOLE, Some("all".into())).unwrap();
        assert_eq!(merged.missing, [1, 4]);
        let row = to.select("all").unwrap();
        assert_eq!((row.planned, row.is_interrupted()), (2, true));
        assert_eq!(row.missing_shards, Some(MissingShards { missing: vec![1, 4], of: 4 }));
    }

    #[test]
    fn a_merge_with_a_shard_that_has_no_chain_has_none() {
        let (_folder, mut from, mut to) = stores();
        shard(&mut *from, RUN, (1, 2), &[("a", 0)], true);
        shard(&mut *from, OTHER, (2, 2), &[("b", 1)], true);
        from.remove_chain(OTHER).unwrap();
        merge(&*from, &[RUN.to_owned(), OTHER.to_owned()], &mut *to, WHOLE, None).unwrap();
        assert_eq!(to.verify(WHOLE).unwrap(), Verification::Unchained);
    }

    #[test]
    fn runs_that_are_not_shards_of_one_plan_are_refused() {
        let refused = |one: (u64, u64), other: (u64, u64), cases: [&str; 2]| {
            let (_folder, mut from, mut to) = stores();
            shard(&mut *from, RUN, one, &[(cases[0], 0)], true);
            shard(&mut *from, OTHER, other, &[(cases[1], 1)], true);
            let error = merge(&*from, &[RUN.to_owned(), OTHER.to_owned()], &mut *to, WHOLE, None).unwrap_err();
            assert!(to.runs(&RunFilter::default()).unwrap().is_empty());
            error.to_string()
        };
        assert!(refused((1, 2), (1, 2), ["a", "b"]).ends_with("both are shard 1 of 2"));
        assert!(refused((1, 2), (2, 3), ["a", "b"]).ends_with("their plans were split into 2 and 3 shards"));
        assert!(refused((1, 2), (2, 2), ["a", "a"]).ends_with("both have the trial commit::a@fake#1"));
        let (_folder, mut from, mut to) = stores();
        shard_of(&mut *from, RUN, "ours", (1, 2), &[("a", 0)], true);
        shard_of(&mut *from, OTHER, "theirs", (2, 2), &[("b", 1)], true);
        let error = merge(&*from, &[RUN.to_owned(), OTHER.to_owned()], &mut *to, WHOLE, None).unwrap_err();
        assert!(error.to_string().contains("different projects, versions or selections"), "{error}");
        let (_folder, mut from, mut to) = stores();
        from.append(&[RunBuilder::of(RUN).started(&["a"])]).unwrap();
        let error = merge(&*from, &[RUN.to_owned()], &mut *to, WHOLE, None).unwrap_err();
        assert!(matches!(error, MergeError::NotAShard(run) if run == RUN));
    }
}
