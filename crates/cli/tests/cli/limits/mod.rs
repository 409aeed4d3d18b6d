//! Resource limits of the user and the system: paths of any length and depth, few threads or none,
//! little memory. A program either completes its work or reports an error that names the exhausted
//! resource; no signal ends it.

mod memory;
mod panics;
mod paths;
mod threads;

/// Every I/O model, as `--io` has them.
const MODELS: [&str; 6] = ["sync", "threads=3", "async-seq", "async-par", "uring", "auto"];
