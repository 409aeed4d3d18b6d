//! The formats of find's `-printf`: a format is parsed once and then applied to any number of
//! entries. Names in times follow the C locale, and paths are printed byte for byte, as find writes
//! them into a pipe.
//!
//! Owns the text that each directive prints. Does not own the output, nor values that take a system
//! call ([`Lookup`]).

mod float;
mod parse;
mod path;
mod problem;
mod spec;
mod time;

use fathom_text::number::{DecimalBuffer, write_decimal};
use fathom_text::quote::NameStyle;
use fathom_text::time::Zone;
use fathom_walk::{Fields, FileType, Meta};

pub use self::problem::{FormatError, FormatWarning};
use self::spec::DirectiveSpec;
use self::time::{TimeFormat, TimeKind};
use crate::entry::{Entry, LinkTarget, Lookup, type_letter};
use crate::owners::{OwnerKind, Owners};

/// A parsed format.
///
/// ```
/// use fathom_inventory::format::PrintFormat;
/// use fathom_inventory::{Entry, Owners};
/// use fathom_text::time::Zone;
/// use fathom_walk::{Fields, FileType, Meta};
///
/// let format = PrintFormat::parse(b"%s %p\\n", &Zone::UTC).unwrap();
/// assert_eq!(format.fields(), Some(Fields::SIZE));
/// let meta = Meta { size: 7, ..Meta::default() };
/// let (file_type, meta) = (FileType::Regular, Some(&meta));
/// let entry = Entry { dir: b"a", name: b"b", root_len: 1, depth: 1, file_type, meta };
/// let mut out = Vec::new();
/// format.write(&entry, &Owners::default(), &mut (), &mut out);
/// assert_eq!(out, b"7 a/b\n");
/// assert!(PrintFormat::parse(b"%", &Zone::UTC).is_err());
/// ```
#[derive(Clone, Debug)]
pub struct PrintFormat {
    pieces: Vec<FormatPiece>,
    warnings: Vec<FormatWarning>,
    names: NameStyle,
}

#[derive(Clone, Debug)]
enum FormatPiece {
    Literal(Vec<u8>),
    Directive(DirectiveSpec, PrintField),
}

/// The value that a directive prints.
#[derive(Clone, Debug)]
enum PrintField {
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
    /// `%t`, `%a`, `%c`, and `%T`, `%A`, `%C`, `%B` with the letter after them.
    Time(TimeKind, TimeFormat),
    /// A value from the metadata.
    Meta(MetaField),
}

/// A value that only metadata has.
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

impl PrintFormat {
    /// Parses a format. Its times are printed in `zone`. Text that find warns of is printed as it
    /// stands, and is among the [`warnings`](PrintFormat::warnings).
    ///
    /// # Errors
    /// If find refuses the format: a `%` with nothing after it, and the directives that find
    /// reserves. Also for a width or precision beyond 65535.
    pub fn parse(text: &[u8], zone: &Zone) -> Result<PrintFormat, FormatError> {
        parse::parse(text, zone)
    }

    /// Sets the style of text from the file tree: paths, targets of links, names of filesystems and
    /// owners, security contexts.
    #[must_use]
    pub fn with_names(self, names: NameStyle) -> Self {
        Self { names, ..self }
    }

    /// Returns the oddities of the format of which find warns.
    #[must_use]
    pub fn warnings(&self) -> &[FormatWarning] {
        &self.warnings
    }

    fn fields_of(&self) -> impl Iterator<Item = &PrintField> {
        self.pieces.iter().filter_map(|piece| match piece {
            FormatPiece::Literal(_) => None,
            FormatPiece::Directive(_, field) => Some(field),
        })
    }

    /// Returns whether the format prints metadata other than the type.
    #[must_use]
    pub fn needs_meta(&self) -> bool {
        self.fields().is_some()
    }

    /// Returns whether the format needs the type.
    #[must_use]
    pub fn needs_type(&self) -> bool {
        self.fields_of()
            .any(|field| matches!(field, PrintField::Type | PrintField::TargetType | PrintField::Link))
    }

    /// Returns whether the format prints any part of the path but the last component.
    #[must_use]
    pub fn needs_dir(&self) -> bool {
        let is_part = |field: &PrintField| {
            matches!(field, PrintField::Path | PrintField::DirName | PrintField::BelowRoot | PrintField::Root)
        };
        self.fields_of().any(is_part)
    }

    /// Returns whether the format prints names of users or groups, which [`Owners::read`] reads.
    #[must_use]
    pub fn needs_owners(&self) -> bool {
        self.fields_of().any(|field| matches!(field, PrintField::Meta(MetaField::User | MetaField::Group)))
    }

    /// Returns the metadata that the format prints; `None` if it prints none.
    #[must_use]
    pub fn fields(&self) -> Option<Fields> {
        self.fields_of().filter_map(PrintField::fields).reduce(Fields::union)
    }

