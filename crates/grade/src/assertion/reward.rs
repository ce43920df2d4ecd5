//! `reward`: a verifier, which runs after the agent has finished, writes a reward that is high enough.

use model::{Node, NodeKind};

use super::command::Command;
use super::prelude::*;
use crate::rewards::{Least, MAIN};

/// Default timeout of a verifier, in milliseconds.
const TIMEOUT_MS: u64 = 600_000;

pub(crate) const ASSERTION: Assertion = Assertion::written("reward", parse)
    .summary("A verifier that runs after the agent has finished writes a reward of at least 1.")
    .fields(&[
        Field::required("run", "string", "Command that runs the verifier. It writes into the folder `graded.rewards`."),
        Field::optional("min", "number, or map of numbers", "Least reward, or the least value of each named reward.")
            .or("1 for `reward`, or for all rewards if none is called so"),
        Field::optional("timeout", "duration", "Time limit, such as `30s` or `2m`. A number is milliseconds.")
            .or("10m"),
        TITLE,
    ])
    .pass(
        || json!({"id": "verifier", "type": "reward", "run": "/tests/test.sh"}),
        || EvidenceBuilder::new().rewarded("/tests/test.sh", "1\n"),
    )
    .fail(
        || json!({"id": "verifier", "type": "reward", "run": "/tests/test.sh"}),
        || EvidenceBuilder::new().rewarded("/tests/test.sh", "0.5\n"),
    );

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let least = match reading.fields.get("min") {
        None => Some(Vec::new()),
        Some(node) => {
            let least = least(node);
            if least.is_none() {
                reading.problems.push(node.error("`min` must be a number, or a map of numbers"));
            }
            least
        }
    };
    let command = Command::rewarded(TIMEOUT_MS, Least(least.clone().unwrap_or_default()), reading);
    least?;
    Some(Arc::new(command?))
}

/// Reads the least values of rewards; `None` if one is not a number.
fn least(node: &Node) -> Option<Vec<(String, f64)>> {
    let number = |node: &Node| if let NodeKind::Number(number) = &node.kind { number.as_f64() } else { None };
    match &node.kind {
        NodeKind::Map(entries) => {
            entries.iter().map(|(name, value)| Some((name.value.clone(), number(value)?))).collect()
        }
        _ => Some(vec![(MAIN.to_owned(), number(node)?)]),
    }
}

#[cfg(test)]
mod tests {
    use model::{Probed, Rerun, RewardFile, Status};
    use serde_json::Value;

    use super::*;
    use crate::check::compile;
    use crate::check::tests::{case, judged};
    use crate::context::Context;

    fn file(name: &str, text: &str) -> RewardFile {
        RewardFile { name: name.to_owned(), text: text.to_owned(), unusable: None }
    }

    fn of(min: Option<Value>, files: &[(&str, &str)]) -> (Status, String, Option<f64>) {
        let files: Vec<RewardFile> = files.iter().map(|(name, text)| file(name, text)).collect();
        let mut assertion = json!({"id": "v", "type": "reward", "run": "/tests/test.sh"});
        if let Some(min) = min {
            assertion["min"] = min;
        }
        let story = EvidenceBuilder::new().rewarded_by("/tests/test.sh", files, None);
        let finding = judged(&assertion, &story.evidence());
        (finding.status, finding.reason, finding.score)
    }

    #[test]
    fn a_reward_is_compared_with_the_least_one() {
        let txt = "reward.txt";
        assert_eq!(of(None, &[(txt, " 1.0\n")]).0, Status::Met);
        let (status, reason, score) = of(None, &[(txt, "0.25")]);
        assert_eq!((status, reason.as_str()), (Status::Unmet, "the reward is 0.25, which is less than 1"));
        assert_eq!(score, Some(0.25));
        assert_eq!(of(Some(json!(0.25)), &[(txt, "0.25")]).0, Status::Met);
        assert_eq!(of(None, &[(txt, "-1")]).2, Some(0.0));
        for (text, reason) in [
            ("", "the verifier left `reward.txt` empty"),
            ("nan", "the verifier wrote `nan` to `reward.txt`, which is not a number"),
            ("1 passed", "the verifier wrote `1 passed` to `reward.txt`, which is not a number"),
        ] {
            assert_eq!(of(None, &[(txt, text)]), (Status::Undecided, reason.to_owned(), None));
        }
        assert_eq!(of(None, &[]).1, "the verifier wrote no reward; it exited with code 0");
    }

