//! Types of assertions, one file each.

pub(crate) mod agent_finished;
pub(crate) mod branch_created;
pub(crate) mod budget;
pub(crate) mod command;
pub(crate) mod command_ran;
pub(crate) mod commit_created;
pub(crate) mod contains;
pub(crate) mod egress_only;
pub(crate) mod expect;
pub(crate) mod factuality;
pub(crate) mod file_contains;
pub(crate) mod file_exists;
pub(crate) mod file_unchanged;
pub(crate) mod git_clean;
pub(crate) mod guardrail;
pub(crate) mod honoured_denial;
pub(crate) mod integrity_clean;
pub(crate) mod json_path;
pub(crate) mod json_schema;
pub(crate) mod latency;
pub(crate) mod llm_judge;
mod matched_text;
pub(crate) mod mcp_called;
pub(crate) mod mcp_rules;
pub(crate) mod mock_arguments;
pub(crate) mod mock_called;
pub(crate) mod no_egress;
pub(crate) mod no_loop;
pub(crate) mod no_path_escape;
pub(crate) mod no_tool_called;
pub(crate) mod no_unanswered_questions;
pub(crate) mod output_contains;
pub(crate) mod output_is_question;
pub(crate) mod permission_asked;
mod prelude;
pub(crate) mod pushed;
pub(crate) mod recovered;
mod repository_matcher;
pub(crate) mod request_check;
pub(crate) mod retries_at_most;
pub(crate) mod review_request_created;
pub(crate) mod reward;
pub(crate) mod rubric;
pub(crate) mod sentiment;
pub(crate) mod side_effect_contract;
pub(crate) mod skill_used;
pub(crate) mod tests_pass;
pub(crate) mod time_budget;
pub(crate) mod token_budget;
pub(crate) mod token_usage;
pub(crate) mod tool_call_sequence;
pub(crate) mod tool_called;
pub(crate) mod turn_budget;
pub(crate) mod turn_count_at_most;
pub(crate) mod valid_json;

use crate::assertion_type::{Assertion, Field, JUDGES, Parameter, Reported, TITLE};

pub(crate) use budget::warned as over_budget;
pub use command::ran_nothing;
pub use json_schema::schema_errors;

/// Field `needs_calls`, shared by judged assertions.
const NEEDS_CALLS: Field = Field::optional(
    "needs_calls",
    "`true` or `false`",
    "The criteria are about tool calls, so the assertion is undecided if the agent does not report its calls.",
)
.or("`false`");

/// Field `tool`, shared by several assertions.
const TOOL: Field = Field::required("tool", "string", "Exact name of the tool, such as `Bash`.");

/// Field `args_match`, shared by several assertions.
const ARGS_MATCH: Field = Field::optional("args_match", "map of regular expressions and values, or regular expression", "Argument name → regular expression. All must match the same call. A missing argument is the empty string. A number, boolean, list or map is an expectation as in `expect`. A single regular expression instead of the map is matched against the JSON of all arguments.").or("any arguments");

/// Field `path`, shared by several assertions.
const PATH: Field = Field::required("path", "string", "Path of the file in the agent's working directory.");

/// Field `capture`, shared by several assertions.
const CAPTURE: Field =
    Field::optional("capture", "list of strings", "Arguments of the matching call to show in reports.").or("none");

/// Field `capture_max_chars`, shared by several assertions.
const CAPTURE_MAX_CHARS: Field = Field::optional(
    "capture_max_chars",
    "whole number, at least 1",
    "Maximum length of a captured value on the terminal, in UTF-16 code units.",
)
.or("2000");
