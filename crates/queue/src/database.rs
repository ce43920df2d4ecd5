//! The connection of a process to the queue. If it is lost, the next statement makes a new one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use store::postgres::{Settings, connect_listening};
use tokio::sync::{Mutex, MutexGuard, Notify};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::error::QueueError;
use crate::schema;

/// Time for which a statement is repeated while the database cannot be reached.
const PATIENCE: Duration = Duration::from_secs(120);

/// Selects the schema of the queue: the name of that of the record, with an ending. A record has a schema of its own.
const SCHEMA: &str = "SELECT set_config('search_path',
    quote_ident(btrim(current_setting('search_path'), '\"') || '_queue'), false)";

/// Time after which the server ends a transaction whose process sends nothing.
const IDLE: &str = "10s";

/// Pause before a statement is repeated.
const PAUSE: Duration = Duration::from_millis(500);

/// Channel that announces new work and changed states of runs to workers. A notification only shortens waiting: whoever
/// misses one notices the change a little later.
pub(crate) const WORK: &str = "trialrun_work";

/// Channel that announces progress of trials to coordinators.
pub(crate) const PROGRESS: &str = "trialrun_progress";

/// Returns the statement that notifies those who listen to `channel`.
pub(crate) fn notify(channel: &str) -> String {
    format!("SELECT pg_notify('{channel}', '')")
}

/// Connection to the database that holds the queue. Statements run one after another.
pub(crate) struct Database {
    settings: Settings,
    channel: Option<&'static str>,
    client: Mutex<Option<Client>>,
    wake: Arc<Notify>,
}

impl Database {
    /// Connects, and creates the tables or brings them up to date. The connection listens to `channel`.
    ///
    /// # Errors
    /// Returns an error if there is no connection, or if a newer version has created the tables.
    pub(crate) async fn open(settings: &Settings, channel: Option<&'static str>) -> Result<Self, QueueError> {
        let database = Self { channel, ..Self::unprepared(settings) };
        // The address may be wrong. A connection that was made can be lost at any time.
        if let Err(error @ QueueError::Connect(_)) = database.connection().await {
            return Err(error);
        }
        database.retry(|| async { schema::prepare(&*database.connection().await?).await }).await?;
        Ok(database)
    }

    /// Returns the queue without connecting. Its tables may not exist, or be those of another version.
    pub(crate) fn unprepared(settings: &Settings) -> Self {
        Self { settings: settings.clone(), channel: None, client: Mutex::default(), wake: Arc::default() }
    }

    /// Waits for a notification that something in the queue has changed.
    pub(crate) async fn changed(&self) {
        self.wake.notified().await;
    }

    /// Repeats `attempt` while the connection is lost.
    pub(crate) async fn retry<T, F: Future<Output = Result<T, QueueError>>>(
        &self,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, QueueError> {
        let began = Instant::now();
        loop {
            match attempt().await {
                Err(error) => {
                    // It may be in the middle of a transaction.
                    self.client.lock().await.take();
                    if !error.is_transient() || began.elapsed() >= PATIENCE {
                        return Err(error);
                    }
                    tracing::warn!(%error, "the queue is not available");
                    tokio::time::sleep(PAUSE).await;
                }
                done => return done,
            }
        }
    }

    /// Runs a statement, and returns its rows as `read` reads them.
    pub(crate) async fn rows<T>(
        &self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
        read: fn(&Row) -> T,
    ) -> Result<Vec<T>, QueueError> {
        self.retry(|| async {
            let client = self.connection().await?;
            Ok(client.query(sql, parameters).await?.iter().map(read).collect())
        })
        .await
    }

    /// Runs a statement, and then notifies those who listen to `channel`. Returns the number of changed rows.
    pub(crate) async fn execute(
        &self,
        sql: &str,
        parameters: &[&(dyn ToSql + Sync)],
        channel: Option<&str>,
    ) -> Result<u64, QueueError> {
        self.retry(|| async {
            let client = self.connection().await?;
            let changed = client.execute(sql, parameters).await?;
            if let Some(channel) = channel {
                client.batch_execute(&notify(channel)).await?;
            }
            Ok(changed)
        })
        .await
    }

    /// Returns the connection, and makes it if there is none.
    pub(crate) async fn connection(&self) -> Result<Connection<'_>, QueueError> {
        let mut client = self.client.lock().await;
        if client.as_ref().is_none_or(Client::is_closed) {
            let wake = Arc::clone(&self.wake);
            let new = connect_listening(&self.settings, move |_| wake.notify_one()).await?;
            new.batch_execute(SCHEMA).await?;
            // A process that is stopped in a transaction must not hold up others.
            new.batch_execute(&format!("SET idle_in_transaction_session_timeout = '{IDLE}'")).await?;
            if let Some(channel) = self.channel {
                new.batch_execute(&format!("LISTEN {channel}")).await?;
            }
            *client = Some(new);
        }
        Ok(Connection { client, in_transaction: false })
    }
}

/// The connection, for the duration of some statements. A transaction that is abandoned closes it.
pub(crate) struct Connection<'a> {
    client: MutexGuard<'a, Option<Client>>,
    in_transaction: bool,
}

impl Connection<'_> {
    pub(crate) async fn begin(&mut self) -> Result<(), QueueError> {
        self.in_transaction = true;
        Ok(self.batch_execute("BEGIN").await?)
    }

    pub(crate) async fn commit(mut self) -> Result<(), QueueError> {
        self.batch_execute("COMMIT").await?;
        self.in_transaction = false;
        Ok(())
    }
}

impl std::ops::Deref for Connection<'_> {
    type Target = Client;

    #[expect(clippy::expect_used, reason = "a connection is only created with a client")]
    fn deref(&self) -> &Client {
        self.client.as_ref().expect("a client")
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        if self.in_transaction {
            self.client.take();
        }
    }
}
