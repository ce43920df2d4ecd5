//! Typed reading of a [`Node`] tree. Every problem is collected and none stops the reading; an unknown key is an
//! error with a suggestion. Suites and assertions are both read with it.

mod main_key;

use serde_json::Number;

pub use self::main_key::{QUOTE_COMMA, is_rest_of_text};
use crate::{Diagnostic, DiagnosticKind, Node, NodeKind, Severity, Span, Spanned, nearest, unusual_separator};

/// Problems found so far.
pub type Problems = Vec<Diagnostic>;

/// Reads a map field by field. [`Fields::finish`] reports the unknown keys.
pub struct Fields<'a> {
    node: &'a Node,
    entries: &'a [(Spanned<String>, Node)],
    /// Name of the map in messages: "a scenario", "`tool_called`".
    what: &'a str,
    known: Vec<&'static str>,
    open: bool,
    either_case: bool,
    synonyms: Synonyms,
}

/// Keys that people write, because other programs have them, with the keys that they mean.
pub type Synonyms = &'static [(&'static str, &'static str)];

impl<'a> Fields<'a> {
    /// Reads `node` as a map, or reports that it is not a map.
    pub fn of(node: &'a Node, what: &'a str, problems: &mut Problems) -> Option<Self> {
        match &node.kind {
            NodeKind::Map(entries) => {
                let (known, synonyms) = (Vec::new(), [].as_slice());
                Some(Self { node, entries, what, known, open: false, either_case: false, synonyms })
            }
            _ => {
                let problem = node.error(format!("{what} must be a map, not {}", node.kind_name()));
                let meant = main_key::meant(node, what).map(|map| format!("write `{map}`"));
                problems.push(meant.into_iter().fold(problem, Diagnostic::help));
                None
            }
        }
    }

    /// Like [`of`](Self::of), for a value that can have other `forms`, such as `a string or a map`.
    pub fn of_either(node: &'a Node, what: &'a str, forms: &str, problems: &mut Problems) -> Option<Self> {
        let known = problems.len();
        let fields = Self::of(node, what, problems);
        for problem in problems.iter_mut().skip(known) {
            problem.message = problem.message.replacen("must be a map", &format!("must be {forms}"), 1);
        }
        fields
    }

    /// Accepts multi-word keys in snake case and in camel case: `argsMatch` is `args_match`.
    pub fn in_either_case(self) -> Self {
        Self { either_case: true, ..self }
    }

    /// Suggests the right key for each of `synonyms`.
    pub fn with_synonyms(self, synonyms: Synonyms) -> Self {
        Self { synonyms, ..self }
    }

