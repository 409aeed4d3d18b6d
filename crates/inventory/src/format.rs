//! find's `-printf`: a format is read once and then applied to any number of entries. Names in times are those of the C
//! locale, and paths come out byte for byte, as find writes them into a pipe.
//!
//! Owns what each directive prints. Does not own where it goes, nor what takes a system call ([`Lookup`]).

mod float;
mod parse;
mod path;
mod problem;
mod spec;
mod time;

use fathom_text::number::decimal;
use fathom_text::quote::NameStyle;
use fathom_text::time::Zone;
use fathom_walk::{Fields, FileType, Meta};

pub use self::problem::{FormatError, FormatWarning};
use self::spec::Spec;
use self::time::{TimeFormat, Which};
use crate::entry::{Entry, Lookup, Target, type_letter};
use crate::owners::{OwnerKind, Owners};

/// A format that has been read.
#[derive(Clone, Debug)]
pub struct Format {
    pieces: Vec<Piece>,
    warnings: Vec<FormatWarning>,
    names: NameStyle,
}

#[derive(Clone, Debug)]
enum Piece {
    Literal(Vec<u8>),
    Directive(Spec, Field),
}

/// What a directive prints.
#[derive(Clone, Debug)]
enum Field {
    /// `%p`
    Path,
    /// `%f`
    BaseName,
    /// `%h`
    DirName,
    /// `%P`
    BelowRoot,
    /// `%H`
    Root,
    /// `%d`
    Depth,
    /// `%y`
    Type,
    /// `%Y`
    TargetType,
    /// `%l`
    Link,
    /// `%F`
    Filesystem,
    /// `%Z`
    Context,
    /// `%t`, `%a`, `%c`, and `%T`, `%A`, `%C`, `%B` with their letters
    Time(Which, TimeFormat),
    /// What is in the metadata.
    Meta(MetaField),
}

/// A value that metadata alone gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MetaField {
    /// `%s`
    Size,
    /// `%b`
    Blocks,
    /// `%k`
    Kibibytes,
    /// `%m`
    Mode,
    /// `%M`
    ModeText,
    /// `%n`
    Links,
    /// `%i`
    Inode,
    /// `%D`
    Device,
    /// `%u`
    User,
    /// `%g`
    Group,
    /// `%U`
    Uid,
    /// `%G`
    Gid,
    /// `%S`
    Sparseness,
}

impl Format {
    /// Reads a format; its times are in `zone`. What find warns of is printed as it stands, and is among the
    /// [`warnings`](Format::warnings).
    ///
    /// # Errors
    /// What find refuses: a `%` with nothing after it, and directives it reserves. Also a width or precision beyond
    /// 65535, which would be no column.
    pub fn parse(text: &[u8], zone: &Zone) -> Result<Format, FormatError> {
        parse::parse(text, zone)
    }

    /// The same format, in which whatever comes from the file tree is in this style: paths, targets
    /// of links, names of filesystems and owners, contexts.
    #[must_use]
    pub fn with_names(self, names: NameStyle) -> Self {
        Self { names, ..self }
    }

    /// What is odd about the format.
    #[must_use]
    pub fn warnings(&self) -> &[FormatWarning] {
        &self.warnings
    }

    fn fields_of(&self) -> impl Iterator<Item = &Field> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Literal(_) => None,
            Piece::Directive(_, field) => Some(field),
        })
    }

    /// Whether metadata other than the type is printed.
    #[must_use]
    pub fn needs_meta(&self) -> bool {
        self.fields().is_some()
    }

    /// Whether the type is printed, or decides what is.
    #[must_use]
    pub fn needs_type(&self) -> bool {
        self.fields_of().any(|field| matches!(field, Field::Type | Field::TargetType | Field::Link))
    }

    /// Whether any part of a path but the last name is printed.
    #[must_use]
    pub fn needs_dir(&self) -> bool {
        let is_part =
            |field: &Field| matches!(field, Field::Path | Field::DirName | Field::BelowRoot | Field::Root);
        self.fields_of().any(is_part)
    }

    /// Whether names of users or groups are printed, and so [`Owners::read`] is worth its while.
    #[must_use]
    pub fn needs_owners(&self) -> bool {
        self.fields_of().any(|field| matches!(field, Field::Meta(MetaField::User | MetaField::Group)))
    }

    /// The metadata that is printed; none if there is none.
    #[must_use]
    pub fn fields(&self) -> Option<Fields> {
        self.fields_of().filter_map(Field::fields).reduce(Fields::and)
    }

    /// Appends `entry` in this format, without a line break of its own. A value that is not known is empty.
    pub fn write(&self, entry: &Entry<'_>, owners: &Owners, lookup: &mut dyn Lookup, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => out.extend_from_slice(text),
                Piece::Directive(spec, Field::Depth) => {
                    let (digits, start) = decimal(entry.depth as u64);
                    spec.write_signed(&digits[start..], out);
                }
                Piece::Directive(spec, Field::Meta(field)) => {
                    field.write(spec, entry.meta, owners, self.names, out);
                }
                Piece::Directive(spec, field) => {
                    let start = out.len();
                    field.write(entry, lookup, out);
                    if field.is_foreign() && out.len() > start {
                        self.names.finish(start, out);
                    }
                    spec.finish_text(start, out);
                }
            }
        }
    }
}

impl Field {
    fn fields(&self) -> Option<Fields> {
        match self {
            Field::Meta(field) => Some(field.fields()),
            Field::Filesystem => Some(Fields::IDENTITY),
            Field::Time(Which::Modified | Which::Accessed | Which::Changed, _) => Some(Fields::TIMES),
            _ => None,
        }
    }

