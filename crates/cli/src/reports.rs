//! The requested reports of a run: their kinds and destinations.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use model::Envelope;
use report::{Report, Reporter, ReporterOptions, RunHash, Style};

use crate::error::CliError;
use crate::otlp::{self, ExportMode, OTLP, Warnings};
use crate::terminal::Terminal;
use crate::{ci, log};
use session::overrides::{OutputArgs, ReportArgs};
use session::settings::{GITHUB, TERMINAL};

/// Name of the report in the format of `claude plugin eval`, and of the file that it has in a directory there.
const PLUGIN_EVAL: &str = "plugin-eval";
const PLUGIN_EVAL_FILE: &str = "aggregate-result.json";

/// A requested report.
pub struct RequestedReport {
    kind: &'static Report,
    file: Option<PathBuf>,
    /// Destination that is not a stream: a collector.
    collector: Option<Collector>,
}

/// OpenTelemetry collector: at the given address, or the one that the environment names.
#[derive(Debug, Clone, PartialEq)]
pub struct Collector(Option<String>);

impl Collector {
    /// Returns the collector that `--report NAME=DESTINATION` refers to; `None` for a file and for other reports.
    ///
    /// # Errors
    /// Returns an error if the environment requests something that is not supported.
    pub fn from_name(name: &str, destination: Option<&str>) -> Result<Option<Self>, CliError> {
        if name != OTLP {
            return Ok(None);
        }
        if let Some(file) = destination.filter(|destination| !otlp::is_address(destination)) {
            return match file.contains("://") {
                true => Err(CliError::usage(format!("`{file}` is not the address of a collector"))
                    .hint("addresses begin with `http://` or `https://`")),
                false => Ok(None),
            };
        }
        otlp::check(destination)?;
        Ok(Some(Self(destination.map(str::to_owned))))
    }

    /// Returns the arguments for opening a report that sends to this collector.
    ///
    /// # Errors
    /// Returns an error if the environment requests something that is not supported.
    pub fn options(&self, mode: ExportMode, warnings: &Warnings) -> Result<ReporterOptions, CliError> {
        let mut options = with_folder(ReporterOptions::new(Box::new(io::sink()), Style::plain()));
        options.otlp = otlp::to_collector(self.0.as_deref(), mode, warnings)?;
        Ok(options)
    }
}

/// Returns the requested reports, without creating any of their files.
pub fn requested(args: &ReportArgs) -> Result<Vec<RequestedReport>, CliError> {
    let written = match args.reports.is_empty() {
        true => vec![name_for_file(args.file.as_deref())?.to_owned()],
        false => args.reports.clone(),
    };
    let mut reports: Vec<RequestedReport> = written.iter().map(|written| parse(written)).collect::<Result<_, _>>()?;
    if let Some(file) = &args.file {
        match reports.iter_mut().find(|report| report.file.is_none()) {
            Some(report) => (report.file, report.collector) = (Some(file.clone()), None),
            None => return Err(CliError::usage("`--output` cannot be used: every report already has a file")),
        }
    }
    for (index, report) in reports.iter().enumerate() {
        let is_same = |other: &RequestedReport| (&other.file, &other.collector) == (&report.file, &report.collector);
        let collides = |other: &RequestedReport| is_same(other) && !report.can_share_with(other);
        if reports[..index].iter().any(collides) {
            let destination = report.destination();
            return Err(
                CliError::usage(format!("two reports go to {destination}")).hint("write `--report FORMAT=PATH`")
            );
        }
    }
    Ok(reports)
}

/// Refuses a report on standard output for the command `name`, which prints something else there. It accepts the options
/// of `run`, and ignores reports in files like everything that concerns only trials.
///
/// # Errors
/// Returns an error if a report has no file.
pub fn refuse_on_stdout(args: &ReportArgs, name: &str) -> Result<(), CliError> {
    let prints = |written: &&String| written.split_once('=').is_none_or(|(_, file)| file == "-");
    match args.reports.iter().find(prints).filter(|_| args.file.is_none()) {
        Some(written) => Err(CliError::usage(format!("`{name}` runs nothing, so it has no `{written}` report"))
            .hint("`--json` prints what it finds as JSON")),
        None => Ok(()),
    }
}

/// Extensions of files for the report of the terminal.
const OF_TEXT: [&str; 3] = ["txt", "text", "log"];

/// Returns the name of the report for `file`, by its extension: that of the terminal without one.
///
/// # Errors
/// Returns an error if no report has files with this extension.
pub fn name_for_file(file: Option<&Path>) -> Result<&'static str, CliError> {
    let Some(file) = file else { return Ok(TERMINAL) };
    let extension = file.extension().and_then(|extension| extension.to_str());
    match (report::for_file(file), extension) {
        (Some(kind), _) => Ok(kind.name),
        (None, Some(extension)) if !OF_TEXT.contains(&extension) => {
            Err(CliError::usage(format!("no report has files called `*.{extension}`, so its format is not known"))
                .hint("`--format NAME` selects the format; `trialrun list --reports` lists the names"))
        }
        (None, _) => Ok(TERMINAL),
    }
}

