//! Where `--io auto` starts, of walks and of the server: at the numbers of the profile that was saved on this machine, if one there
//! holds here and now. Without a profile that costs one failed open.
//!
//! Owns: where the profile is, and what is said of it. Does not own: what is in it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fathom_bench::profile::{Entry, Filesystem, Found, Here, Profile, Serve};
use fathom_io::Choice;
use fathom_io::mounts::{self, Mount};
use fathom_text::quote::{Charset, quoteaf, quotef};
use fathom_walk::Leaps;

use crate::output::complain;

/// Names a file instead of the usual one; if empty, none is read.
const VARIABLE: &str = "FATHOM_PROFILE";
/// Below the directory for the user's settings.
const FILE: &str = "fathom/io-profile.json";

/// Models of servers with a pool; where another one paid best, the number of its threads says nothing about that of a pool.
const POOLED: [&str; 3] = ["nowait", "pool", "tokio"];

/// What is known before a walk.
#[derive(Debug, Default)]
pub(crate) struct Start {
    /// What the walk is told.
    pub(crate) leaps: Leaps,
    /// What there is to say, by device.
    notes: Vec<(u64, String)>,
}

impl Start {
    /// For a command called `name`. Other models than `auto`, and a fixed number of threads, have no use for a profile. One that
    /// cannot be read is ignored with a warning.
    pub(crate) fn read(name: &[u8], charset: Charset, choice: Choice, fixed: bool) -> Self {
        if choice != Choice::Auto || fixed {
            return Self::default();
        }
        let of =
            |profile: Profile| Self::of(&profile, &mounts::read().unwrap_or_default(), &Here::now(), charset);
        profile(name, charset).map(of).unwrap_or_default()
    }

    fn of(profile: &Profile, mounts: &[Mount], here: &Here, charset: Charset) -> Self {
        let (mut leaps, mut notes) = (Vec::new(), Vec::new());
        for mount in mounts {
            let note = match profile.find(&Filesystem::from(mount), here) {
                Found::None => None,
                Found::Stale(entry, why) => Some(format!("not from {}: {why}", origin(entry, charset))),
                Found::Entry(entry) => entry.walk_in_flight.map(|workers| {
                    leaps.push((mount.dev, workers as usize));
                    format!("{}, from {}", number(workers, here), origin(entry, charset))
                }),
            };
            notes.extend(note.map(|note| (mount.dev, format!("start: {note}"))));
        }
        Self { leaps: leaps.into_iter().collect(), notes }
    }

    /// What `--verbose` says where these devices were met.
    pub(crate) fn notes(&self, devices: &[u64]) -> impl Iterator<Item = &str> {
        let noted = |dev: &u64| self.notes.iter().find(|(known, _)| known == dev);
        devices.iter().filter_map(noted).map(|(_, note)| note.as_str())
    }
}

/// What the profile says of a server's pool.
#[derive(Debug)]
pub(crate) struct Threads {
    /// Threads that may wait for the device; none if the entry does not hold.
    pub(crate) number: Option<usize>,
    /// Where that is from, or why not.
    pub(crate) note: String,
}

/// How many threads a server called `name` is to have for files in `dir`, if the profile has an entry for its filesystem.
pub(crate) fn threads(name: &[u8], charset: Charset, dir: &Path) -> Option<Threads> {
    threads_of(&profile(name, charset)?, &Filesystem::of(dir)?, &Here::now(), charset)
}

fn threads_of(profile: &Profile, filesystem: &Filesystem, here: &Here, charset: Charset) -> Option<Threads> {
    match profile.find(filesystem, here) {
        Found::None => None,
        Found::Stale(entry, why) => {
            Some(Threads { number: None, note: format!("not from {}: {why}", origin(entry, charset)) })
        }
        Found::Entry(entry) => {
            let pooled = |serve: &&Serve| POOLED.contains(&serve.model.as_str());
            let number = Some(entry.serve.as_ref().filter(pooled)?.pool_threads as usize);
            Some(Threads { number, note: format!("from {}", origin(entry, charset)) })
        }
    }
}

/// The profile, if there is one; it is said if it cannot be read.
fn profile(name: &[u8], charset: Charset) -> Option<Profile> {
    let path = path(|name| std::env::var_os(name))?;
    Profile::read(&path).unwrap_or_else(|error| {
        let path = quoteaf(path.as_os_str().as_bytes(), charset);
        let cause = error.cause().into_bytes();
        complain(&[name, b": ignoring profile ", &path, b": ", &cause, b"\n"].concat());
        None
    })
}

fn number(workers: u32, here: &Here) -> String {
    match workers > here.cpus {
        true => format!("{workers} workers once calls wait"),
        false => "one worker a CPU, also once calls wait".to_owned(),
    }
}

fn origin(entry: &Entry, charset: Charset) -> String {
    let Filesystem { kind, source } = &entry.filesystem;
    let [kind, source] = [kind, source].map(|text| quotef(text.as_bytes(), charset));
    let [kind, source] = [&kind, &source].map(|text| String::from_utf8_lossy(text));
    format!("the profile of {} ({kind} on {source})", entry.measured.strftime("%Y-%m-%d"))
}

/// Where the profile is, if there is to be one.
pub(crate) fn path(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    match env(VARIABLE) {
        Some(path) if path.is_empty() => None,
        Some(path) => Some(path.into()),
        None => usual(env),
    }
}

/// As the XDG base directories have it, where a relative path counts for none.
fn usual(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
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

    fn entry(source: &str, walk_in_flight: Option<u32>, kernel: &str) -> Entry {
        let measured = "2026-08-24T10:00:00Z".parse().expect("it is a time");
        Entry {
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
    fn what_holds_is_known_by_device_and_all_of_it_is_said() {
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
        let here = Here { kernel: "k".to_owned(), cpus: 2, now };
        let sources = ["/dev/a", "/dev/b c", "/dev/old", "/dev/unmeasured", "/dev/unknown", "/dev/a"];
        let mounts = [10, 20, 30, 40, 50, 10].into_iter().zip(sources);
        let mounts: Vec<_> = mounts.map(|(dev, source)| mount(dev, source)).collect();
        let start = Start::of(&profile, &mounts, &here, Charset::Utf8);
        let known = [10, 20, 30, 40, 50].map(|dev| start.leaps.of(dev));
        assert_eq!(known, [Some(32), Some(2), None, None, None]);
        let notes: Vec<_> = start.notes(&[50, 40, 30, 20, 10]).collect();
        let expected = [
            "start: not from the profile of 2026-08-24 (ext4 on /dev/old): it was measured under another kernel",
            "start: one worker a CPU, also once calls wait, from the profile of 2026-08-24 (ext4 on '/dev/b c')",
            "start: 32 workers once calls wait, from the profile of 2026-08-24 (ext4 on /dev/a)",
        ];
        assert_eq!(notes, expected);
    }
}
