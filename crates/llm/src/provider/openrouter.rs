//! OpenRouter: models from many vendors at one address, through Chat Completions.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, Url};
use tokio::time::timeout;

use super::Provider;
use crate::remote::Vendor;
use crate::{ListPrices, Providers};

const ADDRESS: &str = "OPENROUTER_BASE_URL";
const HOME: &str = "https://openrouter.ai/api/v1";
/// Timeout for fetching the list.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of the list in bytes. It has about a kilobyte per model.
const MAX_LIST_BYTES: usize = 16 * 1024 * 1024;

static CHAT: Vendor = Vendor {
    name: "openrouter",
    variables: &["OPENROUTER_API_KEY", ADDRESS],
    needs_key: true,
    address: Some(HOME),
    ..Vendor::CHAT_COMPLETIONS
};

pub(super) const PROVIDER: Provider =
    Provider { argument: "VENDOR/MODEL", ..Provider::new(&CHAT, "OpenRouter, Chat Completions API") };

impl Providers {
    /// Returns OpenRouter's prices. The list is fetched once, without a key, and the result is cached.
    /// `OPENROUTER_BASE_URL` sets another address.
    ///
    /// # Errors
    /// Returns the reason why there is no list.
    pub async fn openrouter_list(&self) -> Result<&Arc<ListPrices>, &str> {
        let list = self.list().get_or_init(|| async {
            match timeout(TIMEOUT, self.fetch_list()).await {
                Ok(fetched) => fetched.map(Arc::new),
                Err(_) => Err(format!("no response within {} s", TIMEOUT.as_secs())),
            }
        });
        list.await.as_ref().map_err(String::as_str)
    }

    async fn fetch_list(&self) -> Result<ListPrices, String> {
        let base = self.credentials().get(ADDRESS).unwrap_or(HOME).trim_end_matches('/');
        let url = Url::parse(&format!("{base}/models")).map_err(|error| error.to_string())?;
        let client = self.network().client(url.scheme() == "https")?;
        let document = serde_json::from_slice(&body(&client, url).await?).ok();
        document.as_ref().and_then(ListPrices::parse).ok_or_else(|| "it cannot be read".to_owned())
    }
}

async fn body(client: &Client, url: Url) -> Result<Vec<u8>, String> {
    let in_words = |error: reqwest::Error| error.without_url().to_string();
    let mut response = client.get(url).send().await.map_err(in_words)?;
    if !response.status().is_success() {
        return Err(format!("HTTP {}", response.status().as_u16()));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(in_words)? {
        if body.len() + chunk.len() > MAX_LIST_BYTES {
            return Err(format!("it is longer than {} MiB", MAX_LIST_BYTES >> 20));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
