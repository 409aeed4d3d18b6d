//! Links the programs statically, where the C compiler has the archives for it. Of what `fathom du` of a small directory takes,
//! a third is the dynamic loader's: finding and mapping libraries, looking up a hundred names in them, and constructors that
//! ask for the CPU's features with instructions that a virtual machine traps. Nothing here needs a loader later on: names of
//! owners are read from /etc/passwd, not from modules of the C library.
//!
//! Programs stay position-independent. `FATHOM_LINK=dynamic` links as usual, for whoever packages programs so.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// What is linked as a shared library otherwise, and the archives that do instead. Some are parts of libc in newer versions.
const LIBRARIES: [(&str, &[&str]); 7] = [
    ("gcc_s", &["gcc_eh", "gcc"]),
    ("c", &["c"]),
    ("m", &["m"]),
    ("dl", &["dl"]),
    ("rt", &["rt"]),
    ("util", &["util"]),
    ("pthread", &["pthread"]),
];

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

/// What the linker takes for a shared library says to link archives instead (ld manual, "Implicit Linker Scripts").
fn link_statically(dir: &Path) {
    for (library, archives) in LIBRARIES {
        let group: Vec<_> = archives.iter().map(|archive| format!("-l:lib{archive}.a")).collect();
        let script = format!("GROUP({})\n", group.join(" "));
        fs::write(dir.join(format!("lib{library}.so")), script).expect("OUT_DIR can be written to");
    }
    println!("cargo::rustc-link-arg-bins=-L{}", dir.display());
    println!("cargo::rustc-link-arg-bins=-static-pie");
}

/// Whether the C compiler knows where the archive is: it answers with a path then, with the bare name otherwise.
fn has_archive(name: &str) -> bool {
    let cc = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(cc).arg(format!("-print-file-name=lib{name}.a")).output();
    output.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_absolute())
}
