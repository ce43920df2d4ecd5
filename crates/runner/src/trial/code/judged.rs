//! A scenario's claims, graded while it runs.

use std::sync::Arc;
use std::time::Instant;

use grade::Check;
use model::{Collected, Ending, Evidence, Finding};
use sandbox::{Breakage, SandboxError};

use super::super::control_run::ControlRuns;
use super::super::probe;
use super::RunningScenario;
use crate::code::{AssertionCall, Claims};

/// A claim that is not graded yet.
pub(super) struct PendingClaim {
    /// Request to answer.
    request: u64,
    number: u64,
    began: Instant,
    check: Check,
}

impl RunningScenario<'_> {
    /// Grades a claim with the current evidence. One that needs a judge waits for [`consult`](Self::consult).
    pub(super) async fn assert(&mut self, request: u64, claim: &AssertionCall) -> Result<(), Breakage> {
        let open = |check| PendingClaim { request, number: claim.number, began: Instant::now(), check };
        let planned = self.attempt.planned;
        let known_tools = planned.agent.known_tools(&planned.case);
        match Claims::compile(claim, &planned.directory, known_tools, &planned.state.scripts) {
            Ok(check) if check.asks_judge() => self.pending.push(open(check)),
            Ok(check) => {
                let evidence = match self.evidence_for(&check).await? {
                    Ok(evidence) => evidence,
                    Err(finding) => {
                        self.decided(&open(check), *finding);
                        return Ok(());
                    }
                };
                let open = open(check);
                let checks = Arc::new(vec![open.check.clone()]);
                let (findings, _) = self.attempt.shared.grader.grade(checks, evidence).await?;
                findings.into_iter().take(1).for_each(|finding| self.decided(&open, finding));
            }
            Err(finding) => {
                self.claims.keep(claim.number, *finding);
                self.script.answer(request, Ok(self.claims.result(claim.number, 0.0)));
            }
        }
        Ok(())
    }

    /// Stores the finding of a graded claim and answers the request.
    fn decided(&mut self, open: &PendingClaim, finding: Finding) {
        self.claims.keep(open.number, finding);
        let took = open.began.elapsed().as_secs_f64() * 1e3;
        self.script.answer(open.request, Ok(self.claims.result(open.number, took)));
    }

    /// Has the judge decide all waiting claims in parallel. This time counts as the harness's, not the agent's.
    pub(super) async fn consult(&mut self) -> Result<(), Breakage> {
        let open = std::mem::take(&mut self.pending);
        if open.is_empty() {
            return Ok(());
        }
        let began = Instant::now();
        let checks: Arc<Vec<Check>> = Arc::new(open.iter().map(|open| open.check.clone()).collect());
        let evidence = self.evidence().await?;
        let (mut findings, evidence) = self.attempt.shared.grader.grade(Arc::clone(&checks), evidence).await?;
        findings.truncate(checks.len());
        if let Some(took) = self.attempt.consult(&checks, &evidence, &mut findings).await {
            *self.judge.get_or_insert_default() += took;
        }
        self.attempt.events.pause(began.elapsed());
        for (open, finding) in open.iter().zip(findings) {
            self.decided(open, finding);
        }
        Ok(())
    }

    /// Returns the evidence for `check`, including its probes of the sandbox, or the finding if there is no sandbox.
    async fn evidence_for(&mut self, check: &Check) -> Result<Result<Evidence, Box<Finding>>, Breakage> {
        let needs = check.needs();
        if needs.is_empty() {
            return self.evidence().await.map(Ok);
        }
        let Some(sandbox) = self.sandbox.clone() else {
            let reason = "it needs a sandbox, and the agent runs without one";
            let (id, kind, weight) = (check.id(), check.kind(), check.weight());
            return Ok(Err(Box::new(Finding::undecided(id, kind, weight, Some(check.source()), reason))));
        };
        let mut evidence = self.evidence().await?;
        evidence.collected = match evidence.collected.lost().map(str::to_owned) {
            Some(reason) => probe::lost(&*sandbox, needs, reason),
            None => {
                let control_runs =
                    ControlRuns { attempt: self.attempt, checks: std::slice::from_ref(check), answered: 0 };
                let changed = &evidence.collected.files_changed;
                let probes = probe::run(&*sandbox, needs, changed, None, &control_runs).await;
                Collected { probes, ..evidence.collected }
            }
        };
        Ok(Ok(evidence))
    }

    /// Returns the current evidence.
    async fn evidence(&mut self) -> Result<Evidence, Breakage> {
        let collected = match (&self.collected, &self.sandbox) {
            (Some(collected), _) => collected.clone(),
            (None, None) => Collected::default(),
            (None, Some(sandbox)) => {
                let collected = match sandbox.collect().await {
                    Err(SandboxError::Ruined { reason }) => probe::lost(&**sandbox, [], reason),
                    collected => collected?,
                };
                self.collected.insert(collected).clone()
            }
        };
        let (mut trace, limits) = (self.turn.trace().clone(), Arc::clone(&self.attempt.limits));
        if let Some(mocks) = self.attempt.mocks.get() {
            mocks.complete(&mut trace);
        }
        Ok(Evidence {
            trace,
            collected,
            ending: Ending::Finished,
            limits,
            unused_responses: Vec::new(),
            agent_ms: None,
        })
    }
}
