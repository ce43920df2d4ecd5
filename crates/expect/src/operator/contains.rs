//! `$contains`: some item of a list matches.

use model::Node;

use crate::candidates::Candidates;
use crate::compile::Compiler;
use crate::found::Pass;
use crate::prelude::*;

pub(super) fn read(compiler: &mut Compiler<'_>, operand: &Node, _operator: &'static str) -> Option<Box<dyn Rule>> {
    let inner = compiler.matcher(operand);
    Some(Box::new(Contains { inner, place: SourceLocation::from_node(operand) }))
}

#[derive(Debug)]
struct Contains {
    inner: Matcher,
    place: SourceLocation,
}

impl Rule for Contains {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        match actual {
            Some(whole @ Value::Array(items)) => one_of(whole, items, &self.inner, at, &self.place),
            Some(_) => self.inner.judge(actual, &at.below("")),
            None => {
                let critical = self.inner.critical;
                Found::flawed(Flaw { critical, ..Flaw::new(&self.place, "there is no value that could contain it") })
            }
        }
    }
}

/// Returns the result for the item that matches best. `items` are the items of `whole`.
pub(super) fn one_of(
    whole: &Value,
    items: &[Value],
    wanted: &Matcher,
    at: &Scope<'_>,
    place: &SourceLocation,
) -> Found {
    let mut tried = Candidates::default();
    let mut pass = Pass::No;
    let mut stopped = None;
    let inside = Scope { present: true, ..at.quietly() };
    for (index, item) in items.iter().enumerate() {
        let found = wanted.judge(Some(item), &inside);
        pass = pass.or(found.pass);
        if found.pass == Pass::Yes && found.score >= 1.0 {
            return Found::full();
        }
        if found.pass == Pass::Unknown {
            stopped = stopped.or_else(|| found.flaws.first().cloned());
        }
        tried.add(index, found, true);
    }
    let (score, most) = tried.scores();
    let best = Found { most, ..Found::scored(score, pass) };
    if pass == Pass::Yes {
        return best;
    }
    let flaw = stopped.unwrap_or_else(|| {
        let near = near(&tried, at);
        let message = match items.len() {
            0 => "the list is empty".to_owned(),
            1 => format!("the only item does not match{near}"),
            count => format!("none of {count} items matches{near}"),
        };
        Flaw::new(place, message).actual(Some(whole))
    });
    let flaw = Flaw { critical: wanted.meta.critical, ..flaw };
    Found { flaws: vec![tried.flaw(pass, flaw, wanted.critical)], ..best }
}

/// Describes the mismatch of the nearest item.
fn near(tried: &Candidates, at: &Scope<'_>) -> String {
    let Some((index, _, [flaw, ..])) = tried.nearest() else { return String::new() };
    let message = flaw.message.as_deref().unwrap_or("it does not match");
    let key = flaw.key.as_deref().unwrap_or_default();
    let inside = key.strip_prefix(at.key.as_str()).unwrap_or(key).trim_start_matches('.');
    let colon = if inside.is_empty() { "" } else { ": " };
    format!("; closest match is item {index}: {inside}{colon}{message}")
}
