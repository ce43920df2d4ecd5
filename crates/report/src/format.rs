//! Formatting of numbers for display.

use jiff::Timestamp;
use model::statistics::Bounds;
use model::{AuxiliaryUsage, ModelTraffic, Tokens};

/// Formats a time in milliseconds: `12ms`, `1.2s`, `1m03s`, `1h03m`.
pub fn elapsed(ms: u64) -> String {
    if ms < 1000 {
        format!("{ms}ms")
    } else if ms < 59_950 {
        format!("{:.1}s", ms as f64 / 1000.0)
    } else {
        let seconds = (ms + 500) / 1000;
        if seconds < 3600 {
            format!("{}m{:02}s", seconds / 60, seconds % 60)
        } else {
            format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60)
        }
    }
}

/// Formats a round duration in milliseconds, such as a setting: `30s`, `1m30s`, `10m`, `2h`.
pub(crate) fn span(ms: u64) -> String {
    let seconds = (ms + 500) / 1000;
    if ms < 1000 {
        return format!("{ms}ms");
    }
    let parts = [(seconds / 3600, 'h'), (seconds % 3600 / 60, 'm'), (seconds % 60, 's')];
    parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count}{unit}")).collect()
}

/// Returns the milliseconds between two moments, 0 if they are in the wrong order.
pub(crate) fn between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)
}

/// Formats a number as `1,234,567`.
pub(crate) fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats US dollars as `$0.0123`, and amounts of 100 dollars or more as `$123.45`.
pub(crate) fn money(usd: f64) -> String {
    if usd.abs() >= 100.0 { format!("${usd:.2}") } else { format!("${usd:.4}") }
}

/// Formats a share as `84%`. Only exactly 1 is shown as 100 %, and only exactly 0 as 0 %.
pub fn percent(share: f64) -> String {
    let rounded = (share * 100.0).round();
    let honest = if share < 1.0 && rounded >= 100.0 {
        99.0
    } else if share > 0.0 && rounded <= 0.0 {
        1.0
    } else {
        rounded
    };
    format!("{honest}%")
}

/// Formats a share with up to three decimals: `99.9%`.
pub(crate) fn precise_percent(share: f64) -> String {
    format!("{}%", (share * 100_000.0).round() / 1_000.0)
}

/// Formats a range of shares as `45-94%`.
pub(crate) fn range([low, high]: [f64; 2]) -> String {
    format!("{}-{}", percent(low).trim_end_matches('%'), percent(high))
}

/// Formats a share as `84%`, or as `45-94%` if it is not known.
pub(crate) fn share(bounds: Bounds) -> String {
    bounds.value().map_or_else(|| range([bounds.min, bounds.max]), percent)
}

/// Formats a difference of two shares in percentage points: `+33`, `-4`, `+0.4`, `0`.
pub(crate) fn gain(difference: f64) -> String {
    let points = difference * 100.0;
    let rounded = if points.abs() < 1.0 { (points * 10.0).round() / 10.0 } else { points.round() };
    if rounded == 0.0 { "0".into() } else { format!("{rounded:+}") }
}

/// Formats an interval of such differences as `+5 to +61`.
pub(crate) fn gains([low, high]: [f64; 2]) -> String {
    format!("{} to {}", gain(low), gain(high))
}

/// Formats a p-value: `0.031`, `0.25`, `<0.001`.
pub(crate) fn p_value(p_value: f64) -> String {
    match p_value {
        p if p < 0.001 => "<0.001".into(),
        p if p < 0.9995 => format!("{p:.3}").trim_end_matches('0').to_owned(),
        _ => "1".into(),
    }
}

/// Formats a difference with its sign; `format` formats its amount.
pub(crate) fn signed(difference: f64, format: impl Fn(f64) -> String) -> String {
    let amount = format(difference.abs());
    // An amount that is shown as zero has no sign.
    if amount == format(0.0) {
        return amount;
    }
    format!("{}{amount}", if difference < 0.0 { '-' } else { '+' })
}

/// Formats seconds like [`elapsed`].
pub(crate) fn seconds(seconds: f64) -> String {
    elapsed((seconds * 1000.0).round().max(0.0) as u64)
}

/// Formats a mean as `1,234,567`.
pub(crate) fn rounded(value: f64) -> String {
    number(value.round().max(0.0) as u64)
}

/// Formats points of a score with at most two decimals: `76`, `33.33`.
pub(crate) fn points(points: f64) -> String {
    let rounded = (points * 100.0).round() / 100.0;
    // Avoids `-0`.
    if rounded == 0.0 { "0".into() } else { format!("{rounded}") }
}

/// Formats a count with its noun: `1 trial`, `2 trials`, `3 sandboxes`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{} {}", number(count as u64), model::text::plural(count, noun))
}

/// Formats a note after a name, such as ` (nightly)` for a label. Empty if there is none.
pub(crate) fn in_parentheses(note: Option<&str>) -> String {
    note.map_or_else(String::new, |note| format!(" ({note})"))
}

/// Formats the version after a name. Empty if there is none.
pub(crate) fn version(version: Option<&str>) -> String {
    version.map_or_else(String::new, |version| format!(" {version}"))
}

/// Formats a time as `2026-11-21T21:48Z`, in UTC, so that it is the same on every machine.
pub(crate) fn timestamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%MZ").to_string()
}

/// Returns the share of input tokens that came from a cache; `None` if none did.
pub(crate) fn cached(tokens: &Tokens) -> Option<f64> {
    (tokens.cache_read > 0).then(|| tokens.cache_read as f64 / tokens.all_input() as f64)
}

