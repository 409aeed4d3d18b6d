//! Runs the state against a source in memory, on one thread: each effect is carried out before the
//! next key.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fathom_explore::input::{Answer, Effect, Event, Found, Key, Query, QueryKind};
use fathom_explore::listing::Listing;
use fathom_explore::memory::{MemorySource, directory, file};
use fathom_explore::remover::{
    Removal, RemovalKind, RemovalLimit, RemovalOutcome, RemovalPlan, RemovalProgress, RemovedAmount, Remover,
};
use fathom_explore::source::{FileSearch, FoundFiles, Place, RowState, RowSums, Source, SourceError};
use fathom_explore::state::{Settings, State};
use fathom_explore::views::render;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// A remover that removes nothing, and says that it did, except for names that begin with "keep".
#[derive(Debug, Default)]
pub(crate) struct FakeRemover {
    /// The removals, with their kind.
    pub(crate) removed: Vec<(RemovalKind, Vec<Removal>)>,
    /// The process that has a file open.
    pub(crate) holder: Option<String>,
}

impl FakeRemover {
    /// Returns the plan of a removal of so many.
    pub(crate) fn plan_of(files: u64, directories: u64) -> RemovalPlan {
        let possible = RemovalLimit { files, directories };
        RemovalPlan { possible, bytes: 1 << 20, freed: Some(1 << 19), held: 0, holder: None, kept: None }
    }
}

impl Remover for FakeRemover {
    fn plan(&mut self, removals: &[Removal], _stop: &Arc<AtomicBool>) -> Result<RemovalPlan, Vec<u8>> {
        if removals.iter().any(|removal| removal.below.ends_with(b"mount")) {
            return Err(b"a filesystem is mounted there".to_vec());
        }
        // Directories and they alone have no change time.
        let directories = removals.iter().filter(|removal| removal.ctime.is_none()).count() as u64;
        let files = removals.len() as u64 - directories + 110 * directories;
        let plan = Self::plan_of(files, directories);
        let held = if self.holder.is_some() { 1 << 18 } else { 0 };
        Ok(RemovalPlan { held, holder: self.holder.clone(), ..plan })
    }

    fn remove(
        &mut self,
        kind: RemovalKind,
        _limit: RemovalLimit,
        removals: &[Removal],
        progress: &mut dyn FnMut(RemovalProgress),
        _stop: &Arc<AtomicBool>,
    ) -> RemovalOutcome {
        self.removed.push((kind, removals.to_vec()));
        let is_kept = |removal: &Removal| {
            removal.below.rsplit(|byte| *byte == b'/').next().unwrap().starts_with(b"keep")
        };
        let removed: Vec<bool> = removals.iter().map(|removal| !is_kept(removal)).collect();
        let entries = removed.iter().filter(|removed| **removed).count() as u64;
        let failures = removed.len() as u64 - entries;
        progress(RemovalProgress { entries, failures: 0 });
        let first_failure = (failures > 0).then(|| b"'keep': Permission denied".to_vec());
        let progress = RemovalProgress { entries, failures };
        let trashes = match kind {
            RemovalKind::Delete => Vec::new(),
            RemovalKind::Trash => vec![(b"/data".to_vec(), b".Trash-0".to_vec())],
        };
        let is_file = |(removal, removed): &(&Removal, &bool)| **removed && removal.ctime.is_some();
        let files = removals.iter().zip(&removed).filter(is_file).count() as u64;
        let amount = RemovedAmount { files, directories: entries - files, bytes: entries << 12 };
        RemovalOutcome { removed, trashes, amount, free_bytes: Some(5 << 30), progress, first_failure }
    }
}

/// The state with its source and its remover.
pub(crate) struct Driver {
    pub(crate) state: State,
    pub(crate) source: MemorySource,
    pub(crate) remover: FakeRemover,
    /// How often the space of the filesystems was asked for.
    pub(crate) space_reads: usize,
    /// The effects for the terminal and the program.
    pub(crate) outside: Vec<Effect>,
}

