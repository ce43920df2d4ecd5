//! Vocabulary of JSON Schema: its dialects, their keywords, and the type of each keyword.

use model::nearest;
use serde_json::Value;

/// Version of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dialect {
    Draft4,
    Draft6,
    Draft7,
    Draft2019,
    Draft2020,
}

use Dialect::{Draft4, Draft6, Draft7, Draft2019, Draft2020};

/// Dialects with their common names, and their addresses without scheme and fragment.
const DIALECTS: &[(Dialect, &str, &str)] = &[
    (Draft4, "draft-04", "json-schema.org/draft-04/schema"),
    (Draft6, "draft-06", "json-schema.org/draft-06/schema"),
    (Draft7, "draft-07", "json-schema.org/draft-07/schema"),
    (Draft2019, "draft 2019-09", "json-schema.org/draft/2019-09/schema"),
    (Draft2020, "draft 2020-12", "json-schema.org/draft/2020-12/schema"),
];

impl Dialect {
    /// Returns the dialect of `address`. `http` and `https`, with and without `#`, are equivalent.
    pub(super) fn of(address: &str) -> Option<Self> {
        let bare = address.trim_end_matches('#');
        let bare = bare.strip_prefix("https://").or_else(|| bare.strip_prefix("http://"))?;
        DIALECTS.iter().find(|(_, _, known)| *known == bare).map(|(dialect, _, _)| *dialect)
    }

    pub(super) fn name(self) -> &'static str {
        DIALECTS.iter().find(|(dialect, _, _)| *dialect == self).map_or("", |(_, name, _)| name)
    }

    /// Returns the address as written in `$schema`.
    pub(super) fn address(self) -> String {
        let bare = DIALECTS.iter().find(|(dialect, _, _)| *dialect == self).map_or("", |(_, _, bare)| bare);
        if self <= Draft7 { format!("http://{bare}#") } else { format!("https://{bare}") }
    }

    /// True if `value` is a schema of this dialect.
    pub(super) fn is_schema(self, value: &Value) -> bool {
        match self {
            Self::Draft4 => jsonschema::draft4::meta::is_valid(value),
            Self::Draft6 => jsonschema::draft6::meta::is_valid(value),
            Self::Draft7 => jsonschema::draft7::meta::is_valid(value),
            Self::Draft2019 => jsonschema::draft201909::meta::is_valid(value),
            Self::Draft2020 => jsonschema::draft202012::meta::is_valid(value),
        }
    }

    /// Returns all addresses, for messages.
    pub(super) fn addresses() -> impl Iterator<Item = String> {
        DIALECTS.iter().map(|(dialect, _, _)| dialect.address())
    }
}

/// Schemas in the value of a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Under {
    /// None.
    Nothing,
    /// One schema.
    Schema,
    /// One schema, or a list of them.
    SchemaOrList,
    /// A list of schemas.
    List,
    /// A map of names to schemas.
    Map,
    /// A map of names to schemas or lists of names.
    MapOrNames,
}

/// Purpose of a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Makes a requirement on the value.
    Says,
    /// Names, references or stores a schema.
    Names,
    /// Annotation for people, without meaning for a validator.
    Tells,
}

/// Keyword, and the dialects that have it.
#[derive(Clone, Copy)]
pub(super) struct Keyword {
    pub(super) name: &'static str,
    pub(super) since: Dialect,
    pub(super) until: Dialect,
    pub(super) under: Under,
    pub(super) role: Role,
}

const fn says(name: &'static str) -> Keyword {
    Keyword { name, since: Draft4, until: Draft2020, under: Under::Nothing, role: Role::Says }
}

const fn applies(name: &'static str, under: Under) -> Keyword {
    Keyword { under, ..says(name) }
}

const fn names(name: &'static str, since: Dialect, until: Dialect) -> Keyword {
    Keyword { since, until, role: Role::Names, ..says(name) }
}

const fn keeps(name: &'static str) -> Keyword {
    Keyword { under: Under::Map, role: Role::Names, ..says(name) }
}

const fn tells(name: &'static str) -> Keyword {
    Keyword { role: Role::Tells, ..says(name) }
}

const fn from(since: Dialect, keyword: Keyword) -> Keyword {
    Keyword { since, ..keyword }
}

const fn up_to(until: Dialect, keyword: Keyword) -> Keyword {
    Keyword { until, ..keyword }
}

