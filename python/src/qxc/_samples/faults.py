"""What can be wrong, each with the exit code that the program has for it."""


class Wrong(Exception):
    """The data are wrong, or do not fit."""

    exit_code = 1


class Usage(Wrong):
    """The command line is wrong."""

    exit_code = 2


class Unreadable(Wrong):
    """A file cannot be read or written."""

    exit_code = 3


def plural(n: int, one: str) -> str:
    return f"{n} {one}{'' if n == 1 else 's'}"
