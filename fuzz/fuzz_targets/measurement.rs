//! Output rows of playground programs, from arbitrary bytes: parsing fails, or formatting and
//! parsing the result again yields the same row.

#![no_main]

use fathom_bench::lang::Measurement;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(measurement) = Measurement::parse(bytes) {
        assert_eq!(Measurement::parse(format!("{measurement}\n").as_bytes()), Ok(measurement));
    }
});
