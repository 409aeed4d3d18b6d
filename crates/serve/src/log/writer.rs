//! Passes lines from the workers to the log file: through a bounded buffer to a writer thread.
//! Lines are in the order in which they were logged. A worker never waits for a disk or a pipe; a
//! line without room is dropped and counted.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use fathom_io::threads;

use super::line::{AccessRecord, LineFormatter, LogFormat};
use crate::error::{Error, Op};

/// The writer thread's stack.
const STACK_BYTES: usize = 256 << 10;

/// The writer is woken when the lines that wait reach this size, ...
const CHUNK_BYTES: usize = 64 << 10;
/// ... or when the oldest is this old.
const FLUSH_AFTER: Duration = Duration::from_secs(1);
/// The bytes of lines that may wait for the writer. With as many in its hands they bound the memory
/// that a stuck disk can take.
const WAITING_BYTES_MAX: usize = 4 << 20;
/// The mode of log files: other users may not see who requested which file.
const FILE_MODE: u32 = 0o640;

/// The destination of lines.
#[non_exhaustive]
pub enum LogTarget {
    /// A file, created if it does not exist, and appended to.
    File(PathBuf),
    /// A stream that the caller has opened; logging ends when its reader is gone (EPIPE).
    Stream(Box<dyn Write + Send>),
}

/// The state that the writer, the workers and the owner share.
#[derive(Default)]
struct LogShared {
    waiting: Mutex<WaitingLines>,
    dropped: AtomicU64,
    errors: AtomicU64,
    ended: AtomicBool,
    /// A reopened file that the writer has yet to take.
    next: Mutex<Option<File>>,
}

/// The lines that wait for the writer.
#[derive(Default)]
struct WaitingLines {
    bytes: Vec<u8>,
    count: u64,
    /// The time of the first one.
    since: Option<Instant>,
}

impl LogShared {
    fn waiting(&self) -> MutexGuard<'_, WaitingLines> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a complete line, or drops and counts it. Returns whether the writer has enough to
    /// write.
    fn add(&self, line: &[u8], now: Option<Instant>) -> bool {
        let mut waiting = self.waiting();
        if waiting.bytes.len() + line.len() > WAITING_BYTES_MAX {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        waiting.bytes.extend_from_slice(line);
        waiting.count += 1;
        waiting.since = waiting.since.or(now);
        waiting.bytes.len() >= CHUNK_BYTES
    }
}

/// A callback that appends the line for a number of dropped lines.
type AppendDropped = Box<dyn FnMut(SystemTime, u64, &mut Vec<u8>) + Send>;

/// The callbacks of a writer thread, for dropped lines and for failed writes.
pub(super) struct LogCallbacks {
    /// Is called when lines can be written again.
    pub(super) dropped: AppendDropped,
    /// Is called after a write that failed.
    pub(super) failed: Box<dyn Fn(&io::Error) + Send>,
    /// Whether each line is a write of its own: the stream may put something before it.
    pub(super) splits_lines: bool,
}

/// A bounded queue of lines and the thread that writes them.
pub(super) struct LogQueue {
    path: Option<PathBuf>,
    shared: Arc<LogShared>,
    wake: SyncSender<()>,
    done: Receiver<()>,
}

impl LogQueue {
    /// Opens `target` and starts the thread `name` that writes to it.
    pub(super) fn start(name: &str, target: LogTarget, notices: LogCallbacks) -> Result<Self, Error> {
        let (path, sink): (_, Box<dyn Write + Send>) = match target {
            LogTarget::File(path) => {
                let file = open(&path)?;
                (Some(path), Box::new(file))
            }
            LogTarget::Stream(stream) => (None, stream),
        };
        let shared = Arc::<LogShared>::default();
        // One message is enough, whatever is to be done.
        let (wake, receiver) = sync_channel(1);
        // No message is ever sent: the channel closes when the writer ends.
        let (alive, done) = sync_channel(0);
        let spare = Vec::new();
        let mut writer = LogThread { sink, torn: false, reported: 0, notices, shared: shared.clone(), spare };
        let thread = threads::spawn(name, STACK_BYTES, 0, move || {
            let _alive: SyncSender<()> = alive;
            writer.run(&receiver);
        });
        match thread {
            Ok(_) => Ok(Self { path, shared, wake, done }),
            Err(source) => Err(Error::new(Op::Start, "the log's thread", source)),
        }
    }

