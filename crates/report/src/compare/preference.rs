//! Pairwise judgements of a comparison: which side a judge prefers by a criterion.

mod draw;

use model::statistics::Difference;
use model::{AuxiliaryUsage, PairJudgement, Preference};
use serde_json::{Value, json};

use super::Comparison;
use crate::format::{counted, number, p_value, percent, range};
use crate::verdict::{UNLIKELY, chance, more_cases};

/// Share of pairs in which the judge may follow the position without a warning.
const POSITION_SHARE: f64 = 0.3;
/// Minimum number of pairs for this warning, because with fewer, the judge may follow the position by chance.
const POSITION_PAIRS: u64 = 10;

/// Pair of graded trials of the same case and the same repetition, one of each side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialPair {
    /// `suite::case`, with the arm if there are several.
    pub case: String,
    /// Repetition of the trials.
    pub repetition: u64,
    /// Run and id of each trial; the first side comes first.
    pub trials: [(String, String); 2],
}

/// Pairwise judgements by one criterion.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Preferences {
    criterion: String,
    judge: String,
    /// Number of pairs that could have been judged.
    available: usize,
    counts: PairCounts,
    /// Cases with at least one judged pair, in order.
    cases: Vec<CasePreference>,
    /// Difference between the shares of won pairs, second side − first side, paired by case.
    difference: Option<Difference>,
    /// True if the results decided how many trials ran. No p-value is then computed.
    is_sequential: bool,
    usage: AuxiliaryUsage,
}

/// Pairwise judgements of one case.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CasePreference {
    pub(crate) name: String,
    counts: PairCounts,
    pub(crate) pairs: Vec<(TrialPair, PairJudgement)>,
}

/// Numbers of pairs by preference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct PairCounts {
    before: u64,
    after: u64,
    /// All ties, including those that the position caused.
    ties: u64,
    position_ties: u64,
    undecided: u64,
    /// Number of pairs that the judge decided.
    judged: u64,
    /// Number of ties for which the judge was not asked, because it would have seen the same of both trials.
    same: u64,
    /// Number of undecided pairs for which the judge was not asked, because there was nothing to judge.
    empty: u64,
}

impl PairCounts {
    fn add(&mut self, judgement: &PairJudgement) {
        self.judged += u64::from(judgement.is_judged());
        match judgement.preference {
            Preference::Before => self.before += 1,
            Preference::After => self.after += 1,
            Preference::Tie => {
                self.ties += 1;
                self.same += u64::from(!judgement.is_judged());
            }
            Preference::PositionTie => {
                self.ties += 1;
                self.position_ties += 1;
            }
            Preference::Undecided => {
                self.undecided += 1;
                self.empty += u64::from(!judgement.asked);
            }
        }
    }

    fn decided(self) -> u64 {
        self.before + self.after + self.ties
    }

    fn pairs(self) -> u64 {
        self.decided() + self.undecided
    }

    /// Returns `true` if the judge decided none of the pairs that needed it.
    fn lacks_judge(self) -> bool {
        self.judged == 0 && self.undecided > self.empty
    }

    /// Returns the number of pairs for which the judge was not asked.
    fn without_judge(self) -> u64 {
        self.same + self.empty
    }

    fn follows_position(self) -> bool {
        self.judged >= POSITION_PAIRS && self.position_ties as f64 > POSITION_SHARE * self.judged as f64
    }
}

impl Preferences {
    fn of(criterion: &str, judge: &str, available: usize, judged: Vec<(TrialPair, PairJudgement)>) -> Self {
        let (mut counts, mut usage) = (PairCounts::default(), AuxiliaryUsage::default());
        let mut cases: Vec<CasePreference> = Vec::new();
        for (pair, judgement) in judged {
            counts.add(&judgement);
            usage += judgement.usage;
            match cases.last_mut().filter(|case| case.name == pair.case) {
                Some(case) => case.add(pair, judgement),
                None => {
                    let mut case =
                        CasePreference { name: pair.case.clone(), counts: PairCounts::default(), pairs: Vec::new() };
                    case.add(pair, judgement);
                    cases.push(case);
                }
            }
        }
        let differences: Vec<f64> = cases.iter().filter_map(CasePreference::difference).collect();
        Self {
            criterion: criterion.to_owned(),
            judge: judge.to_owned(),
            available,
            counts,
            cases,
            difference: Difference::of_share_differences(&differences),
            is_sequential: false,
            usage,
        }
    }

    /// Removes the interval and the p-value, which assume a fixed number of trials.
    pub(super) fn sequential(mut self) -> Self {
        self.difference = self.difference.map(|difference| Difference { ci95: None, p_value: 1.0, ..difference });
        self.is_sequential = true;
        self
    }

