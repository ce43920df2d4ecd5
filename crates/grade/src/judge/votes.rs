//! Combines the answers of several judges. If the result depends on judges that are evenly split or did not answer, it
//! is undecided.

use super::answer::{Answer, ClaimStatus, CriterionMark};

/// Answers of the judges that were asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Votes<'a> {
    /// The valid answers.
    pub answers: &'a [Answer],
    /// Number of judges that were asked.
    pub asked: usize,
}

/// Numbers of judges by their answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Number of judges that say it holds.
    pub met: usize,
    /// Number of judges that say it does not hold.
    pub violated: usize,
    /// Number of judges that were asked.
    pub asked: usize,
}

impl Tally {
    /// Returns the answer given by more than half of the judges that were asked, or `None`.
    pub fn majority(self) -> Option<bool> {
        if self.met * 2 > self.asked {
            return Some(true);
        }
        (self.violated * 2 > self.asked).then_some(false)
    }

    /// Returns ` (2 of 3)`: the number of judges that agree with the majority. Returns an empty string for a single
    /// judge.
    pub fn agreement(self) -> String {
        let agree = match self.majority() {
            _ if self.asked < 2 => return String::new(),
            Some(true) => self.met,
            Some(false) => self.violated,
            None => return format!(" ({} for and {} against, of {})", self.met, self.violated, self.asked),
        };
        format!(" ({agree} of {})", self.asked)
    }
}

/// Range of the mean score, depending on the judges that did not answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scores {
    /// Scores that were given, in order.
    pub given: Vec<f64>,
    /// Mean if every missing score were the lowest.
    pub min_mean: f64,
    /// Mean if every missing score were the highest.
    pub max_mean: f64,
}

impl Scores {
    /// Returns the mean of the scores that were given.
    pub fn mean(&self) -> f64 {
        self.given.iter().sum::<f64>() / self.given.len().max(1) as f64
    }

    /// Returns `true` if the mean reaches `threshold`. Returns `None` if that depends on missing scores.
    pub fn reaches(&self, threshold: f64) -> Option<bool> {
        // Floating-point sums of tenths are not exact.
        let reached = |mean: f64| mean >= threshold - 1e-9;
        if reached(self.min_mean) {
            return Some(true);
        }
        (!reached(self.max_mean)).then_some(false)
    }

    /// Returns ` (4, 4 and 2 of 5)`: the scores of several judges. Returns an empty string for a single one.
    pub fn describe(&self) -> String {
        let scores: Vec<String> = self.given.iter().map(f64::to_string).collect();
        if scores.len() < 2 { String::new() } else { format!(" ({})", crate::format::list(&scores)) }
    }
}

impl<'a> Votes<'a> {
    /// Returns the marks of all judges for the criterion at `index`.
    pub fn marks(&self, index: usize) -> impl Iterator<Item = &'a CriterionMark> {
        self.answers.iter().filter_map(move |answer| answer.marks.get(index))
    }

    /// Counts the marks for the criterion at `index`.
    pub fn tally(&self, index: usize) -> Tally {
        let count = |wanted: bool| self.marks(index).filter(|mark| mark.met == Some(wanted)).count();
        Tally { met: count(true), violated: count(false), asked: self.asked }
    }

    /// Returns the first mark that agrees with the majority about the criterion at `index`. Without one, returns the
    /// first mark.
    pub fn deciding_mark(&self, index: usize) -> Option<&'a CriterionMark> {
        let wanted = self.tally(index).majority();
        self.marks(index).find(|mark| mark.met == wanted).or_else(|| self.marks(index).next())
    }

    /// Returns the scores for the criterion at `index`, from 1 to `scale`. `of` reads a score from a mark.
    pub fn scores(&self, index: usize, scale: u64, of: impl Fn(&CriterionMark) -> Option<u64>) -> Scores {
        let given: Vec<f64> = self.marks(index).filter_map(of).map(|score| score as f64).collect();
        let missing = self.asked.saturating_sub(given.len()) as f64;
        let mean = |missing_score: f64| {
            (given.iter().sum::<f64>() + missing * missing_score) / (given.len() as f64 + missing).max(1.0)
        };
        Scores { min_mean: mean(1.0), max_mean: mean(scale as f64), given }
    }

    /// Returns the number of judges that gave a verdict about the undecided criterion that has the fewest.
    pub fn fewest_verdicts(&self) -> usize {
        let is_verdict = |mark: &CriterionMark| {
            mark.met.is_some() || mark.score.is_some() || mark.status.is_some() || mark.choice.is_some()
        };
        let criteria = self.answers.iter().map(|answer| answer.marks.len()).max().unwrap_or_default();
        let undecided = (0..criteria).filter(|index| self.tally(*index).majority().is_none());
        // Judges find different numbers of claims, so a claim that another judge does not have is not missing.
        let given =
            |index: usize| self.answers.iter().filter(|answer| answer.marks.get(index).is_none_or(is_verdict)).count();
        undecided.map(given).min().unwrap_or(self.answers.len())
    }

    /// Counts the judges that find at least one claim that agrees with the reference text and none that contradicts it.
    pub fn tally_factuality(&self) -> Tally {
        let holds = |answer: &&Answer| is_factual(answer);
        let met = self.answers.iter().filter(holds).count();
        Tally { met, violated: self.answers.len() - met, asked: self.asked }
    }
}

