//! How the document is laid out: as `serde_json` does it, an item a line, but with each line's beginning in one piece. A
//! long report has millions of lines.

use std::io::{self, Write};

use serde_json::ser::Formatter;

/// What stands between two items, and, without the comma, before the first: as deep as most documents go.
const LINE: &[u8] = b",\n                                                                ";
const INDENT: usize = 2;

/// Items on lines of their own, each as far to the right as it is deep.
pub(super) struct Layout {
    depth: usize,
    /// Whether the collection that was closed last, or is open, has an item.
    has_item: bool,
}

impl Layout {
    /// The layout of something that stands in `depth` other collections.
    pub(super) fn at(depth: usize) -> Self {
        Self { depth, has_item: false }
    }

    fn line<W: ?Sized + Write>(&self, out: &mut W, is_first: bool) -> io::Result<()> {
        let start = usize::from(is_first);
        let end = 2 + self.depth * INDENT;
        match LINE.get(start..end) {
            Some(line) => out.write_all(line),
            None => {
                out.write_all(&LINE[start..])?;
                (LINE.len()..end).try_for_each(|_| out.write_all(b" "))
            }
        }
    }

    fn open<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_item = false;
        out.write_all(bracket)
    }

    fn close<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.has_item {
            self.line(out, true)?;
        }
        out.write_all(bracket)
    }
}

impl Formatter for Layout {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        self.line(out, is_first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_item = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        self.line(out, is_first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_item = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde_json::{Serializer, Value, json};

    use super::*;

    #[test]
    fn it_is_laid_out_as_everywhere() {
        let mut deep = json!([1]);
        for _ in 0..50 {
            deep = json!({"in": deep, "also": []});
        }
        for value in [json!(null), json!([]), json!({}), json!([{}, [], [[]], {"a": {}, "b": [1, "x"]}]), deep] {
            let mut out = Vec::new();
            value.serialize(&mut Serializer::with_formatter(&mut out, Layout::at(0))).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string_pretty(&value).unwrap());
        }
    }

    #[test]
    fn it_stands_where_it_is_put() {
        let mut out = Vec::new();
        let inner = json!({"a": [1]});
        inner.serialize(&mut Serializer::with_formatter(&mut out, Layout::at(2))).unwrap();
        let whole = serde_json::to_string_pretty(&Value::from(vec![Value::from(vec![inner])])).unwrap();
        assert!(whole.contains(&String::from_utf8(out).unwrap()), "{whole}");
    }
}
