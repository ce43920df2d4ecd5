//! Directives for the fake agent.

use std::time::Duration;

use model::decode::parse_duration_ms;
use model::{Diagnostic, Ending, Question, Tokens, Usage, nearest};
use serde_json::{Deserializer, Value};

/// An action of the fake agent.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Directive {
    /// Says this text.
    Say(String),
    /// Thinks this text.
    Think(String),
    /// Calls a tool that returns `result`.
    Call { name: String, input: Value, result: String, is_error: bool },
    /// Asks the user.
    Ask(Question),
    /// Loads a skill, if it is installed.
    Skill(String),
    /// Performs the directive if any skill is installed.
    WithSkill(Box<Directive>),
    /// Writes a file in the sandbox.
    Write { path: String, content: String },
    /// Does nothing for this time.
    Sleep(Duration),
    /// Reports this usage.
    Use(Usage),
    /// Ends with this ending.
    End(Ending),
    /// A line with a misspelt directive, or with invalid syntax.
    Invalid { line: String, problem: Diagnostic },
}

impl Directive {
    /// Returns `true` if the directive calls a tool.
    pub(super) fn calls_tool(&self) -> bool {
        match self {
            // An invalid one may be meant to call a tool.
            Self::Call { .. } | Self::Ask(_) | Self::Skill(_) | Self::Write { .. } | Self::Invalid { .. } => true,
            Self::WithSkill(directive) => directive.calls_tool(),
            Self::Say(_) | Self::Think(_) | Self::Sleep(_) | Self::Use(_) | Self::End(_) => false,
        }
    }
}

/// A directive that users may write.
pub struct DirectiveKind {
    /// Name after the `!`.
    pub name: &'static str,
    /// Syntax after the name.
    pub form: &'static str,
    /// Description of the effect.
    pub summary: &'static str,
    parse: fn(&str) -> Result<Directive, String>,
}

const fn kind(
    name: &'static str,
    form: &'static str,
    summary: &'static str,
    parse: fn(&str) -> Result<Directive, String>,
) -> DirectiveKind {
    DirectiveKind { name, form, summary, parse }
}

/// All directives.
pub static DIRECTIVES: &[DirectiveKind] = &[
    kind("say", "TEXT", "Says TEXT, even if it begins with `!`", |rest| Ok(Directive::Say(rest.to_owned()))),
    kind("think", "TEXT", "Thinks TEXT", |rest| Ok(Directive::Think(rest.to_owned()))),
    kind(
        "call",
        "NAME {JSON} [=> RESULT]",
        "Records a tool call with RESULT (default `ok`) without running the tool",
        |rest| call(rest, false),
    ),
    kind("fail", "NAME {JSON} [=> RESULT]", "Records a tool call that failed with RESULT (default `error`)", |rest| {
        call(rest, true)
    }),
    kind("ask", "QUESTION [| LABEL]…", "Asks the user to choose one", |rest| ask(rest, false)),
    kind("ask-many", "QUESTION [| LABEL]…", "Asks the user to choose any number", |rest| ask(rest, true)),
    kind(
        "write",
        "PATH [TEXT]",
        "Writes TEXT and a newline to a file in the sandbox; `\\n` in TEXT is a newline",
        write,
    ),
    kind("skill", "NAME", "Loads a skill; an error if it is not installed in `.fake/skills`", skill),
    kind("with-skill", "!DIRECTIVE", "Follows the directive if a skill or a sub-agent is installed", with_skill),
    kind("sleep", "DURATION", "Waits, for example `200ms`", sleep),
    kind("tokens", "INPUT OUTPUT [CACHE_READ [CACHE_WRITE]]", "Reports this token usage", tokens),
    kind("cost", "DOLLARS", "Reports this cost", cost),
    kind("error", "[TEXT]", "Gives up with an error", |rest| {
        Ok(Directive::End(Ending::GaveUp { reason: or(rest, "requested by `!error`") }))
    }),
    kind("provider-error", "[TEXT]", "Ends as if the model provider had failed", |rest| {
        Ok(Directive::End(Ending::ProviderFailed { reason: or(rest, "requested by `!provider-error`") }))
    }),
    kind("abort", "[TEXT]", "Ends as if its process had died", |rest| {
        Ok(Directive::End(Ending::Aborted { reason: or(rest, "requested by `!abort`") }))
    }),
];

