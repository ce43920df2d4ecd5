//! Figures about trials that pass or fail.

/// Wilson's score interval for `passed` of `trials` at 95 % (Wilson 1927). `[0, 1]` for no trials.
pub fn wilson(passed: u64, trials: u64) -> [f64; 2] {
    if trials == 0 {
        return [0.0, 1.0];
    }
    let z = 1.959_963_984_540_054_f64;
    let n = trials as f64;
    let share = passed as f64 / n;
    let center = share + z * z / (2.0 * n);
    let spread = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    // At the ends the exact bound is the end itself; what the arithmetic leaves of it is not worth showing.
    let low = if passed == 0 { 0.0 } else { ((center - spread) / scale).max(0.0) };
    let high = if passed == trials { 1.0 } else { ((center + spread) / scale).min(1.0) };
    [low, high]
}

/// The unbiased estimate that at least one of `k` draws from `n` trials, `c` of them passed, has passed:
/// 1 − C(n−c, k) / C(n, k) (Chen et al. 2021).
pub fn pass_at_k(n: u64, c: u64, k: u64) -> f64 {
    if n < k || k == 0 {
        return 0.0;
    }
    if n - c < k {
        return 1.0;
    }
    1.0 - (0..k).map(|i| (n - c - i) as f64 / (n - i) as f64).product::<f64>()
}

/// The unbiased estimate that all of `k` draws from `n` trials, `c` of them passed, have passed: C(c, k) / C(n, k)
/// (Yao et al. 2024).
pub fn pass_hat_k(n: u64, c: u64, k: u64) -> f64 {
    if n < k || k == 0 || c < k {
        return 0.0;
    }
    (0..k).map(|i| (c - i) as f64 / (n - i) as f64).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_agree_with_published_ones() {
        let [low, high] = wilson(8, 10);
        assert!((low - 0.4902).abs() < 1e-4 && (high - 0.9433).abs() < 1e-4);
        assert_eq!(wilson(0, 0), [0.0, 1.0]);
        assert_eq!((wilson(0, 3)[0], wilson(7, 7)[1]), (0.0, 1.0));
        assert!((pass_at_k(10, 3, 2) - (1.0 - 21.0 / 45.0)).abs() < 1e-12);
        assert!((pass_hat_k(10, 3, 2) - 3.0 / 45.0).abs() < 1e-12);
        assert_eq!((pass_at_k(3, 3, 3), pass_hat_k(3, 3, 3), pass_hat_k(3, 2, 3)), (1.0, 1.0, 0.0));
    }
}
