//! OpenAI: Chat Completions, or Responses if selected; and the documents of the Assistants API.

use super::Provider;
use crate::remote::Vendor;
use crate::wire::{chat_completions, responses};

static CHAT_COMPLETIONS: Vendor = Vendor {
    name: "openai",
    dialect: &chat_completions::Client { limit: "max_completion_tokens", requests_usage: true },
    variables: &["OPENAI_API_KEY", "OPENAI_BASE_URL"],
    needs_key: true,
    address: Some("https://api.openai.com/v1"),
    ..Vendor::CHAT_COMPLETIONS
};

static NAMED_CHAT: Vendor = Vendor { name: "openai-chat", ..CHAT_COMPLETIONS };

static RESPONSES: Vendor =
    Vendor { name: "openai-responses", dialect: &responses::Client, path: "/responses", ..CHAT_COMPLETIONS };

/// API that stores conversations at the vendor. Requests do not name a model.
pub(super) static ASSISTANTS: Vendor = Vendor { headers: &[("openai-beta", "assistants=v2")], ..CHAT_COMPLETIONS };

pub(super) const PROVIDER: Provider = Provider::new(&CHAT_COMPLETIONS, "OpenAI, Chat Completions API");

pub(super) const BY_RESPONSES: Provider = Provider::new(&RESPONSES, "OpenAI, Responses API");

pub(super) const CHAT: Provider = Provider::new(&NAMED_CHAT, "Alias of `openai`");
