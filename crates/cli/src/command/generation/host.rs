//! Runs candidates with adversaries and with the agent, and writes those that are admitted.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use generate::{Host, Progress, RenderedTest, Tryout};
use llm::BoxFuture;
use model::{Diagnostic, Outcome, TrialRecord};
use runner::Control;
use session::{Overrides, Planned, RunSpec, Session};
use suite::Loaded;
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::folder::TestFolder;
use super::{Skill, text};
use crate::adversaries::{AdversaryTrials, Records};
use crate::error::CliError;
use crate::terminal::Terminal;

/// Runs candidates, and writes those that are admitted.
pub(super) struct GenerationHost<'a> {
    context: &'a Session,
    /// Runs with the agent.
    with_agent: RunSpec,
    /// Runs with the adversaries.
    offline: RunSpec,
    folder: TestFolder,
    /// Folder of the skill under test.
    skill: Option<String>,
    /// Number of trials with the agent.
    verify: u64,
    terminal: &'a Terminal,
    /// Folder from which candidates are run.
    staging: TempDir,
    runs: Mutex<Runs>,
    /// Warnings about the machine that were shown.
    warnings: Mutex<Vec<Diagnostic>>,
}

/// Runs in progress. They are not cancelled together with their candidate, because their sandboxes must be removed.
#[derive(Default)]
struct Runs {
    tasks: JoinSet<()>,
    controls: Vec<UnboundedSender<Control>>,
}

impl<'a> GenerationHost<'a> {
    pub fn new(
        context: &'a Session,
        spec: &RunSpec,
        folder: TestFolder,
        skill: Option<&Skill>,
        verify: u64,
        terminal: &'a Terminal,
    ) -> Result<Self, CliError> {
        let staging = tempfile::Builder::new()
            .prefix("trialrun-gen-")
            .tempdir()
            .map_err(|error| CliError::environment(format!("cannot create a temporary folder: {error}")))?;
        let offline = context.resolve(&Overrides { adversaries: true, ..spec.overrides().clone() })?;
        let mut overrides = spec.overrides().clone();
        overrides.arms.trials = Some(model::Trials::Fixed(verify.max(1)));
        let with_agent = context.resolve(&overrides)?;
        Ok(Self {
            context,
            with_agent,
            offline,
            folder,
            skill: skill.map(|skill| skill.folder.display().to_string()),
            verify,
            terminal,
            staging,
            runs: Mutex::default(),
            warnings: Mutex::default(),
        })
    }

