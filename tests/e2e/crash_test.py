#!/usr/bin/env python3
"""kill -9 at random moments under load: no acknowledged turn is lost, no record is half, CheckConsistency is clean.

Method: several users chat in parallel with a real kvasird and the tiny model; each client notes what was acknowledged (a turn
whose `finish` arrived, with its text). After each kill the server starts on the same data and every note must be found,
byte-equal. Usage: crash_test.py KVASIRD MODEL --rounds N [--seed S]
"""
from __future__ import annotations

import argparse
import pathlib
import random
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import grpc  # noqa: E402
from kvasir_grpc import Client, Server  # noqa: E402

USERS = 4


class Load(threading.Thread):
    """One user: sessions of a few turns, until the server is gone."""

    def __init__(self, address: str, user: str, acknowledged: dict, seed: int):
        super().__init__()
        self.client = Client(address, user)
        self.acknowledged = acknowledged  # turn name -> text
        self.rng = random.Random(seed)
        self.unexpected: list[str] = []

    def run(self) -> None:
        try:
            while True:
                session = self.client.create_session()
                for i in range(self.rng.randrange(1, 4)):
                    reply = self.client.chat(session, f"message {i} {self.rng.random()}", max_output_tokens=8,
                                             temperature=1.0, seed=self.rng.randrange(1 << 30))
                    if reply.finish is not None:
                        self.acknowledged[reply.finish.turn] = reply.text
                if self.rng.random() < 0.3:
                    self.client.close_session(session)
        except grpc.RpcError as error:
            if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
                self.unexpected.append(f"{error.code()}: {error.details()}")


def check(address: str, acknowledged: dict[str, dict]) -> list[str]:
    """What is missing or different."""
    faults = []
    for user, turns in acknowledged.items():
        client = Client(address, user)
        for session in {name.rsplit("/turns/", 1)[0] for name in turns}:
            found = {turn.name: turn.text for turn in client.turns(session)}
            for name, text in turns.items():
                if name.startswith(session + "/turns/") and found.get(name) != text:
                    faults.append(f"{name}: acknowledged {text!r}, found {found.get(name)!r}")
    report = Client(address).consistency()
    faults += [f"{finding.kind} {finding.detail}" for finding in report.findings]
    return faults


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kvasird")
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    rng = random.Random(a.seed)
    acknowledged: dict[str, dict] = {f"user{i}": {} for i in range(USERS)}
    with tempfile.TemporaryDirectory() as data:
        server = Server(a.kvasird, a.model, data)
        try:
            for round_number in range(a.rounds):
                server.start()
                faults = check(server.address, acknowledged)
                if faults:
                    print(f"seed {a.seed}, round {round_number}:", *faults[:20], sep="\n  ")
                    return 1
                threads = [Load(server.address, user, turns, rng.randrange(1 << 30)) for user, turns in acknowledged.items()]
                for thread in threads:
                    thread.start()
                time.sleep(rng.uniform(0.2, 1.5))  # the random moment of the kill
                server.kill()
                for thread in threads:
                    thread.join()
                    if thread.unexpected:
                        print(f"seed {a.seed}, round {round_number}: undocumented end of a call:", *thread.unexpected, sep="\n  ")
                        return 1
            server.start()
            faults = check(server.address, acknowledged)
        finally:
            server.kill()
    total = sum(len(turns) for turns in acknowledged.values())
    print(f"{a.rounds} kills, {total} acknowledged turns, {len(faults)} lost or inconsistent")
    for fault in faults[:20]:
        print(" ", fault)
    return 1 if faults or total < a.rounds else 0


if __name__ == "__main__":
    sys.exit(main())
