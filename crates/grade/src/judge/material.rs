//! Material for judges, made from evidence. Each part is marked as the agent's own or not.

use model::{Change, Evidence, FoundFile, Need, Probed, Trace, TracedCall};
use serde_json::Value;

use crate::call_pattern::unreported_calls;
use crate::evidence::repository;
use crate::skill_use::without_installed;
use crate::{format, given};

/// Maximum length of a reply, and of all other parts except calls, in characters.
const MAX_TEXT_LEN: usize = 100_000;
/// Maximum length of each earlier message, in characters, and maximum number of earlier messages.
const MAX_EARLIER_LEN: usize = 8_000;
const MAX_EARLIER: usize = 30;
/// Maximum length of a call's arguments and of its result, in characters.
const MAX_CALL_LEN: usize = 4_000;
/// Maximum number of calls for one user message.
const MAX_CALLS: usize = 100;
/// Maximum number of files whose contents are shown.
const MAX_CONTENTS: usize = 20;
/// Maximum number of changed files.
const MAX_FILES: usize = 200;

/// Note for people about calls that may be missing. Judges are told in their instructions.
const LACKS_CALLS: &str = "The agent does not report completely which tools it called.";

/// Material that a judge reads.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Material {
    /// Its parts, in the order in which things happened.
    pub parts: Vec<Part>,
    /// True if the agent gave a final answer.
    pub is_answered: bool,
    /// True if the agent may have made calls that it does not report.
    pub may_lack_calls: bool,
}

/// Part of the material.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// Title of the part. It never contains text from the agent.
    pub title: String,
    /// Text of the part.
    pub text: String,
    /// True if it is the agent's own, which a judge may quote.
    pub is_agents: bool,
}

/// Tool calls to show.
#[derive(Debug, Clone, Copy)]
enum Calls {
    /// All calls.
    All,
    /// Those that were made for the user's message with this number.
    Of(usize),
    /// The same, in an earlier turn than the judged one.
    Earlier(usize),
}

impl Material {
    /// Creates material from all evidence: the user's messages, the tool calls, and the agent's answers.
    pub fn from_evidence(evidence: &Evidence) -> Self {
        let trace = &evidence.trace;
        let mut material = Self { may_lack_calls: unreported_calls(trace).is_some(), ..Self::default() };
        let messages = trace.user_messages.len();
        for number in 0..=messages {
            if let Some(text) = number.checked_sub(1).and_then(|index| trace.user_messages.get(index)) {
                material.add(format!("context: message {number} of the user"), text, MAX_TEXT_LEN, false);
            }
            material.add_calls(trace, if messages == 0 { Calls::All } else { Calls::Of(number) });
            let is_last = number == messages;
            if let (false, Some(answer_text)) = (is_last, answer_text(trace, number)) {
                material.add(format!("reply of the agent to message {number}"), &answer_text, MAX_TEXT_LEN, true);
            }
        }
        material.add_files(evidence);
        if let Some(answer) = answer(trace) {
            material.is_answered = true;
            material.add("last reply of the agent".into(), &answer, MAX_TEXT_LEN, true);
        }
        material
    }

    /// Adds the state of the sandbox after the trial, before the last reply: the repository, the names of all files,
    /// and the contents of small files. Files of installed skills are omitted: they are not the
    /// agent's work, and would show the judge in which arm the trial was.
    pub fn with_sandbox(mut self, evidence: &Evidence) -> Self {
        let last = self.parts.pop_if(|_| self.is_answered);
        if let Some(change) = &evidence.collected.repository_change {
            let lines = repository::summary(change).join("\n");
            self.add("what became of the repository".into(), &lines, MAX_TEXT_LEN, true);
        }
        if let Some(Probed::Files { files, clipped }) = evidence.collected.probed(&Need::Files) {
            let own = without_installed(files, &evidence.collected.files_changed);
            self.add_listing(&own, *clipped);
            self.add_contents(&own, evidence);
        }
        self.parts.extend(last);
        self
    }

    fn add_listing(&mut self, files: &[&FoundFile], clipped: bool) {
        let line = |file: &&FoundFile| format!("{} ({} bytes)", file.path, file.size);
        let mut lines = format::few(files.iter().map(line).collect(), MAX_FILES);
        if files.is_empty() {
            lines.push("none".into());
        }
        if clipped {
            lines.push("and more".into());
        }
        self.add("context: all files in the working directory".into(), &lines.join("\n"), MAX_TEXT_LEN, false);
    }

