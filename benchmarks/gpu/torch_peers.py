"""PyTorch on the same networks: eager, and as a CUDA graph. This file runs on the GPU's machine.

Weights are random, as outputs are not compared. TF32 is off, and images are channels-last.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

Call = Callable[[], Any]


def peers(name: str, values: Sequence[np.ndarray]) -> dict[str, Call]:
    """Calls by name, each from an array in host memory to a result in host memory."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.set_grad_enabled(False)
    (host,) = [torch.from_numpy(one) for one in values]
    lies = {4: torch.channels_last, 5: torch.channels_last_3d}.get(host.ndim)
    kept = {"memory_format": lies} if lies else {}
    model = _MODELS[name]().eval().cuda().to(**kept)
    given = host.cuda().contiguous(**kept)
    graph, made = _recorded(model, given)
    return {
        "eager": lambda: _result(model(given.copy_(host))).cpu(),
        "graph": lambda: (given.copy_(host), graph.replay(), made.cpu())[-1],
    }


def _recorded(model: nn.Module, given: torch.Tensor) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(3):
            model(given)
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = _result(model(given))
    return graph, made


def _result(made: Any) -> torch.Tensor:
    return getattr(made, "last_hidden_state", made)


def _vision(name: str) -> nn.Module:
    from torchvision import models

    made: nn.Module = models.get_model(name, weights=None)
    return made


def _bert(layers: int, hidden: int, heads: int) -> nn.Module:
    from transformers import BertConfig, BertModel

    sizes = {"num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads}
    made: nn.Module = BertModel(
        BertConfig(intermediate_size=4 * hidden, **sizes), add_pooling_layer=False
    )
    return made


def _vit() -> nn.Module:
    import timm

    words = {"class_token": False, "global_pool": "avg"}
    made: nn.Module = timm.create_model("vit_tiny_patch16_224", **words)
    return made


def _dcgan() -> nn.Module:
    layers: list[nn.Module] = []
    widths, given = (1024, 512, 256, 128), 100
    for at, width in enumerate(widths):
        step = (1, 0) if at == 0 else (2, 1)
        layers += [nn.ConvTranspose2d(given, width, 4, *step, bias=False), nn.BatchNorm2d(width)]
        layers += [nn.ReLU(inplace=True)]
        given = width
    return nn.Sequential(*layers, nn.ConvTranspose2d(given, 3, 4, 2, 1, bias=False), nn.Tanh())


_MODELS: dict[str, Callable[[], nn.Module]] = {
    "resnet50": partial(_vision, "resnet50"),
    "mobilenet_v2": partial(_vision, "mobilenet_v2"),
    "resnet3d18": partial(_vision, "r3d_18"),
    "dcgan": _dcgan,
    "bert_small": partial(_bert, 4, 512, 8),
    "vit_tiny": _vit,
}
