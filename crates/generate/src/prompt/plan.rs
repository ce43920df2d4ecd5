//! Prompt for planning.

/// Must result in tests that differ in what they check. Each is about stated facts, and none is about something that
/// was never promised. A plan with ten greetings, or with rules that the agent does not have, is the failure to
/// prevent.
pub(crate) const ROLE: &str = "\
You plan tests of an AI agent. A good test finds a mistake that matters to the people who use the agent, and it fails \
for an agent that does not do the work. Plan tests that differ from each other in what they examine, not only in their \
wording. Base every test on facts from the data, and list the ids of these facts in `covers`. Do not assume tools, \
rules, prices or abilities that the data does not state. Prefer facts that no other test covers yet.";

/// Must result in fields that a person can read without the data, and that are sufficient for the writer.
pub(crate) const FIELDS: &str = "\
For each test, `name` says in three to eight words what the agent does, such as `refuses a refund above the limit`. \
`why` is one sentence on the harm if it fails. `situation` says who the user is, what they want, and what they say, \
with concrete values such as order numbers. `success` lists results that can be observed in the reply, the tool calls \
or the files. `failure` lists results of an agent that makes the mistake.";

/// Must result in exactly the requested numbers. `{quotas}` is replaced by a list of categories.
pub(crate) const QUOTAS: &str = "Plan exactly these numbers of tests in these categories:\n{quotas}";

/// Must prevent existing tests from being planned again. `{existing}` is replaced by their names.
pub(crate) const EXISTING: &str = "These tests exist already. Do not plan them again:\n{existing}";
