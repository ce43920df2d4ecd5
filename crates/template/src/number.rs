//! Numbers in templates: arithmetic and formatting.

use std::cmp::Ordering;

use serde_json::Number as Json;

/// Number: an integer if possible, otherwise a double.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    Whole(i64),
    Double(f64),
}

impl Number {
    pub(crate) fn from_json(number: &Json) -> Self {
        match number.as_i64() {
            Some(whole) => Self::Whole(whole),
            None => Self::from_f64(number.as_f64().unwrap_or(f64::NAN)),
        }
    }

    /// Creates a number from a double. A double without a fraction becomes an integer.
    pub(crate) fn from_f64(value: f64) -> Self {
        let whole = value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0;
        if whole { Self::Whole(value as i64) } else { Self::Double(value) }
    }

    pub(crate) fn from_usize(count: usize) -> Self {
        Self::Whole(i64::try_from(count).unwrap_or(i64::MAX))
    }

    pub(crate) fn as_double(self) -> f64 {
        match self {
            Self::Whole(value) => value as f64,
            Self::Double(value) => value,
        }
    }

    /// Returns the integer, if it is one.
    pub(crate) fn as_whole(self) -> Option<i64> {
        match self {
            Self::Whole(value) => Some(value),
            Self::Double(_) => None,
        }
    }

    /// Converts to JSON. Returns `None` for infinity and NaN, which JSON does not have.
    pub(crate) fn to_json(self) -> Option<Json> {
        match self {
            Self::Whole(value) => Some(value.into()),
            Self::Double(value) => Json::from_f64(value),
        }
    }

    pub(crate) fn add(self, other: Self) -> Self {
        self.calculate(other, i64::checked_add, |left, right| left + right)
    }

    pub(crate) fn subtract(self, other: Self) -> Self {
        self.calculate(other, i64::checked_sub, |left, right| left - right)
    }

    pub(crate) fn multiply(self, other: Self) -> Self {
        self.calculate(other, i64::checked_mul, |left, right| left * right)
    }

    pub(crate) fn divide(self, other: Self) -> Self {
        let exact = |left: i64, right: i64| {
            let remainder = left.checked_rem(right)?;
            if remainder == 0 { left.checked_div(right) } else { None }
        };
        self.calculate(other, exact, |left, right| left / right)
    }

    /// Returns the remainder of a division, with the sign of the left operand.
    pub(crate) fn remainder(self, other: Self) -> Self {
        self.calculate(other, i64::checked_rem, |left, right| left % right)
    }

    /// Compares in a total order for sorting, which includes NaN.
    pub(crate) fn order(self, other: Self) -> Ordering {
        // A double that equals an integer comes after it.
        let rank = |number: Self| (number.as_whole().is_none(), number.as_whole());
        self.as_double().total_cmp(&other.as_double()).then_with(|| rank(self).cmp(&rank(other)))
    }

    fn calculate(self, other: Self, whole: impl Fn(i64, i64) -> Option<i64>, double: impl Fn(f64, f64) -> f64) -> Self {
        let exact = match (self, other) {
            (Self::Whole(left), Self::Whole(right)) => whole(left, right),
            _ => None,
        };
        exact.map_or_else(|| Self::from_f64(double(self.as_double(), other.as_double())), Self::Whole)
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Whole(left), Self::Whole(right)) => left == right,
            _ => self.as_double() == other.as_double(),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (Self::Whole(left), Self::Whole(right)) => Some(left.cmp(right)),
            _ => self.as_double().partial_cmp(&other.as_double()),
        }
    }
}

impl std::fmt::Display for Number {
    /// Formats in the same way as ECMAScript: `3`, `0.5`, `1e+21`, `Infinity`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(value) => write!(f, "{value}"),
            Self::Double(value) => f.write_str(dragonbox_ecma::Buffer::new().format(*value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: f64) -> String {
        Number::from_f64(value).to_string()
    }

    #[test]
    fn numbers_print_as_in_ecmascript() {
        assert_eq!(shown(2.0), "2");
        assert_eq!(shown(0.5), "0.5");
        assert_eq!(shown(0.1 + 0.2), "0.30000000000000004");
        assert_eq!(shown(1e21), "1e+21");
        assert_eq!(shown(1e20), "100000000000000000000");
        assert_eq!(shown(1.5e-7), "1.5e-7");
        assert_eq!(shown(-0.0), "0");
        assert_eq!(shown(f64::INFINITY), "Infinity");
    }

    #[test]
    fn integers_stay_integers_until_they_overflow() {
        let number = Number::Whole;
        assert_eq!(number(6).divide(number(3)).to_string(), "2");
        assert_eq!(number(1).divide(number(4)).to_string(), "0.25");
        assert_eq!(number(1).divide(number(0)).to_string(), "Infinity");
        assert_eq!(number(7).remainder(number(0)).to_string(), "NaN");
        assert_eq!(number(-7).remainder(number(3)).to_string(), "-1");
        assert_eq!(number(i64::MAX).add(number(1)).to_string(), "9223372036854776000");
        assert_eq!(number(i64::MIN).divide(number(-1)).to_string(), "9223372036854776000");
    }
}
