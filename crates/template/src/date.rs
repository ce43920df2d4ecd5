//! Formatting and parsing of dates.

use jiff::SignedDuration;
use jiff::civil::{DateTime, date};
use jiff::fmt::temporal::Pieces;

use crate::ambient::Ambient;
use crate::error::TemplateError;
use crate::value::{Value, within};

/// Returns a point in time in milliseconds since 1970 (UTC) as shown by the local clock.
pub(crate) fn of_ms(ms: i64, clock: &Ambient) -> DateTime {
    local(ms.saturating_add(i64::from(clock.utc_offset_minutes) * 60_000))
}

/// Returns the date and time when a local clock shows this many milliseconds since 1970, or the nearest one that
/// exists.
fn local(ms: i64) -> DateTime {
    date(1970, 1, 1).at(0, 0, 0, 0).saturating_add(SignedDuration::from_millis(ms))
}

/// Formats `date` according to `format`. Unknown directives are kept unchanged.
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

/// Parses ISO 8601 text or milliseconds since 1970. Without a time zone, the text is in local time.
pub(crate) fn read(value: &Value, clock: &Ambient) -> Result<DateTime, TemplateError> {
    let found = match value {
        Value::Number(number) => return Ok(of_ms(number.as_double() as i64, clock)),
        Value::Text(text) => parse(text.trim(), clock),
        _ => {
            return Err(TemplateError::new(format!(
                "a date is a string or a number of milliseconds, not {}",
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
    let pieces = Pieces::parse(text).ok()?;
    let time = pieces.time();
    if time.is_some() && !text.contains(':') {
        return None;
    }
    let shown = pieces.date().to_datetime(time.unwrap_or_default());
    let Some(offset) = pieces.to_numeric_offset() else { return Some(shown) };
    let ahead = clock.utc_offset_minutes * 60 - offset.seconds();
    let is_possible = offset.seconds().abs() <= 24 * 60 * 60;
    is_possible.then(|| shown.saturating_add(SignedDuration::from_secs(ahead.into())))
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
    fn every_date_field_is_formatted() {
        let format = "%Y %y %m %B %b %d %H %I %p %M %S %A %a %w %f %% %q %";
        let wanted = "2024 24 02 February Feb 29 13 01 PM 05 09 Thursday Thu 4 120000 % %q %";
        assert_eq!(shown("2024-02-29T13:05:09.12", format, 0), wanted);
    }

    #[test]
    fn a_time_with_a_zone_is_converted_and_one_without_is_local() {
        assert_eq!(shown("2024-05-01T23:30:00Z", "%d %H:%M", 60), "02 00:30");
        assert_eq!(shown("2024-05-01T23:30:00+02:00", "%d %H:%M", 0), "01 21:30");
        assert_eq!(shown("2024-05-01T23:30", "%d %H:%M", 60), "01 23:30");
        assert_eq!(shown("2024-05-01", "%d %H:%M", 60), "01 00:00");
    }

    #[test]
    fn a_zone_has_two_hour_digits_and_optional_minutes() {
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
    fn milliseconds_convert_to_dates_and_saturate_at_the_limits() {
        let day = |ms: i64| show(of_ms(ms, &Ambient::default()), "%Y-%m-%d").unwrap().to_text().unwrap().to_string();
        assert_eq!([0, -1, 951_782_400_000].map(day), ["1970-01-01", "1969-12-31", "2000-02-29"]);
        assert_eq!([i64::MAX, i64::MIN].map(day), ["9999-12-31", "-9999-01-01"]);
    }

    #[test]
    fn invalid_dates_are_rejected() {
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
