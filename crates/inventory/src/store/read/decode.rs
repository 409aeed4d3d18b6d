//! The basic encodings of Parquet: varints, differences, runs and packed bits. Every read is
//! checked, and memory is allocated only for values whose bytes are there.

use parquet::errors::{ParquetError, Result};

/// Most bits of a packed number.
const WIDTH_MAX: u32 = 64;
/// Most values of a block of differences; writers use 128.
const BLOCK_MAX: u64 = 1 << 16;

/// Returns an error that says what is wrong with a file.
pub(super) fn damaged(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}

/// The unread rest of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(|| damaged("a page ends too soon"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(|| damaged("a page ends too soon"))?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Reads an unsigned varint: seven bits a byte, the lowest first.
    pub(super) fn varint(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(damaged("a number does not end"))
    }

    /// Reads a signed varint in zigzag encoding.
    pub(super) fn zigzag(&mut self) -> Result<i64> {
        self.varint().map(|bits| (bits >> 1).cast_signed() ^ -(bits & 1).cast_signed())
    }

    /// Reads a length of four bytes, and as many bytes.
    pub(super) fn sized(&mut self) -> Result<&'a [u8]> {
        let bytes = u32::from_le_bytes(self.array()?);
        self.take(bytes as usize)
    }
}

/// Reads packed numbers of `width` bits, the lowest bits first. Beyond the input they are 0.
struct BitReader<'a> {
    words: std::slice::Chunks<'a, u8>,
    held: u128,
    count: u32,
    width: u32,
}

impl<'a> BitReader<'a> {
    /// `width` must not exceed [`WIDTH_MAX`].
    fn new(bytes: &'a [u8], width: u32) -> Self {
        Self { words: bytes.chunks(4), held: 0, count: 0, width }
    }

    fn next(&mut self) -> u64 {
        while self.count < self.width {
            let mut word = [0; 4];
            let bytes = self.words.next().unwrap_or_default();
            word[..bytes.len()].copy_from_slice(bytes);
            self.held |= u128::from(u32::from_le_bytes(word)) << self.count;
            self.count += 32;
        }
        let mask = (1u128 << self.width) - 1;
        let number = (self.held & mask) as u64;
        self.held >>= self.width;
        self.count -= self.width;
        number
    }
}

/// Appends up to `count_max` numbers that are encoded as differences (`DELTA_BINARY_PACKED`).
pub(super) fn deltas(input: &mut Cursor<'_>, count_max: usize, out: &mut Vec<i64>) -> Result<()> {
    let (block, parts, count) = (input.varint()?, input.varint()?, input.varint()?);
    let first = input.zigzag()?;
    let is_sane = (1..=BLOCK_MAX).contains(&block) && (1..=block).contains(&parts) && block % parts == 0;
    if !is_sane || !(block / parts).is_multiple_of(32) || count > count_max as u64 {
        return Err(damaged("a block of differences has an impossible shape"));
    }
    if count == 0 {
        return Ok(());
    }
    out.reserve(count as usize);
    out.push(first);
    let (mut last, mut left) = (first, count as usize - 1);
    while left > 0 {
        let least = input.zigzag()?;
        for width in input.take(parts as usize)? {
            let here = left.min((block / parts) as usize);
            if here > 0 {
                difference(
                    input,
                    u32::from(*width),
                    (block / parts) as usize,
                    &mut |bits| {
                        last = last.wrapping_add(least).wrapping_add(bits.cast_signed());
                        out.push(last);
                    },
                    here,
                )?;
            }
            left -= here;
        }
    }
    Ok(())
}

/// Calls `each` for the first `here` of `all` packed numbers.
fn difference(
    input: &mut Cursor<'_>,
    width: u32,
    all: usize,
    each: &mut impl FnMut(u64),
    here: usize,
) -> Result<()> {
    if width > WIDTH_MAX {
        return Err(damaged("numbers have too many bits"));
    }
    let mut bits = BitReader::new(input.take(all / 8 * width as usize)?, width);
    (0..here).for_each(|_| each(bits.next()));
    Ok(())
}

