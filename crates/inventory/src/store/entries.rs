//! The table `entries`: a row for each entry that is no directory, below the row of its directory in `dirs`.

use super::also::Extra;
use super::chunk::{Chunk, Row};
use super::column::{Bools, Fill, Int32s, Int64s, Kind, Packing, Spec, Texts};
use super::table::Columns;
use super::text::{extension, readable};
use crate::entry::type_letter;
use fathom_walk::Attributes;

/// Rows to be written.
#[derive(Default)]
pub(crate) struct Entries {
    rows: usize,
    dir_id: Int64s,
    name: Texts,
    name_raw: Texts,
    ext: Texts,
    file_type: Texts,
    meta: MetaColumns,
    link: Texts,
    link_raw: Texts,
    errno: Int32s,
}

impl Entries {
    /// Adds the rows of a directory.
    pub(crate) fn extend(&mut self, dir_id: i64, chunk: &Chunk) {
        self.rows += chunk.len();
        for (row, name, link, extra) in chunk.iter_all() {
            self.dir_id.push(dir_id);
            let (text, raw) = readable(name);
            self.name.push(text.as_bytes());
            self.name_raw.push_some(raw);
            self.ext.push_some(extension(&text, &mut [0; 16]));
            self.file_type.push(&[type_letter(row.file_type)]);
            self.meta.push(Some(row).filter(|row| row.errno == 0), extra.as_ref());
            let (text, raw) = readable(link);
            self.link.push_some((!link.is_empty()).then_some(text.as_bytes()));
            self.link_raw.push_some(raw);
            self.errno.push_some((row.errno != 0).then(|| i32::from(row.errno)));
        }
    }
}

/// What is known of an inode, if anything.
#[derive(Default)]
pub(crate) struct MetaColumns {
    dev: Int64s,
    ino: Int64s,
    mode: Int32s,
    uid: Int32s,
    gid: Int32s,
    nlink: Int32s,
    size: Int64s,
    blocks: Int64s,
    micros: [Int64s; 3],
    nanos: [Int32s; 3],
    born: Int64s,
    attributes: Texts,
    project: Int32s,
    xattrs: Texts,
    acl: Bools,
}

pub(crate) const META_COLUMNS: usize = 19;

/// The columns of [`MetaColumns`].
pub(crate) const META: [Spec; META_COLUMNS] = [
    Spec::new("dev", Kind::Int64, Packing::Dictionary).optional(),
    Spec::new("ino", Kind::Int64, Packing::Delta).optional(),
    Spec::new("mode", Kind::Uint32, Packing::Dictionary).optional(),
    Spec::new("uid", Kind::Uint32, Packing::Dictionary).optional(),
    Spec::new("gid", Kind::Uint32, Packing::Dictionary).optional(),
    Spec::new("nlink", Kind::Uint32, Packing::Dictionary).optional(),
    Spec::new("size", Kind::Int64, Packing::Delta).optional(),
    Spec::new("blocks", Kind::Int64, Packing::Delta).optional(),
    Spec::new("atime", Kind::Micros, Packing::Delta).optional(),
    Spec::new("mtime", Kind::Micros, Packing::Delta).optional(),
    Spec::new("ctime", Kind::Micros, Packing::Delta).optional(),
    Spec::new("atime_ns", Kind::Int32, Packing::Delta).optional(),
    Spec::new("mtime_ns", Kind::Int32, Packing::Delta).optional(),
    Spec::new("ctime_ns", Kind::Int32, Packing::Delta).optional(),
    Spec::new("btime", Kind::Micros, Packing::Delta).optional(),
    Spec::new("attributes", Kind::Text, Packing::Dictionary).optional().since(3),
    Spec::new("project", Kind::Uint32, Packing::Dictionary).asked(),
    Spec::new("xattrs", Kind::Text, Packing::Dictionary).asked(),
    Spec::new("acl", Kind::Bool, Packing::Dictionary).asked(),
];

impl MetaColumns {
    pub(crate) fn push(&mut self, row: Option<&Row>, extra: Option<&Extra<'_>>) {
        self.dev.push_some(row.map(|row| row.dev.cast_signed()));
        self.ino.push_some(row.map(|row| row.ino.cast_signed()));
        self.mode.push_some(row.map(|row| row.mode.cast_signed()));
        self.uid.push_some(row.map(|row| row.uid.cast_signed()));
        self.gid.push_some(row.map(|row| row.gid.cast_signed()));
        self.nlink.push_some(row.map(|row| row.nlink.cast_signed()));
        self.size.push_some(row.map(|row| row.size));
        self.blocks.push_some(row.map(|row| row.blocks.cast_signed()));
        for (time, column) in self.micros.iter_mut().enumerate() {
            column.push_some(row.map(|row| row.micros[time]));
        }
        for (time, column) in self.nanos.iter_mut().enumerate() {
            column.push_some(row.map(|row| i32::from(row.nanos[time])));
        }
        self.born.push_some(row.and_then(Row::born));
        let mut text = [0; Attributes::TEXT_BYTES_MAX];
        let attributes = row.and_then(Row::attributes);
        self.attributes.push_some(attributes.map(|attributes| attributes.text(&mut text)));
        self.project.push_some(extra.and_then(|extra| extra.project).map(u32::cast_signed));
        self.xattrs.push_some(extra.and_then(|extra| extra.xattrs.as_deref()).map(str::as_bytes));
        self.acl.push_some(extra.and_then(|extra| extra.acl));
    }

    pub(crate) fn fields(&mut self) -> Vec<&mut dyn Fill> {
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
            born,
            attributes,
            project,
            xattrs,
            acl,
        } = self;
        let mut fields: Vec<&mut dyn Fill> = vec![dev, ino, mode, uid, gid, nlink, size, blocks];
        fields.extend(micros.iter_mut().map(|column| column as &mut dyn Fill));
        fields.extend(nanos.iter_mut().map(|column| column as &mut dyn Fill));
        fields.extend([born as &mut dyn Fill, attributes, project, xattrs, acl]);
        fields
    }
}

impl Columns for Entries {
    const SPECS: &'static [Spec] = &{
        let mut specs = [Spec::new("dir_id", Kind::Int64, Packing::Delta); META_COLUMNS + 8];
        specs[1] = Spec::new("name", Kind::Text, Packing::Front);
        specs[2] = Spec::new("name_raw", Kind::Bytes, Packing::Lengths).optional();
        specs[3] = Spec::new("ext", Kind::Text, Packing::Dictionary).optional();
        specs[4] = Spec::new("type", Kind::Text, Packing::Dictionary);
        let mut at = 0;
        while at < META_COLUMNS {
            specs[5 + at] = META[at];
            at += 1;
        }
        specs[5 + META_COLUMNS] = Spec::new("link_target", Kind::Text, Packing::Lengths).optional();
        specs[6 + META_COLUMNS] = Spec::new("link_raw", Kind::Bytes, Packing::Lengths).optional();
        specs[7 + META_COLUMNS] = Spec::new("errno", Kind::Int32, Packing::Dictionary).optional();
        specs
    };

    fn fields(&mut self) -> Vec<&mut dyn Fill> {
        let Self { rows, dir_id, name, name_raw, ext, file_type, meta, link, link_raw, errno } = self;
        *rows = 0;
        let mut fields: Vec<&mut dyn Fill> = vec![dir_id, name, name_raw, ext, file_type];
        fields.extend(meta.fields());
        fields.extend([link as &mut dyn Fill, link_raw, errno]);
        fields
    }

    fn rows(&self) -> usize {
        self.rows
    }
}
