//! Corrections of what the parser of the command line says about errors.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Commands of other tools, and what is the like here.
const COMMANDS_ELSEWHERE: [(&str, &str); 26] = [
    ("bench", "run"),
    ("clean", "prune"),
    ("create", "init"),
    ("dashboard", "view"),
    ("eval", "run"),
    ("exec", "run"),
    ("generate", "gen"),
    ("inspect", "show"),
    ("jobs", "history"),
    ("lint", "check"),
    ("log", "show"),
    ("logs", "show"),
    ("ls", "list"),
    ("new", "init"),
    ("open", "view"),
    ("results", "report"),
    ("retry", "rerun"),
    ("runs", "history"),
    ("score", "regrade"),
    ("setup", "init"),
    ("start", "run"),
    ("summary", "status"),
    ("test", "run"),
    ("tests", "run"),
    ("ui", "view"),
    ("watch", "run --watch"),
];

/// Options of other tools, and what is the like here.
const OPTIONS_ELSEWHERE: [(&str, &str); 12] = [
    ("count", "trials"),
    ("epochs", "trials"),
    ("failed", "last-failed"),
    ("lf", "last-failed"),
    ("limit", "last"),
    ("max-concurrency", "jobs"),
    ("max-workers", "jobs"),
    ("model-name", "model"),
    ("n-concurrent", "jobs"),
    ("only-failed", "last-failed"),
    ("repeat-each", "trials"),
    ("rerun-failed", "last-failed"),
];

/// Returns the error for a long option with one hyphen (`-agent`), which would be read as `-a gent`, and for an option
/// behind `--`, which would be read as the name of a file.
pub(super) fn misplaced_hyphens(raw: &[std::ffi::OsString], all: &clap::Command) -> Option<clap::Error> {
    let command = raw.iter().skip(1).find_map(|word| all.find_subcommand(word))?;
    let is_option = |name: &str| {
        let options = command.get_arguments().chain(all.get_arguments());
        options
            .flat_map(|arg| arg.get_long().into_iter().chain(arg.get_all_aliases().into_iter().flatten()))
            .any(|known| known == name)
    };
    let mut is_behind = false;
    for word in raw.iter().filter_map(|word| word.to_str()) {
        if word == "--" && !is_behind {
            is_behind = true;
            continue;
        }
        let (front, name) = word.split_at(word.find(|letter| letter != '-').unwrap_or(word.len()));
        let name = name.split('=').next().filter(|name| name.len() > 1 && is_option(name)).unwrap_or_default();
        if name.is_empty() || !(front == "-" || (front == "--" && is_behind)) {
            continue;
        }
        let mut error = clap::Error::new(ErrorKind::UnknownArgument).with_cmd(command);
        error.insert(ContextKind::InvalidArg, ContextValue::String(word.to_owned()));
        if is_behind {
            let tip = format!("'--' ends the options: write '--{name}' before it");
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        } else {
            error.insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{name}")));
        }
        let mut all = all.clone();
        all.build();
        let usage = all.find_subcommand_mut(command.get_name()).map(clap::Command::render_usage);
        usage.and_then(|usage| error.insert(ContextKind::Usage, ContextValue::StyledStr(usage)));
        return Some(error);
    }
    None
}

/// Returns a tip if the option `name`, which `command` does not have, is one of `run`.
fn tip(command: &clap::Command, all: &clap::Command, name: &str) -> Option<String> {
    let run = all.find_subcommand("run")?;
    let is_named = |arg: &clap::Arg| match name.chars().count() {
        1 => arg.get_short() == name.chars().next(),
        _ => arg.get_long() == Some(name),
    };
    let option = run.get_arguments().find(|arg| is_named(arg))?.get_long()?;
    Some(match command.get_name() {
        "check" => format!("'--{option}' is an option of 'run'; 'trialrun run --dry-run' checks with its options"),
        name => format!("'--{option}' is an option of 'run', and '{name}' does not have it"),
    })
}

