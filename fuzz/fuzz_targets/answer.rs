//! The row that a program of the playground prints, as any bytes: it is refused, or it is printed again as what is read to be the same.

#![no_main]

use fathom_bench::lang::Answer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(answer) = Answer::parse(bytes) {
        assert_eq!(Answer::parse(format!("{answer}\n").as_bytes()), Ok(answer));
    }
});
