//! Connections to a PostgreSQL server.

use std::future::poll_fn;
use std::time::Duration;

use tokio_postgres::config::SslMode as Encryption;
use tokio_postgres::{AsyncMessage, Client, Config, Notification};

use super::tls::Tls;
use crate::database_url::{Settings, SslMode};

/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(10);

/// Time after which a connection whose server does not answer is closed.
const SILENCE: Duration = Duration::from_secs(30);

/// Session settings. A server that lost its client ends the transaction after half a minute instead of two hours, so that
/// the client can continue on another connection.
const SESSION: &str = "
SET client_min_messages = warning;
SET lock_timeout = '60s';
SET tcp_keepalives_idle = 10;
SET tcp_keepalives_interval = 5;
SET tcp_keepalives_count = 4;
SET tcp_user_timeout = 30000;
";

/// Reason why there is no connection. It never contains a password.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The server cannot be reached, or does not accept connections at the moment.
    #[error("cannot reach {place}: {reason}")]
    Unreachable {
        /// Place, without its password.
        place: String,
        /// Reason.
        reason: String,
    },
    /// The server rejects the connection, or its certificate is rejected.
    #[error("cannot connect to {place}: {reason}")]
    Refused {
        /// Place, without its password.
        place: String,
        /// Reason.
        reason: String,
    },
}

impl ConnectError {
    /// Returns `true` if the same attempt may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }
}

/// Connects to the database. Must be called in a tokio runtime, which then also drives the connection.
///
/// # Errors
/// Returns an error if there is no connection within ten seconds.
pub async fn connect(settings: &Settings) -> Result<Client, ConnectError> {
    connect_listening(settings, |_| {}).await
}

/// Connects like [`connect`], and calls `take` with each notification of a channel to which the client listens. It must
/// not block.
///
/// # Errors
/// Returns an error if there is no connection within ten seconds.
pub async fn connect_listening(
    settings: &Settings,
    mut take: impl FnMut(Notification) + Send + 'static,
) -> Result<Client, ConnectError> {
    let refused = |reason: String| ConnectError::Refused { place: settings.to_string(), reason };
    let Some(user) = &settings.user else {
        return Err(refused("the URL does not name a user, and `PGUSER` is not set".to_owned()));
    };
    let mut config = Config::new();
    config
        .host(&settings.host)
        .port(settings.port)
        .user(user)
        .application_name("trialrun")
        .connect_timeout(CONNECT)
        .tcp_user_timeout(SILENCE)
        .keepalives_idle(Duration::from_secs(10))
        .keepalives_interval(Duration::from_secs(5))
        .keepalives_retries(4)
        .ssl_mode(match settings.ssl_mode() {
            SslMode::Disable => Encryption::Disable,
            SslMode::Prefer => Encryption::Prefer,
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => Encryption::Require,
        });
    if let Some(database) = settings.database() {
        config.dbname(database);
    }
    if let Some(password) = &settings.password {
        config.password(password);
    }
    let tls = Tls::new(settings).map_err(refused)?;
    let connecting = async {
        let (client, mut connection) = config.connect(tls).await?;
        tokio::spawn(async move {
            while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
                match message {
                    Ok(AsyncMessage::Notification(notification)) => take(notification),
                    Ok(AsyncMessage::Notice(notice)) => tracing::debug!(%notice, "notice of the database"),
                    Ok(_) => {}
                    Err(error) => {
                        tracing::debug!(error = describe(&error), "connection to the database lost");
                        break;
                    }
                }
            }
        });
        client.batch_execute(&format!("{SESSION} SET search_path = {}", quoted(&settings.schema))).await?;
        Ok::<_, tokio_postgres::Error>(client)
    };
    let unreachable = |reason: String| ConnectError::Unreachable { place: settings.to_string(), reason };
    match tokio::time::timeout(CONNECT, connecting).await {
        Err(_) => Err(unreachable(format!("no answer within {} s", CONNECT.as_secs()))),
        Ok(Err(error)) if is_lost(&error) => Err(unreachable(describe(&error))),
        Ok(Err(error)) => Err(refused(reason(settings, &error))),
        Ok(Ok(client)) => Ok(client),
    }
}

/// Returns the reason why a connection was refused, with what the user can do.
fn reason(settings: &Settings, error: &tokio_postgres::Error) -> String {
    let described = describe(error);
    // The library reports a missing password without a code.
    let (reason, hint) = match error.code() {
        None if described.contains("password missing") => (
            "the server asks for a password".to_owned(),
            settings.ignored.as_deref().unwrap_or("set `PGPASSWORD`, or add the password to `~/.pgpass`"),
        ),
        None if described.contains("certificate") => (
            described,
            "`sslrootcert=FILE` names the certificate of its authority; `sslmode=require` encrypts without checking it",
        ),
        None if described.contains("does not support TLS") => {
            (described, "`sslmode=disable` connects without encryption")
        }
        _ => return described,
    };
    format!("{reason}; {hint}")
}

/// Returns `true` if the connection was lost or could not be made, so that the same request may succeed later.
pub fn is_lost(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        Some(code) => {
            // Connection exceptions, a lack of resources, and a server that stops or starts.
            ["08", "53", "57P01", "57P02", "57P03", "57P05"].iter().any(|class| code.code().starts_with(class))
        }
        None => {
            error.is_closed()
                || std::iter::successors(std::error::Error::source(error), |error| error.source())
                    .filter_map(|error| error.downcast_ref::<std::io::Error>())
                    // Errors of TLS and of the protocol are also I/O errors.
                    .any(|error| !matches!(error.kind(), std::io::ErrorKind::InvalidData | std::io::ErrorKind::Other))
        }
    }
}

/// Returns an error of the library in words: the server's own message, or all causes.
pub fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let mut words: Vec<String> = Vec::new();
    for cause in causes.map(ToString::to_string) {
        if !words.last().is_some_and(|last| last.contains(&cause)) {
            words.push(cause);
        }
    }
    words.join(": ")
}

/// Returns a name as SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
