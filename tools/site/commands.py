"""The reference of commands, from the program's own help."""

import re
import subprocess


def subcommands(help_text):
    """The commands that a help text lists."""
    listed = re.search(r"^Commands:\n((?:  .*\n)+)", help_text, re.MULTILINE)
    return [name for name in re.findall(r"^  ([a-z][\w-]*)", listed[1] if listed else "", re.MULTILINE) if name != "help"]


def sections(program, words):
    """The sections of a command and of those below it."""
    text = subprocess.run([program, *words, "--help"], check=True, capture_output=True, text=True).stdout
    if words:
        yield f"{'#' * min(len(words) + 1, 4)} carma {' '.join(words)}\n\n```text\n{text.rstrip()}\n```\n"
    for name in subcommands(text):
        yield from sections(program, [*words, name])


def page(program):
    """The page: a section for each command."""
    head = "# Commands\n\nWhat `carma COMMAND --help` prints. `carma man` has the same as manual pages.\n"
    return "\n".join([head, *sections(program, [])])
