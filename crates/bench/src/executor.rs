//! Processes of samples: this program itself for Rust arms, the playground's programs for other
//! languages, dd as the control.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use fathom_io::sys::children_usage;

use crate::arms::Arm;
use crate::fixture::{Fixture, SampleLauncher};
use crate::lang::{self, Measurement, Program, RunRequest};
use crate::runner::Executor;
use crate::sample::{AccessHint, SampleSpec, arguments};
use crate::{ArmName, Error, Op, Row};

/// The programs that execute samples.
#[derive(Debug)]
pub struct Programs<'a> {
    /// The executable of this program, started as `fathom bench sample`.
    pub own: PathBuf,
    /// The programs of other languages.
    pub others: Vec<Program>,
    /// Set to true to end the run.
    pub stop: &'a AtomicBool,
}

impl SampleLauncher for Programs<'_> {
    fn launch(&mut self, arm: &Arm, spec: &SampleSpec) -> Result<Measurement, Error> {
        let name = arm.full_name().to_string();
        if arm.is_control() {
            return dd(&name, spec);
        }
        let Some((lang, playground_arm)) = arm.playground else {
            let mut command = Command::new(&self.own);
            command.args(["bench", "sample"]).args(arguments(spec));
            return lang::execute(&mut command, &name, self.stop);
        };
        let program = self.others.iter().find(|program| program.lang() == lang);
        let program = program.ok_or_else(|| Error::new(Op::Start, &name, "its program was not built"))?;
        let request = RunRequest {
            workload: spec.workload,
            arm: playground_arm,
            path: &spec.path,
            size_bytes: spec.size,
            block_bytes: spec.block as u64,
            direct: spec.direct,
            no_read_ahead: spec.hint == AccessHint::Random,
            seed: spec.seed,
            generation: spec.generation,
        };
        program.run(&request, self.stop)
    }
}

/// Runs dd, which writes `spec.size` zeros in blocks of `spec.block` bytes.
fn dd(name: &str, spec: &SampleSpec) -> Result<Measurement, Error> {
    let failed = |cause: String| Error::new(Op::Execute, name, cause);
    let mut of = OsString::from("of=");
    of.push(&spec.path);
    let blocks = spec.size / spec.block as u64;
    let before = children_usage();
    let output = Command::new("dd")
        .args(["if=/dev/zero", &format!("bs={}", spec.block), &format!("count={blocks}")])
        .arg(of)
        .args(spec.direct.then_some("oflag=direct"))
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::new(Op::Start, name, error))?;
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(failed(report.lines().next().unwrap_or("it failed and printed nothing").to_owned()));
    }
    let after = children_usage();
    let seconds = seconds(&report).ok_or_else(|| failed(format!("its report has no time: {report:?}")))?;
    Ok(Measurement {
        seconds,
        sync_s: seconds,
        close_s: seconds,
        ops: blocks,
        bytes: spec.size,
        in_flight_max: 1,
        cpu_user_s: after.cpu_user.saturating_sub(before.cpu_user).as_secs_f64(),
        cpu_sys_s: (after.cpu - after.cpu_user).saturating_sub(before.cpu - before.cpu_user).as_secs_f64(),
        ..Measurement::default()
    })
}

/// Parses the time in the last line of dd's report:
/// `1073741824 bytes (1.1 GB, 1.0 GiB) copied, 0.59 s, 1.8 GB/s`.
fn seconds(report: &str) -> Option<f64> {
    let (_, after) = report.lines().last()?.split_once(" copied, ")?;
    let seconds: f64 = after.split_once(" s")?.0.parse().ok()?;
    (seconds > 0.0).then_some(seconds)
}

/// Executes the samples of one cell.
#[derive(Debug)]
pub struct ProcessExecutor<'a, 's> {
    fixture: &'a mut Fixture,
    arms: &'a [Arm],
    programs: &'a mut Programs<'s>,
}

impl<'a, 's> ProcessExecutor<'a, 's> {
    /// Executes samples of `arms` in `fixture` with `programs`.
    #[must_use]
    pub fn new(fixture: &'a mut Fixture, arms: &'a [Arm], programs: &'a mut Programs<'s>) -> Self {
        Self { fixture, arms, programs }
    }
}

impl Executor for ProcessExecutor<'_, '_> {
    fn execute(&mut self, name: &ArmName, block: u32) -> Result<Row, Error> {
        let arm = self.arms.iter().find(|arm| arm.full_name() == *name);
        let arm = arm.ok_or_else(|| Error::new(Op::Start, name.to_string(), "there is no such arm"))?;
        self.fixture.sample(arm, block, self.programs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_read_off_the_last_line() {
        let report =
            "2+0 records in\n2+0 records out\n8192 bytes (8.2 kB, 8.0 KiB) copied, 5.3e-05 s, 155 MB/s\n";
        assert_eq!(seconds(report), Some(5.3e-5));
        assert_eq!(seconds("dd: no"), None);
        assert_eq!(seconds("8192 bytes copied, 0 s, inf"), None);
    }
}
