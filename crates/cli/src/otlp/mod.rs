//! The report for OpenTelemetry: its destination, taken from the standard variables, and the delivery to a collector.

mod exporter;
mod settings;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use report::telemetry::Options;

pub use self::exporter::ExportMode;
use self::exporter::HttpExporter;
use self::settings::{Settings, switched_on};
use crate::error::CliError;

/// Name of the report.
pub const OTLP: &str = "otlp";

/// Warnings from reports, shown at the end of the run.
#[derive(Debug, Clone, Default)]
pub struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    fn add(&self, warning: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(warning);
    }

    /// Returns the warnings so far, without duplicates.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns `true` if the destination of a report is the address of a collector, and not a file.
pub fn is_address(destination: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| destination.starts_with(scheme))
}

/// Returns `true` if the environment alone requests the report, by naming a collector.
pub fn is_on() -> bool {
    switched_on(&environment())
}

/// Checks that telemetry can be sent to `address`, or to the collector that the environment names.
///
/// # Errors
/// Returns an error if the environment requests something that is not supported.
pub fn check(address: Option<&str>) -> Result<(), CliError> {
    Settings::from_environment(&environment(), address).map(drop)
}

/// Returns the options that write JSON lines to the output of the report.
pub fn to_file() -> Options {
    settings::options(&environment())
}

/// Returns the options for sending to `address`, or to the collector that the environment names.
///
/// # Errors
/// Returns an error if the environment requests something that is not supported, or no thread can be started.
pub fn to_collector(address: Option<&str>, mode: ExportMode, warnings: &Warnings) -> Result<Options, CliError> {
    let environment = environment();
    let settings = Settings::from_environment(&environment, address)?;
    let exporter = HttpExporter::start(settings, &environment, mode, warnings.clone())
        .map_err(|error| CliError::environment(format!("cannot start a thread: {error}")))?;
    Ok(Options { exporter: Some(Box::new(exporter)), ..settings::options(&environment) })
}

/// Returns the variables that are set, by name.
fn environment() -> BTreeMap<String, String> {
    let variables =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    variables.filter(|(_, value)| !value.trim().is_empty()).collect()
}
