//! Directories that Python reads one by one, in an order that it decides while it goes on. Where
//! the storage is slow, threads read the next ones ahead.

use std::ffi::{CString, OsString};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use fathom_io::{Errno, Fields, FileType, Follow, Names, sys};
use pyo3::exceptions::{PyIndexError, PyOSError, PyRuntimeError};
use pyo3::prelude::*;

use crate::batch::EntryBatch;
use crate::columns::{BatchBuilder, Column, RowSource, parse_columns, schema};
use crate::du::path as c_path;
use crate::error::words;
use crate::stream::FORKED;

/// Rows of a full batch.
const ROWS_MAX: usize = 16 * 1024;
/// A directory that takes longer to be read is on slow storage: threads read ahead from then on.
const SLOW: Duration = Duration::from_millis(2);
/// Threads that read ahead, unless a number is given. Then they start at once.
const THREADS: usize = 8;
/// Rows of directories that were read ahead, above which no thread begins another one.
const ROWS_AHEAD_MAX: usize = 256 * 1024;
/// Directories on top of the stack among which threads look for one to read.
const WINDOW: usize = 256;
/// Time between two looks at signals.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The entries of a directory, or the error of an operation with the path that it failed on.
type Listing = Result<Vec<RecordBatch>, (Errno, OsString)>;

/// A directory to be read.
#[derive(Debug)]
enum StackSlot {
    Waiting(CString),
    /// A thread reads it.
    Running,
    Done(Listing),
}

#[derive(Debug, Default)]
struct DirectoryStack {
    slots: Vec<StackSlot>,
    rows_ahead: usize,
    is_closed: bool,
}

impl DirectoryStack {
    /// Takes the topmost directory that waits, with its index, which it keeps until it is popped.
    fn next(&mut self) -> Option<(usize, CString)> {
        if self.rows_ahead >= ROWS_AHEAD_MAX {
            return None;
        }
        let window = self.slots.iter_mut().enumerate().rev().take(WINDOW);
        let (at, slot) = window.into_iter().find(|(_, slot)| matches!(slot, StackSlot::Waiting(_)))?;
        match std::mem::replace(slot, StackSlot::Running) {
            StackSlot::Waiting(path) => Some((at, path)),
            other => {
                *slot = other;
                None
            }
        }
    }
}

/// The columns that are read of each directory.
#[derive(Debug)]
struct ListingFormat {
    columns: Vec<Column>,
    schema: SchemaRef,
    /// `None` if no column needs metadata.
    fields: Option<Fields>,
}

impl ListingFormat {
    fn new(columns: &[String]) -> PyResult<Self> {
        let columns = parse_columns(columns)?;
        let fields = columns.iter().filter_map(|column| column.fields()).reduce(Fields::union);
        Ok(Self { schema: schema(&columns), columns, fields })
    }

    /// Reads a directory in its own order. Entries that vanish meanwhile are left out.
    fn read(&self, path: &CString) -> Listing {
        let failed = |errno| (errno, OsString::from_vec(path.as_bytes().to_vec()));
        let dir = sys::open_dir(sys::CWD, path, Follow::Yes).map_err(failed)?;
        let mut full = path.as_bytes().to_vec();
        if !full.ends_with(b"/") {
            full.push(b'/');
        }
        let (dir_len, mut names, mut batches) = (full.len(), Names::new(), Vec::new());
        let mut builder = BatchBuilder::new(&self.columns);
        loop {
            names.clear();
            let goes_on = sys::read_names(&dir, &mut names, ROWS_MAX).map_err(failed)?;
            for name in names.iter() {
                let needs_meta = self.fields.is_some() || name.file_type == FileType::Unknown;
                let fields = self.fields.unwrap_or(Fields::IDENTITY);
                let stat = || sys::stat(dir.as_fd(), name.name, Follow::No, fields);
                full.truncate(dir_len);
                full.extend_from_slice(name.name.to_bytes());
                let meta = match needs_meta.then(stat).transpose() {
                    Ok(meta) => meta,
                    Err(Errno::NOENT) => continue,
                    Err(_) if self.fields.is_none() => None,
                    Err(errno) => return Err((errno, OsString::from_vec(full))),
                };
                let file_type = meta.as_ref().map_or(name.file_type, fathom_io::Meta::file_type);
                let (name_len, meta) = (full.len() - dir_len, meta.as_ref());
                builder.push(&RowSource { path: &full, name_len, depth: 1, ino: name.ino, file_type, meta });
            }
            if builder.rows() > 0 {
                batches.push(builder.finish(&self.schema).map_err(|_| failed(Errno::NOMEM))?);
            }
            if !goes_on {
                return Ok(batches);
            }
        }
    }
}