    /// Adds the contents of small files, starting with those that the agent changed.
    fn add_contents(&mut self, files: &[&FoundFile], evidence: &Evidence) {
        let is_changed =
            |file: &FoundFile| evidence.collected.files_changed.iter().any(|known| known.path == file.path);
        let (own, others): (Vec<&FoundFile>, Vec<&FoundFile>) = files.iter().partition(|file| is_changed(file));
        let of = |files: Vec<&FoundFile>, is_agents: bool| -> Vec<(String, bool)> {
            let texts = files.into_iter().filter_map(|file| Some(format!("{}:\n{}", file.path, file.text.as_ref()?)));
            texts.map(|text| (text, is_agents)).collect()
        };
        for (number, (text, is_agents)) in
            [of(own, true), of(others, false)].concat().into_iter().take(MAX_CONTENTS).enumerate()
        {
            let kind = if is_agents { "file that the agent changed" } else { "context: file as it was" };
            self.add(format!("{kind}, {}", number + 1), &text, MAX_CALL_LEN * 2, is_agents);
        }
    }

    /// Returns the material as text, for people who label what a judge decides.
    pub fn text(&self) -> String {
        let note = self.may_lack_calls.then(|| format!("== note ==\n{LACKS_CALLS}"));
        let parts = self.parts.iter().map(|part| format!("== {} ==\n{}", part.title, part.text));
        note.into_iter().chain(parts).collect::<Vec<_>>().join("\n\n")
    }

    /// Adds the conversation before the user's message `number`, from 1, so that a reply is judged in context.
    pub fn after(mut self, trace: &Trace, number: usize) -> Self {
        let own = std::mem::take(&mut self.parts);
        for earlier in number.saturating_sub(MAX_EARLIER).max(1)..number {
            if let Some(text) = trace.user_messages.get(earlier - 1) {
                self.add(format!("context: earlier message {earlier} of the user"), text, MAX_EARLIER_LEN, false);
            }
            self.add_calls(trace, Calls::Earlier(earlier));
            if let Some(text) = answer_text(trace, earlier) {
                self.add(format!("context: earlier reply {earlier} of the agent"), &text, MAX_EARLIER_LEN, false);
            }
        }
        self.parts.extend(own);
        self
    }

    /// Creates material from that of two trials, which are called `first` and `second`. What both begin with, such as
    /// the task, is shown once.
    pub fn of_pair(first: &Self, second: &Self) -> Self {
        let is_common = |(one, other): &(&Part, &Part)| !one.is_agents && one == other;
        let common = first.parts.iter().zip(&second.parts).take_while(is_common).count();
        let mut parts = first.parts[..common].to_vec();
        for (name, side) in [("first", first), ("second", second)] {
            let own = side.parts[common..].iter();
            parts.extend(own.map(|part| Part { title: format!("{name}: {}", part.title), ..part.clone() }));
            if side.is_empty() {
                let (title, text) =
                    (format!("{name}: context: note"), "the agent did nothing and gave no reply".into());
                parts.push(Part { title, text, is_agents: false });
            }
        }
        Self {
            parts,
            is_answered: first.is_answered && second.is_answered,
            may_lack_calls: first.may_lack_calls || second.may_lack_calls,
        }
    }

    /// Returns `true` if none of the material is the agent's own.
    pub fn is_empty(&self) -> bool {
        !self.parts.iter().any(|part| part.is_agents)
    }

    /// Returns `true` if the agent's own parts contain this passage: its words in the same order. Case, punctuation
    /// and white space may differ, and `…` or `...` stands for omitted text.
    pub fn has(&self, quote: &str) -> bool {
        let quote = model::text::visible(quote);
        let pieces: Vec<&str> = quote.split("...").flat_map(|piece| piece.split('…')).collect();
        let bare: Vec<String> = pieces.iter().map(|piece| bare(piece)).filter(|piece| !piece.is_empty()).collect();
        let mut own = self.parts.iter().filter(|part| part.is_agents);
        if bare.is_empty() {
            let quote = quote.trim();
            return !quote.is_empty() && own.any(|part| part.text.contains(quote));
        }
        own.any(|part| holds_in_order(&self::bare(&part.text), &bare))
    }

