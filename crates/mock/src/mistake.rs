//! Names in mocks that no call can have, and placeholders that cannot be replaced. Both are found before any call.

use std::path::{Component, Path};

use model::nearest;
use serde_json::{Map, Value};

use crate::text::Placeholder;

/// Names that other tools have for the arguments of a call.
const OTHER_NAMES: [&str; 4] = ["args", "arguments", "params", "parameters"];

/// What the answers and requirements of a mock can refer to.
#[derive(Debug, Clone)]
pub struct Scope<'a> {
    /// Names of the arguments; `None` if they can have any name.
    arguments: Option<Vec<&'a str>>,
    /// Names of arguments that requirements mention, if the arguments can have any name.
    mentioned: Vec<&'a str>,
    /// True if a call cannot have other arguments.
    is_complete: bool,
}

/// A name that no call has, or a placeholder that cannot be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The name or the placeholder as it is written.
    pub written: String,
    /// Description of the problem.
    pub message: String,
    /// What was probably meant.
    pub suggestion: Option<String>,
    /// True if it may be on purpose.
    pub is_doubtful: bool,
}

impl<'a> Scope<'a> {
    /// Returns the scope of a tool.
    pub fn of_tool(input_schema: Option<&'a Map<String, Value>>) -> Self {
        let properties = input_schema.and_then(model::listed_arguments);
        let arguments = properties.map(|properties| properties.keys().map(String::as_str).collect());
        Self { arguments, mentioned: Vec::new(), is_complete: false }
    }

    /// Adds the names of arguments in requirements. A name that is similar to one of them is doubtful.
    pub fn mentioning(self, names: impl IntoIterator<Item = &'a str>) -> Self {
        Self { mentioned: names.into_iter().map(first).collect(), ..self }
    }

    /// Returns the scope of a program.
    pub fn of_program() -> Self {
        Self { arguments: Some(vec!["args", "line"]), mentioned: Vec::new(), is_complete: true }
    }

    /// Returns the mistake in a path such as `filter.state` of an argument.
    pub fn check_argument(&self, path: &str) -> Option<Mistake> {
        let first = first(path);
        let rest = &path[first.len()..];
        let Some(arguments) = &self.arguments else { return self.check_mentioned(first, path, rest) };
        if arguments.contains(&first) {
            return None;
        }
        let near = nearest(first, arguments.iter().copied());
        // Only placeholders have the word before the name.
        let inner = path.strip_prefix("input.").filter(|inner| arguments.contains(&self::first(inner)));
        let message = match self.is_complete {
            true => format!("the call of a program has no `{first}`, only `args` and `line`"),
            false => format!("`input_schema` has no argument `{first}`"),
        };
        Some(Mistake {
            written: path.to_owned(),
            message,
            suggestion: inner.map(str::to_owned).or_else(|| near.map(|near| format!("{near}{rest}"))),
            // A schema is not enforced, so a call can have arguments that it does not list.
            is_doubtful: inner.or(near).is_none() && !self.is_complete,
        })
    }

    /// Returns the mistake in the argument `first`, the beginning of `path`, whose end is `rest`, of a tool without a
    /// schema.
    fn check_mentioned(&self, first: &str, path: &str, rest: &str) -> Option<Mistake> {
        let near = nearest(first, self.mentioned.iter().copied()).filter(|_| !self.mentioned.contains(&first))?;
        Some(Mistake {
            written: path.to_owned(),
            message: format!("the argument `{first}` is not in `input_schema`, `expect` or `when`"),
            suggestion: Some(format!("{near}{rest}")),
            is_doubtful: true,
        })
    }

