//! Encodes an archive: names and contents of files to bytes. Libraries write the formats; this
//! module buffers their output.

use std::io::{self, Write};
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fathom_files::FileError;
use fathom_io::{Errno, Meta};
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use jiff::tz::Offset;
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, StreamWriter, ZipWriter};

use super::format::ArchiveFormat;

/// As small as gzip at its default level, at several times its speed.
const ZSTD_LEVEL: i32 = 3;
const GZIP_LEVEL: u32 = 4;
/// An upper bound of an encoder's memory in any format at these levels: zstd's window of 2 MiB and
/// its tables.
const ENCODER_BYTES: usize = 4 << 20;
/// The memory of an entry in the index of a zip archive without its name, which the index holds
/// twice.
const INDEX_BYTES: usize = 512;
/// The size of the name field in a tar header.
const TAR_NAME_BYTES: usize = 100;
const TAR_BLOCK_BYTES: u64 = 512;
/// The least size for which zip needs 64-bit fields.
const ZIP_LARGE_BYTES: u64 = u32::MAX as u64;

/// The output of the format writers, buffered until it is taken. Clones share the buffer.
#[derive(Clone, Debug, Default)]
struct OutputBuffer(Arc<Mutex<Vec<u8>>>);

impl OutputBuffer {
    /// Locks the buffer. Only the thread that runs the current step uses it, so the lock is never
    /// contended.
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for OutputBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The compressor of a tar archive.
enum TarCompressor {
    Zstd(zstd::stream::write::Encoder<'static, OutputBuffer>),
    Gzip(GzEncoder<OutputBuffer>),
}

impl Write for TarCompressor {
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

enum FormatWriter {
    Tar(tar::Builder<TarCompressor>),
    Zip(Box<ZipWriter<StreamWriter<OutputBuffer>>>),
}

/// An encoder of one archive with its output.
pub(super) struct ArchiveEncoder {
    /// `None` once the archive is finished.
    writer: Option<FormatWriter>,
    sink: OutputBuffer,
    index_bytes: usize,
}

/// Converts an error of a format writer. Only the formats can fail: the buffer takes everything.
fn failed(_error: impl std::error::Error) -> FileError {
    FileError::System(Errno::INVAL)
}

impl ArchiveEncoder {
    pub(super) fn new(format: ArchiveFormat) -> Result<Self, FileError> {
        let sink = OutputBuffer::default();
        let writer = match format {
            ArchiveFormat::TarZst => {
                let encoder = zstd::stream::write::Encoder::new(sink.clone(), ZSTD_LEVEL);
                FormatWriter::Tar(tar::Builder::new(TarCompressor::Zstd(encoder.map_err(failed)?)))
            }
            ArchiveFormat::TarGz => {
                let encoder = GzEncoder::new(sink.clone(), Compression::new(GZIP_LEVEL));
                FormatWriter::Tar(tar::Builder::new(TarCompressor::Gzip(encoder)))
            }
            ArchiveFormat::Zip => FormatWriter::Zip(Box::new(ZipWriter::new_stream(sink.clone()))),
        };
        Ok(Self { writer: Some(writer), sink, index_bytes: 0 })
    }

    /// Returns the number of bytes that can be taken.
    pub(super) fn pending(&self) -> usize {
        self.sink.bytes().len()
    }

    /// Takes all output.
    pub(super) fn take(&self) -> Vec<u8> {
        take(&mut *self.sink.bytes())
    }

    /// Returns the memory of the encoder, in bytes.
    pub(super) fn memory(&self) -> usize {
        ENCODER_BYTES + self.index_bytes + self.sink.bytes().capacity()
    }

    /// Adds a directory.
    pub(super) fn directory(&mut self, name: &[u8], meta: &Meta) -> Result<(), FileError> {
        match self.writer()? {
            FormatWriter::Tar(tar) => {
                let name = [name, b"/"].concat();
                add_to_tar(tar, &name, tar::EntryType::Directory, 0o755, 0, meta).map_err(failed)
            }
            FormatWriter::Zip(zip) => {
                let (name, options) = (zip_name(name), options(meta).unix_permissions(0o755));
                let index_bytes = INDEX_BYTES + 2 * name.len();
                zip.add_directory(name, options).map_err(failed)?;
                self.index_bytes += index_bytes;
                Ok(())
            }
        }
    }

