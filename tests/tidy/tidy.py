#!/usr/bin/env python3
"""The project's own rules, enforced: include directions, banned calls, stray files, documents that name what is gone.

    tidy.py [ROOT]          checks the tracked files of the checkout ROOT (default: this one); 1 when a rule is broken
    tidy.py --self-test     every rule must catch its bad example, and the good tree must pass

Only files that git tracks are read. Which module may include which is the table of docs/architecture.md.
"""

import os
import re
import subprocess
import sys

CPP = (".h", ".cc", ".cu", ".cuh")
TEXT = CPP + (".py", ".sh", ".md", ".txt", ".cmake", ".proto", ".json", ".toml", ".yaml")
DATA = ("tests/golden/",)  # expected numbers from elsewhere: not ours to style
TOP_LEVEL = {
    "engine", "memory", "compaction", "router", "proto", "tests", "eval", "docs", "cmake", "CMakeLists.txt",
    "CMakePresets.json", "README.md", "LICENSE", "CONTRIBUTING.md", "CHANGELOG.md", "dev"}
LINES_MAX, TEST_LINES_MAX = 600, 800
DOC_ROOT = "docs/architecture.md"

# Headers of other projects that only an adapter may include: pattern, modules, what to do instead.
THIRD_PARTY = [
    (r"rocksdb/", {"memory/store"}, "go through memory/store"),
    (r"faiss/", {"memory/index"}, "go through memory/index"),
    (r"(cuda|cublas|cutlass|nv)[\w/]*\.(h|hpp|cuh)$", {"engine/kernels/cuda"}, "only engine/kernels/cuda knows CUDA"),
    (r"(grpc|grpcpp|google/(protobuf|rpc)|kvasir/v1)/|\.pb\.h$", {"engine/serve", "router/server", "router/client"},
     "convert at the border: protobuf and gRPC stay in serve, server and client"),
    (r"prometheus/", {"router/server"}, "record through an interface; router/server exports"),
    (r"CLI/", {"router/server", "router/client"}, "only programs parse command lines"),
    (r"toml\+\+/|toml\.hpp$", {"router/server", "router/client"}, "only programs read configuration"),
    (r"histedit\.h|editline/", {"router/client"}, "only the client reads lines"),
    (r"libstemmer", {"memory/index"}, "go through memory/index"),
    (r"Eigen/", {"compaction"}, "dense algebra is the solver's"),
    (r"unicode/", {"engine/tokenizer", "memory/index"}, "go through engine/tokenizer or memory/index"),
]

LIBRARIES = r"^(engine|memory|compaction|router/(policy|server))/(?!.*main\.cc$)"
OWN = r"^(engine|memory|compaction|router|eval|tests)/"
# Banned in code (comments and string contents are not looked at): rule, paths, pattern, replacement.
BANNED = [
    ("assert", OWN, r"(?<![\w.])assert\s*\(", "KVASIR_CHECK for bugs, Status for input"),
    ("throw", OWN, r"\bthrow\b", "return a base::Status"),
    ("stdout", LIBRARIES, r"\bstd::(cout|printf|puts|putchar)\b|(?<![\w:.>])(printf|puts|putchar)\s*\(",
     "libraries do not print: return the text, or log to stderr in the program"),
    ("string-call", OWN, r"(?<![\w.>])(sprintf|vsprintf|strcpy|strcat|strncpy|strtok|gets|atoi|atol|atof)\s*\(",
     "fmt::format, std::string, std::from_chars"),
    ("rand", OWN, r"(?<![\w.>])s?rand\s*\(|\bstd::mt19937", "base::Philox from a seed, or base::Entropy"),
    ("random-device", r"^(?!engine/base/)", r"\brandom_device\b", "take a base::Entropy as a parameter"),
    ("system", OWN, r"(?<![\w.>])(system|popen)\s*\(", "no shell: posix_spawn with an argument list"),
    ("getenv", r"^(?!router/(client|server)/|tests/|eval/)", r"\bgetenv\s*\(", "take it as an option; programs read it"),
    ("clock", r"^(engine|memory|compaction|router/policy)/(?!base/)", r"\b(system|steady|high_resolution)_clock::now\b",
     "take a base::Clock as a parameter"),
    ("sleep-in-test", r"^tests/", r"\bsleep_(for|until)\b|(?<![\w.>])(sleep|usleep|nanosleep)\s*\(",
     "wait for the event (notification, Watch, FakeClock), never for time"),
]