    /// Returns the win rate of the second side, with its interval: the mean over the cases.
    fn win_rate(&self) -> Option<(f64, Option<[f64; 2]>)> {
        // A difference from −1 to 1 between the shares of won pairs is a win rate from 0 to 1, in which ties are half.
        let rate = |difference: f64| f64::midpoint(difference, 1.0);
        self.difference.map(|difference| (rate(difference.mean), difference.ci95.map(|ends| ends.map(rate))))
    }

    /// Returns the reason why a pair is undecided.
    fn trouble(&self) -> Option<&str> {
        let mut all = self.cases.iter().flat_map(|case| &case.pairs).map(|(_, judgement)| judgement);
        all.find(|judgement| judgement.preference == Preference::Undecided).map(|judgement| judgement.reason.as_str())
    }

    /// Says that the judge follows the position, and what to do about it.
    fn warning(&self) -> Option<String> {
        let PairCounts { position_ties, judged, .. } = self.counts;
        self.counts.follows_position().then(|| {
            format!(
                "Warning: in {} of {judged} pairs, the judge chose the same position in both orders. It cannot tell these \
                 trials apart by this criterion. Use a stronger judge or a more specific criterion.",
                number(position_ties)
            )
        })
    }
}

impl CasePreference {
    fn add(&mut self, pair: TrialPair, judgement: PairJudgement) {
        self.counts.add(&judgement);
        self.pairs.push((pair, judgement));
    }

    /// Returns the share of pairs that the second side won minus the share that the first side won.
    fn difference(&self) -> Option<f64> {
        let decided = self.counts.decided();
        (decided > 0).then(|| (self.counts.after as f64 - self.counts.before as f64) / decided as f64)
    }

    /// Returns a judged pair with the preference that most pairs of the case have.
    pub(crate) fn example(&self) -> Option<&(TrialPair, PairJudgement)> {
        let wanted = if self.counts.before > self.counts.after { Preference::Before } else { Preference::After };
        self.pairs.iter().find(|(_, judgement)| judgement.preference == wanted)
    }
}

impl Comparison {
    /// Returns the pairs of graded trials that a judge can compare directly.
    pub fn trial_pairs(&self) -> &[TrialPair] {
        &self.trial_pairs
    }

    /// Adds the judgements of `judge` by `criterion`. They are some or all of the [pairs](Self::trial_pairs), in order.
    pub fn with_preferences(mut self, criterion: &str, judge: &str, judged: Vec<(TrialPair, PairJudgement)>) -> Self {
        let preferences = Preferences::of(criterion, judge, self.trial_pairs.len(), judged);
        self.preferences = Some(Box::new(if self.is_sequential { preferences.sequential() } else { preferences }));
        self
    }

    /// Returns `true` if a preference was asked for, but the judge decided none of the pairs that needed it.
    pub fn lacks_preference(&self) -> bool {
        self.preferences.as_ref().is_some_and(|all| all.counts.lacks_judge())
    }

    /// Names both sides in a sentence.
    fn side_names(&self) -> [String; 2] {
        match &self.names {
            None => ["the first run".into(), "the second run".into()],
            Some(_) if self.is_with_and_without_skill() => {
                ["the side without the skill".into(), "the side with the skill".into()]
            }
            Some(names) => names.clone(),
        }
    }

    /// Says which side is preferred.
    pub(crate) fn preference_sentence(&self) -> Option<String> {
        let preferences = self.preferences.as_deref()?;
        Some(format!("Preference: {}", preferences.sentence(self.side_names())))
    }

    /// Returns the criterion of the preference, if one was asked for.
    pub(crate) fn criterion(&self) -> Option<&str> {
        self.preferences.as_deref().map(|preferences| preferences.criterion.as_str())
    }

    /// Returns the figures of the preference as pairs of a name and a value.
    pub(crate) fn preference_rows(&self) -> Vec<(String, String)> {
        self.preferences.as_deref().map(|preferences| preferences.rows(self.side_names())).unwrap_or_default()
    }

    /// Returns the cases with a preference in groups, each with its heading: the second side first.
    pub(crate) fn preference_groups(&self) -> Vec<(String, Vec<&CasePreference>)> {
        let Some(preferences) = &self.preferences else { return Vec::new() };
        let [before, after] = self.side_names();
        let of = |is_meant: fn(&PairCounts) -> bool| {
            let mut cases: Vec<&CasePreference> =
                preferences.cases.iter().filter(|case| is_meant(&case.counts)).collect();
            let size = |case: &CasePreference| case.difference().unwrap_or_default().abs();
            cases.sort_by(|one, other| size(other).total_cmp(&size(one)));
            cases
        };
        let groups = vec![
            (format!("{after} preferred"), of(|counts| counts.after > counts.before)),
            (format!("{before} preferred"), of(|counts| counts.before > counts.after)),
            ("each preferred equally often".into(), of(|counts| counts.before == counts.after && counts.after > 0)),
        ];
        groups.into_iter().filter(|(_, cases)| !cases.is_empty()).collect()
    }