    /// Returns the keys that `written`, which is not a known one, may mean in other programs.
    fn meant<'w>(&self, written: &'w str) -> impl Iterator<Item = &'static str> + use<'w> {
        self.synonyms.iter().filter(move |(synonym, _)| *synonym == written).map(|(_, key)| *key)
    }

    /// Returns `true` if the written `name` means `key`.
    fn is(&self, name: &str, key: &str) -> bool {
        // Every name is compared with every key, and most pairs already differ in their last letter.
        let last = |text: &str| text.bytes().next_back().map(|letter| letter.to_ascii_lowercase());
        name == key || (self.either_case && last(name) == last(key) && snake(name).eq(snake(key)))
    }

    /// Returns the map itself.
    pub fn node(&self) -> &'a Node {
        self.node
    }

    /// Returns the value under `key` and marks the key as known. `null` counts as a value: an optional section is
    /// omitted, not set to null.
    pub fn get(&mut self, key: &'static str) -> Option<&'a Node> {
        self.known.push(key);
        self.entries.iter().find(|(name, _)| self.is(&name.value, key)).map(|(_, node)| node)
    }

    /// Returns the value under `key`, or reports that it is missing.
    pub fn require(&mut self, key: &'static str, problems: &mut Problems) -> Option<&'a Node> {
        let found = self.get(key);
        if found.is_none() {
            let mut problem = self.missing(key);
            let names = || self.entries.iter().map(|(name, _)| name.value.as_str());
            if let Some(near) =
                nearest(key, names()).or_else(|| names().find(|name| self.meant(name).any(|meant| meant == key)))
            {
                problem = problem.help(format!("did you mean `{key}` instead of `{near}`?"));
            }
            problems.push(problem);
        }
        found
    }

    /// Returns the problem that `key` is missing.
    fn missing(&self, key: &str) -> Diagnostic {
        self.node_head().error(format!("{} has no `{key}`", self.what)).of_missing(&[key])
    }

    /// Returns the location of `key` itself.
    pub fn key_span(&self, key: &str) -> Option<Span> {
        self.entries.iter().find(|(name, _)| self.is(&name.value, key)).map(|(name, _)| name.span)
    }

    /// Reads a string under `key`; an empty string is an error.
    pub fn text(&mut self, key: &'static str, problems: &mut Problems) -> Option<String> {
        let node = self.get(key)?;
        text(node, &format!("`{key}`"), problems)
    }

    /// Reads a string under `key`, which must be present and not empty.
    pub fn required_text(&mut self, key: &'static str, problems: &mut Problems) -> Option<String> {
        let node = self.require(key, problems)?;
        text(node, &format!("`{key}`"), problems)
    }

    /// Reads a string under `key`, which may be empty.
    pub fn any_text(&mut self, key: &'static str, problems: &mut Problems) -> Option<String> {
        let node = self.get(key)?;
        any_text(node, &format!("`{key}`"), problems)
    }

    /// Reads a boolean under `key`.
    pub fn boolean(&mut self, key: &'static str, problems: &mut Problems) -> Option<bool> {
        let node = self.get(key)?;
        let value = boolean(node);
        if value.is_none() {
            let problem = node.error(format!("`{key}` must be true or false, not {}", described(node)));
            problems.push(boolean_help(node, problem));
        }
        value
    }

    /// Reads a whole number of at least `least` under `key`.
    pub fn whole(&mut self, key: &'static str, least: u64, problems: &mut Problems) -> Option<u64> {
        let node = self.get(key)?;
        let value = number(node).and_then(|number| as_whole(&number));
        if value.is_none_or(|value| value < least) {
            let problem =
                node.error(format!("`{key}` must be a whole number of at least {least}, not {}", shown(node)));
            let is_quoted =
                node.as_str().is_some_and(|text| text.trim().parse::<u64>().is_ok_and(|value| value >= least));
            problems.push(
                match node.as_str().filter(|_| is_quoted).map(|text| text.chars().find_map(unusual_separator)) {
                    Some(Some(found)) => problem.help(format!("there is {found} beside the number: remove it")),
                    Some(None) => problem.help("write the number without quotes"),
                    None => problem,
                },
            );
            return None;
        }
        value
    }

    /// Reads a number above zero under `key`.
    pub fn positive(&mut self, key: &'static str, problems: &mut Problems) -> Option<f64> {
        let node = self.get(key)?;
        match number(node).and_then(|number| number.as_f64()) {
            Some(value) if value > 0.0 && value.is_finite() => Some(value),
            Some(value) => {
                problems.push(node.error(format!("`{key}` must be greater than 0, not {value}")));
                None
            }
            None => {
                problems.push(node.error(format!("`{key}` must be a number greater than 0, not {}", shown(node))));
                None
            }
        }
    }

    /// Reads a number of tokens under `key`.
    pub fn tokens(&mut self, key: &'static str, problems: &mut Problems) -> Option<f64> {
        let tokens = self.positive(key, problems)?;
        if tokens < 1.0 {
            problems.push(self.get(key)?.error(format!("`{key}` must be at least one token, not {tokens}")));
            return None;
        }
        Some(tokens)
    }

    /// Reads a list under `key`.
    pub fn list(&mut self, key: &'static str, problems: &mut Problems) -> Option<&'a [Node]> {
        let node = self.get(key)?;
        list(node, &format!("`{key}`"), problems)
    }

    /// Reads a list of non-empty strings under `key`.
    pub fn texts(&mut self, key: &'static str, problems: &mut Problems) -> Option<Vec<String>> {
        let items = self.list(key, problems)?;
        let what = format!("an item of `{key}`");
        Some(items.iter().filter_map(|item| text(item, &what, problems)).collect())
    }

    /// Reads a map of names to strings under `key`, in the order in which it is written.
    pub fn text_map(&mut self, key: &'static str, problems: &mut Problems) -> Option<Vec<(String, Spanned<String>)>> {
        let node = self.get(key)?;
        let NodeKind::Map(entries) = &node.kind else {
            problems.push(node.error(format!("`{key}` must be a map of strings, not {}", node.kind_name())));
            return None;
        };
        Some(
            entries
                .iter()
                .filter_map(|(name, value)| {
                    let text = any_text(value, &format!("`{key}.{}`", name.value), problems)?;
                    Some((name.value.clone(), Spanned::new(text, value.span)))
                })
                .collect(),
        )
    }

    /// Reads one of `choices` under `key`.
    pub fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
        problems: &mut Problems,
    ) -> Option<T> {
        let node = self.get(key)?;
        choice(node, &format!("`{key}`"), choices, problems)
    }

    /// Reads a duration under `key` and returns it in milliseconds: `500ms`, `30s`, `5m`, `1h`. A bare number is
    /// milliseconds and produces a warning, because on the command line a bare number is seconds.
    pub fn duration_ms(&mut self, key: &'static str, problems: &mut Problems) -> Option<u64> {
        self.duration_with_warning(key, u64::MAX, problems)
    }

    /// Reads a duration like `duration_ms`, for formats in which a bare number has always been milliseconds: only a
    /// number below 1000, which probably means seconds, produces the warning.
    pub fn duration_or_ms(&mut self, key: &'static str, problems: &mut Problems) -> Option<u64> {
        self.duration_with_warning(key, 999, problems)
    }

    /// Reads a duration. A bare number up to `most` produces a warning.
    fn duration_with_warning(&mut self, key: &'static str, most: u64, problems: &mut Problems) -> Option<u64> {
        let node = self.get(key)?;
        let value = duration_of(node, key, problems)?;
        if number(node).is_some() && value <= most {
            let meant =
                if value < 1000 { format!("`{value}ms` or `{value}s`") } else { format!("`{}`", duration(value)) };
            let message = format!("`{value}` has no unit and is read as {value} milliseconds");
            problems.push(node.warning(message).help(format!("write {meant}")));
        }
        Some(value)
    }

    /// Reports two names for the same key if both are present.
    pub fn refuse_both(&mut self, first: &'static str, second: &'static str, problems: &mut Problems) {
        if let (Some(_), Some(span)) = (self.get(first), self.key_span(second)) {
            let message = format!("`{first}` and `{second}` are the same; give one of them");
            problems.push(Diagnostic::error(message).at(self.node.source.excerpt(span)));
        }
    }

    /// Accepts unknown keys in this map.
    pub fn open(&mut self) {
        self.open = true;
    }

    /// Returns the name of the map in messages.
    pub fn what(&self) -> &'a str {
        self.what
    }

    /// Returns the keys that the reader knows, whether they are written or not.
    pub fn known(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.known.iter().copied()
    }

    /// Returns the keys that were not read.
    pub fn unread(&self) -> impl Iterator<Item = &'a (Spanned<String>, Node)> + '_ {
        self.entries.iter().filter(|(name, _)| !self.known.iter().any(|key| self.is(&name.value, key)))
    }

    /// Like [`finish`](Self::finish), but the keys in `others`, which only another program reads, are warnings with advice.
    pub fn finish_except(self, others: &[(&str, &str)], problems: &mut Problems) {
        self.finish_as(Severity::Error, others, problems);
    }

    /// Like [`finish_except`](Self::finish_except), but all unknown keys are only warnings, because another program also
    /// reads them.
    pub fn finish_with_warnings(self, others: &[(&str, &str)], problems: &mut Problems) {
        self.finish_as(Severity::Warning, others, problems);
    }

    /// Reports the keys that were not read. One that probably means a required key is reported instead of the missing
    /// key, because both are one mistake.
    pub fn finish(self, problems: &mut Problems) {
        self.finish_as(Severity::Error, &[], problems);
    }

    fn finish_as(self, severity: Severity, others: &[(&str, &str)], problems: &mut Problems) {
        self.refuse_second_spellings(problems);
        let unknown: Vec<&Spanned<String>> = self.unread().filter(|_| !self.open).map(|(name, _)| name).collect();
        let is_missing = |problem: &Diagnostic| matches!(problem.kind, DiagnosticKind::MissingKey(_));
        let lacks = || problems.iter().any(|problem| is_missing(problem) && is_in(self.node, problem));
        if unknown.len() > 1 && unknown.len() == self.entries.len() && others.is_empty() && lacks() {
            return self.refuse_all(&unknown, severity, problems);
        }
        for name in unknown {
            if main_key::completes_list(self.entries, name, problems) {
                continue;
            }
            let problem = self.unknown(name);
            match others.iter().find(|(key, _)| *key == name.value) {
                Some((key, advice)) => {
                    let message = format!("`{key}` of ai-tester has no effect");
                    let help = vec![(*advice).to_owned()];
                    let (severity, kind) = (Severity::Warning, DiagnosticKind::Other);
                    problems.push(Diagnostic { severity, message, help, kind, ..problem });
                }
                None => add_unknown_key(self.node, Diagnostic { severity, ..problem }, problems),
            }
        }
    }

    /// Reports a map with only `unknown` keys, which is one mistake, and not those that are missing in it.
    fn refuse_all(&self, unknown: &[&Spanned<String>], severity: Severity, problems: &mut Problems) {
        problems.retain(|problem| !matches!(problem.kind, DiagnosticKind::MissingKey(_)) || !is_in(self.node, problem));
        let names: Vec<String> = unknown.iter().map(|name| format!("`{}`", name.value)).collect();
        let instead =
            unknown.iter().map(|name| Some(format!("`{}` instead of `{}`", self.meant_by(&name.value)?, name.value)));
        let instead: Option<Vec<String>> = instead.collect();
        let first = self.unknown(unknown[0]);
        let message = format!("unknown keys {} in {}", names.join(", "), self.what);
        let help = instead.map_or_else(|| self.known_keys(), |all| format!("write {}", all.join(", ")));
        problems.push(Diagnostic { severity, message, help: vec![help], ..first });
    }

    /// Returns the key that `written`, which was not read, probably means.
    pub fn meant_by(&self, written: &str) -> Option<&'static str> {
        let is_taken = |known: &str| self.entries.iter().any(|(other, _)| other.value == known);
        let free = self.known.iter().filter(|known| !is_taken(known)).copied();
        let meant = || self.meant(written).filter(|key| self.known.contains(key));
        let misspelt = || {
            let near = nearest(written, self.synonyms.iter().map(|(synonym, _)| *synonym))?;
            self.meant(near).find(|key| self.known.contains(key) && !is_taken(key))
        };
        meant()
            .find(|key| !is_taken(key))
            .or_else(|| meant().next())
            .or_else(|| nearest(written, free))
            .or_else(misspelt)
    }

    /// Returns the problem with a key that was not read.
    fn unknown(&self, name: &Spanned<String>) -> Diagnostic {
        let near = self.meant_by(&name.value);
        let near = near.or_else(|| nearest(&name.value, self.known.iter().copied()));
        let kind = DiagnosticKind::UnknownKey { key: name.value.clone(), meant: near.map(str::to_owned) };
        let problem = Diagnostic::error(format!("unknown key `{}` in {}", name.value, self.what));
        let problem = problem.at(self.node.source.excerpt(name.span)).of(kind);
        match near {
            // Renaming the key would give two with one name.
            Some(near)
                if self.key_span(near).is_some()
                    && let Some(inner) = self.wrapped(name) =>
            {
                problem.help(format!("write `{inner}` one level higher, and remove the line `{}:`", name.value))
            }
            Some(near) if let Some(span) = self.key_span(near) => {
                let line = self.node.source.excerpt(span).line;
                problem.help(format!("`{near}` is already on line {line}: write what belongs to it there"))
            }
            Some(near) if self.is_shorthand(name) => problem.help(format!("write `{near}: {}`", name.value)),
            Some(near) => problem.suggest(Some(near)),
            None if self.entries.iter().any(|(key, value)| key.span == name.span && is_rest_of_text(key, value)) => {
                problem.help(QUOTE_COMMA).help(self.known_keys())
            }
            None => problem.help(self.known_keys()),
        }
    }

    /// Lists the known keys, for messages.
    fn known_keys(&self) -> String {
        let mut known: Vec<&str> = Vec::with_capacity(self.known.len());
        for key in &self.known {
            if !known.contains(key) {
                known.push(key);
            }
        }
        format!("known keys: {}", known.join(", "))
    }

    /// Returns `true` for a key in code that is also the name of a variable, whose value it has: `{ files }`.
    fn is_shorthand(&self, name: &Spanned<String>) -> bool {
        let has_value =
            |(key, value): &(Spanned<String>, Node)| key.span == name.span && !matches!(value.kind, NodeKind::Null);
        let after = self.node.source.text.get(name.span.end()..).unwrap_or_default();
        after.trim_start().starts_with([',', '}']) && self.entries.iter().any(has_value)
    }

    /// Returns the first key of the map under `name` if each of them belongs to this map.
    fn wrapped(&self, name: &Spanned<String>) -> Option<&'a str> {
        let (_, value) = self.entries.iter().find(|(key, _)| key.span == name.span)?;
        let NodeKind::Map(inner) = &value.kind else { return None };
        let belongs = |key: &str| self.known.iter().any(|known| self.is(key, known)) && self.key_span(key).is_none();
        inner.first().filter(|_| inner.iter().all(|(key, _)| belongs(&key.value))).map(|(key, _)| key.value.as_str())
    }

    /// Reports keys that are written in both cases.
    fn refuse_second_spellings(&self, problems: &mut Problems) {
        for (index, (name, _)) in self.entries.iter().enumerate().filter(|_| self.either_case) {
            if let Some((first, _)) = self.entries[..index].iter().find(|(first, _)| self.is(&first.value, &name.value))
            {
                let message = format!("`{}` is given twice, first as `{}`", name.value, first.value);
                problems.push(Diagnostic::error(message).at(self.node.source.excerpt(name.span)));
            }
        }
    }

    /// Returns the first key of the map as the location for problems about something missing.
    fn node_head(&self) -> Node {
        let span = self.entries.first().map_or(self.node.span, |(name, _)| name.span);
        Node { kind: NodeKind::Null, span, tag: None, source: self.node.source.clone() }
    }
}

