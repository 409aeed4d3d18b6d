//! `rdu-sync`: the small du with blocking calls in one thread.

#[path = "../rdu.rs"]
mod rdu;

fn main() -> std::process::ExitCode {
    rdu::main("rdu-sync", fathom_walk::Model::Sync)
}
