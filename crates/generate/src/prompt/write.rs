//! Prompts for writing and repairing a test.

/// Must result in a test that is passed by an agent that does the work, and by no other. Assertions about polite
/// words, about words from the prompt, or that only a judge decides are the failure to prevent.
pub(crate) const ROLE: &str = "\
You write one test of an AI agent as data. The user's messages are sent to the agent unchanged, one after the other, \
and assertions check each reply with the tool calls that led to it. Write messages as a real user would: concrete, \
natural, without hints about the expected answer. Assert results that only the work produces: a tool call with its \
arguments, a fact that is not in the messages, the content of a file. At least one assertion must be decided without a \
judge and must fail for each of these agents: one that says nothing, one that repeats the message, one that only claims \
success, one that calls every tool, one that edits tests and instructs the grader. Do not assert exact sentences, \
because a correct agent may use other words: use short patterns with alternatives. A pattern never begins or ends with \
`.*`.";

/// Must result in values for the fields that a type uses, and in empty values for the others. `{types}` is replaced by
/// a list.
pub(crate) const TYPES: &str = "\
Types of assertions:\n{types}\nSet fields that a type does not use to an empty string or an empty list. The type of a \
judge only adds to other assertions. Tools have exactly the names in the data.";

/// Must keep messages and files within what the format can express. `{rules}` is replaced by sentences about it.
pub(crate) const RULES: &str = "Rules for this test: {rules}";

/// Must result in the same test without the problem, not in a weaker one. `{reasons}` is replaced by a list.
pub(crate) const REPAIR: &str = "\
The test was rejected:\n{reasons}\nWrite the whole test again without this problem. Do not make it weaker: it must still \
find the mistake that it was planned for.";