    /// Names the preferred side.
    pub(crate) fn preferred(&self, preference: Preference) -> String {
        let [before, after] = self.side_names();
        match preference {
            Preference::Before => before,
            Preference::After => after,
            Preference::Tie => "tie".into(),
            Preference::PositionTie => "tie by position".into(),
            Preference::Undecided => "undecided".into(),
        }
    }

    /// Returns what is wrong with the judgements: that the judge follows the position, or why pairs are undecided.
    pub(crate) fn preference_problems(&self) -> Vec<String> {
        let Some(preferences) = &self.preferences else { return Vec::new() };
        let undecided = preferences.trouble().map(|reason| format!("Undecided: {reason}"));
        preferences.warning().into_iter().chain(undecided).collect()
    }

    /// Says how to read the figures of the preference.
    pub(crate) fn preference_note(&self) -> Option<String> {
        let counts = self.preferences.as_ref().map(|preferences| preferences.counts)?;
        if counts.decided() == 0 {
            return None;
        }
        let [before, after] = self.side_names();
        let same = match counts.same {
            0 => "",
            _ => {
                "A pair whose trials have the same answers, tool calls and names of changed files is a tie, without a judge. "
            }
        };
        if counts.judged == 0 {
            return Some(same.trim_end().to_owned());
        }
        Some(format!(
            "{same}The judge sees a pair twice, with the positions swapped. A trial is preferred only if the judge chose \
             it both times; if it chose the same position both times, the pair is a tie by position. Win rate: share of \
             pairs in which {after} is preferred; a tie counts half, and each case has the same weight. If 50% is in its \
             interval, the sides may be equal. In the judge's reasons, `first` is {before} and `second` is {after}."
        ))
    }

    pub(super) fn preference_to_json(&self) -> Value {
        let Some(preferences) = &self.preferences else { return Value::Null };
        let (counts, rate) = (&preferences.counts, preferences.win_rate());
        let pairs = preferences.cases.iter().flat_map(|case| &case.pairs);
        let pair = |(pair, judgement): &(TrialPair, PairJudgement)| {
            let [(_, before), (_, after)] = &pair.trials;
            json!({
                "case": pair.case, "repetition": pair.repetition, "before": before, "after": after,
                "preference": judgement.preference, "because": judgement.reason,
            })
        };
        json!({
            "criterion": preferences.criterion,
            "judge": preferences.judge,
            "sentence": preferences.sentence(self.side_names()),
            "warning": preferences.warning(),
            "available": preferences.available,
            "pairs": counts.pairs(),
            "before": counts.before,
            "after": counts.after,
            "ties": counts.ties,
            "position_ties": counts.position_ties,
            "undecided": counts.undecided,
            "win_rate": rate.map(|(rate, _)| rate),
            "ci95": rate.and_then(|(_, ci95)| ci95),
            "p_value": preferences.p_value(),
            "cases": preferences.difference.map_or(0, |difference| difference.cases),
            "requests": preferences.usage.requests,
            "cached": preferences.usage.cached,
            "tokens": preferences.usage.tokens.map(|tokens| tokens.total()),
            "cost_usd": preferences.usage.cost_usd,
            "judged": pairs.map(pair).collect::<Value>(),
        })
    }
}

