#!/usr/bin/env python3
"""Changes passes/, target/, ir/quant*.c and ir/ops/ by one step at N places and tells how many of the changes a test notices.

    tools/mutate/run.sh [-n 200] [-seed 1] [-tests lit,unit,oracle/test_bits] [-again]

All N mutants are in one program, build/mutate/qxc; the environment variable QXC_MUTANT chooses one. First every test runs
once without a mutant and notes which ones it reaches; then each mutant meets the tests that reach it, the tests of its own
folder first, up to the first failure. -again looks only at those that survived the last run of the same program.

test/mutants.md explains survivors that change nothing: `FILE`, `FUNCTION`, `CHANGE`.
"""

import argparse
import collections
import fcntl
import hashlib
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import time

import points
import tests

ROOT = tests.ROOT
HERE = pathlib.Path(__file__).resolve().parent
BUILD = ROOT / "build/mutate"
SOURCES = BUILD / "mutated"
TRACES = BUILD / "trace"
EXPLAINED = ROOT / "test/mutants.md"
WANTED = 0.9
SLOWEST = 60  # seconds that a test may take to be used
ORACLE_BUDGET = 150  # seconds of oracle tests for one mutant


def files():
    found = [*ROOT.glob("passes/**/*.c"), *ROOT.glob("target/*.c"), *ROOT.glob("ir/quant*.c"), *ROOT.glob("ir/ops/*.c")]
    return sorted(str(p.relative_to(ROOT)) for p in found)


# ---- One program with all mutants.


