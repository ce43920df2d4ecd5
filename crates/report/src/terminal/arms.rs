//! Tables of arms, of the effect of the skill on each agent, of how often it was triggered, and of the cases that it
//! helps or harms.

use model::statistics::{Delta, Difference, least_p_value};
use model::{ArmDelta, ArmSummary, CaseDelta, CaseEffect, CaseFigures, SuiteDelta};

use super::Paint;
use super::grid::{Cell, CellStyle, Grid};
use crate::arms::{Arms, without_variant};
use crate::columns;
use crate::format::{counted, gain, gains, money, p_value, percent, range, rounded, seconds, signed};
use crate::verdict::UNLIKELY;

/// Maximum width of an arm's name.
const NAME: usize = 44;
/// Maximum number of cases listed that the skill helps or harms.
const CASES: usize = 10;

/// Returns everything about arms. The text begins with an empty line, unless there is nothing to show.
pub(crate) fn draw(arms: &Arms, paint: &Paint) -> String {
    let mut text = tables(arms, paint);
    let cases = cases(&arms.deltas, paint);
    if !cases.is_empty() {
        text.push_str(&format!("\n{cases}"));
    }
    text + &notes(arms, paint)
}

/// Returns the outcomes of each arm, the effect of the skill, and how often it was triggered. The text begins with an
/// empty line, unless there are no arms.
pub(crate) fn tables(arms: &Arms, paint: &Paint) -> String {
    let mut text = String::new();
    if arms.deltas.is_empty() {
        let verdicts: String = arms.verdicts().map(|verdict| folded(&verdict, paint, Paint::bold)).collect();
        text.push_str(&if verdicts.is_empty() { verdicts } else { format!("\n{verdicts}") });
    }
    let alone: Vec<&ArmSummary> = arms.arms.iter().filter(|arm| !is_paired(arm, &arms.deltas)).collect();
    if !arms.deltas.is_empty() {
        let verdicts: String = arms.verdicts().map(|verdict| folded(&verdict, paint, Paint::bold)).collect();
        text.push_str(&format!("\n{verdicts}\n{}", compared(arms, paint)));
    }
    if !alone.is_empty() {
        text.push_str(&format!("\n{}", flat(&alone, paint)));
    }
    if arms.triggering().next().is_some() {
        text.push_str(&format!("\n{}", triggering(arms, paint)));
    }
    if arms.has_suites() {
        text.push_str(&format!("\n{}", suites(arms, paint)));
    }
    text
}

/// Returns notes about the figures. They begin with an empty line, unless there are none.
pub(crate) fn notes(arms: &Arms, paint: &Paint) -> String {
    let mut text = String::new();
    for warning in warnings(arms) {
        text.push_str(&folded(&warning, paint, Paint::yellow));
    }
    text.push_str(&omission_note(arms).map_or_else(String::new, |note| folded(&note, paint, Paint::dim)));
    if text.is_empty() { text } else { format!("\n{text}") }
}

fn is_paired(arm: &ArmSummary, deltas: &[ArmDelta]) -> bool {
    deltas.iter().any(|delta| delta.with == arm.arm || delta.without == arm.arm)
}

/// Returns the table of agents with the skill, without it, and the difference.
fn compared(arms: &Arms, paint: &Paint) -> String {
    let most = most(arms.arms.iter());
    let [at_k, hat_k] = curves(most);
    let mut grid = Grid::new(&[
        ("skill", 0),
        ("checks", 0),
        ("95%", 4),
        ("p", 2),
        ("passed", 1),
        ("as decided", 3),
        (&at_k, 8),
        (&hat_k, 9),
        ("time", 5),
        ("tokens", 7),
        ("cost", 6),
    ]);
    for delta in &arms.deltas {
        grid.heading(without_variant(&delta.with));
        for (name, arm) in [("with skill", &delta.with), ("without", &delta.without)] {
            if let Some(arm) = arms.named(arm) {
                grid.row(figures(name, arm, most));
            }
        }
        grid.row(difference(&delta.delta, delta_is_open(arms, delta), !arms.is_sequential));
    }
    grid.draw(paint)
}

