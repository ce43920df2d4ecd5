//! OpenAI: Responses, or Chat Completions where that is asked for; and the documents of the Assistants API.

use crate::Provider;
use crate::remote::{Key, Sign, Vendor};
use crate::wire::{chat_completions, responses};

const KEY: &str = "OPENAI_API_KEY";
const ADDRESS: &str = "OPENAI_BASE_URL";

static RESPONSES: Vendor = Vendor {
    name: "openai",
    dialect: &responses::Asking,
    keys: &[Key { variable: KEY, sign: Sign::Bearer }],
    needs_key: true,
    address: Some("https://api.openai.com/v1"),
    address_variable: ADDRESS,
    version: "/v1",
    is_version_given: true,
    path: "/responses",
    headers: &[],
};

static CHAT_COMPLETIONS: Vendor = Vendor {
    name: "openai-chat",
    dialect: &chat_completions::Asking { limit: "max_completion_tokens" },
    path: "/chat/completions",
    ..RESPONSES
};

/// What keeps conversations at the vendor's; no model is named to it.
pub(crate) static ASSISTANTS: Vendor = Vendor { path: "", headers: &[("openai-beta", "assistants=v2")], ..RESPONSES };

pub(crate) const PROVIDER: Provider = Provider {
    name: "openai",
    argument: "MODEL",
    summary: "OpenAI, by its Responses API",
    variables: &[KEY, ADDRESS],
    open: |opening| RESPONSES.open(opening),
};

pub(crate) const CHAT: Provider = Provider {
    name: "openai-chat",
    argument: "MODEL",
    summary: "OpenAI, by its Chat Completions API",
    variables: &[KEY, ADDRESS],
    open: |opening| CHAT_COMPLETIONS.open(opening),
};