/// Adds the problem that a key is missing, unless a misspelt key that was reported is the reason.
pub fn add_missing_key(problem: Diagnostic, problems: &mut Problems) {
    if !problems.iter().any(|cause| problem.follows_from(cause)) {
        problems.push(problem);
    }
}

/// Adds `problem` with a key of the map `node`. If the key probably means one that is reported as missing in this map,
/// both are one mistake, and `problem` takes its place.
pub fn add_unknown_key(node: &Node, problem: Diagnostic, problems: &mut Problems) {
    let is_in_map = |other: &Diagnostic| is_in(node, other);
    let is_missing = |other: &&mut Diagnostic| match &other.kind {
        DiagnosticKind::MissingKey(missing) => missing.iter().any(|key| problem.means(key)) && is_in_map(other),
        _ => false,
    };
    if let Some(other) = problems.iter_mut().find(is_missing) {
        *other = Diagnostic { severity: other.severity.max(problem.severity), ..problem };
        return;
    }
    // If nothing is known about what the key means, it is probably the wrong name for what is missing.
    let is_without_meaning = matches!(problem.kind, DiagnosticKind::UnknownKey { meant: None, .. });
    let is_any_missing =
        |other: &&mut Diagnostic| matches!(other.kind, DiagnosticKind::MissingKey(_)) && is_in_map(other);
    match problems.iter_mut().find(is_any_missing).filter(|_| is_without_meaning && problem.is_error()) {
        Some(other) => {
            let mut help = vec![std::mem::take(&mut other.message)];
            help.extend(problem.help);
            *other = Diagnostic { help, ..problem };
        }
        None => problems.push(problem),
    }
}

