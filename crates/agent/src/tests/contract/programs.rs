//! Setups for the `subprocess` agent: shell scripts.

use serde_json::json;

use super::agent_setup::{Act, AgentSetup, Set, with_config};
use crate::tests::harness::{AgentHarness, Bare};
use crate::{Agent, subprocess};

/// Script that reads one message per line.
const LINES: &str = r#"while read -r line; do
    n=$((n + 1))
    text=${line#*'"message":"'}
    text=${text%%'"'*}
    DOES
done"#;

/// Script that reads one message and keeps its count in a file.
const ONCE: &str = r#"text=$(cat)
echo >> messages
n=$(wc -l < messages)
DOES"#;

/// Code that implements the acts for both scripts, given in `$text`.
const DOES: &str = r#"used='"usage":{"input":3,"output":4}'
    case $text in
        "say "*) printf '{"text":"%s",%s}\n' "${text#say }" "$used" ;;
        count) printf '{"message":"%s",%s}\n' $n "$used" ;;
        call) printf '{"text":"done","tool_calls":[{"name":"find","arguments":{"q":1},"result":"found"}],%s}\n' "$used" ;;
        huge) printf '{"text":"%s",%s}\n' "$(head -c 1000000 /dev/zero | tr '\0' x)" "$used" ;;
        hang) exec sleep 1000 ;;
        fail) exit 3 ;;
        garbage) printf '{"nothing":1}\n' ;;
    esac"#;

fn set(acts: &[Act], script: &str, mode: &str) -> Set {
    let command = ["sh", "-c", &script.replace("DOES", DOES)];
    let mut config = json!({"type": "subprocess", "command": command, "mode": mode});
    if mode == "oneshot" {
        config["output"] = json!("json");
    }
    let harness = AgentHarness { sandbox: Some(Bare::new()), ..with_config(acts, &config) };
    Set { harness, _kept: None }
}

fn absent(mode: &str) -> Option<Set> {
    let config = json!({"type": "subprocess", "command": "no-such-program", "mode": mode});
    let harness = AgentHarness { sandbox: Some(Bare::new()), ..with_config(&[Act::Count], &config) };
    Some(Set { harness, _kept: None })
}

/// One process for each conversation.
pub(crate) struct Lines;

impl AgentSetup for Lines {
    fn name(&self) -> &'static str {
        "subprocess, in lines"
    }

    fn agent(&self) -> &'static dyn Agent {
        &subprocess::Subprocess
    }

    fn set(&self, acts: &[Act]) -> Set {
        set(acts, LINES, "jsonl")
    }

    fn absent(&self) -> Option<Set> {
        absent("jsonl")
    }
}

/// One process for each message.
pub(crate) struct Once;

impl AgentSetup for Once {
    fn name(&self) -> &'static str {
        "subprocess, for each message"
    }

    fn agent(&self) -> &'static dyn Agent {
        &subprocess::Subprocess
    }

    fn set(&self, acts: &[Act]) -> Set {
        set(acts, ONCE, "oneshot")
    }

    fn absent(&self) -> Option<Set> {
        absent("oneshot")
    }
}
