//! Formatting and parsing of dates.

use std::fmt::Write as _;

use crate::ambient::Ambient;
use crate::error::Failure;
use crate::value::{Value, within};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const MS_OF_DAY: i64 = 86_400_000;

/// The maximum distance from 1970 in ECMAScript, in both directions.
const FURTHEST_MS: i64 = 100_000_000 * MS_OF_DAY;

/// Date and time in local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Milliseconds since 1970, in local time.
    local_ms: i64,
}

impl Moment {
    /// Creates a moment from milliseconds since 1970 (UTC).
    pub(crate) fn of_ms(ms: i64, clock: &Ambient) -> Self {
        Self::local(ms.saturating_add(i64::from(clock.utc_offset_minutes) * 60_000))
    }

    fn local(local_ms: i64) -> Self {
        Self { local_ms: local_ms.clamp(-FURTHEST_MS, FURTHEST_MS) }
    }

    /// Returns year, month and day. Month and day start at 1.
    fn date(self) -> (i64, i64, i64) {
        // Days since 1 March of the year 0, in eras of 400 years, which all have the same length.
        let days = self.local_ms.div_euclid(MS_OF_DAY) + 719_468;
        let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        (era * 400 + year + i64::from(month <= 2), month, day)
    }

    fn ms_of_day(self) -> i64 {
        self.local_ms.rem_euclid(MS_OF_DAY)
    }

    /// Returns the day of the week. Sunday is 0.
    fn weekday(self) -> i64 {
        (self.local_ms.div_euclid(MS_OF_DAY) + 4).rem_euclid(7)
    }
}

/// Formats `date` with `format`. Unknown directives are kept as they are.
pub(crate) fn show(date: &Moment, format: &str) -> Result<Value, Failure> {
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

fn field(date: &Moment, letter: char) -> Option<String> {
    let (year, month, day) = date.date();
    let time = date.ms_of_day();
    let hour = time / 3_600_000;
    let named =
        |names: &'static [&'static str], at: i64| usize::try_from(at).ok().and_then(|at| names.get(at)).copied();
    let short = |name: &str| name.chars().take(3).collect::<String>();
    Some(match letter {
        'Y' => year.to_string(),
        'y' => format!("{:02}", year.rem_euclid(100)),
        'm' => format!("{month:02}"),
        'B' => named(&MONTHS, month - 1)?.to_owned(),
        'b' => short(named(&MONTHS, month - 1)?),
        'd' => format!("{day:02}"),
        'H' => format!("{hour:02}"),
        'I' => format!("{:02}", (hour + 11) % 12 + 1),
        'p' => if hour < 12 { "AM" } else { "PM" }.to_owned(),
        'M' => format!("{:02}", time / 60_000 % 60),
        'S' => format!("{:02}", time / 1_000 % 60),
        'f' => {
            let mut micros = String::new();
            let _ = write!(micros, "{:06}", time % 1_000 * 1_000);
            micros
        }
        'A' => named(&DAYS, date.weekday())?.to_owned(),
        'a' => short(named(&DAYS, date.weekday())?),
        'w' => date.weekday().to_string(),
        '%' => "%".to_owned(),
        _ => return None,
    })
}

/// Parses an ISO 8601 text or milliseconds since 1970. Without a time zone, it is local time.
pub(crate) fn read(value: &Value, clock: &Ambient) -> Result<Moment, Failure> {
    let found = match value {
        Value::Number(number) => return Ok(Moment::of_ms(number.as_double() as i64, clock)),
        Value::Text(text) => parse(text.trim(), clock),
        _ => return Err(Failure::new(format!("a date is text or a number of milliseconds, not {}", value.kind()))),
    };
    found.ok_or_else(|| {
        let written = value.to_text().unwrap_or_default();
        Failure::new(format!("`{written}` is no date")).help("write it as `2024-05-01` or `2024-05-01T10:20:30Z`")
    })
}

fn parse(text: &str, clock: &Ambient) -> Option<Moment> {
    let (date, rest) = text.split_at_checked(10)?;
    let mut fields = date.split('-');
    let (year, month, day) = (fields.next()?, fields.next()?, fields.next()?);
    // The text has ten characters, so there is no fourth field.
    let (year, month, day) = (fixed(year, 4)?, fixed(month, 2)?, fixed(day, 2)?);
    let days = days_since_1970(year, month, day)?;
    let Some(time) = rest.strip_prefix(['T', 't', ' ']) else {
        return rest.is_empty().then(|| Moment::local(days * MS_OF_DAY));
    };
    let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (time, zone) = time.split_at(zone_at);
    let local_ms = days.checked_mul(MS_OF_DAY)?.checked_add(ms_of_day(time)?)?;
    if zone.is_empty() {
        return Some(Moment::local(local_ms));
    }
    let ahead_ms = offset_minutes(zone)?.checked_mul(60_000)?;
    Some(Moment::of_ms(local_ms.checked_sub(ahead_ms)?, clock))
}

fn ms_of_day(time: &str) -> Option<i64> {
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut fields = time.split(':').map(whole);
    let (hour, minute) = (fields.next()??, fields.next()??);
    let second = fields.next().unwrap_or(Some(0))?;
    if hour > 23 || minute > 59 || second > 59 || fields.next().is_some() {
        return None;
    }
    whole(fraction)?;
    let millis: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    Some(((hour * 60 + minute) * 60 + second) * 1_000 + millis)
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
    let offset = fixed(hours, 2)?.checked_mul(60)?.checked_add(minutes)?;
    (minutes < 60 && offset <= 24 * 60).then_some(sign * offset)
}

/// Parses exactly `count` digits.
fn fixed(digits: &str, count: usize) -> Option<i64> {
    (digits.len() == count).then(|| whole(digits))?
}

/// Parses a text that only has digits.
fn whole(digits: &str) -> Option<i64> {
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the leap day is the last day.
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(date: &str, format: &str, offset: i32) -> String {
        let clock = Ambient { utc_offset_minutes: offset, ..Ambient::default() };
        let moment = read(&Value::text(date), &clock).unwrap();
        show(&moment, format).unwrap().to_text().unwrap().to_string()
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
    fn days_and_dates_agree_over_centuries() {
        for day in (-800_000..800_000).step_by(97) {
            let (year, month, date) = Moment { local_ms: day * MS_OF_DAY }.date();
            assert_eq!(days_since_1970(year, month, date), Some(day), "{year}-{month}-{date}");
        }
        assert_eq!(days_since_1970(1970, 1, 1), Some(0));
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
