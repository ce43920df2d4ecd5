//! Model provider for OpenCode, with its sign-in and variables.

use std::path::PathBuf;

use sandbox::Host;
use serde_json::{Map, Value, json};

use crate::program::{loopback_without_proxy, script_name};
use crate::{AddressError, Endpoint};

/// Name of the provider of a scripted model.
const SCRIPTED: &str = "scripted";
/// Name of the provider for a model at a user's address, if the model's name contains no provider.
const CUSTOM: &str = "custom";
/// Provider for a user's address, if no model is named.
const OPENAI: &str = "openai";
/// Module that implements the Chat Completions API.
const COMPATIBLE: &str = "@ai-sdk/openai-compatible";
/// Variables that hold credentials, for providers whose variable is not their name followed by `_API_KEY`.
const KEYS: [(&str, &[&str]); 4] = [
    ("google", &["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"]),
    ("github-models", &["GITHUB_TOKEN"]),
    ("huggingface", &["HF_TOKEN"]),
    (CUSTOM, &["OPENAI_API_KEY"]),
];
/// Providers whose keys are passed on if no model is named.
const USUAL: [&str; 9] =
    ["anthropic", "openai", "google", "openrouter", "groq", "mistral", "deepseek", "xai", "opencode"];

/// Providers, with their addresses and the paths of their APIs.
const ADDRESSES: [(&str, &str, &str); 9] = [
    ("anthropic", "https://api.anthropic.com", "/v1"),
    ("openai", "https://api.openai.com", "/v1"),
    ("google", "https://generativelanguage.googleapis.com", "/v1beta"),
    ("openrouter", "https://openrouter.ai", "/api/v1"),
    ("groq", "https://api.groq.com", "/openai/v1"),
    ("mistral", "https://api.mistral.ai", "/v1"),
    ("deepseek", "https://api.deepseek.com", ""),
    ("xai", "https://api.x.ai", "/v1"),
    ("opencode", "https://opencode.ai", "/zen/v1"),
];

/// Returns the address of the model `provider/model`.
///
/// # Errors
/// Returns the reason if it is not known.
pub(super) fn model_address(name: &str) -> Result<&'static str, AddressError> {
    known_address(name).map(|(address, _)| address)
}

/// Returns the API address of the model `name`, to which the gateway can forward requests.
///
/// # Errors
/// Returns the reason why its requests cannot go through the gateway.
pub(super) fn forwarding_address(
    host: &Host,
    base_url: Option<&str>,
    name: Option<&str>,
) -> Result<String, AddressError> {
    let name = name.ok_or(AddressError::NoModel { agent: "OpenCode" })?;
    let id = name.split_once('/').map_or(CUSTOM, |(id, _)| id);
    if forwarded_variables(host, id).is_empty() && stored_kind(host, id).as_deref() == Some("oauth") {
        return Err(AddressError::Subscription { agent: "OpenCode", provider: id.to_owned() });
    }
    match base_url {
        Some(base_url) => Ok(address(id, base_url)),
        None => known_address(name).map(|(address, path)| format!("{address}{path}")),
    }
}

/// Returns the name of the missing key variable for the model `name`; `None` if a key is set or a sign-in is stored.
pub(super) fn missing_key(host: &Host, name: &str) -> Option<String> {
    let id = name.split_once('/').map_or(CUSTOM, |(id, _)| id);
    let is_signed_in = !forwarded_variables(host, id).is_empty() || sign_in(host, Some(id)).is_some();
    if is_signed_in { None } else { keys(id).into_iter().next() }
}

fn known_address(name: &str) -> Result<(&'static str, &'static str), AddressError> {
    let id = name.split_once('/').map_or("", |(id, _)| id);
    let known = ADDRESSES.iter().find(|(known, ..)| *known == id);
    known.map(|(_, address, path)| (*address, *path)).ok_or_else(|| match id {
        "" => AddressError::NoProvider,
        id => AddressError::UnknownProvider(id.to_owned()),
    })
}

/// Provider of the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Provider {
    /// `provider/model`; `None` leaves the choice to OpenCode.
    pub(super) model: Option<String>,
    /// Name and configuration of the provider.
    pub(super) config: Option<(String, Value)>,
    /// Variables passed to OpenCode.
    pub(super) env: Vec<(String, String)>,
    /// File with the user's own sign-in, if no variable holds credentials.
    pub(super) sign_in: Option<PathBuf>,
    /// Name of the sign-in, without secrets; `None` if there is none.
    pub(super) auth: Option<&'static str>,
}

