#!/usr/bin/env python3
"""Generates the tree-sitter parser for .qir in a scratch folder and holds it against texts.

    check_tree_sitter.py [--errors] [--tree] FILE...

Each FILE is a .qir text, several with lines `// -----` between, or a .md page with ```qir blocks. Every text must parse
without errors, but those that say themselves what syntax was expected; with --errors every text must have some, and all of its good statements must be found all
the same (those whose line holds none of the errors that the tree shows). --tree prints the trees. Exits 77
where the program `tree-sitter` (Debian's tree-sitter-cli, or TREE_SITTER) is not there.
"""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import check_docs  # noqa: E402

GRAMMAR = pathlib.Path(__file__).resolve().parent / "tree-sitter-qir"


def language(scratch):
    """Generated, compiled and loaded; and the queries compile."""
    import tree_sitter
    folder = pathlib.Path(scratch) / "tree-sitter-qir"
    shutil.copytree(GRAMMAR, folder, ignore=shutil.ignore_patterns("src"))
    subprocess.run([os.environ.get("TREE_SITTER", "tree-sitter"), "generate"], cwd=folder, check=True,
                   stdin=subprocess.DEVNULL)
    library = folder / "qir.so"
    subprocess.run([os.environ.get("CC", "cc").split()[-1], "-shared", "-fPIC", "-O1", "-Isrc", "-o", library,
                    "src/parser.c"], cwd=folder, check=True)
    make = ctypes.CDLL(str(library)).tree_sitter_qir
    make.restype = ctypes.c_void_p
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype = ctypes.py_object
    capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    made = tree_sitter.Language(capsule(make(), b"tree_sitter.Language", None))
    query = tree_sitter.Query(made, (folder / "queries/highlights.scm").read_text())
    return tree_sitter.Parser(made), query


def texts(path):
    """(first line, text) of what the file holds."""
    text = path.read_text(errors="surrogateescape")
    if path.suffix == ".md":
        return [(block.line - 2, check_docs.whole(block.text)) for block in check_docs.blocks(path)
                if block.language == "qir" and "-verify-diagnostics" not in block.words]
    parts, line = [], 0
    for part in re.split(r"^// -----.*\n", text, flags=re.M):
        parts.append((line, part))
        line += part.count("\n") + 1
    return parts


def broken(text):
    """A text of tests about errors of syntax."""
    return re.search(r"expected-error.*\{\{expected", text)


def errors(node):
    """The innermost nodes that are errors or missing."""
    if not node.has_error:
        return []
    found = [e for child in node.children for e in errors(child)]
    return found or ([node] if node.is_error or node.is_missing else [])


def walk(node):
    yield node
    for child in node.children:
        yield from walk(child)


def whole(text):
    """Blocks of documentation may be parts of a file or of a graph."""
    if re.search(r"^\s*qir\s+\d", text, re.M):
        return text, 0
    if re.search(r"^(graph|func|quant|blob|model|meta|import|scheme)\b", text, re.M):
        return "qir 1\n" + text, 1
    return "qir 1\ngraph @g () -> () {\n" + text + "}\n", 2


def main():
    arguments = sys.argv[1:]
    want_errors, tree = "--errors" in arguments, "--tree" in arguments
    files = [pathlib.Path(a) for a in arguments if not a.startswith("--")]
    if not shutil.which(os.environ.get("TREE_SITTER", "tree-sitter")):
        print("tree-sitter is not here, nothing was looked at", file=sys.stderr)
        return 77
    failures = count = 0
    with tempfile.TemporaryDirectory() as scratch:
        parser, query = language(scratch)
        for file in files:
            for first, text in texts(file):
                if broken(text) and not want_errors:
                    continue
                count += 1
                source, added = whole(text)
                root = parser.parse(source.encode(errors="surrogateescape")).root_node
                bad = errors(root)
                if tree:
                    print(f"{file}: {root}")
                for e in bad if not want_errors else []:
                    failures += 1
                    print(f"error: {file}:{first + e.start_point[0] + 1 - added}: {e.type} "
                          f"{e.text[:60].decode(errors='replace')!r}")
                if not want_errors:
                    continue
                lines = {e.start_point[0] for e in bad}
                seen = {n.start_point[0] for n in walk(root) if n.type in ("node", "constant", "quant")}
                for at, line in enumerate(source.split("\n")):
                    if re.match(r"\s*([%(_].*=|const\b|quant\b)", line) and not {at} & (seen | lines):
                        failures += 1
                        print(f"error: {file}:{first + at + 1 - added}: lost: {line.strip()}")
                print(f"{file.name}: errors in lines {sorted(first + n + 1 - added for n in lines)}")
                failures += not bad
    print(f"{count} texts, {failures} failures")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
