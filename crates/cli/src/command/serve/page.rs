//! The handlers of pages.

use std::sync::PoisonError;

use hyper::StatusCode;
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use report::{CasePage, CasesPage, LiveRun, ProgressPage, RunsPage};
use store::{ResultFilter, RunFilter, TrialFilter};

use super::api::{before, compared, run_of};
use super::field::{Field, Kind, parameter};
use super::problem::{Problem, redirect};
use super::record::listed;
use super::service::{Call, Service};
use crate::command::compare;
use crate::http_server::{Answer, page};

/// Number of runs on a page.
const RUNS: usize = 50;
/// Number of cases on a page.
const CASES: usize = 100;
/// Number of runs whose results the list of cases shows.
const COURSE: usize = 20;
/// Number of runs of a trend.
const TREND: usize = 100;
/// Number of runs of a trend that are searched for flaky cases.
const SEARCHED: usize = 50;
/// Number of trials on the page of a case.
const TRIALS: usize = 50;
/// Maximum number of runs that are looked at to find those in progress.
const OPEN: usize = 200;
/// Header with which a browser loads the page of what is in progress again.
const REFRESH: &str = "5";

/// Characters that are escaped in a part of a path: all that may have a meaning there.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A page.
pub struct Page {
    /// Path with its parts in braces.
    pub path: &'static str,
    /// Parameters in the address after `?`.
    pub parameters: &'static [Field],
    /// True if the scripts of a page load it. They show an error as it is, so it is plain text.
    pub is_for_scripts: bool,
    pub handler: fn(&Service, &Call) -> Result<Answer, Problem>,
}

const fn get(
    path: &'static str,
    parameters: &'static [Field],
    handler: fn(&Service, &Call) -> Result<Answer, Problem>,
) -> Page {
    Page { path, parameters, is_for_scripts: false, handler }
}

const fn for_scripts(path: &'static str, handler: fn(&Service, &Call) -> Result<Answer, Problem>) -> Page {
    Page { path, parameters: &[], is_for_scripts: true, handler }
}

/// All pages.
pub const PAGES: &[Page] = &[
    get("/", &[parameter("named", Kind::Text, ""), parameter("before", Kind::Text, "")], runs),
    get("/runs/{run}", &[], to_run),
    get("/runs/{run}/", &[], run),
    for_scripts("/runs/{run}/index", index),
    for_scripts("/runs/{run}/trial/{trial}", transcript),
    get("/cases", &[parameter("text", Kind::Text, ""), parameter("page", Kind::Number, "")], cases),
    get("/cases/{suite}/{case}", &[], case),
    get("/trend", &[], trend),
    get("/progress", &[], progress),
    get("/compare", &[parameter("before", Kind::Text, ""), parameter("after", Kind::Text, "")], to_comparison),
    get("/compare/{before}/{after}", &[], comparison),
];

fn html(html: String) -> Result<Answer, Problem> {
    Ok(page(StatusCode::OK, html, &report::record_policy()))
}

fn encoded(part: &str) -> String {
    utf8_percent_encode(part, PART).to_string()
}

fn runs(service: &Service, call: &Call) -> Result<Answer, Problem> {
    let (named, before) = (call.text("named"), before(call)?);
    let filter = RunFilter { last: Some(RUNS + 1), before, named: named.map(str::to_owned), ..RunFilter::default() };
    let mut runs = Vec::new();
    let mut has_more = false;
    if let Some(store) = service.record.open()? {
        let mut rows = store.runs(&filter)?;
        has_more = rows.len() > RUNS;
        rows.truncate(RUNS);
        for row in rows {
            runs.push(listed(&*store, row)?);
        }
        service.record.keep(store);
    }
    html(report::runs_page(&RunsPage { runs: &runs, named, before, has_more, now: Timestamp::now() }))
}

fn to_run(service: &Service, call: &Call) -> Result<Answer, Problem> {
    let run = service.record.read(|store| run_of(store, call, "run"))?;
    Ok(redirect(&format!("/runs/{}/", encoded(&run.id))))
}

fn run(service: &Service, call: &Call) -> Result<Answer, Problem> {
    service.record.read(|store| {
        let run = run_of(store, call, "run")?;
        // A label may belong to another run soon, so the page has the address of the run itself.
        if run.id != call.part("run") {
            return Ok(redirect(&format!("/runs/{}/", encoded(&run.id))));
        }
        let pages = service.pages(&run.id);
        let mut pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(pages.document(store)?)
    })
}