fn parse(written: &str) -> Result<RequestedReport, CliError> {
    let (name, destination) = match written.split_once('=') {
        Some((name, destination)) => (name, Some(destination)),
        None => (written, None),
    };
    let kind = find_report(name)?;
    let collector = Collector::from_name(name, destination)?;
    let file = path_of(name, destination.filter(|_| collector.is_none()))?;
    let file = file.map(|file| if name == PLUGIN_EVAL && file.is_dir() { file.join(PLUGIN_EVAL_FILE) } else { file });
    if kind.is_directory() && file.is_none() {
        return Err(needs_directory(kind).hint(format!("write `--report {name}=DIR`")));
    }
    Ok(RequestedReport { kind, file, collector })
}

/// Returns the path in `name=destination`; `None` for standard output.
///
/// # Errors
/// Returns an error if the path is empty.
pub fn path_of(name: &str, destination: Option<&str>) -> Result<Option<PathBuf>, CliError> {
    match destination {
        Some("") => {
            let error = CliError::usage(format!("the path of the report is empty in `{name}=`"));
            Err(error.hint(format!("write `{name}=PATH`, or `{name}` for standard output")))
        }
        other => Ok(other.filter(|file| *file != "-").map(PathBuf::from)),
    }
}

/// Returns the kind of report with that name.
pub fn find_report(name: &str) -> Result<&'static Report, CliError> {
    let names = || report::REPORTS.iter().map(|kind| kind.name);
    let with_file = || {
        let (format, file) = name.split_once(':').filter(|(_, file)| file.contains(['.', '/']))?;
        let format = report::find(format).map(|kind| kind.name).or_else(|| report::nearest(format))?;
        Some(format!("{format}={file}"))
    };
    report::find(name).ok_or_else(|| {
        let near = with_file().or_else(|| {
            let near = report::nearest(name)?;
            Some(if name.contains('.') { format!("{near}={name}") } else { near.to_owned() })
        });
        let several: Vec<&str> = name.split(',').map(str::trim).collect();
        let are_known = several.len() > 1 && several.iter().all(|one| report::find(one).is_some());
        let each = || several.iter().map(|one| format!("--report {one}=FILE")).collect::<Vec<_>>().join(" ");
        CliError::usage(format!("unknown report `{name}`"))
            .maybe_hint(are_known.then(|| format!("give each report on its own: `{}`", each())))
            .maybe_hint(near.map(|near| format!("did you mean `{near}`?")))
            .hint(format!("reports: {}", names().collect::<Vec<_>>().join(", ")))
    })
}

/// Returns the error for a report that is a directory, if none is named.
pub fn needs_directory(kind: &Report) -> CliError {
    CliError::usage(format!("the `{}` report needs a directory", kind.name))
}

/// Returns the error for a report that can only be written during a run.
pub fn only_while_running(kind: &Report) -> CliError {
    CliError::usage(format!("the `{}` report is written during a run", kind.name))
        .hint("`trialrun run --artifacts DIR` writes it")
}

/// Checks that the report files can be created where the command line says. A misspelt directory must be noticed
/// before the run, and not be created.
pub fn check_files(reports: &[RequestedReport]) -> Result<(), CliError> {
    let streams = reports.iter().filter(|report| !report.kind.is_directory());
    streams.filter_map(|report| report.file.as_deref()).try_for_each(check_file)
}

/// Extensions of files that people write. No report has one of them.
const SOURCES: [&str; 14] =
    ["cjs", "csv", "js", "jsx", "mjs", "mts", "py", "rs", "sh", "toml", "ts", "tsx", "yaml", "yml"];

/// Checks that the path of a file names neither a directory nor a file that a person wrote, and that the directory of the
/// file exists.
pub fn check_file(file: &Path) -> Result<(), CliError> {
    let is_source = file.extension().and_then(OsStr::to_str).is_some_and(|ending| SOURCES.contains(&ending))
        || file.file_name().is_some_and(|name| name == "SKILL.md" || name == "evals.json");
    if is_source && file.metadata().is_ok_and(|found| found.is_file() && found.len() > 0) {
        let problem = CliError::usage(format!(
            "cannot write {}: it exists, and its name is not that of a report",
            file.display()
        ));
        return Err(problem.hint("name another file; an earlier report may be replaced"));
    }
    if file.is_dir() {
        let problem = CliError::usage(format!("cannot write {}: it is a directory", file.display()));
        return Err(problem.hint(format!("name a file in it, such as `{}`", file.join("report").display())));
    }
    if file.as_os_str().as_encoded_bytes().ends_with(b"/") {
        let name = file.display().to_string();
        let problem = CliError::usage(format!("cannot write {name}: the name of a file does not end with `/`"));
        return Err(problem.hint(format!("write `{}`, or create the directory", name.trim_end_matches('/'))));
    }
    match file.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.is_dir()) {
        Some(parent) => Err(CliError::usage(format!(
            "cannot write {}: the directory {} does not exist",
            file.display(),
            parent.display()
        ))),
        None => Ok(()),
    }
}

