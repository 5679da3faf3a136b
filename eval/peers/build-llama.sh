#!/usr/bin/env bash
# Builds the peer that benchmarks compare with: llama.cpp, as vendored in the source package of llama-cpp-python on PyPI.
#
#   eval/peers/build-llama.sh [DIR]     programs in DIR/bin (default: build/peers/llama): llama-bench llama-server
#                                       llama-perplexity llama-batched-bench llama-tokenize
#
# About ten minutes on two cores; nothing is done when DIR/bin holds this version. Never part of a build or a test of ours.
set -euo pipefail

version=0.3.36
programs=(llama-bench llama-server llama-perplexity llama-batched-bench llama-tokenize)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
dir=${1:-$root/build/peers/llama}

die() { echo "build-llama: $*" >&2; exit 1; }

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
if [ "$(cat "$dir/version" 2> /dev/null)" = "$version" ]; then
  echo "build-llama: $dir/bin is up to date"
  exit 0
fi
for tool in cmake ninja g++ tar python3; do
  command -v "$tool" > /dev/null || die "$tool is missing (./dev build installs it)"
done

work=$(mktemp -d "$dir/.work.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "build-llama: downloading llama-cpp-python $version"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: --dest "$work" \
  "llama-cpp-python==$version" || die "pip could not bring llama-cpp-python $version"
tar -xzf "$work"/llama_cpp_python-*.tar.gz -C "$work"
source_dir=$(echo "$work"/llama_cpp_python-*/vendor/llama.cpp)
[ -d "$source_dir" ] || die "llama-cpp-python $version holds no vendor/llama.cpp"

# GCC 12's _tile_loadconfig names 8 of the 64 bytes it reads, so the stores to the others are dropped and AMX crashes.
sed -i 's/_tile_loadconfig(&tc);/asm volatile("" ::: "memory"); _tile_loadconfig(\&tc);/' \
  "$source_dir/ggml/src/ggml-cpu/amx/mmq.cpp"

echo "build-llama: building, log in $dir/build.log"
{
  cmake -S "$source_dir" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=OFF \
    -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF &&
    ninja -C "$work/build" "${programs[@]}"
} > "$dir/build.log" 2>&1 || { tail -n 30 "$dir/build.log" >&2; die "the build failed"; }

mkdir -p "$dir/bin"
for program in "${programs[@]}"; do install -m 755 "$work/build/bin/$program" "$dir/bin/$program"; done
echo "$version" > "$dir/version"
echo "build-llama: wrote $dir/bin"
