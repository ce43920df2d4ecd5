//! Recognises maps in expectations that are schemas.

use jsonschema::Draft;
use model::{Node, NodeKind};

use super::vocabulary::{Role, TYPES, is_remark, keyword, nearest_keyword};
use crate::meta;
use crate::notation::SCHEMA_TAG;

/// Returns `true` if `node` is meant as a schema: its `type` is the name of a type, and every other key is a JSON
/// Schema keyword or metadata. A map with other keys is data that happens to have a `type`, unless these keys are
/// misspelt keywords next to correct ones. The tag `!json-schema` makes any map a schema.
pub fn looks_like_schema(node: &Node) -> bool {
    let NodeKind::Map(entries) = &node.kind else { return false };
    if node.tag.as_deref() == Some(SCHEMA_TAG) {
        return true;
    }
    if !node.get("type").and_then(Node::as_str).is_some_and(|name| TYPES.contains(&name)) {
        return false;
    }
    let known = |key: &str| is_remark(key) || meta::is_meta(key) || is_keyword(key);
    let mut strangers = entries.iter().map(|(key, _)| key.value.as_str()).filter(|key| !known(key)).peekable();
    if strangers.peek().is_none() {
        return true;
    }
    let says_more = entries
        .iter()
        .any(|(key, _)| key.value != "type" && keyword(&key.value).is_some_and(|known| known.role == Role::Restricts));
    says_more && strangers.all(|key| !key.starts_with('$') && nearest_keyword(key, Draft::Draft7).is_some())
}

/// Excludes `id`, which is the name of too many other things.
fn is_keyword(key: &str) -> bool {
    key != "id" && keyword(key).is_some()
}
