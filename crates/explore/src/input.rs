//! Keys and other events, and the effects that the state asks for.

use std::sync::Arc;

use crate::arrange::Arrangement;
use crate::disk::DiskSpace;
use crate::listing::{ListedRows, Listing};
use crate::remover::{Removal, RemovalKind, RemovalLimit, RemovalOutcome, RemovalPlan, RemovalProgress};
use crate::source::{FoundFiles, Place, Row, RowSums, SourceError, SourceProgress, SumKey, SumRow};

/// A key of the keyboard, or an action of the mouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// A letter with the control key.
    Ctrl(char),
    /// The arrow up.
    Up,
    /// The arrow down.
    Down,
    /// The arrow to the left.
    Left,
    /// The arrow to the right.
    Right,
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
    /// Tab.
    Tab,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Home.
    Home,
    /// End.
    End,
    /// A click on a cell.
    Click {
        /// The column, from 0.
        column: u16,
        /// The line, from 0.
        line: u16,
    },
    /// The wheel, upwards.
    WheelUp,
    /// The wheel, downwards.
    WheelDown,
}

/// An event to which the state reacts.
#[derive(Clone, Debug)]
pub enum Event {
    /// A key was pressed.
    Key(Key),
    /// The screen has this many columns and lines.
    Resize(u16, u16),
    /// The answer to an effect.
    Answer(Answer),
}

/// The rows that a query asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryKind {
    /// The roots.
    Roots,
    /// The entries of a directory.
    Directory(Place),
    /// The largest files below a directory, or of all roots, that the arrangement shows.
    Largest(Option<Place>),
    /// The sums of all files.
    Sums(SumKey),
    /// All files below a directory, or of all roots, that the arrangement shows, to be marked.
    Matching(Option<Place>),
    /// Rows that are known, in another order.
    Known(Arc<ListedRows>),
}

/// A query for the rows of a view. A newer query replaces an older one.
#[derive(Clone, Debug)]
pub struct Query {
    /// The number of the query, which its answer repeats.
    pub sequence: u64,
    /// The rows.
    pub kind: QueryKind,
    /// Their order.
    pub arrangement: Arrangement,
}

/// Something that the state wants to be done. None of it waits: the result, if there is one, is an
/// [`Answer`].
#[derive(Clone, Debug)]
pub enum Effect {
    /// Asks the source for rows.
    Query(Query),
    /// Gives the query up that is being answered.
    CancelQuery,
    /// Pauses the walk, or continues it.
    Pause(bool),
    /// Walks a directory again.
    Rescan(Place),
    /// Reads the space of the filesystems of these roots, where they are on this machine.
    ReadSpace(Vec<Option<Vec<u8>>>),
    /// Tells the source that these entries are gone.
    Removed(Vec<(Place, Row)>),
    /// Counts what a removal would remove.
    Plan {
        /// The number of the removal, which its answer repeats.
        sequence: u64,
        /// The entries.
        removals: Vec<Removal>,
    },
    /// Removes entries.
    Remove {
        /// The number of the removal.
        sequence: u64,
        /// The place to which they go.
        kind: RemovalKind,
        /// The most that is removed: what the user has confirmed.
        limit: RemovalLimit,
        /// The entries.
        removals: Vec<Removal>,
    },
    /// Stops planning or removing.
    StopRemoval,
    /// Runs a shell in this directory.
    Shell(Vec<u8>),
    /// Opens this path with the program of the desktop.
    Open(Vec<u8>),
    /// Shows the text of this file.
    View(Vec<u8>),
    /// Copies this text to the clipboard.
    Copy(Vec<u8>),
    /// Writes a script to a file that must not exist yet.
    WriteScript {
        /// The path.
        path: Vec<u8>,
        /// The contents.
        text: Vec<u8>,
    },
    /// Writes rows to a file that must not exist yet.
    WriteRows {
        /// The path.
        path: Vec<u8>,
        /// The contents.
        text: Vec<u8>,
    },
    /// Stops the process until it is continued (job control).
    Suspend,
    /// Ends the session.
    Quit,
    /// Ends the session as if it was interrupted.
    Abort,
}

/// The rows of a view.
#[derive(Clone, Debug)]
pub enum Found {
    /// The roots, with their paths for the system.
    Roots {
        /// The roots in the order of the operands.
        rows: Vec<Row>,
        /// The path of each for the system, if it is on this machine.
        local: Vec<Option<Vec<u8>>>,
        /// Their sums.
        sums: RowSums,
    },
    /// The rows of a directory, or the largest files.
    Listing(Listing),
    /// The files of a search.
    Files(FoundFiles),
    /// The sums of all files.
    Sums(Vec<SumRow>),
}

/// The answer to an effect, or news of the source.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The answer to a query.
    Found {
        /// The number of the query.
        sequence: u64,
        /// The rows.
        result: Result<Found, SourceError>,
    },
    /// The search of a query goes on.
    Searching {
        /// The number of the query.
        sequence: u64,
        /// The number of entries that have been looked at.
        entries: u64,
    },
    /// The progress of the source has changed.
    Progress(SourceProgress),
    /// The space of the filesystem of each root, if it is known.
    Space(Vec<Option<DiskSpace>>),
    /// Whether a directory is walked again.
    Rescanned {
        /// The directory.
        place: Place,
        /// Why it is not.
        result: Result<(), SourceError>,
    },
    /// The extent of a removal.
    Planned {
        /// The number of the removal.
        sequence: u64,
        /// The extent, or a message.
        result: Result<RemovalPlan, Vec<u8>>,
    },
    /// The progress of a removal.
    Removing(RemovalProgress),
    /// The end of a removal.
    RemovalEnded {
        /// The number of the removal.
        sequence: u64,
        /// The outcome.
        outcome: RemovalOutcome,
    },
    /// A message for the user, such as the failure of a program.
    Message(Vec<u8>),
    /// A thread of the session has panicked.
    Died,
}
