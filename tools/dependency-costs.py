#!/usr/bin/env python3
"""Prints what each direct dependency costs in build time, the numbers of docs/dependencies.md.

A cost is processor time of the compiler, which does not depend on what else the machine does. This program is
also the compiler's wrapper: cargo starts it in rustc's place, and it notes what rustc used. It compiles into a
temporary directory (TMPDIR says where); a build script's own run is not counted.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CARGO = os.path.join(TOP, "tools", "cargo.sh")
# Names the file of notes to the wrapper.
NOTES = "FATHOM_COMPILER_NOTES"


def rustc(command, notes):
    """Runs the compiler and notes name, version and seconds of the package it worked on."""
    _, status, usage = os.wait4(os.posix_spawnp(command[0], command, os.environ), 0)
    package = os.environ.get("CARGO_PKG_NAME"), os.environ.get("CARGO_PKG_VERSION")
    with open(notes, "a", encoding="utf-8") as file:
        file.write(json.dumps([*package, usage.ru_utime + usage.ru_stime]) + "\n")
    return os.waitstatus_to_exitcode(status)


def cargo(*arguments, **environment):
    """What cargo prints for these arguments."""
    environment = {**os.environ, **environment}
    done = subprocess.run([CARGO, *arguments], cwd=TOP, check=True, stdout=subprocess.PIPE, env=environment)
    return done.stdout.decode()


def durations(directory, manifest, build):
    """Seconds by (name, version) of everything that this build compiles."""
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
    """The packages that cargo resolved for a workspace on this machine."""

    def __init__(self, manifest):
        host = re.search(r"^host: (.*)$", cargo("-vV"), re.M).group(1)
        ask = ["metadata", "--format-version", "1", "--locked", "--filter-platform", host, "--manifest-path", manifest]
        data = json.loads(cargo(*ask))
        self.packages = {package["id"]: package for package in data["packages"]}
        self.members = data["workspace_members"]
        self.ours = {id for id, package in self.packages.items() if package["source"] is None}
        self.nodes = {node["id"]: node for node in data["resolve"]["nodes"]}

    def edges(self, package, kinds):
        """What this package depends on, in one of these ways."""
        for edge in self.nodes[package]["deps"]:
            if any(kind["kind"] in kinds for kind in edge["dep_kinds"]):
                yield edge["pkg"]

    def direct(self, kinds):
        """What the workspace's own crates depend on."""
        found = {edge for member in self.members for edge in self.edges(member, kinds)}
        return found - self.ours

    def below(self, starts):
        """These packages and all that they bring."""
        found, queue = set(), list(starts)
        while queue:
            package = queue.pop()
            if package not in found:
                found.add(package)
                queue.extend(self.edges(package, {None, "build"}))
        return found

    def key(self, package):
        """Name and version."""
        return self.packages[package]["name"], self.packages[package]["version"]


def row(graph, package, others, seconds):
    """Its own seconds, those of all that it brings, and those of what nobody else brings."""

    def total(packages):
        return sum(seconds.get(graph.key(each), 0) for each in packages)

    brought = graph.below({package})
    only = brought - graph.below(others - {package})
    name, version = graph.key(package)
    return f"| `{name}` {version} | {total({package}):.1f} | {total(brought):.1f} | {total(only):.1f} |"


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
