//! Keys that are written outside of their section.

use model::decode::{Problems, snake_case};
use model::{Diagnostic, DiagnosticKind};

/// Sections, each with keys that are often written outside of it. The name of the configuration's top level is empty.
pub type Sections = [(&'static str, &'static [&'static str])];

/// Sections of keys at the top level of the configuration.
pub const OF_CONFIGURATION: &Sections = &[
    (
        "defaults",
        &[
            "model",
            "permission_mode",
            "timeout",
            "max_turns",
            "trials",
            "pass_rate",
            "precision",
            "token_budget",
            "jobs",
            "parallelism",
            "retries",
            "reruns",
            "gateway",
            "cassette",
            "cassette_dir",
        ],
    ),
    ("sandbox", &["network", "image", "isolation", "remote", "limits", "daytona"]),
];

/// Sections of keys in `defaults`.
pub const OF_DEFAULTS: &Sections = &[(
    "",
    &["agents", "judge", "llm", "pricing", "providers", "canaries", "require", "report", "fixtures", "store", "state"],
)];

/// Sections of keys of a case.
pub const OF_CASE: &Sections = &[
    (
        "fixtures",
        &[
            "git_init",
            "git_branch",
            "copy_trees",
            "files_committed",
            "files_staged",
            "files_unstaged",
            "setup_commands",
            "env",
        ],
    ),
    ("runner", &["runtime", "permission_mode", "allowed_tools_override", "setting_sources"]),
    ("user", &["goal"]),
    ("user_prompt", &["user_prompt_file", "prompt_file"]),
    ("sandbox", &["network"]),
    ("configuration", &["retries", "reruns", "jobs", "gateway", "cassette", "cassette_dir"]),
    ("", &["agents", "judge", "llm", "pricing", "providers", "require", "report"]),
];

/// Sections of keys in `runner`.
pub const OF_RUNNER: &Sections =
    &[("case", &["max_turns", "token_budget", "timeout", "trials", "system_prompt", "append_system_prompt"])];

/// Says where an unknown key belongs, in the problems from `first` on.
pub fn say_where(problems: &mut Problems, first: usize, sections: &Sections) {
    for problem in problems.iter_mut().skip(first) {
        if let Some(advice) = advice(problem, sections) {
            problem.help = vec![advice];
        }
    }
}

fn advice(problem: &Diagnostic, sections: &Sections) -> Option<String> {
    let DiagnosticKind::UnknownKey { key: written, meant } = &problem.kind else { return None };
    let key = snake_case(written);
    let (section, _) = sections.iter().find(|(_, keys)| keys.contains(&&*key))?;
    Some(match *section {
        "" => format!("write `{written}` at the top level of the configuration"),
        "case" => format!("write `{written}` outside of `runner`"),
        // A key of the case itself is the better advice.
        "configuration" if meant.is_some() => return None,
        "configuration" => format!("write `{written}` under `defaults` in the configuration"),
        "user_prompt" => "write the text of the message under `user_prompt`".to_owned(),
        section => format!("write it under `{section}`: `{section}: {{ {written}: … }}`"),
    })
}