    /// Returns the mistakes in the placeholders of `text`.
    pub fn check_text(&self, text: &str) -> Vec<Mistake> {
        let mut mistakes = self.check_single_braces(text);
        mistakes.extend(text.trim().strip_prefix("file://").filter(|path| !path.contains(char::is_whitespace)).map(
            |path| Mistake {
                written: text.trim().to_owned(),
                message: format!("`file://{path}` would be sent as it is, and no file is read"),
                suggestion: Some(format!("{{{{file:{path}}}}}")),
                is_doubtful: true,
            },
        ));
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (mistake, next) = match Placeholder::first(after) {
                Some((placeholder, next)) => {
                    let written = &rest[before.len()..rest.len() - next.len()];
                    (self.check_placeholder(&placeholder, written), next)
                }
                // Expressions of other tools, such as `${{ inputs.name }}`, are ordinary text.
                None if before.ends_with('$') => (None, after),
                None => (self.check_other(after), after),
            };
            mistakes.extend(mistake.filter(|mistake| !mistakes.contains(mistake)));
            rest = next;
        }
        mistakes
    }

    /// Returns the known arguments in `text` that are written like `${input.state}` or `{input.state}`.
    fn check_single_braces(&self, text: &str) -> Vec<Mistake> {
        let mistake = |(at, _): (usize, &str)| {
            let (before, after) = (&text[..at], &text[at + 1..]);
            let path = after.split_once('}').filter(|(_, after)| !after.starts_with('}'))?.0.strip_prefix("input.")?;
            let first = first(path);
            let is_inside = before.rfind("{{") > before.rfind("}}");
            let is_known = self.arguments.as_ref().unwrap_or(&self.mentioned).contains(&first);
            (is_known && !is_inside && !before.ends_with('{')).then(|| {
                let written = format!("{}{{input.{path}}}", if before.ends_with('$') { "$" } else { "" });
                let message = format!("`{written}` is not a placeholder, so it would be sent as it is");
                let suggestion = Some(format!("{{{{input.{path}}}}}"));
                Mistake { written, message, suggestion, is_doubtful: true }
            })
        };
        text.match_indices("{input.").filter_map(mistake).collect()
    }

    fn check_placeholder(&self, placeholder: &Placeholder<'_>, written: &str) -> Option<Mistake> {
        let path = match placeholder {
            Placeholder::Input(path) => {
                let mistake = self.check_argument(path)?;
                let suggestion = mistake.suggestion.map(|path| format!("{{{{input.{path}}}}}"));
                return Some(Mistake { written: written.to_owned(), suggestion, ..mistake });
            }
            Placeholder::File(path) => *path,
        };
        if let Some((_, after)) = path.split_once("{input.") {
            let name = after.split('}').next().unwrap_or(after);
            let inner = self.check_argument(name)?;
            let suggestion = inner.suggestion.map(|name| format!("{{input.{name}}}"));
            return Some(Mistake { written: format!("{{input.{name}}}"), suggestion, ..inner });
        }
        (!is_inside(path)).then(|| Mistake {
            written: written.to_owned(),
            message: format!("the file `{path}` is not in the folder of the mock"),
            suggestion: None,
            is_doubtful: false,
        })
    }

    /// Returns the mistake in text that begins after `{{` and is no placeholder, if one was probably meant.
    fn check_other(&self, after: &str) -> Option<Mistake> {
        if let Some(open) = open(after) {
            let closed = format!("{{{{{}}}}}", open.trim());
            return Some(Mistake {
                written: format!("{{{{{open}"),
                message: format!("`{{{{{open}` is not closed, so it would be sent as it is"),
                suggestion: Some(closed).filter(|_| after[open.len()..].starts_with('}')),
                is_doubtful: false,
            });
        }
        let (inside, _) = after.split_once("}}")?;
        let written = format!("{{{{{inside}}}}}");
        let inside = inside.trim();
        let end = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inside.len());
        let (word, rest) = inside.split_at(end);
        let message = format!("`{written}` is not a placeholder, so it would be sent as it is");
        let mistake = |suggestion: String, is_doubtful: bool| {
            Some(Mistake {
                written: written.clone(),
                message: message.clone(),
                suggestion: Some(suggestion).filter(|suggestion| *suggestion != written),
                is_doubtful,
            })
        };
        match (rest.chars().next(), nearest(word, ["input", "file"])) {
            (Some('.'), near) if near == Some("input") || OTHER_NAMES.contains(&word) => {
                // Items of a list are written with a dot.
                let name = rest[1..].trim().replace('[', ".").replace(']', "");
                // A filter, as other dialects of templates have it, is not a part of the name.
                let name = name.split(|c: char| c.is_whitespace() || "|(".contains(c)).next().unwrap_or_default();
                let is_doubtful = near != Some("input");
                mistake(format!("{{{{input.{}}}}}", if name.is_empty() { "NAME" } else { name }), is_doubtful)
            }
            (Some(':'), Some("file")) => mistake(format!("{{{{file:{}}}}}", rest[1..].trim()), false),
            (None, Some("input")) => mistake("{{input.NAME}}".to_owned(), true),
            (None, _) if self.arguments.as_ref().unwrap_or(&self.mentioned).contains(&word) => {
                mistake(format!("{{{{input.{word}}}}}"), true)
            }
            _ => None,
        }
    }
}

/// Returns the reference to an argument at the beginning of `after`, which follows `{{`, if it is not closed by `}}`.
fn open(after: &str) -> Option<&str> {
    let path = after.trim_start().strip_prefix("input.")?;
    let end = path.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))).unwrap_or(path.len());
    let is_closed = path[end..].split_once("}}").is_some_and(|(rest, _)| !rest.contains(['{', '}']));
    let is_open = end > 0 && !is_closed && !path[end..].starts_with('[');
    is_open.then(|| &after[..after.len() - path.len() + end])
}

