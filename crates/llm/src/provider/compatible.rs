//! Any server that supports Chat Completions, at its own address.

use super::Provider;
use crate::remote::{Key, Sign, Vendor};

const KEY: &str = "COMPATIBLE_API_KEY";
const ADDRESS: &str = "COMPATIBLE_BASE_URL";

// The key has its own variable, so that a vendor's key is never sent to another vendor's address.
static CHAT: Vendor = Vendor {
    keys: &[Key { variable: KEY, sign: Sign::Bearer }],
    address_variable: ADDRESS,
    ..Vendor::CHAT_COMPLETIONS
};

pub(super) const PROVIDER: Provider = Provider {
    name: "compatible",
    argument: "MODEL",
    summary: "Any server with the Chat Completions API, at `base_url`",
    variables: &[KEY, ADDRESS],
    open: |opening| CHAT.open(opening),
};
