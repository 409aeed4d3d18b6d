//! The arms: methods with their parameters, under the names that reports have.

use fathom_io::uring::Completion;

use crate::ArmName;
use crate::lang::{self, Lang};
use crate::sample::{Deed, METHODS, Method};

/// One way of doing a cell's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// `rust`, another language, or `control`.
    pub lang: &'static str,
    /// As reports call it.
    pub name: String,
    /// The I/O model, as `--models` has it.
    pub model: &'static str,
    /// What Rust's program calls it; others have their own.
    pub method: Method,
    /// The same of the playground.
    pub other: Option<(Lang, lang::Arm)>,
    /// Threads.
    pub threads: usize,
    /// Operations each has under way.
    pub depth: usize,
    /// Operations submitted at once.
    pub batch: usize,
    /// How completions are waited for.
    pub completion: Completion,
}

/// The language of programs of others.
const CONTROL: &str = "control";

/// The values of `--models`.
pub const MODELS: [&str; 16] = [
    "blocking",
    "threads",
    "pool",
    "nowait",
    "tokio",
    "mmap",
    "uring",
    "uring-registered",
    "uring-polled",
    "sync",
    "async-seq",
    "async-par",
    "auto",
    "copy-file-range",
    "sendfile",
    "splice",
];

impl Arm {
    fn new(name: impl Into<String>, model: &'static str, method: Method) -> Self {
        let completion = Completion::Wait;
        let name = name.into();
        Self { lang: "rust", name, model, method, other: None, threads: 1, depth: 1, batch: 1, completion }
    }

    /// The arm of a program of the playground.
    #[must_use]
    pub fn of(lang: Lang, arm: lang::Arm) -> Self {
        let mut own = Self::new(arm.to_string(), arm.method.model(), Method::Blocking);
        (own.lang, own.other) = (lang.name(), Some((lang, arm)));
        let size = |number: u32| number as usize;
        (own.threads, own.depth, own.batch) = (size(arm.threads), size(arm.depth), size(arm.batch));
        own.completion = if arm.spins { Completion::Spin } else { Completion::Wait };
        own
    }

    /// dd, which writes zeros.
    #[must_use]
    pub fn control() -> Self {
        Self { lang: CONTROL, ..Self::new("dd", "blocking", Method::Blocking) }
    }

    /// Whether it is a program of others, which knows no pattern.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.lang == CONTROL
    }

    /// Language and name.
    #[must_use]
    pub fn full_name(&self) -> ArmName {
        ArmName::new(self.lang, &self.name)
    }

    fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    fn deep(mut self, depth: usize, batch: usize) -> Self {
        (self.depth, self.batch) = (depth, batch);
        self
    }

    /// What the sample's program calls the method.
    #[must_use]
    pub fn method_name(&self) -> &'static str {
        METHODS.iter().find(|(_, method)| *method == self.method).map_or("", |(name, _)| name)
    }

    /// The column's word for the way of waiting.
    #[must_use]
    pub fn wait(&self) -> &'static str {
        match self.completion {
            Completion::Wait => "wait",
            Completion::Spin => "spin",
            Completion::Adaptive => "adaptive",
        }
    }
}

/// The methods of the published comparison (io-playground), with the control for a hundred rings that it lacked.
fn published() -> Vec<Arm> {
    let mut arms = vec![Arm::new("blocking", "blocking", Method::Blocking)];
    for threads in [1, 10, 100] {
        arms.push(Arm::new(format!("{threads}_threads_pwrite"), "threads", Method::Pwrite).threads(threads));
    }
    for threads in [1, 10, 100] {
        for entries in [1, 128] {
            let name = format!("{threads}_threads_iouring_pwrite_{entries}_entries");
            arms.push(Arm::new(name, "uring", Method::Uring).threads(threads).deep(entries, entries));
        }
    }
    arms
}

