//! ncdu's export format, major version 1, and gdu's variant of it: a directory is a list of its own
//! object and of the values of its entries, which are objects, or lists if they are directories.
//!
//! Names are taken as bytes. A size that is missing is 0, as the format says; gdu writes none for
//! directories, so there it is unknown. ncdu marks every name of a file that has several; gdu marks
//! all but the one that it counts, so the sizes of marked names are left out.

use std::io::BufRead;

use fathom_walk::{Errno, FileTime, FileType, Meta};

use super::ImportError;
use super::builder::{ImportOrigin, InventoryBuilder, Refused};
use super::json::{JsonReader, JsonToken};
use fathom_inventory::store::{DirState, EntryRow, MissingColumns};
use fathom_questions::export::NCDU_WRAPPER_NAME;

/// Most bytes of the name of a program.
const PROGRAM_BYTES_MAX: usize = 128;
/// The columns that gdu does not write for directories and further names.
const SIZES: MissingColumns = MissingColumns::SIZE.union(MissingColumns::BLOCKS);
/// The type bits of a mode (inode(7)).
const TYPE_BITS: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;

/// Reads an export into `builder`.
pub(super) fn read(
    input: &mut dyn BufRead,
    is_gdu: bool,
    builder: &mut InventoryBuilder,
) -> Result<ImportOrigin, ImportError> {
    let mut json = JsonReader::new(input);
    let origin = header(&mut json)?;
    if let Some(sec) = origin.scanned {
        builder.set_scanned(sec);
    }
    // fathom's own exports have a directory of this name around several trees.
    let has_wrapper = origin.program.starts_with("fathom ");
    let mut reader = TreeReader { json: &mut json, builder, is_gdu, has_wrapper, levels: Vec::new() };
    reader.tree()?;
    end(&mut json)?;
    Ok(origin)
}

