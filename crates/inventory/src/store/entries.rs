//! The table `entries`: a row for each entry that is not a directory, with the number of its
//! directory in `dirs`.

use super::chunk::{EntryRow, MissingColumns, RowChunk};
use super::column::{
    BoolBuffer, ColumnBuffer, ColumnEncoding, ColumnKind, ColumnSpec, Int32Buffer, Int64Buffer, TextBuffer,
};
use super::optional::OptionalValues;
use super::parquet_writer::TableBuffer;
use super::text::{extension, to_text};
use crate::entry::type_letter;
use fathom_walk::Attributes;

/// The column with the numbers of the directories.
pub(crate) const DIR_ID: &str = "dir_id";

/// The buffered rows of a row group.
#[derive(Default)]
pub(crate) struct EntriesBuffer {
    rows: usize,
    dir_id: Int64Buffer,
    name: TextBuffer,
    name_raw: TextBuffer,
    ext: TextBuffer,
    file_type: TextBuffer,
    meta: MetaBuffer,
    link: TextBuffer,
    link_raw: TextBuffer,
    errno: Int32Buffer,
}

impl EntriesBuffer {
    /// Adds the rows of a chunk, which are in the directory `dir_id`.
    pub(crate) fn extend(&mut self, dir_id: i64, chunk: &RowChunk) {
        self.rows += chunk.row_count();
        for (row, name, link, optional_values) in chunk.iter_all() {
            self.dir_id.push(dir_id);
            let (text, raw) = to_text(name);
            self.name.push(text.as_bytes());
            self.name_raw.push_option(raw);
            self.ext.push_option(extension(&text, &mut [0; 16]));
            self.file_type.push(&[type_letter(row.file_type)]);
            self.meta.push(Some(row).filter(|row| row.errno == 0), optional_values.as_ref());
            let (text, raw) = to_text(link);
            self.link.push_option((!link.is_empty()).then_some(text.as_bytes()));
            self.link_raw.push_option(raw);
            self.errno.push_option((row.errno != 0).then(|| i32::from(row.errno)));
        }
    }
}

/// The buffers of the columns that have inode metadata.
#[derive(Default)]
pub(crate) struct MetaBuffer {
    dev: Int64Buffer,
    ino: Int64Buffer,
    mode: Int32Buffer,
    uid: Int32Buffer,
    gid: Int32Buffer,
    nlink: Int32Buffer,
    size: Int64Buffer,
    blocks: Int64Buffer,
    micros: [Int64Buffer; 3],
    nanos: [Int32Buffer; 3],
    btime: Int64Buffer,
    attributes: TextBuffer,
    project: Int32Buffer,
    xattrs: TextBuffer,
    acl: BoolBuffer,
    ignored: BoolBuffer,
}

pub(crate) const META_COLUMNS: usize = 20;

/// The columns of [`MetaBuffer`], in their order.
pub(crate) const META: [ColumnSpec; META_COLUMNS] = [
    ColumnSpec::new("dev", ColumnKind::Int64, ColumnEncoding::Dictionary).nullable(),
    ColumnSpec::new("ino", ColumnKind::Int64, ColumnEncoding::Delta).nullable(),
    ColumnSpec::new("mode", ColumnKind::Uint32, ColumnEncoding::Dictionary).nullable(),
    ColumnSpec::new("uid", ColumnKind::Uint32, ColumnEncoding::Dictionary).nullable(),
    ColumnSpec::new("gid", ColumnKind::Uint32, ColumnEncoding::Dictionary).nullable(),
    ColumnSpec::new("nlink", ColumnKind::Uint32, ColumnEncoding::Dictionary).nullable(),
    ColumnSpec::new("size", ColumnKind::Int64, ColumnEncoding::Delta).nullable(),
    ColumnSpec::new("blocks", ColumnKind::Int64, ColumnEncoding::Delta).nullable(),
    ColumnSpec::new("atime", ColumnKind::Micros, ColumnEncoding::Delta).nullable(),
    ColumnSpec::new("mtime", ColumnKind::Micros, ColumnEncoding::Delta).nullable(),
    ColumnSpec::new("ctime", ColumnKind::Micros, ColumnEncoding::Delta).nullable(),
    ColumnSpec::new("atime_ns", ColumnKind::Int32, ColumnEncoding::Delta).nullable(),
    ColumnSpec::new("mtime_ns", ColumnKind::Int32, ColumnEncoding::Delta).nullable(),
    ColumnSpec::new("ctime_ns", ColumnKind::Int32, ColumnEncoding::Delta).nullable(),
    ColumnSpec::new("btime", ColumnKind::Micros, ColumnEncoding::Delta).nullable(),
    ColumnSpec::new("attributes", ColumnKind::Text, ColumnEncoding::Dictionary).nullable(),
    ColumnSpec::new("project", ColumnKind::Uint32, ColumnEncoding::Dictionary).optional(),
    ColumnSpec::new("xattrs", ColumnKind::Text, ColumnEncoding::Dictionary).optional(),
    ColumnSpec::new("acl", ColumnKind::Bool, ColumnEncoding::Dictionary).optional(),
    ColumnSpec::new("ignored", ColumnKind::Bool, ColumnEncoding::Dictionary).optional(),
];

