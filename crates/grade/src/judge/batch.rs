//! Combines questions about the same material into one request.

use super::answer::{Answer, CriterionMark};
use super::prompt;
use super::question::{Criterion, Form, Question};

/// Maximum number of criteria in one request. With more, judges become careless.
const MAX_CRITERIA: usize = 50;

/// Question that combines several others.
pub(super) struct Batch {
    /// All criteria, renumbered.
    pub question: Question,
    /// Number of criteria in each question.
    sizes: Vec<usize>,
}

impl Batch {
    /// Combines `questions`, which have the same form and the same material.
    pub fn of(questions: &[&Question]) -> Option<Self> {
        let first = questions.first()?;
        let (mut task, mut criteria, mut sizes) = (prompt::BATCH.to_owned(), Vec::new(), Vec::new());
        for question in questions {
            let from = criteria.len() + 1;
            for criterion in &question.criteria {
                criteria.push(Criterion::new(criteria.len(), criterion.text.as_str(), criterion.quoted));
            }
            let group = match criteria.len() {
                to if to == from => format!("c{from}"),
                to => format!("c{from} to c{to}"),
            };
            task.push_str(&format!("\n\nInstructions for {group}:\n{}", question.task));
            sizes.push(question.criteria.len());
        }
        let (material, has_sandbox) = (first.material.clone(), first.has_sandbox);
        let question = Question { task, criteria, form: first.form, material, has_sandbox };
        Some(Self { question, sizes })
    }

    /// Splits the marks of all criteria into one answer for each question, or `None` if the question lacks a mark.
    pub fn split(&self, marks: Vec<Option<CriterionMark>>) -> Vec<Option<Answer>> {
        let mut marks = marks.into_iter();
        let answer = |size: &usize| {
            let own: Vec<Option<CriterionMark>> = marks.by_ref().take(*size).collect();
            let is_complete = own.len() == *size;
            own.into_iter().collect::<Option<Vec<_>>>().filter(|_| is_complete).map(|marks| Answer { marks })
        };
        self.sizes.iter().map(answer).collect()
    }
}

/// Groups questions that can share a request: they have the same form, the same material, and the same number of
/// judges. Returns the indices in each group, in order.
pub(super) fn groups(questions: &[(Question, usize)]) -> Vec<Vec<usize>> {
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    for (index, (question, judges)) in questions.iter().enumerate() {
        let shares = |(size, group): &&mut (usize, Vec<usize>)| {
            let first = group.first().and_then(|first| questions.get(*first));
            let is_like = first.is_some_and(|(other, number)| {
                number == judges && other.form == question.form && other.material == question.material
            });
            is_like && *size + question.criteria.len() <= MAX_CRITERIA
        };
        let is_alone = question.form == Form::Claims || question.criteria.is_empty();
        match groups.iter_mut().find(shares).filter(|_| !is_alone) {
            Some((size, group)) => {
                *size += question.criteria.len();
                group.push(index);
            }
            None => groups.push((question.criteria.len(), vec![index])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}