/// Searches one root.
fn search(
    source: &mut MemorySource,
    query: &Query,
    place: &Option<Place>,
    count_max: usize,
) -> Result<FoundFiles, SourceError> {
    let arrangement = query.arrangement.clone();
    let search = FileSearch { admits: Arc::new(move |row| arrangement.admits(row)), count_max };
    let place = place.clone().unwrap_or(Place { root: 0, below: Vec::new() });
    source.search(&place, &search, &AtomicBool::new(false), &mut |_| ())
}

/// The rows of a listing as the query wants them.
pub(crate) fn find(source: &mut MemorySource, query: &Query) -> Answer {
    let never = AtomicBool::new(false);
    let result = match &query.kind {
        QueryKind::Roots => {
            let rows = source.roots();
            let local = (0..rows.len()).map(|root| source.local_root(root)).collect();
            Ok(Found::Roots { rows, local, sums: RowSums::default() })
        }
        QueryKind::Directory(place) => {
            let rows = source.list(place, &never);
            rows.map(|rows| {
                let sums = source.row_sums(Some(place));
                Found::Listing(Listing::of_directory(place.clone(), rows, sums, &query.arrangement))
            })
        }
        QueryKind::Largest(place) if query.arrangement.is_selective() => {
            let found = search(source, query, place, 1000);
            found.map(|found| Found::Listing(Listing::of_found(found, &query.arrangement)))
        }
        QueryKind::Matching(place) => search(source, query, place, 2000).map(Found::Files),
        QueryKind::Largest(place) => {
            let place = place.clone().unwrap_or(fathom_explore::source::Place { root: 0, below: Vec::new() });
            let files = source.largest(&place, 1000, &never);
            files.map(|files| Found::Listing(Listing::of_files(files, &query.arrangement)))
        }
        QueryKind::Known(rows) => Ok(Found::Listing(Listing::of_rows(rows.clone(), &query.arrangement))),
        QueryKind::Sums(key) => source.sums(*key, &never).map(Found::Sums),
    };
    Answer::Found { sequence: query.sequence, result }
}

impl Driver {
    pub(crate) fn new(source: MemorySource, settings: Settings) -> Self {
        let mut driver = Self {
            state: State::new(settings),
            source,
            remover: FakeRemover::default(),
            space_reads: 0,
            outside: Vec::new(),
        };
        let effects = driver.state.start();
        driver.perform(effects);
        driver.send(Event::Answer(Answer::Progress(driver.source.progress())));
        driver
    }

    pub(crate) fn send(&mut self, event: Event) {
        let effects = self.state.handle(event);
        self.perform(effects);
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        let never = Arc::default();
        for effect in effects {
            let answer = match effect {
                Effect::Query(query) => find(&mut self.source, &query),
                Effect::Pause(paused) => {
                    self.source.pause(paused);
                    continue;
                }
                Effect::Rescan(place) => {
                    let result = self.source.rescan(&place);
                    Answer::Rescanned { place, result }
                }
                Effect::Removed(rows) => {
                    self.source.removed(&rows);
                    Answer::Progress(self.source.progress())
                }
                Effect::Plan { sequence, removals } => {
                    Answer::Planned { sequence, result: self.remover.plan(&removals, &never) }
                }
                Effect::Remove { sequence, kind, limit, removals } => {
                    let mut tell = |_| {};
                    let outcome = self.remover.remove(kind, limit, &removals, &mut tell, &never);
                    Answer::RemovalEnded { sequence, outcome }
                }
                Effect::ReadSpace(_) => {
                    self.space_reads += 1;
                    continue;
                }
                other => {
                    self.outside.push(other);
                    continue;
                }
            };
            self.send(Event::Answer(answer));
        }
    }

    pub(crate) fn press(&mut self, key: Key) {
        self.send(Event::Key(key));
    }

