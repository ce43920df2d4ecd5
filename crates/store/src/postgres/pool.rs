//! Connections for callers that block: any thread may use them, also one of an asynchronous runtime.

use std::cell::RefCell;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::connection::{ConnectError, connect, describe, is_lost};
use crate::database_url::Settings;
use crate::{Location, StoreError};

/// Time limit for one transaction.
const TRANSACTION: Duration = Duration::from_secs(300);

/// Time for which a lost connection is made again. A run whose record is away for longer ends, and can be resumed.
const RECONNECT: Duration = Duration::from_secs(60);

/// Longest wait before the next attempt.
const PAUSE: Duration = Duration::from_secs(1);

/// Parameter of a statement.
pub(super) type Parameter<'a> = &'a (dyn ToSql + Sync);

/// Error of this backend. It keeps the library out of [`StoreError`].
#[derive(Debug, thiserror::Error)]
pub(super) enum PostgresError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("{}", describe(.0))]
    Library(#[from] tokio_postgres::Error),
}

impl PostgresError {
    /// Returns `true` if the same transaction may succeed on another connection.
    fn is_lost(&self) -> bool {
        match self {
            Self::Store(_) => false,
            Self::Connect(error) => error.is_transient(),
            Self::Library(error) => is_lost(error),
        }
    }

    /// Returns `true` if the same transaction may succeed now, because it was in the way of another one.
    fn is_conflict(&self) -> bool {
        let conflicts = [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            // The server may not have noticed yet that an earlier attempt has lost its connection.
            SqlState::LOCK_NOT_AVAILABLE,
        ];
        matches!(self, Self::Library(error) if error.code().is_some_and(|code| conflicts.contains(code)))
    }
}

impl From<PostgresError> for StoreError {
    fn from(error: PostgresError) -> Self {
        match error {
            PostgresError::Store(error) => error,
            error => Self::Backend(error.to_string()),
        }
    }
}

/// A connection with its prepared statements.
pub(super) struct Session {
    pub(super) client: Client,
    prepared: HashMap<String, Statement>,
}

impl Session {
    async fn statement(&mut self, sql: &str) -> Result<Statement, PostgresError> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    pub(super) async fn query(&mut self, sql: &str, values: &[Parameter<'_>]) -> Result<Vec<Row>, PostgresError> {
        let statement = self.statement(sql).await?;
        Ok(self.client.query(&statement, values).await?)
    }

    /// Returns the first row.
    pub(super) async fn first(&mut self, sql: &str, values: &[Parameter<'_>]) -> Result<Option<Row>, PostgresError> {
        Ok(self.query(sql, values).await?.into_iter().next())
    }

    /// Returns the number of rows that were changed.
    pub(super) async fn execute(&mut self, sql: &str, values: &[Parameter<'_>]) -> Result<u64, PostgresError> {
        let statement = self.statement(sql).await?;
        Ok(self.client.execute(&statement, values).await?)
    }

    /// Does `work` in a transaction, which is committed if it succeeds.
    pub(super) async fn transaction<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Self) -> Result<T, PostgresError>,
    ) -> Result<T, PostgresError> {
        self.client.batch_execute("BEGIN").await?;
        match work(self).await {
            Ok(done) => {
                self.client.batch_execute("COMMIT").await?;
                Ok(done)
            }
            Err(error) => {
                // If this fails, the connection is lost, and the server ends the transaction.
                let _ = self.client.batch_execute("ROLLBACK").await;
                Err(error)
            }
        }
    }
}

/// Connections to one database. A thread of its own drives them.
pub(super) struct Pool {
    settings: Settings,
    /// Always there until the pool is dropped.
    runtime: Option<Runtime>,
    idle: RefCell<Vec<Session>>,
}

impl Pool {
    /// Connects to the database, to find out whether that is possible.
    pub(super) fn open(settings: &Settings) -> Result<Self, StoreError> {
        let location = || Location::Postgres(Box::new(settings.clone()));
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).thread_name("postgres").enable_all().build();
        let no = |reason: String| StoreError::Open { location: location(), reason };
        let runtime = Some(runtime.map_err(|error| no(error.to_string()))?);
        let pool = Self { settings: settings.clone(), runtime, idle: RefCell::default() };
        let session = pool.connect().map_err(|error| match error {
            ConnectError::Unreachable { reason, .. } => StoreError::Unreachable { location: location(), reason },
            ConnectError::Refused { reason, .. } => no(reason),
        })?;
        pool.idle.borrow_mut().push(session);
        Ok(pool)
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    fn connect(&self) -> Result<Session, ConnectError> {
        let settings = self.settings.clone();
        let failed =
            |reason: &str| ConnectError::Unreachable { place: settings.to_string(), reason: reason.to_owned() };
        let runtime = self.runtime.as_ref().ok_or_else(|| failed("the program is ending"))?;
        let (sender, receiver) = sync_channel(1);
        let other = self.settings.clone();
        runtime.spawn(async move {
            // The receiver waits for it.
            let _ = sender.send(connect(&other).await);
        });
        let client = receiver.recv().map_err(|_| failed("connecting was interrupted"))??;
        Ok(Session { client, prepared: HashMap::new() })
    }

