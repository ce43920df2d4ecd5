//! The `{{ }}` template dialect of fixtures files.
//!
//! A string is a template if it contains `{{ … }}` or `{% … %}`. It is resolved with [`Variables`], whose values may
//! themselves be templates. A string that consists of a single placeholder that names a value becomes that value,
//! whatever its type. Every other template becomes text. An unknown name or an invalid operation is an error and never
//! becomes an empty string.
//!
//! ```
//! use model::{Node, Source};
//! use serde_json::json;
//! use trialrun_template::{Template, Variables};
//!
//! let user = Node::from_json(&json!({"name": "Ann"}), &Source::new("variables", ""));
//! let variables = Variables::new().with("user", user);
//! let template = Template::parse("Hello {{ user.name | upper }}!")?.expect("it has a placeholder");
//! assert_eq!(template.render(&variables)?, "Hello ANN!");
//! # Ok::<(), trialrun_template::TemplateError>(())
//! ```

mod access;
mod ambient;
mod block;
mod budget;
mod code;
mod date;
mod error;
mod filter;
mod format;
mod function;
mod lexer;
mod limit;
mod method;
mod names;
mod number;
mod nunjucks;
mod operation;
mod operator;
mod parser;
mod path;
mod predicate;
mod regex_literal;
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
pub use resolution::may_be_template;
pub use resolve::{render_nunjucks, resolve, resolve_as};
pub use template::Template;
pub use variables::Variables;

#[cfg(test)]
mod tests;
