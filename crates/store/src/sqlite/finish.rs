//! Finished trials: columns for lists, and their events in packs.

use std::sync::LazyLock;

use rusqlite::types::{FromSql, FromSqlResult, ToSqlOutput, Value, ValueRef};
use rusqlite::{OptionalExtension, Statement, ToSql, Transaction, params, params_from_iter};

use super::SqliteError;
use crate::StoreError;
use crate::columns::{COLUMNS, Column, columns};
use crate::lines::{Earlier, Finished, Group};
use crate::pack::{Packer, damaged};
use crate::test_files::TestFiles;

/// Statement that inserts a trial: its location in the packs, then [`COLUMNS`].
static INSERT_TRIAL: LazyLock<String> = LazyLock::new(|| {
    let places = ["run", "id", "first_seq", "pack", "pack_start", "pack_end", "settings"];
    let names: Vec<&str> = places.into_iter().chain(COLUMNS).collect();
    let values = vec!["?"; names.len()];
    format!("INSERT INTO trials ({}) VALUES ({})", names.join(", "), values.join(", "))
});

impl ToSql for Column<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(Value::Null),
            Self::Whole(number) => ToSqlOutput::Owned(Value::Integer(*number)),
            Self::Real(number) => ToSqlOutput::Owned(Value::Real(*number)),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

impl FromSql for Column<'static> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Whole(number),
            ValueRef::Real(number) => Self::Real(number),
            ValueRef::Text(text) => Self::Text(String::from_utf8_lossy(text).into_owned().into()),
            // Such a value was not stored by trialrun, so it differs from every other.
            ValueRef::Blob(_) => Self::Text("a blob".into()),
        })
    }
}

/// Returns the events of a trial in the journal, and removes them there.
pub(super) fn take_journal(transaction: &Transaction<'_>, run: i64, id: &str) -> Result<Earlier, SqliteError> {
    let mut earlier = Earlier::default();
    let mut select =
        transaction.prepare_cached("SELECT seq, event FROM journal WHERE run = ?1 AND trial = ?2 ORDER BY seq")?;
    let mut rows = select.query(params![run, id])?;
    while let Some(row) = rows.next()? {
        let line = row.get_ref(1)?.as_bytes().map_err(|error| damaged(&error))?;
        earlier.push(row.get::<_, i64>(0)?.unsigned_abs(), line);
    }
    if earlier.first_seq.is_some() {
        transaction.prepare_cached("DELETE FROM journal WHERE run = ?1 AND trial = ?2")?.execute(params![run, id])?;
    }
    Ok(earlier)
}

/// Writes the pack and the trials of a group, and empties it.
pub(super) fn write(
    group: &mut Group<'_>,
    transaction: &Transaction<'_>,
    packer: &mut Packer,
    run: i64,
) -> Result<(), SqliteError> {
    if group.trials.is_empty() {
        return Ok(());
    }
    transaction
        .prepare_cached("INSERT INTO packs (run, events) VALUES (?1, ?2)")?
        .execute(params![run, packer.bytes(&group.text)?])?;
    let pack = transaction.last_insert_rowid();
    let files: String =
        transaction.prepare_cached("SELECT test_files FROM runs WHERE no = ?1")?.query_row([run], |row| row.get(0))?;
    let files = TestFiles::from_json(&files);
    let mut statement = transaction.prepare_cached(&INSERT_TRIAL)?;
    for trial in &group.trials {
        insert(trial, &mut statement, run, pack, files.fingerprint(trial.record))?;
    }
    transaction
        .prepare_cached("UPDATE runs SET finished = finished + ?2 WHERE no = ?1")?
        .execute(params![run, group.trials.len() as i64])?;
    group.text.clear();
    group.trials.clear();
    Ok(())
}

/// Writes the trial's row with [`INSERT_TRIAL`].
fn insert(
    trial: &Finished<'_>,
    statement: &mut Statement<'_>,
    run: i64,
    pack: i64,
    settings: i64,
) -> Result<(), SqliteError> {
    let places: [Column<'_>; 7] = [
        run.into(),
        trial.id.into(),
        (trial.first_seq as i64).into(),
        pack.into(),
        (trial.start as i64).into(),
        (trial.end as i64).into(),
        settings.into(),
    ];
    statement.execute(params_from_iter(places.into_iter().chain(columns(trial.record))))?;
    Ok(())
}

/// Returns the pack with that number, if there is one.
pub(super) fn read_pack(connection: &rusqlite::Connection, pack: i64) -> Result<Option<Vec<u8>>, StoreError> {
    let read = || {
        let mut statement = connection.prepare_cached("SELECT events FROM packs WHERE no = ?1")?;
        statement.query_row([pack], |row| row.get(0)).optional()
    };
    Ok(read().map_err(SqliteError::from)?)
}
