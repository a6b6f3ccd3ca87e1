"""The shapes that a model is assumed to have, and the model with shapes."""

from collections.abc import Mapping

from onnx import ModelProto

from ansor_deploy.model import assumed as assuming
from ansor_deploy.model import shapes as binding
from ansor_deploy.model.batches import Asked
from ansor_deploy.model.misfit import Trials


def assumed(proto: ModelProto, given: Asked) -> Asked:
    """The shapes of the open inputs."""
    return assuming.assumed(Trials(proto), given)


def bound(proto: ModelProto, given: Mapping[str, tuple[int, ...]]) -> ModelProto:
    """The model with these shapes of its inputs."""
    return binding.bound(Trials(proto), given)
