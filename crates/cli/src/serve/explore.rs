//! The answers of `fathom serve --explore`: the page of the newest inventory in a directory, and
//! the entries of one of its directories as JSON.
//!
//! ```text
//! GET /                                      the page
//! GET /?inventory=ID&dir=NUMBER[&after=PLACE]    entries of a directory
//! ```
//! The page has ID, so a newer inventory is never mixed with the one that the page shows.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use fathom_inventory::store::{Inventory, Manifest};
use fathom_questions::top::outline::ListingCursor;
use fathom_report::{ReportOptions, directory, policy, report};
use fathom_scans::history::{AHEAD_SEC, have_same_trees};
use fathom_scans::scan::seconds;
use fathom_serve::generator::{GenerateError, GeneratedAnswer, Generator};

use crate::shared::inventory::now_us;

/// The time between two looks at a directory of inventories.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A directory that changed this recently may change again without a new time.
const SETTLED: Duration = Duration::from_secs(2);
/// The file of an inventory that is written last.
const MANIFEST: &str = "manifest.json";
/// The suffix of the names of inventories in a directory of them.
const SUFFIX: &str = ".inv";

/// Explores directories of inventories.
#[derive(Default)]
pub(super) struct InventoryExplorer(Mutex<HashMap<PathBuf, Arc<Mutex<InventoryStore>>>>);

impl Generator for InventoryExplorer {
    fn answer(&self, root: &Path, query: &str) -> Result<GeneratedAnswer, GenerateError> {
        let query = EntriesQuery::parse(query)?;
        let store = Arc::clone(lock(&self.0).entry(root.to_owned()).or_default());
        let shown = lock(&store).newest(root)?;
        match query {
            None => shown.page(),
            Some(query) => shown.entries(&query),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failed(error: impl std::fmt::Display) -> GenerateError {
    GenerateError::Failed(error.to_string())
}

/// A request for the entries of a directory.
struct EntriesQuery {
    inventory: String,
    dir_id: i64,
    after: Option<ListingCursor>,
}

impl EntriesQuery {
    /// Parses a query; `None` if it is empty. Each key may be there once, and no other may be.
    fn parse(query: &str) -> Result<Option<Self>, GenerateError> {
        if query.is_empty() {
            return Ok(None);
        }
        let (mut inventory, mut dir, mut after) = (None, None, None);
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').ok_or(GenerateError::BadRequest)?;
            let place = match name {
                "inventory" => &mut inventory,
                "dir" => &mut dir,
                "after" => &mut after,
                _ => return Err(GenerateError::BadRequest),
            };
            if place.replace(value).is_some() {
                return Err(GenerateError::BadRequest);
            }
        }
        let dir_id = dir.and_then(|dir| dir.parse().ok()).ok_or(GenerateError::BadRequest)?;
        let after = after.map(|after| after.parse().map_err(|_| GenerateError::BadRequest)).transpose()?;
        let inventory = inventory.ok_or(GenerateError::BadRequest)?.to_owned();
        Ok(Some(Self { inventory, dir_id, after }))
    }
}

/// A directory of inventories.
#[derive(Default)]
struct InventoryStore {
    checked: Option<LastLook>,
    shown: Option<Arc<ShownInventory>>,
    /// Whether no inventory was there at the last look.
    is_empty: bool,
}

/// The last look at a directory of inventories.
struct LastLook {
    at: Instant,
    /// The state of the files then; `None` if they may change again without another state.
    stamps: Option<[FileStamp; 2]>,
}

/// The time of the last change of a file, its inode number and its length.
type FileStamp = Option<(SystemTime, u64, u64)>;

impl InventoryStore {
    /// Returns the newest inventory. It is looked for again if the directory or the manifest of the
    /// one that is shown has changed, at most once in [`CHECK_INTERVAL`]. One that cannot be opened
    /// is passed over, and if none can, the one that was shown stays, unless it was removed.
    fn newest(&mut self, root: &Path) -> Result<Arc<ShownInventory>, GenerateError> {
        if !self.is_current(root) {
            self.look(root);
        }
        self.shown.clone().ok_or_else(|| {
            let root = root.display();
            match self.is_empty {
                true => GenerateError::Absent(format!("no inventory in '{root}'")),
                false => failed(format_args!("no readable inventory in '{root}'")),
            }
        })
    }

    fn is_current(&self, root: &Path) -> bool {
        let Some(last) = &self.checked else { return false };
        let is_recent = last.at.elapsed() < CHECK_INTERVAL;
        is_recent || last.stamps.is_some_and(|stamps| stamps == self.stamps(root))
    }

    /// Returns the stamps of the directory, and of the manifest of the inventory that is shown.
    fn stamps(&self, root: &Path) -> [FileStamp; 2] {
        [stamp(root), self.shown.as_ref().and_then(|shown| stamp(&shown.path.join(MANIFEST)))]
    }

    fn look(&mut self, root: &Path) {
        let now = SystemTime::now();
        // The times are read before the files: a later change has a later time.
        let before = stamp(root);
        let paths = newest_first(root);
        self.is_empty = paths.is_empty();
        // The names in an inventory that was removed are not to be read any more.
        self.shown.take_if(|shown| !paths.contains(&shown.path));
        let mut paths = paths.into_iter();
        let found = paths.find_map(|path| {
            let inventory = Inventory::open(&path).ok()?;
            Some((id(&path, inventory.manifest()), path, inventory))
        });
        if let Some((id, path, inventory)) = found
            && self.shown.as_ref().is_none_or(|shown| shown.id != id)
        {
            let earlier = earlier(&inventory, paths);
            let shown = ShownInventory { id, path, inventory, earlier, page: Mutex::default() };
            self.shown = Some(Arc::new(shown));
        }
        let [_, manifest] = self.stamps(root);
        let stamps = [before, manifest];
        let is_settled = |stamp: &FileStamp| {
            stamp.is_none_or(|(changed, ..)| now.duration_since(changed).is_ok_and(|age| age >= SETTLED))
        };
        self.checked =
            Some(LastLook { at: Instant::now(), stamps: stamps.iter().all(is_settled).then_some(stamps) });
    }
}

fn stamp(path: &Path) -> FileStamp {
    let meta = fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.ino(), meta.len()))
}

