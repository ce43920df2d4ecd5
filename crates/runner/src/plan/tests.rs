use std::path::Path;

use grade::Check;
use model::{
    AssertionSpec, Case, CassetteMode, Excerpt, GatewayMode, Node, Source, Spanned, Subject, Suite, UserMessage,
    WITHOUT_SKILL,
};
use serde_json::{Value, json};

use super::*;
use crate::select::Selection;

fn suite(path: &Path, cases: Vec<Case>) -> Suite {
    Suite { name: "suite".into(), path: path.to_owned(), format: "scenario", cases: into(cases) }
}

fn into(cases: Vec<Case>) -> Vec<Arc<Case>> {
    cases.into_iter().map(Arc::new).collect()
}

fn case(id: &str, agent: &str) -> Case {
    let mut case = Case::new(id, Excerpt::of_file("case.yaml"));
    case.messages = vec![UserMessage::text("go")];
    Arc::make_mut(&mut case.runner).agent =
        Some((agent.to_owned(), Excerpt { line: 7, ..Excerpt::of_file("case.yaml") }));
    case
}

fn asserting(case: Case, assertion: &Value) -> Case {
    let node = Node::from_json(assertion, &Source::new("case.yaml", ""));
    let kind = Spanned::new(assertion["type"].as_str().unwrap().to_owned(), model::Span::default());
    Case {
        assertions: vec![AssertionSpec {
            node,
            id: "one".into(),
            kind,
            weight: 1.0,
            arguments: model::Arguments::Fields,
            about: model::AssertionScope::Trial,
        }],
        ..case
    }
}

fn plan_of(suites: &[Suite]) -> (Plan, Vec<Diagnostic>) {
    let (settings, selection) = (Settings::default(), Selection::default());
    plan(&PlanRequest {
        suites,
        settings: &settings,
        selection: &selection,
        read_script: Arc::new(|_: &Path| Err(Vec::new())),
        cwd: Path::new("/"),
        modules: script::Library::new(),
    })
}

/// Returns the plan and its errors.
fn planned(suites: &[Suite]) -> (Plan, Vec<String>) {
    let (plan, problems) = plan_of(suites);
    (plan, problems.iter().filter(|problem| problem.is_error()).map(ToString::to_string).collect())
}

#[test]
fn unsupported_scripts_and_tools_are_reported_at_the_case() {
    let bringing = |agent: &str| {
        let mut case = case(agent, agent);
        case.messages[0].script = Some("prompt.md".into());
        case.messages[0].tools = vec![json!("./tool.js")];
        suite(Path::new("case.yaml"), vec![case])
    };
    let refused = planned(&[bringing("claude-code")]).1;
    assert_eq!(
        refused,
        [
            "case.yaml:1:1: `claude-code` does not accept `script`",
            "case.yaml:1:1: `claude-code` does not accept `tools`"
        ]
    );
    assert_eq!(planned(&[bringing("fake")]).1, [""; 0]);
}

#[test]
fn the_threshold_of_a_run_replaces_that_of_cases_whose_score_decides() {
    let mut scored = case("scored", "fake");
    scored.ruling.scoring = Some(model::Scoring::with_share(4.0, 1.0));
    let plan_with = |cases: Vec<Case>| {
        let settings = Settings { threshold: Some(0.5), ..Settings::default() };
        let suites = [suite(Path::new("case.yaml"), cases)];
        plan(&PlanRequest {
            suites: &suites,
            settings: &settings,
            selection: &Selection::default(),
            read_script: Arc::new(|_: &Path| Err(Vec::new())),
            cwd: Path::new("/"),
            modules: script::Library::new(),
        })
    };
    let (plan, problems) = plan_with(vec![scored, case("plain", "fake")]);
    let needed = |at: usize| plan.trials[at].case.ruling.scoring.map(|scoring| scoring.pass_score);
    assert_eq!([needed(0), needed(1)], [Some(2.0), None]);
    let has_no_effect = |problem: &Diagnostic| problem.message.contains("the threshold of the run has no effect");
    assert!(!problems.iter().any(has_no_effect), "{problems:?}");
    assert!(plan_with(vec![case("plain", "fake")]).1.iter().any(has_no_effect));
}

