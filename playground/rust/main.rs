//! Does one operation on one file or one tree, with one I/O method, and prints one row. The
//! contract is ../README.md.
//!
//! A partition of the file belongs to one thread. A slot holds one block and its buffer. System
//! calls need one slot; a ring and Tokio have `--depth` slots, and a block starts only when a slot
//! is free, which bounds the operations in flight. In a tree, the threads share the directories
//! instead.

use std::cmp::{max, min};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, SeekFrom, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{env, slice, thread};

use io_uring::{IoUring, opcode, types};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
use tokio::runtime::{self, Runtime};
use tokio::task::JoinSet;

const PAGE: usize = 4096;
const STAMP: usize = 16;
const TIMED_EVERY: u64 = 64;
const RING_MAX: u64 = 32768;

const FAILED: i32 = 1;
const MISUSED: i32 = 2;
const UNAVAILABLE: i32 = 3;

#[derive(Clone, Copy, PartialEq)]
enum Op {
    Write,
    Read,
    RandomRead,
    AppendSync,
    Walk,
    Stat,
}

const OPS: [(&str, Op); 6] = [
    ("write", Op::Write),
    ("read", Op::Read),
    ("random-read", Op::RandomRead),
    ("append-sync", Op::AppendSync),
    ("walk", Op::Walk),
    ("stat", Op::Stat),
];

