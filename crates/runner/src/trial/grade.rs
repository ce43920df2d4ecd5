//! Grading: from evidence to findings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::Bill;
use grade::{Check, Judge};
use model::{AuxiliaryUsage, Collected, Ending, Event, Evidence, Finding, SideEffects, Status};

use super::act::ActResult;
use super::code::ScenarioEnd;
use super::{Attempt, Interruption, StopLevel};

/// Reason that is reported for assertions outside the sample.
const NOT_SAMPLED: &str = "not judged: the trial is not in the sample";

/// Result of an attempt that ran to its end.
#[derive(Clone)]
pub(super) struct End {
    pub(super) evidence: Evidence,
    pub(super) findings: Vec<Finding>,
    pub(super) warnings: Vec<String>,
    pub(super) kept: Option<String>,
    pub(super) errors: Vec<String>,
    /// Scores that a scenario recorded.
    pub(super) scores: BTreeMap<String, f64>,
    /// Usage of the judge.
    pub(super) judge: Option<AuxiliaryUsage>,
    /// Details of the cost in addition to its amount.
    pub(super) bill: Bill,
    /// Exit code of the agent's process.
    pub(super) exit_code: Option<i32>,
    /// Side effects that remain on remotes, if some were removed.
    pub(super) side_effects: Option<Vec<SideEffects>>,
}

impl End {
    pub(super) fn of(evidence: Evidence, findings: Vec<Finding>, warnings: Vec<String>) -> Self {
        let (kept, errors, scores) = (None, Vec::new(), BTreeMap::new());
        let (judge, bill, exit_code, side_effects) = (None, Bill::default(), None, None);
        Self { evidence, findings, warnings, kept, errors, scores, judge, bill, exit_code, side_effects }
    }

    /// Replaces the ending of a trial that has failed by `excuse`: whatever else the agent did, something that is not its
    /// fault may have caused the failure.
    pub(super) fn excuse(&mut self, excuse: Ending) {
        let ending = &mut self.evidence.ending;
        let has_failed = !ending.goes_on() || self.findings.iter().any(|finding| finding.status == Status::Unmet);
        if has_failed && *ending != Ending::Cancelled {
            *ending = excuse;
        }
    }

    /// Adds the result of a scenario: its claims go before the implicit findings.
    fn add(&mut self, played: ScenarioEnd) {
        let ScenarioEnd { mut claims, judge, .. } = played;
        self.scores = std::mem::take(&mut claims.scores);
        if self.evidence.ending != Ending::Cancelled {
            self.findings.splice(0..0, claims.into_findings());
        }
        self.judge = judge;
    }
}