/// Decodes `count` numbers from runs and packed bits (`RLE`). Calls `each` with a number and the
/// times it is repeated.
pub(super) fn runs(
    input: &mut Cursor<'_>,
    width: u32,
    count: usize,
    each: &mut impl FnMut(u32, usize) -> Result<()>,
) -> Result<()> {
    if width > 32 {
        return Err(damaged("numbers have too many bits"));
    }
    let mut left = count;
    while left > 0 {
        let head = input.varint()?;
        let length = usize::try_from(head >> 1).unwrap_or(usize::MAX);
        if length == 0 {
            return Err(damaged("a run is empty"));
        }
        if head & 1 == 0 {
            let here = left.min(length);
            each(repeated(input, width)?, here)?;
            left -= here;
        } else {
            let bytes = length.checked_mul(width as usize).ok_or_else(|| damaged("a run is too long"))?;
            let mut bits = BitReader::new(input.take(bytes)?, width);
            let here = left.min(length.saturating_mul(8));
            (0..here).try_for_each(|_| each(bits.next() as u32, 1))?;
            left -= here;
        }
    }
    Ok(())
}

fn repeated(input: &mut Cursor<'_>, width: u32) -> Result<u32> {
    let bytes = input.take(width.div_ceil(8) as usize)?;
    let mut word = [0; 4];
    word[..bytes.len()].copy_from_slice(bytes);
    Ok(u32::from_le_bytes(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_variable_length_end() {
        assert_eq!(Cursor(&[0xac, 0x02]).varint().unwrap(), 300);
        assert_eq!([Cursor(&[1]).zigzag().unwrap(), Cursor(&[2]).zigzag().unwrap()], [-1, 1]);
        assert!(Cursor(&[0x80; 20]).varint().is_err() && Cursor(&[0x80]).varint().is_err());
    }

    #[test]
    fn bits_are_read_across_words() {
        let mut bits = BitReader::new(&[0b1010_0101, 0xff, 0, 0, 0x3], 5);
        let all: Vec<_> = (0..8).map(|_| bits.next()).collect();
        assert_eq!(all, [0b00101, 0b11101, 0b11111, 0b00001, 0, 0, 0b01100, 0]);
        assert_eq!(BitReader::new(&[0xff; 8], 64).next(), u64::MAX);
        assert_eq!(BitReader::new(&[], 0).next(), 0);
    }

    #[test]
    fn runs_give_what_was_asked_for() {
        let read = |bytes: &[u8], width, count| {
            let mut out = Vec::new();
            runs(&mut Cursor(bytes), width, count, &mut |value, times| {
                out.resize(out.len() + times, value);
                Ok(())
            })
            .map(|()| out)
        };
        assert_eq!(read(&[6, 1, 3, 0b0000_0101], 1, 5).unwrap(), [1, 1, 1, 1, 0]);
        assert_eq!(read(&[9], 0, 3).unwrap(), [0; 3]);
        for hostile in [&[0u8][..], &[], &[0xff, 0xff, 0xff, 0xff, 0x0f], &[6]] {
            assert!(read(hostile, 1, 5).is_err(), "{hostile:?}");
        }
    }

    #[test]
    fn impossible_blocks_of_differences_are_refused() {
        let read = |bytes: &[u8]| deltas(&mut Cursor(bytes), 100, &mut Vec::new());
        assert!(read(&[0x80, 1, 4, 0, 0]).is_ok());
        for hostile in [
            &[0u8, 4, 1, 0][..],
            &[0x80, 1, 0, 1, 0],
            &[0x80, 1, 3, 1, 0],
            &[0x80, 1, 4, 101, 0],
            &[0x80, 1, 4, 2, 0, 0, 65, 0, 0, 0],
        ] {
            assert!(read(hostile).is_err(), "{hostile:?}");
        }
    }
}
