# What people and CI type. Each target is one command of cargo or of tools/; `make` alone lists them.
SHELL := /bin/bash
cargo := tools/cargo.sh
target := $(or $(CARGO_TARGET_DIR),target)
model := --manifest-path model/Cargo.toml --target-dir $(target)/model
slowfs := --manifest-path benches/slowfs/Cargo.toml --target-dir $(target)/slowfs
# Where `make run` looks: your home directory, or here where there is none.
DIR ?= $(or $(wildcard $(HOME)),.)
FUZZ_SECONDS ?= 60
# Has cargo lint the crates of the workspace while it compiles them, with warnings denied.
linted := RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__
PREFIX ?= $(if $(HOME),$(HOME)/.local,/usr/local)
# tools/test.sh sets it to --locked: a fresh clone tests the versions that were committed.
LOCKED ?=

.PHONY: help run build test test-all check fmt clippy clippy-apart doc rust-build rust-test rust-test-alone http3-test posix-test sanitize package-test model-test slowfs-test bench-test playground-smoke python-smoke python-test wheels fuzz bench-du bench-list bench-explore bench-inventory bench-serve bench-python bench-rm pictures docs install
.DEFAULT_GOAL := help

help: ## This list
	@sed -n 's/^\([a-z-]*%*\):.*## /  make \1\t/p' Makefile | expand -t 28

run: ## Show what takes the space below DIR (your home directory unless given)
	$(cargo) run --profile quick --bin fathom -- du --tree "$(DIR)"

build: ## The optimised programs
	$(cargo) build --release --workspace

test: ## Set-up, checks, and a part of each test's cases, in 15 minutes; the last line is the sum
	tools/test.sh

test-all: ## Every case of every test; SHARD=1/4 to SHARD=4/4 run a quarter each
	tools/test.sh all

check: fmt clippy doc ## Format, lints and documentation, warnings denied

fmt:
	$(cargo) fmt --all --check
	$(cargo) fmt --manifest-path benches/slowfs/Cargo.toml --check
	$(cargo) fmt --manifest-path crates/python/Cargo.toml --check
	$(cargo) fmt --manifest-path fuzz/Cargo.toml --check
	$(cargo) fmt --manifest-path model/Cargo.toml --check
	$(cargo) fmt --manifest-path playground/rust/Cargo.toml --check

clippy: clippy-apart
	$(cargo) clippy --workspace --all-targets $(LOCKED) -- -D warnings
	$(cargo) clippy --manifest-path crates/python/Cargo.toml --target-dir $(target)/python $(LOCKED) -- -D warnings

# What rust-build does not lint: crates without their default features, and the playground. In `make test-all`.
clippy-apart:
	$(cargo) clippy -p fathom-io -p fathom-walk --lib $(LOCKED) -- -D warnings
	$(cargo) clippy -p fathom-io --lib --features uring $(LOCKED) -- -D warnings
	$(cargo) clippy --manifest-path playground/rust/Cargo.toml --target-dir $(target)/playground-rust $(LOCKED) -- -D warnings

doc:
	RUSTDOCFLAGS=-Dwarnings $(cargo) doc --workspace --no-deps $(LOCKED)

# A step of its own, so that the time of the compiler is not the tests' own. Lints what it compiles: `cargo clippy` and
# `cargo doc` would compile every dependency once more. What it compiles of this workspace is apart from that of others.
rust-build:
	$(linted) $(cargo) test --workspace --no-run $(LOCKED)

rust-test: ## The Rust tests that run beside others, with the lints of what they compile and of the documentation
	$(linted) tools/run-tests.py together --workspace $(LOCKED)

rust-test-alone: ## The Rust tests that need the machine for themselves (tools/tests.txt)
	$(linted) tools/run-tests.py alone --workspace $(LOCKED)

# The server alone: the feature changes those of a few dependencies, and with them of everything that uses these.
http3-test: ## The tests of HTTP/3, and of the server that is built with it
	$(linted) tools/run-tests.py together serve/ -p fathom-serve --features http3-test --lib --test http3 $(LOCKED)

posix-test: ## The tests of crates/io with POSIX calls alone
	$(cargo) test -p fathom-io --features posix --no-fail-fast $(LOCKED) -- --show-output

# The compiler has sanitizers, but calls them unstable. They do not see what the kernel writes: the tests look for that.
sanitize: ## The tests of the data models, with every use of memory checked
	RUSTC_BOOTSTRAP=1 RUSTFLAGS='$(RUSTFLAGS) -Zsanitizer=address' $(cargo) test -p fathom-io --test data $(LOCKED) \
		--target $(shell $(cargo) -vV | sed -n 's/^host: //p') --target-dir $(target)/sanitize -- --show-output

