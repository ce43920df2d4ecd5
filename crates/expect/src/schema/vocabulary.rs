//! The keywords of JSON Schema, ajv-formats, ajv-keywords and OpenAPI, and the drafts that have them.

use jsonschema::Draft;
use jsonschema::Draft::{Draft4, Draft6, Draft7, Draft201909, Draft202012};
use model::nearest;

/// The drafts with their names and addresses, without scheme and fragment.
const DRAFTS: &[(Draft, &str, &str)] = &[
    (Draft4, "draft-04", "json-schema.org/draft-04/schema"),
    (Draft6, "draft-06", "json-schema.org/draft-06/schema"),
    (Draft7, "draft-07", "json-schema.org/draft-07/schema"),
    (Draft201909, "draft 2019-09", "json-schema.org/draft/2019-09/schema"),
    (Draft202012, "draft 2020-12", "json-schema.org/draft/2020-12/schema"),
];

/// Returns the draft that `address` identifies, with `http` or `https`, and with or without `#`.
pub(super) fn draft(address: &str) -> Option<Draft> {
    let bare = address.trim_end_matches('#');
    let bare = bare.strip_prefix("https://").or_else(|| bare.strip_prefix("http://"))?;
    DRAFTS.iter().find(|(_, _, known)| *known == bare).map(|(draft, _, _)| *draft)
}

/// Returns the name of a draft, for messages.
pub(super) fn draft_name(draft: Draft) -> &'static str {
    DRAFTS.iter().find(|(known, _, _)| *known == draft).map_or("", |(_, name, _)| name)
}

/// Returns the value of `$schema` for a draft.
pub(super) fn draft_address(draft: Draft) -> String {
    let bare = DRAFTS.iter().find(|(known, _, _)| *known == draft).map_or("", |(_, _, bare)| bare);
    if draft <= Draft7 { format!("http://{bare}#") } else { format!("https://{bare}") }
}

/// Returns the values of `$schema` for all drafts.
pub(super) fn draft_addresses() -> Vec<String> {
    DRAFTS.iter().map(|(draft, _, _)| draft_address(*draft)).collect()
}

/// The schemas under a keyword.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SubschemaKind {
    /// None.
    Nothing,
    /// A schema, or a list of schemas.
    Schemas,
    /// A map of names to schemas; `dependencies` also contains lists of names.
    Map,
}

/// The purpose of a keyword.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It restricts the value.
    Restricts,
    /// Names, references or stores a schema.
    Names,
    /// Information for readers, editors or code generators.
    Informs,
}

/// Keywords with the same role, and the drafts that have them.
pub(super) struct Keywords {
    /// Their names, separated by spaces.
    names: &'static str,
    pub(super) role: Role,
    pub(super) under: SubschemaKind,
    pub(super) since: Draft,
    pub(super) until: Draft,
}

const fn all(role: Role, under: SubschemaKind, names: &'static str) -> Keywords {
    Keywords { names, role, under, since: Draft4, until: Draft202012 }
}

const fn some(role: Role, under: SubschemaKind, since: Draft, until: Draft, names: &'static str) -> Keywords {
    Keywords { names, role, under, since, until }
}

/// Keywords of ajv-formats and ajv-keywords that contain no schemas and are checked here, separated by spaces.
pub(super) const EXTENSIONS: &str = "formatMinimum formatMaximum formatExclusiveMinimum formatExclusiveMaximum regexp range exclusiveRange \
     allRequired anyRequired oneRequired patternRequired prohibited deepRequired uniqueItemProperties typeof \
     instanceof";

/// Name for `pattern` in documents for the library, whose own check supports less of ECMAScript.
pub(super) const PATTERN: &str = "check:pattern";

