//! The basic encodings of Parquet: varints, differences, runs and packed bits. Every read is
//! checked, and memory is allocated only for values whose bytes are there.

use parquet::errors::{ParquetError, Result};

/// Most bits of a packed number.
const WIDTH_MAX: u32 = 64;
/// Packed numbers that are read at once: a multiple of 8, so that they end with a byte.
const GROUP: usize = 32;
/// Most values of a block of differences; writers use 128.
const BLOCK_MAX: u64 = 1 << 16;

/// Returns an error that says what is wrong with a file.
pub fn damaged(what: &str) -> ParquetError {
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

/// Calls `each` for the first `count` of the numbers that `bytes` holds packed in `width` bits
/// each, the lowest bits first. Beyond the input they are 0.
fn unpack(bytes: &[u8], width: u32, count: usize, each: &mut impl FnMut(u64) -> Result<()>) -> Result<()> {
    if width == 0 {
        return (0..count).try_for_each(|_| each(0));
    }
    if width > WIDTH_MAX {
        return Err(damaged("numbers have too many bits"));
    }
    let (mask, width) = (u64::MAX >> (WIDTH_MAX - width), width as usize);
    let mut groups = bytes.chunks(GROUP / 8 * width);
    for start in (0..count).step_by(GROUP) {
        let group = groups.next().unwrap_or_default();
        // A number is read with the bytes after it.
        let mut padded = [0; GROUP / 8 * WIDTH_MAX as usize + 16];
        padded[..group.len()].copy_from_slice(group);
        for at in 0..GROUP.min(count - start) {
            let bit = at * width;
            let word = padded[bit / 8..].first_chunk().map_or(0, |bytes| u128::from_le_bytes(*bytes));
            each((word >> (bit % 8)) as u64 & mask)?;
        }
    }
    Ok(())
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
                let bytes = input.take((block / parts) as usize / 8 * usize::from(*width))?;
                unpack(bytes, u32::from(*width), here, &mut |bits| {
                    last = last.wrapping_add(least).wrapping_add(bits.cast_signed());
                    out.push(last);
                    Ok(())
                })?;
            }
            left -= here;
        }
    }
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
            let here = left.min(length.saturating_mul(8));
            unpack(input.take(bytes)?, width, here, &mut |bits| each(bits as u32, 1))?;
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

    fn unpacked(bytes: &[u8], width: u32, count: usize) -> Vec<u64> {
        let mut out = Vec::new();
        unpack(bytes, width, count, &mut |bits| {
            out.push(bits);
            Ok(())
        })
        .unwrap();
        out
    }

    #[test]
    fn bits_are_read_across_words() {
        let bytes = [0b1010_0101, 0xff, 0, 0, 0x3];
        assert_eq!(unpacked(&bytes, 5, 8), [0b00101, 0b11101, 0b11111, 0b00001, 0, 0, 0b01100, 0]);
        assert_eq!(unpacked(&[0xff; 8], 64, 2), [u64::MAX, 0]);
        assert_eq!(unpacked(&[], 0, 2), [0, 0]);
        assert!(unpack(&[], 65, 1, &mut |_| Ok(())).is_err());
    }

    #[test]
    fn numbers_of_each_width_are_those_that_were_packed() {
        for width in 1..=WIDTH_MAX {
            // More than two groups, of which the last one is not whole.
            let numbers: Vec<u64> = (1..=70)
                .map(|at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (WIDTH_MAX - width))
                .collect();
            let (mut bytes, mut held, mut count) = (Vec::new(), 0_u128, 0);
            for number in &numbers {
                held |= u128::from(*number) << count;
                count += width;
                while count >= 8 {
                    bytes.push(held as u8);
                    held >>= 8;
                    count -= 8;
                }
            }
            bytes.push(held as u8);
            assert_eq!(unpacked(&bytes, width, numbers.len()), numbers, "{width}");
        }
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