package-test: ## The crates build from what `cargo publish` would upload
	$(linted) tools/package-test.py

# A workspace of its own, which compiles a few source files of walk and files with the checkers' types.
model-test: ## The protocols between threads, in many interleavings, with loom and shuttle
	$(cargo) test $(model) --no-fail-fast $(LOCKED) -- --show-output

slowfs-test: ## The tests of the slow filesystem that benchmarks and other tests mount
	$(cargo) clippy $(slowfs) --all-targets $(LOCKED) -- -D warnings
	$(cargo) test $(slowfs) --no-fail-fast $(LOCKED) -- --show-output

bench-test: ## The tests of the benchmarks' own statistics and reports
	python3 -B -m unittest discover -v -s benches -p 'test_*.py'

# The Python environment of the tests has Zig, and what Python's program needs; the other one Bun and Deno.
playground-path := PATH="$(abspath $(target))/python-env/bin:$(abspath $(target))/node-env/bin:$$PATH"
playground-%: ## The playground's program in a language, against what the languages agree on
	$(playground-path) python3 -B playground/test_playground.py $* -v

playground-smoke: ## The same for the program in C, with blocking calls and a ring
	$(playground-path) python3 -B playground/test_playground.py c -v -k .c. -k .c_blocking. -k .c_uring.

python-smoke: ## The tests of distributed scans that need no native module
	tools/python-smoke.sh

python-test: rust-build ## The Python package, installed into the tests' environment
	$(linted) tools/python-test.sh

wheels: ## The wheels of the Python package, each tried in fresh environments; options in ARGS
	$(abspath $(target))/python-env/bin/python3 -B tools/wheels.py $(ARGS)

fuzz: ## Each fuzz target for FUZZ_SECONDS
	tools/fuzz.sh $(FUZZ_SECONDS)

bench-du: build ## Compare `fathom du` with its rivals; options in ARGS
	python3 benches/du.py --fathom $(target)/release/fathom $(ARGS)

bench-list: build ## Compare `fathom list` with find, bfs, fd and fdf; options in ARGS
	python3 benches/list.py --fathom $(target)/release/fathom $(ARGS)

bench-explore: build ## Compare `fathom explore` with other explorers; options in ARGS
	cargo build --release -p fathom-explore --example sources
	python3 benches/explore.py --fathom $(target)/release/fathom $(ARGS)
	cargo test --release -p fathom-explore --test explore -- --ignored --nocapture
	$(target)/python-env/bin/python3 -B benches/paint.py --fathom $(target)/release/fathom

bench-inventory: build ## Compare `fathom scan` with find, and its answers with du's; options in ARGS
	python3 benches/inventory.py --fathom $(target)/release/fathom $(ARGS)

bench-rm: build ## Compare `fathom rm` with rm and find; options in ARGS
	python3 benches/rm.py --fathom $(target)/release/fathom $(ARGS)

bench-serve: build ## Compare `fathom serve` with nginx, static-web-server and miniserve; options in ARGS
	python3 benches/serve.py --fathom $(target)/release/fathom $(ARGS)

bench-python: build ## Compare the Python package with fsspec, os.scandir and `fathom`; options in ARGS
	$(cargo) build --release --manifest-path crates/python/Cargo.toml --target-dir $(target)/python $(LOCKED)
	$(target)/python-env/bin/python3 -B benches/python.py --fathom $(target)/release/fathom \
		--module $(target)/python/release/lib_fathomfs.so --python $(target)/python-env/bin/python3 $(ARGS)

pictures: build ## Make the pictures of the README from the published runs and real output; options in ARGS
	python3 -B benches/pictures.py --fathom $(target)/release/fathom $(ARGS)

docs: build ## Write the man pages and completions to docs/ of the target directory
	tools/docs.sh $(target)/release/fathom $(target)/docs

install: docs ## Programs, man pages and completions below PREFIX
	install -D -t "$(DESTDIR)$(PREFIX)/bin" $(target)/release/fathom
	install -D -m 644 -t "$(DESTDIR)$(PREFIX)/share/man/man1" $(target)/docs/man/*.1
	install -D -m 644 $(target)/docs/completions/fathom.bash "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/fathom"
	install -D -m 644 $(target)/docs/completions/_fathom "$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_fathom"
	install -D -m 644 $(target)/docs/completions/fathom.fish "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/fathom.fish"
