#!/usr/bin/env python3
"""Starts the whole arena on this machine: database, Global, service manager, two gateways, four
servers, a shop, bots and a page to play along. See README.md beside this file; ./dev demo runs it.

Ctrl-C ends the game at any moment: the servers stop, the database is checked, a summary is shown and
nothing stays behind. A second Ctrl-C skips the check.

--check plays for a minute without a person, kills a server, the shop and a gateway meanwhile, and
fails if a promise was broken. Promises of data hold on every machine. Promises of time are only judged
if the machine had time: it says how busy it was."""

import argparse
import ctypes
import functools
import http.server
import json
import os
import pathlib
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

from machine import Machine

HERE = pathlib.Path(__file__).resolve().parent
GAME_SERVERS = (1, 2)  # Server ids; they share the players by cache-sync.
MAP_SERVERS = (3, 4)
LINKDS = (1, 2)
# How long a server that is lost may still read; then its records are free for others.
LEASE = "3s"
# After that others take over what a server has left behind, its timers for one.
OFFLINE_DELAY_MS = 2000
DOWN_SECONDS = 6  # Of a server, if others are to take over.
# When a new day begins in the arena, a cron expression: a day of a quarter of a minute.
DAILY_RESET = "0/15 * * * * ?"


PROMISE = re.compile(r"(kept|BROKEN) +(data|time)  (.*)")
PR_SET_PDEATHSIG = 1


class Ended(Exception):
    """A person wants the game to end."""


class Wishes:
    """What the person at the keyboard wants: the first Ctrl-C ends the game, the second skips the check."""

    def __init__(self):
        self.count = 0
        signal.signal(signal.SIGINT, self.hear)
        signal.signal(signal.SIGTERM, self.hear)

    def hear(self, *_):
        self.count += 1
        if self.count == 1:
            say("\nending the game (Ctrl-C again: without a check)")

    def check(self):
        """Between any two steps of what may take long."""
        if self.count > 0:
            raise Ended()


class Ports:
    """Free ports that stay ours: each is bound, though nobody listens, until the game is over. Our
    servers can bind them all the same, because both sides say SO_REUSEADDR; nobody else gets them."""

    def __init__(self):
        self.kept = []

    def take(self):
        keeper = socket.socket()
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind(("127.0.0.1", 0))
        self.kept.append(keeper)
        return keeper.getsockname()[1]


def say(text):
    print(text, flush=True)


