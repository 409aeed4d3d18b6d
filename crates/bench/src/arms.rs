//! The arms of each workload: I/O models with their parameters, under the names that reports print.

use fathom_io::Model;
use fathom_io::uring::Completion;

use crate::ArmName;
use crate::lang::{self, Lang};
use crate::sample::AccessHint;
use crate::sample::serve::CONNECTIONS;
use crate::workload::{CONTROL, NULL};
use crate::{ArmNumbers, Workload};

/// An I/O model with its parameters: one way of executing a cell's workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// `rust`, a language of the playground, or `control`.
    pub lang: &'static str,
    /// The name in reports.
    pub name: String,
    /// The I/O model; `None` for threads of a runtime in another language, and for the loop without
    /// calls.
    pub model: Option<Model>,
    /// The playground program and its method, for an arm in another language.
    pub playground: Option<(Lang, lang::PlaygroundArm)>,
    /// Number of threads.
    pub threads: usize,
    /// Operations each thread keeps in flight.
    pub depth: usize,
    /// Operations submitted at once.
    pub batch: usize,
    /// The way of waiting for completions.
    pub completion: Completion,
    /// The hint to the kernel that gives the arm its name; `None` for the usual one of the
    /// cell.
    pub hint: Option<AccessHint>,
    /// Messages that may wait for the consumer of a gatherer; 0 for a walk without a consumer.
    pub backlog: usize,
}

/// The arm of random reads without a hint: the kernel reads ahead.
const READ_AHEAD: &str = "blocking_readahead";

/// The value of [`crate::Row::model`] for threads of a runtime, as in Go and Java.
const GREEN_THREADS: &str = "green-threads";

impl Arm {
    fn new(name: impl Into<String>, model: Model) -> Self {
        let completion = Completion::Wait;
        let name = name.into();
        Self {
            lang: "rust",
            name,
            model: Some(model),
            playground: None,
            threads: 1,
            depth: 1,
            batch: 1,
            completion,
            hint: None,
            backlog: 0,
        }
    }

    /// Builds the arm of a playground program.
    #[must_use]
    pub fn of(lang: Lang, arm: lang::PlaygroundArm, workload: Workload) -> Self {
        let mut built = Self { model: arm.method.model(), ..Self::new(arm.name(workload), Model::Sync) };
        (built.lang, built.playground) = (lang.name(), Some((lang, arm)));
        let size = |number: u32| number as usize;
        (built.threads, built.depth, built.batch) = (size(arm.threads), size(arm.depth), size(arm.batch));
        built.completion = if arm.spins { Completion::Spin } else { Completion::Wait };
        built
    }

    /// Builds the control arm: dd, which writes zeros.
    #[must_use]
    pub fn control() -> Self {
        Self { lang: CONTROL, ..Self::new("dd", Model::Sync) }
    }

    /// Builds the loop of Rust without its calls.
    #[must_use]
    pub fn null() -> Self {
        Self { model: None, ..Self::new(NULL, Model::Sync) }
    }

    /// Returns this arm as it is without a hint not to read ahead.
    #[must_use]
    pub fn with_read_ahead(&self) -> Self {
        Self { name: READ_AHEAD.to_owned(), hint: Some(AccessHint::Normal), ..self.clone() }
    }

    /// Returns this arm with calls that poll the device.
    #[must_use]
    pub fn with_polled_calls(&self) -> Self {
        let hint = AccessHint::HighPriority;
        Self { name: format!("{}_{}", self.name, hint.name()), hint: Some(hint), ..self.clone() }
    }

    /// Returns whether this arm is the loop without its calls, whose time is no answer.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.name == NULL
    }

    /// Returns whether this arm is a control program, which does not write the data pattern.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.lang == CONTROL
    }

    /// Returns language and name.
    #[must_use]
    pub fn full_name(&self) -> ArmName {
        ArmName::new(self.lang, &self.name)
    }

    fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    fn with_depth(mut self, depth: usize, batch: usize) -> Self {
        (self.depth, self.batch) = (depth, batch);
        self
    }

    /// Returns the value of [`crate::Row::model`].
    #[must_use]
    pub fn model_name(&self) -> &'static str {
        if self.is_null() { NULL } else { self.model.map_or(GREEN_THREADS, Model::name) }
    }

    /// Returns whether the operations go through io_uring.
    #[must_use]
    pub fn is_ring(&self) -> bool {
        matches!(self.model, Some(Model::Uring(_) | Model::UringRegistered | Model::UringPolled))
    }

    /// Returns the value of the `wait` column.
    #[must_use]
    pub fn wait_name(&self) -> &'static str {
        match self.completion {
            Completion::Wait => "wait",
            Completion::Spin => "spin",
            Completion::Adaptive => "adaptive",
        }
    }
}

