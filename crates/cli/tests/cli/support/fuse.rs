//! A scripted FUSE file system, for states that no disk file system can be brought into:
//! directories that are their own ancestors, names that vanish between getdents64(2) and stat(2),
//! listings that fail midway, directories whose open is delayed. Read-only, and mounted in the
//! mount namespace of the program under test. Speaks the kernel's protocol itself: `fuser`, which
//! the slow filesystem of the benchmarks uses, has no entries of unknown type, and takes inode
//! numbers for node numbers, so that no two directories can have the same one.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::io::Errno;

/// The number of the root node.
pub(crate) const TOP: usize = 1;

/// `DT_LNK` of readdir(3).
const SYMLINK_KIND: u32 = 10;
const DIRECTORY: u32 = 0o040_755;
const REGULAR: u32 = 0o100_644;
const REQUEST_HEADER_BYTES: usize = 40;
const REPLY_HEADER_BYTES: u32 = 16;
const DIRENT_HEAD_BYTES: usize = 24;
const REQUEST_BYTES_MAX: usize = 128 * 1024;

const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const INIT: u32 = 26;
const OPENDIR: u32 = 27;
const READDIR: u32 = 28;
const RELEASEDIR: u32 = 29;
const INTERRUPT: u32 = 36;
const BATCH_FORGET: u32 = 42;

/// The contents of the file system. A node number is not an inode number: two nodes may report the
/// same inode number.
#[derive(Clone)]
pub(crate) struct ScriptedFs {
    nodes: Vec<Node>,
    lookups: Arc<AtomicUsize>,
    lists_types: bool,
    /// Names that are listed as symbolic links, whatever type their node has.
    links: Vec<String>,
}

#[derive(Clone)]
struct Node {
    mode: u32,
    inode: u64,
    size: u64,
    blocks: u64,
    links: u32,
    modified: i64,
    entries: Vec<(String, Result<usize, Errno>)>,
    listing_error: Option<Errno>,
    gate: Option<Gate>,
}

/// Blocks each open of a directory until the test opens the gate.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Default)]
struct GateState {
    is_open: bool,
    /// An open of the directory is blocked at the gate.
    is_reached: bool,
}

impl Gate {
    /// Lets blocked and later opens of the directory proceed.
    pub(crate) fn open(&self) {
        self.0.0.lock().expect("no holder panics").is_open = true;
        self.0.1.notify_all();
    }

    /// Waits until an open of the directory is blocked.
    pub(crate) fn wait_until_reached(&self) {
        let passage = self.0.0.lock().expect("no holder panics");
        drop(self.0.1.wait_while(passage, |passage| !passage.is_reached).expect("no holder panics"));
    }

    fn pass(&self) {
        let mut passage = self.0.0.lock().expect("no holder panics");
        passage.is_reached = true;
        // Wakes `wait_until_reached`.
        self.0.1.notify_all();
        drop(self.0.1.wait_while(passage, |passage| !passage.is_open).expect("no holder panics"));
    }
}

impl ScriptedFs {
    /// Returns a file system whose root is empty.
    pub(crate) fn new() -> ScriptedFs {
        let nothing = Node::new(0, 0);
        ScriptedFs {
            nodes: vec![nothing, Node::new(DIRECTORY, TOP as u64)],
            lookups: Arc::default(),
            lists_types: true,
            links: Vec::new(),
        }
    }

    /// Returns the number of lookups so far, over all mounts of this file system.
    pub(crate) fn lookups(&self) -> usize {
        self.lookups.load(Ordering::Relaxed)
    }

    /// Adds a directory to the directory `above`. Returns its node number.
    pub(crate) fn dir(&mut self, above: usize, name: &str) -> usize {
        self.add(above, name, DIRECTORY)
    }

    /// Adds a file with `blocks` of 512 bytes to the directory `above`. Returns its node number.
    pub(crate) fn file(&mut self, above: usize, name: &str, blocks: u64) -> usize {
        let node = self.add(above, name, REGULAR);
        self.nodes[node].blocks = blocks;
        self.nodes[node].size = blocks.saturating_mul(512).min(i64::MAX as u64);
        node
    }

    /// Adds a name to `above` that is listed, but whose lookup fails with `error`.
    pub(crate) fn failing(&mut self, above: usize, name: &str, error: Errno) {
        self.nodes[above].entries.push((name.to_string(), Err(error)));
    }