class Tree:
    """The tracked files of a checkout and their text."""

    def __init__(self, root):
        self.root = root
        listing = subprocess.run(["git", "-C", root, "ls-files", "-z"], check=True, capture_output=True).stdout
        self.files = [f for f in listing.decode().split("\0") if f and os.path.lexists(os.path.join(root, f))]
        self.names = set(self.files)
        for f in self.files:  # and every folder
            while "/" in f:
                f = f.rsplit("/", 1)[0]
                self.names.add(f)
        self.base_names = {f.rsplit("/", 1)[-1] for f in self.files}
        self._texts = {}

    def text(self, path):
        if path not in self._texts:
            with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as f:
                self._texts[path] = f.read()
        return self._texts[path]

    def with_suffix(self, *suffixes):
        return [f for f in self.files if f.endswith(suffixes) and not f.startswith(DATA)]


def code_of(text):
    """`text` with comments and the contents of strings blanked, lines kept."""
    pattern = r'R"(\w*)\((?:.|\n)*?\)\1"|//[^\n]*|/\*(?:.|\n)*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\''

    def blank(match):
        kept = "" if match[0].startswith("/") else '""'
        return kept + "\n" * match[0].count("\n")
    return re.sub(pattern, blank, text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def include_table(tree):
    """{module: set of modules it may include, or None for any} from the table of docs/architecture.md."""
    table = {}
    if DOC_ROOT in tree.names:
        for row in re.findall(r"^\| ([\w/, ]+) \|[^|\n]*\| ([^|\n]*) \|$", tree.text(DOC_ROOT), re.M):
            for module in row[0].split(", "):
                allowed = row[1].strip()
                table[module] = None if allowed == "anything" else set(re.findall(r"[\w/]+", allowed))
    return table


def module_of(path, modules):
    fits = [m for m in modules if path.startswith(m + "/")]
    return max(fits, key=len) if fits else None


def check_includes(tree):
    table = include_table(tree)
    if not table:
        yield DOC_ROOT, 1, "the table of modules is missing or has no row of the form | module | is | may include |"
        return
    for path in tree.with_suffix(*CPP):
        module = module_of(path, table)
        if module is None:
            yield path, 1, f"belongs to no module of the table in {DOC_ROOT}"
            continue
        if table[module] is None:
            continue
        text = tree.text(path)
        for match in re.finditer(r'^\s*#\s*include\s*(["<])([^">]+)[">]', text, re.M):
            line, header = line_of(text, match.start(2)), match[2]
            target = module_of(header, table)
            if target and target != module and target not in table[module]:
                allowed = ", ".join(sorted(table[module])) or "nothing else"
                yield path, line, f"{module} must not include {target} ({header}); it may include {allowed}"
            elif match[1] == '"' and target is None and "/" not in header:
                yield path, line, f'include "{header}" from the repository root: "{module}/{header}"'
            if target:
                continue
            for pattern, modules, instead in THIRD_PARTY:
                if re.match(pattern, header) and module not in modules:
                    yield path, line, f"{module} must not include {header}: {instead}"


def check_banned(tree):
    for path in tree.with_suffix(*CPP):
        code = code_of(tree.text(path))
        for rule, where, pattern, instead in BANNED:
            if re.match(where, path):
                for match in re.finditer(pattern, code):
                    yield path, line_of(code, match.start()), f"banned ({rule}) '{match[0].strip()}': {instead}"


def check_headers(tree):
    for path in tree.with_suffix(".h", ".cuh"):
        code = code_of(tree.text(path))
        first = code.strip().split("\n", 1)[0].strip()
        if first != "#pragma once":
            yield path, 1, f"the first line of code must be #pragma once, it is '{first}'"
        for match in re.finditer(r"\busing\s+namespace\b", code):
            yield path, line_of(code, match.start()), "no 'using namespace' in a header: name what is used"


def check_targets(tree):
    lists = [f for f in tree.files if f.endswith((".cmake", "CMakeLists.txt"))]
    named = set()
    for path in lists:
        folder = os.path.dirname(path)
        for word in re.findall(r"[^\s()\"]+\.(?:cc|cu)\b", re.sub(r"#[^\n]*", "", tree.text(path))):
            word = re.sub(r"\$\{(PROJECT|CMAKE)_SOURCE_DIR\}/", "/", word)
            word = re.sub(r"\$\{CMAKE_CURRENT_(SOURCE|LIST)_DIR\}/", "", word)
            full = word[1:] if word.startswith("/") else os.path.normpath(os.path.join(folder, word))
            named.add("[^/]*".join(re.escape(part) for part in re.split(r"\$\{\w+\}", full)))
    pattern = re.compile("|".join(named) or r"(?!)")
    for path in tree.with_suffix(".cc", ".cu"):
        if not pattern.fullmatch(path):
            yield path, 1, "is in no CMake target: name it in the CMakeLists.txt of its folder"


def check_documents(tree):
    generated = ("build/", "models/", ".cache/", ".venv/", ".cache", ".venv", "~/", "/", "$")
    roots = "|".join(sorted(n for n in TOP_LEVEL if "." not in n and n != "dev"))
    for path in tree.with_suffix(".md"):
        text = re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), tree.text(path), flags=re.M | re.S)
        names = [(m.start(), m[1]) for m in re.finditer(r"`(?:\./)?([\w.~$/+-]+)`", text)]
        names += [(m.start(), m[1]) for m in re.finditer(r"\]\((?!\w+:|#)([^)#\s]+)", text)]
        for position, name in names:
            is_path = re.match(rf"({roots})/", name) or name.startswith("../") or re.search(
                r"\w\.(md|cc|h|cu|cuh|py|sh|cmake|proto|toml|json|txt)$", name)
            if not is_path or name.startswith(generated):
                continue
            beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
            if not {name.rstrip("/"), beside} & tree.names and ("/" in name or name not in tree.base_names):
                yield path, line_of(text, position), f"names '{name}', which is not there"