def die_with_parent():
    """Runs in a child before its program: even kill -9 of this script leaves no process behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start_program(command, **options):
    """In a session of its own: a Ctrl-C is for this script alone."""
    return subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL,
                            start_new_session=True, preexec_fn=die_with_parent, **options)


class Process:
    """A program that is started again after it was killed."""

    def __init__(self, name, command, directory, wishes, ready_port=None, user=None):
        self.name = name
        self.command = command
        self.wishes = wishes
        self.log_path = directory / f"{name}.log"
        self.directory = directory
        self.ready_port = ready_port
        self.user = user
        self.process = None

    def start(self):
        log = open(self.log_path, "ab")
        self.process = start_program(self.command, cwd=self.directory, stdout=log, stderr=log,
                                     user=self.user)
        log.close()

    def wait_ready(self, seconds=60):
        def listens():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.ready_port)) == 0
        self.wait_until(listens, seconds)

    def wait_said(self, words, seconds=60):
        self.wait_until(lambda: words in self.log_path.read_text(errors="replace"), seconds)

    def wait_until(self, ready, seconds):
        end = time.monotonic() + seconds
        while not ready():
            self.wishes.check()
            if self.process.poll() is not None:
                raise SystemExit(f"{self.name} ended with {self.process.returncode}:\n{self.tail()}")
            if time.monotonic() > end:
                raise SystemExit(f"{self.name} is not ready after {seconds} s:\n{self.tail()}")
            time.sleep(0.05)

    def tail(self):
        lines = self.log_path.read_text(errors="replace").splitlines()
        return "\n".join("  " + line for line in lines[-20:])

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def stop(self, seconds=30):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            if self.wishes.count > 1:
                return self.kill()
            if time.monotonic() > end:
                say(f"{self.name} did not stop in {seconds} s and is killed")
                return self.kill()
            time.sleep(0.02)


class Database:
    """A PostgreSQL of its own, gone afterwards."""

    def __init__(self, directory, ports, wishes):
        versions = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
        if not versions:
            raise SystemExit("PostgreSQL is not installed: ./dev deps installs it")
        self.programs = versions[-1]
        self.user = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
        self.home = directory / "database"
        self.port = ports.take()
        self.url = f"postgresql://{self.user}@127.0.0.1:{self.port}/postgres"
        self.home.mkdir()
        if os.getuid() == 0:
            shutil.chown(self.home, self.user)
        self.server = Process(
            "database",
            [self.programs / "postgres", "-D", self.home, "-p", self.port, "-k", self.home,
             "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200",
             # Nobody kills the database here, and it is gone afterwards: the players must not wait
             # for a disk that is busy with somebody else's files. A real one syncs.
             "-c", "fsync=off", "-c", "full_page_writes=off"],
            directory, wishes, ready_port=self.port, user=self.user if os.getuid() == 0 else None)

    def start(self):
        made = subprocess.run(
            [self.programs / "initdb", "-D", self.home, "-A", "trust", "-U", self.user,
             "--no-sync", "-E", "UTF8"],
            user=self.server.user, cwd="/", capture_output=True, text=True, start_new_session=True,
            preexec_fn=die_with_parent)
        if made.returncode != 0:
            raise SystemExit(f"initdb failed:\n{made.stdout}{made.stderr}")
        self.server.start()
        self.server.wait_ready()


class Cluster:
    def __init__(self, options, directory, wishes):
        self.zeze = options.build / "tools/cli/zeze"
        self.arena = options.build / "examples/arena/arena"
        self.directory = directory
        self.wishes = wishes
        self.ports = Ports()
        port = self.ports.take
        self.database = Database(directory, self.ports, wishes)
        self.service_manager_port = port()
        self.global_port = port()
        self.client_ports = {linkd: port() for linkd in LINKDS}
        self.page_ports = {linkd: port() for linkd in LINKDS}
        self.provider_ports = {linkd: port() for linkd in LINKDS}
        self.shop_ports = {server: port() for server in GAME_SERVERS + MAP_SERVERS}
        self.kills = []  # Names of what was killed.
        self.services = []
        self.visited = False  # A person has come in.
        self.linkds = {}
        self.servers = {}
        self.shop = None
        self.orders = directory / "orders"

    def start(self):
        say("starting the database")
        self.database.start()
        say("starting Global and the service manager")
        self.start_service("service-manager", [
            self.zeze, "service-manager", "--ip", "127.0.0.1", "--port",
            self.service_manager_port, "--data", self.directory / "registry",
            "--offline-delay", OFFLINE_DELAY_MS],
            self.service_manager_port)
        self.start_service("global", [
            self.zeze, "global", "--ip", "127.0.0.1", "--port", self.global_port, "--database",
            self.database.url], self.global_port)

    def start_service(self, name, command, port):
        process = Process(name, command, self.directory, self.wishes, ready_port=port)
        self.services.append(process)
        process.start()
        process.wait_ready()
        return process

    def start_servers(self):
        say("starting two gateways, two game servers and two map servers")
        made = subprocess.run([self.zeze, "admin", "keygen", "--name", "accounts"],
                              cwd=self.directory, check=True, capture_output=True, text=True,
                              start_new_session=True)
        public = re.search(r"accounts ed25519:\S+", made.stdout).group()
        (self.directory / "accounts.keys").write_text(public + "\n")
        for linkd in LINKDS:
            config = self.directory / f"linkd-{linkd}.xml"
            config.write_text(self.linkd_configuration(linkd))
            self.linkds[linkd] = self.start_service(
                f"linkd-{linkd}", [self.zeze, "linkd", "--config", config],
                self.client_ports[linkd])
        for server in GAME_SERVERS + MAP_SERVERS:
            config = self.directory / f"server-{server}.xml"
            config.write_text(self.server_configuration(server))
            self.servers[server] = Process(
                f"server-{server}",
                [self.arena, "server", config, HERE / "provider.module.binds.xml"],
                self.directory, self.wishes)
            self.servers[server].start()
        for process in self.servers.values():
            process.wait_said("is ready")

    def start_shop(self, players):
        command = [self.arena, "recharge", "--store", self.directory / "shop",
                   "--orders", self.orders, "--players", players]
        for port in self.shop_ports.values():
            command += ["--server", port]
        self.shop = Process("shop", command, self.directory, self.wishes)
        self.shop.start()

    def agent_configuration(self):
        return f"""  <ServiceConf Name="Zeze.Services.ServiceManager.Agent">
    <Connector HostNameOrAddress="127.0.0.1" Port="{self.service_manager_port}"/>
  </ServiceConf>
