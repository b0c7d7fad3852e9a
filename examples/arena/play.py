#!/usr/bin/env python3
"""Starts the whole arena on this machine: database, Global, service manager, two gateways, four
servers, a shop, bots and a page to play along. See README.md beside this file; ./dev demo runs it.

--check plays for a minute without a person, kills a server, the shop and a gateway meanwhile, and
fails if anything of a player was lost or doubled."""

import argparse
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


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def say(text):
    print(text, flush=True)


class Process:
    """A program that is started again after it was killed."""

    def __init__(self, name, command, directory, ready_port=None, user=None):
        self.name = name
        self.command = [str(part) for part in command]
        self.log_path = directory / f"{name}.log"
        self.directory = directory
        self.ready_port = ready_port
        self.user = user
        self.process = None

    def start(self):
        log = open(self.log_path, "ab")
        self.process = subprocess.Popen(
            self.command, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            user=self.user, start_new_session=True)
        log.close()

    def wait_ready(self, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise SystemExit(f"{self.name} ended with {self.process.returncode}:\n{self.tail()}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.ready_port)) == 0:
                    return
            time.sleep(0.05)
        raise SystemExit(f"{self.name} does not listen after {seconds} s:\n{self.tail()}")

    def wait_said(self, words, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise SystemExit(f"{self.name} ended with {self.process.returncode}:\n{self.tail()}")
            if words in self.log_path.read_text(errors="replace"):
                return
            time.sleep(0.05)
        raise SystemExit(f"{self.name} is not ready after {seconds} s:\n{self.tail()}")

    def tail(self):
        lines = self.log_path.read_text(errors="replace").splitlines()
        return "\n".join("  " + line for line in lines[-20:])

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds=30):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            say(f"{self.name} did not stop in {seconds} s and is killed")
            self.kill()


class Database:
    """A PostgreSQL of its own, gone afterwards."""

    def __init__(self, directory):
        versions = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
        if not versions:
            raise SystemExit("PostgreSQL is not installed: ./dev deps installs it")
        self.programs = versions[-1]
        self.user = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
        self.home = directory / "database"
        self.port = free_port()
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
            directory, ready_port=self.port, user=self.user if os.getuid() == 0 else None)

    def start(self):
        made = subprocess.run(
            [self.programs / "initdb", "-D", self.home, "-A", "trust", "-U", self.user,
             "--no-sync", "-E", "UTF8"],
            user=self.server.user, cwd="/", capture_output=True, text=True)
        if made.returncode != 0:
            raise SystemExit(f"initdb failed:\n{made.stdout}{made.stderr}")
        self.server.start()
        self.server.wait_ready()


class Cluster:
    def __init__(self, options, directory):
        self.zeze = options.build / "tools/cli/zeze"
        self.arena = options.build / "examples/arena/arena"
        self.directory = directory
        self.database = Database(directory)
        self.service_manager_port = free_port()
        self.global_port = free_port()
        self.client_ports = {linkd: free_port() for linkd in LINKDS}
        self.page_ports = {linkd: free_port() for linkd in LINKDS}
        self.provider_ports = {linkd: free_port() for linkd in LINKDS}
        self.shop_ports = {server: free_port() for server in GAME_SERVERS + MAP_SERVERS}
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
        process = Process(name, command, self.directory, ready_port=port)
        process.start()
        process.wait_ready()
        self.services.append(process)
        return process

    def start_servers(self):
        say("starting two gateways, two game servers and two map servers")
        made = subprocess.run([self.zeze, "admin", "keygen", "--name", "accounts"],
                              cwd=self.directory, check=True, capture_output=True, text=True)
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
                self.directory)
            self.servers[server].start()
        for process in self.servers.values():
            process.wait_said("is ready")

    def start_shop(self, players):
        command = [self.arena, "recharge", "--store", self.directory / "shop",
                   "--orders", self.orders, "--players", players]
        for port in self.shop_ports.values():
            command += ["--server", port]
        self.shop = Process("shop", command, self.directory)
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
        """Kills something. It is started again at once, as a daemon would do; but a server, each
        second time, only after others have taken over what it left. Returns what was started."""
        victim = self.shop if kind == "shop" else random.choice(
            list((self.servers if kind == "server" else self.linkds).values()))
        down = DOWN_SECONDS if kind == "server" and random.random() < 0.5 else 0
        say(f"kill -9 {victim.name}" + (f", for {down} s" if down else ""))
        victim.kill()
        time.sleep(down)
        victim.start()
        return victim

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
                cwd=self.cluster.directory, capture_output=True, text=True)
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
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def play(options, cluster, page_url):
    receipts = cluster.directory / "receipts"
    command = [cluster.arena, "bots", "--key", cluster.directory / "accounts.key",
               "--count", options.bots, "--seconds", options.seconds, "--receipts", receipts]
    for port in cluster.client_ports.values():
        command += ["--gateway", port]
    say(f"{options.bots} bots play for {options.seconds} s")
    with open(cluster.directory / "bots.log", "wb") as log:
        bots = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL,
                                stderr=log)
    cluster.start_shop(options.bots)
    visitor = None
    if options.visitor:
        visitor = subprocess.Popen(options.visitor.split() + [page_url], stdin=subprocess.DEVNULL)
    try:
        # One of each in the middle of it, or one now and then.
        kinds = ["server", "shop", "linkd"]
        start = time.monotonic()
        pause = options.seconds / (len(kinds) + 1) if options.check else 20
        due = start + pause
        while bots.poll() is None:
            time.sleep(0.2)
            if visitor is not None and visitor.poll() is not None:
                bots.terminate()
                bots.wait()
                return visitor.returncode, receipts
            if options.kill and time.monotonic() >= due and kinds:
                cluster.fail_over(kinds[0])
                kinds = kinds[1:] if options.check else kinds[1:] + kinds[:1]
                due += pause
    except KeyboardInterrupt:
        bots.terminate()
    bots.wait()
    if visitor is not None:
        visitor.kill()
        say("the visitor has not ended in time")
        return 1, receipts
    return bots.returncode, receipts


