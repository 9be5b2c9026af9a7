"""Documents with tables, and the comments in front of them that say what their figures come from.

    <!-- table keys=2 slow=20min: COMMAND -->     a command prints the table again; slow ones run on request only
    <!-- figures: WHERE -->                       what else the figures come from: a benchmark, a publication, settings
    <!-- figures of this page: WHERE -->          the same, for all tables of the page that have no comment of their own
"""

import re
from decimal import ROUND_HALF_EVEN, Decimal

NUMBER = re.compile(r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?")
MARK = re.compile(r"^<!-- (table|figures|figures of this page)(?: keys=(?P<keys>\d+))?(?: slow=(?P<slow>\S+))?: (?P<text>.*) -->$")
#: Tables of the configuration, which a test compares with what the program prints.
SETTINGS = "<!-- carma config reference -->"
#: A number in code or in the target of a link is a name.
NAMES = re.compile(r"`[^`]*`|\]\([^)]*\)")
#: What a command prints in a cell that it does not make.
NOT_MADE = "="
FIGURE = re.compile(r"(?<![\w.])[-+]?\d")


class Table:
    """A table: its lines as (first, end), and where its figures come from."""

    def __init__(self, lines, first, end, kind, mark):
        self.lines, self.first, self.end = lines, first, end
        self.kind, self.text = kind, mark and mark["text"]
        self.keys, self.slow = int(mark and mark["keys"] or 1), mark and mark["slow"]

    def has_figures(self):
        return any(FIGURE.search(NAMES.sub("", line)) for line in self.lines[self.first + 2 : self.end])

    def compare(self, printed):
        """Compares with what the command printed, and takes over what it says.

        Returns the count of numbers, the changes as (row, column, before, after), and the rows that were not printed.
        """
        now = rows_by_key([line for line in printed.splitlines() if line.startswith("|")][2:], self.keys)
        head, count, changes, missing, seen = cells(self.lines[self.first]), 0, [], [], [""] * self.keys
        for number in range(self.first + 2, self.end):
            row = cells(self.lines[number])
            seen = [cell or before for cell, before in zip(row[: self.keys], seen)]
            new, before = now.pop(tuple(seen), None), list(row)
            if new is None:
                missing.append(", ".join(seen))
                continue
            for column in range(self.keys, len(row)):
                if new[column] == NOT_MADE:
                    continue
                count += len(NUMBER.findall(row[column]))
                row[column], changed = renewed(row[column], new[column])
                changes += [(", ".join(seen), head[column] or "value", *change) for change in changed]
            if row != before:
                self.lines[number] = f"| {' | '.join(row)} |".replace("  ", " ")
        changes += [(", ".join(row), "row", "not in the table", "printed") for row in now]
        return count, changes, missing


def tables(lines):
    """The tables of a document. A comment counts for the next table, with empty lines between them at most."""
    page, own, number = None, None, 0
    while number < len(lines):
        line = lines[number]
        if line.startswith("|"):
            first = number
            while number < len(lines) and lines[number].startswith("|"):
                number += 1
            mark = own or page
            yield Table(lines, first, number, mark and mark[0], mark and mark[1])
            own = None
            continue
        if found := MARK.match(line):
            if found[1] == "figures of this page":
                page = ("figures", found)
            else:
                own = (found[1], found)
        elif line == SETTINGS:
            own = ("figures", {"text": "`carma config reference`, which a test compares", "keys": None, "slow": None})
        elif line.strip():
            own = None
        number += 1


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows_by_key(lines, keys):
    """Rows of a table by their first columns; empty ones are those of the row above."""
    found, above = {}, [""] * keys
    for line in lines:
        row = cells(line)
        above = [cell or before for cell, before in zip(row[:keys], above)]
        found[tuple(above)] = row
    return found


def rounded(number, like):
    """A number with the decimals, the separators and the sign of another."""
    decimals = len(like.partition(".")[2])
    value = Decimal(number.replace(",", "")).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_EVEN)
    value = value or abs(value)
    return f"{value:{'+' if like.startswith('+') else ''}{',' if ',' in like else ''}}"


def renewed(cell, now):
    """A cell with the numbers of now, as the document writes them; and the changes."""
    before, after = NUMBER.findall(cell), NUMBER.findall(now)
    if len(before) != len(after):
        return now, [(cell, now)]
    numbers = [rounded(new, old) for old, new in zip(before, after)]
    left = iter(numbers)
    made = NUMBER.sub(lambda _: next(left), now)
    if NUMBER.sub("", cell) != NUMBER.sub("", now):
        return made, [(cell, made)]
    return made, [(old, new) for old, new in zip(before, numbers) if old != new]
