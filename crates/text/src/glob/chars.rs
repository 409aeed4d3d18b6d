//! The UTF-8 decoder of glibc, which accepts code points beyond Unicode and so differs from the
//! standard library's.

/// An iterator over the characters of UTF-8 text as glibc decodes it, up to 31 bits. Yields `None`
/// for each byte that does not start a valid sequence.
#[derive(Clone)]
pub(super) struct Chars<'a>(pub(super) &'a [u8]);

impl Iterator for Chars<'_> {
    type Item = Option<u32>;

    fn next(&mut self) -> Option<Option<u32>> {
        let (&first, rest) = self.0.split_first()?;
        let len = first.leading_ones() as usize;
        if len == 0 {
            self.0 = rest;
            return Some(Some(first.into()));
        }
        let decoded = decode(first, len, rest);
        self.0 = &self.0[if decoded.is_some() { len } else { 1 }..];
        Some(decoded)
    }
}

fn decode(first: u8, len: usize, rest: &[u8]) -> Option<u32> {
    if !(2..=6).contains(&len) {
        return None;
    }
    let start = u32::from(first) & (0x7f >> len);
    let tail = rest.get(..len - 1)?;
    let c = tail
        .iter()
        .try_fold(start, |c, &byte| (byte >> 6 == 0b10).then(|| c << 6 | u32::from(byte & 0x3f)))?;
    let smallest = [0x80, 0x800, 0x1_0000, 0x20_0000, 0x400_0000][len - 2];
    (c >= smallest && !(0xd800..0xe000).contains(&c)).then_some(c)
}
