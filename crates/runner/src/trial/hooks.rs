//! Post-grade commands: they inspect a graded trial, and their findings count.

use std::sync::Arc;
use std::time::Instant;

use model::{AttemptRecord, Collected, Event, Finding, HookKind, Status};
use sandbox::{Sandbox, SandboxCopy, SandboxError};

use super::record::{attempt_of, record_of};
use super::retry::{self, Retry};
use super::{Attempt, End, StopLevel};
use crate::hook::{GradedTrial, HookResult};
use crate::plan::PlannedTrial;

/// Number of files that steer tools that a finding shows.
const SHOWN: usize = 5;

impl Attempt<'_> {
    /// Runs the user's commands on a graded trial, with a copy of its sandbox. They run once per trial, so they are
    /// skipped for an attempt that is retried, and for one that reveals nothing about the agent.
    pub(super) async fn after_grading(&self, end: &mut End, sandbox: Option<&Arc<dyn Sandbox>>) {
        let Some(hook) = &self.shared.hook else { return };
        let commands = hook.commands(HookKind::PostGrade);
        if commands.is_empty() {
            return;
        }
        let graded = self.graded(end);
        let outcome = graded.record.outcome;
        let nothing = !outcome.is_graded();
        if nothing || self.is_tried_again(&graded, &end.evidence.collected) {
            return;
        }
        self.events.emit(Event::Waiting { on: "hooks".into() });
        // Hooks are not isolated. Programs such as git run whatever the settings in a working directory say, and every
        // program follows links.
        let copy = match sandbox {
            Some(sandbox) => disarmed_copy(&**sandbox).await.map(Some),
            None => Ok(None),
        };
        let copy = copy.unwrap_or_else(|error| {
            end.warnings.push(format!("hooks have no working directory, because it cannot be copied: {error}"));
            None
        });
        for (at, command) in commands.iter().enumerate() {
            let (began, number) = (Instant::now(), at + 1);
            let is_last = number == commands.len();
            // What a command runs of the agent's work must not change what the next one works with.
            let own = match (&copy, sandbox) {
                (Some(copy), Some(sandbox)) if !is_last && !self.planned.case.graded.is_shared => {
                    Some(sandbox.fork(copy).await)
                }
                _ => None,
            };
            let tree = match &own {
                Some(Ok(own)) => Some(own),
                Some(Err(error)) => {
                    end.warnings
                        .push(format!("hook {number} has no working directory, because it cannot be copied: {error}"));
                    None
                }
                None => copy.as_ref(),
            };
            let mut graded = graded.clone();
            if let Some(tree) = tree {
                graded.work = Some(tree.work());
                graded.remote = tree.remote_folder();
                tree.reach_remote(&mut graded.env);
            }
            let graded = Arc::new(graded);
            let kind = HookKind::PostGrade;
            self.events.emit(Event::HookStarted { hook: kind, number, command: command.clone() });
            let run = self.unless(StopLevel::Stop, hook.run(HookKind::PostGrade, number, Some(&graded))).await;
            let result = run.unwrap_or_else(|_| HookResult::stopped(HookKind::PostGrade, command, began));
            self.events.emit(Event::HookFinished(result.record));
            for mut finding in result.findings {
                finding.implicit = has_rule_of_its_own(self.planned);
                if finding.status == Status::Met {
                    finding.evidence.extend(copy.as_ref().and_then(|copy| about_steering(copy.added())));
                }
                end.findings.push(numbered(finding, &end.findings));
            }
            if let Some(Ok(own)) = own {
                let _ = own.close().await;
            }
        }
        if let Some(copy) = copy {
            // Parts that cannot be removed now are removed with the run's sandboxes.
            let _ = copy.close().await;
        }
    }

    /// Returns `true` if the attempt would be retried with its current outcome.
    fn is_tried_again(&self, graded: &GradedTrial, collected: &Collected) -> bool {
        let GradedTrial { record, .. } = graded;
        let attempts: Vec<AttemptRecord> = self.before.iter().cloned().chain([attempt_of(record)]).collect();
        let (settings, trace) = (&self.shared.settings, retry::changes_of(collected));
        let again = retry::decide(self.planned, settings, &attempts, record.ending.as_ref(), &trace);
        *self.stop_level.borrow() == StopLevel::No && matches!(again, Retry::Yes | Retry::Counted)
    }

    /// Returns the trial with the outcome that it would have now, without a working directory.
    fn graded(&self, end: &End) -> GradedTrial {
        let mut record = record_of(self.planned, end.clone());
        record.duration_ms = model::millis(self.began.elapsed());
        let mut collected = end.evidence.collected.clone();
        // The user's commands are other programs, which may pass on their input.
        self.events.mask().record(&mut record);
        self.events.mask().collected(&mut collected);
        GradedTrial {
            planned: self.planned.clone(),
            record,
            collected,
            attempt: self.events.attempt(),
            work: None,
            env: self.shared.host.env.clone(),
            remote: None,
        }
    }
}

/// Returns `true` if the case combines its assertions by its own rule. Commands' findings are then required in
/// addition, like implicit ones; otherwise each is one more assertion.
fn has_rule_of_its_own(planned: &PlannedTrial) -> bool {
    let ruling = &planned.case.ruling;
    ruling.scoring.is_some() || ruling.not || planned.case.code.is_some()
}

/// Returns a line about the agent's files that steer tools. A control run could show that a result rests on them, but
/// commands of the user may have effects elsewhere, so they run once.
fn about_steering(files: &[String]) -> Option<String> {
    let shown: Vec<String> = files.iter().take(SHOWN).map(|file| format!("`{file}`")).collect();
    let more = match files.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let line = || format!("the agent left files that can steer tools or tests: {}{more}", shown.join(", "));
    (!files.is_empty()).then(line)
}

/// Makes the id of `finding` unique, because two commands may find the same thing.
fn numbered(mut finding: Finding, others: &[Finding]) -> Finding {
    let is_taken = |id: &str| others.iter().any(|other| other.id == id);
    if is_taken(&finding.id) {
        let free = (2..).map(|number| format!("{} ({number})", finding.id)).find(|id| !is_taken(id));
        finding.id = free.unwrap_or_default();
    }
    finding
}

/// Returns a copy of the sandbox in which nothing runs by itself and no link leads out.
async fn disarmed_copy(sandbox: &dyn Sandbox) -> Result<SandboxCopy, SandboxError> {
    let copy = sandbox.copy().await?;
    copy.disarm().await?;
    Ok(copy)
}