/// Returns the arms of the published comparison of writes (io-playground), extended by 100 threads
/// with one-entry rings, the control that the publication lacked.
fn published() -> Vec<Arm> {
    let mut arms = vec![Arm::new("blocking", Model::Sync)];
    for threads in [1, 10, 100] {
        arms.push(Arm::new(format!("{threads}_threads_pwrite"), Model::Threads(None)).with_threads(threads));
    }
    for threads in [1, 10, 100] {
        for entries in [1, 128] {
            let name = format!("{threads}_threads_iouring_pwrite_{entries}_entries");
            arms.push(Arm::new(name, Model::Uring(None)).with_threads(threads).with_depth(entries, entries));
        }
    }
    arms
}

/// Returns one arm of each other model, and io_uring arms that differ in how they wait for
/// completions.
fn other_models() -> Vec<Arm> {
    let spin = Arm { completion: Completion::Spin, ..Arm::new("iouring_spin_1", Model::Uring(None)) };
    let adaptive =
        Arm { completion: Completion::Adaptive, ..Arm::new("iouring_adaptive_1", Model::Uring(None)) };
    vec![
        spin,
        adaptive,
        Arm::new("iouring_registered_32", Model::UringRegistered).with_depth(32, 8),
        Arm::new("iouring_polled_32", Model::UringPolled).with_depth(32, 8),
        Arm::new("pool_1", Model::Pool),
        Arm::new("pool_32", Model::Pool).with_depth(32, 1),
        Arm::new("pool_32_batched", Model::Pool).with_depth(32, 8),
        Arm::new("nowait_32", Model::Nowait).with_depth(32, 1),
        Arm::new("tokio_1", Model::Tokio),
        Arm::new("tokio_32", Model::Tokio).with_depth(32, 1),
        Arm::new("mmap", Model::Mmap),
        Arm::new("aio_1", Model::Aio),
        Arm::new("aio_32", Model::Aio).with_depth(32, 8),
    ]
}

/// Returns the arms of `workload` for reads, or for an existing file: blocking, threads, and
/// io_uring at increasing depths.
fn deepening(workload: Workload) -> Vec<Arm> {
    let mut arms = vec![Arm::new("blocking", Model::Sync)];
    for threads in [1, 8, 32, 128] {
        let name = format!("{threads}_threads{}", workload.call_suffix());
        arms.push(Arm::new(name, Model::Threads(None)).with_threads(threads));
    }
    for depth in [1, 8, 32, 128] {
        arms.push(Arm::new(format!("iouring_{depth}"), Model::Uring(None)).with_depth(depth, depth.min(32)));
    }
    arms
}

/// Returns the arms of `workload` that differ from `blocking` in a hint for the page cache alone.
fn hinted(workload: Workload) -> Vec<Arm> {
    let hints: &[AccessHint] = match workload {
        Workload::Read => &[AccessHint::Sequential, AccessHint::WillNeed, AccessHint::DontCache],
        Workload::Write | Workload::RandomWrite => &[AccessHint::DontCache],
        _ => &[],
    };
    let arm = |hint: &AccessHint| Arm {
        hint: Some(*hint),
        ..Arm::new(format!("blocking_{}", hint.name()), Model::Sync)
    };
    hints.iter().map(arm).collect()
}