/// Returns a tip if `typed`, which is not an option, begins like a negative number behind an option.
fn negative(raw: &[std::ffi::OsString], typed: &str) -> Option<String> {
    typed.strip_prefix('-').filter(|number| number.starts_with(|first: char| first.is_ascii_digit()))?;
    let at = raw.iter().position(|word| word.to_str().is_some_and(|word| word.starts_with(typed)))?;
    let (option, value) = (raw.get(at.checked_sub(1)?)?.to_str()?, raw.get(at)?.to_str()?);
    let is_option = option.starts_with("--") && !option.contains('=');
    is_option.then(|| format!("a value that begins with '-' is written '{option}={value}'"))
}

/// Corrects the suggestion: the nearest command that the help lists, instead of a hidden alias, `--format` for
/// `--report` where a command prints one report, and the option that selects a report for the name of a report.
pub(super) fn with_suggestion(
    mut error: clap::Error,
    command: &clap::Command,
    raw: &[std::ffi::OsString],
) -> clap::Error {
    if error.kind() == ErrorKind::UnknownArgument {
        let has = |command: &clap::Command, name: &str| command.get_arguments().any(|arg| arg.get_long() == Some(name));
        let of_command = raw.iter().skip(1).find_map(|word| command.find_subcommand(word));
        let prints_one = of_command.is_some_and(|command| has(command, "format") && !has(command, "report"));
        let typed = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
        let report = typed.strip_prefix("--").and_then(report::find).map(|report| report.name);
        let option = match (prints_one, of_command.is_some_and(|command| has(command, "report"))) {
            (true, _) => Some("--format"),
            (false, true) => Some("--report"),
            (false, false) => None,
        };
        let suggested = match (option, report) {
            (Some(option), Some(report)) => Some(format!("{option} {report}")),
            (Some("--format"), None) if typed.starts_with("--report") => Some("--format".to_owned()),
            _ if typed.starts_with("--format") && of_command.is_some_and(|command| has(command, "json")) => {
                Some("--json".to_owned())
            }
            _ => typed.strip_prefix("--").and_then(|typed| {
                let (typed, _) = typed.split_once('=').unwrap_or((typed, ""));
                let arguments = of_command.unwrap_or(command).get_arguments().chain(command.get_arguments());
                let mut names = arguments.filter(|arg| !arg.is_hide_set()).filter_map(clap::Arg::get_long);
                let ours = OPTIONS_ELSEWHERE.iter().find(|(theirs, _)| *theirs == typed).map(|(_, ours)| *ours);
                let near = match ours {
                    Some(ours) => names.find(|name| *name == ours),
                    None => model::nearest(typed, names),
                };
                near.map(|name| format!("--{name}"))
            }),
        };
        error.remove(ContextKind::Suggested);
        let name = typed.trim_start_matches('-').split('=').next().unwrap_or_default();
        let tip = match of_command {
            Some(of_command) if suggested.is_none() => tip(of_command, command, name).or_else(|| negative(raw, &typed)),
            _ => None,
        };
        if let Some(tip) = tip {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        }
        // It shows the option that clap would suggest.
        let usage = of_command.unwrap_or(command).clone().render_usage();
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
        match suggested {
            Some(suggested) => error.insert(ContextKind::SuggestedArg, ContextValue::String(suggested)),
            None => error.remove(ContextKind::SuggestedArg),
        };
        return error;
    }
    if error.kind() == ErrorKind::ArgumentConflict
        && let Some(ContextValue::Strings(others)) = error.get(ContextKind::PriorArg)
    {
        // An option that excludes groups of others excludes many that are not written.
        let is_written = |shown: &&String| {
            let option = shown.split(' ').next().unwrap_or_default();
            raw.iter().any(|word| word.to_str().and_then(|word| word.split('=').next()) == Some(option))
        };
        let written: Vec<String> = others.iter().filter(is_written).cloned().collect();
        if !written.is_empty() {
            error.insert(ContextKind::PriorArg, ContextValue::Strings(written));
        }
    }
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
    let near = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) => {
            let ours = COMMANDS_ELSEWHERE.iter().find(|(theirs, _)| theirs == typed).map(|(_, ours)| *ours);
            ours.or_else(|| model::nearest(typed, shown)).map(str::to_owned)
        }
        _ => None,
    };
    // It is about a name that clap would suggest.
    error.remove(ContextKind::Suggested);
    match near {
        Some(near) => error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near])),
        None => error.remove(ContextKind::SuggestedSubcommand),
    };
    error
}
