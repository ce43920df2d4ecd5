//! `solution`: does the work with the solution that the case has. If it does not pass, no agent can pass here.

use super::observation::Observation;
use super::{Action, Adversary, Role};

pub(super) static SOLUTION: Adversary =
    Adversary::new("solution", Role::Reference, "does the work with the solution of the case", act)
        .only_if(|case| case.graded.solution.is_some());

fn act(seen: &Observation<'_>) -> Vec<Action> {
    let command = seen.case.graded.solution.as_ref().and_then(|solution| solution.commands.get(seen.answered));
    let work = command.map(|command| Action::Work(command.clone()));
    work.into_iter().chain([Action::Say("The work is done.".to_owned())]).collect()
}
