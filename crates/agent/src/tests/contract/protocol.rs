//! Setup for the `acp` agent: a shell script that speaks the protocol.

use serde_json::json;

use super::agent_setup::{Act, AgentSetup, Set, with_config};
use crate::tests::harness::{AgentHarness, Bare};
use crate::{Agent, acp};

/// Agent that prints lines of a log, and returns the ids of requests as strings.
const SCRIPT: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":"%s","result":%s}\n' "$id" "$1"; }
update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}\n' "$1"; }
say() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
used='"usage":{"inputTokens":3,"outputTokens":4,"totalTokens":7}'
echo 'Starting…'
while read -r line; do
    id=${line#*'"id":'}
    id=${id%%,*}
    case $line in
        *'"method":"initialize"'*) answer '{"protocolVersion":1,"agentCapabilities":{}}' ;;
        *'"method":"session/new"'*) answer '{"sessionId":"s"}' ;;
        *'"method":"session/prompt"'*)
            n=$((n + 1))
            text=${line#*'"text":"'}
            text=${text%%'"'*}
            case $text in
                "say "*) say "${text#say }" ;;
                count) say $n ;;
                call)
                    update '{"sessionUpdate":"tool_call","toolCallId":"c","title":"Find it","status":"in_progress","rawInput":{"q":1},"_meta":{"toolName":"find"}}'
                    update '{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","content":[{"type":"content","content":{"type":"text","text":"found"}}]}'
                    say done
                    ;;
                huge) say "$(head -c 1000000 /dev/zero | tr '\0' x)" ;;
                hang) exec sleep 1000 ;;
                fail) exit 3 ;;
                garbage) answer '{"nothing":1}' ;;
            esac
            answer '{"stopReason":"end_turn",'"$used"'}'
            ;;
    esac
done"#;

/// An agent that is given by its command.
pub(crate) struct Protocol;

impl AgentSetup for Protocol {
    fn name(&self) -> &'static str {
        "acp"
    }

    fn agent(&self) -> &'static dyn Agent {
        &acp::Acp
    }

    fn set(&self, acts: &[Act]) -> Set {
        let config = json!({"type": "acp", "command": ["sh", "-c", SCRIPT]});
        let harness = AgentHarness { sandbox: Some(Bare::new()), ..with_config(acts, &config) };
        Set { harness, _kept: None }
    }

    fn absent(&self) -> Option<Set> {
        let config = json!({"type": "acp", "command": "no-such-program"});
        let harness = AgentHarness { sandbox: Some(Bare::new()), ..with_config(&[Act::Count], &config) };
        Some(Set { harness, _kept: None })
    }
}
