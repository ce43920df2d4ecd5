//! The roles of variables in a test module, and the members of such values.

/// Members of an agent in a scenario.
const AGENT: [&str; 5] = ["name", "model", "send", "run", "files"];

/// Members of the files of an agent.
const FILES: [&str; 3] = ["read", "list", "exists"];

/// Members of a reply in a scenario.
const REPLY: [&str; 7] = ["text", "toolCalls", "latencyMs", "firstTokenMs", "tokenUsage", "raw", "mentions"];

/// Members of a persona.
const PERSONA: [&str; 7] = ["says", "converse", "role", "name", "tone", "backstory", "context"];

/// Members of the result of a conversation with a simulated user.
const TALK: [&str; 3] = ["replies", "last", "reason"];

/// Names that a scenario receives.
pub(super) const RECEIVED: [&str; 7] = ["agent", "agents", "assert", "persona", "score", "scores", "profile"];

/// Members of a tool call.
const CALL: [&str; 4] = ["name", "arguments", "result", "isError"];

/// Members of the tokens that a reply used.
const USAGE: [&str; 3] = ["input", "output", "total"];

/// Members of the result of a command.
const OUTPUT: [&str; 3] = ["stdout", "stderr", "exitCode"];

/// Members of the result of an assertion.
pub(super) const RESULT: [&str; 8] =
    ["type", "passed", "status", "expected", "actual", "reasoning", "latencyMs", "error"];

/// Members of a list.
const LIST: [&str; 37] = [
    "at",
    "concat",
    "copyWithin",
    "entries",
    "every",
    "fill",
    "filter",
    "find",
    "findIndex",
    "findLast",
    "findLastIndex",
    "flat",
    "flatMap",
    "forEach",
    "includes",
    "indexOf",
    "join",
    "keys",
    "lastIndexOf",
    "length",
    "map",
    "pop",
    "push",
    "reduce",
    "reduceRight",
    "reverse",
    "shift",
    "slice",
    "some",
    "sort",
    "splice",
    "toReversed",
    "toSorted",
    "toSpliced",
    "unshift",
    "values",
    "with",
];

/// Members of a text.
pub(super) const TEXT: [&str; 49] = [
    "anchor",
    "at",
    "big",
    "blink",
    "bold",
    "charAt",
    "charCodeAt",
    "codePointAt",
    "concat",
    "endsWith",
    "fixed",
    "fontcolor",
    "fontsize",
    "includes",
    "indexOf",
    "isWellFormed",
    "italics",
    "lastIndexOf",
    "length",
    "link",
    "localeCompare",
    "match",
    "matchAll",
    "normalize",
    "padEnd",
    "padStart",
    "repeat",
    "replace",
    "replaceAll",
    "search",
    "slice",
    "small",
    "split",
    "startsWith",
    "strike",
    "sub",
    "substr",
    "substring",
    "sup",
    "toLocaleLowerCase",
    "toLocaleUpperCase",
    "toLowerCase",
    "toUpperCase",
    "toWellFormed",
    "trim",
    "trimEnd",
    "trimLeft",
    "trimRight",
    "trimStart",
];

/// Methods of a list that call a function with each item.
const OF_EACH: [&str; 10] =
    ["every", "filter", "find", "findIndex", "findLast", "findLastIndex", "flatMap", "forEach", "map", "some"];

