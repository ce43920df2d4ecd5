//! Code shared by both APIs.

use llm::Reply;
use model::{Ending, Step, Tokens, ToolCall, ToolResult, Usage};
use sandbox::Breakage;

use super::OWNER;
use crate::SessionContext;
use crate::own_tools::OwnTools;
use crate::turn::{Turn, WAITING_ON_PROVIDER, finished};

/// Usage of answering one message. A sum with an unknown part is unknown.
pub(super) struct Spent(Option<Usage>);

impl Spent {
    pub(super) fn nothing() -> Self {
        Self(None)
    }

    pub(super) fn add(&mut self, tokens: Option<Tokens>, cost_usd: Option<f64>) {
        let mut all = self.0.unwrap_or(Usage { tokens: Some(Tokens::default()), cost_usd: Some(0.0) });
        all.tokens = all.tokens.zip(tokens).map(|(mut sum, tokens)| {
            sum += tokens;
            sum
        });
        all.cost_usd = all.cost_usd.zip(cost_usd).map(|(sum, cost)| sum + cost);
        self.0 = Some(all);
    }

    pub(super) fn add_reply(&mut self, reply: &Reply) {
        self.add(reply.tokens, reply.cost_usd);
    }

    pub(super) fn usage(&self) -> Usage {
        self.0.unwrap_or_default()
    }
}

/// Opens the tools of the case.
pub(super) async fn tools(context: &SessionContext) -> Result<OwnTools, Breakage> {
    OwnTools::open(context, OWNER).await
}

/// Records that a conversation was opened.
pub(super) fn begin(turn: &mut Turn, id: &str, model: Option<&str>, tools: &OwnTools) -> Result<(), Ending> {
    turn.record(Step::Session {
        session_id: Some(id.to_owned()),
        model: model.map(str::to_owned),
        agent_version: None,
        tools: tools.specs().map(|spec| spec.name.clone()).collect(),
        auth: None,
    })
}

/// Records the steps of repeated requests.
pub(super) fn tell(steps: Vec<Step>, turn: &mut Turn) -> Result<(), Ending> {
    for step in steps {
        turn.waiting(WAITING_ON_PROVIDER);
        turn.record(step)?;
    }
    Ok(())
}

/// Records `call` and the answer of the case's tool with that name. Calling a tool that does not exist is the agent's
/// failure, because the conversation cannot continue.
pub(super) async fn answer(call: ToolCall, tools: &mut OwnTools, turn: &mut Turn) -> Result<ToolResult, Ending> {
    let (id, name, input) = (call.id.clone(), call.raw_name.clone(), call.input.clone());
    turn.record(Step::ToolCall(call))?;
    let Some(at) = tools.find(&name) else {
        let known: Vec<&str> = tools.specs().map(|spec| spec.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(Ending::GaveUp {
            because: format!(
                "it called the tool `{name}`, which the case does not provide (tools of the case: {known})"
            ),
        });
    };
    let said = tools.answer(at, &input, turn).await?.ok_or(Ending::Cancelled)?;
    turn.waiting("agent");
    let is_error = said.is_err();
    let (Ok(content) | Err(content)) = said;
    let result = ToolResult { id, content, is_error };
    turn.record(Step::ToolResult(result.clone()))?;
    Ok(result)
}

/// Records the ending and the usage of answering one message.
pub(super) fn finish(answered: Result<Option<String>, Ending>, spent: &Spent, turn: &mut Turn) -> Ending {
    let (text, ending) = match answered {
        Ok(text) => (text, Ending::Finished),
        Err(ending) => (None, ending),
    };
    // Usage is reported even after a stop, and may itself exceed a limit.
    match turn.record(finished(ending != Ending::Finished, spent.usage(), text, None)) {
        Err(stopped) if ending == Ending::Finished => stopped,
        _ => ending,
    }
}
