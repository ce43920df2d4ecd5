//! `agent` and `agents`: the agents that the project configures, and the default agent.

use std::path::{Path, PathBuf};

use model::decode::{Fields, Problems, text};
use model::{Diagnostic, Node, NodeKind, Spanned};

use super::Setting;
use super::environment::{self, Environment, Missing, for_value, take_below};
use crate::model_name;

/// An agent that the project configures. Only the agent itself interprets its keys.
#[derive(Debug, Clone)]
pub struct ProjectAgent {
    /// Name in the project.
    pub name: String,
    /// Map with its settings. References to the environment are filled in; if one cannot be resolved, it stays as
    /// written.
    pub node: Node,
    /// References that could not be resolved, which are errors if the agent is used.
    pub missing: Vec<Diagnostic>,
    /// Folder against which relative paths in the settings are resolved.
    pub directory: PathBuf,
}

impl ProjectAgent {
    /// Returns the agent with its references to the environment resolved.
    pub fn filled(&self, environment: &Environment) -> Self {
        let mut missing = Vec::new();
        let node = environment::fill(&self.node, environment, &mut missing);
        let missing = missing.into_iter().map(|missing| missing.problem).collect();
        Self { name: self.name.clone(), node, missing, directory: self.directory.clone() }
    }

    /// Returns `true` if both have the same settings.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.directory == other.directory && self.node.to_json() == other.node.to_json()
    }
}

/// Name of a single agent without a `type`, which planning rejects.
const NAMELESS: &str = "agent";

/// Characters that a name must not contain, because they separate it from other text on the command line and in
/// reports.
const APART: [char; 6] = [':', '=', '@', '#', ',', '/'];

/// Reads `agent` and `agents` in a configuration, and determines the default agent.
pub fn read(
    fields: &mut Fields<'_>,
    root: &Path,
    missing: &mut Vec<Missing>,
    problems: &mut Problems,
) -> (Vec<ProjectAgent>, Option<Setting<String>>) {
    let mut agents = Vec::new();
    let mut default = None;
    let (mut several, mut single) = (fields.get("agents"), fields.get("agent"));
    let mut key = "agents";
    if let Some(problem) = swapped(several, single, fields) {
        problems.push(problem);
        std::mem::swap(&mut several, &mut single);
        key = "agent";
    }
    if let Some(node) = several {
        match &node.kind {
            NodeKind::Map(entries) if let Some((problem, flat)) = without_indentation(node, entries, root) => {
                problems.push(problem);
                agents.push(flat);
            }
            NodeKind::Map(entries) => {
                for (name, node) in entries {
                    let place = || node.source.excerpt(name.span);
                    if let Some(problem) = wrong_name(&name.value) {
                        problems.push(Diagnostic::error(problem).at(place()));
                    }
                    let missing = take_below(missing, &[key, &name.value]);
                    agents.extend(agent(name.value.clone(), node, missing, root, problems));
                }
            }
            _ => {
                let problem = node.error(format!("`agents` must be a map of agents, not {}", node.kind_name()));
                problems.push(problem.help("write `agents: { NAME: { type: … } }`"));
                // The mistake is reported once, not also where such an agent is chosen.
                let items = if let NodeKind::List(items) = &node.kind { items.as_slice() } else { &[] };
                agents.extend(items.iter().filter_map(|item| of_list(item, root)));
            }
        }
    }
    // If there is only one agent, it is the default.
    if let [only] = agents.as_slice() {
        default = Some(Setting { value: only.name.clone(), source: only.node.excerpt() });
    }
    match single {
        Some(node @ Node { kind: NodeKind::String(_), .. }) => {
            let name = text(node, "`agent`", problems).map(|name| match agents.iter().any(|own| own.name == name) {
                true => name,
                false => model_name::agent(name, root),
            });
            default = name.map(|value| Setting { value, source: node.excerpt() });
        }
        Some(node) => {
            let kind = node.get("type").and_then(Node::as_str);
            let name = kind.filter(|name| wrong_name(name).is_none()).unwrap_or(NAMELESS).to_owned();
            if agents.iter().any(|other| other.name == name) {
                problems.push(
                    node.error(format!("`agents` also has a `{name}`"))
                        .help("an agent without a name gets its `type` as name; put it under `agents`"),
                );
            }
            let missing = take_below(missing, &["agent"]);
            let single = agent(name, node, missing, root, problems);
            default = single.as_ref().map(|own| Setting { value: own.name.clone(), source: node.excerpt() });
            agents.extend(single);
        }
        None => {}
    }
    (agents, default)
}

/// Returns the problem with a key that is written for the other one: a single agent under `agents`, or several under
/// `agent`.
fn swapped(several: Option<&Node>, single: Option<&Node>, fields: &Fields<'_>) -> Option<Diagnostic> {
    let has_type = |node: &Node| node.get("type").is_some_and(|kind| kind.as_str().is_some());
    let has_empty = |node: &Node| match &node.kind {
        NodeKind::Map(entries) => entries.iter().any(|(_, value)| matches!(value.kind, NodeKind::Null)),
        _ => false,
    };
    let (key, meant, message) = match (several, single) {
        (Some(node), None) if node.as_str().is_some() || (has_type(node) && !has_empty(node)) => {
            ("agents", "agent", "`agents` is a map of agents, by their names, and this is one agent")
        }
        (None, Some(Node { kind: NodeKind::Map(entries), .. }))
            if !entries.is_empty() && entries.iter().all(|(_, agent)| has_type(agent)) =>
        {
            ("agent", "agents", "`agent` is one agent, and this is a map of agents, by their names")
        }
        _ => return None,
    };
    let place = fields.node().source.excerpt(fields.key_span(key)?);
    Some(Diagnostic::error(message).at(place).suggest(Some(meant)))
}