/// Returns `true` for a problem with the map `node` itself, or with one of its keys.
fn is_in(node: &Node, problem: &Diagnostic) -> bool {
    let keys = if let NodeKind::Map(entries) = &node.kind { entries.as_slice() } else { &[] };
    let keys = keys.iter().map(|(key, _)| node.source.excerpt(key.span));
    std::iter::once(node.excerpt()).chain(keys).any(|place| problem.source.as_ref() == Some(&place))
}

/// Converts `toolCalled` to `tool_called`; leaves a name that contains `_` unchanged.
pub fn snake_case(name: &str) -> String {
    if name.contains('_') { name.to_owned() } else { snake(name).collect() }
}

/// Returns the letters of a name in snake case.
fn snake(name: &str) -> impl Iterator<Item = char> + '_ {
    name.chars().flat_map(|letter| {
        let between = letter.is_ascii_uppercase().then_some('_');
        between.into_iter().chain([letter.to_ascii_lowercase()])
    })
}

/// Reads `node` as text that is not empty.
pub fn text(node: &Node, what: &str, problems: &mut Problems) -> Option<String> {
    let value = any_text(node, what, problems)?;
    if value.is_empty() {
        problems.push(node.error(format!("{what} must not be empty")).of(DiagnosticKind::EmptyText));
        return None;
    }
    Some(value)
}

