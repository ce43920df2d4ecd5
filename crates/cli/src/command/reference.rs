//! `trialrun reference`: the generated sections of the pages in `docs/`.
//!
//! The pages are written by hand. Sections such as tables of fields are generated from the code and stand between two
//! lines: `<!-- generated: NAME -->` and `<!-- end -->`. A section can stand on several pages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::error::CliError;
use crate::terminal::Terminal;
use session::hooks;

use crate::exit;

const BEGIN: &str = "<!-- generated: ";
const END: &str = "<!-- end -->";

/// Arguments of `reference`.
#[derive(Debug, clap::Args)]
pub struct ReferenceArgs {
    /// Update the generated sections instead of checking that they are current
    #[arg(long)]
    write: bool,
    /// Folder with the pages
    #[arg(long, value_name = "DIR", default_value = "docs")]
    dir: PathBuf,
}

/// Updates the pages, or reports which are stale. `definition` is the command line.
pub fn run(args: &ReferenceArgs, definition: clap::Command, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let failed = |what: &str, error: &std::io::Error| CliError::environment(format!("cannot {what}: {error}"));
    let folder = args.dir.display();
    let mut paths = Vec::new();
    list_pages(&args.dir, &mut paths).map_err(|error| failed(&format!("read {folder}"), &error))?;
    paths.sort_unstable();
    if paths.is_empty() {
        return Err(CliError::usage(format!("{folder} has no pages (`*.md`)")));
    }
    let sections = sections(definition);
    let mut unused: BTreeSet<&str> = sections.keys().map(String::as_str).collect();
    let mut stale = Vec::new();
    for path in paths {
        let page = path.display().to_string();
        let text = std::fs::read_to_string(&path).map_err(|error| failed(&format!("read {page}"), &error))?;
        let updated =
            fill(&text, &sections, &mut unused).map_err(|wrong| CliError::usage(format!("{page}: {wrong}")))?;
        if updated != text {
            stale.push((path, page, updated));
        }
    }
    if let Some(name) = unused.first() {
        return Err(CliError::usage(format!("no page in {folder} has the `{name}` section"))
            .hint(format!("add the lines `{BEGIN}{name} -->` and `{END}` to a page")));
    }
    if !args.write && !stale.is_empty() {
        let pages: Vec<String> = stale.into_iter().map(|(_, page, _)| page).collect();
        return Err(CliError::usage(format!("stale: {}", pages.join(", ")))
            .hint("`trialrun reference --write` updates the generated sections"));
    }
    for (path, page, updated) in stale {
        std::fs::write(&path, updated).map_err(|error| failed(&format!("write {page}"), &error))?;
        terminal.out(&format!("wrote {page}\n"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The generated sections, by name.
fn sections(definition: clap::Command) -> BTreeMap<String, String> {
    let settings = session::settings::reference();
    [
        agent::reference(),
        grade::reference(),
        report::json_reference(),
        suite::reference(),
        exit::reference(),
        super::rpc::protocol::reference(),
        super::serve::reference(),
        hooks::reference(),
        command_line(definition),
        settings,
        vec![("reports".to_owned(), reports()), ("inherited variables".to_owned(), inherited_variables())],
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Adds the pages in the folder and in the folders below it.
fn list_pages(folder: &Path, pages: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list_pages(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    Ok(())
}

/// Fills the sections of `page`, and removes them from `unused`. An unknown or unclosed section is an error.
fn fill(page: &str, sections: &BTreeMap<String, String>, unused: &mut BTreeSet<&str>) -> Result<String, String> {
    let mut filled = String::with_capacity(page.len());
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        filled.push_str(line);
        filled.push('\n');
        let Some(name) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        let text = sections.get(name).ok_or_else(|| format!("unknown section `{name}`"))?;
        unused.remove(name);
        if lines.find(|line| *line == END || line.starts_with(BEGIN)) != Some(END) {
            return Err(format!("the `{name}` section has no `{END}`"));
        }
        filled.push_str(&format!("\n{}\n\n{END}\n", text.trim_end()));
    }
    Ok(filled)
}

/// Returns the list of variables that processes in a sandbox inherit.
fn inherited_variables() -> String {
    let names = sandbox::INHERITED_VARIABLES.iter().map(|name| format!("`{name}`"));
    let lines: Vec<String> = names.collect::<Vec<_>>().chunks(6).map(|names| names.join(", ")).collect();
    lines.join(",\n")
}

/// Returns the table of reports.
fn reports() -> String {
    let rows = report::REPORTS.iter().map(|report| format!("| `{}` | {}. |\n", report.name, report.summary));
    format!("| report | |\n| --- | --- |\n{}", rows.collect::<String>())
}

/// Returns the help and other names of every command, as sections named after the commands.
fn command_line(definition: clap::Command) -> Vec<(String, String)> {
    let mut program = definition.term_width(100);
    program.build();
    let shown = program.get_subcommands_mut().filter(|command| !command.is_hide_set() && command.get_name() != "help");
    let section = |command: &mut clap::Command| {
        // The short help omits options that the page should list.
        let is_cut = command.get_arguments().any(clap::Arg::is_hide_short_help_set);
        let help = if is_cut { command.render_long_help() } else { command.render_help() }.to_string();
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        let text = format!("```text\n{}\n```\n{}", help.join("\n").trim_end(), other_names(command));
        (format!("trialrun {}", command.get_name()), text)
    };
    shown.map(section).collect()
}

/// Returns the names that a command and its options have in the tools that trialrun replaces. The help does not list
/// them.
fn other_names(command: &clap::Command) -> String {
    let quoted = |names: Vec<String>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let mut rows = String::new();
    let names: Vec<String> = command.get_all_aliases().map(|name| format!("trialrun {name}")).collect();
    if !names.is_empty() {
        rows.push_str(&format!("| `trialrun {}` | {} |\n", command.get_name(), quoted(names)));
    }
    for option in command.get_arguments() {
        let names: Vec<String> =
            option.get_all_aliases().unwrap_or_default().iter().map(|name| format!("--{name}")).collect();
        if let (Some(name), false) = (option.get_long(), names.is_empty()) {
            rows.push_str(&format!("| `--{name}` | {} |\n", quoted(names)));
        }
    }
    match rows.is_empty() {
        true => rows,
        false => format!("\n| name | aliases |\n| --- | --- |\n{rows}"),
    }
}
