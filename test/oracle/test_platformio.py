"""PlatformIO takes the Arduino library as it is, finds what it needs, and builds a program with it.

PlatformIO comes from PyPI, into a virtual environment of its own. What it would load from its registry
is made here: its build tool, SCons, is the one of PyPI, and the platform is the PC's compiler. Boards
with Arduino's framework need the registry and are not tested. Without PyPI the tests are skipped.
"""

import json
import shutil
import subprocess
import sys
import unittest

from common import BUILD, QXC, ROOT, OracleCase, alone
from test_packaging import ARDUINO, ARDUINO_MAIN, outside_make

LIBRARY = ROOT / "examples/arduino"
PACKAGES = ("platformio==6.2.0", "scons==4.11.1")
SCONS = "4.41101.0"  # what PlatformIO calls this SCons
PLATFORM = {"name": "native", "title": "Native", "version": "1.0.0", "license": "Apache-2.0", "packages": {},
            "description": "the compiler of this machine"}
PLATFORM_CLASS = "from platformio.public import PlatformBase\n\n\nclass NativePlatform(PlatformBase):\n    pass\n"
BUILDER = ("from SCons.Script import Default, DefaultEnvironment\n"
           "env = DefaultEnvironment()\nenv.Replace(PROGNAME='program')\nDefault([env.BuildProgram()])\n")


def environment():
    """The folder with PlatformIO's programs, made once."""
    folder = BUILD / "platformio-venv"
    made_from = folder.with_suffix(".made-from")
    with alone(BUILD / "platformio"):
        if not (made_from.exists() and made_from.read_text() == repr(PACKAGES)):
            shutil.rmtree(folder, ignore_errors=True)
            install(folder)
            made_from.write_text(repr(PACKAGES))
    return folder / "bin"


def install(folder):
    """By the pip of the tests: a virtual environment without one is made in a moment."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    done = subprocess.run([sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--quiet",
                           "--disable-pip-version-check", *PACKAGES], capture_output=True, text=True, check=False)
    if done.returncode:
        raise unittest.SkipTest(f"PlatformIO cannot be installed: {done.stderr.strip()[-200:]}")


class PlatformIO(OracleCase):
    expected_seconds = 10

    def setUp(self):
        self.programs = environment()
        core = self.scratch / "core"
        self.environ = outside_make() | {
            "PLATFORMIO_CORE_DIR": str(core), "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "No",
            "PLATFORMIO_SETTING_CHECK_PLATFORMIO_INTERVAL": "9999", "PLATFORMIO_NO_ANSI": "1"}
        self.library = self.scratch / "library"
        if not self.library.exists():
            shutil.copytree(LIBRARY, self.library)
            subprocess.run(["make", "-s", "-C", LIBRARY, f"OUT={self.library / 'src'}", f"QXC={QXC}"], check=True,
                           env=outside_make())
            self.tool(core / "packages/tool-scons")

    @staticmethod
    def tool(folder):
        """SCons where PlatformIO looks for it."""
        folder.mkdir(parents=True)
        about = {"name": "tool-scons", "version": SCONS}
        spec = {"owner": "platformio", "id": None, "name": "tool-scons", "requirements": None, "uri": None}
        (folder / "package.json").write_text(json.dumps(about))
        (folder / ".piopm").write_text(json.dumps(about | {"type": "tool", "spec": spec}))
        (folder / "scons.py").write_text("from SCons.Script import main\nmain()\n")

    def pio(self, *arguments, cwd=None):
        done = subprocess.run([self.programs / "pio", *arguments], env=self.environ, cwd=cwd or self.scratch,
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(0, done.returncode, done.stdout[-2000:] + done.stderr[-2000:])
        return done.stdout

    def test_pack(self):
        """It accepts what library.json says and takes all files along."""
        archive = self.scratch / "library.tar.gz"
        self.pio("pkg", "pack", self.library, "-o", archive)
        names = subprocess.run(["tar", "tzf", archive], capture_output=True, text=True, check=True).stdout.split()
        for name in ("library.json", "src/digits.c", "src/digits.h", "examples/Digits/Digits.ino"):
            self.assertIn(name, names)

    def test_one_name_and_version(self):
        lines = (LIBRARY / "library.properties").read_text().splitlines()
        properties = dict(line.split("=", 1) for line in lines)
        about = json.loads((LIBRARY / "library.json").read_text())
        for key, other in (("name", "name"), ("version", "version"), ("headers", "includes")):
            self.assertEqual(properties[other], about[key])

    def test_build(self):
        """The sketch as a program of the PC, the library as a dependency."""
        project, platform = self.scratch / "project", self.scratch / "platform"
        (project / "src").mkdir(parents=True)
        (platform / "builder").mkdir(parents=True)
        (platform / "platform.json").write_text(json.dumps(PLATFORM))
        (platform / "platform.py").write_text(PLATFORM_CLASS)
        (platform / "builder/main.py").write_text(BUILDER)
        (project / "platformio.ini").write_text(
            f"[env:native]\nplatform = symlink://{platform}\nlib_deps = symlink://{self.library}\n")
        (project / "src/Arduino.h").write_text(ARDUINO)
        sketch = (LIBRARY / "examples/Digits/Digits.ino").read_text()
        (project / "src/main.cpp").write_text(f'#include "Arduino.h"\n{sketch}{ARDUINO_MAIN}')
        said = self.pio("run", "-v", cwd=project)
        self.assertIn("QxcDigits @ 0.1.0", said)
        played = subprocess.run([project / ".pio/build/native/program"], capture_output=True, text=True, check=True)
        self.assertIn("digit 7, microseconds: ", played.stdout)


if __name__ == "__main__":
    unittest.main()
