//! Starting an agent: its program, environment and home.

use std::path::{Path, PathBuf};

use model::decode::Problems;
use sandbox::{Breakage, Host};

use super::config;
use super::named::{ModelAddress, Named};
use crate::process::Process;
use crate::program::{Invocation, link, loopback_without_proxy, script_name, variables};
use crate::subprocess::Launch as CommandLaunch;
use crate::{Endpoint, SessionContext, joined};

/// How the program is started.
pub(super) enum Launch {
    /// A command that the user wrote.
    Command(CommandLaunch),
    /// The program of an agent that is known by name.
    Program(Invocation),
}

impl Launch {
    /// Determines how the user's command is started.
    pub(super) fn of_command(context: &SessionContext) -> Result<Self, Breakage> {
        let mut command = match &context.config {
            Some(configured) => {
                let mut problems = Problems::new();
                config::read(&configured.node, &mut problems).ok_or_else(|| Breakage::environment(joined(&problems)))?
            }
            None => config::from_argument(context.argument.as_deref())
                .map_err(|problem| Breakage::environment(problem.to_string()))?,
        };
        command.env.retain(|(name, _)| !context.model_variables.iter().any(|(variable, _)| variable == name));
        command.env.extend(context.model_variables.iter().cloned());
        let here = Path::new(".").canonicalize().unwrap_or_default();
        let project = context.config.as_ref().map_or(here.as_path(), |config| config.directory.as_path());
        let conversation = context.session_id("acp");
        CommandLaunch::prepare(&command, project, context.sandbox()?, &conversation).map(Self::Command)
    }

    /// Determines how the program of a known agent is started, and creates the files in its home.
    pub(super) fn of_program(agent: &Named, program: PathBuf, context: &SessionContext) -> Result<Self, Breakage> {
        let own_args = agent.args.iter().map(|arg| (*arg).to_owned());
        let mut invocation = match &agent.model {
            ModelAddress::OpenCode => crate::opencode::acp_invocation(program, context)?,
            ModelAddress::Codex => crate::codex::acp_invocation(program, context)?,
            ModelAddress::Unknown | ModelAddress::Variables { .. } => {
                let auth = sign_in(agent, &context.host).unwrap_or("none");
                let auth = if matches!(context.endpoint, Endpoint::Gateway { .. }) { "scripted" } else { auth };
                Invocation { program, args: Vec::new(), env: environment(agent, context), auth }
            }
        };
        invocation.args = own_args.collect();
        if let Some(model) = context.setup.model.as_deref().filter(|_| !agent.model_args.is_empty()) {
            let is_scripted = matches!(context.endpoint, Endpoint::Gateway { .. });
            let model =
                if is_scripted { format!("{}{}", agent.model_prefix, script_name(model)) } else { model.to_owned() };
            invocation.args.extend(agent.model_args.iter().map(|arg| (*arg).to_owned()).chain([model]));
        }
        let home = context.sandbox()?.home().to_string_lossy().into_owned();
        let own = variables(agent.variables);
        invocation.env.extend(own.map(|(name, value)| (name, value.replace("{home}", &home))));
        lay_out(agent, context)?;
        Ok(Self::Program(invocation))
    }

    /// Starts the program.
    pub(super) fn start(&self, context: &SessionContext) -> Result<Process, String> {
        match self {
            Self::Command(command) => command.start(None),
            Self::Program(invocation) => {
                let sandbox = context.sandbox().map_err(|breakage| breakage.to_string())?;
                invocation.start(sandbox.as_ref(), &[])
            }
        }
    }

    /// Returns the name of the sign-in; `None` if it is not known.
    pub(super) fn auth(&self) -> Option<&'static str> {
        match self {
            Self::Command(_) => None,
            Self::Program(invocation) => Some(invocation.auth),
        }
    }
}

/// Name of a sign-in that is stored in the user's home.
pub(super) const STORED: &str = "stored sign-in";

/// Returns the name of the sign-in, without secrets; `None` if there is none.
pub(super) fn sign_in(agent: &Named, host: &Host) -> Option<&'static str> {
    let has_key = agent.keys.iter().any(|key| key.ends_with(['Y', 'N']) && host.var(key).is_some());
    let is_stored = || stored(agent, host).next().is_some();
    if has_key { Some("api key") } else { is_stored().then_some(STORED) }
}