/// Parses the actions in `text`, in order. Consecutive lines that are not directives are said together.
pub(super) fn parse(text: &str) -> Vec<Directive> {
    let mut directives = Vec::new();
    let mut plain: Vec<&str> = Vec::new();
    for line in text.lines() {
        match directive(line) {
            Some(directive) => {
                flush(&mut plain, &mut directives);
                directives.push(directive);
            }
            None => plain.push(line),
        }
    }
    flush(&mut plain, &mut directives);
    directives
}

fn flush(plain: &mut Vec<&str>, directives: &mut Vec<Directive>) {
    let text = plain.join("\n");
    if !text.trim().is_empty() {
        directives.push(Directive::Say(text.trim_matches('\n').to_owned()));
    }
    plain.clear();
}

/// Parses the directive on `line`, if it is one. A name close to a known one is an error.
fn directive(line: &str) -> Option<Directive> {
    let written = line.trim().strip_prefix('!')?;
    let (name, rest) = match written.split_once(char::is_whitespace) {
        Some((name, rest)) => (name, rest.trim()),
        None => (written, ""),
    };
    let invalid = |problem: Diagnostic| Directive::Invalid { line: line.trim().to_owned(), problem };
    if let Some(kind) = DIRECTIVES.iter().find(|kind| kind.name == name) {
        return Some((kind.parse)(rest).unwrap_or_else(|wrong| {
            let problem = Diagnostic::error(format!("in the `!{name}` directive: {wrong}"));
            invalid(problem.help(format!("write `!{name} {}`", kind.form)))
        }));
    }
    let near = nearest(name, DIRECTIVES.iter().map(|kind| kind.name))?;
    let mistake = Diagnostic::error(format!("`!{name}` is not a directive of `fake`"));
    let mistake = mistake.suggest(Some(&format!("!{near}")));
    Some(invalid(mistake.help("to say a line that begins with `!`, write `!say` before it")))
}

fn call(rest: &str, is_error: bool) -> Result<Directive, String> {
    let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if name.is_empty() || name.starts_with('{') {
        return Err("the name of a tool is missing".to_owned());
    }
    if name.contains(['(', '{', '"']) {
        return Err(format!("`{name}` is not the name of a tool"));
    }
    let rest = rest.trim();
    let (input, rest) = if rest.starts_with('{') {
        let mut values = Deserializer::from_str(rest).into_iter::<Value>();
        let input = match values.next() {
            Some(Ok(input)) => input,
            Some(Err(error)) => {
                let reason = error.to_string();
                let reason = reason.split(" at line ").next().unwrap_or(&reason);
                return Err(format!("the arguments are not valid JSON: {reason}"));
            }
            None => Value::Null,
        };
        (input, rest[values.byte_offset()..].trim())
    } else {
        (Value::Object(serde_json::Map::new()), rest)
    };
    let result = match rest.strip_prefix("=>") {
        Some(result) => result.trim(),
        None if rest.is_empty() => {
            if is_error {
                "error"
            } else {
                "ok"
            }
        }
        None => return Err(format!("the arguments must be a JSON object, not `{rest}`")),
    };
    Ok(Directive::Call { name: name.to_owned(), input, result: result.to_owned(), is_error })
}

fn ask(rest: &str, multi_select: bool) -> Result<Directive, String> {
    let mut parts = rest.split('|').map(|part| part.trim().to_owned());
    let question = parts.next().filter(|question| !question.is_empty()).ok_or("the question is missing")?;
    let options = parts.filter(|label| !label.is_empty()).collect();
    Ok(Directive::Ask(Question { question, options, multi_select, ..Question::default() }))
}

