//! Generates nested levels of weighted items, each of which holds or fails independently.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Notation of the items of a level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    Map,
    List,
    And,
    All,
    Sequence,
    Or,
    /// A map whose best key counts.
    Max,
}

/// Item of a tree.
#[derive(Debug, Clone)]
pub enum Tree {
    /// An item that holds or fails.
    Leaf(bool),
    /// Several items, each with its share of the maximum score.
    Level(Form, Vec<(Option<f64>, Tree)>),
}

impl Tree {
    /// Returns an expectation in which each leaf holds or fails regardless of the value.
    pub fn expected(&self, max_score: f64) -> Value {
        let Self::Level(form, items) = self else {
            return json!({"$exists": matches!(self, Self::Leaf(true))});
        };
        let items: Vec<Value> = items
            .iter()
            .map(|(share, item)| match share {
                Some(share) => json!({"$expect": item.expected(max_score), "$score": share * max_score}),
                None => item.expected(max_score),
            })
            .collect();
        let named = |items: Vec<Value>| {
            items.into_iter().enumerate().map(|(index, item)| (format!("k{index}"), item)).collect::<Map<_, _>>()
        };
        match form {
            Form::Map => named(items).into(),
            Form::Max => json!({"$expect": named(items), "$strategy": "max"}),
            Form::List => items.into(),
            Form::And => json!({"$and": items}),
            Form::All => json!({"$all": items}),
            Form::Sequence => json!({"$sequence": items}),
            Form::Or => json!({"$or": items}),
        }
    }

    /// Returns a value that has all expected parts.
    pub fn actual(&self) -> Value {
        let Self::Level(form, items) = self else { return json!(1) };
        match form {
            Form::Map | Form::Max => {
                let entry = |(index, (_, item)): (usize, &(Option<f64>, Self))| (format!("k{index}"), item.actual());
                Value::Object(items.iter().enumerate().map(entry).collect())
            }
            Form::List | Form::All | Form::Sequence => items.iter().map(|(_, item)| item.actual()).collect(),
            Form::And | Form::Or => items.first().map_or(json!(1), |(_, item)| item.actual()),
        }
    }

    /// Returns the paths to the leaves that hold and only have positive items above them.
    pub fn positive_leaves(&self) -> Vec<Vec<usize>> {
        match self {
            Self::Leaf(holds) => {
                if *holds {
                    vec![Vec::new()]
                } else {
                    Vec::new()
                }
            }
            Self::Level(_, items) => {
                let mut paths = Vec::new();
                for (index, (share, item)) in items.iter().enumerate() {
                    if share.is_none_or(|share| share > 0.0) {
                        let below = item.positive_leaves().into_iter();
                        paths.extend(below.map(|path| [vec![index], path].concat()));
                    }
                }
                paths
            }
        }
    }

    /// Returns the same tree with the leaf at `path` failing.
    pub fn with_failure(&self, path: &[usize]) -> Self {
        match (self, path) {
            (Self::Level(form, items), [first, rest @ ..]) => {
                let mut items = items.clone();
                items[*first].1 = items[*first].1.with_failure(rest);
                Self::Level(*form, items)
            }
            _ => Self::Leaf(false),
        }
    }
}

/// Generates any tree of items. Items that all look at the same value are leaves.
pub fn tree() -> impl Strategy<Value = Tree> {
    let share = || {
        prop::option::of(prop_oneof![
            prop::sample::select(vec![0.0, 0.01, 0.2, 0.5, 0.99, 1.0]),
            prop::sample::select(vec![-0.1, -0.5, -1.0]),
        ])
    };
    let leaf = || prop_oneof![3 => Just(Tree::Leaf(true)), 1 => Just(Tree::Leaf(false))];
    let flat = vec![Form::And, Form::All, Form::Sequence, Form::Or];
    let flat = (prop::sample::select(flat), prop::collection::vec((share(), leaf()), 1..5))
        .prop_map(|(form, items)| Tree::Level(form, items));
    prop_oneof![1 => leaf(), 2 => flat].prop_recursive(3, 24, 4, move |inner| {
        let forms = vec![Form::Map, Form::List, Form::Max];
        (prop::sample::select(forms), prop::collection::vec((share(), inner), 1..5))
            .prop_map(|(form, items)| Tree::Level(form, items))
    })
}
