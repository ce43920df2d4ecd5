//! The `chat` agent: a model with the usual coding tools, run inside this process. It needs no programs except a
//! shell, and works with every model that [`llm`] can open.

mod access;
mod permission;
mod prompt;
mod prompt_file;
mod servers;
mod skills;
pub(super) mod tool;

use std::sync::Arc;
use std::time::Duration;

use llm::{Block, Conversation, Message, Model, Reply, Request, Role, StopReason, ToolSpec};
use model::{
    AuxiliaryUsage, Case, Diagnostic, Ending, Mocks, ServerSource, Step, Tokens, ToolCall, ToolResult, Usage,
    UserMessage, nearest,
};
use sandbox::{BoxFuture, Breakage, Host, Sandbox};
use serde_json::{Map, Value};

pub(super) use self::access::FileAccess;
use self::permission::{PermissionDecision, Permissions};
use self::servers::Servers;
use self::skills::InstalledSkill;
use super::own_tools::{self, OwnTools, Owner};
use super::{Agent, CaseContext, Costs, Description, Endpoint, Readiness, RunState, SessionContext, joined};
use crate::model_request::{MessageIds, respond, steps};
use crate::session::Session;
use crate::turn::Turn;

/// The embedded agent.
pub struct Chat;

/// Owner of the case's tools.
pub(super) const OWNER: Owner = Owner { agent: "chat", tools: tool::NAMES };

static DESCRIPTION: Description = Description {
    tools: Some(tool::NAMES),
    answers_in_text: true,
    skills_folder: Some(skills::FOLDER),
    calls_script: true,
    asks_providers: true,
    takes_script: true,
    takes_tools: true,
    takes_servers: true,
    costs: Costs::ByPrice,
    ..Description::new("chat", "the embedded agent: a model with the usual coding tools, nothing to install")
};

impl Agent for Chat {
    fn description(&self) -> &Description {
        &DESCRIPTION
    }

    fn offered_tools(&self, case: &Case, mocks: &Mocks) -> Option<Vec<ToolSpec>> {
        if case.all_tools().next().is_some() {
            return None;
        }
        let rules = case.runner.allowed_tools_override.iter().flatten();
        let listed: Vec<String> = rules.map(|rule| crate::tool_rule::ToolRule::parse(rule).tool).collect();
        // With a name that is not known, and is reported, any tool may be meant.
        let is_open =
            case.runner.allowed_tools_override.is_none() || listed.iter().any(|name| tool::find(name).is_none());
        let is_offered = |name: &str| is_open || listed.iter().any(|known| known == name);
        let mut tools: Vec<ToolSpec> = tool::TOOLS.iter().filter(|tool| is_offered(tool.name)).map(spec).collect();
        for server in &mocks.servers {
            let ServerSource::Mock(mock) = &server.source else { return None };
            tools.extend(mock.tools.iter().map(|tool| ToolSpec {
                name: format!("mcp__{}__{}", server.name, tool.name),
                input_schema: tool.input_schema.clone().map_or(Value::Null, Value::Object),
                ..ToolSpec::default()
            }));
        }
        Some(tools)
    }

    fn check_argument(&self, argument: Option<&str>, _state: &Arc<RunState>) -> Vec<Diagnostic> {
        let problem = |argument| {
            Diagnostic::error(format!("`chat` takes no argument, but was given `{argument}`"))
                .help("set the model with `model`")
        };
        argument.map(problem).into_iter().collect()
    }

    fn check(&self, context: &CaseContext<'_>) -> Vec<Diagnostic> {
        let case = context.case;
        let mut problems: Vec<Diagnostic> = check_model(context).into_iter().collect();
        problems.extend(prompt_file::prompts(case, context.directory).err().unwrap_or_default());
        problems.extend(own_tools::check(case, context.directory, context.state, OWNER));
        let brings_tools = case.all_tools().next().is_some();
        for written in case.runner.allowed_tools_override.iter().flatten() {
            let name = crate::tool_rule::ToolRule::parse(written).tool;
            if tool::find(&name).is_none() && !brings_tools {
                problems.push(
                    Diagnostic::warning(format!("`chat` has no tool named `{name}`"))
                        .at(case.runner.place_of("allowed_tools_override").unwrap_or(&case.source).clone())
                        .suggest(nearest(&name, tool::NAMES.iter().copied())),
                );
            }
        }
        problems
    }

