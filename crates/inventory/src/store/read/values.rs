//! Decoded columns of a row group: one buffer for each column, and no allocation for a row.

use parquet::basic::Encoding;
use parquet::errors::Result;

use super::decode::{Cursor, damaged, deltas, runs};
use crate::store::column::ColumnKind;

/// Most bytes of a decoded column of a row group. A file with a larger column is refused.
pub(super) const COLUMN_BYTES_MAX: usize = 1 << 30;

/// The decoded values of a column.
pub(super) trait ColumnValues: Default {
    /// Appends `count` values of a page.
    fn decode(
        &mut self,
        input: Cursor<'_>,
        encoding: Encoding,
        count: usize,
        dictionary: Option<&Self>,
    ) -> Result<()>;
    /// Expands the values from `from` on over the rows: `present` says for each row whether it has
    /// a value.
    fn expand(&mut self, from: usize, present: &[bool]);
    /// Returns the number of values so far.
    fn len(&self) -> usize;
    /// Creates an empty buffer for values of `kind`, with room for `rows` of them.
    fn of(kind: ColumnKind, rows: usize) -> Self;
}

/// A decoded column of numbers. A row without a value has 0.
#[derive(Debug, Default)]
pub struct NumberColumn {
    values: Vec<i64>,
    width: NumberWidth,
    /// For each row, whether it has a value; empty if all rows have one.
    present: Vec<bool>,
}

/// The width and signedness of the numbers.
#[derive(Clone, Copy, Debug, Default)]
enum NumberWidth {
    #[default]
    Long,
    Int,
    Unsigned,
    /// 0 or 1, packed eight to a byte, the lowest bit first.
    Bit,
}

impl NumberColumn {
    /// Returns the value of a row, if it has one.
    pub fn get(&self, row: usize) -> Option<i64> {
        self.present.get(row).is_none_or(|present| *present).then(|| self.values[row])
    }

    /// Returns the numbers, 0 for a row without a value.
    pub fn or_zero(&self) -> &[i64] {
        &self.values
    }

    fn fit(&self, number: i64) -> i64 {
        match self.width {
            NumberWidth::Long | NumberWidth::Bit => number,
            NumberWidth::Int => i64::from(number as i32),
            NumberWidth::Unsigned => i64::from(number as u32),
        }
    }
}

impl ColumnValues for NumberColumn {
    fn decode(
        &mut self,
        mut input: Cursor<'_>,
        encoding: Encoding,
        count: usize,
        dictionary: Option<&Self>,
    ) -> Result<()> {
        let from = self.values.len();
        match (encoding, dictionary) {
            (Encoding::PLAIN, _) if matches!(self.width, NumberWidth::Bit) => {
                let bytes = input.take(count.div_ceil(8))?;
                self.values.extend((0..count).map(|at| i64::from(bytes[at / 8] >> (at % 8) & 1)));
            }
            (_, _) if matches!(self.width, NumberWidth::Bit) => {
                return Err(damaged("bits have an encoding that is not theirs"));
            }
            (Encoding::PLAIN, _) => {
                for _ in 0..count {
                    let number = match self.width {
                        NumberWidth::Long | NumberWidth::Bit => i64::from_le_bytes(input.array()?),
                        NumberWidth::Int | NumberWidth::Unsigned => {
                            i64::from(i32::from_le_bytes(input.array()?))
                        }
                    };
                    self.values.push(number);
                }
            }
            (Encoding::DELTA_BINARY_PACKED, _) => deltas(&mut input, count, &mut self.values)?,
            (Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY, Some(dictionary)) => {
                let width = input.byte()?;
                runs(&mut input, width.into(), count, &mut |place, times| {
                    let value = *dictionary.values.get(place as usize).ok_or_else(unknown_index)?;
                    self.values.extend(std::iter::repeat_n(value, times));
                    Ok(())
                })?;
            }
            _ => return Err(damaged("numbers have an encoding that is not theirs")),
        }
        if matches!(self.width, NumberWidth::Int | NumberWidth::Unsigned) {
            for at in from..self.values.len() {
                self.values[at] = self.fit(self.values[at]);
            }
        }
        check_count(self.values.len() - from, count)
    }