/// Returns the models for a case with its own agent and model under `settings`, and the errors.
fn models(settings: &Settings, own: (Option<&str>, Option<&str>)) -> (Vec<Option<String>>, Vec<String>) {
    let mut case = case("a", own.0.unwrap_or("claude-code"));
    let runner = Arc::make_mut(&mut case.runner);
    runner.agent = runner.agent.take().filter(|_| own.0.is_some());
    runner.model = own.1.map(str::to_owned);
    let suites = [suite(Path::new("case.yaml"), vec![case])];
    let (plan, problems) = plan(&PlanRequest {
        suites: &suites,
        settings,
        selection: &Selection::default(),
        read_script: Arc::new(|_: &Path| Err(Vec::new())),
        cwd: Path::new("/"),
        modules: script::Library::new(),
    });
    let errors = problems.iter().filter(|problem| problem.is_error()).map(ToString::to_string).collect();
    (plan.trials.iter().map(|trial| trial.arm.model.clone()).collect(), errors)
}

fn with_arms(arms: ArmSettings) -> Settings {
    Settings { arms, ..Settings::default() }
}

#[test]
fn a_default_model_applies_only_to_the_agent_it_is_configured_for() {
    let settings = |agent: &str, owner: Option<&str>, model: &str| Settings {
        arms: ArmSettings { agents: vec![agent.into()], ..ArmSettings::default() },
        defaults: Defaults { agent: owner.map(str::to_owned), model: Some(model.into()), ..Defaults::default() },
        ..Settings::default()
    };
    let model = |settings: &Settings, own| {
        let (models, errors) = models(settings, own);
        assert_eq!(errors, [""; 0]);
        models.into_iter().next().flatten()
    };
    let (claude, gpt) = ("claude-opus-4-8", "gpt-5.5");
    let none = (None, None);
    assert_eq!(model(&settings("claude", Some("claude-code"), claude), none).as_deref(), Some(claude));
    assert_eq!(model(&settings("codex", Some("claude-code"), "my-model"), none), None);
    assert_eq!(model(&settings("claude-code", Some("codex"), gpt), none).as_deref(), Some("claude-sonnet-4-6"));
    // If the project sets no agent, its model is for every agent that can use it.
    assert_eq!(model(&settings("codex", None, claude), none), None);
    assert_eq!(model(&settings("codex", None, gpt), none).as_deref(), Some(gpt));
    assert_eq!(model(&settings("fake", Some("fake"), gpt), none), None, "it has no model");
    // A case's model likewise belongs to its agent.
    let own = (Some("claude-code"), Some(claude));
    assert_eq!(model(&settings("codex", Some("codex"), gpt), own).as_deref(), Some(gpt));
    assert_eq!(model(&settings("claude-code", Some("codex"), gpt), own).as_deref(), Some(claude));
}

#[test]
fn a_model_for_one_agent_names_it_as_the_project_does_or_by_its_type() {
    let node = Node::from_json(&json!({"type": "gemini"}), &Source::new("trialrun.yaml", ""));
    let (name, directory) = ("mine".to_owned(), "/".into());
    let own = Arc::new(agent::Configured { name, node, directory, is_filled: true, is_of_suite: false });
    let given = |owner: &str| {
        let models = vec![(Some(owner.to_owned()), "a-model".to_owned())];
        let arms = ArmSettings { agents: vec!["mine".into()], models, ..ArmSettings::default() };
        let configured = std::iter::once(own.clone()).collect();
        self::models(&Settings { arms, configured, ..Settings::default() }, (None, None)).0.remove(0)
    };
    for owner in ["mine", "gemini"] {
        assert_eq!(given(owner).as_deref(), Some("a-model"));
    }
    assert_eq!(given("codex"), None);
}

