//! The native part of the Python package `fathomfs` (python/fathomfs).
//!
//! Owns: the conversion of values, errors and record batches, and calls without the interpreter
//! lock. Does not own: walks, counts and inventories, which are the other crates', and the parts of
//! the interface that need no native code, which are in Python.

mod batch;
mod call;
mod cluster;
mod columns;
mod du;
mod error;
mod infos;
mod inventory;
mod inventory_entries;
mod inventory_tables;
mod list;
mod predicate;
mod problem;
mod reader;
mod scan;
mod stream;
mod values;
mod visitor;

use pyo3::prelude::*;

/// The module `fathomfs._fathomfs`.
#[pymodule(gil_used = false)]
mod _fathomfs {
    #[pymodule_export]
    use super::batch::EntryBatch;
    #[pymodule_export]
    use super::cluster::{ClusterScan, begin_cluster_scan, scan_unit};
    #[pymodule_export]
    use super::du::du;
    #[pymodule_export]
    use super::infos::infos;
    #[pymodule_export]
    use super::inventory::{Inventory, open_inventory};
    #[pymodule_export]
    use super::list::list;
    #[pymodule_export]
    use super::reader::DirectoryReader;
    #[pymodule_export]
    use super::scan::scan;
    #[pymodule_export]
    use super::stream::EntryStream;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