    /// Adds a name to `above` that is listed as a symbolic link, but whose lookup fails with
    /// `ENOENT`.
    pub(crate) fn vanishing_link(&mut self, above: usize, name: &str) {
        self.links.push(name.to_string());
        self.failing(above, name, Errno::NOENT);
    }

    /// Makes a listing of `dir` fail with `error` after the last entry.
    pub(crate) fn break_off(&mut self, dir: usize, error: Errno) {
        self.nodes[dir].listing_error = Some(error);
    }

    /// Lists every entry as `DT_UNKNOWN`, as some file systems do.
    pub(crate) fn untyped(mut self) -> ScriptedFs {
        self.lists_types = false;
        self
    }

    /// Makes `node` report the inode number of `other`.
    pub(crate) fn same_inode(&mut self, node: usize, other: usize) {
        self.nodes[node].inode = self.nodes[other].inode;
    }

    /// Sets the number of 512-byte blocks that `node` reports.
    pub(crate) fn blocks(&mut self, node: usize, blocks: u64) {
        self.nodes[node].blocks = blocks;
    }

    /// Sets the mtime of `node`, in seconds.
    pub(crate) fn modified(&mut self, node: usize, second: i64) {
        self.nodes[node].modified = second;
    }

    /// Blocks each open of `dir` until the returned gate is opened.
    pub(crate) fn gate(&mut self, dir: usize) -> Gate {
        self.nodes[dir].gate.get_or_insert_default().clone()
    }

    fn add(&mut self, above: usize, name: &str, mode: u32) -> usize {
        let number = self.nodes.len();
        self.nodes.push(Node::new(mode, number as u64));
        self.nodes[above].entries.push((name.to_string(), Ok(number)));
        number
    }
}

impl Node {
    fn new(mode: u32, inode: u64) -> Node {
        Node {
            mode,
            inode,
            size: 0,
            blocks: 0,
            links: if mode == DIRECTORY { 2 } else { 1 },
            modified: 1_000_000_000,
            entries: Vec::new(),
            listing_error: None,
            gate: None,
        }
    }
}

/// A thread that answers the kernel's requests until the file system is unmounted.
pub(crate) struct FuseServer {
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FuseServer {
    /// Starts to answer for `script`. `command` gets the FUSE device as its standard input, to
    /// mount it.
    pub(crate) fn start(script: &ScriptedFs, command: &mut Command) -> FuseServer {
        let device = open_device().expect("callers check that the device exists");
        command.stdin(Stdio::from(device.try_clone().expect("one more descriptor")));
        let stopped = Arc::new(AtomicBool::new(false));
        let session = FuseSession { device: Arc::new(device), script: script.clone() };
        let stop = Arc::clone(&stopped);
        FuseServer { stopped, thread: Some(thread::spawn(move || session.serve(&stop))) }
    }
}

impl Drop for FuseServer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct FuseSession {
    device: Arc<File>,
    script: ScriptedFs,
}

impl FuseSession {
    fn serve(&self, stopped: &AtomicBool) {
        let mut buffer = vec![0; REQUEST_BYTES_MAX];
        loop {
            match (&*self.device).read(&mut buffer) {
                Ok(length) => self.answer(&buffer[..length]),
                Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => return,
                // EPERM: the device is not mounted yet. If the mount failed, it never will be.
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    if stopped.load(Ordering::Relaxed) {
                        return;
                    }
                    thread::sleep(Duration::from_millis(1));
                }
                Err(_) => {}
            }
        }
    }

    fn answer(&self, request: &[u8]) {
        let (operation, unique) = (u32_at(request, 4), u64_at(request, 8));
        let number = usize::try_from(u64_at(request, 16)).unwrap_or(usize::MAX);
        let arguments = &request[REQUEST_HEADER_BYTES..];
        if matches!(operation, FORGET | BATCH_FORGET | INTERRUPT) {
            return;
        }
        let answer = match self.script.nodes.get(number) {
            _ if operation == INIT => Ok(init_reply(arguments)),
            None => Err(Errno::NOENT),
            Some(node) => match operation {
                LOOKUP => self.lookup(node, arguments),
                GETATTR => Ok(FuseReply::default().u64(0).u64(0).attributes(node)),
                OPENDIR => match &node.gate {
                    Some(gate) => return self.open_later(unique, gate.clone()),
                    None => Ok(FuseReply::default().u64(0).u64(0)),
                },
                READDIR => self.list(node, arguments),
                RELEASEDIR => Ok(FuseReply::default()),
                _ => Err(Errno::NOSYS),
            },
        };
        send(&self.device, unique, answer);
    }