    fn take(&self) -> Result<Session, ConnectError> {
        let idle = self.idle.borrow_mut().pop();
        match idle.filter(|session| !session.client.is_closed()) {
            Some(session) => Ok(session),
            None => self.connect(),
        }
    }

    fn put(&self, session: Session) {
        if !session.client.is_closed() {
            self.idle.borrow_mut().push(session);
        }
    }

    /// Does `work`, again if the connection is lost before it is done. So whatever it writes must be in one transaction,
    /// which finds out whether it was already committed.
    pub(super) fn run<T>(
        &self,
        mut work: impl AsyncFnMut(&mut Session) -> Result<T, PostgresError>,
    ) -> Result<T, StoreError> {
        let mut lost: Option<Instant> = None;
        let mut pause = Duration::ZERO;
        loop {
            let done = self.take().map_err(PostgresError::from).and_then(|mut session| {
                let done = wait(work(&mut session), TRANSACTION);
                let done = done.unwrap_or_else(|| {
                    let seconds = TRANSACTION.as_secs();
                    Err(StoreError::Backend(format!("{} did not answer for {seconds} s", self.settings)).into())
                });
                // An unfinished transaction ends with its connection.
                if !matches!(&done, Err(PostgresError::Store(StoreError::Backend(_)))) {
                    self.put(session);
                }
                done
            });
            let error = match done {
                Err(error) if error.is_lost() || error.is_conflict() => error,
                done => return Ok(done?),
            };
            if error.is_lost() {
                // The other connections are probably lost too.
                self.idle.borrow_mut().clear();
            }
            let began = *lost.get_or_insert_with(Instant::now);
            if began.elapsed() >= RECONNECT {
                let seconds = RECONNECT.as_secs();
                let place = &self.settings;
                return Err(StoreError::Backend(format!(
                    "no transaction with {place} succeeded for {seconds} s: {error}"
                )));
            }
            tracing::debug!(%error, "the record is not available; trying again");
            std::thread::sleep(pause);
            pause = (pause * 2).clamp(Duration::from_millis(50), PAUSE);
        }
    }

    /// Returns a connection that sees the record as it is now, until it is dropped.
    pub(super) fn snapshot(&self) -> Result<Snapshot<'_>, StoreError> {
        // Makes a lost connection again.
        self.run(async |session| Ok(session.client.batch_execute("").await?))?;
        let session = self.take().map_err(PostgresError::from)?;
        let mut snapshot = Snapshot { pool: self, session: Some(session) };
        snapshot.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        Ok(snapshot)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.idle.borrow_mut().clear();
        if let Some(runtime) = self.runtime.take() {
            // Waiting for it is an error in an asynchronous runtime.
            runtime.shutdown_background();
        }
    }
}

/// A connection in a transaction that sees the record as it was when it began.
pub(super) struct Snapshot<'a> {
    pool: &'a Pool,
    /// Absent after an error.
    session: Option<Session>,
}

impl Snapshot<'_> {
    fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        self.run(async |session| Ok(session.client.batch_execute(sql).await?))
    }

    /// Does `work` in the transaction.
    pub(super) fn run<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Session) -> Result<T, PostgresError>,
    ) -> Result<T, StoreError> {
        let lost = || StoreError::Backend(format!("the connection to {} was lost", self.pool.settings));
        let mut session = self.session.take().ok_or_else(lost)?;
        match wait(work(&mut session), TRANSACTION) {
            Some(Ok(done)) => {
                self.session = Some(session);
                Ok(done)
            }
            Some(Err(error)) => Err(error.into()),
            None => Err(lost()),
        }
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.session.take()
            && let Some(Ok(())) = wait(session.client.batch_execute("ROLLBACK"), PAUSE)
        {
            self.pool.put(session);
        }
    }
}

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future of the library, which needs no runtime, on this thread; `None` if it is not ready within `limit`.
pub(super) fn wait<F: Future>(future: F, limit: Duration) -> Option<F::Output> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let start = Instant::now();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        std::thread::park_timeout(limit.checked_sub(start.elapsed())?);
    }
}
