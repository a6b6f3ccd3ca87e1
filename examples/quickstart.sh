#!/bin/sh
# From nothing to a tuned, verified library: a virtual environment, the tool, one small model.
# Usage: examples/quickstart.sh [FOLDER]   (default: out/quickstart; needs python3 and a C++ compiler)
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$root/out/quickstart}
mkdir -p "$out"

if [ ! -x "$out/venv/bin/ansor-deploy" ]; then
    python3 -m venv "$out/venv"
    "$out/venv/bin/pip" install --quiet "$root"
fi
PATH=$out/venv/bin:$PATH
ansor-deploy doctor

# The onnx package carries SqueezeNet with constant weights: a real graph in 16 kB.
light=$(python -c 'import onnx.backend.test as t; print(t.__path__[0])')/data/light
ansor-deploy build "$light/light_squeezenet.onnx" -o "$out/squeezenet.so" \
    --target host --effort quick --registry "$out/registry.db"
ansor-deploy bench "$out/squeezenet.so"
