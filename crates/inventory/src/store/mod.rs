//! An inventory on the disk: a directory of Parquet files and a manifest, described in docs/inventory.md.
//!
//! While it is made it has another name, its own with `.part` at the end. It gets its own when every file of it is on the
//! disk, so what has that name is never half-written.

mod also;
mod chunk;
mod column;
mod dirs;
mod entries;
mod error;
mod manifest;
mod place;
mod read;
mod seal;
mod segment;
mod side;
mod table;
mod text;

pub(crate) use also::Failed;
pub(crate) use chunk::{Chunk, Row, Sums, micros};
pub(crate) use column::{Bools, Fill, Int32s, Int64s, Kind, Packing, Spec, Texts as TextColumn};
pub(crate) use dirs::{Dir, PATH_BYTES_MAX, stored_path};
pub(crate) use manifest::NAME as MANIFEST;
pub(crate) use place::{replace_private, sync_directory};
pub(crate) use read::{
    ByDir, Group, Metas, Numbers, Paths, Rows, TREE_PATH_BYTES_MAX, Texts, check_files, each_of_file,
    errno_of,
};
pub(crate) use seal::hash;
pub(crate) use segment::{Batch, GROUP_TEXT_BYTES, Shelf, Writer};
pub(crate) use side::Failure;
pub(crate) use table::{Columns, Table as Sink};
pub(crate) use text::readable;

pub use also::{Also, Extra, UnknownColumn};
pub use dirs::State;
pub use error::{Error, Op};
pub use manifest::{Completeness, Listed, Manifest, Root, Since, VERSION};
pub use place::{create_private, rename_new, sync_directory_of};
pub use read::{Inventory, Table, check_bytes};
