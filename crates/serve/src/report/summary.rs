//! Describes what the results of the probes mean for the models, in words for administrators. The
//! descriptions state what `files` does: a change of one needs a change of the other.

use fathom_files::{WorkerBuffer, pool_read_bytes};
use fathom_io::{Model, Use};

use super::{CallStatus, CallStatuses, ResourceLimits};
use crate::conn::chunk::SEGMENT_BYTES;

/// The properties of a filesystem that decide how its files are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilesystemTraits {
    /// All files are in memory: no read waits for a disk.
    pub(super) in_memory: bool,
    /// Lookups never ask a server.
    pub(super) is_local: bool,
    pub(super) is_overlay: bool,
    /// Whether the site has a file that calls were tried on.
    pub(super) has_sample: bool,
}

/// The description of a model, or the reason why it cannot run.
type ModelStatus = Result<&'static str, String>;

pub(super) fn models(calls: &CallStatuses, traits: FilesystemTraits) -> Vec<(Model, ModelStatus)> {
    let unless = |call: &str, finding: &CallStatus, says| match finding {
        CallStatus::Fails(why) => Err(format!("{call}: {why}")),
        CallStatus::Works | CallStatus::Untested => Ok(says),
    };
    let of = |model| match (&calls.openat2, model) {
        (CallStatus::Fails(why), _) => Err(format!("openat2: {why}")),
        (_, Model::Sendfile) => unless("sendfile", &calls.sendfile, describe(model, calls, traits)),
        // The message of a refusal includes its cause.
        (_, Model::Uring(_)) => match &calls.uring {
            CallStatus::Fails(why) => Err(why.clone()),
            _ => Ok(describe(model, calls, traits)),
        },
        _ => Ok(describe(model, calls, traits)),
    };
    Model::with(Use::Serve).map(|model| (model, of(model))).collect()
}

fn describe(model: Model, calls: &CallStatuses, traits: FilesystemTraits) -> &'static str {
    match model {
        Model::Auto => "what is in memory on the worker, the rest by the pool; keeps files and small bodies",
        Model::Sync => "open, read and write on the worker: a cold file holds up all its connections",
        Model::Nowait if wait_detection(calls, traits) == WaitDetection::Unavailable => {
            "opens on the worker what need not wait; reads by the pool, as nothing tells what is in memory"
        }
        Model::Nowait => "the worker does what need not wait, the pool the rest; keeps nothing",
        Model::Pool => {
            "everything by the pool: one hand-off for a small file, one more for each piece of a large one"
        }
        Model::Tokio => "two hand-offs to open a file and two for each 64 KiB, as an async runtime has it",
        Model::Sendfile => "open on the worker, sendfile without asking what is in memory; reads for TLS",
        Model::Uring(_) => "open and read through a ring for each worker",
        _ => model.summary(),
    }
}

/// The way to find out whether a read would wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitDetection {
    /// No read waits.
    NotNeeded,
    /// The read itself reports it (`RWF_NOWAIT`).
    Nowait,
    /// A query of the page cache before the read (cachestat(2)).
    Cachestat,
    /// None: the pool reads all data.
    Unavailable,
}

fn wait_detection(calls: &CallStatuses, traits: FilesystemTraits) -> WaitDetection {
    match (traits.in_memory, calls.nowait.fails(), calls.cachestat.fails()) {
        (true, _, _) => WaitDetection::NotNeeded,
        (false, false, _) => WaitDetection::Nowait,
        (false, true, false) => WaitDetection::Cachestat,
        (false, true, true) => WaitDetection::Unavailable,
    }
}

/// Describes what `auto` does in each case.
pub(super) fn plan(
    calls: &CallStatuses,
    traits: FilesystemTraits,
    limits: &ResourceLimits,
) -> Vec<(&'static str, String)> {
    if calls.openat2.fails() {
        return Vec::new();
    }
    let at_once = traits.is_local && !calls.resolve_cached.fails();
    let wait_detection = wait_detection(calls, traits);
    vec![
        ("cached lookup", cached_lookup(at_once, limits)),
        ("cold lookup", cold_lookup()),
        ("small body", small_body(wait_detection, limits)),
        ("large body, in memory", large_body(wait_detection, calls, traits)),
        ("large body, not in memory", cold_body(wait_detection, traits, limits)),
    ]
}

