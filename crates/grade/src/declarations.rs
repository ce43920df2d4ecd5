//! TypeScript declarations for tests. Those for assertions are generated from the table of assertions.

use std::fmt::Write;

use crate::assertion_type::{Assertion, Field, Parameter, camel_case};
use crate::assertions::ASSERTIONS;

/// Declarations of everything except the assertions.
const FRAME: &str = include_str!("declarations/trialrun.d.ts");

/// Placeholder for the assertions' fields.
const FIELDS: &str = "/* fields */\n";

/// Placeholder for the assertions.
const MADE: &str = "/* assertions */\n";

/// Maximum width of a comment line, in characters.
const WIDTH: usize = 116;

/// Descriptions of field values, and the TypeScript type for each. The first entry that is a prefix of the description
/// applies.
const TYPES: &[(&str, &str)] = &[
    ("string, or a regular expression in code", "string | RegExp"),
    ("string or list of strings", "string | readonly string[]"),
    ("string", "string"),
    ("path", "string"),
    ("regular expression", "RegExp | string"),
    ("map of regular expressions and values", "RegExp | string | Record<string, unknown>"),
    ("whole number", "number"),
    ("number", "number"),
    ("duration", "number | string"),
    ("list of strings, or of maps", "readonly (string | Record<string, unknown>)[]"),
    ("list of strings", "readonly string[]"),
    ("list of paths", "readonly string[]"),
    ("list of steps", "readonly Record<string, unknown>[]"),
    ("map", "Record<string, unknown>"),
    ("true or false", "boolean"),
    ("`true` or `false`", "boolean"),
    ("JSON Schema, in code", "JsonSchema | Schema"),
    ("JSON Schema", "JsonSchema"),
    ("expectation", "unknown"),
    ("any value", "unknown"),
];

/// Returns the text of `trialrun.d.ts`.
pub fn declarations() -> String {
    let written = ASSERTIONS.iter().filter(|assertion| !assertion.is_implicit());
    let (mut fields, mut claims) = (String::new(), String::new());
    for assertion in written {
        declare_fields(&mut fields, assertion);
        declare(&mut claims, assertion);
    }
    FRAME.replacen(FIELDS, &fields, 1).replacen(MADE, &claims, 1)
}

/// Writes the type for the fields of `assertion`. Results of `write!` are ignored, since writing to a `String` cannot
/// fail.
fn declare_fields(out: &mut String, assertion: &Assertion) {
    comment(out, "  ", &format!("The fields of `{}`.", assertion.code_name()));
    let _ = writeln!(out, "  export interface {} {{", type_name(assertion));
    for field in assertion.fields {
        let default = field.default.map(|default| format!(" Default: {default}.")).unwrap_or_default();
        comment(out, "    ", &format!("{}{default}", field.doc));
        let optional = if field.required { "" } else { "?" };
        let _ = writeln!(out, "    {}{optional}: {};", camel_case(field.name), type_of(field));
    }
    out.push_str("  }\n\n");
}

fn declare(out: &mut String, assertion: &Assertion) {
    comment(out, "    ", assertion.summary);
    let mut ways = vec![positional(assertion)];
    if matches!(assertion.parameters, [Parameter::Value(_), ..]) {
        ways.push(format!("[fields: {} & Options]", type_name(assertion)));
    }
    let _ = writeln!(out, "    {}: Claim<{}>;", assertion.code_name(), ways.join(" | "));
    for alias in assertion.aliases {
        comment(out, "    ", &format!("Another name of `{}`.", assertion.code_name()));
        let _ = writeln!(out, "    {}: Claim<{}>;", camel_case(alias), ways.join(" | "));
    }
}

/// Returns the positional arguments, followed by the remaining fields as the last argument.
fn positional(assertion: &Assertion) -> String {
    let mut given = Vec::new();
    let mut named = Vec::new();
    let last_required = assertion.parameters.iter().rposition(|parameter| is_required(assertion, parameter));
    for (index, parameter) in assertion.parameters.iter().enumerate() {
        match parameter {
            Parameter::Value(name) | Parameter::Map(name) => {
                let Some(field) = assertion.fields.iter().find(|field| field.name == *name) else { continue };
                // An argument before a required one cannot be omitted, but it can be `undefined`.
                let (mark, or) = match field.required {
                    true => ("", ""),
                    false if last_required.is_some_and(|last| index < last) => ("", " | undefined"),
                    false => ("?", ""),
                };
                given.push(format!("{}{mark}: {}{or}", camel_case(name), type_of(field)));
                named.push(*name);
            }
            Parameter::Fields => {
                let first = assertion.fields.iter().find(|field| field.required);
                let short = first.map(|field| format!(" | {}", parenthesised(type_of(field)))).unwrap_or_default();
                let optional = if first.is_some() { "" } else { "?" };
                given.push(format!("fields{optional}: ({} & Options){short}", type_name(assertion)));
                return format!("[{}]", given.join(", "));
            }
        }
    }
    let left: Vec<&Field> = assertion.fields.iter().filter(|field| !named.contains(&field.name)).collect();
    let names: Vec<String> = named.iter().map(|name| format!("\"{}\"", camel_case(name))).collect();
    let options = match (left.is_empty(), names.is_empty()) {
        (true, _) => "Options".to_owned(),
        (false, true) => format!("{} & Options", type_name(assertion)),
        (false, false) => format!("Omit<{}, {}> & Options", type_name(assertion), names.join(" | ")),
    };
    given.push(format!("options?: {options}"));
    format!("[{}]", given.join(", "))
}

