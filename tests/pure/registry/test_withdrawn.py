"""Bundles that their team has withdrawn: taken by nobody, also where an old copy is served."""

import os
from functools import partial

import pytest
from helpers.cli_inside import answer
from helpers.foreign import record, registry
from helpers.layers import ids, warnings_of
from helpers.ssh_keys import make_key
from helpers.web import Quiet, serving

from ansor_deploy.errors import UsageError
from ansor_deploy.registry.exchange import pull, push, withdraw
from ansor_deploy.registry.layer import Layer
from ansor_deploy.registry.remote import WITHDRAWN
from ansor_deploy.registry.signing import load_signer, load_trusted

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def signed(tmp_path, key):
    """A folder with a signed bundle, of a record of size 64."""
    folder = tmp_path / "signed"
    push(registry(tmp_path / "theirs.db", 64), str(folder), load_signer(key))
    return folder


def bundle_in(folder):
    (path,) = folder.glob("*.jsonl")
    return path


def test_a_bundle_that_is_withdrawn_is_pulled_by_nobody(signed, key, tmp_path):
    trusted = load_trusted(key.with_suffix(".pub"))
    withdraw(str(signed), bundle_in(signed).stem, load_signer(key))
    found = pull(tmp_path / "new.db", str(signed), trusted)
    assert (found.bundles, found.withdrawn) == (0, [bundle_in(signed).name])


def test_an_old_copy_of_a_layer_is_recognised(mine, signed, key):
    layer = Layer(str(signed), key.with_suffix(".pub"))
    withdraw(str(signed), bundle_in(signed).stem, load_signer(key))
    assert warnings_of(mine, layer) == []
    (signed / f"{bundle_in(signed).name}{WITHDRAWN}").unlink()
    (warned,) = warnings_of(mine, layer)
    assert "an old copy of the layer is served" in warned
    assert ids(mine) == set()


def test_a_url_tells_what_is_withdrawn(mine, signed, key):
    withdraw(str(signed), bundle_in(signed).stem, load_signer(key))
    with serving(partial(Quiet, directory=signed)) as url:
        assert warnings_of(mine, Layer(url, key.with_suffix(".pub"))) == []
    assert ids(mine) == set()


def test_a_pipe_beside_a_bundle_is_not_waited_for(mine, signed, key):
    os.mkfifo(signed / f"{bundle_in(signed).name}{WITHDRAWN}")
    (warned,) = warnings_of(mine, Layer(str(signed), key.with_suffix(".pub")))
    assert "no regular file" in warned


@pytest.mark.parametrize("by", ["other", None])
def test_only_who_is_trusted_withdraws(mine, signed, key, tmp_path, by):
    make_key(tmp_path / "other")
    withdraw(str(signed), bundle_in(signed).stem, by and load_signer(tmp_path / by))
    trusted = load_trusted(key.with_suffix(".pub"))
    assert pull(tmp_path / "new.db", str(signed), trusted).bundles == 1
    assert warnings_of(mine, Layer(str(signed), key.with_suffix(".pub"))) == []
    assert ids(mine) == {record(64).id}


def test_a_command_withdraws_a_bundle_for_a_team_without_keys(mine, team, tmp_path):
    name = bundle_in(team).name
    assert answer(tmp_path, "registry", "withdraw", name, team) == {"bundle": name}
    assert warnings_of(mine, Layer(str(team))) == []
    assert ids(mine) == set()
    with pytest.raises(UsageError, match="no bundle"):
        withdraw(str(team), "../x")
