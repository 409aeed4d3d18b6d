//! The dirent parser on arbitrary bytes: it must not panic, and its records must agree with an
//! independent parser.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "only the tests make records")]
#[path = "../../crates/io/tests/record/mod.rs"]
mod record;

fuzz_target!(|bytes: &[u8]| record::check(bytes));
