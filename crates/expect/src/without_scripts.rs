//! Host for programs without a script engine.

use std::path::Path;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use crate::host::{Answer, Argument, Function, Host, Invalid, Pattern, Trouble};

/// Reason why code cannot be used.
const NO_SCRIPTS: &str = "this program does not run scripts";

/// Host without a script engine. Regular expressions have the syntax of the `regex` crate, and the flags are `i`, `m`
/// and `s`. Expressions and functions are errors.
#[derive(Debug, Clone, Copy, Default)]
pub struct WithoutScripts;

impl Pattern for Regex {
    fn is_match(&self, text: &str) -> Result<bool, String> {
        Ok(Self::is_match(self, text))
    }
}

impl Host for WithoutScripts {
    fn regex(&self, source: &str, flags: &str) -> Result<Arc<dyn Pattern>, Invalid> {
        let has = |flag: char| flags.contains(flag);
        let mut builder = RegexBuilder::new(source);
        builder.case_insensitive(has('i')).multi_line(has('m')).dot_matches_new_line(has('s'));
        match builder.build() {
            Ok(regex) => Ok(Arc::new(regex)),
            Err(error) => Err(Invalid { message: error.to_string(), range: None, help: None }),
        }
    }

    fn expression(&self, _: &str, _: &[&str]) -> Result<(), Invalid> {
        Err(Invalid { message: NO_SCRIPTS.to_owned(), range: None, help: None })
    }

    fn evaluate(&self, _: &str, _: &[(&str, Option<&Value>)]) -> Result<Option<Value>, Trouble> {
        Err(Trouble::Stopped(NO_SCRIPTS.to_owned()))
    }

    fn function(&self, _: &str, _: &str, _: &Path) -> Result<Function, Invalid> {
        Err(Invalid { message: NO_SCRIPTS.to_owned(), range: None, help: None })
    }

    fn call(&self, _: &Function, _: &[Argument<'_>], _: &mut Answer<'_>) -> Result<Option<Value>, Trouble> {
        Err(Trouble::Stopped(NO_SCRIPTS.to_owned()))
    }
}