const KEYWORDS: &[Keywords] = &[
    all(Role::Names, SubschemaKind::Nothing, "$schema $ref"),
    all(Role::Names, SubschemaKind::Map, "definitions $defs"),
    some(Role::Names, SubschemaKind::Nothing, Draft4, Draft4, "id"),
    some(Role::Names, SubschemaKind::Nothing, Draft6, Draft202012, "$id"),
    some(Role::Names, SubschemaKind::Nothing, Draft201909, Draft202012, "$anchor"),
    some(Role::Names, SubschemaKind::Nothing, Draft201909, Draft201909, "$recursiveRef $recursiveAnchor"),
    some(Role::Names, SubschemaKind::Nothing, Draft202012, Draft202012, "$dynamicRef $dynamicAnchor"),
    all(
        Role::Restricts,
        SubschemaKind::Nothing,
        "type nullable enum multipleOf maximum minimum exclusiveMaximum exclusiveMinimum maxLength minLength \
         pattern format maxItems minItems uniqueItems maxProperties minProperties required",
    ),
    all(Role::Restricts, SubschemaKind::Schemas, "additionalProperties items allOf anyOf oneOf not"),
    all(Role::Restricts, SubschemaKind::Map, "properties patternProperties"),
    some(Role::Restricts, SubschemaKind::Nothing, Draft6, Draft202012, "const"),
    some(Role::Restricts, SubschemaKind::Schemas, Draft6, Draft202012, "propertyNames contains"),
    some(Role::Restricts, SubschemaKind::Schemas, Draft7, Draft202012, "if then else"),
    some(Role::Restricts, SubschemaKind::Map, Draft4, Draft201909, "dependencies"),
    some(Role::Restricts, SubschemaKind::Schemas, Draft4, Draft201909, "additionalItems"),
    some(
        Role::Restricts,
        SubschemaKind::Nothing,
        Draft201909,
        Draft202012,
        "dependentRequired maxContains minContains",
    ),
    some(Role::Restricts, SubschemaKind::Map, Draft201909, Draft202012, "dependentSchemas"),
    some(Role::Restricts, SubschemaKind::Schemas, Draft201909, Draft202012, "unevaluatedProperties unevaluatedItems"),
    some(Role::Restricts, SubschemaKind::Schemas, Draft202012, Draft202012, "prefixItems"),
    // ajv-formats and ajv-keywords
    all(Role::Restricts, SubschemaKind::Nothing, EXTENSIONS),
    all(Role::Restricts, SubschemaKind::Nothing, "transform dynamicDefaults"),
    some(Role::Restricts, SubschemaKind::Nothing, Draft7, Draft202012, "select"),
    some(Role::Restricts, SubschemaKind::Map, Draft7, Draft202012, "deepProperties selectCases"),
    some(Role::Restricts, SubschemaKind::Schemas, Draft7, Draft202012, "selectDefault"),
    // For people
    all(
        Role::Informs,
        SubschemaKind::Nothing,
        "$comment $vocabulary title description default examples readOnly writeOnly deprecated contentMediaType \
         contentEncoding contentSchema",
    ),
    // For OpenAPI, editors and code generators.
    all(
        Role::Informs,
        SubschemaKind::Nothing,
        "example discriminator xml externalDocs errorMessage markdownDescription markdownEnumDescriptions \
         enumDescriptions enumNames deprecationMessage defaultSnippets propertyOrder propertyOrdering tsType \
         tsEnumNames javaType additionalPropertiesName",
    ),
];

/// Returns the keyword called `name`, in any draft.
pub(super) fn keyword(name: &str) -> Option<&'static Keywords> {
    KEYWORDS.iter().find(|keywords| keywords.names.split(' ').any(|known| known == name))
}

/// Returns the keyword in `draft` of which `written` is probably a misspelling.
pub(super) fn nearest_keyword(written: &str, draft: Draft) -> Option<&'static str> {
    let known = KEYWORDS.iter().filter(|keywords| keywords.is_in(draft));
    nearest(written, known.flat_map(|keywords| keywords.names.split(' ')))
}

/// Returns `true` if the first characters of a key mark it as a comment.
pub(super) fn is_remark(key: &str) -> bool {
    key.starts_with('_') || key.starts_with("x-") || key.starts_with("//") || key.starts_with("$comment")
}

impl Keywords {
    pub(super) fn is_in(&self, draft: Draft) -> bool {
        (self.since..=self.until).contains(&draft)
    }
}

/// Names of types.
pub(super) const TYPES: &[&str] = &["string", "number", "integer", "boolean", "object", "array", "null"];

/// Keywords that refer to other schemas.
pub(super) const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];
