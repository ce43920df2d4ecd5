//! Goldens of DeepEval, each of which becomes a case.

use model::decode::{Fields, add_unknown_key, list as as_list};
use model::{AssertionSpec, Case, Diagnostic, DiagnosticKind, Node, NodeKind, UserMessage};

use super::metric::Offer;
use super::{Asserted, Shared, completed, parsed, plain};
use crate::coverage::Unknown;
use crate::format::foreign::{Keys, Names, Reading, assertion, list, map, text};

/// Consequences of ignoring keys of a golden.
const IGNORED: [(&str, &str); 14] = [
    ("actual_output", "the agent answers"),
    ("tools_called", "the agent calls its tools"),
    ("additional_metadata", "it describes the golden"),
    ("comments", "it describes the golden"),
    ("token_cost", "the cost of the agent is measured"),
    ("input_token_count", "the tokens of the agent are counted"),
    ("output_token_count", "the tokens of the agent are counted"),
    ("source_file", "it describes the golden"),
    ("custom_column_key_values", "it describes the golden"),
    ("expected_labels", "no metric here compares labels"),
    ("images_mapping", "the texts have no images"),
    ("multimodal", "the texts have no images"),
    ("alias", "it describes the golden"),
    ("finalized", "it describes the golden"),
];

/// Start of a reference to an image, which agents are not sent.
const IMAGES: [&str; 2] = ["[DEEPEVAL:IMAGE:", "[DEEPEVAL:PDF:"];

