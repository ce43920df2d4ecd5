//! Expectations that are written as values: a string, a list, a map, a regular expression, a schema, code.

mod all_of;
mod code;
mod items;
mod json_schema;
mod json_text;
mod keys;
mod literal;
mod negated;
mod never;
mod regex;
mod text;

pub use all_of::AllOf;
pub use code::Code;
pub use items::Items;
pub use json_schema::{HostPatterns, JsonSchema};
pub use keys::{ALL_CALLS, CONVERSATION, Key, Keys, NO_CALLS, OWN_CALLS};
pub use literal::Literal;
pub use negated::Negated;
pub use never::Never;
pub use regex::Regex;
pub use text::Text;
