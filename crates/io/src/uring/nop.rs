//! The cost of a ring itself: no-op operations, inline or on a kernel thread.

use std::time::{Duration, Instant};

use io_uring::{opcode, squeue};

use super::setup::{self, RingMode};
use crate::{Model, Unavailable};

/// Measures the time of `count` no-op operations. Each system call submits `depth` of them and
/// waits for all. With `on_thread`, each runs on a kernel thread (`IOSQE_ASYNC`), as operations do
/// that cannot complete without waiting.
///
/// # Errors
/// If this process cannot have a ring.
///
/// ```
/// match fathom_io::uring::nops(1000, 8, false) {
///     Ok(time) => println!("{} ns each", time.as_nanos() / 1000),
///     Err(why) => println!("{why}"),
/// }
/// ```
pub fn nops(count: usize, depth: usize, on_thread: bool) -> Result<Duration, Unavailable> {
    let depth = depth.clamp(1, Model::COUNT_MAX);
    let mut ring = setup::data_ring(depth, RingMode::Deferred)?;
    let flags = if on_thread { squeue::Flags::ASYNC } else { squeue::Flags::empty() };
    let start = Instant::now();
    for _ in 0..count.div_ceil(depth) {
        for _ in 0..depth {
            // SAFETY: the entry points to no memory and names no descriptor.
            let pushed = unsafe { ring.submission().push(&opcode::Nop::new().build().flags(flags)) };
            pushed.expect("an empty submission queue has space for `depth` entries");
        }
        let mut left = depth;
        while left > 0 {
            match ring.submit_and_wait(left) {
                Err(error) if error.kind() != std::io::ErrorKind::Interrupted => {
                    return Err(setup::refused("use io_uring", &error));
                }
                _ => left = left.saturating_sub(ring.completion().count()),
            }
        }
    }
    Ok(start.elapsed())
}
