//! What the answers of the kernel mean for the models, in words for who runs the server. It says what `files` does: whoever changes the
//! one changes the other.

use super::{Calls, Finding, Sizes};
use crate::conn::chunk::{Buffers, PART_BYTES};
use crate::files::{Model, pool_bytes};

/// What kind of filesystem it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Nothing there ever waits for a disk.
    pub(super) in_memory: bool,
    /// Its lookups never ask a server.
    pub(super) is_local: bool,
    pub(super) is_overlay: bool,
    /// Whether there was a file to try calls on.
    pub(super) has_sample: bool,
}

/// What a model does, or why it cannot.
type Outlook = Result<&'static str, String>;

pub(super) fn models(calls: &Calls, place: Place) -> Vec<(Model, Outlook)> {
    let unless = |call: &str, finding: &Finding, says| match finding {
        Finding::Fails(why) => Err(format!("{call}: {why}")),
        Finding::Works | Finding::Untried => Ok(says),
    };
    let of = |model| match (&calls.openat2, model) {
        (Finding::Fails(why), _) => Err(format!("openat2: {why}")),
        (_, Model::Sendfile) => unless("sendfile", &calls.sendfile, what(model, calls, place)),
        // What was refused has its cause in the message.
        (_, Model::Uring) => match &calls.uring {
            Finding::Fails(why) => Err(why.clone()),
            _ => Ok(what(model, calls, place)),
        },
        _ => Ok(what(model, calls, place)),
    };
    Model::ALL.map(|model| (model, of(model))).into()
}

fn what(model: Model, calls: &Calls, place: Place) -> &'static str {
    match model {
        Model::Auto => "what is in memory on the worker, the rest by the pool; keeps files and small bodies",
        Model::Sync => "open, read and write on the worker: a cold file holds up all its connections",
        Model::Nowait if reading(calls, place) == Reading::Blindly => {
            "opens on the worker what need not wait; reads by the pool, as nothing tells what is in memory"
        }
        Model::Nowait => "the worker does what need not wait, the pool the rest; keeps nothing",
        Model::Pool => {
            "everything by the pool: one hand-off for a small file, one more for each piece of a large one"
        }
        Model::Tokio => "two hand-offs to open a file and two for each 64 KiB, as an async runtime has it",
        Model::Sendfile => "open on the worker, sendfile without asking what is in memory; reads for TLS",
        Model::Uring => "open and read through a ring for each worker",
    }
}

/// How it is found out whether a read would wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// None does.
    InMemory,
    /// The read itself says so.
    AtOnce,
    /// The page cache is asked before.
    Asked,
    /// It is not: the pool reads everything.
    Blindly,
}

fn reading(calls: &Calls, place: Place) -> Reading {
    match (place.in_memory, calls.nowait.fails(), calls.cachestat.fails()) {
        (true, _, _) => Reading::InMemory,
        (false, false, _) => Reading::AtOnce,
        (false, true, false) => Reading::Asked,
        (false, true, true) => Reading::Blindly,
    }
}

/// What `auto` does in each case.
pub(super) fn plan(calls: &Calls, place: Place, sizes: &Sizes) -> Vec<(&'static str, String)> {
    if calls.openat2.fails() {
        return Vec::new();
    }
    let at_once = place.is_local && !calls.resolve_cached.fails();
    let reading = reading(calls, place);
    vec![
        ("cached lookup", cached_lookup(at_once, sizes)),
        ("cold lookup", cold_lookup()),
        ("small body", small_body(reading, sizes)),
        ("large body, in memory", large_body(reading, calls, place)),
        ("large body, not in memory", cold_body(reading, place, sizes)),
    ]
}

fn cached_lookup(at_once: bool, sizes: &Sizes) -> String {
    let who = if at_once { "by the worker" } else { "by the pool, since it may ask a server or cannot tell" };
    match sizes.cache.files {
        0 => format!("openat2 {who}; no file is kept"),
        _ => {
            format!("openat2 {who}; a file that is kept is not looked up again for {} ms", sizes.cache.age_ms)
        }
    }
}

fn cold_lookup() -> String {
    let first = kib(Buffers::BYTES as u64);
    format!("by the pool: openat2, statx and a body up to {first} in one go, once for all who ask for it")
}

fn small_body(reading: Reading, sizes: &Sizes) -> String {
    let how = match reading {
        Reading::InMemory => "read by the worker",
        Reading::AtOnce => "read by the worker (RWF_NOWAIT), or by the pool if that would wait",
        Reading::Asked => "read by the worker if cachestat says that it is in memory, else by the pool",
        Reading::Blindly => "read by the pool",
    };
    match (sizes.cache.files, sizes.cache.bytes) {
        (0, _) | (_, 0) => how.to_owned(),
        _ => format!("{how}; up to {} it is kept", kib(sizes.cache.body_bytes as u64)),
    }
}

fn large_body(reading: Reading, calls: &Calls, place: Place) -> String {
    let reads = match reading {
        Reading::InMemory | Reading::AtOnce | Reading::Asked => {
            format!("reads of {} by the worker", kib(Buffers::BYTES as u64))
        }
        Reading::Blindly => format!("reads of {} by the pool", kib(pool_bytes(place.is_local, false))),
    };
    let is_sent = (place.in_memory || !calls.cachestat.fails()) && !calls.sendfile.fails();
    match is_sent {
        true => format!(
            "{reads}, or to other machines sendfile in parts of {}, whichever costs less",
            kib(PART_BYTES as u64)
        ),
        false => reads,
    }
}

fn cold_body(reading: Reading, place: Place, sizes: &Sizes) -> String {
    match place.in_memory {
        true => "there is none".to_owned(),
        false => format!(
            "reads of {} by the pool, at most {} at once for the device",
            kib(pool_bytes(place.is_local, !matches!(reading, Reading::Blindly))),
            sizes.pool.per_device()
        ),
    }
}

fn kib(bytes: u64) -> String {
    match bytes >> 10 {
        kib if kib >= 1024 && kib.is_multiple_of(1024) => format!("{} MiB", kib >> 10),
        kib => format!("{kib} KiB"),
    }
}

/// What else is to be known.
pub(super) fn notes(calls: &Calls, place: Place) -> Vec<&'static str> {
    let all = [
        (
            place.is_overlay,
            "overlayfs does not tell what is in memory, and its lookups depend on the layers below: all goes through the pool. A \
             volume or a bind mount is read as on the host",
        ),
        (
            !place.is_local && !place.is_overlay,
            "each lookup may ask a server, so all of them go through the pool; how soon a change there is seen here depends on the \
             mount, too",
        ),
        (
            place.in_memory,
            "everything is in memory, so no read is thought to wait, even if it has been swapped out",
        ),
        (
            !place.has_sample && !calls.openat2.fails(),
            "no regular file with contents was found, so reading was not tried; the plan assumes that it works",
        ),
    ];
    all.into_iter().filter(|(is_so, _)| *is_so).map(|(_, note)| note).collect()
}
