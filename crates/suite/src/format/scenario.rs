//! `scenario`: one case in a YAML file, in the format of ai-tester.

use std::path::Path;
use std::sync::Arc;

use jiff::ToSpan as _;
use model::decode::{self, Fields, Problems};
use model::{
    AssertionScope, Case, Diagnostic, DiagnosticKind, Excerpt, Fixtures, NetworkPolicy, Node, NodeKind, PermissionMode,
    Quarantine, RemoteMode, RunnerOptions, SettingSource, Span, Subject, Trials, UserMessage, nearest,
};

use super::assertions::{Assertions, ruling};
use super::rows::{CASES, CaseReader};
use super::user_responses::user_responses;
use super::{Format, SuiteFile, is_evals_file, literal};
use crate::canaries::canaries;
use crate::faults::faults;
use crate::fixture_settings::field::is_reason;
use crate::fixtures::Block;
use crate::graded::graded;
use crate::guarantees::{guarantees, network_policy};
use crate::library::Library;
use crate::mocks::mocks;
use crate::trials::{pass_rate, trials};
use crate::{ai_tester, document, misplaced, model_name, path, shared_fixtures, skill};

/// The `scenario` format.
pub const SCENARIO: Format = Format {
    name: "scenario",
    tool: None,
    mark: "a YAML or JSON map with `scenario: ID` and one of `skill`, `system_prompt`, `system_prompt_file`",
    fails_alone: false,
    is_meant,
    resembles,
    recognises,
    read,
};

/// Keys that name the subject under test; a scenario has exactly one of them.
const SUBJECTS: [&str; 3] = ["skill", "system_prompt", "system_prompt_file"];

/// Top-level keys that are rare in other files. One of them may be a coincidence, two are not.
const TELLING: &str = "skill system_prompt system_prompt_file user_prompt user_prompts max_turns token_budget \
                       token-budget fixtures user_responses assertions";

/// Top-level keys of other programs.
const SYNONYMS: [(&str, &str); 21] = [
    ("runs", "trials"),
    ("parametrize", "cases"),
    ("examples", "cases"),
    ("rows", "cases"),
    ("table", "cases"),
    ("data", "cases"),
    ("params", "cases"),
    ("matrix", "cases"),
    ("files", "fixtures"),
    ("id", "scenario"),
    ("name", "scenario"),
    ("turns", "user_prompts"),
    ("messages", "user_prompts"),
    ("says", "user_prompt"),
    ("prompt", "user_prompt"),
    ("message", "user_prompt"),
    ("user", "user_prompt"),
    ("max_tokens", "token_budget"),
    ("max_steps", "max_turns"),
    ("expect", "assertions"),
    ("checks", "assertions"),
];

/// Default message for an inline prompt.
pub const OPENING: &str = "Begin.";

fn is_meant(text: &str) -> bool {
    if let Some(keys) = super::json_keys(text) {
        return looks_like_one(keys.into_iter().map(|key| (key, false)));
    }
    let keys = text.lines().filter_map(|line| {
        let (key, value) = line.trim_start_matches('{').split_once(':')?;
        let key = key.trim_end().trim_matches(['"', '\'']);
        Some((key, !value.trim().is_empty()))
    });
    looks_like_one(keys)
}

fn resembles(file: &SuiteFile<'_>) -> bool {
    let NodeKind::Map(entries) = &file.root.kind else { return false };
    // Among these keys, only `fixtures` contains a map. A map under any other of them is a coincidence, such as names
    // in a table.
    let fits = |name: &str, value: &Node| !matches!(value.kind, NodeKind::Map(_)) || name == "fixtures";
    let entries = entries.iter().map(|(name, value)| (name.value.as_str(), value));
    let entries = entries.filter(|(name, value)| fits(name, value));
    looks_like_one(entries.map(|(name, value)| (name, !matches!(value.kind, NodeKind::List(_)))))
}

