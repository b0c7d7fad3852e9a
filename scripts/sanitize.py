#!/usr/bin/env python3
"""Runs the tests of the layers that a change touches under a sanitizer. Run from the repository root.

    scripts/sanitize.py asan|tsan [--since REF] [--minutes N]

The layers are those with files that differ from the base (scripts/changes.py), lowest first. Each
one's test programs are built and run before the next layer is begun. Nothing is begun or goes on
after N minutes; the layers that were left are named, and `./dev test --asan` runs everything.
ThreadSanitizer leaves out the layers that have no threads.
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import changes

WITHOUT_THREADS = {"zeze/xml", "zeze/config", "zeze/serialize", "zeze/bean", "zeze/messages",
                   "zeze/builtin", "tools/gen", "tools/cli"}


def layer_folders():
    """The folders of the layers, lowest first, as the top CMakeLists.txt lists them."""
    text = pathlib.Path("CMakeLists.txt").read_text()
    listed = re.search(r"set\(folders\s(.*?)\)", text, re.DOTALL).group(1).split()
    return [folder for folder in listed if folder.startswith(("zeze/", "tools/"))]


def test_programs(folder):
    """The test programs that a layer's CMakeLists.txt defines."""
    path = pathlib.Path(folder, "CMakeLists.txt")
    if not path.exists():
        return []
    text = path.read_text()
    programs = re.findall(r"zeze_test\((\w+)", text)
    for name, body in re.findall(r"zeze_layer\((\w+)(.*?)\n\)", text + "\n)", re.DOTALL):
        if re.search(r"^\s+TESTS\b", body, re.MULTILINE):
            programs.append(f"zeze_{name}_test")
    return programs


def changed_layers(since):
    """The folders of layers with a changed file. A file belongs to the deepest folder above it."""
    folders = layer_folders()
    changed = set()
    for name in changes.files(changes.base(since)):
        above = [folder for folder in folders if name.startswith(folder + "/")]
        if above:
            changed.add(max(above, key=len))
    return [folder for folder in folders if folder in changed]


def run(command, deadline):
    """Whether the command succeeded; None if the time was over first."""
    # A group of its own: what the command has started ends with it.
    with subprocess.Popen(command, start_new_session=True) as process:
        try:
            return process.wait(max(0, deadline - time.monotonic())) == 0
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            return None


def check(preset, programs, deadline):
    """Builds and runs the programs. Whether all tests passed; None if the time was over first."""
    built = run(["cmake", "--build", "--preset", preset, "--target", *programs], deadline)
    if not built:
        return built
    prefixes = "|".join(re.sub("^zeze_|_test$", "", name) for name in programs)
    return run(["ctest", "--preset", preset, "-j4", "-R", f"^({prefixes})(/|$)"], deadline)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("preset", choices=["asan", "tsan"])
    parser.add_argument("--since", help="compare with this commit")
    parser.add_argument("--minutes", type=float, default=15)
    options = parser.parse_args()
    deadline = time.monotonic() + options.minutes * 60
    passed, failed, left = [], [], []
    for folder in changed_layers(options.since):
        programs = test_programs(folder)
        if not programs or (options.preset == "tsan" and folder in WITHOUT_THREADS):
            continue
        result = check(options.preset, programs, deadline) if time.monotonic() < deadline else None
        {True: passed, False: failed, None: left}[result].append(folder)
    print(f"{options.preset}: passed: {' '.join(passed) or '-'}")
    if left:
        print(f"{options.preset}: the time is over, not run: {' '.join(left)}")
    if failed:
        print(f"{options.preset}: FAILED: {' '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
