//! Self-identifying contents: every record of 64 bytes holds the number of the file, its version
//! and the offset. The content of a version is unbounded; a file is a prefix of it.

/// Length of a record, in bytes.
pub(crate) const RECORD: usize = 64;
/// Number of hexadecimal digits of the file, the version and the offset.
const DIGITS: usize = 16;

/// Writes `number` in hexadecimal, with leading zeros, to `out`.
fn digits(mut number: u64, out: &mut [u8]) {
    for digit in out.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(number % 16) as usize];
        number /= 16;
    }
}

/// Fills `out` with the content of `version` of `file` from `offset` on.
pub(crate) fn fill(file: u64, version: u64, offset: u64, out: &mut [u8]) {
    let mut record = [b'.'; RECORD];
    digits(file, &mut record[..DIGITS]);
    digits(version, &mut record[DIGITS..2 * DIGITS]);
    record[RECORD - 1] = b'\n';
    let (mut at, mut filled) = (offset, 0);
    while filled < out.len() {
        digits(at / RECORD as u64, &mut record[2 * DIGITS..3 * DIGITS]);
        let skip = (at % RECORD as u64) as usize;
        let take = (RECORD - skip).min(out.len() - filled);
        out[filled..filled + take].copy_from_slice(&record[skip..skip + take]);
        at += take as u64;
        filled += take;
    }
}

/// Returns `len` bytes of the content of `version` of `file` from `offset` on.
pub(crate) fn bytes(file: u64, version: u64, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fill(file, version, offset, &mut bytes);
    bytes
}

/// Checks the bytes of one response as they arrive.
pub(crate) struct ContentChecker {
    file: u64,
    /// Offset of the next byte in the file.
    at: u64,
    /// The bytes before the version is known.
    early: Vec<u8>,
    version: Option<u64>,
    /// Description of the first wrong bytes.
    wrong: Option<String>,
}

impl ContentChecker {
    /// Returns a checker for a body that begins at `offset` of `file`.
    pub(crate) fn new(file: u64, offset: u64) -> ContentChecker {
        ContentChecker { file, at: offset, early: Vec::new(), version: None, wrong: None }
    }

    /// Checks the next bytes of the body.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        match self.version {
            Some(version) => self.compare(version, bytes),
            None => {
                self.early.extend_from_slice(bytes);
                self.version = self.read_version();
                if let Some(version) = self.version {
                    let early = std::mem::take(&mut self.early);
                    self.compare(version, &early);
                }
            }
        }
    }

    fn compare(&mut self, version: u64, bytes: &[u8]) {
        let expected = self::bytes(self.file, version, self.at, bytes.len());
        if self.wrong.is_none() && expected != bytes {
            let same = expected.iter().zip(bytes).take_while(|(expected, found)| expected == found).count();
            let found = bytes[same..].chunks(RECORD).next().unwrap_or_default().escape_ascii();
            let at = self.at + same as u64;
            self.wrong = Some(format!("file {}, version {version}, at {at}: {found}", self.file));
        }
        self.at += bytes.len() as u64;
    }

    /// Returns the version that the first complete record names.
    fn read_version(&self) -> Option<u64> {
        let start = (RECORD - (self.at % RECORD as u64) as usize) % RECORD;
        let record = self.early.get(start..start + RECORD)?;
        let text = std::str::from_utf8(&record[DIGITS..2 * DIGITS]).ok();
        // A record without a version number is wrong: return a version that no file has.
        Some(text.and_then(|text| u64::from_str_radix(text, 16).ok()).unwrap_or(u64::MAX))
    }

    /// Returns the version of the whole body, or `None` if the body is too short to contain a
    /// record. Fails if the body is not from one version up to `latest`.
    pub(crate) fn end(self, latest: u64) -> Result<Option<u64>, String> {
        match (self.wrong, self.version) {
            (Some(wrong), _) => Err(wrong),
            (None, Some(version)) if version <= latest => Ok(Some(version)),
            (None, Some(version)) => Err(format!("file {}: version {version} of {latest}", self.file)),
            (None, None) => {
                let fits = |version| bytes(self.file, version, self.at, self.early.len()) == self.early;
                match (0..=latest).any(fits) {
                    true => Ok(None),
                    false => Err(format!("file {}: {}", self.file, self.early.escape_ascii())),
                }
            }
        }
    }
}

/// Checks `pieces`, which begin at `offset` of file 3, whose latest version is 5.
fn check_pieces(offset: u64, pieces: &[&[u8]]) -> Result<Option<u64>, String> {
    let mut checker = ContentChecker::new(3, offset);
    pieces.iter().for_each(|piece| checker.take(piece));
    checker.end(5)
}

#[test]
fn correct_bytes_pass_at_any_offset() {
    for offset in [0, 1, 63, 64, 1000] {
        let whole = bytes(3, 4, offset, 300);
        for cut in [0, 1, 64, 127, 300] {
            assert_eq!(check_pieces(offset, &[&whole[..cut], &whole[cut..]]), Ok(Some(4)), "{offset}, {cut}");
        }
        assert_eq!(check_pieces(offset, &[&whole[..20]]), Ok(None));
    }
    assert_eq!(check_pieces(0, &[]), Ok(None));
}

#[test]
fn wrong_bytes_are_found() {
    let right = bytes(3, 4, 100, 300);
    let torn = [&right[..200], &bytes(3, 5, 300, 100)].concat();
    let mut flipped = right.clone();
    flipped[299] ^= 1;
    let wrong =
        [torn, flipped, bytes(2, 4, 100, 300), bytes(3, 6, 100, 300), bytes(3, 4, 101, 300), vec![0; 300]];
    for (number, wrong) in wrong.iter().enumerate() {
        assert!(check_pieces(100, &[wrong]).is_err(), "{number}");
    }
    assert!(check_pieces(100, &[&[0; 20]]).is_err(), "too short to say of which version it is, and of none");
}