/// Names of other libraries for members, each with ours.
pub(super) const SYNONYMS: [(&[&str], &str); 29] = [
    (
        &["ask", "say", "says", "chat", "prompt", "message", "query", "invoke", "call", "complete", "respond", "tell"],
        "send",
    ),
    (&["exec", "execute", "shell", "bash", "command", "spawn"], "run"),
    (&["fs", "workspace"], "files"),
    (&["readFile", "get", "load", "open", "content"], "read"),
    (&["readdir", "ls", "glob", "all"], "list"),
    (&["has", "exist", "stat"], "exists"),
    (&["content", "message", "output", "response", "answer", "body", "reply"], "text"),
    (&["tools", "calls", "toolUses", "functionCalls"], "toolCalls"),
    (&["latency", "duration", "durationMs", "elapsed", "time"], "latencyMs"),
    (&["usage", "tokens"], "tokenUsage"),
    (&["includes", "contains", "has", "match", "matches"], "mentions"),
    (&["talk", "chat", "interact"], "converse"),
    (&["messages", "turns", "transcript"], "replies"),
    (&["tool", "toolName", "function", "fn"], "name"),
    (&["args", "input", "params", "parameters"], "arguments"),
    (&["output", "response", "answer", "content", "returned"], "result"),
    (&["error", "failed", "is_error"], "isError"),
    (&["inputTokens", "prompt", "promptTokens"], "input"),
    (&["outputTokens", "completion", "completionTokens"], "output"),
    (&["totalTokens", "sum"], "total"),
    (&["output", "out", "text"], "stdout"),
    (&["error", "err"], "stderr"),
    (&["code", "status", "exit", "returncode"], "exitCode"),
    (&["pass", "ok", "success", "met", "holds"], "passed"),
    (&["reason", "message", "because"], "reasoning"),
    (&["size", "count"], "length"),
    (&["contains", "has", "mentions"], "includes"),
    (&["any"], "some"),
    (&["test"], "match"),
];

/// Members that every object has, and those by which JavaScript recognises promises and converts values.
pub(super) const OF_EVERY_OBJECT: [&str; 13] = [
    "then",
    "catch",
    "finally",
    "toJSON",
    "constructor",
    "toString",
    "toLocaleString",
    "valueOf",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "prototype",
    "__proto__",
];

/// The kind of value that a variable holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The object that a scenario receives.
    Context,
    Agent,
    /// Something called `agent` that is probably one.
    Agentlike,
    Agents,
    Files,
    Reply,
    Persona,
    /// The module that tests import.
    TestModule,
    /// The function that makes a scenario.
    MakesScenario,
    /// The function that makes a persona.
    MakesPersona,
    /// The function that records a score.
    Score,
    /// The function that hides a text.
    Secret,
    /// The function that waits.
    Sleep,
    /// The object with the assertions.
    Assert,
    /// The result of `converse`.
    Talk,
    /// The replies of a conversation.
    Replies,
    /// The tool calls of a reply.
    Calls,
    Call,
    /// The tokens that a reply used.
    Usage,
    /// The result of a command.
    Output,
    /// The result of an assertion.
    Result,
    Text,
    /// A text with a persona, which is not sent yet.
    Message,
    Number,
    /// The promise of something.
    Promise,
    /// The promise of the result of an assertion.
    PromisedResult,
    /// A list of anything else.
    List,
    /// It has no value yet.
    Unset,
    Other,
}