    fn add(&mut self, title: String, text: &str, longest: usize, is_agents: bool) {
        if !text.trim().is_empty() {
            self.parts.push(Part {
                title,
                text: model::text::visible(&shortened(text, longest)).into_owned(),
                is_agents,
            });
        }
    }

    fn add_calls(&mut self, trace: &Trace, which: Calls) {
        let of_message = |call: &&TracedCall| match which {
            Calls::All => true,
            Calls::Of(message) | Calls::Earlier(message) => {
                trace.turns.get(call.turn).map_or(message == 0, |turn| turn.user_message == message)
            }
        };
        let (kind, longest, is_agents) = match which {
            Calls::Earlier(_) => ("context: earlier tool call", MAX_EARLIER_LEN / 2, false),
            Calls::All | Calls::Of(_) => ("tool call", MAX_CALL_LEN * 3, true),
        };
        let calls: Vec<(usize, &TracedCall)> =
            trace.calls.iter().enumerate().filter(|(_, call)| of_message(call)).collect();
        let omitted = calls.len().saturating_sub(MAX_CALLS);
        // The first and the last calls are the most informative.
        let (head, tail) = (MAX_CALLS / 2, calls.len().saturating_sub(MAX_CALLS / 2));
        for (index, (number, call)) in calls.into_iter().enumerate() {
            if omitted > 0 && index == head {
                let note = format!("{} omitted here", format::count(omitted, "call"));
                self.parts.push(Part { title: "context: note".into(), text: note, is_agents: false });
            }
            if omitted == 0 || index < head || index >= tail {
                self.add(format!("{kind} {}", number + 1), &describe_call(call), longest, is_agents);
            }
        }
    }

    fn add_files(&mut self, evidence: &Evidence) {
        let changed = evidence.collected.files_changed.iter().map(|file| {
            let change = match file.change {
                Change::Added => "added",
                Change::Modified => "modified",
                Change::Deleted => "deleted",
            };
            format!("{change} {}", file.path)
        });
        let lines = format::few(changed.collect(), MAX_FILES);
        self.add("files that the agent changed".into(), &lines.join("\n"), MAX_TEXT_LEN, true);
    }
}

/// Returns the last answer as text. A value that is not a string is returned as JSON.
pub(super) fn answer(trace: &Trace) -> Option<String> {
    text_of(&given::output(trace)?)
}

/// Returns the agent's answer to an earlier message.
fn answer_text(trace: &Trace, number: usize) -> Option<String> {
    let reply = trace.replies.get(number.checked_sub(1)?)?;
    match &reply.result {
        Some(result) => text_of(result.get("output")?),
        None => reply.answer.clone(),
    }
}

fn text_of(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    Some(text).filter(|text| !text.trim().is_empty())
}

fn describe_call(traced: &TracedCall) -> String {
    let input = shortened(&traced.call.input.to_string(), MAX_CALL_LEN);
    let result = match &traced.result {
        Some(result) if result.is_error => format!("failed: {}", shortened(&result.content, MAX_CALL_LEN)),
        Some(result) => format!("result: {}", shortened(&result.content, MAX_CALL_LEN)),
        None => "no result".to_owned(),
    };
    format!("{} {input}\n{result}", traced.call.name)
}

/// Shortens `text` to `most` characters: keeps most of its beginning and some of its end.
fn shortened(text: &str, most: usize) -> String {
    model::text::middle(text.to_owned(), most / 4 * 3, most)
}

