//! Formats of dates and times, and their order.

use std::cmp::Ordering;
use std::str::FromStr;

use jiff::civil::Date;

/// True for `2024-02-29`, a day that exists.
pub(super) fn is_date(text: &str) -> bool {
    date(text).is_some()
}

/// True for `12:00:00Z`, with an offset.
pub(super) fn is_time(text: &str) -> bool {
    Clock::read(text).is_some_and(|clock| clock.offset.is_some())
}

/// True for `12:00:00`, with or without an offset.
pub(super) fn is_iso_time(text: &str) -> bool {
    Clock::read(text).is_some()
}

/// True for a date and a time with an offset.
pub(super) fn is_date_time(text: &str) -> bool {
    split(text).is_some_and(|(date, time)| is_date(date) && is_time(time))
}

/// True for a date and a time with or without an offset.
pub(super) fn is_iso_date_time(text: &str) -> bool {
    split(text).is_some_and(|(date, time)| is_date(date) && is_iso_time(time))
}

/// True for `P1DT2H`, or weeks alone: `P3W`.
pub(super) fn is_duration(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('P').filter(|rest| !rest.is_empty()) else { return false };
    if let Some(weeks) = rest.strip_suffix('W') {
        return !weeks.is_empty() && weeks.bytes().all(|b| b.is_ascii_digit());
    }
    let (date, time) = match rest.split_once('T') {
        Some((_, "")) => return false,
        Some((date, time)) => (date, time),
        None => (rest, ""),
    };
    amounts(date, "YMD") && amounts(time, "HMS")
}

/// True if `text` is a sequence of numbers, each followed by one of `units`, in that order.
fn amounts(text: &str, units: &str) -> bool {
    let mut units = units.chars();
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let Some(unit) = rest[digits..].chars().next().filter(|_| digits > 0) else { return false };
        if !units.any(|known| known == unit) {
            return false;
        }
        rest = &rest[digits + unit.len_utf8()..];
    }
    true
}

/// Compares dates. Returns `None` if one is not a date.
pub(super) fn compare_dates(left: &str, right: &str) -> Option<Ordering> {
    Some(date(left)?.cmp(&date(right)?))
}

/// Compares times as instants of one day. A time without offset is UTC.
pub(super) fn compare_times(left: &str, right: &str) -> Option<Ordering> {
    Clock::read(left)?.instant().partial_cmp(&Clock::read(right)?.instant())
}

/// Compares local times, ignoring the offsets.
pub(super) fn compare_iso_times(left: &str, right: &str) -> Option<Ordering> {
    Clock::read(left)?.shown().partial_cmp(&Clock::read(right)?.shown())
}

/// Compares instants. A time without offset is UTC.
pub(super) fn compare_date_times(left: &str, right: &str) -> Option<Ordering> {
    instant(left)?.partial_cmp(&instant(right)?)
}

fn instant(text: &str) -> Option<f64> {
    let (day, time) = split(text)?;
    Some(date(day)?.duration_since(Date::ZERO).as_secs_f64() + Clock::read(time)?.instant())
}

/// Splits at the only `t`, `T` or white space.
fn split(text: &str) -> Option<(&str, &str)> {
    let is_separator = |c: char| c == 't' || c == 'T' || c.is_whitespace();
    let (date, time) = text.split_once(is_separator)?;
    (!time.contains(is_separator)).then_some((date, time))
}

/// A day that exists.
fn date(text: &str) -> Option<Date> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || !text.is_ascii() || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    Date::new(digits(&text[..4])?, digits(&text[5..7])?, digits(&text[8..])?).ok()
}

fn digits<T: FromStr>(text: &str) -> Option<T> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Time of day.
struct Clock {
    hour: i32,
    minute: i32,
    second: f64,
    /// Offset in minutes, positive to the east.
    offset: Option<i32>,
}

impl Clock {
    fn read(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() < 8 || !text.is_ascii() || bytes[2] != b':' || bytes[5] != b':' {
            return None;
        }
        let hour = digits(&text[..2])?;
        let minute = digits(&text[3..5])?;
        digits::<i32>(&text[6..8])?;
        let fraction = match &text[8..] {
            rest if rest.starts_with('.') => {
                let length = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
                if length == 0 {
                    return None;
                }
                length + 1
            }
            _ => 0,
        };
        let second: f64 = text[6..8 + fraction].parse().ok()?;
        let offset = match &text[8 + fraction..] {
            "" => None,
            zone => Some(offset(zone)?),
        };
        let clock = Self { hour, minute, second, offset };
        (hour <= 23 && minute <= 59 && (second < 60.0 || clock.is_leap_second())).then_some(clock)
    }

    /// True if this is a leap second, which only exists at the end of a UTC day.
    fn is_leap_second(&self) -> bool {
        let utc = self.hour * 60 + self.minute - self.offset.unwrap_or(0);
        self.second < 61.0 && utc.rem_euclid(24 * 60) == 24 * 60 - 1
    }

    /// Returns the seconds since midnight UTC.
    fn instant(&self) -> f64 {
        self.shown() - f64::from(self.offset.unwrap_or(0)) * 60.0
    }

    /// Returns the seconds since midnight in local time.
    fn shown(&self) -> f64 {
        f64::from(self.hour * 3600 + self.minute * 60) + self.second
    }
}

/// Parses `Z`, `+01`, `+0130` or `+01:30`. Returns minutes.
fn offset(zone: &str) -> Option<i32> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, rest) = match zone.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_at_checked(2)?;
    let minutes = minutes.strip_prefix(':').filter(|rest| !rest.is_empty()).unwrap_or(minutes);
    let minutes = match minutes.len() {
        0 => 0,
        2 => digits(minutes)?,
        _ => return None,
    };
    let hours: i32 = digits(hours)?;
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes))
}
