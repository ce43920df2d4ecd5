//! Variants of a case with and without the skill: the two arms that measure how much the skill helps.

use std::sync::Arc;

use model::{
    AssertionSpec, Case, Definition, Diagnostic, Having, PluginParts, SKILLS_ONLY, Scoring, Skill, Subject, WITH_SKILL,
    WITHOUT_SKILL,
};

use super::settings::ArmSettings;

/// A case as one arm runs it.
pub(super) struct Variant {
    /// Suffix of the arm's name; `None` if there is nothing to compare.
    pub(super) name: Option<String>,
    /// The case.
    pub(super) case: Arc<Case>,
}

/// Returns the variants of `case`: its own, or unchanged, or with and without its skill as `arms` says. If it does not say,
/// cases from skill evaluations also run without their skill. There is none if the case has none of the wanted arms.
pub(super) fn of(case: &Arc<Case>, arms: &ArmSettings) -> Vec<Variant> {
    if !case.variants.is_empty() {
        let variant = |(name, case): &(String, Arc<Case>)| Variant { name: Some(name.clone()), case: Arc::clone(case) };
        return case.variants.iter().map(variant).collect();
    }
    let asks = case.skill_eval.is_some();
    // Without its skill, such a case has no result.
    if case.subject.installed().is_none() || case.ends_when_triggered {
        return vec![Variant { name: None, case: Arc::clone(case) }];
    }
    if !arms.having.is_empty() {
        return wanted(case, &arms.having);
    }
    if !arms.baseline.unwrap_or(asks) {
        let name = asks.then(|| WITH_SKILL.to_owned());
        return vec![Variant { name, case: with_skill(case) }];
    }
    let case = &with_indicators(case);
    vec![
        Variant { name: Some(WITH_SKILL.to_owned()), case: with_skill(case) },
        Variant { name: Some(WITHOUT_SKILL.to_owned()), case: Arc::new(without_skill(case)) },
    ]
}

/// Returns the variants of a case that have this of its skill or plug-in.
fn wanted(case: &Arc<Case>, having: &[Having]) -> Vec<Variant> {
    let is_plugin = case.subject.installed().is_some_and(|skill| skill.plugin.is_some());
    let case = &if having.contains(&Having::None) { with_indicators(case) } else { Arc::clone(case) };
    let variant = |having: &Having| {
        let (name, case) = match (having, is_plugin) {
            (Having::None, _) => (WITHOUT_SKILL, Arc::new(without_skill(case))),
            (Having::Skill, true) => (SKILLS_ONLY, Arc::new(skills_only(case))),
            (Having::Skill, false) | (Having::Plugin, true) => (WITH_SKILL, with_skill(case)),
            (Having::Plugin, false) => return None,
        };
        Some(Variant { name: Some(name.to_owned()), case })
    };
    let variants: Vec<Variant> = having.iter().filter_map(variant).collect();
    let is_alone = variants.iter().all(|variant| variant.name.as_deref() == Some(WITHOUT_SKILL));
    if is_alone { Vec::new() } else { variants }
}

/// Returns a warning if the message asks the arm without the skill to use it, as the default message in a scenario
/// does.
pub(super) fn misleading_message(case: &Case, variants: &[Variant]) -> Option<Diagnostic> {
    let is_compared = variants.iter().any(|variant| variant.name.as_deref() == Some(WITHOUT_SKILL));
    let skill = case.subject.installed().filter(|_| is_compared)?;
    let names_skill = |text: &str| text.contains(&skill.name) && text.to_lowercase().contains("skill");
    case.messages.iter().any(|message| names_skill(&message.text)).then(|| {
        Diagnostic::warning(format!(
            "the message names the skill `{}`, also where the case runs without it",
            skill.name
        ))
        .at(case.source.clone())
        .help("write a `user_prompt` that says what to do, and does not name the skill")
    })
}

/// Returns the case with indicators that do not count: their weight is 0. If nothing else counts, they do.
fn with_indicators(case: &Arc<Case>) -> Arc<Case> {
    let is_indicator = |spec: &AssertionSpec| case.indicators.contains(&spec.id);
    if case.indicators.is_empty() || case.assertions.iter().all(|spec| is_indicator(spec) || spec.weight == 0.0) {
        return Arc::clone(case);
    }
    let mut assertions = case.assertions.clone();
    assertions.iter_mut().filter(|spec| is_indicator(spec)).for_each(|spec| spec.weight = 0.0);
    let mut case = Case { assertions, ..Case::clone(case) };
    let max_score = case.assertions.iter().map(|spec| spec.weight).sum();
    case.ruling.scoring = case.ruling.scoring.map(|scoring| Scoring::with_share(max_score, scoring.share()));
    Arc::new(case)
}

