//! Numbers of the run for readers, each with its exact value and its position in the JSON.

use serde_json::Value;

use crate::report::significant;

/// The text for a missing number.
pub(super) const NONE: &str = "–";

/// The unit of a number, which determines its format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unit {
    /// All digits.
    Exact,
    /// Three significant digits.
    Plain,
    /// Seconds, after multiplication by the factor.
    Seconds(f64),
    /// A unit with a decimal prefix, such as bytes a second.
    Of(&'static str),
    /// A fraction, printed as a percentage.
    Share,
}

impl Unit {
    /// Returns the unit of the field `name` of [`Row`](crate::Row) or
    /// [`ArmSummary`](crate::ArmSummary).
    pub(super) fn of(name: &str) -> Unit {
        match name {
            "bytes_per_s" => Unit::Of("B/s"),
            "ops_per_s" => Unit::Of("/s"),
            "punted" | "steal" | "cached_before" | "cached_after" | "floor" => Unit::Share,
            "seconds" => Unit::Seconds(1.0),
            "memory_bytes" => Unit::Of("B"),
            name if name.ends_with("_us") => Unit::Seconds(1e-6),
            name if name.ends_with("_s") => Unit::Seconds(1.0),
            "cpu_s_per_gb" | "cpu_s_per_million_ops" | "switches_per_op" | "device_reads_per_op" => {
                Unit::Plain
            }
            name if name.starts_with("ratio") => Unit::Plain,
            _ => Unit::Exact,
        }
    }

    /// Formats `value` in this unit. A value that is not finite is printed as [`NONE`].
    pub(super) fn show(self, value: f64) -> String {
        if !value.is_finite() {
            return NONE.to_owned();
        }
        match self {
            Unit::Exact => value.to_string(),
            Unit::Plain => significant(value, 3),
            Unit::Seconds(factor) => with_prefix(value * factor, "s"),
            Unit::Of(unit) => with_prefix(value, unit),
            Unit::Share => format!("{}\u{a0}%", significant(value * 100.0, 3)),
        }
    }
}

/// Formats a round number as an axis label, without trailing zeros.
pub(super) fn label(unit: Unit, value: f64) -> String {
    let shown = unit.show(value);
    let end = shown.find('\u{a0}').unwrap_or(shown.len());
    let (digits, unit) = shown.split_at(end);
    let digits = if digits.contains('.') && !digits.contains('e') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    };
    format!("{digits}{unit}")
}

fn with_prefix(value: f64, unit: &str) -> String {
    const PREFIXES: [(f64, &str); 8] =
        [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")];
    // Round first: the rounded value of 999.9 has another prefix. Infinite if rounding overflows.
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    let fits = PREFIXES.iter().find(|(size, _)| rounded.abs() >= *size);
    // Zero has no prefix. A value below the smallest prefix uses that prefix.
    let (size, prefix) = fits.copied().unwrap_or(if value == 0.0 { (1.0, "") } else { (1e-9, "n") });
    format!("{}\u{a0}{prefix}{unit}", significant(value / size, 3))
}

/// Formats the number at `key` of `object`, as in `ratio/low`. The `data-at` of an enclosing
/// element must be the JSON pointer of `object`.
pub(super) fn number(object: &Value, key: &str) -> String {
    match object.pointer(&format!("/{key}")) {
        Some(Value::Number(exact)) => {
            let unit = Unit::of(key.split('/').next().unwrap_or(key));
            let shown = match unit {
                Unit::Exact => exact.to_string(),
                unit => unit.show(exact.as_f64().unwrap_or(f64::NAN)),
            };
            format!(r#"<span class="n" data-key="{key}" data-value="{exact}">{shown}</span>"#)
        }
        _ => NONE.to_owned(),
    }
}

/// Formats the interval at `key`: the estimate, and both ends in brackets if they are known.
pub(super) fn interval(object: &Value, key: &str) -> String {
    if object.pointer(&format!("/{key}/median")).is_none() {
        return NONE.to_owned();
    }
    let [median, low, high] = ["median", "low", "high"].map(|part| number(object, &format!("{key}/{part}")));
    // An unknown end is null.
    if low == NONE { median } else { format!(r#"{median} <span class="ci">[{low}, {high}]</span>"#) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_the_size() {
        let shown = |unit: Unit, value| unit.show(value).replace('\u{a0}', " ");
        assert_eq!(shown(Unit::Seconds(1.0), 0.000_999_9), "1.00 ms");
        assert_eq!(shown(Unit::Seconds(1e-6), 2.5), "2.50 µs");
        assert_eq!(shown(Unit::Of("B/s"), 1.3e9), "1.30 GB/s");
        assert_eq!(shown(Unit::Of("B/s"), 0.0), "0 B/s");
        assert_eq!(shown(Unit::Seconds(1.0), 1e-12), "0.00100 ns");
        assert_eq!(shown(Unit::Share, 0.125), "12.5 %");
        assert_eq!(shown(Unit::Plain, f64::NAN), NONE);
    }

    #[test]
    fn labels_are_short() {
        let labels = [0.8, 10.0, 100.0, 1e3].map(|value| label(Unit::Plain, value));
        assert_eq!(labels, ["0.8", "10", "100", "1000"]);
        assert_eq!(label(Unit::Seconds(1.0), 0.01), "10\u{a0}ms");
    }

    #[test]
    fn the_exact_value_is_an_attribute() {
        let object =
            serde_json::json!({"p50_us": 1234.567, "ratio": {"median": 0.5, "low": 0.4}, "seed": u64::MAX});
        assert_eq!(
            number(&object, "p50_us"),
            "<span class=\"n\" data-key=\"p50_us\" data-value=\"1234.567\">1.23\u{a0}ms</span>"
        );
        assert!(number(&object, "seed").contains(">18446744073709551615<"));
        assert_eq!(number(&object, "ratio/high"), NONE);
        assert_eq!(interval(&object, "seconds"), NONE);
    }
}
