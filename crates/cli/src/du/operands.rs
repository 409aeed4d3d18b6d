//! Where operands come from: the command line, or a file of names each ended by a NUL byte, read as they come.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use fathom_du::again::Operands as Known;
use fathom_du::scan::Operand;
use fathom_text::quote::{Charset, quoteaf, quotef};

use super::args::{Caller, Operands};
use crate::output::reason;

/// Bytes asked for at once; a pipe holds as many.
const READ_BYTES: usize = 64 * 1024;

/// The operands still to come.
#[derive(Debug)]
pub(crate) enum Source {
    Listed(std::vec::IntoIter<OsString>),
    Records(Records),
}

impl Source {
    /// Opens the file, if there is one; or the message why not.
    pub(crate) fn open(operands: Operands, caller: &Caller) -> Result<Self, Vec<u8>> {
        match operands {
            Operands::Listed(words) => Ok(Self::Listed(words.into_iter())),
            Operands::Files0From(path) => Records::open(path, caller.charset).map(Self::Records),
        }
    }

    /// What can be told of all operands before any is measured.
    pub(crate) fn known(&self) -> Known {
        match self {
            Self::Listed(rest) if rest.len() <= 1 => Known::One,
            Self::Listed(rest) => {
                let paths = rest.as_slice().iter().map(|word| CString::new(word.as_bytes()));
                Known::Several(paths.filter_map(Result::ok).collect())
            }
            Self::Records(_) => Known::Unknown,
        }
    }

    /// The next operand. Waits for it only if `wait`.
    pub(crate) fn next(&mut self, wait: bool) -> Operand {
        match self {
            Self::Listed(rest) => match rest.next().map(|word| CString::new(word.into_vec())) {
                None => Operand::End,
                Some(Ok(path)) if !path.is_empty() => Operand::Path(path),
                Some(_) => Operand::Message(b"invalid zero-length file name".to_vec()),
            },
            Self::Records(records) => records.next(wait),
        }
    }
}

/// A file of operands.
#[derive(Debug)]
pub(crate) struct Records {
    name: OsString,
    charset: Charset,
    input: File,
    buffer: Vec<u8>,
    /// Where the next record starts in `buffer`.
    start: usize,
    count: usize,
    ended: bool,
}

impl Records {
    fn open(name: OsString, charset: Charset) -> Result<Self, Vec<u8>> {
        let opened = if name == "-" {
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
                return Operand::NotNow;
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

    /// Whether reading would not wait.
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