/// Returns the reports that are streams, and the directory of the one that is not. A separate option may also set the
/// directory.
pub fn with_directory(
    reports: Vec<RequestedReport>,
    args: &OutputArgs,
) -> Result<(Vec<RequestedReport>, Option<PathBuf>), CliError> {
    let (directories, streams): (Vec<_>, Vec<_>) = reports.into_iter().partition(|report| report.kind.is_artifacts());
    let named: Vec<PathBuf> =
        directories.into_iter().filter_map(|report| report.file).chain(args.artifacts.clone()).collect();
    match (named.as_slice(), &args.workspace) {
        ([], _) => Ok((streams, None)),
        ([directory], None) => Ok((streams, Some(directory.clone()))),
        _ => Err(CliError::usage("several directories for the artefacts of a run").hint("name one of them")),
    }
}

/// Returns the report that prints only the last line, if none of `reports` is printed, and the paths that are written.
pub fn when_all_are_files(
    reports: &[RequestedReport],
    directory: Option<&Path>,
    terminal: &Terminal,
) -> Option<(Box<dyn Reporter>, Vec<PathBuf>)> {
    let is_printed = |report: &RequestedReport| report.file.is_none() && report.collector.is_none();
    if reports.iter().any(is_printed) {
        return None;
    }
    let reporter = report::last_line(ReporterOptions::new(Box::new(io::stdout()), terminal.out_style));
    let files = reports.iter().filter_map(|report| report.file.as_deref()).chain(directory);
    Some((reporter, files.map(Path::to_owned).collect()))
}

/// Returns the report for GitHub Actions, unless it is one of the requested `reports`. It goes to standard error,
/// which GitHub reads too, so that standard output contains a requested report and nothing else. Because it was not
/// requested, a summary that cannot be written is only a warning.
pub fn for_github(reports: &[RequestedReport], terminal: &Terminal) -> Option<Box<dyn Reporter>> {
    let kind = report::find(GITHUB).filter(|_| reports.iter().all(|report| report.kind.name != GITHUB))?;
    let mut options = with_folder(ReporterOptions::new(Box::new(io::stderr()), terminal.err_style));
    match ci::step_summary() {
        Ok(summary) => options.step_summary = summary,
        Err(error) => terminal.err(&format!("warning: {error}\n")),
    }
    kind.to_stream(options)
}

/// Returns the report for OpenTelemetry if the environment names a collector, unless it is one of the requested
/// `reports`. Because it was not requested, a setting that cannot be used is only a warning.
pub fn for_otlp(reports: &[RequestedReport], terminal: &Terminal, warnings: &Warnings) -> Option<Box<dyn Reporter>> {
    let is_asked_for = otlp::is_on() && reports.iter().all(|report| report.kind.name != OTLP);
    let kind = report::find(OTLP).filter(|_| is_asked_for)?;
    match Collector(None).options(ExportMode::Live, warnings) {
        Ok(options) => kind.to_stream(options),
        Err(error) => {
            terminal.err(&format!("warning: {error}\n"));
            None
        }
    }
}

/// Returns the arguments for opening a report of this kind.
///
/// # Errors
/// Returns an error if the file for the step summary of GitHub Actions cannot be opened.
pub fn options(kind: &Report, out: Box<dyn Write + Send>, style: Style) -> Result<ReporterOptions, CliError> {
    let mut options = with_folder(ReporterOptions::new(out, style));
    if kind.name == GITHUB {
        options.step_summary = ci::step_summary()?;
    }
    if kind.name == OTLP {
        options.otlp = otlp::to_file();
    }
    Ok(options)
}

fn with_folder(options: ReporterOptions) -> ReporterOptions {
    ReporterOptions { folder: ci::folder_in_repository(), temp: Some(std::env::temp_dir()), ..options }
}

impl RequestedReport {
    /// Returns `true` if both can go to standard output: GitHub filters its own lines out of the terminal report.
    fn can_share_with(&self, other: &Self) -> bool {
        let names = [self.kind.name, other.kind.name];
        self.file.is_none() && names.contains(&TERMINAL) && names.contains(&GITHUB)
    }