"""

    def linkd_configuration(self, linkd):
        return f"""<zeze>
  <ServiceConf Name="LinkdService">
    <Acceptor Ip="127.0.0.1" Port="{self.client_ports[linkd]}"/>
    <Websocket Path="/arena" Ip="127.0.0.1" Port="{self.page_ports[linkd]}"/>
  </ServiceConf>
  <ServiceConf Name="ProviderService">
    <Acceptor Ip="127.0.0.1" Port="{self.provider_ports[linkd]}"/>
  </ServiceConf>
{self.agent_configuration()}  <!-- All bots come from one address. -->
  <CustomizeConf Name="Zeze.Linkd" ServiceName="arena.Linkd" TokenKeys="accounts.keys"
    SidFile="linkd-{linkd}.sids" ExemptAddresses="127.0.0.1"/>
</zeze>
"""

    def server_configuration(self, server):
        shop_port = self.shop_ports.get(server, 0)
        return f"""<zeze ServerId="{server}" CheckpointPeriod="1000" WorkerThreads="64"
    GlobalLease="{LEASE}" GlobalCacheManagerHostNameOrAddress="127.0.0.1"
    GlobalCacheManagerPort="{self.global_port}">
  <DatabaseConf DatabaseType="PostgreSQL" DatabaseUrl="{self.database.url}"/>
{self.agent_configuration()}  <!-- What a player was told is never lost. -->
  <TableConf Name="arena_Player_tPlayer" CacheCapacity="100000" CheckpointWhenCommit="true"/>
  <TableConf Name="arena_Player_tReceipt" CacheCapacity="100000" CheckpointWhenCommit="true"/>
  <TableConf Name="arena_Mail_tBox" CacheCapacity="100000" CheckpointWhenCommit="true"/>
  <TableConf Name="arena_Buff_tBuff" CacheCapacity="100000" CheckpointWhenCommit="true"/>
  <ServiceConf Name="RedoQueueServer">
    <Acceptor Ip="127.0.0.1" Port="{shop_port}"/>
  </ServiceConf>
  <CustomizeConf Name="Arena" DailyReset="{DAILY_RESET}" DeletedKept="10"/>
