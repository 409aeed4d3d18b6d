//! Advice as an entry of a profile, which `--io auto` starts from.

use super::{Advice, Verdict};
use crate::profile::{Entry, Filesystem, Here, Serve, VALID};

impl Advice {
    /// What a profile keeps of it, for the filesystem it was asked on.
    #[must_use]
    pub fn entry(&self, filesystem: Filesystem, here: &Here) -> Entry {
        Entry {
            filesystem,
            kernel: here.kernel.clone(),
            cpus: here.cpus,
            program: self.run.program.clone(),
            measured: here.now,
            expires: here.now + VALID,
            walk_in_flight: self.walk_in_flight,
            serve: self.serve(),
            verdict: self.sentence.clone(),
        }
    }

    /// What a server should do: that which is good for files that are not cached, because it is those that others wait for.
    fn serve(&self) -> Option<Serve> {
        let of = |cache: &str| self.verdicts.iter().find(|one| one.workload == "serve" && one.cache == cache);
        let Verdict { model, depth, .. } = of("cold").or_else(|| of("warm"))?;
        let model = if model == "blocking" { "sync" } else { model };
        Some(Serve { model: model.to_owned(), pool_threads: *depth })
    }
}
