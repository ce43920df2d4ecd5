//! Files that the agent reads and writes through this program. A process in the sandbox does it, so the agent reaches
//! exactly the files that its own processes reach.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use sandbox::{Sandbox, supervise};
use serde_json::{Value, json};

use super::message::{BAD_PARAMETERS, INTERNAL, NOT_FOUND};
use crate::json::text;
use crate::process::Process;

/// Time limit for one file.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of a file that is read, in bytes.
const MAX_FILE_BYTES: usize = 16 << 20;

/// Reads the file in `$1`. Its exit code tells whether the file exists.
const READ: &str = "[ -e \"$1\" ] || exit 44; exec cat -- \"$1\"";
/// Writes stdin to the file in `$1`.
const WRITE: &str = "mkdir -p -- \"$(dirname -- \"$1\")\" && exec cat > \"$1\"";
/// Exit code of [`READ`] for a file that does not exist.
const MISSING: i32 = 44;

type Answer = Result<Value, (i64, String)>;

/// Answers `fs/read_text_file`.
pub(super) async fn read(sandbox: &dyn Sandbox, params: &Value) -> Answer {
    let path = path(params)?;
    let args = ["-c", READ, "sh", path].map(OsStr::new);
    let command = sandbox.command(OsStr::new("/bin/sh"), &args, &[]);
    let output =
        supervise::run(command, TIMEOUT, MAX_FILE_BYTES).await.map_err(|error| (INTERNAL, error.to_string()))?;
    if output.status.code() == Some(MISSING) {
        let message = format!("Resource not found: ENOENT: no such file or directory, open '{path}'");
        return Err((NOT_FOUND, message));
    }
    if output.timed_out || !output.status.success() {
        let reason = output.stderr.text();
        return Err((INTERNAL, format!("cannot read {path}: {}", reason.lines().next().unwrap_or("no reason given"))));
    }
    let number = |key: &str| params.get(key).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok());
    let whole = output.stdout.text();
    let content = match (number("line"), number("limit")) {
        (None, None) => whole,
        (line, limit) => {
            let first = line.unwrap_or(1).saturating_sub(1);
            whole.split_inclusive('\n').skip(first).take(limit.unwrap_or(usize::MAX)).collect()
        }
    };
    Ok(json!({"content": content}))
}

/// Answers `fs/write_text_file`.
pub(super) async fn write(sandbox: &dyn Sandbox, params: &Value) -> Answer {
    let path = path(params)?;
    let content = text(params, "content").ok_or((BAD_PARAMETERS, "`content` is missing".to_owned()))?;
    let args = ["-c", WRITE, "sh", path].map(OsStr::new);
    let failed = |reason: String| (INTERNAL, format!("cannot write {path}: {reason}"));
    let command = sandbox.command(OsStr::new("/bin/sh"), &args, &[]);
    let mut process = Process::start(command).map_err(|error| failed(error.to_string()))?;
    process.write(content.to_owned());
    process.close_stdin();
    let ended = tokio::time::timeout(TIMEOUT, process.own_end()).await;
    match ended {
        Ok(_) if process.end().await.is_ok_and(|status| status.success()) => Ok(json!({})),
        Ok(how) => Err(failed(how)),
        Err(_) => {
            let _ = process.stop().await;
            Err(failed("it takes too long".to_owned()))
        }
    }
}

fn path(params: &Value) -> Result<&str, (i64, String)> {
    let path = text(params, "path").ok_or((BAD_PARAMETERS, "`path` is missing".to_owned()))?;
    if Path::new(path).is_absolute() && !path.contains('\0') {
        Ok(path)
    } else {
        Err((BAD_PARAMETERS, format!("`{path}` is not an absolute path")))
    }
}
