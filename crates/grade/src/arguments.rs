//! Normalizes the arguments of an assertion, in whichever form they are written, to the fields of one entry.

use std::borrow::Cow;

use model::decode::Problems;
use model::{Arguments, AssertionSpec, Diagnostic, DiagnosticKind, Node, NodeKind, Span, Spanned};

use crate::assertion_type::{Assertion, Field, Parameter, TITLE};
use crate::assertions::snake_case;

/// The field with the arguments of a call.
const ARGS_MATCH: &str = "args_match";

/// Option of other programs for the number of calls.
const TIMES: &str = "times";

/// Keys that every assertion has in addition to its own fields.
pub(crate) const COMMON: [&str; 4] = ["id", "type", "weight", "title"];

/// Returns the entry of `spec` with its arguments as fields. Reports invalid arguments.
pub(crate) fn entry<'s>(
    spec: &'s AssertionSpec,
    assertion: &Assertion,
    problems: &mut Problems,
) -> Option<Cow<'s, Node>> {
    let given: &[Node] = match &spec.arguments {
        Arguments::Fields => return Some(Cow::Borrowed(&spec.node)),
        Arguments::Brief(value) if says_nothing(value, assertion) => &[],
        Arguments::Brief(value) if let Some(problem) = not_an_argument(value, assertion) => {
            problems.push(problem);
            return None;
        }
        Arguments::Listed(values)
            if let [value] = values.as_slice()
                && matches!(value.kind, NodeKind::Bool(false))
                && let Some(problem) = not_an_argument(value, assertion) =>
        {
            problems.push(problem);
            return None;
        }
        Arguments::Brief(value) => std::slice::from_ref(value),
        Arguments::Listed(values) => values,
    };
    let mut entries = Vec::new();
    for (index, value) in given.iter().enumerate() {
        if assertion.parameters.get(index) == Some(&Parameter::Map(ARGS_MATCH))
            && let NodeKind::Map(fields) = &value.kind
            && let Some((key, _)) = fields.iter().find(|(key, _)| snake_case(&key.value) == ARGS_MATCH)
        {
            let problem = Diagnostic::error(format!("this map is `{}` already", key.value));
            problems.push(problem.at(value.source.excerpt(key.span)).help(in_its_place(&key.value)));
            return None;
        }
        match assertion.parameters.get(index) {
            Some(parameter) => read(*parameter, value, assertion, &mut entries),
            None if matches!(value.kind, NodeKind::Map(_)) && index == assertion.parameters.len() => {
                read(Parameter::Fields, value, assertion, &mut entries);
            }
            None => {
                problems.push(too_many(assertion, value));
                return None;
            }
        }
    }
    if matches!(spec.arguments, Arguments::Brief(_)) {
        refuse_common(&entries, assertion, problems);
    }
    Some(Cow::Owned(Node { kind: NodeKind::Map(entries), ..spec.node.clone() }))
}

fn in_its_place(key: &str) -> String {
    format!("write what is below `{key}` in its place, such as `{{ id: \"7\" }}`")
}

/// Returns the warning about arguments of a call in code that seem to be options of the assertion, or that are below one
/// more key. The tool must not be known to have such arguments.
pub(crate) fn doubtful(spec: &AssertionSpec, assertion: &Assertion) -> Option<Diagnostic> {
    let Arguments::Listed(values) = &spec.arguments else { return None };
    let index = assertion.parameters.iter().position(|parameter| *parameter == Parameter::Map(ARGS_MATCH))?;
    let value = values.get(index)?;
    let NodeKind::Map(entries) = &value.kind else { return None };
    let is_option = |(key, _): &(Spanned<String>, Node)| {
        let name = snake_case(&key.value);
        let is_field = |field: &Field| !field.required && field.name == name && name != ARGS_MATCH;
        name == TIMES || assertion.fields.iter().any(is_field)
    };
    let has_times = entries.iter().any(|(key, _)| key.value == TIMES);
    let help = match entries.as_slice() {
        [(key, inner)] if matches!((&*key.value, &inner.kind), ("args" | "arguments", NodeKind::Map(_))) => {
            in_its_place(&key.value)
        }
        [_, ..] if entries.iter().all(is_option) && has_times => {
            "options follow the arguments, as in `{}, { min: 2, max: 2 }` for two calls".to_owned()
        }
        [_, ..] if entries.iter().all(is_option) => "options follow the arguments: write `{}` before them".to_owned(),
        _ => return None,
    };
    let (key, _) = entries.first()?;
    let problem = Diagnostic::warning(format!("`{}` is the name of an argument of the call here", key.value));
    let others = assertion.parameters.iter().filter_map(|parameter| match parameter {
        Parameter::Value(name) => Some(format!("{name}: \"…\", ")),
        Parameter::Map(_) | Parameter::Fields => None,
    });
    let named = format!("{{ {}argsMatch: {{ {}: … }} }}", others.collect::<String>(), key.value);
    let named = format!("if the tool has it, write the fields by name: `{named}`");
    Some(problem.at(value.source.excerpt(key.span)).help(help).help(named))
}

