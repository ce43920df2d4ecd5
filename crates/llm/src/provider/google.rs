//! Google: Gemini API.

use super::Provider;
use crate::remote::Vendor;
use crate::wire::gemini::Client;

static GENERATE_CONTENT: Vendor = Vendor {
    name: "google",
    dialect: &Client,
    variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"],
    key_header: Some("x-goog-api-key"),
    needs_key: true,
    address: Some("https://generativelanguage.googleapis.com"),
    version: "/v1beta",
    is_version_given: false,
    path: "/models",
    ..Vendor::CHAT_COMPLETIONS
};

pub(super) const PROVIDER: Provider = Provider::new(&GENERATE_CONTENT, "Google, Gemini API");