/// One of each other model, and those whose way of waiting makes the difference.
fn further() -> Vec<Arm> {
    let spin = Arm { completion: Completion::Spin, ..Arm::new("iouring_spin_1", "uring", Method::Uring) };
    let adaptive =
        Arm { completion: Completion::Adaptive, ..Arm::new("iouring_adaptive_1", "uring", Method::Uring) };
    vec![
        spin,
        adaptive,
        Arm::new("iouring_registered_32", "uring-registered", Method::UringRegistered).deep(32, 8),
        Arm::new("iouring_polled_32", "uring-polled", Method::UringPolled).deep(32, 8),
        Arm::new("pool_1", "pool", Method::Pool),
        Arm::new("pool_32", "pool", Method::Pool).deep(32, 1),
        Arm::new("pool_32_batched", "pool", Method::Pool).deep(32, 8),
        Arm::new("nowait_32", "nowait", Method::Nowait).deep(32, 1),
        Arm::new("tokio_1", "tokio", Method::Tokio),
        Arm::new("tokio_32", "tokio", Method::Tokio).deep(32, 1),
        Arm::new("mmap", "mmap", Method::Mmap),
    ]
}

/// The arms for reading: blocking, threads, and every depth worth knowing.
fn reading() -> Vec<Arm> {
    let mut arms = vec![Arm::new("blocking", "blocking", Method::Blocking)];
    for threads in [1, 8, 32, 128] {
        arms.push(Arm::new(format!("{threads}_threads_pread"), "threads", Method::Pwrite).threads(threads));
    }
    for depth in [1, 8, 32, 128] {
        arms.push(Arm::new(format!("iouring_{depth}"), "uring", Method::Uring).deep(depth, depth.min(32)));
    }
    arms
}

/// The models of a walk. The first one is the baseline, under the name it has everywhere.
fn walking() -> Vec<Arm> {
    let mut arms = vec![Arm::new("blocking", "sync", Method::Sync)];
    for threads in [2, 8, 32, 128] {
        arms.push(Arm::new(format!("{threads}_threads"), "threads", Method::Threads).threads(threads));
    }
    arms.push(Arm::new("async_seq", "async-seq", Method::AsyncSeq));
    arms.push(Arm::new("async_par", "async-par", Method::AsyncPar));
    for depth in [32, 128] {
        arms.push(Arm::new(format!("iouring_{depth}"), "uring", Method::Uring).deep(depth, 1));
    }
    arms.push(Arm::new("auto", "auto", Method::Auto));
    arms
}

/// Ways of reading files that are one block each.
fn small_files() -> Vec<Arm> {
    let mut arms = vec![Arm::new("blocking", "blocking", Method::Blocking)];
    for threads in [2, 8, 32] {
        arms.push(Arm::new(format!("{threads}_threads"), "threads", Method::Pwrite).threads(threads));
    }
    arms.extend(
        [1, 32].map(|depth| Arm::new(format!("tokio_{depth}"), "tokio", Method::Tokio).deep(depth, 1)),
    );
    arms
}

/// Ways in which a server's one thread reads files: itself, itself unless it would have to wait, or never.
fn serving() -> Vec<Arm> {
    vec![
        Arm::new("blocking", "blocking", Method::Blocking),
        Arm::new("nowait_32", "nowait", Method::Nowait).deep(32, 1),
        Arm::new("pool_32", "pool", Method::Pool).deep(32, 1),
        Arm::new("tokio_32", "tokio", Method::Tokio).deep(32, 1),
        Arm::new("sendfile", "sendfile", Method::Sendfile),
    ]
}

/// Ways of copying: through the process's memory, and three that stay in the kernel.
fn copying() -> Vec<Arm> {
    vec![
        Arm::new("blocking", "blocking", Method::Blocking),
        Arm::new("copy_file_range", "copy-file-range", Method::CopyFileRange),
        Arm::new("sendfile", "sendfile", Method::Sendfile),
        Arm::new("splice", "splice", Method::Splice),
    ]
}

