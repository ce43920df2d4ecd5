//! The part of the cases that a run executes, as `--shard` selects it.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::Error;

/// Part of the cases, as written after `--shard`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardArg {
    /// `K/N`: the K-th of N parts, from 1.
    Part(u64, u64),
    /// `auto` or `auto/N`: the part of this job among N parallel jobs.
    Auto(Option<u64>),
}

impl ShardArg {
    /// Parses a part.
    ///
    /// # Errors
    /// Returns a description of the valid forms.
    pub fn parse(written: &str) -> Result<Self, String> {
        let parsed = match written.split_once('/') {
            None => (written == "auto").then_some(Self::Auto(None)),
            Some(("auto", n)) => n.parse().ok().filter(|n| *n >= 1).map(|n| Self::Auto(Some(n))),
            Some((k, n)) => k.parse().ok().zip(n.parse().ok()).map(|(k, n)| Self::Part(k, n)),
        };
        let is_valid = |part: &Self| !matches!(part, Self::Part(k, n) if *k < 1 || k > n);
        parsed.filter(is_valid).ok_or_else(|| "K/N with K from 1 to N, such as 2/4, or `auto` or `auto/N`".to_owned())
    }
}

impl fmt::Display for ShardArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Part(k, n) => write!(f, "{k}/{n}"),
            Self::Auto(None) => f.write_str("auto"),
            Self::Auto(Some(n)) => write!(f, "auto/{n}"),
        }
    }
}

/// Variables with the number of a job among parallel jobs.
struct Numbering {
    index: &'static str,
    /// Variable with the number of jobs.
    count: Option<&'static str>,
    first: First,
}

/// Number of the first job.
enum First {
    At(u64),
    /// In these variables, with the step from each number to the next one and the last number.
    Array([&'static str; 3]),
}

const NUMBERINGS: [Numbering; 7] = [
    Numbering {
        index: "SLURM_ARRAY_TASK_ID",
        count: Some("SLURM_ARRAY_TASK_COUNT"),
        first: First::Array(["SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP", "SLURM_ARRAY_TASK_MAX"]),
    },
    Numbering { index: "CI_NODE_INDEX", count: Some("CI_NODE_TOTAL"), first: First::At(1) },
    Numbering { index: "CIRCLE_NODE_INDEX", count: Some("CIRCLE_NODE_TOTAL"), first: First::At(0) },
    Numbering { index: "BUILDKITE_PARALLEL_JOB", count: Some("BUILDKITE_PARALLEL_JOB_COUNT"), first: First::At(0) },
    Numbering { index: "SYSTEM_JOBPOSITIONINPHASE", count: Some("SYSTEM_TOTALJOBSINPHASE"), first: First::At(1) },
    Numbering { index: "BITBUCKET_PARALLEL_STEP", count: Some("BITBUCKET_PARALLEL_STEP_COUNT"), first: First::At(0) },
    Numbering { index: "JOB_COMPLETION_INDEX", count: None, first: First::At(0) },
];

/// Hint for errors whose cause is the environment.
const BY_HAND: &str = "write the part yourself: `--shard K/N`";

/// Returns the part of this job among `jobs` parallel jobs, and the variable that numbers it.
///
/// # Errors
/// Returns an error if the variables do not give exactly one part.
pub(crate) fn of_job(
    jobs: Option<u64>,
    environment: &BTreeMap<String, String>,
) -> Result<((u64, u64), &'static str), Error> {
    let is_set = |numbering: &&Numbering| value(numbering.index, environment).is_some();
    let mut found = NUMBERINGS.iter().filter(is_set);
    let Some(numbering) = found.next() else {
        let names: Vec<&str> = NUMBERINGS.iter().map(|numbering| numbering.index).collect();
        return Err(Error::usage("`--shard auto` finds no variable that numbers this job")
            .hint(format!("it reads: {}", names.join(", ")))
            .hint("in a GitHub workflow with a matrix, write `--shard ${{ matrix.shard }}/4`"));
    };
    let part = numbering.part(jobs, environment)?;
    for other in found {
        if other.part(jobs, environment)? != part {
            let (one, other) = (numbering.index, other.index);
            return Err(Error::usage(format!("`{one}` and `{other}` number this job differently")).hint(BY_HAND));
        }
    }
    Ok((part, numbering.index))
}

impl Numbering {
    fn part(&self, jobs: Option<u64>, environment: &BTreeMap<String, String>) -> Result<(u64, u64), Error> {
        let index = required(self.index, environment)?;
        let counted = self.count.map(|name| number(name, environment)).transpose()?.flatten();
        if let (Some(name), Some(counted), Some(jobs)) = (self.count, counted, jobs)
            && counted != jobs
        {
            return Err(Error::usage(format!("`--shard auto/{jobs}` does not go with `{name}`, which is {counted}"))
                .hint(BY_HAND));
        }
        let Some(of) = counted.or(jobs) else {
            return Err(Error::usage(format!("`{}` does not say how many jobs there are", self.index))
                .hint("write `--shard auto/N`, where N is the number of jobs"));
        };
        let (first, step, last) = match self.first {
            First::At(first) => (first, 1, None),
            First::Array([first, step, last]) => {
                let [first, step, last] = [first, step, last].map(|name| required(name, environment));
                (first?, step?, Some(last?))
            }
        };
        let place = |number: u64| {
            let distance = number.checked_sub(first)?;
            (distance.checked_rem(step)? == 0).then(|| distance / step).filter(|place| *place < of)
        };
        if last.is_some_and(|last| place(last).map(|place| place + 1) != Some(of)) {
            return Err(
                Error::usage(format!("`{}` counts jobs with gaps between their numbers", self.index)).hint(BY_HAND)
            );
        }
        let place = place(index).ok_or_else(|| {
            let jobs = report::counted(of.try_into().unwrap_or(usize::MAX), "job");
            Error::usage(format!("`{}` is {index}, outside of {jobs} numbered from {first}", self.index)).hint(BY_HAND)
        })?;
        Ok((place + 1, of))
    }
}

fn value<'e>(name: &str, environment: &'e BTreeMap<String, String>) -> Option<&'e str> {
    environment.get(name).map(|text| text.trim()).filter(|text| !text.is_empty())
}

