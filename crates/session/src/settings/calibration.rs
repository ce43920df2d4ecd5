//! Reads the calibration that the judge needs before it may decide assertions.

use std::path::{Path, PathBuf};

use model::{CALIBRATION_SCHEMA, Calibration, CalibrationGate};

use super::value;
use crate::overrides::Overrides;
use crate::path::shown;
use crate::session::Session;

/// Default minimum for the lower limit of κ. Agreement with a κ below about 0.4 is usually called fair at best.
pub const MIN_KAPPA: f64 = 0.4;

/// Maximum size of a calibration, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Returns the minimum for the lower limit of κ.
pub fn min_kappa(args: &Overrides, session: &Session) -> f64 {
    args.judging.judge_min_kappa.or(value(&session.project.judge.min_kappa)).unwrap_or(MIN_KAPPA)
}

/// Returns the calibration that the command line or the project names.
pub(super) fn file(args: &Overrides, session: &Session) -> Option<PathBuf> {
    match &args.judging.judge_calibration {
        Some(typed) => Some(typed).filter(|typed| !typed.is_empty()).map(|typed| session.cwd.join(typed)),
        None => value(&session.project.judge.calibration).map(|file| session.project.root.join(file)),
    }
}

/// Returns the condition for the judge, if there is a calibration.
pub(super) fn gate(args: &Overrides, session: &Session) -> Option<CalibrationGate> {
    let path = file(args, session)?;
    let file = shown(&path, &session.cwd);
    let calibration = read(&path, &file);
    Some(CalibrationGate { file, calibration, min_kappa: min_kappa(args, session) })
}

/// Reads a calibration. Messages call it `file`.
fn read(path: &Path, file: &str) -> Result<Calibration, String> {
    let text = files::read_named_text(path, MAX_BYTES).map_err(|error| format!("cannot read {file}: {error}"))?;
    let calibration: Calibration =
        serde_json::from_str(&text).map_err(|error| format!("{file} is not a calibration: {error}"))?;
    match calibration.schema.as_str() {
        CALIBRATION_SCHEMA => Ok(calibration),
        other => Err(format!("{file} has the schema `{other}` instead of `{CALIBRATION_SCHEMA}`")),
    }
}
