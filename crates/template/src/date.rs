//! Formatting and parsing of dates.

use std::str::FromStr;

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time, date};

use crate::ambient::Ambient;
use crate::error::TemplateError;
use crate::value::{Value, within};

/// Returns the moment in milliseconds since 1970 (UTC) as the local clock shows it.
pub(crate) fn of_ms(ms: i64, clock: &Ambient) -> DateTime {
    local(ms.saturating_add(i64::from(clock.utc_offset_minutes) * 60_000))
}

/// Returns the date and time of a local clock that shows this many milliseconds since 1970, or the nearest that exists.
fn local(ms: i64) -> DateTime {
    date(1970, 1, 1).at(0, 0, 0, 0).saturating_add(SignedDuration::from_millis(ms))
}

/// Formats `date` with `format`. Unknown directives are kept as they are.
pub(crate) fn show(date: DateTime, format: &str) -> Result<Value, TemplateError> {
    let mut text = String::new();
    let mut chars = format.chars();
    while let Some(found) = chars.next() {
        let mut after = chars.clone();
        let field = if found == '%' { after.next().and_then(|letter| field(date, letter)) } else { None };
        match field {
            Some(field) => {
                text.push_str(&field);
                chars = after;
            }
            None => text.push(found),
        }
        within(text.len())?;
    }
    Ok(Value::Text(text.into()))
}

fn field(date: DateTime, letter: char) -> Option<String> {
    Some(match letter {
        'Y' => date.year().to_string(),
        'y' => format!("{:02}", date.year().rem_euclid(100)),
        'f' => format!("{:06}", date.subsec_nanosecond() / 1_000),
        'm' | 'B' | 'b' | 'd' | 'H' | 'I' | 'p' | 'M' | 'S' | 'A' | 'a' | 'w' | '%' => {
            date.strftime(&format!("%{letter}")).to_string()
        }
        _ => return None,
    })
}

/// Parses an ISO 8601 text or milliseconds since 1970. Without a time zone, it is local time.
pub(crate) fn read(value: &Value, clock: &Ambient) -> Result<DateTime, TemplateError> {
    let found = match value {
        Value::Number(number) => return Ok(of_ms(number.as_double() as i64, clock)),
        Value::Text(text) => parse(text.trim(), clock),
        _ => {
            return Err(TemplateError::new(format!(
                "a date is text or a number of milliseconds, not {}",
                value.kind()
            )));
        }
    };
    found.ok_or_else(|| {
        let written = value.to_text().unwrap_or_default();
        TemplateError::new(format!("`{written}` is not a date"))
            .help("write it as `2024-05-01` or `2024-05-01T10:20:30Z`")
    })
}

fn parse(text: &str, clock: &Ambient) -> Option<DateTime> {
    let (day, rest) = text.split_at_checked(10)?;
    let mut fields = day.split('-');
    let (year, month, day) = (fields.next()?, fields.next()?, fields.next()?);
    // The text has ten characters, so there is no fourth field.
    let day = Date::new(fixed(year, 4)?, fixed(month, 2)?, fixed(day, 2)?).ok()?;
    let Some(time) = rest.strip_prefix(['T', 't', ' ']) else {
        return rest.is_empty().then(|| day.at(0, 0, 0, 0));
    };
    let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (time, zone) = time.split_at(zone_at);
    let shown = day.to_datetime(time_of_day(time)?);
    if zone.is_empty() {
        return Some(shown);
    }
    let ahead = i64::from(clock.utc_offset_minutes) - offset_minutes(zone)?;
    Some(shown.saturating_add(SignedDuration::from_mins(ahead)))
}

fn time_of_day(time: &str) -> Option<Time> {
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut fields = time.split(':').map(whole);
    let (hour, minute) = (fields.next()??, fields.next()??);
    let second = fields.next().unwrap_or(Some(0))?;
    if fields.next().is_some() {
        return None;
    }
    whole::<i64>(fraction)?;
    let millis: i32 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    Time::new(hour, minute, second, millis * 1_000_000).ok()
}

