#!/usr/bin/env python3
"""What has changed, and which sources that concerns: the measure of ./dev lint.

    base = changes.base(since)          # a commit
    files = changes.files(base)         # what differs from it now, committed or not
    includes = changes.Includes()
    includes.users("zeze/base/clock.h") # who includes it, directly or not, nearest first

    scripts/changes.py --package [--since REF]   exit code 0: what is installed has changed its shape
"""

import argparse
import pathlib
import re
import subprocess
import sys

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
A_DAY = 24 * 60 * 60
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def git(*arguments):
    """The output of a git command, or nothing if it fails."""
    result = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    return result.stdout.strip() if result.returncode == 0 else ""


def base(since=None):
    """What a change is compared with: `since`; or where this branch left origin/main; or, on main
    itself, what was there a day before the last commit."""
    if since:
        commit = git("rev-parse", "--verify", "--quiet", since + "^{commit}")
        if not commit:
            raise SystemExit(f"there is no commit '{since}'")
        return commit
    head = git("rev-parse", "HEAD")
    fork = git("merge-base", "origin/main", "HEAD")
    if fork and fork != head:
        return fork
    committed = int(git("show", "-s", "--format=%ct", "HEAD"))
    return git("rev-list", "-1", f"--before={committed - A_DAY}", "HEAD") or EMPTY_TREE


def files(commit):
    """The files that differ from the commit and are still there, those that git does not know yet
    included."""
    names = git("diff", "--name-only", "--diff-filter=d", commit).split("\n")
    names += git("ls-files", "--others", "--exclude-standard").split("\n")
    return sorted(set(filter(None, names)))


class Includes:
    """Who includes whom among the C++ files of this tree, by the text of their #include lines."""

    def __init__(self):
        self.direct_users = {}
        listed = git("ls-files", "--cached", "--others", "--exclude-standard", "*.h", "*.cc")
        for name in listed.split("\n"):
            path = pathlib.Path(name)
            if not path.exists():
                continue
            for included in INCLUDE.findall(path.read_text()):
                for found in (included, str(path.parent / included)):
                    self.direct_users.setdefault(found, set()).add(name)

    def users(self, header):
        """Sources and headers, nearest first, of equally near ones that beside the header first."""
        folder = header.rpartition("/")[0]
        found, ring = [], [header]
        seen = {header}
        while ring:
            around = {user for file in ring for user in self.direct_users.get(file, ())} - seen
            ring = sorted(around, key=lambda name: (not name.startswith(folder + "/"), name))
            seen |= around
            found += ring
        return found


def concern_package(commit):
    """Whether the list of installed headers or how the package is made and found has changed."""
    if any(name.startswith(("cmake/", "tests/consumer/")) for name in files(commit)):
        return True
    diff = git("diff", "--unified=0", commit, "--", "zeze/**/CMakeLists.txt")
    return re.search(r"^[+-]\s+[\w/]+\.h$", diff, re.MULTILINE) is not None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--package", action="store_true", required=True)
    parser.add_argument("--since", help="compare with this commit")
    return 0 if concern_package(base(parser.parse_args().since)) else 1


if __name__ == "__main__":
    sys.exit(main())