impl Attempt<'_> {
    /// Grades what the agent left behind.
    pub(super) async fn grade(&self, act_result: ActResult, collected: Collected) -> Result<End, Interruption> {
        let ActResult { turn, ending, played, agent_ms, .. } = act_result;
        let exit_code = turn.exit_code();
        let bill = turn.bill();
        let (mut trace, unused_responses, warnings) = turn.into_parts();
        collected.withdraw_forged(&mut trace);
        let limits = self.limits.clone();
        // The time of a replay is not the time that the recorded work took.
        let agent_ms = Some(agent_ms).filter(|_| !self.planned.agent.description().is_replay);
        let evidence = Evidence { trace, collected, ending, limits, unused_responses, agent_ms };
        let has_claimed = |played: &ScenarioEnd| !played.claims.is_empty() || !evidence.ending.goes_on();
        let checks = match &played {
            Some(played) if !has_claimed(played) => Arc::new(vec![grade::nothing_asserted(&self.planned.case)]),
            _ => Arc::clone(&self.planned.checks),
        };
        let (mut findings, mut evidence, took) = Box::pin(self.assess(&checks, evidence)).await?;
        if let Some(reason) = grade::mistake(&checks, &findings)
            && evidence.ending.goes_on()
        {
            evidence.ending = Ending::InvalidTest { reason };
        }
        if self.events.has_hidden() {
            // When the record is graded again, masked text is not available.
            let own = checks.iter().zip(&mut findings).filter(|(check, _)| !check.asks_judge());
            own.for_each(|(check, finding)| finding.masked = Some(check.digest()));
        }
        let mut end = End { bill, exit_code, ..End::of(evidence, findings, warnings) };
        if let Some(played) = played {
            end.add(played);
        }
        if let Some(took) = took {
            *end.judge.get_or_insert_default() += took;
        }
        Ok(end)
    }

    /// Grades `evidence` with `checks`, including those that need a judge. Also returns the judge's usage.
    pub(super) async fn assess(
        &self,
        checks: &Arc<Vec<Check>>,
        evidence: Evidence,
    ) -> Result<(Vec<Finding>, Evidence, Option<AuxiliaryUsage>), Interruption> {
        let (mut findings, evidence) = match evidence.ending {
            Ending::Cancelled => (Vec::new(), evidence),
            _ => {
                self.events.emit(Event::Waiting { on: "grading".into() });
                self.shared.grader.grade(Arc::clone(checks), evidence).await?
            }
        };
        let mut took = self.consult(checks, &evidence, &mut findings).await;
        if let Some(spent) = self.ask_hosted(checks, &evidence, &mut findings).await {
            *took.get_or_insert_default() += spent;
        }
        Ok((findings, evidence, took))
    }

    /// Fills in the findings for those `checks` that need a hosted model, and returns the usage.
    async fn ask_hosted(
        &self,
        checks: &[Check],
        evidence: &Evidence,
        findings: &mut [Finding],
    ) -> Option<AuxiliaryUsage> {
        if findings.is_empty() || !checks.iter().any(Check::asks_hosted) || says_nothing(&evidence.ending) {
            return None;
        }
        let (providers, mask) = (&self.shared.settings.providers, self.events.mask());
        // The user's secrets must not be sent to the provider.
        let withhold = |text: &str| mask.without_values(text).into_owned();
        let limit = Duration::from_millis(self.planned.limits.timeout_ms);
        let asked = Box::pin(grade::ask_hosted(checks, evidence, providers, &withhold, findings));
        self.unless(StopLevel::Stop, tokio::time::timeout(limit, asked)).await.ok()?.ok().flatten()
    }

    /// Returns the judge of this attempt, or the reason why there is none.
    pub(super) fn judge(&self) -> Result<&Judge, &str> {
        let made = self.judge.get_or_init(|| {
            let (judging, settings) = (&self.shared.judging, &self.shared.settings);
            judging.judge(settings, self.planned, self.events.attempt(), self.events.mask(), self.tape())
        });
        made.as_ref().map_err(String::as_str)
    }

    /// Fills in the findings for those `checks` that need a judge, and returns the usage. Judging may take as long as
    /// the trial itself; a run that is asked to stop does not wait for it.
    pub(super) async fn consult(
        &self,
        checks: &[Check],
        evidence: &Evidence,
        findings: &mut [Finding],
    ) -> Option<AuxiliaryUsage> {
        if findings.is_empty() || !checks.iter().any(Check::asks_judge) || says_nothing(&evidence.ending) {
            return None;
        }
        if self.shared.judging.is_sampled(self.planned) == Some(false) {
            undecide(checks, findings, NOT_SAMPLED);
            return None;
        }
        self.events.emit(Event::Waiting { on: "judge".into() });
        let limit = Duration::from_millis(self.planned.limits.timeout_ms);
        let began = Instant::now();
        let asked = Box::pin(grade::consult(checks, evidence, self.judge(), findings));
        let reason = match self.unless(StopLevel::Stop, tokio::time::timeout(limit, asked)).await {
            Ok(Ok(took)) => {
                let latency_ms = u64::try_from(began.elapsed().as_millis()).ok();
                for (_, finding) in checks.iter().zip(findings).filter(|(check, _)| check.asks_judge()) {
                    finding.latency_ms = latency_ms;
                }
                return took;
            }
            Ok(Err(_)) => {
                let setting = self.planned.limits.timeout_from.as_deref().unwrap_or("timeout");
                let within = format!("within {} s ({setting})", limit.as_secs_f64());
                // The judge's client was still retrying, and knows the reason.
                let reason = match self.judge().ok().and_then(Judge::last_error) {
                    Some(error) => format!("the judge did not return a verdict {within}; its last error: {error}"),
                    None => format!("the judge did not answer {within}"),
                };
                self.shared.judging.failed(&reason);
                reason
            }
            Err(_) => "the run was stopped before the judge answered".to_owned(),
        };
        undecide(checks, findings, &reason);
        None
    }
}

/// Sets the reason for the undecided `findings` that need a judge.
fn undecide(checks: &[Check], findings: &mut [Finding], reason: &str) {
    for (check, finding) in checks.iter().zip(findings).filter(|(check, _)| check.asks_judge()) {
        if finding.status == Status::Undecided {
            (finding.reason, finding.error) = (reason.to_owned(), Some(reason.to_owned()));
            debug_assert_eq!(check.id(), finding.id);
        }
    }
}

/// Returns `true` if a trial that ended like this has no verdict, whatever its findings are.
fn says_nothing(ending: &Ending) -> bool {
    matches!(
        ending,
        Ending::ProviderFailed { .. }
            | Ending::Silent { .. }
            | Ending::Aborted { .. }
            | Ending::Unreachable { .. }
            | Ending::InvalidTest { .. }
            | Ending::Stale(_)
            | Ending::Cancelled
    )
}
