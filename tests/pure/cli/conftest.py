"""What commands are given."""

import pytest


@pytest.fixture
def model(tmp_path, monkeypatch):
    """An empty model file in the working directory."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "net.onnx"
    path.touch()
    return path
