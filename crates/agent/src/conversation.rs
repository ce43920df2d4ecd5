//! A conversation with an agent that another program recorded.

use std::collections::HashMap;

use model::{Diagnostic, Effect, Ending, Question, Source, Span, Step, Usage};

use crate::question::questions;

/// Maximum number of warnings about a conversation. The last one says that there are more.
const MAX_WARNINGS: usize = LAST_WARNING + 1;
const LAST_WARNING: usize = 49;

/// A conversation with an agent that another program recorded: a session of an agent's CLI, a sample of a log, or a
/// trajectory.
#[derive(Debug)]
pub struct Conversation {
    /// Case that it belongs to, if the file names it.
    pub case: Option<String>,
    /// Agent, if the file names it.
    pub agent: Option<String>,
    /// Messages of the user.
    pub messages: Vec<String>,
    /// Steps of the agent, each with the index of the message of the user to which it belongs.
    pub steps: Vec<(usize, Step)>,
    /// The agent's answer to the last message, if it is not its last text.
    pub answer: Option<String>,
    /// Usage of the whole conversation.
    pub usage: Usage,
    /// Part of it that belongs to each message of the user, as far as it is known.
    spent: Vec<Usage>,
    /// How the conversation ended.
    pub ending: Ending,
    /// Id of the session.
    pub session_id: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Version of the agent.
    pub agent_version: Option<String>,
    /// Directory, commit and time at which the conversation began.
    pub origin: Origin,
    /// Reason why the agent may have called tools that are not among the steps.
    pub missing_calls: Option<String>,
    /// Warnings about parts that are not understood.
    pub warnings: Vec<Diagnostic>,
    /// Open questions to the user, by the id of their call.
    asked: HashMap<String, Vec<Question>>,
}

/// Directory, commit and time at which a conversation began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Working directory of the agent.
    pub directory: Option<String>,
    /// Commit that was checked out, as far as it is known; it may be abbreviated.
    pub commit: Option<String>,
    /// Branch that was checked out.
    pub branch: Option<String>,
    /// False if files differed from the commit; `None` if that is not known.
    pub is_clean: Option<bool>,
    /// Time of the first message, in RFC 3339.
    pub begun_at: Option<String>,
}

impl Default for Conversation {
    fn default() -> Self {
        Self {
            case: None,
            agent: None,
            messages: Vec::new(),
            steps: Vec::new(),
            answer: None,
            usage: Usage::default(),
            spent: Vec::new(),
            ending: Ending::Finished,
            session_id: None,
            model: None,
            agent_version: None,
            origin: Origin::default(),
            missing_calls: None,
            warnings: Vec::new(),
            asked: HashMap::new(),
        }
    }
}

impl Conversation {
    /// Creates a conversation with the agent named `agent`.
    pub(crate) fn of_agent(agent: &str) -> Self {
        Self { agent: Some(agent.to_owned()), ..Self::default() }
    }

    /// Adds a message of the user; the following steps belong to it.
    pub(crate) fn user(&mut self, text: impl Into<String>) {
        self.messages.push(text.into());
    }

    /// Adds a step of the agent. A call that asks the user is also recorded as its questions, once it has a result.
    pub(crate) fn push(&mut self, step: Step) {
        let mut asked = Vec::new();
        match &step {
            Step::ToolCall(call) if call.effect == Effect::Ask => {
                let questions = questions(&call.input).into_iter();
                let with_id = questions.map(|question| Question { call_id: Some(call.id.clone()), ..question });
                self.asked.insert(call.id.clone(), with_id.collect());
            }
            Step::ToolResult(result) => {
                let answer = Some(result.content.clone()).filter(|_| !result.is_error);
                let questions = self.asked.remove(&result.id).unwrap_or_default().into_iter();
                asked.extend(questions.map(|question| Question { answer: answer.clone(), ..question }));
            }
            _ => {}
        }
        let message = self.message();
        self.steps.push((message, step));
        self.steps.extend(asked.into_iter().map(|question| (message, Step::Question(question))));
    }

    /// Adds usage to the message with the given index, and to the total.
    pub(crate) fn spend(&mut self, message: usize, usage: Usage) {
        if self.spent.len() <= message {
            self.spent.resize(message + 1, Usage::default());
        }
        self.spent[message] += usage;
        self.usage += usage;
    }

    /// Returns the index of the last message of the user.
    pub(crate) fn message(&self) -> usize {
        self.messages.len().saturating_sub(1)
    }

    /// Returns the usage of the reply to the message with the given index; of the last one, what the others leave.
    pub(crate) fn usage_of(&self, message: usize, is_last: bool) -> Usage {
        let part = |index: usize| self.spent.get(index).copied().unwrap_or_default();
        if !is_last {
            let Usage { tokens, cost_usd } = part(message);
            return Usage { tokens: self.usage.tokens.and(tokens), cost_usd: self.usage.cost_usd.and(cost_usd) };
        }
        let mut before = Usage::default();
        (0..message).for_each(|index| before += part(index));
        Usage {
            tokens: self.usage.tokens.map(|total| total.since(before.tokens.unwrap_or_default())),
            cost_usd: self.usage.cost_usd.map(|total| (total - before.cost_usd.unwrap_or_default()).max(0.0)),
        }
    }

    /// Adds a warning about a part at `span` that is not understood and may contain calls.
    pub(crate) fn is_incomplete(&mut self, source: &Source, span: Span, what: String) {
        self.missing_calls.get_or_insert_with(|| what.clone());
        self.note(source, span, what);
    }

    /// Adds a warning about the part at `span`.
    pub(crate) fn note(&mut self, source: &Source, span: Span, what: String) {
        let is_known = self.warnings.iter().any(|warning| warning.message == what);
        match self.warnings.len() {
            _ if is_known => {}
            MAX_WARNINGS.. => {}
            LAST_WARNING => {
                self.warnings.push(Diagnostic::warning("further warnings about the conversation are left out"));
            }
            _ => self.warnings.push(Diagnostic::warning(what).at(source.excerpt(span))),
        }
    }

    /// Returns the position of the first mention of `word` in a JSON document, for a warning.
    pub(crate) fn position(&self, source: &Source, word: &str) -> Span {
        // Searching takes long in a large file.
        if word.is_empty() || self.warnings.len() >= MAX_WARNINGS {
            return Span::default();
        }
        let quoted = format!("\"{word}\"");
        source.text.find(&quoted).map_or_else(Span::default, |at| Span::new(at, at + quoted.len()))
    }

    /// Returns the last text of the agent in its reply to the message with the given index.
    pub fn last_text(&self, message: usize) -> Option<&str> {
        let own = self.steps.iter().rev().filter(|(of, _)| *of == message);
        own.map(|(_, step)| step).find_map(|step| match step {
            Step::Text { text, parent: None, .. } if !text.is_empty() => Some(text.as_str()),
            _ => None,
        })
    }

    /// Adds the questions that were never answered. Must be called after the last step.
    pub(crate) fn close(&mut self) {
        let message = self.message();
        let mut left: Vec<Question> = self.asked.drain().flat_map(|(_, questions)| questions).collect();
        left.sort_by(|one, other| one.question.cmp(&other.question));
        self.steps.extend(left.into_iter().map(|question| (message, Step::Question(question))));
    }
}