/// The Rust arms of `deed`: those of `models`, or if none are named the ones that answer the usual question.
#[must_use]
pub fn arms(deed: Deed, models: &[String]) -> Vec<Arm> {
    let usual = match deed {
        Deed::Write => published(),
        Deed::Read | Deed::RandomRead => reading(),
        Deed::Walk | Deed::Stat => walking(),
        Deed::SmallFiles => small_files(),
        Deed::Serve => serving(),
        Deed::Copy => copying(),
        Deed::AppendSync => {
            vec![
                Arm::new("blocking", "blocking", Method::Blocking),
                Arm::new("iouring_1", "uring", Method::Uring),
            ]
        }
    };
    let alone = |arm: &Arm| deed != Deed::AppendSync || (arm.threads == 1 && arm.depth == 1);
    let of_bytes = !(deed.is_of_tree() || deed.is_of_small_files() || deed == Deed::Copy);
    let further = if of_bytes { further() } else { Vec::new() };
    let all = usual.iter().cloned().chain(further).filter(alone);
    if models.is_empty() {
        let usual_names: Vec<&str> = usual.iter().map(|arm| arm.name.as_str()).collect();
        let more = if deed == Deed::Write { 0 } else { usize::MAX };
        let further = all.filter(|arm| !usual_names.contains(&arm.name.as_str())).take(more);
        return usual.iter().cloned().chain(further).collect();
    }
    all.filter(|arm| arm.name == "blocking" || models.iter().any(|model| *model == arm.model)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(deed: Deed, models: &[&str]) -> Vec<String> {
        let models: Vec<String> = models.iter().map(|model| (*model).to_owned()).collect();
        arms(deed, &models).into_iter().map(|arm| arm.name).collect()
    }

    #[test]
    fn writing_has_the_published_methods() {
        let expected = [
            "blocking",
            "1_threads_pwrite",
            "10_threads_pwrite",
            "100_threads_pwrite",
            "1_threads_iouring_pwrite_1_entries",
            "1_threads_iouring_pwrite_128_entries",
            "10_threads_iouring_pwrite_1_entries",
            "10_threads_iouring_pwrite_128_entries",
            "100_threads_iouring_pwrite_1_entries",
            "100_threads_iouring_pwrite_128_entries",
        ];
        assert_eq!(names(Deed::Write, &[]), expected);
    }

    #[test]
    fn every_model_can_be_named_and_brings_the_baseline() {
        for model in MODELS {
            let mut found = 0;
            for deed in [
                Deed::Write,
                Deed::Read,
                Deed::RandomRead,
                Deed::Walk,
                Deed::Stat,
                Deed::SmallFiles,
                Deed::Serve,
                Deed::Copy,
            ] {
                let arms = arms(deed, &[model.to_owned()]);
                assert_eq!(arms[0].name, "blocking");
                assert!(arms[1..].iter().all(|arm| arm.model == model), "{model}");
                found += arms.iter().filter(|arm| arm.model == model).count();
            }
            assert!(found > 0, "{model}");
        }
        assert!(arms(Deed::AppendSync, &[]).iter().all(|arm| arm.threads == 1 && arm.depth == 1));
    }

    #[test]
    fn serving_has_the_ways_a_server_can_read_in() {
        assert_eq!(names(Deed::Serve, &[]), ["blocking", "nowait_32", "pool_32", "tokio_32", "sendfile"]);
        assert_eq!(names(Deed::Serve, &["tokio", "uring"]), ["blocking", "tokio_32"]);
    }

    #[test]
    fn names_are_unique() {
        for deed in [Deed::Write, Deed::Read, Deed::RandomRead, Deed::AppendSync, Deed::Serve] {
            let all: Vec<String> = names(deed, &MODELS);
            let unique: std::collections::HashSet<_> = all.iter().collect();
            assert_eq!(unique.len(), all.len());
        }
    }
}