</zeze>
"""

    def processes(self):
        return [*self.services, *self.servers.values()]

    def fail_over(self, kind):
        """Kills something. It is started again immediately, as a daemon would do; but a server, each
        second time, only after others have taken over what it left."""
        victim = self.shop if kind == "shop" else random.choice(
            list((self.servers if kind == "server" else self.linkds).values()))
        down = DOWN_SECONDS if kind == "server" and random.random() < 0.5 else 0
        say(f"         kill -9 {victim.name}" + (f", for {down} s" if down else ""))
        victim.kill()
        self.kills.append(victim.name)
        end = time.monotonic() + down
        while time.monotonic() < end and self.wishes.count == 0:
            time.sleep(0.05)
        victim.start()

    def stop(self):
        if self.shop is not None:
            self.shop.stop()
        for process in reversed(self.processes()):
            process.stop()
        self.database.server.stop()


class Page(http.server.SimpleHTTPRequestHandler):
    """The page, the way to the gateways, and what an account service would do: tokens."""

    def __init__(self, *arguments, cluster, **options):
        self.cluster = cluster
        super().__init__(*arguments, **options)

    def log_message(self, format, *arguments):
        pass

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == "/where":
            return self.answer("application/json", json.dumps({"gateways": [
                f"ws://127.0.0.1:{port}/arena" for port in self.cluster.page_ports.values()]}))
        if path == "/token":
            account = urllib.parse.parse_qs(query).get("account", [""])[0]
            if not re.fullmatch(r"[A-Za-z0-9_-]{1,20}", account) or account.startswith("bot-"):
                return self.send_error(400, "an account is 1 to 20 letters, digits, - and _, and no bot")
            self.cluster.visited = True
            made = subprocess.run(
                [self.cluster.zeze, "linkd", "token", "--key", "accounts.key", "--account", account,
                 "--audience", "arena.Linkd"],
                cwd=self.cluster.directory, capture_output=True, text=True, start_new_session=True)
            if made.returncode != 0:
                return self.send_error(500, made.stderr.strip())
            return self.answer("text/plain", made.stdout.strip())
        return super().do_GET()

    def answer(self, kind, text):
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve_page(cluster, directory, port):
    handler = functools.partial(Page, cluster=cluster, directory=directory)
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        say(f"port {port} cannot be had ({error.strerror}), so the page gets another one")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


class Story:
    """What was seen: figures, and which promises were kept."""

    def __init__(self):
        self.promises = []  # (kept, kind, text)
        self.failures = []  # What ended or said something that it should not.

    def listen(self, program):
        """Repeats what a program says, and keeps its promises."""
        for line in program.stdout:
            promise = PROMISE.match(line)
            if promise:
                self.promises.append((promise[1] == "kept", promise[2], promise[3]))
            else:
                say(line.rstrip())

    def kept(self, text):
        return all(kept for kept, _, promise in self.promises if text in promise)

    def broken(self, kind):
        return [text for kept, of, text in self.promises if not kept and of == kind]

    def tell(self, machine, cluster):
        """Prints the summary. True if all is well, as far as this machine allows to judge."""
        for kind in ("data", "time"):
            texts = [text for kept, of, text in self.promises if kept and of == kind]
            if texts:
                say(f"promises of {kind} that were kept:")
            for text in texts:
                say(f"  {text}")
        if cluster.kills:
            say(f"killed meanwhile: {', '.join(cluster.kills)}")
        for text in self.broken("data") + self.failures:
            say(f"BROKEN: {text}")
        late = self.broken("time")
        for text in late:
            say(f"NOT IN TIME: {text}")
        if late:
            say(f"  while the bots played, {machine.describe()}")
            say("  so this machine was too busy to judge promises of time by it; try again when it is quiet"
                if machine.was_busy() else "  so this machine had time, and the promise is broken")
        return (not self.broken("data") and not self.failures
                and (not late or machine.was_busy()))


def play(options, cluster, page_url, story):
    """Until the bots have played for their time, or a person or the visitor ends it."""
    wishes = cluster.wishes
    receipts = cluster.directory / "receipts"
    command = [cluster.arena, "bots", "--key", cluster.directory / "accounts.key",
               "--count", options.bots, "--seconds", options.seconds, "--receipts", receipts,
               "--progress", 10 if options.check else 5]
    for port in cluster.client_ports.values():
        command += ["--gateway", port]
    say(f"{options.bots} bots play for {options.seconds} s")
    with open(cluster.directory / "bots.log", "wb") as log:
        bots = start_program(command, stdout=subprocess.PIPE, stderr=log, text=True)
    voice = threading.Thread(target=story.listen, args=(bots,))
    voice.start()
    visitor = None
    try:
        cluster.start_shop(options.bots)
        if options.visitor:
            visitor = start_program(options.visitor.split() + [page_url])
        # One of each in the middle of it, or one now and then.
        kinds = ["server", "shop", "linkd"]
        pause = options.seconds / (len(kinds) + 1) if options.check else 20
        due = time.monotonic() + pause
        while bots.poll() is None and wishes.count == 0:
            time.sleep(0.2)
            if visitor is not None and visitor.poll() is not None:
                break
            if options.kill and time.monotonic() >= due and kinds:
                cluster.fail_over(kinds[0])
                kinds = kinds[1:] if options.check else kinds[1:] + kinds[:1]
                due = max(due + pause, time.monotonic())
    finally:
        if bots.poll() is None:
            bots.terminate()
        while bots.poll() is None:
            if wishes.count > 1:
                bots.kill()
            time.sleep(0.05)
        voice.join()
        if visitor is not None and visitor.poll() is None:
            visitor.kill()
    if wishes.count > 1:
        return
    if bots.returncode not in (0, 1):
        story.failures.append(f"the bots ended with {bots.returncode}, see bots.log")
    if visitor is not None and visitor.returncode is None:
        story.failures.append("the visitor did not end in time")
    elif visitor is not None and visitor.returncode != 0:
        story.failures.append(f"the visitor ended with {visitor.returncode}")


def verify(options, cluster, story):
    """With all servers stopped: what is in the database is what is true."""
    say("stopping the shop and the servers, then checking the database")
    # The shop first: it ends when the servers have all of its orders.
    for process in [cluster.shop, *cluster.servers.values()]:
        process.stop(60)
        if process.process.returncode != 0 and cluster.wishes.count < 2:
            story.failures.append(
                f"{process.name} ended with {process.process.returncode}:\n{process.tail()}")
    if cluster.wishes.count > 1:
        return
    config = cluster.directory / "verify.xml"
    config.write_text(cluster.server_configuration(99))
    # Without a visitor, and if all bots have come in, it is known how many players there are.
    known = not cluster.visited and story.kept("every bot comes in") and cluster.wishes.count == 0
    command = [cluster.arena, "verify", config, options.bots if known else -1,
               cluster.directory / "receipts", cluster.orders]
    with open(cluster.directory / "verify.log", "wb") as log:
        check = start_program(command, cwd=cluster.directory, stdout=subprocess.PIPE, stderr=log,
                              text=True)
    voice = threading.Thread(target=story.listen, args=(check,))
    voice.start()
    while check.poll() is None:
        if cluster.wishes.count > 1:
            check.kill()
        time.sleep(0.05)
    voice.join()
    if check.returncode not in (0, 1) and cluster.wishes.count < 2:
        story.failures.append(f"the check ended with {check.returncode}, see verify.log")


def play_and_check(options, cluster, story):
    """Returns what watched the machine meanwhile, or None if no game was played."""
    cluster.start()
    cluster.start_servers()
    page_url = ""
    if options.page:
        port = serve_page(cluster, options.page.resolve(), options.port)
        page_url = f"http://127.0.0.1:{port}/"
        say(f"play along: {page_url}")
    say("Ctrl-C ends the game and checks it")
    machine = Machine()
    try:
        play(options, cluster, page_url, story)
    finally:
        machine.stop()
    verify(options, cluster, story)
    return machine


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="where zeze was built")
    parser.add_argument("--page", type=pathlib.Path, help="where the page was built")
    parser.add_argument("--port", type=int, default=0, help="of the page (default: any)")
    parser.add_argument("--bots", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--visitor", help="a command that plays: with the page's address after it")
    parser.add_argument("--check", action="store_true", help="fail if a promise was broken")
    parser.add_argument("--no-kill", dest="kill", action="store_false", help="kill nothing")
    parser.add_argument("--keep", action="store_true", help="keep logs and database")
    options = parser.parse_args()
    options.build = options.build.resolve()

    wishes = Wishes()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="arena-"))
    directory.chmod(0o755)
    cluster = Cluster(options, directory, wishes)
    story = Story()
    machine = None
    well = False
    try:
        machine = play_and_check(options, cluster, story)
        well = True
    except Ended:
        say("ended before the game began")
        well = True
    finally:
        cluster.stop()
        well = well and (machine is None or story.tell(machine, cluster))
        if options.keep or not well:
            say(f"logs are in {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    if wishes.count > 0 and options.check:
        say("The check was interrupted.")
        return 130
    if wishes.count > 1:
        say("Not checked.")
    elif machine is not None:
        say("Every promise was kept." if well and not story.broken("time")
            else "All data are right." if well else "Something is wrong.")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
