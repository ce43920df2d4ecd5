//! Compiles written expectations to matchers, and reports all problems with their locations.

use std::sync::Arc;

use model::decode::Problems;
use model::{Node, NodeKind, Spanned, nearest};

use crate::contradiction;
use crate::host::{Function, Host, Invalid};
use crate::matcher::Matcher;
use crate::meta::{self, Meta};
use crate::nearly_regex;
use crate::notation::{FUNCTION_TAG, REGEX_TAG, SCHEMA_TAG, split_regex};
use crate::pattern::{AllOf, Code, Items, JsonSchema, Key, Keys, Literal, Negated, Never, Regex, Text};
use crate::rule::Rule;
use crate::rules::Rules;
use crate::schema;
use crate::source_location::SourceLocation;
use crate::text_diff::TextDiff;

/// An operator. `docs/reference/operators.md` describes it and has its examples.
#[derive(Debug)]
pub struct Operator {
    /// Name with the `$`.
    pub name: &'static str,
    /// Its meaning, in one sentence.
    pub summary: &'static str,
    pub(crate) read: Read,
}

/// Function that reads the operand of the operator with this name. Returns `None` if the operand is invalid, which has
/// already been reported.
pub(crate) type Read = fn(&mut Compiler<'_>, &Node, &'static str) -> Option<Box<dyn Rule>>;

/// Operators that a compiler knows.
pub struct Operators {
    /// The built-in operators.
    pub built_in: &'static [Operator],
    /// Creates the rule for a custom operator from its name, its function and its operand.
    pub custom: fn(&str, Function, &Node) -> Box<dyn Rule>,
}

/// Compiler of expectations.
pub struct Compiler<'a> {
    /// Operators that it knows. The names of custom ones are in `rules`.
    pub operators: &'a Operators,
    /// Rules for all expectations.
    pub rules: &'a Rules,
    /// Host that provides regular expressions and code.
    pub host: &'a Arc<dyn Host>,
    /// Text comparison of the case, if there is one.
    pub diff: Option<&'a TextDiff>,
    /// Problems that were found.
    pub problems: &'a mut Problems,
    /// True if a part that was read is critical.
    pub critical: bool,
}

