//! Faults that a case injects into its agent's environment, and what became of them.

use serde::{Deserialize, Serialize};

use crate::Excerpt;

/// Fault that a case injects.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseFault {
    /// Fault and its settings.
    pub action: FaultAction,
    /// Location in the file.
    pub source: Excerpt,
}

/// Settings of a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultAction {
    /// A model request gets an error status instead of a response.
    HttpStatus {
        /// HTTP status.
        status: u16,
        /// Value of the `retry-after` header, in seconds.
        retry_after: Option<u64>,
        /// Requests that it hits.
        requests: Occurrences,
    },
    /// The connection closes in the middle of a response.
    CutStream {
        /// Requests that it hits.
        requests: Occurrences,
    },
    /// A response arrives slowly.
    SlowStream {
        /// Delay before each event of the response, in milliseconds.
        delay_ms: u64,
        /// Requests that it hits.
        requests: Occurrences,
    },
    /// A response calls a tool with arguments that are not valid JSON.
    MalformedArguments {
        /// Requests that it hits.
        requests: Occurrences,
    },
    /// A program fails a number of times before it works.
    ToolFails {
        /// Name of the program.
        command: String,
        /// Number of runs that fail.
        times: u64,
        /// Exit code of these runs.
        exit_code: u8,
        /// Stderr of these runs.
        stderr: String,
    },
    /// The working directory has no space for further data.
    DiskFull {
        /// Space that is left, in bytes.
        free: u64,
    },
    /// Files and folders of the working directory cannot be changed.
    ReadOnly {
        /// Paths relative to the working directory, with `/`.
        paths: Vec<String>,
    },
    /// The clock of the agent's programs is wrong.
    ClockOffset {
        /// Offset in seconds.
        seconds: i64,
    },
}

impl FaultAction {
    /// Returns the kind of the fault.
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::HttpStatus { .. } => FaultKind::HttpStatus,
            Self::CutStream { .. } => FaultKind::CutStream,
            Self::SlowStream { .. } => FaultKind::SlowStream,
            Self::MalformedArguments { .. } => FaultKind::MalformedArguments,
            Self::ToolFails { .. } => FaultKind::ToolFails,
            Self::DiskFull { .. } => FaultKind::DiskFull,
            Self::ReadOnly { .. } => FaultKind::ReadOnly,
            Self::ClockOffset { .. } => FaultKind::ClockOffset,
        }
    }

    /// Returns the model requests that it hits; `None` if it does not affect model requests.
    pub fn requests(&self) -> Option<Occurrences> {
        match self {
            Self::HttpStatus { requests, .. }
            | Self::CutStream { requests }
            | Self::SlowStream { requests, .. }
            | Self::MalformedArguments { requests } => Some(*requests),
            Self::ToolFails { .. } | Self::DiskFull { .. } | Self::ReadOnly { .. } | Self::ClockOffset { .. } => None,
        }
    }

    /// Describes it in a few words.
    pub fn describe(&self) -> String {
        match self {
            Self::HttpStatus { status, retry_after: None, .. } => format!("HTTP {status}"),
            Self::HttpStatus { status, retry_after: Some(wait), .. } => {
                format!("HTTP {status} with `retry-after: {wait}`")
            }
            Self::CutStream { .. } => "a connection cut in the middle of the response".to_owned(),
            Self::SlowStream { delay_ms, .. } => format!("a response with {delay_ms} ms before each event"),
            Self::MalformedArguments { .. } => "a tool call with malformed arguments".to_owned(),
            Self::ToolFails { command, exit_code, .. } => format!("`{command}` fails with exit code {exit_code}"),
            Self::DiskFull { free } => format!("a working directory with {free} bytes of free space"),
            Self::ReadOnly { paths } => format!("read-only: {}", paths.join(", ")),
            Self::ClockOffset { seconds } => format!("a clock that is off by {seconds} s"),
        }
    }
}

