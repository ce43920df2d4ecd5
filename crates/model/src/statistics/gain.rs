//! Gain relative to the possible gain.

/// Returns the normalised gain of a rate that changed from `before` to `after`: the share of the possible improvement
/// that was reached, (after − before) / (1 − before) (Hake 1998). From 90 % to 95 % is half of what was possible, as is
/// from 0 % to 50 %.
///
/// A loss is divided by what could be lost, (after − before) / before (Marx and Cummings 2007). Hake's formula would
/// report a loss from 95 % to 90 % as −1, and is undefined at 100 %. So the result is always between −1 and 1. No change
/// is 0. `None` if both are 1, as nothing could be gained, or if a value is not a share.
pub fn normalised_gain(before: f64, after: f64) -> Option<f64> {
    let is_share = |value: f64| (0.0..=1.0).contains(&value);
    if !is_share(before) || !is_share(after) || (before == 1.0 && after == 1.0) {
        return None;
    }
    let apart = after - before;
    Some(if apart == 0.0 {
        0.0
    } else if apart > 0.0 {
        apart / (1.0 - before)
    } else {
        apart / before
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_is_relative_to_the_possible_gain_and_a_loss_to_the_possible_loss() {
        for (before, after, gain) in
            [(0.9, 0.95, 0.5), (0.0, 0.5, 0.5), (0.5, 1.0, 1.0), (1.0, 0.0, -1.0), (0.8, 0.6, -0.25)]
        {
            let found = normalised_gain(before, after).unwrap();
            assert!((found - gain).abs() < 1e-12, "{before} {after}: {found}");
        }
    }

    #[test]
    fn a_gain_at_the_ceiling_is_undefined() {
        assert_eq!(normalised_gain(1.0, 1.0), None);
        assert_eq!((normalised_gain(0.0, 0.0), normalised_gain(0.7, 0.7)), (Some(0.0), Some(0.0)));
        assert_eq!(normalised_gain(1.0, 0.9).map(|gain| (gain * 10.0).round()), Some(-1.0));
        assert_eq!((normalised_gain(f64::NAN, 0.5), normalised_gain(0.5, 1.5)), (None, None));
    }
}
