//! The entries of a directory as JSON, for a page that fetches what its map leaves out.

use fathom_inventory::store::{Error, Inventory};
use fathom_questions::top::outline::{ListedEntry, ListingCursor, OutlineOptions, list};

use crate::json::{JsonText, text_bytes};
use crate::{kinds, nodes};

/// The length that no answer reaches, in bytes.
pub const DIRECTORY_BYTES_MAX: usize = 500_000;
/// The most entries of an answer.
const ENTRIES_MAX: usize = 1_000;
/// The most bytes of the names of an answer.
const NAMES_BYTES_MAX: usize = 300_000;

/// Returns the entries of the directory with the number `dir_id`, behind `after`, as JSON of less
/// than [`DIRECTORY_BYTES_MAX`] bytes; `None` if there is no such directory. `now` is in
/// microseconds since 1970.
///
/// # Errors
/// If the inventory is damaged.
///
/// ```
/// use fathom_scans::scan::{Scan, scan};
/// use fathom_inventory::store::Inventory;
/// use fathom_report::directory;
///
/// # let temp = tempfile::tempdir()?;
/// # let out = temp.path().join("src.inv");
/// # scan(&Scan { roots: vec![c"src".into()], ..Scan::default() }, &out, &mut ())?;
/// let inventory = Inventory::open(&out)?;
/// assert!(directory(&inventory, 1, None, 0)?.is_some_and(|json| json.contains("\"lib.rs\"")));
/// assert!(directory(&inventory, -5, None, 0)?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn directory(
    inventory: &Inventory,
    dir_id: i64,
    after: Option<ListingCursor>,
    now: i64,
) -> Result<Option<String>, Error> {
    let options = OutlineOptions { nodes_max: 0, bytes_max: 0, cost: &|_| 0, kind: &kinds::of_file, now };
    let Some(listing) = list(inventory, dir_id, after, ENTRIES_MAX, &options)? else { return Ok(None) };
    let mut bytes = 0;
    // The first entry is always there, however long its name is: the next part begins after it.
    let fits = |(at, entry): &(usize, &ListedEntry)| {
        bytes += text_bytes(&entry.name);
        *at == 0 || bytes <= NAMES_BYTES_MAX
    };
    let fitting = listing.entries.iter().enumerate().take_while(fits);
    let entries: Vec<_> = fitting.map(|(_, entry)| entry).collect();
    let has_more = listing.has_more || entries.len() < listing.entries.len();
    let mut json = JsonText::default();
    json.object(|json| {
        json.key("entries").array(&entries, |json, entry| write_entry(entry, json));
        match entries.last().filter(|_| has_more) {
            Some(last) => json.key("next").text(last.cursor.to_string().as_bytes()),
            None => json.key("next").null(),
        }
    });
    Ok(Some(json.into_string()))
}

/// Writes the properties of an entry in the order of the columns of nodes, with the owner as a
/// number.
fn write_entry(entry: &ListedEntry, json: &mut JsonText) {
    let mix = &entry.mix;
    json.array([()], |json, ()| {
        json.text(&entry.name);
        json.number(entry.sum.allocated / 512);
        json.number(entry.sum.apparent);
        json.number(if entry.dir.is_some() { entry.sum.entries } else { 0 });
        json.number(mix.kind.map_or(-1, i64::from));
        json.number(mix.age.map_or(-1, |age| i64::try_from(age).unwrap_or(-1)));
        json.number(mix.uid.map_or(-1, i64::from));
        json.number(mix.ignored.map_or(-1, i64::from));
        nodes::write_day(entry.mtime, json);
        json.number(nodes::state_number(entry.dir.map(|(_, state)| state)));
        json.number(entry.dir.map_or(0, |(dir_id, _)| dir_id));
    });
}
