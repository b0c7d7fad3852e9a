"""How busy the machine was while a game ran: what other programs took of its cores, and for how long
it stood still. Promises of time are judged by it."""

import os
import resource
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")
STEP_SECONDS = 0.05


def busy_seconds():
    """CPU time of the whole machine, of all its cores."""
    with open("/proc/stat", encoding="ascii") as stat:
        user, nice, system, _, _, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def own_seconds():
    """CPU time of this process and all of its descendants, the ended ones too."""
    parents, seconds = {}, {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            continue  # It has ended.
        parents[int(name)] = int(fields[1])
        seconds[int(name)] = sum(map(int, fields[11:15])) / TICKS  # With its ended children.
    total = 0.0
    for process, time_used in seconds.items():
        ancestor = process
        while ancestor not in (0, 1, os.getpid()):
            ancestor = parents.get(ancestor, 0)
        if ancestor == os.getpid():
            total += time_used
    return total


class Machine:
    """Watches from its creation until `stop`."""

    # Above either of these, what came late may have come late because of the machine.
    OTHERS_MAX = 0.25  # Of all cores.
    STANDSTILL_MAX = 1.0  # Seconds.

    def __init__(self):
        self.cores = os.cpu_count()
        self.begin = time.monotonic()
        self.busy_before, self.own_before = busy_seconds(), own_seconds()
        self.others = 0.0  # Cores that other programs took, on average.
        self.standstill = 0.0
        self.ended = threading.Event()
        self.watch = threading.Thread(target=self.look, daemon=True)
        self.watch.start()

    def look(self):
        last = time.monotonic()
        while not self.ended.wait(STEP_SECONDS):
            now = time.monotonic()
            self.standstill = max(self.standstill, now - last - STEP_SECONDS)
            last = now

    def stop(self):
        self.ended.set()
        self.watch.join()
        seconds = max(time.monotonic() - self.begin, 0.001)
        own = own_seconds() - self.own_before
        self.others = max(busy_seconds() - self.busy_before - own, 0.0) / seconds

    def was_busy(self):
        return self.others > self.OTHERS_MAX * self.cores or self.standstill > self.STANDSTILL_MAX

    def describe(self):
        return (f"other programs took {self.others:.1f} of {self.cores} cores, and the longest "
                f"standstill was {self.standstill:.1f} s")