#[test]
fn a_model_that_its_agent_cannot_use_is_an_error() {
    let with = |agent: &str, model: &str| Settings {
        arms: ArmSettings { agents: vec![agent.into()], models: vec![(None, model.into())], ..ArmSettings::default() },
        ..Settings::default()
    };
    let refused = |agent: &str, model: &str| models(&with(agent, model), (None, None)).1;
    assert_eq!(
        refused("codex", "claude-sonnet-4-6"),
        ["`codex` cannot use this model: `claude-sonnet-4-6` is a model of Anthropic"]
    );
    assert_eq!(refused("claude-code", "gpt-5.5").len(), 1);
    assert_eq!(refused("opencode", "gpt-5.5").len(), 1);
    for (agent, model) in [
        ("codex", "anthropic/claude-sonnet-4-6"),
        ("codex", "google/gemini-2.5-pro"),
        ("claude-code", "openai/gpt-5"),
        ("claude-code", "openai:gpt-5"),
    ] {
        assert_eq!(refused(agent, model).len(), 1, "{agent}, {model}");
        assert_eq!(refused("opencode", model).len(), usize::from(model.contains(':')), "{model}");
    }
    assert_eq!(refused("codex", "my-model"), [""; 0]);
    // Without an agent, the project's model is for the default agent.
    let source = model::Source::new("trialrun.yaml", "defaults: { model: gpt-5.5 }");
    let model_source = Some(source.excerpt(model::Span::new(19, 26)));
    let defaults = Defaults { model: Some("gpt-5.5".into()), model_source, ..Defaults::default() };
    let of_project = models(&Settings { defaults: defaults.clone(), ..Settings::default() }, (None, None)).1;
    assert_eq!(of_project, ["trialrun.yaml:1:20: `claude-code` cannot use this model: `gpt-5.5` is a model of OpenAI"]);
    let of_chat = Defaults { agent: Some("chat".into()), ..defaults };
    let of_chat = models(&Settings { defaults: of_chat, ..Settings::default() }, (None, None)).1;
    assert_eq!(of_chat, ["trialrun.yaml:1:20: `chat` cannot access the model `gpt-5.5`"]);
    let of_case = models(
        &with_arms(ArmSettings { agents: vec!["codex".into()], ..ArmSettings::default() }),
        (None, Some("opus")),
    )
    .1;
    assert_eq!(of_case, ["case.yaml:1:1: `codex` cannot use this model: `opus` is a model of Anthropic"]);
    let mut elsewhere = with("claude-code", "gpt-5.5");
    elsewhere.arms.base_url = Some("http://127.0.0.1:1".into());
    assert_eq!(models(&elsewhere, (None, None)).1, [""; 0]);
}

#[test]
fn tool_names_cause_no_warning_if_the_case_defines_tools() {
    let called = |tools: Vec<Value>| {
        let mut case = asserting(case("a", "chat"), &json!({"id": "one", "type": "tool_called", "tool": "forecast"}));
        case.messages[0].tools = tools;
        let (_, problems) = plan_of(&[suite(Path::new("case.yaml"), vec![case])]);
        problems.iter().any(|problem| problem.message.contains("forecast"))
    };
    assert!(called(Vec::new()));
    assert!(!called(vec![json!("Bash")]));
}

#[test]
fn problems_of_an_agent_file_are_reported_once_at_the_case() {
    let cases = (0..3).map(|at| case(&format!("c{at}"), "recorded:/none.jsonl")).collect();
    let (_, problems) = planned(&[suite(Path::new("case.yaml"), cases)]);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("case.yaml:7:1: cannot read the answers `/none.jsonl`"), "{problems:?}");
}

#[test]
fn a_skipped_case_is_checked_but_needs_nothing_from_its_agent() {
    let dir = tempfile::tempdir().unwrap();
    let answers = dir.path().join("answers.jsonl");
    std::fs::write(&answers, "{\"case\":\"other\"}").unwrap();
    let agent = format!("recorded:{}", answers.display());
    let skipped = |assertion: &Value| {
        let mut case = asserting(case("a", &agent), assertion);
        case.skip = Some("not today".into());
        planned(&[suite(Path::new("case.yaml"), vec![case])])
    };
    let (plan, problems) = skipped(&json!({"id": "one", "type": "output_contains", "pattern": "x"}));
    assert_eq!(problems, [""; 0]);
    assert!(plan.trials[0].checks.is_empty());
    let (_, problems) = skipped(&json!({"id": "one", "type": "output_containz"}));
    assert_eq!(problems, ["case.yaml:1:1: unknown assertion type `output_containz`"]);
}

#[test]
fn a_recorded_answer_is_one_trial_however_often_it_could_be_graded() {
    let dir = tempfile::tempdir().unwrap();
    let answers = dir.path().join("answers.jsonl");
    std::fs::write(&answers, "{\"case\":\"a\"}\n{\"case\":\"b\"}\n{\"case\":\"b\"}\n").unwrap();
    let agent = format!("recorded:{}", answers.display());
    for trials in [model::Trials::Fixed(20), model::Trials::Auto { most: 20 }] {
        let cases = ["a", "b"].map(|id| Case { trials: Some(trials), ..case(id, &agent) }).to_vec();
        let (plan, problems) = plan_of(&[suite(Path::new("case.yaml"), cases)]);
        let of = |case: &str| plan.trials.iter().filter(|trial| &*trial.case_id == case).count();
        assert_eq!((of("a"), of("b")), (1, 2), "{trials:?}");
        let said: Vec<&str> = problems.iter().flat_map(|problem| &problem.help).map(String::as_str).collect();
        let fewer = "each case runs as often as it has answers: an answer that is graded again is not another trial";
        assert!(said.contains(&fewer), "{said:?}");
        assert_eq!(plan.decisions.iter().map(|decision| decision.most).max(), plan.trials[0].auto.map(|_| 2));
    }
}

