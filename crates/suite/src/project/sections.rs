//! Smaller sections: `providers`, `sandbox`, `report`, `diff`, `store`, `code`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::decode::{Fields, Problems, choice, list, text};
use model::{Diagnostic, Excerpt, NetworkPolicy, Node, NodeKind, RemoteMode, Requirement, nearest};
use script::RuntimeChoice;

use super::environment::shell_variable;
use super::file::Dialect;
use super::{Setting, fraction, setting};
use crate::guarantees::{guarantees, network_policy};
use crate::path;
use crate::skills::names_in;

/// Limits on requests to one model provider.
#[derive(Debug, Clone)]
pub struct ProviderLimits {
    /// Name, such as `openai`.
    pub name: String,
    /// Location of the name.
    pub source: Excerpt,
    /// Maximum number of concurrent requests.
    pub concurrency: Option<u64>,
    /// Maximum number of requests per minute.
    pub requests_per_minute: Option<u64>,
    /// Timeout of a whole response, in milliseconds.
    pub timeout_ms: Option<u64>,
}

/// Reads `providers`.
pub fn providers(node: &Node, problems: &mut Problems) -> Vec<ProviderLimits> {
    let NodeKind::Map(entries) = &node.kind else {
        problems.push(node.error(format!("`providers` must be a map of providers, not {}", node.kind_name())));
        return Vec::new();
    };
    let mut read = |(name, node): &(model::Spanned<String>, Node)| {
        let mut fields = Fields::of(node, "a provider", problems)?.in_either_case();
        let limits = ProviderLimits {
            name: name.value.clone(),
            source: node.source.excerpt(name.span),
            concurrency: fields.whole("concurrency", 1, problems),
            requests_per_minute: fields.whole("requests_per_minute", 1, problems),
            timeout_ms: fields.duration_ms("timeout", problems),
        };
        fields.finish(problems);
        Some(limits)
    };
    entries.iter().filter_map(&mut read).collect()
}

/// Kind of sandbox, and the fallback if it is not available.
#[derive(Debug, Clone, Default)]
pub struct SandboxChoice {
    /// Kind.
    pub provider: Option<Setting<String>>,
    /// Kind that may replace it, with a warning.
    pub fallback: Option<String>,
    /// Isolation of the processes.
    pub isolation: IsolationChoice,
}

/// Isolation of sandbox processes.
#[derive(Debug, Clone, Default)]
pub struct IsolationChoice {
    /// Hosts that the processes may reach.
    pub network: Option<Setting<NetworkPolicy>>,
    /// Remote that agents push to, if there is a source repository.
    pub remote: Option<Setting<RemoteMode>>,
    /// Guarantees without which nothing runs.
    pub require: Vec<String>,
    /// Files and folders that processes may read, absolute.
    pub visible: Vec<PathBuf>,
    /// Key of the first limit that not every kind of sandbox has, or `visible`.
    pub limit: Option<Setting<String>>,
    /// Maximum data size of a process, in MiB.
    pub memory_mb: Option<u64>,
    /// Maximum number of processes and threads.
    pub processes: Option<u64>,
    /// Maximum size of a file, in MiB.
    pub file_size_mb: Option<u64>,
    /// Maximum space of the files that an agent writes, in MiB.
    pub disk_mb: Option<u64>,
    /// Maximum number of open files per process.
    pub open_files: Option<u64>,
    /// Maximum CPU time of a process, in seconds.
    pub cpu_seconds: Option<u64>,
    /// Image for containers.
    pub image: Option<Setting<String>>,
    /// Settings for Daytona sandboxes.
    pub daytona: DaytonaChoice,
}

/// Settings for Daytona sandboxes.
#[derive(Debug, Clone, Default)]
pub struct DaytonaChoice {
    /// API key.
    pub api_key: Option<String>,
    /// Address of the API.
    pub api_url: Option<String>,
    /// Region.
    pub target: Option<String>,
    /// Snapshot from which sandboxes are created.
    pub snapshot: Option<String>,
    /// Variables of all processes.
    pub env: BTreeMap<String, String>,
}

