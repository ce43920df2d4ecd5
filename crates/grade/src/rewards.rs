//! Rewards that a verifier writes into files, and whether they are high enough.

use model::{RewardFile, Status};

use crate::verdict::Verdict;

/// Name of the reward that decides, if a verifier writes several.
pub(crate) const MAIN: &str = "reward";

/// Reward of a success, if the case does not say which.
const SUCCESS: f64 = 1.0;

/// File with several rewards. The other file has one.
const JSON_FILE: &str = "reward.json";

/// Least values of rewards, by their names. Without any, a success is needed.
#[derive(Debug, Clone)]
pub(crate) struct Least(pub(crate) Vec<(String, f64)>);

impl Least {
    /// Returns the verdict on the files that a verifier wrote. `exit_code` is that of the verifier.
    pub(crate) fn verdict(&self, files: &[RewardFile], exit_code: i32) -> Verdict {
        if files.is_empty() {
            return Verdict::undecided(format!("the verifier wrote no reward; it exited with code {exit_code}"));
        }
        let unusable = files.iter().find_map(|file| {
            let why = file.unusable.as_ref()?;
            Some(format!("`{}` does not count as a reward: {why}", file.name))
        });
        // Code of the agent that a verifier runs could keep it from writing a file, so the other one alone never passes.
        match (unusable, self.verdict_on_usable(files)) {
            (Some(reason), verdict) if verdict.status != Status::Unmet => Verdict::undecided(reason),
            (_, verdict) => verdict,
        }
    }

    fn verdict_on_usable(&self, files: &[RewardFile]) -> Verdict {
        let rewards = match rewards(files) {
            Ok(rewards) => rewards,
            Err(fault) => return Verdict::undecided(fault),
        };
        let needed: Vec<(&str, f64)> = match self.0.as_slice() {
            [] if rewards.iter().any(|(name, _)| name == MAIN) => vec![(MAIN, SUCCESS)],
            [] => rewards.iter().map(|(name, _)| (name.as_str(), SUCCESS)).collect(),
            least => least.iter().map(|(name, value)| (name.as_str(), *value)).collect(),
        };
        let value_of = |name: &str| rewards.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        if let Some((name, _)) = needed.iter().find(|(name, _)| value_of(name).is_none()) {
            return Verdict::undecided(format!("the verifier wrote no reward `{name}`"));
        }
        let missed: Vec<&(&str, f64)> =
            needed.iter().filter(|(name, least)| value_of(name).is_some_and(|value| value < *least)).collect();
        let others = || rewards.iter().map(|(name, value)| format!("`{name}`: {value}")).collect::<Vec<_>>().join(", ");
        let evidence = (rewards.len() > 1).then(|| format!("rewards: {}", others()));
        let verdict = match missed.first() {
            None => Verdict::met(match needed.as_slice() {
                [(MAIN, _)] => format!("the reward is {}", value_of(MAIN).unwrap_or_default()),
                _ => "all rewards are high enough".to_owned(),
            }),
            Some((name, least)) => {
                let value = value_of(name).unwrap_or_default();
                let what = if *name == MAIN { "the reward".to_owned() } else { format!("the reward `{name}`") };
                let verdict = Verdict::unmet(
                    format!("{what} is {value}, which is less than {least}"),
                    format!("at least {least}"),
                    value.to_string(),
                );
                let share = missed.iter().filter_map(|(name, least)| Some(value_of(name)? / least));
                let score = share.fold(1.0, f64::min).clamp(0.0, 1.0);
                verdict.scored(score)
            }
        };
        verdict.evidence(evidence)
    }
}

/// Returns the rewards in the files of a verifier. Code of the agent that a verifier runs could add a file, so the lower
/// value counts.
fn rewards(files: &[RewardFile]) -> Result<Vec<(String, f64)>, String> {
    let mut rewards: Vec<(String, f64)> = Vec::new();
    for RewardFile { name, text, .. } in files.iter().filter(|file| file.unusable.is_none()) {
        for (key, value) in if name == JSON_FILE { map(text)? } else { single(name, text)? } {
            // If the file with several rewards has none with this name, all of them must be high enough.
            let is_other = name != JSON_FILE && !rewards.is_empty();
            match rewards.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) => *known = known.min(value),
                None if is_other => rewards.push((format!("{key} in {name}"), value)),
                None => rewards.push((key, value)),
            }
        }
    }
    Ok(rewards)
}

fn single(name: &str, text: &str) -> Result<Vec<(String, f64)>, String> {
    let value = text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    let shown = model::text::shortened(text.trim(), 40);
    value.map(|value| vec![(MAIN.to_owned(), value)]).ok_or_else(|| match shown.is_empty() {
        true => format!("the verifier left `{name}` empty"),
        false => format!("the verifier wrote `{shown}` to `{name}`, which is not a number"),
    })
}

fn map(text: &str) -> Result<Vec<(String, f64)>, String> {
    let fault = || format!("the verifier did not write a map of numbers to `{JSON_FILE}`");
    let map: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).map_err(|_| fault())?;
    let number = |value: &serde_json::Value| match value {
        serde_json::Value::Bool(value) => Some(f64::from(*value)),
        value => value.as_f64().filter(|value| value.is_finite()),
    };
    let rewards: Option<Vec<(String, f64)>> =
        map.into_iter().map(|(name, value)| Some((name, number(&value)?))).collect();
    rewards.filter(|rewards| !rewards.is_empty()).ok_or_else(fault)
}
