//! Names that most assertions use.

pub(super) use std::sync::Arc;

pub(super) use expect::SourceLocation;
pub(super) use model::{Evidence, Need};
pub(super) use serde_json::json;

pub(super) use super::{Assertion, Field, Parameter, Reported, TITLE};
pub(super) use crate::example::{EvidenceBuilder, nothing_written};
pub(super) use crate::format;
pub(super) use crate::matcher::{Judgement, Matcher};
pub(super) use crate::reading::Reading;
pub(super) use crate::verdict::Verdict;
