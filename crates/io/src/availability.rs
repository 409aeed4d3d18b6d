//! The availability of the I/O models on this machine, with the limits of this process and the
//! filesystem of a path.
//!
//! Owns: the test of each model. Does not own: the display of the results, and decisions that
//! follow from them.

use std::path::Path;
use std::thread::available_parallelism;

use rustix::process::{Resource, getrlimit};

use crate::filesystem::Filesystem;
use crate::{Errno, Model, Unavailable};

/// The facts that decide which models can run, and how far they can go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Availability {
    /// Name and release of the kernel.
    pub kernel: String,
    /// CPUs that this process may use, by its affinity and the quota of its cgroup.
    pub cpus: usize,
    /// Descriptors that this process may have open; `None` if there is no limit.
    pub fd_limit: Option<u64>,
    /// Memory that this process may lock, to which kernels before 5.12 charge rings; `None` if
    /// there is no limit.
    pub memlock_bytes: Option<u64>,
    /// The filesystem of the path.
    pub filesystem: Filesystem,
    /// Every model, in the order of [`Model::ALL`].
    pub models: Vec<ModelAvailability>,
}

/// The availability of one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelAvailability {
    /// The model.
    pub model: Model,
    /// The mechanism with the defaults of this machine, or the reason why the model cannot run.
    pub note: Result<String, Unavailable>,
}

impl Availability {
    /// Returns the availability to this process for `path`.
    ///
    /// # Errors
    /// The error of stat(2) on `path`.
    pub fn of(path: &Path) -> Result<Self, Errno> {
        let uname = rustix::system::uname();
        let cpus = available_parallelism().map_or(1, std::num::NonZero::get);
        let note = |model| ModelAvailability { model, note: probe(model).map(|()| note(model, cpus)) };
        Ok(Self {
            kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
            cpus,
            fd_limit: getrlimit(Resource::Nofile).current,
            memlock_bytes: getrlimit(Resource::Memlock).current,
            filesystem: Filesystem::of(path)?,
            models: Model::ALL.map(note).into(),
        })
    }
}

fn note(model: Model, cpus: usize) -> String {
    let summary = model.summary();
    match model {
        Model::Threads(None) => format!("{summary}, of which there are {cpus}"),
        _ => summary.to_owned(),
    }
}

/// Tests whether `model` can run in this process.
///
/// # Errors
/// The reason why it cannot.
pub fn probe(model: Model) -> Result<(), Unavailable> {
    match model {
        Model::Sync | Model::Threads(_) | Model::Pool | Model::Auto => Ok(()),
        Model::AsyncSeq | Model::AsyncPar => tokio_calls(),
        Model::Tokio => tokio_files(),
        Model::Nowait => linux_calls("read without waiting"),
        Model::Mmap => linux_calls("map files"),
        Model::Aio => asynchronous_calls(),
        Model::CopyFileRange | Model::Sendfile | Model::Splice => transfer(model),
        Model::Uring(_) | Model::UringRegistered | Model::UringPolled => ring(model),
    }
}

/// Returns the reason why a build without `feature` does not have a model.
#[must_use]
pub fn not_built(operation: &'static str, feature: &str) -> Unavailable {
    let cause = format!("this build is without the feature '{feature}'");
    Unavailable { operation, errno: Errno::NOSYS, cause }
}

/// Returns the reason why a caller that reads metadata does not run `model`.
#[must_use]
pub fn no_metadata(model: Model) -> Unavailable {
    let cause = format!("the model '{model}' has no metadata calls");
    Unavailable { operation: "read directories", errno: Errno::NOTSUP, cause }
}

#[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
fn posix_only(operation: &'static str) -> Unavailable {
    let cause = "this build makes POSIX calls only".to_owned();
    Unavailable { operation, errno: Errno::NOSYS, cause }
}

#[cfg(feature = "tokio")]
fn tokio_calls() -> Result<(), Unavailable> {
    crate::tokio_fs::AsyncSeq::new().map(drop)
}

#[cfg(not(feature = "tokio"))]
fn tokio_calls() -> Result<(), Unavailable> {
    Err(not_built("use tokio", "tokio"))
}