/// Returns `true` if a trial of either arm has something undecided.
fn delta_is_open(arms: &Arms, delta: &ArmDelta) -> bool {
    [&delta.with, &delta.without].into_iter().filter_map(|arm| arms.named(arm)).any(is_open)
}

/// Returns `true` if a trial of the arm has something undecided.
fn is_open(arm: &ArmSummary) -> bool {
    arm.statistics.decided < arm.statistics.trials
}

/// Formats how many trials passed as `9/10`, counting only trials in which everything was decided.
fn passed(arm: &ArmSummary) -> Cell {
    match &arm.statistics {
        statistics if statistics.decided == 0 => unknown(),
        statistics => format!("{}/{}", statistics.passed, statistics.decided).into(),
    }
}

/// Returns the pass rate according to the decided assertions, if some are undecided.
fn as_decided(arm: &ArmSummary) -> Cell {
    let rate = arm.statistics.decided_pass_rate.filter(|_| is_open(arm));
    rate.map_or_else(Cell::default, |rate| percent(rate.mean).into())
}

/// Returns the highest number of trials that every case of an arm has.
fn most<'a>(arms: impl Iterator<Item = &'a ArmSummary>) -> u64 {
    arms.map(|arm| arm.statistics.k).max().unwrap_or(0)
}

/// Returns the heads `pass@3` and `pass^3` if every case has several trials; otherwise empty heads, for columns that
/// are not drawn.
fn curves(most: u64) -> [String; 2] {
    if most > 1 { [format!("pass@{most}"), format!("pass^{most}")] } else { Default::default() }
}

/// Returns both figures of an arm; empty cells if no case has several trials.
fn at_k(arm: &ArmSummary, most: u64) -> [Cell; 2] {
    let statistics = &arm.statistics;
    let same = if statistics.k == most { String::new() } else { format!(" k={}", statistics.k) };
    match statistics.at_k() {
        Some((at, hat)) if most > 1 => [at, hat].map(|share| Cell::from(percent(share) + &same)),
        None if most > 1 => ["n/a".into(), "n/a".into()],
        _ => [Cell::default(), Cell::default()],
    }
}

fn figures(name: &str, arm: &ArmSummary, most: u64) -> [Cell; 11] {
    let statistics = &arm.statistics;
    let [at, hat] = at_k(arm, most);
    let checks = statistics.pass_rate;
    [
        format!("  {name}").into(),
        checks.map_or_else(unknown, |rate| percent(rate.mean).into()),
        checks.and_then(|rate| rate.ci95).map_or_else(Cell::default, |ends| Cell::new(range(ends), CellStyle::Dim)),
        Cell::default(),
        passed(arm),
        as_decided(arm),
        at,
        hat,
        statistics.duration_s.map_or_else(unknown, |time| seconds(time.mean).into()),
        statistics.tokens.map_or_else(unknown, |tokens| rounded(tokens.mean).into()),
        statistics.cost_usd.map_or_else(unknown, |cost| money(cost.mean).into()),
    ]
}

fn difference(delta: &Delta, is_open: bool, is_tested: bool) -> [Cell; 11] {
    let of = |difference: Option<Difference>, shown_figures: &dyn Fn(f64) -> String| match difference {
        Some(difference) => Cell::from(shown_figures(difference.mean)),
        None => unknown(),
    };
    let checks = delta.pass_rate;
    [
        "  difference".into(),
        points(checks),
        checks.and_then(|apart| apart.ci95).map_or_else(Cell::default, |ends| gains(ends).into()),
        checks.filter(|_| is_tested).map_or_else(Cell::default, |apart| p_value(apart.p_value).into()),
        points(delta.full_pass_rate),
        if is_open { points(delta.decided_pass_rate) } else { Cell::default() },
        Cell::default(),
        Cell::default(),
        of(delta.duration_s, &|time| signed(time, seconds)),
        of(delta.tokens, &|tokens| signed(tokens, rounded)),
        of(delta.cost_usd, &|cost| signed(cost, money)),
    ]
}