/// Parses `Z`, `+02`, `+0200` or `+02:00`. Returns minutes.
fn offset_minutes(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        (_, digits) => (-1, digits),
    };
    let (hours, minutes) = digits.split_at_checked(2)?;
    let minutes = match minutes {
        "" => 0,
        _ => fixed(minutes.strip_prefix(':').unwrap_or(minutes), 2)?,
    };
    let offset = fixed::<i64>(hours, 2)?.checked_mul(60)?.checked_add(minutes)?;
    (minutes < 60 && offset <= 24 * 60).then_some(sign * offset)
}

/// Parses exactly `count` digits.
fn fixed<T: FromStr>(digits: &str, count: usize) -> Option<T> {
    (digits.len() == count).then(|| whole(digits))?
}

/// Parses a text that only has digits.
fn whole<T: FromStr>(digits: &str) -> Option<T> {
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(date: &str, format: &str, offset: i32) -> String {
        let clock = Ambient { utc_offset_minutes: offset, ..Ambient::default() };
        let moment = read(&Value::text(date), &clock).unwrap();
        show(moment, format).unwrap().to_text().unwrap().to_string()
    }

    #[test]
    fn every_field_is_shown() {
        let format = "%Y %y %m %B %b %d %H %I %p %M %S %A %a %w %f %% %q %";
        let wanted = "2024 24 02 February Feb 29 13 01 PM 05 09 Thursday Thu 4 120000 % %q %";
        assert_eq!(shown("2024-02-29T13:05:09.12", format, 0), wanted);
    }

    #[test]
    fn a_zone_is_turned_into_local_time_and_none_is_local_already() {
        assert_eq!(shown("2024-05-01T23:30:00Z", "%d %H:%M", 60), "02 00:30");
        assert_eq!(shown("2024-05-01T23:30:00+02:00", "%d %H:%M", 0), "01 21:30");
        assert_eq!(shown("2024-05-01T23:30", "%d %H:%M", 60), "01 23:30");
        assert_eq!(shown("2024-05-01", "%d %H:%M", 60), "01 00:00");
    }

    #[test]
    fn a_zone_is_two_digits_of_hours_and_two_or_none_of_minutes() {
        let hour = |zone: &str| shown(&format!("2024-05-01T12:00:00{zone}"), "%H:%M", 0);
        assert_eq!([hour("+01"), hour("-0130"), hour("+01:30")], ["11:00", "13:30", "10:30"]);
        for zone in
            ["+1", "+01:", "+01:5", "+01:9223372036854775807", "+01:60", "+25:00", "+0:100", "-:0100", "+01:0:0", "+é"]
        {
            let date = Value::text(&format!("2024-05-01T12:00:00{zone}"));
            assert!(read(&date, &Ambient::default()).is_err(), "{zone}");
        }
    }

    #[test]
    fn milliseconds_are_days_before_and_after_1970_and_what_is_too_far_is_the_end() {
        let day = |ms: i64| show(of_ms(ms, &Ambient::default()), "%Y-%m-%d").unwrap().to_text().unwrap().to_string();
        assert_eq!([0, -1, 951_782_400_000].map(day), ["1970-01-01", "1969-12-31", "2000-02-29"]);
        assert_eq!([i64::MAX, i64::MIN].map(day), ["9999-12-31", "-9999-01-01"]);
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for wrong in [
            "",
            "today",
            "2023-02-29",
            "2024-13-01",
            "2024-05-01T25:00",
            "2024-05-01T10",
            "2024-05-01X",
            "é024-05-012",
            "2024-1-1-1",
            "20245-1-01",
        ] {
            assert!(read(&Value::text(wrong), &Ambient::default()).is_err(), "{wrong}");
        }
    }
}
