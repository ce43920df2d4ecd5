//! Resolves the templates in the user's file, and reports their errors.

use model::Node;
use model::decode::Problems;

use crate::error::{ErrorKind, TemplateError};
use crate::format::Format;
use crate::path::Key;
use crate::resolution::{Found, Resolution, evaluate, narrow};
use crate::template::{Outcome, Template};
use crate::variables::Variables;

/// Returns `node` with every template in it resolved: strings, the items of lists, the values of maps and their keys.
/// Everything else stays unchanged, including the order of keys.
///
/// A template that cannot be resolved is reported at its location and stays unchanged. The result of a template has
/// the location of the template, so that later problems point there. It keeps the tags of the value, and the
/// template's own. If the variables are set to keep invalid templates, these only cause warnings.
pub fn resolve(node: &Node, variables: &Variables, problems: &mut Problems) -> Node {
    resolve_as(Format::default(), node, variables, problems)
}

/// Like [`resolve`], with placeholders in `format`. Templates inside variables always have the default format.
pub fn resolve_as(format: Format, node: &Node, variables: &Variables, problems: &mut Problems) -> Node {
    let mut limit_told = false;
    let mut report = |at: &Node, error: TemplateError| {
        // After a limit is exceeded, everything fails with the same error.
        if variables.exhausted() && std::mem::replace(&mut limit_told, true) {
            return Ok(());
        }
        let text = at.as_str().unwrap_or_default();
        let place = at.source.excerpt(narrow(at, text, &error.range));
        let problem = match error.kind {
            ErrorKind::Unread if variables.keeps_unread => error.warning_at(place),
            _ => error.diagnostic_at(place),
        };
        if !problems.contains(&problem) {
            problems.push(problem);
        }
        Ok(())
    };
    let resolved = Resolution::new(variables).tree(node, format, None, &mut report);
    match resolved {
        Ok(resolved) => resolved,
        // A limit was exceeded, and no single template is the cause.
        Err(error) => {
            let _ = report(node, error);
            node.clone()
        }
    }
}

/// Renders `node`, a string in Nunjucks, to text. Returns `None` if it cannot be rendered, which is reported at its
/// line.
pub fn render_nunjucks(node: &Node, variables: &Variables, problems: &mut Problems) -> Option<String> {
    let text = node.as_str()?;
    let rendered = Template::parse_nunjucks(text).and_then(|template| match template {
        Some(template) => evaluate(&template, &Resolution::new(variables)),
        None => Ok(Outcome::Text(text.to_owned())),
    });
    match rendered {
        Ok(Outcome::Text(text)) => Some(text),
        Ok(Outcome::Value(value)) => value.as_str().map(str::to_owned),
        Err(error) => {
            let range = Template::parse_nunjucks(text).ok().flatten().map(|template| {
                // The range is one in the translated text, whose words are those of the original.
                let words = template.text().get(error.range.clone()).unwrap_or_default().to_owned();
                let starts = || text.match_indices(&words).map(|(start, _)| start);
                let in_tag = starts().find(|start| !words.is_empty() && is_in_tag(&text[..*start]));
                in_tag.or_else(|| starts().next()).map_or(0..0, |start| start..start + words.len())
            });
            let place = node.source.excerpt(narrow(node, text, &range.unwrap_or_else(|| error.range.clone())));
            problems.push(error.diagnostic_at(place));
            None
        }
    }
}

/// Returns `true` if a tag is open at the end of `text`.
fn is_in_tag(text: &str) -> bool {
    text.rfind("{{").max(text.rfind("{%")) > text.rfind("}}").max(text.rfind("%}"))
}

impl Variables {
    /// Returns the value of `name` with its templates resolved, or `None` if there is no such variable.
    ///
    /// # Errors
    /// Returns the error in a template in the value. Its `place` has the source position.
    pub fn get(&self, name: &str) -> Result<Option<Node>, TemplateError> {
        match Resolution::new(self).find(&[Key::Name(name.to_owned())])? {
            Found::Node(node) => Ok(Some(node)),
            Found::Missing { .. } => Ok(None),
        }
    }

    /// Returns all values with their templates resolved. A value that cannot be resolved is reported and omitted. Once
    /// the values have become too large, all further ones are omitted without another report.
    pub fn to_json(&self, problems: &mut Problems) -> serde_json::Map<String, serde_json::Value> {
        let mut values = serde_json::Map::new();
        for (name, raw) in &self.entries {
            match self.get(name) {
                Ok(Some(node)) => {
                    values.insert(name.clone(), node.to_json());
                }
                Ok(None) => {}
                Err(error) => {
                    let problem = error.diagnostic_at(raw.excerpt());
                    if !problems.contains(&problem) {
                        problems.push(problem);
                    }
                    if self.exhausted() {
                        break;
                    }
                }
            }
        }
        values
    }
}

impl Template {
    /// Returns the result with `variables`: the value itself if a single placeholder names one (`{{ user }}`, `{{
    /// users[0].name }}`), otherwise text.
    ///
    /// # Errors
    /// Returns an error if a name is unknown, an operation has no result, or a limit is exceeded.
    pub fn render(&self, variables: &Variables) -> Result<serde_json::Value, TemplateError> {
        match evaluate(self, &Resolution::new(variables))? {
            Outcome::Value(node) => Ok(node.to_json()),
            Outcome::Text(text) => Ok(text.into()),
        }
    }
}
