//! The unit in which sizes are printed: its syntax on the command line and its environment
//! variables.

use crate::keyword::{self, Keyword};
pub use crate::number::NumberError as BlockSizeError;
use crate::number::{self, NumberError};

/// The unit of printed sizes, and the suffix behind the number.
///
/// ```
/// use fathom_text::human::{BlockSize, BlockSizeError};
///
/// let written = |unit: BlockSize, bytes| {
///     let mut out = Vec::new();
///     unit.write(bytes, &mut out);
///     String::from_utf8(out).unwrap()
/// };
/// assert_eq!(written(BlockSize::KIBIBYTES, 1025), "2");
/// assert_eq!(written(BlockSize::HUMAN, 1025), "1.1K");
/// assert_eq!(written(BlockSize::parse(b"MB").unwrap(), 2_000_000), "2MB");
/// assert_eq!(BlockSize::parse(b"1x"), Err(BlockSizeError::BadSuffix));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize {
    pub(super) unit: Unit,
    pub(super) suffix: Suffix,
}

/// The value of one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A power of two, as its exponent. Avoids a division for the usual units.
    Shift(u8),
    /// Any other number of bytes. Never 0.
    Bytes(u64),
    /// The largest power of this base that is not above the size.
    Scaled(u16),
}

/// The suffix behind a number: empty, or a unit such as `K`, `kB` or `MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Suffix {
    text: [u8; 3],
    len: u8,
}

impl Suffix {
    const NONE: Suffix = Suffix { text: [0; 3], len: 0 };

    /// Returns the letter of a power of the base. Only the first power of 1000 has a lower-case
    /// letter.
    pub(super) fn letter(power: usize, binary: bool) -> u8 {
        if power == 1 && !binary { b'k' } else { b"BKMGTPEZYRQ"[power] }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.text[..self.len.into()]
    }

    /// Returns the part of the suffix that follows a count, which has no unit.
    pub(super) fn of_counts(&self) -> &[u8] {
        if self.as_bytes().ends_with(b"B") { b"B" } else { b"" }
    }

    /// Returns the suffix that repeats `typed`, a unit given without a number, with the value
    /// `bytes`.
    fn of_unit(typed: &[u8], bytes: u64) -> Suffix {
        let with_b = typed.ends_with(b"B");
        let binary = !with_b || typed.ends_with(b"iB");
        let base: u64 = if binary { 1024 } else { 1000 };
        // Compute the power from the value instead of the letter: `ED` is worth 1000^6 but counts
        // as binary.
        let power =
            (1..).take_while(|&power| base.checked_pow(power - 1).is_some_and(|unit| unit < bytes)).count();
        let letter = Suffix::letter(power, binary);
        match (with_b, binary) {
            (true, true) => Suffix { text: [letter, b'i', b'B'], len: 3 },
            (true, false) => Suffix { text: [letter, b'B', 0], len: 2 },
            (false, _) => Suffix { text: [letter, 0, 0], len: 1 },
        }
    }
}

impl Default for BlockSize {
    /// 1024 bytes.
    fn default() -> BlockSize {
        BlockSize::KIBIBYTES
    }
}

impl BlockSize {
    /// Single bytes (`--bytes`).
    pub const BYTES: BlockSize = BlockSize::plain(1);
    /// 1024 bytes (`-k`).
    pub const KIBIBYTES: BlockSize = BlockSize::plain(1 << 10);
    /// 1024 * 1024 bytes (`-m`).
    pub const MEBIBYTES: BlockSize = BlockSize::plain(1 << 20);
    /// A unit chosen for each size, by powers of 1024 (`--human-readable`).
    pub const HUMAN: BlockSize = BlockSize::scaled(1024);
    /// A unit chosen for each size, by powers of 1000 (`--si`).
    pub const SI: BlockSize = BlockSize::scaled(1000);

    const fn plain(bytes: u64) -> BlockSize {
        let power_of_two = bytes.is_power_of_two();
        let unit = if power_of_two { Unit::Shift(bytes.trailing_zeros() as u8) } else { Unit::Bytes(bytes) };
        BlockSize { unit, suffix: Suffix::NONE }
    }

    const fn scaled(base: u16) -> BlockSize {
        BlockSize { unit: Unit::Scaled(base), suffix: Suffix::NONE }
    }

    /// Parses the argument of `--block-size`: `human-readable`, `si`, a number with an optional
    /// unit, or a unit alone, which is then printed behind every size. A leading `'` is accepted.
    pub fn parse(spec: &[u8]) -> Result<BlockSize, BlockSizeError> {
        match read(spec) {
            (block_size, None) => Ok(block_size),
            (_, Some(error)) => Err(error),
        }
    }

    /// Returns the unit set by the first of `DU_BLOCK_SIZE`, `BLOCK_SIZE` and `BLOCKSIZE` that
    /// exists. Invalid values are not reported. If a value starts with a valid number, that number
    /// is the unit; otherwise the default applies: 512 bytes under `POSIXLY_CORRECT`, else 1024.
    pub fn from_env(get: impl Fn(&str) -> Option<Vec<u8>>) -> BlockSize {
        let spec = ["DU_BLOCK_SIZE", "BLOCK_SIZE", "BLOCKSIZE"].iter().find_map(|name| get(name));
        match spec.map(|spec| read(&spec)) {
            Some((block_size, None | Some(NumberError::BadSuffix | NumberError::TooLarge))) => block_size,
            Some((_, Some(NumberError::Invalid))) | None if get("POSIXLY_CORRECT").is_some() => {
                BlockSize::plain(512)
            }
            Some((_, Some(NumberError::Invalid))) | None => BlockSize::default(),
        }
    }
}

