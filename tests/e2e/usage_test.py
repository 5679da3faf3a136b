#!/usr/bin/env python3
"""The usage of a turn is exact: every count equals what the template and the tokenizer say, also after kill -9.

Method: a real kvasird and SmolLM2. The expected numbers come from the template written down here and `kvasir-eval tokenize`,
and from nothing that the server says but the ids of its replies. Usage: usage_test.py KVASIRD KVASIR_EVAL
"""
from __future__ import annotations

import datetime
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from kvasir_grpc import ServerTest, memory_pb2, session_pb2  # noqa: E402

KVASIRD, KVASIR_EVAL = "", ""
MODEL = pathlib.Path(os.environ.get("KVASIR_MODELS", "models")) / "smollm2-135m-instruct-q4_1.gguf"
BASE = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
FACT = "My cat is called Tofu, he is six years old and likes tuna."
QUESTION = "What is my cat called?"


def ids(text: str) -> list[int]:
    """Token ids of `text`, special tokens parsed."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as cases:
        json.dump({"name": "text", "text": text, "parse_special": True}, cases)
        cases.flush()
        out = subprocess.run([KVASIR_EVAL, "tokenize", "--model", MODEL, "--input", cases.name], check=True,
                             capture_output=True, text=True).stdout
    return json.loads(out)["ids"]


@functools.cache
def length(text: str) -> int:
    return len(ids(text))


def user_turn(message: str) -> int:
    return length(f"<|im_start|>user\n{message}<|im_end|>\n<|im_start|>assistant\n")


def date_line() -> int:
    """As long on every day: the tokenizer takes digits one by one."""
    today = datetime.datetime.now(datetime.timezone.utc).date()
    return length(f"<|im_start|>system\nConversation on {today}.<|im_end|>\n")


def in_state(reply) -> int:
    """Tokens of a reply and of what closes it."""
    ended = reply.token_ids[-1] == ids("<|im_end|>")[0]
    return len(reply.token_ids) + length("\n" if ended else "<|im_end|>\n")


class UsageTest(ServerTest):
    def setUp(self) -> None:
        self.assertTrue(MODEL.exists(), f"{MODEL} is not there: run ./dev test, which fetches it")
        self.serve(KVASIRD, str(MODEL))

    def say(self, session: str, message: str, computed: int, cached: int, memory: int = 0):
        """A turn whose usage must be these counts; `memory`: without the base."""
        reply = self.client.chat(session, message, max_output_tokens=12)
        self.expect(reply, computed, cached, memory)
        return reply

    def expect(self, reply, computed: int, cached: int, memory: int = 0) -> None:
        usage = reply.usage
        self.assertEqual((usage.computed_tokens, usage.session_cached_tokens, usage.memory_tokens, usage.output_tokens),
                         (computed, cached, length(BASE) + memory, len(reply.token_ids)))
        self.assertEqual(usage.prompt_tokens, computed + cached + length(BASE) + memory)
        self.assertEqual(usage.memory_slots, memory)

    def wait_until_stored(self, tokens: int) -> None:
        """Until the one memory of the user, which is saved with its session's state, has so many tokens."""
        deadline = time.monotonic() + 60
        request = memory_pb2.ListMemoriesRequest(parent=self.client.user)
        while [m.kv.logical_tokens for m in self.client.memories.ListMemories(request, timeout=60).memories] != [tokens]:
            self.assertLess(time.monotonic(), deadline)

    def test_turns_of_a_session_and_after_kill(self) -> None:
        session = self.client.create_session()
        first = self.say(session, FACT, computed=date_line() + user_turn(FACT), cached=0)
        state = date_line() + user_turn(FACT) + in_state(first)
        second = self.say(session, QUESTION, computed=user_turn(QUESTION), cached=state)
        state += user_turn(QUESTION) + in_state(second)
        self.wait_until_stored(state)
        self.restart(kill=True)
        third = self.say(session, FACT, computed=user_turn(FACT), cached=state)
        before, state = state, state + user_turn(FACT) + in_state(third)
        # Killed while the third reply's state is being stored, or just after: what is not in it is computed.
        self.restart(kill=True)
        fourth = self.client.chat(session, QUESTION, max_output_tokens=12)
        cached = fourth.usage.session_cached_tokens
        self.assertIn(cached, (before, state))
        self.expect(fourth, computed=state - cached + user_turn(QUESTION), cached=cached)

    def test_a_session_without_a_stored_state_is_computed_whole(self) -> None:
        session = self.client.create_session(memory_mode=session_pb2.MEMORY_MODE_INCOGNITO)
        first = self.say(session, FACT, computed=date_line() + user_turn(FACT), cached=0)
        state = date_line() + user_turn(FACT) + in_state(first)
        self.restart(kill=True)
        second = self.say(session, QUESTION, computed=state + user_turn(QUESTION), cached=0)
        state += user_turn(QUESTION) + in_state(second)
        self.say(session, FACT, computed=user_turn(FACT), cached=state)

    def test_turns_with_a_mounted_memory(self) -> None:
        told = self.client.create_session()
        first = self.say(told, FACT, computed=date_line() + user_turn(FACT), cached=0)
        memory = date_line() + user_turn(FACT) + in_state(first)
        asked = self.client.create_session(memory_mode=session_pb2.MEMORY_MODE_READ)
        second = self.say(asked, QUESTION, computed=date_line() + user_turn(QUESTION), cached=0, memory=memory)
        self.assertEqual([mount.logical_tokens for mount in second.route.mounts], [memory])
        state = date_line() + user_turn(QUESTION) + in_state(second)
        third = self.say(asked, QUESTION, computed=user_turn(QUESTION), cached=state, memory=memory)
        state += user_turn(QUESTION) + in_state(third)
        self.restart(kill=False)  # the end of the server waits for the state
        self.say(asked, QUESTION, computed=user_turn(QUESTION), cached=state, memory=memory)


if __name__ == "__main__":
    KVASIRD, KVASIR_EVAL = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