    fn expand(&mut self, from: usize, present: &[bool]) {
        if self.present.is_empty() && present.iter().all(|present| *present) {
            return;
        }
        self.present.resize(from, true);
        self.present.extend_from_slice(present);
        // From the last row on, so that no value is overwritten before it is moved.
        let mut dense = self.values.len();
        self.values.resize(from + present.len(), 0);
        for (row, present) in present.iter().enumerate().rev() {
            dense -= usize::from(*present);
            self.values[from + row] = if *present { self.values[dense] } else { 0 };
        }
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn of(kind: ColumnKind, rows: usize) -> Self {
        let width = match kind {
            ColumnKind::Int32 => NumberWidth::Int,
            ColumnKind::Uint32 => NumberWidth::Unsigned,
            ColumnKind::Bool => NumberWidth::Bit,
            _ => NumberWidth::Long,
        };
        Self { values: Vec::with_capacity(rows), width, present: Vec::new() }
    }
}

/// A decoded column of texts or byte strings. A row without a value has an empty one.
#[derive(Debug, Default)]
pub struct TextColumn {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    present: Vec<bool>,
}

impl TextColumn {
    /// Returns the value of a row, if it has one.
    pub fn get(&self, row: usize) -> Option<&[u8]> {
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

    /// Checks that this many more bytes are within the limit.
    fn reserve(&self, bytes: usize) -> Result<()> {
        let has_room = bytes <= COLUMN_BYTES_MAX - self.bytes.len();
        has_room.then_some(()).ok_or_else(|| damaged("the texts of a row group are too long"))
    }

    /// Decodes texts as the length of the prefix shared with the text before, and the rest
    /// (`DELTA_BYTE_ARRAY`).
    fn decode_prefixes(&mut self, mut input: Cursor<'_>, count: usize) -> Result<()> {
        let (mut shared, mut rests) = (Vec::new(), Vec::new());
        deltas(&mut input, count, &mut shared)?;
        deltas(&mut input, count, &mut rests)?;
        check_count(rests.len(), shared.len())?;
        // The first text of a page shares nothing.
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

impl ColumnValues for TextColumn {
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
            (Encoding::DELTA_BYTE_ARRAY, _) => self.decode_prefixes(input, count)?,
            (Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY, Some(dictionary)) => {
                let width = input.byte()?;
                runs(&mut input, width.into(), count, &mut |place, times| {
                    let place = place as usize;
                    if place >= dictionary.ends.len() {
                        return Err(unknown_index());
                    }
                    (0..times).try_for_each(|_| self.push(dictionary.or_empty(place)))
                })?;
            }
            _ => return Err(damaged("texts have an encoding that is not theirs")),
        }
        check_count(self.ends.len() - from, count)
    }

    fn expand(&mut self, from: usize, present: &[bool]) {
        if self.present.is_empty() && present.iter().all(|present| *present) {
            return;
        }
        self.present.resize(from, true);
        self.present.extend_from_slice(present);
        let mut dense = self.ends.len();
        self.ends.resize(from + present.len(), 0);
        for (row, present) in present.iter().enumerate().rev() {
            dense -= usize::from(*present);
            // A row without a text ends where the one before it does.
            let last = if *present { Some(dense) } else { dense.checked_sub(1) };
            self.ends[from + row] = last.map_or(0, |last| self.ends[last]);
        }
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn of(_kind: ColumnKind, rows: usize) -> Self {
        Self { ends: Vec::with_capacity(rows), ..Self::default() }
    }
}

fn length(number: i64) -> Result<usize> {
    usize::try_from(number).map_err(|_| damaged("a length is negative"))
}

fn check_count(found: usize, wanted: usize) -> Result<()> {
    (found == wanted).then_some(()).ok_or_else(|| damaged("a page has not as many values as it says"))
}

fn unknown_index() -> parquet::errors::ParquetError {
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

    /// Asserts that decoding gives an error or as many values as wanted, and never panics.
    fn survives<V: ColumnValues>(kind: ColumnKind, bytes: &[u8], count: usize) {
        for encoding in ENCODINGS {
            let mut dictionary = V::of(kind, 0);
            let has_words = dictionary.decode(Cursor(&[1; 40]), Encoding::PLAIN, 5, None).is_ok();
            let mut values = V::of(kind, 0);
            let read = values.decode(Cursor(bytes), encoding, count, has_words.then_some(&dictionary));
            assert!(read.is_err() || values.len() == count);
        }
    }

    proptest! {
        #![proptest_config(fathom_cases::property(4096))]

        #[test]
        fn any_bytes_are_values_or_an_error(
            head in prop::option::of(0u8..140),
            rest in prop::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..200),
            count in 0usize..300,
        ) {
            // Bytes that begin as a block of differences get further into the decoder.
            let head = head.map_or(vec![], |count| vec![0x80, 1, 4, count]);
            let bytes = [head, rest].concat();
            survives::<NumberColumn>(ColumnKind::Int64, &bytes, count);
            survives::<NumberColumn>(ColumnKind::Uint32, &bytes, count);
            survives::<NumberColumn>(ColumnKind::Bool, &bytes, count);
            survives::<TextColumn>(ColumnKind::Text, &bytes, count);
        }
    }

    #[test]
    fn rows_without_a_value_keep_their_place() {
        let mut numbers = NumberColumn::of(ColumnKind::Uint32, 0);
        numbers.decode(Cursor(&[255, 255, 255, 255, 7, 0, 0, 0]), Encoding::PLAIN, 2, None).unwrap();
        numbers.expand(0, &[true, false, true]);
        assert_eq!([numbers.get(0), numbers.get(1), numbers.get(2)], [Some(0xffff_ffff), None, Some(7)]);
        let mut bits = NumberColumn::of(ColumnKind::Bool, 0);
        bits.decode(Cursor(&[0b1000_0001, 0b10]), Encoding::PLAIN, 10, None).unwrap();
        bits.expand(9, &[false, true]);
        let all: Vec<_> = (0..11).map(|row| bits.or_zero()[row]).collect();
        assert_eq!(all, [1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1]);
        let mut texts = TextColumn::default();
        texts.decode(Cursor(b"\x01\0\0\0a\x02\0\0\0bc"), Encoding::PLAIN, 2, None).unwrap();
        texts.expand(0, &[false, true, false, true]);
        let all: Vec<_> = (0..4).map(|row| texts.get(row)).collect();
        assert_eq!(all, [None, Some(&b"a"[..]), None, Some(b"bc")]);
    }

    #[test]
    fn values_that_do_not_fit_the_page_are_refused() {
        let texts = |bytes: &[u8], encoding| TextColumn::default().decode(Cursor(bytes), encoding, 1, None);
        assert!(texts(b"\x02\0\0\0a", Encoding::PLAIN).is_err());
        assert!(texts(b"\0\0", Encoding::RLE_DICTIONARY).is_err());
        assert!(texts(&[0x80, 1, 4, 1, 1], Encoding::DELTA_LENGTH_BYTE_ARRAY).is_err());
        assert!(texts(&[0x80, 1, 4, 1, 2, 0x80, 1, 4, 1, 0], Encoding::DELTA_BYTE_ARRAY).is_err());
        let dictionary = NumberColumn::default();
        let place = NumberColumn::default().decode(
            Cursor(&[1, 2, 0]),
            Encoding::RLE_DICTIONARY,
            1,
            Some(&dictionary),
        );
        assert!(place.is_err());
    }
}
