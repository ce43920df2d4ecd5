//! OpenAI: Chat Completions, or Responses if selected; and the documents of the Assistants API.

use super::Provider;
use crate::remote::{Key, Sign, Vendor};
use crate::wire::{chat_completions, responses};

const KEY: &str = "OPENAI_API_KEY";
const ADDRESS: &str = "OPENAI_BASE_URL";

static CHAT_COMPLETIONS: Vendor = Vendor {
    name: "openai",
    dialect: &chat_completions::Client { limit: "max_completion_tokens" },
    keys: &[Key { variable: KEY, sign: Sign::Bearer }],
    needs_key: true,
    address: Some("https://api.openai.com/v1"),
    address_variable: ADDRESS,
    ..Vendor::CHAT_COMPLETIONS
};

static NAMED_CHAT: Vendor = Vendor { name: "openai-chat", ..CHAT_COMPLETIONS };

static RESPONSES: Vendor =
    Vendor { name: "openai-responses", dialect: &responses::Client, path: "/responses", ..CHAT_COMPLETIONS };

/// API that stores conversations at the vendor; requests do not name a model.
pub(super) static ASSISTANTS: Vendor =
    Vendor { path: "", headers: &[("openai-beta", "assistants=v2")], ..CHAT_COMPLETIONS };

pub(super) const PROVIDER: Provider = Provider {
    name: "openai",
    argument: "MODEL",
    summary: "OpenAI, Chat Completions API",
    variables: &[KEY, ADDRESS],
    open: |opening| CHAT_COMPLETIONS.open(opening),
};

pub(super) const BY_RESPONSES: Provider = Provider {
    name: "openai-responses",
    summary: "OpenAI, Responses API",
    open: |opening| RESPONSES.open(opening),
    ..PROVIDER
};

pub(super) const CHAT: Provider = Provider {
    name: "openai-chat",
    summary: "Alias of `openai`",
    open: |opening| NAMED_CHAT.open(opening),
    ..PROVIDER
};