    /// Whether the text is any bytes, from a name or whatever a filesystem says.
    fn is_foreign(&self) -> bool {
        match self {
            Field::Path | Field::BaseName | Field::DirName | Field::BelowRoot | Field::Root => true,
            Field::Link | Field::Filesystem | Field::Context => true,
            Field::Depth | Field::Type | Field::TargetType | Field::Time(..) | Field::Meta(_) => false,
        }
    }

    /// Appends what is a text and needs no owners.
    fn write(&self, entry: &Entry<'_>, lookup: &mut dyn Lookup, out: &mut Vec<u8>) {
        let is_link = || entry.file_type() == FileType::Symlink;
        let mut write = |text: Option<Vec<u8>>| out.extend_from_slice(&text.unwrap_or_default());
        match self {
            Field::Path => entry.write_path(out),
            Field::BaseName => path::write_base_name(entry, out),
            Field::DirName => path::write_dir_name(entry, out),
            Field::BelowRoot => path::write_below_root(entry, out),
            Field::Root => path::write_root(entry, out),
            Field::Type => out.push(type_letter(entry.file_type())),
            Field::TargetType => out.push(target_letter(if is_link() {
                lookup.target(entry)
            } else {
                Target::Type(entry.file_type())
            })),
            Field::Link => write(is_link().then(|| lookup.link(entry)).flatten()),
            Field::Filesystem => write(lookup.filesystem(entry)),
            Field::Context => write(lookup.context(entry)),
            Field::Time(which, format) => {
                let stamp = which.of(entry.meta).or_else(|| which.is_birth().then(|| lookup.born(entry))?);
                stamp.into_iter().for_each(|stamp| format.write(stamp, out));
            }
            // These are no plain texts.
            Field::Depth | Field::Meta(_) => {}
        }
    }
}

fn target_letter(target: Target) -> u8 {
    match target {
        Target::Type(file_type) => type_letter(file_type),
        Target::Missing => b'N',
        Target::Loop => b'L',
        Target::Unknown => b'?',
    }
}

impl MetaField {
    fn fields(self) -> Fields {
        match self {
            MetaField::Size => Fields::SIZE,
            MetaField::Blocks | MetaField::Kibibytes => Fields::BLOCKS,
            MetaField::Sparseness => Fields::SIZE.and(Fields::BLOCKS),
            MetaField::User | MetaField::Group | MetaField::Uid | MetaField::Gid => Fields::OWNER,
            MetaField::Mode
            | MetaField::ModeText
            | MetaField::Links
            | MetaField::Inode
            | MetaField::Device => Fields::IDENTITY,
        }
    }

    fn write(self, spec: &Spec, meta: Option<&Meta>, owners: &Owners, names: NameStyle, out: &mut Vec<u8>) {
        let start = out.len();
        let Some(meta) = meta else {
            return spec.finish_text(start, out);
        };
        match self {
            MetaField::Mode => return spec.write_octal(meta.mode & 0o7777, out),
            MetaField::Sparseness => return spec.write_general(sparseness(meta), out),
            MetaField::ModeText => out.extend_from_slice(&mode_text(meta.mode)),
            MetaField::User => {
                owners.write(OwnerKind::User, meta.uid, out);
                names.finish(start, out);
            }
            MetaField::Group => {
                owners.write(OwnerKind::Group, meta.gid, out);
                names.finish(start, out);
            }
            _ => {
                let (digits, start) = decimal(self.number(meta));
                out.extend_from_slice(&digits[start..]);
            }
        }
        spec.finish_text(start, out);
    }

    /// The value of a field that is a plain number; find has no sign for a negative size.
    fn number(self, meta: &Meta) -> u64 {
        match self {
            MetaField::Size => meta.size.cast_unsigned(),
            MetaField::Blocks => meta.blocks,
            MetaField::Kibibytes => meta.blocks.div_ceil(2),
            MetaField::Links => meta.nlink,
            MetaField::Inode => meta.ino,
            MetaField::Device => meta.dev,
            MetaField::Uid => meta.uid.into(),
            MetaField::Gid => meta.gid.into(),
            MetaField::Mode
            | MetaField::ModeText
            | MetaField::User
            | MetaField::Group
            | MetaField::Sparseness => 0,
        }
    }
}

/// The part of its length that a file has blocks for.
fn sparseness(meta: &Meta) -> f64 {
    match (meta.size, meta.blocks) {
        (0, 0) => 1.0,
        (0, _) => f64::INFINITY,
        (size, blocks) => 512.0 * blocks as f64 / size as f64,
    }
}

/// Type and permissions as ls shows them.
fn mode_text(mode: u32) -> [u8; 10] {
    let kind = match type_letter(FileType::from_mode(mode)) {
        b'f' => b'-',
        b'U' => b'?',
        letter => letter,
    };
    let mut text = [kind, b'r', b'w', b'x', b'r', b'w', b'x', b'r', b'w', b'x'];
    for (place, letter) in text.iter_mut().enumerate().skip(1) {
        if mode >> (9 - place) & 1 == 0 {
            *letter = b'-';
        }
    }
    for (bit, place, with, without) in
        [(0o4000, 3, b's', b'S'), (0o2000, 6, b's', b'S'), (0o1000, 9, b't', b'T')]
    {
        if mode & bit != 0 {
            text[place] = if text[place] == b'x' { with } else { without };
        }
    }
    text
}
