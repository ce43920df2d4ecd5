//! What the page tells beside the operators.

use super::scoring;
use super::shown::{NOTHING, Shown, given, no, scores, shown, yes};

/// A chapter of the page.
pub(super) struct Chapter {
    /// Its heading.
    pub title: &'static str,
    /// In Markdown, with a line end.
    pub text: &'static str,
    /// Its examples.
    pub shown: &'static [Shown],
}

/// The chapter that has the table of shares.
pub(super) const WEIGHTS: &str = "Weights";

/// Every chapter, in the order of the page.
pub(super) const CHAPTERS: &[Chapter] = &[
    TOGETHER,
    TEXTS,
    REGEXES,
    LITERALS,
    LISTS,
    MAPS,
    PATHS,
    SCHEMAS,
    CALLS,
    STRICT,
    DIFF,
    META,
    scoring::VERDICT,
    scoring::WEIGHTS,
    scoring::CRITICAL,
    scoring::THRESHOLDS,
    scoring::STRATEGIES,
    HOST,
    INVALID,
];

const TOGETHER: Chapter = Chapter {
    title: "Several operators in one map",
    text: "\
All of them must hold, and so must the plain keys beside them. Each operator has an equal share of the score, and the \
plain keys together have one.
",
    shown: &[shown(
        r#"{"$contains": "b", "$not": {"$contains": "c"}, "length": 2}"#,
        &[yes(r#"["a", "b"]"#), scores(r#"["a", "b", "c"]"#, false, 1.0 / 3.0)],
    )],
};

const TEXTS: Chapter = Chapter {
    title: "Texts",
    text: "\
The value is a text that contains this one. White space at both ends of either does not count; upper and lower case \
do. Where it is not contained, the two are compared as with [`diff`](#comparing-texts), and no difference is a match, too: JSON in \
another layout is the same JSON. Only a text matches a text. For the exact text, use `$eq`.
",
    shown: &[
        shown(r#""hello""#, &[yes(r#""well, hello there""#), no(r#""Hello""#)]),
        shown(r#""5""#, &[yes(r#""15""#), no("5"), no(NOTHING)]),
        shown(r#""{\"a\": 1, \"b\": 2}""#, &[yes(r#""{\"b\":2,\"a\":1}""#)]),
    ],
};

const REGEXES: Chapter = Chapter {
    title: "Regular expressions",
    text: "\
A text written `/source/flags` is an ECMAScript regular expression with any of the flags `dgimsuvy`, and must match some \
part of the value; so is any text with the YAML tag `!re`. A text that only begins with a slash is a text. What is no \
text is matched as compact JSON; a missing value never matches. One test may take 250 ms; one that is stopped is \
undecided. In a template, what a placeholder becomes stands for itself: special characters are escaped.
",
    shown: &[
        shown(r#""/colou?r/i""#, &[yes(r#""The Color""#), yes(r#"{"colour": 1}"#), no(r#""tint""#), no(NOTHING)]),
        shown(r#""/^\\d+$/""#, &[yes("42"), yes(r#"" 42 ""#), no("4.2")]),
        shown(r#""/usr/bin""#, &[yes(r#""in /usr/bin/env""#)]),
    ],
};

const LITERALS: Chapter = Chapter {
    title: "Numbers, booleans and null",
    text: "The value is the same. Nothing is converted: `1` is `1.0`, but not `\"1\"` and not `true`. `null` is not a missing value.\n",
    shown: &[
        shown("1", &[yes("1"), yes("1.0"), no(r#""1""#), no("true")]),
        shown("null", &[yes("null"), no(NOTHING), no(r#""""#)]),
    ],
};

const LISTS: Chapter = Chapter {
    title: "Lists",
    text: "\
Each item is matched with the value's item at the same position. The value may have more, unless it is compared \
[strictly](#strictness). To look for items anywhere, use `$contains`, `$all` or `$sequence`.
",
    shown: &[
        shown(
            r#"["a", {"$gt": 1}]"#,
            &[yes(r#"["a", 2, 3]"#), scores(r#"["a"]"#, false, 0.5), no(r#"[2, "a"]"#), no(r#""a""#)],
        ),
        shown("[]", &[yes("[]"), yes("[1]"), no("{}")]),
    ],
};

const MAPS: Chapter = Chapter {
    title: "Maps",
    text: "\
Each key is found in the value and matched there. The value may have others, unless it is compared [strictly](#strictness). \
A key that is not there has a missing value, which only `$exists: false`, `$ne`, `$nin`, `$not`, `$expr` and functions can match.
",
    shown: &[
        shown(
            r#"{"name": "/^Al/", "address": {"city": "Bern"}}"#,
            &[
                yes(r#"{"name": "Alice", "address": {"city": "Bern", "zip": 3000}, "age": 30}"#),
                scores(r#"{"name": "Bob", "address": {"city": "Bern"}}"#, false, 0.5),
                no(r#"{"name": "Bob"}"#),
                no(r#""Alice, Bern""#),
            ],
        ),
    ],
};

const PATHS: Chapter = Chapter {
    title: "Paths and patterns as keys",
    text: "\
A key is first looked for as it is written, then as a path: `user.name`, `users[0].name`, `a[\"b c\"]`. `length` is that \
of a list or a text. A key written `/source/flags` is a regular expression and stands for the first key of the value \
that it matches; reports show that one.
",
    shown: &[
        shown(
            r#"{"users[0].name": "Ann", "users.length": {"$gte": 1}, "/^X-ID$/i": 7}"#,
            &[
                yes(r#"{"users": [{"name": "Ann"}], "x-id": 7}"#),
                scores(r#"{"users": [], "x-id": 8}"#, false, 0.0),
            ],
        ),
        shown(r#"{"a.b": 1}"#, &[yes(r#"{"a.b": 1}"#), yes(r#"{"a": {"b": 1}}"#), no(r#"{"a.b": 2, "a": {"b": 1}}"#)]),
    ],
};

const SCHEMAS: Chapter = Chapter {
    title: "JSON Schema",
    text: "\
A JSON Schema stands under `outputSchema` of a case, under [`$schema`](#schema), behind the YAML tag `!json-schema`, or \
simply where a value would: a map whose `type` names a type of JSON Schema and whose other keys are all keywords is \
taken for one. A map with other keys is data that happens to have a `type`. `disableHeuristicSchema: true` turns that \
off. All or nothing: a schema has no partial score.
",
    shown: &[
        shown(
            r#"{"age": {"type": "integer", "minimum": 18}}"#,
            &[yes(r#"{"age": 18}"#), no(r#"{"age": 17}"#), no(r#"{"age": "18"}"#)],
        ),
        shown(
            r#"{"type": "object", "label": "box"}"#,
            &[yes(r#"{"type": "object", "label": "a box"}"#), scores(r#"{"label": "box"}"#, false, 0.5)],
        ),
    ],
};

const CALLS: Chapter = Chapter {
    title: "Tool calls",
    text: "\
Under `expect`, the whole of what an agent gave is matched: `output`, `messages` and whatever else it returned. `tools` in it is \
about the calls in its messages, and is checked beside `messages`:

| `tools` is | which asks for |
| --- | --- |
| a list, or `{$all: …}` | each is among the calls of some message |
| `{$sequence: …}` | each is among the calls of a message of its own, in this order |
| a map | a call with these keys |
| a text | a call with this name; of a regular expression, one that it matches |
| `true` | any call |
| another operator | it holds of the list of all calls |
",
    shown: &[
        shown(
            r#"{"tools": [{"name": "get_user", "args": {"id": 7}}]}"#,
            &[
                yes(r#"{"messages": [{"tools": [{"name": "get_user", "args": {"id": 7, "all": true}}]}]}"#),
                scores(r#"{"messages": [{"tools": [{"name": "get_user", "args": {"id": 8}}]}]}"#, false, 0.5),
                no(r#"{"messages": []}"#),
            ],
        ),
        shown(
            r#"{"tools": {"$not": "delete"}}"#,
            &[
                yes(r#"{"messages": [{"tools": [{"name": "get"}]}]}"#),
                no(r#"{"messages": [{"tools": [{"name": "delete"}]}]}"#),
            ],
        ),
    ],
};

const STRICT: Chapter = Chapter {
    title: "Strictness",
    text: "\
What is not asked for may be there, unless the case says `strict`: `object` allows maps no other keys, `array` lists no \
other items, `diff` no changes but the listed ones, all of which must be there. `true` is all three; a list names some. \
It holds everywhere in the case, also for what an agent gave as a whole. An extra key fails and costs no score.
",
    shown: &[
        given(r#"{"strict": true}"#, r#"{"a": [1]}"#, &[yes(r#"{"a": [1]}"#), no(r#"{"a": [1, 2]}"#)]),
        given(r#"{"strict": "object"}"#, r#"{"a": 1}"#, &[yes(r#"{"a": 1}"#), scores(r#"{"a": 1, "b": 2}"#, false, 1.0)]),
    ],
};

const DIFF: Chapter = Chapter {
    title: "Comparing texts",
    text: "\
`diff` in a case, or inside its `expect`, says how texts are compared; then it is not enough that a text contains another. It is `true`, a kind, \
a list of changes that are allowed, or a map of `type`, `items`, `permissive` and options. The kinds are `chars`, \
`words`, `wordsWithSpace`, `lines`, `sentences`, `json`, and `auto`, which chooses: JSON where both texts are JSON, lines \
where there are several, words where a text has spaces and at least 20 characters, else characters. The options are \
`ignoreCase`, `ignoreWhitespace`, `ignoreNewlineAtEof`, `newlineIsToken`, `stripTrailingCr`, `oneChangePerToken` and \
`maxEditLength`. [`$diff`](#diff) says the same of one text.
",
    shown: &[
        given(r#"{"diff": true}"#, r#""Hello""#, &[yes(r#""Hello""#), no(r#""Hello there""#)]),
        given(
            r#"{"diff": {"type": "words", "ignoreCase": true}}"#,
            r#""Good day""#,
            &[yes(r#""good   day""#), no(r#""good night""#)],
        ),
    ],
};

const META: Chapter = Chapter {
    title: "What is said about an expectation",
    text: "\
These keys may stand in any map that is an expectation. They are not matched. A text, a pattern or a number gets them \
through [`$expect`](#expect).

| key | |
| --- | --- |
| `$score` | Its [weight](#weights) among its neighbours. A map has it as `value`, with any of the others beside it. |
| `$critical` | No score makes up for [a failure](#penalties-and-what-is-critical) in it. |
| `$threshold` | The [score from which it passes](#thresholds). |
| `$strategy` | How its [items count](#strategies). |
| `$title` | What a person would call it. It stands in reports, and in place of a message that says nothing. |
| `$dimension` | The category it is reported under, `accuracy` or `style`; a report has a score for each. |
| `$description` | A note for people. |

`$meta` holds the same without the `$`: `{$meta: {score: 80, title: greeting}}`. Beside a `$meta` that is a map, the \
keys above are keys like any others, except in the map of an operator.
",
    shown: &[
        shown(r#"{"$meta": {"title": "a price"}, "$score": 5}"#, &[yes(r#"{"$score": 5}"#), no(r#"{"$score": 6}"#)]),
        shown(r#"{"$expect": "a", "$score": {"value": 20, "dimension": "style"}}"#, &[yes(r#""a""#), no(r#""b""#)]),
    ],
};

const HOST: Chapter = Chapter {
    title: "What runs code",
    text: "\
The engine that matches knows no scripts. Regular expressions, `$expr`, functions and operators of your own are run by \
its *host*, here the embedded JavaScript engine: no Node.js, no file, no network, no process. An expression may run for one \
second, a call of a function or the loading of its module for five; time in which it waits for matching does not count. \
What is stopped is undecided.

A program that links the library `expect` hands it a host of its own:

| the host | |
| --- | --- |
| `regex` | compiles a regular expression, and later says whether a text matches or why nobody can say |
| `expression` | reads an expression without running it, and says what is wrong with it |
| `evaluate` | runs an expression over named values |
| `function` | finds the function that a reference names, and what it says about itself |
| `call` | calls it, and puts what it asks to have matched back to the engine |
",
    shown: &[],
};

const INVALID: Chapter = Chapter {
    title: "What is refused",
    text: "\
An expectation is read as a whole before anything runs. Everything that is wrong with it is told at its line, all in one \
go, and then nothing runs. A `$name` that is nearly an operator's is an error, any other unknown one a warning: it is \
matched as a key.
",
    shown: &[],
};

/// Expectations that are not valid, or doubtful.
pub(super) const REFUSED: &[&str] = &[
    r#"{"$contain": "a"}"#,
    r#"{"$ref": "a"}"#,
    r#""/(/""#,
    r#"{"$in": 5}"#,
    r#"{"$expr": "actual >"}"#,
    r#"{"$expr": "actul > 1"}"#,
    r#"{"$diff": {"type": "words"}}"#,
    r#"{"$expect": "a", "$threshold": 80}"#,
    r#"{"$expect": "a", "$strategy": "best"}"#,
    r#"{"$meta": {"scroe": 80}, "a": 1}"#,
    r#"{"$schema": {"type": "strng"}}"#,
];
