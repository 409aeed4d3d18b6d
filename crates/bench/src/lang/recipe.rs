//! Sources, requirements, build command and start command of each language's program. The sources
//! are compiled into this program, so that a release measures the sources it was released with.

use super::Lang;

/// How a program is built and started. Commands run in the directory with its files; `{dir}` stands
/// for that directory.
pub(super) struct Recipe {
    /// Name and content of each source file.
    pub(super) files: &'static [(&'static str, &'static str)],
    /// Commands that must succeed before the build.
    pub(super) needs: &'static [Requirement],
    /// The build command; empty for a language that is not compiled.
    pub(super) build: &'static [&'static str],
    /// Additional environment variables of the build.
    pub(super) environment: &'static [(&'static str, &'static str)],
    /// Directories that the build leaves and that are removed afterwards.
    pub(super) leftovers: &'static [&'static str],
    /// The beginning of the command line of a run.
    pub(super) run: &'static [&'static str],
}

/// A requirement of the machine, met if `command` succeeds. Its output identifies the toolchain
/// version.
pub(super) struct Requirement {
    pub(super) command: &'static [&'static str],
    pub(super) thing: &'static str,
    /// Installation instructions.
    pub(super) install: &'static str,
}

impl Recipe {
    pub(super) fn of(lang: Lang) -> &'static Self {
        match lang {
            Lang::Bun => &BUN,
            Lang::C => &C,
            Lang::Cpp => &CPP,
            Lang::Deno => &DENO,
            Lang::Go => &GO,
            Lang::Java => &JAVA,
            Lang::Node => &NODE,
            Lang::Python => &PYTHON,
            Lang::RustCrates => &RUST_CRATES,
            Lang::Zig => &ZIG,
        }
    }
}

const BUN: Recipe = Recipe {
    files: NODE.files,
    needs: &[Requirement {
        command: &["bun", "--version"],
        thing: "bun",
        install: "npm install --global bun",
    }],
    build: &[],
    environment: &[],
    leftovers: &[],
    run: &["bun", "{dir}/playground.mjs"],
};

const C: Recipe = Recipe {
    files: &[("playground.c", include_str!("../../playground/c/playground.c"))],
    needs: &[
        Requirement { command: &["cc", "--version"], thing: "cc", install: "apt-get install gcc" },
        Requirement {
            command: &["cc", "-xc", "-include", "liburing.h", "-fsyntax-only", "/dev/null"],
            thing: "liburing.h",
            install: "apt-get install liburing-dev",
        },
    ],
    build: &["cc", "-std=c17", "-O2", "-pthread", "-o", "playground", "playground.c", "-luring"],
    environment: &[],
    leftovers: &[],
    run: &["{dir}/playground"],
};

const CPP: Recipe = Recipe {
    files: &[("playground.cpp", include_str!("../../playground/cpp/playground.cpp"))],
    needs: &[Requirement { command: &["g++", "--version"], thing: "g++", install: "apt-get install g++" }],
    build: &["g++", "-std=c++20", "-O2", "-pthread", "-o", "playground", "playground.cpp"],
    environment: &[],
    leftovers: &[],
    run: &["{dir}/playground"],
};

const DENO: Recipe = Recipe {
    files: NODE.files,
    needs: &[Requirement {
        command: &["deno", "--version"],
        thing: "deno",
        install: "npm install --global deno",
    }],
    build: &[],
    environment: &[],
    leftovers: &[],
    run: &["deno", "run", "--allow-all", "--quiet", "--no-config", "{dir}/playground.mjs"],
};

