//! The programs have no dynamic loader, which would take a third of the time of a short run, and
//! are position-independent, so that the kernel loads them at random addresses: all but the debug
//! build of `fathom`, whose relocations would take half of the time of its start.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

use std::fs;
use std::process::Command;

/// The type of an executable at a fixed address (elf(5)).
const ET_EXEC: usize = 2;
/// The type of a shared object, which a position-independent executable has.
const ET_DYN: usize = 3;
/// The type of the segment that names the dynamic loader.
const PT_INTERP: u32 = 3;

fn has_archives() -> bool {
    let output = Command::new("cc").arg("-print-file-name=libc.a").output();
    output.is_ok_and(|output| output.stdout.starts_with(b"/"))
}

#[test]
fn programs_are_static_and_position_independent() {
    if !has_archives() || std::env::var_os("FATHOM_LINK").is_some() {
        return crate::support::skip("needs the C library's archive, and FATHOM_LINK unset");
    }
    let of_fathom = if cfg!(debug_assertions) { ET_EXEC } else { ET_DYN };
    for (program, kind) in
        [(env!("CARGO_BIN_EXE_fathom"), of_fathom), (env!("CARGO_BIN_EXE_rdu-sync"), ET_DYN)]
    {
        let elf = fs::read(program).unwrap();
        let number = |at: usize, bytes: usize| {
            elf[at..at + bytes].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
        };
        assert_eq!(number(16, 2), kind, "{program}");
        // e_phoff, e_phentsize and e_phnum; p_type is the first field of each.
        let (first, size, count) = (number(32, 8), number(54, 2), number(56, 2));
        let types: Vec<_> = (0..count).map(|index| number(first + index * size, 4)).collect();
        assert!(types.len() > 3 && !types.contains(&(PT_INTERP as usize)), "{program}: {types:?}");
    }
}