def verify(options, cluster, receipts):
    """With all servers stopped: what is in the database is what is true."""
    say("stopping the shop and the servers")
    right = True
    # The shop first: it ends when the servers have all of its orders.
    for process in [cluster.shop, *cluster.servers.values()]:
        process.stop(60)
        if process.process.returncode != 0:
            right = False
            say(f"{process.name} ended with {process.process.returncode}:\n{process.tail()}")
    config = cluster.directory / "verify.xml"
    config.write_text(cluster.server_configuration(99))
    # Without a visitor it is known how many there are.
    players = -1 if cluster.visited else options.bots
    command = [cluster.arena, "verify", config, players, receipts, cluster.orders]
    with open(cluster.directory / "verify.log", "wb") as log:
        checked = subprocess.run([str(part) for part in command], cwd=cluster.directory, stderr=log)
    return right and checked.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="where zeze was built")
    parser.add_argument("--page", type=pathlib.Path, help="where the page was built")
    parser.add_argument("--port", type=int, default=0, help="of the page (default: any)")
    parser.add_argument("--bots", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--visitor", help="a command that plays: with the page's address behind it")
    parser.add_argument("--check", action="store_true", help="fail if anything is wrong")
    parser.add_argument("--no-kill", dest="kill", action="store_false", help="kill nothing")
    parser.add_argument("--keep", action="store_true", help="keep logs and database")
    options = parser.parse_args()
    options.build = options.build.resolve()

    directory = pathlib.Path(tempfile.mkdtemp(prefix="arena-"))
    directory.chmod(0o755)
    cluster = Cluster(options, directory)
    right = False
    try:
        cluster.start()
        cluster.start_servers()
        page_url = ""
        if options.page:
            port = serve_page(cluster, options.page.resolve(), options.port)
            page_url = f"http://127.0.0.1:{port}/"
            say(f"play along: {page_url}")
        code, receipts = play(options, cluster, page_url)
        right = code == 0
        right = verify(options, cluster, receipts) and right
    finally:
        cluster.stop()
        if options.keep or not right:
            say(f"logs are in {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    say("Every promise was kept." if right else "Something is wrong.")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