def check_top_level(tree):
    for name in sorted({f.split("/", 1)[0] for f in tree.files}):
        if name not in TOP_LEVEL and not name.startswith("."):
            yield name, 1, f"is not among the top-level names of {DOC_ROOT}; find the module it belongs to"
    for folder in sorted({p for f in tree.files for p in f.split("/")[:-1]} & {"common", "utils", "third_party"}):
        yield folder, 1, "a folder is named after what is in it: no common, utils, third_party"


def check_text(tree):
    leftovers = r"\b(TO[D]O|FIX[M]E|X[X]X|HA[C]K)\b"
    machine = r"(?<![\w.])/(wor[k]|roo[t]|hom[e]/\w+)/"
    index = r"https?://[\w.:-]*(pyp[i]|pythonhoste[d]|registr[y]|deb\.debia[n]|artifactor[y])|--(extra-)?inde[x]-url"
    for path in tree.files:
        if path.startswith(DATA) or not (path.endswith(TEXT) or path in ("dev", ".ci/run", ".clang-tidy")):
            continue
        text = tree.text(path)
        for pattern, why in ((leftovers, "finish it, or file an issue"), (machine, "a path of one machine"),
                             (index, "a package registry by address: pip's and apt's own settings choose it")):
            for match in re.finditer(pattern, text):
                yield path, line_of(text, match.start()), f"'{match[0]}': {why}"
        lines, most = text.count("\n"), TEST_LINES_MAX if path.startswith("tests/") else LINES_MAX
        if path.endswith(CPP + (".py", ".sh", ".proto")) and lines > most:
            yield path, most, f"{lines} lines, at most {most}: it holds two ideas, split it by idea"


CHECKS = [check_includes, check_banned, check_headers, check_targets, check_documents, check_top_level, check_text]


def problems(root):
    tree = Tree(root)
    return [f"{path}:{line}: {message}" for check in CHECKS for path, line, message in check(tree)]


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        import self_test
        sys.exit(self_test.run(problems))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    found = problems(root)
    print("\n".join(found + [f"tidy: {len(found)} problems" if found else "tidy: no problems"]))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
