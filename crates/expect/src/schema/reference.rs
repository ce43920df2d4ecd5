//! Where the schemas of a document are, by address, anchor and pointer. Nothing is ever fetched.

use std::collections::HashMap;
use std::rc::Rc;

use jsonschema::uri;
use model::decode::Problems;
use model::{Node, NodeKind};
use percent_encoding::percent_decode_str;

use super::vocabulary::{Dialect, Role, Under, keyword};

/// The address of a document that names none.
const NAMELESS: &str = "json-schema:///";

/// The named schemas of a document.
pub(super) struct References<'a> {
    root: &'a Node,
    dialect: Dialect,
    /// The address that references in a schema are relative to.
    bases: HashMap<*const Node, Rc<str>>,
    resources: HashMap<Rc<str>, &'a Node>,
    anchors: HashMap<(Rc<str>, &'a str), &'a Node>,
    dynamic: HashMap<&'a str, Vec<&'a Node>>,
}

/// What a reference leads to.
pub(super) enum Target<'a> {
    /// A schema of the document.
    Schema(&'a Node),
    /// The schema of all schemas of a dialect.
    Dialect(Dialect),
}

impl<'a> References<'a> {
    /// Finds them all.
    pub(super) fn of(root: &'a Node, dialect: Dialect, problems: &mut Problems) -> Self {
        let mut found = Self {
            root,
            dialect,
            bases: HashMap::new(),
            resources: HashMap::new(),
            anchors: HashMap::new(),
            dynamic: HashMap::new(),
        };
        let base: Rc<str> = NAMELESS.into();
        found.resources.insert(Rc::clone(&base), root);
        found.visit(root, &base, 0, problems);
        found
    }

    fn visit(&mut self, node: &'a Node, base: &Rc<str>, depth: usize, problems: &mut Problems) {
        let NodeKind::Map(entries) = &node.kind else { return };
        if depth > super::translation::DEEPEST {
            return;
        }
        let base = self.name(node, base, problems);
        self.bases.insert(std::ptr::from_ref(node), Rc::clone(&base));
        for (key, value) in entries {
            let under = match keyword(&key.value) {
                Some(keyword) if keyword.role == Role::Tells => Under::Nothing,
                Some(keyword) => keyword.under,
                None => Under::Map,
            };
            match (under, &value.kind) {
                (Under::Nothing, _) => {}
                (Under::Map | Under::MapOrNames, NodeKind::Map(schemas)) => {
                    for (_, schema) in schemas {
                        self.visit(schema, &base, depth + 1, problems);
                    }
                }
                (Under::List | Under::SchemaOrList, NodeKind::List(schemas)) => {
                    for schema in schemas {
                        self.visit(schema, &base, depth + 1, problems);
                    }
                }
                _ => self.visit(value, &base, depth + 1, problems),
            }
        }
    }

    /// Takes up the names `node` gives itself; the result is the address that what is in it is relative to.
    fn name(&mut self, node: &'a Node, outer: &Rc<str>, problems: &mut Problems) -> Rc<str> {
        let id_key = if self.dialect == Dialect::Draft4 { "id" } else { "$id" };
        let mut base = Rc::clone(outer);
        if let Some(id_node) = node.get(id_key)
            && let Some(id) = id_node.as_str()
        {
            if let Some(anchor) = id.strip_prefix('#') {
                if !anchor.is_empty() {
                    self.anchor(&base, anchor, node, id_node, problems);
                }
            } else {
                match join(outer, id.split('#').next().unwrap_or(id)) {
                    Ok(address) => {
                        base = address.into();
                        let before = self.resources.insert(Rc::clone(&base), node);
                        if before.is_some_and(|before| !std::ptr::eq(before, node)) {
                            problems.push(id_node.error(format!("the schema has two parts called `{id}`")));
                        }
                    }
                    Err(why) => problems.push(id_node.error(format!("`{id_key}` is not an address: {why}"))),
                }
            }
        }
        for key in ["$anchor", "$dynamicAnchor"] {
            if let Some(anchor_node) = node.get(key)
                && let Some(anchor) = anchor_node.as_str()
            {
                self.anchor(&base, anchor, node, anchor_node, problems);
                if key == "$dynamicAnchor" {
                    self.dynamic.entry(anchor).or_default().push(node);
                }
            }
        }
        base
    }

    fn anchor(&mut self, base: &Rc<str>, name: &'a str, node: &'a Node, at: &Node, problems: &mut Problems) {
        let before = self.anchors.insert((Rc::clone(base), name), node);
        if before.is_some_and(|before| !std::ptr::eq(before, node)) {
            problems.push(at.error(format!("the schema has two anchors called `{name}`")));
        }
    }

    /// What `reference`, standing in the schema `holder`, leads to.
    ///
    /// # Errors
    /// Why it leads nowhere, and what to do.
    pub(super) fn resolve(&self, reference: &str, holder: &Node) -> Result<Target<'a>, (String, Option<String>)> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let base = self.bases.get(&std::ptr::from_ref(holder)).map_or(NAMELESS, |base| &**base);
        let resource = if address.is_empty() {
            self.resources.get(base).copied().unwrap_or(self.root)
        } else {
            let address =
                join(base, address).map_err(|why| (format!("`{reference}` is not an address: {why}"), None))?;
            match self.resources.get(address.as_str()) {
                Some(resource) => resource,
                None => return standard(&address, fragment).ok_or_else(|| elsewhere(reference)),
            }
        };
        let base = self.bases.get(&std::ptr::from_ref(resource)).map_or(NAMELESS, |base| &**base);
        self.fragment(resource, base, fragment).map(Target::Schema).ok_or_else(|| {
            let why = format!("`{reference}` leads nowhere: the schema has no such part");
            (why, Some("a part is kept under `definitions` and referred to as `#/definitions/name`".to_owned()))
        })
    }

    fn fragment(&self, resource: &'a Node, base: &str, fragment: &str) -> Option<&'a Node> {
        let fragment = percent_decode_str(fragment).decode_utf8().ok()?;
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return self
                .anchors
                .iter()
                .find(|((of, name), _)| **of == *base && *name == fragment)
                .map(|(_, node)| *node);
        }
        fragment.split('/').skip(1).try_fold(resource, |node, token| {
            let token = token.replace("~1", "/").replace("~0", "~");
            match &node.kind {
                NodeKind::List(items) => items.get(token.parse::<usize>().ok()?),
                _ => node.get(&token),
            }
        })
    }

    /// How many schemas call themselves `anchor` for dynamic references.
    pub(super) fn dynamic_anchors(&self, anchor: &str) -> &[&'a Node] {
        self.dynamic.get(anchor).map_or(&[], Vec::as_slice)
    }

    /// Whether the document is more than one resource.
    pub(super) fn is_compound(&self) -> bool {
        self.resources.values().any(|node| !std::ptr::eq(*node, self.root))
    }
}

fn standard<'a>(address: &str, fragment: &str) -> Option<Target<'a>> {
    Dialect::of(address).filter(|_| fragment.is_empty()).map(Target::Dialect)
}

fn elsewhere(reference: &str) -> (String, Option<String>) {
    let why = format!("`{reference}` is outside of this schema, and nothing is ever fetched");
    (why, Some("copy what it refers to into `definitions` and refer to that".to_owned()))
}

fn join(base: &str, reference: &str) -> Result<String, String> {
    let base = uri::from_str(base).map_err(|error| error.to_string())?;
    let joined = uri::resolve_against(&base.borrow(), reference).map_err(|error| error.to_string())?;
    Ok(joined.as_str().trim_end_matches('#').to_owned())
}