/// All keywords: those of the standard, of ajv-formats, ajv-keywords and OpenAPI, and those that editors and code
/// generators add to schemas.
pub(super) const KEYWORDS: &[Keyword] = &[
    names("$schema", Draft4, Draft2020),
    names("$id", Draft6, Draft2020),
    names("id", Draft4, Draft4),
    names("$anchor", Draft4, Draft2020),
    names("$ref", Draft4, Draft2020),
    names("$recursiveRef", Draft2019, Draft2019),
    names("$recursiveAnchor", Draft2019, Draft2019),
    names("$dynamicRef", Draft2020, Draft2020),
    names("$dynamicAnchor", Draft2020, Draft2020),
    keeps("definitions"),
    keeps("$defs"),
    says("type"),
    says("nullable"),
    says("enum"),
    from(Draft6, says("const")),
    says("multipleOf"),
    says("maximum"),
    says("minimum"),
    says("exclusiveMaximum"),
    says("exclusiveMinimum"),
    says("maxLength"),
    says("minLength"),
    says("pattern"),
    says("format"),
    says("maxItems"),
    says("minItems"),
    says("uniqueItems"),
    says("maxProperties"),
    says("minProperties"),
    says("required"),
    from(Draft2019, says("dependentRequired")),
    from(Draft2019, says("maxContains")),
    from(Draft2019, says("minContains")),
    applies("properties", Under::Map),
    applies("patternProperties", Under::Map),
    applies("additionalProperties", Under::Schema),
    from(Draft6, applies("propertyNames", Under::Schema)),
    up_to(Draft2019, applies("dependencies", Under::MapOrNames)),
    from(Draft2019, applies("dependentSchemas", Under::Map)),
    from(Draft2019, applies("unevaluatedProperties", Under::Schema)),
    from(Draft2019, applies("unevaluatedItems", Under::Schema)),
    from(Draft2020, applies("prefixItems", Under::List)),
    applies("items", Under::SchemaOrList),
    up_to(Draft2019, applies("additionalItems", Under::Schema)),
    from(Draft6, applies("contains", Under::Schema)),
    applies("allOf", Under::List),
    applies("anyOf", Under::List),
    applies("oneOf", Under::List),
    applies("not", Under::Schema),
    from(Draft7, applies("if", Under::Schema)),
    from(Draft7, applies("then", Under::Schema)),
    from(Draft7, applies("else", Under::Schema)),
    // ajv-formats
    says("formatMinimum"),
    says("formatMaximum"),
    says("formatExclusiveMinimum"),
    says("formatExclusiveMaximum"),
    // ajv-keywords
    says("range"),
    says("exclusiveRange"),
    says("regexp"),
    says("transform"),
    says("uniqueItemProperties"),
    says("allRequired"),
    says("anyRequired"),
    says("oneRequired"),
    says("patternRequired"),
    says("prohibited"),
    applies("deepProperties", Under::Map),
    says("deepRequired"),
    says("dynamicDefaults"),
    says("select"),
    applies("selectCases", Under::Map),
    applies("selectDefault", Under::Schema),
    says("typeof"),
    says("instanceof"),
    // Annotations.
    tells("$comment"),
    tells("$vocabulary"),
    tells("title"),
    tells("description"),
    tells("default"),
    tells("examples"),
    tells("readOnly"),
    tells("writeOnly"),
    tells("deprecated"),
    tells("contentMediaType"),
    tells("contentEncoding"),
    tells("contentSchema"),
    // Keywords of OpenAPI, editors and code generators.
    tells("example"),
    tells("discriminator"),
    tells("xml"),
    tells("externalDocs"),
    tells("errorMessage"),
    tells("markdownDescription"),
    tells("markdownEnumDescriptions"),
    tells("enumDescriptions"),
    tells("enumNames"),
    tells("deprecationMessage"),
    tells("defaultSnippets"),
    tells("propertyOrder"),
    tells("propertyOrdering"),
    tells("tsType"),
    tells("tsEnumNames"),
    tells("javaType"),
    tells("additionalPropertiesName"),
];

/// Returns the keyword called `name`, in any dialect.
pub(super) fn keyword(name: &str) -> Option<&'static Keyword> {
    KEYWORDS.iter().find(|keyword| keyword.name == name)
}

/// Returns the keyword of `dialect` that is most similar to `written`.
pub(super) fn nearest_keyword(written: &str, dialect: Dialect) -> Option<&'static str> {
    nearest(written, KEYWORDS.iter().filter(|keyword| keyword.in_dialect(dialect)).map(|keyword| keyword.name))
}

/// True if the prefix of a key marks it as a private remark.
pub(super) fn is_remark(key: &str) -> bool {
    key.starts_with('_') || key.starts_with("x-") || key.starts_with("//") || key.starts_with("$comment")
}

impl Keyword {
    pub(super) fn in_dialect(&self, dialect: Dialect) -> bool {
        (self.since..=self.until).contains(&dialect)
    }
}

/// Names of types.
pub(super) const TYPES: &[&str] = &["string", "number", "integer", "boolean", "object", "array", "null"];
