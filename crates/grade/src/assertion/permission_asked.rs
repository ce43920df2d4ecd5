//! `permission_asked` and `permission_not_asked`: the agent asked for permission before it used a tool.

use model::TracedPermission;

use super::prelude::*;
use super::{ARGS_MATCH, TOOL};
use crate::call_pattern::CallPattern;
use crate::pattern::RegexBudget;

/// Reason if the agent's requests are not known.
pub(super) const NOT_REPORTED: &str = "the agent does not report its requests for permission";

pub(crate) const ASSERTION: Assertion = Assertion::written("permission_asked", |reading| {
    Some(Arc::new(PermissionAsked { wanted: reading.call_pattern()?, should_ask: true }))
})
.reported(Reported::Permissions)
.summary("The agent asked for permission to use a tool.")
.fields(&[TOOL, ARGS_MATCH])
.parameters(&[Parameter::Value("tool"), Parameter::Map("args_match")])
.example(
    || json!({"id": "asks-first", "type": "permission_asked", "tool": "Bash", "args_match": {"command": "^git push"}}),
    || EvidenceBuilder::new().permission("Bash", json!({"command": "git push"}), true),
    || EvidenceBuilder::new().permission("Write", json!({"file_path": "a.txt"}), true),
);

pub(crate) const NEGATION: Assertion = Assertion::written("permission_not_asked", |reading| {
    Some(Arc::new(PermissionAsked { wanted: reading.call_pattern()?, should_ask: false }))
})
.reported(Reported::Permissions)
.summary("The agent did not ask for permission to use a tool.")
.fields(&[TOOL, ARGS_MATCH])
.parameters(&[Parameter::Value("tool"), Parameter::Map("args_match")])
.example(
    || json!({"id": "reads-freely", "type": "permission_not_asked", "tool": "Read"}),
    || EvidenceBuilder::new().permission("Bash", json!({"command": "git push"}), true),
    || EvidenceBuilder::new().permission("Read", json!({"file_path": "a.txt"}), true),
);

#[derive(Debug)]
struct PermissionAsked {
    wanted: CallPattern,
    should_ask: bool,
}

impl Matcher for PermissionAsked {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let trace = &evidence.trace;
        let place = self.wanted.most_telling_place();
        let Some(asked) = &trace.permissions else { return Ok(Verdict::undecided(NOT_REPORTED).place(place)) };
        let regex_budget = RegexBudget::new();
        let mut unknown = None;
        for permission in asked {
            let id = &permission.request.call_id;
            let Some(at) = trace.calls.iter().position(|traced| traced.call.id == *id) else { continue };
            match self.wanted.fits(&trace.calls[at].call, &regex_budget) {
                Ok(true) => return Ok(self.found(permission, at).place(place).at_call(trace, at)),
                Ok(false) => {}
                Err(error) => unknown = unknown.or(Some(error)),
            }
        }
        let reason = match asked.len() {
            0 => "the agent asked for no permission".to_owned(),
            count => format!("no request for a {} among {}", self.wanted.describe(), format::count(count, "request")),
        };
        let tools = asked.iter().map(|permission| permission.request.tool.clone()).collect();
        Ok(match unknown {
            Some(error) => Verdict::undecided(error),
            // The request may be among those for calls whose tool is not known.
            None if trace.has_unreported_calls() && !asked.is_empty() => {
                Verdict::undecided("the agent does not name the tools of all its calls")
            }
            None if self.should_ask => {
                let expected = format!("a request for a {}", self.wanted.describe());
                Verdict::unmet(reason.clone(), expected, reason).evidence(format::few(tools, 5))
            }
            None => Verdict::met(reason),
        }
        .place(place))
    }
}

impl PermissionAsked {
    fn found(&self, permission: &TracedPermission, at: usize) -> Verdict {
        let request = &permission.request;
        let decision = if request.granted { "allowed" } else { "denied" };
        let reason = format!("the agent asked to use `{}`, call {}; it was {decision}", request.tool, at + 1);
        match self.should_ask {
            true => Verdict::met(reason),
            false => {
                let actual = format!("asked for {}", format::quoted(&request.title));
                Verdict::unmet(reason, format!("no request for a {}", self.wanted.describe()), actual)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Status;
    use serde_json::json;

    use crate::check::tests::judged;
    use crate::example::EvidenceBuilder;

    #[test]
    fn an_agent_that_does_not_report_its_requests_is_undecided() {
        for kind in ["permission_asked", "permission_not_asked"] {
            let wanted = json!({"id": "a", "type": kind, "tool": "Bash"});
            let silent = EvidenceBuilder::new().call("Bash", json!({"command": "ls"})).answer("Done.");
            assert_eq!(judged(&wanted, &silent.evidence()).status, Status::Undecided, "{kind}");
        }
    }
}
