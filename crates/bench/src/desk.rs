//! Who starts the processes of samples: this program itself for Rust, the playground's programs for other languages, dd as a control.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use fathom_io::sys::children_usage;

use crate::arms::Arm;
use crate::lab::{Lab, Start};
use crate::lang::{self, Answer, Deed as Asked, Program, Request};
use crate::runner::Executor;
use crate::sample::{Spec, arguments};
use crate::{ArmName, Error, Op, Row};

/// The programs that samples are made with.
#[derive(Debug)]
pub struct Programs<'a> {
    /// This program: `fathom bench sample` is what it is asked for.
    pub own: PathBuf,
    /// Those of other languages.
    pub others: Vec<Program>,
    /// Becomes true when the run is to end.
    pub stop: &'a AtomicBool,
}

impl Start for Programs<'_> {
    fn start(&mut self, arm: &Arm, spec: &Spec) -> Result<Answer, Error> {
        let what = arm.full_name().to_string();
        if arm.is_control() {
            return dd(&what, spec);
        }
        let Some((lang, other)) = arm.other else {
            let mut command = Command::new(&self.own);
            command.args(["bench", "sample"]).args(arguments(spec, arm.method_name()));
            return lang::execute(&mut command, &what, self.stop);
        };
        let program = self.others.iter().find(|program| program.lang() == lang);
        let program = program.ok_or_else(|| Error::new(Op::Start, &what, "its program was not built"))?;
        let request = Request {
            deed: if spec.deed.writes() { Asked::Write } else { Asked::Read },
            arm: other,
            path: &spec.path,
            size_bytes: spec.size,
            block_bytes: spec.block as u64,
            direct: spec.direct,
            seed: spec.seed,
            generation: spec.generation,
        };
        program.run(&request, self.stop)
    }
}

/// Has dd write as many zeros, in blocks of the same size.
fn dd(what: &str, spec: &Spec) -> Result<Answer, Error> {
    let failed = |cause: String| Error::new(Op::Execute, what, cause);
    let mut of = OsString::from("of=");
    of.push(&spec.path);
    let blocks = spec.size / spec.block as u64;
    let before = children_usage();
    let ended = Command::new("dd")
        .args(["if=/dev/zero", &format!("bs={}", spec.block), &format!("count={blocks}")])
        .arg(of)
        .args(spec.direct.then_some("oflag=direct"))
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::new(Op::Start, what, error))?;
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    if !ended.status.success() {
        return Err(failed(said.lines().next().unwrap_or("it failed without a word").to_owned()));
    }
    let after = children_usage();
    let seconds =
        seconds(&said).ok_or_else(|| failed(format!("it does not say how long it took: {said:?}")))?;
    Ok(Answer {
        seconds,
        sync_s: seconds,
        close_s: seconds,
        ops: blocks,
        bytes: spec.size,
        in_flight_max: 1,
        cpu_user_s: after.cpu_user.saturating_sub(before.cpu_user).as_secs_f64(),
        cpu_sys_s: (after.cpu - after.cpu_user).saturating_sub(before.cpu - before.cpu_user).as_secs_f64(),
        ..Answer::default()
    })
}

/// The time in dd's last line: `1073741824 bytes (1.1 GB, 1.0 GiB) copied, 0.59 s, 1.8 GB/s`.
fn seconds(said: &str) -> Option<f64> {
    let (_, after) = said.lines().last()?.split_once(" copied, ")?;
    let seconds: f64 = after.split_once(" s")?.0.parse().ok()?;
    (seconds > 0.0).then_some(seconds)
}

/// Samples of one cell.
#[derive(Debug)]
pub struct Desk<'a, 's> {
    lab: &'a mut Lab,
    arms: &'a [Arm],
    programs: &'a mut Programs<'s>,
}

impl<'a, 's> Desk<'a, 's> {
    /// In `lab`, of `arms`.
    #[must_use]
    pub fn new(lab: &'a mut Lab, arms: &'a [Arm], programs: &'a mut Programs<'s>) -> Self {
        Self { lab, arms, programs }
    }
}

impl Executor for Desk<'_, '_> {
    fn execute(&mut self, name: &ArmName, block: u32) -> Result<Row, Error> {
        let arm = self.arms.iter().find(|arm| arm.full_name() == *name);
        let arm = arm.ok_or_else(|| Error::new(Op::Start, name.to_string(), "there is no such arm"))?;
        self.lab.sample(arm, block, self.programs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_read_off_the_last_line() {
        let said =
            "2+0 records in\n2+0 records out\n8192 bytes (8.2 kB, 8.0 KiB) copied, 5.3e-05 s, 155 MB/s\n";
        assert_eq!(seconds(said), Some(5.3e-5));
        assert_eq!(seconds("dd: no"), None);
        assert_eq!(seconds("8192 bytes copied, 0 s, inf"), None);
    }
}