    fn lookup(&self, dir: &Node, arguments: &[u8]) -> Result<FuseReply, Errno> {
        self.script.lookups.fetch_add(1, Ordering::Relaxed);
        let name = arguments.strip_suffix(&[0]).unwrap_or(arguments);
        let entry = dir.entries.iter().find(|(entry, _)| entry.as_bytes() == name);
        let number = entry.map_or(Err(Errno::NOENT), |(_, node)| *node)?;
        let reply = FuseReply::default().u64(number as u64).u64(0).u64(0).u64(0).u64(0);
        Ok(reply.attributes(&self.script.nodes[number]))
    }

    fn open_later(&self, unique: u64, gate: Gate) {
        let device = Arc::clone(&self.device);
        thread::spawn(move || {
            gate.pass();
            send(&device, unique, Ok(FuseReply::default().u64(0).u64(0)));
        });
    }

    fn list(&self, dir: &Node, arguments: &[u8]) -> Result<FuseReply, Errno> {
        let (first, bytes_max) = (u64_at(arguments, 8) as usize, u32_at(arguments, 16) as usize);
        if let (true, Some(error)) = (first >= dir.entries.len(), dir.listing_error) {
            return Err(error);
        }
        let mut reply = FuseReply::default();
        for (offset, (name, entry)) in dir.entries.iter().enumerate().skip(first) {
            if reply.0.len() + DIRENT_HEAD_BYTES + name.len().next_multiple_of(8) > bytes_max {
                break;
            }
            let node = entry.ok().map(|number| &self.script.nodes[number]);
            let kind = match node.filter(|_| self.script.lists_types) {
                Some(node) => node.mode >> 12,
                None if self.script.links.contains(name) => SYMLINK_KIND,
                None => 0,
            };
            reply = reply.entry(offset as u64 + 1, name, node.map_or(u64::MAX, |node| node.inode), kind);
        }
        Ok(reply)
    }
}

/// The bytes of a reply, in the layout of `linux/fuse.h`.
#[derive(Clone, Default)]
struct FuseReply(Vec<u8>);

impl FuseReply {
    fn u64(mut self, value: u64) -> FuseReply {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn u32(mut self, value: u32) -> FuseReply {
        self.0.extend(value.to_ne_bytes());
        self
    }

    /// Appends `struct fuse_attr`.
    fn attributes(self, node: &Node) -> FuseReply {
        let second = node.modified as u64;
        let sized = self.u64(node.inode).u64(node.size).u64(node.blocks).u64(second).u64(second).u64(second);
        let stamped = sized.u32(0).u32(0).u32(0).u32(node.mode).u32(node.links);
        stamped.u32(0).u32(0).u32(0).u32(4096).u32(0)
    }

    /// Appends `struct fuse_dirent`.
    fn entry(self, offset: u64, name: &str, inode: u64, kind: u32) -> FuseReply {
        let mut reply = self.u64(inode).u64(offset).u32(name.len() as u32).u32(kind);
        reply.0.extend(name.as_bytes());
        reply.0.resize(reply.0.len().next_multiple_of(8), 0);
        reply
    }
}

/// Returns `struct fuse_init_out` for protocol 7.31 without any extension.
fn init_reply(arguments: &[u8]) -> FuseReply {
    let readahead = u32_at(arguments, 8);
    let known = FuseReply::default().u32(7).u32(31).u32(readahead).u32(0);
    let mut reply = known.u32(16 | (12 << 16)).u32(4096).u32(1);
    reply.0.resize(64, 0);
    reply
}

fn send(mut device: &File, unique: u64, answer: Result<FuseReply, Errno>) {
    let (error, body) = answer.map_or_else(|error| (-error.raw_os_error(), Vec::new()), |reply| (0, reply.0));
    let head = FuseReply::default().u32(REPLY_HEADER_BYTES + body.len() as u32).u32(error as u32).u64(unique);
    // The write fails if the requesting process has ended.
    let _ = device.write(&[head.0, body].concat());
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn open_device() -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/fuse")
}

/// Whether a scripted file system can be mounted on this machine.
pub(crate) fn works() -> bool {
    if open_device().is_err() {
        return false;
    }
    let options = "fd=0,rootmode=40000,user_id=0,group_id=0";
    let mut command = Command::new("unshare");
    command.args(["-m", "mount", "-i", "-t", "fuse", "none", "/mnt", "-o", options]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let server = FuseServer::start(&ScriptedFs::new(), &mut command);
    let mounted = command.status().is_ok_and(|status| status.success());
    drop(command);
    drop(server);
    mounted
}
