//! The printed form of sizes: the unit of `--block-size` and related options, always rounded up,
//! and the scaled form of `--human-readable`. Formats numbers only; the caller chooses the number.
//!
//! The decimal point is `.` and digits are never grouped, as in the C, POSIX and C.UTF-8 locales. A
//! leading `'` in a block size requests the locale's grouping; it is accepted and has no effect in
//! these locales.

mod block_size;

pub use self::block_size::{BlockSize, BlockSizeError};
use self::block_size::{Suffix, Unit};
use crate::number::write_decimal;

/// The text that GNU du prints for a sum that overflowed.
const INFINITY: &[u8] = b"Infinity";

impl BlockSize {
    /// Appends the size of `bytes` in this unit, rounded up. `u64::MAX` represents an overflowed
    /// sum.
    pub fn write(&self, bytes: u64, out: &mut Vec<u8>) {
        if bytes == u64::MAX {
            return out.extend_from_slice(INFINITY);
        }
        match self.unit {
            Unit::Shift(bits) => write_decimal(bytes.div_ceil(1 << bits), out),
            Unit::Bytes(unit) => write_decimal(div_ceil(bytes, unit), out),
            Unit::Scaled(base) => return write_scaled(bytes, base.into(), out),
        }
        out.extend_from_slice(self.suffix.as_bytes());
    }

