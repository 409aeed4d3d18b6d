//! `--by`: totals of groups of files, with the number of inodes and the share. Looks up the names
//! of owners.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use fathom_du::groups::{Age, FixedKey, GroupKey, Groups, TYPES};
use fathom_du::scan::Line;
use fathom_du::threshold::Threshold;
use fathom_du::top::file_type;
use fathom_du::totals::Totals;
use fathom_text::owners::names;
use fathom_text::time::TimeField;
use fathom_walk::{FileTime, Meta};

use super::figures::FigureFormat;
use super::rows::{FinishedRun, Rows};
use crate::du::additions::GroupProperty;
use crate::shared::json::JsonObject;
use crate::shared::output::Output;
use crate::shared::screen::Screen;

/// Files grouped by a property.
#[derive(Debug)]
pub(crate) struct GroupRows {
    property: GroupProperty,
    /// The time stamp that determines an age.
    time: TimeField,
    now: FileTime,
    threshold: Option<Threshold>,
    groups: Groups,
}

impl GroupRows {
    pub(crate) fn new(
        property: GroupProperty,
        time: Option<TimeField>,
        threshold: Option<Threshold>,
    ) -> Self {
        let time = time.unwrap_or(TimeField::Mtime);
        Self { property, time, now: now(), threshold, groups: Groups::default() }
    }

    fn key<'l>(&self, line: &Line<'l>) -> GroupKey<'l> {
        let id = |of: fn(&Meta) -> u32| FixedKey::Id(line.meta.map_or(u32::MAX, of));
        GroupKey::Fixed(match self.property {
            GroupProperty::Extension if line.is_dir => FixedKey::Directory,
            GroupProperty::Extension => return GroupKey::of_extension(line.path),
            GroupProperty::User => id(|meta| meta.uid),
            GroupProperty::Group => id(|meta| meta.gid),
            GroupProperty::Age => {
                FixedKey::Age(Age::of(line.meta.map_or(self.now, |meta| self.stamp(meta)), self.now))
            }
            GroupProperty::Type => FixedKey::of_type(file_type(line)),
        })
    }

    fn stamp(&self, meta: &Meta) -> FileTime {
        match self.time {
            TimeField::Mtime => meta.mtime,
            TimeField::Atime => meta.atime,
            TimeField::Ctime => meta.ctime,
        }
    }

    /// Calls `write` for each group that the threshold admits, in descending order of size.
    fn each(
        &self,
        figures: &mut FigureFormat,
        mut write: impl FnMut(&mut FigureFormat, GroupKey<'_>, &Totals),
    ) {
        for (key, totals) in self.groups.sorted(figures.measure()) {
            if self.threshold.as_ref().is_none_or(|threshold| threshold.admits(figures.value(&totals))) {
                write(figures, key, &totals);
            }
        }
    }
}

impl Rows for GroupRows {
    fn add(&mut self, line: &Line<'_>, _figures: &FigureFormat) {
        let key = self.key(line);
        self.groups.add(key, line.own);
    }

    fn wants_metas(&self, _json: bool) -> bool {
        self.property != GroupProperty::Extension
    }

    fn write_text(&mut self, end: &mut FinishedRun<'_>, out: &mut Output) {
        let owners = owners(self.property);
        let (all, screen) = (&end.outcome.total, end.screen);
        let columns: &[&str] = match end.figures.counts_inodes() {
            true => &["share", word(self.property)],
            false => &["inodes", "share", word(self.property)],
        };
        end.figures.write_header(all, columns, screen, out.buffer());
        self.each(end.figures, |figures, key, totals| {
            write_row(figures, totals, all, &label(key, &owners, screen), out);
        });
        if end.total {
            write_row(end.figures, all, all, b"total", out);
        }
    }

    fn write_json(&mut self, end: &mut FinishedRun<'_>, out: &mut Output) {
        let owners = owners(self.property);
        let all = &end.outcome.total;
        self.each(end.figures, |figures, key, totals| {
            let mut object = JsonObject::new(out.buffer());
            object.text("by", word(self.property).as_bytes());
            write_key(key, &owners, &mut object);
            figures.write_members(totals, &mut object);
            if !figures.counts_inodes() {
                object.number("inodes", totals.inodes);
            }
            object.per_mille("share", figures.per_mille(totals, all));
            object.end();
            out.flush_if_full();
        });
    }
}

