//! `judge` and `llm`: the model that judges.

use model::decode::{Fields, Problems};
use model::{Diagnostic, JudgeCache, JudgeSample, Node, NodeKind};

use super::environment::{Missing, take_below};
use super::{Setting, fraction, setting, text, whole};

/// Model that judges and simulates users, as far as the project configures it.
#[derive(Debug, Clone, Default)]
pub struct Judge {
    /// Name as `provider:model`.
    pub model: Option<Setting<String>>,
    /// URL to use instead of the vendor's own.
    pub base_url: Option<Setting<String>>,
    /// API key; if absent, it is taken from the environment.
    pub api_key: Option<Setting<String>>,
    /// Number of judges for each verdict.
    pub judges: Option<Setting<u64>>,
    /// How judgements from earlier runs are used.
    pub cache: Option<Setting<JudgeCache>>,
    /// Size of the sample that the judge decides.
    pub sample: Option<Setting<JudgeSample>>,
    /// True if assertions about the same material share a request.
    pub batch: Option<Setting<bool>>,
    /// Calibration file for the judge, relative to the project's folder.
    pub calibration: Option<Setting<String>>,
    /// Minimum for the lower limit of κ in the calibration.
    pub min_kappa: Option<Setting<f64>>,
    /// Sampling temperature, from 0.
    pub temperature: Option<Setting<f64>>,
    /// References to the environment that could not be resolved, which are errors if a judge is used.
    pub missing: Vec<Diagnostic>,
}

/// Providers whose names in a configuration differ from those used here.
const PROVIDERS: [(&str, &str); 2] = [("custom", "compatible"), ("chatgpt", "openai")];

impl Judge {
    /// Reads both sections; `judge` takes precedence over `llm`.
    pub(super) fn read(fields: &mut Fields<'_>, missing: &mut Vec<Missing>, problems: &mut Problems) -> Self {
        let below = fields.get("llm").map(|node| of_llm(node, problems)).unwrap_or_default();
        let above = fields.get("judge").map(|node| of_judge(node, problems)).unwrap_or_default();
        // The URL and key in `llm` belong to its model, and are not used for another one.
        let same = above.model.is_none();
        let lower = |setting: Option<Setting<String>>| setting.filter(|_| same);
        let mut unset = take_below(missing, &["judge"]);
        unset.extend(take_below(missing, &["llm"]).into_iter().filter(|_| same));
        Self {
            model: above.model.or(below.model),
            base_url: above.base_url.or(lower(below.base_url)),
            api_key: above.api_key.or(lower(below.api_key)),
            judges: above.judges,
            cache: above.cache,
            sample: above.sample,
            batch: above.batch,
            calibration: above.calibration,
            min_kappa: above.min_kappa,
            temperature: above.temperature.or(below.temperature),
            missing: unset,
        }
    }
}

fn of_judge(node: &Node, problems: &mut Problems) -> Judge {
    if matches!(node.kind, NodeKind::String(_)) {
        let model = model::decode::text(node, "`judge`", problems);
        return Judge { model: model.map(|value| Setting { value, source: node.excerpt() }), ..Judge::default() };
    }
    let Some(fields) = Fields::of_either(node, "`judge`", "a string or a map", problems) else {
        return Judge::default();
    };
    let mut fields = fields.in_either_case();
    let mut model = text(&mut fields, "model", problems);
    if let Some(provider) = node.get("provider").and_then(Node::as_str)
        && let Some(Setting { value, .. }) = model.take_if(|model| !model.value.contains(':'))
    {
        let problem = Diagnostic::error("`provider` is a part of `model` in `judge`");
        let place = fields.key_span("provider").map_or_else(|| node.excerpt(), |span| node.source.excerpt(span));
        problems.push(problem.at(place).help(format!("write `model: {provider}:{value}` alone")));
        fields.get("provider");
    }
    let judges = whole(&mut fields, "judges", 1, problems);
    let cache = fields.choice("cache", &JudgeCache::ALL, problems);
    let cache = setting(cache, "cache", &mut fields);
    let sample = sample(&mut fields, problems);
    let batch = fields.boolean("batch", problems);
    let batch = setting(batch, "batch", &mut fields);
    let calibration = text(&mut fields, "calibration", problems);
    let min_kappa = fraction(&mut fields, "min_kappa", 1, problems);
    let judge = Judge { model, judges, cache, sample, batch, calibration, min_kappa, ..rest(&mut fields, problems) };
    fields.finish(problems);
    judge
}

fn of_llm(node: &Node, problems: &mut Problems) -> Judge {
    let Some(fields) = Fields::of(node, "`llm`", problems) else { return Judge::default() };
    let mut fields = fields.in_either_case();
    let provider = fields.text("provider", problems);
    let name = fields.required_text("model", problems);
    if let Some((provider, name)) = provider.as_ref().zip(name.as_ref())
        && let Some(bare) = name.strip_prefix(&format!("{provider}:"))
        && let Some(node) = fields.get("model")
    {
        let problem = node.error("`model` is the name without its provider, beside `provider`");
        problems.push(problem.help(format!("write `model: {bare}`")));
        return Judge::default();
    }
    let model = name.map(|name| match &provider {
        Some(provider) => {
            let known = PROVIDERS.iter().find(|(theirs, _)| theirs == provider);
            format!("{}:{name}", known.map_or(provider.as_str(), |(_, ours)| ours))
        }
        None => name,
    });
    // What may be wrong with the name is the provider.
    let model = setting(model, if provider.is_some() { "provider" } else { "model" }, &mut fields);
    let judge = Judge { model, ..rest(&mut fields, problems) };
    fields.finish(problems);
    judge
}

/// Reads the sample size: a number, or text such as `20%`.
fn sample(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<Setting<JudgeSample>> {
    let node = fields.get("sample")?;
    let written = match &node.kind {
        NodeKind::Number(number) => number.to_string(),
        NodeKind::String(text) => text.clone(),
        _ => String::new(),
    };
    match written.parse() {
        Ok(value) => Some(Setting { value, source: node.excerpt() }),
        Err(expected) => {
            problems.push(node.error(format!("`sample` must be {expected}")));
            None
        }
    }
}

/// Warns about a key that is the name of a variable. The message does not repeat it, because keys are masked.
pub(super) fn warn_of_name(key: &str, node: &Node, problems: &mut Problems) {
    let is_name = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    if node.as_str().is_some_and(|value| value.contains('_') && value.chars().all(is_name)) {
        let problem = node.warning(format!("`{key}` is the name of a variable here, not its value"));
        problems.push(problem.help("write `\"${env.NAME}\"` for the value of the variable NAME"));
    }
}

/// Reads the settings that both sections have in common.
fn rest(fields: &mut Fields<'_>, problems: &mut Problems) -> Judge {
    let base_url = text(fields, "base_url", problems);
    let is_address = |url: &str| ["http://", "https://", "$"].iter().any(|start| url.starts_with(start));
    let (base_url, wrong) = match base_url {
        Some(url) if !is_address(&url.value) => (None, Some(url)),
        url => (url, None),
    };
    if let Some(Setting { value, source }) = wrong {
        let problem = Diagnostic::error("an address begins with `http://` or `https://`").at(source);
        problems.push(if value.contains("://") { problem } else { problem.help(format!("write `http://{value}`")) });
    }
    let api_key = text(fields, "api_key", problems);
    fields.get("api_key").into_iter().for_each(|node| warn_of_name("api_key", node, problems));
    Judge { base_url, api_key, temperature: fraction(fields, "temperature", 2, problems), ..Judge::default() }
}
