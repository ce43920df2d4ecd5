//! The table of the API. The routes and the OpenAPI description are made from it.

use super::api;
use super::field::{CANCEL, CONTINUE, Field, Kind, RESUME, RETRY, SUBMISSION, parameter};
use super::problem::Problem;
use super::service::{Call, Service};
use super::tokens::Role;
use crate::http_server::Answer;

/// An address of the API.
pub struct Endpoint {
    /// Path with its parts in braces.
    pub path: &'static str,
    /// What a token needs to use it. A request that needs [`Role::Run`] is a POST, the others are GETs.
    pub role: Role,
    pub summary: &'static str,
    /// Parameters in the address after `?`.
    pub parameters: &'static [Field],
    /// Fields of the request's JSON.
    pub fields: &'static [Field],
    /// Status of the answer if all is well, and its description.
    pub answer: (u16, &'static str),
    pub handler: fn(&Service, &Call) -> Result<Answer, Problem>,
}

/// Descriptions of the parts of paths.
pub const PARTS: [(&str, &str); 4] = [
    ("run", "Run: prefix of its id, label (its newest run), `latest`, `previous` or `latest~N`"),
    ("trial", "Trial, such as `suite::case@agent#1`, percent-encoded"),
    ("before", "Earlier run, named as everywhere"),
    ("after", "Later run, named as everywhere"),
];

const LAST: Field = parameter("last", Kind::Number, "Maximum number of entries, up to 1000");
const OFFSET: Field =
    parameter("offset", Kind::Number, "Number of entries to skip: `next_offset` of the previous part");

const fn get(
    path: &'static str,
    summary: &'static str,
    parameters: &'static [Field],
    answer: &'static str,
    handler: fn(&Service, &Call) -> Result<Answer, Problem>,
) -> Endpoint {
    Endpoint { path, role: Role::Read, summary, parameters, fields: &[], answer: (200, answer), handler }
}

const fn post(
    path: &'static str,
    summary: &'static str,
    fields: &'static [Field],
    answer: (u16, &'static str),
    handler: fn(&Service, &Call) -> Result<Answer, Problem>,
) -> Endpoint {
    Endpoint { path, role: Role::Run, summary, parameters: &[], fields, answer, handler }
}

const SUBMITTED: (u16, &str) = (201, "`run` is the id of the run, and `page` the path of its page");
const CHANGED: (u16, &str) = (200, "`state` is the new state of the run");

/// All addresses.
pub const ENDPOINTS: &[Endpoint] = &[
    get(
        "/api/runs",
        "List runs, newest first",
        &[
            LAST,
            parameter("before", Kind::Text, "Only runs that started before this time: `next` of the previous part"),
            parameter("named", Kind::Text, "Only runs with this label, or with an id that starts with it"),
        ],
        "`runs`, as `trialrun history --json` prints them, and `next`, which is null after the last run",
        api::runs,
    ),
    get(
        "/api/runs/{run}",
        "Show a run: its state, trials in progress, and what its waiting trials wait for",
        &[],
        "`run`, `live` and `queue`, which is null if workers do not run its trials",
        api::run,
    ),
    get(
        "/api/runs/{run}/trials",
        "List the finished trials of a run, the most recently finished first",
        &[
            LAST,
            OFFSET,
            parameter("suite", Kind::Text, "Only trials of this suite"),
            parameter("case", Kind::Text, "Only trials of this case"),
        ],
        "`trials`, and `next_offset`, which is null after the last trial",
        api::trials,
    ),
    get(
        "/api/runs/{run}/trials/{trial}",
        "Show a trial with its transcript and its findings",
        &[],
        "The trial, as `trialrun show --json` prints it",
        api::trial,
    ),
    get(
        "/api/runs/{run}/results",
        "Write a report of a run",
        &[parameter("format", Kind::Text, "`json` (default), `jsonl`, `junit`, `markdown`, `ctrf` or `tap`")],
        "The report, as `trialrun report` writes it",
        api::results,
    ),
    get(
        "/api/compare/{before}/{after}",
        "Compare two runs",
        &[],
        "The comparison, as `trialrun compare --json` prints it",
        api::comparison,
    ),
    get(
        "/api/cases",
        "List the suites and cases of all recorded trials",
        &[LAST, OFFSET, parameter("text", Kind::Text, "Only cases with this text in their suite or id")],
        "`cases`, and `next_offset`, which is null after the last case",
        api::cases,
    ),
    get(
        "/api/trend",
        "Show pass rate, tokens, cost and time over runs",
        &[
            LAST,
            parameter("suite", Kind::Text, "Count only trials of this suite or skill"),
            parameter("case", Kind::Text, "Count only trials of this case"),
        ],
        "The trend, as `trialrun trend --json` prints it",
        api::trend,
    ),
    get(
        "/api/queue",
        "Show the workers, and the runs whose trials they run",
        &[],
        "`workers` and `runs`, as `trialrun workers --json` prints them",
        api::queue,
    ),
    post("/api/runs", "Start a run whose trials workers run", &SUBMISSION, SUBMITTED, api::submit),
    post(
        "/api/runs/{run}/retry",
        "Start a new run of the cases that did not pass in a run, or did not finish, with its agents and models",
        &RETRY,
        SUBMITTED,
        api::retry,
    ),
    post("/api/runs/{run}/resume", "Continue an interrupted run as it was started", &RESUME, SUBMITTED, api::resume),
    post("/api/runs/{run}/pause", "Let workers start no more trials of a run", &[], CHANGED, api::pause),
    post(
        "/api/runs/{run}/continue",
        "Let workers start trials of a paused run again, or change the limits of a run",
        &CONTINUE,
        CHANGED,
        api::resume_queue,
    ),
    post("/api/runs/{run}/cancel", "Stop a run, or one of its trials", &CANCEL, CHANGED, api::cancel),
];
