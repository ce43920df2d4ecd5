//! The model that the program itself uses to discover an agent and to write tests. Agents and judges have their own.

use std::path::Path;
use std::sync::Arc;

use grade::judge::named_judge;

use session::Session;

use crate::error::CliError;

/// Prefix for scripted models.
const SCRIPTED: &str = "scripted:";

/// A model that is ready to be asked.
pub struct LanguageModel {
    /// Name as the user writes it, `provider:model`.
    pub name: String,
    /// The model.
    pub model: Arc<dyn llm::Model>,
    /// True for a scripted model, whose responses depend on the order of the requests: they must be sent one after
    /// another.
    pub is_script: bool,
}

/// Opens the model named by `written`, otherwise the project's judge, otherwise a default model whose key is set.
/// Returns `None` if there is none.
///
/// # Errors
/// Returns an error if the model is unknown, or its key or file is missing.
pub fn open(
    written: Option<&str>,
    settings: &runner::Settings,
    session: &Session,
) -> Result<Option<LanguageModel>, CliError> {
    let Some(chosen) = written.or_else(|| settings.judge()).filter(|name| !name.trim().is_empty()) else {
        return Ok(None);
    };
    // The address configured for the project's judge applies only to the judge's model.
    let base_url = settings.judge.base_url.as_deref().filter(|_| written.is_none());
    let name = named_judge(chosen, base_url, &settings.providers);
    if let Some(file) = name.strip_prefix(SCRIPTED) {
        let script = session.read_script(Path::new(file)).map_err(|problems| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            CliError::usage(format!("cannot read the script of `{name}`: {}", problems.join("; ")))
        })?;
        let model = Arc::new(Arc::new(script).play(llm::ScriptContext::default()));
        return Ok(Some(LanguageModel { name, model, is_script: true }));
    }
    let model = settings.providers.model(&name, base_url).map_err(|error| {
        let message = format!("the model `{name}` cannot be used: {error}");
        match error {
            llm::OpenError::NoClient { .. } => CliError::environment(message),
            // Without a key, nothing can run, just as without a model.
            _ => CliError::usage(message).hint("`trialrun doctor` shows which models can be used"),
        }
    })?;
    Ok(Some(LanguageModel { name, model, is_script: false }))
}
