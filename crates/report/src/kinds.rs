//! The kinds of files, by extension, name and mode. A kind has the same colour on every page.

use std::collections::HashMap;
use std::sync::LazyLock;

use fathom_questions::top::outline::FileTraits;

/// The labels of the kinds. The last one stands for all other files.
pub(crate) const LABELS: [&str; 10] = [
    "Video",
    "Audio",
    "Pictures",
    "Archives",
    "Documents",
    "Source and text",
    "Data",
    "Programs and objects",
    "Disk images",
    "Other",
];

/// The extensions of each kind but the last one, in lower case.
const EXTENSIONS: [&[&str]; LABELS.len() - 1] = [
    &[
        "mp4", "mkv", "mov", "avi", "webm", "m4v", "mpg", "mpeg", "wmv", "flv", "vob", "mts", "m2ts", "3gp",
        "ogv",
    ],
    &["mp3", "flac", "wav", "ogg", "opus", "m4a", "aac", "wma", "aif", "aiff", "mid", "ape"],
    &[
        "jpg", "jpeg", "png", "gif", "webp", "tif", "tiff", "bmp", "svg", "heic", "heif", "avif", "raw",
        "cr2", "cr3", "nef", "arw", "dng", "psd", "xcf", "ico", "exr", "jxl",
    ],
    &[
        "zip", "tar", "gz", "tgz", "bz2", "tbz", "xz", "txz", "zst", "tzst", "lz4", "lzma", "7z", "rar",
        "jar", "war", "deb", "rpm", "apk", "whl", "crate", "cab", "cpio", "pack", "br",
    ],
    &[
        "pdf", "doc", "docx", "odt", "rtf", "xls", "xlsx", "ods", "ppt", "pptx", "odp", "epub", "mobi",
        "djvu", "ps", "eps", "tex", "pages", "key", "numbers",
    ],
    &[
        "c", "h", "cc", "cpp", "cxx", "hpp", "hh", "rs", "go", "py", "pyi", "js", "mjs", "ts", "tsx", "jsx",
        "java", "kt", "scala", "rb", "php", "pl", "pm", "lua", "sh", "bash", "zsh", "fish", "swift", "m",
        "mm", "cs", "fs", "hs", "ml", "el", "lisp", "clj", "ex", "exs", "erl", "r", "jl", "f90", "f", "asm",
        "s", "zig", "nim", "d", "v", "sv", "vhdl", "html", "htm", "css", "scss", "sass", "less", "vue", "md",
        "rst", "txt", "text", "adoc", "org", "toml", "yaml", "yml", "ini", "cfg", "conf", "xml", "xsd",
        "xsl", "json", "jsonc", "proto", "cmake", "mk", "diff", "patch", "ipynb", "po", "log", "tcl", "vim",
        "dart", "gradle", "sql",
    ],
    &[
        "csv",
        "tsv",
        "parquet",
        "arrow",
        "feather",
        "orc",
        "avro",
        "h5",
        "hdf5",
        "hdf",
        "nc",
        "npy",
        "npz",
        "mat",
        "db",
        "sqlite",
        "sqlite3",
        "mdb",
        "ldb",
        "sst",
        "dat",
        "data",
        "bin",
        "jsonl",
        "ndjson",
        "bam",
        "sam",
        "cram",
        "vcf",
        "fastq",
        "fq",
        "fa",
        "fasta",
        "bed",
        "pt",
        "pth",
        "ckpt",
        "safetensors",
        "gguf",
        "onnx",
        "pb",
        "tfrecord",
        "pkl",
        "pickle",
        "rda",
        "rds",
        "root",
        "fits",
        "tfevents",
        "idx",
        "wal",
        "dump",
        "bak",
        "pcap",
        "las",
        "shp",
        "grib",
    ],
    &[
        "exe", "dll", "so", "a", "o", "obj", "lib", "dylib", "ko", "rlib", "rmeta", "pyc", "pyo", "class",
        "wasm", "elf", "pdb", "debug", "dwo", "dwp", "rcgu", "d8", "dex", "beam", "hi", "appimage", "msi",
        "lo", "la", "gch", "pch",
    ],
    &[
        "iso", "img", "qcow2", "qcow", "vmdk", "vdi", "vhd", "vhdx", "dmg", "squashfs", "snap", "flatpak",
        "wim", "vma",
    ],
];

/// The extensions with their kinds.
static KINDS: LazyLock<HashMap<&[u8], u8>> = LazyLock::new(|| {
    let numbered = (0..).zip(EXTENSIONS);
    numbered.flat_map(|(kind, known)| known.iter().map(move |name| (name.as_bytes(), kind))).collect()
});

const TEXT: u8 = 5;
const PROGRAM: u8 = 7;
const OTHER: u8 = LABELS.len() as u8 - 1;
/// The beginnings of names of texts without an extension, in lower case.
const TEXTS: [&[u8]; 8] =
    [b"readme", b"licen", b"copying", b"changelog", b"changes", b"makefile", b"dockerfile", b"authors"];
/// The type of a regular file, and the permission to run it, of `st_mode` (inode(7)).
const TYPE_MASK: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const RUNNABLE: u32 = 0o111;

/// Returns the kind of a file: an index into [`LABELS`]. Most programs and shared libraries have no
/// extension that tells: `bash`, `libc.so.6`.
pub(crate) fn of_file(file: &FileTraits<'_>) -> u8 {
    if let Some(kind) = file.extension.and_then(|extension| KINDS.get(extension)) {
        return *kind;
    }
    let is_library = file.name.windows(4).any(|part| part.eq_ignore_ascii_case(b".so."));
    let begins =
        |text: &&[u8]| file.name.get(..text.len()).is_some_and(|name| name.eq_ignore_ascii_case(text));
    let is_runnable = |mode: u32| mode & TYPE_MASK == REGULAR && mode & RUNNABLE != 0;
    match () {
        () if is_library => PROGRAM,
        () if TEXTS.iter().any(begins) => TEXT,
        () if file.mode.is_some_and(is_runnable) => PROGRAM,
        () => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_has_one_kind_and_one_form() {
        let all: Vec<&str> = EXTENSIONS.iter().flat_map(|known| known.iter().copied()).collect();
        assert_eq!(KINDS.len(), all.len(), "an extension is there twice");
        assert!(all.iter().all(|name| name.len() <= 16 && *name == name.to_lowercase()));
        assert_eq!(
            (LABELS[usize::from(TEXT)], LABELS[usize::from(PROGRAM)]),
            ("Source and text", "Programs and objects")
        );
    }

    #[test]
    fn a_file_has_the_kind_of_its_extension_or_else_of_its_name_and_mode() {
        let of = |name: &str, mode| {
            let extension = name.rsplit_once('.').map(|(_, extension)| extension.as_bytes());
            of_file(&FileTraits { name: name.as_bytes(), extension, mode })
        };
        for (name, mode, kind) in [
            ("a.mp4", Some(0o100_755), "Video"),
            ("a.zip", None, "Archives"),
            ("bash", Some(0o100_755), "Programs and objects"),
            ("[", Some(0o100_555), "Programs and objects"),
            ("python3.11", Some(0o100_755), "Programs and objects"),
            ("libc.so.6", Some(0o100_644), "Programs and objects"),
            ("LICENSE-MIT", Some(0o100_644), "Source and text"),
            ("core", Some(0o100_600), "Other"),
            ("core", None, "Other"),
            // A symbolic link has all permissions.
            ("link", Some(0o120_777), "Other"),
        ] {
            assert_eq!(LABELS[usize::from(of(name, mode))], kind, "{name} {mode:?}");
        }
    }
}
