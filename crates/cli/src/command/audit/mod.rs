//! `trialrun audit`.

mod hack;
mod text;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use audit::{Audit, AuditBuilder, Cause, Hack, Verdict, mutants};
use model::{Diagnostic, Outcome, TrialRecord};
use runner::{Archive, Listener, RecordedEvidence};
use session::overrides::{parse_jobs, parse_share};
use session::{Overrides, Session, unrecorded};
use store::{RunFilter, Store, TrialFilter};

use crate::adversaries::{AdversaryTrials, Records};
use crate::error::CliError;
use crate::global::Global;
use crate::terminal::Terminal;
use crate::{exit, limits, place};

/// Number of recent runs that are searched for good trials.
const SEARCHED: usize = 20;

/// Arguments of `audit`.
#[derive(Debug, clap::Args)]
pub struct AuditArgs {
    /// Files, directories or skills to audit [default: all skills of the project, `scenarios` and `tests`]
    #[arg(value_name = "PATH|SKILL")]
    targets: Vec<String>,
    /// Audit only cases with this id
    #[arg(long = "case", value_name = "ID")]
    cases: Vec<String>,
    /// Audit only cases with this tag
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Exit with 1 if the score, from 0 to 1, is lower than this, even without errors
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    min_score: Option<f64>,
    /// Do not mutate recorded trials
    #[arg(long)]
    no_recorded: bool,
    /// Also run each case with an agent that is told to pass without doing the work
    #[arg(long)]
    hack: bool,
    /// Agent for `--hack` [default: those of the cases]
    #[arg(long, short_alias = 'a', value_name = "NAME", requires = "hack")]
    agent: Vec<String>,
    /// Model of that agent [default: those of the cases]
    #[arg(long, short, value_name = "[AGENT=]MODEL", requires = "hack")]
    model: Vec<String>,
    /// Folder for scripted models that repeat successful attempts of `--hack`
    #[arg(long, value_name = "DIR", default_value = "hacks", requires = "hack")]
    keep: PathBuf,
    /// Sandboxes in which the agents work
    #[arg(long, value_name = "NAME")]
    sandbox: Option<String>,
    /// Number of trials to run in parallel [default: the number of cores]
    #[arg(long, short, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<usize>,
    /// Show what made each assertion fail, and the mutations that no assertion noticed
    #[arg(long, short)]
    verbose: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs all cases with adversaries, grades mutations of good trials, and reports the weaknesses of the suites.
pub fn run(global: &Global, args: &AuditArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    limits::raise_open_files();
    let mut run_args = Overrides { targets: args.targets.clone(), ..Overrides::default() };
    run_args.selection.cases.clone_from(&args.cases);
    run_args.selection.tags.clone_from(&args.tags);
    run_args.arms.trials = Some(model::Trials::Fixed(1));
    run_args.arms.no_baseline = true;
    run_args.schedule.jobs = args.jobs;
    run_args.sandboxes.sandbox.clone_from(&args.sandbox);
    run_args.adversaries = true;
    let (context, spec) = place::resolve(global, &run_args)?;
    let mut planned = context.plan(&spec)?;
    let problems: Vec<Diagnostic> = planned.diagnostics.iter().filter(|one| one.is_error()).cloned().collect();
    if !problems.is_empty() {
        terminal.diagnostics(&problems);
        return Ok(ExitCode::from(exit::INVALID));
    }
    if planned.plan.trials.is_empty() {
        return Err(planned.nothing_selected());
    }
    terminal.diagnostics(&context.check(&mut planned)?);
    let adversaries = AdversaryTrials::of(planned);
    let plan = &adversaries.planned().plan;
    let good = match args.no_recorded {
        true => Vec::new(),
        false => good_trials(&context, plan)?,
    };
    let immutable = if args.no_recorded { BTreeSet::new() } else { immutable(plan, &good) };
    let (jobs, info) = (plan.settings.jobs, context.info(adversaries.planned(), None));
    let (mut builder, mut stopped) = unrecorded(jobs, place::SIGNALS, |controls| adversaries.run(&context, controls))?;
    for (suite, case, reason) in immutable {
        builder.does_not_mutate(&suite, &case, reason);
    }
    if stopped.is_none() && !good.is_empty() {
        let mutations = Mutations::of(&good);
        let regrade = context.plan_regrade(spec, mutations.records(), &[])?.regrade;
        let archive: Arc<dyn Archive> = Arc::new(mutations.evidence());
        let info = model::RunInfo { trials: regrade.ids(), ..info };
        let records = Arc::new(Records::default());
        let listener: Arc<dyn Listener> = Arc::clone(&records) as _;
        let (jobs, host) = (regrade.settings().jobs, Arc::clone(&context.host));
        let end = unrecorded(jobs, place::SIGNALS, |controls| {
            runner::regrade(regrade, host, info, controls, listener, archive)
        })?;
        stopped = end.stopped_by;
        mutations.enter(&mut builder, records.take());
    }
    if let Some(reason) = stopped {
        return Ok(ExitCode::from(exit::of_stop(&reason)));
    }
    let mut audit = builder.finish();
    if args.hack {
        let hacks = match hack::run(&context, args, terminal)? {
            Ok(hacks) => hacks,
            Err(problems) => {
                terminal.diagnostics(&problems);
                return Ok(ExitCode::from(exit::INVALID));
            }
        };
        if let Some(reason) = hacks.stopped {
            return Ok(ExitCode::from(exit::of_stop(&reason)));
        }
        audit.weaknesses.splice(0..0, hacks.weaknesses);
        audit.hacks = hacks.hacks;
    }
    if args.json {
        terminal.json(&audit);
    } else {
        let found: Vec<Diagnostic> = audit.weaknesses.iter().map(|weakness| weakness.diagnostic.clone()).collect();
        terminal.diagnostics(&found);
        terminal.out(&text::text(&audit, args.verbose));
    }
    Ok(ExitCode::from(code(&audit, args.min_score)))
}

/// A good trial: its record and its evidence.
struct GoodTrial {
    record: TrialRecord,
    evidence: RecordedEvidence,
}

/// Returns the newest recorded trial that passed, for each case whose assertions can be graded again.
fn good_trials(context: &Session, plan: &runner::Plan) -> Result<Vec<GoodTrial>, CliError> {
    let Some(store) = context.find_store()? else { return Ok(Vec::new()) };
    let is_gradable = |trial: &&runner::PlannedTrial| trial.case.code.is_none() && !trial.case.ruling.not;
    let mut open: BTreeSet<(String, String)> = plan
        .trials
        .iter()
        .filter(is_gradable)
        .map(|trial| (trial.suite.to_string(), trial.case_id.to_string()))
        .collect();
    let mut good = Vec::new();
    for run in store.runs(&RunFilter { last: Some(SEARCHED), ..RunFilter::default() })? {
        if open.is_empty() {
            break;
        }
        for row in store.trials(&TrialFilter::of_run(&run.id))? {
            let is_good = row.outcome == Outcome::Passed && row.variant.as_deref() != Some(model::WITHOUT_SKILL);
            if is_good && open.remove(&(row.suite.clone(), row.case.clone())) {
                good.push(good_trial(&*store, &run.id, &row.id)?);
            }
        }
    }
    Ok(good)
}

fn good_trial(store: &dyn Store, run: &str, id: &str) -> Result<GoodTrial, CliError> {
    let record = store.trial(run, id)?;
    Ok(GoodTrial { record, evidence: super::regrade::last_attempt(store.trial_events(run, id)?) })
}

/// Mutations of good trials. Each is graded like a recorded trial.
struct Mutations(Vec<Mutation>);

/// One mutation, or an unchanged good trial.
struct Mutation {
    by: Cause,
    record: TrialRecord,
    evidence: RecordedEvidence,
}

impl Mutations {
    fn of(good: &[GoodTrial]) -> Self {
        let mut mutations = Vec::new();
        for GoodTrial { record, evidence } in good {
            let mut add = |by: Cause, evidence: RecordedEvidence, agent_ms| {
                let id = format!("{}~{}", record.id, mutations.len()).into();
                mutations.push(Mutation { by, record: TrialRecord { id, agent_ms, ..record.clone() }, evidence });
            };
            add(Cause::Good, evidence.clone(), record.agent_ms);
            for mutant in mutants(&evidence.steps, evidence.collected.as_ref(), record.agent_ms) {
                let changed = RecordedEvidence { steps: mutant.steps, collected: mutant.collected, ..evidence.clone() };
                add(Cause::Mutation(mutant.name), changed, mutant.agent_ms);
            }
        }
        Self(mutations)
    }

