#!/usr/bin/env python3
"""Checks the model of the cluster protocol with Spin: every world must hold, and each must break
when a rule is left out. docs/model.md says what that means.

    tests/model/check.py                        everything
    tests/model/check.py --worlds eviction      one world (or several)
    tests/model/check.py --without NO_FENCE     one rule left out (or several)
    tests/model/check.py --story NO_FENCE       the steps that lead to its violation
"""

import argparse
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "tests" / "model" / "cluster.pml"
BUILD = ROOT / "build" / "model"
MEMORY_MEGABYTES = 7800


def bounds(processes, globals_, evictions, transactions, breaks, *more):
    return [f"PROCESSES={processes}", f"GLOBALS={globals_}", f"EVICTIONS={evictions}",
            f"TRANSACTIONS={transactions}", f"BREAKS={breaks}", "ONE_REQUEST", *more]


def life(processes, globals_, evictions, transactions, breaks, requests, *more):
    """Evidence of life and passive close (rules 59 to 67): one record, if nothing else is said."""
    records = [] if "SECOND_SHARD" in more else ["RECORDS=1"]
    return bounds(processes, globals_, evictions, transactions, breaks, f"REQUESTS={requests}",
                  "WAITING", "GREETINGS", *records, *more)


WORLDS = {
    "requests": [f for f in bounds(2, 1, 0, 2, 0) if f != "ONE_REQUEST"],
    "rights": bounds(2, 1, 0, 2, 0, "RELEASES", "SLOW_LOADS"),
    "chain": bounds(2, 1, 0, 3, 0),
    "eviction": bounds(2, 1, 1, 2, 1),
    "late-flush": bounds(2, 1, 1, 2, 0, "LATE_COPIES=1"),
    "restart": bounds(3, 1, 0, 1, 0),
    "take-over": bounds(2, 2, 0, 2, 1),
    "take-over-eviction": bounds(2, 2, 1, 1, 1),
    "one-record": bounds(3, 2, 0, 1, 1, "RECORDS=1", "RELEASES"),
    "one-record-eviction": bounds(3, 2, 1, 1, 0, "RECORDS=1"),
    "contradiction": bounds(3, 2, 0, 1, 3, "RECORDS=1", "RELEASES", "NARROW"),
    "renewals": life(2, 1, 1, 2, 1, 3, "RENEWALS=2"),
    "database-cut": life(2, 1, 1, 1, 1, 3, "RENEWALS=2", "YIELDS=1", "SLOW_EVICTIONS",
                         "DATABASE_CUT"),
    "proof": life(3, 1, 0, 1, 1, 2, "RENEWALS=1", "YIELDS=1", "CRASH", "PROOF"),
    "proof-take-over": life(3, 2, 0, 1, 0, 2, "RENEWALS=1", "CRASH", "PROOF"),
    "yield": life(2, 1, 0, 2, 2, 4, "YIELDS=2"),
    "global-cut": life(2, 2, 0, 1, 1, 3, "YIELDS=3", "GLOBAL_CUT"),
    "yield-eviction": life(2, 1, 1, 1, 1, 3, "YIELDS=1", "RENEWALS=1", "SLOW_EVICTIONS", "CRASH"),
    "yield-take-over": life(2, 2, 0, 1, 2, 3, "YIELDS=2"),
    "yield-take-over-eviction": life(2, 2, 1, 1, 1, 2, "YIELDS=1", "RENEWALS=1", "SLOW_EVICTIONS",
                                     "NARROW"),
    "yield-end": life(2, 2, 1, 1, 1, 2, "YIELDS=1", "SLOW_EVICTIONS", "ORDERLY_END", "NARROW"),
    "both-yield": life(2, 2, 0, 1, 2, 2, "YIELDS=1", "BOTH_YIELD", "NARROW"),
    "three-globals": life(2, 3, 0, 1, 1, 2, "YIELDS=2", "NARROW"),
    "two-shards": life(2, 1, 1, 2, 1, 3, "YIELDS=1", "SLOW_EVICTIONS", "SECOND_SHARD"),
    "late-login": life(2, 1, 0, 1, 3, 3, "YIELDS=2", "LATE_LOGINS"),
    "late-login-take-over": life(2, 2, 0, 1, 3, 3, "YIELDS=1", "LATE_LOGINS", "NARROW"),
}

