//! Templates in the user's file, and what is wrong with them.

use model::Node;
use model::decode::Problems;

use crate::error::{Nature, TemplateError};
use crate::format::Format;
use crate::resolution::{Label, Resolution, narrow};
use crate::variables::Variables;

/// `node` with every template in it resolved: text, the items of lists, the values of maps and their keys. Everything
/// else is as it was, the order of keys included.
///
/// A template that cannot be resolved is a problem at its place, and stays as it is. What a template becomes has the
/// place of the template, so that later problems point there; it keeps the tags of the value, and the template's own.
/// Where the variables keep what cannot be read, that is a warning.
pub fn resolve(node: &Node, variables: &Variables, problems: &mut Problems) -> Node {
    resolve_as(Format::default(), node, variables, problems)
}

/// As [`resolve`], with placeholders written as `format` has them. Templates inside variables are written in the
/// default way whatever the format.
pub fn resolve_as(format: Format, node: &Node, variables: &Variables, problems: &mut Problems) -> Node {
    let mut limit_told = false;
    let mut report = |at: &Node, error: TemplateError| {
        // Past a limit everything fails in the same way.
        if variables.exhausted() && std::mem::replace(&mut limit_told, true) {
            return Ok(());
        }
        let text = at.as_str().unwrap_or_default();
        let place = at.source.excerpt(narrow(at, text, &error.range));
        let problem = match error.nature {
            Nature::Unread if variables.keeps_unread() => error.warning_at(place),
            _ => error.diagnostic_at(place),
        };
        if !problems.contains(&problem) {
            problems.push(problem);
        }
        Ok(())
    };
    let resolved = Resolution::new(variables).tree(node, format, &Label::Outside, &mut report);
    match resolved {
        Ok(resolved) => resolved,
        // A limit, which is no single template's fault.
        Err(error) => {
            let _ = report(node, error);
            node.clone()
        }
    }
}
