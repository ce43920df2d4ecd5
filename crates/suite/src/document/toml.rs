//! Reads TOML, as other tools write it.

use std::ops::Range;
use std::sync::Arc;

use ::toml::de::{DeTable, DeValue};
use model::decode::Problems;
use model::{Diagnostic, Node, NodeKind, Source, Span, Spanned};

/// Parses `source`. Returns `None` if its syntax is broken.
pub fn read_toml(source: &Arc<Source>, problems: &mut Problems) -> Option<Node> {
    match DeTable::parse(&source.text) {
        Ok(table) => Some(Builder { source, problems }.table(table.get_ref(), table.span())),
        Err(error) => {
            let place = source.excerpt(span(error.span().unwrap_or_default()));
            problems.push(Diagnostic::error(format!("this is not valid TOML: {}", error.message())).at(place));
            None
        }
    }
}

fn span(range: Range<usize>) -> Span {
    Span::new(range.start, range.end)
}

struct Builder<'a> {
    source: &'a Arc<Source>,
    problems: &'a mut Problems,
}

impl Builder<'_> {
    fn table(&mut self, table: &DeTable<'_>, place: Range<usize>) -> Node {
        let entries = table.iter().map(|(key, value)| {
            let name = Spanned::new(key.get_ref().to_string(), span(key.span()));
            (name, self.value(value.get_ref(), value.span()))
        });
        let entries = entries.collect();
        self.node(NodeKind::Map(entries), place)
    }

    fn value(&mut self, value: &DeValue<'_>, place: Range<usize>) -> Node {
        let kind = match value {
            DeValue::String(text) => NodeKind::String(text.to_string()),
            DeValue::Boolean(value) => NodeKind::Bool(*value),
            DeValue::Datetime(time) => NodeKind::String(time.to_string()),
            DeValue::Integer(number) => self.number(
                i64::from_str_radix(number.as_str(), number.radix()).ok().map(Into::into),
                &place,
                "is too large",
            ),
            DeValue::Float(number) => {
                let value = number.as_str().parse().ok().and_then(serde_json::Number::from_f64);
                self.number(value, &place, "is not a finite number")
            }
            DeValue::Array(items) => {
                NodeKind::List(items.iter().map(|item| self.value(item.get_ref(), item.span())).collect())
            }
            DeValue::Table(table) => return self.table(table, place),
        };
        self.node(kind, place)
    }

    /// Returns a number. If there is none, the problem is reported.
    fn number(&mut self, number: Option<serde_json::Number>, place: &Range<usize>, fault: &str) -> NodeKind {
        number.map_or_else(
            || {
                let written = self.source.text.get(place.clone()).unwrap_or_default();
                let problem = Diagnostic::error(format!("`{written}` {fault}"));
                self.problems.push(problem.at(self.source.excerpt(span(place.clone()))));
                NodeKind::Null
            },
            NodeKind::Number,
        )
    }

    fn node(&self, kind: NodeKind, place: Range<usize>) -> Node {
        Node { kind, span: span(place), tag: None, source: Arc::clone(self.source) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> (Option<Node>, Vec<String>) {
        let mut problems = Problems::new();
        let node = read_toml(&Source::new("task.toml", text), &mut problems);
        (node, problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn values_keep_their_order_and_their_places() {
        let text = "b = 0x10\na.c = [1.5, true]\n\n[t]\nday = 2026-11-28\n[[s]]\nn = \"x\\n\"\n[[s]]\nn = 'y'\n";
        let (node, problems) = read(text);
        let node = node.unwrap();
        assert_eq!(problems, [""; 0]);
        assert_eq!(
            node.to_json(),
            json!({"b": 16, "a": {"c": [1.5, true]}, "t": {"day": "2026-11-28"}, "s": [{"n": "x\n"}, {"n": "y"}]})
        );
        let NodeKind::Map(entries) = &node.kind else { panic!("a map") };
        let lines: Vec<usize> = entries.iter().map(|(key, _)| node.source.excerpt(key.span).line).collect();
        assert_eq!(lines, [1, 2, 4, 6]);
        assert_eq!(node.get("t").and_then(|t| t.get("day")).map(|day| day.excerpt().line), Some(5));
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, expected) in [
            ("a = 1\nb = \n", "task.toml:2:"),
            ("a = 1\na = 2\n", "task.toml:2:"),
            ("a = nan\n", "task.toml:1:5: `nan` is not a finite number"),
            ("a = 99999999999999999999\n", "task.toml:1:5: `99999999999999999999` is too large"),
        ] {
            let (_, problems) = read(text);
            assert!(problems.len() == 1 && problems[0].starts_with(expected), "{text}: {problems:?}");
        }
    }
}
