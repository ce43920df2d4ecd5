//! Student's t-distribution.

use super::Z;

/// Two-sided 95 % quantiles for 1 to 30 degrees of freedom, from the distribution's finite series (Abramowitz and
/// Stegun 1964, 26.7.3 and 26.7.4).
const QUANTILES: [f64; 30] = [
    12.706_204_736,
    4.302_652_730,
    3.182_446_305,
    2.776_445_105,
    2.570_581_836,
    2.446_911_851,
    2.364_624_252,
    2.306_004_135,
    2.262_157_163,
    2.228_138_852,
    2.200_985_160,
    2.178_812_830,
    2.160_368_656,
    2.144_786_688,
    2.131_449_546,
    2.119_905_299,
    2.109_815_578,
    2.100_922_040,
    2.093_024_054,
    2.085_963_447,
    2.079_613_845,
    2.073_873_068,
    2.068_657_610,
    2.063_898_562,
    2.059_538_553,
    2.055_529_439,
    2.051_830_516,
    2.048_407_142,
    2.045_229_642,
    2.042_272_456,
];

/// Returns the two-sided 95 % quantile of Student's t; `None` for zero degrees of freedom.
pub(super) fn quantile(freedom: usize) -> Option<f64> {
    let at = freedom.checked_sub(1)?;
    Some(QUANTILES.get(at).copied().unwrap_or_else(|| expanded(freedom as f64)))
}

/// Returns Fisher's expansion (Abramowitz and Stegun 26.7.5). Above 30 degrees of freedom its error is less than
/// 1e-7.
fn expanded(freedom: f64) -> f64 {
    let z = |power: i32| Z.powi(power);
    let terms = [
        (z(3) + Z) / 4.0,
        (5.0 * z(5) + 16.0 * z(3) + 3.0 * Z) / 96.0,
        (3.0 * z(7) + 19.0 * z(5) + 17.0 * z(3) - 15.0 * Z) / 384.0,
        (79.0 * z(9) + 776.0 * z(7) + 1482.0 * z(5) - 1920.0 * z(3) - 945.0 * Z) / 92_160.0,
    ];
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) / freedom) + Z
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the probability between -t and t: the finite series that the quantiles invert.
    fn within(t: f64, freedom: usize) -> f64 {
        let angle = (t / (freedom as f64).sqrt()).atan();
        let (sine, square) = (angle.sin(), angle.cos().powi(2));
        let is_odd = freedom % 2 == 1;
        let (mut term, mut sum, mut k) = if is_odd { (angle.cos(), angle.cos(), 3) } else { (1.0, 1.0, 2) };
        if freedom == 1 {
            sum = 0.0;
        }
        while k + 2 <= freedom {
            term *= square * (k - 1) as f64 / k as f64;
            sum += term;
            k += 2;
        }
        if is_odd { std::f64::consts::FRAC_2_PI * (angle + sine * sum) } else { sine * sum }
    }

    #[test]
    fn the_quantiles_enclose_95_percent() {
        for freedom in (1..=200).chain([1_000, 9_999]) {
            let inside = within(quantile(freedom).unwrap(), freedom);
            assert!((inside - 0.95).abs() < 1e-8, "{freedom}: {inside}");
        }
        assert_eq!(quantile(0), None);
    }
}