/// Reads the versions and the object about the program.
fn header(json: &mut JsonReader<'_>) -> Result<ImportOrigin, ImportError> {
    json.expect(JsonToken::BeginArray, "not an ncdu export")?;
    if json.token()? != JsonToken::Number(Some(1)) {
        return Err(json.malformed("not an ncdu export of format version 1"));
    }
    json.expect(JsonToken::Comma, "not an ncdu export")?;
    if !matches!(json.token()?, JsonToken::Number(Some(_))) {
        return Err(json.malformed("not an ncdu export"));
    }
    json.expect(JsonToken::Comma, "not an ncdu export")?;
    json.expect(JsonToken::BeginObject, "not an ncdu export")?;
    let (mut program, mut version, mut scanned) = (String::new(), String::new(), None);
    json.object(|json, name, value| {
        match (name, value) {
            (b"progname", JsonToken::String) => program = short_text(json.text()),
            (b"progver", JsonToken::String) => version = short_text(json.text()),
            (b"timestamp", JsonToken::Number(Some(sec))) => scanned = i64::try_from(sec).ok(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    json.expect(JsonToken::Comma, "the export has no tree")?;
    Ok(ImportOrigin { program: format!("{program} {version}"), scanned })
}

fn short_text(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(PROGRAM_BYTES_MAX)]).into_owned()
}

/// Skips further values of the outermost list, which later minor versions may have.
fn end(json: &mut JsonReader<'_>) -> Result<(), ImportError> {
    loop {
        match json.token()? {
            JsonToken::EndArray => break,
            JsonToken::Comma => {
                let value = json.token()?;
                json.skip(value)?;
            }
            _ => return Err(json.malformed("the export is truncated")),
        }
    }
    json.expect(JsonToken::End, "unexpected data after the export")
}

/// A directory that is being read.
struct Level {
    dev: u64,
    state: DirState,
    is_empty: bool,
    /// Whether it stands around several trees and is none itself.
    is_wrapper: bool,
}

struct TreeReader<'a, 'i> {
    json: &'a mut JsonReader<'i>,
    builder: &'a mut InventoryBuilder,
    is_gdu: bool,
    has_wrapper: bool,
    levels: Vec<Level>,
}

impl TreeReader<'_, '_> {
    /// Reads the outermost directory and everything below.
    fn tree(&mut self) -> Result<(), ImportError> {
        self.json.expect(JsonToken::BeginArray, "the export has no tree")?;
        self.directory()?;
        loop {
            match self.json.token()? {
                JsonToken::Comma => match self.json.token()? {
                    JsonToken::BeginArray => self.directory()?,
                    JsonToken::BeginObject => self.entry()?,
                    _ => return Err(self.json.malformed("a directory has an impossible entry")),
                },
                JsonToken::EndArray => {
                    self.leave()?;
                    if self.levels.is_empty() {
                        return Ok(());
                    }
                }
                _ => return Err(self.json.malformed("a directory does not end")),
            }
        }
    }

    fn refused<T>(&self, done: Result<T, Refused>) -> Result<T, ImportError> {
        done.map_err(|what| self.json.malformed(what))
    }

    /// Reads the object of a directory, and enters it.
    fn directory(&mut self) -> Result<(), ImportError> {
        self.json.expect(JsonToken::BeginObject, "a directory has no object of its own")?;
        let info = self.info()?;
        let dev = info.dev.unwrap_or_else(|| self.levels.last().map_or(0, |level| level.dev));
        let is_wrapper = self.levels.is_empty() && self.has_wrapper && info.name == NCDU_WRAPPER_NAME;
        self.mark_filled();
        if !is_wrapper {
            let entered = self.builder.enter(&info.name, info.dir_row(dev, self.is_gdu));
            self.refused(entered)?;
        }
        let state = match (info.excluded, info.read_error) {
            (Some(_), _) => DirState::Skipped,
            (None, true) => DirState::Partial,
            (None, false) => DirState::Complete,
        };
        self.levels.push(Level { dev, state, is_empty: true, is_wrapper });
        Ok(())
    }

    fn mark_filled(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.is_empty = false;
        }
    }

    /// Reads the rest of an entry that is not a list.
    fn entry(&mut self) -> Result<(), ImportError> {
        let info = self.info()?;
        let above = self.levels.last().map_or(0, |level| level.dev);
        let dev = info.dev.unwrap_or(above);
        match info.excluded {
            // As in a scan, what a pattern leaves out has no row.
            Some(Excluded::Pattern) => return Ok(()),
            Some(Excluded::Filesystem) => {
                let entered = self.builder.enter(&info.name, info.dir_row(dev, self.is_gdu));
                self.refused(entered)?;
                let left = self.builder.leave(DirState::Skipped, None);
                return self.refused(left);
            }
            None => {}
        }
        self.mark_filled();
        let added = self.builder.entry(&info.name, info.row(dev, self.is_gdu));
        self.refused(added)
    }

    fn leave(&mut self) -> Result<(), ImportError> {
        let Some(level) = self.levels.pop() else { return Ok(()) };
        if level.is_wrapper {
            return Ok(());
        }
        let left = match level.state {
            DirState::Partial if level.is_empty => self.builder.leave(DirState::Failed, Some(Errno::IO)),
            DirState::Partial => self.builder.leave(DirState::Partial, Some(Errno::IO)),
            state => self.builder.leave(state, None),
        };
        self.refused(left)
    }

    /// Reads an object after its brace.
    fn info(&mut self) -> Result<EntryInfo, ImportError> {
        let mut info = EntryInfo::default();
        self.json.object(|json, name, value| info.take(json, name, value))?;
        if info.name.is_empty() { Err(self.json.malformed("an entry has no name")) } else { Ok(info) }
    }
}

/// Why an entry is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Excluded {
    Pattern,
    /// It is a directory on another filesystem, or on one of the kernel.
    Filesystem,
}

/// The members of an object.
#[derive(Debug, Default)]
struct EntryInfo {
    name: Vec<u8>,
    asize: i64,
    dsize: u64,
    dev: Option<u64>,
    ino: Option<u64>,
    nlink: Option<u64>,
    uid: Option<u32>,
    gid: Option<u32>,
    mode: Option<u32>,
    mtime: Option<i64>,
    is_link: bool,
    is_not_regular: bool,
    read_error: bool,
    excluded: Option<Excluded>,
}