/// Formats a difference of shares.
fn points(difference: Option<Difference>) -> Cell {
    match difference {
        Some(difference) => Cell::new(format!("{} pts", gain(difference.mean)), verdict(&difference)),
        None => unknown(),
    }
}

/// Returns the colour for good or bad, if the difference is unlikely to be chance.
pub(crate) fn verdict(difference: &Difference) -> CellStyle {
    match difference.p_value < UNLIKELY {
        true if difference.mean > 0.0 => CellStyle::Green,
        true if difference.mean < 0.0 => CellStyle::Red,
        _ => CellStyle::Bold,
    }
}

fn unknown() -> Cell {
    Cell::new("n/a", CellStyle::Dim)
}

/// Returns the table of arms without a counterpart.
fn flat(arms: &[&ArmSummary], paint: &Paint) -> String {
    let most = most(arms.iter().copied());
    let [at_head, hat_head] = curves(most);
    // The usage of the only arm is already in the summary.
    let several = |cell: Cell| if arms.len() > 1 { cell } else { Cell::default() };
    let mut grid = Grid::new(&[
        ("arm", 0),
        ("passed", 0),
        ("rate", 0),
        ("95%", 1),
        ("as decided", 2),
        (&at_head, 3),
        (&hat_head, 4),
        ("time", 5),
        ("tokens", 7),
        ("cost", 6),
    ]);
    for arm in arms {
        let statistics = &arm.statistics;
        let rate = statistics.full_pass_rate;
        let [at, hat] = at_k(arm, most);
        grid.row([
            paint.folded(&arm.arm, NAME).into(),
            passed(arm),
            rate.map_or_else(unknown, |rate| percent(rate.mean).into()),
            rate.and_then(|rate| rate.ci95).map_or_else(Cell::default, |ends| range(ends).into()),
            as_decided(arm),
            at,
            hat,
            several(statistics.duration_s.map_or_else(unknown, |time| seconds(time.mean).into())),
            several(statistics.tokens.map_or_else(unknown, |tokens| rounded(tokens.mean).into())),
            several(statistics.cost_usd.map_or_else(unknown, |cost| money(cost.mean).into())),
        ]);
    }
    grid.draw(paint)
}

/// Returns how often the skill was triggered, for each agent that has it.
fn triggering(arms: &Arms, paint: &Paint) -> String {
    let mut grid = Grid::new(&[("skill used", 0), ("recall", 0), ("precision", 0), ("not used", 1), ("unknown", 2)]);
    for (arm, trigger) in arms.triggering() {
        let of = |count: u64, all: u64| match all {
            0 => unknown(),
            _ => format!("{count}/{all} {:>4}", percent(count as f64 / all as f64)).into(),
        };
        grid.row([
            paint.folded(without_variant(&arm.arm), NAME).into(),
            of(trigger.hits, trigger.wanted()),
            of(trigger.hits, trigger.triggered()),
            of(trigger.misses + trigger.rejections, trigger.known()),
            if trigger.unknown > 0 { trigger.unknown.to_string().into() } else { Cell::default() },
        ]);
    }
    grid.draw(paint)
}

/// Returns the effect of each skill, if the run tests several.
fn suites(arms: &Arms, paint: &Paint) -> String {
    let deltas = &arms.deltas;
    let has_agents = deltas.len() > 1;
    let cut = |text: &str| paint.folded(text, 22);
    let mut grid = Grid::new(&[
        ("suite", 0),
        (if has_agents { "agent" } else { "" }, 0),
        ("with", 1),
        ("without", 1),
        ("difference", 0),
        ("p", 2),
        ("recall", 3),
    ])
    .left(2);
    let mut suites: Vec<(&ArmDelta, &SuiteDelta)> =
        deltas.iter().flat_map(|delta| delta.suites.iter().map(move |suite| (delta, suite))).collect();
    // The sort is stable, so agents keep their order.
    suites.sort_by(|(_, a), (_, b)| a.suite.cmp(&b.suite));
    for (delta, suite) in suites {
        let rate = |rate: Option<f64>| rate.map_or_else(unknown, |rate| percent(rate).into());
        let apart = suite.delta.pass_rate;
        let recall = suite.trigger.as_ref().and_then(|trigger| trigger.recall);
        grid.row([
            cut(&suite.suite).into(),
            if has_agents { cut(without_variant(&delta.with)).into() } else { Cell::default() },
            rate(suite.with),
            rate(suite.without),
            points(apart),
            apart.filter(|_| !arms.is_sequential).map_or_else(Cell::default, |apart| p_value(apart.p_value).into()),
            rate(recall.map(|recall| recall.mean)),
        ]);
    }
    grid.draw(paint)
}

