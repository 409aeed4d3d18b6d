//! Fault injection for tests: `FATHOM_FAULT=POINT[:COUNT[:SIGNAL]]` makes the process send itself
//! SIGNAL (`KILL`, `INT`, `TERM`, `HUP` or `STOP`) when it passes POINT for the COUNTth time. Tests
//! thereby end scans at an exact step, whatever the speed of the machine.
//!
//! Only in builds with debug assertions: a release build ignores the variable.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Signal, getpid, kill_process};

/// The signal to send, and the point and count at which it is sent.
struct Fault {
    point: String,
    count: u64,
    signal: Signal,
    passed: AtomicU64,
}

static FAULT: OnceLock<Fault> = OnceLock::new();

/// Installs the hook if the variable is set.
pub(crate) fn install() {
    let Some(text) = std::env::var("FATHOM_FAULT").ok() else { return };
    match parse(&text) {
        Some(fault) => {
            let _ = FAULT.set(fault);
            fathom_inventory::fault::set_hook(pass);
        }
        None => crate::shared::output::write_stderr(b"fathom: invalid FATHOM_FAULT\n"),
    }
}

fn parse(text: &str) -> Option<Fault> {
    let mut words = text.split(':');
    let point = words.next()?.to_owned();
    let count = words.next().map_or(Some(1), |count| count.parse().ok())?;
    let signal = match words.next().unwrap_or("KILL") {
        "KILL" => Signal::KILL,
        "INT" => Signal::INT,
        "TERM" => Signal::TERM,
        "HUP" => Signal::HUP,
        "STOP" => Signal::STOP,
        _ => return None,
    };
    Some(Fault { point, count, signal, passed: AtomicU64::new(0) })
}

fn pass(point: &str) {
    let Some(fault) = FAULT.get().filter(|fault| fault.point == point) else { return };
    if fault.passed.fetch_add(1, Ordering::Relaxed) + 1 == fault.count {
        let _ = kill_process(getpid(), fault.signal);
    }
}
