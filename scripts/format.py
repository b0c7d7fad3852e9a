#!/usr/bin/env python3
"""Checks (or with --fix repairs) the formatting of all C++ files. Run from the repository root."""

import subprocess
import sys


def main():
    files = subprocess.run(["git", "ls-files", "*.h", "*.cc"], capture_output=True, text=True,
                           check=True).stdout.split()
    if not files:
        return 0
    mode = ["-i"] if "--fix" in sys.argv[1:] else ["--dry-run", "--Werror"]
    result = subprocess.run(["clang-format-19", *mode, *files], check=False)
    print(f"format: {len(files)} files, {'clean' if result.returncode == 0 else 'not clean, run ./dev lint --fix'}")
    return result.returncode


if __name__ == "__main__":
    sys.exit(main())
