#!/usr/bin/env python3
"""Compiles each public header that a change concerns by itself. Run from the repository root.

    scripts/compile_headers.py build/tsa [--since REF]

A header that needs what its user happened to include before it does not compile. All headers, and
what users get of them, are looked at by ./dev check-install.
"""

import argparse
import re
import subprocess
import sys

import changes


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("--since", help="compare with this commit")
    options = parser.parse_args()
    changed = set(changes.files(changes.base(options.since)))
    listed = subprocess.run(["ninja", "-C", options.build, "-t", "targets", "all"],
                            capture_output=True, text=True, check=True).stdout
    objects = re.findall(r"^(\S+_verify_interface_header_sets/(\S+\.h)\.cxx\.o):", listed, re.MULTILINE)
    wanted = [target for target, header in objects if header in changed]
    print(f"headers: {len(wanted)} of {len(objects)} public headers have changed", flush=True)
    if wanted:
        return subprocess.run(["ninja", "-C", options.build, "--quiet", "-k", "0", *wanted],
                              check=False).returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