fn write(rest: &str) -> Result<Directive, String> {
    let (path, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if path.is_empty() {
        return Err("the path is missing".to_owned());
    }
    let mut content = text.replace("\\n", "\n");
    if !content.is_empty() {
        content.push('\n');
    }
    Ok(Directive::Write { path: path.to_owned(), content })
}

fn skill(rest: &str) -> Result<Directive, String> {
    if rest.is_empty() { Err("the skill's name is missing".to_owned()) } else { Ok(Directive::Skill(rest.to_owned())) }
}

fn with_skill(rest: &str) -> Result<Directive, String> {
    match directive(rest) {
        Some(Directive::Invalid { problem, .. }) => Err(problem.message),
        Some(directive) => Ok(Directive::WithSkill(Box::new(directive))),
        None => Err(format!("`{rest}` is not a directive")),
    }
}

fn sleep(rest: &str) -> Result<Directive, String> {
    let ms = parse_duration_ms(rest).ok_or_else(|| format!("`{rest}` is not a duration such as `200ms`"))?;
    Ok(Directive::Sleep(Duration::from_millis(ms)))
}

fn tokens(rest: &str) -> Result<Directive, String> {
    let counts: Vec<u64> = rest
        .split_whitespace()
        .map(|word| word.parse().map_err(|_| format!("`{word}` is not a number of tokens")))
        .collect::<Result<_, _>>()?;
    if !(2..=4).contains(&counts.len()) {
        return Err(format!("two to four numbers are needed, not {}", counts.len()));
    }
    let count = |index: usize| counts.get(index).copied().unwrap_or(0);
    let tokens =
        Tokens { input: count(0), output: count(1), cache_read: count(2), cache_write: count(3), reasoning: None };
    Ok(Directive::Use(Usage { tokens: Some(tokens), cost_usd: None }))
}

fn cost(rest: &str) -> Result<Directive, String> {
    match rest.trim_start_matches('$').parse::<f64>() {
        Ok(dollars) if dollars.is_finite() && dollars >= 0.0 => {
            Ok(Directive::Use(Usage { tokens: None, cost_usd: Some(dollars) }))
        }
        _ => Err(format!("`{rest}` is not an amount of dollars")),
    }
}

fn or(text: &str, default: &str) -> String {
    if text.is_empty() { default } else { text }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plain_lines_form_one_text_and_directives_split_it() {
        let text = "hello\nworld\n!call Bash {\"command\": \"ls\"} => a.txt\n\nbye";
        assert_eq!(
            parse(text),
            [
                Directive::Say("hello\nworld".into()),
                Directive::Call {
                    name: "Bash".into(),
                    input: json!({"command": "ls"}),
                    result: "a.txt".into(),
                    is_error: false
                },
                Directive::Say("bye".into()),
            ]
        );
    }

    #[test]
    fn exclamations_unlike_any_directive_are_text() {
        assert_eq!(parse("!!important!!"), [Directive::Say("!!important!!".into())]);
        assert_eq!(parse("!say !call me"), [Directive::Say("!call me".into())]);
    }

    #[test]
    fn a_misspelt_directive_names_the_nearest_one() {
        let [Directive::Invalid { problem, .. }] = &parse("!slep 2s")[..] else { panic!("accepted") };
        assert_eq!(problem.help[0], "did you mean `!sleep`?");
    }

    #[test]
    fn every_invalid_argument_is_reported_with_the_correct_form() {
        for (text, part) in [
            ("!call", "name of a tool is missing"),
            ("!call Bash ls", "must be a JSON object"),
            ("!call Bash {\"a\":", "not valid JSON"),
            ("!ask | a", "question is missing"),
            ("!sleep soon", "not a duration"),
            ("!tokens 5", "two to four numbers"),
            ("!tokens 5 x", "`x` is not a number"),
            ("!cost -1", "not an amount"),
            ("!write", "path is missing"),
            ("!skill", "skill's name is missing"),
            ("!with-skill hello", "`hello` is not a directive"),
            ("!with-skill !cost -1", "not an amount"),
        ] {
            let [Directive::Invalid { problem, .. }] = &parse(text)[..] else { panic!("{text} was accepted") };
            assert!(problem.message.contains(part), "{text}: {}", problem.message);
            assert!(problem.help[0].starts_with("write `!"), "{text}");
        }
    }

    #[test]
    fn tokens_accepts_counts_for_cache_reads_and_writes() {
        let [Directive::Use(usage)] = &parse("!tokens 1 2 3 4")[..] else { panic!("not tokens") };
        let tokens = usage.tokens.unwrap();
        assert_eq!((tokens.input, tokens.output, tokens.cache_read, tokens.cache_write), (1, 2, 3, 4));
    }
}
