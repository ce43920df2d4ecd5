//! Checks scripted models against the tools of the agents that they play.

use super::planner::Planner;
use super::trial::{ModelChoice, PlannedCase};

impl Planner<'_> {
    /// Reports calls in the script of `planned` that its agent cannot make.
    pub(super) fn check_script(&mut self, planned: &PlannedCase) {
        let ModelChoice::Scripted(script) = &planned.model else { return };
        if planned.case.skip.is_some() {
            return;
        }
        let tools = planned.agent.offered_tools(&planned.case, &planned.mocks);
        for problem in tools.into_iter().flat_map(|tools| script.preview(&tools)) {
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
    }
}