    /// Returns the size of `bytes` as [`BlockSize::write`] appends it.
    ///
    /// ```
    /// assert_eq!(fathom_text::human::BlockSize::HUMAN.text(1536), "1.5K");
    /// ```
    #[must_use]
    pub fn text(&self, bytes: u64) -> String {
        let mut text = Vec::new();
        self.write(bytes, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Appends a count, which has no unit. Only the scaled forms change the number, and only the
    /// `B` of a suffix such as `KiB` is kept.
    pub fn write_count(&self, count: u64, out: &mut Vec<u8>) {
        if count == u64::MAX {
            return out.extend_from_slice(INFINITY);
        }
        match self.unit {
            Unit::Scaled(base) => write_scaled(count, base.into(), out),
            Unit::Shift(_) | Unit::Bytes(_) => {
                write_decimal(count, out);
                out.extend_from_slice(self.suffix.of_counts());
            }
        }
    }
}

/// Divides and rounds up, except where GNU du does not: it computes twenty times the remainder in
/// 64 bits, and for units beyond 2^63 that product can be 0.
fn div_ceil(bytes: u64, unit: u64) -> u64 {
    let (whole, rest) = (bytes / unit, bytes % unit);
    let lost = unit > 1 << 63 && rest.wrapping_mul(20) == 0;
    whole + u64::from(rest != 0 && !lost)
}

/// Appends the scaled form: one decimal below ten units, none from ten on. A value that rounds up
/// to the next unit becomes `1.0` of that unit.
fn write_scaled(value: u64, base: u64, out: &mut Vec<u8>) {
    let (mut unit, mut power) = (1, 0);
    while value / unit >= base {
        unit *= base;
        power += 1;
    }
    if power == 0 {
        return write_decimal(value, out);
    }
    let (whole, rest) = (value / unit, value % unit);
    // A unit is at most 10^18 or 2^60, so the products below fit into 64 bits.
    let tenths = whole * 10 + (rest * 10).div_ceil(unit);
    let rounded = whole + u64::from(rest != 0);
    match () {
        () if tenths < 100 => out.extend_from_slice(&[digit(tenths / 10), b'.', digit(tenths % 10)]),
        () if rounded < base => write_decimal(rounded, out),
        () => {
            out.extend_from_slice(b"1.0");
            power += 1;
        }
    }
    out.push(Suffix::letter(power, base == 1024));
}

fn digit(value: u64) -> u8 {
    b'0' + (value % 10) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn show(block_size: BlockSize, bytes: u64) -> String {
        let mut out = Vec::new();
        block_size.write(bytes, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn count(spec: &str, inodes: u64) -> String {
        let mut out = Vec::new();
        BlockSize::parse(spec.as_bytes()).unwrap().write_count(inodes, &mut out);
        String::from_utf8(out).unwrap()
    }

    /// The exact value of `bytes` over `unit`, rounded up to a whole number.
    fn exact(bytes: u64, unit: u128) -> u128 {
        u128::from(bytes).div_ceil(unit)
    }

    /// The scaled form by its definition: the first unit in which the rounded value is below the
    /// base.
    fn scaled(value: u64, base: u128) -> String {
        if u128::from(value) < base {
            return value.to_string();
        }
        for power in 1.. {
            let unit = base.pow(power);
            let tenths = (u128::from(value) * 10).div_ceil(unit);
            let whole = exact(value, unit);
            let letter = b"?KMGTPEZ"[power as usize] as char;
            let letter = if base == 1000 && power == 1 { 'k' } else { letter };
            match () {
                () if tenths < 100 => return format!("{}.{}{letter}", tenths / 10, tenths % 10),
                () if whole < base => return format!("{whole}{letter}"),
                () => {}
            }
        }
        unreachable!("u64 ends at 16 E")
    }

    #[test]
    fn known_values_of_human_readable() {
        let table = [
            (0, "0", "0"),
            (1, "1", "1"),
            (999, "999", "999"),
            (1000, "1000", "1.0k"),
            (1001, "1001", "1.1k"),
            (1023, "1023", "1.1k"),
            (1024, "1.0K", "1.1k"),
            (1025, "1.1K", "1.1k"),
            (9900, "9.7K", "9.9k"),
            (9951, "9.8K", "10k"),
            (10240, "10K", "11k"),
            (10241, "11K", "11k"),
            (999_000, "976K", "999k"),
            (999_001, "976K", "1.0M"),
            (1_047_552, "1023K", "1.1M"),
            (1_047_553, "1.0M", "1.1M"),
            (1_048_575, "1.0M", "1.1M"),
            (1_048_576, "1.0M", "1.1M"),
            (u64::MAX - 1, "16E", "19E"),
            (u64::MAX, "Infinity", "Infinity"),
        ];
        for (bytes, human, si) in table {
            assert_eq!(show(BlockSize::HUMAN, bytes), human, "-h {bytes}");
            assert_eq!(show(BlockSize::SI, bytes), si, "--si {bytes}");
        }
    }

    #[test]
    fn suffixes_follow_the_number() {
        let show = |spec: &str| show(BlockSize::parse(spec.as_bytes()).unwrap(), 3000);
        let table = [("K", "3K"), ("k", "3K"), ("KiB", "3KiB"), ("kB", "3kB"), ("KB", "3kB"), ("KD", "3K")];
        table.iter().for_each(|(spec, text)| assert_eq!(show(spec), *text, "{spec}"));
        let table = [("1K", "3"), ("1kB", "3"), ("0x10", "188"), ("M", "1M"), ("MB", "1MB"), ("'si", "3.0k")];
        table.iter().for_each(|(spec, text)| assert_eq!(show(spec), *text, "{spec}"));
    }

    #[test]
    fn huge_units_lose_the_remainders_gnu_loses() {
        let show = |spec: &str, bytes| show(BlockSize::parse(spec.as_bytes()).unwrap(), bytes);
        for unit in ["9223372036854775809", "18446744073709551615"] {
            assert_eq!([show(unit, 1 << 62), show(unit, 1 << 63)], ["0", "0"], "{unit}");
            assert_eq!([show(unit, (1 << 62) + 1), show(unit, 1)], ["1", "1"], "{unit}");
        }
        assert_eq!(show("9223372036854775808", 1 << 62), "1");
    }

    #[test]
    fn counts_ignore_the_unit_but_keep_a_b() {
        assert_eq!(count("K", 3000), "3000");
        assert_eq!(count("KiB", 3000), "3000B");
        assert_eq!(count("kB", 3000), "3000B");
        assert_eq!(count("7", 3000), "3000");
        assert_eq!(count("human", 3000), "3.0K");
        assert_eq!(count("si", 3001), "3.1k");
        assert_eq!(count("si", u64::MAX), "Infinity");
    }

    #[test]
    fn every_value_near_a_boundary_is_exact() {
        for base in [1000u128, 1024] {
            let block_size = if base == 1000 { BlockSize::SI } else { BlockSize::HUMAN };
            for power in 0..=6 {
                for factor in [1, 2, 9, 10, 99, 100, 999, 1000, 1023] {
                    let near = u64::try_from(base.pow(power) * factor).unwrap_or(u64::MAX - 9);
                    for value in near.saturating_sub(70)..=near.saturating_add(70).min(u64::MAX - 1) {
                        assert_eq!(show(block_size, value), scaled(value, base), "{value}");
                    }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(fathom_cases::property(4000))]

        #[test]
        fn scaled_values_are_exact(bits in 0u32..64, value: u64) {
            let value = (value >> bits).min(u64::MAX - 1);
            prop_assert_eq!(show(BlockSize::HUMAN, value), scaled(value, 1024));
            prop_assert_eq!(show(BlockSize::SI, value), scaled(value, 1000));
        }

        #[test]
        fn whole_units_round_up(bits in 0u32..64, unit_bits in 1u32..64, bytes: u64, unit: u64) {
            let (bytes, unit) = ((bytes >> bits).min(u64::MAX - 1), (unit >> unit_bits).max(1));
            let block_size = BlockSize::parse(unit.to_string().as_bytes()).unwrap();
            prop_assert_eq!(show(block_size, bytes), exact(bytes, unit.into()).to_string());
        }
    }
}
