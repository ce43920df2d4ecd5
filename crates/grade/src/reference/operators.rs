//! The page of the operators: what the engine tells of itself, and operators of the user's own.

use std::fmt::Write;
use std::sync::Arc;

use expect::Host;

use crate::scripts::Scripts;

/// A module with an operator, and what it does.
struct Sample {
    /// The name of its file.
    file: &'static str,
    /// Its text.
    source: &'static str,
    /// An expectation that uses it.
    expectation: &'static str,
    /// Values, whether they match, what they score, and what is said of them.
    values: &'static [(&'static str, bool, f64, &'static str)],
}

const OWN: &str = "\
## Functions and operators of your own

`operators` in a case, in the front matter or in the configuration names them: a map of names to references, or a list \
of references. A reference is `./file.js#export`, `./file.ts#export` or `package#export`; without an export it is the \
default one, or the one called like the operator. In a list, the name is that of the export, else that of the file in \
camel case. The `$` may be left out. Relative paths start at `baseDir`, else at the file. A built-in operator is replaced \
only with `allowOperatorOverride: true`. A reference that leads nowhere, or to something that is no function, is an error \
before anything runs.

A function is called as `(actual, expected, fixture)`. `expected` is what stands under the operator; of a map with \
`$value` it is that, and the other keys are `fixture.$options`. `fixture` has the keys of the case, `$data` (all \
variables), `$options` and `$validate(actual, expected)`, which matches any expectation and promises the result. The \
function may be `async`. In a fixtures file that is a module, a function may also stand in place of an expectation: it is \
called as `(actual, input)`.

| it returns | which means |
| --- | --- |
| `true`, `false` | a match or none |
| a number | a confidence from 0 to 1; it passes from the threshold on, without one unless it is 0 |
| a text | no match; the text says why |
| a map | a result: `score`, `pass`, `message`, `title`, `dimension`, `critical`, `failures` and `details`. One of `score`, `pass`, `failures` must be there; without `pass` the score is a confidence |
| anything else | no match |

A function that throws, or is stopped, has not judged: the trial is undecided.

Properties of the function say more about it: `expects: 'array'` lets it take lists only, `strategy: 'max'` fixes how \
its parts count, `virtual: false` gives it a step of its own in paths (`tags.$myOperator`), and a text is a template for \
the steps of its parts, over `$operator`, `$key`, `$index` and `$count`.
";

const RAW: &str = "\
A function with exactly four parameters, `(actual, expected, ctx, validate)`, matches parts itself. `validate(actual, \
expected, ctx)` promises the result of one. `ctx` tells where it stands (`key`, `data`, `input`, `threshold`, `strict`, \
`scoring`, `maxScore`, `passScore`, `unassignedWeight`, `isKeyPresent` and so on) and has four functions: \
`createChildContext(index, count)` and `createSubContext(path, overrides)` for the parts, `distribute(weights)` for what \
each is worth, `aggregate(results, shares)` for the whole.
";

