#!/usr/bin/env python3
"""Runs clang-tidy-19 on the sources that a change concerns. Run from the repository root.

    scripts/clang_tidy.py build/tsa [--since REF] [--minutes N]
    scripts/clang_tidy.py build/tsa --all

A change concerns the sources that differ from the base (scripts/changes.py), and the users of each
header that does: all of them if they are few; otherwise the nearest, which is enough to see what is
wrong in the header. No source is begun after N minutes; those that were left are named.
A file that was clean is not looked at again until its preprocessed text or .clang-tidy changes, so
the next run goes on where this one ended.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

import changes

FEW_USERS = 6
USERS_OF_A_WIDE_HEADER = 2
NAMES_SHOWN = 12

OFF_IN_TESTS = [
    "clang-analyzer-*",  # Takes most of the time and finds nothing in GoogleTest's macros.
    "cppcoreguidelines-virtual-class-destructor",  # Of fixtures it is protected.
    "misc-include-cleaner",
    "misc-unused-using-decls",  # Does not see that a literal uses its operator.
    "performance-inefficient-vector-operation",
    "performance-unnecessary-value-param",  # Callbacks of the simulation, a copy per event.
    "readability-function-size",
]


def compiler_command(entry):
    """The command of an entry without the compiler cache in front, and where its object goes."""
    command = shlex.split(entry["command"])
    while command and not os.path.basename(command[0]).startswith(("clang", "g++", "c++")):
        command.pop(0)
    at = command.index("-o")
    target = command[at + 1]
    del command[at:at + 2]
    return command, target


def fingerprint(entry, config):
    command, _ = compiler_command(entry)
    text = subprocess.run([*command, "-E", "-w"], cwd=entry["directory"], capture_output=True,
                          check=False).stdout
    return hashlib.sha256(text + config).hexdigest()


def check(entry, build, config, cache, deadline):
    """What clang-tidy complains about, "" if nothing; None if there was no time for it."""
    if time.monotonic() > deadline:
        return None
    mark = cache / fingerprint(entry, config)
    if mark.exists():
        return ""
    arguments = ["clang-tidy-19", "-p", str(build), "--quiet"]
    if any(part in entry["file"] for part in ("_test.cc", "/tests/", "/testing/")):
        arguments.append("--checks=" + ",".join("-" + name for name in OFF_IN_TESTS))
    result = subprocess.run([*arguments, entry["file"]], capture_output=True, text=True, check=False)
    if result.returncode == 0:
        mark.touch()
        return ""
    return result.stdout or result.stderr


def generate(entries, build):
    """Makes the generated headers that these sources may include, and no others."""
    targets = set()
    for entry in entries:
        found = re.search(r"/CMakeFiles/([^/]+)\.dir/", "/" + compiler_command(entry)[1])
        targets.add(f"cmake_object_order_depends_target_{found.group(1)}")
    subprocess.run(["ninja", "-C", str(build), "--quiet", *sorted(targets)], check=True)


def concerned(since, sources):
    """The names of sources in the order of their use: what changed, then users of what changed."""
    base = changes.base(since)
    changed = changes.files(base)
    includes = changes.Includes()
    chosen = dict.fromkeys(name for name in changed if name in sources)
    skipped = set()
    for header in (name for name in changed if name.endswith(".h")):
        users = [name for name in includes.users(header) if name in sources]
        if len(users) > FEW_USERS:
            print(f"clang-tidy: {header} through {USERS_OF_A_WIDE_HEADER} of its {len(users)} users")
            skipped.update(users[USERS_OF_A_WIDE_HEADER:])
            users = users[:USERS_OF_A_WIDE_HEADER]
        chosen.update(dict.fromkeys(users))
    print(f"clang-tidy: {len(chosen)} sources for what changed since {base[:10]}; "
          f"{len(skipped - chosen.keys())} further users of changed headers are left to --all",
          flush=True)
    return list(chosen)


def run(entries, build, deadline):
    """Prints complaints as they come. How many sources have any, and the names of those left."""
    config = pathlib.Path(".clang-tidy").read_bytes()
    cache = pathlib.Path("build/clang-tidy")
    cache.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    failed, left = 0, []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {pool.submit(check, entry, build, config, cache, deadline): entry
                for entry in entries}
        for done, job in enumerate(concurrent.futures.as_completed(jobs), 1):
            output = job.result()
            if output is None:
                left.append(os.path.relpath(jobs[job]["file"]))
            elif output:
                failed += 1
                print(output, flush=True)
            if done % 10 == 0 or done == len(jobs):
                seconds = int(time.monotonic() - started)
                print(f"clang-tidy: {done}/{len(jobs)} after {seconds} s", file=sys.stderr)
    return failed, sorted(left)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--since", help="compare with this commit")
    parser.add_argument("--minutes", type=float, default=7)
    parser.add_argument("--all", action="store_true", help="every source, without a limit")
    options = parser.parse_args()
    root = str(pathlib.Path.cwd()) + "/"
    entries = {}
    for entry in json.loads((options.build / "compile_commands.json").read_text()):
        if entry["file"].startswith(root) and not entry["file"].startswith(root + "build/"):
            entries.setdefault(entry["file"].removeprefix(root), entry)
    deadline = float("inf")
    if not options.all:
        deadline = time.monotonic() + options.minutes * 60
        entries = {name: entries[name] for name in concerned(options.since, entries)}
    generate(entries.values(), options.build)
    failed, left = run(entries.values(), options.build, deadline)
    print(f"clang-tidy: {len(entries) - len(left)} sources, {failed} not clean")
    if left:
        names = ", ".join(left[:NAMES_SHOWN]) + (", ..." if len(left) > NAMES_SHOWN else "")
        print(f"clang-tidy: the time is over, {len(left)} sources are left, run it again: {names}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
