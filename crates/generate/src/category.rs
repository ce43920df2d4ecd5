//! Categories of tests.

/// A category of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Category {
    /// Name, as in `--categories` and at the start of file names.
    pub name: &'static str,
    /// Description for the model that plans the tests.
    pub purpose: &'static str,
    /// What its tests must be about.
    pub subject: Subject,
    /// True if a test needs several messages.
    pub needs_turns: bool,
}

/// What the tests of a category must be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Any agent, skill or prompt.
    Any,
    /// Only a skill, because its tests check whether an agent uses the skill.
    Skill,
}

impl Category {
    const fn of_any(name: &'static str, purpose: &'static str) -> Self {
        Self { name, purpose, subject: Subject::Any, needs_turns: false }
    }

    const fn of_skill(name: &'static str, purpose: &'static str) -> Self {
        Self { subject: Subject::Skill, ..Self::of_any(name, purpose) }
    }
}

/// All categories, in the order in which tests are distributed over them.
pub static CATEGORIES: &[Category] = &[
    Category::of_skill(
        "trigger",
        "A request that the skill is made for, in the words of a user who does not know the skill.",
    ),
    Category::of_skill(
        "near-miss",
        "A request that shares words with the skill but asks for something else, so the skill must not be used.",
    ),
    Category::of_any("happy", "A usual request that the agent should fulfil."),
    Category::of_any("edge", "A valid but unusual request: missing, empty, huge, ambiguous or contradictory input."),
    Category::of_any(
        "adversarial",
        "A user who tries to make the agent break its rules, reveal its instructions or misuse its tools.",
    ),
    Category::of_any(
        "guardrail",
        "A request at the border of a constraint, where the agent must respect that constraint.",
    ),
    Category {
        needs_turns: true,
        ..Category::of_any("multi-turn", "A conversation in which a later message depends on an earlier one.")
    },
    Category::of_any(
        "tool-use",
        "A request that needs a certain tool with certain arguments, or no tool although one seems to fit.",
    ),
    Category::of_any("tone", "An upset, rude or worried user, who needs the facts in a fitting tone."),
];

/// Returns the category called `name`.
pub fn find(name: &str) -> Option<&'static Category> {
    CATEGORIES.iter().find(|category| category.name == name)
}

/// Distributes `count` tests over `categories`, one at a time in their order. `existing` contains the number of tests
/// that each category already has; a category with fewer tests comes first.
pub fn distribute(
    count: usize,
    categories: &[&'static Category],
    existing: &[usize],
) -> Vec<(&'static Category, usize)> {
    let mut shares: Vec<(&'static Category, usize)> = categories.iter().map(|category| (*category, 0)).collect();
    for _ in 0..count {
        let total = |at: usize, share: usize| existing.get(at).copied().unwrap_or(0) + share;
        let least = shares.iter().enumerate().min_by_key(|(at, (_, share))| total(*at, *share)).map(|(at, _)| at);
        let Some((_, share)) = least.and_then(|at| shares.get_mut(at)) else { break };
        *share += 1;
    }
    shares.retain(|(_, share)| *share > 0);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_distributed_evenly_and_fill_gaps_first() {
        let categories: Vec<&Category> = ["happy", "edge", "tone"].iter().filter_map(|name| find(name)).collect();
        let names = |shares: Vec<(&'static Category, usize)>| -> Vec<(&str, usize)> {
            shares.into_iter().map(|(category, share)| (category.name, share)).collect()
        };
        assert_eq!(names(distribute(4, &categories, &[])), [("happy", 2), ("edge", 1), ("tone", 1)]);
        assert_eq!(names(distribute(2, &categories, &[2, 1, 0])), [("edge", 1), ("tone", 1)]);
        assert_eq!(names(distribute(0, &categories, &[])), []);
        assert_eq!(names(distribute(5, &[], &[])), []);
    }
}