/// The only kind that can replace another one.
const FALLBACK: [(&str, &str); 1] = [("local", "local")];

/// Reads `sandbox`: a kind, or a map.
pub fn sandbox(node: &Node, dialect: Dialect, root: &Path, problems: &mut Problems) -> SandboxChoice {
    let implied = (dialect == Dialect::Fabrik).then(|| FALLBACK[0].1.to_owned());
    if matches!(node.kind, NodeKind::String(_)) {
        let provider = text(node, "`sandbox`", problems);
        let provider = provider.map(|value| Setting { value, source: node.excerpt() });
        return SandboxChoice { provider, fallback: implied, ..SandboxChoice::default() };
    }
    let Some(fields) = Fields::of_either(node, "`sandbox`", "a string or a map", problems) else {
        return SandboxChoice::default();
    };
    let mut fields = fields.in_either_case().with_synonyms(&[("type", "provider"), ("kind", "provider")]);
    let provider = fields.text("provider", problems);
    let provider = setting(provider, "provider", &mut fields);
    let fallback = fields.choice("fallback", &FALLBACK, problems).map(str::to_owned);
    let daytona = fields.get("daytona").map(|node| daytona(node, problems)).unwrap_or_default();
    let isolation = IsolationChoice { daytona, ..isolation(&mut fields, root, problems) };
    fields.finish(problems);
    SandboxChoice { provider, fallback: fallback.or(implied), isolation }
}

fn isolation(fields: &mut Fields<'_>, root: &Path, problems: &mut Problems) -> IsolationChoice {
    let network = fields.get("network").and_then(|node| network_policy(node, problems));
    let remote = fields.choice("remote", &RemoteMode::NAMED, problems);
    let image = image(fields, problems);
    let mut chosen = IsolationChoice {
        network: setting(network, "network", fields),
        remote: setting(remote, "remote", fields),
        require: guarantees(fields, problems),
        visible: visible(fields, root, problems),
        image: setting(image, "image", fields),
        ..IsolationChoice::default()
    };
    chosen.limit = setting(fields.get("visible").map(|_| "visible".to_owned()), "visible", fields);
    let limits = fields.get("limits").and_then(|node| Fields::of(node, "`limits`", problems));
    if let Some(mut limits) = limits {
        chosen.memory_mb = limits.whole("memory_mb", 16, problems);
        chosen.processes = limits.whole("processes", 16, problems);
        chosen.file_size_mb = limits.whole("file_size_mb", 1, problems);
        chosen.disk_mb = limits.whole("disk_mb", 1, problems);
        chosen.open_files = limits.whole("open_files", 16, problems);
        chosen.cpu_seconds = limits.whole("cpu_seconds", 1, problems);
        if let NodeKind::Map(entries) = &limits.node().kind {
            let key = entries.iter().map(|(key, _)| key).find(|key| key.value != "disk_mb");
            let source = &limits.node().source;
            let first = key.map(|key| Setting { value: key.value.clone(), source: source.excerpt(key.span) });
            chosen.limit = first.or(chosen.limit);
        }
        limits.finish(problems);
    }
    chosen
}

