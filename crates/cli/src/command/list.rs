//! `trialrun list`.

use std::collections::HashMap;
use std::process::ExitCode;

use report::columns;
use runner::PlannedTrial;
use serde_json::{Value, json};

use session::AUTO_SANDBOX;

use crate::error::CliError;
use crate::exit;
use crate::global::Global;
use crate::machine;
use crate::place;
use crate::reports::refuse_on_stdout;
use crate::terminal::Terminal;
use session::overrides::Overrides;

/// Arguments of `list`.
#[derive(Debug, Clone, clap::Args)]
pub struct ListArgs {
    /// Print JSON
    // Placed before the groups of `run`, because otherwise it would appear under their last heading.
    #[arg(long)]
    json: bool,
    /// Files, directories and options of `run` that select what to list
    #[command(flatten)]
    run: Overrides,
    /// File or directory, the same as PATH
    #[arg(long, short, value_name = "DIR", hide = true)]
    root: Option<String>,
    /// List the built-in agents
    #[arg(long, group = "kind", help_heading = "Built in")]
    agents: bool,
    /// List the built-in assertions
    #[arg(long, group = "kind", help_heading = "Built in")]
    assertions: bool,
    /// List the operators of expectations
    #[arg(long, group = "kind", help_heading = "Built in")]
    operators: bool,
    /// List the built-in reports
    #[arg(long = "reports", group = "kind", help_heading = "Built in")]
    kinds_of_reports: bool,
    /// List the built-in sandboxes
    #[arg(long, group = "kind", help_heading = "Built in")]
    sandboxes: bool,
}

impl ListArgs {
    /// Accepts `list assertions` and `list assertion` for `list --assertions`, unless there is a file or a folder of that
    /// name.
    fn with_named_kind(&self) -> Self {
        let mut args = self.clone();
        if let [kind] = &self.run.targets[..]
            && !std::path::Path::new(kind).exists()
        {
            let flag = match kind.as_str() {
                "agents" | "agent" => &mut args.agents,
                "assertions" | "assertion" => &mut args.assertions,
                "operators" | "operator" => &mut args.operators,
                "reports" | "report" => &mut args.kinds_of_reports,
                "sandboxes" | "sandbox" => &mut args.sandboxes,
                _ => return args,
            };
            *flag = true;
            args.run.targets.clear();
        }
        args
    }
}

