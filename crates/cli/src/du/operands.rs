//! The source of operands: the command line, or a file of names terminated by NUL bytes, which is
//! read as it arrives.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use fathom_du::dedup::KnownOperands;
use fathom_du::scan::Operand;
use fathom_text::quote::{Charset, quoteaf, quotef};

use super::args::{Invocation, OperandSource};
use crate::shared::output::reason;

/// The size of a read, which is the capacity of a pipe.
const READ_BYTES: usize = 64 * 1024;

/// The remaining operands.
#[derive(Debug)]
pub(crate) enum OperandReader {
    Listed(std::vec::IntoIter<OsString>),
    NulRecords(NulRecords),
}

impl OperandReader {
    /// Opens the file, if there is one.
    ///
    /// # Errors
    /// Returns a message without the program name.
    pub(crate) fn open(source: OperandSource, invocation: &Invocation) -> Result<Self, Vec<u8>> {
        match source {
            OperandSource::Listed(words) => Ok(Self::Listed(words.into_iter())),
            OperandSource::Files0From(path) => {
                NulRecords::open(path, invocation.charset).map(Self::NulRecords)
            }
        }
    }

    /// Returns the operands that are known before any is measured.
    pub(crate) fn known(&self) -> KnownOperands {
        match self {
            Self::Listed(rest) if rest.len() <= 1 => KnownOperands::AtMostOne,
            Self::Listed(rest) => {
                let paths = rest.as_slice().iter().map(|word| CString::new(word.as_bytes()));
                KnownOperands::Listed(paths.filter_map(Result::ok).collect())
            }
            Self::NulRecords(_) => KnownOperands::Unknown,
        }
    }

    /// Returns the next operand. Blocks until it is known only if `wait`.
    pub(crate) fn next(&mut self, wait: bool) -> Operand {
        match self {
            Self::Listed(rest) => match rest.next().map(|word| CString::new(word.into_vec())) {
                None => Operand::End,
                Some(Ok(path)) if !path.is_empty() => Operand::Path(path),
                Some(_) => Operand::Message(b"invalid zero-length file name".to_vec()),
            },
            Self::NulRecords(records) => records.next(wait),
        }
    }
}

/// A file of operands.
#[derive(Debug)]
pub(crate) struct NulRecords {
    name: OsString,
    charset: Charset,
    input: File,
    buffer: Vec<u8>,
    /// The start of the next record in `buffer`.
    start: usize,
    count: usize,
    ended: bool,
}

impl NulRecords {
    fn open(name: OsString, charset: Charset) -> Result<Self, Vec<u8>> {
        let opened = if name == "-" {
            // As in GNU du, one that was closed opens, and cannot be read.
            rustix::io::dup(rustix::stdio::stdin()).map(File::from).map_err(io::Error::from)
        } else {
            File::open(&name)
        };
        let input = opened.map_err(|error| {
            let quoted = quoteaf(name.as_bytes(), charset);
            [b"cannot open ", &quoted[..], b" for reading: ", &reason(&error)].concat()
        })?;
        Ok(Self { name, charset, input, buffer: Vec::new(), start: 0, count: 0, ended: false })
    }

    fn next(&mut self, wait: bool) -> Operand {
        loop {
            let rest = &self.buffer[self.start..];
            if let Some(len) = rest.iter().position(|byte| *byte == 0) {
                let record = rest[..len].to_vec();
                self.start += len + 1;
                return self.operand(record);
            }
            if self.ended {
                let record = rest.to_vec();
                self.start = self.buffer.len();
                return if record.is_empty() { Operand::End } else { self.operand(record) };
            }
            if !wait && !self.is_ready() {
                return Operand::Pending;
            }
            if let Err(error) = self.fill() {
                self.ended = true;
                self.buffer.clear();
                self.start = 0;
                let name = quotef(self.name.as_bytes(), self.charset);
                return Operand::Message([&name[..], b": read error: ", &reason(&error)].concat());
            }
        }
    }

    /// Returns whether a read would not block.
    fn is_ready(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut fds = [PollFd::new(&self.input, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok_and(|count| count > 0)
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.start);
        self.start = 0;
        if self.name == "-" && fathom_io::sys::stdin_was_closed() {
            return Err(fathom_io::Errno::BADF.into());
        }
        let len = self.buffer.len();
        self.buffer.resize(len + READ_BYTES, 0);
        let read = loop {
            match self.input.read(&mut self.buffer[len..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        self.buffer.truncate(len + read.as_ref().copied().unwrap_or(0));
        self.ended = read? == 0;
        Ok(())
    }

    fn operand(&mut self, record: Vec<u8>) -> Operand {
        self.count += 1;
        if record.is_empty() {
            let name = quotef(self.name.as_bytes(), self.charset);
            let number = self.count.to_string();
            let message = [&name[..], b":", number.as_bytes(), b": invalid zero-length file name"].concat();
            return Operand::Message(message);
        }
        if self.name == "-" && record == b"-" {
            let quoted = quoteaf(b"-", self.charset);
            let message = b"when reading file names from standard input, no file name of ";
            return Operand::Message([&message[..], &quoted, b" allowed"].concat());
        }
        CString::new(record).map_or(Operand::End, Operand::Path)
    }
}