/// Formats tokens as `1,234 in + 56 out tokens (cache read 84%)`, where `unit` is ` tokens`.
pub(crate) fn tokens_in_and_out(tokens: &Tokens, unit: &str) -> String {
    let mut text = format!("{} in + {} out{unit}", number(tokens.all_input()), number(tokens.output));
    if let Some(share) = cached(tokens) {
        text.push_str(&format!(" (cache read {})", percent(share)));
    }
    text
}

/// Formats usage other than the agent's as `12 requests, 3,400 tokens, $0.0100, 2 cached`.
pub(crate) fn model_usage(usage: &AuxiliaryUsage) -> String {
    if usage.requests == 0 && usage.cached == 0 {
        return "no request was answered".to_owned();
    }
    let tokens = usage.tokens.as_ref().map_or_else(|| "tokens n/a".into(), |tokens| number(tokens.total()) + " tokens");
    let cost = usage.cost_usd.map_or_else(|| "cost n/a".into(), money);
    let mut parts = vec![counted(usize::try_from(usage.requests).unwrap_or(usize::MAX), "request"), tokens, cost];
    if usage.cached > 0 {
        // If there were no requests, there are no tokens to report.
        parts.retain(|part| usage.requests > 0 || part != "tokens n/a");
        parts.push(format!("{} cached", number(usage.cached)));
    }
    parts.join(", ")
}

/// Formats observed traffic as `12 requests (10 main, 2 side, 1 retry), 3,400 tokens, $0.0100, first byte 120ms`.
pub(crate) fn model_traffic(traffic: &ModelTraffic) -> String {
    let kinds = [
        (traffic.main, "main"),
        (traffic.sub_agents, "of sub-agents"),
        (traffic.side, "side"),
        (traffic.other, "other"),
        (traffic.retries, "repeated"),
    ];
    let kinds: Vec<String> = kinds
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, kind)| format!("{} {kind}", number(*count)))
        .collect();
    let usage =
        AuxiliaryUsage { requests: traffic.requests, cached: 0, tokens: traffic.tokens, cost_usd: traffic.cost_usd };
    let mut text = format!("{} ({})", model_usage(&usage), kinds.join(", "));
    if let Some(first_byte) = traffic.first_byte_ms {
        text.push_str(&format!(", first byte {} (at most {})", elapsed(first_byte.median), elapsed(first_byte.max)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short_and_never_show_sixty_seconds() {
        let read: Vec<String> = [0, 999, 1000, 1234, 59_949, 59_950, 63_000, 3_599_700, 3_780_000].map(elapsed).into();
        assert_eq!(read, ["0ms", "999ms", "1.0s", "1.2s", "59.9s", "1m00s", "1m03s", "1h00m", "1h03m"]);
    }

    #[test]
    fn a_round_duration_is_formatted_as_users_would_write_it() {
        let read: Vec<String> = [500, 1000, 29_999, 90_000, 600_000, 7_200_000].map(span).into();
        assert_eq!(read, ["500ms", "1s", "30s", "1m30s", "10m", "2h"]);
    }

    #[test]
    fn almost_100_percent_is_not_shown_as_100_percent() {
        assert_eq!(percent(0.999), "99%");
        assert_eq!(percent(0.001), "1%");
        assert_eq!((percent(1.0), percent(0.0), percent(0.5)), ("100%".into(), "0%".into(), "50%".into()));
    }

    #[test]
    fn differences_have_a_sign_unless_they_are_zero() {
        let gains: Vec<String> = [0.333, -0.04, 0.004, -0.0001, 0.0, 1.0].map(gain).into();
        assert_eq!(gains, ["+33", "-4", "+0.4", "0", "0", "+100"]);
        assert_eq!(signed(-11.5, seconds), "-11.5s");
        assert_eq!([570.4, -0.2].map(|tokens| signed(tokens, rounded)), ["+570", "0"]);
        assert_eq!([-0.0016, 0.00001].map(|cost| signed(cost, money)), ["-$0.0016", "$0.0000"]);
        let chances: Vec<String> = [0.0001, 0.03125, 0.125, 0.5, 0.9999, 1.0].map(p_value).into();
        assert_eq!(chances, ["<0.001", "0.031", "0.125", "0.5", "1", "1"]);
        assert_eq!((range([0.0, 0.434]), super::gains([-0.05, 0.61])), ("0-43%".into(), "-5 to +61".into()));
    }

    #[test]
    fn score_points_have_no_unnecessary_decimals() {
        let read: Vec<String> = [100.0, 33.333_333, 0.1 + 0.2, -0.001, -20.0, 79.999].map(points).into();
        assert_eq!(read, ["100", "33.33", "0.3", "0", "-20", "80"]);
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([1, 999, 1000, 1_234_567].map(number), ["1", "999", "1,000", "1,234,567"]);
        assert_eq!((money(0.01234), money(123.456)), ("$0.0123".into(), "$123.46".into()));
    }

    #[test]
    fn judge_usage_is_shown_and_unknown_values_are_not_invented() {
        let tokens = Tokens { input: 3000, output: 400, ..Tokens::default() };
        let known = AuxiliaryUsage { requests: 12, cached: 2, tokens: Some(tokens), cost_usd: Some(0.01) };
        assert_eq!(model_usage(&known), "12 requests, 3,400 tokens, $0.0100, 2 cached");
        let unknown = AuxiliaryUsage { requests: 1, ..AuxiliaryUsage::default() };
        assert_eq!(model_usage(&unknown), "1 request, tokens n/a, cost n/a");
    }
}