/// Reads `require`: a list of conditions that each trial must meet.
pub fn requirements(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<Vec<Requirement>> {
    let items = fields.get("require").and_then(|node| list(node, "`require`", problems))?;
    Some(items.iter().filter_map(|item| choice(item, "an item of `require`", &Requirement::NAMED, problems)).collect())
}

/// Reads `image`, and reports a name that no image can have.
fn image(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<String> {
    let image = fields.text("image", problems)?;
    let node = fields.get("image").filter(|_| !image.contains('$'));
    let Some(node) = node else { return Some(image) };
    if image.contains(char::is_whitespace) {
        problems.push(node.error(format!("`{image}` is not the name of an image: it contains a space")));
        return None;
    }
    // A registry and a tag may have capitals, but a repository has none.
    let named = image.split('@').next().unwrap_or(&image);
    let tag = named.rfind(':').filter(|at| !named[*at..].contains('/')).unwrap_or(named.len());
    let repository = named.find('/').map_or(0, |at| at + 1).min(tag);
    let right = format!("{}{}{}", &image[..repository], image[repository..tag].to_lowercase(), &image[tag..]);
    if right != image {
        let problem = node.error(format!("`{image}` is not the name of an image: it has capital letters"));
        problems.push(problem.suggest(Some(&right)));
        return None;
    }
    Some(image)
}

/// Reads `visible`, and warns about paths that do not exist.
fn visible(fields: &mut Fields<'_>, root: &Path, problems: &mut Problems) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for item in fields.list("visible", problems).unwrap_or_default() {
        let Some(written) = text(item, "an item of `visible`", problems) else { continue };
        let path = root.join(&written);
        // A variable in it is reported as such.
        if !path.exists() && shell_variable(&written).is_none() {
            let problem = item.warning(format!("there is no file or directory `{written}`"));
            problems.push(problem.suggest(near(&path, Path::new(&written)).as_deref()));
        }
        paths.push(path);
    }
    paths
}

/// Returns the path next to the missing `path` with a similar name, in the form of `written`.
fn near(path: &Path, written: &Path) -> Option<String> {
    let names = names_in(path.parent()?);
    let name = nearest(path.file_name()?.to_str()?, names.iter().map(String::as_str))?;
    Some(written.with_file_name(name).display().to_string())
}

/// Reads `daytona`. If a value refers to a variable that is not set, the value is absent.
fn daytona(node: &Node, problems: &mut Problems) -> DaytonaChoice {
    let Some(fields) = Fields::of(node, "`daytona`", problems) else { return DaytonaChoice::default() };
    let mut fields = fields.in_either_case();
    let mut text = |key| fields.text(key, problems).filter(|value| !value.is_empty() && !value.contains("${env."));
    let [api_key, api_url, target, snapshot] = ["apiKey", "apiUrl", "target", "snapshot"].map(&mut text);
    // These two fields have no effect: the service takes the image from the snapshot, and commands run in a shell.
    let image = text("image");
    text("language");
    if image.is_some() && snapshot.is_none() {
        let problem = node.warning("`image` has no effect: sandboxes are made from a snapshot");
        problems.push(problem.help("make a snapshot of the image, and write `snapshot: NAME`"));
    }
    let env = fields.text_map("env", problems).unwrap_or_default();
    fields.get("apiKey").into_iter().for_each(|node| super::judge::warn_of_name("apiKey", node, problems));
    fields.finish(problems);
    let env = env.into_iter().map(|(name, value)| (name, value.value)).collect();
    DaytonaChoice { api_key, api_url, target, snapshot, env }
}

/// Reports to write if none are selected on the command line.
#[derive(Debug, Clone, Default)]
pub struct Reports {
    /// Formats with their locations.
    pub formats: Option<Vec<Setting<String>>>,
    /// Directory for reports that are files, absolute.
    pub directory: Option<Setting<PathBuf>>,
}

/// Reads `report`.
pub fn reports(node: &Node, root: &Path, problems: &mut Problems) -> Reports {
    let Some(fields) = Fields::of(node, "`report`", problems) else {
        if let (Some(problem), Some(name)) = (problems.last_mut(), node.as_str()) {
            problem.help.push(format!("write `report: {{ formats: [{name}] }}`"));
        }
        return Reports::default();
    };
    let mut fields = fields.in_either_case();
    let items = fields.list("formats", problems);
    let format = |item: &Node| {
        let value = text(item, "an item of `formats`", problems)?;
        Some(Setting { value, source: item.excerpt() })
    };
    let formats = items.map(|items| items.iter().filter_map(format).collect());
    let directory = folder(&mut fields, "outputDir", root, problems);
    fields.finish(problems);
    Reports { formats, directory }
}

/// Reads `diff`: the amount by which a score may drop before it counts as a regression, from 0 to 1.
pub fn diff(node: &Node, problems: &mut Problems) -> Option<Setting<f64>> {
    let mut fields = Fields::of(node, "`diff`", problems)?.in_either_case();
    let threshold = fraction(&mut fields, "regressionThreshold", 1, problems);
    fields.finish(problems);
    threshold
}

/// Reads `code`: the runtime for the user's code.
pub fn code(node: &Node, problems: &mut Problems) -> Option<Setting<RuntimeChoice>> {
    let mut fields = Fields::of(node, "`code`", problems)?.in_either_case();
    let runtime = fields.choice("runtime", &RuntimeChoice::NAMES, problems);
    let runtime = setting(runtime, "runtime", &mut fields);
    fields.finish(problems);
    runtime
}

/// Reads `store`: the absolute path of the database file, or the URL of the record.
pub fn store(node: &Node, root: &Path, problems: &mut Problems) -> Option<Setting<PathBuf>> {
    let mut fields = Fields::of(node, "`store`", problems)?.in_either_case();
    let file = place_of_record(&mut fields, "path", root, problems);
    fields.finish(problems);
    match file {
        Some(file) if file.value.is_dir() => {
            problems.push(
                Diagnostic::error("`path` must be a file, not a directory")
                    .at(file.source)
                    .help("write `./.trialrun/runs.db`, or `state: DIR` for the folder"),
            );
            None
        }
        file => file,
    }
}

/// Returns the path under `key` as an absolute path, relative to `root`; a URL stays as it is written.
pub fn place_of_record(
    fields: &mut Fields<'_>,
    key: &'static str,
    root: &Path,
    problems: &mut Problems,
) -> Option<Setting<PathBuf>> {
    let written = fields.text(key, problems).map(PathBuf::from);
    setting(written.map(|written| if is_url(&written) { written } else { path::resolve(root, written) }), key, fields)
}

/// Returns `true` for a URL, such as `SCHEME://host/name`.
pub fn is_url(written: &Path) -> bool {
    let is_scheme = |text: &str| text.chars().all(|char| char.is_ascii_alphanumeric() || "+-.".contains(char));
    written.to_str().and_then(|text| text.split_once("://")).is_some_and(|(scheme, _)| is_scheme(scheme))
}

/// Returns the path of a file under `key` as an absolute path, relative to `root`. A folder is reported where it is read.
pub fn file(
    fields: &mut Fields<'_>,
    key: &'static str,
    root: &Path,
    problems: &mut Problems,
) -> Option<Setting<PathBuf>> {
    let written = fields.text(key, problems);
    setting(written.map(|written| path::resolve(root, written)), key, fields)
}

/// Returns the path of a folder under `key` as an absolute path, relative to `root`, and reports a file.
pub fn folder(
    fields: &mut Fields<'_>,
    key: &'static str,
    root: &Path,
    problems: &mut Problems,
) -> Option<Setting<PathBuf>> {
    let folder = file(fields, key, root, problems)?;
    refuse_file(&folder, key, problems);
    Some(folder)
}

/// Reports the setting `key`, which is a folder, if it names a file, or the home folder as only a shell reads it.
pub fn refuse_file(folder: &Setting<PathBuf>, key: &str, problems: &mut Problems) {
    // A folder that must exist is reported as missing.
    if !["tests", "skills_dir"].contains(&key) && folder.value.iter().any(|part| part == "~") {
        let message = format!("`~` in `{key}` is the name of a folder, because no shell reads it");
        let problem = Diagnostic::error(message).at(folder.source.clone());
        problems.push(problem.help("write `${env.HOME}` for the home folder"));
    }
    if folder.value.is_file() {
        let problem = Diagnostic::error(format!("`{key}` must be a directory, not a file")).at(folder.source.clone());
        problems.push(match key {
            "state" => problem.help("write `store: { path: FILE }` for the file with the recorded runs"),
            "tests" => problem.help("write the directory that contains the file; the command line takes files, too"),
            _ => problem.help("write the directory that contains the file"),
        });
    }
}
