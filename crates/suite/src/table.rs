//! Tables of the fields in files, written in Markdown. The reference, the schemas for editors and the checks of
//! fixtures files are derived from them.

/// Sections of the reference pages, as Markdown.
const FIELDS: &str = include_str!("fields.md");

/// A map with known keys.
pub struct Table {
    /// Name of its section: the name of the file format, followed by the name of the map if it is an inner one.
    pub section: &'static str,
    /// The section as Markdown.
    pub text: &'static str,
    /// Its keys, in order.
    pub fields: Vec<Field>,
}

/// A key and its value.
#[derive(Clone, Copy)]
pub struct Field {
    /// Name as written.
    pub key: &'static str,
    /// Type of the value, such as "list of strings".
    pub value: &'static str,
    /// True if the key is required.
    pub is_required: bool,
    /// Description in Markdown.
    pub about: &'static str,
}

impl Table {
    /// Returns all tables.
    pub fn all() -> impl Iterator<Item = Self> {
        FIELDS.split("\n## ").skip(1).filter_map(Self::parse)
    }

    fn parse(section: &'static str) -> Option<Self> {
        let (section, text) = section.split_once('\n')?;
        let fields = text.lines().filter_map(Field::parse).collect();
        Some(Self { section, text: text.trim(), fields })
    }

    /// Returns the fields of the table in `section`.
    pub fn fields_of(section: &str) -> Vec<Field> {
        Self::all().find(|table| table.section == section).map(|table| table.fields).unwrap_or_default()
    }

    /// Returns the table for the map called `name` in files of the format that `page` describes. Some maps are those
    /// of scenarios.
    pub fn named(page: &str, name: &str) -> Option<Self> {
        let is_named = |table: &Self, page: &str| table.section.split_once(' ') == Some((page, name));
        Self::all()
            .find(|table| is_named(table, page))
            .or_else(|| Self::all().find(|table| is_named(table, "scenario")))
    }

    /// Returns the description above the table.
    pub fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default()
    }
}

impl Field {
    /// Parses a row of a table.
    fn parse(row: &'static str) -> Option<Self> {
        let (key, rest) = row.strip_prefix("| `")?.split_once("` | ")?;
        let (value, about) = rest.strip_suffix(" |")?.split_once(" | ")?;
        let required = value.strip_suffix(" (required)");
        Some(Self { key, value: required.unwrap_or(value), is_required: required.is_some(), about })
    }
}