/// Returns the stored sign-ins that exist: their files, and their paths below the home.
fn stored<'a>(agent: &'a Named, host: &'a Host) -> impl Iterator<Item = (PathBuf, &'static str)> + 'a {
    let home = host.home.as_deref();
    let files = agent.sign_ins.iter().filter_map(move |path| Some((home?.join(path), *path)));
    files.filter(|(file, _)| file.is_file())
}

fn environment(agent: &Named, context: &SessionContext) -> Vec<(String, String)> {
    let host = &context.host;
    let keys = agent.keys.iter().filter_map(|key| Some(((*key).to_owned(), host.var(key)?.to_owned())));
    let ModelAddress::Variables { address, form, path, key, model, .. } = &agent.model else { return keys.collect() };
    let mut env: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: String| env.push((name.to_owned(), value));
    let formed = |url: &str| form.map_or_else(|| url.to_owned(), |form| form.replace("{address}", url));
    match &context.endpoint {
        Endpoint::Gateway { base_url, token } => {
            set(address, formed(&format!("{base_url}{path}")));
            set(key, token.clone());
            let name = script_name(context.setup.model.as_deref().unwrap_or_default());
            if let Some(model) = model {
                set(model, name.clone());
            }
            for (variable, value) in agent.scripted_variables {
                set(variable, value.replace("{model}", &name));
            }
            env.extend(loopback_without_proxy(host));
            return env;
        }
        Endpoint::Observed { gateway, .. } => set(address, formed(gateway)),
        Endpoint::Vendor { base_url: Some(base_url) } => set(address, formed(base_url)),
        Endpoint::Vendor { base_url: None } | Endpoint::Script { .. } | Endpoint::Provider(_) => {}
    }
    if let (Some(variable), Some(name)) = (model, &context.setup.model) {
        set(variable, name.clone());
    }
    if matches!(context.endpoint, Endpoint::Observed { .. }) {
        env.extend(loopback_without_proxy(host));
    }
    let known: Vec<String> = env.iter().map(|(name, _)| name.clone()).collect();
    env.extend(keys.filter(|(name, _)| !known.contains(name)));
    env
}

/// Creates the files in the home, and links the stored sign-ins unless the model is scripted.
fn lay_out(agent: &Named, context: &SessionContext) -> Result<(), Breakage> {
    let sandbox = context.sandbox()?;
    let home = sandbox.home();
    let write = |path: &str, content: &str| {
        let file = home.join(path);
        file.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(file, content)
    };
    let mut made = agent.home.iter().try_for_each(|(path, content)| write(path, content));
    if !matches!(context.endpoint, Endpoint::Gateway { .. }) && sign_in(agent, &context.host) == Some(STORED) {
        for (file, path) in stored(agent, &context.host) {
            sandbox.show(&file);
            made = made.and(link(&file, &home.join(path)));
        }
    }
    made.map_err(|error| {
        Breakage::environment(format!("cannot prepare the home of `{}`: {error}", agent.description.name))
    })
}

#[cfg(test)]
mod tests {
    use super::super::named::VIBE;
    use super::*;
    use crate::tests::harness::AgentHarness;

    #[test]
    fn an_address_and_a_model_can_be_parts_of_a_variable() {
        let harness = AgentHarness::for_program(&[], "scripted:a.yaml", AgentHarness::gateway());
        let env = environment(&VIBE, &harness.session_context());
        let value = |name: &str| env.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        let providers =
            r#"[{"name":"mistral","api_base":"http://127.0.0.1:1/v1","api_key_env_var":"MISTRAL_API_KEY"}]"#;
        assert_eq!((value("VIBE_PROVIDERS"), value("VIBE_ACTIVE_MODEL")), (Some(providers), Some("a.yaml")));
        assert_eq!(value("VIBE_MODELS"), Some(r#"[{"name":"a.yaml","provider":"mistral","alias":"a.yaml"}]"#));
    }
}
