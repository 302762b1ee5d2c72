//! Maps values to pixels of a figure, and gives the ticks of an axis.

/// A range of values on a range of pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    step: f64,
}

impl Scale {
    /// A scale over the values, widened to whole steps, of which there are about `ticks` between `from` and `to`. Values that are not finite
    /// are skipped; without any, the scale runs from 0 to 1.
    pub fn over(
        values: impl IntoIterator<Item = f64>,
        ticks: usize,
        [from, to]: [f64; 2],
    ) -> Scale {
        let finite = values.into_iter().filter(|value| value.is_finite());
        let ends = finite.fold(None, |ends: Option<[f64; 2]>, value| match ends {
            None => Some([value; 2]),
            Some([low, high]) => Some([low.min(value), high.max(value)]),
        });
        let [mut low, mut high] = ends.unwrap_or([0.0, 1.0]);
        if high - low < 1e-9 {
            (low, high) = (low - 0.05, high + 0.05);
        }
        let step = round_step((high - low) / ticks.max(1) as f64);
        // A value that lies on a step up to rounding does not widen the axis by another step.
        let low = (low / step + 1e-6).floor() * step;
        let high = (high / step - 1e-6).ceil() * step;
        Scale { low, high, from, to, step }
    }

    /// The pixel of a value; one beyond the scale is drawn at its end.
    pub fn at(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// The ticks' values and pixels, low to high.
    pub fn ticks(&self) -> impl Iterator<Item = (f64, f64)> {
        let count = ((self.high - self.low) / self.step).round() as usize;
        let scale = *self;
        (0..=count).map(move |tick| {
            let value = scale.low + tick as f64 * scale.step;
            (value, scale.at(value))
        })
    }

    /// A tick's label.
    pub fn say(&self, value: f64) -> String {
        let digits = (-libm::log10(self.step).floor()).clamp(0.0, 6.0) as usize;
        // A step of 2.5 needs one more digit than its power of ten.
        let odd = (self.step * libm::exp10(digits as f64)).fract() > 1e-6;
        let digits = digits + usize::from(odd);
        let text = format!("{value:.digits$}");
        match text.trim_start_matches('-').chars().all(|c| matches!(c, '0' | '.')) {
            true => "0".to_owned(),
            false => text,
        }
    }
}

/// The least step of 1, 2, 2.5 or 5 times a power of ten that is not below `least`.
fn round_step(least: f64) -> f64 {
    let power = libm::exp10(libm::log10(least).floor());
    let steps = [1.0, 2.0, 2.5, 5.0].map(|step| step * power);
    let fits = |step: &f64| *step >= least * (1.0 - 1e-9);
    steps.into_iter().find(fits).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(values: &[f64], ticks: usize) -> Vec<String> {
        let scale = Scale::over(values.iter().copied(), ticks, [0.0, 100.0]);
        scale.ticks().map(|(value, _)| scale.say(value)).collect()
    }

    #[test]
    fn axes_name_round_values_around_all_that_is_drawn() {
        assert_eq!(said(&[0.0, 1.0], 5), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(said(&[0.0, 0.62], 4), ["0", "0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(said(&[-0.04, 0.11], 4), ["-0.05", "0", "0.05", "0.10", "0.15"]);
        assert_eq!(said(&[0.0, 1.0], 4), ["0", "0.25", "0.50", "0.75", "1.00"]);
        assert_eq!(said(&[0.0, 12345.0], 4), ["0", "5000", "10000", "15000"]);
        assert_eq!(said(&[0.0, 3.0], 3), ["0", "1", "2", "3"]);
    }

    #[test]
    fn places_run_either_way_and_end_at_the_ends() {
        let up = Scale::over([0.0, 1.0], 5, [200.0, 0.0]);
        assert_eq!((up.at(0.0), up.at(0.5), up.at(1.0)), (200.0, 100.0, 0.0));
        assert_eq!((up.at(-3.0), up.at(9.0)), (200.0, 0.0));
    }

    #[test]
    fn a_lone_value_or_none_still_has_a_scale() {
        let lone = Scale::over([0.3, f64::NAN], 4, [0.0, 100.0]);
        assert!((lone.at(0.3) - 50.0).abs() < 20.0);
        assert_eq!(said(&[], 2), ["0", "0.5", "1.0"]);
    }
}
