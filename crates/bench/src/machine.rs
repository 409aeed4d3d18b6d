//! The fingerprint of a machine: kernel, processors, memory, the filesystem and its block device.

use std::fs::read_to_string;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use fathom_io::mounts;
use rustix::fs::{major, minor};

/// Returns names and values of the known properties of the machine and of the filesystem of `dir`.
#[must_use]
pub fn fingerprint(dir: &Path) -> Vec<(String, String)> {
    let mut facts = vec![
        ("kernel".to_owned(), kernel()),
        ("cpu".to_owned(), cpu()),
        ("cpus".to_owned(), fathom_io::sys::cpus_allowed().to_string()),
        ("memory".to_owned(), memory()),
        ("clock".to_owned(), line("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        ("io_uring_disabled".to_owned(), line("/proc/sys/kernel/io_uring_disabled")),
    ];
    facts.extend(filesystem(dir));
    facts.extend(device(dir));
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

fn line(path: &str) -> String {
    read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// Returns the kernel release and the machine architecture, as in `6.18.44 x86_64`.
#[must_use]
pub fn kernel() -> String {
    let uname = rustix::system::uname();
    format!("{} {}", uname.release().to_string_lossy(), uname.machine().to_string_lossy())
}

/// Returns the peak resident memory of this process (`VmHWM` in proc_pid_status(5)).
pub(crate) fn own_peak_memory_bytes() -> u64 {
    own_status("VmHWM:")
}

/// Returns the resident memory of this process that is no part of a file (`RssAnon`).
pub(crate) fn own_private_memory_bytes() -> u64 {
    own_status("RssAnon:")
}

fn own_status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or_default() * 1024
}

fn value_of(path: &str, name: &str) -> Option<String> {
    let text = read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim().to_owned())
}

fn cpu() -> String {
    value_of("/proc/cpuinfo", "model name").unwrap_or_default()
}

fn memory() -> String {
    value_of("/proc/meminfo", "MemTotal").unwrap_or_default()
}

/// Reports type and options of the last mount, in the mount table, of the device that `dir` is on.
fn filesystem(dir: &Path) -> Vec<(String, String)> {
    let Ok(meta) = dir.metadata() else { return Vec::new() };
    let Some(mount) = mounts::by_device(meta.dev()) else { return Vec::new() };
    let fact = |name: &str, value: &[u8]| (name.to_owned(), String::from_utf8_lossy(value).into_owned());
    vec![fact("filesystem", &mount.kind), fact("mount options", &mount.options)]
}

fn device(dir: &Path) -> Vec<(String, String)> {
    let Ok(meta) = dir.metadata() else { return Vec::new() };
    let base = format!("/sys/dev/block/{}:{}", major(meta.dev()), minor(meta.dev()));
    // A partition has no request queue. The queue belongs to its disk, the parent directory.
    let queue = ["queue", "../queue"].map(|part| format!("{base}/{part}"));
    let Some(queue) = queue.iter().find(|path| Path::new(path).is_dir()) else { return Vec::new() };
    let name =
        std::fs::canonicalize(&base).ok().and_then(|path| Some(path.file_name()?.display().to_string()));
    let fact = |name: &str, file: &str| (name.to_owned(), line(&format!("{queue}/{file}")));
    vec![
        ("device".to_owned(), name.unwrap_or_default()),
        fact("rotational", "rotational"),
        fact("scheduler", "scheduler"),
        fact("queue requests", "nr_requests"),
    ]
}

/// Returns how many threads but this one run or wait for a processor now (proc_loadavg(5)), as the
/// mean of a tenth of a second. `None` if it is unknown.
#[must_use]
pub fn load() -> Option<f64> {
    const LOOKS: u32 = 10;
    let mut sum = 0.0;
    for _ in 0..LOOKS {
        std::thread::sleep(Duration::from_millis(10));
        let text = std::fs::read_to_string("/proc/loadavg").ok()?;
        let running: f64 = text.split(' ').nth(3)?.split('/').next()?.parse().ok()?;
        sum += (running - 1.0).max(0.0);
    }
    Some(sum / f64::from(LOOKS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_kernel_processors_and_a_filesystem() {
        let facts = fingerprint(&std::env::temp_dir());
        for name in ["kernel", "cpus", "memory", "filesystem"] {
            assert!(facts.iter().any(|(known, value)| known == name && !value.is_empty()), "{name}");
        }
    }
}
