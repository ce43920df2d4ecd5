//! Types of assertions that do not exist, and what is probably meant.

use model::{Diagnostic, nearest, unusual_separator};

use crate::assertions::{ASSERTIONS, find, snake_case};

/// Returns the names and aliases of the assertions that users write.
pub(super) fn written_names() -> impl Iterator<Item = &'static str> {
    let written = ASSERTIONS.iter().filter(|assertion| !assertion.is_implicit());
    written.flat_map(|assertion| std::iter::once(&assertion.name).chain(assertion.aliases)).copied()
}

/// Returns the problem of an assertion whose type does not exist.
pub(super) fn unknown_type(written: &str) -> Diagnostic {
    let problem = Diagnostic::error(format!("unknown assertion type `{written}`"));
    if find(written).is_some() {
        return problem.help(format!("`{written}` applies to every trial and cannot be written in a case"));
    }
    if let Some(found) = written.chars().find_map(unusual_separator) {
        return problem.help(format!("there is {found} in it: write `TYPE: …` with an ordinary colon and space"));
    }
    if let Some((kind, rest)) = written.split_once([' ', ':']).filter(|(kind, _)| find(kind).is_some()) {
        let right = format!("{kind}: {}", rest.trim_start_matches([' ', '=']).trim_end());
        return problem.help(format!("write `{right}` without quotes around it"));
    }
    let name = snake_case(written).replace('-', "_");
    if matches!(&*name, "file_read" | "no_file_read") {
        let negation = if name == "file_read" { "" } else { "no_" };
        return problem.help(format!(
            "write `{negation}tool_called` with the tool that reads files and its path, such as `tool: Read` and \
             `args_match: {{file_path: PATTERN}}`"
        ));
    }
    let form = match &*name {
        "not" | "no" | "negate" | "none_of" => {
            Some("write the assertion that denies it, such as `not_contains` or `tool_not_called`")
        }
        "any" | "any_of" | "one_of" | "or" | "contains_any" => {
            Some("for one of several texts, write `matches: /one|two/`")
        }
        "all" | "all_of" | "and" | "contains_all" => Some("write an assertion for each, because all must be met"),
        _ => None,
    };
    if let Some(form) = form {
        return problem.help(form);
    }
    let help = "common types are `contains`, `tool_called`, `file_exists` and `command`; `trialrun list --assertions` \
                shows all of them";
    let near = match &*name {
        "skill_loaded" | "skill_called" | "skill_invoked" | "skill_triggered" => Some("skill_used"),
        "llm_rubric" | "llm_as_judge" | "g_eval" => Some("llm_judge"),
        "regex" | "regexp" | "match" | "matches_regex" => Some("matches"),
        "not_regex" | "not_match" => Some("not_matches"),
        "file_matches" | "file_content" => Some("file_contains"),
        "turns" | "max_turns" | "max_steps" => Some("turn_count_at_most"),
        "tokens" | "max_tokens" => Some("token_usage"),
        "branch_pushed" => Some("pushed"),
        "branch_not_pushed" | "no_branch_pushed" => Some("not_pushed"),
        "does_not_match" | "doesnt_match" | "not_matching" => Some("not_matches"),
        "no_skill_called" | "skill_not_called" | "skill_not_loaded" | "skill_not_triggered" => Some("skill_not_used"),
        "file_missing" | "file_absent" | "file_deleted" | "file_does_not_exist" => Some("file_not_exists"),
        "does_not_contain" | "doesnt_contain" | "not_containing" => Some("not_contains"),
        name => nearest(name, written_names()),
    };
    problem.suggest(near).help(help)
}
