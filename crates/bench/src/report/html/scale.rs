//! Mapping of values to positions on an axis, in percent of its length. Does not own: units and
//! marks.

/// The values that an axis can show. The range includes all plausible measurements and excludes
/// values whose sums or quotients overflow.
const DRAWABLE: std::ops::Range<f64> = 1e-12..1e18;
/// An axis is logarithmic if the quotient of its ends exceeds this.
const LOG_FROM: f64 = 4.0;
/// Smallest length of a linear axis relative to its middle. It keeps labels of three digits
/// distinct and does not magnify smaller differences.
const SPAN_MIN: f64 = 0.05;
/// Percentage left free at both ends, into which marks and labels extend.
const EDGE: f64 = 4.0;
/// The number of labels that fit on a phone screen.
const TICKS_MAX: usize = 6;

/// A linear or logarithmic axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    log: bool,
}

impl Scale {
    /// Builds the axis of `values`; `None` if none of them can be shown.
    pub(super) fn over(values: impl IntoIterator<Item = f64>) -> Option<Scale> {
        let (low, high) = ends(values)?;
        if high / low > LOG_FROM {
            return Some(Scale { low, high, log: true });
        }
        let lack = ((low + high) / 2.0 * SPAN_MIN - (high - low)).max(0.0);
        Some(Scale { low: low - lack / 2.0, high: high + lack / 2.0, log: false })
    }

    /// Builds a logarithmic axis of `values`, regardless of their quotient.
    pub(super) fn log_over(values: impl IntoIterator<Item = f64>) -> Option<Scale> {
        let (low, high) = ends(values)?;
        let (low, high) = if low < high { (low, high) } else { (low / 2.0, high * 2.0) };
        Some(Scale { low, high, log: true })
    }

    /// Returns whether the axis is logarithmic.
    pub(super) fn is_log(&self) -> bool {
        self.log
    }

    /// Returns the position of a value in percent; `None` if it cannot be shown.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let on = |value: f64| if self.log { value.ln() } else { value };
        let share = (on(value) - on(self.low)) / (on(self.high) - on(self.low));
        DRAWABLE.contains(&value).then(|| EDGE + share.clamp(0.0, 1.0) * (100.0 - 2.0 * EDGE))
    }

    /// Returns the positions of round values, and the values for labels, in ascending order.
    pub(super) fn marks(&self) -> impl Iterator<Item = (f64, f64)> {
        self.ticks().into_iter().filter_map(|tick| Some((self.place(tick)?, tick)))
    }

    /// Returns round values for labels, in ascending order.
    fn ticks(&self) -> Vec<f64> {
        if self.log { self.log_ticks() } else { self.linear_ticks() }
    }

    fn linear_ticks(&self) -> Vec<f64> {
        let raw = (self.high - self.low) / (TICKS_MAX - 1) as f64;
        let power = 10_f64.powf(raw.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| *step >= raw * 0.999);
        let step = step.unwrap_or(raw);
        let first = (self.low / step).ceil();
        let ticks = (0..TICKS_MAX).map(|n| (first + n as f64) * step);
        ticks.filter(|tick| *tick <= self.high).collect()
    }

    fn log_ticks(&self) -> Vec<f64> {
        let usual = self.multiples(&[1.0, 2.0, 5.0]);
        match usual.len() {
            0..3 => {
                let finer = self.multiples(&[1.0, 2.0, 3.0, 4.0, 6.0, 8.0]);
                // No such number lies on a short axis.
                if finer.is_empty() { self.linear_ticks() } else { finer }
            }
            3..=TICKS_MAX => usual,
            _ => {
                let decades = self.multiples(&[1.0]);
                let every = decades.len().div_ceil(TICKS_MAX).max(1);
                decades.into_iter().step_by(every).collect()
            }
        }
    }

    /// Returns the products of a power of ten and one of `digits` that lie on the axis.
    fn multiples(&self, digits: &[f64]) -> Vec<f64> {
        let powers = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let all = powers.flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)));
        all.filter(|tick| (self.low..=self.high).contains(tick)).collect()
    }
}

fn ends(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let drawable = values.into_iter().filter(|value| DRAWABLE.contains(value));
    drawable.fold(None, |ends, value| match ends {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_quotient_over_4_makes_it_logarithmic() {
        assert!(!Scale::over([1.0, 4.0]).unwrap().is_log());
        let scale = Scale::over([0.1, 10.0, f64::NAN, 0.0, -1.0, f64::INFINITY]).unwrap();
        assert!(scale.is_log());
        assert_eq!([0.1, 1.0, 10.0].map(|value| scale.place(value).unwrap().round()), [4.0, 50.0, 96.0]);
        assert_eq!(scale.place(f64::NAN), None);
        assert_eq!(Scale::over([f64::NAN, 0.0]), None);
    }

    #[test]
    fn ticks_are_round() {
        let near = |scale: Scale| {
            scale.ticks().iter().map(|tick| format!("{tick:.3}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(near(Scale::over([0.7, 1.3]).unwrap()), "0.800 1.000 1.200");
        assert_eq!(near(Scale::over([1.0]).unwrap()), "0.980 0.990 1.000 1.010 1.020");
        assert_eq!(near(Scale::over([0.5, 40.0]).unwrap()), "0.500 1.000 2.000 5.000 10.000 20.000");
        assert_eq!(near(Scale::over([2.1, 9.0]).unwrap()), "3.000 4.000 6.000 8.000");
        assert_eq!(near(Scale::over([0.01, 1e4]).unwrap()), "0.010 1.000 100.000 10000.000");
        assert_eq!(near(Scale::log_over([1.47, 1.99]).unwrap()), "1.600 1.800");
    }

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        #[test]
        fn places_are_inside_and_ticks_are_few(values in prop::collection::vec(any::<f64>(), 1..6), near in 1e-12..1e17) {
            for scale in [Scale::over(values.clone()), Scale::over([near, near * 1.000_001]), Scale::log_over(values.clone())] {
                let Some(scale) = scale else { continue };
                for value in values.iter().copied().chain(scale.ticks()) {
                    prop_assert!(scale.place(value).is_none_or(|place| (0.0..=100.0).contains(&place)));
                }
                prop_assert!((1..=TICKS_MAX).contains(&scale.ticks().len()), "{scale:?}");
            }
        }
    }
}