    fn records(&self) -> Vec<TrialRecord> {
        self.0.iter().map(|mutation| mutation.record.clone()).collect()
    }

    fn evidence(&self) -> Mutated {
        Mutated(self.0.iter().map(|one| (one.record.id.to_string(), one.evidence.clone())).collect())
    }

    /// Adds the verdicts, in the order of the mutations. A case whose good trial no longer passes gets no verdicts:
    /// its mutations would show nothing. A judge is not asked, so its assertions may stay undecided.
    fn enter(self, builder: &mut AuditBuilder, records: Vec<TrialRecord>) {
        let mut records: HashMap<String, TrialRecord> =
            records.into_iter().map(|record| (record.id.to_string(), record)).collect();
        let mut still_good = false;
        for Mutation { by, record, .. } in self.0 {
            let Some(graded) = records.remove(&*record.id) else { continue };
            if by == Cause::Good {
                still_good = graded.outcome == Outcome::Passed || graded.passed_but_for().is_some();
                match still_good {
                    true => builder.mutates(&record.suite, &record.case, original(&record.id)),
                    false => {
                        let reason = graded.reason.as_deref().unwrap_or("it is not known why");
                        let reason = format!("its recorded trial does not pass without a judge or any more: {reason}");
                        builder.does_not_mutate(&record.suite, &record.case, &reason);
                    }
                }
            } else if still_good {
                builder.add_verdict(&record.suite, &record.case, Verdict::of(by, graded));
            }
        }
    }
}

/// Returns the id of the recorded trial from that of its mutation.
fn original(id: &str) -> &str {
    id.rsplit_once('~').map_or(id, |(original, _)| original)
}

/// Returns the cases of which no recorded trial can be mutated, with the reason.
fn immutable(plan: &runner::Plan, good: &[GoodTrial]) -> BTreeSet<(String, String, &'static str)> {
    let is_good = |trial: &runner::PlannedTrial| {
        good.iter().any(|good| (&good.record.suite, &good.record.case) == (&trial.suite, &trial.case_id))
    };
    let reason = |trial: &runner::PlannedTrial| match (&trial.case.code, trial.case.ruling.not) {
        (Some(_), _) => "tests as code are not graded again",
        (None, true) => "it has `not`",
        (None, false) => "no passing trial is recorded; `trialrun run` records trials",
    };
    let without = plan.trials.iter().filter(|trial| !is_good(trial));
    without.map(|trial| (trial.suite.to_string(), trial.case.id.clone(), reason(trial))).collect()
}

/// Evidence by trial id.
struct Mutated(HashMap<String, RecordedEvidence>);

impl Archive for Mutated {
    fn read(&self, trial: &str) -> Result<RecordedEvidence, String> {
        self.0.get(trial).cloned().ok_or_else(|| format!("there is no trial `{trial}`"))
    }
}

fn code(audit: &Audit, min_score: Option<f64>) -> u8 {
    let is_low = min_score.zip(audit.score).is_some_and(|(least, score)| score < least);
    if is_low || audit.weaknesses.iter().any(|weakness| weakness.diagnostic.is_error()) {
        return exit::FAILED;
    }
    let cases = || audit.suites.iter().flat_map(|suite| &suite.cases);
    // Skipped cases are not run either.
    let is_missing = cases().any(|case| case.not_audited.as_ref().is_some_and(|reason| !reason.starts_with("skipped")));
    let is_broken = |hack: &Hack| hack.outcome.is_error();
    if is_missing || audit.hacks.iter().any(is_broken) {
        exit::INCOMPLETE
    } else if audit.score.is_none() && audit.hacks.is_empty() {
        exit::NOTHING
    } else {
        exit::PASSED
    }
}