fn index(service: &Service, call: &Call) -> Result<Answer, Problem> {
    service.record.read(|store| {
        let run = run_of(store, call, "run")?;
        let pages = service.pages(&run.id);
        let mut pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(pages.index(store, call.known.as_deref())?)
    })
}

fn transcript(service: &Service, call: &Call) -> Result<Answer, Problem> {
    service.record.read(|store| {
        let run = run_of(store, call, "run")?;
        let pages = service.pages(&run.id);
        let pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
        let transcript = pages.transcript(store, call.part("trial"))?;
        transcript.ok_or_else(|| Problem::not_found("There is no such trial."))
    })
}

fn cases(service: &Service, call: &Call) -> Result<Answer, Problem> {
    let number = call.count("page", 1, usize::MAX / CASES)?.max(1);
    let text = call.text("text");
    let Some(store) = service.record.open()? else {
        return html(report::cases_page(&CasesPage { cases: &[], runs: &[], text, number: 1, parts: 0 }));
    };
    let mut cases = store.cases()?;
    if let Some(text) = text {
        cases.retain(|(suite, case)| format!("{suite}::{case}").contains(text));
    }
    let parts = cases.len().div_ceil(CASES);
    let cases: Vec<_> = cases.into_iter().skip((number - 1) * CASES).take(CASES).collect();
    let newest = ResultFilter { last: Some(COURSE), with_cases: COURSE, ..ResultFilter::default() };
    let runs = store.results(&newest)?;
    service.record.keep(store);
    html(report::cases_page(&CasesPage { cases: &cases, runs: &runs, text, number, parts }))
}

fn case(service: &Service, call: &Call) -> Result<Answer, Problem> {
    let (suite, case) = (call.part("suite"), call.part("case"));
    service.record.read(|store| {
        let of_case = ResultFilter {
            suite: Some(suite.to_owned()),
            case: Some(case.to_owned()),
            last: Some(TREND),
            with_cases: TREND,
        };
        let runs = store.results(&of_case)?;
        if runs.is_empty() {
            return Err(Problem::not_found(format!("No trial of {suite}::{case} is recorded.")));
        }
        // Run by run: a query over all runs would read each trial of the case.
        let mut trials = Vec::new();
        for run in &runs {
            let of_run = TrialFilter { text: Some(format!("{suite}::{case}@")), ..TrialFilter::of_run(&run.run.id) };
            trials
                .extend(store.trials(&of_run)?.into_iter().filter(|trial| trial.suite == suite && trial.case == case));
            if trials.len() >= TRIALS {
                break;
            }
        }
        trials.truncate(TRIALS);
        html(report::case_page(&CasePage { suite, case, runs: &runs, trials: &trials }))
    })
}

fn trend(service: &Service, _: &Call) -> Result<Answer, Problem> {
    let Some(store) = service.record.open()? else { return html(report::trend_page(&[])) };
    let filter = ResultFilter { last: Some(TREND), with_cases: SEARCHED, ..ResultFilter::default() };
    let runs = store.results(&filter)?;
    service.record.keep(store);
    html(report::trend_page(&runs))
}

fn progress(service: &Service, _: &Call) -> Result<Answer, Problem> {
    let mut runs = Vec::new();
    if let Some(store) = service.record.open()? {
        let open = RunFilter { last: Some(OPEN), interrupted: true, ..RunFilter::default() };
        for row in store.runs(&open)?.into_iter().filter(session::is_active) {
            let trials = store.live(&row.id)?;
            runs.push(LiveRun { listed: listed(&*store, row)?, trials });
        }
        service.record.keep(store);
    }
    let queue = service.record.queue()?.as_deref().map(crate::workers::view).transpose()?;
    let mut answer =
        html(report::progress_page(&ProgressPage { runs: &runs, queue: queue.as_ref(), now: Timestamp::now() }))?;
    answer.headers_mut().insert("refresh", hyper::header::HeaderValue::from_static(REFRESH));
    Ok(answer)
}

fn to_comparison(_: &Service, call: &Call) -> Result<Answer, Problem> {
    let (before, after) = (call.text("before").unwrap_or("previous"), call.text("after").unwrap_or("latest"));
    Ok(redirect(&format!("/compare/{}/{}", encoded(before), encoded(after))))
}

fn comparison(service: &Service, call: &Call) -> Result<Answer, Problem> {
    let [before, after] = compared(service, call)?;
    let document = compare::recorded_page(before, after, service.threshold, &service.folder)?;
    let policy = format!("{}; frame-ancestors 'none'", report::comparison_policy());
    Ok(page(StatusCode::OK, document, &policy))
}
