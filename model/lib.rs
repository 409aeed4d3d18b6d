//! Model-checking tests of the protocols between threads. `tests/walk.rs` and `tests/pool.rs`
//! compile source files of `crates/walk` and `crates/files` with the synchronization types of a
//! checker, which executes a test once for each interleaving of its threads.
