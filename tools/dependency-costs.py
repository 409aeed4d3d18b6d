#!/usr/bin/env python3
"""Prints the build time of each direct dependency, for docs/dependencies.md.

The measure is CPU time of the compiler, which is largely independent of the load of the machine.
This program is also the compiler wrapper (RUSTC_WRAPPER): cargo starts it instead of rustc, and it
logs the CPU time of rustc. It compiles into a temporary directory below TMPDIR. The execution of
build scripts is not counted.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CARGO = os.path.join(TOP, "tools", "cargo.sh")
# Environment variable with the path of the wrapper's log.
NOTES = "FATHOM_COMPILER_NOTES"


def rustc(command, notes):
    """Runs the compiler and logs name, version and CPU seconds of the compiled package."""
    _, status, usage = os.wait4(os.posix_spawnp(command[0], command, os.environ), 0)
    package = os.environ.get("CARGO_PKG_NAME"), os.environ.get("CARGO_PKG_VERSION")
    with open(notes, "a", encoding="utf-8") as file:
        file.write(json.dumps([*package, usage.ru_utime + usage.ru_stime]) + "\n")
    return os.waitstatus_to_exitcode(status)


def cargo(*arguments, **environment):
    """Returns the output of cargo for these arguments."""
    environment = {**os.environ, **environment}
    done = subprocess.run([CARGO, *arguments], cwd=TOP, check=True, stdout=subprocess.PIPE, env=environment)
    return done.stdout.decode()


def durations(directory, manifest, build):
    """Returns (name, version) -> CPU seconds for every package that this build compiles."""
    os.makedirs(directory)
    notes = os.path.join(directory, "notes")
    wrapper = {"RUSTC_WRAPPER": os.path.abspath(__file__), NOTES: notes}
    cargo(*build, "--manifest-path", manifest, "--quiet", "--locked", "--target-dir", directory, **wrapper)
    seconds = {}
    with open(notes, encoding="utf-8") as file:
        for name, version, used in map(json.loads, file):
            seconds[name, version] = seconds.get((name, version), 0) + used
    return seconds


class Graph:
    """The resolved packages of a workspace on this machine."""

    def __init__(self, manifest):
        host = re.search(r"^host: (.*)$", cargo("-vV"), re.M).group(1)
        ask = ["metadata", "--format-version", "1", "--locked", "--filter-platform", host, "--manifest-path", manifest]
        data = json.loads(cargo(*ask))
        self.packages = {package["id"]: package for package in data["packages"]}
        self.members = data["workspace_members"]
        self.ours = {id for id, package in self.packages.items() if package["source"] is None}
        self.nodes = {node["id"]: node for node in data["resolve"]["nodes"]}

    def edges(self, package, kinds):
        """Yields the dependencies of a package of these kinds."""
        for edge in self.nodes[package]["deps"]:
            if any(kind["kind"] in kinds for kind in edge["dep_kinds"]):
                yield edge["pkg"]

    def direct(self, kinds):
        """Returns the direct external dependencies of the workspace's crates."""
        found = {edge for member in self.members for edge in self.edges(member, kinds)}
        return found - self.ours

    def closure(self, starts):
        """Returns these packages and all their transitive dependencies."""
        found, queue = set(), list(starts)
        while queue:
            package = queue.pop()
            if package not in found:
                found.add(package)
                queue.extend(self.edges(package, {None, "build"}))
        return found

    def key(self, package):
        """Returns name and version of a package."""
        return self.packages[package]["name"], self.packages[package]["version"]


def row(graph, package, others, seconds):
    """Formats the seconds of a package, with its dependencies, and with those that only it requires."""

    def total(packages):
        return sum(seconds.get(graph.key(each), 0) for each in packages)

    required = graph.closure({package})
    only = required - graph.closure(others - {package})
    name, version = graph.key(package)
    return f"| `{name}` {version} | {total({package}):.1f} | {total(required):.1f} | {total(only):.1f} |"


def table(graph, manifest, directory, packages, others, build):
    """Builds once and prints a row for each of these packages."""
    seconds = durations(directory, manifest, build)
    ours = {graph.key(package) for package in graph.ours}
    theirs = sum(value for key, value in seconds.items() if key not in ours)
    total = sum(seconds.values())
    print(f"\n{manifest}, cargo {' '.join(build)}: {total:.1f} s, dependencies {theirs:.1f} s of it\n")
    print("| crate | itself | with all it brings | saved without it |\n|---|---|---|---|")
    for package in sorted(packages, key=graph.key):
        print(row(graph, package, others, seconds))


def main():
    for manifest in ["Cargo.toml", "benches/slowfs/Cargo.toml", "fuzz/Cargo.toml"]:
        graph = Graph(manifest)
        used = graph.direct({None, "build"})
        tested = graph.direct({"dev"}) - used
        with tempfile.TemporaryDirectory() as directory:
            table(graph, manifest, os.path.join(directory, "build"), used, used, ["build", "--release"])
            if tested:
                table(graph, manifest, os.path.join(directory, "test"), tested, used | tested, ["test", "--no-run"])


if __name__ == "__main__":
    if NOTES in os.environ:
        sys.exit(rustc(sys.argv[1:], os.environ[NOTES]))
    main()
