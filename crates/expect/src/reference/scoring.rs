//! The chapters about what scores.

use super::chapters::Chapter;
use super::shown::{no, scores, shown, yes};

/// Weights of a level that the table of shares shows; `None` is an item without a weight.
pub(super) const WEIGHTS_SHOWN: &[&[Option<f64>]] = &[
    &[None, None],
    &[Some(80.0), Some(20.0)],
    &[Some(8.0), Some(2.0)],
    &[Some(0.8), Some(0.2)],
    &[Some(0.5), Some(30.0)],
    &[Some(50.0), None],
    &[Some(100.0), None],
    &[Some(80.0), None, None],
    &[Some(60.0), Some(60.0), None],
    &[Some(1.0), None],
    &[Some(1.0), Some(9.0)],
    &[Some(0.0), Some(0.0)],
    &[Some(100.0), Some(-20.0)],
    &[Some(-20.0), None],
];

/// What the score of a level is made of.
pub(super) const WEIGHTS: Chapter = Chapter {
    title: super::chapters::WEIGHTS,
    text: "\
The items of a level (the keys of a map, the items of a list, those of `$and`, `$all`, `$each` or `$sequence`) share \
its score. What each gets follows from the weights, `$score`, of all:

- A weight below 1 is a share as it stands. Any other is points: it is divided by `maxScore`, which is 100 unless the \
case says otherwise, or by the greatest weight if that is more. 1 is the whole, except beside a weight that is greater. \
`autoConfidence: false` makes every weight points, `force` makes every weight a share.
- Without any items that have no weight, the positive shares are scaled so that they add up to 1.
- Items without a weight share what the others leave, equally. They keep at least `unassignedWeight` together, 0.1 \
unless the case says otherwise (a share if below 1, else points); where the others would leave less, they are scaled \
down.
- A weight of 0 is worth nothing. Where nobody on a level is worth anything, all are worth the same.
- A weight below 0 is a penalty. It is converted like the others and never scaled.
",
    shown: &[
        shown(
            r#"{"name": {"$expect": "Al", "$score": 80}, "city": "Bern"}"#,
            &[
                yes(r#"{"name": "Al", "city": "Bern"}"#),
                scores(r#"{"name": "Al", "city": "Rome"}"#, false, 0.8),
                scores(r#"{"name": "Bo", "city": "Bern"}"#, false, 0.2),
            ],
        ),
        shown("{}", &[yes(r#"{"a": 1}"#), yes("{}"), no("null")]),
    ],
};

/// The score of a trial.
pub(super) const VERDICT: Chapter = Chapter {
    title: "What passes",
    text: "\
Without `scoring`, everything must match. With it, the score decides: points are score × `maxScore`, and a trial passes \
if they reach `passScore` (which is `maxScore` unless the case says otherwise) and nothing critical failed. `scoring: \
auto` turns it on where a weight is given. The schema, `output` and `expect` of a case have an equal part of its points \
each. A full match has exactly all of them.

What cannot be decided, because a pattern or a script was stopped, is neither a match nor a mismatch: the trial is \
*undecided*. Without `scoring` a trial in which something else fails has failed all the same.
",
    shown: &[],
};

/// Penalties and critical parts.
pub(super) const CRITICAL: Chapter = Chapter {
    title: "Penalties and what is critical",
    text: "\
An item with a weight below 0 describes what should not be: where it matches, its share is taken away; where it does \
not, nothing is said about it. By itself it fails nothing. A whole expectation scores at least 0.

`$critical: true` makes every failure below it one that no score makes up for, wherever it stands. On a penalty it fails \
where the penalty matches, and inside `$not` where that matches which must not.
",
    shown: &[
        shown(
            r#"{"$and": ["/./", {"$expect": "/sorry/i", "$score": -20}]}"#,
            &[yes(r#""Done.""#), scores(r#""Sorry, done.""#, true, 0.8)],
        ),
        shown(
            r#"{"$and": [{"$expect": "/done/i", "$score": 90}, {"$expect": "safe", "$score": 10, "$critical": true}]}"#,
            &[yes(r#""Done, and safe""#), scores(r#""Done""#, false, 0.9)],
        ),
        shown(
            r#"{"$not": {"$expect": "/password/i", "$critical": true}}"#,
            &[yes(r#""Done""#), no(r#""Your password is x""#)],
        ),
    ],
};

/// Confidences.
pub(super) const THRESHOLDS: Chapter = Chapter {
    title: "Thresholds",
    text: "\
`$threshold`, from 0 to 1, makes an expectation pass from this score on, whatever in it fails, unless that is critical. \
The score stays what it is. Below, it is the threshold of confidences, the numbers that `$expr` and operators of your \
own give. A confidence without any threshold passes unless it is 0.
",
    shown: &[
        shown(
            r#"{"$and": ["a", "b", "c", "d"], "$threshold": 0.5}"#,
            &[yes(r#""abcd""#), scores(r#""ab""#, true, 0.5), scores(r#""a""#, false, 0.25)],
        ),
        shown(
            r#"{"$expr": "actual.length / 10"}"#,
            &[scores(r#""hello""#, true, 0.5), no(r#""""#)],
        ),
    ],
};

/// How items count.
pub(super) const STRATEGIES: Chapter = Chapter {
    title: "Strategies",
    text: "\
`weighted`, or `and`: every item counts by its share, and all of them must match. `max`, or `or`: the best item counts, \
and one is enough; an item then counts for itself, by its weight or for the whole without one. `$strategy` sets it for \
the items of the map or list it stands in and goes no further down: what is in an item must match as ever. `$and`, \
`$or`, `$all` and `$each` have their own.
",
    shown: &[
        shown(
            r#"{"$strategy": "max", "phone": "/\\d/", "mail": "@"}"#,
            &[yes(r#"{"phone": "12"}"#), yes(r#"{"mail": "a@b"}"#), no("{}")],
        ),
        shown(
            r#"{"$or": [{"name": "Al", "age": 5}, {"name": "Bo"}]}"#,
            &[yes(r#"{"name": "Bo"}"#), scores(r#"{"name": "Al", "age": 6}"#, false, 0.5)],
        ),
    ],
};
