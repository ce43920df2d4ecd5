//! The page of the template language.

use std::fmt::Write;

const INTRODUCTION: &str = "\
# Templates

Text in [fixtures files](fixtures.md) and in the assertion [`expect`](assertions.md#expect) may hold templates: \
`{{ an expression }}` and `{% a statement %}`. They are resolved when a case is read, in every text, in the items of \
lists and in the values and keys of maps. Text without either is left as it is, braces and `{# comments #}` included.
";

const RULES: &[Rule] = &[
    Rule {
        title: "A placeholder that is all there is keeps its type",
        text: "\
A text that is nothing but one placeholder which names a value becomes that value: a number, a list, a map. A name may \
have a path. Anything else becomes text; null is nothing in it, a list its items joined by commas, a map its JSON.
",
        samples: &[
            ("{{ user.age }}", r#"{"user": {"age": 30}}"#, Ok("30")),
            ("{{ user.tags[0] }}", r#"{"user": {"tags": ["new"]}}"#, Ok(r#""new""#)),
            ("{{ age }} years", r#"{"age": 30}"#, Ok(r#""30 years""#)),
            ("{{ age + 1 }}", r#"{"age": 30}"#, Ok(r#""31""#)),
        ],
    },
    Rule {
        title: "Variables may hold templates themselves",
        text: "They are resolved when they are used, each once and no further than it is used. A circle is an error that names it.\n",
        samples: &[
            ("{{ greeting }}!", r#"{"greeting": "Hello {{ name }}", "name": "Ann"}"#, Ok(r#""Hello Ann!""#)),
            ("{{ a }}", r#"{"a": "{{ b }}", "b": "{{ a }}"}"#, Err(())),
        ],
    },
    Rule {
        title: "What is not known is an error",
        text: "An unknown variable never becomes empty text. `is defined` and `is undefined` ask without an error.\n",
        samples: &[
            ("Hello {{ nmae }}", r#"{"name": "Ann"}"#, Err(())),
            ("{{ name|uper }}", r#"{"name": "Ann"}"#, Err(())),
            ("{% if nick is defined %}{{ nick }}{% else %}{{ name }}{% endif %}", r#"{"name": "Ann"}"#, Ok(r#""Ann""#)),
        ],
    },
    Rule {
        title: "In a regular expression, a value stands for itself",
        text: "\
In a text written `/source/flags`, what a name stands for is put in with its special characters escaped. An expression \
that is more than a name is put in as it is, so that parts of a pattern can be made.
",
        samples: &[
            ("/^{{ price }}$/", r#"{"price": "$5 (net)"}"#, Ok(r#""/^\\$5 \\(net\\)$/""#)),
            ("/^({{ names|join('|') }})$/", r#"{"names": ["Ann", "Bo"]}"#, Ok(r#""/^(Ann|Bo)$/""#)),
        ],
    },
];

const LIMITS: &str = "\
## Limits and other dialects

A template that goes on without end, or makes too much, is stopped with an error: steps, lengths and depths have \
limits no template written by a person comes near. Chance is the same in every run of a case, and so is the time within a run.

`templateFormat` of a case chooses another way of writing placeholders in what is expected: `fstring` (`{name}`), \
`golang` (`{{.name}}`) or `env` (`$name`, `${name}`, `${name:-otherwise}`). They know names and paths only. Variables are \
always written as above.
";

/// A rule about templates, with templates that show it.
struct Rule {
    title: &'static str,
    text: &'static str,
    /// A template, its variables, and the value it becomes, as JSON; an error's message is taken from the engine.
    samples: &'static [(&'static str, &'static str, Result<&'static str, ()>)],
}

/// The reference of the template language as Markdown: `docs/reference/templates.md`.
pub fn templates_reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    for Rule { title, text, samples } in RULES {
        let _ = write!(page, "\n## {title}\n\n{text}\n| template | variables | becomes |\n| --- | --- | --- |\n");
        for (template, variables, _) in *samples {
            let becomes = match rendered(template, variables) {
                Ok(value) => code(&value),
                Err(because) => format!("error: {because}"),
            };
            let _ = writeln!(page, "| {} | {} | {} |", code(template), code(variables), cell(&becomes));
        }
    }
    for chapter in template::reference() {
        let _ =
            write!(page, "\n## {}\n\n| written | | example | becomes |\n| --- | --- | --- | --- |\n", chapter.title);
        for entry in &chapter.entries {
            let shows = entry.shows.map(code).unwrap_or_default();
            let _ =
                writeln!(page, "| {} | {} | {} | {shows} |", code(entry.usage), cell(entry.doc), code(entry.example));
        }
    }
    let _ = write!(page, "\n{LIMITS}");
    page
}

/// What `template` becomes with `variables`, as JSON.
fn rendered(template: &str, variables: &str) -> Result<String, String> {
    let variables: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(variables).map_err(|error| error.to_string())?;
    let source = model::Source::new("variables", "");
    let variables = template::Variables::new().layer_json(&variables, &source);
    let told = |error: template::TemplateError| match error.help {
        Some(help) => format!("{} ({help})", error.message),
        None => error.message,
    };
    match template::Template::parse(template).map_err(told)? {
        Some(template) => template.render(&variables).map(|value| value.to_string()).map_err(told),
        None => Err("it is no template".into()),
    }
}

/// As code in a cell. A line end is shown as it is written between quotes.
fn code(text: &str) -> String {
    let shown = cell(&text.replace('\n', "\\n"));
    if shown.is_empty() { shown } else { format!("`{shown}`") }
}

fn cell(text: &str) -> String {
    // A bar that is escaped already stays so.
    text.replace("\\|", "|").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_holds_of_its_samples() {
        for (template, variables, wanted) in RULES.iter().flat_map(|rule| rule.samples) {
            let becomes = rendered(template, variables);
            match wanted {
                Ok(value) => assert_eq!(becomes.as_deref(), Ok(*value), "{template}"),
                Err(()) => assert!(becomes.is_err(), "{template}: {becomes:?}"),
            }
        }
    }

    #[test]
    fn the_page_tells_of_everything_there_is() {
        let page = templates_reference();
        for chapter in template::reference() {
            assert!(page.contains(&format!("\n## {}\n", chapter.title)), "{}", chapter.title);
            for entry in chapter.entries {
                assert!(page.contains(&code(entry.usage)), "{}", entry.name);
            }
        }
    }
}