const SIMPLE: Sample = Sample {
    file: "at-least-words.js",
    source: r"export default function atLeastWords(actual, expected) {
  const count = actual.trim().split(/\s+/).length;
  return count >= expected || `${count} of ${expected} words`;
}
",
    expectation: r#"{"$atLeastWords": 3}"#,
    values: &[(r#""one two three""#, true, 1.0, ""), (r#""one two""#, false, 0.0, "2 of 3 words")],
};

const MATCHING: Sample = Sample {
    file: "pairwise.js",
    source: r"export default async function pairwise(actual, expected, ctx, validate) {
  const shares = ctx.distribute(expected.map(() => null));
  const results = [];
  for (const [index, wanted] of expected.entries()) {
    results.push(await validate(actual[index], wanted, ctx.createChildContext(index, expected.length)));
  }
  return ctx.aggregate(results, shares);
}
pairwise.expects = 'array';
",
    expectation: r#"{"$pairwise": ["/^a/", {"$gt": 1}]}"#,
    values: &[
        (r#"["abc", 2]"#, true, 1.0, ""),
        (r#"["abc", 1]"#, false, 0.5, "$pairwise[1]: 1 is not greater than 1"),
        (r#""abc""#, false, 0.0, "Operator $pairwise requires an array, but got string"),
    ],
};

/// The reference of expectations and operators as Markdown: `docs/reference/operators.md`.
pub fn operators_reference() -> String {
    let host: Arc<dyn Host> = Arc::new(Scripts::default());
    let mut page = expect::reference(&host);
    let _ = write!(page, "\n{OWN}");
    SIMPLE.write(&mut page);
    let _ = write!(page, "\n{RAW}");
    MATCHING.write(&mut page);
    page
}

impl Sample {
    /// Writing to text cannot fail, so the results of `write!` mean nothing here.
    fn write(&self, page: &mut String) {
        let Self { file, source, expectation, values } = self;
        let _ = write!(page, "\n`{file}`, named by `operators: [./{file}]`:\n\n```js\n{source}```\n");
        let _ = write!(page, "\n```json\n{expectation}\n```\n\n```text\n");
        for (value, passes, score, because) in *values {
            let mark = if *passes { '✓' } else { '✗' };
            let partial = *score > 0.0 && *score < 1.0;
            let score = if partial { format!("   scores {score}") } else { String::new() };
            let _ = writeln!(page, "{mark} {value}{score}");
            if !because.is_empty() {
                let _ = writeln!(page, "    ⇒ {because}");
            }
        }
        page.push_str("```\n");
    }
}

#[cfg(test)]
mod tests {
    use expect::{Data, Expectation, OPERATORS, Pass, Rules};
    use model::decode::Problems;
    use model::{Node, Source};
    use serde_json::Value;

    use super::*;

    fn host() -> Arc<dyn Host> {
        Arc::new(Scripts::default())
    }

    #[test]
    fn every_example_of_a_chapter_comes_out_as_shown() {
        assert_eq!(expect::wrong_examples(&host()), Vec::<String>::new());
    }

    #[test]
    fn the_operators_shown_as_modules_do_what_is_shown() {
        for sample in [SIMPLE, MATCHING] {
            let directory = tempfile::tempdir().unwrap();
            std::fs::write(directory.path().join(sample.file), sample.source).unwrap();
            let host = host();
            let wanted: Value = serde_json::from_str(sample.expectation).unwrap();
            let name = wanted.as_object().unwrap().keys().next().unwrap().clone();
            let reference = format!("./{}", sample.file);
            let inferred = script::Reference::parse(&reference).unwrap().inferred_name();
            assert_eq!(format!("${}", inferred.trim_start_matches('$')), name);
            let function = host.function(&reference, &name, directory.path()).unwrap();
            let rules = Rules { operators: vec![(name, function)], ..Rules::default() };
            let mut problems = Problems::new();
            let node = Node::from_json(&wanted, &Source::new("example", sample.expectation));
            let expectation = Expectation::of_value(&node, rules, &host, None, &mut problems);
            assert!(problems.is_empty(), "{problems:?}");
            for (value, passes, score, because) in sample.values {
                let actual: Value = serde_json::from_str(value).unwrap();
                let found = expectation.judge(Some(&actual), &Data::default());
                assert_eq!((found.pass == Pass::Yes, found.score), (*passes, *score), "{value}: {:?}", found.flaws);
                let told: Vec<String> = found.flaws.into_iter().map(told).collect();
                assert_eq!(told.join("; "), *because, "{value}");
            }
        }
    }

    fn told(flaw: expect::Flaw) -> String {
        let failure = flaw.into_failure();
        if failure.key.is_empty() { failure.message } else { format!("{}: {}", failure.key, failure.message) }
    }

    #[test]
    fn the_page_tells_of_every_operator_and_every_example_has_an_outcome() {
        let page = operators_reference();
        for operator in OPERATORS {
            assert!(page.contains(&format!("\n### `{}`\n", operator.name)), "{}", operator.name);
            assert!(!operator.examples.is_empty(), "{}", operator.name);
        }
        assert!(!page.contains("```text\n```"), "an example without values");
        assert!(!page.contains(" \n") && page.ends_with("```\n"));
    }
    #[test]
    fn every_link_within_the_page_leads_to_a_heading() {
        let page = operators_reference();
        let anchor = |heading: &str| {
            let kept = heading.to_lowercase().replace(' ', "-");
            kept.chars().filter(|c| c.is_alphanumeric() || *c == '-').collect::<String>()
        };
        let headings =
            page.lines().filter(|line| line.starts_with("##")).map(|line| line.trim_start_matches(['#', ' ']));
        let anchors: Vec<String> = headings.map(anchor).collect();
        let mut once = anchors.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), anchors.len(), "two headings have one anchor");
        for link in page.split("](#").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(anchors.iter().any(|anchor| anchor == link), "{link}");
        }
    }
}