/// Returns one arm of each model of a walk. The first is the baseline; it is called `blocking`, as
/// in all other workloads.
fn walking() -> Vec<Arm> {
    let mut arms = vec![Arm::new("blocking", Model::Sync)];
    for threads in [2, 8, 32, 128] {
        arms.push(Arm::new(format!("{threads}_threads"), Model::Threads(None)).with_threads(threads));
    }
    arms.push(Arm::new("async_seq", Model::AsyncSeq));
    arms.push(Arm::new("async_par", Model::AsyncPar));
    for depth in [32, 128] {
        arms.push(Arm::new(format!("iouring_{depth}"), Model::Uring(None)).with_depth(depth, 1));
    }
    arms.push(Arm::new("auto", Model::Auto));
    arms
}

/// Returns the arms for reading files of one block each.
fn small_files() -> Vec<Arm> {
    let mut arms = vec![Arm::new("blocking", Model::Sync)];
    for threads in [2, 8, 32] {
        arms.push(Arm::new(format!("{threads}_threads"), Model::Threads(None)).with_threads(threads));
    }
    arms.extend([1, 32].map(|depth| Arm::new(format!("tokio_{depth}"), Model::Tokio).with_depth(depth, 1)));
    arms
}

/// Returns further arms for reading files of one block each: the models of the server's file I/O.
fn small_files_beneath() -> Vec<Arm> {
    let models = [
        ("auto_32", Model::Auto),
        ("nowait_32", Model::Nowait),
        ("pool_32", Model::Pool),
        ("iouring_32", Model::Uring(None)),
    ];
    models.map(|(name, model)| Arm::new(name, model).with_depth(32, 1)).into()
}

/// Threads of the server's pool that may wait for one device.
const SERVE_POOL_THREADS: usize = 32;

/// Returns one arm of each model of `fathom serve`. The first is the baseline; it is called
/// `blocking`, as in all other workloads.
fn serving() -> Vec<Arm> {
    let with_pool = |name, model| Arm::new(name, model).with_depth(SERVE_POOL_THREADS, 1);
    vec![
        Arm::new("blocking", Model::Sync),
        // With the pool of a server without options.
        Arm::new("auto", Model::Auto),
        with_pool("nowait_32", Model::Nowait),
        with_pool("pool_32", Model::Pool),
        with_pool("tokio_32", Model::Tokio),
        Arm::new("sendfile", Model::Sendfile),
        // Each connection has at most one operation in the ring.
        Arm::new("iouring_64", Model::Uring(None)).with_depth(CONNECTIONS, 1),
    ]
}

/// Returns the arms for copies: one through a user-space buffer, three inside the kernel.
fn copying() -> Vec<Arm> {
    vec![
        Arm::new("blocking", Model::Sync),
        Arm::new("copy_file_range", Model::CopyFileRange),
        Arm::new("sendfile", Model::Sendfile),
        Arm::new("splice", Model::Splice),
    ]
}

/// Returns the Rust arms of `workload` with the numbers that the user lists: the baseline, and each
/// of `models`, or threads and rings, with every combination that it has.
#[must_use]
pub fn own_arms(workload: Workload, models: &[Model], numbers: &ArmNumbers) -> Vec<Arm> {
    let usual = [Model::Threads(None), Model::Uring(None)];
    let models = if models.is_empty() { &usual[..] } else { models };
    let distinct = models.iter().enumerate().filter(|(at, model)| !models[..*at].contains(model));
    let suitable = distinct
        .map(|(_, model)| model)
        .filter(|model| model.has(workload.wanted()) && **model != Model::Sync);
    let others = suitable.flat_map(|model| own_arms_of(*model, workload, numbers));
    std::iter::once(Arm::new("blocking", Model::Sync)).chain(others).collect()
}

/// Returns the arms that send entries to a consumer, with each combination of threads and backlog.
fn gatherers(numbers: &ArmNumbers) -> Vec<Arm> {
    let arm = |threads: u32, backlog: u32| {
        let name = format!("{threads}_threads_{backlog}_backlog");
        let arm = Arm::new(name, Model::Threads(None)).with_threads(threads as usize);
        Arm { backlog: backlog as usize, ..arm }
    };
    let threads = numbers.threads();
    threads.flat_map(|threads| numbers.backlogs().map(move |backlog| arm(threads, backlog))).collect()
}