    /// Queues one complete line; a line without room is dropped and counted.
    pub(super) fn line(&self, line: &[u8]) {
        self.shared.add(line, None);
        wake(&self.wake);
    }

    /// Reopens the log file under its name, after the old one was renamed (logrotate). If it cannot
    /// be opened, the old one is kept. A stream is unaffected.
    pub(super) fn reopen(&self) -> Result<(), Error> {
        let Some(path) = &self.path else { return Ok(()) };
        let file = open(path)?;
        *self.shared.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        wake(&self.wake);
        Ok(())
    }

    /// Returns the number of lines dropped so far, because the writer was behind or could not
    /// write.
    pub(super) fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Returns the number of failed writes so far.
    pub(super) fn errors(&self) -> u64 {
        self.shared.errors.load(Ordering::Relaxed)
    }

    /// Waits until all lines are written, for at most `timeout`. Returns whether they are. All
    /// loggers must be dropped before.
    pub(super) fn close(self, timeout: Duration) -> bool {
        let Self { wake, done, .. } = self;
        drop(wake);
        done.recv_timeout(timeout) == Err(std::sync::mpsc::RecvTimeoutError::Disconnected)
    }
}

/// The access log, owned by the code that starts and stops the server.
pub struct AccessLogWriter {
    style: LogFormat,
    queue: LogQueue,
}

impl AccessLogWriter {
    /// Opens `target` and starts the thread that writes to it. `failed` is called on that thread
    /// after each write that failed.
    pub fn start(
        style: LogFormat,
        target: LogTarget,
        failed: impl Fn(&io::Error) + Send + 'static,
    ) -> Result<Self, Error> {
        let mut lines = LineFormatter::new(style);
        let dropped = move |time, count, out: &mut Vec<u8>| lines.dropped(time, count, out);
        let (dropped, failed) = (Box::new(dropped), Box::new(failed));
        let notices = LogCallbacks { dropped, failed, splits_lines: false };
        Ok(Self { style, queue: LogQueue::start("log", target, notices)? })
    }

    /// Checks that the file at `path` can be opened. A file that the check created is removed
    /// again.
    pub fn check(path: &Path) -> Result<(), Error> {
        let (_, made) = open_or_make(path)?;
        let removed = if made { std::fs::remove_file(path) } else { Ok(()) };
        removed.map_err(|source| Error::new(Op::OpenLog, path.display().to_string(), source))
    }

    /// Creates the logger of a worker.
    #[must_use]
    pub fn logger(&self) -> WorkerLogger {
        WorkerLogger {
            lines: LineFormatter::new(self.style),
            line: Vec::new(),
            shared: self.queue.shared.clone(),
            wake: self.queue.wake.clone(),
        }
    }

    /// Reopens the log file under its name, after the old one was renamed (logrotate). If it cannot
    /// be opened, the old one is kept. A stream is unaffected.
    pub fn reopen(&self) -> Result<(), Error> {
        self.queue.reopen()
    }

    /// Returns the number of lines dropped so far, because the writer was behind or could not
    /// write.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }

    /// Returns the number of failed writes so far.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.queue.errors()
    }

    /// Waits until all lines are written, for at most `timeout`. Returns whether they are. All
    /// loggers must be dropped before.
    pub fn close(self, timeout: Duration) -> bool {
        self.queue.close(timeout)
    }
}

fn open(path: &Path) -> Result<File, Error> {
    open_or_make(path).map(|(file, _)| file)
}

/// Opens the file at `path` for appending. Returns whether this call created it.
fn open_or_make(path: &Path) -> Result<(File, bool), Error> {
    let mut options = OpenOptions::new();
    options.append(true).mode(FILE_MODE);
    let opened = match options.open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let made = options.create_new(true).open(path).map(|file| (file, true));
            // The path is a dangling symbolic link, or another process has created the file
            // meanwhile.
            made.or_else(|_| options.create_new(false).create(true).open(path).map(|file| (file, false)))
        }
        opened => opened.map(|file| (file, false)),
    };
    opened.map_err(|source| Error::new(Op::OpenLog, path.display().to_string(), source))
}