fn write_row(figures: &mut FigureFormat, totals: &Totals, all: &Totals, label: &[u8], out: &mut Output) {
    let share = figures.per_mille(totals, all);
    let buffer = out.buffer();
    figures.write_columns(totals, buffer);
    if !figures.counts_inodes() {
        buffer.extend_from_slice(format!("{}\t", totals.inodes).as_bytes());
    }
    buffer.extend_from_slice(format!("{}.{}%\t", share / 10, share % 10).as_bytes());
    buffer.extend_from_slice(label);
    buffer.push(figures.terminator);
    out.flush_if_full();
}

fn label<'k>(key: GroupKey<'k>, owners: &OwnerNames, screen: &Screen) -> Cow<'k, [u8]> {
    let fixed: &[u8] = match key {
        GroupKey::Extension(extension) => return screen.name(extension).into(),
        GroupKey::Fixed(FixedKey::Id(id)) => match owners.get(&id) {
            Some(name) => return screen.name(name).into(),
            None => return id.to_string().into_bytes().into(),
        },
        GroupKey::Fixed(FixedKey::NoExtension) => b"(none)",
        GroupKey::Fixed(FixedKey::Directory) => b"(directory)",
        GroupKey::Fixed(FixedKey::Age(age)) => age_words(age).as_bytes(),
        GroupKey::Fixed(FixedKey::Type(place)) => TYPES[place].name().as_bytes(),
        GroupKey::Fixed(FixedKey::Other) => b"(other)",
    };
    fixed.into()
}

/// Writes `key`, which is null for a group without a name, and the members that identify such
/// groups.
fn write_key(key: GroupKey<'_>, owners: &OwnerNames, object: &mut JsonObject<'_>) {
    match key {
        GroupKey::Extension(extension) => object.text("key", extension),
        GroupKey::Fixed(FixedKey::Id(id)) => {
            match owners.get(&id) {
                Some(name) => object.text("key", name),
                None => object.null("key"),
            }
            object.number("id", id.into());
        }
        GroupKey::Fixed(FixedKey::NoExtension) => object.null("key"),
        GroupKey::Fixed(FixedKey::Directory) => {
            object.null("key");
            object.text("type", b"directory");
        }
        GroupKey::Fixed(FixedKey::Age(age)) => object.text("key", age_words(age).as_bytes()),
        GroupKey::Fixed(FixedKey::Type(place)) => object.text("key", TYPES[place].name().as_bytes()),
        GroupKey::Fixed(FixedKey::Other) => {
            object.null("key");
            object.flag("other", true);
        }
    }
}

/// Returns the value of `--by`.
fn word(property: GroupProperty) -> &'static str {
    match property {
        GroupProperty::Extension => "ext",
        GroupProperty::User => "user",
        GroupProperty::Group => "group",
        GroupProperty::Age => "age",
        GroupProperty::Type => "type",
    }
}

fn age_words(age: Age) -> &'static str {
    match age {
        Age::Future => "in the future",
        Age::Day => "under 1 day",
        Age::Week => "under 7 days",
        Age::Month => "under 30 days",
        Age::Year => "under 1 year",
        Age::ThreeYears => "under 3 years",
        Age::Older => "older",
    }
}

fn now() -> FileTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    FileTime { sec: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nsec: since.subsec_nanos() }
}

type OwnerNames = HashMap<u32, Vec<u8>>;

/// Returns the names of owners by id, from this machine's own files.
fn owners(property: GroupProperty) -> OwnerNames {
    let file = match property {
        GroupProperty::User => "/etc/passwd",
        GroupProperty::Group => "/etc/group",
        GroupProperty::Extension | GroupProperty::Age | GroupProperty::Type => return OwnerNames::new(),
    };
    names(&fs::read(file).unwrap_or_default())
}