/// Returns `true` if `value` only says that the assertion is made: `no_path_escape: true`, or nothing after the colon.
fn says_nothing(value: &Node, assertion: &Assertion) -> bool {
    let is_plain = matches!(value.kind, NodeKind::Null | NodeKind::Bool(true));
    is_plain && !assertion.fields.iter().any(|field| field.required)
}

/// Reports a value that would be the title of an assertion, or that seems to negate it.
fn not_an_argument(value: &Node, assertion: &Assertion) -> Option<Diagnostic> {
    let first = assertion.fields.iter().find(|field| field.required).or(assertion.fields.first());
    let name = assertion.name;
    let is_flag = first.is_none_or(|first| !first.required && !first.holds.contains("false"));
    let has_own_fields = assertion.parameters == [Parameter::Fields];
    match &value.kind {
        NodeKind::Bool(false) if has_own_fields || is_flag => {
            let problem = value.error(format!("`false` does not deny `{name}`"));
            Some(problem.help("remove the assertion, or write the one that denies it"))
        }
        _ if !has_own_fields => None,
        NodeKind::Null | NodeKind::Bool(_) | NodeKind::Map(_) => None,
        _ if first.is_none_or(|first| *first == TITLE) => {
            Some(value.error(format!("`{name}` takes no value")).help(format!("write `{name}` alone, without `:`")))
        }
        _ => None,
    }
}

/// Reports keys that the assertion would ignore.
fn refuse_common(entries: &Entries, assertion: &Assertion, problems: &mut Problems) {
    for (key, value) in entries.iter().filter(|(key, _)| COMMON.contains(&key.value.as_str())) {
        let problem = Diagnostic::error(format!("`{}` is not a field of `{}`", key.value, assertion.name));
        let problem = problem.at(value.source.excerpt(key.span));
        problems.push(match key.value.as_str() {
            "type" => problem,
            beside => problem.help(format!("write `{beside}` next to `{}`, not below it", assertion.name)),
        });
    }
}

/// Changes the names of fields in `problems` to what the user wrote, if the value of a field is written without its
/// name: `contains: 30` has no `text`.
pub(crate) fn name_as_written(spec: &AssertionSpec, entry: &Node, problems: &mut [Diagnostic]) {
    let NodeKind::Map(fields) = &entry.kind else { return };
    let written = spec.kind.value.as_str();
    let what = match &spec.arguments {
        Arguments::Fields => return,
        Arguments::Brief(_) => format!("`{written}`"),
        Arguments::Listed(_) => format!("an argument of `assert.{written}`"),
    };
    for (field, value) in fields.iter().filter(|(field, _)| field.span.start() == field.span.end()) {
        let named = format!("`{}` must ", field.value);
        let place = value.excerpt();
        for problem in problems.iter_mut().filter(|problem| problem.source.as_ref() == Some(&place)) {
            if let Some(rest) = problem.message.strip_prefix(&named) {
                problem.message = format!("{what} must {rest}");
            }
        }
    }
}