/// Wakes the writer. If the channel is full, a message is on its way.
fn wake(channel: &SyncSender<()>) {
    let _ = channel.try_send(());
}

/// The logger of a worker. The lines of all workers are in one buffer, in their order.
pub struct WorkerLogger {
    lines: LineFormatter,
    /// The line, formatted while others may add theirs.
    line: Vec<u8>,
    shared: Arc<LogShared>,
    wake: SyncSender<()>,
}

impl WorkerLogger {
    /// Adds a line; `now` is the caller's current time.
    pub fn log(&mut self, record: &AccessRecord<'_>, now: Instant) {
        if self.shared.ended.load(Ordering::Relaxed) {
            return;
        }
        self.line.clear();
        self.lines.line(record, &mut self.line);
        if self.shared.add(&self.line, Some(now)) {
            wake(&self.wake);
        }
    }

    /// Wakes the writer for lines that have waited for a second. Call it regularly, even without
    /// requests.
    pub fn flush_if_due(&mut self, now: Instant) {
        let since = self.shared.waiting().since;
        if since.is_some_and(|since| now.saturating_duration_since(since) >= FLUSH_AFTER) {
            wake(&self.wake);
        }
    }
}

/// The state of the writer thread.
struct LogThread {
    sink: Box<dyn Write + Send>,
    /// Whether the file ends within a line, after a write that failed halfway.
    torn: bool,
    /// The dropped lines that the log already reports.
    reported: u64,
    notices: LogCallbacks,
    shared: Arc<LogShared>,
    /// An empty buffer for the next lines.
    spare: Vec<u8>,
}

impl LogThread {
    /// Writes until all senders are gone, or the reader of the stream is.
    fn run(&mut self, receiver: &Receiver<()>) {
        while receiver.recv().is_ok() {
            if self.write_waiting().is_err() {
                return self.shared.ended.store(true, Ordering::Relaxed);
            }
        }
        // Lines that nobody has woken this thread for. Nothing can be reported about an error.
        let _ = self.write_waiting();
    }

    /// Writes all lines that wait, after a reopened file has taken the place of the old one.
    fn write_waiting(&mut self) -> io::Result<()> {
        let next = self.shared.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(file) = next {
            self.sink = Box::new(file);
            self.torn = false;
        }
        // The workers go on with the buffer of the last time: nothing grows in their lock.
        let bytes = std::mem::take(&mut self.spare);
        let next = WaitingLines { bytes, ..WaitingLines::default() };
        let WaitingLines { mut bytes, count, .. } = std::mem::replace(&mut *self.shared.waiting(), next);
        if self.notices.splits_lines {
            bytes.split_inclusive(|byte| *byte == b'\n').try_for_each(|line| self.write(line, 1))?;
        } else if count > 0 {
            self.write(&bytes, count)?;
        }
        if count > 0 {
            self.report_dropped();
        }
        bytes.clear();
        self.spare = bytes;
        Ok(())
    }

