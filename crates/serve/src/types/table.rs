//! Tables of media types: corrections by extension, names of text files, and compressible types.

/// Types by extension where the common table is older than the registration or lacks the extension.
/// Frequent types are listed as well, so that their header is made once.
#[rustfmt::skip]
pub(super) const CORRECTIONS: &[(&str, &str)] = &[
    ("atom", "application/atom+xml"), ("avif", "image/avif"), ("cjs", "text/javascript"), ("css", "text/css"), ("csv", "text/csv"),
    ("deb", "application/vnd.debian.binary-package"), ("diff", "text/x-diff"), ("gif", "image/gif"), ("go", "text/plain"),
    ("htm", "text/html"), ("html", "text/html"), ("ico", "image/vnd.microsoft.icon"), ("java", "text/plain"), ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"), ("js", "text/javascript"), ("json", "application/json"), ("jsonl", "application/jsonl"),
    // RFC 8216, section 10.
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("m4a", "audio/mp4"), ("m4s", "video/iso.segment"),
    // ECMA-426, section 4: a source map is JSON.
    ("map", "application/json"),
    ("md", "text/markdown"),
    // RFC 9239, section 6.
    ("mjs", "text/javascript"),
    ("mp4", "video/mp4"), ("ndjson", "application/x-ndjson"), ("otf", "font/otf"), ("patch", "text/x-diff"), ("pdf", "application/pdf"),
    ("png", "image/png"), ("rpm", "application/x-rpm"), ("svg", "image/svg+xml"), ("toml", "application/toml"),
    // MPEG transport streams: TypeScript has no registered type.
    ("ts", "video/mp2t"),
    ("txt", "text/plain"), ("usdz", "model/vnd.usdz+zip"), ("vcf", "text/vcard"), ("wasm", "application/wasm"),
    ("webmanifest", "application/manifest+json"), ("webp", "image/webp"),
    // RFC 8081, section 4.4.
    ("woff", "font/woff"), ("woff2", "font/woff2"),
    ("xml", "text/xml"),
    // RFC 9512, section 2.1.
    ("yaml", "application/yaml"), ("yml", "application/yaml"),
    // RFC 8878, section 7.1.
    ("zst", "application/zstd"),
    // Archives.
    ("tbz2", "application/x-bzip2"), ("tgz", "application/gzip"), ("txz", "application/x-xz"), ("tzst", "application/zstd"),
    // 3D models (the IANA registry, and the documentation of the formats), and notebooks.
    ("3mf", "model/3mf"), ("mtl", "model/mtl"), ("obj", "model/obj"), ("stl", "model/stl"), ("step", "model/step"), ("stp", "model/step"),
    ("ipynb", "application/x-ipynb+json"), ("jsonc", "application/json"),
];

/// Extensions of source code and settings without a registered type: a browser shows them as text
/// instead of saving them.
#[rustfmt::skip]
pub(super) const TEXT_EXTENSIONS: &[&str] = &[
    "adoc", "astro", "awk", "bash", "bib", "clj", "cljs", "cmake", "cts", "cue", "dart", "edn", "el", "elm", "env", "erl", "ex", "exs", "f90",
    "fish", "fs", "fsx", "gradle", "graphql", "groovy", "hcl", "hrl", "hs", "jl", "kt", "kts", "lisp", "lock", "lua", "ml", "mli", "nim", "nix",
    "nu", "org", "pl", "pm", "podspec", "properties", "proto", "ps1", "r", "rb", "rkt", "rst", "sbt", "scala", "sed", "sol", "svelte", "sv",
    "swift", "tcl", "tf", "tfvars", "tsx", "v", "vhd", "vim", "vue", "zig", "zsh",
];

/// Names of files, in lower case, that are text by convention and have no extension.
#[rustfmt::skip]
pub(super) const TEXT_NAMES: &[&str] = &[
    ".bash_profile", ".bashrc", ".dockerignore", ".editorconfig", ".gitattributes", ".gitignore", ".gitmodules", ".mailmap", ".npmignore",
    ".profile", ".vimrc", ".zshrc", "authors", "brewfile", "build", "changelog", "changes", "codeowners", "containerfile", "contributing",
    "contributors", "copying", "copyright", "credits", "dockerfile", "gemfile", "gnumakefile", "history", "install", "jenkinsfile", "justfile",
    "kconfig", "licence", "license", "maintainers", "makefile", "news", "notice", "owners", "patents", "pkgbuild", "procfile", "rakefile", "readme",
    "security", "thanks", "todo", "unlicense", "vagrantfile", "version", "workspace",
];

/// Names that often have a suffix after a dash: `LICENSE-MIT`.
pub(super) const TEXT_NAMES_WITH_SUFFIX: &[&str] = &["copying", "copyright", "licence", "license", "readme"];

/// Compressible types that neither begin with `text/` nor end with `+json` or `+xml`.
pub(super) const COMPRESSIBLE: &[&str] = &[
    "application/ecmascript",
    "application/javascript",
    "application/json",
    "application/jsonl",
    "application/rtf",
    "application/sql",
    "application/toml",
    "application/vnd.apple.mpegurl",
    "application/vnd.ms-fontobject",
    "application/wasm",
    "application/x-ndjson",
    "application/x-sh",
    "application/x-sql",
    "application/x-tex",
    "application/xml",
    "application/yaml",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/vnd.microsoft.icon",
    "model/mtl",
    "model/obj",
    "model/step",
    "model/stl",
];