/// Returns the case with its skill. If the case sets an invocation, it is put before the first message.
fn with_skill(case: &Arc<Case>) -> Arc<Case> {
    let invocation = case.skill_eval.as_ref().and_then(|eval| eval.invocation.as_ref());
    let Some(invocation) = invocation else { return Arc::clone(case) };
    let mut case = Case::clone(case);
    if let Some(first) = case.messages.first_mut() {
        first.text.insert_str(0, invocation);
    }
    Arc::new(case)
}

/// Returns the case with the share of its score with which a trial passes, if its score decides and the run sets a share.
pub(crate) fn with_threshold(case: &Arc<Case>, share: Option<f64>) -> Arc<Case> {
    let (Some(scoring), Some(share)) = (case.ruling.scoring, share) else { return Arc::clone(case) };
    let mut case = Case::clone(case);
    case.ruling.scoring = Some(Scoring::with_share(scoring.max_score, share));
    case.variants.iter_mut().for_each(|(_, own)| *own = with_threshold(own, Some(share)));
    Arc::new(case)
}

/// Returns the case as the arm called `variant` runs it.
pub(crate) fn as_arm(case: &Arc<Case>, variant: Option<&str>) -> Arc<Case> {
    if let Some((_, own)) = case.variants.iter().find(|(name, _)| Some(name.as_str()) == variant) {
        return Arc::clone(own);
    }
    match variant {
        Some(WITH_SKILL) => with_skill(&with_indicators(case)),
        Some(WITHOUT_SKILL) => Arc::new(without_skill(&with_indicators(case))),
        Some(SKILLS_ONLY) => Arc::new(skills_only(&with_indicators(case))),
        _ => Arc::clone(case),
    }
}

/// Returns the case with only the skills of its plug-in.
fn skills_only(case: &Arc<Case>) -> Case {
    let mut case = Case::clone(&with_skill(case));
    case.definition = Definition::SkillsOfPlugin;
    if let Subject::Installed(skill) = &mut case.subject {
        let skills = skill.plugin.as_ref().map(|plugin| plugin.skills.clone()).unwrap_or_default();
        let plugin = Some(Arc::new(PluginParts { skills, ..PluginParts::default() }));
        *skill = Arc::new(Skill { plugin, ..Skill::clone(skill) });
    }
    Arc::make_mut(&mut case.mocks).servers.retain(|server| !server.is_of_plugin);
    case
}

/// Returns the case without its skill. Assertions about the use of the skill are removed, because they are meaningless
/// without it. A case that asserts nothing else is compared only by its usage, and passes when the agent finishes.
fn without_skill(case: &Case) -> Case {
    let is_about_skill = |kind: &str| grade::find(kind).is_some_and(grade::Assertion::is_about_skill);
    let mut case = case.clone();
    let written = case.assertions.len();
    let about_skill: f64 =
        case.assertions.iter().filter(|spec| is_about_skill(&spec.kind.value)).map(|spec| spec.weight).sum();
    case.assertions.retain(|assertion| !is_about_skill(&assertion.kind.value));
    // The same share of what is left decides.
    let left = |scoring: Scoring| Scoring::with_share((scoring.max_score - about_skill).max(0.0), scoring.share());
    case.ruling.scoring = case.ruling.scoring.map(left);
    let indicators = &case.indicators;
    if case.assertions.iter().any(|spec| !indicators.contains(&spec.id) && spec.weight != 0.0) {
        case.assertions.retain(|spec| !indicators.contains(&spec.id));
    }
    let asks_nothing_else = case.assertions.is_empty() && written > 0;
    case.must_assert &= !asks_nothing_else;
    // The limits of both arms are the same.
    case.token_budget = case.token_budget.or_else(|| case.subject.skill()?.token_budget);
    case.subject = Subject::Agent;
    Arc::make_mut(&mut case.mocks).servers.retain(|server| !server.is_of_plugin);
    case
}
