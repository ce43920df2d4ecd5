//! Age of the built-in model prices.

use jiff::civil::Date;
use llm::Providers;

/// Age in days above which prices are worth a note. Vendors change their prices every few months.
const OLD: i32 = 90;

/// Returns a note about costs that were computed from old built-in prices, if there are any.
pub fn note(providers: &Providers) -> Option<String> {
    about(providers.dated_prices(), jiff::Zoned::now().date())
}

fn about(dated: impl IntoIterator<Item = (String, Date)>, today: Date) -> Option<String> {
    let age = |as_of: Date| (today - as_of).get_days();
    let old: Vec<_> = dated.into_iter().filter(|(_, as_of)| age(*as_of) > OLD).collect();
    let as_of = old.iter().map(|(_, as_of)| *as_of).min()?;
    let models: Vec<&str> = old.iter().map(|(model, _)| model.as_str()).collect();
    let (models, days) = (models.join(", "), age(as_of));
    Some(format!(
        "the cost of {models} is computed from built-in prices, of {as_of} ({days} days ago); \
         give current prices with `--pricing FILE`"
    ))
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn prices_are_mentioned_once_they_are_older_than_90_days() {
        let today = date(2026, 11, 23);
        let dated = |as_of| [("new".to_owned(), date(2026, 11, 1)), ("gpt-4o".to_owned(), as_of)];
        assert_eq!(about(dated(date(2026, 8, 25)), today), None);
        let note = about(dated(date(2026, 8, 24)), today).unwrap();
        assert!(note.contains("of gpt-4o is") && note.contains("2026-08-24 (91 days ago)"), "{note}");
        assert_eq!(about([], today), None);
    }
}
