//! File inventories and benchmarks as self-contained HTML pages.
//!
//! ```text
//! inventory ─> outline, totals, growth, errors ─> JSON ─> page (assets/)
//!                                  benchmark's own JSON ─> page (assets/run/)
//! ```
//! Owns: which parts of an inventory its page has, its size, and the policy, style and script of
//! pages. Does not own: the numbers, which [`fathom_questions::top`] and benchmarks compute, and
//! files.
//!
//! Names are untrusted. They are in the page as JSON only, and the script shows them as text.

mod data;
mod directory;
mod errors;
mod growth;
mod json;
mod kinds;
mod nodes;
mod page;
mod run;

use std::io;
use std::thread;

use fathom_inventory::store::Inventory;
use fathom_questions::top::outline::{Outline, OutlineOptions, outline};
use fathom_questions::top::{QueryError, ReportKind, UsageReport, reports};

use data::{LargestRows, PageData};
use errors::ErrorSummary;
use growth::Growth;
use page::PageAssets;

pub use directory::{DIRECTORY_BYTES_MAX, directory};
pub use run::run_page;

/// The length that no page of an inventory reaches, in bytes.
pub const PAGE_BYTES_MAX: usize = 1_500_000;

const INVENTORY_PAGE: PageAssets = PageAssets {
    markup: include_str!("../assets/page.html"),
    style: include_str!("../assets/style.css"),
    script: concat!(
        "(() => {\n",
        include_str!("../assets/elements.js"),
        include_str!("../assets/model.js"),
        include_str!("../assets/layout.js"),
        include_str!("../assets/colours.js"),
        include_str!("../assets/map.js"),
        include_str!("../assets/tables.js"),
        include_str!("../assets/fetch.js"),
        include_str!("../assets/page.js"),
        "})();\n"
    ),
};

/// The most nodes of the map.
const NODES_MAX: usize = 20_000;
/// The most bytes that the nodes take in the page.
const NODES_BYTES_MAX: usize = 1_100_000;
/// The properties of which the page has totals.
const TOTALS: [ReportKind; 4] = [ReportKind::User, ReportKind::Ext, ReportKind::Age, ReportKind::Size];

/// The options of a page.
#[derive(Clone, Copy, Debug)]
pub struct ReportOptions<'a> {
    /// An earlier inventory of the same trees, for the growth since then.
    pub since: Option<&'a Inventory>,
    /// The current time, in microseconds since 1970.
    pub now: i64,
    /// The name of the inventory on the server that the page comes from, if it fetches directories
    /// from there instead of being complete in itself.
    pub fetches: Option<&'a str>,
}

/// Returns the page of an inventory, of less than [`PAGE_BYTES_MAX`] bytes.
///
/// # Errors
/// If an inventory is damaged.
///
/// The README has an example.
pub fn report(inventory: &Inventory, options: &ReportOptions<'_>) -> Result<String, QueryError> {
    let read_totals = || {
        Ok::<_, QueryError>((
            reports(inventory, &TOTALS, options.now)?,
            LargestRows::read(inventory, options.now)?,
        ))
    };
    let ((totals, largest), outline, growth) = thread::scope(|scope| {
        let totals = spawn(scope, read_totals);
        let outline = read_outline(inventory, options)?;
        let growth = options.since.map(|since| Growth::read(since, inventory)).transpose()?;
        // Without a thread, the totals are read here.
        let totals = totals.map_or_else(|_| read_totals(), join)?;
        Ok::<_, QueryError>((totals, outline, growth))
    })?;
    let errors = ErrorSummary::read(inventory)?;
    let data = PageData { inventory, outline, totals, largest, growth, errors, fetches: options.fetches };
    Ok(INVENTORY_PAGE.page(&[("data", &data.json())], options.fetches.is_some()))
}

/// Returns the Content-Security-Policy of the page of an inventory, which it has in its head as
/// well: nothing but its style and its script, and if it `fetches`, requests to its own server.
#[must_use]
pub fn policy(fetches: bool) -> String {
    INVENTORY_PAGE.policy(fetches)
}

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    run: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<thread::ScopedJoinHandle<'scope, T>> {
    thread::Builder::new().spawn_scoped(scope, run)
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
}

fn read_outline(
    inventory: &Inventory,
    options: &ReportOptions<'_>,
) -> Result<Outline, fathom_inventory::store::Error> {
    let has_ignored = inventory.manifest().optional_columns.ignored;
    let more = [(options.since.is_some(), growth::NODE_BYTES_MAX), (has_ignored, nodes::IGNORED_BYTES)];
    let more_bytes: usize = more.iter().filter(|(has, _)| *has).map(|(_, bytes)| bytes).sum();
    outline(
        inventory,
        &OutlineOptions {
            nodes_max: NODES_MAX,
            bytes_max: NODES_BYTES_MAX,
            cost: &|node| nodes::bytes_max(node, options.fetches.is_some()) + more_bytes,
            kind: &kinds::of_file,
            now: options.now,
        },
    )
}

/// Returns a report of `totals` by its kind.
fn totals_of(totals: &[UsageReport], by: ReportKind) -> &UsageReport {
    let at = TOTALS.iter().position(|kind| *kind == by).expect("it is one of the totals");
    &totals[at]
}

/// Runs the program of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeProgram;
