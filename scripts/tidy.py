#!/usr/bin/env python3
"""Rules of this repository that no other tool knows. Run from the repository root.

Prints one line per offence and exits 1 if there is any. CONTRIBUTING.md has more of them,
those that people must look for.
"""

import pathlib
import re
import subprocess
import sys

LINE_MAX = 100
FILE_MAX = 700

# Pattern -> (reason, path prefixes where it is allowed).
BANNED = {
    r"\bstd::this_thread::sleep_(for|until)\b|\busleep\(|\bnanosleep\(":
        ("time goes through zeze/base/clock.h; tests wait for events", ["zeze/base/clock.cc", "bench/"]),
    r"\bstd::chrono::(system|steady)_clock::now\b":
        ("time goes through zeze/base/clock.h",
         ["zeze/base/clock.cc", "bench/", "zeze/base/log.cc", "tests/"]),
    r"\bs?rand\(\)": ("use a seeded generator", []),
    r"\b(TODO|FIXME|XXX|HACK)\b": ("finish it or file an issue", ["scripts/tidy.py"]),
    r"\bassert\(": ("checks stay on in release: ZEZE_CHECK", []),
    r"\bstd::stable_(sort|partition)\b|\bstd::inplace_merge\b":
        ("Clang warns about GCC 12's in users' programs: zeze/base/stable_sort.h",
         ["zeze/base/stable_sort.h"]),
    r"\busing namespace\b": ("name what you use", []),
}

# Where headers of both kinds still stand side by side.
MIXED_HEADERS = ("zeze/arch/linkd/", "zeze/arch/provider/", "zeze/global/", "zeze/storage/mariadb/",
                 "zeze/storage/postgres/", "zeze/storage/sql/", "zeze/transaction/")
HEADERS = re.compile(r"\bHEADERS((?:\s+[\w/]+\.h)+)")


def hidden_headers(names):
    """Headers of the library that are not installed and stand where installed ones do."""
    public = set()
    for name in names:
        if name.startswith("zeze/") and name.endswith("/CMakeLists.txt"):
            path = pathlib.Path(name)
            for headers in HEADERS.findall(path.read_text()):
                public.update(str(path.parent / header) for header in headers.split())
    for name in names:
        if (re.match(r"zeze/.*\.h$", name) and name not in public
                and not re.search(r"/(internal|testing)/", name)
                and not name.startswith(MIXED_HEADERS)):
            yield name, "a header that no HEADERS list names belongs in internal/ or testing/"


def offences(path, text):
    lines = text.split("\n")
    if path.suffix in (".h", ".cc", ".ts"):
        if len(lines) > FILE_MAX:
            yield 1, f"{len(lines)} lines; a file holds one idea, at most {FILE_MAX}"
        if path.suffix == ".h" and "#pragma once" not in text:
            yield 1, "a header starts with #pragma once"
        if not text.startswith("//") and path.suffix == ".h":
            yield 1, "a header starts with a comment that says what it is for"
        for number, line in enumerate(lines, 1):
            if len(line) > LINE_MAX:
                yield number, f"{len(line)} columns, at most {LINE_MAX}"
            for pattern, (reason, allowed) in BANNED.items():
                if re.search(pattern, line) and not str(path).startswith(tuple(allowed)):
                    yield number, f"{line.strip()[:60]}: {reason}"
    if path.suffix == ".md" and sum(1 for line in lines if line.startswith("# ")) != 1:
        in_code = False
        titles = 0
        for line in lines:
            if line.startswith("```"):
                in_code = not in_code
            titles += not in_code and line.startswith("# ")
        if titles != 1:
            yield 1, "a document has one title"
    if text and not text.endswith("\n"):
        yield len(lines), "no newline at the end"


def main():
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout
    tracked = [name for name in listed.split("\n") if name and pathlib.Path(name).exists()]
    count = 0
    for name, offence in hidden_headers(tracked):
        print(f"{name}:1: {offence}")
        count += 1
    for name in tracked:
        path = pathlib.Path(name)
        if path.suffix not in (".h", ".cc", ".md", ".cmake", ".txt", ".py", ".ts", ".xml"):
            continue
        for number, offence in offences(path, path.read_text()):
            print(f"{name}:{number}: {offence}")
            count += 1
    print(f"tidy: {count} offences")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
