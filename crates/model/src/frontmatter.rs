//! Frontmatter of Markdown files, such as skills.

use std::ops::Range;

/// Parts of a file with frontmatter, as ranges of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frontmatter {
    /// Data between the fences.
    pub data: Range<usize>,
    /// True if the data is JSON, not YAML.
    pub is_json: bool,
    /// Text after the frontmatter.
    pub body: Range<usize>,
}

impl Frontmatter {
    /// Finds the parts of `text`.
    ///
    /// # Errors
    /// Returns what `text` lacks, as the end of a sentence about it.
    pub fn of(text: &str) -> Result<Self, &'static str> {
        let mut lines = text.split_inclusive('\n');
        let opening = lines.next().unwrap_or_default();
        let is_json = match opening.trim_end() {
            "---" | "---yaml" => false,
            "---json" => true,
            _ => return Err("has no frontmatter"),
        };
        let mut at = opening.len();
        for line in lines {
            let end = at + line.len();
            if line.trim_end() == "---" {
                return Ok(Self { data: opening.len()..at, is_json, body: end..text.len() });
            }
            at = end;
        }
        Err("has a frontmatter that is not closed by a second `---`")
    }
}
