//! Asks hosted models about the checks that need one.

use llm::Providers;
use model::{AuxiliaryUsage, Evidence, Finding, Status, Tokens};
use serde_json::Value;

use crate::check::Check;
use crate::hosted::HostedRequest;
use crate::verdict::Verdict;

/// Asks hosted models about those `checks` that need one, and fills in their findings, which stay undecided with the
/// reason if a model cannot be asked. `withhold` removes what must not be sent. Returns the usage, or `None` if no request
/// was sent. `findings` are those that [`crate::grade`] returned for the same `evidence`.
pub async fn ask_hosted(
    checks: &[Check],
    evidence: &Evidence,
    providers: &Providers,
    withhold: &(dyn Fn(&str) -> String + Sync),
    findings: &mut [Finding],
) -> Option<AuxiliaryUsage> {
    let mut spent = None;
    for (check, finding) in checks.iter().zip(findings) {
        let Some(hosted) = check.hosted().filter(|_| finding.status == Status::Undecided && finding.id == check.id())
        else {
            continue;
        };
        let verdict = match hosted.request(evidence) {
            Ok(request) => match send(&request, providers, withhold, &mut spent).await {
                Ok(response) => hosted.decide(&response, evidence),
                Err(reason) => Verdict::undecided(reason),
            },
            Err(reason) => Verdict::undecided(reason),
        };
        *finding = check.finding(verdict);
    }
    spent
}

/// Sends a request, and adds what it used to `spent`. A request that is not answered counts as sent only.
async fn send(
    request: &HostedRequest,
    providers: &Providers,
    withhold: &(dyn Fn(&str) -> String + Sync),
    spent: &mut Option<AuxiliaryUsage>,
) -> Result<Value, String> {
    let failed = |reason: &dyn std::fmt::Display| format!("`{}` could not be asked: {reason}", request.model);
    let (documents, model) = providers.documents(&request.model).map_err(|error| failed(&error))?;
    let input: Vec<String> = request.input.iter().map(|text| withhold(text)).collect();
    let body = serde_json::json!({ "model": model, "input": input });
    let spent = spent.get_or_insert_default();
    let response = documents.post(request.path, &body).await.map_err(|failure| failed(&failure))?;
    *spent += usage(&response);
    Ok(response)
}

/// Returns the usage that a response reports. Prices of such models are not known.
fn usage(response: &Value) -> AuxiliaryUsage {
    let input = response["usage"]["prompt_tokens"].as_u64();
    let tokens = input.map(|input| Tokens { input, ..Tokens::default() });
    AuxiliaryUsage { requests: 1, tokens, ..AuxiliaryUsage::default() }
}
