//! Columns while they are read: the values of a row group, one buffer a column and no heap object a row.

use parquet::basic::Encoding;
use parquet::errors::Result;

use super::decode::{Cursor, damaged, deltas, runs};
use crate::store::column::Kind;

/// What a column of a row group may take once it is decoded, in bytes; a file that has more in one is refused.
pub(super) const COLUMN_BYTES_MAX: usize = 1 << 30;

/// A column that is being read.
pub(super) trait Values: Default {
    /// Appends `count` values of a page.
    fn decode(
        &mut self,
        input: Cursor<'_>,
        encoding: Encoding,
        count: usize,
        dictionary: Option<&Self>,
    ) -> Result<()>;
    /// Makes rows of the values from `from` on, which are those of the rows that have one.
    fn spread(&mut self, from: usize, present: &[bool]);
    /// Values so far.
    fn len(&self) -> usize;
    /// For values of `kind`.
    fn of(kind: Kind) -> Self;
}

/// A column of numbers. A row without one has a zero.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    values: Vec<i64>,
    width: Width,
    /// Which rows have one; empty if all have.
    present: Vec<bool>,
}

/// How many bits count, and what the others are.
#[derive(Clone, Copy, Debug, Default)]
enum Width {
    #[default]
    Long,
    Int,
    Unsigned,
    /// 0 or 1; eight in a byte, the lowest bit first.
    Bit,
}

impl Numbers {
    pub(crate) fn get(&self, row: usize) -> Option<i64> {
        self.present.get(row).is_none_or(|present| *present).then(|| self.values[row])
    }

    /// The numbers, 0 where there is none.
    pub(crate) fn or_zero(&self) -> &[i64] {
        &self.values
    }

    fn fit(&self, number: i64) -> i64 {
        match self.width {
            Width::Long | Width::Bit => number,
            Width::Int => i64::from(number as i32),
            Width::Unsigned => i64::from(number as u32),
        }
    }
}

impl Values for Numbers {
    fn decode(
        &mut self,
        mut input: Cursor<'_>,
        encoding: Encoding,
        count: usize,
        dictionary: Option<&Self>,
    ) -> Result<()> {
        let from = self.values.len();
        match (encoding, dictionary) {
            (Encoding::PLAIN, _) if matches!(self.width, Width::Bit) => {
                let bytes = input.take(count.div_ceil(8))?;
                self.values.extend((0..count).map(|at| i64::from(bytes[at / 8] >> (at % 8) & 1)));
            }
            (_, _) if matches!(self.width, Width::Bit) => {
                return Err(damaged("bits have an encoding that is not theirs"));
            }
            (Encoding::PLAIN, _) => {
                for _ in 0..count {
                    let number = match self.width {
                        Width::Long | Width::Bit => i64::from_le_bytes(input.array()?),
                        Width::Int | Width::Unsigned => i64::from(i32::from_le_bytes(input.array()?)),
                    };
                    self.values.push(number);
                }
            }
            (Encoding::DELTA_BINARY_PACKED, _) => deltas(&mut input, count, &mut self.values)?,
            (Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY, Some(dictionary)) => {
                let width = input.byte()?;
                runs(&mut input, width.into(), count, &mut |place, times| {
                    let value = *dictionary.values.get(place as usize).ok_or_else(unknown_place)?;
                    self.values.resize(self.values.len() + times, value);
                    Ok(())
                })?;
            }
            _ => return Err(damaged("numbers have an encoding that is not theirs")),
        }
        for at in from..self.values.len() {
            self.values[at] = self.fit(self.values[at]);
        }
        enough(self.values.len() - from, count)
    }

