//! Tables of arms, of the effect of the skill on each agent, of how often it was triggered, and of the cases that it
//! helps or harms.

use model::statistics::{ArmStatistics, BoundedDifference, BoundedEstimate, Counted, Delta, Difference};
use model::{ArmDelta, ArmSummary, CaseDelta, CaseEffect, CaseFigures, Outcome, SuiteDelta};

use super::Paint;
use super::grid::{Cell, CellStyle, Grid};
use crate::arms::{Arms, without_variant};
use crate::columns;
use crate::counts::{described, outcomes};
use crate::format::{counted, gain, gains, money, percent, range, rounded, seconds, share, signed};
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
    text.extend(count_notes(arms, !arms.deltas.is_empty()).iter().map(|note| folded(note, paint, Paint::dim)));
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
        ("passed", 1),
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
        grid.row(difference(&delta.delta));
    }
    grid.draw(paint)
}

/// Formats how many trials passed as `9/10`, or `7 to 9/10` if two could have passed or failed.
fn passed(arm: &ArmSummary) -> Cell {
    match arm.statistics.trials {
        0 => unknown(),
        _ => described(arm.statistics.counted()).into(),
    }
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
        Some((at, hat)) if most > 1 => [at, hat].map(|point| Cell::from(share(point.bounds) + &same)),
        None if most > 1 => ["n/a".into(), "n/a".into()],
        _ => [Cell::default(), Cell::default()],
    }
}

/// Formats the mean tokens of a trial, with the number of trials whose tokens are known unless that is all.
pub(crate) fn mean_tokens(arm: &ArmStatistics) -> Option<String> {
    Some(rounded(arm.tokens?.mean) + &known(arm.trials_with_tokens, arm))
}

/// Formats the mean cost of a trial, with the number of trials whose cost is known unless that is all.
pub(crate) fn mean_cost(arm: &ArmStatistics) -> Option<String> {
    Some(money(arm.cost_usd?.mean) + &known(arm.trials_with_cost, arm))
}

fn known(trials: usize, arm: &ArmStatistics) -> String {
    if trials < arm.graded() { format!(" (n={trials})") } else { String::new() }
}

fn figures(name: &str, arm: &ArmSummary, most: u64) -> [Cell; 9] {
    let statistics = &arm.statistics;
    let [at, hat] = at_k(arm, most);
    let checks = statistics.pass_rate;
    [
        format!("  {name}").into(),
        checks.map_or_else(unknown, |rate| percent(rate.mean).into()),
        checks.and_then(|rate| rate.ci95).map_or_else(Cell::default, |ends| Cell::new(range(ends), CellStyle::Dim)),
        passed(arm),
        at,
        hat,
        statistics.duration_s.map_or_else(unknown, |time| seconds(time.mean).into()),
        mean_tokens(statistics).map_or_else(unknown, Cell::from),
        mean_cost(statistics).map_or_else(unknown, Cell::from),
    ]
}

fn difference(delta: &Delta) -> [Cell; 9] {
    let of = |difference: Option<Difference>, shown_figures: &dyn Fn(f64) -> String| match difference {
        Some(difference) => Cell::from(shown_figures(difference.mean)),
        None => unknown(),
    };
    let checks = delta.pass_rate;
    [
        "  difference".into(),
        points(checks),
        checks.and_then(|apart| apart.ci95).map_or_else(Cell::default, |ends| gains(ends).into()),
        possible_points(delta.full_pass_rate),
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

/// Formats a difference of shares, or the range of differences that trials without a result allow.
pub(crate) fn possible_points(difference: Option<BoundedDifference>) -> Cell {
    let Some(difference) = difference else { return unknown() };
    let style = match (difference.p_value < UNLIKELY, difference.nearest_to_zero()) {
        (true, mean) if mean > 0.0 => CellStyle::Green,
        (true, mean) if mean < 0.0 => CellStyle::Red,
        _ => CellStyle::Bold,
    };
    let points = match difference.mean {
        Some(mean) => gain(mean),
        None => gains([difference.bounds.min, difference.bounds.max]),
    };
    Cell::new(format!("{points} pts"), style)
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
            rate.map_or_else(unknown, |rate| share(rate.bounds).into()),
            rate.and_then(|rate| rate.ci95).map_or_else(Cell::default, |ends| range(ends).into()),
            at,
            hat,
            several(statistics.duration_s.map_or_else(unknown, |time| seconds(time.mean).into())),
            several(mean_tokens(statistics).map_or_else(unknown, Cell::from)),
            several(mean_cost(statistics).map_or_else(unknown, Cell::from)),
        ]);
    }
    grid.draw(paint)
}

