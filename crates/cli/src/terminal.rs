//! The terminal: the only module that prints. It also decides on colour, width and characters.

use std::io::{BufWriter, IsTerminal, StdoutLock, Write};

use mask::Mask;
use model::Diagnostic;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use report::Style;

use crate::error::CliError;
use crate::exit;
use crate::global::{Color, Global};
use crate::machine;
use crate::signals;
use session::without_secrets;

/// Stdout and stderr, with the style of each.
#[derive(Debug, Clone)]
pub struct Terminal {
    /// Style for stdout.
    pub out_style: Style,
    /// Style for stderr.
    pub err_style: Style,
}

/// Returns `true` if colour is used by default, according to the common variables: `NO_COLOR` turns it off,
/// `FORCE_COLOR` and `CLICOLOR_FORCE` turn it on, `CLICOLOR=0` turns it off on terminals.
fn is_colored(variable: impl Fn(&str) -> Option<String>, is_terminal: bool) -> bool {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let forced = ["FORCE_COLOR", "CLICOLOR_FORCE"].into_iter().find_map(set);
    match (set("NO_COLOR"), forced) {
        (Some(_), _) => false,
        (None, Some(forced)) => forced != "0" && forced != "false",
        (None, None) => is_terminal && set("CLICOLOR").as_deref() != Some("0"),
    }
}

impl Terminal {
    /// Inspects both streams and the common environment variables.
    pub fn new(global: &Global) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
        // Without a locale, assume UTF-8: most programs that display output today support it.
        let unicode = locale.is_none_or(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8") || locale == "c" || locale == "posix"
        });
        let style = |is_terminal: bool| Style {
            color: match global.color {
                Color::Always => true,
                Color::Never => false,
                Color::Auto => is_colored(|name| std::env::var(name).ok(), is_terminal && !dumb),
            },
            width: terminal_width().unwrap_or(100).clamp(60, 160),
            interactive: is_terminal && !dumb && !set("CI"),
            unicode,
        };
        Self { out_style: style(std::io::stdout().is_terminal()), err_style: style(std::io::stderr().is_terminal()) }
    }

    /// Prints text. A write error ends the program, unless the reader closed the pipe.
    pub fn out(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        self.is_written(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    }

    /// Returns `false` if the reader of stdout closed the pipe: it wants no more output, but the command still decides
    /// the exit code. Any other error ends the program.
    fn is_written(&self, written: std::io::Result<()>) -> bool {
        match written {
            Ok(()) => true,
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => false,
            Err(error) => {
                self.error(&CliError::environment(format!("cannot write to standard output: {error}")));
                // A terminal that was closed has also sent a signal.
                std::process::exit(signals::exit_code().unwrap_or(exit::INCOMPLETE).into());
            }
        }
    }

    /// Starts a JSON array whose entries are printed one by one.
    pub fn json_list(&self) -> JsonList<'_> {
        JsonList { terminal: self, out: BufWriter::new(std::io::stdout().lock()), is_empty: true }
    }

    /// Prints a JSON value.
    pub fn json<T: serde::Serialize>(&self, value: &T) {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        self.out(&(text + "\n"));
    }

    /// Prints text to stderr; errors are ignored, because they cannot be reported.
    pub fn err(&self, text: &str) {
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }

    /// Returns `true` if a person can be asked: both stdin and stderr are terminals.
    pub fn can_ask(&self) -> bool {
        self.err_style.interactive && std::io::stdin().is_terminal()
    }

    /// Prints the question and returns the answer, one line. It is empty at the end of the input.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read.
    pub fn ask(&self, question: &str, prompt: &str) -> Result<String, CliError> {
        self.err(&format!("{question}{prompt}"));
        let mut answer = String::new();
        std::io::stdin()
            .read_line(&mut answer)
            .map_err(|error| CliError::environment(format!("cannot read the answer: {error}")))?;
        Ok(answer)
    }

    /// Prints all problems, and their number if there are several.
    pub fn diagnostics(&self, diagnostics: &[Diagnostic]) {
        if !diagnostics.is_empty() {
            let (mask, mut shown) = (mask(), diagnostics.to_vec());
            shown.iter_mut().for_each(|problem| without_secrets(problem, &mask));
            self.err(&report::diagnostics(&shown, &self.err_style));
            self.err(&report::tally(&shown, &self.err_style));
        }
    }

    /// Prints notes about how settings were chosen.
    pub fn notes(&self, notes: &[String]) {
        notes.iter().for_each(|note| self.err(&format!("note: {note}\n")));
    }

    /// Prints an error and its hints.
    pub fn error(&self, error: &CliError) {
        let (red, bold, off) = if self.err_style.color { ("\x1b[1;31m", "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
        // A message may contain text from a model or a server.
        let mut text = format!("{red}error{off}{bold}: {}{off}\n", report::clean(&error.to_string()));
        for hint in error.hints().iter().chain(&file_size_hint(&error.to_string())) {
            text.push_str(&format!("  {bold}help{off}: {}\n", report::clean(hint)));
        }
        self.err(&mask().text(&text));
    }
}

/// Returns a hint if the error may be that of a write beyond the limit on the size of files. SQLite does not name the
/// error of the system.
fn file_size_hint(error: &str) -> Option<String> {
    let may_be = ["File too large", "disk I/O error"].iter().any(|text| error.contains(text));
    let (limit, _) = getrlimit(Resource::RLIMIT_FSIZE).ok().filter(|(limit, _)| may_be && *limit != RLIM_INFINITY)?;
    Some(format!("files may have at most {limit} bytes here; raise the limit with `ulimit -f`"))
}

/// Mask for secrets in the environment, used before the configuration is known.
fn mask() -> Mask {
    Mask::of(&machine::environment())
}

/// A JSON array that is printed entry by entry.
pub struct JsonList<'t> {
    terminal: &'t Terminal,
    out: BufWriter<StdoutLock<'static>>,
    is_empty: bool,
}

