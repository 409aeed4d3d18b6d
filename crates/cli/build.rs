//! Links the programs statically if the C compiler has the static archives. The dynamic loader
//! takes a third of the time of `fathom du` on a small directory: it finds and maps libraries,
//! looks up a hundred symbols, and runs constructors that query the CPU's features with
//! instructions that trap in a virtual machine. The programs need no loader at run time: names of
//! owners are read from /etc/passwd, not through modules of the C library.
//!
//! The programs of users stay position-independent. The debug build of `fathom` does not: tests
//! start it thousands of times, and relocations are half of its start, as it has 270 pages of
//! pointers to functions. `FATHOM_LINK=dynamic` links dynamically, for packagers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The shared libraries of a dynamic link, and the archives that replace them. Some of them are
/// parts of libc in newer versions.
const LIBRARIES: [(&str, &[&str]); 7] = [
    ("gcc_s", &["gcc_eh", "gcc"]),
    ("c", &["c"]),
    ("m", &["m"]),
    ("dl", &["dl"]),
    ("rt", &["rt"]),
    ("util", &["util"]),
    ("pthread", &["pthread"]),
];

/// The first minor version of glibc 2 whose start code applies packed relative relocations
/// (DT_RELR). Unpacked, they are a tenth of the memory of `fathom du` on an empty directory.
const PACKED_RELOCATIONS_MINOR: u32 = 36;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CC");
    println!("cargo::rerun-if-env-changed=FATHOM_LINK");
    let target = |key: &str| env::var(format!("CARGO_CFG_TARGET_{key}")).unwrap_or_default();
    let native = env::var("TARGET").is_ok_and(|target| env::var("HOST").is_ok_and(|host| host == target));
    let asked = env::var("FATHOM_LINK").is_ok_and(|how| how == "dynamic");
    let archives = LIBRARIES.iter().flat_map(|(_, archives)| archives.iter());
    let able = native && target("OS") == "linux" && target("ENV") == "gnu" && !asked;
    if able && archives.copied().all(has_archive) {
        link_statically(&PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")));
    }
}

/// Shadows each shared library with a linker script that names the archives (ld manual, "Implicit
/// Linker Scripts").
fn link_statically(dir: &Path) {
    for (library, archives) in LIBRARIES {
        let group: Vec<_> = archives.iter().map(|archive| format!("-l:lib{archive}.a")).collect();
        let script = format!("GROUP({})\n", group.join(" "));
        fs::write(dir.join(format!("lib{library}.so")), script).expect("OUT_DIR can be written to");
    }
    println!("cargo::rustc-link-arg-bins=-L{}", dir.display());
    println!("cargo::rustc-link-arg-bins=-static-pie");
    if env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        println!("cargo::rustc-link-arg-bin=fathom=-static");
        println!("cargo::rustc-link-arg-bin=fathom=-no-pie");
    }
    if glibc_minor().is_some_and(|minor| minor >= PACKED_RELOCATIONS_MINOR) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Returns N if the C compiler's headers belong to glibc 2.N.
fn glibc_minor() -> Option<u32> {
    let output =
        compiler().args(["-E", "-dM", "-include", "features.h", "-xc", "/dev/null"]).output().ok()?;
    let macros = String::from_utf8_lossy(&output.stdout).into_owned();
    let value = |name: &str| macros.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value("#define __GLIBC_MINOR__ ").filter(|_| value("#define __GLIBC__ ") == Some(2))
}

/// Returns whether the C compiler finds the archive: it then answers with an absolute path,
/// otherwise with the bare name.
fn has_archive(name: &str) -> bool {
    let output = compiler().arg(format!("-print-file-name=lib{name}.a")).output();
    output.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_absolute())
}

fn compiler() -> Command {
    Command::new(env::var("CC").unwrap_or_else(|_| "cc".to_owned()))
}