fn own_arms_of(model: Model, workload: Workload, numbers: &ArmNumbers) -> Vec<Arm> {
    let size = |number: u32| number as usize;
    let of_rings = numbers.of_rings_for(workload);
    let completion = if of_rings.spins { Completion::Spin } else { Completion::Wait };
    match model {
        Model::Threads(_) if workload.is_of_tree() && !numbers.backlogs.is_empty() => gatherers(numbers),
        Model::Threads(_) => numbers
            .threads()
            .map(|threads| {
                let name = format!("{threads}_threads{}", workload.call_suffix());
                Arm::new(name, model).with_threads(size(threads))
            })
            .collect(),
        Model::Uring(_) | Model::UringRegistered | Model::UringPolled => of_rings
            .of_rings()
            .into_iter()
            .map(|(threads, depth, batch)| {
                let kind = match model {
                    Model::UringRegistered => "_registered",
                    Model::UringPolled => "_polled",
                    _ => "",
                };
                let spin = if of_rings.spins { "_spin" } else { "" };
                let name = ArmNumbers::queue_name("iouring", threads, depth, batch);
                let name = format!("{name}{kind}{spin}");
                let arm = Arm::new(name, model).with_threads(size(threads));
                Arm { completion, ..arm.with_depth(size(depth), size(batch)) }
            })
            .collect(),
        Model::Aio => of_rings
            .of_rings()
            .into_iter()
            .map(|(threads, depth, batch)| {
                let name = ArmNumbers::queue_name("aio", threads, depth, batch);
                Arm::new(name, model).with_threads(size(threads)).with_depth(size(depth), size(batch))
            })
            .collect(),
        Model::Pool | Model::Nowait | Model::Tokio => {
            let arm = |depth| Arm::new(format!("{}_{depth}", model.name()), model).with_depth(size(depth), 1);
            numbers.depths().map(arm).collect()
        }
        _ => vec![Arm::new(model.name(), model)],
    }
}

