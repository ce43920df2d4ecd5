//! Queries for lists, which use only columns, and for single records.

use jiff::Timestamp;
use model::{Event, RunInfo, RunRow, Summary, TrialRecord, TrialRow};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::lease;
use super::pool::{Parameter, PostgresError, Session};
use crate::columns::{Column, LISTED, time, trial_row};
use crate::pack::{damaged, event, unpack};
use crate::packs::{PackRange, Packs};
use crate::{RunFilter, StoreError, TrialFilter};

/// Minimum length of a shortened id.
const MIN_ID_LEN: usize = 8;

/// Columns of a run as [`run`] reads them: all, and the ids before and after its own.
pub(super) const RUN: &str = "runs.*, (SELECT max(id) FROM runs AS other WHERE other.id < runs.id) AS id_before,
    (SELECT min(id) FROM runs AS other WHERE other.id > runs.id) AS id_after";

pub(super) async fn runs(session: &mut Session, filter: &RunFilter) -> Result<Vec<RunRow>, PostgresError> {
    let select = format!(
        "SELECT {RUN} FROM runs
         WHERE started_us < $1 AND ($2::text IS NULL OR label = $2 OR (id >= $2 AND id < $2 || chr(1114111)))
             AND ($3 OR finished_us IS NULL OR signal IS NOT NULL)
         ORDER BY started_us DESC, no DESC LIMIT $4"
    );
    let before = filter.before.map_or(i64::MAX, Timestamp::as_microsecond);
    let values: [Parameter<'_>; 4] = [&before, &filter.named, &!filter.interrupted, &limit(filter.last)];
    let rows = session.query(&select, &values).await?;
    Ok(rows.iter().map(run).collect::<Result<_, _>>()?)
}

/// Reads a row of the `runs` table.
pub(super) fn run(row: &Row) -> Result<RunRow, tokio_postgres::Error> {
    let id: String = row.try_get("id")?;
    // No other id shares a longer prefix than the neighbours in sort order.
    let shared = |name: &str| {
        let other: Option<&str> = row.try_get(name)?;
        let shared = |other: &str| id.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
        Ok::<_, tokio_postgres::Error>(other.map_or(0, shared))
    };
    let length = (shared("id_before")?.max(shared("id_after")?) + 1).max(MIN_ID_LEN);
    Ok(RunRow {
        short: id.chars().take(length).collect(),
        id,
        label: row.try_get("label")?,
        regrade_of: row.try_get("regrade_of")?,
        started_at: time(row.try_get("started_us")?),
        finished_at: row.try_get::<_, Option<i64>>("finished_us")?.map(time),
        duration_ms: row.try_get::<_, Option<i64>>("duration_ms")?.map(i64::unsigned_abs),
        signal: row.try_get("signal")?,
        lease: lease::read(row)?,
        trialrun_version: row.try_get("version")?,
        agents: serde_json::from_str(row.try_get("agents")?).unwrap_or_default(),
        planned: count(row, "planned")?,
        finished: count(row, "finished")?,
        sequential: row.try_get::<_, i64>("sequential")? != 0,
        missing_shards: row
            .try_get::<_, Option<&str>>("missing_shards")?
            .and_then(|json| serde_json::from_str(json).ok()),
        hash: row.try_get::<_, Option<&[u8]>>("chain")?.map(model::text::hex),
        summary: row.try_get::<_, Option<&str>>("summary")?.and_then(|json| {
            let mut summary: Summary = serde_json::from_str(json).ok()?;
            summary.update_pass_rate();
            Some(summary)
        }),
    })
}

/// Conditions and values of a filter for trials.
pub(super) struct Trials {
    select: String,
    texts: Vec<String>,
    last: i64,
}

impl Trials {
    pub(super) fn new(filter: &TrialFilter) -> Self {
        let mut conditions: Vec<String> = Vec::new();
        let mut texts: Vec<String> = Vec::new();
        let mut add = |text: &str| {
            texts.push(text.to_owned());
            format!("${}", texts.len())
        };
        let mut require = |condition: &str, value: &Option<String>| {
            if let Some(value) = value {
                conditions.push(condition.replace('?', &add(value)));
            }
        };
        require("runs.id = ?", &filter.run);
        require("trials.suite = ?", &filter.suite);
        require("trials.case_id = ?", &filter.case);
        require("position(? IN trials.id) > 0", &filter.text);
        // An empty name is a prefix of everything.
        if let Some(name) = filter.named.as_deref().filter(|name| !name.is_empty()) {
            let starts =
                |column: &str, with: &str| format!("({column} >= {with} AND {column} < {with} || chr(1114111))");
            let name_at = add(name);
            let mut any = vec![starts("trials.id", &name_at), starts("trials.case_id", &name_at)];
            // An id without its arm.
            if let Some((before, _)) = name.rsplit_once('#') {
                let is_same = format!("trials.suite || '::' || trials.case_id || '#' || trials.repetition = {name_at}");
                any.push(format!("({} AND {is_same})", starts("trials.id", &add(&format!("{before}@")))));
            }
            conditions.push(format!("({})", any.join(" OR ")));
        }
        let conditions = match conditions.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", conditions.join(" AND ")),
        };
        let last = texts.len() + 1;
        let select = format!(
            "SELECT {LISTED} FROM runs JOIN trials ON runs.no = trials.run{conditions}
             ORDER BY runs.started_us DESC, runs.no DESC, trials.finished_us DESC, trials.no DESC LIMIT ${last}"
        );
        Self { select, texts, last: limit(filter.last).unwrap_or(i64::MAX) }
    }

    fn values(&self) -> Vec<Parameter<'_>> {
        self.texts.iter().map(|text| text as Parameter<'_>).chain([&self.last as Parameter<'_>]).collect()
    }

    /// Returns all of them at once.
    pub(super) async fn read(&self, session: &mut Session) -> Result<Vec<TrialRow>, PostgresError> {
        let rows = session.query(&self.select, &self.values()).await?;
        rows.iter().map(listed).collect()
    }

    /// Lets the server prepare them, to be read with [`fetch`].
    pub(super) async fn declare(&self, session: &mut Session) -> Result<(), PostgresError> {
        session.client.execute(&format!("DECLARE found NO SCROLL CURSOR FOR {}", self.select), &self.values()).await?;
        Ok(())
    }
}

