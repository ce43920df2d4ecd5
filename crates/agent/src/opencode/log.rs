//! Reads OpenCode's stderr: lines for users, and its log, the only place where it reports that the model provider
//! failed and the request is retried.

/// Meaning of a line on stderr.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LogLine {
    /// A request failed for this reason; it may be retried.
    Failed(String),
    /// A log line without information about the conversation.
    Log,
    /// A line for users.
    Plain(String),
}

impl LogLine {
    /// Reads a line.
    pub(super) fn read(line: &str) -> Self {
        let line = anstream::adapter::strip_str(line).to_string();
        let line = line.trim_end();
        if !line.starts_with("timestamp=") {
            return Self::Plain(line.to_owned());
        }
        if field(line, "message").as_deref() != Some("stream error") {
            return Self::Log;
        }
        Self::Failed(field(line, "error.error").unwrap_or_else(|| "unknown".to_owned()))
    }
}

/// Returns the value of `name=value` or `name="value"`.
fn field(line: &str, name: &str) -> Option<String> {
    let start = format!(" {name}=");
    let rest = &line[line.find(&start)? + start.len()..];
    let Some(quoted) = rest.strip_prefix('"') else {
        return Some(rest.split(' ').next().unwrap_or_default().to_owned());
    };
    let mut value = String::new();
    let mut letters = quoted.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => break,
            '\\' => value.extend(letters.next().map(|letter| if letter == 'n' { '\n' } else { letter })),
            letter => value.push(letter),
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_requests_are_reported_and_other_log_lines_are_not() {
        let line = "timestamp=2026-11-22T07:57:13.588Z level=ERROR run=a87042bd message=\"stream error\" providerID=scripted \
                    modelID=m1 session.id=ses_x small=false agent=build mode=primary \
                    error.error=\"AI_APICallError: \\\"scripted\\\" 500\"";
        assert_eq!(LogLine::read(line), LogLine::Failed("AI_APICallError: \"scripted\" 500".into()));
        assert_eq!(LogLine::read("timestamp=2026-11-22T07:57:13Z level=ERROR message=process"), LogLine::Log);
        let cut = LogLine::read("timestamp=x message=\"stream error\" error.error=\"cut");
        assert_eq!(cut, LogLine::Failed("cut".into()));
    }

    #[test]
    fn colours_are_removed_from_lines_for_users() {
        let line = "\u{1b}[93m\u{1b}[1m! \u{1b}[0mpermission requested: bash (git log); auto-rejecting";
        assert_eq!(
            LogLine::read(line),
            LogLine::Plain("! permission requested: bash (git log); auto-rejecting".into())
        );
        assert_eq!(LogLine::read("\u{1b}"), LogLine::Plain(String::new()));
    }
}
