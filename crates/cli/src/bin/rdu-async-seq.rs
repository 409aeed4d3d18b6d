//! `rdu-async-seq`: the small du with tokio's file calls, one at a time.

#[path = "../rdu.rs"]
mod rdu;

fn main() -> std::process::ExitCode {
    rdu::main("rdu-async-seq", fathom_walk::Model::AsyncSeq)
}
