//! Pairwise judgements: which of two trials is better by a criterion.
//!
//! Judges tend to choose by position. Each pair is therefore judged twice, with the positions swapped. A trial is
//! preferred only if both answers name it. If both answers name the same position, the pair is a tie that the position
//! caused.

use model::{AuxiliaryUsage, Evidence, PairJudgement, Preference};

use super::answer::{Answer, Choice};
use super::ask::{Judge, JudgeAnswers};
use super::material::Material;
use super::prompt;
use super::question::{Criterion, Form, Question, Quoted};
use super::reading::split;
use super::votes::Votes;

/// Asks `judge` in both orders which of two trials of the same case is better by `criterion`.
pub async fn prefer(judge: &Judge, criterion: &str, before: &Evidence, after: &Evidence) -> PairJudgement {
    let (before, after) = (Material::from_evidence(before), Material::from_evidence(after));
    if before.is_empty() && after.is_empty() {
        return PairJudgement::without_judge(Preference::Undecided, "neither trial left anything to judge");
    }
    if before == after {
        return PairJudgement::without_judge(
            Preference::Tie,
            "both trials have the same answers, tool calls and names of changed files",
        );
    }
    let questions = [question(criterion, &before, &after), question(criterion, &after, &before)];
    let answers = judge.ask_all(questions.iter().map(|question| (question, None))).await;
    let mut usage = AuxiliaryUsage::default();
    answers.iter().for_each(|answers| usage += answers.took);
    let (preference, reason) = match answers.iter().map(decided).collect::<Result<Vec<_>, _>>().as_deref() {
        Ok([(straight, reason), (swapped, _)]) => (preference(*straight, *swapped), reason.clone()),
        Ok(_) => (Preference::Undecided, "the judge was not asked in both orders".into()),
        Err(reason) => (Preference::Undecided, reason.clone()),
    };
    PairJudgement { preference, reason, usage, asked: true }
}

fn question(criterion: &str, first: &Material, second: &Material) -> Question {
    Question {
        task: prompt::PREFERENCE.to_owned(),
        criteria: vec![Criterion::new(0, criterion, Quoted::Always)],
        form: Form::Choice,
        material: Material::of_pair(first, second),
        has_sandbox: false,
    }
}

/// Returns the choice that more than half of the judges made, with the reason of one of them.
fn decided(answers: &JudgeAnswers) -> Result<(Choice, String), String> {
    let choice = |answer: &Answer| answer.marks.first().and_then(|mark| mark.choice);
    for wanted in [Choice::First, Choice::Second, Choice::Equal] {
        let mut agree = answers.answers.iter().filter(|answer| choice(answer) == Some(wanted));
        if agree.clone().count() * 2 > answers.asked
            && let Some(mark) = agree.next().and_then(|answer| answer.marks.first())
        {
            return Ok((wanted, mark.reasoning.clone()));
        }
    }
    let votes = Votes { answers: &answers.answers, asked: answers.asked };
    Err(answers.trouble.clone().unwrap_or_else(|| split(&votes)))
}

/// Combines the choices in both orders. In the first order, the trial of the first side is shown first.
fn preference(straight: Choice, swapped: Choice) -> Preference {
    match (straight, swapped) {
        (Choice::First, Choice::Second) => Preference::Before,
        (Choice::Second, Choice::First) => Preference::After,
        (Choice::First, Choice::First) | (Choice::Second, Choice::Second) => Preference::PositionTie,
        (Choice::Equal, _) | (_, Choice::Equal) => Preference::Tie,
    }
}
