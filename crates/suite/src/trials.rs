//! Reads the number of trials of a case, and the pass rate that the case requires.

use model::decode::{self, Fields, Problems};
use model::{Diagnostic, InvalidText, Node, NodeKind, PassRate, Trials};

/// Reads `trials`: a number, `auto` or `auto:MAX`.
pub fn trials(node: &Node, problems: &mut Problems) -> Option<Trials> {
    let (shown, parsed) = match &node.kind {
        NodeKind::Number(number) => (number.to_string(), number.to_string().parse()),
        NodeKind::String(text) => (format!("`{text}`"), text.parse()),
        _ => (node.kind_name().to_owned(), "".parse()),
    };
    let wrong = |form: InvalidText| node.error(format!("`trials` must be {form}, not {shown}"));
    parsed.map_err(|form| problems.push(wrong(form))).ok()
}

/// Reads `pass_rate`: the smallest acceptable rate, alone or with a tolerance.
pub fn pass_rate(node: &Node, problems: &mut Problems) -> Option<PassRate> {
    let NodeKind::Map(_) = &node.kind else {
        return rate(node, "`pass_rate`", problems).map(PassRate::at_least);
    };
    let mut fields = Fields::of(node, "`pass_rate`", problems)?;
    let required = fields.require("at_least", problems);
    let at_least = required.and_then(|node| rate(node, "`at_least`", problems));
    let tolerance = fields.get("tolerance");
    fields.finish(problems);
    let default = PassRate::at_least(at_least?);
    let Some(node) = tolerance else { return Some(default) };
    let written = number(node);
    if let Some(tolerance) = written.filter(|tolerance| (0.0..default.at_least).contains(tolerance)) {
        return Some(PassRate { tolerance, ..default });
    }
    let shown = decode::shown(node);
    let least = default.at_least;
    let message = format!("`tolerance` must be a number from 0 to less than `at_least`, which is {least}, not {shown}");
    problems.push(percent_help(node.error(message), written));
    None
}

/// Reads `precision`: half of the widest acceptable interval.
pub fn precision(node: &Node, problems: &mut Problems) -> Option<f64> {
    let written = number(node);
    let precision = written.filter(|precision| (0.001..0.5).contains(precision));
    if precision.is_none() {
        let shown = decode::shown(node);
        let problem = node.error(format!("`precision` must be a number from 0.001 to less than 0.5, not {shown}"));
        problems.push(percent_help(problem, written));
    }
    precision
}

/// Reads a rate above 0.
fn rate(node: &Node, name: &str, problems: &mut Problems) -> Option<f64> {
    let written = number(node);
    let rate = written.filter(|rate| *rate > 0.0 && *rate <= 1.0);
    if rate.is_none() {
        let shown = decode::shown(node);
        let problem = node.error(format!("{name} must be a number above 0 and at most 1, not {shown}"));
        problems.push(percent_help(problem, written));
    }
    rate
}

/// Adds help on how to write a percentage as a share.
fn percent_help(problem: Diagnostic, written: Option<f64>) -> Diagnostic {
    match written.filter(|written| *written > 1.0 && *written <= 100.0) {
        Some(percent) => problem.help(format!("write {percent} % as {}", percent / 100.0)),
        None => problem,
    }
}

fn number(node: &Node) -> Option<f64> {
    decode::number(node)?.as_f64()
}

#[cfg(test)]
mod tests {
    use model::Source;
    use serde_json::json;

    use super::*;

    fn read<T>(value: &serde_json::Value, of: fn(&Node, &mut Problems) -> Option<T>) -> Result<T, String> {
        let (node, mut problems) = (Node::from_json(value, &Source::new("f", "")), Problems::new());
        of(&node, &mut problems).ok_or_else(|| {
            let problem = problems.first().unwrap();
            problem.message.clone() + &problem.help.iter().map(|help| format!(" ({help})")).collect::<String>()
        })
    }

    #[test]
    fn trials_are_a_number_or_automatic() {
        let trials = |value| read(&value, trials).map(|trials| trials.to_string());
        assert_eq!((trials(json!(3)).as_deref(), trials(json!("auto:12")).as_deref()), (Ok("3"), Ok("auto:12")));
        let wrong = "`trials` must be a number from 1 to 100000, `auto` or `auto:MAX`, such as `auto:40`, not ";
        for (value, shown) in
            [(json!(0), "0"), (json!("auto:0"), "`auto:0`"), (json!([]), "a list"), (json!(1.5), "1.5")]
        {
            assert_eq!(trials(value), Err(format!("{wrong}{shown}")));
        }
    }

    #[test]
    fn a_pass_rate_is_a_share_with_an_optional_tolerance() {
        let rate = |value| read(&value, pass_rate).map(|rate| (rate.at_least, rate.tolerance));
        assert_eq!(rate(json!(0.9)), Ok((0.9, 0.1)));
        assert_eq!(rate(json!({ "at_least": 0.1 })), Ok((0.1, 0.05)));
        assert_eq!(rate(json!({ "at_least": 1, "tolerance": 0 })), Ok((1.0, 0.0)));
        let message = |value| rate(value).unwrap_err();
        assert_eq!(
            message(json!({ "at_least": 90 })),
            "`at_least` must be a number above 0 and at most 1, not 90 (write 90 % as 0.9)"
        );
        assert_eq!(message(json!(0)), "`pass_rate` must be a number above 0 and at most 1, not 0");
        assert_eq!(message(json!("90%")), "`pass_rate` must be a number above 0 and at most 1, not a string");
        assert!(message(json!({ "tolerance": 0.1 })).starts_with("`pass_rate` has no `at_least`"));
        assert_eq!(
            message(json!({ "at_least": 0.5, "tolerance": 0.5 })),
            "`tolerance` must be a number from 0 to less than `at_least`, which is 0.5, not 0.5"
        );
    }
}