/// Returns the cases in which the arms differ: effects that are more than chance first, and within each kind the
/// largest differences first. Empty if there are none.
fn cases(deltas: &[ArmDelta], paint: &Paint) -> String {
    let mut differing: Vec<(&ArmDelta, &CaseDelta)> = deltas
        .iter()
        .flat_map(|delta| delta.cases.iter().map(move |case| (delta, case)))
        .filter(|(_, case)| case.effect.is_difference())
        .collect();
    if differing.is_empty() {
        return String::new();
    }
    // The sort is stable, so agents and cases keep their order.
    differing.sort_by(|(_, a), (_, b)| a.effect.cmp(&b.effect).then(b.distance().total_cmp(&a.distance())));
    let has_suites = differing.iter().any(|(_, case)| case.suite != differing[0].1.suite);
    let has_agents = deltas.len() > 1;
    let cut = |text: &str, most: usize| paint.folded(text, most);
    let mut grid = Grid::new(&[
        ("with skill", 0),
        ("case", 0),
        (if has_agents { "agent" } else { "" }, 1),
        ("passed with", 0),
        ("checks", 2),
        ("passed without", 0),
        ("checks", 2),
    ]);
    let room = paint.width().saturating_sub(if has_agents { 84 } else { 62 }).clamp(16, NAME);
    for (delta, case) in differing.iter().take(CASES) {
        let style = match case.effect {
            CaseEffect::Harms => CellStyle::Red,
            CaseEffect::Helps => CellStyle::Green,
            _ => CellStyle::Plain,
        };
        let suite = if has_suites { format!("{}::", case.suite) } else { String::new() };
        grid.row([
            Cell::new(case.effect.words(), style),
            cut(&format!("{suite}{}", case.case), room).into(),
            if has_agents { cut(without_variant(&delta.with), 22).into() } else { Cell::default() },
            trials(&case.with),
            checks(&case.with),
            trials(&case.without),
            checks(&case.without),
        ]);
    }
    let grid = grid.left(3);
    let mut text = grid.draw(paint);
    if differing.len() > CASES {
        let more = format!("and {} more; the JSON report has all", differing.len() - CASES);
        text.push_str(&format!("  {}\n", paint.dim(&more)));
    }
    if let Some(ties) = ties(deltas) {
        text.push_str(&format!("  {}\n", paint.dim(&ties)));
    }
    text
}

/// Counts the cases that pass equally often in both arms, and how many of these never pass; `None` if there are none.
pub(crate) fn ties(deltas: &[ArmDelta]) -> Option<String> {
    let ties = || deltas.iter().flat_map(|delta| &delta.cases).filter(|case| case.effect == CaseEffect::Same);
    let never = ties().filter(|case| case.with.passed == 0 && case.without.passed == 0).count();
    let never = if never > 0 { format!(", {never} of them never") } else { String::new() };
    let count = ties().count();
    (count > 0).then(|| format!("{} passed equally often with and without the skill{never}.", counted(count, "case")))
}

/// Formats how many trials passed as `2/3`, counting only trials in which everything was decided.
fn trials(figures: &CaseFigures) -> Cell {
    if figures.decided == 0 { unknown() } else { format!("{}/{}", figures.passed, figures.decided).into() }
}