/// Changes the suggestion in `problems` of a field that takes one value for a key with a list: `tools: [Edit]`.
pub(crate) fn suggest_single_values(entry: &Node, assertion: &Assertion, problems: &mut [Diagnostic]) {
    for problem in problems {
        let DiagnosticKind::UnknownKey { key, meant: Some(meant) } = &problem.kind else { continue };
        let Some(NodeKind::List(items)) = entry.get(key).map(|value| &value.kind) else { continue };
        let is_single = |field: &&Field| field.name == meant && !field.holds.contains("list");
        if assertion.fields.iter().any(|field| is_single(&field)) && entry.get(meant).is_none() {
            problem.help = vec![match items.as_slice() {
                [only] if only.as_str().is_some() => format!("write `{meant}: {}`", only.as_str().unwrap_or_default()),
                _ => format!("`{meant}` takes one value: write an assertion for each"),
            }];
        }
    }
}

type Entries = Vec<(Spanned<String>, Node)>;

fn read(parameter: Parameter, value: &Node, assertion: &Assertion, entries: &mut Entries) {
    let fields = match &value.kind {
        NodeKind::Map(fields) => Some(fields),
        _ => None,
    };
    match (parameter, fields) {
        (Parameter::Value(_) | Parameter::Fields, Some(fields)) => entries.extend(fields.iter().cloned()),
        (Parameter::Value(name) | Parameter::Map(name), _) => entries.push(named(name, value)),
        (Parameter::Fields, None) => {
            let mut required = assertion.fields.iter().filter(|field| field.required);
            let first = required.next().or(assertion.fields.first());
            entries.extend(first.map(|field| named(field.name, value)));
        }
    }
}

fn named(name: &str, value: &Node) -> (Spanned<String>, Node) {
    let span = Span::new(value.span.start(), value.span.start());
    (Spanned::new(name.to_owned(), span), value.clone())
}

