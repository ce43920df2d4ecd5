//! The `{{ }}` template dialect of fixtures files.
//!
//! A text is a template if it holds `{{ … }}` or `{% … %}`. It is resolved with [`Variables`], whose values may be
//! templates themselves. A placeholder that is all there is and names a value becomes that value, whatever it is;
//! everything else becomes text. What is unknown or makes no sense is an error and never silently nothing.

mod access;
mod ambient;
mod block;
mod budget;
mod call;
mod case;
mod code;
mod date;
mod error;
mod evaluate;
mod filter;
mod format;
mod function;
mod lexer;
mod limit;
mod method;
mod names;
mod number;
mod operation;
mod operator;
mod parser;
mod path;
mod predicate;
mod reference;
mod regex_literal;
mod repetition;
mod resolution;
mod resolve;
mod segment;
mod syntax;
mod template;
mod value;
mod variables;

pub use ambient::Ambient;
pub use code::warn_of_code;
pub use error::TemplateError;
pub use format::Format;
pub use operation::Entry;
pub use reference::{Chapter, reference};
pub use resolve::{resolve, resolve_as};
pub use template::Template;
pub use variables::Variables;

#[cfg(test)]
mod tests;