impl MetaBuffer {
    pub(crate) fn push(&mut self, row: Option<&EntryRow>, optional_values: Option<&OptionalValues<'_>>) {
        let known = |column: MissingColumns| row.filter(|row| row.has(column));
        self.dev.push_option(row.map(|row| row.dev.cast_signed()));
        self.ino.push_option(known(MissingColumns::INO).map(|row| row.ino.cast_signed()));
        self.mode.push_option(row.map(|row| row.mode.cast_signed()));
        self.uid.push_option(known(MissingColumns::UID).map(|row| row.uid.cast_signed()));
        self.gid.push_option(known(MissingColumns::GID).map(|row| row.gid.cast_signed()));
        self.nlink.push_option(known(MissingColumns::NLINK).map(|row| row.nlink.cast_signed()));
        self.size.push_option(known(MissingColumns::SIZE).map(|row| row.size));
        self.blocks.push_option(known(MissingColumns::BLOCKS).map(|row| row.blocks.cast_signed()));
        for (at, time) in MissingColumns::TIMES.into_iter().enumerate() {
            self.micros[at].push_option(known(time).map(|row| row.micros[at]));
            self.nanos[at].push_option(known(time).map(|row| i32::from(row.nanos[at])));
        }
        self.btime.push_option(row.and_then(EntryRow::btime));
        let mut text = [0; Attributes::TEXT_BYTES_MAX];
        let attributes = row.and_then(EntryRow::attributes);
        self.attributes.push_option(attributes.map(|attributes| attributes.text(&mut text)));
        self.project.push_option(optional_values.and_then(|values| values.project).map(u32::cast_signed));
        self.xattrs
            .push_option(optional_values.and_then(|values| values.xattrs.as_deref()).map(str::as_bytes));
        self.acl.push_option(optional_values.and_then(|values| values.acl));
        self.ignored.push_option(optional_values.and_then(|values| values.ignored));
    }

    pub(crate) fn buffers(&mut self) -> Vec<&mut dyn ColumnBuffer> {
        let Self {
            dev,
            ino,
            mode,
            uid,
            gid,
            nlink,
            size,
            blocks,
            micros,
            nanos,
            btime,
            attributes,
            project,
            xattrs,
            acl,
            ignored,
        } = self;
        let mut buffers: Vec<&mut dyn ColumnBuffer> = vec![dev, ino, mode, uid, gid, nlink, size, blocks];
        buffers.extend(micros.iter_mut().map(|column| column as &mut dyn ColumnBuffer));
        buffers.extend(nanos.iter_mut().map(|column| column as &mut dyn ColumnBuffer));
        buffers.extend([btime as &mut dyn ColumnBuffer, attributes, project, xattrs, acl, ignored]);
        buffers
    }
}

impl TableBuffer for EntriesBuffer {
    const SPECS: &'static [ColumnSpec] = &{
        let mut specs = [ColumnSpec::new(DIR_ID, ColumnKind::Int64, ColumnEncoding::Delta); META_COLUMNS + 8];
        specs[1] = ColumnSpec::new("name", ColumnKind::Text, ColumnEncoding::Front);
        specs[2] = ColumnSpec::new("name_raw", ColumnKind::Bytes, ColumnEncoding::Lengths).nullable();
        specs[3] = ColumnSpec::new("ext", ColumnKind::Text, ColumnEncoding::Dictionary).nullable();
        specs[4] = ColumnSpec::new("type", ColumnKind::Text, ColumnEncoding::Dictionary);
        let mut at = 0;
        while at < META_COLUMNS {
            specs[5 + at] = META[at];
            at += 1;
        }
        specs[5 + META_COLUMNS] =
            ColumnSpec::new("link_target", ColumnKind::Text, ColumnEncoding::Lengths).nullable();
        specs[6 + META_COLUMNS] =
            ColumnSpec::new("link_raw", ColumnKind::Bytes, ColumnEncoding::Lengths).nullable();
        specs[7 + META_COLUMNS] =
            ColumnSpec::new("errno", ColumnKind::Int32, ColumnEncoding::Dictionary).nullable();
        specs
    };

    fn buffers(&mut self) -> Vec<&mut dyn ColumnBuffer> {
        let Self { rows, dir_id, name, name_raw, ext, file_type, meta, link, link_raw, errno } = self;
        *rows = 0;
        let mut buffers: Vec<&mut dyn ColumnBuffer> = vec![dir_id, name, name_raw, ext, file_type];
        buffers.extend(meta.buffers());
        buffers.extend([link as &mut dyn ColumnBuffer, link_raw, errno]);
        buffers
    }

    fn rows(&self) -> usize {
        self.rows
    }
}