impl Op {
    fn name(self) -> &'static str {
        OPS[self as usize].0
    }

    fn writes(self) -> bool {
        matches!(self, Self::Write | Self::AppendSync)
    }

    fn is_of_tree(self) -> bool {
        matches!(self, Self::Walk | Self::Stat)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Method {
    Blocking,
    Threads,
    Uring,
    Tokio,
    Null,
}

const METHODS: [(&str, Method); 5] = [
    ("blocking", Method::Blocking),
    ("threads", Method::Threads),
    ("uring", Method::Uring),
    ("tokio", Method::Tokio),
    ("null", Method::Null),
];

struct Options {
    op: Op,
    method: Method,
    path: PathBuf,
    size: u64,
    block: u64,
    threads: u64,
    depth: u64,
    batch: u64,
    spins: bool,
    direct: bool,
    random_advice: bool,
    seed: u64,
    generation: u64,
}

/// Prints the error and ends the program. If several threads fail, only the first one prints.
fn quit(status: i32, message: &str) -> ! {
    static QUITTING: Mutex<()> = Mutex::new(());
    let _never_released = QUITTING.lock();
    let program = env::args_os().next().unwrap_or_default();
    let name = Path::new(&program).file_name().unwrap_or_default();
    eprintln!("{}: {message}", name.display());
    exit(status)
}

/// Returns the text of the errno, without the number that [`io::Error`] adds.
fn text_of(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

fn fail(action: &str, path: &Path, error: &io::Error) -> ! {
    quit(FAILED, &format!("{action} '{}': {}", path.display(), text_of(error)))
}

/// Fails for a path below the root of a tree.
fn fail_below(op: Op, path: &Path, error: &io::Error) -> ! {
    fail(&format!("cannot {}", op.name()), path, error)
}

/// Allocates a vector for `capacity` elements.
fn allocated<T>(capacity: usize) -> Vec<T> {
    let mut vector = Vec::new();
    if vector.try_reserve_exact(capacity).is_err() {
        quit(FAILED, "cannot allocate memory: Cannot allocate memory");
    }
    vector
}

// Operations are counted before their submission and until their completion is known. The count is
// therefore an upper bound of the operations in flight.
static IN_FLIGHT: AtomicU64 = AtomicU64::new(0);
static IN_FLIGHT_MAX: AtomicU64 = AtomicU64::new(0);

fn count_begun(operations: u64) {
    let now = IN_FLIGHT.fetch_add(operations, Ordering::Relaxed) + operations;
    // Most operations do not raise the maximum, and a load does not contend.
    if now > IN_FLIGHT_MAX.load(Ordering::Relaxed) {
        IN_FLIGHT_MAX.fetch_max(now, Ordering::Relaxed);
    }
}

fn count_ended(operations: u64) {
    IN_FLIGHT.fetch_sub(operations, Ordering::Relaxed);
}

// The order of a random read

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Returns a permutation of the numbers below `count`.
fn places(mut seed: u64, count: u64) -> Vec<u64> {
    let rounds: [(u64, u64); 4] = std::array::from_fn(|_| (split_mix(&mut seed), split_mix(&mut seed) | 1));
    let bits = u64::BITS - (max(count, 2) - 1).leading_zeros();
    let (mask, shift) = (u64::MAX >> (u64::BITS - bits), max(bits / 3, 1));
    let image = |x: u64| {
        rounds.iter().fold(x, |x, (addend, factor)| {
            let x = x.wrapping_add(*addend).wrapping_mul(*factor) & mask;
            x ^ (x >> shift)
        })
    };
    let mut order = allocated(count as usize);
    for k in 0..count {
        let mut place = image(k);
        while place >= count {
            place = image(place);
        }
        order.push(place);
    }
    order
}

// The pattern

/// A page of memory, aligned as O_DIRECT requires.
#[derive(Clone)]
#[repr(C, align(4096))]
struct Page([u8; PAGE]);

fn filled_page(options: &Options) -> Page {
    let mut page = Page([0; PAGE]);
    let mut x = options.seed ^ options.generation.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    if x == 0 {
        x = 1;
    }
    for number in page.0[STAMP..].chunks_exact_mut(8) {
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        number.copy_from_slice(&x.wrapping_mul(0x2545_F491_4F6C_DD1D).to_le_bytes());
    }
    page
}

fn stamp_of(page: u64, generation: u64) -> [u8; STAMP] {
    let mut stamp = [0; STAMP];
    stamp[..8].copy_from_slice(&page.to_le_bytes());
    stamp[8..].copy_from_slice(&generation.to_le_bytes());
    stamp
}

// Blocks

/// One block, and the part of it that has been moved.
struct Block {
    offset: u64,
    length: usize,
    moved: usize,
    /// The start of the operation, if it is timed.
    start: Option<Instant>,
}

impl Block {
    /// Returns whether the next operation is the sync that follows the data.
    fn is_moved(&self) -> bool {
        self.moved == self.length
    }

    /// Returns the offset of the next operation in the file.
    fn next_offset(&self) -> u64 {
        self.offset + self.moved as u64
    }
}

/// A block and its buffer, which starts with the page that contains the start of the block.
struct Slot {
    pages: Vec<Page>,
    block: Block,
}

impl Slot {
    fn new(options: &Options) -> Self {
        // A block that starts inside a page needs space for the start of that page, and may end
        // inside another.
        let block = options.block as usize;
        let span = block / PAGE + if block.is_multiple_of(PAGE) { 0 } else { 2 };
        let mut pages = allocated(span);
        pages.resize(span, filled_page(options));
        Self { pages, block: Block { offset: 0, length: 0, moved: 0, start: None } }
    }

    /// Returns the part of the buffer for the rest of the block.
    fn rest(&mut self) -> &mut [u8] {
        let Block { offset, length, moved, .. } = self.block;
        let skipped = (offset % PAGE as u64) as usize;
        // SAFETY: a page is an array of bytes without padding, so the vector is one array of bytes.
        let bytes = unsafe {
            slice::from_raw_parts_mut(self.pages.as_mut_ptr().cast::<u8>(), self.pages.len() * PAGE)
        };
        &mut bytes[skipped + moved..skipped + length]
    }

    /// Returns the pages of the block with their offsets.
    fn pages(&mut self) -> impl Iterator<Item = (u64, &mut Page)> {
        let Block { offset, length, .. } = self.block;
        let offsets = (offset - offset % PAGE as u64..offset + length as u64).step_by(PAGE);
        offsets.zip(&mut self.pages)
    }

    fn stamp(&mut self, options: &Options) {
        for (offset, page) in self.pages() {
            page.0[..STAMP].copy_from_slice(&stamp_of(offset, options.generation));
        }
    }

    /// Verifies the stamps of the block and returns the number of pages that start in it. If two
    /// blocks share a stamp, each verifies its part.
    fn verify(&mut self, options: &Options) -> u64 {
        let (start, end) = (self.block.offset, self.block.offset + self.block.length as u64);
        let mut begun = 0;
        for (offset, page) in self.pages() {
            let from = min(start.saturating_sub(offset), STAMP as u64) as usize;
            let to = min(STAMP as u64, end - offset) as usize;
            if from < to && page.0[from..to] != stamp_of(offset, options.generation)[from..to] {
                let path = options.path.display();
                quit(FAILED, &format!("cannot verify '{path}': page at {offset} is not what was written"));
            }
            begun += u64::from(offset >= start);
        }
        begun
    }
}

/// The sums of the row.
#[derive(Default)]
struct Counts {
    ops: u64,
    bytes: u64,
    pages_ok: u64,
    latencies_ns: Vec<u64>,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.ops += other.ops;
        self.bytes += other.bytes;
        self.pages_ok += other.pages_ok;
        self.latencies_ns.extend(other.latencies_ns);
    }
}

/// The blocks of one thread, in the order of the operation.
struct Partition {
    options: &'static Options,
    first: u64,
    count: u64,
    order: Vec<u64>,
}

impl Partition {
    /// Returns partition `index` of the file.
    fn new(options: &'static Options, index: u64) -> Self {
        let blocks = options.size.div_ceil(options.block);
        let first = index * blocks / options.threads;
        let count = (index + 1) * blocks / options.threads - first;
        let order = if options.op == Op::RandomRead { places(options.seed, count) } else { Vec::new() };
        Self { options, first, count, order }
    }

    /// Returns counts with room for all latencies.
    fn counts(&self) -> Counts {
        let timed = if self.options.op == Op::AppendSync { self.count } else { self.count / TIMED_EVERY + 1 };
        Counts { latencies_ns: allocated(timed as usize), ..Counts::default() }
    }

    /// Puts block `number` into `slot`.
    fn begin(&self, number: u64, slot: &mut Slot) {
        let Options { op, size, block, .. } = *self.options;
        let offset = (self.first + self.order.get(number as usize).unwrap_or(&number)) * block;
        let length = min(block, size - offset) as usize;
        slot.block = Block { offset, length, moved: 0, start: None };
        if op.writes() {
            slot.stamp(self.options);
        }
        if op == Op::AppendSync || number.is_multiple_of(TIMED_EVERY) {
            slot.block.start = Some(Instant::now());
        }
    }

    /// Processes the result of an operation. Returns whether the block is complete.
    fn advance(&self, slot: &mut Slot, result: io::Result<usize>, counts: &mut Counts) -> bool {
        let Options { op, path, .. } = self.options;
        let synced = slot.block.is_moved();
        let action = if op.writes() { "cannot write" } else { "cannot read" };
        let moved = match result {
            Ok(0) if !synced => {
                quit(FAILED, &format!("{action} '{}': unexpected end of file", path.display()))
            }
            Ok(moved) => moved,
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {
                return false;
            }
            Err(error) => fail(if synced { "cannot sync" } else { action }, path, &error),
        };
        counts.ops += 1;
        counts.bytes += moved as u64;
        slot.block.moved += moved;
        if !slot.block.is_moved() || *op == Op::AppendSync && !synced {
            return false;
        }
        if let Some(start) = slot.block.start {
            counts.latencies_ns.push(start.elapsed().as_nanos() as u64);
        }
        if !op.writes() {
            counts.pages_ok += slot.verify(self.options);
        }
        true
    }

    /// Makes the calls for all blocks, one after the other.
    fn run_calls(&self, slot: &mut Slot, counts: &mut Counts, call: impl Fn(&mut Slot) -> io::Result<usize>) {
        for number in 0..self.count {
            self.begin(number, slot);
            count_begun(1);
            while {
                let result = call(slot);
                !self.advance(slot, result, counts)
            } {}
            count_ended(1);
        }
    }
}

// Methods: blocking, threads and null

/// Makes the next call for the block, at the file position.
fn call_at_position(mut file: &File, op: Op, slot: &mut Slot) -> io::Result<usize> {
    if slot.block.is_moved() {
        file.sync_data().map(|()| 0)
    } else if op.writes() {
        file.write(slot.rest())
    } else {
        file.read(slot.rest())
    }
}

/// Makes the next call for the block, at the offset of the block.
fn call_at_offset(file: &File, op: Op, slot: &mut Slot) -> io::Result<usize> {
    let offset = slot.block.next_offset();
    if slot.block.is_moved() {
        file.sync_data().map(|()| 0)
    } else if op.writes() {
        file.write_at(slot.rest(), offset)
    } else {
        file.read_at(slot.rest(), offset)
    }
}

/// Stamps the block where another method would read it.
fn no_call(options: &Options, slot: &mut Slot) -> io::Result<usize> {
    if !options.op.writes() {
        slot.stamp(options);
    }
    Ok(slot.block.length)
}

// Method: uring

/// Makes a ring of `--depth` entries. The completion queue has twice as many and cannot overflow.
fn make_ring(depth: u64, spins: bool) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    if !spins {
        // Deferred task work only runs when the thread enters the kernel to wait, which a spinning
        // thread does not.
        builder.setup_single_issuer().setup_defer_taskrun();
    }
    match builder.build(depth as u32) {
        // Linux before 6.1 rejects these flags.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => IoUring::new(depth as u32),
        made => made,
    }
}