fn cached_lookup(at_once: bool, limits: &ResourceLimits) -> String {
    let who = if at_once { "by the worker" } else { "by the pool, since it may ask a server or cannot tell" };
    match limits.cache.files {
        0 => format!("openat2 {who}; no file is kept"),
        _ => {
            format!(
                "openat2 {who}; a file that is kept is not looked up again for {} ms",
                limits.cache.age_ms
            )
        }
    }
}

fn cold_lookup() -> String {
    let first = kib(WorkerBuffer::BYTES as u64);
    format!("by the pool: openat2, statx and a body up to {first} in one go, once for all who ask for it")
}

fn small_body(wait_detection: WaitDetection, limits: &ResourceLimits) -> String {
    let how = match wait_detection {
        WaitDetection::NotNeeded => "read by the worker",
        WaitDetection::Nowait => "read by the worker (RWF_NOWAIT), or by the pool if that would wait",
        WaitDetection::Cachestat => {
            "read by the worker if cachestat says that it is in memory, else by the pool"
        }
        WaitDetection::Unavailable => "read by the pool",
    };
    match (limits.cache.files, limits.cache.bytes) {
        (0, _) | (_, 0) => how.to_owned(),
        _ => format!("{how}; up to {} it is kept", kib(limits.cache.body_bytes as u64)),
    }
}

fn large_body(wait_detection: WaitDetection, calls: &CallStatuses, traits: FilesystemTraits) -> String {
    let reads = match wait_detection {
        WaitDetection::NotNeeded | WaitDetection::Nowait | WaitDetection::Cachestat => {
            format!("reads of {} by the worker", kib(WorkerBuffer::BYTES as u64))
        }
        WaitDetection::Unavailable => {
            format!("reads of {} by the pool", kib(pool_read_bytes(traits.is_local, false)))
        }
    };
    let is_sent = (traits.in_memory || !calls.cachestat.fails()) && !calls.sendfile.fails();
    match is_sent {
        true => format!(
            "{reads}, or to other machines sendfile in parts of {}, whichever costs less",
            kib(SEGMENT_BYTES as u64)
        ),
        false => reads,
    }
}

fn cold_body(wait_detection: WaitDetection, traits: FilesystemTraits, limits: &ResourceLimits) -> String {
    match traits.in_memory {
        true => "there is none".to_owned(),
        false => format!(
            "reads of {} by the pool, at most {} at once for the device",
            kib(pool_read_bytes(traits.is_local, !matches!(wait_detection, WaitDetection::Unavailable))),
            limits.pool.per_device()
        ),
    }
}

fn kib(bytes: u64) -> String {
    match bytes >> 10 {
        kib if kib >= 1024 && kib.is_multiple_of(1024) => format!("{} MiB", kib >> 10),
        kib => format!("{kib} KiB"),
    }
}

/// Returns the notes that apply.
pub(super) fn notes(calls: &CallStatuses, traits: FilesystemTraits) -> Vec<&'static str> {
    let all = [
        (
            traits.is_overlay,
            "overlayfs does not tell what is in memory, and its lookups depend on the layers below: all goes through the pool. A \
             volume or a bind mount is read as on the host",
        ),
        (
            !traits.is_local && !traits.is_overlay,
            "each lookup may ask a server, so all of them go through the pool; how soon a change there is seen here depends on the \
             mount, too",
        ),
        (
            traits.in_memory,
            "everything is in memory, so no read is thought to wait, even if it has been swapped out",
        ),
        (
            !traits.has_sample && !calls.openat2.fails(),
            "no regular file with contents was found, so reading was not tried; the plan assumes that it works",
        ),
    ];
    all.into_iter().filter(|(is_so, _)| *is_so).map(|(_, note)| note).collect()
}
