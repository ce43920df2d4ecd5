//! Models opened at a loopback server.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use trialrun_llm::{
    Credentials, Failure, Message, Model, Opened, Policy, Prices, ProviderError, Providers, Reply, Request, Role,
    Timeouts, ToolSpec,
};

/// Key that must never appear in any output.
pub const CANARY: &str = "sk-canary-0123456789-abcdefghij";

/// Names of providers with the paths they request.
pub const ALL: [(&str, &str); 10] = [
    ("openai-responses", "/v1/responses"),
    ("openai", "/v1/chat/completions"),
    ("openai-chat", "/v1/chat/completions"),
    ("anthropic", "/v1/messages"),
    ("google", "/v1beta/models/m1:streamGenerateContent?alt=sse"),
    ("openrouter", "/v1/chat/completions"),
    ("groq", "/v1/chat/completions"),
    ("mistral", "/v1/chat/completions"),
    ("ollama", "/api/chat"),
    ("compatible", "/v1/chat/completions"),
];

/// One provider of each format.
pub const FORMATS: [&str; 5] = ["openai-responses", "openai", "anthropic", "google", "ollama"];

/// Creates a policy with `tries` attempts and no waits.
pub fn policy(tries: u32) -> Policy {
    Policy { tries, first_wait: Duration::ZERO, timeouts: test_timeouts(), ..Policy::default() }
}

/// Timeouts that are long enough for a busy machine and short enough to detect a hang.
fn test_timeouts() -> Timeouts {
    let long = Duration::from_secs(60);
    Timeouts { connect: long, first_byte: long, idle: long, total: long }
}

pub fn credentials() -> Credentials {
    let keys = [
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GOOGLE_API_KEY",
        "OPENROUTER_API_KEY",
        "GROQ_API_KEY",
        "MISTRAL_API_KEY",
        "OLLAMA_API_KEY",
        "COMPATIBLE_API_KEY",
    ];
    keys.iter().fold(Credentials::default(), |all, name| all.with(*name, CANARY))
}

pub fn providers(policy: Policy) -> Providers {
    Providers::new(credentials(), Prices::default(), policy)
}

pub fn open(providers: &Providers, provider: &str, url: &str) -> Arc<dyn Model> {
    match providers.open(&format!("{provider}:m1"), Some(url), &|_| Err(Vec::new())).unwrap() {
        Opened::Model(model) => model,
        Opened::Script(_) => panic!("a script"),
    }
}

/// Creates a model with its own policy.
pub fn model(provider: &str, url: &str, policy: Policy) -> Arc<dyn Model> {
    open(&providers(policy), provider, url)
}

/// Creates a request with a tool.
pub fn asks(text: &str) -> Request {
    Request {
        model: "whatever".into(),
        system: vec!["Be brief.".into()],
        messages: vec![Message::text(Role::User, text)],
        tools: vec![ToolSpec {
            name: "Bash".into(),
            description: Some("Runs.".into()),
            input_schema: json!({"type": "object", "properties": {"command": {"type": "string"}}}),
            ..ToolSpec::default()
        }],
        ..Request::default()
    }
}

pub async fn ask(model: &Arc<dyn Model>) -> Result<Reply, Failure> {
    match tokio::time::timeout(Duration::from_secs(120), model.respond(&asks("Go."))).await.expect("it hangs") {
        Ok(reply) => Ok(reply),
        Err(ProviderError::Failed(failure)) => Err(*failure),
        Err(other) => panic!("{other:?}"),
    }
}
