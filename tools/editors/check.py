#!/usr/bin/env python3
"""Checks the highlighting of .qir: check.py MARKED [SAMPLE...]

MARKED is a text in which «kind|text» says how `text` is to be shown; both editors' syntaxes are
held against it. Of the samples, .qir files that the compiler accepts, the TextMate grammar must
know every word. Vim is left out where it is not installed.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GRAMMAR = HERE / "vscode/syntaxes/qir.tmLanguage.json"

# kind: scope in TextMate (its beginning), group in vim (without qir)
KINDS = {
    "comment": ("comment.line", "Comment"), "string": ("string.quoted", "String"),
    "escape": ("constant.character.escape", "Escape"), "bad": ("invalid.illegal", "BadEscape"),
    "keyword": ("keyword.control", "Keyword"), "clause": ("keyword.other.clause", "Clause"),
    "number": ("constant.numeric", "Number"), "other": ("constant.language", "Other"),
    "value": ("variable.other.value", "Value"), "ref": ("variable.parameter", "Ref"),
    "alias": ("entity.name.type.quantization", "Alias"),
    "symbol": ("entity.name.section", "Symbol"),
    "operator": ("entity.name.function.operator", "Operator"),
    "attr": ("entity.other.attribute-name", "Attr"), "word": ("variable.other.word", "Word"),
    "arrow": ("keyword.operator", "Arrow"), "data": ("support.function.data", "Data"),
    "quantized": ("storage.type.quantized", "Quantized"),
    "element": ("storage.type.element", "Element"), "kind": ("storage.type.kind", "Kind"),
    "container": ("storage.type.container", "Container"),
    "scheme": ("keyword.other.scheme", "SchemeWord"),
    "schemetype": ("storage.type.quantized", "SchemeType"),
}


class TextMate:
    """What an editor does with a grammar, line by line, for the rules that ours uses."""

    def __init__(self, path):
        self.grammar = json.loads(path.read_text())
        self.compiled = {}

    def regex(self, text):
        if text not in self.compiled:
            self.compiled[text] = re.compile(text)
        return self.compiled[text]

    def rules(self, patterns):
        for p in patterns:
            if "include" in p:
                inner = self.grammar["repository"][p["include"][1:]]
                yield from self.rules([inner])
            elif "match" in p or "begin" in p:
                yield p
            else:
                yield from self.rules(p["patterns"])

    def scopes(self, text):
        """The innermost scope of every character; None where there is none."""
        stack, result = [], []
        for line in text.split("\n"):
            scope = [stack[-1].get("name") if stack else None] * len(line)
            at = 0
            while at <= len(line):
                top = stack[-1] if stack else None
                best = self.regex(top["end"]).search(line, at) if top else None
                rule = None
                for r in self.rules(top["patterns"] if top else self.grammar["patterns"]):
                    m = self.regex(r.get("match") or r["begin"]).search(line, at)
                    if m and (best is None or m.start() < best.start()):
                        best, rule = m, r
                if best is None:
                    break
                name = (rule or top).get("name")
                scope[best.start():best.end()] = [name] * (best.end() - best.start())
                if rule is None:
                    stack.pop()
                elif "begin" in rule:
                    for group, capture in rule.get("beginCaptures", {}).items():
                        a, b = best.span(int(group))
                        scope[a:b] = [capture["name"]] * (b - a)
                    stack.append(rule)
                    scope[best.end():] = [rule.get("name")] * (len(line) - best.end())
                if best.end() == best.start() and rule is not None:
                    at += 1
                else:
                    at = best.end()
                if rule is None and stack:
                    scope[at:] = [stack[-1].get("name")] * (len(line) - at)
                elif rule is None:
                    scope[at:] = [None] * (len(line) - at)
                if best.end() == len(line) and rule is None:
                    break
            result.append(scope)
        return result


def unmark(text):
    """The plain lines, and (line, begin, end, kind) of what is marked."""
    lines, marks = [], []
    for number, line in enumerate(text.rstrip("\n").split("\n")):
        plain = ""
        for piece in re.split(r"(«\w+\|[^»]*»)", line):
            m = re.fullmatch(r"«(\w+)\|([^»]*)»", piece)
            if m:
                marks.append((number, len(plain), len(plain) + len(m[2]), m[1]))
                plain += m[2]
            else:
                plain += piece
        lines.append(plain)
    return lines, marks


def vim_groups(lines, spots):
    """The group at each (line, column)."""
    with tempfile.TemporaryDirectory() as folder:
        source, script, out = (pathlib.Path(folder) / n for n in ("a.qir", "s.vim", "out"))
        source.write_text("\n".join(lines) + "\n")
        calls = [f"call add(g:names, synIDattr(synID({l + 1}, {c + 1}, 0), 'name'))"
                 for l, c in spots]
        script.write_text("\n".join([
            "set nocompatible", f"set runtimepath^={HERE}/vim", "syntax on", f"edit {source}",
            f"source {HERE}/vim/syntax/qir.vim", "syntax sync fromstart", "let g:names = []",
            *calls, f"call writefile(g:names, '{out}')", "qall!"]))
        subprocess.run(["vim", "-u", "NONE", "-i", "NONE", "-n", "-es", "-S", script],
                       check=False, stdin=subprocess.DEVNULL, timeout=50)
        return out.read_text().split("\n") if out.exists() else []


def main():
    failures = 0

    def fail(text):
        nonlocal failures
        failures += 1
        print(f"error: {text}")

    textmate = TextMate(GRAMMAR)
    lines, marks = unmark(pathlib.Path(sys.argv[1]).read_text())
    scopes = textmate.scopes("\n".join(lines))
    for number, begin, end, kind in marks:
        got = set(scopes[number][begin:end])
        # A string may hold escapes, which have a scope of their own.
        good = all(s and s.startswith((KINDS[kind][0], "constant.character.escape"))
                   if kind == "string" else s and s.startswith(KINDS[kind][0]) for s in got)
        if not good:
            fail(f"line {number + 1}: '{lines[number][begin:end]}' is {sorted(map(str, got))}, "
                 f"not {kind}")
    if shutil.which("vim"):
        spots = [(n, c) for n, begin, end, _ in marks for c in (begin, end - 1)]
        names = vim_groups(lines, spots)
        for k, (number, begin, end, kind) in enumerate(marks):
            got = set(names[2 * k:2 * k + 2])
            if not got <= {"qir" + KINDS[kind][1]} | ({"qirEscape"} if kind == "string" else set()):
                fail(f"vim, line {number + 1}: '{lines[number][begin:end]}' is {sorted(got)}, "
                     f"not {kind}")

    # Words of the language that a syntax does not have.
    for file in (GRAMMAR, HERE / "vim/syntax/qir.vim"):
        text = re.sub(r"\\+(?:z[es]|[<>b])", " ", file.read_text())
        keywords = (ROOT / "frontend/qir/keywords.def").read_text()
        for word in re.findall(r'^KEYWORD\(\w+, "(\w+)"', keywords, re.M):
            if not re.search(rf"(?<![a-z]){word}(?![a-z])", text):
                fail(f"{file.name} does not know the word {word}")
    elements = re.findall(r'^ELEM\(\w+, \d+, "(\w+)"', (ROOT / "ir/elem.def").read_text(), re.M)
    plain = [f"%x : {e}[1]" for e in elements]
    for e, scope in zip(elements, textmate.scopes("\n".join(plain))):
        if not (scope[5] or "").startswith("storage.type.element"):
            fail(f"the grammar does not know the type {e}")
    if shutil.which("vim"):
        for e, name in zip(elements, vim_groups(plain, [(i, 5) for i in range(len(plain))])):
            if name != "qirElement":
                fail(f"vim does not know the type {e}")

    for path in sys.argv[2:]:
        text = pathlib.Path(path).read_text(errors="surrogateescape")
        for number, (line, scope) in enumerate(zip(text.split("\n"), textmate.scopes(text))):
            for c, s in zip(line, scope):
                if not c.isspace() and (s is None or s.startswith("invalid")):
                    fail(f"{path}:{number + 1}: '{c}' in '{line.strip()}' is {s}")
                    break
    print(f"{len(marks)} places, {len(sys.argv) - 2} samples, {failures} failures")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
