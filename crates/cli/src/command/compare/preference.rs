//! `compare --prefer`: asks a judge which side's trials are better, pair by pair.

use std::sync::Arc;

use model::statistics::Chance;
use model::{Diagnostic, Evidence, JudgeSample, PairJudgement};
use report::{Comparison, TrialPair, counted};
use runner::{Control, PairwiseJudging};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;

use super::Side;
use crate::command::regrade::last_attempt;
use crate::error::CliError;
use crate::signals;
use crate::terminal::Terminal;
use session::Session;
use session::overrides::{JudgeArgs, Overrides, parse_judges};

/// The criterion, and the judge.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Preference")]
pub struct PreferenceArgs {
    /// Ask a judge which side's trials are better by this criterion, pair by pair and in both orders; the answer does not
    /// change the exit code
    #[arg(long, value_name = "CRITERION", value_parser = parse_criterion)]
    prefer: Option<String>,
    /// Model that judges, as `provider:model` [default: the project's judge, else the first with a key]
    #[arg(long, value_name = "PROVIDER:MODEL", requires = "prefer")]
    judge: Option<String>,
    #[arg(long, value_name = "URL", requires = "prefer")]
    judge_base_url: Option<String>,
    /// Number of judges per pair and order; the majority decides [default: the project's, else 1]
    #[arg(long, value_name = "N", value_parser = parse_judges, requires = "prefer")]
    judges: Option<u64>,
    /// Judge only some pairs, chosen at random: a number, or a share such as `20%` [default: the project's, else all]
    #[arg(long, value_name = "N|SHARE", requires = "prefer")]
    judge_sample: Option<JudgeSample>,
    /// Earlier judgements: use (`auto`), ignore (`off`), replace (`refresh`), or use for all pairs (`share`) [default:
    /// the project's, else auto]
    #[arg(long, value_name = "MODE", requires = "prefer")]
    judge_cache: Option<model::JudgeCache>,
}

fn parse_criterion(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("a question such as `Which answer is clearer?`".into()),
        text => Ok(text.to_owned()),
    }
}

impl PreferenceArgs {
    /// Opens the judge. Returns `None` if no criterion is given.
    ///
    /// # Errors
    /// Returns an error if the judge cannot be used.
    pub fn open(&self, context: &Session, terminal: &Terminal) -> Result<Option<PairJudge>, CliError> {
        let Some(criterion) = &self.prefer else { return Ok(None) };
        let judging = JudgeArgs {
            judge: self.judge.clone(),
            judge_base_url: self.judge_base_url.clone(),
            judges: self.judges,
            judge_sample: self.judge_sample,
            judge_cache: self.judge_cache,
            ..JudgeArgs::default()
        };
        let spec = context.resolve(&Overrides { judging, ..Overrides::default() })?;
        let settings = context.settings(&spec);
        let (sample, seed) = (settings.judge.sample, settings.arms.seed);
        let mut problems = spec.problems().to_vec();
        let opened = PairwiseJudging::open(settings, &context.script_reader(), Arc::new(context.mask()), &mut problems);
        terminal.diagnostics(&problems);
        let judging = opened.map_err(|reason| match problems.iter().any(Diagnostic::is_error) {
            true => CliError::usage(format!("cannot judge the pairs: {reason}")),
            false => CliError::environment(format!("cannot judge the pairs: {reason}"))
                .hint("`trialrun doctor` shows which models can be used"),
        })?;
        Ok(Some(PairJudge {
            judging: Arc::new(judging),
            criterion: criterion.as_str().into(),
            sample,
            seed,
            terminal: terminal.clone(),
        }))
    }
}

/// The judge of the pairs of comparisons.
pub struct PairJudge {
    judging: Arc<PairwiseJudging>,
    criterion: Arc<str>,
    sample: Option<JudgeSample>,
    seed: u64,
    terminal: Terminal,
}

