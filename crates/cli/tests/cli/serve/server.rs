//! Runs the server on a directory of files: starts it, reads its address, sends it signals and
//! stops it. Its output goes to files, which tests read while it runs. A test fails if its server
//! panicked.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Time limit of every wait. Long enough for any machine.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// Interval between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A temporary directory, in which `www` is the directory to serve.
pub(crate) struct ServeDirectory(TempDir);

impl ServeDirectory {
    pub(crate) fn new() -> ServeDirectory {
        let home = ServeDirectory(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
        fs::create_dir(home.at("www")).unwrap();
        home
    }

    /// Creates the directory with these files in `www`.
    pub(crate) fn with(files: &[(&str, &[u8])]) -> ServeDirectory {
        let home = ServeDirectory::new();
        for (name, bytes) in files {
            home.file(name, bytes);
        }
        home
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns `name` as the server shows it: as an absolute path.
    pub(crate) fn shown(&self, name: &str) -> String {
        self.0.path().canonicalize().unwrap().join(name).display().to_string()
    }

    /// Creates the file `name` below `www`.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) {
        let path = self.at("www").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Makes the file `name` below `www` an old one: the entity tag of a file that has just changed
    /// changes once more with time.
    pub(crate) fn age(&self, name: &str) {
        let file = File::options().write(true).open(self.at("www").join(name)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(1_600_000_000)).unwrap();
    }

    /// Returns `fathom serve` with `words`, in this directory and without `FATHOM_SERVE_` variables
    /// of the environment.
    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
        command.arg("serve").args(words.split_whitespace()).current_dir(self.0.path()).env("LC_ALL", "C");
        let own = std::env::vars_os().map(|(name, _)| name);
        own.filter(|name| name.to_string_lossy().starts_with("FATHOM_SERVE_")).for_each(|name| {
            command.env_remove(name);
        });
        command
    }

    /// Serves `www` with `words` on a free port.
    pub(crate) fn serve(&self, words: &str) -> Server {
        Server::start(self, &mut self.command(&format!("-l 127.0.0.1:0 {words} www")))
    }

    /// Runs `fathom serve` with `words` that make it exit. Returns its status, standard output and
    /// standard error.
    pub(crate) fn run(&self, words: &str) -> (Option<i32>, String, String) {
        finish(&mut self.command(words))
    }
}

/// Runs `command` to its end. Returns its status, standard output and standard error.
pub(crate) fn finish(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A running server, which is killed on drop.
pub(crate) struct Server {
    child: Child,
    out: PathBuf,
    err: PathBuf,
    /// The URL that it printed, without the final slash.
    pub(crate) url: String,
    /// Whether a panic is part of the test.
    panics: bool,
}

impl Server {
    /// Starts `command` and waits until it prints its URL.
    pub(crate) fn start(home: &ServeDirectory, command: &mut Command) -> Server {
        let dir = tempfile::tempdir_in(home.0.path()).unwrap().keep();
        let (out, err) = (dir.join("out"), dir.join("err"));
        command.stdin(Stdio::null()).stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut server = Server { child, out, err, url: String::new(), panics: false };
        server.url = until("it says where it is", || {
            assert_eq!(server.child.try_wait().unwrap(), None, "it has ended: {}", server.err());
            let stderr = server.out() + &server.err();
            let line = stderr
                .split_inclusive('\n')
                .find(|line| line.starts_with("Serving '") && line.ends_with('\n'))?;
            let first = line.trim_end().rsplit_once(" on ")?.1.split(", ").next()?;
            Some(first.trim_end_matches('/').to_owned())
        });
        server
    }

    /// Makes a panic of the server no failure of the test.
    pub(crate) fn that_panics(mut self) -> Server {
        self.panics = true;
        self
    }

    /// The host and the port.
    pub(crate) fn address(&self) -> &str {
        self.url.rsplit('/').next().unwrap()
    }

    pub(crate) fn port(&self) -> u16 {
        self.address().rsplit(':').next().unwrap().parse().unwrap()
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The standard output so far.
    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.out).unwrap()).into_owned()
    }

    /// The standard error so far.
    pub(crate) fn err(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.err).unwrap()).into_owned()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Makes the server reload its configuration. Returns the message about it.
    pub(crate) fn reload(&self) -> String {
        let before = self.err().len();
        self.signal(Signal::HUP);
        until("it says whether it reloaded", || {
            let stderr = self.err().get(before..)?.to_owned();
            let is_over = stderr.contains("reloaded\n") || stderr.contains("keeping the old configuration\n");
            is_over.then_some(stderr)
        })
    }

    /// Waits until the server exits. Returns its status.
    pub(crate) fn status(&mut self) -> Option<i32> {
        until("it ends", || self.child.try_wait().unwrap()).code()
    }

    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Connects to the server, with a time limit for reads and writes.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
        stream.set_write_timeout(Some(WAIT_MAX)).unwrap();
        stream
    }

    /// Requests `path`. Returns the status and the body.
    pub(crate) fn get(&self, path: &str) -> (u16, Vec<u8>) {
        let mut stream = self.connect();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address());
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let status = std::str::from_utf8(&bytes[9..12]).unwrap().parse().unwrap();
        (status, bytes[end + 4..].to_vec())
    }

    /// The number of descriptors that the server has open.
    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// The server's memory without the pages of its program, in bytes.
    pub(crate) fn anonymous_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The kill fails if the server has exited already.
        let _gone = self.child.kill();
        let _status = self.child.wait();
        let stderr = self.err();
        if stderr.contains("panicked") && !self.panics && !std::thread::panicking() {
            panic!("the server panicked: {stderr}");
        }
    }
}

/// Polls `look` until it returns a value. Panics after the time limit.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < WAIT_MAX, "waited too long until {what}");
        sleep(POLL_INTERVAL);
    }
}

/// Returns bytes in which every offset differs from its neighbours.
pub(crate) fn bytes(len: usize) -> Vec<u8> {
    (0..len.div_ceil(8))
        .flat_map(|at| (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes())
        .take(len)
        .collect()
}

/// Returns the path of a script beside this file.
pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/serve").join(name)
}
