//! What is known about a configuration while it is read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::decode::{Fields, Problems};
use model::{Node, NodeKind, Spanned};
use template::Variables;

use super::module::Modules;
use crate::coverage::{KeyLog, Treatment, Unknown};
use crate::format::foreign::is_one_of;
use crate::library::Library;

/// A configuration while it is read.
pub(super) struct Reading<'a> {
    /// Path of the configuration.
    pub(super) path: &'a Path,
    /// Folder of the configuration, against which its paths are resolved.
    pub(super) directory: PathBuf,
    pub(super) library: &'a Library,
    /// Keys that were read so far.
    pub(super) keys: KeyLog,
    /// Problems with the whole configuration.
    pub(super) found: Problems,
    /// Variables of the environment, for templates.
    pub(super) env: Option<Node>,
    /// Modules whose functions were called.
    pub(super) modules: Modules,
}

/// Names of keys with the consequences of ignoring them.
pub(super) type Ignored<'a> = [(&'a str, &'a str)];

impl<'a> Reading<'a> {
    pub(super) fn new(path: &'a Path, library: &'a Library) -> Self {
        let directory = super::super::directory(path).to_owned();
        Self {
            path,
            directory,
            library,
            keys: KeyLog::default(),
            found: Problems::new(),
            env: None,
            modules: Modules::default(),
        }
    }

    /// Records the keys of a map. `refused` are those without which a verdict would differ. Returns the problems that
    /// break the cases to which the map belongs.
    pub(super) fn close(
        &mut self,
        fields: &Fields<'_>,
        path: &str,
        ignored: &Ignored<'_>,
        refused: &Ignored<'_>,
    ) -> Problems {
        let unknown = |key: &str, _: &Node| match refused.iter().find(|(known, _)| *known == key) {
            Some((_, consequence)) => Unknown::Refused((*consequence).to_owned()),
            // Providers get them in promptfoo, and new ones appear.
            None if path.ends_with(".config") || path.ends_with(".options") => {
                Unknown::Ignored("it is not passed to the provider".to_owned())
            }
            None => Unknown::Ignored("it has no effect there either".to_owned()),
        };
        // A key with a known meaning is never a misspelt one.
        let mut misspelt = Problems::new();
        let mut broken = self.keys.close(fields, path, ignored, unknown, &mut misspelt);
        misspelt.retain(|problem| !is_one_of(refused, problem));
        for (key, consequence) in refused {
            let place = fields.key_span(key).map(|span| fields.node().source.excerpt(span));
            if let Some(place) = place.filter(|place| !broken.iter().any(|one| one.source.as_ref() == Some(place))) {
                broken.push(self.refuse(path, key, consequence, &place));
            }
        }
        broken.extend(misspelt);
        broken
    }

    /// Records a key that is refused, and returns the problem.
    pub(super) fn refuse(
        &mut self,
        path: &str,
        key: &str,
        consequence: &str,
        place: &model::Excerpt,
    ) -> model::Diagnostic {
        let full = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        self.keys.add(full, Treatment::Refused, Some(consequence.to_owned()), place.clone());
        model::Diagnostic::error(format!("`{key}` is not supported: {consequence}")).at(place.clone())
    }

    /// Returns variables for the templates of a test.
    pub(super) fn variables(&self, vars: &[(String, Node)]) -> Variables {
        let env = self.env.iter().fold(Variables::new(), |all, env| all.with("env", env.clone()));
        vars.iter().fold(env, |all, (name, value)| all.with(name, value.clone())).keeping_unread()
    }
}

/// Creates a node at the place of `at`.
pub(super) fn node(at: &Node, kind: NodeKind) -> Node {
    Node { kind, span: at.span, tag: None, source: Arc::clone(&at.source) }
}

/// Creates a string at the place of `at`.
pub(super) fn text(at: &Node, text: impl Into<String>) -> Node {
    node(at, NodeKind::String(text.into()))
}

/// Creates a map at the place of `at`.
pub(super) fn map(at: &Node, entries: Vec<(String, Node)>) -> Node {
    let entries = entries.into_iter().map(|(key, value)| (Spanned::new(key, at.span), value)).collect();
    node(at, NodeKind::Map(entries))
}

/// Returns `value` with every location set to that of `at`.
pub(super) fn placed(value: &serde_json::Value, at: &Node) -> Node {
    let inside = Node::from_json(value, &at.source);
    moved_to(inside, at)
}

/// Returns `value` at the place of `at`.
pub(super) fn moved_to(value: Node, at: &Node) -> Node {
    let kind = match value.kind {
        NodeKind::List(items) => NodeKind::List(items.into_iter().map(|item| moved_to(item, at)).collect()),
        NodeKind::Map(entries) => NodeKind::Map(
            entries.into_iter().map(|(key, value)| (Spanned::new(key.value, at.span), moved_to(value, at))).collect(),
        ),
        other => other,
    };
    node(at, kind)
}

/// Returns the entries of a map; none for any other value.
pub(super) fn entries(node: Option<&Node>) -> &[(Spanned<String>, Node)] {
    match node.map(|node| &node.kind) {
        Some(NodeKind::Map(entries)) => entries,
        _ => &[],
    }
}

/// Returns the items of a list, or the only value; none for null.
pub(super) fn items(node: Option<&Node>) -> Vec<&Node> {
    match node.map(|node| (node, &node.kind)) {
        None | Some((_, NodeKind::Null)) => Vec::new(),
        Some((_, NodeKind::List(items))) => items.iter().collect(),
        Some((only, _)) => vec![only],
    }
}

/// Returns `text` in one line and shortened.
pub(super) fn short(text: &str) -> String {
    let line: String = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).fold(
        String::new(),
        |mut line, word| {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
            line
        },
    );
    model::text::shortened(&line, 60)
}
