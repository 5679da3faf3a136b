#!/usr/bin/env python3
"""Naming and comment rules of proto/kvasir/v1 (buf's STANDARD rules and AIP-122/158 as far as text shows them).

    lint_test.py             checks the files; 1 when a rule is broken
Before that, every rule must catch its bad example: a rule that cannot fail is none.
"""

import glob
import re
import sys

GOOD = '''// What the file holds.
syntax = "proto3";

package kvasir.v1;

// A thing.
message ListThingsRequest {
  // How it is.
  enum State {
    // Never returned.
    STATE_UNSPECIFIED = 0;
    // Well.
    STATE_WELL = 1;
  }

  // Required. `users/{user}`.
  string parent = 1;
  // Range: 0 to 9. Default: 0.
  int32 page_size = 2;
  // The page before.
  string page_token = 3;
  // Default: none.
  repeated string stop = 4;
}
'''

BAD = [  # text of GOOD, its replacement, part of the message
    ("  // Required. `users/{user}`.\n", "", "parent has no comment"),
    ("// A thing.\n", "", "ListThingsRequest has no comment"),
    ("    // Well.\n", "", "STATE_WELL has no comment"),
    ("STATE_WELL", "WELL", "WELL lacks the prefix STATE_"),
    ("STATE_UNSPECIFIED", "STATE_NONE", "zero value STATE_NONE"),
    ("string parent", "string parentName", "parentName is not lower_snake_case"),
    ("Range: 0 to 9.", "Small.", "page_size states no range"),
    ("string page_token = 3", "string page_token = 2", "number 2 is used twice"),
    ("kvasir.v1;", "kvasir;", "package"),
    ("message ListThingsRequest", "message list_things_request", "is not UpperCamelCase"),
]


def upper_snake(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


def field_problems(field, comment, scope, numbers):
    name, number, kind = field["name"], field["number"], field["type"]
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        yield f"{name} is not lower_snake_case"
    if number in numbers:
        yield f"{scope}: number {number} is used twice"
    numbers.add(number)
    in_request = scope.endswith("Request") and kind in ("int32", "int64", "uint32", "uint64", "float", "double")
    if in_request and "Range:" not in comment:
        yield f"{scope}.{name} states no range"


def problems_of(text):
    if not re.search(r"^package kvasir\.v1;$", text, re.M):
        yield "package must be kvasir.v1"
    scopes, comment = [], []
    for line in text.splitlines():
        code = line.strip()
        if code.startswith("//"):
            comment.append(code[2:].strip())
            continue
        words = " ".join(comment)
        comment = []
        opened = re.match(r"(message|enum|service|oneof) (\w+) \{(\})?$", code)
        value = re.match(r"([A-Z]\w*) = (\d+);$", code)
        field = re.match(r"(?:optional |repeated )?(?P<type>[\w.]+) (?P<name>\w+) = (?P<number>\d+);$", code)
        method = re.match(r"rpc (\w+)\((\w+)\)", code)
        if opened:
            kind, name, closed = opened.groups()
            if not words:
                yield f"{name} has no comment"
            if kind != "oneof" and not re.fullmatch(r"([A-Z][a-z0-9]*)+", name):
                yield f"{name} is not UpperCamelCase"
            if kind == "service" and not name.endswith("Service"):
                yield f"service {name} must end in Service"
            if not closed:
                numbers = scopes[-1][2] if kind == "oneof" else set()  # a oneof shares its message's numbers
                scopes.append((kind, scopes[-1][1] if kind == "oneof" else name, numbers))
        elif code == "}":
            scopes.pop()
        elif value and scopes and scopes[-1][0] == "enum":
            prefix = upper_snake(scopes[-1][1]) + "_"
            if not words:
                yield f"{value[1]} has no comment"
            if not value[1].startswith(prefix):
                yield f"{value[1]} lacks the prefix {prefix}"
            elif value[2] == "0" and value[1] != prefix + "UNSPECIFIED":
                yield f"zero value {value[1]} must be {prefix}UNSPECIFIED"
        elif field and scopes and scopes[-1][0] in ("message", "oneof"):
            if not words:
                yield f"{field['name']} has no comment"
            yield from field_problems(field.groupdict(), words, scopes[-1][1], scopes[-1][2])
        elif method:
            if not words:
                yield f"rpc {method[1]} has no comment"
            if method[2] != method[1] + "Request":
                yield f"rpc {method[1]} takes {method[2]}, expected {method[1]}Request"


def self_test():
    found = list(problems_of(GOOD))
    assert not found, f"the good example: {found}"
    for old, new, expected in BAD:
        bad = list(problems_of(GOOD.replace(old, new, 1)))
        assert len(bad) >= 1 and any(expected in b for b in bad), f"{new!r}: expected {expected!r}, found {bad}"


def main():
    self_test()
    files = sorted(glob.glob("proto/kvasir/v1/*.proto"))
    problems = []
    for path in files:
        with open(path, encoding="utf-8") as f:
            text = f.read()
        problems += [f"{path}: {p}" for p in problems_of(text)]
        services, messages = re.search(r"^service ", text, re.M), re.search(r"^message ", text, re.M)
        if services and messages:
            problems.append(f"{path}: messages and services stand in separate files")
        if bool(services) != path.endswith("_service.proto"):
            problems.append(f"{path}: services, and nothing else, stand in *_service.proto")
    print("\n".join(problems + [f"{len(files)} protos, {len(problems)} problems"]))
    return 1 if problems or not files else 0


if __name__ == "__main__":
    sys.exit(main())
