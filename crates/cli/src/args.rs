//! Command line arguments. The arguments of each command are in its own file.

mod correction;

use clap::{CommandFactory, FromArgMatches, Parser};

use self::correction::{misplaced_hyphens, with_suggestion};
use crate::command::{Command, GROUPS};
use crate::global::Global;
use crate::workers::parse_own_jobs;
use session::settings::SETTINGS;

/// Test AI agents, agent skills and prompts end to end
///
/// trialrun starts a real agent in a fresh git sandbox, talks to it, records every turn and tool call, and judges what
/// the agent did and what it left behind.
#[derive(Debug, Parser)]
#[command(name = "trialrun", version, infer_long_args = false, max_term_width = 100)]
pub struct Args {
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// Options that `run -h` shows, which fit on one screen; `--help` shows all.
const USUAL: [&str; 12] = [
    "targets",
    "test",
    "cases",
    "last_failed",
    "agent",
    "model",
    "trials",
    "jobs",
    "timeout",
    "judge",
    "reports",
    "watch",
];

/// Text below the options of `run`.
const EXAMPLES: &str = "\
Examples:
  trialrun run                                 every test of the project
  trialrun run greet -k login                  tests of the `greet` skill with `login` in their names
  trialrun run tests/refund.yaml --watch       one file, again after every change
  trialrun run --agent codex --trials 5        each case five times, with Codex
  trialrun run --last-failed                   cases that did not pass in the last run
  trialrun run --resume                        the rest of a run that was interrupted
  trialrun run --report json=report.json --min-pass-rate 0.9";

/// Text below the options in `run -h`.
const FEW_EXAMPLES: &str = "\
Examples:
  trialrun run                             every test of the project
  trialrun run tests/refund.yaml --watch   one file, again after every change
  trialrun run --agent codex --trials 5    each case five times, with Codex

`trialrun run --help` shows all options and more examples.";

/// Width of the longest line of the list of commands.
const COMMANDS_WIDTH: usize = 100;

/// Help of `regrade --judge`, whose default differs from that of `run`.
const JUDGE_OF_REGRADE: &str = "Model that judges [default: the one that judged that run]";

/// Groups of options that do not affect which cases are selected.
const NOT_OF_LISTS: [&str; 7] = ["Limits", "Judge", "Cassettes", "Gates", "Sandbox", "Hooks", "Output"];

/// Options in other groups that do not affect lists either.
const NOT_LISTED: [&str; 4] = ["reasoning_effort", "base_url", "gateway", "seed"];

/// Options in other groups that also affect a plan.
const PLANNED: [&str; 2] = ["jobs", "max_run_cost"];

impl Args {
    /// Returns the definition of the command line. `list` and `plan` accept all options of `run`, but their help shows
    /// only those that affect them. Help texts for settings come from the settings table.
    pub fn definition() -> clap::Command {
        let is_idle = |arg: &clap::Arg, of_plan: bool| {
            // A plan estimates the duration and the cost, which depend on these options.
            if of_plan && PLANNED.contains(&arg.get_id().as_str()) {
                return false;
            }
            let heading = arg.get_help_heading().unwrap_or_default();
            NOT_OF_LISTS.contains(&heading) || NOT_LISTED.contains(&arg.get_id().as_str())
        };
        let is_rare = |arg: &clap::Arg| arg.get_help_heading().is_some() && !USUAL.contains(&arg.get_id().as_str());
        let with_help = |arg: clap::Arg| match SETTINGS.iter().find(|setting| setting.is_of(&arg)) {
            Some(setting) if arg.get_help().is_none() => arg.help(setting.help_with_default()),
            _ => arg,
        };
        let version = clap::Arg::new("version").short('V').short_alias('v').long("version");
        let all = Self::command()
            .disable_version_flag(true)
            .arg(version.action(clap::ArgAction::Version).help("Print version"))
            .mut_subcommands(|command| command.mut_args(with_help));
        let all = all.mut_subcommands(|command| match command.get_name() {
            name @ ("list" | "plan") => {
                let of_plan = name == "plan";
                command.mut_args(|arg| if is_idle(&arg, of_plan) { arg.hide(true) } else { arg })
            }
            "regrade" => command.mut_args(|arg| if arg.get_id() == "judge" { arg.help(JUDGE_OF_REGRADE) } else { arg }),
            "run" => {
                let command = command.after_help(FEW_EXAMPLES).after_long_help(EXAMPLES);
                let command = command.mut_arg("jobs", |arg| arg.value_parser(parse_own_jobs));
                command.mut_args(|arg| if is_rare(&arg) { arg.hide_short_help(true) } else { arg })
            }
            _ => command,
        });
        let commands = grouped_commands(&all);
        all.help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{commands}{OPTIONS}\n{{options}}"
        ))
    }

    /// Parses the arguments in `raw`, starting with the name of the program.
    ///
    /// # Errors
    /// Returns an error if they do not match the definition, or request help or the version.
    pub fn read(raw: &[std::ffi::OsString]) -> Result<Self, clap::Error> {
        let mut command = Self::definition();
        if let Some(error) = misplaced_hyphens(raw, &command) {
            return Err(error);
        }
        let matches = command.try_get_matches_from_mut(raw).map_err(|error| with_suggestion(error, &command, raw))?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

/// Heading of the options that every command has.
const OPTIONS: &str = "\x1b[1;4mOptions:\x1b[0m";

/// Formats the commands in their groups. Colour is removed if the output is not a terminal.
fn grouped_commands(all: &clap::Command) -> String {
    let about = |name: &str| match all.find_subcommand(name) {
        Some(command) => command.get_about().map(ToString::to_string).unwrap_or_default(),
        None => "Print the help of a command".to_owned(),
    };
    let width = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (heading, names) in GROUPS {
        text.push_str(&format!("\x1b[1;4m{heading}:\x1b[0m\n"));
        for name in names {
            text.push_str(&format!("  \x1b[1m{name}\x1b[0m{:1$}", "", width - name.len() + 2));
            let mut column = width + 4;
            for word in about(name).split(' ') {
                if column + word.len() > COMMANDS_WIDTH {
                    text = format!("{}\n{:2$}", text.trim_end(), "", width + 4);
                    column = width + 4;
                }
                text.push_str(&format!("{word} "));
                column += word.len() + 1;
            }
            text = format!("{}\n", text.trim_end());
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_only_what_is_written() {
        let error = |line: &str| {
            let raw: Vec<_> = line.split(' ').map(Into::into).collect();
            Args::read(&raw).unwrap_err().to_string()
        };
        let conflict = error("trialrun run --resume --last-failed");
        assert!(conflict.contains("--last-failed") && !conflict.contains("--filter"), "{conflict}");
        let negative = error("trialrun run --timeout -5s");
        assert!(negative.contains("a value that begins with '-' is written '--timeout=-5s'"), "{negative}");
        assert!(error("trialrun run --timeout=-5s").contains("invalid value '-5s' for '--timeout"));
    }

    #[test]
    fn a_command_that_prints_one_report_suggests_its_format() {
        for (command, is_suggested) in [("check", true), ("export", false)] {
            let error = Args::read(&["trialrun", command, "--report", "html=x.html"].map(Into::into)).unwrap_err();
            let error = error.to_string();
            assert_eq!(error.contains("a similar argument exists: '--format'"), is_suggested, "{error}");
            assert!(!is_suggested || !error.contains("-- --report"), "{error}");
        }
    }

    #[test]
    fn the_name_of_a_report_suggests_the_option_that_selects_it() {
        for (command, suggested) in
            [("run", Some("'--report json'")), ("report", Some("'--format json'")), ("export", None)]
        {
            let error = Args::read(&["trialrun", command, "--json"].map(Into::into)).unwrap_err().to_string();
            assert_eq!(error.contains("a similar argument exists"), suggested.is_some(), "{error}");
            assert!(suggested.is_none_or(|option| error.contains(option)), "{error}");
        }
    }

    #[test]
    fn options_of_other_tools_suggest_ours_and_others_suggest_only_what_is_near() {
        for (command, typed, suggested) in [
            ("run", "--max-workers", Some("'--jobs'")),
            ("run", "--rerun-failed", Some("'--last-failed'")),
            ("history", "--limit", Some("'--last'")),
            ("run", "--trails=3", Some("'--trials'")),
            ("run", "--bail", None),
            ("run", "--fail-fast", None),
        ] {
            let error = Args::read(&["trialrun", command, typed].map(Into::into)).unwrap_err().to_string();
            assert_eq!(error.contains("a similar argument exists"), suggested.is_some(), "{error}");
            assert!(suggested.is_none_or(|option| error.contains(option)), "{error}");
            assert!(error.contains(&format!("Usage: trialrun {command} [OPTIONS]")), "{error}");
        }
    }

    #[test]
    fn a_long_option_with_one_hyphen_is_suggested_with_two() {
        for (typed, suggested) in [
            (&["run", "-agent", "fake"][..], "'--agent'"),
            (&["run", "-trials=3"], "'--trials'"),
            (&["run", "-concurrency", "3"], "'--concurrency'"),
            (&["check", "-strict"], "'--strict'"),
            (&["list", "-json"], "'--json'"),
            (&["history", "-color", "never"], "'--color'"),
        ] {
            let words = ["trialrun"].iter().chain(typed).map(Into::into).collect::<Vec<_>>();
            let error = Args::read(&words).unwrap_err().to_string();
            assert!(error.contains(&format!("a similar argument exists: {suggested}")), "{error}");
            assert!(error.contains(&format!("Usage: trialrun {}", typed[0])), "{error}");
        }
        for typed in [&["run", "-kagents"][..], &["run", "-j2", "-n", "3"], &["run", "--", "-agent.yaml"]] {
            let words = ["trialrun"].iter().chain(typed).map(Into::into).collect::<Vec<_>>();
            assert!(Args::read(&words).is_ok(), "{typed:?}");
        }
    }

    #[test]
    fn an_option_behind_the_end_of_the_options_is_one_error() {
        let typed = ["trialrun", "run", "--", "tests/a.yaml", "--trials", "2"];
        let error = Args::read(&typed.map(Into::into)).unwrap_err().to_string();
        assert!(error.contains("unexpected argument '--trials' found"), "{error}");
        assert!(error.contains("tip: '--' ends the options: write '--trials' before it"), "{error}");
    }

    #[test]
    fn an_option_and_its_opposite_exclude_each_other() {
        let mut definition = Args::definition();
        definition.build();
        for command in definition.get_subcommands() {
            let names: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
            let opposed = names.iter().filter(|name| names.contains(&format!("no-{name}").as_str()));
            for name in opposed {
                let typed =
                    ["trialrun".to_owned(), command.get_name().to_owned(), format!("--{name}"), format!("--no-{name}")];
                let error = Args::read(&typed.map(Into::into)).unwrap_err().to_string();
                assert!(error.contains("cannot be used with"), "{} --{name}: {error}", command.get_name());
            }
        }
    }

    #[test]
    fn an_option_of_run_is_named_as_such_for_other_commands() {
        for (typed, tip) in [
            (&["check", "--trials", "3"], Some("'trialrun run --dry-run' checks with its options")),
            (&["check", "-n", "3"], Some("'--trials' is an option of 'run'")),
            (&["audit", "--judge", "x"], Some("'--judge' is an option of 'run', and 'audit' does not have it")),
            (&["regrade", "--agent", "fake"], Some("'--agent' is an option of 'run', and 'regrade' does not have it")),
            (&["history", "--format", "json"], Some("a similar argument exists: '--json'")),
            (&["history", "--last", "all"], Some("a number from 1 to 4294967295; the largest lists all")),
            (&["check", "--nonsense", "1"], None),
        ] {
            let words = ["trialrun"].iter().chain(typed).map(Into::into).collect::<Vec<_>>();
            let error = Args::read(&words).unwrap_err().to_string();
            assert_eq!(error.contains("tip:") || error.contains("a number from 1"), tip.is_some(), "{error}");
            assert!(tip.is_none_or(|tip| error.contains(tip)), "{error}");
        }
    }

    #[test]
    fn a_misspelt_command_suggests_one_that_the_help_lists() {
        for (typed, suggested) in [
            ("rn", Some("'run'")),
            ("doctr", Some("'doctor'")),
            ("lint", Some("'check'")),
            ("runs", Some("'history'")),
            ("xyzzy", None),
            ("version", None),
        ] {
            let error = Args::read(&["trialrun", typed].map(Into::into)).unwrap_err().to_string();
            assert!(!error.contains("\n\n\n"), "{error}");
            assert_eq!(error.contains("similar subcommand"), suggested.is_some(), "{error}");
            assert!(suggested.is_none_or(|name| error.contains(name)) && !error.contains("runtimes"), "{error}");
        }
    }

    #[test]
    fn the_help_lists_every_command_in_a_group() {
        let definition = Args::definition();
        let shown = definition.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let mut expected: Vec<&str> = shown.chain(["help"]).collect();
        listed.sort_unstable();
        expected.sort_unstable();
        assert_eq!(listed, expected);
    }

    #[test]
    fn the_short_help_of_run_fits_on_a_screen() {
        let help = Args::read(&["trialrun", "run", "-h"].map(Into::into)).unwrap_err().to_string();
        assert!(help.lines().count() <= 45, "{help}");
        assert!(help.contains("--trials") && help.contains("trialrun run --help"), "{help}");
    }

    #[test]
    fn every_example_in_the_help_is_valid() {
        let mut definition = Args::definition();
        definition.build();
        let mut examples = 0;
        let mut commands = vec![&definition];
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands());
            let help = [command.get_after_help(), command.get_after_long_help()].into_iter().flatten();
            let help = help.map(|text| format!("{text}\n")).collect::<String>();
            for line in help.lines().filter_map(|line| line.trim().strip_prefix("trialrun ")) {
                let typed = line.split("   ").next().unwrap_or(line);
                let words =
                    std::iter::once("trialrun").chain(typed.split_whitespace().map(|word| word.trim_matches('`')));
                let words: Vec<std::ffi::OsString> = words.map(Into::into).collect();
                let Args { command, .. } = Args::read(&words).unwrap_or_else(|error| panic!("{line}: {error}"));
                if let Command::Run(run) = command {
                    let kinds = run.run.output.report.reports.iter().filter_map(|report| report.split('=').next());
                    for kind in kinds {
                        assert!(::report::REPORTS.iter().any(|known| known.name == kind), "{line}: `{kind}`");
                    }
                }
                examples += 1;
            }
        }
        assert!(examples >= 6, "only {examples} examples were found");
    }
}
