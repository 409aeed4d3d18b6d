//! The state of the explorer: keys and answers change it, and it asks for effects. It makes no
//! system call and never waits.

mod actions;
mod answers;
mod keys;
mod overlay;
mod prompt;

use fathom_text::human::BlockSize;
use fathom_text::time::TimeStyle;

use crate::arrange::Arrangement;
use crate::disk::DiskSpace;
use crate::filter::FilterContext;
use crate::input::{Effect, Event, Query, QueryKind};
use crate::listing::Listing;
use crate::marks::Marks;
use crate::remover::RemovedAmount;
use crate::source::{Place, Row, RowSums, SourceProgress, SumKey, SumRow};

pub use self::keys::KEYS;
pub use self::overlay::{Confirmation, Overlay, RemovalRun};
pub use self::prompt::{Prompt, PromptKind};

/// The rows that tell the device of a directory.
const DEVICE_ROWS: usize = 64;
/// Most rows that are sorted and filtered at once, which takes a few milliseconds.
const ROWS_AT_ONCE: usize = 10_000;

/// The settings of a session, which do not change.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Time, owners and charset.
    pub context: FilterContext,
    /// The format of times.
    pub times: TimeStyle,
    /// The working directory, below which relative paths are; empty if it is unknown.
    pub directory: Vec<u8>,
    /// The order at the start.
    pub arrangement: Arrangement,
    /// Whether nothing may be removed, and no program started.
    pub is_read_only: bool,
    /// Whether the paths of the marked entries are printed at the end.
    pub prints_marks: bool,
    /// The units of sizes.
    pub units: BlockSize,
    /// Whether colours are used.
    pub has_colors: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let owners = std::sync::Arc::default();
        Self {
            context: FilterContext { now_s: 0, owners, charset: fathom_text::quote::Charset::Utf8 },
            times: TimeStyle::default(),
            directory: Vec::new(),
            arrangement: Arrangement::default(),
            is_read_only: false,
            prints_marks: false,
            units: BlockSize::HUMAN,
            has_colors: false,
        }
    }
}

/// A way to look at the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// The entries of a directory.
    #[default]
    Tree,
    /// The largest files below a directory.
    Largest,
    /// Sums by extension.
    Extensions,
    /// Sums by owner.
    Owners,
    /// Sums by age.
    Ages,
    /// The entries of a directory as areas.
    Treemap,
}

impl View {
    /// All views, in the order of their keys: `1`, `2` and so on.
    pub const ALL: [View; 6] =
        [View::Tree, View::Largest, View::Extensions, View::Owners, View::Ages, View::Treemap];

    /// Returns the key of the sums that the view shows.
    #[must_use]
    pub fn sums(self) -> Option<SumKey> {
        match self {
            View::Extensions => Some(SumKey::Extension),
            View::Owners => Some(SumKey::Owner),
            View::Ages => Some(SumKey::Age),
            View::Tree | View::Largest | View::Treemap => None,
        }
    }

    /// Returns the name of the view.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            View::Tree => "tree",
            View::Largest => "largest files",
            View::Extensions => "by extension",
            View::Owners => "by owner",
            View::Ages => "by age",
            View::Treemap => "treemap",
        }
    }
}

/// The columns that the user can turn on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The share as a bar and in per cent.
    pub graph: bool,
    /// The number of entries.
    pub counts: bool,
    /// The newest modification.
    pub mtime: bool,
    /// The owner.
    pub owner: bool,
}

/// The entries that a session has removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// The deleted entries.
    pub deleted: RemovedAmount,
    /// The number of entries that it has moved to the trash, with everything below them.
    pub trashed: u64,
}

/// A query whose answer will replace the rows that are shown.
#[derive(Clone, Debug, Default)]
struct PendingQuery {
    sequence: u64,
    view: View,
    place: Option<Place>,
    /// The name to which the cursor goes.
    select: Option<Vec<u8>>,
    /// Whether the rows are those that are shown already, read again or in another order.
    is_refresh: bool,
    /// Their order.
    arrangement: Arrangement,
    /// The version of the sums when the query was made.
    version: u64,
    /// The number of entries that the search has looked at.
    searched: u64,
    /// The change of the marks of all files that are found, if they are not to be shown.
    marks: Option<MarkChange>,
}