# The rule, and the smallest world found in which it is missed.
RULES = {
    "NO_FENCE": bounds(2, 1, 1, 2, 0),
    "NO_FENCE_SEQUENCE": bounds(2, 1, 0, 2, 0, "LATE_COPIES=1"),
    "NEW_CUT_AFTER_UNKNOWN": bounds(2, 1, 0, 2, 0, "LATE_COPIES=1"),
    "NO_LEASE_CHECK": bounds(2, 1, 1, 1, 0),
    "NO_WAIT_BEFORE_FREEING": bounds(2, 1, 1, 1, 0),
    "NO_FLUSH_BEFORE_REDUCE": bounds(2, 1, 0, 2, 0),
    "NO_CONNECTION_ORDER": bounds(2, 1, 0, 1, 0),
    "NO_DROPPING_OF_OLD_MESSAGES": bounds(2, 1, 0, 1, 2, "RELEASES"),
    "NO_KEEPING_OF_UNREACHABLE": bounds(2, 1, 0, 1, 1),
    "NO_LOAD_STAMP": bounds(2, 1, 0, 1, 0, "SLOW_LOADS"),
    "NO_DIRTY_READS_IN_GROUPS": bounds(2, 1, 0, 2, 0),
    "NO_ANNOUNCING_OF_UNSAVED": bounds(2, 1, 0, 1, 2),
    "NO_WAIT_FOR_ANNOUNCEMENTS": bounds(2, 2, 0, 1, 0),
    "NO_START_TERM": bounds(3, 2, 0, 1, 0, "RECORDS=1"),
    "LIST_BEFORE_TERM": bounds(3, 2, 0, 1, 0, "RECORDS=1"),
    "NO_TERM_MEMORY": bounds(2, 2, 0, 1, 2, "RECORDS=1"),
    "NO_FENCED_LEASES": bounds(2, 2, 1, 1, 0, "RECORDS=1"),
    "NO_PAUSE_AFTER_CONTRADICTION": bounds(3, 2, 0, 1, 3, "RECORDS=1", "RELEASES", "NARROW"),
    "NO_REFUSALS": bounds(2, 1, 0, 1, 1),
    "FREE_FROM_OLD_OBSERVATION": life(2, 1, 1, 1, 0, 2, "RENEWALS=1"),
    "SEEN_FROM_QUESTION": life(2, 1, 1, 1, 0, 2, "RENEWALS=1"),
    "RENEWED_FROM_ANSWER": life(2, 1, 1, 1, 0, 2, "RENEWALS=1"),
    "RENEWED_FROM_REPEAT": life(2, 1, 1, 1, 0, 2, "RENEWALS=1"),
    "FLUSH_RENEWS": life(2, 1, 1, 1, 0, 2, "RENEWALS=1"),
    "EVICT_ONLY_UNBOUND": life(2, 1, 1, 1, 0, 2, "RENEWALS=1", "DATABASE_CUT"),
    "PROOF_WITHOUT_DEATH": life(3, 1, 0, 1, 0, 2, "CRASH", "PROOF"),
    "TWO_STATEMENTS": life(3, 1, 0, 1, 0, 2, "CRASH", "PROOF"),
    "NO_YIELD": life(2, 1, 0, 1, 0, 2, "YIELDS=1", "GLOBAL_CUT"),
    "KEEP_QUEUE_AT_YIELD": life(2, 1, 0, 1, 1, 2, "YIELDS=1"),
    "YIELD_KEEPS_SHARE": life(2, 1, 0, 1, 1, 2, "YIELDS=1"),
    "NO_YIELD_FLUSH": life(2, 1, 0, 1, 1, 2, "YIELDS=1"),
    "YIELD_FLUSHES_NO_GROUPS": life(2, 1, 0, 1, 1, 1, "YIELDS=1", "SECOND_SHARD"),
    "RECONNECT_WHILE_YIELDING": life(2, 1, 0, 1, 1, 3, "YIELDS=1"),
    "YIELD_TO_OLDER_TERM": life(2, 2, 0, 1, 2, 3, "YIELDS=1", "NARROW"),
    "YIELD_FORGETS_TERM": life(2, 2, 0, 1, 1, 2, "YIELDS=1"),
    "NO_YIELD_NUMBER": life(2, 1, 0, 1, 1, 3, "YIELDS=1"),
    "NO_YIELD_TERM": life(2, 2, 0, 1, 1, 3, "YIELDS=1"),
    "MARK_JUDGED_WHEN_READ": life(2, 1, 0, 1, 1, 3, "YIELDS=1"),
    "NO_LOGIN_SERIAL": life(2, 1, 0, 1, 2, 2, "LATE_LOGINS"),
    "TERM_SEEN_AT_ANSWER": life(2, 2, 0, 1, 2, 2, "LATE_LOGINS"),
}


