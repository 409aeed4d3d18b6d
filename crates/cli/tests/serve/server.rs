//! The program with files to serve: started, asked where it is, sent signals, and ended. What it writes goes to files, which tests read
//! while it runs. A server that panicked fails its test.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// What is waited for has come by then on any machine, or never will.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(10);

/// A directory of a test's own, in which `www` is what is served.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Home {
        let home = Home(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
        fs::create_dir(home.at("www")).unwrap();
        home
    }

    /// One that serves these files.
    pub(crate) fn with(files: &[(&str, &[u8])]) -> Home {
        let home = Home::new();
        for (name, bytes) in files {
            home.file(name, bytes);
        }
        home
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Makes the file `name` below `www`.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) {
        let path = self.at("www").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// `fathom serve` with `words`, in this directory and without variables of the tests' own caller.
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

    /// Runs `fathom serve` with `words` where it is not to serve: its status, standard output and standard error.
    pub(crate) fn run(&self, words: &str) -> (Option<i32>, String, String) {
        finish(&mut self.command(words))
    }
}

/// Runs `command` to its end: its status, standard output and standard error.
pub(crate) fn finish(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A server that runs. Dropped, it is killed.
pub(crate) struct Server {
    child: Child,
    out: PathBuf,
    err: PathBuf,
    /// Where it says it is, without the last slash of a URL.
    pub(crate) url: String,
}

impl Server {
    /// Starts `command` and waits until it says where it is.
    pub(crate) fn start(home: &Home, command: &mut Command) -> Server {
        let dir = tempfile::tempdir_in(home.0.path()).unwrap().keep();
        let (out, err) = (dir.join("out"), dir.join("err"));
        command.stdin(Stdio::null()).stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut server = Server { child, out, err, url: String::new() };
        server.url = until("it says where it is", || {
            assert_eq!(server.child.try_wait().unwrap(), None, "it has ended: {}", server.err());
            let said = server.out() + &server.err();
            let line = said
                .split_inclusive('\n')
                .find(|line| line.starts_with("Serving '") && line.ends_with('\n'))?;
            let first = line.trim_end().rsplit_once("' on ")?.1.split(", ").next()?;
            Some(first.trim_end_matches('/').to_owned())
        });
        server
    }

    /// Its host and port.
    pub(crate) fn address(&self) -> &str {
        self.url.rsplit('/').next().unwrap()
    }

    pub(crate) fn port(&self) -> u16 {
        self.address().rsplit(':').next().unwrap().parse().unwrap()
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// What it wrote to standard output so far.
    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.out).unwrap()).into_owned()
    }

    /// What it wrote to standard error so far.
    pub(crate) fn err(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.err).unwrap()).into_owned()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Has it read its configuration again, and gives what it says of that.
    pub(crate) fn reload(&self) -> String {
        let before = self.err().len();
        self.signal(Signal::HUP);
        until("it says whether it reloaded", || {
            let said = self.err().get(before..)?.to_owned();
            (said.ends_with('\n') && said.contains("reloaded")).then_some(said)
        })
    }

    /// Its exit status, once it ends.
    pub(crate) fn status(&mut self) -> Option<i32> {
        until("it ends", || self.child.try_wait().unwrap()).code()
    }

    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// A connection to it, on which a read that waits too long fails.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// The status and the body of what it has at `path`.
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

    /// Descriptors it has open.
    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// Bytes of memory it has taken and not given back.
    pub(crate) fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _gone = self.child.kill();
        let _status = self.child.wait();
        let said = self.err();
        if said.contains("panicked") && !std::thread::panicking() {
            panic!("the server panicked: {said}");
        }
    }
}

/// What `look` finds, once it finds something.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited too long until {what}");
        sleep(LOOK);
    }
}

/// Bytes in which every offset can be told from its neighbours.
pub(crate) fn bytes(len: usize) -> Vec<u8> {
    (0..len.div_ceil(8))
        .flat_map(|at| (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes())
        .take(len)
        .collect()
}

/// A file of tests beside this one.
pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve").join(name)
}