def make(*targets):
    subprocess.run([os.environ.get("MAKE") or "make", f"-j{os.cpu_count()}", f"BUILD={BUILD.relative_to(ROOT)}", "WARN=-w",
                    "CFLAGS=-O1 -g0", *targets, f"CC={os.environ.get('CC') or 'cc'}"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)


def broken_lines(path, text):
    """The lines where the compiler finds errors in the rewritten `text` of `path`."""
    flags = subprocess.run(["pkg-config", "--cflags", "libprotobuf-c", "libzip", "jansson"], capture_output=True, text=True)
    done = subprocess.run(["cc", "-std=gnu11", "-fsyntax-only", "-w", f"-I{ROOT}", f"-I{BUILD}", *flags.stdout.split(), "-x", "c",
                           "-"], input=text, capture_output=True)
    lines = re.findall(re.escape(path) + r":(\d+):.*error:", done.stderr.decode())
    if done.returncode and not lines:
        sys.exit(done.stderr.decode())
    return {int(line) for line in lines}


def mutated(path, text, numbered):
    head = f'#include "tools/mutate/switch.h"\n#line 1 "{path}"\n'.encode()
    return head + points.rewrite(text, numbered)


def shuffled(mutants, seed):
    """`mutants` in an order that each has of its own: a change of the program elsewhere leaves it, so that a seed means the same
    mutants in the next version, but for those whose code is another."""
    met = collections.Counter()

    def key(mutant):
        name = mutant.file, mutant.function, mutant.change
        met[name] += 1
        return hashlib.sha256(repr((seed, name, met[name])).encode()).digest()

    return sorted(mutants, key=key)


def choose(n, seed):
    """`n` mutants, each as likely as any other, that compile; the first of them are those of a smaller `n`."""
    texts = {path: (ROOT / path).read_bytes() for path in files()}
    candidates = shuffled([m for path, text in texts.items() for m in points.points(path, text)], seed)
    chosen, rest = candidates[:n], candidates[n:]
    sound = set()
    while True:
        by_file = collections.defaultdict(list)
        for number, mutant in enumerate(chosen, 1):
            by_file[mutant.file].append((number, mutant))
        bad = set()
        for path, numbered in by_file.items():
            if sound.issuperset(m for _, m in numbered):
                continue
            lines = broken_lines(path, mutated(path, texts[path], numbered))
            height = {m: range(m.line, m.line + texts[path][m.start:m.end].count(b"\n") + 1) for _, m in numbered}
            wrong = {m for _, m in numbered if lines.intersection(height[m])}
            bad |= wrong
            sound |= {m for _, m in numbered} - wrong if not lines else set()
        if not bad:
            return texts, chosen, by_file, len(candidates)
        chosen = [m for m in chosen if m not in bad]
        chosen, rest = chosen + rest[:len(bad)], rest[len(bad):]


def write(path, text):
    """What stays the same keeps its age, and is not compiled again."""
    if not path.exists() or path.read_bytes() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


def build(texts, by_file):
    """Makes the program. What tells it from others."""
    digest = hashlib.sha256()
    for i, (path, text) in enumerate(texts.items()):
        out = mutated(path, text, by_file.get(path, []))
        if i == 0:
            out += b"\n" + (HERE / "switch.c").read_bytes()
        write(SOURCES / path, out)
        digest.update(out)
    make("all", "units", "tracer")
    return digest.hexdigest()


# ---- In the workers.


def start(counter, wanted):
    with counter.get_lock():
        counter.value += 1
        number = counter.value
    global TESTS
    TESTS = tests.all_tests(BUILD, number, wanted)


def trace_of(name):
    return TRACES / (name.replace("/", "+") + ".trace")


def record(name):
    """Seconds that the test takes without a mutant; None when it fails. Writes which mutants it reaches."""
    trace = trace_of(name)
    trace.unlink(missing_ok=True)
    begin = time.monotonic()
    passed = TESTS[name].run({"QXC_MUTANT_TRACE": str(trace)}, SLOWEST)
    return name, time.monotonic() - begin if passed else None


def meet(job):
    """The first test that fails with the mutant, or None."""
    number, names, seconds = job
    spent = 0
    for name in names:
        if name.startswith("oracle/"):
            spent += seconds[name]
            if spent > ORACLE_BUDGET:
                break
        if not TESTS[name].run({"QXC_MUTANT": str(number)}, int(10 + 5 * seconds[name])):
            return number, name
    return number, None


# ---- The whole.


def reached(seconds):
    """Mutant number to the tests that reach it."""
    by_mutant = collections.defaultdict(list)
    for name in seconds:
        if trace_of(name).exists():
            for number, bit in enumerate(trace_of(name).read_bytes()):
                if bit:
                    by_mutant[number].append(name)
    return by_mutant


def explained():
    """(file, function, change) of the survivors that test/mutants.md explains."""
    text = EXPLAINED.read_text() if EXPLAINED.exists() else ""
    return set(re.findall(r"^- `([^`]+)`, `([^`]+)`, `([^`]+)`:", text, re.M))


def progress(done, whole, of):
    if sys.stderr.isatty() or done % 50 == 0 or done == whole:
        print(f"{done}/{whole} {of}", end="\r" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)


def measure(pool, program, wanted):
    """Test name to seconds, of all that pass without a mutant; what is known of this program is not run again."""
    path = BUILD / "seconds.json"
    last = tests.pool.read_json(path, {})
    known = last["seconds"] if last.get("of") == program else {}
    own = tests.all_tests(BUILD, 0, wanted)
    stale = [n for n, t in own.items() if n not in known or known[n][0] != t.path.stat().st_mtime]
    try:
        for done, (name, seconds) in enumerate(pool.imap_unordered(record, stale), 1):
            progress(done, len(stale), "tests without a mutant")
            known[name] = own[name].path.stat().st_mtime, seconds
            if seconds is None:
                print(f"not used, it fails or is slow: {name}", file=sys.stderr)
    finally:  # so that the next run goes on from here
        path.write_text(json.dumps({"of": program, "seconds": known}))
    return {n: known[n][1] for n in own if known[n][1] is not None}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=200)
    parser.add_argument("-seed", type=int, default=1)
    parser.add_argument("-tests", default="lit,unit,oracle", type=lambda s: tuple(s.split(",")))
    parser.add_argument("-again", action="store_true")
    options = parser.parse_args()
    begin = time.monotonic()
    TRACES.mkdir(parents=True, exist_ok=True)
    lock = open(BUILD / "lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit("another `make mutate` runs in build/mutate")
    make("headers")  # which what is chosen needs to compile
    texts, chosen, by_file, total = choose(options.n, options.seed)
    program = build(texts, by_file)
    print(f"{len(chosen)} of {total} mutants, seed {options.seed}, built after {time.monotonic() - begin:.0f} s", file=sys.stderr)
    last = BUILD / "killed.json"
    old = tests.pool.read_json(last, {})
    killed = old["by"] if options.again and old.get("of") == program else {}
    with multiprocessing.Pool(os.cpu_count(), start, (multiprocessing.Value("i", 0), options.tests)) as pool:
        seconds = measure(pool, program, options.tests)
        by_mutant = reached(seconds)
        jobs = [(number, tests.order(m, by_mutant[number], seconds), seconds) for number, m in enumerate(chosen, 1)
                if str(number) not in killed]
        for done, (number, by) in enumerate(pool.imap_unordered(meet, jobs), 1):
            progress(done, len(jobs), "mutants")
            if by:
                killed[str(number)] = by
    last.write_text(json.dumps({"of": program, "by": killed}))
    report(chosen, killed, by_mutant, time.monotonic() - begin, options)


def report(chosen, killed, by_mutant, seconds, options):
    reasons = explained()
    lines, open_ones = [], 0
    for number, m in enumerate(chosen, 1):
        if str(number) in killed:
            continue
        known = (m.file, m.function, m.change) in reasons
        open_ones += not known
        note = "explained" if known else f"{len(by_mutant[number])} tests reach it"
        lines.append(f"{m.file}:{m.line}: {m.function}: {m.change} (number {number}, {note})")
    share = len(killed) / len(chosen)
    lines = sorted(lines) + [
        f"{len(killed)} of {len(chosen)} mutants killed: {100 * share:.1f} % (seed {options.seed}, {seconds / 60:.0f} minutes); "
        f"{len(lines)} survived, {len(lines) - open_ones} of them explained"]
    kills = [f"{m.file}:{m.line}: {m.function}: {m.change} (number {k}, killed by {killed[str(k)]})" for k, m in enumerate(chosen, 1)
             if str(k) in killed]
    (BUILD / "report.txt").write_text("\n".join(lines + ["", *sorted(kills), ""]))
    print("\n".join(lines))
    sys.exit(share < WANTED)


if __name__ == "__main__":
    main()
