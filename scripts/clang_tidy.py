#!/usr/bin/env python3
"""Runs clang-tidy-19 on every source file of a build directory. Run from the repository root.

    scripts/clang_tidy.py build/tsa [path prefix...]

A file that was clean is not looked at again until its preprocessed text or .clang-tidy changes.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

OFF_IN_TESTS = [
    "clang-analyzer-*",  # Takes most of the time and finds nothing in GoogleTest's macros.
    "cppcoreguidelines-virtual-class-destructor",  # Of fixtures it is protected.
    "misc-include-cleaner",
    "misc-unused-using-decls",  # Does not see that a literal uses its operator.
    "performance-inefficient-vector-operation",
    "performance-unnecessary-value-param",  # Callbacks of the simulation, a copy per event.
    "readability-function-size",
]


def fingerprint(entry, config):
    command = shlex.split(entry["command"])
    while command and not os.path.basename(command[0]).startswith(("clang", "g++", "c++")):
        command.pop(0)  # The compiler cache in front.
    if "-o" in command:
        at = command.index("-o")
        del command[at:at + 2]
    text = subprocess.run([*command, "-E", "-w"], cwd=entry["directory"], capture_output=True,
                          check=False).stdout
    return hashlib.sha256(text + config).hexdigest()


def check(entry, build, config, cache):
    mark = cache / fingerprint(entry, config)
    if mark.exists():
        return None
    arguments = ["clang-tidy-19", "-p", str(build), "--quiet"]
    if any(part in entry["file"] for part in ("_test.cc", "/tests/", "/testing/")):
        arguments.append("--checks=" + ",".join("-" + name for name in OFF_IN_TESTS))
    result = subprocess.run([*arguments, entry["file"]], capture_output=True, text=True, check=False)
    if result.returncode == 0:
        mark.touch()
        return None
    return result.stdout


def main():
    build = pathlib.Path(sys.argv[1])
    root = str(pathlib.Path.cwd()) + "/"
    prefixes = tuple(root + prefix for prefix in sys.argv[2:]) or (root,)
    entries = [entry for entry in json.loads((build / "compile_commands.json").read_text())
               if entry["file"].startswith(prefixes) and "/build/" not in entry["file"]]
    config = pathlib.Path(".clang-tidy").read_bytes()
    cache = pathlib.Path("build/clang-tidy")
    cache.mkdir(parents=True, exist_ok=True)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(check, entry, build, config, cache) for entry in entries]
        for done, job in enumerate(concurrent.futures.as_completed(jobs), 1):
            output = job.result()
            if output is not None:
                failed += 1
                print(output)
            if sys.stderr.isatty() or done % 20 == 0 or done == len(jobs):
                print(f"clang-tidy: {done}/{len(jobs)}", file=sys.stderr)
    print(f"clang-tidy: {len(entries)} files, {failed} not clean")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
