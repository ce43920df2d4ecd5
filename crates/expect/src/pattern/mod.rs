//! Expectations that are values: a text, a list, a map, a regular expression, a schema, code.

mod all;
mod code;
mod fields;
mod items;
mod json_schema;
mod literal;
mod never;
mod regex;
mod text;

pub use all::All;
pub use code::Code;
pub use fields::Fields;
pub use items::Items;
pub use json_schema::{HostPatterns, JsonSchema};
pub use literal::Literal;
pub use never::Never;
pub use regex::Regex;
pub use text::Text;
