//! Answers from a file of JSON lines, which `docs/reference/recorded-answers.md` describes, or from a file in another
//! format. A folder of such files has one for each case.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use model::{Case, Diagnostic, DiagnosticKind, Excerpt, Source, Span, nearest};

use super::answer::{RecordedAnswer, RecordedEnding};
use super::line::LineReader;
use crate::evidence::{self, Evidence};
use crate::json_lines::split_value;

/// Content of a file of answers.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// The answers, one per line; blank lines are not counted.
    pub(super) lines: Vec<RecordedAnswer>,
    /// Problems with the file.
    pub(super) problems: Vec<Diagnostic>,
    /// True if a line could not be read.
    pub(super) is_broken: bool,
    by_case: HashMap<String, Vec<usize>>,
    /// Lines by the case's position in its file.
    by_index: HashMap<usize, Vec<usize>>,
    /// True if a line names neither a case nor a position.
    any_by_order: bool,
    /// The greatest position that a line names, and its place.
    last_index: Option<(usize, Excerpt)>,
    /// Number of cases for which a similar name was searched.
    suggested: AtomicUsize,
}

/// Maximum number of cases without an answer for which the nearest name is searched. If the wrong file is given, the
/// time for each search grows with the size of the file.
const MAX_SUGGESTIONS: usize = 20;

/// Number of cases of a file that a message names.
const SHOWN: usize = 8;

impl Answers {
    /// Parses `text`, the content of the file at `path`.
    #[cfg(test)]
    pub(super) fn parse(path: &str, text: String) -> Self {
        let mut answers = Self::default();
        answers.read(path, text.into_bytes(), None);
        answers.finish();
        answers
    }

    /// Adds the content of the file at `path`. A conversation without a case gets the name `case`.
    pub(super) fn read(&mut self, path: &str, bytes: Vec<u8>, case: Option<&str>) {
        if let Some(evidence) = evidence::read_archive(path, &bytes) {
            return self.add_evidence(evidence, case);
        }
        let source = match files::decode(bytes) {
            Ok(text) => Source::new(path, text),
            Err(error) => {
                let (text, at) = error.guess();
                let problem = Diagnostic::error(error.to_string());
                return self.problems.push(problem.at(Source::new(path, text).excerpt(Span::new(at, at + 1))));
            }
        };
        match evidence::read(&source) {
            Some(evidence) => self.add_evidence(evidence, case),
            None => self.read_lines(&source),
        }
    }

    fn add_evidence(&mut self, evidence: Evidence, case: Option<&str>) {
        self.problems.extend(evidence.problems);
        for mut conversation in evidence.conversations {
            conversation.case = conversation.case.or_else(|| case.map(str::to_owned));
            self.add(RecordedAnswer::of(conversation));
        }
    }

    fn read_lines(&mut self, source: &Arc<Source>) {
        let before = self.lines.len();
        let first = self.problems.len();
        let mut odd_keys = HashSet::new();
        let mut start = 0;
        for text in source.text.split_inclusive('\n') {
            let (here, known) = (start, self.problems.len());
            let mut line = LineReader { source, start, text, problems: &mut self.problems, odd_keys: &mut odd_keys };
            start += text.len();
            if text.trim().is_empty() {
                continue;
            }
            let answer = line.answer();
            let last = self.last_index.as_ref().map(|(index, _)| *index);
            if let Some(index) = answer.index.filter(|index| last.is_none_or(|last| *index > last)) {
                self.last_index = Some((index, line.place("i")));
            }
            self.add(answer);
            let is_broken = self.problems.get(known).is_some_and(|one| one.kind == DiagnosticKind::InvalidJson);
            let rest = source.text.get(here..).filter(|_| is_broken).unwrap_or_default();
            if let Some(problem) = split_value(rest, text.len()) {
                self.problems.truncate(known);
                self.problems.push(problem.at(source.excerpt(Span::new(here, here + text.trim_end().len()))));
                break;
            }
        }
        let read = self.lines.len() - before;
        let wrong = self.problems.get_mut(first..).unwrap_or_default();
        if read > 1 && wrong.len() == read && wrong.iter().all(|one| one.kind == DiagnosticKind::InvalidJson) {
            // The file is in another format, which is one mistake.
            let help = "no line of this file is a JSON object; a table must be converted to JSON lines first";
            wrong[0].help = vec![help.to_owned()];
            self.problems.truncate(first + 1);
        }
        if read == 0 {
            let empty = Diagnostic::error("a file of answers must have at least one line");
            self.problems.push(empty.at(source.excerpt(Span::default())));
        }
    }