/// Operator in a map: built-in or custom.
enum Known<'r> {
    BuiltIn(&'static Operator),
    Custom(&'r Function),
}

impl Compiler<'_> {
    /// Compiles `node`. An invalid part is reported, and never matches.
    pub fn matcher(&mut self, node: &Node) -> Matcher {
        let NodeKind::Map(entries) = &node.kind else {
            return Matcher::new(self.plain(node), SourceLocation::from_node(node));
        };
        if let Some(tag) = node.tag.as_deref() {
            let rule = if tag == SCHEMA_TAG { self.schema(node) } else { self.unknown_tag(node, tag) };
            return Matcher::new(rule, SourceLocation::from_node(node));
        }
        let is_schema_by_name = schema_names_its_dialect(entries);
        let is_operator = |(key, _): &&(Spanned<String>, Node)| !is_schema_by_name && self.is_operator(&key.value);
        let (operators, others): (Vec<_>, Vec<_>) = entries.iter().partition(is_operator);
        let has_shorthands = meta::has_shorthands(entries, !operators.is_empty());
        let meta = Meta::read(node, !operators.is_empty(), self.problems);
        let is_meta = |key: &str| key == meta::CONTAINER || (has_shorthands && meta::is_meta(key));
        let data = others.into_iter().filter(|(key, _)| !is_meta(&key.value)).cloned().collect();
        let is_schema = is_schema_by_name
            || (operators.is_empty() && self.rules.heuristic_schema && schema::looks_like_schema(node));
        let rest = Node { kind: NodeKind::Map(data), ..node.clone() };
        let beside = std::mem::take(&mut self.critical);
        let rule = if is_schema { self.schema(&rest) } else { self.map(&operators, &rest) };
        let is_penalty = meta.weight.is_some_and(|weight| weight < 0.0);
        let rule = if is_penalty { Box::new(Negated { rule }) } else { rule };
        let critical = !is_penalty && (self.critical || meta.critical);
        self.critical = beside || critical;
        Matcher { meta, place: SourceLocation::from_node(node), rule, critical }
    }

    /// Returns the rule for a map: its operators, and its other keys if there are any. All of them must hold.
    fn map(&mut self, operators: &[&(Spanned<String>, Node)], rest: &Node) -> Box<dyn Rule> {
        contradiction::report(operators, self.problems);
        let has_rest = matches!(&rest.kind, NodeKind::Map(entries) if !entries.is_empty());
        if operators.is_empty() {
            return Box::new(self.keys(rest));
        }
        if let NodeKind::Map(entries) = &rest.kind {
            // Hardly anything else than a score stands beside `$expect`.
            let has_expect = operators.iter().any(|(operator, _)| operator.value == "$expect");
            let is_score = |key: &Spanned<String>| has_expect && key.value == "score";
            let first = entries.iter().find(|(key, _)| is_bare(key) || is_score(key));
            self.problems.extend(first.map(|(key, _)| bare(key, rest, operators)));
        }
        let mut rules: Vec<(String, Matcher)> = Vec::with_capacity(operators.len() + 1);
        for (name, operand) in operators {
            let place = SourceLocation::at(operand, name.span);
            let rule = self.apply(name, operand).unwrap_or_else(|| nothing(operand));
            rules.push((name.value.clone(), Matcher::new(rule, place)));
        }
        if has_rest {
            let rule = Box::new(self.keys(rest));
            rules.push((String::new(), Matcher::new(rule, SourceLocation::from_node(rest))));
        }
        match rules.len() {
            1 => rules.remove(0).1.rule,
            _ => Box::new(AllOf { rules, place: SourceLocation::from_node(rest) }),
        }
    }

    /// Returns the operator of that name.
    fn operator(&self, name: &str) -> Option<Known<'_>> {
        if !name.starts_with('$') {
            return None;
        }
        let built_in = || self.operators.built_in.iter().find(|operator| operator.name == name).map(Known::BuiltIn);
        let custom = || self.rules.operator(name).map(Known::Custom);
        if self.rules.allow_override { custom().or_else(built_in) } else { built_in().or_else(custom) }
    }

    /// Returns `true` if `name` is an operator.
    pub fn is_operator(&self, name: &str) -> bool {
        self.operator(name).is_some()
    }

    /// Returns `true` if `name` is a built-in operator that no custom operator overrides.
    pub fn is_built_in(&self, name: &str) -> bool {
        matches!(self.operator(name), Some(Known::BuiltIn(_)))
    }

    fn apply(&mut self, name: &Spanned<String>, operand: &Node) -> Option<Box<dyn Rule>> {
        match self.operator(&name.value)? {
            Known::BuiltIn(operator) => (operator.read)(self, operand, operator.name),
            Known::Custom(function) => Some((self.operators.custom)(&name.value, function.clone(), operand)),
        }
    }

    /// Reads the keys of a map that are not operators.
    fn keys(&mut self, node: &Node) -> Keys {
        let entries = if let NodeKind::Map(entries) = &node.kind { entries.as_slice() } else { &[] };
        let mut read = Vec::with_capacity(entries.len());
        for (name, value) in entries {
            self.doubt(name, value);
            let matcher = self.matcher(value);
            match Key::read(&name.value, self.host.as_ref()) {
                Ok(key) => read.push((key, matcher)),
                Err(invalid) => {
                    let place = Node { span: name.span, ..value.clone() };
                    self.problems.push(invalid.diagnostic(&place));
                }
            }
        }
        Keys { entries: read, place: SourceLocation::from_node(node) }
    }

    /// Reports a key that looks like an operator but is not one.
    fn doubt(&mut self, key: &Spanned<String>, value: &Node) {
        if !key.value.starts_with('$') || key.value == "$" || meta::SHORTHANDS.contains(&key.value.as_str()) {
            return;
        }
        let built_in = self.operators.built_in.iter().map(|operator| operator.name);
        let custom = self.rules.operators.iter().map(|(name, _)| name.as_str());
        let near = match &*key.value {
            "$any" | "$anyOf" | "$oneOf" => Some("$or"),
            "$allOf" => Some("$and"),
            written => nearest(written, built_in.chain(custom)).or_else(|| meta::near(written)),
        };
        let place = value.source.excerpt(key.span);
        let message = format!("unknown operator `{}`", key.value);
        // Queries of databases have these keys.
        let is_of_regex = ["$regex", "$regexp", "$match", "$matches"].contains(&&*key.value);
        let as_key = || {
            let problem = model::Diagnostic::warning(message.clone()).at(place.clone());
            problem.help("it is matched as a key of the value")
        };
        self.problems.push(match near {
            _ if is_of_regex => as_key().help("a regular expression needs no operator: write `/pattern/`"),
            Some(near) => model::Diagnostic::error(message).at(place).suggest(Some(near)),
            None => as_key(),
        });
    }

    /// Returns the rule for any value except a map.
    fn plain(&mut self, node: &Node) -> Box<dyn Rule> {
        match (node.tag.as_deref(), &node.kind) {
            (Some(REGEX_TAG), NodeKind::String(text)) => {
                let (source, flags) = split_regex(text).unwrap_or((text, ""));
                self.regex(node, source, flags)
            }
            (Some(FUNCTION_TAG), NodeKind::String(reference)) => self.code(node, reference),
            (Some(SCHEMA_TAG), _) => self.schema(node),
            (Some(tag), _) => self.unknown_tag(node, tag),
            (None, NodeKind::String(text)) => match split_regex(text) {
                Some((source, flags)) => self.regex(node, source, flags),
                None => {
                    if text.contains('\u{8}') {
                        let problem = node.warning("the text contains the control character U+0008");
                        let help = "in double quotes, `\\b` is a backspace; single quotes keep it as written";
                        self.problems.push(problem.help(help));
                    }
                    self.problems.extend(nearly_regex::doubt(node, text));
                    Box::new(Text {
                        expected: text.clone(),
                        diff: self.diff.cloned(),
                        place: SourceLocation::from_node(node),
                    })
                }
            },
            (None, NodeKind::List(items)) => {
                let items = items.iter().map(|item| self.matcher(item)).collect();
                Box::new(Items { items, place: SourceLocation::from_node(node) })
            }
            (None, _) => Box::new(Literal { value: node.to_json(), place: SourceLocation::from_node(node) }),
        }
    }

    /// Compiles a regular expression. An invalid one is reported, and never matches.
    pub fn regex(&mut self, node: &Node, source: &str, flags: &str) -> Box<dyn Rule> {
        match self.host.regex(source, flags) {
            Ok(pattern) => Box::new(Regex {
                written: format!("/{source}/{flags}"),
                pattern,
                place: SourceLocation::from_node(node),
            }),
            Err(invalid) => self.refuse(node, &invalid),
        }
    }

    fn code(&mut self, node: &Node, reference: &str) -> Box<dyn Rule> {
        match self.host.function(reference, "", &self.rules.directory) {
            Ok(function) => Box::new(Code { function, place: SourceLocation::from_node(node) }),
            Err(invalid) => self.refuse(node, &invalid),
        }
    }

    /// Compiles a JSON Schema, whether or not it looks like one.
    pub fn schema(&mut self, node: &Node) -> Box<dyn Rule> {
        let patterns: Arc<dyn schema::Patterns> = Arc::new(crate::pattern::HostPatterns(Arc::clone(self.host)));
        match schema::Schema::compile(node, &patterns, self.problems) {
            Some(schema) => Box::new(JsonSchema { schema, place: SourceLocation::from_node(node) }),
            None => nothing(node),
        }
    }

    fn unknown_tag(&mut self, node: &Node, tag: &str) -> Box<dyn Rule> {
        self.problems.push(
            node.error(format!("unknown tag `{tag}`")).help(format!("the tags are `{REGEX_TAG}` and `{SCHEMA_TAG}`")),
        );
        nothing(node)
    }

    fn refuse(&mut self, node: &Node, invalid: &Invalid) -> Box<dyn Rule> {
        self.problems.push(invalid.diagnostic(node));
        nothing(node)
    }

    /// Compiles the operand of `operator`, a list of expectations.
    pub fn list(&mut self, operand: &Node, operator: &str) -> Option<Vec<Matcher>> {
        let NodeKind::List(items) = &operand.kind else {
            self.wrong_operand(operand, operator, "a list of expectations");
            return None;
        };
        items.iter().for_each(|item| self.doubt_bare(item));
        Some(items.iter().map(|item| self.matcher(item)).collect())
    }

    /// Warns about the operand of an operator if all its keys are names of operators without `$`: the value would need these
    /// keys, so a text would never match.
    pub fn doubt_bare(&mut self, operand: &Node) {
        let NodeKind::Map(entries) = &operand.kind else { return };
        if entries.iter().all(|(key, _)| is_bare(key)) {
            self.problems.extend(entries.first().map(|(key, _)| bare(key, operand, &[])));
        }
    }

    /// Warns about an empty list of `operator`, which every value matches, or none.
    pub fn doubt_empty(&mut self, operand: &Node, operator: &str, is_met: bool) {
        if matches!(&operand.kind, NodeKind::List(items) if items.is_empty()) {
            let values = if is_met { "every value matches" } else { "no value matches" };
            let problem = operand.warning(format!("the list of `{operator}` is empty, so {values}"));
            self.problems.push(problem.help("write at least one item"));
        }
    }

    /// Reports that the operand of `operator` has the wrong type.
    pub fn wrong_operand(&mut self, operand: &Node, operator: &str, wanted: &str) {
        self.problems.push(operand.error(format!("`{operator}` takes {wanted}, not {}", operand.kind_name())));
    }
}