const GO: Recipe = Recipe {
    files: &[
        ("main.go", include_str!("../../playground/go/main.go")),
        ("go.mod", include_str!("../../playground/go/go.mod")),
        ("go.sum", include_str!("../../playground/go/go.sum")),
    ],
    needs: &[Requirement { command: &["go", "version"], thing: "go", install: "install Go 1.25 or later" }],
    build: &["go", "build", "-trimpath", "-buildvcs=false", "-o", "playground", "."],
    // The cache may lie inside a Go workspace or module, whose settings must not apply.
    environment: &[("GOWORK", "off"), ("GOFLAGS", "-mod=mod")],
    leftovers: &[],
    run: &["{dir}/playground"],
};

const JAVA: Recipe = Recipe {
    files: &[("Playground.java", include_str!("../../playground/java/Playground.java"))],
    needs: &[
        Requirement {
            command: &["javac", "-version"],
            thing: "javac",
            install: "apt-get install default-jdk-headless",
        },
        Requirement {
            command: &["java", "-version"],
            thing: "java",
            install: "apt-get install default-jdk-headless",
        },
    ],
    build: &["javac", "-d", ".", "Playground.java"],
    environment: &[],
    leftovers: &[],
    run: &["java", "-cp", "{dir}", "Playground"],
};

const NODE: Recipe = Recipe {
    files: &[("playground.mjs", include_str!("../../playground/node/playground.mjs"))],
    needs: &[Requirement {
        command: &["node", "-p", "parseInt(process.versions.node) < 20 ? process.exit(1) : process.version"],
        thing: "node 20 or later",
        install: "install Node",
    }],
    build: &[],
    environment: &[],
    leftovers: &[],
    run: &["node", "{dir}/playground.mjs"],
};

const PYTHON: Recipe = Recipe {
    files: &[("playground.py", include_str!("../../playground/python/playground.py"))],
    needs: &[Requirement {
        command: &["python3", "-c", "import sys; assert sys.version_info >= (3, 10); print(sys.version)"],
        thing: "python3, 3.10 or later",
        install: "apt-get install python3",
    }],
    build: &[],
    environment: &[],
    leftovers: &[],
    run: &["python3", "{dir}/playground.py"],
};

// The files have links of their own: `cargo package` omits a directory with a manifest.
const RUST_CRATES: Recipe = Recipe {
    files: &[
        ("main.rs", include_str!("../../playground-rust/source.txt")),
        ("Cargo.toml", include_str!("../../playground-rust/manifest.toml")),
        ("Cargo.lock", include_str!("../../playground-rust/lock.toml")),
    ],
    needs: &[
        Requirement {
            command: &["cargo", "--version"],
            thing: "cargo",
            install: "install Rust 1.90 or later from https://rustup.rs",
        },
        Requirement {
            command: &["rustc", "--version"],
            thing: "rustc",
            install: "install Rust 1.90 or later from https://rustup.rs",
        },
    ],
    build: &[
        "cargo",
        "install",
        "--quiet",
        "--locked",
        "--no-track",
        "--path",
        ".",
        "--root",
        ".",
        "--target-dir",
        "target",
    ],
    environment: &[],
    leftovers: &["target"],
    run: &["{dir}/bin/playground"],
};

const ZIG: Recipe = Recipe {
    files: &[("playground.zig", include_str!("../../playground/zig/playground.zig"))],
    // Pinned: Zig's standard library changes incompatibly with each release.
    needs: &[
        Requirement {
            command: &["python3", "--version"],
            thing: "python3",
            install: "apt-get install python3",
        },
        Requirement {
            command: &[
                "python3",
                "-c",
                "import importlib.metadata as m; v = m.version('ziglang'); assert v == '0.15.2'; print(v)",
            ],
            thing: "Zig 0.15.2",
            install: "pip install ziglang==0.15.2",
        },
    ],
    build: &[
        "python3",
        "-m",
        "ziglang",
        "build-exe",
        "-O",
        "ReleaseFast",
        "-lc",
        "--cache-dir",
        "cache",
        "--global-cache-dir",
        "cache",
        "-femit-bin=playground",
        "playground.zig",
    ],
    environment: &[],
    leftovers: &["cache"],
    run: &["{dir}/playground"],
};
