#!/usr/bin/env python3
"""What documents and comments name must be there. Run from the repository root.

Looked for are files and folders of this tree, wherever a document or a comment names one; the
targets of links, headings included; and settings: those on command lines (--set NAME=) exist, and
some page of docs/ names every setting that has an effect.
docs/architecture.md names every layer.
Prints one line per offence and exits 1 if there is any. CHANGELOG.md speaks of the past.
"""

import os
import pathlib
import re
import subprocess
import sys

COMMENT = {".h": "//", ".cc": "//", ".ts": "//", ".py": "#", ".cmake": "#", ".txt": "#",
           ".clang-tidy": "#", ".clang-format": "#"}

# A header in <> is somebody else's; $, } and * make a path that is not written out.
FILE = re.compile(r"(?<![\w./<>${}*-])((?:[\w.-]+/)*[\w-]+\.(?:h|cc|py|md|cmake))\b(?![\w*/{(])")
FOLDER = re.compile(
    r"(?<![\w./<${}-])((?:zeze|tools|tests|bench|examples|docs|scripts|clients)(?:/\w+)+)(?![\w/.*{-])")
LINK = re.compile(r"\]\(([^)\s]+)\)")
SET = re.compile(r"--set (?:[\w.]+\.)?(\w+)=")
SETTING = re.compile(r'\{\.name = "(\w+)"(.*?)\}', re.DOTALL)

# Folders of generated code begin with the name of a solution: Shop/Order.h.
GENERATED = re.compile(r"[A-Z]\w*/")
# Files of readers' projects and of other programs.
ELSEWHERE = {"ModuleOrder.cc", "bazaar/Shop.h", "fmt/ostream.h", "fmt/ranges.h", "my/thing.h",
             "stdlib.h", "sys/poll.h", "track_N.h", "zeze/clients/typescript"}


class Tree:
    """The files that git knows or would take, and every end of their paths, folders included."""

    def __init__(self):
        listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                                capture_output=True, text=True, check=True).stdout
        self.names = [name for name in listed.split("\n") if name and os.path.exists(name)]
        self.known = set(ELSEWHERE)
        for name in self.names:
            parts = name.split("/")
            self.known.update("/".join(parts[at:]) for at in range(len(parts)))
            self.known.update("/".join(parts[:at]) for at in range(1, len(parts)))

    def has(self, path, folder):
        near = os.path.normpath(os.path.join(folder, path))
        return path in self.known or near in self.known or GENERATED.match(path)


def prose(path, text):
    """The lines in which people speak: all of a document, of a program its comments."""
    mark = COMMENT.get(path.suffix or path.name)
    for number, line in enumerate(text.split("\n"), 1):
        if path.suffix == ".md":
            yield number, line
        elif mark and mark in line:
            yield number, line[line.index(mark):]


def anchors(document):
    """What GitHub calls the headings of a document."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(path, line):
    for target in LINK.findall(line):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = path.parent / name if name else path
        if not file.exists():
            yield f"there is no {target}"
        elif anchor and anchor not in anchors(file):
            yield f"{name or 'this page'} has no heading #{anchor}"


def settings_offences(documents):
    tables = pathlib.Path("zeze/config/internal/setting_tables.h")
    settings = dict(SETTING.findall(tables.read_text()))
    written = set()
    for path in documents:
        for number, line in enumerate(path.read_text().split("\n"), 1):
            written.update(re.findall(r"\w+", line))
            for name in SET.findall(line):
                if name.lower() not in map(str.lower, settings):
                    yield path, number, f"there is no setting {name}"
    for name, details in settings.items():
        if name not in written and ".used = false" not in details:
            yield tables, 1, f"no document names the setting {name}"


def layer_offences(tree):
    page = pathlib.Path("docs/architecture.md")
    shape = page.read_text().partition("\n## 2. ")[0]
    named = set(re.findall(r"[\w/]+", shape))
    for name in tree.names:
        folder = os.path.dirname(name)
        if re.match(r"zeze/.*/CMakeLists.txt$", name) and "zeze_layer(" in pathlib.Path(name).read_text():
            if folder not in named and os.path.basename(folder) not in named:
                yield page, 1, f"does not name the layer {folder}"


def offences(tree):
    for path in map(pathlib.Path, tree.names):
        if path.suffix != ".md" and (path.suffix or path.name) not in COMMENT:
            continue
        if path.name == "CHANGELOG.md":
            continue
        for number, line in prose(path, path.read_text()):
            for found in FILE.findall(line) + FOLDER.findall(line):
                if not tree.has(found, str(path.parent)):
                    yield path, number, f"there is no {found}"
            if path.suffix == ".md":
                for offence in broken_links(path, line):
                    yield path, number, offence
    documents = [name for name in tree.names if name.endswith(".md") and name != "CHANGELOG.md"]
    yield from layer_offences(tree)
    yield from settings_offences([pathlib.Path(name) for name in documents])


def main():
    count = 0
    for path, number, offence in offences(Tree()):
        print(f"{path}:{number}: {offence}")
        count += 1
    print(f"documents: {count} offences")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
