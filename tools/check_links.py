#!/usr/bin/env python3
"""Do the links of Markdown pages lead somewhere?

Usage: check_links.py PAGE...   Exits 1 and names PAGE:LINE of each link whose file or heading is not there.

Links to other sites are not followed. An anchor is what GitHub makes of a heading. With `--each`, every heading of the
deepest level has to have a link under it as well: a glossary whose entries all say where more stands.
"""

import pathlib
import re
import sys


def text_lines(page):
    """(number, line) of the lines that are neither code nor a fence."""
    fenced = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, line


def headings(page):
    """(number, level, title)."""
    for number, line in text_lines(page):
        found = re.match(r"(#+) +(.*)", line)
        if found:
            yield number, len(found[1]), found[2]


def anchors(page):
    """What GitHub calls the headings: lower case, words and hyphens alone; the second of a name gets `-1`."""
    seen, names = {}, set()
    for _, _, title in headings(page):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).strip().lower()
        name = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        names.add(f"{name}-{seen[name]}" if name in seen else name)
        seen[name] = seen.get(name, 0) + 1
    return names


def links(page):
    """(number, target)."""
    for number, line in text_lines(page):
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
            yield number, target


def broken(page):
    for number, target in links(page):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        other = page.parent / path if path else page
        if not other.exists():
            yield number, f"'{target}' leads to no file"
        elif anchor and anchor not in anchors(other):
            yield number, f"'{target}': {other.name} has no such heading"


def without_link(page):
    """Headings of the deepest level that no link follows before the next heading."""
    all_of_them = list(headings(page))
    deepest = max(level for _, level, _ in all_of_them)
    ends = [number for number, _, _ in all_of_them[1:]] + [sys.maxsize]
    at = [number for number, _ in links(page)]
    for (number, level, title), end in zip(all_of_them, ends):
        if level == deepest and not any(number < n < end for n in at):
            yield number, f"'{title}' has no link"


def main():
    each = "--each" in sys.argv
    pages = [pathlib.Path(a) for a in sys.argv[1:] if a != "--each"]
    if not pages:
        sys.exit(__doc__)
    count = failed = 0
    for page in pages:
        count += sum(1 for _ in links(page))
        for number, problem in sorted([*broken(page), *(without_link(page) if each else [])]):
            print(f"{page}:{number}: {problem}", file=sys.stderr)
            failed += 1
    print(f"{count} links in {len(pages)} pages, {failed} problems")
    return failed > 0 or count == 0


if __name__ == "__main__":
    sys.exit(main())
