//! The table of all providers.

mod anthropic;
mod compatible;
mod google;
mod hosted;
mod ollama;
mod openai;
mod openrouter;
mod scripted;

use std::sync::Arc;

use model::{Tokens, nearest};
use reqwest::Url;

use crate::credentials::NETWORK;
use crate::opening::ProviderOptions;
use crate::remote::Vendor;
use crate::{Credentials, Documents, Model, OpenError, Opened, Providers, ReadDocument};

/// A provider, which users specify as `NAME:ARGUMENT`.
pub struct Provider {
    /// Name before the colon.
    pub name: &'static str,
    /// Placeholder for the argument, for help text.
    pub argument: &'static str,
    /// Description in one line.
    pub summary: &'static str,
    /// Names of the variables that it reads from the [`Credentials`](crate::Credentials): those for keys, followed by
    /// the one for an address.
    pub variables: &'static [&'static str],
    /// Vendor on the network; `None` if the responses come from a script.
    vendor: Option<&'static Vendor>,
}

impl Provider {
    /// Creates the provider for a vendor's models.
    const fn new(vendor: &'static Vendor, summary: &'static str) -> Self {
        Self { name: vendor.name, argument: "MODEL", summary, variables: vendor.variables, vendor: Some(vendor) }
    }

    /// Returns the variables for a key; empty if the provider takes no key.
    pub fn keys(&self) -> &'static [&'static str] {
        self.variables.split_last().map_or(&[], |(_, keys)| keys)
    }
}

/// All providers, in the order in which users see them.
pub static PROVIDERS: &[Provider] = &[
    openai::PROVIDER,
    openai::BY_RESPONSES,
    openai::CHAT,
    anthropic::PROVIDER,
    google::PROVIDER,
    openrouter::PROVIDER,
    hosted::BY_GROQ,
    hosted::BY_MISTRAL,
    hosted::BY_DEEPSEEK,
    hosted::BY_TOGETHER,
    hosted::BY_XAI,
    hosted::BY_FIREWORKS,
    hosted::BY_CEREBRAS,
    ollama::PROVIDER,
    compatible::PROVIDER,
    scripted::PROVIDER,
];

/// Returns the provider that `written` names, and the argument. `None` for a plain model name, even if it contains a
/// colon, because only the agent interprets it.
pub fn provider_of(written: &str) -> Option<(&'static Provider, &str)> {
    let (name, argument) = written.split_once(':')?;
    let provider = PROVIDERS.iter().find(|provider| provider.name == name)?;
    Some((provider, argument))
}

/// Returns the provider for `NAME:ARGUMENT`, such as `openai:gpt-5`, and the argument.
fn named(written: &str) -> Result<(&'static Provider, &str), OpenError> {
    let (name, argument) = written.split_once(':').unwrap_or((written, ""));
    let Some(provider) = PROVIDERS.iter().find(|provider| provider.name == name) else {
        let names = || PROVIDERS.iter().map(|provider| provider.name);
        return Err(OpenError::UnknownProvider {
            written: name.to_owned(),
            known: names().collect::<Vec<_>>().join(", "),
            near: nearest(name, names()).map(str::to_owned).or_else(|| with_provider(written)),
        });
    };
    if argument.trim().is_empty() {
        return Err(OpenError::NoArgument { provider: provider.name, argument: provider.argument });
    }
    let bare = argument.trim();
    let bare = bare.strip_prefix(&format!("{name}:")).map_or(bare, str::trim);
    // A script may have any name.
    if provider.vendor.is_some() && bare.len() < argument.len() {
        let right = format!("{name}:{bare}");
        return Err(OpenError::NotAName { provider: provider.name, argument: argument.to_owned(), right });
    }
    Ok((provider, argument))
}