/// Returns the paths of the inventories in `root`, the one whose scan ended last first, or `root`
/// if that is an inventory. An inventory without a manifest is passed over.
fn newest_first(root: &Path) -> Vec<PathBuf> {
    if Manifest::read(root).is_ok() {
        return vec![root.to_owned()];
    }
    let entries = fs::read_dir(root).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let named = paths.filter(|path| path.as_os_str().as_encoded_bytes().ends_with(SUFFIX.as_bytes()));
    let now = seconds(SystemTime::now());
    let dated = named.filter_map(|path| Some((Manifest::read(&path).ok()?.end, path)));
    // One from a clock that was ahead would be the newest for as long as that.
    let mut found: Vec<_> = dated.filter(|(end, _)| *end <= now.saturating_add(AHEAD_SEC)).collect();
    found.sort_unstable_by(|one, other| other.cmp(one));
    found.into_iter().map(|(_, path)| path).collect()
}

/// Returns the newest inventory in `older` that has the same trees and can be opened.
fn earlier(inventory: &Inventory, mut older: impl Iterator<Item = PathBuf>) -> Option<Inventory> {
    older.find_map(|path| {
        let manifest = Manifest::read(&path).ok()?;
        have_same_trees(&manifest, inventory.manifest()).then(|| Inventory::open(&path).ok()).flatten()
    })
}

/// Returns a name of an inventory that another one does not have.
fn id(path: &Path, manifest: &Manifest) -> String {
    let mut hasher = DefaultHasher::new();
    (path, manifest.start, manifest.end, manifest.entries).hash(&mut hasher);
    manifest.files.iter().for_each(|file| file.xxh64.hash(&mut hasher));
    format!("{:016x}", hasher.finish())
}

/// An inventory with its page.
struct ShownInventory {
    id: String,
    path: PathBuf,
    inventory: Inventory,
    /// The inventory of the same trees before it, for the growth since then.
    earlier: Option<Inventory>,
    /// The page, or why there is none: a damaged inventory is not read again for each request.
    page: Mutex<Option<Result<String, String>>>,
}

impl ShownInventory {
    /// Returns the page. It is made once, for all requests that arrive meanwhile.
    fn page(&self) -> Result<GeneratedAnswer, GenerateError> {
        let mut page = lock(&self.page);
        let made = page.get_or_insert_with(|| {
            let options = ReportOptions { since: None, now: now_us(), fetches: Some(&self.id) };
            let earlier = self.earlier.as_ref();
            let grown = earlier
                .map(|since| report(&self.inventory, &ReportOptions { since: Some(since), ..options }));
            // The earlier inventory may be damaged, or removed by now.
            let page = grown.and_then(Result::ok).map_or_else(|| report(&self.inventory, &options), Ok);
            page.map_err(|error| error.to_string())
        });
        let body = made.clone().map_err(GenerateError::Failed)?;
        // A page itself cannot say who may frame it.
        Ok(GeneratedAnswer::page(body, format!("{}; frame-ancestors 'none'", policy(true))))
    }

    fn entries(&self, query: &EntriesQuery) -> Result<GeneratedAnswer, GenerateError> {
        if query.inventory != self.id {
            return Err(GenerateError::Replaced);
        }
        let json = directory(&self.inventory, query.dir_id, query.after, now_us()).map_err(failed)?;
        json.map(GeneratedAnswer::json).ok_or(GenerateError::NotFound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_queries_have_a_meaning() {
        assert!(matches!(EntriesQuery::parse(""), Ok(None)));
        let query = EntriesQuery::parse("inventory=ab&dir=7&after=512.7.d.9").unwrap().unwrap();
        assert_eq!((&query.inventory[..], query.dir_id, query.after), ("ab", 7, "512.7.d.9".parse().ok()));
        for hostile in [
            "dir=7",
            "inventory=ab",
            "inventory=ab&dir=",
            "inventory=ab&dir=../../etc",
            "inventory=ab&dir=7&dir=8",
            "inventory=ab&dir=7&after=",
            "inventory=ab&dir=7&after=1.x.1",
            "inventory=ab&dir=99999999999999999999",
            "inventory=ab&dir=7&x=1",
            "inventory=ab&dir=7&",
            "a",
            "&",
            "%00",
        ] {
            assert_eq!(EntriesQuery::parse(hostile).err(), Some(GenerateError::BadRequest), "{hostile}");
        }
    }
}