class Outcome:
    def __init__(self, text, seconds):
        def number(pattern):
            found = re.search(pattern, text, re.M)
            return float(found.group(1)) if found else 0.0

        self.seconds = seconds
        self.states = int(number(r"^\s*([\d.e+]+) states, stored"))
        self.transitions = int(number(r"^\s*([\d.e+]+) transitions"))
        self.depth = int(number(r"depth reached (\d+)"))
        self.vector = int(number(r"State-vector (\d+) byte"))
        self.memory = number(r"([\d.]+)\s+total actual memory usage")
        self.violated = None
        found = re.search(r"^pan:\d+: (.*?)(?: \(at depth \d+\))?$", text, re.M)
        if found:
            self.violated = re.sub(r"assertion violated\s+", "", found.group(1)).strip("() ")
        # The search was cut off by a bound of the checker, not of the world.
        self.complete = re.search(r"errors: \d", text) is not None and not re.search(
            r"search depth too small|reached DFS|out of memory|Search not completed|aborted", text)

    def __str__(self):
        return (f"{self.states:>11,} states {self.transitions:>12,} transitions  depth "
                f"{self.depth:>6,}  {self.vector} bytes  {self.memory:>5.0f} MB  "
                f"{self.seconds:>5.1f} s")


def check(name, flags, optimize="-O2", table=26):
    directory = BUILD / name
    directory.mkdir(parents=True, exist_ok=True)
    for trail in directory.glob("*.trail"):
        trail.unlink()
    (directory / MODEL.name).write_bytes(MODEL.read_bytes())
    run = lambda *command: subprocess.run(command, cwd=directory, check=True, text=True,
                                          capture_output=True).stdout
    run("spin", "-a", *[f"-D{flag}" for flag in flags], MODEL.name)
    run("gcc", optimize, "-w", "-DSAFETY", "-DNOFAIR", f"-DMEMLIM={MEMORY_MEGABYTES}", "-o", "pan",
        "pan.c")
    started = time.monotonic()
    # Without bitstate hashing or hash compaction: every state is stored whole.
    output = run("nice", "./pan", "-m4000000", f"-w{table}")
    (directory / "pan.log").write_text(output)
    return Outcome(output, time.monotonic() - started)


def story(name, flags):
    check(name, flags)
    source = MODEL.read_text().splitlines()

    def step_of(line):
        for at in range(line - 1, -1, -1):
            found = re.match(r"inline (\w+)\(", source[at])
            if found:
                return found.group(1)
        return "?"

    trail = subprocess.run(["spin", "-t", "-p", *[f"-D{flag}" for flag in flags], MODEL.name],
                           cwd=BUILD / name, text=True, capture_output=True).stdout
    last = None
    for line in trail.splitlines():
        found = re.match(r"\s*(\d+):\s+proc.*pml:(\d+) \(state \d+\)\s+\[(.*)\]", line)
        if found and found.group(1) != last:
            last = found.group(1)
            print(f"{last:>4} {step_of(int(found.group(2))):<24} {found.group(3)[:110]}")
        elif line.startswith("spin:"):
            print(line)


def main():
    parser = argparse.ArgumentParser(description="Check the model of the cluster protocol.")
    parser.add_argument("--worlds", nargs="*", choices=WORLDS, metavar="WORLD",
                        help="only these: " + ", ".join(WORLDS))
    parser.add_argument("--without", nargs="*", choices=RULES, metavar="RULE",
                        help="only these rules left out: " + ", ".join(RULES))
    parser.add_argument("--story", choices=RULES, metavar="RULE",
                        help="tell how leaving out a rule ends badly")
    options = parser.parse_args()
    if options.story:
        story(options.story, RULES[options.story] + [options.story])
        return 0
    everything = options.worlds is None and options.without is None
    wrong = []
    for name in WORLDS if everything else options.worlds or []:
        outcome = check(name, WORLDS[name])
        verdict = "holds" if outcome.complete else "NOT CHECKED TO THE END"
        if outcome.violated:
            verdict = "VIOLATED: " + outcome.violated
        print(f"{name:<28} {outcome}  {verdict}", flush=True)
        if outcome.violated or not outcome.complete:
            wrong.append(name)
    for rule in RULES if everything else options.without or []:
        # To compile it, and to clear its table, takes longer than to check it.
        outcome = check(rule, RULES[rule] + [rule], "-O1", 22)
        found = outcome.violated or "NOT MISSED"
        print(f"{rule:<28} {outcome}  {found}", flush=True)
        if not outcome.violated:
            wrong.append(rule)
    if wrong:
        print("model: wrong: " + ", ".join(wrong), file=sys.stderr)
        return 1
    print("model: all worlds hold, every rule is needed" if everything else "model: as expected")
    return 0


if __name__ == "__main__":
    sys.exit(main())