fn too_many(assertion: &Assertion, value: &Node) -> Diagnostic {
    let names: Vec<&str> = assertion.fields.iter().map(|field| field.name).collect();
    let problem = value.error(format!("`{}` takes no argument here", assertion.name));
    match names.as_slice() {
        [] => problem,
        names => problem.help(format!("its fields are {}", names.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use model::{AssertionScope, Finding};
    use serde_json::{Value, json};

    use super::*;
    use crate::assertions::ASSERTIONS;
    use crate::check::{Check, grade};
    use crate::context::Context;
    use crate::yaml;

    /// Judges the example of `assertion`, with its arguments given as `arguments`. The error lists the problems.
    fn judged(name: &str, arguments: Arguments, evidence: &model::Evidence) -> Result<Finding, Vec<String>> {
        let spec = AssertionSpec {
            node: node(&Value::Null),
            arguments,
            about: AssertionScope::Trial,
            id: "a".into(),
            kind: Spanned::new(name.to_owned(), Span::default()),
            weight: 1.0,
        };
        let mut problems = Problems::new();
        match Check::compile(&spec, &Context::default(), &mut problems) {
            Some(check) if problems.is_empty() => Ok(grade(&[check], evidence).remove(0)),
            _ => {
                Err(problems.iter().map(|problem| format!("{} {}", problem.message, problem.help.join(" "))).collect())
            }
        }
    }

    fn node(value: &Value) -> Node {
        yaml::list_item(value, "case.yaml")
    }

    /// Returns the fields in an example.
    fn fields(example: &Value) -> serde_json::Map<String, Value> {
        let fields = example.as_object().unwrap().iter().filter(|(key, _)| !COMMON.contains(&key.as_str()));
        fields.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Returns the same fields as positional arguments, as code passes them.
    fn listed(assertion: &Assertion, mut fields: serde_json::Map<String, Value>) -> Vec<Node> {
        let mut given = Vec::new();
        for parameter in assertion.parameters {
            match parameter {
                Parameter::Value(name) | Parameter::Map(name) if fields.contains_key(*name) => {
                    given.push(node(&fields.remove(*name).unwrap()));
                }
                _ => break,
            }
        }
        if !fields.is_empty() {
            given.push(node(&Value::Object(fields)));
        }
        given
    }

    #[test]
    fn every_example_has_the_same_result_in_every_form() {
        // An assertion that needs a judge cannot decide on its own.
        let by_itself = |assertion: &&Assertion| !assertion.is_implicit() && !assertion.is_judged();
        for assertion in ASSERTIONS.iter().filter(by_itself) {
            for example in [&assertion.pass, &assertion.fail] {
                let evidence = example.evidence();
                let written = fields(&(example.assertion)());
                let camel = assertion.code_name();
                let whole = Value::Object(written.clone());
                let brief = match assertion.parameters {
                    [Parameter::Map(name)] => written.get(*name).cloned().unwrap_or(whole),
                    _ => whole,
                };
                let as_fields = crate::self_test::run(assertion, example).unwrap().unwrap().reason;
                let brief = judged(assertion.name, Arguments::Brief(node(&brief)), &evidence);
                assert_eq!(brief.map(|found| found.reason), Ok(as_fields.clone()), "{}", assertion.name);
                let listed = judged(&camel, Arguments::Listed(listed(assertion, written)), &evidence);
                assert_eq!(listed.map(|found| found.reason), Ok(as_fields), "{camel}");
            }
        }
    }

    #[test]
    fn judged_assertions_are_read_in_every_form() {
        for assertion in ASSERTIONS.iter().filter(|assertion| assertion.is_judged()) {
            let evidence = assertion.pass.evidence();
            let written = fields(&(assertion.pass.assertion)());
            let brief = Arguments::Brief(node(&Value::Object(written.clone())));
            assert_eq!(judged(assertion.name, brief, &evidence).err(), None, "{}", assertion.name);
            let listed = Arguments::Listed(listed(assertion, written));
            assert_eq!(judged(&assertion.code_name(), listed, &evidence).err(), None, "{}", assertion.name);
        }
    }

    #[test]
    fn a_single_value_is_the_main_field() {
        let evidence = crate::example::EvidenceBuilder::new().asks("a").answer("Hello").replied(5).evidence();
        let finding_of = |name: &str, value: Value| judged(name, Arguments::Brief(node(&value)), &evidence);
        assert_eq!(finding_of("contains", json!("hello")).unwrap().reason, "the answer contains \"Hello\"");
        assert_eq!(finding_of("latency", json!("5ms")).unwrap().reason, "the reply took 5 ms");
        assert!(finding_of("no_path_escape", Value::Null).is_ok() && finding_of("no_path_escape", json!(true)).is_ok());
        assert_eq!(
            finding_of("contains", Value::Null).unwrap_err(),
            ["`contains` must be a string, not an empty value (null) "]
        );
    }

    #[test]
    fn invalid_arguments_are_reported() {
        let evidence = crate::example::EvidenceBuilder::new().evidence();
        let listed =
            |values: &[Value]| judged("contains", Arguments::Listed(values.iter().map(node).collect()), &evidence);
        let problems = listed(&[json!("a"), json!("b")]).unwrap_err();
        assert_eq!(problems, ["`contains` takes no argument here its fields are text"]);
        let problems = listed(&[json!("a"), json!({"text": "b"})]).unwrap_err();
        assert_eq!(problems, ["`text` is given twice, first as `text` "]);
        let problems = judged("contains", Arguments::Brief(node(&json!({"text": "a", "weight": 2}))), &evidence);
        assert_eq!(
            problems.unwrap_err(),
            ["`weight` is not a field of `contains` write `weight` next to `contains`, not below it"]
        );
    }

    #[test]
    fn code_can_set_id_and_weight_in_the_last_argument() {
        let evidence = crate::example::EvidenceBuilder::new().answer("a").evidence();
        let options = json!({"id": "says-a", "weight": 3, "title": "Says it"});
        let arguments = Arguments::Listed(vec![node(&json!("a")), node(&options)]);
        let finding = judged("contains", arguments, &evidence).unwrap();
        assert_eq!((finding.id.as_str(), finding.weight, finding.title.as_deref()), ("says-a", 3.0, Some("Says it")));
    }
}