    fn add(&mut self, answer: RecordedAnswer) {
        let at = self.lines.len();
        match (&answer.case, answer.index) {
            (Some(case), _) => self.by_case.entry(case.clone()).or_default().push(at),
            (None, Some(index)) => self.by_index.entry(index).or_default().push(at),
            (None, None) => self.any_by_order = true,
        }
        self.lines.push(answer);
    }

    /// Must be called once all files were read.
    pub(super) fn finish(&mut self) {
        self.is_broken = self.problems.iter().any(Diagnostic::is_error);
    }

    /// Returns `true` if a line may answer `case`, whose position is `index` in its file and `position` in the plan. It
    /// may if any line names neither a case nor a position: if there are too few of them, only that trial is broken.
    pub(super) fn may_answer(&self, case: &str, index: Option<usize>, position: usize) -> bool {
        self.any_by_order || self.find(case, index, position, 1).is_some()
    }

    /// Returns a warning if a line is for a position that none of the `cases` has that were loaded. If there are too few
    /// other lines for all cases, a case without an answer is reported instead.
    pub(super) fn beyond(&self, cases: usize) -> Option<Diagnostic> {
        let answered = self.by_case.len() + self.by_index.keys().filter(|index| **index < cases).count();
        let (index, place) = self.last_index.as_ref().filter(|(index, _)| *index >= cases)?;
        if answered < cases && !self.any_by_order {
            return None;
        }
        let problem = Diagnostic::warning(format!("no loaded case has the position {index}, so this line is not used"));
        let last = cases.saturating_sub(1);
        Some(problem.at(place.clone()).help(format!("positions count from 0, so the last one here is at most {last}")))
    }

    /// Returns the problem with the lines that name their cases under another key than `case`, if one names `case` so.
    pub(super) fn misnamed(&self, case: &str) -> Option<Diagnostic> {
        let named = || self.lines.iter().filter_map(|line| line.named.as_ref());
        let (_, key, _) = named().find(|(name, ..)| name == case)?;
        let (_, _, place) = named().find(|(_, other, _)| other == key)?;
        let problem = Diagnostic::error(format!("`{key}` does not say which case this line answers"));
        Some(problem.at(place.clone()).suggest(Some("case")))
    }

    /// Returns the number of lines that answer repetitions of `case`, whose position is `index`: at least 1.
    pub(super) fn number_of(&self, case: &str, index: usize) -> usize {
        let by_index = || self.by_index.get(&index);
        self.by_case.get(case).or_else(by_index).map_or(1, Vec::len)
    }

    /// Returns a warning if every line for `case` in `file` answers fewer messages than the case sends.
    pub(super) fn shorter_than(&self, case: &Case, index: usize, file: &str) -> Option<Diagnostic> {
        let by_index = || self.by_index.get(&index);
        let lines = || self.by_case.get(&case.id).or_else(by_index).into_iter().flatten().map(|at| &self.lines[*at]);
        let sent = if case.code.is_some() || case.user.is_some() { 0 } else { case.messages.len() };
        let is_short = |line: &RecordedAnswer| {
            let ends = !matches!(line.ending, RecordedEnding::Finished) || line.error.is_some();
            line.last_message + 1 < sent && !line.is_record && !ends
        };
        let answered = lines().map(|line| line.last_message + 1).max().filter(|_| lines().all(is_short))?;
        let answered = model::text::counted(answered, "message");
        let message = format!("`{file}` answers {answered} of the case `{}`, which sends {sent}", case.id);
        let problem = Diagnostic::warning(message).at(case.source.clone());
        Some(problem.help("write the whole conversation under `messages` of its line; otherwise its trial is broken"))
    }

    /// Returns the named case that is most similar to `case`.
    pub(super) fn nearest_to(&self, case: &str) -> Option<&str> {
        let is_worth_it = self.suggested.fetch_add(1, Ordering::Relaxed) < MAX_SUGGESTIONS;
        is_worth_it.then(|| nearest(case, self.by_case.keys().map(String::as_str))).flatten()
    }

