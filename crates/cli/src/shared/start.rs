//! The starting point of `--io auto`, for walks and for the server: the numbers in the profile that
//! was saved on this machine, if they apply to its current state. Without a profile it costs one
//! failed open.
//!
//! Owns the location of the profile and the messages about it. Does not own its contents.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fathom_bench::profile::{
    Filesystem, HostConditions, Profile, ProfileEntry, ProfileLookup, ServeSettings,
};
use fathom_io::Model;
use fathom_io::mounts::{self, Mount};
use fathom_text::quote::{Charset, quoteaf, quotef};
use fathom_walk::ConcurrencyHints;

use crate::shared::output::write_stderr;

/// The variable that names another profile file. If it is empty, no profile is read.
const VARIABLE: &str = "FATHOM_PROFILE";
/// The path below the user's configuration directory.
const FILE: &str = "fathom/io-profile.json";

/// Data from the profile for a walk.
#[derive(Debug, Default)]
pub(crate) struct AutoStart {
    /// Concurrency hints by device.
    pub(crate) hints: ConcurrencyHints,
    /// Notes for `--verbose`, by device.
    notes: Vec<(u64, String)>,
}

impl AutoStart {
    /// Reads the profile for the command `name`. Models other than `auto`, and a `fixed` number of
    /// threads, do not use it. An unreadable profile is ignored with a warning.
    pub(crate) fn read(name: &[u8], charset: Charset, model: Model, fixed: bool) -> Self {
        if model != Model::Auto || fixed {
            return Self::default();
        }
        let of = |profile: Profile| {
            Self::of(&profile, &mounts::read().unwrap_or_default(), &HostConditions::now(), charset)
        };
        profile(name, charset).map(of).unwrap_or_default()
    }

    fn of(profile: &Profile, mounts: &[Mount], here: &HostConditions, charset: Charset) -> Self {
        let (mut hints, mut notes) = (Vec::new(), Vec::new());
        for mount in mounts {
            let note = match profile.find(&Filesystem::from(mount), here) {
                ProfileLookup::Missing => None,
                ProfileLookup::Stale(entry, why) => {
                    Some(format!("not from {}: {why}", origin(entry, charset)))
                }
                ProfileLookup::Valid(entry) => entry.walk_in_flight.map(|workers| {
                    hints.push((mount.dev, workers as usize));
                    format!("{}, from {}", describe_workers(workers, here), origin(entry, charset))
                }),
            };
            notes.extend(note.map(|note| (mount.dev, format!("start: {note}"))));
        }
        Self { hints: hints.into_iter().collect(), notes }
    }

    /// Returns the notes about these devices, for `--verbose`.
    pub(crate) fn notes(&self, devices: &[u64]) -> impl Iterator<Item = &str> {
        let noted = |dev: &u64| self.notes.iter().find(|(known, _)| known == dev);
        devices.iter().filter_map(noted).map(|(_, note)| note.as_str())
    }
}

/// The size of the server's pool, from the profile.
#[derive(Debug)]
pub(crate) struct PoolThreads {
    /// The number of threads that may wait for the device; `None` if the entry does not apply.
    pub(crate) number: Option<usize>,
    /// The origin of the number, or the reason why there is none.
    pub(crate) note: String,
}

/// Returns the size of the thread pool for the server `name` with files in `dir`. `None` if the
/// profile has no entry for the filesystem.
pub(crate) fn pool_threads(name: &[u8], charset: Charset, dir: &Path) -> Option<PoolThreads> {
    pool_threads_of(&profile(name, charset)?, &Filesystem::of(dir)?, &HostConditions::now(), charset)
}

fn pool_threads_of(
    profile: &Profile,
    filesystem: &Filesystem,
    here: &HostConditions,
    charset: Charset,
) -> Option<PoolThreads> {
    match profile.find(filesystem, here) {
        ProfileLookup::Missing => None,
        ProfileLookup::Stale(entry, why) => {
            Some(PoolThreads { number: None, note: format!("not from {}: {why}", origin(entry, charset)) })
        }
        ProfileLookup::Valid(entry) => {
            // The number of threads of another model does not apply to a pool, and `auto` was
            // measured with the usual pool.
            let pooled = |serve: &&ServeSettings| {
                matches!(serve.model(), Some(Model::Nowait | Model::Pool | Model::Tokio))
            };
            let number = Some(entry.serve.as_ref().filter(pooled)?.pool_threads as usize);
            Some(PoolThreads { number, note: format!("from {}", origin(entry, charset)) })
        }
    }
}