/// Beginnings of the names of models, each with the provider that offers them.
const FAMILIES: [(&str, &str); 9] = [
    ("claude", "anthropic"),
    ("gemini", "google"),
    ("gpt", "openai"),
    ("chatgpt", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("text-embedding", "openai"),
    ("grok", "xai"),
];

/// Beginnings of the names of models that run on the user's machine. Other services host models of the same families.
const LOCAL: [&str; 5] = ["gemma", "gpt-oss", "llama", "mistral", "qwen"];

/// Returns the model `written` with the provider that it probably has; `None` if its name does not tell.
fn with_provider(written: &str) -> Option<String> {
    let name = written.to_ascii_lowercase();
    let family = || FAMILIES.iter().find(|(family, _)| name.starts_with(family)).map(|(_, provider)| *provider);
    let provider = match LOCAL.iter().find_map(|family| name.strip_prefix(family)) {
        // OpenRouter's names contain that of the vendor: `anthropic/claude-sonnet-4`.
        _ if name.contains('/') => Some("openrouter"),
        Some(rest) => is_ollamas(rest).then_some("ollama"),
        None => family(),
    };
    Some(format!("{}:{written}", provider?))
}

/// Returns `true` if a model of a family is called as Ollama calls it: `llama3.2`, `mistral:7b`, `qwen2.5-coder`. Hosted
/// ones are called `llama-3.3-70b-versatile`, `mistral-large-latest`, `qwen3-max`. `rest` follows the name of the family.
fn is_ollamas(rest: &str) -> bool {
    const HOSTED: [&str; 6] = ["-latest", "-max", "-plus", "-turbo", "-flash", "-versatile"];
    let has_version = rest.is_empty() || rest.starts_with(|first: char| first.is_ascii_digit());
    rest.contains(':') || (has_version && !HOSTED.iter().any(|end| rest.contains(end)))
}

impl Credentials {
    /// Takes from `env` only the variables that a provider or the network uses; empty ones count as unset.
    pub fn of<'a>(env: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        let is_used = |name: &str| NETWORK.contains(&name) || PROVIDERS.iter().any(|one| one.variables.contains(&name));
        let used = env.into_iter().filter(|(name, value)| is_used(name) && !value.trim().is_empty());
        used.fold(Self::default(), |all, (name, value)| all.with(name, value))
    }
}

impl Providers {
    /// Opens OpenAI's Assistants API, or that of a compatible server at `base_url`. Nothing is sent yet.
    ///
    /// # Errors
    /// Returns an error if a key or an address is missing or wrong.
    pub fn assistants(&self, base_url: Option<&str>) -> Result<Documents, OpenError> {
        let read = &|_: &str| Err(Vec::new());
        openai::ASSISTANTS.documents(&ProviderOptions { argument: "", base_url, providers: self, read })
    }