/// Returns `true` if `key` is the name of an operator without `$`. Names that values often have as keys, such as `all`, are
/// left out.
fn is_bare(key: &Spanned<String>) -> bool {
    const BARE: [&str; 10] = ["contains", "includes", "eq", "ne", "gt", "gte", "lt", "lte", "nin", "not"];
    BARE.contains(&key.value.as_str())
}

/// Returns the warning about `key` of `map`, the name of an operator without `$`, beside the operators `others`.
fn bare(key: &Spanned<String>, map: &Node, others: &[&(Spanned<String>, Node)]) -> model::Diagnostic {
    let meant = format!("${}", if key.value == "includes" { "contains" } else { &key.value });
    let message = format!("`{}` is a key of the value here, not an operator", key.value);
    let problem = model::Diagnostic::warning(message).at(map.source.excerpt(key.span));
    match others.iter().any(|(other, _)| other.value == meant) {
        true => problem.help(format!("write both in a list: `$and: [{{ {meant}: … }}, {{ {meant}: … }}]`")),
        false => problem.suggest(Some(&meant)),
    }
}

/// Returns `true` if a map with these entries is a JSON Schema that names its dialect with `$schema`, rather than the
/// `$schema` operator with its operand.
fn schema_names_its_dialect(entries: &[(Spanned<String>, Node)]) -> bool {
    const DIALECT: &str = "$schema";
    const TYPE: &str = "type";
    let Some((_, dialect)) = entries.iter().find(|(key, _)| key.value == DIALECT) else { return false };
    if !dialect.as_str().is_some_and(|text| text.contains("://")) {
        return false;
    }
    let says_more = |(key, _): &(Spanned<String>, Node)| key.value != DIALECT && !meta::is_meta(&key.value);
    if !entries.iter().any(says_more) {
        return false;
    }
    // A schema may have no `type`, or several.
    let has_name = |(key, value): &&(Spanned<String>, Node)| key.value == TYPE && value.as_str().is_some();
    let is_kept =
        |entry: &&(Spanned<String>, Node)| entry.0.value != DIALECT && (entry.0.value != TYPE || has_name(entry));
    let mut rest: Vec<(Spanned<String>, Node)> = entries.iter().filter(is_kept).cloned().collect();
    if !rest.iter().any(|(key, _)| key.value == TYPE) {
        let any = Node { kind: NodeKind::String("object".to_owned()), ..dialect.clone() };
        rest.push((Spanned::new(TYPE.to_owned(), dialect.span), any));
    }
    schema::looks_like_schema(&Node { kind: NodeKind::Map(rest), ..dialect.clone() })
}

/// Returns the rule that replaces an invalid one.
fn nothing(node: &Node) -> Box<dyn Rule> {
    Box::new(Never { place: SourceLocation::from_node(node) })
}