#[test]
fn the_folder_of_a_suite_is_its_own_path_or_the_parent_of_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.yaml");
    for (path, folder) in
        [(file.as_path(), dir.path()), (dir.path(), dir.path()), (Path::new("a.yaml"), Path::new("."))]
    {
        let (plan, _) = planned(&[suite(path, vec![case("a", "fake")])]);
        assert_eq!(&*plan.trials[0].directory, std::path::absolute(folder).unwrap());
    }
}

fn skill() -> Arc<model::Skill> {
    Arc::new(model::Skill {
        name: "greet".into(),
        description: String::new(),
        directory: None,
        version: None,
        body: "Greet.".into(),
        content_hash: String::new(),
        allowed_tools_raw: Vec::new(),
        allowed_tools: Vec::new(),
        token_budget: Some(500.0),
        scripts: Vec::new(),
        frontmatter: serde_json::Map::new(),
        plugin: None,
    })
}

/// Creates a case from a skill evaluation, which checks whether its skill helps.
fn asking(id: &str) -> Case {
    let skill_used = json!({"id": "one", "type": "skill_not_used", "skill": "greet"});
    let mut case = asserting(case(id, "fake"), &skill_used);
    case.subject = Subject::Installed(skill());
    case.skill_eval = Some(Box::new(model::SkillEval {
        should_trigger: true,
        invocation: Some("Use the $greet skill. ".into()),
        side_effect_level: model::SideEffectLevel::default(),
        contract: None,
        scripts: Vec::new(),
    }));
    case
}

fn planned_with(settings: &Settings, cases: Vec<Case>) -> Plan {
    let (plan, problems) = plan_with_problems(settings, cases);
    assert!(problems.iter().all(|problem| !problem.is_error()), "{problems:?}");
    plan
}

fn plan_with_problems(settings: &Settings, cases: Vec<Case>) -> (Plan, Vec<Diagnostic>) {
    plan_suites(settings, &[suite(Path::new("case.yaml"), cases)])
}

fn plan_suites(settings: &Settings, suites: &[Suite]) -> (Plan, Vec<Diagnostic>) {
    plan(&PlanRequest {
        suites,
        settings,
        selection: &Selection::default(),
        read_script: Arc::new(|_: &Path| Err(Vec::new())),
        modules: script::Library::new(),
        cwd: Path::new("/"),
    })
}

#[test]
fn the_arm_without_the_skill_needs_the_same_share_of_what_it_can_meet() {
    let mut scored = asking("a");
    let other = json!({"type": "turn_count_at_most", "max": 9});
    let other = asserting(case("b", "fake"), &other).assertions.remove(0);
    scored.assertions.push(AssertionSpec { id: "two".into(), weight: 3.0, ..other });
    scored.ruling.scoring = Some(model::Scoring::with_share(4.0, 0.5));
    let plan = planned_with(&Settings::default(), vec![scored]);
    let scoring =
        |trial: &PlannedTrial| trial.case.ruling.scoring.map(|scoring| (scoring.max_score, scoring.pass_score));
    let mut needed: Vec<_> = plan.trials.iter().map(|trial| (trial.case.assertions.len(), scoring(trial))).collect();
    needed.sort_by_key(|(assertions, _)| *assertions);
    assert_eq!(needed, [(1, Some((3.0, 1.5))), (2, Some((4.0, 2.0)))]);
}

#[test]
fn a_case_that_tests_a_skill_also_runs_without_it_under_the_same_limits() {
    let plan = planned_with(&Settings::default(), vec![asking("a"), case("b", "fake")]);
    let of = |variant: Option<&str>| plan.trials.iter().find(|trial| trial.arm.variant.as_deref() == variant).unwrap();
    let (with, without, plain) = (of(Some("with_skill")), of(Some("without_skill")), of(None));
    assert_eq!(plan.trials.len(), 3);
    assert_eq!((&*with.arm_name, &*without.arm_name), ("fake+with_skill", "fake+without_skill"));
    assert_eq!(with.case.messages[0].text, "Use the $greet skill. go");
    assert_eq!((without.case.messages[0].text.as_str(), &*plain.case_id), ("go", "b"));
    assert_eq!((with.setup.system_prompt.as_deref(), with.limits.token_budget), (None, Some(500.0)));
    assert_eq!(without.limits.token_budget, with.limits.token_budget);
    assert!(without.case.subject.installed().is_none() && without.case.assertions.is_empty());
    assert_eq!(with.case.assertions.len(), 1);
}

