//! `rdu-async-par`: the small du with tokio's file calls, many in flight.

#[path = "../rdu.rs"]
mod rdu;

fn main() -> std::process::ExitCode {
    rdu::main("rdu-async-par", fathom_walk::Model::AsyncPar)
}