#[cfg(all(target_os = "linux", feature = "tokio"))]
fn tokio_files() -> Result<(), Unavailable> {
    crate::data::TokioFile::new(1).map(drop)
}

#[cfg(not(all(target_os = "linux", feature = "tokio")))]
fn tokio_files() -> Result<(), Unavailable> {
    Err(not_built("use tokio", "tokio"))
}

#[cfg(all(target_os = "linux", not(feature = "posix")))]
fn linux_calls(_operation: &'static str) -> Result<(), Unavailable> {
    Ok(())
}

#[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
fn linux_calls(operation: &'static str) -> Result<(), Unavailable> {
    Err(posix_only(operation))
}

#[cfg(all(target_os = "linux", not(feature = "posix")))]
fn asynchronous_calls() -> Result<(), Unavailable> {
    crate::data::Aio::new(1, 1).map(drop)
}

#[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
fn asynchronous_calls() -> Result<(), Unavailable> {
    Err(posix_only("set up asynchronous I/O"))
}

/// Makes the call on files that it does not accept: a call that exists and is allowed fails with
/// another error than one that does not.
#[cfg(all(target_os = "linux", not(feature = "posix")))]
fn transfer(model: Model) -> Result<(), Unavailable> {
    use std::fs::OpenOptions;
    use std::os::fd::AsFd;

    use crate::data::transfer::{CopyMethod, Transfer};

    let (way, operation) = match model {
        Model::CopyFileRange => (CopyMethod::CopyFileRange, "call copy_file_range"),
        Model::Splice => (CopyMethod::Splice, "call splice"),
        _ => (CopyMethod::Sendfile, "call sendfile"),
    };
    let refused = |errno, cause: &str| Unavailable { operation, errno, cause: cause.to_owned() };
    let no_fd = |errno| refused(errno, "no descriptor is left");
    let null = OpenOptions::new().read(true).write(true).open("/dev/null");
    let null = null.map_err(|error| no_fd(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    match Transfer::new(way).map_err(no_fd)?.step(null.as_fd(), 0, null.as_fd(), 1) {
        Err(errno @ Errno::NOSYS) => Err(refused(errno, "the kernel does not have it")),
        Err(errno @ Errno::PERM) => Err(refused(errno, "a seccomp filter or security module forbids it")),
        _ => Ok(()),
    }
}

#[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
fn transfer(_model: Model) -> Result<(), Unavailable> {
    Err(posix_only("copy inside the kernel"))
}

#[cfg(all(target_os = "linux", feature = "uring", not(feature = "posix")))]
fn ring(model: Model) -> Result<(), Unavailable> {
    use crate::uring::{DEPTH, Ring, RingOptions, Uring};

    let options = RingOptions::default();
    match model {
        Model::UringRegistered => Ring::new(RingOptions { registered: true, ..options }).map(drop),
        Model::UringPolled => Ring::new(RingOptions { sqpoll: true, ..options }).map(drop),
        _ => Uring::new(DEPTH).map(drop),
    }
}

#[cfg(all(target_os = "linux", not(feature = "uring"), not(feature = "posix")))]
fn ring(_model: Model) -> Result<(), Unavailable> {
    Err(not_built("use io_uring", "uring"))
}

#[cfg(not(all(target_os = "linux", not(feature = "posix"))))]
fn ring(_model: Model) -> Result<(), Unavailable> {
    Err(posix_only("use io_uring"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_is_tested_and_the_blocking_ones_run() {
        let availability = Availability::of(Path::new("/")).unwrap();
        assert!(availability.models.iter().map(|one| one.model).eq(Model::ALL));
        for one in &availability.models {
            let blocking = matches!(one.model, Model::Sync | Model::Threads(_) | Model::Pool | Model::Auto);
            assert!(one.note.is_ok() || !blocking, "{one:?}");
        }
        assert!(availability.cpus > 0 && !availability.kernel.is_empty());
    }

    #[test]
    fn a_missing_path_is_its_error() {
        assert_eq!(Availability::of(Path::new("/nonexistent/x")), Err(Errno::NOENT));
    }
}