/// Reads the profile, if there is one. Prints a warning if it cannot be read.
fn profile(name: &[u8], charset: Charset) -> Option<Profile> {
    let path = path(|name| std::env::var_os(name))?;
    Profile::read(&path).unwrap_or_else(|error| {
        let path = quoteaf(path.as_os_str().as_bytes(), charset);
        let cause = error.cause().into_bytes();
        write_stderr(&[name, b": ignoring profile ", &path, b": ", &cause, b"\n"].concat());
        None
    })
}

fn describe_workers(workers: u32, here: &HostConditions) -> String {
    match workers > here.cpus {
        true => format!("{workers} workers when calls wait"),
        false => "one worker per CPU, also when calls wait".to_owned(),
    }
}

fn origin(entry: &ProfileEntry, charset: Charset) -> String {
    let Filesystem { kind, source } = &entry.filesystem;
    let [kind, source] = [kind, source].map(|text| quotef(text.as_bytes(), charset));
    let [kind, source] = [&kind, &source].map(|text| String::from_utf8_lossy(text));
    format!("the profile of {} ({kind} on {source})", entry.measured.strftime("%Y-%m-%d"))
}

/// Returns the path of the profile; `None` if none is to be read.
pub(crate) fn path(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    match env(VARIABLE) {
        Some(path) if path.is_empty() => None,
        Some(path) => Some(path.into()),
        None => default_path(env),
    }
}

/// Follows the XDG Base Directory Specification, in which relative paths are ignored.
fn default_path(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let settings = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    Some(settings?.join(FILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Option<PathBuf> {
        path(|name| Some(variables.iter().find(|(known, _)| *known == name)?.1.into()))
    }

    #[test]
    fn the_profile_is_where_the_environment_has_settings() {
        for (variables, expected) in [
            (&[("HOME", "/h")][..], Some("/h/.config/fathom/io-profile.json")),
            (&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")], Some("/x/fathom/io-profile.json")),
            (&[("HOME", "/h"), ("XDG_CONFIG_HOME", "x")], Some("/h/.config/fathom/io-profile.json")),
            (&[("HOME", "/h"), ("FATHOM_PROFILE", "p")], Some("p")),
            (&[("HOME", "/h"), ("FATHOM_PROFILE", "")], None),
            (&[("HOME", "")], None),
            (&[], None),
        ] {
            assert_eq!(found(variables), expected.map(PathBuf::from), "{variables:?}");
        }
    }

    fn mount(dev: u64, source: &str) -> Mount {
        let (kind, source, options) = (b"ext4".to_vec(), source.as_bytes().to_vec(), b"rw".to_vec());
        Mount { point: c"/".to_owned(), dev, kind, source, options, is_part: false }
    }

    fn entry(source: &str, walk_in_flight: Option<u32>, kernel: &str) -> ProfileEntry {
        let measured = "2026-08-24T10:00:00Z".parse().expect("it is a time");
        ProfileEntry {
            filesystem: Filesystem::from(&mount(0, source)),
            kernel: kernel.to_owned(),
            cpus: 2,
            program: "fathom".to_owned(),
            measured,
            expires: measured + fathom_bench::profile::VALID,
            walk_in_flight,
            serve: None,
            verdict: String::new(),
        }
    }

    #[test]
    fn valid_entries_give_hints_by_device_and_all_entries_give_notes() {
        let mut profile = Profile::default();
        for entry in [
            entry("/dev/a", Some(32), "k"),
            entry("/dev/b c", Some(2), "k"),
            entry("/dev/old", Some(9), "j"),
            entry("/dev/unmeasured", None, "k"),
        ] {
            profile.put(entry);
        }
        let now = "2026-09-01T00:00:00Z".parse().expect("it is a time");
        let here = HostConditions { kernel: "k".to_owned(), cpus: 2, now };
        let sources = ["/dev/a", "/dev/b c", "/dev/old", "/dev/unmeasured", "/dev/unknown", "/dev/a"];
        let mounts = [10, 20, 30, 40, 50, 10].into_iter().zip(sources);
        let mounts: Vec<_> = mounts.map(|(dev, source)| mount(dev, source)).collect();
        let start = AutoStart::of(&profile, &mounts, &here, Charset::Utf8);
        let known = [10, 20, 30, 40, 50].map(|dev| start.hints.of(dev));
        assert_eq!(known, [Some(32), Some(2), None, None, None]);
        let notes: Vec<_> = start.notes(&[50, 40, 30, 20, 10]).collect();
        let expected = [
            "start: not from the profile of 2026-08-24 (ext4 on /dev/old): it was measured under another kernel",
            "start: one worker per CPU, also when calls wait, from the profile of 2026-08-24 (ext4 on '/dev/b c')",
            "start: 32 workers when calls wait, from the profile of 2026-08-24 (ext4 on /dev/a)",
        ];
        assert_eq!(notes, expected);
    }
}