impl EntryInfo {
    /// Takes a member. Returns false for one that is unknown.
    fn take(
        &mut self,
        json: &mut JsonReader<'_>,
        name: &[u8],
        value: JsonToken,
    ) -> Result<bool, ImportError> {
        let number = || match value {
            JsonToken::Number(Some(number)) => {
                u64::try_from(number).map_err(|_| json.malformed("a number is out of range"))
            }
            _ => Err(json.malformed("a member that is a number has another value")),
        };
        let narrow = || u32::try_from(number()?).map_err(|_| json.malformed("a number is out of range"));
        // ncdu extends the sign of an owner of 2^31 or more, as in `-2` or 18446744073709551614.
        let owner = || match value {
            JsonToken::Number(Some(number)) => {
                let extended = u64::try_from(number).ok().map(u64::cast_signed);
                let signed =
                    i64::try_from(number).ok().or(extended).and_then(|number| i32::try_from(number).ok());
                signed.map_or_else(narrow, |signed| Ok(signed.cast_unsigned()))
            }
            _ => narrow(),
        };
        match (name, value) {
            (b"name", JsonToken::String) => self.name = json.text().to_vec(),
            (b"name", _) => return Err(json.malformed("a name is not a string")),
            (b"asize", _) => {
                self.asize =
                    i64::try_from(number()?).map_err(|_| json.malformed("a number is out of range"))?
            }
            (b"dsize", _) => self.dsize = number()?,
            (b"dev", _) => self.dev = Some(number()?),
            (b"ino", _) => self.ino = Some(number()?),
            (b"nlink", _) => self.nlink = Some(number()?),
            (b"uid", _) => self.uid = Some(owner()?),
            (b"gid", _) => self.gid = Some(owner()?),
            (b"mode", _) => self.mode = Some(narrow()?),
            // A time before 1970 is negative, or as ncdu writes it, beyond the signed numbers.
            (b"mtime", JsonToken::Number(Some(sec))) => {
                let wrapped = || u64::try_from(sec).ok().map(u64::cast_signed);
                let sec = i64::try_from(sec).ok().or_else(wrapped);
                self.mtime = Some(sec.ok_or_else(|| json.malformed("a number is out of range"))?);
            }
            (b"hlnkc", JsonToken::True) => self.is_link = true,
            (b"notreg", JsonToken::True) => self.is_not_regular = true,
            (b"read_error", JsonToken::True) => self.read_error = true,
            (b"excluded", JsonToken::String) => {
                let is_filesystem = [&b"otherfs"[..], b"othfs", b"kernfs"].contains(&json.text());
                self.excluded = Some(if is_filesystem { Excluded::Filesystem } else { Excluded::Pattern });
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the row of an entry that is not a directory.
    fn row(&self, dev: u64, is_gdu: bool) -> EntryRow {
        let file_type = match self.mode {
            Some(mode) if mode & TYPE_BITS != DIRECTORY => self.meta(dev, mode).file_type(),
            _ if self.is_not_regular => FileType::Unknown,
            _ => FileType::Regular,
        };
        if self.read_error {
            return EntryRow::new(file_type, Err(Errno::IO));
        }
        let regular = if file_type == FileType::Regular { REGULAR } else { 0 };
        let mut meta =
            self.meta(dev, self.mode.filter(|mode| mode & TYPE_BITS != DIRECTORY).unwrap_or(regular));
        // Without its number, the other names of an inode cannot be found.
        let is_link = self.is_link && self.ino.is_some();
        meta.nlink = if is_link { self.nlink.unwrap_or(2).max(2) } else { 1 };
        if is_gdu && self.is_link {
            (meta.size, meta.blocks) = (0, 0);
            return EntryRow::new(file_type, Ok(&meta)).without(self.missing().union(SIZES));
        }
        EntryRow::new(file_type, Ok(&meta)).without(self.missing())
    }

    /// Returns the row of a directory.
    fn dir_row(&self, dev: u64, is_gdu: bool) -> EntryRow {
        let meta = self.meta(dev, self.mode.unwrap_or(0) & !TYPE_BITS | DIRECTORY);
        let missing = self.missing().union(MissingColumns::NLINK);
        let missing = if is_gdu { missing.union(SIZES) } else { missing };
        EntryRow::new(FileType::Directory, Ok(&meta)).without(missing)
    }

    fn meta(&self, dev: u64, mode: u32) -> Meta {
        Meta {
            dev,
            ino: self.ino.unwrap_or(0),
            size: self.asize,
            blocks: self.dsize.div_ceil(512),
            mode,
            uid: self.uid.unwrap_or(0),
            gid: self.gid.unwrap_or(0),
            mtime: FileTime { sec: self.mtime.unwrap_or(0), nsec: 0 },
            ..Meta::default()
        }
    }

    /// Returns the columns that the object has no value for.
    fn missing(&self) -> MissingColumns {
        let absent = [
            (MissingColumns::INO, self.ino.is_none()),
            (MissingColumns::UID, self.uid.is_none()),
            (MissingColumns::GID, self.gid.is_none()),
            (MissingColumns::MTIME, self.mtime.is_none()),
            (MissingColumns::ATIME, true),
            (MissingColumns::CTIME, true),
        ];
        let absent = absent.into_iter().filter(|(_, is_absent)| *is_absent);
        absent.fold(MissingColumns::default(), |all, (column, _)| all.union(column))
    }
}
