//! `trialrun calibrate`.

mod labels;
mod worksheet;

use std::collections::{BTreeMap, HashMap};
use std::fs::Permissions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use model::{
    CalibratedQuestion, Calibration, Diagnostic, Disagreement, Finding, Judgement, RunRow, Status, TrialRecord,
};
use report::counted;
use store::{Store, TrialFilter};
use tempfile::NamedTempFile;

use self::labels::{Label, Labels};
use crate::error::CliError;
use crate::exit;
use crate::global::Global;
use crate::named_run::named_run;
use crate::place;
use crate::terminal::Terminal;
use session::overrides::parse_share;
use session::{Session, shown};

/// Number of trials in memory at the same time.
const READ_AT_ONCE: usize = 200;

/// Arguments of `calibrate`.
#[derive(Debug, clap::Args)]
pub struct CalibrateArgs {
    /// Table of labels: CSV, TSV, JSON lines, JSON or YAML, with the columns `run`, `trial`, `assertion` and `label`
    /// (`met` or `unmet`)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write the judged assertions of this run to FILE (CSV or JSON lines), to label them
    #[arg(long, value_name = "RUN", conflicts_with_all = ["run", "min_kappa", "output", "json"])]
    export: Option<String>,
    /// Number of judged assertions to write, chosen at random [default: all]
    #[arg(long, value_name = "N", requires = "export", value_parser = clap::value_parser!(u32).range(1..))]
    sample: Option<u32>,
    /// Seed for the choice
    #[arg(long, value_name = "N", requires = "export", default_value_t = 0)]
    seed: u64,
    /// Replace an existing FILE
    #[arg(long, requires = "export")]
    force: bool,
    /// Compare with the judgements of this run, which graded the labelled run again [default: the labelled run]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Exit with 1 if κ may be below this value: its lower limit counts [default: the project's, otherwise 0.4 if the
    /// result is for `judge.calibration`]
    #[arg(long, value_name = "K", value_parser = parse_share)]
    min_kappa: Option<f64>,
    /// Also write the JSON to this file, for `judge.calibration` in the configuration
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Compares a judge with human labels, or writes a table for a human to label.
pub fn run(global: &Global, args: &CalibrateArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let context = place::open(global, &[])?;
    if let Some(run) = &args.export {
        return export(&context, args, run, terminal);
    }
    let path = context.cwd.join(&args.file);
    let labels = match labels::read(&path, &shown(&path, &context.cwd)) {
        Ok(labels) => labels,
        Err(problems) => return Ok(refuse(&problems, terminal)),
    };
    if labels.rows.is_empty() {
        return Err(CliError::usage(format!("{} has no labels", args.file.display()))
            .hint("write `met` or `unmet` into the column `label`"));
    }
    let store = context.read_store()?;
    let mut comparison = Comparison::new(&*store, args.run.as_deref(), terminal)?;
    for label in &labels.rows {
        comparison.add(label)?;
    }
    if !comparison.problems.is_empty() {
        return Ok(refuse(&comparison.problems, terminal));
    }
    let calibration = comparison.finish(&labels)?;
    let json = report::calibration_json(&calibration);
    if let Some(output) = &args.output {
        let text = serde_json::to_string_pretty(&json).unwrap_or_default() + "\n";
        write_file(&context.cwd.join(output), true, |file| file.write_all(text.as_bytes()))
            .map_err(|error| unwritten(output, &error))?;
    }
    if args.json {
        terminal.json(&json);
    } else {
        terminal.out(&report::calibration(&calibration, &terminal.out_style));
    }
    let judge = &context.project.judge;
    let configured = judge.min_kappa.as_ref().map(|set| set.value);
    // A run refuses what is below its default.
    let gates_runs = args.output.is_some() || judge.calibration.is_some();
    let least = args.min_kappa.or(configured).or(gates_runs.then_some(session::settings::calibration::MIN_KAPPA));
    let shortfall = least.and_then(|least| calibration.shortfall(least));
    if let Some(reason) = &shortfall {
        terminal.err(&format!("the judge fails the calibration: {reason}\n"));
    }
    Ok(ExitCode::from(if shortfall.is_some() { exit::FAILED } else { exit::PASSED }))
}

fn refuse(problems: &[Diagnostic], terminal: &Terminal) -> ExitCode {
    terminal.diagnostics(problems);
    ExitCode::from(exit::INVALID)
}

/// Writes a run's judged assertions to a table for a human to label.
fn export(context: &Session, args: &CalibrateArgs, run: &str, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let format = worksheet::Format::of(&args.file)?;
    let path = context.cwd.join(&args.file);
    if path.symlink_metadata().is_ok() && !args.force {
        return Err(CliError::usage(format!("{} exists", args.file.display()))
            .hint("it may contain labels; `--force` replaces it"));
    }
    let store = context.read_store()?;
    let run = named_run(&*store, run, terminal)?;
    let mut rows = Vec::new();
    let mut judged_trials = Vec::new();
    each_record(&*store, &run.id, |record| {
        let is_judged = record.findings.iter().any(|finding| finding.judgement.is_some());
        judged_trials.extend(is_judged.then(|| record.id.clone()));
    })?;
    for trial in judged_trials {
        let evidence = super::regrade::last_attempt(store.trial_events(&run.id, &trial)?);
        rows.extend(worksheet::rows(&run.id, &store.trial(&run.id, &trial)?, &evidence));
    }
    let judged = rows.len();
    if judged == 0 {
        return Err(CliError::nothing(format!("no judge decided an assertion in the run {}", run.short)));
    }
    if let Some(count) = args.sample {
        rows = worksheet::sample(rows, usize::try_from(count).unwrap_or(usize::MAX), args.seed);
    }
    write_file(&path, args.force, |file| worksheet::write(&rows, format, file))
        .map_err(|error| unwritten(&args.file, &error))?;
    let written = match rows.len() {
        count if count == judged => counted(count, "judged assertion"),
        count => format!("{count} of {}", counted(judged, "judged assertion")),
    };
    let file = args.file.display();
    terminal.out(&format!(
        "Wrote {written} to {file}. Write `met` or `unmet` into the column `label`, then run\n  trialrun calibrate {file}\n"
    ));
    Ok(ExitCode::SUCCESS)
}

/// Compares labels with recorded judgements.
struct Comparison<'s> {
    store: &'s dyn Store,
    terminal: &'s Terminal,
    /// Run whose judgements are compared, if it is not the labelled run, and the ids of the runs that it regraded.
    other: Option<(RunRow, Vec<String>)>,
    /// Runs by the id that the table uses.
    runs: HashMap<Option<String>, RunRow>,
    records: HashMap<(String, String), Option<TrialRecord>>,
    /// Calibrations by judge and prompt version.
    judges: BTreeMap<(String, String), Calibration>,
    undecided: u64,
    problems: Vec<Diagnostic>,
}

