"""Continues a sequence of tokens with the likeliest next token, step by step.

    python decode.py llama.so 3 1 4 --steps 20

The library was built with --context, so that it keeps its caches from one step to the next.
"""

import argparse
import sys

import numpy as np

from ansor_deploy.runtime import Model, load


def decoded(model: Model, prompt: list[int], steps: int) -> list[int]:
    """The tokens of a prompt, followed by those that the model chooses."""
    tokens = list(prompt)
    for place in range(len(prompt) + steps - 1):
        logits = model.decode(
            input_ids=np.array([[tokens[place]]]),
            attention_mask=np.ones((1, place + 1), np.int64),
            position_ids=np.array([[place]]),
        )["logits"]
        if place + 1 == len(tokens):
            tokens.append(int(logits.argmax()))
    return tokens


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("tokens", type=int, nargs="+")
    parser.add_argument("--steps", type=int, default=16)
    asked = parser.parse_args()
    tokens = decoded(load(asked.library), asked.tokens, asked.steps)
    sys.stdout.write(f"{' '.join(map(str, tokens))}\n")
