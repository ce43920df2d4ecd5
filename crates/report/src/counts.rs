//! Counts of trials that passed or may have passed.

use model::statistics::Counted;
use model::{Outcome, OutcomeCounts};

use crate::format::{self, number, percent};

/// Formats counts as `3/5`, or `3 to 4/5` if one could have passed or failed.
pub(crate) fn described(counted: Counted) -> String {
    let Counted { passed, unknown, .. } = counted;
    let most = if unknown > 0 { format!(" to {}", passed + unknown) } else { String::new() };
    format!("{passed}{most}/{}", counted.trials())
}

/// Formats the share of passed trials as `60%`, `60-80%` or `n/a`.
pub(crate) fn share(counted: Counted) -> String {
    counted.bounds().map_or_else(|| "n/a".to_owned(), format::share)
}

/// Formats the share of passed trials for a sentence: `60% (3 of 5)`, or `between 40% and 60%: 1 undecided and 1 broken
/// of 10 trials`.
pub(crate) fn rate(by_outcome: OutcomeCounts, flaky: usize) -> Option<String> {
    let counted = by_outcome.counted(flaky);
    let bounds = counted.bounds()?;
    let trials = usize::try_from(counted.trials()).unwrap_or(usize::MAX);
    Some(match bounds.value() {
        Some(rate) => format!("{} ({} of {})", percent(rate), number(counted.passed), number(counted.trials())),
        None => {
            let unknown = outcomes(by_outcome, Outcome::is_unknown);
            let (min, max) = (percent(bounds.min), percent(bounds.max));
            format!("between {min} and {max}: {} of {}", unknown.join(" and "), crate::format::counted(trials, "trial"))
        }
    })
}

/// Lists the outcomes that occur and meet a condition: `6 undecided`, `1 broken`.
pub(crate) fn outcomes(by_outcome: OutcomeCounts, is_listed: impl Fn(Outcome) -> bool) -> Vec<String> {
    let listed = by_outcome.occurring().filter(|(outcome, _)| is_listed(*outcome));
    listed.map(|(outcome, count)| format!("{} {}", number(count as u64), outcome.name())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_one_number_only_if_it_is_known() {
        let counted = |passed, failed, unknown| Counted { passed, failed, unknown };
        assert_eq!((described(counted(3, 2, 0)), share(counted(3, 2, 0))), ("3/5".into(), "60%".into()));
        assert_eq!((described(counted(3, 1, 1)), share(counted(3, 1, 1))), ("3 to 4/5".into(), "60-80%".into()));
        let counts =
            |passed, failed, undecided| OutcomeCounts { passed, failed, undecided, ..OutcomeCounts::default() };
        assert_eq!(rate(counts(5, 1, 0), 1).as_deref(), Some("67% (4 of 6)"));
        let between = "between 0% and 60%: 6 undecided of 10 trials";
        assert_eq!(rate(counts(0, 4, 6), 0).as_deref(), Some(between));
        assert_eq!(rate(OutcomeCounts { skipped: 2, ..OutcomeCounts::default() }, 0), None);
    }
}