/// Returns the files in the folder of the mock that `text` names, whatever the arguments are: each placeholder, and the
/// path in it.
pub fn named_files(text: &str) -> Vec<(&str, &Path)> {
    let mut files = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        rest = match Placeholder::first(after) {
            Some((placeholder, next)) => {
                if let Placeholder::File(path) = placeholder
                    && !path.contains("{input.")
                    && is_inside(path)
                {
                    files.push((&rest[before.len()..rest.len() - next.len()], Path::new(path)));
                }
                next
            }
            None => after,
        };
    }
    files
}

/// Returns the name of the argument at the beginning of `path`.
fn first(path: &str) -> &str {
    path.split('.').next().unwrap_or(path)
}

/// Returns `true` for a path that does not leave its folder.
fn is_inside(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the message, the suggestion and the doubt of the only mistake.
    fn only(mistakes: Vec<Mistake>) -> Option<(String, String, bool)> {
        assert!(mistakes.len() < 2, "{mistakes:?}");
        let shown = |found: Mistake| (found.message, found.suggestion.unwrap_or_default(), found.is_doubtful);
        mistakes.into_iter().next().map(shown)
    }

    #[test]
    fn a_name_that_no_call_has_is_found_with_a_suggestion() {
        let schema = json!({"properties": {"state": {}, "filter": {}}, "type": "object"});
        let tool = Scope::of_tool(schema.as_object());
        let check = |text: &str| only(tool.check_text(text));
        for text in [
            "{{input.state}} {{ input.filter.owner }} {{file:open.json}} {{file:{input.state}.json}}",
            "{{ other }} {{#each}} ${{ inputs.name }} {{inputs}} {{files}} {{",
        ] {
            assert_eq!(tool.check_text(text).into_iter().filter(|found| !found.is_doubtful).count(), 0, "{text}");
        }
        let as_it_is = |written: &str| format!("`{written}` is not a placeholder, so it would be sent as it is");
        for (text, message, suggestion, is_doubtful) in [
            ("{{input.stat}}", "`input_schema` has no argument `stat`".to_owned(), "{{input.state}}", false),
            ("{{input.fliter.a}}", "`input_schema` has no argument `fliter`".to_owned(), "{{input.filter.a}}", false),
            ("{{input.input.state}}", "`input_schema` has no argument `input`".to_owned(), "{{input.state}}", false),
            ("{{input.project}}", "`input_schema` has no argument `project`".to_owned(), "", true),
            ("{{file:{input.stat}}}", "`input_schema` has no argument `stat`".to_owned(), "{input.state}", false),
            ("{{inputs.state}}", as_it_is("{{inputs.state}}"), "{{input.state}}", false),
            ("{{ input. }}", as_it_is("{{ input. }}"), "{{input.NAME}}", false),
            ("{{input.state[0]}}", as_it_is("{{input.state[0]}}"), "{{input.state.0}}", false),
            ("{{input}}", as_it_is("{{input}}"), "{{input.NAME}}", true),
            ("{{state}}", as_it_is("{{state}}"), "{{input.state}}", true),
            ("{{args.state}}", as_it_is("{{args.state}}"), "{{input.state}}", true),
            ("${input.state}", as_it_is("${input.state}"), "{{input.state}}", true),
            ("{input.filter.a}", as_it_is("{input.filter.a}"), "{{input.filter.a}}", true),
            ("{{flie:open.json}}", as_it_is("{{flie:open.json}}"), "{{file:open.json}}", false),
            ("{{file:../x}}", "the file `../x` is not in the folder of the mock".to_owned(), "", false),
        ] {
            assert_eq!(check(text), Some((message, suggestion.to_owned(), is_doubtful)), "{text}");
        }
        let open = json!({"properties": {"state": {}}, "additionalProperties": true});
        for schema in [None, open.as_object()] {
            assert_eq!(only(Scope::of_tool(schema).check_text("{{input.stat}}")), None);
        }
        let program = Scope::of_program();
        assert_eq!(only(program.check_text("{{input.args.0}} {{input.line}}")), None);
        let (message, suggestion, is_doubtful) = only(program.check_text("{{input.name}}")).unwrap();
        assert_eq!(message, "the call of a program has no `name`, only `args` and `line`");
        assert!(suggestion.is_empty() && !is_doubtful);
    }

    #[test]
    fn files_are_named_by_placeholders_without_arguments() {
        let named = named_files("{{file:a/b.json}} {{input.x}} {{file:{input.x}.json}} {{ file: c }} {{file");
        assert_eq!(named, [("{{file:a/b.json}}", Path::new("a/b.json")), ("{{ file: c }}", Path::new("c"))]);
    }
}
