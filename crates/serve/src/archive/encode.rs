//! The formats of archives: the names and contents of files to bytes. The libraries write the
//! formats; this keeps their output until it is taken.

use std::io::{self, Write};
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fathom_io::{Errno, Meta};
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use jiff::tz::Offset;
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, StreamWriter, ZipWriter};

use crate::files::Failure;

/// As small as gzip's default at several times its speed.
const ZSTD_LEVEL: i32 = 3;
const GZIP_LEVEL: u32 = 4;
/// A bound of what an encoder of any of the formats allocates at these levels: zstd's window of 2
/// MiB and its tables.
const ENCODER_BYTES: usize = 4 << 20;
/// Memory of an entry in the index of a zip archive, without its name, which the index holds twice.
const INDEX_BYTES: usize = 512;
/// The end of what the field of a tar header for names takes.
const TAR_NAME_BYTES: usize = 100;
const TAR_BLOCK_BYTES: u64 = 512;
/// From this size on zip takes fields of 64 bits.
const ZIP_LARGE_BYTES: u64 = u32::MAX as u64;

/// A format of archives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// tar (GNU), in one frame of Zstandard.
    TarZst,
    /// tar (GNU), in gzip.
    TarGz,
    /// zip with deflate, and data descriptors.
    Zip,
}

impl Format {
    /// All formats, in the order they are offered.
    pub const ALL: [Self; 3] = [Self::TarZst, Self::TarGz, Self::Zip];

    /// The end of file names, and the value in queries and in the configuration.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::TarZst => "tar.zst",
            Self::TarGz => "tar.gz",
            Self::Zip => "zip",
        }
    }

    /// The format with this extension.
    #[must_use]
    pub fn parse(extension: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.extension() == extension)
    }

    /// The media type.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::TarZst => "application/zstd",
            Self::TarGz => "application/gzip",
            Self::Zip => "application/zip",
        }
    }
}

/// The end of all writers: bytes until they are taken.
#[derive(Clone, Debug, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    /// Only the thread that has the archive touches it, so the lock is never waited for.
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A compressor for tar.
enum Compressor {
    Zstd(zstd::stream::write::Encoder<'static, Sink>),
    Gzip(GzEncoder<Sink>),
}

impl Write for Compressor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Zstd(encoder) => encoder.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Writer {
    Tar(tar::Builder<Compressor>),
    Zip(Box<ZipWriter<StreamWriter<Sink>>>),
}

/// An archive's format, and what has come out of it.
pub(super) struct Encoder {
    /// None when it is finished.
    writer: Option<Writer>,
    sink: Sink,
    index_bytes: usize,
}

/// The writers' only failures are of formats: the sink takes everything.
fn failed(_error: impl std::error::Error) -> Failure {
    Failure::System(Errno::INVAL)
}

impl Encoder {
    pub(super) fn new(format: Format) -> Result<Self, Failure> {
        let sink = Sink::default();
        let writer = match format {
            Format::TarZst => {
                let encoder = zstd::stream::write::Encoder::new(sink.clone(), ZSTD_LEVEL);
                Writer::Tar(tar::Builder::new(Compressor::Zstd(encoder.map_err(failed)?)))
            }
            Format::TarGz => {
                let encoder = GzEncoder::new(sink.clone(), Compression::new(GZIP_LEVEL));
                Writer::Tar(tar::Builder::new(Compressor::Gzip(encoder)))
            }
            Format::Zip => Writer::Zip(Box::new(ZipWriter::new_stream(sink.clone()))),
        };
        Ok(Self { writer: Some(writer), sink, index_bytes: 0 })
    }

    /// Bytes that can be taken.
    pub(super) fn pending(&self) -> usize {
        self.sink.bytes().len()
    }

    /// Takes all bytes there are.
    pub(super) fn take(&self) -> Vec<u8> {
        take(&mut *self.sink.bytes())
    }

    /// Bytes of memory it takes.
    pub(super) fn memory(&self) -> usize {
        ENCODER_BYTES + self.index_bytes + self.sink.bytes().capacity()
    }

    /// Adds a directory.
    pub(super) fn directory(&mut self, name: &[u8], meta: &Meta) -> Result<(), Failure> {
        match self.writer()? {
            Writer::Tar(tar) => {
                let name = [name, b"/"].concat();
                add_to_tar(tar, &name, (tar::EntryType::Directory, 0o755), 0, meta).map_err(failed)
            }
            Writer::Zip(zip) => {
                let options = options(meta).unix_permissions(0o755);
                zip.add_directory(String::from_utf8_lossy(name), options).map_err(failed)?;
                self.index_bytes += INDEX_BYTES + 2 * name.len();
                Ok(())
            }
        }
    }

