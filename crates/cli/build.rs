//! Links the unwinder into the programs, where the C compiler has it as an archive. As a shared library, libgcc_s, it is
//! a fifth of what `fathom du` of a small directory takes: one more file to map, and a constructor that asks for
//! the CPU's features with instructions that a virtual machine traps. Only a panic's backtrace ever needs it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CC");
    let target = |key: &str| env::var(format!("CARGO_CFG_TARGET_{key}")).unwrap_or_default();
    let native = env::var("TARGET").is_ok_and(|target| env::var("HOST").is_ok_and(|host| host == target));
    if native && target("OS") == "linux" && target("ENV") == "gnu" && has_archive("libgcc_eh.a") {
        let dir = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
        // What the linker takes for the shared library says to link the archives instead (ld manual, "Implicit Linker Scripts").
        fs::write(dir.join("libgcc_s.so"), "GROUP(-lgcc_eh -lgcc)\n").expect("OUT_DIR can be written to");
        println!("cargo::rustc-link-search=native={}", dir.display());
    }
}

/// Whether the C compiler knows where `name` is: it answers with a path then, with the bare name otherwise.
fn has_archive(name: &str) -> bool {
    let cc = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(cc).arg(format!("-print-file-name={name}")).output();
    output.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_absolute())
}