/// Returns the Rust arms of `workload`. `models` restricts them to these models and the baseline;
/// if it is empty, the result is the default selection.
#[must_use]
pub fn arms(workload: Workload, models: &[Model]) -> Vec<Arm> {
    let usual = match workload {
        Workload::Write => published(),
        Workload::Read | Workload::RandomRead | Workload::RandomWrite | Workload::Mixed => {
            deepening(workload)
        }
        Workload::Walk | Workload::Stat => walking(),
        Workload::SmallFiles => small_files(),
        Workload::Serve => serving(),
        Workload::Copy => copying(),
        Workload::AppendSync => {
            vec![Arm::new("blocking", Model::Sync), Arm::new("iouring_1", Model::Uring(None))]
        }
    };
    let alone = |arm: &Arm| workload != Workload::AppendSync || (arm.threads == 1 && arm.depth == 1);
    let of_bytes = !(workload.is_of_tree() || workload.is_of_small_files() || workload == Workload::Copy);
    let other_models = match workload {
        Workload::SmallFiles => small_files_beneath(),
        _ if of_bytes => other_models(),
        _ => Vec::new(),
    };
    let all = usual.iter().cloned().chain(hinted(workload)).chain(other_models).filter(alone);
    if models.is_empty() {
        let usual_names: Vec<&str> = usual.iter().map(|arm| arm.name.as_str()).collect();
        let more = if matches!(workload, Workload::Write | Workload::SmallFiles) { 0 } else { usize::MAX };
        let other_models = all.filter(|arm| !usual_names.contains(&arm.name.as_str())).take(more);
        return usual.iter().cloned().chain(other_models).collect();
    }
    all.filter(|arm| arm.name == "blocking" || arm.model.is_some_and(|model| models.contains(&model)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(workload: Workload, models: &[Model]) -> Vec<String> {
        arms(workload, models).into_iter().map(|arm| arm.name).collect()
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
        assert_eq!(names(Workload::Write, &[]), expected);
    }

    #[test]
    fn every_model_can_be_named_and_brings_the_baseline() {
        for model in Model::ALL {
            let mut found = 0;
            for workload in [
                Workload::Write,
                Workload::Read,
                Workload::RandomRead,
                Workload::RandomWrite,
                Workload::Mixed,
                Workload::Walk,
                Workload::Stat,
                Workload::SmallFiles,
                Workload::Serve,
                Workload::Copy,
            ] {
                let arms = arms(workload, &[model]);
                assert_eq!(arms[0].name, "blocking");
                assert!(arms[1..].iter().all(|arm| arm.model == Some(model)), "{model}");
                found += arms.iter().filter(|arm| arm.model == Some(model)).count();
            }
            assert!(found > 0, "{model}");
        }
        assert!(arms(Workload::AppendSync, &[]).iter().all(|arm| arm.threads == 1 && arm.depth == 1));
    }

    #[test]
    fn listed_numbers_make_every_combination() {
        let numbers = ArmNumbers {
            threads: vec![1, 8],
            depths: vec![1, 32],
            batches: vec![1, 128],
            spins: true,
            ..ArmNumbers::default()
        };
        let names = |workload, models: &[Model]| -> Vec<String> {
            own_arms(workload, models, &numbers).into_iter().map(|arm| arm.name).collect()
        };
        assert_eq!(
            names(Workload::Read, &[]),
            [
                "blocking",
                "1_threads_pread",
                "8_threads_pread",
                "1_threads_iouring_1_entries_1_at_once_spin",
                "1_threads_iouring_32_entries_1_at_once_spin",
                "1_threads_iouring_32_entries_32_at_once_spin",
                "8_threads_iouring_1_entries_1_at_once_spin",
                "8_threads_iouring_32_entries_1_at_once_spin",
                "8_threads_iouring_32_entries_32_at_once_spin",
            ]
        );
        assert_eq!(
            names(Workload::Write, &[Model::Pool, Model::Mmap]),
            ["blocking", "pool_1", "pool_32", "mmap"]
        );
        assert_eq!(names(Workload::Copy, &[Model::Pool]), ["blocking"], "no such model for a copy");
        let all: Vec<String> = names(Workload::Read, &Model::ALL);
        let unique: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(unique.len(), all.len());
        for arm in crate::lang::Lang::C.arms(Workload::Read, &numbers) {
            let name = arm.name(Workload::Read);
            assert!(name == NULL || all.contains(&name), "{name}");
        }
    }

    #[test]
    fn hints_are_arms_of_blocking_calls() {
        let hinted = ["blocking", "blocking_sequential", "blocking_willneed", "blocking_dontcache"];
        assert_eq!(names(Workload::Read, &[Model::Sync]), hinted);
        assert!(hinted.iter().all(|name| names(Workload::Read, &[]).iter().any(|known| known == name)));
        // The published comparison has none.
        assert_eq!(names(Workload::Write, &[Model::Sync]), ["blocking", "blocking_dontcache"]);
        assert_eq!(names(Workload::RandomRead, &[Model::Sync]), ["blocking"]);
        let advised = |arm: &Arm| arm.hint == Some(AccessHint::WillNeed) && arm.threads == 1;
        assert_eq!(arms(Workload::Read, &[]).into_iter().filter(advised).count(), 1);
    }

    #[test]
    fn serving_has_one_arm_of_each_model() {
        assert_eq!(
            names(Workload::Serve, &[]),
            ["blocking", "auto", "nowait_32", "pool_32", "tokio_32", "sendfile", "iouring_64"]
        );
        assert_eq!(
            names(Workload::Serve, &[Model::Tokio, Model::Uring(None)]),
            ["blocking", "tokio_32", "iouring_64"]
        );
    }

    #[test]
    fn models_of_the_server_read_small_files_on_request() {
        assert_eq!(
            names(Workload::SmallFiles, &[Model::Auto, Model::Pool]),
            ["blocking", "auto_32", "pool_32"]
        );
        assert!(!names(Workload::SmallFiles, &[]).contains(&"auto_32".to_owned()));
    }

    #[test]
    fn names_are_unique() {
        for workload in [
            Workload::Write,
            Workload::Read,
            Workload::RandomRead,
            Workload::RandomWrite,
            Workload::Mixed,
            Workload::AppendSync,
            Workload::SmallFiles,
            Workload::Serve,
        ] {
            let all: Vec<String> = names(workload, &Model::ALL);
            let unique: std::collections::HashSet<_> = all.iter().collect();
            assert_eq!(unique.len(), all.len());
        }
    }
}
