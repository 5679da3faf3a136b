#!/usr/bin/env python3
"""Does a returning user's answer come from memory, and what does the mount save?

Tells the server ten invented facts in sessions of a user, with filler between, kills the server (kill -9), starts it again and
asks in new sessions: with memory, with MEMORY_MODE_OFF, and, as the yardstick, with the whole text in one session. Then
measures the time to the first token behind a memory of about --tokens tokens, mounted and read again as text.

  .venv/bin/python3 eval/memory/recall.py --model models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf

The facts are made from the seed. Prints a table, or JSON with -o json.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import random
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "support"))
from kvasir_grpc import Client, Server, default_binary, session_pb2  # noqa: E402

OFF = session_pb2.MEMORY_MODE_OFF
READ = session_pb2.MEMORY_MODE_READ  # a question teaches nothing: what is asked later must not find it

CITIES = ["Lisbon", "Oslo", "Quito", "Hanoi", "Tallinn", "Nairobi", "Zagreb", "Lima", "Perth", "Kyoto"]
NAMES = ["Mirela", "Tobias", "Ingrid", "Kwame", "Salome", "Dario", "Yuki", "Leopold", "Anneke", "Bashir"]
PETS = ["parrot", "tortoise", "ferret", "hedgehog", "gecko"]
COLOURS = ["teal", "maroon", "ochre", "indigo", "olive"]
FOODS = ["lasagna", "ramen", "paella", "goulash", "pierogi"]
SPORTS = ["fencing", "rowing", "archery", "curling", "judo"]


def facts(rng: random.Random) -> list[tuple[str, str, str]]:
    """(statement, question, answer)."""
    pick = rng.choice
    rows = [
        ("Hi! My sister {} is visiting me this week.", "What is the name of my sister?", pick(NAMES)),
        ("I moved to {} last spring and like it there.", "Which city did I move to last spring?", pick(CITIES)),
        ("My {} called Pip was ill, but is well again.", "What kind of animal is Pip?", pick(PETS)),
        ("I painted my bedroom {} on Sunday.", "In which colour did I paint my bedroom?", pick(COLOURS)),
        ("Yesterday I cooked {} for my friends.", "What did I cook for my friends?", pick(FOODS)),
        ("The code of my garage door is {} now.", "What is the code of my garage door?", str(rng.randrange(1000, 9999))),
        ("My new dentist is Dr. {}.", "What is the name of my dentist?", pick(NAMES)),
        ("On Saturdays I go to {} practice.", "Which sport do I practise on Saturdays?", pick(SPORTS)),
        ("I fly home with flight KV{} in June.", "Which flight do I take home in June?", str(rng.randrange(100, 999))),
        ("My locker at work has the number {}.", "What is the number of my locker at work?", str(rng.randrange(100, 999))),
    ]
    return [(statement.format(answer), question, answer) for statement, question, answer in rows]


FILLER = ["Give me one short tip for sleeping better.", "Name three vegetables.", "What is the capital of France?",
          "Say something nice in one sentence.", "What is two plus three?"]


SYSTEM_PROMPT = ""  # of every session that is asked; --system-prompt


def tell(client: Client, session: str, rows: list, filler: list[str]) -> None:
    for i, (statement, _, _) in enumerate(rows):
        client.chat(session, statement, max_output_tokens=24)
        if filler:
            client.chat(session, filler[i % len(filler)], max_output_tokens=32)


def answered(client: Client, session: str, question: str, answer: str, **fields: object) -> tuple[bool, object]:
    reply = client.chat(session, question, max_output_tokens=40, **fields)
    return answer.lower() in reply.text.lower(), reply


def ask(client: Client, rows: list) -> list[dict]:
    results = []
    for i, (_, question, answer) in enumerate(rows):
        hit, reply = answered(client, client.create_session(memory_mode=READ, system_prompt=SYSTEM_PROMPT), question, answer)
        off, _ = answered(client, client.create_session(memory_mode=OFF, system_prompt=SYSTEM_PROMPT), question, answer)
        results.append({"question": question, "memory": hit, "off": off, "text": reply.text,
                        "memory_tokens": reply.usage.memory_tokens, "computed_tokens": reply.usage.computed_tokens,
                        "restore_ms": reply.usage.restore_ms, "ttft_ms": reply.usage.ttft_ms,
                        "mounts": len(reply.route.mounts)})
    return results


def yardstick(client: Client, rows: list) -> list[bool]:
    """The same facts and questions with everything in one session: what the model can answer at all."""
    hits = []
    for i, (_, question, answer) in enumerate(rows):
        session = client.create_session(memory_mode=OFF, system_prompt=SYSTEM_PROMPT)
        tell(client, session, rows[i // 4 * 4:i // 4 * 4 + 4], FILLER)
        hits.append(answered(client, session, question, answer)[0])
    return hits


def ttft(server: Server, tokens: int, rounds: int) -> dict:
    """Seconds to the first token: a memory of about `tokens` tokens mounted, against the same text in the prompt."""
    words = "The garden of the old house had {} rows of beans, and the {} one was mine. "
    rng = random.Random(5)
    text = ""
    while len(text) < tokens * 3.6:
        text += words.format(rng.randrange(2, 90), rng.choice(["first", "last", "third", "longest"]))
    mounted, read = [], []
    for i in range(rounds):
        client = Client(server.address, f"ttft{i}")
        told = client.create_session()
        client.chat(told, text, max_output_tokens=1)
        client.close_session(told)
        question = "How many rows of beans did the garden of the old house have?"
        back = client.chat(client.create_session(memory_mode=READ), question, max_output_tokens=1)
        off = client.chat(client.create_session(memory_mode=OFF), text + " " + question, max_output_tokens=1)
        mounted.append((back.usage.ttft_ms + back.usage.restore_ms, back.usage.memory_tokens))
        read.append((off.usage.ttft_ms, off.usage.prompt_tokens))
    return {"memory_tokens": mounted[0][1], "prompt_tokens_read": read[0][1],
            "mounted_ms": statistics.median(t for t, _ in mounted), "read_ms": statistics.median(t for t, _ in read),
            "ratio": statistics.median(a / b for (a, _), (b, _) in zip(mounted, read))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="GGUF file")
    parser.add_argument("--kvasird", default=default_binary())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=2000, help="length of the memory whose mount is timed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-o", choices=["table", "json"], default="table")
    parser.add_argument("--system-prompt", default="", help="of the sessions that are asked: behind the memories; of the "
                        "yardstick's sessions: in front of the text")
    a = parser.parse_args()
    global SYSTEM_PROMPT
    SYSTEM_PROMPT = a.system_prompt
    rows = facts(random.Random(a.seed))
    with tempfile.TemporaryDirectory() as data, Server(a.kvasird, a.model, data) as server:
        client = Client(server.address)
        for begin in range(0, len(rows), 4):  # three sessions
            session = client.create_session()
            tell(client, session, rows[begin:begin + 4], FILLER)
        known = yardstick(Client(server.address, "yardstick"), rows)
        server.kill()
        server.start()
        results = ask(Client(server.address), rows)
        timing = ttft(server, a.tokens, a.rounds)
    for row, full in zip(results, known):
        row["full_text"] = full
    able = [row for row in results if row["full_text"]]
    summary = {"questions": len(rows), "answered_with_full_text": len(able),
               "of_those_with_memory": sum(row["memory"] for row in able),
               "with_memory": sum(row["memory"] for row in results), "with_memory_off": sum(row["off"] for row in results),
               "ttft": timing}
    if a.o == "json":
        print(json.dumps({"summary": summary, "questions": results}, indent=2))
        return 0
    yes = {True: "yes", False: "–"}
    print(f"{'question':<46} {'full text':>9} {'memory':>7} {'off':>5} {'mounts':>7} {'memory tok':>11} {'computed':>9} {'restore ms':>11}")
    for row in results:
        print(f"{row['question']:<46} {yes[row['full_text']]:>9} {yes[row['memory']]:>7} {yes[row['off']]:>5} {row['mounts']:>7} "
              f"{row['memory_tokens']:>11} {row['computed_tokens']:>9} {row['restore_ms']:>11.1f}")
    print(f"\nanswered with the full text: {len(able)} of {len(rows)}; of those from memory after kill -9: "
          f"{summary['of_those_with_memory']}; with memory off: {summary['with_memory_off']} of {len(rows)}")
    print(f"first token behind {timing['memory_tokens']} memory tokens: mounted {timing['mounted_ms']:.0f} ms, read again "
          f"{timing['read_ms']:.0f} ms, ratio {timing['ratio']:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