fn recognises(file: &SuiteFile<'_>) -> bool {
    // Turns are those of a conversation, in which the subject is the mistake.
    let is_conversation = file.root.get("turns").is_some() && file.root.get("scenario").is_none();
    let is_key = |name: &str| name == "scenario" || SUBJECTS.contains(&name) && !is_conversation;
    match &file.root.kind {
        // An evaluation of another tool may have `skill`.
        NodeKind::Map(entries) => !is_evals_file(file.path) && entries.iter().any(|(name, _)| is_key(&name.value)),
        _ => false,
    }
}

fn read(file: &SuiteFile<'_>, library: &Library, problems: &mut Problems) -> Vec<Arc<Case>> {
    CaseReader { id: &["scenario"], fails_alone: SCENARIO.fails_alone, read: case }.cases(file, library, problems)
}

/// Reasoning efforts of the common models.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// Message about a reasoning effort that is probably misspelt. Agents have further ones.
const UNUSUAL_EFFORT: &str = "this is not a usual reasoning effort";

/// Number of model turns above which a scenario without `max_turns` gets a warning.
pub const WARN_TURNS: u64 = 40;

fn case(file: &SuiteFile<'_>, library: &Library, problems: &mut Problems) -> Option<Case> {
    let known = problems.len();
    refuse_tags(file.root, problems);
    let mut fields = Fields::of(file.root, "the scenario", problems)?.with_synonyms(&SYNONYMS);
    // The rows have already been read.
    let _ = fields.get(CASES);
    let id = id(&mut fields, problems);
    let source = fields.get("scenario").map_or_else(|| file.root.excerpt(), Node::excerpt);
    let id = id.unwrap_or_else(|| file.path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
    let subject = subject(&id, &mut fields, file, library, problems);
    let messages = messages(subject.as_ref(), &mut fields, problems);
    let token_budget = token_budget(&mut fields, problems);
    let skill_budget = subject.as_ref().and_then(Subject::skill).and_then(|skill| skill.token_budget);
    let case = with_common_fields(Case::new(id, source), &mut fields, file, library, problems);
    report_few_turns(case.max_turns, messages.len(), &mut fields, problems);
    let mocks = Arc::new(mocks(&mut fields, file.directory(), problems));
    let assertions = assertions(&mut fields, problems);
    let has_unread = assertions.has_unread();
    let assertions = assertions.finish();
    let ruling = ruling(&mut fields, &assertions, problems);
    let first = problems.len();
    fields.finish_except(&ai_tester::KEYS, problems);
    misplaced::say_where(problems, first, misplaced::OF_CASE);
    // A mistake may be the reason why there are no assertions.
    let has_unread = has_unread || problems.iter().skip(known).any(model::Diagnostic::is_error);
    Some(Case {
        subject: subject.unwrap_or(Subject::Agent),
        messages,
        warn_turns: case.max_turns.is_none().then_some(WARN_TURNS),
        token_budget,
        mocks,
        must_assert: token_budget.or(skill_budget).is_none() && !has_unread,
        assertions,
        ruling,
        ..case
    })
}

/// Reads the fields that scenarios and conversations have in common into `case`.
pub(super) fn with_common_fields(
    case: Case,
    fields: &mut Fields<'_>,
    file: &SuiteFile<'_>,
    library: &Library,
    problems: &mut Problems,
) -> Case {
    let fixtures = fields.get("fixtures").map(|node| fixtures_of(node, file, library, problems));
    let isolation = fields.get("sandbox").and_then(|node| isolation(node, problems));
    let (required_isolation, network, remote) = isolation.unwrap_or_default();
    let case = Case {
        description: fields.any_text("description", problems),
        tags: literal::tags(fields, problems),
        quarantine: fields.get("quarantine").and_then(|node| quarantine(node, library.now_ms, problems)),
        max_turns: fields.whole("max_turns", 1, problems),
        timeout_ms: fields.duration_ms("timeout", problems),
        trials: fields.get("trials").and_then(|node| trials(node, problems)),
        pass_rate: fields.get("pass_rate").and_then(|node| pass_rate(node, problems)),
        runner: Arc::new(runner(fields, file.directory(), problems)),
        required_isolation,
        network,
        isolation_source: fields.get("sandbox").map(Node::excerpt),
        graded: fields.get("graded").map(|node| graded(node, file.directory(), problems)).unwrap_or_default(),
        canaries: fields.get("canaries").and_then(|node| canaries(node, problems)),
        faults: fields.get("faults").map_or_else(Vec::new, |node| faults(node, problems)),
        remote,
        fixtures: fixtures.unwrap_or_default(),
        user_responses: user_responses(fields, problems),
        ..case
    };
    report_untested_rate(&case, fields, problems);
    case
}

/// Warns about a limit on turns that does not suffice for the messages of a case: each takes at least one.
pub(super) fn report_few_turns(
    max_turns: Option<u64>,
    messages: usize,
    fields: &mut Fields<'_>,
    problems: &mut Problems,
) {
    if let (Some(most), Some(node)) = (max_turns, fields.get("max_turns"))
        && most < messages as u64
    {
        let message = format!("`max_turns` is {most}, but each of the {messages} messages takes at least one turn");
        problems.push(node.warning(message).help("the agent is stopped before it has answered all of them"));
    }
}

/// Warns about a required pass rate that no number of trials in the same file tests.
fn report_untested_rate(case: &Case, fields: &mut Fields<'_>, problems: &mut Problems) {
    if let (Some(Trials::Fixed(_)), Some(_), Some(node)) = (case.trials, &case.pass_rate, fields.get("pass_rate")) {
        let problem = node.warning("`pass_rate` is not tested with a fixed number of `trials`");
        let help = "write `trials: auto`, which runs as many trials as the rate needs";
        problems.push(problem.of(DiagnosticKind::UntestedRate).help(help));
    }
}

/// Reads a case's `sandbox`: the guarantees that it requires, its network policy and its remote.
fn isolation(node: &Node, problems: &mut Problems) -> Option<(Vec<String>, Option<NetworkPolicy>, Option<RemoteMode>)> {
    let mut fields = Fields::of(node, "`sandbox`", problems)?;
    let required = guarantees(&mut fields, problems);
    let network = fields.get("network").and_then(|node| network_policy(node, problems));
    let remote = fields.choice("remote", &RemoteMode::NAMED, problems);
    fields.finish(problems);
    Some((required, network, remote))
}

/// Reports unknown tags. A tag changes the meaning of a value, so none may be ignored.
pub(super) fn refuse_tags(node: &Node, problems: &mut Problems) {
    if let Some(tag) = &node.tag {
        let before = node.source.text.get(..node.span.start()).unwrap_or_default();
        let start = before.rfind(&**tag);
        let place = start.map_or(node.span, |start| Span::new(start, start + tag.len()));
        let place = node.source.excerpt(place);
        let problem = Diagnostic::error(format!("unknown tag `{tag}`")).at(place);
        problems.push(match tag.strip_prefix('!').and_then(|key| key.strip_suffix(':')) {
            Some(key) => {
                problem.help(format!("`!` denies nothing here: write `not_{key}:`, if there is such an assertion"))
            }
            None => problem.help("put the text in quotes if it is not a tag"),
        });
    }
    match &node.kind {
        NodeKind::List(items) => items.iter().for_each(|item| refuse_tags(item, problems)),
        NodeKind::Map(entries) => entries.iter().for_each(|(_, value)| refuse_tags(value, problems)),
        _ => {}
    }
}

fn id(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<String> {
    if fields.get("scenario").is_none() && near_miss(fields.node()).is_some() {
        // It is reported as an unknown key.
        return None;
    }
    fields.required_text("scenario", problems)?;
    checked_id(fields.get("scenario")?, "scenario", problems)
}

/// Returns the id of a case that is written under `key`: one line of text, without white space around it. Reports any
/// other text.
pub(super) fn checked_id(node: &Node, key: &str, problems: &mut Problems) -> Option<String> {
    let id = node.as_str()?.trim();
    if id.is_empty() || id.contains(char::is_control) {
        problems.push(node.error(format!("`{key}` is the case's id, so it must be one line of text")));
        return None;
    }
    Some(id.to_owned())
}

/// Reads the subject: exactly one of the three keys.
fn subject(
    id: &str,
    fields: &mut Fields<'_>,
    file: &SuiteFile<'_>,
    library: &Library,
    problems: &mut Problems,
) -> Option<Subject> {
    let mut written: Vec<(&'static str, &Node)> =
        SUBJECTS.into_iter().filter_map(|key| Some((key, fields.get(key)?))).collect();
    written.sort_by_key(|(_, node)| node.span.start());
    let (Some((key, node)), others) = (written.first().copied(), written.get(1..).unwrap_or_default()) else {
        problems.push(
            head(fields)
                .error("the scenario has no subject")
                .of_missing(&SUBJECTS)
                .help("name exactly one of `skill`, `system_prompt` and `system_prompt_file`"),
        );
        return None;
    };
    for (other, node) in others {
        problems.push(
            at_key(fields, other, node)
                .error(format!("a scenario tests one subject: it already has `{key}`, so remove `{other}`")),
        );
    }
    let prompt = |text: &str| Some(Subject::Prompt(Arc::new(skill::of_prompt(id, text))));
    let text = decode::text(node, &format!("`{key}`"), problems)?;
    match key {
        "skill" => library.skill(&text, file.path, node, problems).map(Subject::Skill),
        "system_prompt" => {
            if let Some(name) = file_name_in(&text) {
                let problem = node.warning(format!("`{text}` is the whole system prompt here, and no file is read"));
                problems.push(problem.help(format!("write `system_prompt_file: {name}`")));
            }
            prompt(&text)
        }
        _ => {
            let path = path::resolve(file.directory(), &text);
            let fault = match document::open(&path, &library.shown(&path)) {
                Ok(source) if source.text.is_empty() => format!("`{text}` is empty"),
                Ok(source) => return prompt(&source.text),
                Err(problem) => format!("`{text}`: {}", problem.message),
            };
            let help = "`system_prompt_file` is relative to the directory of this file";
            problems.push(node.error(fault).suggest(path::near(&path, &text).as_deref()).help(help));
            None
        }
    }
}

/// Returns the name of the file that a prompt of one word probably means: `file://a.md`, `@a.md`, `a.md`.
fn file_name_in(text: &str) -> Option<&str> {
    let bare = text.trim();
    let name = bare.strip_prefix("file://").or_else(|| bare.strip_prefix('@')).unwrap_or(bare);
    let is_file = name != bare || [".md", ".txt"].iter().any(|end| name.ends_with(end));
    (is_file && !name.is_empty() && !name.contains(char::is_whitespace)).then_some(name)
}

/// Reads the user's messages. They are sent as written; if there are none, a message is built from the subject and
/// `argument`.
fn messages(subject: Option<&Subject>, fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<UserMessage> {
    let argument = fields.any_text("argument", problems);
    let one = fields.text("user_prompt", problems);
    let many = fields.texts("user_prompts", problems);
    let (one_node, many_node) = (fields.get("user_prompt"), fields.get("user_prompts"));
    problems.extend(one_node.and_then(literal::file_as_message));
    if let (Some(_), Some(node)) = (one_node, many_node) {
        problems.push(
            at_key(fields, "user_prompts", node)
                .error("a scenario has `user_prompt` or `user_prompts`, not both")
                .help("for several messages in one session use `user_prompts` alone"),
        );
    }
    if let Some(node) = many_node
        && matches!(&node.kind, NodeKind::List(items) if items.is_empty())
    {
        problems.push(node.error("`user_prompts` must not be empty"));
    }
    if let (Some(node), Some(key)) = (
        fields.get("argument"),
        [("user_prompt", one_node), ("user_prompts", many_node)].iter().find(|(_, node)| node.is_some()),
    ) {
        problems.push(
            at_key(fields, "argument", node).warning(format!("`argument` is not used, because `{}` is set", key.0)),
        );
    }
    let texts = many.filter(|texts| !texts.is_empty()).or_else(|| one.map(|text| vec![text]));
    let texts = texts.unwrap_or_else(|| vec![opening(subject, argument.as_deref().filter(|text| !text.is_empty()))]);
    texts.into_iter().map(UserMessage::text).collect()
}

fn opening(subject: Option<&Subject>, argument: Option<&str>) -> String {
    let Some(skill) = subject.and_then(Subject::installed) else {
        return argument.unwrap_or(OPENING).to_owned();
    };
    let mut text = run(&skill.name);
    if let Some(argument) = argument {
        text.push_str("\nArgument: ");
        text.push_str(argument);
    }
    text
}

/// Returns the default message that requests a skill.
pub fn run(skill: &str) -> String {
    format!("Run the `{skill}` skill from your system prompt, from start to end, on the current working directory.")
}

fn token_budget(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<f64> {
    let budget = fields.tokens("token_budget", problems);
    let dashed = fields.tokens("token-budget", problems);
    if let (Some(first), Some(second)) = (fields.key_span("token_budget"), fields.key_span("token-budget")) {
        let later = if first.start() > second.start() { "token_budget" } else { "token-budget" };
        let problem =
            at_key(fields, later, fields.node()).error("the token budget is given twice, in both its spellings");
        problems.push(problem);
    }
    budget.or(dashed)
}

/// Reads the `runner` block, and `agent` and `model` of the scenario itself.
fn runner(fields: &mut Fields<'_>, directory: &Path, problems: &mut Problems) -> RunnerOptions {
    let own_agent = agent(fields, "agent", directory, problems);
    let own_model = model(fields, directory, problems);
    let mut inner_model = None;
    let mut options = RunnerOptions::default();
    if let Some(node) = fields.get("runner")
        && let Some(mut block) = Fields::of(node, "`runner`", problems)
    {
        let runtime = agent(&mut block, "runtime", directory, problems);
        let agent = agent(&mut block, "agent", directory, problems);
        if let (Some(_), Some(second)) = (block.get("runtime"), block.get("agent")) {
            problems
                .push(at_key(&block, "agent", second).error("`runtime` and `agent` are the same; give one of them"));
        }
        options.agent = runtime.or(agent);
        inner_model = model(&mut block, directory, problems);
        options.permission_mode = block.choice("permission_mode", &PermissionMode::ALL, problems);
        options.allowed_tools_override = block.texts("allowed_tools_override", problems);
        options.setting_sources = setting_sources(&mut block, problems);
        options.reasoning_effort = block.text("reasoning_effort", problems).or(block.text("reasoning", problems));
        let placed = ["permission_mode", "allowed_tools_override", "setting_sources", "reasoning_effort", "reasoning"];
        options.places = placed.into_iter().filter_map(|key| Some((key, node.get(key)?.excerpt()))).collect();
        for node in ["reasoning_effort", "reasoning"].into_iter().filter_map(|key| node.get(key)) {
            let near = node.as_str().and_then(|effort| nearest(effort, EFFORTS).filter(|near| *near != effort));
            let problem = near.map(|near| node.warning(UNUSUAL_EFFORT).suggest(Some(near)));
            problems.extend(problem);
        }
        for (own, blocks) in [("agent", ["runtime", "agent"].as_slice()), ("model", &["model"])] {
            if let Some(inner) = blocks.iter().find_map(|key| node.get(key))
                && let Some(outer) = fields.get(own)
            {
                let line = inner.excerpt().line;
                problems.push(
                    at_key(fields, own, outer)
                        .error(format!("`{own}` is given twice"))
                        .help(format!("`runner` on line {line} has it too; give one of them")),
                );
            }
        }
        let first = problems.len();
        block.finish_except(&ai_tester::KEYS, problems);
        misplaced::say_where(problems, first, misplaced::OF_RUNNER);
    }
    options.agent = options.agent.or(own_agent);
    (options.model, options.model_source) = inner_model.or(own_model).unzip();
    options
}

pub(super) fn agent(
    fields: &mut Fields<'_>,
    key: &'static str,
    directory: &Path,
    problems: &mut Problems,
) -> Option<(String, Excerpt)> {
    let node = fields.get(key)?;
    if let NodeKind::Map(_) = node.kind {
        let problem = node.error(format!("`{key}` must be the name of an agent, not a map"));
        problems.push(
            problem.help("declare the agent in `trialrun.yaml`, as `agents: { NAME: { … } }`, and give its name here"),
        );
        return None;
    }
    let name = fields.text(key, problems)?;
    Some((model_name::agent(name, directory), node.excerpt()))
}

pub(super) fn model(fields: &mut Fields<'_>, directory: &Path, problems: &mut Problems) -> Option<(String, Excerpt)> {
    let name = fields.text("model", problems)?;
    let node = fields.get("model")?;
    Some((model_name::model(&name, node, directory, problems)?, node.excerpt()))
}

fn setting_sources(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<SettingSource> {
    let items = fields.list("setting_sources", problems).unwrap_or_default();
    let mut sources = Vec::new();
    for item in items {
        let source = decode::choice(item, "an item of `setting_sources`", &SettingSource::ALL, problems);
        sources.extend(source.filter(|source| !sources.contains(source)));
    }
    sources
}

pub(super) fn fixtures_of(
    node: &Node,
    file: &SuiteFile<'_>,
    library: &Library,
    problems: &mut Problems,
) -> Arc<Fixtures> {
    let Some(own) = Block::read(node, file.directory(), problems) else { return Arc::default() };
    let (mut whole, known) = (Block::default(), problems.len());
    if let Some((_, place)) = own.extends.first() {
        match library.fixtures(file.path) {
            Some(shared) => {
                for (name, place) in &own.extends {
                    match shared.get(name, place) {
                        Ok(block) => whole.merge(block),
                        Err(problem) => problems.push(*problem),
                    }
                }
            }
            None => {
                let folders = library.fixture_folders(file.path).map(|folder| library.shown(folder));
                let folders = folders.collect::<Vec<_>>().join(", ");
                let misnamed = library.fixture_folders(file.path).find_map(shared_fixtures::misnamed);
                let misnamed = misnamed.map(|other| format!("call `{}` so", library.shown(&other)));
                problems.push(
                    model::Diagnostic::error(format!("there is no `{}` to extend from", shared_fixtures::FILE))
                        .at(place.clone())
                        .help(misnamed.unwrap_or_else(|| format!("looked in {folders}"))),
                );
            }
        }
    }
    whole.merge(&own);
    if problems.len() > known {
        whole.assume_repository();
    }
    Arc::new(whole.into_fixtures(node, problems))
}

/// Reads `skip`: `true`, or the reason.
pub(super) fn skip(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<String> {
    let node = fields.get("skip")?;
    if let Some(skip) = decode::boolean(node) {
        return skip.then(|| "it has `skip: true`".to_owned());
    }
    match &node.kind {
        NodeKind::String(reason) if is_reason(reason) => Some(reason.clone()),
        _ => {
            let problem =
                node.error(format!("`skip` must be true, false or the reason, not {}", decode::described(node)));
            problems.push(decode::boolean_help(node, problem));
            None
        }
    }
}

/// Reads the value of `quarantine`: `true`, or a map with the reason and the date, which is not after `now_ms`.
pub(in crate::format) fn quarantine(node: &Node, now_ms: Option<i64>, problems: &mut Problems) -> Option<Quarantine> {
    const FORM: &str = "write `quarantine: { reason: \"…\", since: 2026-01-31 }`";
    let known = problems.len();
    let read = match &node.kind {
        NodeKind::Bool(false) => return None,
        NodeKind::Bool(true) => Quarantine::default(),
        NodeKind::Map(_) => {
            let mut fields = Fields::of(node, "`quarantine`", problems)?;
            let reason = fields.text("reason", problems);
            let since = fields.text("since", problems);
            let date = since.as_deref().map(str::parse::<jiff::civil::Date>);
            if let (Some(Err(_)), Some(since)) = (&date, fields.get("since")) {
                problems.push(since.error("`since` must be a date such as `2026-01-31`"));
            }
            // The day may have begun elsewhere.
            let latest = now_ms.and_then(|now_ms| jiff::Timestamp::from_millisecond(now_ms).ok());
            let latest = latest.map(|now| now.to_zoned(jiff::tz::TimeZone::UTC).date().saturating_add(1_i64.day()));
            if let (Some(Ok(date)), Some(latest), Some(since)) = (&date, latest, fields.get("since"))
                && *date > latest
            {
                problems.push(
                    since.error("`since` is the day on which the quarantine began, so it cannot be later than today"),
                );
            }
            fields.finish(problems);
            Quarantine { reason, since: date.and_then(Result::ok) }
        }
        _ => {
            let kind = node.kind_name();
            problems.push(node.error(format!("`quarantine` must be true, false or a map, not {kind}")).help(FORM));
            return None;
        }
    };
    if problems.len() == known && ["reason", "since"].iter().any(|key| node.get(key).is_none()) {
        problems.push(node.warning("the quarantine should have a reason and a date").help(FORM));
    }
    Some(read)
}

fn assertions(fields: &mut Fields<'_>, problems: &mut Problems) -> Assertions {
    let mut assertions = Assertions::default();
    if let Some(items) = fields.list("assertions", problems) {
        assertions.read(items, AssertionScope::Trial, problems);
    }
    assertions
}

/// Returns `node` at the location of its key, for problems with the presence of the key.
fn at_key(fields: &Fields<'_>, key: &str, node: &Node) -> Node {
    place(node, fields.key_span(key).unwrap_or(node.span))
}

/// Returns the `scenario` line, otherwise the first line, as the location of problems with the whole file.
fn head(fields: &Fields<'_>) -> Node {
    let node = fields.node();
    place(node, fields.key_span("scenario").unwrap_or(model::Span::new(node.span.start(), node.span.start())))
}

pub(super) fn place(node: &Node, span: model::Span) -> Node {
    Node { kind: NodeKind::Null, span, tag: None, source: Arc::clone(&node.source) }
}

/// Returns `true` if a map with these keys is intended as a scenario. Each key comes with `true` if its value is not a
/// list: a similar key with a list, such as `scenarios`, belongs to other programs.
fn looks_like_one<'k>(keys: impl Iterator<Item = (&'k str, bool)>) -> bool {
    let mut telling = 0;
    for (key, is_single) in keys {
        telling += usize::from(TELLING.split(' ').any(|known| known == key));
        let is_near = || key.len().abs_diff("scenario".len()) <= 2 && nearest("scenario", [key]).is_some();
        if key == "scenario" || telling > 1 || (is_single && is_near()) {
            return true;
        }
    }
    false
}

/// Returns the key that is probably a misspelt `scenario`, in a file that no format recognises.
pub fn near_miss(root: &Node) -> Option<&str> {
    let NodeKind::Map(entries) = &root.kind else { return None };
    nearest("scenario", entries.iter().map(|(name, _)| name.value.as_str()))
}
