//! Parses the headers in which a provider asks the client to wait.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// Parses the value of `Retry-After`: seconds, or a date relative to `now`. A date in the past means no wait.
pub fn parse(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let then = DateTimeParser::new().parse_timestamp(value).ok()?;
    Some(Duration::try_from(then.duration_since(now)).unwrap_or_default())
}

/// Parses the value of `retry-after-ms`, which some vendors send in addition.
pub(crate) fn parse_ms(value: &str) -> Option<Duration> {
    let milliseconds: f64 = value.trim().parse().ok()?;
    Duration::try_from_secs_f64(milliseconds / 1000.0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_parsed() {
        let now: Timestamp = "1994-11-06T08:49:30Z".parse().unwrap();
        assert_eq!(parse("7", now), Some(Duration::from_secs(7)));
        assert_eq!(parse(" 0.5 ", now), Some(Duration::from_millis(500)));
        assert_eq!(parse("Sun, 06 Nov 1994 08:49:37 GMT", now), Some(Duration::from_secs(7)));
        assert_eq!(parse("Sun, 06 Nov 1994 08:49:00 GMT", now), Some(Duration::ZERO));
        for nonsense in ["", "soon", "-1", "NaN", "inf", "Sun, 99 Nov 1994 08:49:37 GMT"] {
            assert_eq!(parse(nonsense, now), None, "{nonsense}");
        }
        assert_eq!(parse_ms("1500"), Some(Duration::from_millis(1500)));
        assert_eq!(parse_ms("x"), None);
    }
}
