//! Anthropic: Messages API.

use super::Provider;
use crate::remote::{Key, Sign, Vendor};
use crate::wire::anthropic::Client;

const KEY: &str = "ANTHROPIC_API_KEY";
const TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";
const ADDRESS: &str = "ANTHROPIC_BASE_URL";

static MESSAGES: Vendor = Vendor {
    name: "anthropic",
    dialect: &Client,
    keys: &[Key { variable: KEY, sign: Sign::Header("x-api-key") }, Key { variable: TOKEN, sign: Sign::Bearer }],
    needs_key: true,
    address: Some("https://api.anthropic.com"),
    address_variable: ADDRESS,
    is_version_given: false,
    path: "/messages",
    headers: &[("anthropic-version", "2023-06-01")],
    ..Vendor::CHAT_COMPLETIONS
};

pub(super) const PROVIDER: Provider = Provider {
    name: "anthropic",
    argument: "MODEL",
    summary: "Anthropic, Messages API",
    variables: &[KEY, TOKEN, ADDRESS],
    open: |opening| MESSAGES.open(opening),
};
