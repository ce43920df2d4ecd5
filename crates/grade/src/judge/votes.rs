//! What several judges say together. What hangs on judges that disagree evenly, or did not answer, is undecided.

use super::answer::{Answer, Mark, Standing};

/// The answers of those who were asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Votes<'a> {
    /// What was answered.
    pub answers: &'a [Answer],
    /// How many were asked.
    pub asked: usize,
}

/// How many say what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    /// That it holds.
    pub met: usize,
    /// That it does not.
    pub violated: usize,
    /// How many were asked.
    pub asked: usize,
}

impl Tally {
    /// What more than half of those asked say; `None` if that is nothing.
    pub fn majority(self) -> Option<bool> {
        if self.met * 2 > self.asked {
            return Some(true);
        }
        (self.violated * 2 > self.asked).then_some(false)
    }

    /// ` (2 of 3)`: how many of several judges say what most say; nothing for a single judge.
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

/// What the scores of several judges may average to, once all have answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scores {
    /// Those that were given, in order.
    pub given: Vec<f64>,
    /// The average if everybody who has not answered gave the least.
    pub least: f64,
    /// The average if they gave the most.
    pub most: f64,
}

impl Scores {
    /// The average of those that were given.
    pub fn mean(&self) -> f64 {
        self.given.iter().sum::<f64>() / self.given.len().max(1) as f64
    }

    /// Whether the average reaches `threshold`; `None` where that hangs on who has not answered.
    pub fn reaches(&self, threshold: f64) -> Option<bool> {
        // Sums of tenths are not exact.
        let reached = |mean: f64| mean >= threshold - 1e-9;
        if reached(self.least) {
            return Some(true);
        }
        (!reached(self.most)).then_some(false)
    }

    /// ` (4, 4 and 2 of 5)`: the scores of several judges; nothing for a single one.
    pub fn told(&self) -> String {
        let scores: Vec<String> = self.given.iter().map(f64::to_string).collect();
        if scores.len() < 2 { String::new() } else { format!(" ({})", crate::words::list(&scores)) }
    }
}

impl<'a> Votes<'a> {
    /// What all say about the criterion number `at`.
    pub fn marks(&self, at: usize) -> impl Iterator<Item = &'a Mark> {
        self.answers.iter().filter_map(move |answer| answer.marks.get(at))
    }

    /// How many say what about the criterion number `at`.
    pub fn tally(&self, at: usize) -> Tally {
        let count = |wanted: bool| self.marks(at).filter(|mark| mark.met == Some(wanted)).count();
        Tally { met: count(true), violated: count(false), asked: self.asked }
    }

    /// The first who says about the criterion number `at` what most say, or else anybody.
    pub fn speaker(&self, at: usize) -> Option<&'a Mark> {
        let wanted = self.tally(at).majority();
        self.marks(at).find(|mark| mark.met == wanted).or_else(|| self.marks(at).next())
    }

    /// The scores that `of` finds in marks of the criterion number `at`, from 1 to `scale`.
    pub fn scores(&self, at: usize, scale: u64, of: impl Fn(&Mark) -> Option<u64>) -> Scores {
        let given: Vec<f64> = self.marks(at).filter_map(of).map(|score| score as f64).collect();
        let missing = self.asked.saturating_sub(given.len()) as f64;
        let mean = |missing_score: f64| {
            (given.iter().sum::<f64>() + missing * missing_score) / (given.len() as f64 + missing).max(1.0)
        };
        Scores { least: mean(1.0), most: mean(scale as f64), given }
    }

    /// How many find that none of the claims contradicts the truth and one at least agrees with it.
    pub fn truth(&self) -> Tally {
        let holds = |answer: &&Answer| is_true(answer);
        let met = self.answers.iter().filter(holds).count();
        Tally { met, violated: self.answers.len() - met, asked: self.asked }
    }
}

/// Whether an answer about claims finds one that agrees with the truth, and none that contradicts it.
pub(crate) fn is_true(answer: &Answer) -> bool {
    let has = |standing: Standing| answer.marks.iter().any(|mark| mark.standing == Some(standing));
    has(Standing::Consistent) && !has(Standing::Contradicted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(met: Option<bool>, score: Option<u64>) -> Answer {
        let mark = Mark {
            claim: String::new(),
            met,
            score,
            standing: None,
            quote: String::new(),
            reasoning: format!("{met:?}"),
        };
        Answer { marks: vec![mark] }
    }

    #[test]
    fn more_than_half_of_all_who_were_asked_decide() {
        for (votes, asked, expected, told) in [
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
            assert_eq!((tally.majority(), tally.agreement().as_str()), (expected, told), "{votes:?} of {asked}");
        }
    }

    #[test]
    fn an_average_is_decided_when_the_missing_scores_cannot_change_it() {
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
