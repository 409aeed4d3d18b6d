//! Where samples are made: the file is brought into the state the cell asks for and that is certified, a process of its own does the
//! work, and an independent reader looks at what came of it.
//!
//! Owns: the directory with the files, their state, the generation of the data. Does not own: which sample is next, how processes are
//! started, what counts.

mod cache;
mod cell;
mod noise;
mod punt;
mod room;
mod tree;
mod verify;

use std::io;
use std::path::{Path, PathBuf};

pub use cell::{Cache, Cell};
pub(crate) use punt::writes_are_handed_over;
pub use room::Room;
pub(crate) use tree::stays_warm;

use crate::Row;
use crate::arms::Arm;
use crate::lang::Answer;
use crate::pattern::Pattern;
use crate::sample::{Deed, Spec, copy_of, small};
use crate::{Error, Op};
use noise::Ticks;

/// Who starts the process of a sample.
pub trait Start {
    /// Has the program of `arm` do what `spec` says.
    ///
    /// # Errors
    /// With [`Op::Start`] if the arm cannot run here, with another operation if it fails.
    fn start(&mut self, arm: &Arm, spec: &Spec) -> Result<Answer, Error>;
}

/// Of many small files, so many are asked for: to open one has its inode read, which should stay cold.
const FILES_ASKED: u64 = 8;

/// A directory with the files of one cell. They are removed when it is dropped.
#[derive(Debug)]
pub struct Lab {
    dir: tempfile::TempDir,
    cell: Cell,
    generation: u64,
    /// The file that samples read has been written.
    is_written: bool,
    /// Whether a ring's buffered writes all go to a thread of the kernel's.
    hands_over: Option<bool>,
}

impl Lab {
    /// In a new directory below `place`.
    ///
    /// # Errors
    /// If that cannot be made.
    pub fn new(place: &Path, cell: Cell) -> Result<Self, Error> {
        let dir = tempfile::Builder::new().prefix(".fathom-bench-").tempdir_in(place);
        let dir = dir.map_err(|error| Error::new(Op::Prepare, place.display().to_string(), words(&error)))?;
        let hands_over = punt::writes_are_handed_over(dir.path());
        Ok(Self { dir, cell, generation: 1, is_written: false, hands_over })
    }