#[test]
fn each_variant_of_a_case_is_an_arm_with_its_own_case() {
    let of = |turns| Arc::new(Case { max_turns: Some(turns), ..asking("a") });
    let variants = vec![("old".to_owned(), of(1)), ("new".to_owned(), of(2))];
    let plan = planned_with(&Settings::default(), vec![Case { variants, ..case("a", "fake") }]);
    let mut arms: Vec<_> = plan.trials.iter().map(|trial| (trial.arm.variant.clone(), trial.case.max_turns)).collect();
    arms.sort();
    assert_eq!(arms, [(Some("new".to_owned()), Some(2)), (Some("old".to_owned()), Some(1))]);
}

#[test]
fn a_negative_control_without_other_assertions_runs_without_the_skill_for_comparison() {
    let asked = |assertions: bool| {
        let mut case = Case { must_assert: true, ..asking("a") };
        if !assertions {
            case.assertions.clear();
        }
        let suites = [suite(Path::new("case.yaml"), vec![case])];
        let (plan, problems) = plan_of(&suites);
        let of = |variant: &str| {
            let trial = plan.trials.iter().find(|trial| trial.arm.variant.as_deref() == Some(variant)).unwrap();
            trial.checks.iter().map(Check::kind).collect::<Vec<_>>()
        };
        (of(model::WITH_SKILL), of(WITHOUT_SKILL), problems.len())
    };
    assert_eq!(asked(true), (vec!["skill_not_used"], vec![], 0));
    // A case without any assertion has not checked anything in either arm.
    assert_eq!(asked(false), (vec!["nothing_asserted"], vec!["nothing_asserted"], 1));
}