impl Role {
    /// Returns the members of such a value, and how it is called. `None` if they are not known.
    pub fn members(self) -> Option<(&'static [&'static str], &'static str)> {
        match self {
            Self::Context => Some((&RECEIVED, "a scenario")),
            Self::Agent | Self::Agentlike => Some((&AGENT, "an agent")),
            Self::Files => Some((&FILES, "`agent.files`")),
            Self::Reply => Some((&REPLY, "a reply")),
            Self::Persona => Some((&PERSONA, "a persona")),
            Self::Talk => Some((&TALK, "the result of `converse`")),
            Self::Call => Some((&CALL, "a tool call")),
            Self::Usage => Some((&USAGE, "`tokenUsage`")),
            Self::Output => Some((&OUTPUT, "the result of `agent.run`")),
            Self::Result => Some((&RESULT, "the result of an assertion")),
            Self::Replies | Self::Calls | Self::List => Some((&LIST, "a list")),
            Self::Text => Some((&TEXT, "a text")),
            Self::Agents
            | Self::TestModule
            | Self::MakesScenario
            | Self::MakesPersona
            | Self::Score
            | Self::Secret
            | Self::Sleep
            | Self::Message
            | Self::Number
            | Self::Promise
            | Self::PromisedResult
            | Self::Assert
            | Self::Unset
            | Self::Other => None,
        }
    }

    /// Returns what the member `name` holds.
    pub fn member(self, name: &str) -> Self {
        match (self, name) {
            (Self::Context, "agent") | (Self::Agents, _) => Self::Agent,
            (Self::Context, "agents") => Self::Agents,
            (Self::TestModule, "scenario") => Self::MakesScenario,
            (Self::Context | Self::TestModule, "assert") => Self::Assert,
            (Self::Context | Self::TestModule, "persona") => Self::MakesPersona,
            (Self::Context | Self::TestModule, "score") => Self::Score,
            (Self::TestModule, "secret") => Self::Secret,
            (Self::TestModule, "sleep") => Self::Sleep,
            (Self::Text | Self::List | Self::Calls | Self::Replies, "length")
            | (Self::Reply, "latencyMs" | "firstTokenMs")
            | (Self::Output, "exitCode") => Self::Number,
            (Self::Agent, "files") => Self::Files,
            (Self::Reply, "text") | (Self::Output, "stdout" | "stderr") => Self::Text,
            (Self::Reply, "toolCalls") => Self::Calls,
            (Self::Reply, "tokenUsage") => Self::Usage,
            (Self::Talk, "last") => Self::Reply,
            (Self::Talk, "replies") => Self::Replies,
            _ => Self::Other,
        }
    }

    /// Returns `true` if the member `name` is a method, which must be called to get a result.
    pub fn has_method(self, name: &str) -> bool {
        let is_of_values = matches!(self, Self::Text | Self::List | Self::Calls | Self::Replies) && name != "length";
        (self == Self::Reply && name == "mentions")
            || is_of_values && self.members().is_some_and(|(all, _)| all.contains(&name))
    }

    /// Returns what the items of a list hold.
    pub fn item(self) -> Option<Self> {
        match self {
            Self::Calls => Some(Self::Call),
            Self::Replies => Some(Self::Reply),
            Self::Agents => Some(Self::Agent),
            _ => None,
        }
    }

    /// Returns what the method `name` returns.
    pub fn returned(self, name: &str) -> Option<Self> {
        match name {
            "filter" | "slice" | "toReversed" | "toSorted" if matches!(self, Self::Calls | Self::Replies) => Some(self),
            "at" | "find" | "findLast" if self != Self::Agents => self.item(),
            "says" if self == Self::Persona => Some(Self::Message),
            _ => (self.member(name) == Self::MakesPersona).then_some(Self::Persona),
        }
    }

    /// Returns what the promise that the method `name` returns is fulfilled with.
    pub fn awaited(self, name: &str) -> Option<Self> {
        match (self, name) {
            (Self::Agent, "send") => Some(Self::Reply),
            (Self::Agent, "run") => Some(Self::Output),
            (Self::Files, "read") => Some(Self::Text),
            (Self::Files, "list") => Some(Self::List),
            (Self::Files, "exists") => Some(Self::Other),
            (Self::Persona, "converse") => Some(Self::Talk),
            (Self::Assert, _) => Some(Self::Result),
            _ => None,
        }
    }

    /// Returns what the method `name` returns, if that is a promise.
    pub fn promised(self, name: &str) -> Option<Self> {
        Some(if self.awaited(name)? == Self::Result { Self::PromisedResult } else { Self::Promise })
    }

    /// Returns what such a value is, if it is true whatever is in it, and what to write in a condition.
    pub fn always_true(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Promise => Some(("a promise", "write `await` before the call")),
            Self::PromisedResult => Some(("the promise of a result", "write `(await assert.…(…)).passed`")),
            Self::Result => Some(("the result of an assertion", "test its `.passed`")),
            Self::Output => Some(("the result of `agent.run`", "test its `.exitCode`")),
            Self::Calls | Self::Replies | Self::List => Some(("a list", "test its `.length`")),
            _ => None,
        }
    }

    /// Returns what the function gets that is passed to the method `name`.
    pub fn passed(self, name: &str) -> Option<Self> {
        match self {
            Self::Assert if name == "custom" => Some(Self::Reply),
            Self::Calls | Self::Replies if OF_EACH.contains(&name) => self.item(),
            _ => None,
        }
    }

    /// Returns `true` if a value may have members that are not known, such as those that a library adds to all lists.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Agentlike | Self::Replies | Self::Calls | Self::List | Self::Text)
    }
}