    /// Opens the API of the provider in `NAME:MODEL` for requests that are not conversations, such as those for embeddings.
    /// Also returns the model. Nothing is sent yet.
    ///
    /// # Errors
    /// Returns an error if the name is unknown, the provider is not on the network, or a key or an address is missing or
    /// wrong.
    pub fn documents<'w>(&self, written: &'w str) -> Result<(Documents, &'w str), OpenError> {
        let (provider, argument) = named(written)?;
        let read = &|_: &str| Err(Vec::new());
        let options = ProviderOptions { argument, base_url: None, providers: self, read };
        let vendor = provider.vendor.ok_or(OpenError::NoRequests { provider: provider.name })?;
        Ok((vendor.documents(&options)?, argument))
    }

    /// Opens `NAME:ARGUMENT`, such as `openai:gpt-5` or `scripted:hello.yaml`; `read` reads the file that it names.
    /// `base_url` replaces the vendor's own address. Nothing is sent yet.
    ///
    /// # Errors
    /// Returns an error if the name is unknown, a key or an address is missing, or a file has problems.
    pub fn open(&self, written: &str, base_url: Option<&str>, read: ReadDocument<'_>) -> Result<Opened, OpenError> {
        let (provider, argument) = named(written)?;
        let options = ProviderOptions { argument, base_url, providers: self, read };
        provider.vendor.map_or_else(|| scripted::open(&options), |vendor| vendor.open(&options))
    }

    /// Returns the cost of `tokens` of `model` at the address `url`, if a price is known: the one that the user set, or
    /// the vendor's price if the address is the vendor's own.
    pub fn cost_at(&self, url: &Url, model: &str, tokens: &Tokens) -> Option<f64> {
        let is_at = |provider: &&Provider| {
            let own = provider.vendor.and_then(|vendor| Url::parse(vendor.address?).ok());
            own.is_some_and(|own| own.origin() == url.origin())
        };
        let price = match PROVIDERS.iter().find(is_at) {
            Some(provider) => self.prices().of(provider.name, model, true),
            None => self.prices().own(model),
        }?;
        Some(price.cost(tokens))
    }

    /// Returns `true` if the cost of requests to the model `NAME:ARGUMENT` will be known: its price is known, its
    /// vendor reports costs, or it is a script. Names that cannot be opened are not examined.
    pub fn has_price(&self, written: &str, base_url: Option<&str>) -> bool {
        let Ok((provider, model)) = named(written) else { return true };
        let Some(vendor) = provider.vendor.filter(|_| provider.name != openrouter::PROVIDER.name) else { return true };
        let options = ProviderOptions { argument: model, base_url, providers: self, read: &|_| Err(Vec::new()) };
        vendor.is_own(&options).is_none_or(|is_own| self.prices().of(vendor.name, model, is_own).is_some())
    }

    /// Opens the model `NAME:ARGUMENT` on the network, as [`Providers::open`] does.
    ///
    /// # Errors
    /// Returns an error if the name is unknown or a script, or a key or an address is missing.
    pub fn model(&self, written: &str, base_url: Option<&str>) -> Result<Arc<dyn Model>, OpenError> {
        match self.open(written, base_url, &|_| Err(Vec::new()))? {
            Opened::Model(model) => Ok(model),
            Opened::Script(_) => Err(OpenError::Invalid(Vec::new())),
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Diagnostic, Node, Source};
    use serde_json::json;

    use super::*;

    fn read(path: &str) -> Result<Node, Vec<Diagnostic>> {
        match path {
            "hello.yaml" => Ok(Node::from_json(&json!({"steps": [{"text": "Hello."}]}), &Source::new(path, ""))),
            _ => Err(vec![Diagnostic::error(format!("cannot read {path}"))]),
        }
    }

    #[test]
    fn a_provider_is_opened_by_its_name() {
        let open = |written: &str| Providers::default().open(written, None, &read);
        let Opened::Script(script) = open("scripted:hello.yaml").unwrap() else { panic!("no script") };
        assert_eq!(script.name(), "hello.yaml");
        let missing = open("scripted:gone.yaml").unwrap_err();
        assert_eq!(missing.to_string(), "cannot read gone.yaml");
    }

    #[test]
    fn a_model_without_a_provider_suggests_the_provider_that_offers_it() {
        for (written, near) in [
            ("claude-sonnet-4-5", Some("anthropic:claude-sonnet-4-5")),
            ("gemini-2.5-pro", Some("google:gemini-2.5-pro")),
            ("gpt-5", Some("openai:gpt-5")),
            ("anthropic/claude-sonnet-4:beta", Some("openrouter:anthropic/claude-sonnet-4:beta")),
            ("llama3.2:1b", Some("ollama:llama3.2:1b")),
            ("mistral-small:24b", Some("ollama:mistral-small:24b")),
            ("qwen2.5-coder", Some("ollama:qwen2.5-coder")),
            ("mistral-large-latest", None),
            ("llama-3.3-70b-versatile", None),
            ("qwen3-max", None),
            ("gpt-oss-120b", None),
            ("mistralai/mistral-large", Some("openrouter:mistralai/mistral-large")),
            ("antropic:claude-sonnet-4-5", Some("anthropic")),
            ("grok-4", Some("xai:grok-4")),
            ("my-model", None),
        ] {
            let Err(OpenError::UnknownProvider { near: found, .. }) = named(written) else { panic!("{written}") };
            assert_eq!(found.as_deref(), near, "{written}");
        }
    }

    #[test]
    fn an_unknown_provider_names_the_nearest_one_and_all_others() {
        let error = named("script:hello.yaml").map(|_| ()).unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown model provider `script`; known providers: openai, openai-responses, openai-chat, anthropic, \
             google, openrouter, groq, mistral, deepseek, togetherai, xai, fireworks, cerebras, ollama, compatible, \
             scripted; did you mean `scripted`?"
        );
        let alone = named("scripted").map(|_| ()).unwrap_err().to_string();
        assert_eq!(alone, "`scripted` needs an argument: write `scripted:FILE`");
    }

    #[test]
    fn a_plain_model_name_with_a_colon_does_not_name_a_provider() {
        assert!(provider_of("vendor.model-v2:0").is_none());
        assert!(provider_of("model-5").is_none());
        assert_eq!(
            provider_of("scripted:a:b.yaml").map(|(provider, rest)| (provider.name, rest)),
            Some(("scripted", "a:b.yaml"))
        );
    }
}
