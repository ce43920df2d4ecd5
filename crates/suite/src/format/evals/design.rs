//! Warnings about weaknesses of a skill's suite that is otherwise valid.

use model::{AssertionSpec, Case, Diagnostic, SideEffectLevel, SkillEval, Suite};

/// Returns warnings about questions that a skill's suite cannot answer. `check --strict` reports them. Suites of other
/// formats have none. `is_judged` returns `true` if deciding an assertion of a case needs a model.
pub fn design_warnings(suite: &Suite, is_judged: &dyn Fn(&Case, &AssertionSpec) -> bool) -> Vec<Diagnostic> {
    let cases = || suite.cases.iter().filter_map(|case| Some((case.as_ref(), case.skill_eval.as_ref()?)));
    let Some((first, _)) = cases().next() else { return Vec::new() };
    let warning = |message: String, help: &str| Diagnostic::warning(message).at(first.source.clone()).help(help);
    let name = &suite.name;
    let mut warnings = Vec::new();
    let own = |case: &Case| case.assertions.iter().filter(|spec| !follows(spec)).count();
    let asserts = cases().any(|(case, _)| own(case) > 0);
    let is_checked = |case: &Case| case.assertions.iter().any(|spec| !follows(spec) && !is_judged(case, spec));
    if asserts && !cases().any(|(case, _)| is_checked(case)) {
        warnings.push(warning(
            format!("in `{name}`, all assertions need a judge"),
            "add an assertion that can be checked directly, such as `The file \\`NAME\\` exists` or `{\"type\": \"file_exists\", …}`",
        ));
    }
    if !cases().any(|(_, eval)| !eval.should_trigger) {
        warnings.push(warning(
            format!("`{name}` has no negative control"),
            "add a case with `should_trigger: false` for which the skill is not intended, to see whether it is used too often",
        ));
    }
    if !cases().any(|(case, eval)| is_natural(case, eval)) {
        warnings.push(warning(
            format!("every case of `{name}` that should trigger the skill names or forces it"),
            "add a case without `force_skill_invocation` whose prompt does not name the skill",
        ));
    }
    if !cases().any(|(_, eval)| eval.side_effect_level <= SideEffectLevel::LocalOnly) {
        warnings.push(warning(
            format!("every case of `{name}` uses services outside this machine"),
            "add one with `side_effect_level` `static` or `local-only`, which can be repeated while the skill is written",
        ));
    }
    warnings
}

/// Returns `true` if an assertion follows from the case rather than being written in it.
fn follows(spec: &AssertionSpec) -> bool {
    super::assertion::NOT_USED.contains(&spec.kind.value.as_str())
}

/// Returns `true` if the skill should be used although the user does not request it.
fn is_natural(case: &Case, eval: &SkillEval) -> bool {
    let is_named = |name: &str| case.messages.iter().any(|message| message.text.contains(&format!("${name}")));
    let is_asked_for = || case.subject.skill().is_some_and(|skill| is_named(&skill.name));
    eval.should_trigger && eval.invocation.is_none() && !is_asked_for()
}
