"""figures.py PAGE MEASURED: each number of PAGE's table of models stands in a row of MEASURED that begins with the same model."""
import pathlib
import re
import sys

page, measured = map(pathlib.Path, sys.argv[1:])


def rows(path):
    """(model, its numbers); a row of a table."""
    return [(model, set(re.findall(r"[-\d.,]*\d", cells)))
            for model, cells in re.findall(r"(?m)^\| (\w+) \|(.*\d.*)", path.read_text())]


known = {}
for model, numbers in rows(measured):
    known.setdefault(model, set()).update(numbers)
checked = failed = 0
for model, numbers in rows(page):
    for number in sorted(numbers if model in known else ()):  # other tables begin with other words
        checked += 1
        if number not in known[model]:
            print(f"{model}: {number} is not in {measured.name}")
            failed += 1
print(f"{checked} figures, {failed} wrong")
sys.exit(failed > 0 or checked < 20)