impl PairJudge {
    /// Adds the judgements of the pairs of `comparison`, whose trials are in `sides`.
    ///
    /// # Errors
    /// Returns an error if the record cannot be read, or if a signal stopped the judge.
    pub fn add_to(&self, comparison: Comparison, sides: &[&Side]) -> Result<Comparison, CliError> {
        let pairs = self.sampled(comparison.trial_pairs());
        let cannot_start = |error: std::io::Error| CliError::environment(format!("cannot start threads: {error}"));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let (sender, controls) = unbounded_channel::<Control>();
        let judged = runtime.map_err(cannot_start)?.block_on(async {
            signals::forward(&sender).map_err(cannot_start)?;
            self.judge(pairs, sides, controls).await
        })?;
        if let Some(problem) = self.judging.cache_problem() {
            self.terminal.err(&format!("warning: {problem}\n"));
        }
        Ok(comparison.with_preferences(&self.criterion, self.judging.name(), judged))
    }

    /// Returns all pairs, or the sample that the settings ask for, in order.
    fn sampled(&self, pairs: &[TrialPair]) -> Vec<TrialPair> {
        let Some(sample) = self.sample else { return pairs.to_vec() };
        let mut chosen: Vec<usize> = (0..pairs.len()).collect();
        Chance::new(self.seed).shuffle(&mut chosen);
        chosen.truncate(sample.of(pairs.len()));
        chosen.sort_unstable();
        chosen.into_iter().filter_map(|index| pairs.get(index).cloned()).collect()
    }

    /// Judges the pairs, several at the same time. Returns them in the same order.
    async fn judge(
        &self,
        pairs: Vec<TrialPair>,
        sides: &[&Side],
        mut controls: UnboundedReceiver<Control>,
    ) -> Result<Vec<(TrialPair, PairJudgement)>, CliError> {
        let mut judged: Vec<Option<PairJudgement>> = pairs.iter().map(|_| None).collect();
        let (mut waiting, mut running, mut done) = (pairs.iter().enumerate(), JoinSet::new(), 0);
        let stopped = |done: usize| {
            let all = counted(pairs.len(), "pair");
            CliError::stopped(format!("stopped after {done} of {all} were judged"))
                .hint("the same command judges the other pairs; cached judgements cost nothing")
        };
        let progress = Progress { terminal: &self.terminal, pairs: pairs.len() };
        loop {
            while running.len() < self.judging.jobs()
                && let Some((index, pair)) = waiting.next()
            {
                let [before, after] = pair.trials.each_ref().map(|trial| evidence(sides, trial));
                let (before, after, ids) = (before?, after?, pair.trials.clone().map(|(_, id)| id));
                let (judging, criterion) = (Arc::clone(&self.judging), Arc::clone(&self.criterion));
                running.spawn(async move {
                    let ids = ids.each_ref().map(String::as_str);
                    (index, judging.prefer(&criterion, ids, &before, &after).await)
                });
            }
            progress.show(done);
            // A signal between two comparisons was sent to the receiver of the one before.
            if signals::was_received() {
                return Err(stopped(done));
            }
            let next = tokio::select! {
                _ = controls.recv() => return Err(stopped(done)),
                next = running.join_next() => next,
            };
            match next {
                None => break,
                Some(Ok((index, judgement))) => {
                    done += 1;
                    judged[index] = Some(judgement);
                }
                Some(Err(panicked)) => std::panic::resume_unwind(panicked.into_panic()),
            }
        }
        drop(progress);
        Ok(pairs.into_iter().zip(judged).filter_map(|(pair, judgement)| Some((pair, judgement?))).collect())
    }
}

/// Line on a terminal that says how many pairs were judged.
struct Progress<'t> {
    terminal: &'t Terminal,
    pairs: usize,
}

impl Progress<'_> {
    fn show(&self, done: usize) {
        if self.terminal.err_style.interactive && self.pairs > 0 {
            self.terminal.err(&format!("\r\x1b[2Kjudged {done} of {}", counted(self.pairs, "pair")));
        }
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if self.terminal.err_style.interactive && self.pairs > 0 {
            self.terminal.err("\r\x1b[2K");
        }
    }
}

/// Reads the evidence of a trial from the record.
fn evidence(sides: &[&Side], (run, trial): &(String, String)) -> Result<Evidence, CliError> {
    let side = sides.iter().find(|side| side.run.id == *run);
    let side = side.ok_or_else(|| CliError::environment(format!("the record of the run {run} is not open")))?;
    let record = side.store.trial(run, trial)?;
    Ok(last_attempt(side.store.trial_events(run, trial)?).into_evidence(&record))
}