impl Reading<'_> {
    /// Reads the golden at this position.
    pub(super) fn golden(&mut self, row: &Node, index: usize, shared: &Shared, names: &mut Names) -> Case {
        let fallback = format!("golden {}", index + 1);
        let Some(fields) = Fields::of(row, "a golden", &mut self.found) else {
            return completed(Case::new(names.unique(&fallback), row.excerpt()), shared, Vec::new());
        };
        let mut fields = fields.in_either_case().with_synonyms(&[("expected", "expected_output")]);
        let mut case = Case::new(String::new(), row.excerpt());
        let mut value = |key: &'static str| fields.get(key).filter(|node| !is_empty(node));
        let name = value("name").or_else(|| value("id")).and_then(plain);
        let (input, scenario) = (value("input").and_then(plain), value("scenario").and_then(plain));
        let expected = value("expected_output").and_then(plain);
        let outcome = value("expected_outcome").and_then(plain);
        let (persona, description) = (value("persona"), value("user_description").and_then(plain));
        let turns = value("turns");
        let context = value("context").map(|node| texts(node, '|')).unwrap_or_default();
        let retrieved = value("retrieval_context").map(|node| texts(node, '|')).unwrap_or_default();
        let tools = value("expected_tools");
        let expectations = value("expectations");
        case.id = match &name {
            Some(name) => names.written(name, row),
            None => names.unique(&fallback),
        };
        let tools = tools.map(|node| self.expected_tools(node));
        match (input, scenario.as_deref()) {
            (Some(input), None) => {
                if IMAGES.iter().any(|image| input.contains(image)) {
                    self.refuse("input", "images are not sent to agents", row);
                }
                case.messages = vec![UserMessage::text(input)];
            }
            (None, Some(scenario)) => {
                let persona = persona.map(|node| self.persona(node)).or(description);
                self.conversation(row, scenario, outcome.as_deref(), persona, turns, &mut case);
            }
            (Some(_), Some(_)) => {
                self.found.push(row.error("`input` and `scenario` cannot be combined; use one of them"));
            }
            (None, None) => self.found.push(row.error("the golden has no `input`").of_missing(&["input"])),
        }
        let mut assertions: Vec<AssertionSpec> = Vec::new();
        let mut ids = Names::default();
        if let Some(node) = expectations {
            assertions.extend(self.expectations(node, &mut ids));
        }
        let unknown = |_: &str, _: &Node| {
            Unknown::Ignored("it is not a key of goldens, and DeepEval does not read it".to_owned())
        };
        let mut misspelt = Vec::new();
        let broken = self.close_golden(&fields, unknown, &mut misspelt);
        misspelt.into_iter().for_each(|problem| add_unknown_key(row, problem, &mut self.found));
        self.found.extend(broken);
        let offer = Offer {
            row,
            expected: expected.as_deref(),
            outcome: outcome.as_deref(),
            scenario: scenario.as_deref(),
            context: &context,
            retrieved: &retrieved,
            tools: tools.as_deref(),
        };
        let is_misspelt = |problem: &Diagnostic| matches!(problem.kind, DiagnosticKind::UnknownKey { .. });
        let has_misspelt = self.found.iter().any(is_misspelt);
        if let Asserted::Metrics(metrics) = &shared.asserted {
            for metric in metrics {
                let id = ids.unique(metric.name());
                match metric.assertion(&id, &offer) {
                    Ok(spec) => assertions.push(spec),
                    // What is missing may be under a misspelt key, which is reported.
                    Err(_) if has_misspelt => {}
                    Err(reason) => self.found.push(row.error(reason)),
                }
            }
        }
        if assertions.is_empty() && self.found.is_empty() && shared.is_read {
            let problem =
                row.error("nothing is asserted: there are no `metrics`, and the golden has no `expectations`");
            self.found.push(problem);
        }
        case.expected = expected.or(outcome).map(Into::into);
        completed(case, shared, assertions)
    }

    /// Records the keys of a golden, which are written in snake case or in camel case.
    fn close_golden(
        &mut self,
        fields: &Fields<'_>,
        unknown: impl Fn(&str, &Node) -> Unknown,
        misspelt: &mut model::decode::Problems,
    ) -> model::decode::Problems {
        let camel: Vec<(String, &str)> =
            IGNORED.iter().map(|(key, consequence)| (camel_case(key), *consequence)).collect();
        let mut ignored: Vec<(&str, &str)> = IGNORED.to_vec();
        ignored.extend(camel.iter().map(|(key, consequence)| (key.as_str(), *consequence)));
        self.keys.close(fields, "", &ignored, unknown, misspelt)
    }

    /// Returns the expected calls: a list of maps or of names, or one of these in a cell.
    fn expected_tools(&mut self, node: &Node) -> Vec<Node> {
        let items: Vec<Node> = match parsed(node).map(|node| node.kind) {
            Some(NodeKind::List(items)) => items,
            Some(only @ NodeKind::Map(_)) => vec![Node { kind: only, ..node.clone() }],
            _ => {
                let names = node.as_str().unwrap_or_default().split(';').map(str::trim);
                names.filter(|name| !name.is_empty()).map(|name| text(node, name)).collect()
            }
        };
        let mut tools = Vec::with_capacity(items.len());
        for item in &items {
            if let Some(name) = item.as_str() {
                tools.push(map(item, vec![("name", text(item, name))]));
                continue;
            }
            let Some(own) = Fields::of(item, "a tool", &mut self.found) else { continue };
            let mut own = own.in_either_case();
            let Some(name) = own.required_text("name", &mut self.found) else { continue };
            let mut entries = vec![("name", text(item, name))];
            entries.extend(own.get("input_parameters").filter(|n| !is_empty(n)).map(|n| ("input", n.clone())));
            entries.extend(own.get("output").filter(|n| !is_empty(n)).map(|n| ("output", n.clone())));
            let is_of_server = |kind: &&Node| kind.as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("mcp"));
            if let Some(kind) = item.get("type").filter(is_of_server) {
                let consequence = "names say which server a tool belongs to, such as `mcp__shop__search`";
                self.refuse("expected_tools[].type: MCP", consequence, kind);
                own.get("type");
            }
            let ignored = [
                ("description", "it describes the tool"),
                ("reasoning", "it describes the call"),
                ("type", "every tool is a function"),
            ];
            self.close(&own, "expected_tools[]", &ignored, &[] as &Keys<'_>);
            tools.push(map(item, entries));
        }
        tools
    }

    /// Returns the assertion for what a golden requires and prohibits.
    fn expectations(&mut self, node: &Node, ids: &mut Names) -> Option<AssertionSpec> {
        let parsed = parsed(node);
        let node = parsed.as_ref().unwrap_or(node);
        let mut fields = Fields::of(node, "`expectations`", &mut self.found)?.in_either_case();
        let must = fields.texts("must", &mut self.found).unwrap_or_default();
        let must_not = fields.texts("must_not", &mut self.found).unwrap_or_default();
        let ignored = [("model", "the judge of the run decides"), ("eval_mode", "the judge of the run decides")];
        self.close(&fields, "expectations", &ignored, &[] as &Keys<'_>);
        let mut entries = Vec::new();
        for (key, rules) in [("must", must), ("must_not", must_not)] {
            if !rules.is_empty() {
                entries.push((key, list(node, rules.iter().map(|rule| text(node, rule)).collect())));
            }
        }
        let id = ids.unique("expectations");
        (!entries.is_empty()).then(|| assertion(node, &id, "guardrail", entries, 1.0))
    }
}

/// Returns `true` for null, an empty cell and an empty list.
pub(super) fn is_empty(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Null => true,
        NodeKind::String(text) => text.is_empty(),
        _ => false,
    }
}

/// Returns the texts of a list, or those in a cell.
fn texts(node: &Node, delimiter: char) -> Vec<String> {
    let text = |node: &Node| match &node.kind {
        // What was retrieved can have a source.
        NodeKind::Map(_) => node.get("context").and_then(plain),
        _ => plain(node),
    };
    match &node.kind {
        NodeKind::List(_) => {
            let items = as_list(node, "a context", &mut Vec::new()).unwrap_or_default();
            items.iter().filter_map(text).collect()
        }
        _ => plain(node).unwrap_or_default().split(delimiter).map(|part| part.trim().to_owned()).collect(),
    }
}

/// Returns a key in camel case: `actualOutput` for `actual_output`.
fn camel_case(key: &str) -> String {
    let mut words = key.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut name, word| {
        let mut letters = word.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.push_str(letters.as_str());
        name
    })
}