impl<'s> Comparison<'s> {
    fn new(store: &'s dyn Store, other: Option<&str>, terminal: &'s Terminal) -> Result<Self, CliError> {
        let other = match other {
            None => None,
            Some(named) => {
                let run = named_run(store, named, terminal)?;
                let mut graded = vec![run.id.clone()];
                // The chain ends at a run that was removed.
                while let Some(earlier) = graded.last().and_then(|last| store.info(last).ok()?.regrade_of)
                    && !graded.contains(&earlier)
                {
                    graded.push(earlier);
                }
                Some((run, graded))
            }
        };
        let (runs, records, judges) = (HashMap::new(), HashMap::new(), BTreeMap::new());
        Ok(Self { store, terminal, other, runs, records, judges, undecided: 0, problems: Vec::new() })
    }

    /// Counts one label, or adds a problem.
    fn add(&mut self, label: &Label) -> Result<(), CliError> {
        let wrong = |message: String| Diagnostic::error(message).at(label.source.clone());
        let Some(run) = self.run(label)? else { return Ok(()) };
        let key = (run.id.clone(), label.trial.clone());
        if !self.records.contains_key(&key) {
            let is_known =
                self.store.trials(&TrialFilter::of_run(&run.id))?.iter().any(|trial| trial.id == label.trial);
            let record = if is_known { Some(self.store.trial(&run.id, &label.trial)?) } else { None };
            self.records.insert(key.clone(), record);
        }
        let Some(Some(record)) = self.records.get(&key) else {
            let trials = self.store.trials(&TrialFilter::of_run(&run.id))?;
            let near = model::nearest(&label.trial, trials.iter().map(|trial| trial.id.as_str()));
            let problem = wrong(format!("the run {} has no finished trial `{}`", run.short, label.trial));
            self.problems.push(problem.suggest(near));
            return Ok(());
        };
        let Some(finding) = record.findings.iter().find(|finding| finding.id == label.assertion) else {
            let ids = record.findings.iter().filter(|finding| finding.judged).map(|finding| finding.id.as_str());
            let problem = wrong(format!("{} has no assertion `{}`", label.trial, label.assertion));
            self.problems.push(problem.suggest(model::nearest(&label.assertion, ids)));
            return Ok(());
        };
        match (&finding.judgement, finding.status) {
            (Some(judgement), Status::Met | Status::Unmet) => {
                let key = (judgement.judge.clone(), judgement.prompts.clone());
                let new = || Calibration::of_judge(&judgement.judge, &judgement.prompts);
                let calibration = self.judges.entry(key).or_insert_with(new);
                compare(calibration, label, &run.id, finding, judgement);
            }
            (_, Status::Undecided) if finding.judged => self.undecided += 1,
            _ => {
                let message = format!("no judge decided `{}` of {}", label.assertion, label.trial);
                let help = "records of older versions do not name the judge; `trialrun regrade` judges them again";
                self.problems.push(wrong(message).help(help));
            }
        }
        Ok(())
    }

