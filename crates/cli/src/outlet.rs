//! Destinations of reports: stdout, or a file.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use report::{Opening, Report, Reporter, Style};

use crate::error::CliError;
use crate::project::Workplace;
use crate::run_args::{OutputArgs, ReportArgs, RunArgs};
use crate::terminal::Terminal;

/// The report that is never a file.
const TERMINAL: &str = "terminal";

/// The reports of a run, as `--report` takes them: those of the command line, else those of the project.
pub fn wanted(args: &RunArgs, workplace: &Workplace) -> Vec<String> {
    let (typed, project) = (&args.output.report.reports, &workplace.project.reports);
    let Some(formats) = project.formats.as_ref().filter(|_| typed.is_empty()) else {
        return if typed.is_empty() { vec![TERMINAL.to_owned()] } else { typed.clone() };
    };
    let folder = match &project.directory {
        Some(folder) => Some(&folder.value),
        None => (formats.len() > 1).then_some(&workplace.state),
    };
    // Preparation has warned of the others.
    let known = formats.iter().filter(|format| report::find(&format.value).is_some());
    let report = |format: &suite::Setting<String>| match folder.filter(|_| format.value != TERMINAL) {
        Some(folder) => format!("{0}={1}/report.{0}", format.value, folder.display()),
        None => format.value.clone(),
    };
    known.map(report).collect()
}

/// A report that was requested.
pub struct Chosen {
    kind: &'static Report,
    file: Option<PathBuf>,
}

/// Returns the requested reports; none of their files is created yet.
pub fn open_reports(args: &ReportArgs) -> Result<Vec<Chosen>, CliError> {
    let written = if args.reports.is_empty() { vec![TERMINAL.to_owned()] } else { args.reports.clone() };
    let mut chosen: Vec<Chosen> = written.iter().map(|written| choose(written)).collect::<Result<_, _>>()?;
    if let Some(file) = &args.file {
        match chosen.iter_mut().find(|report| report.file.is_none()) {
            Some(report) => report.file = Some(file.clone()),
            None => return Err(CliError::usage("every report has a file already, so `--output` names one too many")),
        }
    }
    for (at, report) in chosen.iter().enumerate() {
        if chosen[..at].iter().any(|other| other.file == report.file) {
            let place = report.file.as_ref().map_or("standard output".into(), |file| file.display().to_string());
            return Err(CliError::usage(format!("two reports go to {place}")).hint("write `--report FORMAT=PATH`"));
        }
    }
    Ok(chosen)
}

fn choose(written: &str) -> Result<Chosen, CliError> {
    let (name, file) = match written.split_once('=') {
        Some((name, "-")) => (name, None),
        Some((name, file)) => (name, Some(PathBuf::from(file))),
        None => (written, None),
    };
    let kind = find_report(name)?;
    if kind.is_directory() && file.is_none() {
        return Err(CliError::usage(format!("the report `{name}` needs a directory"))
            .hint(format!("write `--report {name}=DIR`")));
    }
    Ok(Chosen { kind, file })
}

/// Returns the kind of report of that name.
pub fn find_report(name: &str) -> Result<&'static Report, CliError> {
    let names = || report::REPORTS.iter().map(|kind| kind.name);
    report::find(name).ok_or_else(|| {
        CliError::usage(format!("unknown report `{name}`"))
            .maybe_hint(model::nearest(name, names()).map(|near| format!("did you mean `{near}`?")))
            .hint(format!("reports: {}", names().collect::<Vec<_>>().join(", ")))
    })
}

/// An error about a report that is a directory, where no run goes on.
pub fn only_while_running(kind: &Report) -> CliError {
    CliError::usage(format!("the report `{}` is written while a run goes on", kind.name))
        .hint("`trialrun run --artifacts DIR` writes it")
}

/// The reports that are streams, and the directory of the one that is not, which may also be an option of its own.
pub fn with_directory(chosen: Vec<Chosen>, args: &OutputArgs) -> Result<(Vec<Chosen>, Option<PathBuf>), CliError> {
    let (directories, streams): (Vec<Chosen>, Vec<Chosen>) =
        chosen.into_iter().partition(|report| report.kind.is_directory());
    let named: Vec<PathBuf> =
        directories.into_iter().filter_map(|report| report.file).chain(args.artifacts.clone()).collect();
    match (named.as_slice(), &args.workspace) {
        ([], _) => Ok((streams, None)),
        ([directory], None) => Ok((streams, Some(directory.clone()))),
        _ => Err(CliError::usage("several directories for the artefacts of a run").hint("name one of them")),
    }
}

impl Chosen {
    /// Opens the report.
    pub fn open(self, terminal: &Terminal, args: &ReportArgs) -> Result<Box<dyn Reporter>, CliError> {
        let mut opening = match &self.file {
            None => Opening::new(Box::new(std::io::stdout()), terminal.out_style),
            Some(file) => Opening::new(Box::new(report_file(file)?), Style::plain()),
        };
        if self.file.is_none() && terminal.out_style.interactive && terminal.err_style.interactive {
            opening.live = Some(Box::new(std::io::stderr()));
        }
        opening.quiet = args.quiet;
        opening.show_evidence = args.show_evidence;
        self.kind.to_stream(opening).ok_or_else(|| only_while_running(self.kind))
    }
}

/// Creates a file for a report, with its directory.
pub fn report_file(file: &Path) -> Result<impl Write + Send + use<>, CliError> {
    let failed = |error: std::io::Error| CliError::usage(format!("cannot write {}: {error}", file.display()));
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    Ok(std::io::BufWriter::new(File::create(file).map_err(failed)?))
}
