//! Any server that supports Chat Completions, at its own address.

use super::Provider;
use crate::remote::Vendor;

// There is a separate variable for the key, so that a vendor's key is never sent to another vendor's address.
static CHAT: Vendor = Vendor { variables: &["COMPATIBLE_API_KEY", "COMPATIBLE_BASE_URL"], ..Vendor::CHAT_COMPLETIONS };

pub(super) const PROVIDER: Provider = Provider::new(&CHAT, "Any server with the Chat Completions API, at `base_url`");