/// Lists cases, or the built-in agents, assertions, reports and sandboxes.
pub fn run(global: &Global, args: &ListArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let args = &args.with_named_kind();
    refuse_on_stdout(&args.run.output.report, "list")?;
    if let Some(rows) = built_in(args) {
        if args.json {
            let rows: Vec<_> = rows.iter().map(|(name, summary)| json!({"name": name, "summary": summary})).collect();
            terminal.json(&rows);
        } else {
            terminal.out(&table(&rows));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut run = args.run.clone();
    run.targets.extend(args.root.clone());
    let (_, mut prepared) = place::plan(global, &run)?;
    prepared.diagnostics = prepared.all_diagnostics();
    terminal.notes(prepared.spec.notes());
    let trials = &prepared.plan.trials;
    if args.json {
        terminal.json(&trials.iter().map(row).collect::<Vec<_>>());
    } else if trials.is_empty() && !prepared.diagnostics.iter().any(model::Diagnostic::is_error) {
        terminal.diagnostics(&prepared.diagnostics);
        return Err(prepared.nothing_selected());
    } else {
        terminal.out(&cases(&prepared.plan));
    }
    // The list would start far below dozens of warnings.
    let (errors, warnings): (Vec<_>, Vec<_>) =
        prepared.diagnostics.iter().cloned().partition(model::Diagnostic::is_error);
    match warnings.len() {
        0..=MAX_WARNINGS => terminal.diagnostics(&prepared.diagnostics),
        count => {
            terminal.diagnostics(&errors);
            terminal.err(&format!("note: {count} warnings, which `trialrun check` shows\n"));
        }
    }
    let invalid = prepared.diagnostics.iter().any(model::Diagnostic::is_error);
    Ok(ExitCode::from(if invalid {
        exit::INVALID
    } else if trials.is_empty() {
        exit::NOTHING
    } else {
        exit::PASSED
    }))
}

/// Returns a planned trial as JSON.
pub fn row(trial: &PlannedTrial) -> Value {
    json!({
        "id": trial.id().to_string(), "suite": trial.suite, "case": trial.case_id, "arm": trial.arm_name,
        "agent": trial.arm.agent, "model": trial.arm.model, "repetition": trial.repetition,
        "title": trial.case.description, "tags": trial.case.tags, "source": trial.case.source,
        "skill": trial.case.subject.skill().filter(|skill| skill.directory.is_some()).map(|skill| &skill.name),
        "should_trigger": trial.case.skill_eval.as_ref().map(|eval| eval.should_trigger),
        "side_effect_level": trial.case.skill_eval.as_ref().map(|eval| eval.side_effect_level.name()),
    })
}

/// Maximum number of warnings that are shown below a list.
const MAX_WARNINGS: usize = 3;

/// Returns a table with a line for each case and arm of a plan.
pub fn cases(plan: &runner::Plan) -> String {
    let trials = &plan.trials;
    let mut times: HashMap<(usize, &str), usize> = HashMap::new();
    for trial in trials {
        *times.entry((trial.position, &trial.arm_name)).or_default() += 1;
    }
    let row = |trial: &runner::PlannedTrial| {
        let times = times.get(&(trial.position, &*trial.arm_name)).copied().unwrap_or_default();
        let mut about = vec![trial.arm_name.to_string()];
        let is_negative = trial.case.skill_eval.as_ref().is_some_and(|eval| !eval.should_trigger);
        let most = if trial.auto.is_some() { "up to " } else { "" };
        about.extend((times > 1).then(|| format!("{most}{times} times")));
        about.extend(is_negative.then(|| "negative control".to_owned()));
        about.extend(trial.case.tags.iter().map(|tag| format!("#{tag}")));
        (format!("{}::{}", trial.suite, trial.case_id), about.join("  "))
    };
    let rows: Vec<(String, String)> = trials.iter().filter(|trial| trial.repetition == 1).map(row).collect();
    table(&rows)
}

fn built_in(args: &ListArgs) -> Option<Vec<(String, String)>> {
    let row = |name: &str, summary: &str| (name.to_owned(), summary.to_owned());
    if args.agents {
        let host = machine::host().ok();
        let is_missing = |agent: &dyn agent::Agent| {
            let program = agent.description().program;
            program.zip(host.as_ref()).is_some_and(|(program, host)| !program.is_installed(host))
        };
        let about = |agent: &dyn agent::Agent| {
            let note = if is_missing(agent) { " (not installed)" } else { "" };
            format!("{}{note}", agent.description().summary)
        };
        Some(agent::AGENTS.iter().map(|agent| row(agent.name(), &about(*agent))).collect())
    } else if args.assertions {
        let described = |implicit: bool, summary: &str| {
            if implicit { format!("{summary} (part of every trial)") } else { summary.to_owned() }
        };
        Some(
            grade::ASSERTIONS
                .iter()
                .map(|assertion| row(assertion.name, &described(assertion.is_implicit(), assertion.summary)))
                .collect(),
        )
    } else if args.operators {
        Some(grade::OPERATORS.iter().map(|operator| row(operator.name, operator.summary)).collect())
    } else if args.kinds_of_reports {
        Some(report::REPORTS.iter().map(|kind| row(kind.name, kind.summary)).collect())
    } else if args.sandboxes {
        let auto = row(AUTO_SANDBOX, "`isolated` if this machine can create such sandboxes, otherwise `local`");
        let kinds = sandbox::SANDBOXES.iter().map(|kind| row(kind.name(), kind.summary()));
        Some(kinds.chain([auto]).collect())
    } else {
        None
    }
}

/// Formats two columns.
fn table(rows: &[(String, String)]) -> String {
    let width = columns::widest(rows.iter().map(|(name, _)| name));
    let row = |(name, about): &(String, String)| format!("{}  {about}", columns::padded(name, width));
    rows.iter().map(|columns| row(columns).trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use crate::command::Command;

    fn built_in_of(flag: &str) -> Vec<(String, String)> {
        let args = Args::read(&["trialrun", "list", flag].map(Into::into)).unwrap();
        let Command::List(args) = args.command else { panic!("{flag}") };
        built_in(&args).unwrap()
    }

    #[test]
    fn the_name_of_a_kind_lists_the_kind() {
        let read = |words: &[&str]| {
            let Command::List(args) =
                Args::read(&words.iter().map(Into::into).collect::<Vec<std::ffi::OsString>>()).unwrap().command
            else {
                panic!("{words:?}")
            };
            built_in(&args.with_named_kind())
        };
        for kind in ["agents", "assertions", "operators", "reports", "sandboxes"] {
            let by_name = read(&["trialrun", "list", kind]);
            assert!(by_name.is_some() && by_name == read(&["trialrun", "list", &format!("--{kind}")]), "{kind}");
        }
        assert_eq!(read(&["trialrun", "list", "assertion"]), read(&["trialrun", "list", "--assertions"]));
        assert_eq!(read(&["trialrun", "list", "src"]), None, "a folder");
    }

    #[test]
    fn every_operator_is_listed_with_its_summary() {
        let rows = built_in_of("--operators");
        assert_eq!(rows.len(), grade::OPERATORS.len());
        assert!(rows.contains(&("$not".into(), "The expectation does not match.".into())));
        assert!(rows.iter().all(|(name, summary)| name.starts_with('$') && summary.ends_with('.')), "{rows:?}");
    }

    #[test]
    fn columns_stay_aligned_with_cjk_and_emoji() {
        let rows = [("挨拶", "one"), ("👍", "two"), ("abc", "")];
        let rows = rows.map(|(name, about)| (name.to_owned(), about.to_owned()));
        assert_eq!(table(&rows), "挨拶  one\n👍    two\nabc\n");
    }
}
