//! Masks private keys that arrive line by line. A single line does not reveal that it belongs to a key.

use std::sync::{Mutex, PoisonError};

use super::MASKED;

/// Maximum number of lines in a private key. Later lines are shown again, so that a `BEGIN` marker alone cannot hide
/// other output.
const MAX_LINES: usize = 200;

const BEGIN: &str = "-----BEGIN";
const END: &str = "-----END";
const KEY: &str = "PRIVATE KEY";

/// Private keys that have started but not ended, by stream.
#[derive(Default)]
pub struct KeyBlocks(Mutex<Vec<OpenBlock>>);

struct OpenBlock {
    stream: String,
    lines: usize,
}

impl KeyBlocks {
    /// Masks `line`, the next line of `stream`, if it belongs to a private key that began on an earlier line.
    pub fn mask(&self, stream: &str, line: &mut String) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = open.iter().position(|open| open.stream == stream) {
            open[index].lines += 1;
            if let Some(end) = line.find(END) {
                let rest = line[end + END.len()..].split_once("-----").map_or("", |(_, rest)| rest);
                *line = format!("{MASKED}{rest}");
                open.swap_remove(index);
            } else if open[index].lines > MAX_LINES {
                open.swap_remove(index);
            } else {
                MASKED.clone_into(line);
            }
        }
        let begun = line.rfind(BEGIN).and_then(|begin| line.get(begin..));
        if begun.is_some_and(|begun| begun.contains(KEY) && !begun.contains(END)) {
            open.push(OpenBlock { stream: stream.to_owned(), lines: 0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(blocks: &KeyBlocks, stream: &str, line: &str) -> String {
        let mut line = line.to_owned();
        blocks.mask(stream, &mut line);
        line
    }

    #[test]
    fn a_private_key_is_masked_to_its_last_line_but_only_in_its_own_stream() {
        let blocks = KeyBlocks::default();
        let begin = "-----BEGIN RSA PRIVATE KEY-----";
        assert_eq!(describe(&blocks, "stderr", begin), begin);
        assert_eq!(describe(&blocks, "stderr", "MIIEowIBAAKCAQEA"), "[masked]");
        assert_eq!(describe(&blocks, "stdout", "MIIEowIBAAKCAQEA"), "MIIEowIBAAKCAQEA");
        assert_eq!(describe(&blocks, "stderr", "x==-----END RSA PRIVATE KEY-----, and more"), "[masked], and more");
        assert_eq!(describe(&blocks, "stderr", "plain"), "plain");
        describe(&blocks, "stderr", begin);
        (0..MAX_LINES).for_each(|_| assert_eq!(describe(&blocks, "stderr", "x"), "[masked]"));
        assert_eq!(describe(&blocks, "stderr", "x"), "x");
    }
}
