//! New pull requests, merge requests and issues.

use sandbox::remote::{Draft, ItemKind, Project};

use super::Failure;
use super::checkout::Checkout;

/// New item, as the arguments of a `create` command describe it.
#[derive(Debug)]
pub(super) struct NewItem {
    pub(super) title: Option<String>,
    pub(super) body: Option<String>,
    pub(super) head: Option<String>,
    pub(super) base: Option<String>,
    /// True if the commits provide a missing title and body.
    pub(super) fill: bool,
    pub(super) is_draft: bool,
    pub(super) labels: Vec<String>,
    pub(super) reviewers: Vec<String>,
    pub(super) assignees: Vec<String>,
}

impl NewItem {
    /// Completes a review request from the agent's checkout, and returns its head and base branches.
    ///
    /// # Errors
    /// Returns an error if a branch is not known or not pushed. `no_branch` and `not_pushed` are the program's messages.
    pub(super) fn complete(
        &mut self,
        project: &Project,
        checkout: &Checkout,
        no_branch: &str,
        not_pushed: impl FnOnce(&str) -> String,
    ) -> Result<(String, String), Failure> {
        let base = self.base.take().or_else(|| project.default_branch.clone());
        let base = base.ok_or_else(|| Failure::new("the repository has no default branch"))?;
        let head = self.head.take().or_else(|| checkout.branch()).ok_or_else(|| Failure::new(no_branch))?;
        if checkout.pushed(&head).is_none() {
            return Err(Failure::Refused(not_pushed(&head)));
        }
        if self.fill
            && let Some((subject, text)) = checkout.filled(&base, &head)
        {
            self.title.get_or_insert(subject);
            self.body.get_or_insert(text);
        }
        (self.head, self.base) = (Some(head.clone()), Some(base.clone()));
        Ok((head, base))
    }

    /// Returns the item in the form in which the service creates it.
    ///
    /// # Errors
    /// Returns an error with the program's message `incomplete` if the title or the body is missing.
    pub(super) fn into_draft(self, kind: ItemKind, incomplete: &str) -> Result<Draft, Failure> {
        let (Some(title), Some(body)) = (self.title, self.body) else { return Err(Failure::new(incomplete)) };
        let is_review = kind == ItemKind::ReviewRequest;
        Ok(Draft {
            kind,
            title,
            body,
            head: self.head.filter(|_| is_review),
            base: self.base.filter(|_| is_review),
            is_draft: self.is_draft && is_review,
            labels: self.labels,
            reviewers: self.reviewers,
            assignees: self.assignees,
        })
    }
}