    /// Begins a file, as long as `meta` says. Owners are not told, and of permissions only whether
    /// it can be executed.
    pub(super) fn begin_file(&mut self, name: &[u8], meta: &Meta) -> Result<(), Failure> {
        let (bytes, mode) = (size(meta), if meta.mode & 0o111 == 0 { 0o644 } else { 0o755 });
        match self.writer()? {
            Writer::Tar(tar) => {
                add_to_tar(tar, name, (tar::EntryType::Regular, mode), bytes, meta).map_err(failed)
            }
            Writer::Zip(zip) => {
                let options = options(meta).unix_permissions(mode).large_file(bytes >= ZIP_LARGE_BYTES);
                zip.start_file(String::from_utf8_lossy(name), options).map_err(failed)?;
                self.index_bytes += INDEX_BYTES + 2 * name.len();
                Ok(())
            }
        }
    }

    /// Adds bytes of the file.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self.writer()? {
            Writer::Tar(tar) => tar.get_mut().write_all(bytes).map_err(failed),
            Writer::Zip(zip) => zip.write_all(bytes).map_err(failed),
        }
    }

    /// Ends the file, of which `bytes` were written.
    pub(super) fn end_file(&mut self, bytes: u64) -> Result<(), Failure> {
        if let Writer::Tar(tar) = self.writer()? {
            let padding = bytes.next_multiple_of(TAR_BLOCK_BYTES) - bytes;
            let zeros = [0; TAR_BLOCK_BYTES as usize];
            tar.get_mut().write_all(zeros.get(..padding as usize).unwrap_or_default()).map_err(failed)?;
        }
        Ok(())
    }

    /// Ends the archive; false if it had ended already.
    pub(super) fn finish(&mut self) -> Result<bool, Failure> {
        match self.writer.take() {
            None => return Ok(false),
            Some(Writer::Tar(tar)) => match tar.into_inner().map_err(failed)? {
                Compressor::Zstd(encoder) => drop(encoder.finish().map_err(failed)?),
                Compressor::Gzip(encoder) => drop(encoder.finish().map_err(failed)?),
            },
            Some(Writer::Zip(zip)) => drop(zip.finish().map_err(failed)?),
        }
        Ok(true)
    }

    fn writer(&mut self) -> Result<&mut Writer, Failure> {
        self.writer.as_mut().ok_or(Failure::Changed)
    }
}

fn size(meta: &Meta) -> u64 {
    u64::try_from(meta.size).unwrap_or(0)
}

/// Adds a header with any bytes as its name. One that is longer than the header's field goes before
/// it, as GNU tar does that.
fn add_to_tar(
    tar: &mut tar::Builder<Compressor>,
    name: &[u8],
    (kind, mode): (tar::EntryType, u32),
    bytes: u64,
    meta: &Meta,
) -> io::Result<()> {
    if name.len() > TAR_NAME_BYTES {
        let mut long = header(b"././@LongLink", tar::EntryType::GNULongName);
        long.set_size(name.len() as u64 + 1);
        long.set_cksum();
        tar.append(&long, [name, b"\0"].concat().as_slice())?;
    }
    let mut header = header(name, kind);
    header.set_size(bytes);
    header.set_mode(mode);
    header.set_mtime(u64::try_from(meta.modified.sec).unwrap_or(0));
    header.set_cksum();
    // The contents follow.
    tar.append(&header, io::empty())
}

fn header(name: &[u8], kind: tar::EntryType) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

/// Times of zip are of the years 1980 to 2107; others are left out.
fn options(meta: &Meta) -> SimpleFileOptions {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(i64::from(GZIP_LEVEL)));
    let time = Timestamp::new(meta.modified.sec, 0).ok().map(|time| Offset::UTC.to_datetime(time));
    let time = time.and_then(|time| {
        let part = |value: i8| u8::try_from(value).ok();
        let (month, day) = (part(time.month())?, part(time.day())?);
        let (hour, minute, second) = (part(time.hour())?, part(time.minute())?, part(time.second())?);
        let year = u16::try_from(time.year()).ok()?;
        zip::DateTime::from_date_and_time(year, month, day, hour, minute, second).ok()
    });
    options.last_modified_time(time.unwrap_or_default())
}
