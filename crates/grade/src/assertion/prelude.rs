//! Names that most assertions use.

pub(super) use std::sync::Arc;

pub(super) use expect::Place;
pub(super) use model::{Evidence, Need};
pub(super) use serde_json::json;

pub(super) use super::{Assertion, Field, Form, Parameter, TITLE};
pub(super) use crate::example::{Example, Story};
pub(super) use crate::matcher::{Judgement, Matcher};
pub(super) use crate::reading::Reading;
pub(super) use crate::verdict::Verdict;
pub(super) use crate::words;