/// A partition that is moved with a ring.
struct RingRun<'a> {
    partition: &'a Partition,
    ring: IoUring,
    descriptor: types::Fd,
    slots: Vec<Slot>,
    free: Vec<usize>,
    next: u64,
    completed: Vec<(usize, i32)>,
}

impl<'a> RingRun<'a> {
    fn new(partition: &'a Partition, file: &File) -> Self {
        let options = partition.options;
        let ring = make_ring(options.depth, options.spins)
            .unwrap_or_else(|error| quit(UNAVAILABLE, &format!("cannot run 'uring': {}", text_of(&error))));
        let slots: Vec<Slot> = (0..min(options.depth, partition.count)).map(|_| Slot::new(options)).collect();
        let free = (0..slots.len()).rev().collect();
        let completed = allocated(2 * options.depth as usize);
        Self { partition, ring, descriptor: types::Fd(file.as_raw_fd()), slots, free, next: 0, completed }
    }

    /// Queues the next operation for the block of a slot.
    fn queue(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let offset = slot.block.next_offset();
        let entry = if slot.block.is_moved() {
            opcode::Fsync::new(self.descriptor).flags(types::FsyncFlags::DATASYNC).build()
        } else {
            let rest = slot.rest();
            let (start, length) = (rest.as_mut_ptr(), rest.len() as u32);
            if self.partition.options.op.writes() {
                opcode::Write::new(self.descriptor, start, length).offset(offset).build()
            } else {
                opcode::Read::new(self.descriptor, start, length).offset(offset).build()
            }
        };
        // SAFETY: the slot and its buffer are neither used nor freed before the completion.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(index as u64)) };
        pushed.expect("no slot is queued twice");
    }