/// Reads `node` as text.
pub fn any_text(node: &Node, what: &str, problems: &mut Problems) -> Option<String> {
    if let NodeKind::String(value) = &node.kind {
        return Some(value.clone());
    }
    let mut problem = node.error(format!("{what} must be a string, not {}", node.kind_name()));
    if matches!(node.kind, NodeKind::Number(_) | NodeKind::Bool(_)) {
        let written = node.source.text.get(node.span.start()..node.span.end()).unwrap_or_default();
        let is_filled = written.contains("{{");
        problem = problem.help(if is_filled { "put the value of the column in quotes" } else { "put it in quotes" });
    }
    if matches!(node.kind, NodeKind::Null) && main_key::is_comment(node) {
        problem = problem.help("`#` after a space begins a comment: put the text in quotes if it is part of it");
    }
    problems.push(problem);
    None
}

/// Reads `node` as a list.
pub fn list<'a>(node: &'a Node, what: &str, problems: &mut Problems) -> Option<&'a [Node]> {
    match &node.kind {
        NodeKind::List(items) => Some(items),
        _ => {
            let problem = node.error(format!("{what} must be a list, not {}", described(node)));
            problems.push(match &node.kind {
                NodeKind::String(_) if filled(node).is_some() => problem
                    .help("what a template is filled with is text: write `[…]` here, with one template for each item"),
                // Without arguments, an assertion is its name.
                NodeKind::String(text) if what == "`expect`" && (text.contains(' ') || !text.contains('_')) => {
                    problem.help("write an assertion for each item, such as `[{ contains: … }]`")
                }
                NodeKind::String(text) if text.starts_with("- ") && text.contains('\n') => {
                    problem.help("its lines are one text: remove the `|`, the `>` or the quotes before them")
                }
                NodeKind::String(text) => problem.help(match main_key::meant(node, what) {
                    Some(item) => format!("write `[{item}]`"),
                    None => format!("write `[{}]`", as_items(node, text)),
                }),
                NodeKind::Map(_) if node.source.path.ends_with(".json") => problem.help("write `[…]` around the items"),
                NodeKind::Map(_) => problem.help("begin each item with `-`, or write `[…]`"),
                _ => problem,
            });
            None
        }
    }
}

