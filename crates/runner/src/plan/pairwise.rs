//! The judge of pairs of recorded trials.

use std::sync::Arc;
use std::time::Duration;

use grade::{Breaker, Cache, Judge};
use llm::ScriptContext;
use mask::Mask;
use model::{Diagnostic, Evidence, JudgeCache, PairJudgement, Preference};

use super::judging::{judge_model, open, with_settings};
use super::request::ReadScript;
use super::settings::Settings;

/// The judge of pairs of recorded trials.
///
/// The calibration that a project requires is about assertions, so it does not apply here.
pub struct PairwiseJudging {
    name: String,
    model: Arc<dyn llm::Model>,
    is_script: bool,
    settings: Settings,
    cache: Arc<Cache>,
    breaker: Arc<Breaker>,
    mask: Arc<Mask>,
}

impl PairwiseJudging {
    /// Opens the judge that `settings` set, or the first default one whose key is set. The judge never sees what `mask`
    /// removes. A scripted judge answers the questions about all pairs in order.
    ///
    /// # Errors
    /// Returns the reason why no judge is available. Adds problems of the settings to `problems`.
    pub fn open(
        settings: Settings,
        read_script: &ReadScript,
        mask: Arc<Mask>,
        problems: &mut Vec<Diagnostic>,
    ) -> Result<Self, String> {
        let chosen = judge_model(&settings, read_script, problems)?;
        let model: Arc<dyn llm::Model> = match &chosen.script {
            Some(script) => Arc::new(script.play(ScriptContext::default())),
            None => open(&settings, &chosen.name).map_err(|error| error.to_string())?,
        };
        let cache = Arc::new(Cache::new(settings.judge.store.clone(), settings.judge.cache));
        let (is_script, breaker) = (chosen.script.is_some(), Arc::default());
        Ok(Self { name: chosen.name, model, is_script, settings, cache, breaker, mask })
    }

    /// Returns the name of the judge, as the user gave it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns how many pairs can be judged at the same time.
    pub fn jobs(&self) -> usize {
        if self.is_script { 1 } else { self.settings.jobs.max(1) }
    }

    /// Asks the judge which of two trials is better by `criterion`. The time limit is the one for a trial. `ids` are the
    /// ids of the trials; their order does not affect which judgements are found in the cache.
    pub async fn prefer(&self, criterion: &str, ids: [&str; 2], before: &Evidence, after: &Evidence) -> PairJudgement {
        let judge = self.judge(ids);
        let (limit_ms, setting) = self.settings.timeout(None, false);
        let asked = grade::judge::prefer(&judge, criterion, before, after);
        let mut judged = match tokio::time::timeout(Duration::from_millis(limit_ms), asked).await {
            Ok(judged) => judged,
            Err(_) => {
                let seconds = Duration::from_millis(limit_ms).as_secs_f64();
                let error = judge.last_error().map_or_else(String::new, |error| format!("; its last error: {error}"));
                let reason = format!("the judge did not answer within {seconds} s ({setting}){error}");
                self.breaker.failed(&reason, false);
                PairJudgement::without_judge(Preference::Undecided, reason)
            }
        };
        self.mask.string(&mut judged.reason);
        judged
    }

    fn judge(&self, ids: [&str; 2]) -> Judge {
        let judge = Judge::new(&*self.name, Arc::clone(&self.model));
        let judge = match self.is_script {
            true => judge.of_a_script(),
            false => judge.cached(Arc::clone(&self.cache), self.series(ids)).with_breaker(Arc::clone(&self.breaker)),
        };
        with_settings(judge, &self.settings, &self.mask)
    }

    fn series(&self, mut ids: [&str; 2]) -> String {
        if self.settings.judge.cache == JudgeCache::Share {
            return String::new();
        }
        ids.sort_unstable();
        ids.join("\n")
    }

    /// Returns the reason why judgements could not be cached, if there is one.
    pub fn cache_problem(&self) -> Option<String> {
        self.settings.judge.store.as_ref().and_then(|store| store.problem())
    }
}