    /// Goes on with `cell` if that is asked of the same files, perhaps in another state; whether it is.
    pub fn turn_to(&mut self, cell: &Cell) -> bool {
        let is_same = self.cell.has_files_of(cell);
        if is_same {
            self.cell = cell.clone();
        }
        is_same
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn pattern(&self) -> Pattern {
        Pattern::new(self.cell.seed, self.generation)
    }

    /// Brings the file into the state in which a sample finds it; whether everything before is on the disk.
    fn prepare(&mut self) -> io::Result<bool> {
        let path = self.path();
        if self.is_tree() {
            return self.prepare_tree(&path);
        }
        if self.cell.deed == Deed::Copy {
            remove(&copy_of(&path))?;
        }
        if self.cell.deed.writes() {
            self.generation += 1;
            remove(&path)?;
        } else if !self.is_written {
            verify::write(&path, self.cell.size, &self.pattern())?;
            self.is_written = true;
        }
        let settled = noise::settle(self.dir.path())?;
        match self.cell.cache {
            Cache::Warm => cache::warm(&path)?,
            Cache::Cold => cache::cool(&path)?,
            Cache::Any => {}
        }
        Ok(settled)
    }

    /// Whether there are many files.
    fn is_tree(&self) -> bool {
        self.cell.deed.is_of_tree() || self.cell.deed.is_of_small_files()
    }

    fn prepare_tree(&mut self, path: &Path) -> io::Result<bool> {
        if !self.is_written {
            if self.cell.deed.is_of_small_files() {
                tree::make_small(path, self.cell.size, self.cell.block, &self.pattern())?;
            } else {
                tree::make(path, self.cell.files)?;
            }
            self.is_written = true;
        }
        let settled = noise::settle(self.dir.path())?;
        match self.cell.cache {
            Cache::Warm | Cache::Any => tree::warm(path, self.cell.deed.is_of_small_files())?,
            Cache::Cold => tree::cool()?,
        }
        Ok(settled)
    }

    /// What of the file, or of a few of many small files, is in the page cache. Of names and metadata, nobody tells.
    fn share(&self) -> Option<f64> {
        let share = |path: &Path| cache::share(path).ok().flatten();
        let Cell { deed, size, block, .. } = self.cell;
        if deed.is_of_tree() {
            return None;
        }
        if !deed.is_of_small_files() {
            return share(&self.path());
        }
        let files = size.div_ceil(block as u64);
        let asked = files.min(FILES_ASKED);
        let shares = (0..asked).map(|number| share(&small::file(&self.path(), number * files / asked)));
        Some(shares.sum::<Option<f64>>()? / asked as f64)
    }

    /// Makes a sample of `arm` in block `block`.
    ///
    /// # Errors
    /// With [`Op::Start`] if the arm cannot run here, with another operation if something fails or data is wrong.
    pub fn sample(&mut self, arm: &Arm, block: u32, program: &mut dyn Start) -> Result<Row, Error> {
        let path = self.path();
        let settled = self.prepare().map_err(|error| self.failed(Op::Prepare, error))?;
        let reads = !self.cell.deed.writes();
        let before = if reads { self.share() } else { None };
        let ticks = Ticks::now();
        let spec = self.cell.spec(arm, path.clone(), self.generation);
        let answer = program.start(arm, &spec)?;
        let steal = Ticks::now().stolen_since(ticks);
        let after = self.share();
        if let Some(what) = self.wrong(arm, &answer)? {
            return Err(Error::new(Op::Verify, arm.full_name().to_string(), what));
        }
        let mut row = self.row(arm, block, &answer);
        row.punted = self.punted(arm);
        (row.cached_before, row.cached_after, row.steal, row.verified) = (before, after, steal, true);
        if !settled {
            row.discarded = "the disk was still busy with earlier data".to_owned();
        }
        Ok(row)
    }

    /// What is wrong with what the sample has done.
    fn wrong(&self, arm: &Arm, answer: &Answer) -> Result<Option<String>, Error> {
        if self.cell.deed.is_of_tree() {
            return Ok(tree::wrong(self.cell.files, self.cell.deed, answer));
        }
        let size = self.cell.size;
        if answer.bytes != size {
            return Ok(Some(format!("{} bytes were moved instead of {size}", answer.bytes)));
        }
        if self.cell.deed == Deed::Copy {
            let copy = copy_of(&self.path());
            return verify::wrong(&copy, size, Some(&self.pattern()))
                .map_err(|error| self.failed(Op::Verify, error));
        }
        let whole_pages = size / crate::pattern::PAGE_BYTES as u64;
        let page_blocks = self.cell.block.is_multiple_of(crate::pattern::PAGE_BYTES);
        if !self.cell.deed.writes() {
            let missing = page_blocks && answer.pages_ok < whole_pages;
            return Ok(
                missing.then(|| format!("{} pages were checked instead of {whole_pages}", answer.pages_ok))
            );
        }
        let path = self.path();
        let pattern = (!arm.is_control()).then(|| self.pattern());
        verify::wrong(&path, size, pattern.as_ref()).map_err(|error| self.failed(Op::Verify, error))
    }

    fn punted(&self, arm: &Arm) -> Option<f64> {
        let buffered_write = self.cell.deed.writes() && !self.cell.direct && arm.model.starts_with("uring");
        buffered_write.then(|| self.hands_over.map(|all| f64::from(u8::from(all)))).flatten()
    }

    fn failed(&self, op: Op, error: io::Error) -> Error {
        Error::new(op, self.path().display().to_string(), error)
    }

    fn row(&self, arm: &Arm, block: u32, answer: &Answer) -> Row {
        let cell = &self.cell;
        let writes = (cell.deed.writes() || cell.deed == Deed::Copy) && !arm.is_control();
        let seconds = if cell.sync { answer.sync_s } else { answer.seconds };
        let of_tree = cell.deed.is_of_tree();
        let timed = !matches!(cell.deed, Deed::SmallFiles | Deed::Copy);
        let latency = |latency: f64| (timed && !of_tree && !arm.is_control()).then_some(latency);
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let sync = match cell.deed {
            Deed::AppendSync => "each",
            _ if cell.sync => "data",
            _ => "none",
        };
        Row {
            workload: cell.deed.name().to_owned(),
            lang: arm.lang.to_owned(),
            method: arm.name.clone(),
            model: arm.model.to_owned(),
            threads: count(arm.threads),
            depth: count(arm.depth),
            batch: count(arm.batch),
            wait: arm.wait().to_owned(),
            block_bytes: if of_tree { 0 } else { cell.block as u64 },
            size_bytes: if of_tree { 0 } else { cell.size },
            cache: cell.cache.name().to_owned(),
            direct: cell.direct,
            sync: sync.to_owned(),
            block,
            seconds,
            bytes_per_s: if of_tree { 0.0 } else { rate(answer.bytes, seconds) },
            cpu_s: answer.cpu_user_s + answer.cpu_sys_s,
            cpu_user_s: answer.cpu_user_s,
            cpu_sys_s: answer.cpu_sys_s,
            sync_s: writes.then_some(answer.sync_s),
            close_s: writes.then_some(answer.close_s),
            ops: answer.ops,
            ops_per_s: rate(answer.ops, seconds),
            in_flight_max: u32::try_from(answer.in_flight_max).unwrap_or(u32::MAX),
            p50_us: latency(answer.p50_us),
            p95_us: latency(answer.p95_us),
            p99_us: latency(answer.p99_us),
            max_us: latency(answer.max_us),
            switches: answer.switches,
            switches_forced: answer.switches_forced,
            ..Row::default()
        }
    }
}

/// `amount` by `seconds`; 0 where a clock says that no time has passed, because a run with a number that is none cannot be saved.
fn rate(amount: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount as f64 / seconds } else { 0.0 }
}