const KEYWORDS: [Keyword<BlockSize>; 2] = [("human-readable", BlockSize::HUMAN), ("si", BlockSize::SI)];

/// Parses `spec`. Returns the unit as far as it could be parsed, and the error.
fn read(spec: &[u8]) -> (BlockSize, Option<NumberError>) {
    let spec = spec.strip_prefix(b"'").unwrap_or(spec);
    if let Ok(block_size) = keyword::lookup(spec, &KEYWORDS) {
        return (block_size, None);
    }
    let reading = number::read(spec, 0, u64::MAX.into(), b"eEgGkKmMpPtTyYzZ");
    let bytes = u64::try_from(reading.value).expect("read keeps the value between 0 and u64::MAX");
    if bytes == 0 {
        return (BlockSize::default(), Some(NumberError::Invalid));
    }
    let mut block_size = BlockSize::plain(bytes);
    if reading.number_len == 0 && reading.error.is_none() {
        block_size.suffix = Suffix::of_unit(spec, bytes);
    }
    (block_size, reading.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(spec: &str) -> String {
        let error = BlockSize::parse(spec.as_bytes()).expect_err(spec);
        String::from_utf8(error.message("-B", spec.as_bytes())).unwrap()
    }

    fn from_env(pairs: &[(&str, &str)]) -> BlockSize {
        BlockSize::from_env(|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| v.as_bytes().to_vec()))
    }

    #[test]
    fn bad_sizes_are_refused_in_gnus_words() {
        for spec in ["", "0", "0K", "-1", "-0", " K", "+K", "R", "B", "iB", "x", "08", "0x", "Si", "'", "''K"]
        {
            assert_eq!(refused(spec), format!("invalid -B argument '{spec}'"));
        }
        for spec in ["1x", "K5", "1KiBx", "1Ki", "Kib", "1R", "1e", "p", "5b", "5B", "5 ", "1.5K", "1KB1"] {
            assert_eq!(refused(spec), format!("invalid suffix in -B argument '{spec}'"));
        }
        for spec in ["99Y", "18446744073709551616", "16E", "Z", "1YB"] {
            assert_eq!(refused(spec), format!("-B argument '{spec}' too large"));
        }
        assert_eq!(refused("18446744073709551616x"), "invalid suffix in -B argument '18446744073709551616x'");
    }

    #[test]
    fn keywords_may_be_shortened_and_marked_for_grouping() {
        for spec in ["human-readable", "human", "h", "'h"] {
            assert_eq!(BlockSize::parse(spec.as_bytes()), Ok(BlockSize::HUMAN), "{spec}");
        }
        for spec in ["si", "s", "'s"] {
            assert_eq!(BlockSize::parse(spec.as_bytes()), Ok(BlockSize::SI), "{spec}");
        }
        assert_eq!(BlockSize::parse(b"'1K"), Ok(BlockSize::KIBIBYTES));
    }

    #[test]
    fn the_first_variable_set_decides_even_when_it_is_bad() {
        assert_eq!(from_env(&[]), BlockSize::plain(1024));
        assert_eq!(from_env(&[("POSIXLY_CORRECT", "")]), BlockSize::plain(512));
        assert_eq!(from_env(&[("BLOCKSIZE", "1M"), ("POSIXLY_CORRECT", "")]), BlockSize::MEBIBYTES);
        assert_eq!(from_env(&[("BLOCKSIZE", "1M"), ("BLOCK_SIZE", "7")]), BlockSize::plain(7));
        assert_eq!(from_env(&[("BLOCK_SIZE", "7"), ("DU_BLOCK_SIZE", "si")]), BlockSize::SI);
        for bad in ["", "x", "0", "-5", "0x"] {
            assert_eq!(
                from_env(&[("BLOCK_SIZE", "7"), ("DU_BLOCK_SIZE", bad)]),
                BlockSize::plain(1024),
                "{bad}"
            );
            assert_eq!(
                from_env(&[("BLOCK_SIZE", bad), ("POSIXLY_CORRECT", "1")]),
                BlockSize::plain(512),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_bad_variable_leaves_the_number_that_could_be_read() {
        assert_eq!(from_env(&[("DU_BLOCK_SIZE", "5x")]), BlockSize::plain(5));
        assert_eq!(from_env(&[("DU_BLOCK_SIZE", "1Kx")]), BlockSize::KIBIBYTES);
        assert_eq!(from_env(&[("DU_BLOCK_SIZE", "99Y")]), BlockSize::plain(u64::MAX));
    }

    #[test]
    fn a_unit_alone_is_repeated_as_its_own_power() {
        let suffix = |spec: &str| BlockSize::parse(spec.as_bytes()).unwrap().suffix.as_bytes().to_vec();
        let table =
            [("k", "K"), ("m", "M"), ("t", "T"), ("EiB", "EiB"), ("EB", "EB"), ("ED", "E"), ("kB", "kB")];
        table.iter().for_each(|(spec, text)| assert_eq!(suffix(spec), text.as_bytes(), "{spec}"));
        assert_eq!(suffix("1K"), b"");
    }
}
