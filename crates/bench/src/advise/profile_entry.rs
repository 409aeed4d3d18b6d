//! Conversion of advice to a profile entry, from which `--io auto` starts.

use super::{Advice, Verdict};
use crate::profile::{Filesystem, HostConditions, ProfileEntry, ServeSettings, VALID};

impl Advice {
    /// Converts the advice to the profile entry of `filesystem`.
    #[must_use]
    pub fn entry(&self, filesystem: Filesystem, here: &HostConditions) -> ProfileEntry {
        ProfileEntry {
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

    /// Returns the settings of a server, if a gain over blocking calls is shown. The verdict on
    /// cold files takes precedence: a read that waits for the storage delays the other requests.
    fn serve(&self) -> Option<ServeSettings> {
        let of = |cache: &str| self.verdicts.iter().find(|one| one.workload == "serve" && one.cache == cache);
        let Verdict { model, depth, ratio, .. } = of("cold").or_else(|| of("warm"))?;
        ratio.filter(|ratio| ratio.high < 1.0)?;
        Some(ServeSettings { model: model.to_owned(), pool_threads: *depth })
    }
}
