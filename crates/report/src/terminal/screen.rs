//! Adapter from a writer to a terminal.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use indicatif::TermLike;
use terminal_size::{Height, Width};

/// Returns the number of columns and lines of the terminal to which one of the standard streams is connected, if any.
pub fn terminal_size() -> Option<(usize, usize)> {
    let (Width(columns), Height(lines)) = terminal_size::terminal_size()?;
    Some((columns.into(), lines.into()))
}

/// Terminal that moves the cursor by writing to the given writer. Errors are ignored: indicatif panics on them, and the
/// terminal is gone when it is closed while the run cleans up after SIGHUP. Lines above the table report their own
/// errors.
pub(super) struct Screen {
    out: Mutex<Box<dyn Write + Send>>,
    width: u16,
}

impl Screen {
    pub(super) fn new(out: Box<dyn Write + Send>, width: usize) -> Self {
        Self { out: Mutex::new(out), width: u16::try_from(width).unwrap_or(u16::MAX) }
    }

    // Returns a result only because `TermLike` requires it of every caller.
    #[allow(clippy::unnecessary_wraps)]
    fn write(&self, text: &str) -> io::Result<()> {
        let _ = self.out.lock().unwrap_or_else(PoisonError::into_inner).write_all(text.as_bytes());
        Ok(())
    }

    fn by(&self, n: usize, direction: char) -> io::Result<()> {
        if n == 0 { Ok(()) } else { self.write(&format!("\u{1b}[{n}{direction}")) }
    }
}

impl fmt::Debug for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Screen").field("width", &self.width).finish_non_exhaustive()
    }
}

impl TermLike for Screen {
    // Lines fill the whole width, so a resized window must be noticed.
    fn width(&self) -> u16 {
        terminal_size::terminal_size_of(io::stderr()).map_or(self.width, |(Width(columns), _)| columns)
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.by(n, 'A')
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.by(n, 'B')
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.by(n, 'C')
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.by(n, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write(&format!("{text}\n"))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.write(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.write("\r\u{1b}[2K")
    }

    // Output ends at the right edge. If the terminal echoed `^C` there, the cursor would move to the next line, and
    // the table would be erased from one line too low. So the cursor returns to the start of the line.
    fn flush(&self) -> io::Result<()> {
        self.write("\r")?;
        let _ = self.out.lock().unwrap_or_else(PoisonError::into_inner).flush();
        Ok(())
    }
}
