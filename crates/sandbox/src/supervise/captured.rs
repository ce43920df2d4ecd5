//! A process's output, limited in size.

use std::collections::VecDeque;

/// Beginning and end of a stream of bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    limit: usize,
    omitted: u64,
}

impl Captured {
    /// Keeps at most `limit` bytes: half of them from the beginning of the stream, the rest from its end.
    pub fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Appends the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = (self.limit - self.limit / 2).saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(self.limit / 2);
        self.tail.drain(..excess);
        self.omitted += excess as u64;
    }

    /// Returns the number of bytes omitted from the middle.
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    /// Returns the kept bytes. If some are missing, a line says how many.
    pub fn bytes(&self) -> Vec<u8> {
        let mut all = self.head.clone();
        if self.omitted > 0 {
            all.extend_from_slice(format!("\n[… {} bytes omitted …]\n", self.omitted).as_bytes());
        }
        all.extend(&self.tail);
        all
    }

    /// Returns [`bytes`](Self::bytes) as text, with invalid UTF-8 replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// Returns the lines of [`text`](Self::text).
    pub fn lines(&self) -> Vec<String> {
        self.text().lines().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_within_the_limit_is_kept_completely() {
        let mut captured = Captured::new(5);
        captured.push(b"ab");
        captured.push(b"cde");
        assert_eq!((captured.text().as_str(), captured.omitted()), ("abcde", 0));
    }

    #[test]
    fn the_beginning_and_the_end_of_long_output_are_kept() {
        let mut captured = Captured::new(4);
        for bytes in [b"ab".as_slice(), b"cdefg", b"h"] {
            captured.push(bytes);
        }
        assert_eq!((captured.text().as_str(), captured.omitted()), ("ab\n[… 4 bytes omitted …]\ngh", 4));
    }
}
