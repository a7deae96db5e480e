#!/usr/bin/env python3
"""Holds what names the keywords of .qir against frontend/qir/keywords.def: the lexer, the parser's
%fallback and tree-sitter's grammar. Prints what is missing or too much and exits 1; an argument names
another tree. tools/editors/check.py does the same for the syntaxes of vim and VS Code."""

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parents[1]


def main():
    root = pathlib.Path(sys.argv[1]) if sys.argv[1:] else HERE
    qir = root / "frontend/qir"
    rows = re.findall(r'^KEYWORD\((\w+), "(\w+)", \w+\)$', (qir / "keywords.def").read_text(), re.M)
    lexer = re.findall(r'^ +"([a-z]+)" +\{ TOKEN\(T_(\w+)\); \}', (qir / "lexer.re").read_text(), re.M)
    fallback = re.search(r"^%fallback IDENT ([^.]*)\.", (qir / "parser.y").read_text(), re.M)[1].split()
    wrong = [f"lexer.re and keywords.def differ in {row}"
             for row in {(token, word) for word, token in lexer} ^ set(rows)]
    # SCHEME is told from a name by the lexer; UNDER is no word.
    names = {token for token, _ in rows} - {"SCHEME"} | {"UNDER"}
    wrong += [f"%fallback and keywords.def differ in {token}" for token in set(fallback) ^ names]
    sitter = (root / "tools/editors/tree-sitter-qir/grammar.js").read_text()
    wrong += [f"tree-sitter's grammar.js lacks {word}" for _, word in rows if f"'{word}'" not in sitter]
    print("\n".join(sorted(wrong)) or f"{len(rows)} keywords")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