#[derive(Debug)]
struct SharedReader {
    format: ListingFormat,
    stack: Mutex<DirectoryStack>,
    /// Signalled when a directory waits, when one is done, and at the end.
    changed: Condvar,
}

impl SharedReader {
    fn stack(&self) -> MutexGuard<'_, DirectoryStack> {
        self.stack.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads ahead until the end.
    fn work(&self) {
        let mut stack = self.stack();
        while !stack.is_closed {
            let Some((at, path)) = stack.next() else {
                stack = self.changed.wait(stack).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(stack);
            let listing = self.format.read(&path);
            stack = self.stack();
            stack.rows_ahead += rows(&listing);
            // A directory that is running is not popped, so its index has stayed the same.
            if let Some(slot) = stack.slots.get_mut(at) {
                *slot = StackSlot::Done(listing);
            }
            self.changed.notify_all();
        }
    }
}

fn rows(listing: &Listing) -> usize {
    listing.iter().flatten().map(RecordBatch::num_rows).sum()
}

/// A stack of directories, of which the topmost is read next.
#[pyclass(frozen, module = "fathomfs")]
pub(crate) struct DirectoryReader {
    shared: Arc<SharedReader>,
    threads: usize,
    has_threads: Mutex<bool>,
    /// The process that the threads are in.
    process: u32,
}

impl Drop for DirectoryReader {
    fn drop(&mut self) {
        // A thread that this process does not have may have held the lock at the fork.
        if self.process != std::process::id() {
            return;
        }
        self.shared.stack().is_closed = true;
        self.shared.changed.notify_all();
    }
}

#[pymethods]
impl DirectoryReader {
    #[new]
    fn new(columns: Vec<String>, threads: Option<usize>) -> PyResult<Self> {
        let (stack, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(SharedReader { format: ListingFormat::new(&columns)?, stack, changed });
        let has_threads = Mutex::new(threads == Some(0));
        let reader =
            Self { shared, threads: threads.unwrap_or(THREADS), has_threads, process: std::process::id() };
        if threads.is_some() {
            reader.start_threads();
        }
        Ok(reader)
    }

    /// Puts directories on the stack.
    fn push(&self, paths: Vec<Vec<u8>>) -> PyResult<()> {
        let paths = paths.into_iter().map(c_path).collect::<PyResult<Vec<_>>>()?;
        self.shared.stack().slots.extend(paths.into_iter().map(StackSlot::Waiting));
        if *self.has_threads.lock().unwrap_or_else(PoisonError::into_inner) {
            self.shared.changed.notify_all();
        }
        Ok(())
    }

    /// Takes the topmost directory and returns its entries. Raises `OSError` if it cannot be read.
    fn pop(&self, py: Python<'_>) -> PyResult<Vec<EntryBatch>> {
        if self.process != std::process::id() {
            return Err(PyRuntimeError::new_err(FORKED));
        }
        let listing = loop {
            let mut stack = self.shared.stack();
            match stack.slots.pop() {
                None => return Err(PyIndexError::new_err("no directories are left")),
                Some(StackSlot::Done(listing)) => {
                    stack.rows_ahead -= rows(&listing);
                    self.shared.changed.notify_all();
                    break listing;
                }
                Some(StackSlot::Waiting(path)) => {
                    drop(stack);
                    break py.detach(|| self.read(&path));
                }
                Some(StackSlot::Running) => {
                    stack.slots.push(StackSlot::Running);
                    drop(stack);
                    py.detach(|| self.wait());
                    py.check_signals()?;
                }
            }
        };
        let error =
            |(errno, path): (Errno, OsString)| PyOSError::new_err((errno.raw_os_error(), words(errno), path));
        let batches = listing.map_err(error)?;
        Ok(batches.into_iter().map(EntryBatch::new).collect())
    }
}

impl DirectoryReader {
    fn read(&self, path: &CString) -> Listing {
        let begin = Instant::now();
        let listing = self.shared.format.read(path);
        if begin.elapsed() > SLOW && rows(&listing) < ROWS_MAX {
            self.start_threads();
        }
        listing
    }

    fn start_threads(&self) {
        let mut has_threads = self.has_threads.lock().unwrap_or_else(PoisonError::into_inner);
        if *has_threads {
            return;
        }
        *has_threads = true;
        for _ in 0..self.threads {
            let shared = Arc::clone(&self.shared);
            // Without threads, the caller reads all directories.
            let _ = thread::Builder::new().name("fathomfs".to_owned()).spawn(move || shared.work());
        }
    }

    /// Waits until the topmost directory is done, or for a short time.
    fn wait(&self) {
        let stack = self.shared.stack();
        if matches!(stack.slots.last(), Some(StackSlot::Running)) {
            drop(self.shared.changed.wait_timeout(stack, POLL_INTERVAL));
        }
    }
}
