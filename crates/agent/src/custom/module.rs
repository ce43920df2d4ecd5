//! Resolves the module named on the command line or in a project.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::decode::{Fields, Problems};
use model::{Diagnostic, Excerpt, Node, NodeKind};
use serde_json::{Map, Value as Json};

use super::export::{self, Export};
use crate::field::without_functions;
use crate::network::{self, Network};
use crate::traces::{TraceKeys, TraceSettings};
use crate::{RunState, SessionContext};

/// Extensions of programs in other languages.
const OTHER_LANGUAGES: [&str; 8] = ["go", "java", "php", "ps1", "py", "rb", "rs", "sh"];

/// A user's module.
pub(super) struct Module {
    /// Name as written by the user.
    pub(super) file: String,
    /// Path of the file.
    pub(super) path: PathBuf,
    /// Options passed to the module.
    pub(super) options: Map<String, Json>,
    /// Hosts to which it may send HTTP requests.
    pub(super) hosts: Vec<String>,
    /// How the spans of the service behind it are received, if it sends any.
    pub(super) traces: Option<TraceSettings>,
}

impl Module {
    /// Returns the module for `custom:FILE`.
    pub(super) fn from_argument(argument: Option<&str>) -> Result<Self, Box<Diagnostic>> {
        let Some(file) = argument.filter(|file| !file.is_empty()) else {
            return Err(Box::new(Diagnostic::error("`custom` needs a module").help("write `custom:agent.js`")));
        };
        Ok(Self {
            file: file.to_owned(),
            path: PathBuf::from(file),
            options: Map::new(),
            hosts: Vec::new(),
            traces: None,
        })
    }

    /// Reads a configuration. Returns the module and the node that names it, or `None` if there are errors, which are
    /// added to `problems`.
    pub(super) fn read<'a>(node: &'a Node, directory: &Path, problems: &mut Problems) -> Option<(Self, &'a Node)> {
        let before = problems.len();
        without_functions(node, "custom", problems);
        const SYNONYMS: [(&str, &str); 2] = [("file", "module"), ("path", "module")];
        let mut fields = Fields::of(node, "a `custom` agent", problems)?.with_synonyms(&SYNONYMS);
        fields.get("type");
        let place = fields.get("module").unwrap_or(node);
        let file = fields.required_text("module", problems);
        let options = fields.get("options").map_or_else(Map::new, |node| match (&node.kind, node.to_json()) {
            (NodeKind::Map(_), Json::Object(options)) => options,
            _ => {
                problems.push(node.error(format!("`options` must be a map, not {}", node.kind_name())));
                Map::new()
            }
        });
        let hosts = fields.list("network", problems).map_or_else(Vec::new, |items| network::hosts(items, problems));
        let traces = fields.get("traces");
        let traces = traces.and_then(|node| TraceSettings::read(node, TraceKeys::SharedProcess, problems));
        fields.finish(problems);
        let file = file.filter(|_| problems.len() == before)?;
        Some((Self { path: directory.join(&file), file, options, hosts, traces }, place))
    }

    /// Returns the module of a trial.
    pub(super) fn from_context(context: &SessionContext) -> Result<Self, Vec<Diagnostic>> {
        let Some(config) = &context.config else {
            return Self::from_argument(context.argument.as_deref()).map_err(|problem| vec![*problem]);
        };
        let mut problems = Problems::new();
        Self::read(&config.node, &config.directory, &mut problems).map(|(module, _)| module).ok_or(problems)
    }

    /// Returns the problems with the module.
    pub(super) fn check(&self, state: &Arc<RunState>) -> Vec<Diagnostic> {
        let file = &self.file;
        if let Err(error) = std::fs::metadata(&self.path) {
            return vec![Diagnostic::error(format!("cannot read the module `{file}`: {error}"))];
        }
        let extension = self.path.extension().and_then(OsStr::to_str).unwrap_or_default();
        if OTHER_LANGUAGES.contains(&extension) {
            let problem = Diagnostic::error(format!("`{file}` is not a module of JavaScript or TypeScript"));
            return vec![problem.help("a program in another language is an agent with `type: subprocess`")];
        }
        let at_start = |problem: Diagnostic| problem.at(Excerpt::of_file(file.as_str()));
        match export::program(&self.path, Network::to(&self.hosts, None), state).check() {
            Ok(value) if Export::read(&value).is_some() => Vec::new(),
            Ok(_) => {
                let problem = Diagnostic::error(format!("`{file}` exports neither `execute` nor `send`"));
                vec![at_start(problem).help(export::EXECUTE).help(export::ADAPTER)]
            }
            Err(error) => {
                let problem = error.diagnostic();
                let is_placed = problem.source.is_some();
                vec![if is_placed { problem } else { at_start(problem) }]
            }
        }
    }
}
