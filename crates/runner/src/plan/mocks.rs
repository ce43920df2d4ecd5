//! Checks that a case's MCP servers, mocked programs and earlier conversation can be given to its agent: an agent without
//! them would be judged by what it cannot do.

use std::path::Path;

use agent::Agent;
use model::{Case, Diagnostic, McpServer, ServerSource};

use super::planner::Planner;
use super::trial::{WITH_SANDBOX, needs_sandbox};

impl Planner<'_> {
    /// Reports the servers, mocks and earlier conversation of `case` that this agent or the sandboxes of the run cannot
    /// have. `directory` is the folder of its suite.
    pub(super) fn check_mocks(&mut self, agent: &dyn Agent, case: &Case, directory: &Path) {
        let settings = &self.request.settings.sandbox;
        let mocks = settings.mocks_of(case);
        if case.skip.is_some() {
            return;
        }
        if case.history.is_some() {
            self.check_accepts(agent, case, "history_file", |agent| agent.description().takes_history);
        }
        if !case.mocks.servers.is_empty() {
            self.check_accepts(agent, case, "mcp_servers", |agent| agent.description().takes_servers);
        }
        for server in &mocks.servers {
            let problem = missing_program(server, case, directory);
            self.problems.extend(problem.filter(|problem| !self.problems.contains(problem)));
        }
        let has_sandbox = needs_sandbox(agent, case);
        if case.mocks.is_empty() && !mocks.is_empty() {
            let lacks_servers = !mocks.servers.is_empty() && !agent.description().takes_servers;
            if lacks_servers || !has_sandbox {
                let what = if has_sandbox { "MCP servers" } else { "MCP servers and mocked programs" };
                let message = format!("`{}` does not get the project's {what}", agent.name());
                let problem =
                    Diagnostic::warning(message).help("it cannot be given servers, or runs without a sandbox");
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
            }
            if !has_sandbox {
                return;
            }
        }
        let kind = sandbox::find(&settings.kind).and_then(sandbox::mock_refusal);
        // Servers that the agent does not accept are reported above.
        let accepts = case.mocks.servers.is_empty() || agent.description().takes_servers;
        let is_needed = if accepts { !mocks.is_empty() } else { !case.mocks.commands.is_empty() };
        let refusal = if is_needed && !has_sandbox {
            let reason = format!("mocks need a sandbox, and `{}` runs without one", agent.name());
            Some((reason, WITH_SANDBOX.to_owned()))
        } else {
            kind.filter(|_| mocks.has_mocks())
        };
        let problem = refusal.map(|(reason, help)| Diagnostic::error(reason).at(case.source.clone()).help(help));
        self.problems.extend(problem.filter(|problem| !self.problems.contains(problem)));
    }
}

/// Returns a warning about a server of the user whose program or script does not exist.
fn missing_program(server: &McpServer, case: &Case, directory: &Path) -> Option<Diagnostic> {
    let ServerSource::Stdio { command, args, files, .. } = &server.source else { return None };
    let words: Vec<String> = [command].into_iter().chain(args).cloned().collect();
    // Arguments in the name of the program are reported where it is read.
    let is_reported = command.trim().contains(char::is_whitespace) && !Path::new(command).exists();
    if server.is_of_plugin || is_reported {
        return None;
    }
    let Some(missing) = agent::missing_program(&words, directory) else {
        let reason = agent::unusable_program(&words, directory)?;
        let reason = reason.replace(&format!("{}/", directory.display()), "./");
        let problem = Diagnostic::warning(format!("the MCP server `{}` cannot start: {reason}", server.name));
        return Some(problem.at(server.place.clone()).help(agent::HELP_FOR_UNUSABLE));
    };
    // Other files may exist in the sandbox alone: those of an image, of fixtures and of an installed skill.
    let has_own_files = !case.fixtures.is_empty() || case.subject.installed().is_some();
    let path = Path::new(&missing);
    let is_known = files.iter().any(|file| file == path) || (path.is_relative() && !has_own_files);
    let shown = path.strip_prefix(directory).unwrap_or(path).display();
    let message = format!("there is no file `{shown}`, which the MCP server `{}` runs", server.name);
    let help = "paths that begin with `./` are relative to the file with the server; without the file, the agent has no \
                tools of this server";
    is_known.then(|| Diagnostic::warning(message).at(server.place.clone()).help(help))
}
