"""Starts the program: ``python -m trialrun``."""

import os
import sys

from ._program import ProgramNotFound, find_program


def main() -> None:
    """Replaces this process by the program."""
    try:
        program = find_program()
    except ProgramNotFound as error:
        sys.exit(f"trialrun: {error}")
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
