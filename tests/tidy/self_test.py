"""Self-test of tidy.py: a small good tree passes; each bad example added to it gives the one problem it stands for."""

import os
import subprocess
import tempfile

GOOD = {
    "CMakeLists.txt": "project(kvasir)\n",
    "README.md": "See `docs/architecture.md`, [that](docs/architecture.md), `a.h`, `build/dev` and `./dev`.\n",
    "docs/architecture.md": (
        "| module | is | may include |\n|---|---|---|\n"
        "| engine/base | ground | – |\n| engine/kv | states | engine/base |\n"
        "| engine/gguf, engine/tokenizer | files | engine/base |\n"
        "| engine/kernels/cpu | operations | engine/base, engine/gguf |\n"
        "| memory/store | disk | engine/base, engine/kv |\n| router/server | server | engine/base, engine/kv |\n"
        "| eval, tests | checks | anything |\n"),
    "engine/base/CMakeLists.txt": "kvasir_module(kvasir_base SOURCES a.cc)\n",
    "engine/base/a.h": "// A: an example.\n#pragma once\n\n#include <string>\n",
    "engine/base/a.cc": (
        '#include "engine/base/a.h"\n// assert(x) throw TO DO printf( in a comment\n'
        'static_assert(1 == 1);\nconst char* kText = "throw printf(system( \\" rand()";\n'
        "int x = file.system(1) + fprintf(stderr, kText);\n"),
    "engine/kv/CMakeLists.txt": (
        "foreach(path one two)\n  kvasir_module(${path} SOURCES ${path}.cc ${CMAKE_CURRENT_SOURCE_DIR}/kv.cc)\n"
        "endforeach()\n"),
    "engine/kv/one.cc": '#include "engine/base/a.h"\n',
    "engine/kv/two.cc": '#include "engine/kv/kv.h"\n',
    "engine/kv/kv.cc": "\n",
    "engine/kv/kv.h": "#pragma once\n",
    "memory/store/CMakeLists.txt": "kvasir_module(kvasir_store SOURCES s.cc)\n",
    "memory/store/s.cc": "#include <rocksdb/db.h>\n",
    "tests/CMakeLists.txt": "kvasir_test(t SOURCES ${PROJECT_SOURCE_DIR}/tests/t.cc)\n",
    "tests/t.cc": '#include <rocksdb/db.h>\n#include "memory/store/s.h"\nauto m = std::getenv("KVASIR_MODELS");\n',
    "dev": "#!/usr/bin/env bash\n",
}

# (file, text put in its place, part of the one message expected). Words are split where this file would break a rule.
BAD = [
    ("engine/base/a.cc", '#include "engine/kv/kv.h"\n', "engine/base must not include engine/kv"),
    ("engine/kernels/cpu/k.h", '#pragma once\n#include "memory/store/s.h"\n', "must not include memory/store"),
    ("engine/tokenizer/k.h", '#pragma once\n#include "engine/gguf/k.h"\n', "must not include engine/gguf"),
    ("engine/kv/kv.h", '#pragma once\n#include "kv2.h"\n', "from the repository root"),
    ("engine/kv/kv.h", "#pragma once\n#include <rocksdb/db.h>\n", "go through memory/store"),
    ("memory/store/s.h", "#pragma once\n#include <faiss/Index.h>\n", "go through memory/index"),
    ("engine/base/a.h", "#pragma once\n#include <cuda_fp16.h>\n", "knows CUDA"),
    ("memory/store/s.h", "#pragma once\n#include <grpcpp/grpcpp.h>\n", "convert at the border"),
    ("memory/store/s.h", '#pragma once\n#include "kvasir/v1/chat.pb.h"\n', "convert at the border"),
    ("engine/base/a.h", "#pragma once\n#include <CLI/CLI.hpp>\n", "only programs"),
    ("engine/other/o.h", "#pragma once\n", "belongs to no module"),
    ("docs/architecture.md", "nothing\n", "table of modules is missing"),
    ("engine/base/a.cc", "void f() { assert(x); }\n", "(assert)"),
    ("engine/base/a.cc", "void f() { throw 1; }\n", "(throw)"),
    ("engine/base/a.cc", 'void f() { printf("x"); }\n', "(stdout)"),
    ("engine/base/a.cc", "void f() { std::cout << 1; }\n", "(stdout)"),
    ("engine/base/a.cc", 'void f() { sprintf(b, "x"); }\n', "(string-call)"),
    ("engine/base/a.cc", "void f() { std::strcpy(b, c); }\n", "(string-call)"),
    ("tests/t.cc", "int f() { return rand(); }\n", "(rand)"),
    ("engine/kv/kv.cc", "std::random_device d;\n", "(random-device)"),
    ("tests/t.cc", 'int f() { return std::system("ls"); }\n', "(system)"),
    ("engine/kv/kv.cc", 'auto* p = std::getenv("HOME");\n', "(getenv)"),
    ("engine/kv/kv.cc", "auto t = std::chrono::steady_clock::now();\n", "(clock)"),
    ("tests/t.cc", "void f() { std::this_thread::sleep_for(1s); }\n", "(sleep-in-test)"),
    ("engine/base/a.h", "#include <string>\n#pragma once\n", "must be #pragma once"),
    ("engine/base/a.h", "#pragma once\nusing namespace std;\n", "'using namespace' in a header"),
    ("engine/base/b.cc", "\n", "in no CMake target"),
    ("tests/more.cc", "\n", "in no CMake target"),
    ("README.md", "See `engine/kv/gone.h`.\n", "names 'engine/kv/gone.h'"),
    ("README.md", "See `gone.md`.\n", "names 'gone.md'"),
    ("docs/architecture.md", GOOD["docs/architecture.md"] + "See [it](../GONE.md).\n", "names '../GONE.md'"),
    ("stuff/x.txt", "x\n", "top-level names"),
    ("engine/utils/x.txt", "x\n", "no common, utils, third_party"),
    ("engine/base/a.h", "// TO" "DO: more\n#pragma once\n", "finish it"),
    ("README.md", "Run /wo" "rk/main/dev.\n", "path of one machine"),
    ("dev", "pip install --inde" "x-url x\n", "package registry"),
    ("engine/base/a.h", "#pragma once\n" + "\n" * 600, "601 lines, at most 600"),
    ("tests/t.cc", "\n" * 801, "801 lines, at most 800"),
]


def write(root, files):
    for path, text in files.items():
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as f:
            f.write(text)
    subprocess.run(["git", "-C", root, "add", "-A"], check=True)


def run(problems):
    """Runs all cases with `problems(root)`; returns the exit status."""
    failed = []
    for name, text, expected in [("README.md", GOOD["README.md"], None)] + BAD:
        with tempfile.TemporaryDirectory() as root:
            subprocess.run(["git", "init", "-q", root], check=True)
            write(root, {**GOOD, name: text})
            found = problems(root)
            if expected is None and found:
                failed.append(f"the good tree: {found}")
            elif expected is not None and not (len(found) == 1 and expected in found[0]):
                failed.append(f"{name} = {text[:60]!r}: expected one problem with '{expected}', found {found}")
    print("\n".join(failed + [f"tidy self-test: {len(BAD) + 1} trees, {len(failed)} failed"]))
    return 1 if failed else 0
