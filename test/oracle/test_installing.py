"""The C library (docs/library.md), and what docs/install.md says of tarballs, packages and the action."""

import os
import shutil
import subprocess
import tarfile
import unittest

from common import BUILD, ROOT, OracleCase

DIGITS = ROOT / "examples/digits"
# Two threads that call at a time, a result in memory, mistakes of a user one after the other, and no memory for a model.
CALLER = r"""
#include <pthread.h>
#include <qxc.h>
#include <stdio.h>
#include <string.h>
static const char *model, *data;
static size_t bytes[2];
static void *quantize(void *at) {
    const char *words[] = {model, "-calib", data, "-emit=qdq", "-quiet"};
    for (int i = 0; i < 5; i++) {
        QxcResult *r = qxc_call(5, words);
        if (qxc_code(r) != QXC_DONE)
            return NULL;
        qxc_output(r, at);
        qxc_free(r);
    }
    return NULL;
}
static void wrong(size_t n, const char *const *words) {
    QxcResult *r = qxc_call(n, words);
    size_t seen;
    const char *text = qxc_messages(r, &seen);
    printf("%d %d %.*s\n", qxc_code(r), seen == strlen(text), (int)strcspn(text, "\n"), text);
    qxc_free(r);
}
int main(int argc, char **argv) {
    (void)argc;
    model = argv[1], data = argv[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, quantize, &bytes[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%s %d\n", qxc_version(), bytes[0] > 1000 && bytes[0] == bytes[1]);
    wrong(0, NULL);
    wrong(1, (const char *[]){"nix.onnx"});
    wrong(1, (const char *[]){data});
    wrong(2, (const char *[]){model, "-emti"});
    wrong(4, (const char *[]){"run", model, "-random=1", "-max-memory=0"});
    wrong(3, (const char *[]){model, "-o", "/nowhere/x.qir"});
    qxc_free(NULL);
    return 0;
}
"""


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise unittest.SkipTest(f"{tool} is not installed")


def environment():
    """Without what the make around this test says to its children."""
    return {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES")}


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=environment(), **options)
    if done.returncode:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Library(OracleCase):
    def setUp(self):
        super().setUp()
        if os.environ.get("SANITIZE"):
            self.skipTest("a sanitized library wants a sanitized program: make test runs this")
        need("ld", "objcopy", "nm", "pkg-config")
        self.prefix = self.scratch / "usr"
        # The folder as the make around this test names it: under another name everything would be compiled again.
        build = os.path.relpath(BUILD, ROOT) if BUILD.is_relative_to(ROOT) else BUILD
        flags = (BUILD / "flags").read_bytes()
        run("make", "-s", "-C", ROOT, "install-library", f"BUILD={build}", f"PREFIX={self.prefix}")
        self.assertEqual(flags, (BUILD / "flags").read_bytes())

    def build(self, source):
        program = source.with_suffix("")
        flags = run("pkg-config", f"--with-path={self.prefix}/lib/pkgconfig", "--cflags", "--libs", "libqxc").split()
        run("cc", "-Wall", "-Wextra", "-Werror", "-o", program, source, *flags)
        return program

    def test_names(self):
        lines = run("nm", "-g", "--defined-only", self.prefix / "lib/libqxc.a").splitlines()
        names = {line.split()[-1] for line in lines if len(line.split()) == 3}
        self.assertEqual(set((ROOT / "library/exported").read_text().split()), names)
        self.assertTrue(all(name.startswith("qxc_") for name in names), names)
        header = (self.prefix / "include/qxc.h").read_text()
        for name in names:
            self.assertIn(f"{name}(", header)
        for name in ("stdout", "stderr", "puts", "printf", "__printf_chk", "putchar", "exit", "isatty"):
            self.assertNotRegex(run("nm", "-u", self.prefix / "lib/libqxc.a"), rf"\bU {name}\n")

    def test_example(self):
        source = self.scratch / "quantize.c"
        shutil.copy(ROOT / "examples/library/quantize.c", source)
        program, result = self.build(source), self.scratch / "digits.int8.onnx"
        said = run(program, DIGITS / "digits.onnx", DIGITS / "calib.npz", result)
        self.assertIn('"came": "QDQ"', said)
        self.assertGreater(result.stat().st_size, 1000)
        failed = subprocess.run([program, "nix.onnx", DIGITS / "calib.npz", result], capture_output=True, text=True, check=False)
        self.assertEqual((1, "qxc: error: cannot read nix.onnx: No such file or directory\n"), (failed.returncode, failed.stderr))

    def test_calls(self):
        source = self.scratch / "caller.c"
        source.write_text(CALLER)
        done = subprocess.run([self.build(source), DIGITS / "digits.onnx", DIGITS / "calib.npz"], capture_output=True, text=True, check=True)
        self.assertEqual("", done.stderr)
        version, *wrong = done.stdout.splitlines()
        self.assertEqual(f"{(ROOT / 'VERSION').read_text().strip()} 1", version)
        codes = [line[:4] for line in wrong]
        self.assertEqual(["2 1 ", "3 1 ", "1 1 ", "2 1 ", "1 1 ", "3 1 "], codes, wrong)
        self.assertTrue(all("error:" in line for line in wrong), wrong)


class Installing(OracleCase):
    def test_dist(self):
        """The same bytes twice, all that is committed, and nothing that is not."""
        need("git")
        if not (ROOT / ".git").exists():
            self.skipTest("this is no git checkout")
        run("git", "clone", "-q", ROOT, self.scratch / "a")
        run("git", "clone", "-q", ROOT, self.scratch / "b")
        made = []
        for name, mask in ("a", 0o022), ("b", 0o077):
            run("make", "-s", "-C", self.scratch / name, "dist", preexec_fn=lambda mask=mask: os.umask(mask))
            made.append(next((self.scratch / name / "build").glob("qxc-*.tar.gz")))
        self.assertEqual(made[0].read_bytes(), made[1].read_bytes())
        with tarfile.open(made[0]) as tar:
            there = {m.name.split("/", 1)[1] for m in tar.getmembers() if not m.isdir()}
        self.assertEqual(set(run("git", "-C", self.scratch / "a", "ls-files").splitlines()), there)
        (self.scratch / "a" / "stray.c").write_text("")
        refused = subprocess.run(["make", "-s", "-C", self.scratch / "a", "dist"], capture_output=True, text=True, check=False, env=environment())
        self.assertNotEqual(0, refused.returncode)
        self.assertIn("stray.c", refused.stderr)

    def test_versions(self):
        """The package has the program's version; the action and the image use what is there."""
        version = (ROOT / "VERSION").read_text().strip()
        self.assertTrue((ROOT / "debian/changelog").read_text().startswith(f"qxc ({version}) "))
        for file in "action.yml", "Dockerfile":
            self.assertIn("tools/install_deps.sh build", (ROOT / file).read_text())

    def test_action_arguments(self):
        """Words in quotes are one, and nothing in them is run."""
        line = next(x for x in (ROOT / "action.yml").read_text().splitlines() if "xargs" in x and "run:" in x)
        script = line.split("run:", 1)[1].strip().replace('"$RUNNER_TEMP/qxc/bin/qxc"', "printf '[%s]'")
        self.assertIn("printf '[%s]'", script)
        said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True,
                              env={**environment(), "QXC_ARGS": "'a b.onnx' -keep=\"x y\" $(touch no) `id`;"})
        self.assertEqual("[a b.onnx][-keep=x y][$(touch][no)][`id`;]", said.stdout)


if __name__ == "__main__":
    unittest.main()
