//! `--by`: what groups of files come to, with the number of their inodes and their share. Looks up the names of
//! owners.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use fathom_du::by::{Age, Fixed, Groups, Key, TYPES};
use fathom_du::scan::Line;
use fathom_du::threshold::Threshold;
use fathom_du::top::file_type;
use fathom_du::totals::Totals;
use fathom_text::owners::names;
use fathom_text::time::TimeField;
use fathom_walk::{Meta, Stamp};

use super::figures::{Figures, type_word};
use super::json::Object;
use super::rows::{End, Rows};
use super::screen::Screen;
use crate::du::extra::Property;
use crate::output::Output;

/// Groups of files by a property.
#[derive(Debug)]
pub(crate) struct By {
    property: Property,
    /// The time that an age is reckoned from.
    time: TimeField,
    now: Stamp,
    threshold: Option<Threshold>,
    groups: Groups,
}

impl By {
    pub(crate) fn new(property: Property, time: Option<TimeField>, threshold: Option<Threshold>) -> Self {
        let time = time.unwrap_or(TimeField::Modified);
        Self { property, time, now: now(), threshold, groups: Groups::default() }
    }

    fn key<'l>(&self, line: &Line<'l>) -> Key<'l> {
        let id = |of: fn(&Meta) -> u32| Fixed::Id(line.meta.map_or(u32::MAX, of));
        Key::Fixed(match self.property {
            Property::Extension if line.is_dir => Fixed::Directory,
            Property::Extension => return Key::of_extension(line.path),
            Property::User => id(|meta| meta.uid),
            Property::Group => id(|meta| meta.gid),
            Property::Age => {
                Fixed::Age(Age::of(line.meta.map_or(self.now, |meta| self.stamp(meta)), self.now))
            }
            Property::Type => Fixed::of_type(file_type(line)),
        })
    }

    fn stamp(&self, meta: &Meta) -> Stamp {
        match self.time {
            TimeField::Modified => meta.modified,
            TimeField::Accessed => meta.accessed,
            TimeField::Changed => meta.changed,
        }
    }

    /// Calls `write` for each group to be shown, the largest first.
    fn each(&self, figures: &mut Figures, mut write: impl FnMut(&mut Figures, Key<'_>, &Totals)) {
        for (key, totals) in self.groups.sorted(figures.measure()) {
            if self.threshold.as_ref().is_none_or(|threshold| threshold.admits(figures.value(&totals))) {
                write(figures, key, &totals);
            }
        }
    }
}

impl Rows for By {
    fn add(&mut self, line: &Line<'_>, _figures: &Figures) {
        let key = self.key(line);
        self.groups.add(key, line.own);
    }

    fn wants_metas(&self, _json: bool) -> bool {
        self.property != Property::Extension
    }

    fn write_text(&mut self, end: &mut End<'_>, out: &mut Output) {
        let owners = owners(self.property);
        let (all, screen) = (&end.outcome.total, end.screen);
        self.each(end.figures, |figures, key, totals| {
            write_row(figures, totals, all, &label(key, &owners, screen), out);
        });
        if end.total {
            write_row(end.figures, all, all, b"total", out);
        }
    }

    fn write_json(&mut self, end: &mut End<'_>, out: &mut Output) {
        let owners = owners(self.property);
        let all = &end.outcome.total;
        self.each(end.figures, |figures, key, totals| {
            let mut object = Object::new(out.buffer());
            object.text("by", word(self.property).as_bytes());
            write_key(key, &owners, &mut object);
            figures.write_members(totals, &mut object);
            if !figures.counts_inodes() {
                object.number("inodes", totals.inodes);
            }
            object.per_mille("share", figures.per_mille(totals, all));
            object.end();
            out.relieve();
        });
    }
}

fn write_row(figures: &mut Figures, totals: &Totals, all: &Totals, label: &[u8], out: &mut Output) {
    let share = figures.per_mille(totals, all);
    let buffer = out.buffer();
    figures.write_columns(totals, buffer);
    if !figures.counts_inodes() {
        buffer.extend_from_slice(format!("{}\t", totals.inodes).as_bytes());
    }
    buffer.extend_from_slice(format!("{}.{}%\t", share / 10, share % 10).as_bytes());
    buffer.extend_from_slice(label);
    buffer.push(figures.terminator);
    out.relieve();
}

fn label<'k>(key: Key<'k>, owners: &Owners, screen: &Screen) -> Cow<'k, [u8]> {
    let fixed: &[u8] = match key {
        Key::Extension(extension) => return screen.name(extension).into(),
        Key::Fixed(Fixed::Id(id)) => match owners.get(&id) {
            Some(name) => return screen.name(name).into(),
            None => return id.to_string().into_bytes().into(),
        },
        Key::Fixed(Fixed::NoExtension) => b"(none)",
        Key::Fixed(Fixed::Directory) => b"(directory)",
        Key::Fixed(Fixed::Age(age)) => age_words(age).as_bytes(),
        Key::Fixed(Fixed::Type(place)) => type_word(TYPES[place]).as_bytes(),
        Key::Fixed(Fixed::Other) => b"(other)",
    };
    fixed.into()
}

/// Writes `key`, which is null where the group has no name, and what tells such groups apart.
fn write_key(key: Key<'_>, owners: &Owners, object: &mut Object<'_>) {
    match key {
        Key::Extension(extension) => object.text("key", extension),
        Key::Fixed(Fixed::Id(id)) => {
            match owners.get(&id) {
                Some(name) => object.text("key", name),
                None => object.null("key"),
            }
            object.number("id", id.into());
        }
        Key::Fixed(Fixed::NoExtension) => object.null("key"),
        Key::Fixed(Fixed::Directory) => {
            object.null("key");
            object.text("type", b"directory");
        }
        Key::Fixed(Fixed::Age(age)) => object.text("key", age_words(age).as_bytes()),
        Key::Fixed(Fixed::Type(place)) => object.text("key", type_word(TYPES[place]).as_bytes()),
        Key::Fixed(Fixed::Other) => {
            object.null("key");
            object.flag("other", true);
        }
    }
}

/// As `--by` takes it.
fn word(property: Property) -> &'static str {
    match property {
        Property::Extension => "ext",
        Property::User => "user",
        Property::Group => "group",
        Property::Age => "age",
        Property::Type => "type",
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

fn now() -> Stamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Stamp { sec: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nsec: since.subsec_nanos() }
}

type Owners = HashMap<u32, Vec<u8>>;

/// Names by number, as far as this machine's own files have them.
fn owners(property: Property) -> Owners {
    let file = match property {
        Property::User => "/etc/passwd",
        Property::Group => "/etc/group",
        Property::Extension | Property::Age | Property::Type => return Owners::new(),
    };
    names(&fs::read(file).unwrap_or_default())
}
