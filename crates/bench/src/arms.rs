//! The arms of each workload: I/O models with their parameters, under the names that reports print:
//! the name of the model and its number, as `--io` spells them, then the parts in which the arm
//! differs from others: `uring=128:threads=10:batch=1:spin`.

use std::fmt::Display;

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

/// The arm with which all others are compared, in every workload and language: blocking calls in
/// one thread.
pub const BASELINE: &str = Model::Sync.name();

/// The last part of the name of random reads without a hint: the kernel reads ahead.
const READ_AHEAD: &str = "readahead";

/// Operations that a ring submits at once, unless its name has another number.
pub(crate) const RING_BATCH_MAX: usize = 32;

/// The value of [`crate::Row::model`] for threads of a runtime, as in Go and Java.
const GREEN_THREADS: &str = "green-threads";

impl Arm {
    /// Builds an arm of blocking calls, or of a model without numbers, with the name of the model.
    fn new(model: Model) -> Self {
        let completion = Completion::Wait;
        Self {
            lang: "rust",
            name: model.name().to_owned(),
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
    pub fn of(lang: Lang, arm: lang::PlaygroundArm) -> Self {
        let mut built = Self { model: arm.method.model(), name: arm.name(), ..Self::new(Model::Sync) };
        (built.lang, built.playground) = (lang.name(), Some((lang, arm)));
        let size = |number: u32| number as usize;
        (built.threads, built.depth, built.batch) = (size(arm.threads), size(arm.depth), size(arm.batch));
        built.completion = if arm.spins { Completion::Spin } else { Completion::Wait };
        built
    }

    /// Builds the control arm: dd, which writes zeros.
    #[must_use]
    pub fn control() -> Self {
        Self { lang: CONTROL, name: "dd".to_owned(), ..Self::new(Model::Sync) }
    }

    /// Builds the loop of Rust without its calls.
    #[must_use]
    pub fn null() -> Self {
        Self { model: None, name: NULL.to_owned(), ..Self::new(Model::Sync) }
    }

    /// Returns this arm as it is without a hint not to read ahead.
    #[must_use]
    pub fn with_read_ahead(&self) -> Self {
        Self { hint: Some(AccessHint::Normal), ..self.clone().part(READ_AHEAD) }
    }

    /// Returns this arm with calls that poll the device.
    #[must_use]
    pub fn with_polled_calls(&self) -> Self {
        self.clone().with_hint(AccessHint::HighPriority)
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

    /// Adds a part to the name.
    fn part(mut self, part: impl Display) -> Self {
        self.name = format!("{}:{part}", self.name);
        self
    }

    /// Builds threads of `model` with a partition each.
    fn threads(threads: usize) -> Self {
        let model = Model::Threads(None);
        Self { name: format!("{}={threads}", model.name()), threads, ..Self::new(model) }
    }

    /// Builds an arm of `model` with up to `depth` operations in flight. If it submits several of
    /// them at once, those are [`RING_BATCH_MAX`] at most.
    fn deep(model: Model, depth: usize) -> Self {
        Self { name: format!("{}={depth}", model.name()), depth, ..Self::new(model) }
    }

    /// Builds a ring that submits as many of `depth` operations at once as rings usually do.
    fn ring(model: Model, depth: usize) -> Self {
        Self { batch: depth.min(RING_BATCH_MAX), ..Self::deep(model, depth) }
    }

    /// Sets the number of threads of a model that has another number in its name.
    fn in_threads(self, threads: usize) -> Self {
        let named = if threads == 1 { self } else { self.part(format_args!("threads={threads}")) };
        Self { threads, ..named }
    }

    /// Sets the number of operations that are submitted at once.
    fn with_batch(self, batch: usize) -> Self {
        let named = if batch == self.batch { self } else { self.part(format_args!("batch={batch}")) };
        Self { batch, ..named }
    }

    fn with_completion(self, completion: Completion) -> Self {
        let named = match completion {
            Completion::Wait => self,
            Completion::Spin => self.part("spin"),
            Completion::Adaptive => self.part("adaptive"),
        };
        Self { completion, ..named }
    }

    fn with_hint(self, hint: AccessHint) -> Self {
        Self { hint: Some(hint), ..self.part(hint.name()) }
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
    let counts = [1, 10, 100];
    let rings = counts.iter().flat_map(|threads| [1, 128].map(|entries| (*threads, entries)));
    let ring =
        |(threads, entries)| Arm::ring(Model::Uring(None), entries).in_threads(threads).with_batch(entries);
    std::iter::once(Arm::new(Model::Sync)).chain(counts.map(Arm::threads)).chain(rings.map(ring)).collect()
}

/// Returns one arm of each other model, and io_uring arms that differ in how they wait for
/// completions.
fn other_models() -> Vec<Arm> {
    let ring = || Arm::ring(Model::Uring(None), 1);
    vec![
        ring().with_completion(Completion::Spin),
        ring().with_completion(Completion::Adaptive),
        Arm::ring(Model::UringRegistered, 32).with_batch(8),
        Arm::ring(Model::UringPolled, 32).with_batch(8),
        Arm::deep(Model::Pool, 1),
        Arm::deep(Model::Pool, 32),
        Arm::deep(Model::Pool, 32).with_batch(8),
        Arm::deep(Model::Nowait, 32),
        Arm::deep(Model::Tokio, 1),
        Arm::deep(Model::Tokio, 32),
        Arm::new(Model::Mmap),
        Arm::ring(Model::Aio, 1),
        Arm::ring(Model::Aio, 32).with_batch(8),
    ]
}

/// Returns the arms for reads, or for an existing file: blocking, threads, and io_uring at
/// increasing depths.
fn deepening() -> Vec<Arm> {
    let numbers = [1, 8, 32, 128];
    let rings = numbers.map(|depth| Arm::ring(Model::Uring(None), depth));
    std::iter::once(Arm::new(Model::Sync)).chain(numbers.map(Arm::threads)).chain(rings).collect()
}

/// Returns the arms of `workload` that differ from the baseline in a hint for the page cache alone.
fn hinted(workload: Workload) -> Vec<Arm> {
    let hints: &[AccessHint] = match workload {
        Workload::Read => &[AccessHint::Sequential, AccessHint::WillNeed, AccessHint::DontCache],
        Workload::Write | Workload::RandomWrite => &[AccessHint::DontCache],
        _ => &[],
    };
    hints.iter().map(|hint| Arm::new(Model::Sync).with_hint(*hint)).collect()
}

/// Returns one arm of each model of a walk.
fn walking() -> Vec<Arm> {
    let mut arms = vec![Arm::new(Model::Sync)];
    arms.extend([2, 8, 32, 128].map(Arm::threads));
    arms.extend([Model::AsyncSeq, Model::AsyncPar].map(Arm::new));
    arms.extend([32, 128].map(|depth| Arm::deep(Model::Uring(None), depth)));
    arms.push(Arm::new(Model::Auto));
    arms
}

/// Returns the arms for reading files of one block each.
fn small_files() -> Vec<Arm> {
    let mut arms = vec![Arm::new(Model::Sync)];
    arms.extend([2, 8, 32].map(Arm::threads));
    arms.extend([1, 32].map(|depth| Arm::deep(Model::Tokio, depth)));
    arms
}

/// Returns further arms for reading files of one block each: the models of the server's file I/O.
fn small_files_beneath() -> Vec<Arm> {
    [Model::Auto, Model::Nowait, Model::Pool, Model::Uring(None)].map(|model| Arm::deep(model, 32)).into()
}

/// Threads of the server's pool that may wait for one device.
const SERVE_POOL_THREADS: usize = 32;

/// Returns one arm of each model of `fathom serve`.
fn serving() -> Vec<Arm> {
    let with_pool = |model| Arm::deep(model, SERVE_POOL_THREADS);
    vec![
        Arm::new(Model::Sync),
        // With the pool of a server without options.
        Arm::new(Model::Auto),
        with_pool(Model::Nowait),
        with_pool(Model::Pool),
        with_pool(Model::Tokio),
        Arm::new(Model::Sendfile),
        // Each connection has at most one operation in the ring.
        Arm::deep(Model::Uring(None), CONNECTIONS),
    ]
}

/// Returns the arms for copies: one through a user-space buffer, three inside the kernel.
fn copying() -> Vec<Arm> {
    [Model::Sync, Model::CopyFileRange, Model::Sendfile, Model::Splice].map(Arm::new).into()
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
    std::iter::once(Arm::new(Model::Sync)).chain(others).collect()
}

/// Returns the arms that send entries to a consumer, with each combination of threads and backlog.
fn gatherers(numbers: &ArmNumbers) -> Vec<Arm> {
    let arm = |threads: u32, backlog: u32| Arm {
        backlog: backlog as usize,
        ..Arm::threads(threads as usize).part(format_args!("backlog={backlog}"))
    };
    let threads = numbers.threads();
    threads.flat_map(|threads| numbers.backlogs().map(move |backlog| arm(threads, backlog))).collect()
}

fn own_arms_of(model: Model, workload: Workload, numbers: &ArmNumbers) -> Vec<Arm> {
    let has_batches = !workload.is_of_tree() && !workload.is_of_small_files();
    match model {
        Model::Threads(_) if workload.is_of_tree() && !numbers.backlogs.is_empty() => gatherers(numbers),
        Model::Threads(_) => numbers.threads().map(|threads| Arm::threads(threads as usize)).collect(),
        Model::Uring(_) | Model::UringRegistered | Model::UringPolled | Model::Aio => {
            let of_rings = numbers.of_rings_for(workload);
            let completion =
                if of_rings.spins && model != Model::Aio { Completion::Spin } else { Completion::Wait };
            let ring = |(threads, depth, batch): (u32, u32, u32)| {
                let (threads, depth, batch) = (threads as usize, depth as usize, batch as usize);
                let arm = if has_batches { Arm::ring(model, depth) } else { Arm::deep(model, depth) };
                arm.in_threads(threads).with_batch(batch).with_completion(completion)
            };
            of_rings.of_rings().into_iter().map(ring).collect()
        }
        Model::Pool | Model::Nowait | Model::Tokio => {
            numbers.depths().map(|depth| Arm::deep(model, depth as usize)).collect()
        }
        _ => vec![Arm::new(model)],
    }
}

/// Returns the Rust arms of `workload`. `models` restricts them to these models and the baseline;
/// if it is empty, the result is the default selection.
#[must_use]
pub fn arms(workload: Workload, models: &[Model]) -> Vec<Arm> {
    let usual = match workload {
        Workload::Write => published(),
        Workload::Read | Workload::RandomRead | Workload::RandomWrite | Workload::Mixed => deepening(),
        Workload::Walk | Workload::Stat => walking(),
        Workload::SmallFiles => small_files(),
        Workload::Serve => serving(),
        Workload::Copy => copying(),
        Workload::AppendSync => {
            vec![Arm::new(Model::Sync), Arm::ring(Model::Uring(None), 1)]
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
    all.filter(|arm| arm.name == BASELINE || arm.model.is_some_and(|model| models.contains(&model))).collect()
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
            "sync",
            "threads=1",
            "threads=10",
            "threads=100",
            "uring=1",
            "uring=128:batch=128",
            "uring=1:threads=10",
            "uring=128:threads=10:batch=128",
            "uring=1:threads=100",
            "uring=128:threads=100:batch=128",
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
                assert_eq!(arms[0].name, "sync");
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
                "sync",
                "threads=1",
                "threads=8",
                "uring=1:spin",
                "uring=32:batch=1:spin",
                "uring=32:spin",
                "uring=1:threads=8:spin",
                "uring=32:threads=8:batch=1:spin",
                "uring=32:threads=8:spin",
            ]
        );
        assert_eq!(
            names(Workload::Write, &[Model::Pool, Model::Mmap]),
            ["sync", "pool=1", "pool=32", "mmap"]
        );
        assert_eq!(names(Workload::Copy, &[Model::Pool]), ["sync"], "no such model for a copy");
        let all: Vec<String> = names(Workload::Read, &Model::ALL);
        let unique: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(unique.len(), all.len());
        for arm in crate::lang::Lang::C.arms(Workload::Read, &numbers) {
            let name = arm.name();
            assert!(name == NULL || all.contains(&name), "{name}");
        }
    }

    #[test]
    fn hints_are_arms_of_blocking_calls() {
        let hinted = ["sync", "sync:sequential", "sync:willneed", "sync:dontcache"];
        assert_eq!(names(Workload::Read, &[Model::Sync]), hinted);
        assert!(hinted.iter().all(|name| names(Workload::Read, &[]).iter().any(|known| known == name)));
        // The published comparison has none.
        assert_eq!(names(Workload::Write, &[Model::Sync]), ["sync", "sync:dontcache"]);
        assert_eq!(names(Workload::RandomRead, &[Model::Sync]), ["sync"]);
        let advised = |arm: &Arm| arm.hint == Some(AccessHint::WillNeed) && arm.threads == 1;
        assert_eq!(arms(Workload::Read, &[]).into_iter().filter(advised).count(), 1);
    }

    #[test]
    fn serving_has_one_arm_of_each_model() {
        assert_eq!(
            names(Workload::Serve, &[]),
            ["sync", "auto", "nowait=32", "pool=32", "tokio=32", "sendfile", "uring=64"]
        );
        assert_eq!(
            names(Workload::Serve, &[Model::Tokio, Model::Uring(None)]),
            ["sync", "tokio=32", "uring=64"]
        );
    }

    #[test]
    fn models_of_the_server_read_small_files_on_request() {
        assert_eq!(names(Workload::SmallFiles, &[Model::Auto, Model::Pool]), ["sync", "auto=32", "pool=32"]);
        assert!(!names(Workload::SmallFiles, &[]).contains(&"auto=32".to_owned()));
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