impl Provider {
    /// Determines the provider of the model `name`. A request fails if it gets no response within `timeout_ms`.
    pub(super) fn new(host: &Host, endpoint: &Endpoint, name: Option<&str>, timeout_ms: u64) -> Self {
        match endpoint {
            Endpoint::Gateway { base_url, token } => Self::scripted(base_url, token, name, timeout_ms),
            Endpoint::Vendor { base_url } => {
                let of_id = |id: &str| base_url.as_deref().map(|base_url| address(id, base_url));
                Self::vendor(host, of_id, name, timeout_ms)
            }
            Endpoint::Observed { gateway, .. } => {
                let mut provider = Self::vendor(host, |_| Some(gateway.clone()), name, timeout_ms);
                provider.env.extend(loopback_without_proxy(host));
                provider
            }
            Endpoint::Script { .. } | Endpoint::Provider(_) => Self::vendor(host, |_| None, None, timeout_ms),
        }
    }

    /// Returns the provider's name.
    pub(super) fn id(&self) -> Option<&str> {
        self.config.as_ref().map(|(id, _)| id.as_str())
    }

    /// Returns `true` if the configuration tells OpenCode all that it knows about the provider and its model.
    pub(super) fn is_defined(&self) -> bool {
        self.id().is_some_and(|id| [SCRIPTED, CUSTOM].contains(&id))
    }

    /// Returns the provider for a scripted model, which is named after its file.
    fn scripted(base_url: &str, token: &str, name: Option<&str>, timeout_ms: u64) -> Self {
        let model = script_name(name.unwrap_or_default());
        let limit = json!({"context": 200_000, "output": 32_000});
        let options = json!({"baseURL": format!("{base_url}/v1"), "apiKey": token, "timeout": timeout_ms});
        let about = json!({"name": model, "tool_call": true, "reasoning": true, "limit": limit});
        Self {
            model: Some(format!("{SCRIPTED}/{model}")),
            config: Some((SCRIPTED.to_owned(), compatible("Scripted", &options, &model, &about))),
            env: Vec::new(),
            sign_in: None,
            auth: Some(SCRIPTED),
        }
    }

    /// Returns the provider of a vendor's model. `address` returns the address to use for a provider's id, if it is not
    /// the provider's own.
    fn vendor(host: &Host, address: impl Fn(&str) -> Option<String>, name: Option<&str>, timeout_ms: u64) -> Self {
        let Some(name) = name else {
            // An address of the user's belongs to this provider, as with `OPENAI_BASE_URL`. OpenCode chooses its model.
            if let Some(address) = address(OPENAI) {
                let env = forwarded_variables(host, OPENAI);
                let auth = auth(!env.is_empty(), false);
                let about = json!({"options": {"timeout": timeout_ms, "baseURL": address}});
                return Self { model: None, config: Some((OPENAI.to_owned(), about)), env, sign_in: None, auth };
            }
            let env: Vec<_> = USUAL.iter().flat_map(|id| forwarded_variables(host, id)).collect();
            let sign_in = sign_in(host, None);
            let auth = auth(!env.is_empty(), sign_in.is_some());
            return Self { model: None, config: None, env, sign_in, auth };
        };
        let (id, model) = name.split_once('/').unwrap_or((CUSTOM, name));
        let mut options = json!({"timeout": timeout_ms});
        if let Some(address) = address(id) {
            options["baseURL"] = json!(address);
        }
        let env = forwarded_variables(host, id);
        let config = match id {
            CUSTOM => {
                let mut config = compatible("Custom", &options, model, &json!({}));
                config["env"] = json!(keys(CUSTOM));
                config
            }
            // A model that this version of OpenCode does not know yet is still accepted.
            _ => json!({"options": options, "models": {model: {}}}),
        };
        let sign_in = if env.is_empty() { sign_in(host, Some(id)) } else { None };
        let auth = auth(!env.is_empty(), sign_in.is_some());
        Self { model: Some(format!("{id}/{model}")), config: Some((id.to_owned(), config)), env, sign_in, auth }
    }
}

fn compatible(name: &str, options: &Value, model: &str, about: &Value) -> Value {
    json!({"npm": COMPATIBLE, "name": name, "options": options, "models": {model: about}})
}

fn auth(key: bool, stored: bool) -> Option<&'static str> {
    match (key, stored) {
        (true, _) => Some("api key"),
        (false, true) => Some("stored sign-in"),
        (false, false) => None,
    }
}

/// Returns the address in OpenCode's form, which includes the API version. Anthropic's address is usually written
/// without it.
fn address(id: &str, base_url: &str) -> String {
    let base = base_url.trim_end_matches('/');
    let path = base.split_once("://").map_or(base, |(_, rest)| rest).split_once('/').map(|(_, path)| path);
    let last = path.and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let is_version = last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let wants_version = path.is_none() || (id == "anthropic" && !is_version);
    if wants_version { format!("{base}/v1") } else { base.to_owned() }
}

