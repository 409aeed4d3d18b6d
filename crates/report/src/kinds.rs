//! The kinds of files, by extension. A kind has the same colour on every page.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The labels of the kinds. The last one is that of all other files.
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

/// Returns the kind of files with an extension: an index into [`LABELS`].
pub(crate) fn of_extension(extension: Option<&[u8]>) -> u8 {
    const OTHER: u8 = LABELS.len() as u8 - 1;
    extension.and_then(|extension| KINDS.get(extension)).copied().unwrap_or(OTHER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_has_one_kind_and_one_form() {
        let all: Vec<&str> = EXTENSIONS.iter().flat_map(|known| known.iter().copied()).collect();
        assert_eq!(KINDS.len(), all.len(), "an extension is there twice");
        assert!(all.iter().all(|name| name.len() <= 16 && *name == name.to_lowercase()));
        assert_eq!([Some(&b"mp4"[..]), Some(b"zip"), Some(b"what"), None].map(of_extension), [0, 3, 9, 9]);
    }
}