/// Returns only the words, in lower case, separated by single spaces.
fn bare(text: &str) -> String {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// Returns `true` if `text` contains all pieces in order. In scripts that separate words, only whole words match.
fn holds_in_order(text: &str, pieces: &[String]) -> bool {
    let text = format!(" {text} ");
    let mut rest = text.as_str();
    pieces.iter().all(|piece| {
        let stands_apart = piece.chars().all(|letter| letter < '\u{e00}');
        let wanted = if stands_apart { format!(" {piece} ") } else { piece.clone() };
        let Some(offset) = rest.find(&wanted) else { return false };
        // The space after a word is also the one before the next.
        rest = &rest[offset + wanted.len() - usize::from(stands_apart)..];
        true
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::example::EvidenceBuilder;

    fn material(answer: &str) -> Material {
        Material::from_evidence(
            &EvidenceBuilder::new().call("lookup_order", json!({"id": 7})).answer(answer).evidence(),
        )
    }

    #[test]
    fn a_quote_is_found_regardless_of_punctuation() {
        let material = material("**Of course!** I’ve refunded\nyour order — it's 20 € back.");
        for quote in [
            "I've refunded your order",
            "of course",
            "Of course… I",
            "Of course! … 20 € back",
            "your order - it's 20",
            "lookup_order",
        ] {
            assert!(material.has(quote), "{quote}");
        }
        for quote in ["", "  ", "refunded you", "20 € back … Of course", "…", "👍"] {
            assert!(!material.has(quote), "{quote}");
        }
        assert!(self::material("👍").has("👍") && self::material("您可以退货。").has("可以"));
    }

    #[test]
    fn only_parts_written_by_the_agent_can_be_quoted() {
        let mut evidence = EvidenceBuilder::new().answer("No.").evidence();
        evidence.trace.user_messages = vec!["Say that you promise a refund.".into()];
        let material = Material::from_evidence(&evidence);
        assert!(material.has("no") && !material.has("promise a refund"));
        let titles: Vec<&str> = material.parts.iter().map(|part| part.title.as_str()).collect();
        assert_eq!(titles, ["context: message 1 of the user", "last reply of the agent"]);
    }

    #[test]
    fn a_conversation_is_shown_in_order() {
        use model::{Step, ToolCall, ToolResult, Trace, Usage};
        let asked = |index: usize| Step::UserMessage { index, of: 2, text: format!("question {index}") };
        let finished = |text: &str| Step::Finished {
            subtype: "success".into(),
            is_error: false,
            usage: Usage::default(),
            text: Some(text.into()),
            result: None,
        };
        let trace = Trace::of(&[
            asked(1),
            Step::ToolCall(ToolCall::new("c", "search", json!({"q": "a"}), "m1")),
            Step::ToolResult(ToolResult { id: "c".into(), content: "nothing".into(), is_error: true }),
            finished("one"),
            asked(2),
            finished("two"),
        ]);
        let second = Evidence { trace: trace.reply(2).unwrap(), ..EvidenceBuilder::new().evidence() };
        let titles: Vec<String> =
            Material::from_evidence(&second).after(&trace, 2).parts.into_iter().map(|part| part.title).collect();
        assert_eq!(
            titles,
            [
                "context: earlier message 1 of the user",
                "context: earlier tool call 1",
                "context: earlier reply 1 of the agent",
                "context: message 1 of the user",
                "last reply of the agent",
            ]
        );
        let material = Material::from_evidence(&Evidence { trace, ..EvidenceBuilder::new().evidence() });
        let parts: Vec<String> = material.parts.iter().map(|part| format!("{}: {}", part.title, part.text)).collect();
        assert_eq!(
            parts,
            [
                "context: message 1 of the user: question 1",
                "tool call 1: search {\"q\":\"a\"}\nfailed: nothing",
                "reply of the agent to message 1: one",
                "context: message 2 of the user: question 2",
                "last reply of the agent: two",
            ]
        );
    }

    #[test]
    fn invisible_characters_are_escaped_and_long_text_is_cut_in_the_middle() {
        assert_eq!(material("a\u{202e}b").parts.last().unwrap().text, "a\\u{202e}b");
        let long = format!("begin{}end", "x".repeat(2 * MAX_TEXT_LEN));
        let material = material(&long);
        let text = &material.parts.last().unwrap().text;
        assert!(text.starts_with("begin") && text.ends_with("end") && text.contains("characters omitted"));
        assert!(text.chars().count() < MAX_TEXT_LEN + 100);
    }

    #[test]
    fn other_values_are_shown_as_json_and_a_missing_answer_is_empty() {
        let mut evidence = EvidenceBuilder::new().evidence();
        assert!(Material::from_evidence(&evidence).is_empty());
        evidence.trace.result = Some(std::sync::Arc::new(json!({"output": {"total": 3}})));
        let material = Material::from_evidence(&evidence);
        assert!(material.is_answered && material.has("total 3"));
    }
}
