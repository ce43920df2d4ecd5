//! Vendors that host models behind the Chat Completions API. The addresses and the names of the keys are those in the
//! vendors' documentation.

use super::Provider;
use crate::remote::Vendor;
use crate::wire::chat_completions::Client;

/// Creates a vendor. `variables` are the one for the key and the one for the address.
const fn hosted(name: &'static str, variables: &'static [&'static str; 2], address: &'static str) -> Vendor {
    Vendor { name, variables, needs_key: true, address: Some(address), ..Vendor::CHAT_COMPLETIONS }
}

static GROQ: Vendor = hosted("groq", &["GROQ_API_KEY", "GROQ_BASE_URL"], "https://api.groq.com/openai/v1");

static MISTRAL: Vendor = Vendor {
    // It reports the usage of a stream in any case, and rejects requests that ask for it.
    dialect: &Client { limit: "max_tokens", requests_usage: false },
    ..hosted("mistral", &["MISTRAL_API_KEY", "MISTRAL_BASE_URL"], "https://api.mistral.ai/v1")
};

static DEEPSEEK: Vendor = hosted("deepseek", &["DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL"], "https://api.deepseek.com/v1");

static TOGETHER: Vendor =
    hosted("togetherai", &["TOGETHER_API_KEY", "TOGETHER_BASE_URL"], "https://api.together.ai/v1");

static XAI: Vendor = hosted("xai", &["XAI_API_KEY", "XAI_BASE_URL"], "https://api.x.ai/v1");

static FIREWORKS: Vendor =
    hosted("fireworks", &["FIREWORKS_API_KEY", "FIREWORKS_BASE_URL"], "https://api.fireworks.ai/inference/v1");

static CEREBRAS: Vendor = hosted("cerebras", &["CEREBRAS_API_KEY", "CEREBRAS_BASE_URL"], "https://api.cerebras.ai/v1");

pub(super) const BY_GROQ: Provider = Provider::new(&GROQ, "Groq, Chat Completions API");

pub(super) const BY_MISTRAL: Provider = Provider::new(&MISTRAL, "Mistral AI, Chat Completions API");

pub(super) const BY_DEEPSEEK: Provider = Provider::new(&DEEPSEEK, "DeepSeek, Chat Completions API");

pub(super) const BY_TOGETHER: Provider = Provider::new(&TOGETHER, "Together AI, Chat Completions API");

pub(super) const BY_XAI: Provider = Provider::new(&XAI, "xAI, Chat Completions API");

pub(super) const BY_FIREWORKS: Provider = Provider::new(&FIREWORKS, "Fireworks AI, Chat Completions API");

pub(super) const BY_CEREBRAS: Provider = Provider::new(&CEREBRAS, "Cerebras, Chat Completions API");
