//! Fault injection for tests: `FATHOM_FAULT=POINT[:COUNT[:ACTION]]` makes the process send itself a
//! signal (`KILL`, `INT`, `TERM`, `HUP` or `STOP`), or the thread panic (`PANIC`), when it passes
//! POINT for the COUNTth time. With the action `LATER`, the clock of a scan stands still, and is a
//! second later from then on. Tests thereby end scans at an exact step, whatever the speed of the
//! machine.
//!
//! Only in builds with debug assertions: a release build ignores the variable.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fathom_io::Clock;
use rustix::process::{Signal, getpid, kill_process};

/// The action, and the point and count at which it is taken.
struct Fault {
    point: String,
    count: u64,
    action: FaultAction,
    passed: AtomicU64,
}

enum FaultAction {
    Signal(Signal),
    Panic,
    Later(Clock),
}

static FAULT: OnceLock<Fault> = OnceLock::new();

/// Installs the hook if the variable is set.
pub(crate) fn install() {
    let Some(text) = std::env::var("FATHOM_FAULT").ok() else { return };
    match parse(&text) {
        Some(fault) => {
            let _ = FAULT.set(fault);
            fathom_io::fault::set_hook(pass);
        }
        None => crate::shared::output::write_stderr(b"fathom: invalid FATHOM_FAULT\n"),
    }
}

/// Returns the clock of scans.
pub(crate) fn clock() -> Clock {
    match FAULT.get().map(|fault| &fault.action) {
        Some(FaultAction::Later(clock)) => clock.clone(),
        _ => Clock::default(),
    }
}

fn parse(text: &str) -> Option<Fault> {
    let mut words = text.split(':');
    let point = words.next()?.to_owned();
    let count = words.next().map_or(Some(1), |count| count.parse().ok())?;
    let action = match words.next().unwrap_or("KILL") {
        "KILL" => FaultAction::Signal(Signal::KILL),
        "INT" => FaultAction::Signal(Signal::INT),
        "TERM" => FaultAction::Signal(Signal::TERM),
        "HUP" => FaultAction::Signal(Signal::HUP),
        "STOP" => FaultAction::Signal(Signal::STOP),
        "PANIC" => FaultAction::Panic,
        "LATER" => FaultAction::Later(Clock::held()),
        _ => return None,
    };
    Some(Fault { point, count, action, passed: AtomicU64::new(0) })
}

/// Sends this process a signal, and waits until it has had its effect: another thread may take it,
/// and this one would go on meanwhile.
fn send(signal: Signal) {
    let awaited = if signal == Signal::STOP { Signal::CONT } else { signal };
    let has_come = Arc::new(AtomicBool::new(false));
    // A handler that was registered later is called later. Without one, a signal ends the process
    // or is ignored, which a handler would change.
    let waits = (signal == Signal::STOP || is_caught(signal))
        && signal_hook::flag::register(awaited.as_raw(), Arc::clone(&has_come)).is_ok();
    let _ = kill_process(getpid(), signal);
    while waits && !has_come.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns whether the signal has a handler: `SigCgt` of proc(5).
fn is_caught(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|caught| u64::from_str_radix(caught.trim(), 16).ok());
    caught.unwrap_or_default() >> (signal.as_raw() - 1) & 1 == 1
}

fn pass(point: &str) {
    let Some(fault) = FAULT.get().filter(|fault| fault.point == point) else { return };
    if fault.passed.fetch_add(1, Ordering::Relaxed) + 1 != fault.count {
        return;
    }
    match &fault.action {
        FaultAction::Signal(signal) => send(*signal),
        FaultAction::Panic => panic!("injected at '{point}'"),
        FaultAction::Later(clock) => clock.advance(Duration::from_secs(1)),
    }
}
