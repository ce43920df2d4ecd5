//! Anthropic: Messages API.

use super::Provider;
use crate::remote::Vendor;
use crate::wire::anthropic::Client;

static MESSAGES: Vendor = Vendor {
    name: "anthropic",
    dialect: &Client,
    variables: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"],
    key_header: Some("x-api-key"),
    bearer: Some("ANTHROPIC_AUTH_TOKEN"),
    needs_key: true,
    address: Some("https://api.anthropic.com"),
    is_version_given: false,
    path: "/messages",
    headers: &[("anthropic-version", "2023-06-01")],
    ..Vendor::CHAT_COMPLETIONS
};

pub(super) const PROVIDER: Provider = Provider::new(&MESSAGES, "Anthropic, Messages API");
