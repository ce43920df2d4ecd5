//! OpenRouter: models of many vendors at one address, through Chat Completions.

mod list;

pub use self::list::{ListPrices, slug_candidates};

use crate::Provider;
use crate::remote::{Key, Sign, Vendor};
use crate::wire::chat_completions::Asking;

const KEY: &str = "OPENROUTER_API_KEY";
const ADDRESS: &str = "OPENROUTER_BASE_URL";
const HOME: &str = "https://openrouter.ai/api/v1";

static CHAT: Vendor = Vendor {
    name: "openrouter",
    dialect: &Asking { limit: "max_tokens" },
    keys: &[Key { variable: KEY, sign: Sign::Bearer }],
    needs_key: true,
    address: Some(HOME),
    address_variable: ADDRESS,
    version: "/v1",
    is_version_given: true,
    path: "/chat/completions",
    headers: &[],
};

pub(crate) const PROVIDER: Provider = Provider {
    name: "openrouter",
    argument: "VENDOR/MODEL",
    summary: "OpenRouter, Chat Completions API",
    variables: &[KEY, ADDRESS],
    open: |opening| CHAT.open(opening),
};
