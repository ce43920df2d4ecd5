//! Assertions that a hosted model decides without a conversation: its API returns vectors or categories for a text.

use std::fmt::Debug;

use model::Evidence;
use serde_json::Value;

use crate::verdict::Verdict;

/// Request to a model's API.
#[derive(Debug)]
pub(crate) struct HostedRequest {
    /// Model as `PROVIDER:MODEL`.
    pub(crate) model: String,
    /// Path below the provider's address.
    pub(crate) path: &'static str,
    /// Texts that are sent as `input`.
    pub(crate) input: Vec<String>,
}

/// Assertion that such a model decides.
pub(crate) trait Hosted: Debug + Send + Sync {
    /// Returns the request about `evidence`.
    ///
    /// # Errors
    /// Returns the reason if the evidence cannot be judged.
    fn request(&self, evidence: &Evidence) -> Result<HostedRequest, String>;

    /// Returns the verdict from the response.
    fn decide(&self, response: &Value, evidence: &Evidence) -> Verdict;
}