    /// Stops the runs in progress, and waits until they have cleaned up.
    pub async fn finish(&self) {
        let Runs { mut tasks, controls } =
            std::mem::take(&mut *self.runs.lock().unwrap_or_else(PoisonError::into_inner));
        for control in controls {
            // Fails if the run is already over.
            let _ = control.send(Control::Stop("the generation ended".to_owned()));
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Writes the candidate into its own folder and loads it.
    fn load(&self, test: &RenderedTest) -> Result<Loaded, String> {
        let staged = self.folder.stage(test, &self.staging.path().join(&test.slug));
        let file = staged.map_err(|error| format!("cannot write a temporary file: {error}"))?;
        Ok(self.context.load(vec![file.display().to_string()], self.skill.clone()))
    }

    /// Plans the loaded candidate, and checks that it can run on this machine. Also returns the errors from loading and
    /// planning.
    fn plan(&self, loaded: Loaded, spec: &RunSpec) -> Result<(Planned, Vec<Diagnostic>), String> {
        let mut planned = self.context.plan_loaded(spec, loaded).map_err(|error| error.to_string())?;
        let broken = planned.plan.trials.iter().flat_map(|trial| &trial.case.broken);
        let all = planned.diagnostics.iter().chain(broken);
        let errors: Vec<Diagnostic> = all.filter(|problem| problem.is_error()).cloned().collect();
        if errors.is_empty() {
            let found = self.context.check(&mut planned).map_err(|error| error.to_string())?;
            let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
            let new: Vec<Diagnostic> = found.into_iter().filter(|warning| !warnings.contains(warning)).collect();
            self.terminal.diagnostics(&new);
            warnings.extend(new);
        }
        Ok((planned, errors))
    }

    /// Runs a task to completion, even if its result is no longer wanted.
    async fn run<T: Send + 'static, F>(&self, start: impl FnOnce(UnboundedReceiver<Control>) -> F) -> Result<T, String>
    where
        F: Future<Output = Result<T, session::Error>> + Send + 'static,
    {
        let (control, controls) = unbounded_channel();
        let (sender, receiver) = oneshot::channel();
        let task = start(controls);
        {
            let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
            runs.controls.push(control);
            runs.tasks.spawn(async move {
                // The receiver is gone if the generation was stopped.
                let _ = sender.send(task.await);
            });
        }
        match receiver.await {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(_) => Err("the run ended without a result".to_owned()),
        }
    }

    async fn audited(&self, test: &RenderedTest) -> Result<Vec<String>, String> {
        self.audit_loaded(self.load(test)?).await
    }

    /// Loads and compiles the tests in `file`, and runs them with adversaries. Returns the reasons to reject them.
    pub async fn audit_file(&self, file: &Path) -> Result<Vec<String>, String> {
        self.audit_loaded(self.context.load(vec![file.display().to_string()], None)).await
    }

    async fn audit_loaded(&self, loaded: Loaded) -> Result<Vec<String>, String> {
        let (planned, problems) = self.plan(loaded, &self.offline)?;
        if !problems.is_empty() {
            return Ok(problems.iter().map(described).collect());
        }
        let trials = AdversaryTrials::of(planned);
        let (builder, _) = self.run(|controls| trials.run(self.context, controls)).await?;
        let audit = builder.finish();
        let cases = || audit.suites.iter().flat_map(|suite| &suite.cases);
        if cases().next().is_none() {
            return Ok(vec!["it contains no test".to_owned()]);
        }
        let weaknesses = audit.weaknesses.iter().map(|weakness| &weakness.diagnostic);
        let mut reasons: Vec<String> = weaknesses.filter(|problem| problem.is_error()).map(described).collect();
        for case in cases() {
            reasons.extend(case.not_audited.clone());
            if let Some(adversary) = case.left_to_judge.first() {
                reasons.push(format!("only a judge keeps the adversary `{adversary}` from passing"));
            }
        }
        Ok(reasons)
    }

    async fn tried(&self, test: &RenderedTest) -> Result<Option<Tryout>, String> {
        if self.verify == 0 {
            return Ok(None);
        }
        let loaded = self.load(test)?;
        let (planned, problems) = self.plan(loaded, &self.with_agent)?;
        if let Some(problem) = problems.first() {
            return Err(described(problem));
        }
        let records = Arc::new(Records::default());
        let listener = Arc::clone(&records);
        self.run(|controls| self.context.run_unrecorded(planned, controls, listener as _)).await?;
        let records = records.take();
        if let Some(broken) = records.iter().find(|record| record.outcome.is_error()) {
            return Err(broken.reason.clone().unwrap_or_else(|| "the agent could not be run".to_owned()));
        }
        Ok(Some(tryout(&records)))
    }
}

impl Host for GenerationHost<'_> {
    fn audit<'a>(&'a self, test: &'a RenderedTest) -> BoxFuture<'a, Result<Vec<String>, String>> {
        Box::pin(self.audited(test))
    }

    fn try_out<'a>(&'a self, test: &'a RenderedTest) -> BoxFuture<'a, Result<Option<Tryout>, String>> {
        Box::pin(self.tried(test))
    }

    fn save(&self, test: &RenderedTest) -> Result<String, String> {
        self.folder.save(test)
    }

    fn progress(&self, progress: &Progress<'_>) {
        self.terminal.err(&text::progress(progress, self.terminal.err_style.color));
    }
}

fn tryout(records: &[TrialRecord]) -> Tryout {
    let mut called: Vec<String> =
        records.iter().flat_map(|record| &record.tool_calls).map(|call| call.name.clone()).collect();
    called.sort();
    called.dedup();
    Tryout {
        outcomes: records.iter().map(|record| record.outcome).collect(),
        reason: records
            .iter()
            .find(|record| record.outcome != Outcome::Passed)
            .and_then(|record| record.reason.clone()),
        called,
    }
}

/// Returns a problem in one line, with advice.
fn described(problem: &Diagnostic) -> String {
    let help = problem.help.first().map(|help| format!(": {help}")).unwrap_or_default();
    format!("{}{help}", problem.message)
}
