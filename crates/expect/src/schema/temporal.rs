//! Formats for dates and times. Each reads a string as seconds, so that two strings in the same format can be
//! compared.

use jiff::civil::Date;

/// Reads a date such as `2024-02-29`, which must exist.
pub(super) fn date(text: &str) -> Option<f64> {
    let [year, month, day] = numbers(text, '-', &[4, 2, 2])?[..] else { return None };
    let narrow = |number: i32| i8::try_from(number).ok();
    let date = Date::new(i16::try_from(year).ok()?, narrow(month)?, narrow(day)?).ok()?;
    Some(date.duration_since(Date::ZERO).as_secs_f64())
}

/// Reads a time with an offset, such as `12:00:00Z`.
pub(super) fn time(text: &str) -> Option<f64> {
    let clock = Clock::read(text)?;
    Some(clock.shown - clock.offset?)
}

/// Reads `12:00:00`, with or without an offset, which is ignored in comparisons.
pub(super) fn iso_time(text: &str) -> Option<f64> {
    Clock::read(text).map(|clock| clock.shown)
}

/// Reads a date and a time with an offset.
pub(super) fn date_time(text: &str) -> Option<f64> {
    let (day, clock) = split(text)?;
    Some(date(day)? + time(clock)?)
}

/// Reads a date and a time. A time without an offset is UTC.
pub(super) fn iso_date_time(text: &str) -> Option<f64> {
    let (day, clock) = split(text)?;
    let clock = Clock::read(clock)?;
    Some(date(day)? + clock.shown - clock.offset.unwrap_or(0.0))
}

/// Splits a string at `t`, `T` or white space.
fn split(text: &str) -> Option<(&str, &str)> {
    text.split_once(|c: char| c == 't' || c == 'T' || c.is_whitespace())
}

/// Reads numbers with these `lengths`, separated by `separator`.
fn numbers(text: &str, separator: char, lengths: &[usize]) -> Option<Vec<i32>> {
    let parts: Vec<&str> = text.split(separator).collect();
    let fits = parts.len() == lengths.len() && parts.iter().zip(lengths).all(|(part, length)| part.len() == *length);
    if !fits || !parts.iter().all(|part| part.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    parts.iter().map(|part| part.parse().ok()).collect()
}

/// A time of day, in seconds.
struct Clock {
    /// Seconds since midnight, as shown on the clock.
    shown: f64,
    /// East is positive.
    offset: Option<f64>,
}

impl Clock {
    fn read(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == ':' || c == '.')).unwrap_or(text.len());
        let (clock, zone) = text.split_at(end);
        let (whole, fraction) = match clock.split_once('.') {
            Some((whole, digits)) if !digits.is_empty() => (whole, format!("0.{digits}").parse().ok()?),
            Some(_) => return None,
            None => (clock, 0.0),
        };
        let [hour, minute, second] = numbers(whole, ':', &[2, 2, 2])?[..] else { return None };
        let offset = if zone.is_empty() { None } else { Some(offset(zone)?) };
        // A leap second occurs only at the end of a UTC day.
        let last_minute = (hour * 60 + minute - offset.unwrap_or(0) / 60).rem_euclid(24 * 60) == 24 * 60 - 1;
        let exists = hour <= 23 && minute <= 59 && (second <= 59 || (second == 60 && last_minute));
        let shown = f64::from(hour * 3600 + minute * 60 + second) + fraction;
        exists.then_some(Self { shown, offset: offset.map(f64::from) })
    }
}

/// Reads an offset (`Z`, `+01`, `+0130` or `+01:30`) in seconds.
fn offset(zone: &str) -> Option<i32> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = if zone.starts_with('+') { 1 } else { -1 };
    let digits = zone.strip_prefix(['+', '-'])?;
    let [hours, minutes] = (match digits.len() {
        2 => numbers(digits, ':', &[2]).map(|hours| vec![hours[0], 0]),
        4 => numbers(digits, ':', &[4]).map(|both| vec![both[0] / 100, both[0] % 100]),
        _ => numbers(digits, ':', &[2, 2]),
    })?[..] else {
        return None;
    };
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 3600 + minutes * 60))
}