    fn ready<'a>(&'a self, _host: &'a Host) -> BoxFuture<'a, Readiness> {
        let version = Some(env!("CARGO_PKG_VERSION").to_owned());
        Box::pin(std::future::ready(Readiness { ready: true, version, auth: None, hints: Vec::new() }))
    }

    fn open<'a>(&'a self, session_context: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        Box::pin(async move {
            let own_tools = OwnTools::open(&session_context, OWNER).await?;
            let servers = Servers::open(&session_context).await?;
            Ok(Box::new(ChatSession::open(session_context, own_tools, servers)?) as Box<dyn Session>)
        })
    }
}

/// Checks that a model is configured and can be opened here.
fn check_model(context: &CaseContext<'_>) -> Option<Diagnostic> {
    let CaseContext { case, arm, .. } = context;
    let forms = || llm::PROVIDERS.iter().map(|provider| format!("`{}:{}`", provider.name, provider.argument));
    let known = || format!("models it can use: {}", forms().collect::<Vec<_>>().join(", "));
    let problem = match arm.model.as_deref() {
        None => Diagnostic::error("`chat` needs a model")
            .of_missing(&["model"])
            .help("set `model` in the test, in the configuration or for the run")
            .help(known()),
        Some(written) if llm::provider_of(written).is_some() => out_of_reach(context, written)?,
        Some(written) => {
            let (name, rest) = written.split_once(':').unwrap_or((written, ""));
            let near = nearest(name, llm::PROVIDERS.iter().map(|provider| provider.name));
            let near = llm::PROVIDERS.iter().find(|provider| Some(provider.name) == near);
            let problem = Diagnostic::error(format!("`chat` cannot access the model `{written}`"));
            let problem = match near {
                Some(near) if rest.is_empty() => problem.help(format!("write `{}:{}`", near.name, near.argument)),
                near => problem.suggest(near.map(|near| format!("{}:{rest}", near.name)).as_deref()),
            };
            problem.help(known())
        }
    };
    // If the command line or the project set the model, the line in the case is not the cause.
    let is_of_case = arm.model.is_none() || arm.model == case.runner.model;
    let of_case = case.runner.model_source.as_ref().unwrap_or(&case.source);
    let source = if is_of_case { Some(of_case) } else { context.model_source };
    Some(Diagnostic { source: source.cloned(), ..problem })
}

/// Returns the reason why the model `written` cannot be used here. A problem with the machine is a warning, because
/// the file is not wrong.
fn out_of_reach(context: &CaseContext<'_>, written: &str) -> Option<Diagnostic> {
    // Scripts are read when the trial is planned.
    if llm::provider_of(written).is_some_and(|(provider, _)| provider.name == "scripted") {
        return None;
    }
    let error = context.providers.model(written, context.base_url).err()?;
    let message = format!("the model `{written}` cannot be used: {error}");
    Some(match error.is_environments() {
        true => Diagnostic::warning(message).help("every trial with this model will be broken"),
        false => Diagnostic::error(message),
    })
}

/// Context of the tools.
struct ToolContext {
    sandbox: Arc<dyn Sandbox>,
    access: Arc<FileAccess>,
    skills: Vec<InstalledSkill>,
    /// The trial's time limit, which also limits each command.
    time: Duration,
}

/// A conversation between a user, a model and the tools.
struct ChatSession {
    session_id: String,
    model: Arc<dyn Model>,
    request: Request,
    message_ids: MessageIds,
    permissions: Permissions,
    tool_context: ToolContext,
    own_tools: OwnTools,
    servers: Servers,
    /// True if the model is scripted.
    is_scripted: bool,
    opened: bool,
}

