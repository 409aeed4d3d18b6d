//! The support of all tests: a directory with files of a known mtime, a server of it in this
//! process, and waiting.

mod client;
pub(crate) mod frames;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fathom_io::{Clock, Use};
use fathom_serve::server::{Server, StartOptions};
use fathom_serve::{Config, Error, Model};
use tempfile::TempDir;

pub(crate) use client::{Client, Response, request};

/// The mtime of files, unless a test sets another: Fri, 13 Feb 2009 23:31:30 GMT.
pub(crate) const MTIME_S: u64 = 1_234_567_890;
/// [`MTIME_S`] as an HTTP date.
pub(crate) const DATE: &str = "Fri, 13 Feb 2009 23:31:30 GMT";
/// A hang guard: longer than any step takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// A temporary directory. Its subdirectory `site` is served; files beside that must not be.
pub(crate) struct Tree(TempDir);

impl Tree {
    /// Creates the directory with these files, all with the same mtime.
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        Self::inside(TempDir::new().unwrap(), files)
    }

    /// As [`Tree::new`], on the filesystem in memory; `None` if there is none.
    pub(crate) fn in_memory(files: &[(&str, &[u8])]) -> Option<Self> {
        TempDir::new_in("/dev/shm").ok().map(|place| Self::inside(place, files))
    }

    fn inside(place: TempDir, files: &[(&str, &[u8])]) -> Self {
        let tree = Self(place);
        fs::create_dir(tree.root()).unwrap();
        files.iter().for_each(|(path, bytes)| tree.write(path, bytes));
        tree
    }

    /// Returns the served directory.
    pub(crate) fn root(&self) -> PathBuf {
        self.0.path().join("site")
    }

    /// Returns a path below the served directory; `../x` is beside it.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    /// Writes a file at `path`, with the usual mtime.
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        set_mtime(&path, UNIX_EPOCH + Duration::from_secs(MTIME_S));
    }

    /// Creates a symbolic link at `path` to `target`.
    pub(crate) fn link(&self, target: impl AsRef<Path>, path: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }
}

pub(crate) fn set_mtime(path: &Path, time: SystemTime) {
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// A server in this process.
pub(crate) struct TestServer {
    server: Option<Server>,
    address: String,
    clock: Clock,
}

impl TestServer {
    /// Serves `tree` with the lines `site` in the table of the site.
    pub(crate) fn site(tree: &Tree, site: &str) -> Self {
        Self::new(tree, "", site)
    }

    /// Serves `tree` with the lines `top` before the table of the site as well.
    pub(crate) fn new(tree: &Tree, top: &str, site: &str) -> Self {
        Self::start(&config(tree, top, site))
    }

    /// Like [`TestServer::new`], with a clock that stands still until [`TestServer::advance`].
    pub(crate) fn held(tree: &Tree, top: &str, site: &str) -> Self {
        Self::held_with(&config(tree, top, site))
    }

    pub(crate) fn held_with(config: &Config) -> Self {
        Self::with(config, StartOptions { clock: Clock::held(), ..StartOptions::default() })
    }

    /// Moves the clock of a server of [`TestServer::held`].
    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Returns the time that the server's clock shows.
    pub(crate) fn wall_now(&self) -> SystemTime {
        self.clock.wall_now()
    }

    pub(crate) fn start(config: &Config) -> Self {
        Self::with(config, StartOptions::default())
    }

    pub(crate) fn with(config: &Config, outfit: StartOptions<'_>) -> Self {
        Self::try_with(config, outfit).unwrap()
    }

    pub(crate) fn try_with(config: &Config, outfit: StartOptions<'_>) -> Result<Self, Error> {
        let clock = outfit.clock.clone();
        let server = Server::start(config, outfit)?;
        let url = server.addresses().remove(0);
        let address = url.split_once("//").map_or(&url[..], |(_, rest)| rest.split('/').next().unwrap());
        let address = address.to_owned();
        Ok(Self { server: Some(server), address, clock })
    }

    /// Returns `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn server(&mut self) -> &mut Server {
        self.server.as_mut().unwrap()
    }

    /// Stops the server as SIGTERM does. Returns whether all requests completed in time.
    pub(crate) fn drain(mut self, timeout: Duration) -> bool {
        self.server.take().unwrap().drain(timeout)
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(&self.address)
    }

    /// Sends one request on a new connection.
    pub(crate) fn ask(&self, method: &str, target: &str, fields: &[(&str, &str)]) -> Response {
        self.connect().ask(method, target, fields)
    }

    pub(crate) fn get(&self, target: &str) -> Response {
        self.ask("GET", target, &[])
    }

    pub(crate) fn get_with(&self, target: &str, name: &str, value: &str) -> Response {
        self.ask("GET", target, &[(name, value)])
    }

    /// Sends `bytes`, and reads to the end of the connection.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        let mut client = self.connect();
        // The server may have closed the connection already.
        let _sent = client.try_send(bytes);
        client.rest()
    }
}

