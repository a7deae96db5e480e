#!/usr/bin/env python3
"""Writes docs/grammar.md, the grammar of .qir, from frontend/qir/parser.y and lexer.re.

Usage: gen_grammar.py           writes the page
       gen_grammar.py --check   exits 1 where the page is not what would be written

Actions are left out, and so are the rules that go on after a syntax error. Left recursion is
written as a repetition, alternatives that differ by a part that may be absent as [ ].
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PARSER = ROOT / "frontend/qir/parser.y"
LEXER = ROOT / "frontend/qir/lexer.re"
PAGE = ROOT / "docs/grammar.md"

HEAD = """# The grammar of `.qir`

<!-- Written by tools/gen_grammar.py from frontend/qir/parser.y and lexer.re; a test holds it against them. -->

What the parts mean stands in [ir.md](ir.md).

| notation | means |
|---|---|
| `lower` | a rule of this page |
| `UPPER` | a token, see below |
| `'x'` | the text itself |
| `[ x ]`, `x*` | x or nothing; any number of x |
| `( a \\| b )` | one of them |

"""

# Tokens that code in the lexer makes, in words.
SPECIAL = {
    "NL": "a line's end outside of `()`, `[]` and `<>`, once for several; also before `}` and at the end of the text",
    "NUMBERS": "a list `'[' number (',' number)* ']'` of numbers alone; a number is INT or FLOAT",
    "SCHEME": "`scheme` and what stands in the braces behind it, at the beginning of a line of the file",
}


def rules(text):
    """[(section, left side, [symbols])] of a Lemon grammar, in order; labels and actions left out."""
    out, section = [], ""
    heading = re.compile(r"/\* ---- (.*?) ---- \*/")
    rule = re.compile(r"^(\w+)(?:\(\w+\))? ::=([^.]*)\.", re.M)
    marks = sorted([(m.start(), m) for m in heading.finditer(text)] +
                   [(m.start(), m) for m in rule.finditer(text)], key=lambda x: x[0])
    for _, m in marks:
        if m.re is heading:
            section = m[1]
        else:
            out.append((section, m[1], re.sub(r"\(\w+\)", "", m[2]).split()))
    return out


def written(left, symbols):
    """A rule as Lemon's trace names it."""
    return " ".join([left, "::=", *symbols])


# ---- tokens


def definitions(lexer):
    """The named regular expressions of lexer.re, in order: {name: text}."""
    block = re.search(r"/\*!re2c\n(.*?)\*/", lexer, re.S)[1]
    return dict(re.findall(r"^    (\w+) += (.*);$", block, re.M))


def token_forms(lexer):
    """{token: [how it is written]}: the rules of the lexer, each a pattern and the token it makes."""
    forms = {}
    for line in lexer.splitlines():
        m = re.match(r"        (\S.*?) +\{.*?T_(\w+)", line)
        if m and m[2] != "BAD":
            forms.setdefault(m[2], []).append(m[1])
    forms.setdefault("LB", ['"["'])
    return {k: v for k, v in forms.items() if k not in SPECIAL}


def fixed(forms):
    """The token's text where it has only one."""
    text = re.fullmatch(r'"([^"\\]+)"', forms[0]) if len(forms) == 1 else None
    return text and text[1]


# ---- productions


def without(long, short):
    """Where `long` is `short` with one run of symbols more, not at its beginning: (begin, end) of the run."""
    extra = len(long) - len(short)
    for i in range(len(short), 0, -1):
        if extra > 0 and long[:i] == short[:i] and long[i + extra:] == short[i:]:
            return i, i + extra
    return None


def merge(alternatives):
    """Pairs that differ by one run of symbols become one alternative with that run optional."""
    for short in sorted(alternatives, key=len, reverse=True):
        for long in alternatives:
            at = without(long, short)
            if at:
                run = "[ " + " ".join(long[at[0]:at[1]]) + " ]"
                where = min(alternatives.index(short), alternatives.index(long))
                rest = [a for a in alternatives if a not in (short, long)]
                return merge([*rest[:where], [*long[:at[0]], run, *long[at[1]:]], *rest[where:]])
    return alternatives