/// Returns the share of met checks.
fn checks(figures: &CaseFigures) -> Cell {
    figures.pass_rate.map_or_else(unknown, |rate| percent(rate).into())
}

/// Formats as `2/3  83%`: passed trials, and the share of met checks.
pub(crate) fn shown_figures(figures: &CaseFigures) -> String {
    let checks = figures.pass_rate.map_or_else(|| "n/a".into(), percent);
    match figures.decided {
        0 => format!("n/a {checks:>4}"),
        decided => format!("{}/{decided} {checks:>4}", figures.passed),
    }
}

/// Returns warnings about figures that may mislead, one sentence each.
pub(crate) fn warnings(arms: &Arms) -> Vec<String> {
    let mut warnings = Vec::new();
    // The sentence about a compared arm already says it.
    let unsaid = |arm: &ArmSummary| !is_paired(arm, &arms.deltas);
    for (arm, trigger) in arms.triggering().filter(|(arm, trigger)| trigger.never_happened() && unsaid(arm)) {
        let name = without_variant(&arm.arm);
        let trials = counted(usize::try_from(trigger.wanted()).unwrap_or(usize::MAX), "trial");
        warnings.push(format!("{name} never used the skill in {trials} that expected it."));
    }
    let tested = arms.deltas.iter().filter(|_| !arms.is_sequential);
    warnings.extend(too_few(tested.filter_map(|delta| delta.delta.pass_rate)));
    warnings
}

/// Describes trials and cases that are excluded from all figures, and trials that are partly excluded: `Excluded: 1
/// broken trial of codex+with_skill.`
pub(crate) fn omission_note(arms: &Arms) -> Option<String> {
    let mut parts = Vec::new();
    for arm in &arms.arms {
        let statistics = &arm.statistics;
        let counts = [
            (statistics.broken, "broken"),
            (statistics.stale, "stale"),
            (statistics.skipped, "skipped"),
            (statistics.cancelled, "cancelled"),
        ];
        let counts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| counted(*count, &format!("{what} trial")))
            .collect();
        if !counts.is_empty() {
            parts.push(format!("{} of {}", counts.join(" and "), arm.arm));
        }
        let open = statistics.trials - statistics.decided;
        if open > 0 {
            parts.push(format!(
                "from `passed`, {} of {} with undecided assertions; from `checks`, those assertions",
                counted(open, "trial"),
                arm.arm
            ));
        }
    }
    for delta in arms.deltas.iter().filter(|delta| delta.delta.cases_unpaired > 0) {
        let cases = counted(delta.delta.cases_unpaired, "case");
        parts.push(format!(
            "{cases} of {}'s difference, without a graded trial in both arms",
            without_variant(&delta.with)
        ));
    }
    (!parts.is_empty()).then(|| format!("Excluded: {}.", parts.join("; ")))
}

/// Returns a warning if a difference is based on too few cases for any test to confirm it.
pub(crate) fn too_few(differences: impl Iterator<Item = Difference>) -> Option<String> {
    let few = |apart: &Difference| apart.mean != 0.0 && least_p_value(apart.cases) >= UNLIKELY;
    let cases = differences.filter(few).map(|apart| apart.cases).max()?;
    let least = p_value(least_p_value(cases));
    Some(format!(
        "With {}, p cannot be below {least}; a p below {UNLIKELY} needs at least six cases.",
        counted(cases, "case")
    ))
}

/// Wraps a sentence into lines.
pub(crate) fn folded(sentence: &str, paint: &Paint, painted: fn(&Paint, &str) -> String) -> String {
    let room = paint.width().saturating_sub(4);
    let mut lines = vec![String::new()];
    for word in sentence.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if columns::width(line) + 1 + columns::width(word) <= room => line.push_str(&format!(" {word}")),
            _ => lines.push(word.to_owned()),
        }
    }
    let margin = |index: usize| if index == 0 { "  " } else { "    " };
    lines.iter().enumerate().map(|(index, line)| format!("{}{}\n", margin(index), painted(paint, line))).collect()
}
