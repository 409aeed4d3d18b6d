"""The wheel and the source distribution: the command that is installed, records, and the files that builds need."""

import base64
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

import fathomfs as ff
from fathomfs._command import find_command

TOP = Path(__file__).resolve().parents[2]


def load_backend():
    spec = importlib.util.spec_from_file_location("build_backend", TOP / "python/build_backend.py")
    backend = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(backend)
    return backend


def distribution():
    """Returns the distribution that the imported package is from."""
    for found in importlib.metadata.distributions(name="fathomfs"):
        if Path(found.locate_file("fathomfs/__init__.py")).resolve() == Path(ff.__file__).resolve():
            return found
    raise unittest.SkipTest("the package is imported from its sources")


class Installed(unittest.TestCase):
    def test_the_command_is_installed_beside_python(self):
        scripts = [path for path in distribution().files if path.name == "fathom"]
        self.assertEqual(len(scripts), 1)
        script = Path(scripts[0].locate()).resolve()
        self.assertTrue(os.access(script, os.X_OK))
        version = subprocess.run([script, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertEqual(version, f"fathom {ff.__version__}\n")
        without = {name: value for name, value in os.environ.items() if name not in ("FATHOM", "PATH")}
        code = "from fathomfs._command import find_command; print(find_command())"
        found = subprocess.run([sys.executable, "-c", code], env=without, stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(Path(found.stdout.strip()).resolve(), script)

    def test_the_record_has_the_hash_of_every_file(self):
        hashed = [path for path in distribution().files if path.hash is not None]
        self.assertGreater(len(hashed), 10)
        for path in hashed:
            digest = base64.urlsafe_b64encode(hashlib.new(path.hash.mode, path.read_binary()).digest())
            self.assertEqual(digest.rstrip(b"=").decode(), path.hash.value, path)


@unittest.skipUnless(importlib.util.find_spec("maturin"), "maturin is not installed")
class Backend(unittest.TestCase):
    def setUp(self):
        self.backend = load_backend()
        temp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, temp)
        self.temp = Path(temp)

    def test_a_command_is_added_to_a_wheel(self):
        wheel = self.temp / "fathomfs-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("fathomfs/__init__.py", "x = 1\n")
            archive.writestr("fathomfs-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: fathomfs\nVersion: 1.0\n")
            archive.writestr("fathomfs-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr("fathomfs-1.0.dist-info/RECORD", "fathomfs/__init__.py,,\nfathomfs-1.0.dist-info/RECORD,,\n")
        self.backend.add_command(wheel, Path(find_command()))
        with zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo("fathomfs-1.0.data/scripts/fathom")
            self.assertEqual(info.external_attr >> 16, stat.S_IFREG | 0o755)
            lines = archive.read("fathomfs-1.0.dist-info/RECORD").decode().splitlines()
        digest = hashlib.sha256(Path(find_command()).read_bytes()).digest()
        encoded = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        self.assertEqual(lines[-1], f"{info.filename},sha256={encoded},{info.file_size}")
        self.assertEqual([path.name for path in self.temp.iterdir()], [wheel.name])

    def test_a_given_command_must_be_executable(self):
        os.environ["FATHOMFS_BUILD_COMMAND"] = str(self.temp)[:-1] + "-missing"
        self.addCleanup(os.environ.pop, "FATHOMFS_BUILD_COMMAND")
        with self.assertRaisesRegex(SystemExit, "names no executable file: '.*-missing'"):
            self.backend.build_command("wheel")

    def test_a_missing_compiler_is_named_at_once(self):
        for name, value, message in (
            ("CC", str(self.temp / "cc"), "cannot build without '.*/cc': install a C compiler"),
            ("CC", f"{self.temp}/cc -m64", "cannot build without '.*/cc': install a C compiler"),
            ("PATH", str(self.temp), "cannot build without 'cargo': install the Rust toolchain"),
        ):
            with self.subTest(name), mock.patch.dict(os.environ, {name: value}):
                for hook in (self.backend.get_requires_for_build_wheel, self.backend.get_requires_for_build_editable):
                    self.assertRaisesRegex(SystemExit, message, hook)
        cargo = self.temp / "cargo"
        cargo.symlink_to("/bin/true")
        with mock.patch.dict(os.environ, {"CC": "true with words", "PATH": f"{self.temp}:/bin"}):
            self.assertIsNone(self.backend.check_tools())

    def test_a_profile_has_the_variables_of_cargo(self):
        with mock.patch.dict(os.environ, {"FATHOMFS_BUILD_PROFILE": ""}):
            self.assertEqual(self.backend.profile(), "wheel")
        self.assertEqual(self.backend.variables("my-own")["CARGO_PROFILE_MY_OWN_DEBUG"], "none")

    @unittest.skipIf(sys.version_info < (3, 11), "tomllib is of Python 3.11")
    def test_both_builds_share_what_they_compile(self):
        import tomllib

        of_command, of_module = (
            tomllib.loads(Path(TOP, manifest).read_text())["profile"]["wheel"]
            for manifest in ("Cargo.toml", "crates/python/Cargo.toml")
        )
        packages, own = of_command.pop("package"), of_module.pop("package")
        self.assertEqual(of_command, of_module)
        self.assertEqual(own.keys() - packages.keys(), {"fathom-python"})
        self.assertEqual([name for name in own.keys() & packages.keys() if own[name] != packages[name]], [])

    @unittest.skipUnless((TOP / ".git").exists(), "not a checkout")
    def test_the_source_distribution_has_what_both_builds_need(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(TOP)
        # As pip does it: the programs of the build environment come first.
        self.addCleanup(os.environ.update, PATH=os.environ["PATH"])
        os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
        name = self.backend.build_sdist(str(self.temp))
        with tarfile.open(self.temp / name) as archive:
            archive.extractall(self.temp, filter="data")
            names = archive.getnames()
        self.assertEqual(len(names), len(set(names)))
        top = self.temp / name.removesuffix(".tar.gz")
        for manifest in ("Cargo.toml", "crates/python/Cargo.toml"):
            ask = ["cargo", "metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"]
            found = subprocess.run([*ask, "--manifest-path", top / manifest], stdout=subprocess.DEVNULL)
            self.assertEqual(found.returncode, 0, manifest)
        listed = subprocess.run(["git", "ls-files", "-z", "crates"], cwd=TOP, stdout=subprocess.PIPE, check=True)
        for path in filter(None, map(os.fsdecode, listed.stdout.split(b"\0"))):
            if (TOP / path).exists():
                self.assertTrue((top / path).exists(), path)


if __name__ == "__main__":
    unittest.main()