/// A tool chosen by a call.
enum Chosen {
    BuiltIn(&'static tool::Tool),
    /// A tool of the case, by its index.
    Own(usize),
    /// A tool of an MCP server, by its index.
    Server(usize),
}

/// Returns `tool` as the model gets it.
fn spec(tool: &tool::Tool) -> ToolSpec {
    ToolSpec {
        name: tool.name.to_owned(),
        description: Some(tool.description.to_owned()),
        input_schema: tool.schema(),
        extra: Map::new(),
    }
}

impl ChatSession {
    fn open(session_context: SessionContext, own_tools: OwnTools, servers: Servers) -> Result<Self, Breakage> {
        let session_id = session_context.session_id("chat");
        let sandbox = session_context.sandbox()?;
        let is_scripted = matches!(session_context.endpoint, Endpoint::Script { .. });
        let (model, name) = reached(session_context.endpoint, session_context.setup.model.as_deref())?;
        let prompts = prompt_file::prompts(&session_context.case, &session_context.directory)
            .map_err(|problems| Breakage::environment(joined(&problems)))?;
        let access = Arc::new(FileAccess::for_sandbox(sandbox.as_ref()));
        let skills = InstalledSkill::all(&access);
        let permissions = Permissions::from_setup(&session_context.setup).with_servers(&session_context.servers);
        let tools = tool::TOOLS.iter().filter(|tool| permissions.has(tool.name)).map(spec);
        let others = own_tools.specs().chain(servers.specs()).filter(|spec| permissions.has(&spec.name)).cloned();
        let tools = tools.chain(others).collect();
        let can_load = permissions.has("Skill");
        let listed = if can_load { &skills[..] } else { &[] };
        let request = Request {
            model: name,
            effort: session_context.setup.reasoning_effort.clone(),
            system: prompt::system(
                Some(access.work()),
                listed,
                session_context.setup.system_prompt.clone().into_iter().chain(prompts),
            ),
            tools,
            conversation: Conversation::main(),
            ..Request::default()
        };
        let time = Duration::from_millis(session_context.setup.timeout_ms);
        Ok(Self {
            session_id,
            model,
            request,
            message_ids: MessageIds::default(),
            permissions,
            tool_context: ToolContext { sandbox, access, skills, time },
            own_tools,
            servers,
            is_scripted,
            opened: false,
        })
    }

    fn begin(&mut self, turn: &mut Turn) -> Result<(), Ending> {
        if std::mem::replace(&mut self.opened, true) {
            return Ok(());
        }
        turn.record(Step::Session {
            session_id: Some(self.session_id.clone()),
            model: Some(self.request.model.clone()),
            agent_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            tools: self.request.tool_names().map(str::to_owned).collect(),
            auth: None,
        })
    }

    /// Lets the model respond and runs its calls until it is done. Returns its answer.
    async fn follow(&mut self, turn: &mut Turn, used: &mut AuxiliaryUsage) -> Result<Option<String>, Ending> {
        self.begin(turn)?;
        loop {
            if turn.turns_left() == 0 {
                return Err(turn.out_of_turns());
            }
            let reply = respond(self.model.as_ref(), &self.request, "model", turn).await?;
            *used += AuxiliaryUsage::from_answer(reply.tokens, reply.cost_usd);
            let calls = self.take_in(&reply, turn)?;
            if !calls.is_empty() || reply.stop_reason == StopReason::Paused {
                turn.spends(Usage { tokens: reply.tokens, cost_usd: reply.cost_usd })?;
            }
            for call in &calls {
                let reply = self.answer(call, turn).await?;
                let stopped = reply.is_none();
                self.give_back(
                    call,
                    reply.unwrap_or_else(|| Err("The tool was stopped before it had finished.".to_owned())),
                    turn,
                )?;
                if stopped {
                    return Err(Ending::Cancelled);
                }
            }
            let is_over = calls.is_empty() && reply.stop_reason != StopReason::Paused;
            if is_over {
                return answer_of(&reply);
            }
        }
    }

    /// Records a message from the model and keeps it for the next request. Returns its calls, which must still be
    /// answered.
    fn take_in(&mut self, reply: &Reply, turn: &mut Turn) -> Result<Vec<ToolCall>, Ending> {
        self.request.messages.push(Message { role: Role::Assistant, content: reply.content.clone() });
        let mut calls = Vec::new();
        for step in steps(reply, &mut self.message_ids) {
            if let Step::ToolCall(call) = &step {
                calls.push(call.clone());
            }
            turn.record(step)?;
        }
        Ok(calls)
    }

    /// Returns the result of `call`; `None` if the trial must stop.
    async fn answer(&mut self, call: &ToolCall, turn: &mut Turn) -> Result<Option<tool::ToolOutput>, Ending> {
        let reply = match self.permitted(call, turn)? {
            Ok(Chosen::BuiltIn(tool)) => tool.answer(&call.id, &call.input, &self.tool_context, turn).await,
            Ok(Chosen::Own(at)) => self.own_tools.answer(at, &call.input, turn).await?,
            Ok(Chosen::Server(at)) => self.servers.answer(at, &call.input, turn).await?,
            Err(refused) => Some(Err(refused)),
        };
        turn.waiting("agent");
        Ok(reply)
    }