    /// Returns the number of blocks to start now: a batch, or the rest if that is less; 0 while
    /// too few slots are free.
    fn startable(&self) -> u64 {
        let batch = min(self.partition.options.batch, self.slots.len() as u64);
        let batch = min(batch, self.partition.count - self.next);
        if batch <= self.free.len() as u64 { batch } else { 0 }
    }

    fn submit(&mut self, wait: bool) {
        if !wait && self.ring.submission().is_empty() {
            return;
        }
        let Err(error) = self.ring.submit_and_wait(usize::from(wait)) else { return };
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EAGAIN | libc::EBUSY) => {
                // The kernel is out of memory for requests. Entries that it did not consume stay
                // queued until some requests complete.
                const GET_EVENTS: u32 = 1;
                // SAFETY: without a third argument the kernel reads and writes none.
                let _ = unsafe { self.ring.submitter().enter::<()>(0, 0, GET_EVENTS, None) };
                thread::sleep(Duration::from_millis(1));
            }
            _ => fail("cannot submit operations on", &self.partition.options.path, &error),
        }
    }

    fn reap(&mut self, counts: &mut Counts) {
        let mut completed = std::mem::take(&mut self.completed);
        completed.extend(self.ring.completion().map(|entry| (entry.user_data() as usize, entry.result())));
        for (index, result) in completed.drain(..) {
            let result =
                if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(result as usize) };
            if self.partition.advance(&mut self.slots[index], result, counts) {
                self.free.push(index);
                count_ended(1);
            } else {
                self.queue(index);
            }
        }
        self.completed = completed;
    }

    fn run(&mut self, counts: &mut Counts) {
        while self.next < self.partition.count || self.free.len() < self.slots.len() {
            let batch = self.startable();
            for _ in 0..batch {
                let index = self.free.pop().expect("as many are free");
                self.partition.begin(self.next, &mut self.slots[index]);
                self.next += 1;
                self.queue(index);
            }
            if batch > 0 {
                count_begun(batch);
            }
            self.submit(!self.partition.options.spins && self.startable() == 0);
            self.reap(counts);
        }
    }
}

// Method: tokio

/// A Tokio file, which has one position and one operation in flight, and a slot.
struct TokioSlot {
    file: tokio::fs::File,
    position: u64,
    slot: Slot,
}

impl TokioSlot {
    /// `file` is a description of its own, because the descriptions have the positions.
    fn new(options: &Options, file: File) -> Self {
        let mut file = tokio::fs::File::from_std(file);
        // Each operation moves a whole block, as with other methods.
        file.set_max_buf_size(options.block as usize);
        Self { file, position: 0, slot: Slot::new(options) }
    }

