"""Where C can be changed by one step, and how: the mutants of a file."""

import dataclasses
import re

import tree_sitter
import tree_sitter_c

PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_c.language()))

SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
    "+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "<<": ">>", ">>": "<<", "&": "|", "|": "&",
    "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "|=": "&=", "&=": "|=",
}
# What has no value of its own at run time, and what is no law of the program.
LEFT_ALONE = {"sizeof_expression", "alignof_expression", "array_declarator", "enum_specifier", "subscript_designator",
              "struct_specifier", "union_specifier", "type_descriptor", "string_literal", "char_literal", "ERROR"}
MACROS_LEFT_ALONE = re.compile(rb"assert|static_assert|_Static_assert|NEW|NEW_ARRAY|STR|STR_ARG")
LEAVES = {"return_statement", "continue_statement", "break_statement", "goto_statement"}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """`old`, the bytes from `start` to `end` of `file`, would be `new`."""

    file: str
    function: str
    line: int
    start: int
    end: int
    old: str
    new: str
    change: str  # for people, and for test/mutants.md: `OLD -> NEW`, without line breaks


def plain(text):
    return " ".join(text.split())


def points(path, text):
    """All mutants of the functions in `text`, the bytes of the file `path`, in order."""
    found = []

    def get(node):
        return text[node.start_byte:node.end_byte].decode()

    def add(function, node, new, change=None):
        old = get(node)
        if "//" in old or "/*" in old:
            return
        old, new = plain(old), plain(new)
        found.append(Mutant(path, function, node.start_point[0] + 1, node.start_byte, node.end_byte, old, new,
                            change or f"{old} -> {new}"))

    def number(function, node):
        old = get(node)
        if node.parent.type == "initializer_list" and node.parent.named_child_count == 1:
            return  # = {0}: everything is zero
        match = re.fullmatch(r"([01])([uUlL]*)|0?(?:\.0*)?()[fF]?|.*", old)
        if match[1]:
            add(function, node, str(1 - int(match[1])) + match[2])
        else:
            add(function, node, f"({old} + 1)")

    def binary(function, node):
        left, operator, right = node.child_by_field_name("left"), node.child_by_field_name("operator"), \
            node.child_by_field_name("right")
        sign = operator.type
        if sign in SWAPS:
            add(function, node, f"{get(left)} {SWAPS[sign]} {get(right)}")
        if sign in ("&&", "||"):
            same = left.type == "binary_expression" and left.child_by_field_name("operator").type == sign
            for dropped, kept in [(right, left)] + ([] if same else [(left, right)]):
                add(function, node, get(kept), f"{sign} without {plain(get(dropped))}")

    def condition(function, node):
        whole = node.child_by_field_name("condition")
        inner = whole.named_children[0] if whole.type == "parenthesized_expression" else whole
        text = get(inner)
        then, other = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        if node.type == "conditional_expression" or other:
            add(function, inner, f"!({text})")
            return
        while then.type == "compound_statement" and then.named_child_count == 1:
            then = then.named_children[0]
        if then.type in LEAVES:
            add(function, inner, f"((void)({text}), 0)", f"if ({plain(text)}) -> never")
        else:
            add(function, inner, f"((void)({text}), 1)", f"if ({plain(text)}) -> always")

    def walk(function, node):
        kind = node.type
        if kind in LEFT_ALONE or kind.startswith("preproc_") or node.is_missing:
            return
        if kind == "declaration" and any(c.type == "storage_class_specifier" for c in node.children):
            return  # initialized before anything runs
        if kind == "call_expression" and MACROS_LEFT_ALONE.fullmatch(get(node.child_by_field_name("function")).encode()):
            return
        if kind in ("binary_expression", "assignment_expression"):
            if kind == "binary_expression" or node.child_by_field_name("operator").type in SWAPS:
                binary(function, node)
        elif kind in ("if_statement", "conditional_expression"):
            condition(function, node)
        elif kind == "unary_expression" and node.child_by_field_name("operator").type == "!":
            add(function, node, f"!!{get(node.child_by_field_name('argument'))}")
        elif kind in ("true", "false"):
            add(function, node, "false" if kind == "true" else "true")
        elif kind == "number_literal":
            number(function, node)
        value = node.child_by_field_name("value") if kind == "case_statement" else None
        for child in node.named_children:
            if child != value:
                walk(function, child)

    def functions(node):
        if node.type != "function_definition":
            for child in node.named_children:
                functions(child)
            return
        name = node.child_by_field_name("declarator")
        while name and name.type != "identifier":
            name = name.child_by_field_name("declarator")
        body = node.child_by_field_name("body")
        if name and body:
            walk(get(name), body)

    functions(PARSER.parse(text).root_node)
    return found


def rewrite(text, mutants):
    """`text` with the (number, Mutant) pairs of `mutants` built in, on the lines where they were."""
    where = sorted(mutants, key=lambda m: (m[1].start, -m[1].end, m[0]))

    def emit(start, end, inside):
        out, at = b"", start
        while inside:
            number, first = inside[0]
            here = [m for m in inside if (m[1].start, m[1].end) == (first.start, first.end)]
            within = [m for m in inside if first.start <= m[1].start and m[1].end <= first.end and m not in here]
            inside = [m for m in inside if m[1].start >= first.end]
            choices = "".join(f"QXC_MUTANT({n}) ? ({m.new}) : " for n, m in here).encode()
            out += text[at:first.start] + b"(" + choices + b"(" + emit(first.start, first.end, within) + b"))"
            at = first.end
        return out + text[at:end]

    return emit(0, len(text), where)