/// Kind of fault, as written in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// A model request gets an error status instead of a response.
    HttpStatus,
    /// The connection closes in the middle of a response.
    CutStream,
    /// A response arrives slowly.
    SlowStream,
    /// A response calls a tool with arguments that are not valid JSON.
    MalformedArguments,
    /// A program fails a number of times before it works.
    ToolFails,
    /// The working directory has no space for further data.
    DiskFull,
    /// Files and folders of the working directory cannot be changed.
    ReadOnly,
    /// The clock of the agent's programs is wrong.
    ClockOffset,
}

impl FaultKind {
    /// Returns the name that is written in a case.
    pub fn name(self) -> &'static str {
        match self {
            Self::HttpStatus => "http_status",
            Self::CutStream => "cut_stream",
            Self::SlowStream => "slow_stream",
            Self::MalformedArguments => "malformed_arguments",
            Self::ToolFails => "tool_fails",
            Self::DiskFull => "disk_full",
            Self::ReadOnly => "read_only",
            Self::ClockOffset => "clock_offset",
        }
    }

    /// Returns `true` if it is in force from the start of a trial to its end.
    pub fn is_lasting(self) -> bool {
        matches!(self, Self::DiskFull | Self::ReadOnly | Self::ClockOffset)
    }

    /// Returns `true` if the agent has to repeat something after it.
    pub fn breaks(self) -> bool {
        matches!(self, Self::HttpStatus | Self::CutStream | Self::MalformedArguments | Self::ToolFails)
    }
}

/// Numbers of the model requests that a fault hits, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occurrences {
    /// First number that is hit.
    pub at: u64,
    /// Distance between the numbers that are hit, at least 1.
    pub every: u64,
    /// How many numbers are hit; `None` for all.
    pub times: Option<u64>,
}

impl Occurrences {
    /// Returns `true` if `number` is hit.
    pub fn includes(&self, number: u64) -> bool {
        let Some(after) = number.checked_sub(self.at) else { return false };
        let every = self.every.max(1);
        after % every == 0 && self.times.is_none_or(|times| after / every < times)
    }
}

/// One occurrence of a fault in a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultOccurrence {
    /// Kind of the fault.
    pub fault: FaultKind,
    /// Number of the model request or of the program's run, from 1; absent for a fault that lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// What was done, in one line.
    pub detail: String,
}

impl FaultOccurrence {
    /// Describes it in one line.
    pub fn describe(&self) -> String {
        match (self.number, self.fault) {
            (Some(number), FaultKind::ToolFails) => format!("run {number}: {}", self.detail),
            (Some(number), _) => format!("model request {number}: {}", self.detail),
            (None, _) => self.detail.clone(),
        }
    }
}

/// Report on a fault of a case: what became of it in a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultReport {
    /// Kind.
    pub fault: FaultKind,
    /// Description in a few words.
    pub detail: String,
    /// Numbers of the model requests, or of the program's runs, that it hit, from 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hits: Vec<u64>,
    /// Total number of model requests in the trial, or of the program's runs.
    #[serde(default)]
    pub total: u64,
}

impl FaultReport {
    /// Returns `true` if it occurred, or was in force.
    pub fn has_occurred(&self) -> bool {
        self.fault.is_lasting() || !self.hits.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(at: u64, every: u64, times: Option<u64>) -> Vec<u64> {
        let occurrences = Occurrences { at, every, times };
        (0..10).filter(|number| occurrences.includes(*number)).collect()
    }

    #[test]
    fn occurrences_begin_at_a_number_and_end_after_some() {
        assert_eq!(numbers(3, 1, Some(1)), [3]);
        assert_eq!(numbers(2, 1, Some(3)), [2, 3, 4]);
        assert_eq!(numbers(2, 3, None), [2, 5, 8]);
        assert_eq!(numbers(1, 4, Some(2)), [1, 5]);
    }

    #[test]
    fn names_are_those_of_the_serialised_form() {
        let kinds = [
            FaultKind::HttpStatus,
            FaultKind::CutStream,
            FaultKind::SlowStream,
            FaultKind::MalformedArguments,
            FaultKind::ToolFails,
            FaultKind::DiskFull,
            FaultKind::ReadOnly,
            FaultKind::ClockOffset,
        ];
        for kind in kinds {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }
}