    /// Makes the next call for the block and waits for its end.
    async fn call(&mut self, op: Op) -> io::Result<usize> {
        let offset = self.slot.block.next_offset();
        if self.slot.block.is_moved() {
            return self.file.sync_data().await.map(|()| 0);
        }
        if self.position != offset {
            self.position = self.file.seek(SeekFrom::Start(offset)).await?;
        }
        let moved = if op.writes() {
            let moved = self.file.write(self.slot.rest()).await?;
            // The write itself only starts with the call, and ends with the flush.
            self.file.flush().await?;
            moved
        } else {
            self.file.read(self.slot.rest()).await?
        };
        self.position += moved as u64;
        Ok(moved)
    }

    async fn run(mut self, partition: &'static Partition, next: &'static AtomicU64) -> Counts {
        let mut counts = partition.counts();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= partition.count {
                return counts;
            }
            partition.begin(number, &mut self.slot);
            count_begun(1);
            loop {
                let result = self.call(partition.options.op).await;
                if partition.advance(&mut self.slot, result, &mut counts) {
                    break;
                }
            }
            count_ended(1);
        }
    }
}

fn make_runtime() -> Runtime {
    runtime::Builder::new_multi_thread()
        .build()
        .unwrap_or_else(|error| quit(UNAVAILABLE, &format!("cannot start a thread: {}", text_of(&error))))
}

/// Runs up to `--depth` tasks, each with a slot, which share one partition.
async fn run_tokio(slots: Vec<TokioSlot>, partition: &'static Partition) -> Counts {
    let next: &'static AtomicU64 = Box::leak(Box::default());
    let mut tasks: JoinSet<Counts> = slots.into_iter().map(|slot| slot.run(partition, next)).collect();
    let mut all = Counts::default();
    while let Some(counts) = tasks.join_next().await {
        all.add(counts.unwrap_or_else(|error| quit(FAILED, &format!("cannot run a task: {error}"))));
    }
    all
}

/// Walks the tree with up to `--depth` tasks, one for each open directory.
async fn run_tokio_tree(options: &'static Options) -> Counts {
    let (mut all, mut tasks) = (Counts::default(), JoinSet::new());
    let mut waiting = vec![options.path.clone()];
    loop {
        while tasks.len() < options.depth as usize
            && let Some(path) = waiting.pop()
        {
            tasks.spawn(read_directory_async(options.op, path));
        }
        IN_FLIGHT_MAX.fetch_max(tasks.len() as u64, Ordering::Relaxed);
        let Some(ended) = tasks.join_next().await else { return all };
        let (counts, below) =
            ended.unwrap_or_else(|error| quit(FAILED, &format!("cannot run a task: {error}")));
        all.add(counts);
        waiting.extend(below);
    }
}

/// Returns the counts of a directory and the directories in it.
async fn read_directory_async(op: Op, path: PathBuf) -> (Counts, Vec<PathBuf>) {
    let (mut counts, mut below) = (Counts::default(), Vec::new());
    let mut entries = tokio::fs::read_dir(&path).await.unwrap_or_else(|error| fail_below(op, &path, &error));
    while let Some(entry) = entries.next_entry().await.unwrap_or_else(|error| fail_below(op, &path, &error)) {
        let is_directory = if op == Op::Walk {
            entry.file_type().await.map(|known| known.is_dir())
        } else {
            entry.metadata().await.map(|found| count_metadata(&found, &mut counts))
        };
        counts.ops += 1;
        if is_directory.unwrap_or_else(|error| fail_below(op, &entry.path(), &error)) {
            below.push(entry.path());
        }
    }
    (counts, below)
}

// Trees

/// The directories to read, and the number of threads without one.
#[derive(Default)]
struct Waiting {
    directories: Vec<PathBuf>,
    idle: u64,
}

#[derive(Default)]
struct Tree {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Tree {
    fn add(&self, directory: PathBuf) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).directories.push(directory);
        self.changed.notify_one();
    }

    /// Returns `None` when no thread has a directory, and therefore none can be added.
    fn take(&self, threads: u64) -> Option<PathBuf> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.idle += 1;
        while waiting.directories.is_empty() && waiting.idle < threads {
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let taken = waiting.directories.pop();
        match taken {
            Some(_) => waiting.idle -= 1,
            None => self.changed.notify_all(),
        }
        taken
    }

    fn run(&self, options: &Options, counts: &mut Counts) {
        while let Some(path) = self.take(options.threads) {
            self.read_directory(options.op, &path, counts)
                .unwrap_or_else(|error| fail_below(options.op, &path, &error));
        }
    }

    fn read_directory(&self, op: Op, path: &Path, counts: &mut Counts) -> io::Result<()> {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let is_directory = if op == Op::Walk {
                entry.file_type().map(|known| known.is_dir())
            } else {
                entry.metadata().map(|found| count_metadata(&found, counts))
            };
            counts.ops += 1;
            if is_directory.unwrap_or_else(|error| fail_below(op, &entry.path(), &error)) {
                self.add(entry.path());
            }
        }
        Ok(())
    }
}