    #[test]
    fn several_rewards_have_names() {
        let json = |text| of(None, &[("reward.json", text)]);
        assert_eq!(json("{\"reward\": 1, \"speed\": 0.1}").0, Status::Met);
        assert_eq!(json("{\"safe\": 1, \"done\": true}").0, Status::Met);
        assert_eq!(json("{\"safe\": 1, \"done\": 0.5}").1, "the reward `done` is 0.5, which is less than 1");
        for text in ["{}", "[1]", "1", "{\"reward\": \"1\"}", "{"] {
            assert_eq!(json(text).0, Status::Undecided, "{text}");
        }
        let least = |min: Value| of(Some(min), &[("reward.json", "{\"safe\": 0.5, \"done\": 0.5}")]);
        assert_eq!(least(json!({"safe": 0.5})).0, Status::Met);
        assert_eq!(least(json!({"safe": 0.5, "done": 1})).0, Status::Unmet);
        assert_eq!(least(json!(0.5)).1, "the verifier wrote no reward `reward`");
    }

    #[test]
    fn a_file_that_was_added_does_not_raise_a_reward() {
        let forged = [("reward.json", "{\"reward\": 1}"), ("reward.txt", "0")];
        assert_eq!(of(None, &forged).0, Status::Unmet);
        let forged = [("reward.json", "{\"reward\": 0}"), ("reward.txt", "1")];
        assert_eq!(of(None, &forged).0, Status::Unmet);
        let forged = [("reward.json", "{\"done\": 0}"), ("reward.txt", "1")];
        assert_eq!(of(None, &forged).0, Status::Unmet);
        let forged = [("reward.json", "{\"done\": 1}"), ("reward.txt", "0")];
        assert_eq!(of(None, &forged).0, Status::Unmet);
    }

    #[test]
    fn what_is_in_place_of_a_reward_is_named_and_never_passes() {
        let directory = RewardFile { unusable: Some("it is a directory".to_owned()), ..file("reward.txt", "") };
        let with = |others: &[RewardFile]| {
            let files = [others, std::slice::from_ref(&directory)].concat();
            let story = EvidenceBuilder::new().rewarded_by("/tests/test.sh", files, None);
            let finding = judged(&json!({"id": "v", "type": "reward", "run": "/tests/test.sh"}), &story.evidence());
            (finding.status, finding.reason)
        };
        let reason = "`reward.txt` does not count as a reward: it is a directory".to_owned();
        assert_eq!(with(&[]), (Status::Undecided, reason.clone()));
        assert_eq!(with(&[file("reward.json", "{\"reward\": 1}")]), (Status::Undecided, reason));
        assert_eq!(with(&[file("reward.json", "{\"reward\": 0}")]).0, Status::Unmet);
    }

    #[test]
    fn a_failure_counts_only_if_the_solution_of_the_task_passes() {
        let with = |files: Vec<RewardFile>| {
            let found = EvidenceBuilder::new().rewarded_by("/tests/test.sh", files, None).evidence();
            let found: Probed = found.collected.probes[0].found.clone();
            let solution = Rerun { files: Vec::new(), found };
            let failed = vec![file("reward.txt", "0")];
            let story = EvidenceBuilder::new().rewarded_by("/tests/test.sh", failed, Some(solution));
            let finding = judged(&json!({"id": "v", "type": "reward", "run": "/tests/test.sh"}), &story.evidence());
            (finding.status, finding.reason)
        };
        assert_eq!(with(vec![file("reward.txt", "1")]).0, Status::Unmet);
        let (status, reason) = with(vec![file("reward.txt", "0")]);
        assert_eq!(status, Status::Undecided);
        assert_eq!(
            reason,
            "the task's own solution does not pass in this sandbox either: the reward is 0, which is less than 1"
        );
        assert_eq!(with(Vec::new()).0, Status::Undecided);
    }

    #[test]
    fn a_least_reward_is_a_number() {
        let (_, problems) =
            compile(&case(&[json!({"id": "v", "type": "reward", "run": "x", "min": "high"})]), &Context::default());
        assert_eq!(problems[0].message, "`min` must be a number, or a map of numbers");
    }
}
