"""Properties of the machine of a run, without names or paths that identify it."""

import os
import platform
import subprocess
from pathlib import Path


def facts(corpora):
    """Returns label -> text."""
    kind, options = filesystem(corpora)
    return {
        "CPU": f"{os.cpu_count()} x {cpu_model()}{virtual()}",
        "memory": f"{memory_gib():.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "distribution": distribution(),
        "filesystem": f"{kind} ({options})",
        "commit": commit(),
    }


def kind(corpora):
    """Returns a short name for this kind of machine, for the name of the run directory."""
    return f"{os.cpu_count()}cpu-{filesystem(corpora)[0]}"


def cpu_model():
    return field("/proc/cpuinfo", "model name", ":") or platform.processor() or "unknown CPU"


def virtual():
    flags = field("/proc/cpuinfo", "flags", ":") or ""
    return ", virtual machine" if "hypervisor" in flags.split() else ""


def memory_gib():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30


def distribution():
    return (field("/etc/os-release", "PRETTY_NAME", "=") or "unknown").strip('"')


def field(path, name, separator):
    """Returns the value of the first line `name SEPARATOR value` of a file."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition(separator)
        if key.strip() == name:
            return value.strip()
    return None


def filesystem(path):
    """Returns (type, mount options) of the filesystem that holds `path`."""
    device = os.stat(path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        if fields.split()[2] == number:
            return rest.split()[0], fields.split()[5]
    return "unknown", "unknown"


def commit():
    """Returns the measured commit, and whether the tree had uncommitted changes."""
    here = Path(__file__).resolve().parent
    head = git(here, "rev-parse", "--short=12", "HEAD")
    if not head:
        return "none yet"
    changed = git(here, "status", "--porcelain", "--untracked-files=no")
    return head + (" with local changes" if changed else "")


def git(directory, *words):
    command = ["git", "-C", directory, *words]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.strip() if done.returncode == 0 else ""