/// Reads `node` as one of `choices`.
pub fn choice<T: Copy>(node: &Node, what: &str, choices: &[(&'static str, T)], problems: &mut Problems) -> Option<T> {
    let names = || choices.iter().map(|(name, _)| *name);
    let found = node.as_str().and_then(|written| choices.iter().find(|(name, _)| *name == written));
    if found.is_none() {
        let allowed = names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let written = node.as_str().map_or_else(|| node.kind_name().to_owned(), |text| format!("`{text}`"));
        problems.push(
            node.error(format!("{what} must be one of {allowed}, not {written}"))
                .suggest(node.as_str().and_then(|text| nearest(text, names()))),
        );
    }
    found.map(|(_, value)| *value)
}

/// Returns the items that a string in place of a list probably means: words with commas between them, or the string.
fn as_items(node: &Node, text: &str) -> String {
    let is_word = |part: &&str| {
        part.starts_with(|first: char| first.is_alphabetic())
            && part.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c))
    };
    // Arguments of a program.
    if text.starts_with('-') && !text.starts_with("- ") && text.contains(' ') && !text.contains(['"', '\'', ',']) {
        return text.split_whitespace().map(|part| format!("{part:?}")).collect::<Vec<_>>().join(", ");
    }
    // The bracket at the beginning may be forgotten.
    let inner = text.strip_suffix(']').filter(|inner| !inner.contains('['));
    let parts: Vec<&str> = inner.unwrap_or(text).split(',').map(str::trim).collect();
    if (parts.len() < 2 && inner.is_none()) || !parts.iter().all(is_word) {
        return node.to_json().to_string();
    }
    let is_quoted = node.source.text.get(node.span.start()..).is_some_and(|rest| rest.starts_with('"'));
    let quoted = |part: &&str| if is_quoted { format!("\"{part}\"") } else { (*part).to_owned() };
    parts.iter().map(quoted).collect::<Vec<_>>().join(", ")
}

