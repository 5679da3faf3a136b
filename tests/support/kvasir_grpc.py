"""A Kvasir client in Python for tests and evaluation: stubs made from the project's protos, a server process to start and kill.

Needs grpcio and grpcio-tools (tests/requirements.txt; ./dev makes .venv with them). No part of the product.
"""
from __future__ import annotations

import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import grpc
from grpc_tools import protoc

ROOT = pathlib.Path(__file__).resolve().parents[2]
_generated = tempfile.TemporaryDirectory(prefix="kvasir-proto-")


def _compile() -> None:
    """Generates Python modules of every proto of the project into a temporary directory on sys.path."""
    proto = ROOT / "proto"
    files = sorted(str(path) for path in proto.rglob("*.proto"))
    include = pathlib.Path(protoc.__file__).parent / "_proto"
    arguments = ["protoc", f"-I{proto}", f"-I{include}", f"-I{ROOT / '.cache' / 'googleapis'}",
                 f"--python_out={_generated.name}", f"--grpc_python_out={_generated.name}", *files]
    if protoc.main(arguments) != 0:
        raise SystemExit("the protos do not compile")
    sys.path.insert(0, _generated.name)


_compile()

from kvasir.v1 import (admin_pb2, admin_service_pb2_grpc, chat_pb2, memory_pb2,  # noqa: E402
                       memory_service_pb2_grpc, session_pb2, session_service_pb2_grpc, turn_pb2, user_pb2,
                       user_service_pb2_grpc)

__all__ = ["Client", "Server", "ServerTest", "Reply", "admin_pb2", "chat_pb2", "memory_pb2", "session_pb2", "turn_pb2", "user_pb2"]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
        return True
    except OSError:
        return False


class Server:
    """A kvasird process on a free loopback port. start() waits until it serves."""

    def __init__(self, binary: str, model: str, data: str, *flags: str):
        self.arguments = [binary, "--model", model, "--data", data, *flags]
        self.log = tempfile.TemporaryFile()
        self.process: subprocess.Popen | None = None
        self.address = ""

    def start(self, timeout_s: float = 120) -> "Server":
        self.address = f"127.0.0.1:{free_port()}"
        self.process = subprocess.Popen([*self.arguments, "--listen", self.address], stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + timeout_s
        client = None  # made when the port is open: a channel that was refused waits seconds before it tries again
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"kvasird ended with {self.process.returncode}:\n{self.output()}")
            if client is None and listens(self.address):
                client = Client(self.address)
            if client is not None and client.serving():
                return self
            time.sleep(0.02)
        raise RuntimeError(f"kvasird does not serve after {timeout_s} s:\n{self.output()}")

    def output(self) -> str:
        self.log.seek(0)
        return self.log.read().decode(errors="replace")[-4000:]

    def kill(self) -> None:
        """kill -9."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, timeout_s: float = 60) -> int:
        """SIGTERM, then the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout_s)

    def __enter__(self) -> "Server":
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()


class Reply:
    """What one Chat stream brought."""

    def __init__(self) -> None:
        self.text = ""
        self.token_ids: list[int] = []
        self.turn = ""
        self.route = None
        self.usage = None
        self.finish = None
        self.first_delta_s = 0.0  # from the call to the first delta


class Client:
    """Calls of one user."""

    def __init__(self, address: str, user: str = "ana"):
        self.channel = grpc.insecure_channel(address)
        self.user = f"users/{user}"
        self.sessions = session_service_pb2_grpc.SessionServiceStub(self.channel)
        self.memories = memory_service_pb2_grpc.MemoryServiceStub(self.channel)
        self.users = user_service_pb2_grpc.UserServiceStub(self.channel)
        self.admin = admin_service_pb2_grpc.AdminServiceStub(self.channel)

    def serving(self) -> bool:
        """Whether grpc.health.v1 says SERVING (the answer's one byte field, so that no further package is needed)."""
        check = self.channel.unary_unary("/grpc.health.v1.Health/Check", request_serializer=lambda b: b,
                                         response_deserializer=lambda b: b)
        try:
            return check(b"", timeout=2) == b"\x08\x01"
        except grpc.RpcError:
            return False

    def create_session(self, session_id: str = "", **fields: object) -> str:
        request = session_pb2.CreateSessionRequest(parent=self.user, session_id=session_id,
                                                   session=session_pb2.Session(**fields))
        return self.sessions.CreateSession(request, timeout=60).name

    def chat(self, session: str, message: str, timeout_s: float = 300, **fields: object) -> Reply:
        """Runs a turn to its end. Fields are those of ChatRequest."""
        fields.setdefault("temperature", 0.0)
        began = time.monotonic()
        reply = Reply()
        for event in self.sessions.Chat(chat_pb2.ChatRequest(session=session, message=message, **fields), timeout=timeout_s):
            reply.turn = event.turn or reply.turn
            kind = event.WhichOneof("event")
            if kind == "delta":
                if not reply.text:
                    reply.first_delta_s = time.monotonic() - began
                reply.text += event.delta.text
                reply.token_ids += event.delta.token_ids
            elif kind is not None:
                setattr(reply, kind, getattr(event, kind))
        return reply

    def close_session(self, session: str) -> None:
        self.sessions.CompactSession(session_pb2.CompactSessionRequest(name=session), timeout=300)

    def turns(self, session: str) -> list:
        out, token = [], ""
        while True:
            page = self.sessions.ListTurns(turn_pb2.ListTurnsRequest(parent=session, page_token=token), timeout=60)
            out += page.turns
            token = page.next_page_token
            if not token:
                return out

    def consistency(self):
        return self.admin.CheckConsistency(admin_pb2.CheckConsistencyRequest(), timeout=300)


def default_binary() -> str:
    return os.environ.get("KVASIRD", str(ROOT / "build" / "release" / "bin" / "kvasird"))


class ServerTest(unittest.TestCase):
    """A test with a server of its own, which goes with it, and a client of it."""

    def serve(self, kvasird: str, model: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.server = Server(kvasird, model, self.folder.name)
        self.addCleanup(self.server.log.close)
        self.addCleanup(self.server.__exit__)
        self.client = Client(self.server.start().address)

    def restart(self, kill: bool) -> None:
        if kill:
            self.server.kill()
        else:
            self.assertEqual(self.server.stop(), 0, self.server.output())
        self.client = Client(self.server.start().address)
