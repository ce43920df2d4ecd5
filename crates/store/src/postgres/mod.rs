//! PostgreSQL: connections to a database.

mod connection;
mod settings;
mod tls;

pub use connection::{ConnectError, connect, connect_listening, describe, is_lost};
pub use settings::{SCHEMES, Settings, SettingsError, SslMode, Surroundings};