    fn spread(&mut self, from: usize, present: &[bool]) {
        self.present.extend_from_slice(present);
        let dense = self.values.split_off(from);
        let mut dense = dense.into_iter();
        self.values
            .extend(present.iter().map(|present| if *present { dense.next().unwrap_or(0) } else { 0 }));
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn of(kind: Kind) -> Self {
        let width = match kind {
            Kind::Int32 => Width::Int,
            Kind::Uint32 => Width::Unsigned,
            Kind::Bool => Width::Bit,
            _ => Width::Long,
        };
        Self { width, ..Self::default() }
    }
}

/// A column of texts or bytes. A row without one has an empty one.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    present: Vec<bool>,
}

impl Texts {
    pub(crate) fn get(&self, row: usize) -> Option<&[u8]> {
        self.present.get(row).is_none_or(|present| *present).then(|| self.or_empty(row))
    }

    fn or_empty(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[row]]
    }

    fn push(&mut self, text: &[u8]) -> Result<()> {
        self.reserve(text.len())?;
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// Whether so much more is not too much.
    fn reserve(&self, bytes: usize) -> Result<()> {
        let has_room = bytes <= COLUMN_BYTES_MAX - self.bytes.len();
        has_room.then_some(()).ok_or_else(|| damaged("the texts of a row group are too long"))
    }

    /// What a text shares with the one before it, and the rest (`DELTA_BYTE_ARRAY`).
    fn fronts(&mut self, mut input: Cursor<'_>, count: usize) -> Result<()> {
        let (mut shared, mut rests) = (Vec::new(), Vec::new());
        deltas(&mut input, count, &mut shared)?;
        deltas(&mut input, count, &mut rests)?;
        enough(rests.len(), shared.len())?;
        // The first of a page has none before it.
        let mut last = self.bytes.len()..self.bytes.len();
        for (shared, rest) in shared.into_iter().zip(rests) {
            let shared = length(shared)?;
            let rest = input.take(length(rest)?)?;
            if shared > last.len() {
                return Err(damaged("a text shares more than there is"));
            }
            self.reserve(shared.saturating_add(rest.len()))?;
            let start = self.bytes.len();
            self.bytes.extend_from_within(last.start..last.start + shared);
            self.bytes.extend_from_slice(rest);
            last = start..self.bytes.len();
            self.ends.push(last.end);
        }
        Ok(())
    }
}

impl Values for Texts {
    fn decode(
        &mut self,
        mut input: Cursor<'_>,
        encoding: Encoding,
        count: usize,
        dictionary: Option<&Self>,
    ) -> Result<()> {
        let from = self.ends.len();
        match (encoding, dictionary) {
            (Encoding::PLAIN, _) => (0..count).try_for_each(|_| self.push(input.sized()?))?,
            (Encoding::DELTA_LENGTH_BYTE_ARRAY, _) => {
                let mut lengths = Vec::new();
                deltas(&mut input, count, &mut lengths)?;
                lengths.into_iter().try_for_each(|bytes| self.push(input.take(length(bytes)?)?))?;
            }
            (Encoding::DELTA_BYTE_ARRAY, _) => self.fronts(input, count)?,
            (Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY, Some(dictionary)) => {
                let width = input.byte()?;
                runs(&mut input, width.into(), count, &mut |place, times| {
                    let place = place as usize;
                    if place >= dictionary.ends.len() {
                        return Err(unknown_place());
                    }
                    (0..times).try_for_each(|_| self.push(dictionary.or_empty(place)))
                })?;
            }
            _ => return Err(damaged("texts have an encoding that is not theirs")),
        }
        enough(self.ends.len() - from, count)
    }