impl JsonList<'_> {
    /// Prints an entry. Returns `false` if the reader wants no more entries.
    pub fn add<T: serde::Serialize>(&mut self, entry: &T) -> bool {
        let text = serde_json::to_string_pretty(entry).unwrap_or_default();
        let before = if self.is_empty { "[\n  " } else { ",\n  " };
        self.is_empty = false;
        self.write(&format!("{before}{}", text.replace('\n', "\n  ")))
    }

    /// Prints the end of the array.
    pub fn end(mut self) {
        if self.write(if self.is_empty { "[]\n" } else { "\n]\n" }) {
            self.terminal.is_written(self.out.flush());
        }
    }

    fn write(&mut self, text: &str) -> bool {
        self.terminal.is_written(self.out.write_all(text.as_bytes()))
    }
}

/// Returns the width in columns of the terminal that stdout or stderr is connected to.
fn terminal_width() -> Option<usize> {
    std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).or_else(|| {
        let (columns, _) = report::terminal_size()?;
        Some(columns)
    })
}

#[cfg(test)]
mod tests {
    use super::is_colored;

    #[test]
    fn variables_turn_colour_on_and_off() {
        let colored = |set: &[(&str, &str)], is_terminal: bool| {
            let value = |name: &str| set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned());
            is_colored(value, is_terminal)
        };
        assert!(colored(&[], true) && !colored(&[], false));
        assert!(!colored(&[("NO_COLOR", "1")], true) && colored(&[("NO_COLOR", "")], true));
        assert!(colored(&[("FORCE_COLOR", "1")], false) && !colored(&[("FORCE_COLOR", "0")], true));
        assert!(colored(&[("CLICOLOR_FORCE", "1")], false) && !colored(&[("CLICOLOR", "0")], true));
        assert!(!colored(&[("NO_COLOR", "1"), ("FORCE_COLOR", "1")], true), "colour is off if the user disables it");
    }
}