/// Returns the variables that hold a provider's credentials, in the order in which OpenCode reads them.
fn keys(id: &str) -> Vec<String> {
    match KEYS.iter().find(|(known, _)| *known == id) {
        Some((_, keys)) => keys.iter().map(|key| (*key).to_owned()).collect(),
        None => vec![format!("{}_API_KEY", id.to_ascii_uppercase().replace(['-', '.'], "_"))],
    }
}

/// Returns the variables in the user's environment that are passed on for a provider.
fn forwarded_variables(host: &Host, id: &str) -> Vec<(String, String)> {
    let cloud: &[&str] = match id {
        "amazon-bedrock" => &["AWS_"],
        "google-vertex" | "google-vertex-anthropic" => &["GOOGLE_"],
        "azure" | "azure-cognitive-services" => &["AZURE_"],
        _ => &[],
    };
    let keys = keys(id);
    let is_lent = |name: &String| keys.contains(name) || cloud.iter().any(|start| name.starts_with(start));
    let set = host.env.iter().filter(|(name, value)| !value.is_empty() && is_lent(name));
    set.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the file in which OpenCode stores the user's sign-ins, if it contains one for the provider with this `id`;
/// for any provider, if there is no `id`.
fn sign_in(host: &Host, id: Option<&str>) -> Option<PathBuf> {
    let (file, stored) = stored(host)?;
    let is_there = id.map_or(!stored.is_empty(), |id| stored.contains_key(id));
    is_there.then_some(file)
}

/// Returns the kind of the stored sign-in for the provider with this `id`: `api` or `oauth`.
fn stored_kind(host: &Host, id: &str) -> Option<String> {
    let (_, stored) = stored(host)?;
    Some(stored.get(id)?.get("type")?.as_str()?.to_owned())
}

fn stored(host: &Host) -> Option<(PathBuf, Map<String, Value>)> {
    let moved = host.var("XDG_DATA_HOME").map(PathBuf::from);
    let data = moved.or_else(|| host.home.as_ref().map(|home| home.join(".local/share")))?;
    let file = data.join("opencode/auth.json");
    let stored = serde_json::from_slice(&std::fs::read(&file).ok()?).ok()?;
    Some((file, stored))
}

#[cfg(test)]
mod tests {
    use sandbox::supervise::Supervisor;

    use super::*;

    fn host(home: &std::path::Path, env: &[(&str, &str)]) -> Host {
        Host {
            env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            home: Some(home.to_owned()),
            temp: home.to_owned(),
            supervisor: Supervisor::unchecked("/bin/true").unwrap(),
        }
    }

    fn vendor(host: &Host, base_url: Option<&str>, name: Option<&str>) -> Provider {
        Provider::new(host, &Endpoint::Vendor { base_url: base_url.map(str::to_owned) }, name, 1000)
    }

    #[test]
    fn the_address_of_a_model_is_that_of_its_provider() {
        assert_eq!(model_address("openrouter/openai/gpt-5"), Ok("https://openrouter.ai"));
        assert!(model_address("mine/gpt-5").unwrap_err().to_string().contains("`mine`"));
        assert!(model_address("gpt-5").unwrap_err().to_string().contains("no provider"));
    }

    #[test]
    fn a_scripted_model_uses_the_token_of_the_trial_and_no_key_is_passed_on() {
        let dir = tempfile::tempdir().unwrap();
        let host = host(dir.path(), &[("OPENAI_API_KEY", "sk-test"), ("ANTHROPIC_API_KEY", "sk-test")]);
        let endpoint = Endpoint::Gateway { base_url: "http://127.0.0.1:1".into(), token: "trialrun-test".into() };
        let provider = Provider::new(&host, &endpoint, Some("scripted:/suite/hello world.yaml"), 1000);
        assert_eq!(provider.model.as_deref(), Some("scripted/hello-world.yaml"));
        assert_eq!((provider.auth, provider.env.as_slice(), &provider.sign_in), (Some("scripted"), &[][..], &None));
        let (id, config) = provider.config.unwrap();
        assert_eq!((id.as_str(), &config["options"]["baseURL"]), ("scripted", &json!("http://127.0.0.1:1/v1")));
        assert_eq!(config["options"]["apiKey"], "trialrun-test");
        assert!(config["models"]["hello-world.yaml"].is_object());
    }

    #[test]
    fn a_key_is_passed_only_to_its_own_provider() {
        let dir = tempfile::tempdir().unwrap();
        let keys = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "AWS_REGION", "HF_TOKEN", "OTHER_API_KEY"];
        let host = host(dir.path(), &keys.map(|key| (key, "sk-test")));
        let forwarded_variables = |name: Option<&str>| -> Vec<String> {
            vendor(&host, None, name).env.into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(forwarded_variables(Some("anthropic/claude-x")), ["ANTHROPIC_API_KEY"]);
        assert_eq!(forwarded_variables(Some("openai/gpt-x")), ["OPENAI_API_KEY"]);
        assert_eq!(forwarded_variables(Some("google/gemini-x")), ["GEMINI_API_KEY"]);
        assert_eq!(forwarded_variables(Some("amazon-bedrock/claude-x")), ["AWS_REGION"]);
        assert_eq!(forwarded_variables(Some("other/m")), ["OTHER_API_KEY"]);
        assert_eq!(forwarded_variables(None), ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"]);
        assert_eq!(vendor(&host, None, Some("deepseek/x")).auth, None);
    }

    #[test]
    fn a_base_url_set_by_the_user_replaces_that_of_the_provider() {
        let dir = tempfile::tempdir().unwrap();
        let host = host(dir.path(), &[("OPENAI_API_KEY", "sk-test")]);
        let of = |name: &str, base_url: &str| {
            let provider = vendor(&host, Some(base_url), Some(name));
            let (id, config) = provider.config.unwrap();
            (id, config["options"]["baseURL"].as_str().unwrap().to_owned(), config["npm"].is_string())
        };
        let expected = |id: &str, address: &str, own: bool| (id.to_owned(), address.to_owned(), own);
        assert_eq!(of("anthropic/x", "http://h:1"), expected("anthropic", "http://h:1/v1", false));
        assert_eq!(of("anthropic/x", "http://h/proxy"), expected("anthropic", "http://h/proxy/v1", false));
        assert_eq!(of("anthropic/x", "http://h/v1/"), expected("anthropic", "http://h/v1", false));
        assert_eq!(of("openai/x", "http://h/api"), expected("openai", "http://h/api", false));
        assert_eq!(of("local-model", "http://h:1"), expected("custom", "http://h:1/v1", true));
        let unnamed = vendor(&host, Some("http://h/api/v1"), None);
        assert_eq!((unnamed.model, unnamed.auth), (None, Some("api key")));
        assert_eq!(unnamed.config.unwrap().1["options"]["baseURL"], "http://h/api/v1");
    }

    #[test]
    fn an_observed_provider_keeps_its_key_at_the_address_of_the_gateway() {
        let dir = tempfile::tempdir().unwrap();
        let host = host(dir.path(), &[("ANTHROPIC_API_KEY", "sk-test")]);
        let endpoint = Endpoint::Observed { gateway: "http://127.0.0.1:1/token".into(), base_url: None };
        let provider = Provider::new(&host, &endpoint, Some("anthropic/x"), 1000);
        assert_eq!(provider.config.unwrap().1["options"]["baseURL"], "http://127.0.0.1:1/token");
        assert!(provider.env.contains(&("ANTHROPIC_API_KEY".to_owned(), "sk-test".to_owned())));
        assert!(provider.env.contains(&("NO_PROXY".to_owned(), "127.0.0.1".to_owned())));
    }

    #[test]
    fn requests_are_forwarded_to_the_api_of_the_provider() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(".local/share/opencode/auth.json");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, r#"{"openai": {"type": "oauth"}, "groq": {"type": "api"}}"#).unwrap();
        let host = host(dir.path(), &[]);
        let to = |base_url: Option<&str>, name: Option<&str>| forwarding_address(&host, base_url, name);
        assert_eq!(to(None, Some("groq/x")).unwrap(), "https://api.groq.com/openai/v1");
        assert_eq!(to(Some("http://h:1"), Some("local")).unwrap(), "http://h:1/v1");
        assert!(to(None, Some("openai/x")).unwrap_err().to_string().contains("subscription"));
        assert!(to(None, Some("mine/x")).unwrap_err().to_string().contains("`mine`"));
        assert!(to(None, None).unwrap_err().to_string().contains("set `model`"));
    }

    #[test]
    fn a_stored_sign_in_is_used_if_no_key_is_set() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(".local/share/opencode/auth.json");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, r#"{"anthropic": {"type": "api", "key": "x"}}"#).unwrap();
        let none = host(dir.path(), &[]);
        let stored = vendor(&none, None, Some("anthropic/x"));
        assert_eq!((stored.sign_in.as_deref(), stored.auth), (Some(file.as_path()), Some("stored sign-in")));
        assert_eq!(vendor(&none, None, Some("openai/x")).sign_in, None);
        assert_eq!(vendor(&none, None, None).sign_in.as_deref(), Some(file.as_path()));
        let key = host(dir.path(), &[("ANTHROPIC_API_KEY", "sk-test")]);
        assert_eq!(vendor(&key, None, Some("anthropic/x")).sign_in, None);
    }
}