    fn spread(&mut self, from: usize, present: &[bool]) {
        self.present.extend_from_slice(present);
        let mut end = from.checked_sub(1).map_or(0, |before| self.ends[before]);
        let dense = self.ends.split_off(from);
        let mut dense = dense.into_iter();
        for present in present {
            end = if *present { dense.next().unwrap_or(end) } else { end };
            self.ends.push(end);
        }
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn of(_kind: Kind) -> Self {
        Self::default()
    }
}

fn length(number: i64) -> Result<usize> {
    usize::try_from(number).map_err(|_| damaged("a length is negative"))
}

fn enough(found: usize, wanted: usize) -> Result<()> {
    (found == wanted).then_some(()).ok_or_else(|| damaged("a page has not as many values as it says"))
}

fn unknown_place() -> parquet::errors::ParquetError {
    damaged("a value is not in the dictionary")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ENCODINGS: [Encoding; 5] = [
        Encoding::PLAIN,
        Encoding::DELTA_BINARY_PACKED,
        Encoding::DELTA_LENGTH_BYTE_ARRAY,
        Encoding::DELTA_BYTE_ARRAY,
        Encoding::RLE_DICTIONARY,
    ];

    /// As many values as wanted, or an error; either way, what there is can be looked at.
    fn survives<V: Values>(kind: Kind, bytes: &[u8], count: usize) {
        for encoding in ENCODINGS {
            let mut dictionary = V::of(kind);
            let has_words = dictionary.decode(Cursor(&[1; 40]), Encoding::PLAIN, 5, None).is_ok();
            let mut values = V::of(kind);
            let read = values.decode(Cursor(bytes), encoding, count, has_words.then_some(&dictionary));
            assert!(read.is_err() || values.len() == count);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 4096, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_values_or_an_error(
            head in prop::option::of(0u8..140),
            rest in prop::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..200),
            count in 0usize..300,
        ) {
            // What begins as blocks of differences do gets further.
            let head = head.map_or(vec![], |count| vec![0x80, 1, 4, count]);
            let bytes = [head, rest].concat();
            survives::<Numbers>(Kind::Int64, &bytes, count);
            survives::<Numbers>(Kind::Uint32, &bytes, count);
            survives::<Numbers>(Kind::Bool, &bytes, count);
            survives::<Texts>(Kind::Text, &bytes, count);
        }
    }

    #[test]
    fn rows_without_a_value_keep_their_place() {
        let mut numbers = Numbers::of(Kind::Uint32);
        numbers.decode(Cursor(&[255, 255, 255, 255, 7, 0, 0, 0]), Encoding::PLAIN, 2, None).unwrap();
        numbers.spread(0, &[true, false, true]);
        assert_eq!([numbers.get(0), numbers.get(1), numbers.get(2)], [Some(0xffff_ffff), None, Some(7)]);
        let mut bits = Numbers::of(Kind::Bool);
        bits.decode(Cursor(&[0b1000_0001, 0b10]), Encoding::PLAIN, 10, None).unwrap();
        bits.spread(9, &[false, true]);
        let all: Vec<_> = (0..11).map(|row| bits.or_zero()[row]).collect();
        assert_eq!(all, [1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1]);
        let mut texts = Texts::default();
        texts.decode(Cursor(b"\x01\0\0\0a\x02\0\0\0bc"), Encoding::PLAIN, 2, None).unwrap();
        texts.spread(0, &[false, true, false, true]);
        let all: Vec<_> = (0..4).map(|row| texts.get(row)).collect();
        assert_eq!(all, [None, Some(&b"a"[..]), None, Some(b"bc")]);
    }

    #[test]
    fn what_does_not_fit_the_page_is_refused() {
        let texts = |bytes: &[u8], encoding| Texts::default().decode(Cursor(bytes), encoding, 1, None);
        assert!(texts(b"\x02\0\0\0a", Encoding::PLAIN).is_err());
        assert!(texts(b"\0\0", Encoding::RLE_DICTIONARY).is_err());
        assert!(texts(&[0x80, 1, 4, 1, 1], Encoding::DELTA_LENGTH_BYTE_ARRAY).is_err());
        assert!(texts(&[0x80, 1, 4, 1, 2, 0x80, 1, 4, 1, 0], Encoding::DELTA_BYTE_ARRAY).is_err());
        let dictionary = Numbers::default();
        let place =
            Numbers::default().decode(Cursor(&[1, 2, 0]), Encoding::RLE_DICTIONARY, 1, Some(&dictionary));
        assert!(place.is_err());
    }
}
