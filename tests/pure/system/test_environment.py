import os
import stat
import warnings

import pytest

from ansor_deploy.errors import AnsorError
from ansor_deploy.system.environment import cache_folder, in_ci, version


@pytest.mark.parametrize(
    ("value", "expected"),
    [("true", True), ("1", True), ("", False), ("0", False), ("False", False)],
)
def test_a_service_for_continuous_integration_says_so(monkeypatch, value, expected):
    monkeypatch.setenv("CI", value)
    assert in_ci() == expected


def test_to_find_a_version_leaves_no_folder_open():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert version("numpy")
    assert not seen


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "ansor-deploy"


@pytest.mark.parametrize("before", [None, 0o775, 0o777])
def test_nobody_else_can_put_code_into_the_cache(cache, before):
    """Nor could they where an umask of 002 had it made."""
    if before:
        cache.mkdir()
        cache.chmod(before)
    assert cache_folder("objects").parent == cache
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_the_cache_of_another_user_is_not_used(cache):
    """As sudo finds one, where it keeps HOME."""
    cache.mkdir()
    os.chown(cache, 1234, -1)
    with pytest.raises(AnsorError, match="belongs to the user 1234"):
        cache_folder("objects")