/// Returns `true` if code must give the argument.
fn is_required(assertion: &Assertion, parameter: &Parameter) -> bool {
    let (Parameter::Value(name) | Parameter::Map(name)) = parameter else { return false };
    assertion.fields.iter().any(|field| field.name == *name && field.required)
}

/// Returns the type name for the fields, such as `ToolCalledFields`.
fn type_name(assertion: &Assertion) -> String {
    let name = assertion.code_name();
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    format!("{}{}Fields", first.map(String::from).unwrap_or_default(), letters.as_str())
}

/// Returns the type of a field. A description that lists literal words, such as `` `all` or `any` ``, becomes a union
/// of them.
fn type_of(field: &Field) -> String {
    if let Some((_, known)) = TYPES.iter().find(|(words, _)| field.holds.starts_with(words)) {
        return (*known).to_owned();
    }
    let words = field.holds.replace(" or ", ", ");
    let literals = words.split(", ").map(|word| match word.trim() {
        "true" | "false" => Some(word.trim().to_owned()),
        quoted => Some(format!("\"{}\"", quoted.strip_prefix('`')?.strip_suffix('`')?)),
    });
    let literals: Option<Vec<String>> = literals.collect();
    literals.map_or_else(|| "unknown".to_owned(), |literals| literals.join(" | "))
}

fn parenthesised(written: String) -> String {
    if written.contains(" | ") { format!("({written})") } else { written }
}

/// Writes `text` as a comment, wrapped at `WIDTH`.
fn comment(out: &mut String, indent: &str, text: &str) {
    let text = text.replace("*/", "*\u{200b}/");
    if indent.len() + text.chars().count() + 7 <= WIDTH {
        let _ = writeln!(out, "{indent}/** {text} */");
        return;
    }
    let _ = write!(out, "{indent}/**");
    let mut width = WIDTH;
    for word in text.split_whitespace() {
        if width + word.chars().count() + 1 > WIDTH {
            let _ = write!(out, "\n{indent} *");
            width = indent.len() + 2;
        }
        let _ = write!(out, " {word}");
        width += word.chars().count() + 1;
    }
    let _ = writeln!(out, "\n{indent} */");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_assertion_and_every_field_is_declared() {
        let text = declarations();
        assert!(!text.contains(FIELDS) && !text.contains(MADE));
        for assertion in ASSERTIONS.iter().filter(|assertion| !assertion.is_implicit()) {
            assert!(text.contains(&format!("\n    {}: Claim<", assertion.code_name())), "{}", assertion.name);
            let fields = text.split(&format!("interface {} {{", type_name(assertion))).nth(1).unwrap();
            let fields = fields.split("\n  }\n").next().unwrap();
            for field in assertion.fields {
                let name = camel_case(field.name);
                let declared = [format!("\n    {name}: "), format!("\n    {name}?: ")];
                assert!(fields.contains(&declared[usize::from(!field.required)]), "{} {name}", assertion.name);
            }
        }
    }

    #[test]
    fn arguments_are_declared_as_code_passes_them() {
        let text = declarations();
        for line in [
            "    contains: Claim<[text: string, options?: Options] | [fields: ContainsFields & Options]>;",
            "    jsonSchema: Claim<[schema: JsonSchema | Schema, options?: Options]>;",
            "    latency: Claim<[fields: (LatencyFields & Options) | (number | string)]>;",
            "    noPathEscape: Claim<[fields?: (NoPathEscapeFields & Options)]>;",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        let outcomes = model::Outcome::ALL.map(|outcome| format!("\"{}\"", outcome.name())).join(" | ");
        assert!(text.contains(&format!("readonly outcome: {outcomes};")), "{outcomes}");
        assert!(text.contains("toolNotCalled: Claim<[tool: string, argsMatch?: "));
        assert!(text.contains("fileNotContains: Claim<[path: string | undefined, contains: string, options?: "));
        assert!(text.contains("    checkedOut?: boolean;") && text.contains("    allowNewCommits?: boolean;"));
    }

    #[test]
    fn only_arbitrary_values_have_no_type() {
        for field in ASSERTIONS.iter().flat_map(|assertion| assertion.fields) {
            let is_any = ["expectation", "any value", "true, a kind, a list or a map"].contains(&field.holds);
            let is_mixed = field.holds.starts_with("true, or ") || field.holds.starts_with("true, false or ");
            assert!(is_any || is_mixed || type_of(field) != "unknown", "{}: {}", field.name, field.holds);
        }
        let field = |holds| Field { name: "x", holds, required: true, default: None, doc: "" };
        assert_eq!(type_of(&field("`all` or `any`")), "\"all\" | \"any\"");
        assert_eq!(type_of(&field("true or `a`")), "true | \"a\"");
    }
}
