#!/usr/bin/env python3
"""Plays the arena five times and presses Ctrl-C at another moment each time: it must end well, leave
neither files nor processes, and say how it went. Arguments: play.py and where zeze was built."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

# What the demo says when the moment has come, and how often Ctrl-C is pressed.
MOMENTS = (
    ("starting the database", 1),
    ("starting two gateways", 1),
    (" bots inside", 1),
    ("kill -9", 1),
    ("stopping the shop", 2),
)


def interrupt(play, build, words, presses):
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)  # The database has a user of its own.
        demo = subprocess.Popen(
            [sys.executable, play, "--build", build, "--bots", "20", "--seconds", "30"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env={**os.environ, "TMPDIR": place})
        said = []
        for line in demo.stdout:
            said.append(line.rstrip())
            if words in line:
                for press in range(presses):
                    time.sleep(0.2 * press)  # A person's second Ctrl-C, not the same one.
                    os.killpg(demo.pid, signal.SIGINT)  # As a terminal does: the whole group.
                presses = 0
        code = demo.wait()
        left = [str(path) for path in pathlib.Path(place).iterdir()]
        running = subprocess.run(["pgrep", "-f", place], capture_output=True, text=True).stdout
        story = "\n".join(said)
        good = (presses == 0 and code == 0 and not left and not running
                and "Something is wrong" not in story
                and any(line.startswith(("Every promise", "All data", "Not checked", "ended before"))
                        for line in said))
        print(f"{'ok' if good else 'FAILED'}: Ctrl-C after \"{words}\": exit code {code}, "
              f"left: {left or 'nothing'}, running: {running.split() or 'nothing'}", flush=True)
        if not good:
            print(story)
        return good


if __name__ == "__main__":
    results = [interrupt(*sys.argv[1:3], *moment) for moment in MOMENTS]
    sys.exit(0 if all(results) else 1)