    /// Describes the cases that the lines name, for readers.
    pub(super) fn named(&self) -> Option<String> {
        let mut names: Vec<String> = self.by_case.keys().map(|case| format!("`{case}`")).collect();
        names.sort();
        let mut positions: Vec<usize> = self.by_index.keys().copied().collect();
        positions.sort_unstable();
        names.extend(positions.iter().map(|index| format!("`i: {index}`")));
        let more = names.len().saturating_sub(SHOWN);
        names.truncate(SHOWN);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        let note = if positions.is_empty() { "" } else { ", where positions count from 0" };
        (!names.is_empty()).then(|| format!("its lines are for {}{note}", names.join(", ")))
    }

    /// Returns the line for a repetition of `case`, whose position is `index` in its file and `position` in the plan.
    pub(super) fn find(&self, case: &str, index: Option<usize>, position: usize, repetition: u64) -> Option<usize> {
        let by_index = || self.by_index.get(&index.unwrap_or(position));
        if let Some(lines) = self.by_case.get(case).or_else(by_index) {
            let nth = usize::try_from(repetition.saturating_sub(1)).unwrap_or(usize::MAX);
            return lines.get(nth).or(lines.last()).copied();
        }
        let line = self.lines.get(position)?;
        (line.case.is_none() && line.index.is_none()).then_some(position)
    }
}

#[cfg(test)]
mod tests {
    use model::Ending;
    use serde_json::{Value, json};

    use super::super::answer::RecordedEnding;
    use super::*;

    fn parse(text: &str) -> Answers {
        Answers::parse("answers.jsonl", text.to_owned())
    }

    fn shape(answer: &RecordedAnswer) -> Vec<(usize, &str)> {
        answer.turns.iter().map(|turn| (turn.calls.len(), turn.text.as_str())).collect()
    }

    #[test]
    fn each_call_is_a_turn_and_the_output_is_the_last_turn() {
        let text = r#"{"output":"done","tool_calls":[{"name":"Read"},{"name":"Edit"}]}"#;
        assert_eq!(shape(&parse(text).lines[0]), [(1, ""), (1, ""), (0, "done")]);
    }