/// A change of the mark of an entry.
type MarkChange = fn(&mut Marks, &Place, &Row);

/// The state of the explorer.
///
/// ```
/// use fathom_explore::input::{Effect, Event, Key, QueryKind};
/// use fathom_explore::state::{Settings, State};
///
/// let mut state = State::new(Settings::default());
/// let effects = state.start();
/// assert!(matches!(&effects[..], [Effect::Query(query)] if query.kind == QueryKind::Roots));
/// let effects = state.handle(Event::Key(Key::Char('q')));
/// assert!(matches!(effects[..], [Effect::Quit]));
/// ```
#[derive(Debug)]
pub struct State {
    pub(crate) settings: Settings,
    pub(crate) columns: Columns,
    pub(crate) arrangement: Arrangement,
    pub(crate) filter: String,
    pub(crate) roots: Vec<Row>,
    root_sums: RowSums,
    local: Vec<Option<Vec<u8>>>,
    /// The space of the filesystem of each root.
    disks: Vec<Option<DiskSpace>>,
    removed: Removed,
    pub(crate) view: View,
    /// The directory that is shown; `None` for the list of the roots.
    pub(crate) place: Option<Place>,
    pub(crate) listing: Option<Listing>,
    pub(crate) sums: Vec<SumRow>,
    pub(crate) cursor: usize,
    pub(crate) offset: usize,
    pending: Option<PendingQuery>,
    sequence: u64,
    pub(crate) marks: Marks,
    pub(crate) progress: SourceProgress,
    /// The version of the sums that are shown.
    version: u64,
    pub(crate) is_paused: bool,
    /// Whether the directory is printed at the end.
    prints_place: bool,
    pub(crate) message: Option<Vec<u8>>,
    pub(crate) overlay: Option<Overlay>,
    /// The number of columns and of lines.
    pub(crate) size: (u16, u16),
    effects: Vec<Effect>,
}