impl Preferences {
    /// Says which of the sides is preferred.
    fn sentence(&self, [before, after]: [String; 2]) -> String {
        let counts = &self.counts;
        let is_significant = self.p_value().is_some_and(|p| p < UNLIKELY);
        // The pairs that the judge did not decide could all have been lost.
        let missing = counts.undecided - counts.empty;
        let is_certain = is_significant && counts.after.abs_diff(counts.before) > missing;
        if self.available == 0 {
            return "cannot tell which side is preferred, because no case has a graded trial on both sides.".into();
        }
        if counts.lacks_judge() {
            let asked = usize::try_from(counts.undecided - counts.empty).unwrap_or(usize::MAX);
            let needed = match counts.without_judge() {
                0 => counted(self.pairs(), "pair"),
                _ => format!("{} that needed it", counted(asked, "pair")),
            };
            return format!("cannot tell which side is preferred, because the judge decided none of {needed}.");
        }
        if counts.pairs() > 0 && counts.empty == counts.pairs() {
            let which = if counts.empty == 1 { "the only pair" } else { "every pair" };
            return format!("cannot tell which side is preferred, because {which} left nothing to judge.");
        }
        let decided = counted(usize::try_from(counts.decided()).unwrap_or(usize::MAX), "pair");
        let only_decided = match (counts.undecided, counts.decided()) {
            (0, _) => "",
            (_, 1) => " that was decided",
            _ => " that were decided",
        };
        let of = format!("{decided}{only_decided}");
        let ties = match counts.ties {
            0 => String::new(),
            1 => ", with 1 tie".into(),
            ties => format!(", with {} ties", number(ties)),
        };
        let won = |side: &str, won: u64, lost: u64| {
            format!("{side} won {} of {of} and lost {}{ties}", number(won), number(lost))
        };
        let mean = self.difference.map_or(0.0, |difference| difference.mean);
        if counts.before + counts.after == 0 {
            let all = match counts.decided() {
                1 => format!("the only pair{only_decided} is a tie"),
                2 => format!("both pairs{only_decided} are ties"),
                _ => format!("all {of} are ties"),
            };
            return match counts.position_ties {
                0 => format!("neither side is preferred; {all}."),
                count => format!("neither side is preferred; {all}, {} of them by position.", number(count)),
            };
        }
        match (is_certain, self.p_value()) {
            (true, Some(p)) if mean > 0.0 => {
                format!("{after} is preferred; {} ({}).", won("it", counts.after, counts.before), chance(p))
            }
            (true, Some(p)) => {
                format!("{before} is preferred; {} ({}).", won("it", counts.before, counts.after), chance(p))
            }
            (_, p) => {
                let differences: Vec<f64> = self.cases.iter().filter_map(CasePreference::difference).collect();
                let more = match p.is_some() && mean != 0.0 {
                    _ if is_significant => " The undecided pairs could reverse this.".to_owned(),
                    true => format!(" To tell, {}.", more_cases(&differences)),
                    false => String::new(),
                };
                format!(
                    "cannot tell yet whether {after} is preferred to {before}; {}.{more}",
                    won("it", counts.after, counts.before)
                )
            }
        }
    }

    fn pairs(&self) -> usize {
        usize::try_from(self.counts.pairs()).unwrap_or(usize::MAX)
    }

    /// Returns the p-value; `None` if there is no test.
    fn p_value(&self) -> Option<f64> {
        self.difference.filter(|_| !self.is_sequential).map(|difference| difference.p_value)
    }

    fn rows(&self, [before, after]: [String; 2]) -> Vec<(String, String)> {
        let counts = &self.counts;
        let mut pairs = counted(self.pairs(), "pair");
        if self.pairs() < self.available {
            pairs.push_str(&format!(", a random sample of {}", number(self.available as u64)));
        }
        if counts.without_judge() > 0 {
            pairs.push_str(&format!(", {} of them without a judge", number(counts.without_judge())));
        }
        let mut rows = vec![("compared".to_owned(), pairs)];
        if counts.pairs() == 0 {
            return rows;
        }
        let share = |count: u64| match counts.decided() {
            0 => number(count),
            decided => format!("{} ({})", number(count), percent(count as f64 / decided as f64)),
        };
        rows.push((format!("{after} preferred"), share(counts.after)));
        rows.push((format!("{before} preferred"), share(counts.before)));
        let ties = match counts.position_ties {
            0 => share(counts.ties),
            by_position => format!("{}, {} of them by position", share(counts.ties), number(by_position)),
        };
        rows.push(("ties".into(), ties));
        if counts.undecided > 0 {
            rows.push(("undecided".into(), number(counts.undecided)));
        }
        if let Some((rate, ci95)) = self.win_rate().filter(|_| !counts.lacks_judge()) {
            let interval = ci95.map_or_else(String::new, |ends| format!(" (95%: {})", range(ends)));
            let p = self.p_value().map_or_else(String::new, |p| format!(", p {}", p_value(p)));
            let cases = counted(self.difference.map_or(0, |difference| difference.cases), "case");
            rows.push((format!("win rate of {after}"), format!("{}{interval}{p}, {cases}", percent(rate))));
        }
        let usage = match counts.without_judge() == counts.pairs() {
            true => "not asked".to_owned(),
            false => crate::format::model_usage(&self.usage),
        };
        rows.push(("judge".into(), format!("{}: {usage}", self.judge)));
        rows
    }
}

impl CasePreference {
    /// Formats how many pairs of the case each side won: `3 of 3 pairs`, or `2 of 4 pairs, lost 1`.
    pub(crate) fn figures(&self) -> String {
        let PairCounts { before, after, .. } = self.counts;
        let pairs = counted(self.pairs.len(), "pair");
        match (before.max(after), before.min(after)) {
            (_, _) if before == after => format!("{} each of {pairs}", number(after)),
            (won, 0) => format!("{} of {pairs}", number(won)),
            (won, lost) => format!("{} of {pairs}, lost {}", number(won), number(lost)),
        }
    }
}