def repeated(alternatives):
    one = len(alternatives) == 1 and " " not in alternatives[0]
    return (alternatives[0] if one else "( " + "\n| ".join(alternatives) + " )") + "*"


def body(left, alternatives):
    """The right side, one string per alternative."""
    loops = [a[1:] for a in alternatives if a[:1] == [left]]
    starts = [a for a in alternatives if a[:1] != [left]]
    if not loops:
        if [] in starts:
            starts.remove([])
            return ["[ " + " | ".join(" ".join(a) for a in starts) + " ]"]
        return [" ".join(a) for a in merge(starts)]
    if starts == [[]]:  # none or more
        if len(loops) == 1:
            return [repeated([" ".join(loops[0])])]
        return [repeated([" ".join(a) for a in loops])]
    head = " | ".join(" ".join(a) for a in starts)
    more = [a[1:] if a[0] == "COMMA" else a for a in loops]
    if all(a[0] == "COMMA" for a in loops) and more == starts:  # a list with commas
        head = f"( {head} )" if len(starts) > 1 else head
        return [f"{head} ( COMMA {head} )*"]
    head = "( " + "\n| ".join(" ".join(a) for a in starts) + " )"
    return [f"{head} " + repeated([" ".join(a) for a in loops])]


def spelled(text, texts):
    return re.sub(r"\b[A-Z]+\b", lambda m: f"'{texts[m[0]]}'" if texts.get(m[0]) else m[0], text)


def productions(grammar, texts):
    """{section: [lines]}."""
    kept = [r for r in grammar if "error" not in r[2] and "broken" not in r[2]]
    sections, order = {}, {}
    for section, left, symbols in kept:
        order.setdefault(left, (section, []))[1].append(symbols)
    for left, (section, alternatives) in order.items():
        lines = spelled("\n| ".join(body(left, alternatives)), texts).split("\n")
        out = sections.setdefault(section, [])
        out.append(f"{left} ::= {lines[0]}")
        out += ["    " + line.strip() for line in lines[1:]]
        out.append("")
    return sections


def page(parser, lexer):
    forms = token_forms(lexer)
    texts = {k: fixed(v) for k, v in forms.items()}
    out = [HEAD]
    for section, lines in productions(rules(parser), texts).items():
        out.append(f"## {section[0].upper()}{section[1:]}\n\n```\n" + "\n".join(lines).rstrip() + "\n```\n\n")
    words = re.search(r"%fallback IDENT ([A-Z\s]+)\.", parser)[1].split()
    out.append("## Tokens\n\n| token | written |\n|---|---|\n")
    for token, patterns in forms.items():
        if not texts[token]:
            out.append(f"| `{token}` | " + ", ".join(f"`{p}`".replace("|", "\\|") for p in patterns) + " |\n")
    for token, words_of_it in SPECIAL.items():
        out.append(f"| `{token}` | {words_of_it.replace('|', chr(92) + '|')} |\n")
    out.append("\nA keyword stands for an `IDENT` too, wherever it has no meaning of its own: "
               + ", ".join(f"`{texts[w]}`" for w in words) + ".\n\n")
    out.append("Patterns are regular expressions of these:\n\n```\n")
    width = max(map(len, definitions(lexer)))
    out += [f"{name:{width}} = {text}\n" for name, text in definitions(lexer).items()]
    out.append("```\n\nSpace and comments (`//` to the end of the line) stand between any two tokens.\n")
    return "".join(out)


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    text = page(PARSER.read_text(encoding="utf-8"), LEXER.read_text(encoding="utf-8"))
    if not sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    elif text != PAGE.read_text(encoding="utf-8"):
        sys.exit(f"{PAGE.relative_to(ROOT)} is not the grammar of parser.y and lexer.re: run tools/gen_grammar.py")


if __name__ == "__main__":
    main()
