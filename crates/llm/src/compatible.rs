//! Any server that supports Chat Completions at an address of its own.

use crate::Provider;
use crate::remote::{Key, Sign, Vendor};
use crate::wire::chat_completions::Asking;

const KEY: &str = "COMPATIBLE_API_KEY";
const ADDRESS: &str = "COMPATIBLE_BASE_URL";

// The key has a variable of its own, so that a vendor's key is never sent to another vendor's address.
static CHAT: Vendor = Vendor {
    name: "compatible",
    dialect: &Asking { limit: "max_tokens" },
    keys: &[Key { variable: KEY, sign: Sign::Bearer }],
    needs_key: false,
    address: None,
    address_variable: ADDRESS,
    version: "/v1",
    is_version_given: true,
    path: "/chat/completions",
    headers: &[],
};

pub(crate) const PROVIDER: Provider = Provider {
    name: "compatible",
    argument: "MODEL",
    summary: "Any server with the Chat Completions API, at `base_url`",
    variables: &[KEY, ADDRESS],
    open: |opening| CHAT.open(opening),
};