    /// Appends `entry` in this format, without a line break of its own. An unknown value is empty.
    pub fn write(&self, entry: &Entry<'_>, owners: &Owners, lookup: &mut dyn Lookup, out: &mut Vec<u8>) {
        for piece in &self.pieces {
            match piece {
                FormatPiece::Literal(text) => out.extend_from_slice(text),
                FormatPiece::Directive(spec, PrintField::Depth) => {
                    spec.write_signed(DecimalBuffer::new().format(entry.depth).as_bytes(), out);
                }
                FormatPiece::Directive(spec, PrintField::Meta(field)) => {
                    field.write(spec, entry.meta, owners, self.names, out);
                }
                FormatPiece::Directive(spec, field) => {
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

impl PrintField {
    fn fields(&self) -> Option<Fields> {
        match self {
            PrintField::Meta(field) => Some(field.fields()),
            PrintField::Filesystem => Some(Fields::IDENTITY),
            PrintField::Time(TimeKind::Mtime | TimeKind::Atime | TimeKind::Ctime, _) => Some(Fields::TIMES),
            PrintField::Time(TimeKind::Btime, _) => Some(Fields::BIRTH),
            _ => None,
        }
    }

    /// Returns whether the value is text from the file tree, which may contain any bytes.
    fn is_foreign(&self) -> bool {
        match self {
            PrintField::Path
            | PrintField::BaseName
            | PrintField::DirName
            | PrintField::BelowRoot
            | PrintField::Root => true,
            PrintField::Link | PrintField::Filesystem | PrintField::Context => true,
            PrintField::Depth
            | PrintField::Type
            | PrintField::TargetType
            | PrintField::Time(..)
            | PrintField::Meta(_) => false,
        }
    }

    /// Appends a value that is text and not the name of an owner.
    fn write(&self, entry: &Entry<'_>, lookup: &mut dyn Lookup, out: &mut Vec<u8>) {
        let is_link = || entry.file_type() == FileType::Symlink;
        let mut write = |text: Option<Vec<u8>>| out.extend_from_slice(&text.unwrap_or_default());
        match self {
            PrintField::Path => entry.write_path(out),
            PrintField::BaseName => path::write_base_name(entry, out),
            PrintField::DirName => path::write_dir_name(entry, out),
            PrintField::BelowRoot => path::write_below_root(entry, out),
            PrintField::Root => path::write_root(entry, out),
            PrintField::Type => out.push(type_letter(entry.file_type())),
            PrintField::TargetType => out.push(target_letter(if is_link() {
                lookup.target(entry)
            } else {
                LinkTarget::Type(entry.file_type())
            })),
            PrintField::Link => write(is_link().then(|| lookup.link(entry)).flatten()),
            PrintField::Filesystem => write(lookup.filesystem(entry)),
            PrintField::Context => write(lookup.context(entry)),
            PrintField::Time(which, format) => {
                which.of(entry.meta).into_iter().for_each(|stamp| format.write(stamp, out));
            }
            // These values are not plain text; `PrintFormat::write` prints them.
            PrintField::Depth | PrintField::Meta(_) => {}
        }
    }
}

fn target_letter(target: LinkTarget) -> u8 {
    match target {
        LinkTarget::Type(file_type) => type_letter(file_type),
        LinkTarget::Missing => b'N',
        LinkTarget::Loop => b'L',
        LinkTarget::Unknown => b'?',
    }
}

impl MetaField {
    fn fields(self) -> Fields {
        match self {
            MetaField::Size => Fields::SIZE,
            MetaField::Blocks | MetaField::Kibibytes => Fields::BLOCKS,
            MetaField::Sparseness => Fields::SIZE.union(Fields::BLOCKS),
            MetaField::User | MetaField::Group | MetaField::Uid | MetaField::Gid => Fields::OWNER,
            MetaField::Mode
            | MetaField::ModeText
            | MetaField::Links
            | MetaField::Inode
            | MetaField::Device => Fields::IDENTITY,
        }
    }

    fn write(
        self,
        spec: &DirectiveSpec,
        meta: Option<&Meta>,
        owners: &Owners,
        names: NameStyle,
        out: &mut Vec<u8>,
    ) {
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
            _ => write_decimal(self.number(meta), out),
        }
        spec.finish_text(start, out);
    }

    /// Returns the value of a field that is a plain number. find prints a negative size without its
    /// sign.
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

/// Returns the share of the file's size that blocks are allocated for.
fn sparseness(meta: &Meta) -> f64 {
    match (meta.size, meta.blocks) {
        (0, 0) => 1.0,
        (0, _) => f64::INFINITY,
        (size, blocks) => 512.0 * blocks as f64 / size as f64,
    }
}

/// Returns type and permissions as `ls -l` shows them.
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
