//! The binomial distribution's exact lower tail, and the bound on a share that follows from it.

/// P(X ≤ `count`) for X binomial over `n` trials of probability `share`.
pub fn at_most(count: usize, n: usize, share: f64) -> f64 {
    if count >= n || share <= 0.0 {
        return 1.0;
    }
    if share >= 1.0 {
        return 0.0;
    }
    let (n, log, log_other) = (n as f64, libm::log(share), libm::log1p(-share));
    let of = |k: f64| {
        let ways = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
        libm::exp(ways + k * log + (n - k) * log_other)
    };
    // The smallest first: nothing is lost beside the large ones.
    (0..=count).map(|k| of(k as f64)).sum::<f64>().min(1.0)
}

/// Whether so few seen prove that the true share is at most `share`, with a chance of error of at most `delta`. At an exact boundary, such as
/// 0.5³ = 0.125, rounding does not decide.
pub fn proves(count: usize, n: usize, share: f64, delta: f64) -> bool {
    at_most(count, n, share) <= delta * (1.0 + 1e-12)
}

/// The upper confidence bound of a share of which `count` of `n` were seen (Clopper and Pearson, Biometrika 1934): the true share is at
/// most that with probability 1 − `delta`. 1 of nothing.
pub fn upper_bound(count: usize, n: usize, delta: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    // Halved until neighbours meet; the higher end is the one that holds.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        match proves(count, n, middle, delta) {
            true => high = middle,
            false => low = middle,
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_those_of_scipy() {
        for (count, n, share, expected) in [
            (0, 10, 0.05, 0.598_736_939_238_379),
            (3, 50, 0.1, 0.250_293_905_953_308),
            (20, 400, 0.05, 0.559_112_062_465_984),
            (4, 4, 0.3, 1.0),
        ] {
            let found = at_most(count, n, share);
            assert!((found - expected).abs() < 1e-6, "{count} of {n} at {share}: {found}");
        }
        assert_eq!((at_most(0, 5, 0.0), at_most(2, 5, 1.0)), (1.0, 0.0));
    }

    #[test]
    fn bounds_are_clopper_and_pearsons() {
        for (count, n, delta, expected) in [
            // Of none the bound is 1 − delta^(1/n).
            (0, 45, 0.1, 0.049_880),
            (2, 100, 0.1, 0.052_348),
            (5, 5, 0.1, 1.0),
            (0, 0, 0.1, 1.0),
        ] {
            let found = upper_bound(count, n, delta);
            assert!((found - expected).abs() < 1e-4, "{count} of {n}: {found}");
        }
    }
}