impl State {
    /// Creates the state before anything is known.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            columns: Columns { graph: true, counts: true, mtime: true, owner: true },
            arrangement: settings.arrangement.clone(),
            settings,
            filter: String::new(),
            roots: Vec::new(),
            root_sums: RowSums::default(),
            local: Vec::new(),
            disks: Vec::new(),
            removed: Removed::default(),
            view: View::Tree,
            place: None,
            listing: None,
            sums: Vec::new(),
            cursor: 0,
            offset: 0,
            pending: None,
            sequence: 0,
            marks: Marks::default(),
            progress: SourceProgress::default(),
            version: 0,
            is_paused: false,
            prints_place: false,
            message: None,
            overlay: None,
            size: (80, 24),
            effects: Vec::new(),
        }
    }

    /// Returns the effects with which the session begins.
    pub fn start(&mut self) -> Vec<Effect> {
        self.request(View::Tree, None, None, false);
        std::mem::take(&mut self.effects)
    }

    /// Changes the state by an event. Returns the effects that it asks for.
    pub fn handle(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Key(key) => self.press(key),
            Event::Resize(columns, lines) => self.size = (columns, lines),
            Event::Answer(answer) => self.take_answer(answer),
        }
        self.arrange_rows();
        self.keep_cursor_visible();
        std::mem::take(&mut self.effects)
    }

    /// Returns the marked entries.
    #[must_use]
    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Returns the position of the cursor, and the number of rows.
    #[must_use]
    pub fn cursor(&self) -> (usize, usize) {
        (self.cursor, self.len())
    }

    /// Returns the directory that is shown; `None` for the list of the roots.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// Returns the view that is shown.
    #[must_use]
    pub fn view(&self) -> View {
        self.view
    }

    /// Returns the window over the rows, if there is one.
    #[must_use]
    pub fn overlay(&self) -> Option<&Overlay> {
        self.overlay.as_ref()
    }

    /// Returns the message that is shown.
    #[must_use]
    pub fn message(&self) -> Option<&[u8]> {
        self.message.as_deref()
    }

    /// Returns the row under the cursor.
    #[must_use]
    pub fn current(&self) -> Option<&Row> {
        self.rows()?.row(self.cursor)
    }

    /// Returns the paths of the marked entries, for the system if they are on this machine.
    #[must_use]
    pub fn marked_paths(&self) -> Vec<Vec<u8>> {
        self.marks.iter().map(|mark| self.path(&mark.place.child(&mark.row.name))).collect()
    }

    /// Returns the path of the directory that is shown, if it is to be printed at the end.
    #[must_use]
    pub fn printed_directory(&self) -> Option<Vec<u8>> {
        let place = self.place.as_ref().filter(|_| self.prints_place)?;
        Some(self.path(place))
    }

    /// Returns what has been removed in this session.
    #[must_use]
    pub fn removed(&self) -> &Removed {
        &self.removed
    }

    /// Asks for the space of the filesystems of the roots.
    fn read_space(&mut self) {
        if self.local.iter().any(Option::is_some) {
            self.effects.push(Effect::ReadSpace(self.local.clone()));
        }
    }

    /// Returns the space of the filesystem of the root, if the shown directory is on it; and
    /// the sum of all files of the tree, if the directory is its root and everything was walked.
    pub(crate) fn disk(&self) -> Option<(&DiskSpace, Option<u64>)> {
        let only = (self.disks.len() == 1).then_some(0);
        let root = self.place.as_ref().map(|place| place.root).or(only)?;
        let space = self.disks.get(root)?.as_ref()?;
        // The first rows tell: only mount points in the directory are on other filesystems.
        let mut first =
            self.rows().into_iter().flat_map(|rows| (0..DEVICE_ROWS).map_while(|at| rows.row(at)));
        let is_elsewhere = self.rows().is_some_and(|rows| !rows.is_empty());
        if is_elsewhere && !first.any(|row| row.identity.dev == space.dev || !row.has_meta()) {
            return None;
        }
        let is_top = self.place.as_ref().is_some_and(|place| place.below.is_empty());
        let is_known = is_top && self.progress.finished && self.progress.failures == 0;
        let total = self.rows().and_then(Listing::total).filter(|_| is_known && self.view != View::Largest);
        Some((space, total.map(|total| total.allocated)))
    }

    /// Returns whether the answer to a query is still to come.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.pending.is_some()
    }

    /// Returns the place whose rows are being read, if they are not those that are shown.
    pub(crate) fn awaited(&self) -> Option<&Option<Place>> {
        self.pending.as_ref().filter(|pending| !pending.is_refresh).map(|pending| &pending.place)
    }

    /// Returns the number of entries that a search has looked at, if one is running.
    pub(crate) fn searched(&self) -> Option<u64> {
        self.pending.as_ref().map(|pending| pending.searched).filter(|searched| *searched > 0)
    }

    /// Returns the listing that is shown, if the view has one.
    pub(crate) fn rows(&self) -> Option<&Listing> {
        self.listing.as_ref().filter(|_| self.view.sums().is_none())
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        match self.view.sums() {
            Some(_) => self.sums.len(),
            None => self.listing.as_ref().map_or(0, Listing::len),
        }
    }

    /// Returns the path of a place for the system, or in the inventory.
    pub(crate) fn path(&self, place: &Place) -> Vec<u8> {
        let local = self.local.get(place.root).and_then(Option::as_deref);
        let name = || self.roots.get(place.root).map_or(&b""[..], |root| &root.name);
        join(local.unwrap_or_else(name), &place.below)
    }

    /// Returns the path of a place as it is shown: the operand, and the path below it.
    pub(crate) fn shown_path(&self, place: &Place) -> Vec<u8> {
        let name = self.roots.get(place.root).map_or(&b""[..], |root| &root.name);
        join(name, &place.below)
    }

    /// Returns the path of a place for the system, if it is on this machine.
    fn local_path(&self, place: &Place) -> Option<Vec<u8>> {
        let root = self.local.get(place.root)?.as_deref()?;
        Some(join(root, &place.below))
    }

    /// Asks for the rows of a view. The present rows stay until the answer is there.
    fn request(&mut self, view: View, place: Option<Place>, select: Option<Vec<u8>>, is_refresh: bool) {
        let kind = match (view, &place) {
            (View::Largest, place) => QueryKind::Largest(place.clone()),
            (View::Tree | View::Treemap, None) => QueryKind::Roots,
            (View::Tree | View::Treemap, Some(place)) => QueryKind::Directory(place.clone()),
            (view, _) => view.sums().map_or(QueryKind::Roots, QueryKind::Sums),
        };
        let version = self.progress.version;
        self.ask(kind, PendingQuery { view, place, select, is_refresh, version, ..PendingQuery::default() });
    }

    /// Asks a query, which replaces the one that is pending.
    fn ask(&mut self, kind: QueryKind, pending: PendingQuery) {
        self.sequence += 1;
        let (sequence, arrangement) = (self.sequence, self.arrangement.clone());
        self.pending = Some(PendingQuery { sequence, arrangement: arrangement.clone(), ..pending });
        self.effects.push(Effect::Query(Query { sequence, kind, arrangement }));
    }

    /// Brings the rows into their order: at once if there are few of them, or else by a query. The
    /// cursor stays on its row, if that is still shown.
    fn arrange_rows(&mut self) {
        let current = self.current_name();
        let is_shown = self.view.sums().is_none();
        let Some(listing) = self.listing.as_mut().filter(|_| is_shown) else { return };
        if listing.is_arranged(&self.arrangement) {
            return;
        }
        if listing.all().count() <= ROWS_AT_ONCE {
            listing.arrange(&self.arrangement);
            return self.select(current);
        }
        // Rows that are awaited have the order, or are brought into it when they are there.
        let comes =
            |pending: &PendingQuery| !pending.is_refresh || pending.arrangement.is_same(&self.arrangement);
        if self.pending.as_ref().is_some_and(comes) {
            return;
        }
        let rows = listing.all().clone();
        let (view, place, version) = (self.view, self.place.clone(), self.version);
        let pending = PendingQuery { view, place, is_refresh: true, version, ..PendingQuery::default() };
        self.ask(QueryKind::Known(rows), pending);
    }

    /// Asks for the rows that are shown once more, because sums have grown. A search is not
    /// repeated: it has looked at everything.
    fn refresh(&mut self) {
        let is_search = self.view == View::Largest && self.arrangement.is_selective();
        if !is_search && self.pending.is_none() && (self.listing.is_some() || self.view.sums().is_some()) {
            self.request(self.view, self.place.clone(), None, true);
        }
    }

    fn say(&mut self, message: &[u8]) {
        self.message = Some(message.to_vec());
    }

    /// Moves the window of visible rows, so that the cursor is in it.
    fn keep_cursor_visible(&mut self) {
        self.cursor = self.cursor.min(self.len().saturating_sub(1));
        let height = self.page();
        self.offset = self.offset.min(self.cursor).max((self.cursor + 1).saturating_sub(height));
        self.offset = self.offset.min(self.len().saturating_sub(height));
    }

    /// Returns the number of rows that fit on the screen, at least 1.
    pub(crate) fn page(&self) -> usize {
        usize::from(crate::views::rows_area(self.size).height).max(1)
    }
}

/// Returns the path of an entry below a root.
fn join(root: &[u8], below: &[u8]) -> Vec<u8> {
    if below.is_empty() {
        return root.to_vec();
    }
    let slash: &[u8] = if root.ends_with(b"/") { b"" } else { b"/" };
    [root, slash, below].concat()
}
