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
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fathom_inventory::store::{Inventory, Manifest};
use fathom_inventory::top::outline::ListingCursor;
use fathom_report::{ReportOptions, directory, policy, report};
use fathom_serve::generator::{GenerateError, GeneratedAnswer, Generator};

/// The time between two looks at a directory of inventories.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A directory that changed this recently may change again without a new time.
const SETTLED: Duration = Duration::from_secs(2);
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
    /// The last look at the directory, and the time of its last change then.
    checked: Option<(Instant, Option<SystemTime>)>,
    shown: Option<Arc<ShownInventory>>,
}

impl InventoryStore {
    /// Returns the newest inventory. The directory is read again if it has changed, at most once in
    /// [`CHECK_INTERVAL`].
    fn newest(&mut self, root: &Path) -> Result<Arc<ShownInventory>, GenerateError> {
        if let (Some(shown), Some((checked, changed))) = (&self.shown, self.checked) {
            let is_recent = checked.elapsed() < CHECK_INTERVAL;
            if is_recent || changed.is_some_and(|changed| changed_at(root) == Some(changed)) {
                return Ok(Arc::clone(shown));
            }
        }
        let now = SystemTime::now();
        let is_settled = |changed: &SystemTime| now.duration_since(*changed).is_ok_and(|age| age >= SETTLED);
        // The time is read before the directory: a later change has a later time.
        let changed = changed_at(root).filter(is_settled);
        let path = newest_path(root)
            .ok_or_else(|| failed(format_args!("there is no inventory in '{}'", root.display())))?;
        let found = Inventory::open(&path).map_err(failed)?;
        self.checked = Some((Instant::now(), changed));
        let id = id(&path, found.manifest());
        match &self.shown {
            Some(shown) if shown.id == id => Ok(Arc::clone(shown)),
            _ => {
                let shown = Arc::new(ShownInventory { id, inventory: found, page: Mutex::default() });
                self.shown = Some(Arc::clone(&shown));
                Ok(shown)
            }
        }
    }
}

/// Returns the time of the last change of the names in a directory.
fn changed_at(directory: &Path) -> Option<SystemTime> {
    fs::metadata(directory).and_then(|meta| meta.modified()).ok()
}

/// Returns the path of the inventory in `root` whose scan ended last, or `root` if that is an
/// inventory. An inventory that cannot be read is passed over.
fn newest_path(root: &Path) -> Option<PathBuf> {
    if Manifest::read(root).is_ok() {
        return Some(root.to_owned());
    }
    let paths = fs::read_dir(root).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let named = paths.filter(|path| path.as_os_str().as_encoded_bytes().ends_with(SUFFIX.as_bytes()));
    named.filter_map(|path| Some((Manifest::read(&path).ok()?.end, path))).max().map(|(_, path)| path)
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
    inventory: Inventory,
    page: Mutex<Option<Arc<str>>>,
}

impl ShownInventory {
    /// Returns the page. It is made once, for all requests that arrive meanwhile.
    fn page(&self) -> Result<GeneratedAnswer, GenerateError> {
        let mut page = lock(&self.page);
        if page.is_none() {
            let options = ReportOptions { since: None, now: now(), fetches: Some(&self.id) };
            *page = Some(report(&self.inventory, &options).map_err(failed)?.into());
        }
        let body = page.as_deref().unwrap_or_default().to_owned();
        Ok(GeneratedAnswer::page(body, policy(true)))
    }

    fn entries(&self, query: &EntriesQuery) -> Result<GeneratedAnswer, GenerateError> {
        if query.inventory != self.id {
            return Err(GenerateError::Replaced);
        }
        let json = directory(&self.inventory, query.dir_id, query.after, now()).map_err(failed)?;
        json.map(GeneratedAnswer::json).ok_or(GenerateError::NotFound)
    }
}

/// Returns the current time in microseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_queries_have_a_meaning() {
        assert!(matches!(EntriesQuery::parse(""), Ok(None)));
        let query = EntriesQuery::parse("inventory=ab&dir=7&after=512.d.9").unwrap().unwrap();
        assert_eq!((&query.inventory[..], query.dir_id, query.after), ("ab", 7, "512.d.9".parse().ok()));
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
