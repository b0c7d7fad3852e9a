#!/usr/bin/env python3
"""Says again, at the end of a long run, what the tests that failed have said.

Usage: failed_tests.py BUILD_FOLDER

Reads what ctest left in Testing/Temporary. Of each test that failed: its failed expectations, or
the end of its output if it has named none (a crash, a time-out).
"""

import pathlib
import re
import sys

LINES_OF_FAILURE = 15
LINES_OF_TEST = 60
LINES_AT_END = 30

FAILURE = re.compile(r": Failure$|^FATAL|check failed|Sanitizer|^\S+ (does not|failed)")


def outputs(log):
    """The output of each test in the log of ctest, by its name."""
    found = {}
    name, lines = None, None
    for line in log.splitlines():
        start = re.match(r"\d+/\d+ Test: (.*)$", line)
        if start:
            name, lines = start.group(1), None
        elif name and lines is None and line.startswith("----------"):
            lines = found.setdefault(name, [])
        elif line == "<end of output>":
            name, lines = None, None
        elif lines is not None:
            lines.append(line)
    return found


def what_failed(lines):
    """The lines about failed expectations."""
    told = []
    left = 0
    for line in lines:
        if FAILURE.search(line):
            left = LINES_OF_FAILURE
        elif line.startswith("["):
            left = 0
        if left > 0 or line.startswith("[  FAILED  ]"):
            told.append(line)
            left -= 1
    return told


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1]) / "Testing" / "Temporary"
    failed = folder / "LastTestsFailed.log"
    log = folder / "LastTest.log"
    if not failed.exists() or not log.exists():
        return
    found = outputs(log.read_text(errors="replace"))
    for line in failed.read_text().splitlines():
        name = line.partition(":")[2]
        lines = found.get(name, [])
        told = what_failed(lines)[:LINES_OF_TEST] or lines[-LINES_AT_END:]
        print(f"\n==== {name} failed:")
        print("\n".join(told) if told else "(it said nothing)")


if __name__ == "__main__":
    main()
