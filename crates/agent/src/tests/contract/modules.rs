//! Setups for the `custom` agent: modules.

use super::agent_setup::{Act, AgentSetup, Set, harness};
use crate::tests::harness::AgentHarness;
use crate::{Agent, custom};

/// Code that implements the acts, given as text.
const DOES: &str = "let n = 0;
const usage = { input: 3, output: 4 };
const does = (text) => {
    n += 1;
    switch (text) {
        case 'count': return { text: `${n}` };
        case 'call': return { text: 'done', calls: [{ name: 'find', args: { q: 1 }, result: 'found' }] };
        case 'huge': return { text: 'x'.repeat(1_000_000) };
        case 'hang': return new Promise((go) => setTimeout(go, 1e9));
        case 'fail': throw new Error('as told');
        case 'garbage': return null;
        default: return { text: text.replace('say ', '') };
    }
};
";

fn set(acts: &[Act], text: &str) -> Set {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.js");
    std::fs::write(&file, format!("{DOES}{text}")).unwrap();
    let argument = Some(file.to_string_lossy().into_owned());
    Set { harness: AgentHarness { argument, ..harness(acts) }, _kept: Some(Box::new(folder)) }
}

fn absent() -> Option<Set> {
    let argument = Some("/none/agent.js".to_owned());
    Some(Set { harness: AgentHarness { argument, ..harness(&[Act::Count]) }, _kept: None })
}

/// A module with a function.
pub(crate) struct Execute;

impl AgentSetup for Execute {
    fn name(&self) -> &'static str {
        "custom, a function"
    }

    fn agent(&self) -> &'static dyn Agent {
        &custom::Custom
    }

    fn set(&self, acts: &[Act]) -> Set {
        let text = "export async function execute({ args }) {
            const done = await does(args.input);
            return done && { output: done.text, tools: done.calls, usage };
        }";
        set(acts, text)
    }

    fn absent(&self) -> Option<Set> {
        absent()
    }
}

/// A module with an adapter.
pub(crate) struct Adapter;

impl AgentSetup for Adapter {
    fn name(&self) -> &'static str {
        "custom, an adapter"
    }

    fn agent(&self) -> &'static dyn Agent {
        &custom::Custom
    }

    fn set(&self, acts: &[Act]) -> Set {
        let text = "export default class {
            async send(message) {
                const done = await does(message);
                return done && { text: done.text, toolCalls: done.calls, tokenUsage: usage };
            }
        }";
        set(acts, text)
    }

    fn absent(&self) -> Option<Set> {
        absent()
    }
}