/// Returns `true` if the answer contains at least one claim that agrees with the reference text and none that
/// contradicts it.
pub(crate) fn is_factual(answer: &Answer) -> bool {
    let has = |status: ClaimStatus| answer.marks.iter().any(|mark| mark.status == Some(status));
    has(ClaimStatus::Consistent) && !has(ClaimStatus::Contradicted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(met: Option<bool>, score: Option<u64>) -> Answer {
        let mark = CriterionMark {
            claim: String::new(),
            met,
            score,
            status: None,
            choice: None,
            quote: String::new(),
            reasoning: format!("{met:?}"),
        };
        Answer { marks: vec![mark] }
    }

    #[test]
    fn a_majority_of_all_judges_decides() {
        for (votes, asked, expected, agreement) in [
            (&[Some(true)][..], 1, Some(true), ""),
            (&[Some(true), Some(true), Some(false)], 3, Some(true), " (2 of 3)"),
            (&[Some(true), Some(false)], 2, None, " (1 for and 1 against, of 2)"),
            (&[Some(true), Some(true)], 3, Some(true), " (2 of 3)"),
            (&[Some(false), None, Some(false)], 3, Some(false), " (2 of 3)"),
            (&[Some(true)], 3, None, " (1 for and 0 against, of 3)"),
            (&[None], 1, None, ""),
            (&[], 1, None, ""),
        ] {
            let answers: Vec<Answer> = votes.iter().map(|met| answer(*met, None)).collect();
            let tally = Votes { answers: &answers, asked }.tally(0);
            assert_eq!((tally.majority(), tally.agreement().as_str()), (expected, agreement), "{votes:?} of {asked}");
        }
    }

    #[test]
    fn only_judges_with_a_verdict_on_the_undecided_criterion_count() {
        let mark = |met: Option<bool>| answer(met, None).marks.remove(0);
        let fewest = |votes: &[&[Option<bool>]], asked: usize| {
            let of = |marks: &&[Option<bool>]| Answer { marks: marks.iter().copied().map(mark).collect() };
            let answers: Vec<Answer> = votes.iter().map(of).collect();
            Votes { answers: &answers, asked }.fewest_verdicts()
        };
        assert_eq!(fewest(&[&[Some(true)]], 3), 1);
        assert_eq!(fewest(&[&[Some(true)], &[Some(false)]], 2), 2);
        assert_eq!(fewest(&[&[Some(true)], &[None], &[None]], 3), 1);
        assert_eq!(fewest(&[&[Some(true), Some(true)], &[None, None], &[Some(true), Some(false)]], 3), 2);
        let scores = [answer(None, Some(3)), answer(None, Some(4))];
        assert_eq!(Votes { answers: &scores, asked: 3 }.fewest_verdicts(), 2);
        let claims = [Answer { marks: Vec::new() }, Answer { marks: Vec::new() }];
        assert_eq!(Votes { answers: &claims, asked: 3 }.fewest_verdicts(), 2);
    }

    #[test]
    fn a_mean_is_decided_if_missing_scores_cannot_change_the_result() {
        let reaches = |scores: &[u64], asked: usize, threshold: f64| {
            let answers: Vec<Answer> = scores.iter().map(|score| answer(None, Some(*score))).collect();
            Votes { answers: &answers, asked }.scores(0, 5, |mark| mark.score).reaches(threshold)
        };
        assert_eq!((reaches(&[3], 1, 3.0), reaches(&[2], 1, 3.0)), (Some(true), Some(false)));
        assert_eq!((reaches(&[4, 3, 2], 3, 3.0), reaches(&[5, 1, 2], 3, 3.0)), (Some(true), Some(false)));
        assert_eq!((reaches(&[5, 5], 3, 3.0), reaches(&[1, 1], 3, 3.0)), (Some(true), Some(false)));
        assert_eq!((reaches(&[3, 3], 3, 3.0), reaches(&[], 1, 3.0)), (None, None));
    }
}