/// The system's words, without the path that was tried.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::execute;

    /// Executes samples in this process, and damages what they have written.
    struct Here<F>(F);

    impl<F: FnMut(&Path)> Start for Here<F> {
        fn start(&mut self, arm: &Arm, spec: &Spec) -> Result<Answer, Error> {
            let answer = execute(spec).map_err(|failure| Error::new(Op::Execute, &arm.name, failure))?;
            (self.0)(&spec.path);
            Ok(answer)
        }
    }

    fn cell(deed: Deed) -> Cell {
        let cache = if deed.writes() { Cache::Any } else { Cache::Warm };
        Cell { deed, size: 1 << 20, block: 4096, files: 1234, direct: false, sync: false, cache, seed: 9 }
    }

    fn cache_is_told(dir: &Path) -> bool {
        let path = dir.join("told");
        std::fs::write(&path, "x").unwrap();
        let told = cache::share(&path).unwrap().is_some();
        std::fs::remove_file(&path).unwrap();
        told
    }

    #[test]
    fn samples_of_every_arm_are_verified_rows() {
        let temp = tempfile::tempdir().unwrap();
        for deed in
            [Deed::Write, Deed::RandomRead, Deed::Walk, Deed::Stat, Deed::SmallFiles, Deed::Serve, Deed::Copy]
        {
            let mut lab = Lab::new(temp.path(), cell(deed)).unwrap();
            for arm in crate::arms::arms(deed, &crate::arms::MODELS.map(str::to_owned)) {
                let row = match lab.sample(&arm, 3, &mut Here(|_: &Path| {})) {
                    Ok(row) => row,
                    Err(refusal) => panic!("{}: {refusal}", arm.name),
                };
                assert!(row.verified && row.seconds > 0.0, "{row:?}");
                if !deed.is_of_tree() && cell(deed).cache == Cache::Warm && cache_is_told(temp.path()) {
                    assert_eq!(row.cached_before, Some(1.0), "{deed:?} {}", arm.name);
                }
                let expected = if deed.is_of_tree() { (3, 1247, 0) } else { (3, 256, 1 << 20) };
                assert_eq!((row.block, row.ops, row.size_bytes), expected, "{}", arm.name);
                let most = match deed {
                    Deed::Serve => crate::sample::serve::CONNECTIONS,
                    _ => arm.threads * arm.depth,
                };
                assert!(arm.name == "auto" || row.in_flight_max as usize <= most, "{row:?}");
            }
        }
        assert_eq!(temp.path().read_dir().unwrap().count(), 0, "files are left");
    }

    #[test]
    fn a_wrong_byte_fails_the_sample() {
        let temp = tempfile::tempdir().unwrap();
        let mut lab = Lab::new(temp.path(), cell(Deed::Write)).unwrap();
        let arm = &crate::arms::arms(Deed::Write, &[])[0];
        let mut damage = Here(|path: &Path| {
            let mut bytes = std::fs::read(path).unwrap();
            bytes[777] ^= 1;
            std::fs::write(path, bytes).unwrap();
        });
        let refusal = lab.sample(arm, 1, &mut damage).unwrap_err();
        let said = "cannot verify 'rust blocking': byte 777 is not what was to be written";
        assert_eq!(refusal.to_string(), said);
    }

    struct Coarse;

    impl Start for Coarse {
        fn start(&mut self, arm: &Arm, spec: &Spec) -> Result<Answer, Error> {
            let answer = Here(|_: &Path| {}).start(arm, spec)?;
            Ok(Answer { seconds: 0.0, ..answer })
        }
    }

    #[test]
    fn a_sample_that_took_no_time_by_its_clock_can_be_saved() {
        let temp = tempfile::tempdir().unwrap();
        let mut lab = Lab::new(temp.path(), cell(Deed::Write)).unwrap();
        let row = lab.sample(&crate::arms::arms(Deed::Write, &[])[0], 1, &mut Coarse).unwrap();
        assert_eq!((row.seconds, row.bytes_per_s, row.ops_per_s), (0.0, 0.0, 0.0));
        let run = crate::Run { schema: crate::report::SCHEMA, rows: vec![row], ..crate::Run::default() };
        assert!(crate::report::to_json(&run).is_ok());
    }

    #[test]
    fn a_place_that_is_not_there_is_an_error() {
        let refusal = Lab::new(Path::new("/no/such/place"), cell(Deed::Write)).unwrap_err();
        assert_eq!(refusal.to_string(), "cannot prepare '/no/such/place': No such file or directory");
    }
}