/// Returns the configuration of [`TestServer::new`]: one worker, on a port that the kernel chooses.
pub(crate) fn config(tree: &Tree, top: &str, site: &str) -> Config {
    let root = tree.root();
    let text = format!(
        "listen = ['127.0.0.1:0']\nworkers = 1\n{top}\n[site]\nroot = '{}'\n{site}\n",
        root.display()
    );
    Config::from_toml(&text).unwrap()
}

/// Waits until `condition` holds.
#[track_caller]
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns `auto` and another model in turn, or all models in a run of all tests. A model that this
/// kernel does not support is reported on standard error.
pub(crate) fn models() -> Vec<Model> {
    let tree = Tree::new(&[]);
    let is_supported = |model: &Model| {
        let started = Server::start(&config(&tree, &io(*model), ""), StartOptions::default());
        let refusal = started.as_ref().err().map(ToString::to_string);
        if let Some(refusal) = &refusal {
            assert!(matches!(model, Model::Uring(_)), "{model}: {refusal}");
            eprintln!("skipped: model {model}: {refusal}");
        }
        refusal.is_none()
    };
    let others: Vec<Model> = Model::with(Use::Serve).filter(|model| *model != Model::Auto).collect();
    fathom_cases::engines(Model::Auto, &others).into_iter().filter(is_supported).collect()
}

/// Returns the configuration line that selects `model`.
pub(crate) fn io(model: Model) -> String {
    format!("io = '{model}'\n")
}

/// Generates pseudo-random bytes (SplitMix64): no block repeats, so a swapped block is detected.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
    fathom_io::Random::new(seed).bytes(len)
}

/// Generates text that every coding compresses.
pub(crate) fn prose(len: usize) -> Vec<u8> {
    (0u64..)
        .flat_map(|line| format!("<li>item {}</li>\n", line * line % 977).into_bytes())
        .take(len)
        .collect()
}

/// Calls `act_again` with 1, 2, ... repeatedly while `act` runs. Returns the result of `act` and
/// the number of calls. A panic of either ends both.
pub(crate) fn meanwhile<T>(act_again: impl FnMut(usize) + Send, act: impl FnOnce() -> T) -> (T, usize) {
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let doing = scope.spawn(|| repeat(act_again, &done));
        let done = Done(&done);
        let result = act();
        drop(done);
        (result, doing.join().unwrap())
    })
}

fn repeat(mut act_again: impl FnMut(usize), done: &AtomicBool) -> usize {
    let mut times = 0;
    while !done.load(Ordering::Relaxed) {
        times += 1;
        act_again(times);
    }
    times
}

/// A log in memory.
#[derive(Clone, Default)]
pub(crate) struct MemoryLog(Arc<Mutex<Vec<u8>>>);

impl MemoryLog {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for MemoryLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
