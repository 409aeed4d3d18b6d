//! Locating toolchains and building programs.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;

use fathom_bench::lang::{Lang, Program, Toolchain};
use fathom_bench::{Error, Op};
use tempfile::TempDir;

use crate::{GO_ON, script};

/// A directory with a fake compiler, which logs each build to the file `builds`, and a build cache.
struct Place {
    tools: TempDir,
    cache: TempDir,
}

impl Place {
    fn new(compile: &str) -> Self {
        let place =
            Self { tools: TempDir::new().expect("a directory"), cache: TempDir::new().expect("a directory") };
        place.compiler("cc 1.0", compile);
        place
    }

    fn compiler(&self, version: &str, compile: &str) {
        let note = self.tools.path().join("builds");
        let text = format!(
            "case \"$*\" in\n--version) echo {version};;\n*-fsyntax-only*) test ! -e {0}/no-header;;\n\
             *) echo built >> {note}; {compile};;\nesac",
            self.tools.path().display(),
            note = note.display(),
        );
        script(&self.tools.path().join("cc"), &text);
    }

    fn search(&self) -> OsString {
        let mut search = self.tools.path().as_os_str().to_owned();
        search.push(":/usr/bin:/bin");
        search
    }

    fn build(&self) -> Result<Program, Error> {
        Toolchain::find(Lang::C, &self.search(), &GO_ON)?.build(self.cache.path(), &GO_ON)
    }

    fn builds(&self) -> usize {
        fs::read_to_string(self.tools.path().join("builds")).unwrap_or_default().lines().count()
    }

    fn cached(&self) -> Vec<String> {
        names(self.cache.path())
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a directory");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

const GOOD: &str = "grep -q liburing.h playground.c && cp \"$0\" playground";

#[test]
fn a_program_is_built_once_for_each_toolchain() {
    let place = Place::new(GOOD);
    let first = place.build().expect("a build");
    assert_eq!(place.build().expect("the same"), first);
    assert_eq!((place.builds(), place.cached().len()), (1, 1));
    place.compiler("cc 2.0", GOOD);
    assert_ne!(place.build().expect("another"), first);
    assert_eq!((place.builds(), place.cached().len()), (2, 2));
    let build = &place.cached()[0];
    assert!(build.starts_with("c-") && build.len() == "c-".len() + 16, "{build}");
    assert_eq!(names(&place.cache.path().join(build)), ["playground", "playground.c"]);
}

#[test]
fn a_build_that_fails_has_the_compilers_words_and_leaves_nothing() {
    let place = Place::new("echo 'playground.c:1: error: no \u{1b}[31mring' >&2; exit 1");
    let error = place.build().expect_err("no build");
    assert!(error.is_unavailable());
    assert_eq!(error.to_string(), "cannot start 'c': playground.c:1: error: no \\u{1b}[31mring");
    assert_eq!(place.cached(), [""; 0]);
    place.compiler("cc 1.0", GOOD);
    place.build().expect("nothing of the failure is kept");
}

#[test]
fn builds_at_the_same_time_give_one_program() {
    let place = Place::new(GOOD);
    let programs = thread::scope(|scope| {
        let builds: Vec<_> = (0..4).map(|_| scope.spawn(|| place.build().expect("a build"))).collect();
        builds.into_iter().map(|build| build.join().expect("a thread")).collect::<Vec<_>>()
    });
    assert!(programs.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(place.cached().len(), 1);
}

#[test]
fn a_build_ends_when_it_is_to_stop() {
    let place = Place::new("sleep 600");
    let stop = AtomicBool::new(false);
    let toolchain = Toolchain::find(Lang::C, &place.search(), &stop).expect("a toolchain");
    let error = thread::scope(|scope| {
        let build = scope.spawn(|| toolchain.build(place.cache.path(), &stop));
        while place.builds() == 0 {
            thread::yield_now();
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        build.join().expect("a thread").expect_err("no build")
    });
    assert_eq!((error.op(), error.to_string().as_str()), (Op::Execute, "cannot execute 'c': stopped"));
    assert_eq!(place.cached(), [""; 0]);
}

#[test]
fn a_missing_toolchain_is_reported_with_installation_instructions() {
    let empty = TempDir::new().expect("a directory");
    let cases = [
        (Lang::Bun, "cannot start 'bun': bun is missing: npm install --global bun"),
        (Lang::C, "cannot start 'c': cc is missing: apt-get install gcc"),
        (Lang::Cpp, "cannot start 'cpp': g++ is missing: apt-get install g++"),
        (Lang::Deno, "cannot start 'deno': deno is missing: npm install --global deno"),
        (Lang::Go, "cannot start 'go': go is missing: install Go 1.25 or later"),
        (Lang::Java, "cannot start 'java': javac is missing: apt-get install default-jdk-headless"),
        (Lang::Node, "cannot start 'node': node 20 or later is missing: install Node"),
        (Lang::Python, "cannot start 'python': python3, 3.10 or later is missing: apt-get install python3"),
        (
            Lang::RustCrates,
            "cannot start 'rust-crates': cargo is missing: install Rust 1.90 or later from https://rustup.rs",
        ),
        (Lang::Zig, "cannot start 'zig': python3 is missing: apt-get install python3"),
    ];
    for (lang, text) in cases {
        let error = Toolchain::find(lang, empty.path().as_os_str(), &GO_ON).expect_err("nothing there");
        assert!(error.is_unavailable());
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn a_missing_header_or_module_is_named() {
    let place = Place::new(GOOD);
    fs::write(place.tools.path().join("no-header"), "").expect("a file");
    let error = place.build().expect_err("no header");
    assert_eq!(error.to_string(), "cannot start 'c': liburing.h is missing: apt-get install liburing-dev");
    script(&place.tools.path().join("python3"), "test \"$1\" = --version");
    let error = Toolchain::find(Lang::Zig, &place.search(), &GO_ON).expect_err("no module");
    assert_eq!(error.to_string(), "cannot start 'zig': Zig 0.15.2 is missing: pip install ziglang==0.15.2");
}

#[test]
fn a_cache_that_cannot_be_made_is_named() {
    let place = Place::new(GOOD);
    let toolchain = Toolchain::find(Lang::C, &place.search(), &GO_ON).expect("a toolchain");
    let error = toolchain.build(Path::new("/dev/null/cache"), &GO_ON).expect_err("no directory");
    let text = error.to_string();
    assert!(
        text.starts_with("cannot start '/dev/null/cache/.c-") && text.ends_with("': Not a directory"),
        "{text}"
    );
}