/// Counts the bytes of a regular file. Returns whether the entry is a directory.
fn count_metadata(found: &Metadata, counts: &mut Counts) -> bool {
    if found.is_file() {
        counts.bytes += found.len();
    }
    found.is_dir()
}

// The clocks

fn usage() -> libc::rusage {
    let mut used = MaybeUninit::zeroed();
    // SAFETY: getrusage writes the whole structure, which may also consist of zeros.
    unsafe {
        libc::getrusage(libc::RUSAGE_SELF, used.as_mut_ptr());
        used.assume_init()
    }
}

/// The clock since the start, and the resource usage.
struct Clocks {
    start: Instant,
    before: libc::rusage,
    after: libc::rusage,
    seconds: Duration,
}

impl Clocks {
    /// Runs `work` and measures it.
    fn measure<T>(work: impl FnOnce() -> T) -> (Self, T) {
        let (before, start) = (usage(), Instant::now());
        let done = work();
        let seconds = start.elapsed();
        (Self { start, before, after: usage(), seconds }, done)
    }
}

/// Runs `options.threads` threads, all of which are ready before the clock starts.
fn run_threads(options: &'static Options, file: Option<&File>) -> (Clocks, Counts) {
    let (tree, barrier) = (Tree::default(), Barrier::new(options.threads as usize + 1));
    if options.op.is_of_tree() {
        tree.add(options.path.clone());
        IN_FLIGHT_MAX.store(options.threads, Ordering::Relaxed);
    }
    thread::scope(|scope| {
        let work = |index| {
            let (tree, barrier) = (&tree, &barrier);
            move || run_thread(options, index, file, tree, barrier)
        };
        let start = |index| thread::Builder::new().spawn_scoped(scope, work(index));
        let threads: Vec<_> =
            (0..options.threads).map(start).collect::<Result<_, _>>().unwrap_or_else(|error| {
                quit(UNAVAILABLE, &format!("cannot start a thread: {}", text_of(&error)))
            });
        barrier.wait(); // All threads are ready.
        let (clocks, _) = Clocks::measure(|| {
            barrier.wait(); // The clock has started.
            barrier.wait(); // The last operation has ended.
        });
        let mut all = Counts::default();
        for thread in threads {
            all.add(thread.join().unwrap_or_else(|_| quit(FAILED, "cannot run a thread: it panicked")));
        }
        (clocks, all)
    })
}

fn run_thread(
    options: &'static Options,
    index: u64,
    file: Option<&File>,
    tree: &Tree,
    barrier: &Barrier,
) -> Counts {
    // Waits for the other threads and the clock, works, and waits for the others again.
    let timed = |work: &mut dyn FnMut()| {
        barrier.wait();
        barrier.wait();
        work();
        barrier.wait();
    };
    if options.op.is_of_tree() {
        let mut counts = Counts::default();
        timed(&mut || tree.run(options, &mut counts));
        return counts;
    }
    let partition = Partition::new(options, index);
    let mut counts = partition.counts();
    match (options.method, file) {
        (Method::Uring, Some(file)) => {
            let mut run = RingRun::new(&partition, file);
            timed(&mut || run.run(&mut counts));
        }
        (Method::Blocking, Some(file)) if options.op != Op::RandomRead => {
            let mut slot = Slot::new(options);
            let call = |slot: &mut Slot| call_at_position(file, options.op, slot);
            timed(&mut || partition.run_calls(&mut slot, &mut counts, call));
        }
        (_, Some(file)) => {
            let mut slot = Slot::new(options);
            let call = |slot: &mut Slot| call_at_offset(file, options.op, slot);
            timed(&mut || partition.run_calls(&mut slot, &mut counts, call));
        }
        (_, None) => {
            let mut slot = Slot::new(options);
            let call = |slot: &mut Slot| no_call(options, slot);
            timed(&mut || partition.run_calls(&mut slot, &mut counts, call));
        }
    }
    counts
}

