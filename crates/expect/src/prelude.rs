//! Names that most rules use.

pub(crate) use serde_json::Value;

pub(crate) use crate::found::{Flaw, Found};
pub(crate) use crate::matcher::Matcher;
pub(crate) use crate::quick_score::QuickScore;
pub(crate) use crate::rule::{Rule, Scope};
pub(crate) use crate::source_location::SourceLocation;
pub(crate) use crate::value;
