//! Texts of the trials in a report, which is written in plan order at the end. Many of them take no memory.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use tempfile::{SpooledTempFile, spooled_tempfile, spooled_tempfile_in};

/// Maximum size of the texts in memory, in bytes. Beyond it, all of them are in a temporary file.
const IN_MEMORY: usize = 32 << 20;

/// Texts, each with its place in the report.
pub(super) struct Texts {
    file: SpooledTempFile,
    size: u64,
    /// Place, offset and length of each text.
    texts: Vec<(usize, u64, usize)>,
}

impl Texts {
    /// Creates an empty list, with its temporary file in `folder`. Without a folder, all texts are in memory.
    pub(super) fn new(folder: Option<&Path>) -> Self {
        let file = folder.map_or_else(|| spooled_tempfile(usize::MAX), |folder| spooled_tempfile_in(IN_MEMORY, folder));
        Self { file, size: 0, texts: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    pub(super) fn add(&mut self, place: usize, text: &[u8]) -> io::Result<()> {
        self.file.write_all(text)?;
        self.texts.push((place, self.size, text.len()));
        self.size += text.len() as u64;
        Ok(())
    }

    /// Passes the texts to `write` in the order of their places.
    pub(super) fn in_order(&mut self, mut write: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.texts.sort_by_key(|(place, ..)| *place);
        let mut text = Vec::new();
        for (_, offset, length) in &self.texts {
            text.resize(*length, 0);
            self.file.seek(SeekFrom::Start(*offset))?;
            self.file.read_exact(&mut text)?;
            write(&text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_in_memory_and_in_a_file_come_in_the_order_of_their_places() {
        let folder = tempfile::tempdir().unwrap();
        for folder in [None, Some(folder.path())] {
            let mut texts = Texts::new(folder);
            let large = vec![b'x'; IN_MEMORY / 2 - 3];
            for (place, text) in [(2, &large[..]), (0, b"first"), (3, &large[1..]), (1, b"")] {
                texts.add(place, text).unwrap();
            }
            assert!(!texts.file.is_rolled(), "not more than the limit");
            texts.add(usize::MAX, b"last").unwrap();
            assert_eq!(texts.file.is_rolled(), folder.is_some());
            let mut lengths = Vec::new();
            let read = texts.in_order(|text| {
                lengths.push((text.len(), text.first().copied()));
                Ok(())
            });
            read.unwrap();
            let x = Some(b'x');
            assert_eq!(lengths, [(5, Some(b'f')), (0, None), (large.len(), x), (large.len() - 1, x), (4, Some(b'l'))]);
        }
    }
}
