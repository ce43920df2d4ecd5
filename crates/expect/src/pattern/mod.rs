//! Expectations that are written as values: a text, a list, a map, a regular expression, a schema, code.

mod code;
mod denied;
mod items;
mod json_schema;
mod json_text;
mod keys;
mod literal;
mod never;
mod regex;
mod text;
mod together;

pub use code::Code;
pub use denied::Denied;
pub use items::Items;
pub use json_schema::{HostPatterns, JsonSchema};
pub use keys::{ALL_CALLS, CONVERSATION, Key, Keys, NO_CALLS, OWN_CALLS};
pub use literal::Literal;
pub use never::Never;
pub use regex::Regex;
pub use text::Text;
pub use together::Together;
