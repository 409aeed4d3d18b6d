//! `fathom scan -o -`: the finished inventory as a tar archive on standard output.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use fathom_inventory::store::Inventory;
use fathom_text::quote::Charset;
use tar::{Builder, EntryType, Header};

use super::args::ScanArgs;
use super::{make_part, print_error};
use crate::shared::cmdline::exit::MISUSED;
use crate::shared::output::{reason, stdout_is_terminal};
use crate::shared::temporary;

/// The name of an inventory that is written to standard output.
pub(super) const STANDARD_OUTPUT: &str = "-";
/// The name of the manifest in an inventory.
const MANIFEST: &str = "manifest.json";
/// The permission bits of files in the archive.
const MODE: u32 = 0o600;
const BUFFER_BYTES: usize = 256 << 10;

/// Makes an inventory in a temporary directory and writes it to standard output. Returns the exit
/// status.
pub(super) fn run(args: ScanArgs, charset: Charset) -> u8 {
    if stdout_is_terminal() {
        print_error(b"cannot write an inventory to a terminal: redirect standard output");
        return MISUSED;
    }
    match in_temporary_directory(args, charset) {
        Ok(status) => status,
        Err(message) => {
            print_error(&message);
            MISUSED
        }
    }
}

fn in_temporary_directory(args: ScanArgs, charset: Charset) -> Result<u8, Vec<u8>> {
    let directory = temporary::directory("fathom-scan-")?;
    let output = directory.path().join("inventory");
    let (status, _) = make_part(ScanArgs { output: output.clone(), ..args }, charset);
    // Without an inventory, the message has been printed.
    if status != MISUSED {
        write(&output).map_err(|error| [b"cannot write the inventory: ", &reason(&error)[..]].concat())?;
    }
    Ok(status)
}

/// Writes the inventory in `directory`, the manifest last.
fn write(directory: &Path) -> io::Result<()> {
    if fathom_io::sys::stdout_was_closed() {
        return Err(rustix::io::Errno::BADF.into());
    }
    let inventory = Inventory::open(directory).map_err(io::Error::other)?;
    let manifest = inventory.manifest();
    let stdout = File::from(rustix::stdio::stdout().try_clone_to_owned()?);
    let mut archive = Builder::new(BufWriter::with_capacity(BUFFER_BYTES, stdout));
    let names = manifest.files.iter().map(|file| file.name.as_str()).chain([MANIFEST]);
    for name in names {
        append(&mut archive, directory.join(name), name, manifest.end)?;
    }
    archive.into_inner()?.flush()
}

fn append(archive: &mut Builder<impl Write>, path: PathBuf, name: &str, mtime: i64) -> io::Result<()> {
    let file = File::open(path)?;
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(file.metadata()?.len());
    header.set_mode(MODE);
    header.set_mtime(u64::try_from(mtime).unwrap_or(0));
    archive.append_data(&mut header, name, file)
}