    /// Returns the tool for `call`, or the error message for the model.
    fn permitted(&self, call: &ToolCall, turn: &mut Turn) -> Result<Result<Chosen, String>, Ending> {
        let own = || self.own_tools.find(&call.name).map(Chosen::Own);
        let of_server = || self.servers.find(&call.name).map(Chosen::Server);
        let chosen = tool::find(&call.name).map(Chosen::BuiltIn).or_else(own).or_else(of_server);
        let Some(chosen) = chosen.filter(|_| self.permissions.has(&call.name)) else {
            let near = nearest(&call.name, self.request.tool_names());
            let hint = near.map(|near| format!(" Did you mean `{near}`?")).unwrap_or_default();
            let known = self.request.tool_names().collect::<Vec<_>>().join(", ");
            return Ok(Err(format!("No such tool: `{}`.{hint} Available tools: {known}.", call.name)));
        };
        Ok(match self.permissions.decide(call, &self.tool_context.access) {
            PermissionDecision::Allow => Ok(chosen),
            PermissionDecision::AskUser => Err(turn.deny(call)),
            PermissionDecision::Deny(reason) => {
                turn.record(Step::PermissionDenied {
                    tool: call.name.clone(),
                    call_id: Some(call.id.clone()),
                    message: reason.clone(),
                })?;
                Err(reason)
            }
        })
    }

    /// Records the result of a call and keeps it for the next request. The results for one message are sent together.
    fn give_back(&mut self, call: &ToolCall, reply: tool::ToolOutput, turn: &mut Turn) -> Result<(), Ending> {
        let is_error = reply.is_err();
        let (Ok(content) | Err(content)) = reply;
        if self.is_scripted && is_error && content.starts_with(tool::INVALID) {
            turn.warn(format!("the scripted model called `{}` wrongly. {content}", call.name));
        }
        let text = Block::Text { text: content.clone() };
        let block = Block::ToolResult { id: call.id.clone(), content: vec![text], is_error };
        match self.request.messages.last_mut() {
            Some(last) if last.role == Role::User => last.content.push(block),
            _ => self.request.messages.push(Message { role: Role::User, content: vec![block] }),
        }
        turn.record(Step::ToolResult(ToolResult { id: call.id.clone(), content, is_error }))
    }
}

/// Returns the model and its name.
fn reached(endpoint: Endpoint, named: Option<&str>) -> Result<(Arc<dyn Model>, String), Breakage> {
    match endpoint {
        Endpoint::Script { model, name } => Ok((model, named.map_or(name, str::to_owned))),
        Endpoint::Provider(Ok(model)) => Ok((model, named.unwrap_or_default().to_owned())),
        Endpoint::Provider(Err(error)) => Err(Breakage::environment(error.to_string())),
        Endpoint::Vendor { .. } | Endpoint::Observed { .. } | Endpoint::Gateway { .. } => {
            Err(Breakage::harness("the embedded agent was given a model that it cannot access"))
        }
    }
}

/// Returns the text for the user, unless the model stopped before it was done.
fn answer_of(reply: &Reply) -> Result<Option<String>, Ending> {
    match reply.stop_reason {
        StopReason::Refusal => Err(Ending::GaveUp { reason: "the model declined to answer".to_owned() }),
        StopReason::MaxTokens => Err(Ending::GaveUp { reason: "the answer reached its token limit".to_owned() }),
        _ => Ok(Some(reply.text()).filter(|text| !text.is_empty())),
    }
}

impl Session for ChatSession {
    fn send<'a>(&'a mut self, message: &'a UserMessage, turn: &'a mut Turn) -> BoxFuture<'a, Ending> {
        Box::pin(async move {
            self.request.messages.push(Message::text(Role::User, &message.text));
            let mut used = AuxiliaryUsage { tokens: Some(Tokens::default()), ..AuxiliaryUsage::default() };
            let followed = self.follow(turn, &mut used).await;
            let subtype = subtype(followed.as_ref().err().unwrap_or(&Ending::Finished));
            turn.finish(followed, subtype, used.usage())
        })
    }
}

/// Returns the name of the ending, as used in the trace.
fn subtype(ending: &Ending) -> &'static str {
    match ending {
        Ending::Finished => "success",
        Ending::OutOfBudget { .. } => "error_budget",
        Ending::ProviderFailed { .. } | Ending::Stale(_) => "error_provider",
        Ending::Cancelled | Ending::TimedOut { .. } | Ending::Silent { .. } => "error_stopped",
        Ending::GaveUp { .. } | Ending::Aborted { .. } | Ending::Unreachable { .. } | Ending::InvalidTest { .. } => {
            "error"
        }
    }
}

#[cfg(test)]
mod tests;
