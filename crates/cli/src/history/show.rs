//! The output formats of the list of a store: text and JSON.

use fathom_inventory::store::Inventory;
use fathom_questions::top::{QueryError, ReportKind, ReportOptions, UsageSum, report};
use fathom_scans::history::{Snapshot, SnapshotState};
use fathom_text::human::BlockSize;
use fathom_text::time::{TimeStyle, Zone};

use crate::shared::json::JsonObject;
use crate::shared::locale::env;
use crate::shared::screen::Screen;

/// A dated inventory and the sum of what it has.
pub(super) struct SnapshotFacts<'a> {
    snapshot: &'a Snapshot,
    total: Option<UsageSum>,
}

impl<'a> SnapshotFacts<'a> {
    /// Reads the sum. Calls `failed` if the inventory cannot be read.
    pub(super) fn of(snapshot: &'a Snapshot, failed: &mut dyn FnMut(&dyn std::error::Error)) -> Self {
        if let SnapshotState::Unreadable(error) = &snapshot.state {
            failed(error);
        }
        let total = snapshot.manifest().and_then(|_| match total(snapshot) {
            Ok(total) => Some(total),
            Err(error) => {
                failed(&error);
                None
            }
        });
        Self { snapshot, total }
    }

    /// Returns the size of the tables.
    fn disk_bytes(&self) -> Option<u64> {
        self.snapshot.manifest().map(|manifest| manifest.files.iter().map(|file| file.bytes).sum())
    }

    fn state(&self) -> &'static str {
        match self.snapshot.state {
            SnapshotState::Ended(_) => "ended",
            SnapshotState::Stopped(_) => "stopped",
            SnapshotState::Unfinished => "unfinished",
            _ => "unreadable",
        }
    }

    /// Appends a JSON object.
    pub(super) fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = JsonObject::new(out);
        let manifest = self.snapshot.manifest();
        object.text("path", self.snapshot.path.as_os_str().as_encoded_bytes());
        object.signed("start", manifest.map_or(self.snapshot.time, |manifest| manifest.start));
        let mut number = |name: &str, value: Option<u64>| match value {
            Some(value) => object.number(name, value),
            None => object.null(name),
        };
        number("end", manifest.and_then(|manifest| u64::try_from(manifest.end).ok()));
        number("bytes", self.total.map(|total| total.allocated));
        number("apparent", self.total.map(|total| total.apparent));
        number("entries", manifest.map(|manifest| manifest.entries));
        number("disk_bytes", self.disk_bytes());
        object.text("state", self.state().as_bytes());
        object.flag("complete", manifest.is_some_and(|manifest| manifest.completeness.is_complete()));
        match manifest.and_then(|manifest| manifest.completeness.ratio()) {
            Some(ratio) => object.per_mille("ratio", (ratio * 1000.0) as u64),
            None => object.null("ratio"),
        }
        if let Some(manifest) = manifest {
            object.text("host", manifest.host.as_bytes());
            let roots: Vec<_> = manifest.roots.iter().map(|root| root.bytes()).collect();
            object.texts("roots", &roots);
        }
        object.end();
    }
}

/// Returns the sum of all entries, each file counted once.
fn total(snapshot: &Snapshot) -> Result<UsageSum, QueryError> {
    let inventory = Inventory::open(&snapshot.path)?;
    let options = ReportOptions { by: ReportKind::Dir, count: 0, below: None, now: 0 };
    Ok(report(&inventory, &options)?.total)
}

/// A writer of lines.
pub(super) struct SnapshotLines {
    screen: Screen,
    times: TimeStyle,
}

impl SnapshotLines {
    pub(super) fn new(screen: Screen) -> Self {
        let times = TimeStyle::parse(b"long-iso", Zone::from_env(env)).unwrap_or_default();
        Self { screen, times }
    }

    pub(super) fn write_header(&self, out: &mut Vec<u8>) {
        self.screen
            .write_header(&["scanned", "usage", "entries", "complete", "on disk", "inventory", "trees"], out);
    }

    pub(super) fn write(&self, facts: &SnapshotFacts<'_>, out: &mut Vec<u8>) {
        let manifest = facts.snapshot.manifest();
        // A time out of range is written as a number.
        let _ = self.times.write(manifest.map_or(facts.snapshot.time, |manifest| manifest.start), 0, out);
        let size = |bytes: Option<u64>, out: &mut Vec<u8>| {
            out.push(b'\t');
            match bytes {
                Some(bytes) => BlockSize::HUMAN.write(bytes, out),
                None => out.push(b'-'),
            }
        };
        size(facts.total.map(|total| total.allocated), out);
        let entries = manifest.map_or_else(|| "-".to_owned(), |manifest| manifest.entries.to_string());
        out.extend_from_slice(format!("\t{entries}\t{}", completeness(facts)).as_bytes());
        size(facts.disk_bytes(), out);
        out.push(b'\t');
        out.extend_from_slice(
            &self.screen.name(facts.snapshot.path.file_name().unwrap_or_default().as_encoded_bytes()),
        );
        for (at, root) in manifest.iter().flat_map(|manifest| &manifest.roots).enumerate() {
            out.push(if at == 0 { b'\t' } else { b' ' });
            out.extend_from_slice(&self.screen.name(&root.bytes()));
        }
        out.push(b'\n');
    }
}

/// Returns the share of complete directories, rounded down, or why there is none.
fn completeness(facts: &SnapshotFacts<'_>) -> String {
    match facts.snapshot.ended().map(|manifest| manifest.completeness.ratio()) {
        Some(ratio) => {
            let ratio = (ratio.unwrap_or(1.0) * 10_000.0).floor();
            format!("{}.{:02}%", ratio as u64 / 100, ratio as u64 % 100)
        }
        None => facts.state().to_owned(),
    }
}