/// Returns the text that a template was filled with. Every cell of a CSV file is text, whatever it is meant to be.
fn filled(node: &Node) -> Option<&str> {
    let written = node.source.text.get(node.span.start()..node.span.end())?;
    node.as_str().filter(|text| written.contains("{{") && !text.contains("{{")).map(str::trim)
}

/// Returns a boolean, also if it is the text of a cell that fills a template.
pub fn boolean(node: &Node) -> Option<bool> {
    match (&node.kind, filled(node)) {
        (NodeKind::Bool(value), _) => Some(*value),
        (_, Some("true")) => Some(true),
        (_, Some("false")) => Some(false),
        _ => None,
    }
}

/// Adds help to a problem with a value that is not a boolean: many programs read `yes` as one.
pub fn boolean_help(node: &Node, problem: Diagnostic) -> Diagnostic {
    let is_boolean = |text: &str| matches!(text, "yes" | "no" | "on" | "off" | "true" | "false");
    match node.as_str().is_some_and(is_boolean) {
        true if filled(node).is_some() => problem.help("write `true` or `false`"),
        true => problem.help("write `true` or `false`, without quotes"),
        false => problem,
    }
}

/// Returns a number, also if it is the text of a cell that fills a template.
pub fn number(node: &Node) -> Option<Number> {
    match &node.kind {
        NodeKind::Number(number) => Some(number.clone()),
        _ => filled(node)?.parse().ok(),
    }
}

/// Returns the value for messages: a number or the text that fills a template, and otherwise what kind of value it is.
pub fn shown(node: &Node) -> String {
    match &node.kind {
        NodeKind::Number(number) => number.to_string(),
        _ => described(node),
    }
}

/// Returns what kind of value it is, for messages, or the text that fills a template.
pub fn described(node: &Node) -> String {
    filled(node).map_or_else(|| node.kind_name().to_owned(), |text| format!("`{text}`"))
}

/// Returns the number as a whole number, including when it is written as `5.0`.
pub fn as_whole(number: &Number) -> Option<u64> {
    number.as_u64().or_else(|| {
        let value = number.as_f64()?;
        (value.fract() == 0.0 && (0.0..9.0e15).contains(&value)).then_some(value as u64)
    })
}

/// Formats `ms` milliseconds in the largest unit that divides them: `90s`, `5m`.
fn duration(ms: u64) -> String {
    let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let unit = units.into_iter().find(|(unit, _)| ms.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{ms}ms"), |(unit, name)| format!("{}{name}", ms / unit))
}

/// Reads a duration under `key`: a string with a unit, or a number of milliseconds.
fn duration_of(node: &Node, key: &str, problems: &mut Problems) -> Option<u64> {
    let value = match (&node.kind, number(node)) {
        (_, Some(number)) => as_whole(&number).filter(|value| *value > 0),
        (NodeKind::String(written), None) => parse_duration_ms(written),
        _ => None,
    };
    if value.is_none() {
        let written = match &node.kind {
            NodeKind::String(written) => format!("`{written}`"),
            _ => shown(node),
        };
        let message = match is_zero_or_less(written.trim_matches('`')) {
            true => format!("`{key}` must be a duration above 0, not {written}"),
            false => format!("`{key}` must be a duration, not {written}"),
        };
        problems.push(node.error(message).help("write `500ms`, `30s`, `5m`, `1h`, or a number of milliseconds"));
    }
    value
}

/// Returns `true` for a number of at most zero, with or without a unit.
fn is_zero_or_less(written: &str) -> bool {
    let number = written.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    number.parse::<f64>().is_ok_and(|number| number <= 0.0)
}

/// Parses `500ms`, `30s`, `5m`, `1h` or `1.5h` and returns milliseconds; `None` for anything else, including zero and
/// bare numbers.
pub fn parse_duration_ms(written: &str) -> Option<u64> {
    let written = written.trim();
    let digits = written.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let value: f64 = written[..digits].parse().ok()?;
    let unit = match written[digits..].trim() {
        "ms" => 1.0,
        "s" => 1_000.0,
        "m" => 60_000.0,
        "h" => 3_600_000.0,
        _ => return None,
    };
    let total = (value * unit).round();
    (1.0..9.0e15).contains(&total).then_some(total as u64)
}

#[cfg(test)]
mod tests;