/// Runs Tokio's tasks on its runtime with as many threads as there are CPUs.
fn run_with_tokio(options: &'static Options, file: Option<&File>) -> (Clocks, Counts) {
    let runtime = make_runtime();
    let Some(file) = file else {
        return Clocks::measure(|| runtime.block_on(run_tokio_tree(options)));
    };
    let partition: &Partition = Box::leak(Box::new(Partition::new(options, 0)));
    let slots = (0..min(options.depth, partition.count)).map(|index| {
        // The first slot has the file itself, and therefore its advice.
        let own = if index == 0 { file.try_clone() } else { Ok(open_file(options, false)) };
        TokioSlot::new(options, own.unwrap_or_else(|error| fail("cannot open", &options.path, &error)))
    });
    let slots = slots.collect();
    Clocks::measure(|| runtime.block_on(run_tokio(slots, partition)))
}

// The row

fn seconds_between(from: libc::timeval, to: libc::timeval) -> f64 {
    (to.tv_sec - from.tv_sec) as f64 + (to.tv_usec - from.tv_usec) as f64 / 1e6
}

fn print_row(clocks: &Clocks, sync: Duration, close: Duration, mut counts: Counts) -> io::Result<()> {
    let Clocks { before, after, seconds, .. } = clocks;
    counts.latencies_ns.sort_unstable();
    let rank_us = |percent: usize| {
        let rank = (counts.latencies_ns.len() * percent).div_ceil(100); // 0: nothing was timed
        if rank == 0 { 0.0 } else { counts.latencies_ns[rank - 1] as f64 / 1e3 }
    };
    let mut row = format!(
        "seconds={:.9}\tsync_s={:.9}\tclose_s={:.9}",
        seconds.as_secs_f64(),
        sync.as_secs_f64(),
        close.as_secs_f64()
    );
    let Counts { ops, bytes, pages_ok, .. } = &counts;
    let in_flight_max = IN_FLIGHT_MAX.load(Ordering::Relaxed);
    row += &format!("\tops={ops}\tbytes={bytes}\tpages_ok={pages_ok}\tin_flight_max={in_flight_max}");
    row += &format!("\tcpu_user_s={:.6}", seconds_between(before.ru_utime, after.ru_utime));
    row += &format!("\tcpu_sys_s={:.6}", seconds_between(before.ru_stime, after.ru_stime));
    row += &format!("\tswitches={}", after.ru_nvcsw - before.ru_nvcsw);
    row += &format!("\tswitches_forced={}", after.ru_nivcsw - before.ru_nivcsw);
    for (name, percent) in [("p50", 50), ("p95", 95), ("p99", 99), ("max", 100)] {
        row += &format!("\t{name}_us={:.3}", rank_us(percent));
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{row}")?;
    out.flush()
}

// The command line

fn misuse(thing: &OsStr, cause: &str) -> ! {
    quit(MISUSED, &format!("cannot use '{}': {cause}", thing.display()))
}

fn number(text: &OsStr, least: u64, most: u64) -> u64 {
    let digits = text.to_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let number = digits.and_then(|text| text.parse().ok()).filter(|number| (least..=most).contains(number));
    number.unwrap_or_else(|| misuse(text, &format!("no number from {least} to {most}")))
}

fn choice<T: Copy>(text: &OsStr, words: &[(&str, T)]) -> T {
    let found = words.iter().find(|(word, _)| text == *word);
    found.map_or_else(|| misuse(text, "no such value"), |(_, value)| *value)
}

fn parse(words: &[OsString]) -> Options {
    const YES: [(&str, bool); 2] = [("no", false), ("yes", true)];
    const SPIN: [(&str, bool); 2] = [("wait", false), ("spin", true)];
    const RANDOM: [(&str, bool); 2] = [("normal", false), ("random", true)];
    let (mut op, mut method, mut path, mut size, mut block) = (None, None, None, None, None);
    let (mut threads, mut depth, mut batch, mut seed, mut generation) = (1, 1, 1, 1, 1);
    let (mut spins, mut direct, mut random_advice) = (false, false, false);
    for pair in words.chunks(2) {
        let [name, text] = pair else { misuse(&pair[0], "no value after it") };
        match name.to_str() {
            Some("--op") => op = Some(choice(text, &OPS)),
            Some("--method") => method = Some(choice(text, &METHODS)),
            Some("--path") => path = Some(PathBuf::from(text)),
            Some("--size") => size = Some(number(text, 1, 1 << 47)),
            Some("--block") => block = Some(number(text, 1, 1 << 30)),
            Some("--threads") => threads = number(text, 1, RING_MAX),
            Some("--depth") => depth = number(text, 1, RING_MAX),
            Some("--batch") => batch = number(text, 1, RING_MAX),
            Some("--wait") => spins = choice(text, &SPIN),
            Some("--direct") => direct = choice(text, &YES),
            Some("--advice") => random_advice = choice(text, &RANDOM),
            Some("--seed") => seed = number(text, 0, u64::MAX),
            Some("--generation") => generation = number(text, 0, u64::MAX),
            _ => misuse(name, "no such option"),
        }
    }
    let (Some(op), Some(method), Some(path), Some(size), Some(block)) = (op, method, path, size, block)
    else {
        quit(MISUSED, "cannot start: one of --op, --method, --path, --size, --block is missing");
    };
    if direct && !(size.is_multiple_of(512) && block.is_multiple_of(512)) {
        misuse("--direct".as_ref(), "--size or --block is no multiple of 512");
    }
    if op == Op::AppendSync && (threads > 1 || depth > 1) {
        misuse("--threads".as_ref(), "append-sync has one operation in flight");
    }
    if matches!(method, Method::Blocking | Method::Tokio | Method::Null) {
        threads = 1;
    }
    Options {
        op,
        method,
        path,
        size,
        block,
        threads,
        depth,
        batch,
        spins,
        direct,
        random_advice,
        seed,
        generation,
    }
}

/// Returns the reason why the method cannot run the operation.
fn refusal(method: Method, op: Op, direct: bool, depth: u64, spins: bool) -> Option<String> {
    match method {
        Method::Uring if op.is_of_tree() => Some("no operation of a ring reads a directory".to_owned()),
        Method::Uring => make_ring(depth, spins).err().map(|error| text_of(&error)),
        Method::Tokio if direct => {
            Some("the buffer of a tokio::fs::File is not aligned for O_DIRECT".to_owned())
        }
        Method::Null if op.is_of_tree() || op == Op::AppendSync => {
            Some("it reads and writes nothing".to_owned())
        }
        _ => None,
    }
}

fn list(op: Op) {
    for (name, method) in METHODS {
        println!("{name}\t{}", refusal(method, op, false, 1, false).as_deref().unwrap_or("ok"));
    }
}

/// Opens the file, and creates or truncates it if it `is_new`.
fn open_file(options: &Options, is_new: bool) -> File {
    let Options { op, path, direct, random_advice, .. } = options;
    let mut how = OpenOptions::new();
    how.read(!op.writes()).write(op.writes()).custom_flags(if *direct { libc::O_DIRECT } else { 0 });
    how.create(is_new && op.writes()).truncate(is_new && op.writes());
    let file = how.open(path).unwrap_or_else(|error| fail("cannot open", path, &error));
    if *random_advice && !op.writes() {
        // SAFETY: the call does not use memory.
        let error = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
        if error != 0 {
            fail("cannot advise", path, &io::Error::from_raw_os_error(error));
        }
    }
    file
}

/// Syncs and closes the file. Returns both clocks.
fn end_file(options: &Options, file: File, clocks: &Clocks) -> (Duration, Duration) {
    let mut synced = clocks.seconds;
    if options.op.writes() {
        file.sync_data().unwrap_or_else(|error| fail("cannot sync", &options.path, &error));
        synced = clocks.start.elapsed();
    }
    // SAFETY: the descriptor is this function's own.
    if unsafe { libc::close(file.into_raw_fd()) } != 0 {
        fail("cannot close", &options.path, &io::Error::last_os_error());
    }
    (synced, clocks.start.elapsed())
}

fn main() {
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    match &words[..] {
        [first] if first == "--list" => return list(Op::Write),
        [first, op] if first == "--list" => return list(choice(op, &OPS)),
        _ => {}
    }
    let options: &'static Options = Box::leak(Box::new(parse(&words)));
    let Options { op, method, direct, depth, spins, .. } = *options;
    // Before the file is truncated: a method that cannot run must not change it.
    if let Some(reason) = refusal(method, op, direct, depth, spins) {
        quit(UNAVAILABLE, &format!("cannot run '{}': {reason}", METHODS[method as usize].0));
    }
    let has_file = !op.is_of_tree() && method != Method::Null;
    let file = has_file.then(|| open_file(options, true));
    let run = if method == Method::Tokio { run_with_tokio } else { run_threads };
    let (clocks, counts) = run(options, file.as_ref());
    let ended = file.map(|file| end_file(options, file, &clocks));
    let (synced, closed) = ended.unwrap_or((clocks.seconds, clocks.seconds));
    if let Err(error) = print_row(&clocks, synced, closed, counts) {
        quit(FAILED, &format!("cannot write the row: {}", text_of(&error)));
    }
}