fn number(name: &str, environment: &BTreeMap<String, String>) -> Result<Option<u64>, Error> {
    let Some(text) = value(name, environment) else { return Ok(None) };
    match text.parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(Error::usage(format!("`{name}` is `{text}`, which is not a number")).hint(BY_HAND)),
    }
}

fn required(name: &str, environment: &BTreeMap<String, String>) -> Result<u64, Error> {
    number(name, environment)?.ok_or_else(|| Error::usage(format!("`{name}` is not set")).hint(BY_HAND))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(jobs: Option<u64>, variables: &str) -> Result<(u64, u64), String> {
        let pairs = variables.split_whitespace().filter_map(|pair| pair.split_once('='));
        let environment = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        of_job(jobs, &environment).map(|(part, _)| part).map_err(|error| error.to_string())
    }

    fn array(id: u64, [min, max, step, count]: [u64; 4]) -> String {
        format!(
            "SLURM_ARRAY_TASK_ID={id} SLURM_ARRAY_TASK_MIN={min} SLURM_ARRAY_TASK_MAX={max} \
             SLURM_ARRAY_TASK_STEP={step} SLURM_ARRAY_TASK_COUNT={count}"
        )
    }

    #[test]
    fn a_part_is_parsed_and_shown() {
        for text in ["2/4", "auto", "auto/3", "1/1"] {
            assert_eq!(ShardArg::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "0/2", "3/2", "auto/0", "auto/", "auto/x", "2", "a/b", "Auto"] {
            assert!(ShardArg::parse(text).unwrap_err().starts_with("K/N"), "{text}");
        }
    }

    #[test]
    fn each_service_numbers_jobs_in_its_own_way() {
        for (jobs, variables, expected) in [
            (None, &*array(0, [0, 3, 1, 4]), (1, 4)),
            (None, &array(4, [1, 4, 1, 4]), (4, 4)),
            (None, &array(7, [1, 7, 3, 3]), (3, 3)),
            (Some(4), &array(2, [0, 3, 1, 4]), (3, 4)),
            (None, "CI_NODE_INDEX=1 CI_NODE_TOTAL=3", (1, 3)),
            (None, "CI_NODE_INDEX=3 CI_NODE_TOTAL=3", (3, 3)),
            (None, "CIRCLE_NODE_INDEX=0 CIRCLE_NODE_TOTAL=3", (1, 3)),
            (None, "BUILDKITE_PARALLEL_JOB=2 BUILDKITE_PARALLEL_JOB_COUNT=3", (3, 3)),
            (None, "SYSTEM_JOBPOSITIONINPHASE=2 SYSTEM_TOTALJOBSINPHASE=2", (2, 2)),
            (None, "BITBUCKET_PARALLEL_STEP=1 BITBUCKET_PARALLEL_STEP_COUNT=2", (2, 2)),
            (Some(4), "JOB_COMPLETION_INDEX=3", (4, 4)),
            (Some(3), "CI_NODE_INDEX=2", (2, 3)),
            (Some(2), "JOB_COMPLETION_INDEX=0 CI_NODE_INDEX=1 CI_NODE_TOTAL=2 CIRCLE_NODE_INDEX=", (1, 2)),
        ] {
            assert_eq!(part(jobs, variables), Ok(expected), "{variables}");
        }
    }

    #[test]
    fn variables_without_one_part_are_refused() {
        for (jobs, variables, expected) in [
            (None, "CI_NODE_TOTAL=1", "`--shard auto` finds no variable that numbers this job"),
            (None, "JOB_COMPLETION_INDEX=0", "`JOB_COMPLETION_INDEX` does not say how many jobs there are"),
            (Some(4), "JOB_COMPLETION_INDEX=4", "`JOB_COMPLETION_INDEX` is 4, outside of 4 jobs numbered from 0"),
            (None, "CI_NODE_INDEX=0 CI_NODE_TOTAL=3", "`CI_NODE_INDEX` is 0, outside of 3 jobs numbered from 1"),
            (None, "CI_NODE_INDEX=2 CI_NODE_TOTAL=1", "`CI_NODE_INDEX` is 2, outside of 1 job numbered from 1"),
            (None, "CI_NODE_INDEX=1 CI_NODE_TOTAL=0", "`CI_NODE_INDEX` is 1, outside of 0 jobs numbered from 1"),
            (None, "CI_NODE_INDEX=-1 CI_NODE_TOTAL=3", "`CI_NODE_INDEX` is `-1`, which is not a number"),
            (None, "CI_NODE_INDEX=1 CI_NODE_TOTAL=x", "`CI_NODE_TOTAL` is `x`, which is not a number"),
            (None, &array(1, [1, 9, 1, 3]), "`SLURM_ARRAY_TASK_ID` counts jobs with gaps between their numbers"),
            (None, &array(1, [1, 9, 0, 3]), "`SLURM_ARRAY_TASK_ID` counts jobs with gaps between their numbers"),
            (None, &array(5, [1, 4, 1, 4]), "`SLURM_ARRAY_TASK_ID` is 5, outside of 4 jobs numbered from 1"),
            (None, "SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=2", "`SLURM_ARRAY_TASK_MIN` is not set"),
            (
                Some(8),
                "CI_NODE_INDEX=1 CI_NODE_TOTAL=3",
                "`--shard auto/8` does not go with `CI_NODE_TOTAL`, which is 3",
            ),
            (
                None,
                "CI_NODE_INDEX=1 CI_NODE_TOTAL=2 CIRCLE_NODE_INDEX=0 CIRCLE_NODE_TOTAL=1",
                "`CI_NODE_INDEX` and `CIRCLE_NODE_INDEX` number this job differently",
            ),
        ] {
            assert_eq!(part(jobs, variables).as_ref().map_err(String::as_str), Err(expected), "{variables}");
        }
    }
}
