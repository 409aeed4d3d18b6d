//! What a ring costs by itself: operations that do nothing, in place or handed to a thread of the kernel's.

use std::time::{Duration, Instant};

use io_uring::{opcode, squeue};

use super::setup::{self, Shape};
use crate::{Model, Unavailable};

/// How long `count` operations that do nothing take, `depth` submitted at once and waited for together; with `handed_over`, each goes
/// to a thread of the kernel's (`IOSQE_ASYNC`), as operations do that cannot be done without waiting.
///
/// # Errors
/// Where there is no ring for this process.
pub fn nops(count: usize, depth: usize, handed_over: bool) -> Result<Duration, Unavailable> {
    let depth = depth.clamp(1, Model::COUNT_MAX);
    let mut ring = setup::data_ring(depth, Shape::Deferred)?;
    let flags = if handed_over { squeue::Flags::ASYNC } else { squeue::Flags::empty() };
    let start = Instant::now();
    for _ in 0..count.div_ceil(depth) {
        for _ in 0..depth {
            // SAFETY: the entry points to no memory and names no descriptor.
            let pushed = unsafe { ring.submission().push(&opcode::Nop::new().build().flags(flags)) };
            pushed.expect("a ring that has been emptied has room for its depth");
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