    /// Begins a file of the size in `meta`. Owners are omitted; of the permissions, only the
    /// executable bit is kept.
    pub(super) fn begin_file(&mut self, name: &[u8], meta: &Meta) -> Result<(), FileError> {
        let (bytes, mode) = (size(meta), if meta.mode & 0o111 == 0 { 0o644 } else { 0o755 });
        match self.writer()? {
            FormatWriter::Tar(tar) => {
                add_to_tar(tar, name, tar::EntryType::Regular, mode, bytes, meta).map_err(failed)
            }
            FormatWriter::Zip(zip) => {
                let options = options(meta).unix_permissions(mode).large_file(bytes >= ZIP_LARGE_BYTES);
                let name = zip_name(name);
                let index_bytes = INDEX_BYTES + 2 * name.len();
                zip.start_file(name, options).map_err(failed)?;
                self.index_bytes += index_bytes;
                Ok(())
            }
        }
    }

    /// Writes bytes of the current file.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        match self.writer()? {
            FormatWriter::Tar(tar) => tar.get_mut().write_all(bytes).map_err(failed),
            FormatWriter::Zip(zip) => zip.write_all(bytes).map_err(failed),
        }
    }

    /// Ends the current file, of which `bytes` were written.
    pub(super) fn end_file(&mut self, bytes: u64) -> Result<(), FileError> {
        if let FormatWriter::Tar(tar) = self.writer()? {
            let padding = bytes.next_multiple_of(TAR_BLOCK_BYTES) - bytes;
            let zeros = [0; TAR_BLOCK_BYTES as usize];
            tar.get_mut().write_all(zeros.get(..padding as usize).unwrap_or_default()).map_err(failed)?;
        }
        Ok(())
    }

    /// Ends the archive. Returns `false` if it had ended before.
    pub(super) fn finish(&mut self) -> Result<bool, FileError> {
        match self.writer.take() {
            None => return Ok(false),
            Some(FormatWriter::Tar(tar)) => match tar.into_inner().map_err(failed)? {
                TarCompressor::Zstd(encoder) => drop(encoder.finish().map_err(failed)?),
                TarCompressor::Gzip(encoder) => drop(encoder.finish().map_err(failed)?),
            },
            Some(FormatWriter::Zip(zip)) => drop(zip.finish().map_err(failed)?),
        }
        Ok(true)
    }

    fn writer(&mut self) -> Result<&mut FormatWriter, FileError> {
        self.writer.as_mut().ok_or(FileError::Changed)
    }
}

/// Returns the name of an entry in a zip archive: UTF-8 with `/` between directories. Other bytes,
/// and `\`, which Windows takes for a separator, become `%` with two hexadecimal digits, and so
/// does a `%` that could be taken for one of these: different names stay different.
fn zip_name(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    let mut at = 0;
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            at += character.len_utf8();
            let digits = name.get(at..at + 2).unwrap_or_default();
            let is_code = digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit);
            match character {
                '%' if is_code => text.push_str("%25"),
                '\\' => text.push_str("%5C"),
                _ => text.push(character),
            }
        }
        at += chunk.invalid().len();
        text.extend(chunk.invalid().iter().map(|byte| format!("%{byte:02X}")));
    }
    text
}

fn size(meta: &Meta) -> u64 {
    u64::try_from(meta.size).unwrap_or(0)
}

/// Adds a header whose name may be any bytes. A name longer than the field of the header goes into
/// a GNU long-name entry before it.
fn add_to_tar(
    tar: &mut tar::Builder<TarCompressor>,
    name: &[u8],
    kind: tar::EntryType,
    mode: u32,
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
    header.set_mtime(u64::try_from(meta.mtime.sec).unwrap_or(0));
    header.set_cksum();
    // The contents follow through the inner writer.
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

/// Returns the options of a zip entry. Zip times range from 1980 to 2107; other times are omitted.
fn options(meta: &Meta) -> SimpleFileOptions {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(i64::from(GZIP_LEVEL)));
    let time = Timestamp::new(meta.mtime.sec, 0).ok().map(|time| Offset::UTC.to_datetime(time));
    let time = time.and_then(|time| {
        let part = |value: i8| u8::try_from(value).ok();
        let (month, day) = (part(time.month())?, part(time.day())?);
        let (hour, minute, second) = (part(time.hour())?, part(time.minute())?, part(time.second())?);
        let year = u16::try_from(time.year()).ok()?;
        zip::DateTime::from_date_and_time(year, month, day, hour, minute, second).ok()
    });
    options.last_modified_time(time.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_zips_are_text_and_stay_different() {
        let table: [(&[u8], &str); 7] = [
            (b"d/a b", "d/a b"),
            ("d/\u{e9}".as_bytes(), "d/\u{e9}"),
            (b"a\xff", "a%FF"),
            (b"a%FF", "a%25FF"),
            (b"a%25FF", "a%2525FF"),
            (b"100%, %x, %", "100%, %x, %"),
            (b"..\\a%\xc3", "..%5Ca%%C3"),
        ];
        for (name, expected) in table {
            assert_eq!(zip_name(name), expected);
        }
    }
}
