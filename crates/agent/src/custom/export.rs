//! Exports of a module.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use script::{Function, Value};

use crate::RunState;
use crate::engine::Program;
use crate::network::Network;

/// Finds `execute` or an adapter: among the exports, or as methods of the default export, of another export, or of an
/// instance of an exported class.
const FIND: &str = "const [module] = modules;
const has = (one, name) => one !== null && one !== undefined && typeof one[name] === 'function';
const called = (one) => has(one, 'callApi') || (typeof one === 'function' && has(one.prototype, 'callApi'));
const adapter = (one) => {
    let provider = one;
    const text = (output) => (typeof output === 'string' ? output : JSON.stringify(output));
    return {
        connect: (config = {}) => { if (typeof one === 'function') provider = new one({ id: 'provider', config }); },
        send: async (message, { vars = {} } = {}) => {
            const context = { vars, prompt: { raw: message, label: message } };
            const { output, error, tokenUsage = {} } = (await provider.callApi(message, context, {})) ?? {};
            if (error) throw new Error(String(error));
            return { text: text(output), tokenUsage: { input: tokenUsage.prompt, output: tokenUsage.completion } };
        },
    };
};
const known = (one) => has(one, 'execute') || has(one, 'send');
const made = (one) => (typeof one === 'function' && known(one.prototype) ? new one() : one);
const provider = [module, module.default, ...Object.keys(module).map((name) => module[name])].find(called);
const own = provider === undefined ? made(module.default) : adapter(provider);
const others = () => Object.keys(module).filter((name) => name !== 'default').map((name) => module[name])
    .filter((one) => known(one) || known(one?.prototype)).map(made);
const holder = provider === undefined && known(module) ? module : known(own) ? own : typeof own === 'function' ? undefined : others()[0];
const method = (name) => (has(holder, name) ? (...given) => holder[name](...given) : undefined);
export default has(holder, 'execute') ? { execute: method('execute') }
    : holder ? { connect: method('connect'), send: method('send'), reset: method('reset'), disconnect: method('disconnect') }
    : { execute: typeof own === 'function' ? own : undefined };";

/// Description of an agent that is a single function.
pub(super) const EXECUTE: &str =
    "export a function `execute({script, args, options})`, by name or as the default export";
/// Description of an adapter.
pub(super) const ADAPTER: &str = "or an object or a class with `send(message, context)` and, where they are needed, `connect`, `reset` and `disconnect`";

/// Callable part of a module.
pub(super) enum Export {
    /// A function that receives the whole case.
    Execute(Function),
    /// An adapter that passes messages.
    Adapter(Adapter),
}

/// An object that passes messages to an agent.
pub(super) struct Adapter {
    pub(super) connect: Option<Function>,
    pub(super) send: Function,
    pub(super) reset: Option<Function>,
    pub(super) disconnect: Option<Function>,
}

impl Export {
    /// Reads the result of [`program`]; returns `None` if there is nothing to call.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let function = |name: &str| match value.get(name) {
            Some(Value::Function(function)) => Some(function.clone()),
            _ => None,
        };
        if let Some(execute) = function("execute") {
            return Some(Self::Execute(execute));
        }
        Some(Self::Adapter(Adapter {
            send: function("send")?,
            connect: function("connect"),
            reset: function("reset"),
            disconnect: function("disconnect"),
        }))
    }
}

/// Returns the program that loads the module in `file`, which may send requests to the hosts of `network`.
pub(super) fn program(file: &Path, network: Option<Network>, state: &Arc<RunState>) -> Program {
    let file = state.cwd.join(file);
    let directory = file.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
    Program {
        directory,
        modules: vec![file.to_string_lossy().into_owned()],
        text: FIND.to_owned(),
        network,
        state: Arc::clone(state),
        is_shared: false,
    }
}