/// Returns the problem with an agent whose keys have the indentation of its name, and the agent.
fn without_indentation(
    node: &Node,
    entries: &[(Spanned<String>, Node)],
    root: &Path,
) -> Option<(Diagnostic, ProjectAgent)> {
    let (key, _) = entries.iter().find(|(key, value)| key.value == "type" && value.as_str().is_some())?;
    let (name, _) = entries.iter().find(|(_, value)| matches!(value.kind, NodeKind::Null))?;
    let problem = Diagnostic::error(format!("`type` has the indentation of `{}`, to which it belongs", name.value));
    let problem = problem.at(node.source.excerpt(key.span)).help("indent the keys of the agent further than its name");
    let own = entries.iter().filter(|(key, _)| key.span != name.span).cloned().collect();
    let node = Node { kind: NodeKind::Map(own), ..node.clone() };
    Some((problem, ProjectAgent { name: name.value.clone(), node, missing: Vec::new(), directory: root.to_owned() }))
}

/// Returns the agent in an item of a list, with its name.
fn of_list(item: &Node, root: &Path) -> Option<ProjectAgent> {
    let (name, mut node) = (item.get("name")?.as_str()?.to_owned(), item.clone());
    if let NodeKind::Map(entries) = &mut node.kind {
        entries.retain(|(key, _)| key.value != "name");
    }
    Some(ProjectAgent { name, node, missing: Vec::new(), directory: root.to_owned() })
}

fn agent(
    name: String,
    node: &Node,
    missing: Vec<Diagnostic>,
    root: &Path,
    problems: &mut Problems,
) -> Option<ProjectAgent> {
    if matches!(node.kind, NodeKind::Map(_)) {
        report_shell_variables(node, problems);
        return Some(ProjectAgent { name, node: node.clone(), missing, directory: root.to_owned() });
    }
    let problem = node.error(format!("an agent must be a map, not {}", node.kind_name()));
    problems.push(problem.help("write `{ type: http, url: … }`, or `agent: NAME` to choose one"));
    None
}

/// Warns about `${NAME}` and `$NAME` in what an agent sends or gets as a variable, which are not replaced, unlike
/// `${NAME}` in the headers of MCP servers.
fn report_shell_variables(node: &Node, problems: &mut Problems) {
    let headers = node.get("headers").map(|headers| match &headers.kind {
        NodeKind::Map(entries) => entries.iter().map(|(_, value)| value).collect(),
        _ => Vec::new(),
    });
    // An address that begins with a variable is reported as no address.
    let url = node.get("url").filter(|url| url.as_str().is_none_or(|url| !url.starts_with('$')));
    let mut sent: Vec<&Node> = headers.unwrap_or_default().into_iter().chain(url).collect();
    for value in &sent {
        let text = value.as_str().filter(|text| environment::shell_variable(text).is_none()).unwrap_or_default();
        if let Some(opening) = ["{{", "${env:", "${process.env."].into_iter().find(|opening| text.contains(opening)) {
            let problem = value.warning(format!("`{opening}` is not replaced here, so it is sent as it is"));
            problems.push(problem.help(for_value("NAME")));
        }
    }
    node.get("body_template").into_iter().for_each(|body| collect_texts(body, &mut sent));
    for value in sent {
        let Some(name) = value.as_str().and_then(environment::shell_variable) else { continue };
        // The text itself may be masked, like the value of any header.
        let problem = value.warning(format!("the variable `{name}` is not filled in here, so its name is sent"));
        problems.push(problem.help(for_value(name)));
    }
    let Some(NodeKind::Map(variables)) = node.get("env").map(|env| &env.kind) else { return };
    for (key, value) in variables {
        let Some(name) = value.as_str().and_then(environment::shell_variable) else { continue };
        // Within other text, it may be what the program wants.
        let is_whole = value.as_str().is_some_and(|text| text.trim_matches(['$', '{', '}']) == name);
        if is_whole || key.value == "PATH" {
            let problem =
                value.warning(format!("the variable `{name}` is not filled in here: the program gets its name"));
            problems.push(problem.help(for_value(name)));
        }
    }
}

/// Adds the texts in the body of requests that contain `${NAME}` with a name in capitals to `found`. Others are variables
/// of the body, or ordinary text.
fn collect_texts<'a>(body: &'a Node, found: &mut Vec<&'a Node>) {
    match &body.kind {
        NodeKind::String(text) => {
            let name = environment::shell_variable(text);
            let is_braced = |name: &&str| !name.contains(char::is_lowercase) && text.contains(&format!("${{{name}}}"));
            found.extend(name.filter(is_braced).map(|_| body));
        }
        NodeKind::List(items) => items.iter().for_each(|item| collect_texts(item, found)),
        NodeKind::Map(entries) => entries.iter().for_each(|(_, value)| collect_texts(value, found)),
        _ => {}
    }
}

fn wrong_name(name: &str) -> Option<String> {
    let wrong = name.is_empty() || name.contains(|letter: char| letter.is_whitespace() || APART.contains(&letter));
    wrong.then(|| format!("`{name}` is not a valid name of an agent: it contains a space or one of `: = @ # , /`"))
}
