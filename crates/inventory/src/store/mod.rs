//! The format of an inventory on disk: a directory of Parquet files and a manifest, described in
//! docs/inventory.md.
//!
//! While an inventory is made, its name has the suffix `.part`. It is renamed once all of its files
//! are synced, so an inventory without the suffix is never half-written.

mod checksum;
mod chunk;
mod column;
mod copied_group;
mod dirs;
mod draft;
mod entries;
mod error;
mod files;
mod manifest;
mod optional;
mod parquet_writer;
mod read;
mod segment;
mod small_tables;
mod span;
mod text;

pub use checksum::hash;
pub use chunk::{EntryRow, EntryTotals, MissingColumns, RowChunk, micros};
pub use column::{
    BoolBuffer, ColumnBuffer, ColumnEncoding, ColumnKind, ColumnSpec, Int32Buffer, Int64Buffer,
    PrimitiveBuffer, TextBuffer,
};
pub use copied_group::{CopiedGroup, CopySource};
pub use dirs::{DirRow, DirsBuffer, PATH_BYTES_MAX, stored_path};
pub use files::{is_at, rename_new, replace_private, sync_directory, sync_directory_of};
pub use manifest::{IMPORTED_FROM, NAME as MANIFEST};
pub use optional::OptionalErrors;
pub use parquet_writer::{FileStats, ParquetWriter, TableBuffer};
pub use read::{
    DirColumns, DirRowRead, EntriesByDir, EntryColumns, LongPaths, MetaColumns, NumberColumn, PathColumns,
    RowGroup, TREE_PATH_BYTES_MAX, TableFile, TextColumn, check_files, damaged, each_of_file, errno_of,
};
pub use segment::{BatchWriter, GROUP_ROWS, GROUP_TEXT_BYTES, RowBatch, SegmentWriter};
pub use small_tables::{ErrorRow, ErrorsBuffer, LinkRow, TIME_OPERATION};
pub use text::to_text;

pub use dirs::DirState;
pub use draft::Draft;
pub use error::{Error, Op};
pub use files::create_part;
pub use manifest::{Completeness, Manifest, ManifestFile, ManifestRoot, ReuseSummary, VERSION};
pub use optional::{OptionalColumns, OptionalValues, UnknownColumn};
pub use read::{Inventory, Table, TableRows, ValueKind, check_bytes};
pub use span::Span;
pub use text::{EXTENSION_BYTES, name_extension};