    /// Writes `count` lines. Returns an error only if the stream has lost its reader for good.
    fn write(&mut self, bytes: &[u8], count: u64) -> io::Result<()> {
        let newline: &[u8] = if self.torn { b"\n" } else { b"" };
        let written =
            self.write_all(newline).and_then(|()| self.write_all(bytes)).and_then(|()| self.sink.flush());
        let Err(error) = written else { return Ok(()) };
        self.shared.errors.fetch_add(1, Ordering::Relaxed);
        self.shared.dropped.fetch_add(count, Ordering::Relaxed);
        (self.notices.failed)(&error);
        if error.kind() == ErrorKind::BrokenPipe { Err(error) } else { Ok(()) }
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some(last) = bytes.last() {
            match self.sink.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => {
                    let (done, rest) = bytes.split_at_checked(written).unwrap_or((bytes, &[]));
                    self.torn = done.last().unwrap_or(last) != &b'\n';
                    bytes = rest;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes a line about the dropped lines, once writing works again.
    fn report_dropped(&mut self) {
        let dropped = self.shared.dropped.load(Ordering::Relaxed);
        if self.torn || dropped == self.reported {
            return;
        }
        let mut line = Vec::new();
        (self.notices.dropped)(SystemTime::now(), dropped - self.reported, &mut line);
        if self.write_all(&line).and_then(|()| self.sink.flush()).is_ok() {
            self.reported = dropped;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::Sender;
    use std::time::UNIX_EPOCH;

    use super::super::line::BodySource;
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn record(target: &[u8]) -> AccessRecord<'_> {
        AccessRecord {
            time: UNIX_EPOCH,
            peer: None,
            user: None,
            method: b"GET",
            target,
            version: "HTTP/1.1",
            host: None,
            status: 200,
            bytes: 0,
            duration: Duration::ZERO,
            referer: None,
            agent: None,
            source: BodySource::Hit,
            tls: false,
        }
    }

    /// A sink that returns scripted results and keeps the written bytes.
    struct Script {
        answers: Vec<io::Result<usize>>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Script {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let answer = if self.answers.is_empty() { Ok(bytes.len()) } else { self.answers.remove(0) };
            let length = answer?.min(bytes.len());
            self.written.lock().unwrap().extend_from_slice(&bytes[..length]);
            Ok(length)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn script(answers: Vec<io::Result<usize>>) -> (LogTarget, Arc<Mutex<Vec<u8>>>) {
        let written = Arc::<Mutex<Vec<u8>>>::default();
        (LogTarget::Stream(Box::new(Script { answers, written: written.clone() })), written)
    }

    /// A sink that signals each write and then waits for permission.
    struct Gate {
        arrived: Sender<()>,
        open: Receiver<()>,
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.arrived.send(());
            let _ = self.open.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_of_all_workers_arrive_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("access.log");
        let log = AccessLogWriter::start(LogFormat::Combined, LogTarget::File(path.clone()), |_| {}).unwrap();
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let mut logger = log.logger();
                scope.spawn(move || {
                    for request in 0..1000 {
                        logger.log(&record(format!("/{worker}/{request}").as_bytes()), Instant::now());
                    }
                });
            }
        });
        assert!(log.close(PATIENCE));
        let text = std::fs::read_to_string(&path).unwrap();
        let mut targets: Vec<_> =
            text.lines().map(|line| line.split(' ').nth(6).unwrap().to_owned()).collect();
        targets.sort();
        let mut expected: Vec<_> = (0..4).flat_map(|w| (0..1000).map(move |r| format!("/{w}/{r}"))).collect();
        expected.sort();
        assert_eq!(targets, expected);
    }

    #[test]
    fn lines_are_in_the_order_in_which_they_were_logged() {
        let (target, written) = script(Vec::new());
        let log = AccessLogWriter::start(LogFormat::Combined, target, |_| {}).unwrap();
        let (mut loggers, start) = ([log.logger(), log.logger(), log.logger()], Instant::now());
        for request in 0..3000 {
            // One worker is seldom busy, and the writer is woken now and then.
            let logger = &mut loggers[if request % 100 == 0 { 2 } else { request % 2 }];
            logger.log(&record(format!("/{request}").as_bytes()), start);
            if request % 777 == 0 {
                logger.flush_if_due(start + FLUSH_AFTER);
            }
        }
        drop(loggers);
        assert!(log.close(PATIENCE));
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        let targets = text.lines().map(|line| line.split(' ').nth(6).unwrap().to_owned());
        assert!(targets.eq((0..3000).map(|request| format!("/{request}"))));
    }

    #[test]
    fn a_stuck_disk_drops_lines_and_counts_them() {
        let (arrived, has_arrived) = std::sync::mpsc::channel();
        let (permit, open) = std::sync::mpsc::channel();
        let log = AccessLogWriter::start(
            LogFormat::Json,
            LogTarget::Stream(Box::new(Gate { arrived, open })),
            |_| {},
        )
        .unwrap();
        let mut logger = log.logger();
        let target = vec![b'a'; CHUNK_BYTES];
        logger.log(&record(&target), Instant::now());
        has_arrived.recv().unwrap();
        // One line is being written. A line is longer than its target.
        let (room, lines) = (WAITING_BYTES_MAX / CHUNK_BYTES - 1, || log.queue.shared.waiting().count);
        for _ in 0..room {
            logger.log(&record(&target), Instant::now());
        }
        assert_eq!((log.dropped(), lines()), (0, room as u64));
        for _ in 0..5 {
            logger.log(&record(&target), Instant::now());
        }
        assert_eq!((log.dropped(), lines()), (5, room as u64));
        drop(permit);
        drop(logger);
        assert!(log.close(PATIENCE));
    }

    #[test]
    fn a_torn_line_is_ended_and_the_loss_is_told() {
        let (target, written) = script(vec![Ok(4), Err(io::Error::from_raw_os_error(28))]);
        let (failed, has_failed) = std::sync::mpsc::channel();
        let failed = move |_: &io::Error| {
            let _ = failed.send(());
        };
        let log = AccessLogWriter::start(LogFormat::Combined, target, failed).unwrap();
        let (mut logger, start) = (log.logger(), Instant::now());
        logger.log(&record(b"/lost"), start);
        logger.flush_if_due(start + FLUSH_AFTER);
        has_failed.recv().unwrap();
        logger.log(&record(b"/kept"), start);
        drop(logger);
        let shared = log.queue.shared.clone();
        assert!(log.close(PATIENCE));
        assert_eq!(shared.errors.load(Ordering::Relaxed), 1);
        assert_eq!(shared.dropped.load(Ordering::Relaxed), 1);
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert_eq!(lines[0], "unix");
        assert!(lines[1].contains("/kept"));
        assert!(lines[2].contains("\"1 log lines dropped\""));
    }

    #[test]
    fn logging_ends_when_the_reader_is_gone() {
        let (target, written) = script(vec![Err(ErrorKind::BrokenPipe.into())]);
        let log = AccessLogWriter::start(LogFormat::Json, target, |_| {}).unwrap();
        let (mut logger, start) = (log.logger(), Instant::now());
        logger.log(&record(b"/1"), start);
        logger.flush_if_due(start + FLUSH_AFTER);
        assert!(log.queue.done.recv_timeout(PATIENCE).is_err());
        logger.log(&record(b"/2"), start);
        assert_eq!(log.dropped(), 1, "only the line that failed counts; logging has ended after it");
        assert!(written.lock().unwrap().is_empty());
    }

    #[test]
    fn lines_wait_for_a_second_at_most() {
        let (target, written) = script(Vec::new());
        let log = AccessLogWriter::start(LogFormat::Json, target, |_| {}).unwrap();
        let mut logger = log.logger();
        let start = Instant::now();
        let lines = || written.lock().unwrap().iter().filter(|byte| **byte == b'\n').count();
        logger.log(&record(b"/"), start);
        logger.flush_if_due(start + FLUSH_AFTER / 2);
        assert_eq!((log.queue.shared.waiting().count, lines()), (1, 0));
        logger.flush_if_due(start + FLUSH_AFTER);
        while lines() == 0 {
            assert!(start.elapsed() < PATIENCE);
            std::thread::yield_now();
        }
        drop(logger);
        assert!(log.close(PATIENCE));
        assert_eq!(lines(), 1);
    }

    #[test]
    fn after_reopen_lines_go_to_the_new_file() {
        let dir = tempfile::tempdir().unwrap();
        let (path, old) = (dir.path().join("access.log"), dir.path().join("access.log.1"));
        std::fs::write(&path, "before\n").unwrap();
        let log = AccessLogWriter::start(LogFormat::Json, LogTarget::File(path.clone()), |_| {}).unwrap();
        std::fs::rename(&path, &old).unwrap();
        log.reopen().unwrap();
        let mut logger = log.logger();
        logger.log(&record(b"/new"), Instant::now());
        drop(logger);
        assert!(log.close(PATIENCE));
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "before\n");
        assert!(std::fs::read_to_string(&path).unwrap().contains("/new"));
    }

    #[test]
    fn a_log_that_cannot_be_opened_says_which() {
        let path = PathBuf::from("/nowhere/access.log");
        let error = AccessLogWriter::start(LogFormat::Json, LogTarget::File(path), |_| {}).err().unwrap();
        assert!(error.to_string().starts_with("cannot open log '/nowhere/access.log': No such file"));
    }
}
