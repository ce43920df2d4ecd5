//! Documents that an HTTP endpoint serves about itself.

use std::time::Duration;

use generate::{INTERFACE_PATHS, Profile, read_interface};
use llm::Proxies;
use reqwest::Url;

use crate::error::CliError;
use session::Session;

/// Maximum timeout of one request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of a document, in bytes.
const LARGEST: usize = 4 * 1024 * 1024;

/// Returns the facts in the documents at the root of `url`, and the result for each path. Redirects are not followed.
///
/// # Errors
/// Returns an error if no temporary folder can be created.
pub async fn documents(url: &Url, timeout_ms: u64, context: &Session) -> Result<(Profile, Vec<String>), CliError> {
    let timeout = TIMEOUT.min(Duration::from_millis(timeout_ms));
    let failed = |error: std::io::Error| CliError::environment(format!("cannot create a temporary folder: {error}"));
    let folder = tempfile::tempdir().map_err(failed)?;
    let proxies = Proxies::of(|name| context.environment().get(name).map(String::as_str));
    let client = proxies.client(url.scheme() == "https", timeout, None);
    let client = client.map_err(|error| CliError::environment(error.to_string()))?;
    let requests = INTERFACE_PATHS.map(|path| {
        let mut address = url.clone();
        address.set_path(path);
        address.set_query(None);
        address.set_fragment(None);
        fetch(client.clone(), address, timeout)
    });
    let (mut profile, mut notes) = (Profile::default(), Vec::new());
    for (index, request) in requests.map(tokio::spawn).into_iter().enumerate() {
        let path = INTERFACE_PATHS[index];
        match request.await {
            Ok(Ok(text)) => {
                let file = folder.path().join(format!("{index}.json"));
                std::fs::write(&file, text).map_err(failed)?;
                if let Some(found) = read_interface(&file, path) {
                    profile.merge(found);
                }
            }
            Ok(Err(Some(problem))) => {
                // If every document has the same problem, it is a problem with the endpoint.
                let note = format!("documents of the endpoint: {problem}");
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
            Ok(Err(None)) | Err(_) => {}
        }
    }
    Ok((profile, notes))
}

/// Fetches a JSON document. Returns an error with a note if there is a problem, and without one if the path does not
/// exist.
async fn fetch(client: reqwest::Client, url: Url, timeout: Duration) -> Result<Vec<u8>, Option<String>> {
    let request = client.get(url).header("accept", "application/json").timeout(timeout);
    let mut response = request.send().await.map_err(|error| Some(problem(&error, timeout)))?;
    if !response.status().is_success() {
        return Err(None);
    }
    let is_json = |kind: &reqwest::header::HeaderValue| kind.to_str().is_ok_and(|kind| kind.contains("json"));
    if !response.headers().get("content-type").is_some_and(is_json) {
        return Err(None);
    }
    let mut content = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| Some(problem(&error, timeout)))? {
        content.extend_from_slice(&chunk);
        if content.len() > LARGEST {
            return Err(Some(format!("the document is larger than {} MiB", LARGEST >> 20)));
        }
    }
    Ok(content)
}

fn problem(error: &reqwest::Error, timeout: Duration) -> String {
    match error.is_timeout() {
        true => format!("no answer within {timeout:?}"),
        false => "cannot be reached".to_owned(),
    }
}