    /// Describes the destination.
    fn destination(&self) -> String {
        match (&self.file, &self.collector) {
            (Some(file), _) => file.display().to_string(),
            (None, Some(_)) => "the OpenTelemetry collector".to_owned(),
            (None, None) => "standard output".to_owned(),
        }
    }

    /// Opens the report. It reads `hash` at the end of the run.
    pub fn open(
        self,
        terminal: &Terminal,
        args: &ReportArgs,
        warnings: &Warnings,
        hash: &RunHash,
    ) -> Result<Box<dyn Reporter>, CliError> {
        let mut options = match (&self.file, &self.collector) {
            (None, Some(collector)) => collector.options(ExportMode::Live, warnings)?,
            (None, None) => options(self.kind, Box::new(io::stdout()), terminal.out_style)?,
            (Some(file), _) => to_file(self.kind, file)?,
        };
        let is_live = terminal.out_style.interactive && terminal.err_style.interactive && !log::is_on_stderr();
        if self.file.is_none() && is_live {
            options.live = Some(Box::new(io::stderr()));
        } else if self.file.is_none() {
            options.heartbeat = Some(Box::new(io::stderr()));
        }
        options.quiet = args.quiet;
        options.show_evidence = args.show_evidence;
        options.hash = hash.clone();
        let name = format!("{} to {}", self.kind.name, self.destination());
        let reporter = self.kind.to_stream(options).ok_or_else(|| only_while_running(self.kind))?;
        Ok(Box::new(NamedReporter { name, reporter }))
    }
}

/// Reporter whose errors include the name of the report.
struct NamedReporter {
    name: String,
    reporter: Box<dyn Reporter>,
}

impl NamedReporter {
    fn named(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.name))
    }
}

impl Reporter for NamedReporter {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        self.reporter.event(envelope).map_err(|error| self.named(&error))
    }

    fn tick(&mut self, now: Timestamp) -> io::Result<()> {
        self.reporter.tick(now).map_err(|error| self.named(&error))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.reporter.finish().map_err(|error| self.named(&error))
    }
}

/// Returns the arguments for opening a report that goes to `path`: a file, or a directory, which must be empty.
///
/// # Errors
/// Returns an error if the path cannot be used.
pub fn to_file(kind: &Report, path: &Path) -> Result<ReporterOptions, CliError> {
    if !kind.is_directory() {
        return options(kind, Box::new(report_file(path)?), Style::plain());
    }
    let failed = |error: io::Error| CliError::usage(format!("cannot write to {}: {error}", path.display()));
    std::fs::create_dir_all(path).map_err(failed)?;
    if std::fs::read_dir(path).map_err(failed)?.next().is_some() {
        let problem = CliError::usage(format!("{} is not empty", path.display()));
        return Err(problem.hint(format!("the `{}` report writes to a directory that is missing or empty", kind.name)));
    }
    let options = options(kind, Box::new(io::sink()), Style::plain())?;
    Ok(ReporterOptions { directory: Some(path.to_owned()), ..options })
}

/// Creates a file for a report, and its directory.
pub fn report_file(file: &Path) -> Result<BufWriter<File>, CliError> {
    let failed = |error: io::Error| CliError::usage(format!("cannot write {}: {error}", file.display()));
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    Ok(BufWriter::new(File::create(file).map_err(failed)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_and_a_file_in_another_form_suggest_the_right_one() {
        for (written, right) in [
            ("json:out.json", "json=out.json"),
            ("html:a/b.html", "html=a/b.html"),
            ("out.json", "json=out.json"),
            ("junit:out.xml", "junit=out.xml"),
            ("jsn:out.json", "json=out.json"),
            ("jsn", "json"),
        ] {
            let error = find_report(written).err().unwrap();
            assert_eq!(error.hints()[0], format!("did you mean `{right}`?"), "{written}");
        }
        assert!(find_report("pdf").err().unwrap().hints()[0].starts_with("reports: "));
    }

    #[test]
    fn a_directory_or_a_source_file_in_place_of_a_report_is_named_before_anything_runs() {
        let folder = tempfile::tempdir().unwrap();
        let hint = |path: &Path| check_file(path).unwrap_err().hints()[0].clone();
        let inside = folder.path().join("report").display().to_string();
        assert_eq!(hint(folder.path()), format!("name a file in it, such as `{inside}`"));
        let missing = folder.path().join("out/");
        let file = folder.path().join("out").display().to_string();
        assert_eq!(hint(&missing), format!("write `{file}`, or create the directory"));
        assert!(check_file(&folder.path().join("out.html")).is_ok());
        let source = folder.path().join("trialrun.yaml");
        assert!(check_file(&source).is_ok());
        std::fs::write(&source, "agent: fake\n").unwrap();
        assert_eq!(hint(&source), "name another file; an earlier report may be replaced");
    }
}
