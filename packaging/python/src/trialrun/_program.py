"""Finds the program."""

import os
import shutil
import sysconfig
from pathlib import Path
from typing import Iterator

NAME = "trialrun"
VARIABLE = "TRIALRUN_PROGRAM"


class ProgramNotFound(Exception):
    """The program is not installed."""


def find_program() -> str:
    """Returns the path of the program: the one that the variable TRIALRUN_PROGRAM names, else the one that the wheel
    installed, else one in PATH."""
    named = os.environ.get(VARIABLE)
    if named:
        if os.access(named, os.X_OK) and os.path.isfile(named):
            return named
        raise ProgramNotFound(f"{VARIABLE} is {named}, which is not a program")
    for path in _installed():
        if _is_program(path):
            return str(path)
    found = shutil.which(NAME)
    if found is not None and not _is_script(found):
        return found
    raise ProgramNotFound(
        f"the program `{NAME}` was not found: this package was installed without it. Install a wheel for this platform, "
        f"put the program into PATH, or name it with {VARIABLE}"
    )


def _installed() -> Iterator[Path]:
    """Returns where wheels put programs: for this environment, for this user, or next to a target folder."""
    schemes = [None, f"{os.name}_user"]
    for scheme in schemes:
        try:
            scripts = sysconfig.get_path("scripts") if scheme is None else sysconfig.get_path("scripts", scheme)
        except KeyError:
            continue
        if scripts:
            yield Path(scripts) / NAME
    # `pip install --target`
    yield Path(__file__).resolve().parent.parent / "bin" / NAME


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK) and not _is_script(str(path))


def _is_script(path: str) -> bool:
    """Returns True for a script that would start this module again."""
    try:
        with open(path, "rb") as file:
            return b"python" in file.readline(200) if file.peek(2)[:2] == b"#!" else False
    except OSError:
        return False
