#!/usr/bin/env python3
"""Runs samples of docs/ as they are written: the server of provider.md behind a gateway, until SIGTERM,
and the commands of linkd.md, until a client is let in with the token they print.

    run_samples.py docs zeze documents_bazaar
"""

import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

PATIENCE = 60  # seconds


def check(condition, what):
    if not condition:
        sys.exit(f"run_samples.py: {what}")


def sample(document, marker):
    """The block of code in which the marker stands."""
    at = document.index(marker)
    begin = document.rindex("```", 0, at)
    begin = document.index("\n", begin) + 1
    return document[begin : document.index("```", at)]


def changed(text, changes):
    for before, after in changes.items():
        check(before in text, f"the sample has no {before!r} any more")
        text = text.replace(before, after)
    return text


def protocol_id(name):
    bits = 3074457345618258791
    for unit in name:
        bits = (bits + ord(unit)) * 3074457345618258799 % (1 << 64)
    return (bits ^ (bits >> 32)) & 0xFFFFFFFF


def frame(module, protocol, body):
    return struct.pack("<IIi", module, protocol, len(body)) + body


class Client:
    """A client of a gateway without encryption: requests with small numbers, answers without errors."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.receive()  # What the gateway offers.
        self.socket.sendall(frame(0, protocol_id("Zeze.Services.Handshake.CHandshakeDone"), b"\x02\x00"))

    def read(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            check(more, "the gateway has closed the connection")
            data += more
        return data

    def receive(self):
        module, protocol, size = struct.unpack("<IIi", self.read(12))
        return module, protocol, self.read(size)

    def call(self, module, name, argument):
        """True: the answer says success."""
        protocol = protocol_id(name)
        self.socket.sendall(frame(module, protocol, b"\x01\x01" + argument))
        while True:
            got_module, got_protocol, body = self.receive()
            if (got_module, got_protocol) == (module, protocol):
                return body[0] == 0  # Not an answer with a result code.

    def authenticate(self, token):
        check(len(token) < 0x4000, "a long token")
        size = struct.pack(">H", 0x8000 | len(token)) if len(token) >= 0x80 else bytes([len(token)])
        return self.call(11900, "Zeze.Builtin.LinkdAuth.Auth", b"\x13" + size + token + b"\x00")


class Program:
    def __init__(self, command, folder):
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def ports(self):
        line = self.process.stdout.readline()
        ports = [int(port) for port in re.findall(r"port (\d+)", line)]
        check(ports, f"{self.process.args} said {line!r}")
        return ports

    def terminate(self):
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


def run_provider(document, folder, zeze, server):
    with Program([zeze, "service-manager", "--data", "registry", "--port", "0"], folder) as registry:
        (registry_port,) = registry.ports()
        config = changed(sample(document, '<zeze ServerId="1">'), {'Port="5001"': f'Port="{registry_port}"'})
        (folder / "zeze.xml").write_text(config)
        gateway = [zeze, "linkd", "--insecure-accounts", "--ip", "127.0.0.1", "--port", "0", "--provider-port", "0"]
        with Program(gateway, folder) as linkd, Program([server], folder) as bazaar:
            client = Client(linkd.ports()[0])
            check(client.authenticate(b"alice"), "the gateway does not believe alice")
            deadline = time.monotonic() + PATIENCE
            while not client.call(1, "bazaar.Shop.Buy", b"\x00"):
                check(bazaar.process.poll() is None, "the server of provider.md has ended")
                check(time.monotonic() < deadline, "the server of provider.md does not answer")
                time.sleep(0.05)
            status = bazaar.terminate()
            check(status == 0, f"SIGTERM ended the server of provider.md with {status}: it did not drain")
            check(not client.call(1, "bazaar.Shop.Buy", b"\x00"), "somebody answers after the server's end")


def run_linkd(document, folder, zeze):
    binaries = folder / "bin"
    binaries.mkdir()
    (binaries / "zeze").symlink_to(zeze)
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}"}
    lines = sample(document, "zeze admin keygen").splitlines()
    keygen, start, token, insecure = [line.split("#")[0].strip() for line in lines]
    subprocess.run(keygen, shell=True, cwd=folder, env=environment, check=True)
    with Program([zeze, "service-manager", "--data", "registry", "--port", "0"], folder) as registry:
        (registry_port,) = registry.ports()
        config = changed(
            sample(document, '<ServiceConf Name="LinkdService"'),
            {
                'Ip="@external" Port="10000" TlsCertificateFile="game.pem" TlsKeyFile="game.key"':
                    'Ip="127.0.0.1" Port="0"',
                'Ip="@internal" Port="11000"': 'Port="0"',
                'HostNameOrAddress="10.0.0.1" Port="5001"':
                    f'HostNameOrAddress="127.0.0.1" Port="{registry_port}"',
            },
        )
        (folder / "zeze.xml").write_text(config)
        with Program([zeze, *start.split()[1:]], folder) as linkd:
            port = linkd.ports()[0]
            printed = subprocess.run(token, shell=True, cwd=folder, env=environment, check=True,
                                     capture_output=True, text=True).stdout
            check(Client(port).authenticate(bytes.fromhex(printed.strip())),
                  f"the gateway of linkd.md refuses the token of linkd.md ({token})")
            check(linkd.terminate() == 0, "the gateway of linkd.md does not end in order")
    (folder / "zeze.xml").unlink()
    with Program([zeze, *insecure.split()[1:], "--port", "0", "--provider-port", "0"], folder) as linkd:
        check(Client(linkd.ports()[0]).authenticate(b"bob"), "--insecure-accounts does not believe bob")


def main():
    docs, zeze, server = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    with tempfile.TemporaryDirectory() as folder:
        run_provider((docs / "provider.md").read_text(), pathlib.Path(folder), zeze, server)
    with tempfile.TemporaryDirectory() as folder:
        run_linkd((docs / "linkd.md").read_text(), pathlib.Path(folder), zeze)


main()
