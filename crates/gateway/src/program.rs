//! Tells the requests of an agent's program from those that the agent's commands send with the program's token.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use hyper::header::{HeaderMap, USER_AGENT};

/// Message of the error that answers a request of another program.
pub(crate) const REFUSAL: &str = "only the agent's own program may use this model";
/// Maximum length of the name of a program.
const LONGEST_NAME: usize = 80;

/// The program whose requests for messages are answered: the one that sends the first of them. It does so before the
/// agent can run a command.
#[derive(Debug, Default)]
pub(crate) struct Program {
    name: OnceLock<String>,
    foreign: Mutex<Option<ForeignRequests>>,
}

/// Requests that another program sent to an agent's model. They were refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignRequests {
    /// Name and version of the first such program; empty if it did not send any.
    pub program: String,
    /// Number of the requests.
    pub count: u64,
}

impl Program {
    /// Returns `true` if a request for a message with these headers is of the program; otherwise counts it as foreign.
    pub(crate) fn sent(&self, headers: &HeaderMap) -> bool {
        let name = name(headers);
        if *self.name.get_or_init(|| name.clone()) == name {
            return true;
        }
        self.lock().get_or_insert(ForeignRequests { program: name, count: 0 }).count += 1;
        false
    }

    /// Returns the requests of other programs, if there are any.
    pub(crate) fn foreign(&self) -> Option<ForeignRequests> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<ForeignRequests>> {
        self.foreign.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the name and version of the program that sent a request: the first word of its `User-Agent`. The words after
/// it may differ between the requests of one program.
fn name(headers: &HeaderMap) -> String {
    let text = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split_whitespace().next().unwrap_or_default().chars().take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_program_is_told_from_others_by_name_and_version() {
        let program = Program::default();
        let sent = |user_agent: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(USER_AGENT, user_agent.parse().unwrap());
            program.sent(&headers)
        };
        assert!(sent("claude-cli/2.1.332 (external, sdk-cli)"));
        assert!(sent("claude-cli/2.1.332 (agent)"));
        assert_eq!(program.foreign(), None);
        assert!(!sent("curl/8.5.0") && !sent("claude-cli/2.1.9") && !program.sent(&HeaderMap::new()));
        assert_eq!(program.foreign(), Some(ForeignRequests { program: "curl/8.5.0".into(), count: 3 }));
    }
}