    /// Presses the keys of a text; `\n` is Enter, `\t` Tab, `\x1b` Escape.
    pub(crate) fn keys(&mut self, text: &str) {
        for letter in text.chars() {
            self.press(match letter {
                '\n' => Key::Enter,
                '\t' => Key::Tab,
                '\x1b' => Key::Escape,
                letter => Key::Char(letter),
            });
        }
    }

    /// Returns the name under the cursor.
    pub(crate) fn current(&self) -> String {
        self.state.current().map_or_else(String::new, |row| String::from_utf8_lossy(&row.name).into_owned())
    }

    /// Returns the paths of the marked entries.
    pub(crate) fn marked(&self) -> Vec<String> {
        let paths = self.state.marked_paths();
        paths.into_iter().map(|path| String::from_utf8(path).unwrap()).collect()
    }

    pub(crate) fn message(&self) -> String {
        String::from_utf8_lossy(self.state.message().unwrap_or_default()).into_owned()
    }

    /// Returns the screen as lines of text, without spaces at their ends.
    pub(crate) fn screen(&mut self, columns: u16, lines: u16) -> String {
        self.send(Event::Resize(columns, lines));
        let mut buffer = Buffer::empty(Rect::new(0, 0, columns, lines));
        let formatted = render(&self.state, &mut buffer);
        assert!(formatted <= usize::from(lines) * usize::from(columns));
        text_of(&buffer)
    }

    /// Returns the names of the rows on the screen in their order.
    pub(crate) fn names(&mut self) -> Vec<String> {
        let cursor = self.state.cursor().0;
        let mut names = Vec::new();
        self.press(Key::Home);
        for _ in 0..self.state.cursor().1 {
            names.push(self.current());
            self.press(Key::Down);
        }
        self.press(Key::Home);
        (0..cursor).for_each(|_| self.press(Key::Down));
        names
    }
}

pub(crate) fn text_of(buffer: &Buffer) -> String {
    let area = *buffer.area();
    let mut text = String::new();
    for y in 0..area.height {
        let mut line = String::new();
        let mut x = 0;
        while x < area.width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            // The cells behind a wide character are not drawn.
            x += u16::try_from(unicode_width::UnicodeWidthStr::width(symbol)).unwrap().max(1);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A tree with files, directories, hostile names and every state.
pub(crate) fn sample() -> MemorySource {
    const DAY: i64 = 86400;
    let mut source = MemorySource::default();
    let root = source.root("/data", Some(b"/data"));
    let m = 1 << 20;
    for (below, name, bytes, mtime) in [
        ("", "notes.txt", 3 * m, 400 * DAY),
        ("", ".hidden", m / 2, 10 * DAY),
        ("", "a\x1b[2Jb", 12_000, 20 * DAY),
        ("", "日本語の名前.txt", m, 300 * DAY),
        ("projects/fathom/target", "fathom", 300 * m, 20_000 * DAY),
        ("projects/fathom/src", "main.rs", 40_000, 19_000 * DAY),
        ("projects/old", "core.dump", 700 * m, 15_000 * DAY),
        ("projects/old", "keep.log", 5 * m, 15_000 * DAY),
        ("photos/2024", "img one.jpg", 8 * m, 18_000 * DAY),
        ("photos/2024", "img two.jpg", 9 * m, 18_100 * DAY),
        ("photos/2025", "movie.mkv", 2048 * m, 20_100 * DAY),
        ("log", "x.log", 90 * m, 20_200 * DAY),
        ("log", "y.log", 80 * m, 20_201 * DAY),
    ] {
        source.add(root, below.as_bytes(), file(name, bytes, mtime));
    }
    for (name, state) in [
        ("locked", RowState::Unreadable),
        ("partial", RowState::Partial),
        ("proc", RowState::Skipped),
        ("walking", RowState::Walking),
    ] {
        source.add(root, b"", fathom_explore::source::Row { state, ..directory(name, 4096, 5 * DAY) });
    }
    source
}

pub(crate) fn explorer() -> Driver {
    Driver::new(sample(), Settings::default())
}