/// Returns how often the skill was triggered, for each agent that has it.
fn triggering(arms: &Arms, paint: &Paint) -> String {
    let mut grid = Grid::new(&[("skill used", 0), ("recall", 0), ("precision", 0), ("not used", 1), ("unknown", 2)]);
    let count = |name: &str| arms.triggering().filter(|(arm, _)| without_variant(&arm.arm) == name).count();
    for (arm, trigger) in arms.triggering() {
        let short = without_variant(&arm.arm);
        let name = if count(short) > 1 { &arm.arm } else { short };
        let of = |rate: Option<BoundedEstimate>, counted: Counted| {
            let cell = |rate: BoundedEstimate| format!("{} {:>4}", described(counted), share(rate.bounds)).into();
            rate.map_or_else(unknown, cell)
        };
        let precise = Counted { passed: trigger.hits, failed: trigger.false_alarms, unknown: 0 };
        grid.row([
            paint.folded(name, NAME).into(),
            of(trigger.recall, trigger.recalled()),
            of(trigger.precision, precise),
            of(trigger.never, trigger.not_triggered()),
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
        ("recall", 2),
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
            recall.map_or_else(unknown, |recall| share(recall.bounds).into()),
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

/// Formats how many trials passed as `2/3`, or `1 to 2/3` if some have no result.
fn trials(figures: &CaseFigures) -> Cell {
    if figures.trials == 0 { unknown() } else { described(figures.counted()).into() }
}

/// Returns the share of met checks.
fn checks(figures: &CaseFigures) -> Cell {
    figures.pass_rate.map_or_else(unknown, |rate| percent(rate).into())
}

/// Formats as `2/3  83%`: passed trials, and the share of met checks.
pub(crate) fn shown_figures(figures: &CaseFigures) -> String {
    let checks = figures.pass_rate.map_or_else(|| "n/a".into(), percent);
    match figures.trials {
        0 => format!("n/a {checks:>4}"),
        _ => format!("{} {checks:>4}", described(figures.counted())),
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
    warnings
}

/// Says which trials could have passed or failed, which first attempts failed although the trial passed, and which
/// trials and cases are excluded: `Excluded: 1 skipped trial of codex+with_skill.` `has_checks` is true if the shares of
/// met assertions are shown.
pub(crate) fn count_notes(arms: &Arms, has_checks: bool) -> Vec<String> {
    let counted_in = |arm: &ArmSummary, is_meant: fn(Outcome) -> bool| {
        let by_outcome = arm.statistics.by_outcome;
        let trials = counted(by_outcome.sum(is_meant), "trial");
        let listed = outcomes(by_outcome, is_meant);
        (!listed.is_empty()).then(|| format!("{trials} of {} ({})", arm.arm, listed.join(" and ")))
    };
    let (mut unknown, mut later, mut excluded) = (Vec::new(), Vec::new(), Vec::new());
    for arm in &arms.arms {
        let statistics = &arm.statistics;
        unknown.extend(counted_in(arm, Outcome::is_unknown));
        if statistics.flaky > 0 {
            later.push(format!("{} of {}", counted(statistics.flaky, "trial"), arm.arm));
        }
        excluded.extend(counted_in(arm, Outcome::is_excluded));
    }
    for delta in &arms.deltas {
        let Delta { cases_unpaired, cases_paired, .. } = delta.delta;
        let about_skill = cases_paired.saturating_sub(delta.cases.len());
        for (count, reason) in [
            (cases_unpaired, "without a trial in both arms"),
            (about_skill, "with assertions only about the use of the skill"),
        ] {
            if count > 0 {
                let cases = counted(count, "case");
                excluded.push(format!("{cases} of {}'s difference, {reason}", without_variant(&delta.with)));
            }
        }
    }
    let mut notes = Vec::new();
    if arms.different_in_both_arms > 0 && !arms.deltas.is_empty() {
        notes.push(format!(
            "Differences leave out assertions about the use of the skill, which only the arm with it has. Without \
             them, {} would have another result.",
            counted(arms.different_in_both_arms, "trial")
        ));
    }
    if !unknown.is_empty() {
        let checks = if has_checks { "met checks leave out undecided assertions; they, " } else { "" };
        notes.push(format!(
            "Unknown: {}. They could have passed or failed, so passed trials are a range; {checks}time, tokens and cost \
             leave out broken and stale trials.",
            unknown.join("; ")
        ));
    }
    if !later.is_empty() {
        notes.push(format!(
            "First attempts: {} passed only after a failed attempt. Passed trials leave them out; tokens and cost are \
             those of all attempts.",
            later.join("; ")
        ));
    }
    if !excluded.is_empty() {
        notes.push(format!("Excluded: {}.", excluded.join("; ")));
    }
    notes
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