#[test]
fn the_baseline_is_included_or_omitted_as_requested() {
    let arms = |baseline, case: Case| {
        let plan = planned_with(&with_arms(ArmSettings { baseline, ..ArmSettings::default() }), vec![case]);
        plan.trials.iter().map(|trial| trial.arm_name.clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(arms(Some(false), asking("a")), "fake+with_skill");
    let installed = || Case { subject: Subject::Skill(skill()), ..case("a", "fake") };
    assert_eq!(arms(None, installed()), "fake");
    assert!(
        ["fake+with_skill fake+without_skill", "fake+without_skill fake+with_skill"]
            .contains(&arms(Some(true), installed()).as_str())
    );
    assert_eq!(arms(Some(true), case("a", "fake")), "fake");
}

#[test]
fn a_plugin_has_an_arm_with_only_its_skills_on_wish() {
    use model::{Definition, Having, McpServer, PluginParts, ServerSource, Skill};
    let server = McpServer {
        name: "plugin_shop_orders".into(),
        source: ServerSource::Http { url: "http://127.0.0.1:1".into(), headers: Vec::new() },
        is_of_plugin: true,
        place: Excerpt::of_file("case.yaml"),
    };
    let plugin = PluginParts {
        skills: vec!["plan".into()],
        servers: vec![server.clone()],
        others: vec!["hooks".into()],
        ..PluginParts::default()
    };
    let plugin = Skill { plugin: Some(Arc::new(plugin)), name: "shop".into(), ..Skill::clone(&skill()) };
    let of_plugin = || {
        let mut case = asking("a");
        (case.subject, case.definition) = (Subject::Installed(Arc::new(plugin.clone())), Definition::Plugin);
        Arc::make_mut(&mut case.mocks).servers.push(server.clone());
        case
    };
    let arms = |having: &[Having], case: Case| {
        let settings = with_arms(ArmSettings { having: having.to_vec(), ..ArmSettings::default() });
        let (plan, problems) = plan_with_problems(&settings, vec![case]);
        let arm = |trial: &PlannedTrial| {
            let parts = trial.case.subject.installed().and_then(|skill| skill.plugin.clone());
            let others = parts.map(|parts| parts.others.len());
            (trial.arm_name.to_string(), trial.case.definition, trial.mocks.servers.len(), others)
        };
        let mut arms: Vec<_> = plan.trials.iter().map(arm).collect();
        arms.sort_by(|one, other| one.0.cmp(&other.0));
        (arms, problems.into_iter().map(|problem| problem.message).collect::<Vec<_>>())
    };
    let arm = |variant: &str, definition, servers, others| (format!("fake+{variant}"), definition, servers, others);
    assert_eq!(
        arms(&[Having::None, Having::Skill, Having::Plugin], of_plugin()).0,
        [
            arm("skills_only", Definition::SkillsOfPlugin, 0, Some(0)),
            arm("with_skill", Definition::Plugin, 1, Some(1)),
            arm("without_skill", Definition::Plugin, 0, None),
        ]
    );
    assert_eq!(arms(&[Having::Plugin], of_plugin()).0.len(), 1);
    let names = |arms: &[(String, Definition, usize, Option<usize>)]| {
        arms.iter().map(|arm| arm.0.clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&arms(&[Having::None, Having::Skill], asking("a")).0), "fake+with_skill fake+without_skill");
    let (without, problems) = arms(&[Having::None, Having::Plugin], asking("a"));
    assert_eq!(
        (without.len(), problems[0].as_str()),
        (0, "the suite `suite` does not run: it tests a skill, and not a plug-in")
    );
}

#[test]
fn an_indicator_counts_if_nothing_else_has_a_weight() {
    let weights = |other: f64| {
        let mut case = asking("a");
        case.assertions.push(AssertionSpec { id: "two".into(), weight: other, ..case.assertions[0].clone() });
        case.indicators = vec!["one".into()];
        let plan = planned_with(&Settings::default(), vec![case]);
        let with = plan.trials.iter().find(|trial| trial.arm.variant.as_deref() == Some(model::WITH_SKILL)).unwrap();
        with.case.assertions.iter().map(|spec| spec.weight).collect::<Vec<_>>()
    };
    assert_eq!(weights(1.0), [0.0, 1.0]);
    assert_eq!(weights(0.0), [1.0, 0.0]);
}

#[test]
fn a_message_that_mentions_the_skill_is_reported_if_the_case_also_runs_without_it() {
    let skill = skill();
    let default = vec![UserMessage::text(format!("Run the `{}` skill.", skill.name))];
    let subject = Subject::Skill(skill);
    let problems = |baseline, messages: Vec<UserMessage>| {
        let settings = with_arms(ArmSettings { baseline, ..ArmSettings::default() });
        let case = Case { subject: subject.clone(), messages, ..case("a", "fake") };
        plan_with_problems(&settings, vec![case])
            .1
            .iter()
            .filter(|problem| problem.message.contains("names the skill"))
            .count()
    };
    assert_eq!(problems(Some(true), default.clone()), 1);
    assert_eq!(problems(None, default), 0);
    assert_eq!(problems(Some(true), vec![UserMessage::text("Write a changelog.")]), 0);
}

#[test]
fn a_case_with_a_skill_has_a_folder_in_which_to_install_it() {
    let needs_sandbox = |case: Case| planned_with(&Settings::default(), vec![case]).trials[0].needs_sandbox();
    assert!(needs_sandbox(Case { subject: Subject::Skill(skill()), ..case("a", "fake") }));
    assert!(!needs_sandbox(case("a", "fake")));
}

/// Returns the diagnostics about agents without support for skills, and for each trial `true` if it is skipped.
fn compared(settings: &Settings, cases: Vec<Case>) -> (Vec<String>, Vec<bool>) {
    let (plan, problems) = plan_with_problems(settings, cases);
    let unread = problems.into_iter().filter(|problem| problem.message.contains("does not read skills"));
    let messages = unread.map(|problem| format!("{:?} {problem}", problem.severity));
    (messages.collect(), plan.trials.iter().map(|trial| trial.case.skip.is_some()).collect())
}

#[test]
fn an_agent_without_skill_support_is_not_compared_with_itself() {
    let answered = |id| Case { runner: case(id, "custom:x.js").runner, ..asking(id) };
    let reason = "`custom:x.js` does not read skills from files, so both arms would be the same";
    let messages = |baseline| {
        compared(&with_arms(ArmSettings { baseline, ..ArmSettings::default() }), vec![answered("a"), answered("b")]).0
    };
    assert_eq!(messages(None), [format!("Error case.yaml:7:1: {reason}")]);
    assert!(messages(Some(false)).is_empty());
}

#[test]
fn a_suite_without_an_agent_is_skipped_for_an_agent_without_skills() {
    let unnamed = |id| Case { runner: Case::new(id, Excerpt::of_file("x")).runner, ..asking(id) };
    let reason = "`custom:x.js` does not read skills from files, so both arms would be the same";
    let default = Settings {
        defaults: Defaults { agent: Some("custom:x.js".into()), ..Defaults::default() },
        ..Settings::default()
    };
    let typed = with_arms(ArmSettings { agents: vec!["custom:x.js".into()], ..ArmSettings::default() });
    for settings in [default, typed] {
        let plain = Case { runner: unnamed("b").runner, ..case("b", "fake") };
        let (messages, skipped) = compared(&settings, vec![unnamed("a"), unnamed("c"), plain]);
        assert_eq!(messages, [format!("Warning case.yaml:1:1: {reason}")]);
        assert_eq!(skipped.iter().filter(|is_skipped| **is_skipped).count(), 4);
        // This is an error, because nothing would be left to run.
        let (messages, _) = compared(&settings, vec![unnamed("a")]);
        assert_eq!(messages, [format!("Error case.yaml:1:1: {reason}")]);
    }
    let both = with_arms(ArmSettings { agents: vec!["custom:x.js".into(), "fake".into()], ..ArmSettings::default() });
    let (messages, skipped) = compared(&both, vec![unnamed("a")]);
    assert_eq!((messages, skipped.len()), (vec![format!("Warning case.yaml:1:1: {reason}")], 4));
    assert_eq!(skipped.iter().filter(|is_skipped| **is_skipped).count(), 2);
}

#[test]
fn a_suite_for_a_server_is_skipped_for_an_agent_that_is_none() {
    let settings = with_arms(ArmSettings { agents: vec!["fake".into()], ..ArmSettings::default() });
    let mut servers = suite(Path::new("/servers.yaml"), vec![case("add", "mcp")]);
    servers.format = "mcp";
    let others = suite(Path::new("/others.yaml"), vec![case("a", "fake")]);
    let (plan, problems) = plan_suites(&settings, &[servers, others]);
    let skipped: Vec<bool> = plan.trials.iter().map(|trial| trial.case.skip.is_some()).collect();
    assert_eq!(skipped.iter().filter(|is_skipped| **is_skipped).count(), 1);
    let reason = "the suite tests an MCP server, and `fake` is none";
    assert!(problems.iter().any(|problem| problem.message == reason && !problem.is_error()), "{problems:?}");
}

#[test]
fn a_suite_for_a_server_uses_the_server_that_the_project_configures() {
    let configured = |name: &str| {
        let node = Node::from_json(&json!({"type": "mcp", "command": "server"}), &Source::new("trialrun.yaml", ""));
        Arc::new(agent::Configured {
            name: name.to_owned(),
            node,
            directory: "/".into(),
            is_filled: true,
            is_of_suite: false,
        })
    };
    let planned = |names: &[&str], default: Option<&str>| {
        let settings = Settings {
            configured: names.iter().map(|name| configured(name)).collect(),
            defaults: Defaults { agent: default.map(str::to_owned), ..Defaults::default() },
            ..Settings::default()
        };
        let case = Case { messages: vec![UserMessage::text(r#"{"check": "protocol"}"#)], ..case("add", "mcp") };
        let mut servers = suite(Path::new("/servers.yaml"), vec![case]);
        servers.format = "mcp";
        let (plan, problems) = plan_suites(&settings, &[servers]);
        let errors = problems.into_iter().filter(Diagnostic::is_error).collect::<Vec<_>>();
        (plan.trials[0].arm_name.to_string(), errors.first().map(|error| error.help.join("; ")))
    };
    assert_eq!(planned(&["local"], None), ("local".to_owned(), None));
    assert_eq!(planned(&["local", "other"], Some("other")), ("other".to_owned(), None));
    let (arm, help) = planned(&["local", "other"], Some("fake"));
    assert_eq!(arm, "mcp");
    assert_eq!(help.as_deref(), Some("set `agent` to one that the project configures: `local`, `other`"));
    assert!(planned(&[], None).1.unwrap().contains("`agents: {server: {type: mcp, command: [...]}}`"));
}

#[test]
fn the_seed_determines_the_order_in_which_arms_are_interleaved() {
    let order = |seed| {
        let settings = with_arms(ArmSettings { seed, trials: Some(model::Trials::Fixed(2)), ..ArmSettings::default() });
        let plan = planned_with(&settings, (0..12).map(|number| asking(&format!("c{number}"))).collect());
        plan.trials.iter().map(|trial| trial.id().to_string()).collect::<Vec<_>>()
    };
    let (one, again, other) = (order(1), order(1), order(2));
    assert_eq!(one, again);
    assert_ne!(one, other);
    for (at, pair) in one.chunks(2).enumerate() {
        let case = format!("suite::c{}@", at % 12);
        let repetition = format!("#{}", at / 12 + 1);
        assert!(pair.iter().all(|id| id.starts_with(&case) && id.ends_with(&repetition)), "{at}: {pair:?}");
    }
    let first = one.chunks(2).filter(|pair| pair[0].contains("+with_skill")).count();
    assert!((4..=20).contains(&first), "{first} of 24 begin with the skill");
}

#[test]
fn the_name_of_an_arm_contains_no_secret() {
    let arms = |written: &str| {
        let settings = with_arms(ArmSettings { agents: vec![written.to_owned()], ..ArmSettings::default() });
        planned_with(&settings, vec![case("a", "fake")]).trials[0].arm_name.to_string()
    };
    for (written, shown) in [
        ("http:http://127.0.0.1:9/chat", "http:chat"),
        ("http:http://bob:Pa55w0rdzzq@127.0.0.1:9", "http:[masked]@127.0.0.1:9"),
        ("http://bob:pw@127.0.0.1:9", "http:[masked]@127.0.0.1:9"),
        ("http://tokenWithoutPassword1@127.0.0.1:9", "http:[masked]@127.0.0.1:9"),
        ("http://127.0.0.1:9/x?a=b&api_key=SECRET", "http:x?a=b&api_key=[masked]"),
        ("http://127.0.0.1:9/ghp_0123456789abcdefghijklmnopqrstuvwxyz", "http:[masked]"),
    ] {
        assert_eq!(arms(written), shown);
    }
    // Two agents that differ only in a secret cannot be distinguished.
    let agents = ["one", "two"].map(|password| format!("http://bob:{password}@127.0.0.1:9")).to_vec();
    let settings = with_arms(ArmSettings { agents, ..ArmSettings::default() });
    let suites = [suite(Path::new("case.yaml"), vec![case("a", "fake")])];
    let (_, problems) = plan(&PlanRequest {
        suites: &suites,
        settings: &settings,
        selection: &Selection::default(),
        read_script: Arc::new(|_: &Path| Err(Vec::new())),
        modules: script::Library::new(),
        cwd: Path::new("/"),
    });
    let errors: Vec<String> = problems.iter().filter(|problem| problem.is_error()).map(ToString::to_string).collect();
    assert_eq!(errors, ["two arms are called `http:[masked]@127.0.0.1:9`"]);
}

#[test]
fn programs_on_another_machine_cannot_be_observed() {
    let errors = |kind: &str, agent: &str, gateway, mode| {
        let mut settings = Settings { gateway, ..Settings::default() };
        settings.sandbox.kind = kind.to_owned();
        settings.cassettes.mode = mode;
        let (_, problems) = plan_with_problems(&settings, vec![case("a", agent), case("b", agent)]);
        let about = |problem: &&Diagnostic| problem.message.contains("cannot reach the gateway or a cassette");
        problems.iter().filter(about).map(|problem| (problem.to_string(), problem.help.clone())).collect::<Vec<_>>()
    };
    let (off, observe) = (GatewayMode::default(), GatewayMode::Observe);
    for (gateway, mode) in [(observe, CassetteMode::Off), (off, CassetteMode::Auto), (off, CassetteMode::Replay)] {
        let refused = errors("daytona", "subprocess:sh bot.sh", gateway, mode);
        let [(message, help)] = refused.as_slice() else { panic!("reported once per place: {refused:?}") };
        assert_eq!(message, "case.yaml:1:1: programs in `daytona` sandboxes cannot reach the gateway or a cassette");
        assert!(help[0].contains("set `gateway` and `cassette` to `off`"), "{help:?}");
        assert_eq!(errors("docker", "subprocess:sh bot.sh", gateway, mode), []);
        assert_eq!(errors("daytona", "http:http://127.0.0.1:9", gateway, mode), []);
    }
    assert_eq!(errors("daytona", "subprocess:sh bot.sh", off, CassetteMode::Off), []);
}

#[test]
fn a_server_whose_program_or_script_does_not_exist_is_reported_once() {
    use model::{McpServer, ServerSource};
    let problems = |command: &str, args: &[&str], files: &[&str]| {
        let source = ServerSource::Stdio {
            command: command.into(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: Vec::new(),
            files: files.iter().map(Into::into).collect(),
        };
        let place = Excerpt::of_file("case.yaml");
        let mut case = asking("a");
        let server = McpServer { name: "m".into(), source, is_of_plugin: false, place };
        Arc::make_mut(&mut case.mocks).servers.push(server);
        let (_, problems) = plan_with_problems(&with_arms(ArmSettings::default()), vec![case]);
        let problems = problems.into_iter().map(|problem| problem.message);
        problems.filter(|message| message.contains("there is no file")).collect::<Vec<_>>()
    };
    let missing = |file: &str| [format!("there is no file `{file}`, which the MCP server `m` runs")];
    assert_eq!(problems("/none/nope", &[], &["/none/nope"]), missing("/none/nope"));
    assert_eq!(problems("node", &["nope.js"], &[]), missing("nope.js"));
    assert_eq!(problems("/opt/in-the-image", &[], &[]), [""; 0]);
    assert_eq!(problems("npx", &["-y", "@scope/server"], &[]), [""; 0]);
}
