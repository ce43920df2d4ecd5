//! Resolves the templates in the user's file, and reports their errors.

use model::Node;
use model::decode::Problems;

use crate::error::{Nature, TemplateError};
use crate::format::Format;
use crate::resolution::{Label, Resolution, narrow};
use crate::variables::Variables;

/// Returns `node` with every template in it resolved: texts, the items of lists, the values of maps and their keys.
/// Everything else stays unchanged, including the order of keys.
///
/// A template that cannot be resolved is reported at its place, and stays as it is. The result of a template has the
/// place of the template, so that later problems point there. It keeps the tags of the value, and the template's own.
/// If the variables are set to keep invalid templates, these are warnings.
pub fn resolve(node: &Node, variables: &Variables, problems: &mut Problems) -> Node {
    resolve_as(Format::default(), node, variables, problems)
}

/// Same as [`resolve`], with placeholders in `format`. Templates inside of variables always have the default format.
pub fn resolve_as(format: Format, node: &Node, variables: &Variables, problems: &mut Problems) -> Node {
    let mut limit_told = false;
    let mut report = |at: &Node, error: TemplateError| {
        // After a limit is exceeded, everything fails with the same error.
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
        // A limit was exceeded that is not caused by a single template.
        Err(error) => {
            let _ = report(node, error);
            node.clone()
        }
    }
}
