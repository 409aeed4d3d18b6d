//! What each language's program is made of, needs, and is built and started with. The sources are part of this program, so that what
//! is measured is what it was released with.

use super::Lang;

/// How a program is made. Commands run in the directory with its files; `{dir}` is that directory.
pub(super) struct Recipe {
    /// Name and text.
    pub(super) files: &'static [(&'static str, &'static str)],
    /// What must succeed before it can be built.
    pub(super) needs: &'static [Need],
    /// Nothing for a language that is not compiled.
    pub(super) build: &'static [&'static str],
    /// What the build has in its environment in addition.
    pub(super) environment: &'static [(&'static str, &'static str)],
    /// What the build leaves behind that is of no use later.
    pub(super) scrap: &'static [&'static str],
    /// What a run's command line begins with.
    pub(super) run: &'static [&'static str],
}

/// Something of the machine: there if `command` succeeds. What it prints is the toolchain's version.
pub(super) struct Need {
    pub(super) command: &'static [&'static str],
    pub(super) thing: &'static str,
    /// How to get it.
    pub(super) install: &'static str,
}

impl Recipe {
    pub(super) fn of(lang: Lang) -> &'static Self {
        match lang {
            Lang::C => &C,
            Lang::Go => &GO,
            Lang::Java => &JAVA,
            Lang::Node => &NODE,
            Lang::Python => &PYTHON,
            Lang::Zig => &ZIG,
        }
    }
}

const C: Recipe = Recipe {
    files: &[("playground.c", include_str!("../../../../playground/c/playground.c"))],
    needs: &[
        Need { command: &["cc", "--version"], thing: "cc", install: "apt-get install gcc" },
        Need {
            command: &["cc", "-xc", "-include", "liburing.h", "-fsyntax-only", "/dev/null"],
            thing: "liburing.h",
            install: "apt-get install liburing-dev",
        },
    ],
    build: &["cc", "-std=c17", "-O2", "-pthread", "-o", "playground", "playground.c", "-luring"],
    environment: &[],
    scrap: &[],
    run: &["{dir}/playground"],
};

const GO: Recipe = Recipe {
    files: &[
        ("main.go", include_str!("../../../../playground/go/main.go")),
        ("go.mod", include_str!("../../../../playground/go/go.mod")),
        ("go.sum", include_str!("../../../../playground/go/go.sum")),
    ],
    needs: &[Need { command: &["go", "version"], thing: "go", install: "install Go 1.25 or later" }],
    build: &["go", "build", "-trimpath", "-buildvcs=false", "-o", "playground", "."],
    // The cache may be inside somebody's workspace or repository, which is of no concern here.
    environment: &[("GOWORK", "off"), ("GOFLAGS", "-mod=mod")],
    scrap: &[],
    run: &["{dir}/playground"],
};

const JAVA: Recipe = Recipe {
    files: &[("Playground.java", include_str!("../../../../playground/java/Playground.java"))],
    needs: &[
        Need {
            command: &["javac", "-version"],
            thing: "javac",
            install: "apt-get install default-jdk-headless",
        },
        Need {
            command: &["java", "-version"],
            thing: "java",
            install: "apt-get install default-jdk-headless",
        },
    ],
    build: &["javac", "-d", ".", "Playground.java"],
    environment: &[],
    scrap: &[],
    run: &["java", "-cp", "{dir}", "Playground"],
};

const NODE: Recipe = Recipe {
    files: &[("playground.mjs", include_str!("../../../../playground/node/playground.mjs"))],
    needs: &[Need {
        command: &["node", "-p", "parseInt(process.versions.node) < 20 ? process.exit(1) : process.version"],
        thing: "node 20 or later",
        install: "install Node",
    }],
    build: &[],
    environment: &[],
    scrap: &[],
    run: &["node", "{dir}/playground.mjs"],
};

const PYTHON: Recipe = Recipe {
    files: &[("playground.py", include_str!("../../../../playground/python/playground.py"))],
    needs: &[Need {
        command: &["python3", "-c", "import sys; assert sys.version_info >= (3, 10); print(sys.version)"],
        thing: "python3, 3.10 or later",
        install: "apt-get install python3",
    }],
    build: &[],
    environment: &[],
    scrap: &[],
    run: &["python3", "{dir}/playground.py"],
};

const ZIG: Recipe = Recipe {
    files: &[("playground.zig", include_str!("../../../../playground/zig/playground.zig"))],
    // Zig's standard library changes with each release.
    needs: &[
        Need { command: &["python3", "--version"], thing: "python3", install: "apt-get install python3" },
        Need {
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
    scrap: &["cache"],
    run: &["{dir}/playground"],
};
