#!/usr/bin/env python3
"""A client in another language chats with a real kvasird: sessions, memory, accounting, kill -9 and restart in between.

Method: stubs made by grpcio-tools from the project's protos, the tiny model. Usage: chat_test.py KVASIRD MODEL
"""
from __future__ import annotations

import pathlib
import re
import sys
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import grpc  # noqa: E402
from kvasir_grpc import Client, ServerTest, chat_pb2, free_port, memory_pb2, session_pb2, turn_pb2, user_pb2  # noqa: E402
from kvasir.v1 import session_service_pb2_grpc  # noqa: E402
from google.rpc import error_details_pb2, status_pb2  # noqa: E402

KVASIRD, MODEL = "", ""
FACT = "My cat is called Tofu and likes tuna"
QUESTION = "What is my cat called?"


def reason_of(error: grpc.RpcError) -> str:
    """ErrorInfo's reason in the trailing details."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                info = error_details_pb2.ErrorInfo()
                if detail.Unpack(info):
                    return info.reason
    return ""


class ChatTest(ServerTest):
    def setUp(self) -> None:
        self.serve(KVASIRD, MODEL)

    def say(self, session: str, message: str, **fields: object):
        reply = self.client.chat(session, message, max_output_tokens=16, **fields)
        usage = reply.usage
        self.assertEqual(usage.prompt_tokens, usage.computed_tokens + usage.session_cached_tokens + usage.memory_tokens)
        self.assertEqual(reply.finish.turn, reply.turn)
        return reply

    def say_when_free(self, session: str, message: str):
        """say, once the turn that was just cancelled has ended: until then the session is busy."""
        deadline = time.monotonic() + 60
        while True:
            try:
                return self.say(session, message)
            except grpc.RpcError as error:
                if reason_of(error) != "SESSION_BUSY" or time.monotonic() > deadline:
                    raise

    def test_a_session_goes_on_after_kill_and_stop_with_the_same_reply(self) -> None:
        replies = []
        for session_id, restarts in (("plain", ()), ("killed", (True, False))):
            session = self.client.create_session(session_id, memory_mode=session_pb2.MEMORY_MODE_OFF)
            said = [self.say(session, FACT)]
            for i in range(2):
                if restarts:
                    self.restart(restarts[i])
                said.append(self.say(session, QUESTION))
            replies.append(said)
        for plain, killed in zip(*replies):
            self.assertEqual(plain.text, killed.text)
        self.assertTrue(self.client.consistency().clean)

    def test_the_next_session_uses_the_memory_of_the_last_after_kill(self) -> None:
        first = self.client.create_session()
        self.say(first, FACT)
        self.client.close_session(first)
        self.restart(kill=True)
        second = self.client.create_session()
        asked = self.say(second, QUESTION)
        self.assertEqual(len(asked.route.mounts), 1)
        mount = asked.route.mounts[0]
        self.assertEqual(asked.usage.memory_slots, mount.slots)
        memory = self.client.memories.GetMemory(memory_pb2.GetMemoryRequest(name=mount.memory), timeout=60)
        self.assertIn("Tofu", memory.source_text)
        off = self.say(self.client.create_session(), QUESTION, memory_mode=session_pb2.MEMORY_MODE_OFF)
        self.assertEqual(len(off.route.mounts), 0)
        self.client.memories.DeleteMemory(memory_pb2.DeleteMemoryRequest(name=mount.memory), timeout=60)
        self.restart(kill=True)
        gone = self.say(self.client.create_session(memory_mode=session_pb2.MEMORY_MODE_READ), QUESTION)
        self.assertNotIn(mount.memory, [m.memory for m in gone.route.mounts])
        self.assertTrue(self.client.consistency().clean)

    def test_what_was_said_right_before_a_kill_is_mounted(self) -> None:
        first = self.client.create_session()
        self.say(first, FACT)
        self.say(first, "And my boat is called Vega")
        self.restart(kill=True)  # the state of the last turn is hardly stored yet
        reading = self.client.create_session(memory_mode=session_pb2.MEMORY_MODE_READ)
        mount = self.say(reading, QUESTION).route.mounts[0]
        self.client.close_session(first)
        deadline = time.monotonic() + 60
        while True:
            memory = self.client.memories.GetMemory(memory_pb2.GetMemoryRequest(name=mount.memory), timeout=60)
            if memory.state == memory_pb2.Memory.STATE_EXACT:
                break
            self.assertLess(time.monotonic(), deadline, "the memory is not built")
            time.sleep(0.05)
        self.assertEqual(len(memory.source_turns), 2)
        self.assertEqual(mount.logical_tokens, memory.kv.logical_tokens)

    def test_a_request_id_is_answered_once_also_after_kill(self) -> None:
        session = self.client.create_session()
        request = dict(message=FACT, request_id="once", seed=5)
        first = self.client.chat(session, max_output_tokens=16, **request)
        self.restart(kill=True)
        again = self.client.chat(session, max_output_tokens=16, **request)
        self.assertEqual((first.text, first.turn, first.usage), (again.text, again.turn, again.usage))
        self.assertEqual(len(self.client.turns(session)), 1)

    def test_an_erased_user_is_gone_after_kill(self) -> None:
        self.say(self.client.create_session(), FACT)
        operation = self.client.users.EraseUser(user_pb2.EraseUserRequest(name=self.client.user), timeout=60)
        self.assertTrue(operation.done)
        self.restart(kill=True)
        listed = self.client.memories.ListMemories(memory_pb2.ListMemoriesRequest(parent=self.client.user), timeout=60)
        self.assertEqual(len(listed.memories), 0)
        with self.assertRaises(grpc.RpcError) as caught:
            self.client.users.GetUser(user_pb2.GetUserRequest(name=self.client.user), timeout=60)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_a_reader_that_takes_nothing_is_cancelled(self) -> None:
        metrics = f"127.0.0.1:{free_port()}"
        self.server.kill()
        self.server.arguments += ["--slow-reader-s-max", "1", "--metrics-listen", metrics]
        self.client = Client(self.server.start().address)
        session = self.client.create_session()
        # A window of some kilobytes: the reply does not fit into what gRPC and the sockets hold.
        channel = grpc.insecure_channel(self.server.address, options=[("grpc.http2.bdp_probe", 0),
                                                                      ("grpc.http2.lookahead_bytes", 4096)])
        request = chat_pb2.ChatRequest(session=session, message="Tell me a long story", max_output_tokens=1000,
                                       temperature=0.8, seed=3, logprobs=True)
        stream = session_service_pb2_grpc.SessionServiceStub(channel).Chat(request, timeout=120)
        cancelled = re.compile(r'^kvasir_\w+{.*code="CANCELLED".*method="SessionService/Chat".*} 1$', re.M)
        while True:  # until the server has given up; the deadline of the call bounds it
            with urllib.request.urlopen(f"http://{metrics}/metrics", timeout=10) as page:
                if cancelled.search(page.read().decode()):
                    break
            self.assertFalse(stream.done())
        with self.assertRaises(grpc.RpcError) as caught:
            for _ in stream:
                pass
        self.assertEqual(caught.exception.code(), grpc.StatusCode.CANCELLED)
        self.assertTrue(self.say_when_free(session, "Hello").turn.endswith("/turns/2"))

    def test_errors_carry_the_documented_reason(self) -> None:
        session = self.client.create_session()
        for fields, code, reason in (
                (dict(temperature=float("nan")), grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD"),
                (dict(max_output_tokens=-1), grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD"),
                (dict(seed=2**31 - 1), grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")):
            with self.assertRaises(grpc.RpcError) as caught:
                self.client.chat(session, "hello", **fields)
            self.assertEqual((caught.exception.code(), reason_of(caught.exception)), (code, reason), fields)
        with self.assertRaises(grpc.RpcError) as caught:
            self.client.sessions.GetTurn(turn_pb2.GetTurnRequest(name=session + "/turns/1"), timeout=60)
        self.assertEqual(reason_of(caught.exception), "RESOURCE_NOT_FOUND")


if __name__ == "__main__":
    KVASIRD, MODEL = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