    #[test]
    fn calls_under_another_key_of_the_line_leave_open_which_tools_were_called() {
        let missing = |text: &str| parse(text).lines[0].missing_calls.is_some();
        assert!(missing(r#"{"output":"x","toolCalls":[{"name":"Read","args":{}}]}"#));
        assert!(missing(r#"{"output":"x","tools":[{"name":"Read","args":{}}]}"#));
        assert!(!missing(r#"{"output":"x","tools":[{"name":"Read","description":"Reads."}]}"#));
        assert!(!missing(r#"{"output":"x","tool_calls":[],"toolCalls":[{"name":"Read","args":{}}]}"#));
    }

    #[test]
    fn the_recorded_number_of_turns_is_used() {
        let more = r#"{"output":"done","tool_calls":[{"name":"Read"}],"turns":4}"#;
        assert_eq!(shape(&parse(more).lines[0]), [(1, ""), (0, ""), (0, ""), (0, "done")]);
        let fewer = r#"{"output":"done","tool_calls":[{"name":"Read"},{"name":"Edit"}],"turns":2}"#;
        assert_eq!(shape(&parse(fewer).lines[0]), [(2, ""), (0, "done")]);
        let one = r#"{"output":"done","tool_calls":[{"name":"Read","turn":7}],"turns":1}"#;
        assert_eq!(shape(&parse(one).lines[0]), [(1, "done")]);
        assert!(parse(r#"{"case":"a"}"#).lines[0].turns.is_empty());
    }

    #[test]
    fn messages_are_split_at_user_messages() {
        let text = r#"{"messages":[{"role":"user","content":"1"},{"role":"assistant","content":"a","tool_calls":[{"name":"Read"}]},
            "#
        .replace('\n', "")
            + r#"{"role":"user","content":"2"},{"role":"assistant","content":[{"type":"text","text":"b"}]}]}"#;
        let answers = parse(&text);
        assert!(answers.problems.is_empty(), "{:?}", answers.problems);
        let answer = &answers.lines[0];
        assert_eq!(shape(answer), [(1, "a"), (0, "b")]);
        assert_eq!((answer.turns[1].message, answer.last_message), (1, 1));
    }

    #[test]
    fn lines_that_name_a_case_serve_its_repetitions_and_others_match_by_position() {
        let answers = parse("{\"case\":\"a\"}\n\n{\"output\":\"p\"}\n{\"case\":\"a\"}\n");
        assert_eq!(answers.find("a", None, 9, 1), Some(0));
        assert_eq!(answers.find("a", None, 9, 2), Some(2));
        assert_eq!(answers.find("a", None, 9, 3), Some(2));
        assert_eq!(answers.find("b", Some(7), 1, 1), Some(1));
        assert_eq!(answers.find("b", None, 0, 1), None);
    }

    #[test]
    fn a_line_may_name_the_position_of_its_case_in_the_file() {
        let answers = parse("{\"i\":1,\"output\":\"x\"}\n{\"i\":0}\n{\"case\":\"a\",\"i\":1}\n{\"i\":1}\n");
        assert_eq!(answers.find("z", Some(1), 0, 1), Some(0));
        assert_eq!(answers.find("z", Some(1), 0, 2), Some(3));
        assert_eq!(answers.find("z", Some(0), 1, 1), Some(1));
        assert_eq!(answers.find("z", Some(2), 1, 1), None);
        assert_eq!(answers.find("a", Some(0), 9, 1), Some(2), "a name takes precedence over a position");
        assert_eq!(answers.find("z", None, 1, 1), Some(0), "the position in the plan is the fallback");
        assert_eq!(answers.beyond(2), None);
        assert_eq!(parse("{\"i\":0}\n{\"i\":2}\n").beyond(2), None, "the case without an answer is reported");
        let problem = answers.beyond(1).unwrap();
        assert_eq!(
            problem.to_string(),
            "answers.jsonl:1:2: no loaded case has the position 1, so this line is not used"
        );
    }

    #[test]
    fn the_cases_that_lines_name_are_listed_for_readers() {
        let answers = parse("{\"case\":2}\n{\"case\":\"bb\"}\n{\"i\":7}\n{\"output\":\"x\"}\n");
        assert_eq!(
            answers.named().as_deref(),
            Some("its lines are for `2`, `bb`, `i: 7`, where positions count from 0")
        );
        assert_eq!(parse("{\"output\":\"x\"}").named(), None);
        let many: String = (0..12).map(|index| format!("{{\"i\":{index}}}\n")).collect();
        assert!(parse(&many).named().unwrap().contains("`i: 7`, 4 more"));
    }

    #[test]
    fn a_missing_output_is_absent_and_other_values_become_json() {
        let answers = parse("{\"case\":\"a\"}\n{\"output\":null}\n{\"output\":{\"b\":1}}\n{\"answer\":\"c\"}");
        let outputs: Vec<_> = answers.lines.iter().map(|answer| answer.output.as_deref()).collect();
        assert_eq!(outputs, [None, None, Some("{\"b\":1}"), Some("c")]);
        let results: Vec<_> = answers.lines.into_iter().map(|answer| answer.result).collect();
        let unknown = |output: Value| Some(json!({"output": output, "messages": null}));
        let expected = [Some(json!({})), unknown(json!(null)), unknown(json!({"b": 1})), unknown(json!("c"))];
        assert_eq!(results, expected, "the conversation is unknown");
    }

    #[test]
    fn extra_fields_are_kept_but_harness_fields_are_not() {
        let kept = |line: &str| parse(line).lines.remove(0).result;
        let plain = r#"{"case":"a","i":3,"output":"x","tool_calls":[{"name":"Read"}],"turns":2,"ending":"gave_up","because":"no","usage":{"input":1},"cost_usd":1,"model":"m","session_id":"s","questions":["q"]}"#;
        assert_eq!(kept(plain), None);
        assert_eq!(
            kept(r#"{"case":"a","output":"x","messages":[],"usage":{"total":5},"turns":1,"state":{"n":1}}"#),
            Some(json!({"output": "x", "messages": [], "usage": {"total": 5}, "state": {"n": 1}}))
        );
        assert_eq!(kept(r#"{"answer":[1,"a"],"tool_calls":[]}"#), Some(json!({"output": [1, "a"]})));
        let both = json!({"output": "x", "answer": "y", "messages": null});
        assert_eq!(kept(r#"{"output":"x","answer":"y"}"#), Some(both));
        assert_eq!(kept(r#"{"messages":null}"#), Some(json!({"messages": null})));
    }

    #[test]
    fn a_trial_of_the_report_supplies_only_the_result_of_its_agent() {
        let trial = json!({
            "id": "s::a@x#1", "suite": "s", "case": "a", "arm": "x", "repetition": 1, "outcome": "failed", "score": 0.5,
            "titel": "t", "answer": "{}", "result": {"output": {}}, "ending": {"kind": "finished"},
        });
        let answers = parse(&trial.to_string());
        assert!(answers.problems.is_empty(), "{:?}", answers.problems);
        assert_eq!(answers.lines[0].result, Some(json!({"output": {}})));
        let mut plain = trial;
        plain["result"] = json!(null);
        assert_eq!(parse(&plain.to_string()).lines[0].result, None);
    }

    #[test]
    fn a_line_that_is_nested_too_deeply_is_reported_as_such() {
        let deep = |levels: usize| format!("{{\"output\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse(&deep(120)).problems.is_empty());
        assert_eq!(
            parse(&deep(128)).problems[0].to_string(),
            "answers.jsonl:1:137: this line is nested too deeply to be read"
        );
    }

    #[test]
    fn an_unknown_key_that_resembles_a_known_one_is_reported_once_and_others_never() {
        let answers = parse("{\"ouput\":1}\n{\"ouput\":1}\n{\"state\":1,\"output\":\"x\",\"ouptut\":2}");
        assert_eq!(answers.problems.len(), 1, "{:?}", answers.problems);
    }

    #[test]
    fn every_problem_is_reported_at_its_line_and_column() {
        let answers = parse(
            "{\"case\": \"a\", \"usage\": 5}\n{oops}\n[]\n{\"tool_calls\": [{\"input\": {}}]}\n{\"ending\": \"gaveup\"}\n{\"ouput\": \"x\"}\n",
        );
        let messages: Vec<String> = answers.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "answers.jsonl:1:15: `usage` must be an object, not a number",
                "answers.jsonl:2:2: this line is not valid JSON: key must be a string",
                "answers.jsonl:3:1: a line must be a JSON object, not a list",
                "answers.jsonl:4:2: `tool_calls[0]` must have a `name`, a string",
                "answers.jsonl:5:2: `ending` must be one of `finished`, `gave_up`, `out_of_turns`, `timed_out`, `provider_failed`, `aborted`, `cancelled`, not `gaveup`",
                "answers.jsonl:6:2: this line has no answer: `ouput` is not a key for one",
            ]
        );
        assert_eq!(answers.problems[4].help, ["did you mean `gave_up`?"]);
        assert_eq!(answers.problems[5].help, ["did you mean `output`?"]);
        assert!(answers.problems[5].is_error());
    }

    #[test]
    fn a_case_under_another_key_is_one_problem_for_all_lines() {
        let answers =
            parse("{\"id\": \"a\", \"output\": 1}\n{\"id\": \"b\", \"output\": 2}\n{\"case\": \"c\", \"id\": \"d\"}");
        let [first, second] = ["a", "b"].map(|case| answers.misnamed(case).unwrap());
        assert_eq!(first, second);
        assert_eq!(first.to_string(), "answers.jsonl:1:2: `id` does not say which case this line answers");
        assert_eq!(answers.misnamed("c").or(answers.misnamed("d")), None);
    }

    #[test]
    fn a_table_is_one_problem() {
        let answers = parse("case,output\na,hello\nb,hello\n");
        let problems: Vec<String> = answers.problems.iter().map(ToString::to_string).collect();
        assert_eq!(problems, ["answers.jsonl:1:1: this line is not valid JSON: expected value"]);
        assert!(answers.problems[0].help[0].contains("must be converted to JSON lines"), "{:?}", answers.problems);
        assert_eq!(parse("a\n{\"output\":1}\nb\n").problems.len(), 2);
    }

    #[test]
    fn an_answer_under_another_key_is_an_error_with_a_suggestion() {
        for key in ["response", "completion", "content", "text", "Output", "answr"] {
            let answers = parse(&format!("{{\"case\": \"a\", \"{key}\": \"x\"}}"));
            assert!(answers.is_broken, "{key}");
            assert!(answers.problems[0].help[0].starts_with("did you mean `"), "{:?}", answers.problems);
        }
        for wrong in [r#"{"tool_calls":[],"response":"x"}"#, r#"{"tool_calls":[],"completion":"x"}"#] {
            assert_eq!(parse(wrong).problems[0].help, ["did you mean `output`?"], "{wrong}");
        }
        for fine in [r#"{"output":"x","response":"y"}"#, r#"{"case":"a","state":{}}"#, r#"{"tool_calls":[],"text":1}"#]
        {
            assert!(parse(fine).problems.is_empty(), "{fine}");
        }
        for none in ["null", "false", "\"\""] {
            assert_eq!(parse(&format!("{{\"output\": \"x\", \"error\": {none}}}")).lines[0].error, None, "{none}");
        }
    }

    #[test]
    fn half_of_a_surrogate_pair_is_replaced() {
        let answers = parse(r#"{"output":"a\ud83db"}"#);
        assert_eq!((answers.problems.len(), answers.lines[0].output.as_deref()), (0, Some("a\u{fffd}b")));
    }

    #[test]
    fn an_excessive_number_of_turns_is_reported_without_allocating_memory() {
        let answers =
            parse("{\"turns\":1e15,\"output\":\"x\"}\n{\"tool_calls\":[{\"name\":\"a\",\"turn\":9007199254740991}]}");
        let messages: Vec<String> = answers.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "answers.jsonl:1:2: `turns` must not be more than 10000",
                "answers.jsonl:2:28: `turn` must not be more than 10000",
            ]
        );
    }

    #[test]
    fn a_misspelt_count_of_tokens_causes_a_warning() {
        let problems = |usage: &str| {
            let answers = parse(&format!("{{\"output\": \"x\", \"usage\": {usage}}}"));
            answers.problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>()
        };
        assert_eq!(problems(r#"{"inputs": 3, "output": 1}"#), ["`usage` has no count `inputs`, so it is ignored"]);
        let of_vendor =
            r#"{"input_tokens": 3, "total_tokens": 4, "input_audio_tokens": 1, "cache_creation": {"x": 1}}"#;
        assert_eq!(problems(of_vendor), [""; 0]);
    }

    #[test]
    fn usage_can_have_vendor_field_names() {
        let text = "{\"usage\":{\"input_tokens\":5,\"output_tokens\":2.0,\"cost_usd\":0.5}}\n{\"usage\":{\"cost_usd\":1}}\n{\"usage\":{\"input\":-1}}";
        let answers = parse(text);
        let tokens = answers.lines[0].count.usage().tokens.unwrap();
        assert_eq!((tokens.input, tokens.output, tokens.reasoning), (5, 2, None));
        assert_eq!(answers.lines[0].count.usage().cost_usd, Some(0.5));
        assert_eq!(answers.lines[1].count.usage().tokens, None);
        assert_eq!(parse(r#"{"usage":{"tokens":5}}"#).lines[0].count.usage().tokens, None);
        assert!(answers.problems[0].message.contains("`usage.input` must be a whole number"));
    }

    #[test]
    fn an_ending_can_be_written_as_in_the_report() {
        let text = "{\"ending\":{\"kind\":\"gave_up\",\"because\":\"no\"}}\n{\"ending\":\"provider_failed\",\"because\":\"503\"}\n{\"ending\":{\"kind\":\"finished\"}}";
        let answers = parse(text);
        assert!(answers.problems.is_empty(), "{:?}", answers.problems);
        let RecordedEnding::Other(ending) = &answers.lines[0].ending else { panic!("finished") };
        assert_eq!(*ending, Ending::GaveUp { reason: "no".into() });
        let RecordedEnding::Other(ending) = &answers.lines[1].ending else { panic!("finished") };
        assert_eq!(*ending, Ending::ProviderFailed { reason: "503".into() });
        assert!(matches!(answers.lines[2].ending, RecordedEnding::Finished));
    }
}