    /// Returns the run whose judgement is compared with the label, or adds a problem.
    fn run(&mut self, label: &Label) -> Result<Option<RunRow>, CliError> {
        if !self.runs.contains_key(&label.run) {
            let named = label.run.as_deref().unwrap_or("latest");
            let run = match (self.store.select(named), &self.other) {
                // The labelled run may have been removed, but its regrade is enough.
                (Err(_), Some((other, graded))) if graded.iter().any(|id| id == named) => other.clone(),
                (Err(error), _) => {
                    let problem = Diagnostic::error(error.to_string()).at(label.source.clone());
                    self.problems.push(problem);
                    return Ok(None);
                }
                (Ok(run), Some((other, graded))) if graded.contains(&run.id) => other.clone(),
                (Ok(run), Some((other, _))) => {
                    let message = format!("the run {} did not grade the trials of {} again", other.short, run.short);
                    return Err(CliError::usage(message).hint("labels apply only to the labelled run and its regrades"));
                }
                (Ok(_), None) => named_run(self.store, named, self.terminal)?,
            };
            self.runs.insert(label.run.clone(), run);
        }
        Ok(self.runs.get(&label.run).cloned())
    }

    /// Returns the calibration, with the pass rate of all judged assertions in the labelled runs.
    fn finish(self, labels: &Labels) -> Result<Calibration, CliError> {
        let mut judges = self.judges.into_values();
        let mut calibration = judges.next().ok_or_else(|| {
            CliError::nothing("the judge decided none of the labelled assertions")
                .hint("judge them with `trialrun regrade`")
        })?;
        if let Some(second) = judges.next() {
            let name = |of: &Calibration| format!("{} (prompts {})", of.judge, of.prompts);
            let message = format!("the labels are about two judges: {} and {}", name(&calibration), name(&second));
            return Err(CliError::usage(message)
                .hint("grade the run again with one judge, and compare with `--run` and the new run"));
        }
        (calibration.undecided, calibration.unlabelled) = (self.undecided, labels.unlabelled);
        let mut runs: Vec<String> = self.runs.into_values().map(|run| run.id).collect();
        runs.sort();
        runs.dedup();
        for run in &runs {
            each_record(self.store, run, |record| {
                for finding in &record.findings {
                    let is_its = |judgement: &Judgement| {
                        (&judgement.judge, &judgement.prompts) == (&calibration.judge, &calibration.prompts)
                    };
                    let is_decided = finding.status != Status::Undecided;
                    if finding.judgement.as_deref().is_some_and(is_its) && is_decided {
                        calibration.judged += 1;
                        calibration.passed += u64::from(finding.status == Status::Met);
                    }
                }
            })?;
        }
        Ok(calibration)
    }
}

/// Counts a label together with the judgement of the same assertion.
fn compare(calibration: &mut Calibration, label: &Label, run: &str, finding: &Finding, judgement: &Judgement) {
    let judge_met = finding.status == Status::Met;
    let asked = CalibratedQuestion {
        assertion: finding.id.clone(),
        kind: finding.kind.clone(),
        ..CalibratedQuestion::default()
    };
    calibration.add(&judgement.digest, asked, label.is_met, judge_met);
    if label.is_met != judge_met {
        calibration.disagreements.push(Disagreement {
            run: run.to_owned(),
            trial: label.trial.clone(),
            assertion: finding.id.clone(),
            kind: finding.kind.clone(),
            question: judgement.question.clone(),
            human_met: label.is_met,
            note: label.note.clone(),
            because: finding.reason.clone(),
            evidence: finding.evidence.iter().chain(&finding.actual).cloned().collect(),
        });
    }
}

/// Calls `take` for each finished trial of a run.
fn each_record(store: &dyn Store, run: &str, mut take: impl FnMut(&TrialRecord)) -> Result<(), CliError> {
    let mut ids: Vec<String> = store.trials(&TrialFilter::of_run(run))?.into_iter().map(|trial| trial.id).collect();
    ids.sort();
    for part in ids.chunks(READ_AT_ONCE) {
        let part: Vec<&str> = part.iter().map(String::as_str).collect();
        store.records(run, &part)?.iter().for_each(&mut take);
    }
    Ok(())
}

/// Writes a file atomically, so that an interruption cannot leave half of it.
fn write_file(
    path: &Path,
    replaces: bool,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut part = tempfile::Builder::new().permissions(Permissions::from_mode(0o666)).tempfile_in(folder)?;
    let mut out = BufWriter::new(&mut part);
    write(&mut out)?;
    out.flush()?;
    drop(out);
    let persist = if replaces { NamedTempFile::persist } else { NamedTempFile::persist_noclobber };
    persist(part, path).map(drop).map_err(|error| error.error)
}

fn unwritten(file: &Path, error: &std::io::Error) -> CliError {
    CliError::environment(format!("cannot write {}: {error}", file.display()))
}
