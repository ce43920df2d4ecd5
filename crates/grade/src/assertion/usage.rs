//! Verdicts on the use of a skill or a sub-agent.

use model::{Definition, Trace};

use crate::place::Place;
use crate::skill_use::{delegates, failed_delegation, failed_use, first_delegation, first_use, used};
use crate::verdict::Verdict;
use crate::words;

/// A skill or sub-agent that an assertion names.
#[derive(Debug)]
pub(super) struct Usage {
    /// Skill or sub-agent.
    pub definition: Definition,
    /// Its name, as the assertion has it.
    pub name: String,
    /// The place of the name in the user's file.
    pub place: Place,
}

impl Usage {
    /// Met if the agent used it. Lists what was used instead, and a call that failed.
    pub fn is_there(&self, trace: &Trace) -> Verdict {
        let Self { name, place, .. } = self;
        if let Some(call) = self.first(trace) {
            let summary = trace.calls[call].call.summary();
            return Verdict::met(format!("call {}: {summary}", call + 1)).place(place).at_call(trace, call);
        }
        let kind = self.kind();
        let others: Vec<String> = self.others(trace).iter().map(|name| format!("`{name}`")).collect();
        let actual = match others.as_slice() {
            [] => format!("it used no {kind}"),
            others => format!("it used {}", words::list(others)),
        };
        let verdict = Verdict::unmet(format!("`{name}` was not used"), format!("use of the {kind} `{name}`"), actual)
            .place(place);
        match self.failed(trace) {
            Some(call) => verdict
                .evidence([format!("call {} failed: {}", call + 1, trace.calls[call].call.summary())])
                .at_call(trace, call),
            None => verdict,
        }
    }

    /// Met if the agent did not use it.
    pub fn is_absent(&self, trace: &Trace) -> Verdict {
        let Self { name, place, .. } = self;
        let Some(call) = self.first(trace) else {
            return Verdict::met(format!("`{name}` was not used")).place(place);
        };
        let because = format!("`{name}` was used, call {}", call + 1);
        let expected = format!("no use of the {} `{name}`", self.kind());
        Verdict::unmet(because, expected, trace.calls[call].call.summary()).place(place).at_call(trace, call)
    }

    fn kind(&self) -> &'static str {
        match self.definition {
            Definition::Skill => "skill",
            Definition::SubAgent => "sub-agent",
        }
    }

    fn first(&self, trace: &Trace) -> Option<usize> {
        match self.definition {
            Definition::Skill => first_use(trace, &self.name),
            Definition::SubAgent => first_delegation(trace, &self.name),
        }
    }

    fn failed(&self, trace: &Trace) -> Option<usize> {
        match self.definition {
            Definition::Skill => failed_use(trace, &self.name),
            Definition::SubAgent => failed_delegation(trace, &self.name),
        }
    }

    fn others(&self, trace: &Trace) -> Vec<String> {
        match self.definition {
            Definition::Skill => used(trace),
            Definition::SubAgent => delegates(trace).into_iter().map(str::to_owned).collect(),
        }
    }
}
