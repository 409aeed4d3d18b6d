//! `fathom io`: prints the I/O models available on this machine and path. Owns the output format;
//! `fathom-io` finds the facts.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fathom_io::Model;
use fathom_io::availability::Availability;
use fathom_io::filesystem::Filesystem;
use fathom_text::quote::{Charset, quoteaf};
use fathom_text::strerror;
use serde_json::{Value, json};

use crate::command::{IO, IoOption};
use crate::shared::cmdline::{self, ArgsEnd, exit, no_more};
use crate::shared::locale;
use crate::shared::output::{print, print_error};

const NAME: &str = IO.name;

/// Runs the command with the arguments `words`. Returns the exit status.
pub(crate) fn main(words: Vec<OsString>) -> u8 {
    let charset = locale::current();
    match parse(words, charset) {
        Ok((path, json)) => show(&path, json, charset),
        Err(end) => end.answer(&IO),
    }
}

/// Returns the path, and whether the output is JSON.
fn parse(words: Vec<OsString>, charset: Charset) -> Result<(OsString, bool), ArgsEnd> {
    let mut json = false;
    let operands = cmdline::parse(&IO, words.into_iter(), charset, |key, _| {
        match key {
            IoOption::Json => json = true,
        }
        Ok(())
    })?;
    let mut paths = operands.into_iter();
    let path = paths.next().unwrap_or_else(|| ".".into());
    no_more(paths, charset)?;
    Ok((path, json))
}

fn show(path: &OsString, json: bool, charset: Charset) -> u8 {
    match Availability::of(Path::new(path)) {
        Ok(availability) if json => print(NAME, &format!("{}\n", object(path.as_bytes(), &availability))),
        Ok(availability) => print(NAME, &text(path.as_bytes(), &availability, charset)),
        Err(errno) => {
            let path = quoteaf(path.as_bytes(), charset);
            print_error(NAME, &[b"cannot access ", &path[..], b": ", &strerror(errno)].concat());
            exit::FAILED
        }
    }
}

fn text(path: &[u8], availability: &Availability, charset: Charset) -> String {
    let mut lines = facts(path, availability, charset);
    lines.extend(availability.models.iter().map(|found| {
        let state = match &found.note {
            Ok(note) => format!("available: {note}"),
            Err(unavailable) => format!("unavailable: {unavailable}"),
        };
        (found.model.name(), format!("{state}; {}", uses(found.model)))
    }));
    columns(&lines)
}

/// Returns the uses of a model, as in `for metadata, serving`.
fn uses(model: Model) -> String {
    let names: Vec<_> = model.uses().iter().map(|found| found.name()).collect();
    let kind = if model.is_for_benchmarks_only() { "for benchmarks only:" } else { "for" };
    format!("{kind} {}", names.join(", "))
}

/// Returns the facts other than the models, as keys and values.
pub(crate) fn facts(
    path: &[u8],
    availability: &Availability,
    charset: Charset,
) -> Vec<(&'static str, String)> {
    let path = fathom_text::quote::shell_escape(path, charset);
    let limit = |limit: Option<u64>| limit.map_or("unlimited".to_string(), |limit| limit.to_string());
    vec![
        ("kernel", availability.kernel.clone()),
        ("path", String::from_utf8_lossy(&path).into_owned()),
        ("file system", filesystem(&availability.filesystem)),
        ("device", device(&availability.filesystem)),
        ("CPUs", availability.cpus.to_string()),
        ("open files", limit(availability.fd_limit)),
        (
            "locked memory",
            limit(availability.memlock_bytes)
                + if availability.memlock_bytes.is_some() { " bytes" } else { "" },
        ),
    ]
}

/// Formats keys and values in two aligned columns.
pub(crate) fn columns<K: AsRef<str>>(lines: &[(K, String)]) -> String {
    let longest = lines.iter().map(|(key, _)| key.as_ref().len()).max().unwrap_or(0);
    lines
        .iter()
        .map(|(key, value)| format!("{:width$} {value}\n", format!("{}:", key.as_ref()), width = longest + 1))
        .collect()
}

fn filesystem(filesystem: &Filesystem) -> String {
    match (filesystem.name, filesystem.magic) {
        (Some(name), _) => name.to_string(),
        (None, Some(magic)) => format!("unknown, number {magic:#x}"),
        (None, None) => "unknown".to_string(),
    }
}

fn device(filesystem: &Filesystem) -> String {
    let (major, minor) = filesystem.device;
    let kind = match filesystem.rotational {
        Some(true) => "rotational",
        Some(false) => "not rotational",
        None => "unknown disk",
    };
    format!("{major}:{minor}, {kind}")
}

/// Returns the facts and the models as a JSON object.
pub(crate) fn object(path: &[u8], availability: &Availability) -> Value {
    let filesystem = &availability.filesystem;
    let models = availability.models.iter().map(|found| {
        let note = found.note.as_ref().map_or_else(ToString::to_string, Clone::clone);
        let uses: Vec<_> = found.model.uses().iter().map(|found| found.name()).collect();
        json!({ "model": found.model.name(), "available": found.note.is_ok(), "note": note, "uses": uses })
    });
    json!({
        "kernel": availability.kernel,
        "path": String::from_utf8_lossy(path),
        "filesystem": filesystem.name,
        "filesystem_magic": filesystem.magic,
        "device": format!("{}:{}", filesystem.device.0, filesystem.device.1),
        "rotational": filesystem.rotational,
        "cpus": availability.cpus,
        "open_files_max": availability.fd_limit,
        "locked_memory_max_bytes": availability.memlock_bytes,
        "models": models.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_io::availability::ModelAvailability;
    use fathom_io::{Errno, Unavailable};

    fn availability() -> Availability {
        let unavailable =
            Unavailable { operation: "set up io_uring", errno: Errno::PERM, cause: "forbidden".to_string() };
        Availability {
            kernel: "Linux 6.1".to_string(),
            cpus: 2,
            fd_limit: Some(1024),
            memlock_bytes: None,
            filesystem: Filesystem {
                magic: Some(0x1234),
                name: None,
                device: (8, 1),
                rotational: Some(false),
            },
            models: vec![
                ModelAvailability { model: Model::Sync, note: Ok("one thread".to_string()) },
                ModelAvailability { model: Model::UringPolled, note: Err(unavailable) },
            ],
        }
    }

    #[test]
    fn values_are_aligned_and_unavailable_models_have_their_cause() {
        let expected = "\
kernel:        Linux 6.1
path:          'a'$'\\n''b'
file system:   unknown, number 0x1234
device:        8:1, not rotational
CPUs:          2
open files:    1024
locked memory: unlimited
sync:          available: one thread; for metadata, byte ranges, small files, serving, copying
uring-polled:  unavailable: cannot set up io_uring: Operation not permitted (os error 1) (forbidden); for benchmarks only: byte ranges
";
        assert_eq!(text(b"a\nb", &availability(), Charset::Ascii), expected);
    }

    #[test]
    fn the_json_object_has_the_same_facts() {
        let object = object(b"a\xff", &availability());
        assert_eq!(object["path"], "a\u{fffd}");
        assert_eq!(object["locked_memory_max_bytes"], Value::Null);
        let uses = ["metadata", "byte ranges", "small files", "serving", "copying"];
        let sync = json!({ "model": "sync", "available": true, "note": "one thread", "uses": uses });
        assert_eq!(object["models"][0], sync);
        assert_eq!(object["models"][1]["available"], false);
    }
}