/// Returns the next trials of those that the server has prepared.
pub(super) async fn fetch(session: &mut Session, many: usize) -> Result<Vec<TrialRow>, PostgresError> {
    let rows = session.query(&format!("FETCH {many} FROM found"), &[]).await?;
    rows.iter().map(listed).collect()
}

fn listed(row: &Row) -> Result<TrialRow, PostgresError> {
    let mut columns = 0..;
    trial_row(|| column(row, columns.next().unwrap_or_default()))
}

/// Reads a column of any of the types that are used.
pub(super) fn column(row: &Row, at: usize) -> Result<Column<'static>, PostgresError> {
    let kind = row.columns().get(at).map(tokio_postgres::Column::type_);
    Ok(match kind {
        Some(&Type::INT8) => row.try_get::<_, Option<i64>>(at)?.into(),
        Some(&Type::FLOAT8) => row.try_get::<_, Option<f64>>(at)?.into(),
        _ => row.try_get::<_, Option<String>>(at)?.into(),
    })
}

pub(super) async fn info(session: &mut Session, run: &str) -> Result<RunInfo, PostgresError> {
    let select = "SELECT info FROM infos JOIN runs ON runs.no = infos.run WHERE runs.id = $1";
    let row = session.first(select, &[&run]).await?.ok_or_else(|| StoreError::UnknownRun(run.to_owned()))?;
    Ok(serde_json::from_slice(&unpack(row.try_get(0)?)?).map_err(|error| damaged(&error))?)
}

/// Returns the records of trials in the given order. A record is in the last event of its trial. Records are read in
/// the order of their packs, so that each pack is unpacked only once.
pub(super) async fn records(
    session: &mut Session,
    run: &str,
    trials: &[&str],
) -> Result<Vec<TrialRecord>, PostgresError> {
    let select = "SELECT wanted.at, pack, pack_start, pack_end
         FROM runs JOIN trials ON trials.run = runs.no
             JOIN unnest($2::text[]) WITH ORDINALITY AS wanted (id, at) ON wanted.id = trials.id
         WHERE runs.id = $1";
    let mut places: Vec<(PackRange, usize)> = Vec::with_capacity(trials.len());
    for row in session.query(select, &[&run, &trials]).await? {
        let at = usize::try_from(row.try_get::<_, i64>(0)? - 1).unwrap_or(usize::MAX);
        places.push((PackRange::new(row.try_get(1)?, row.try_get(2)?, row.try_get(3)?), at));
    }
    let missing = trials.iter().enumerate().find(|(at, _)| !places.iter().any(|(_, found)| found == at));
    if let Some((_, trial)) = missing.filter(|_| places.len() < trials.len()) {
        return Err(StoreError::UnknownTrial { run: run.to_owned(), trial: (*trial).to_owned() }.into());
    }
    places.sort_unstable();
    let mut packs = Packs::default();
    let mut records = Vec::with_capacity(trials.len());
    for (place, at) in places {
        let pack = match packs.has(place) {
            true => None,
            false => read_pack(session, place.pack()).await?,
        };
        let last = packs.lines(place, |_| Ok(pack))?.lines().next_back().unwrap_or_default();
        let (_, last) = event(last)?;
        let Some(Event::TrialFinished(record)) = last.known().map(|envelope| envelope.event) else {
            return Err(StoreError::Damaged(format!("the last event of `{}` is not its outcome", trials[at])).into());
        };
        records.push((at, *record));
    }
    records.sort_unstable_by_key(|(at, _)| *at);
    Ok(records.into_iter().map(|(_, record)| record).collect())
}

/// Returns the pack with that number, if there is one.
pub(super) async fn read_pack(session: &mut Session, pack: i64) -> Result<Option<Vec<u8>>, PostgresError> {
    let row = session.first("SELECT events FROM packs WHERE no = $1", &[&pack]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

pub(super) fn count(row: &Row, name: &str) -> Result<usize, tokio_postgres::Error> {
    Ok(usize::try_from(row.try_get::<_, i64>(name)?).unwrap_or(0))
}

/// Returns the value of `LIMIT`; without one, all rows are returned.
pub(super) fn limit(last: Option<usize>) -> Option<i64> {
    last.and_then(|last| i64::try_from(last).ok())
}
