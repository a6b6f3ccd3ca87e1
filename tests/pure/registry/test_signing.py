"""Bundles are signed as OpenSSH signs, and only who is trusted is believed."""

import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from helpers.foreign import registry
from helpers.ssh_keys import make_key, private_text

from ansor_deploy.errors import RegistryError, UsageError
from ansor_deploy.registry.exchange import export_file, import_file, pull, push
from ansor_deploy.registry.signing import load_signer, load_trusted
from ansor_deploy.registry.transfer import Taken

KEYGEN = shutil.which("ssh-keygen")


@pytest.mark.skipif(KEYGEN is None, reason="ssh-keygen is not installed")
def test_ssh_keygen_and_this_tool_read_each_other(tmp_path, key):
    mine, file = registry(tmp_path / "mine.db", 1), tmp_path / "out.jsonl"
    trusted = load_trusted(key.with_suffix(".pub"))
    export_file(mine, file, load_signer(key))
    (tmp_path / "allowed").write_text(f"me {key.with_suffix('.pub').read_text()}")
    verify = ["-Y", "verify", "-n", "ansor-deploy", "-f", tmp_path / "allowed", "-I", "me"]
    with file.open("rb") as stream:
        words = [KEYGEN, *verify, "-s", f"{file}.sig"]
        subprocess.run(words, stdin=stream, check=True, capture_output=True)
    keygen_signs(file, key, "ansor-deploy")
    assert import_file(tmp_path / "new.db", file, trusted) == Taken(1, 0)
    keygen_signs(file, key, "git")
    with pytest.raises(RegistryError, match="none of OpenSSH's"):
        import_file(tmp_path / "new.db", file, trusted)


def keygen_signs(file, key, purpose):
    Path(f"{file}.sig").unlink()
    words = [KEYGEN, "-q", "-Y", "sign", "-n", purpose, "-f", key, file]
    subprocess.run(words, check=True, capture_output=True)


def test_only_the_trusted_are_believed(tmp_path, key):
    mine, file = registry(tmp_path / "mine.db", 1), tmp_path / "out.jsonl"
    make_key(tmp_path / "other")
    others = load_trusted(tmp_path / "other.pub")
    both = tmp_path / "keys"
    pubs = [path.with_suffix(".pub").read_text() for path in (tmp_path / "other", key)]
    both.write_text("# the team\n\n" + "".join(pubs))
    export_file(mine, file, load_signer(key))
    with pytest.raises(RegistryError, match="not trusted: SHA256:"):
        import_file(tmp_path / "new.db", file, others)
    assert import_file(tmp_path / "new.db", file, load_trusted(both)) == Taken(1, 0)


def another_body(text):
    body = text.splitlines()
    body[3] = body[3][::-1]
    return "\n".join(body)


FORGED = {
    "missing": (None, "not signed"),
    "empty": (lambda text: "", "none of OpenSSH's"),
    "another format": (lambda text: "hello", "none of OpenSSH's"),
    "cut off": (lambda text: text[:200], "none of OpenSSH's"),
    "another body": (another_body, "signature|trusted"),
    "garbage": (lambda text: text.replace("U1NI", "!!!!"), "none of OpenSSH's"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_signatures_are_refused(tmp_path, key, name):
    change, says = FORGED[name]
    mine, file = registry(tmp_path / "mine.db", 1), tmp_path / "out.jsonl"
    export_file(mine, file, load_signer(key))
    signature = tmp_path / "out.jsonl.sig"
    if change is None:
        signature.unlink()
    else:
        signature.write_text(change(signature.read_text()))
    with pytest.raises(RegistryError, match=says):
        import_file(tmp_path / "new.db", file, load_trusted(key.with_suffix(".pub")))
    assert not (tmp_path / "new.db").exists()


def test_a_signature_is_of_its_content(tmp_path, key):
    trusted = load_trusted(key.with_suffix(".pub"))
    one, two = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    export_file(registry(tmp_path / "1.db", 1), one, load_signer(key))
    export_file(registry(tmp_path / "2.db", 2), two)
    shutil.copy(f"{one}.sig", f"{two}.sig")
    with pytest.raises(RegistryError, match="not of this content"):
        import_file(tmp_path / "new.db", two, trusted)


def test_who_signs_pushes_what_others_have_not_signed(tmp_path, place, key):
    mine, theirs = registry(tmp_path / "1.db", 1, 2), registry(tmp_path / "2.db", 1)
    push(theirs, place)
    assert push(mine, place, load_signer(key)).records == 2
    assert push(mine, place, load_signer(key)).name == ""
    found = pull(tmp_path / "new.db", place, load_trusted(key.with_suffix(".pub")))
    assert (found.bundles, found.taken.records, len(found.refused)) == (1, 2, 1)


def test_a_key_behind_a_passphrase_is_for_ssh_keygen(tmp_path):
    pytest.importorskip("bcrypt", reason="cryptography locks no key without bcrypt")
    make_key(tmp_path / "id", b"word")
    with pytest.raises(UsageError, match="passphrase") as caught:
        load_signer(tmp_path / "id")
    assert "ssh-keygen -Y sign -n ansor-deploy" in caught.value.hint


@pytest.mark.parametrize("end", ["\u2028", "\x0b", "\x0c", "\x85", "\r"])
def test_a_comment_hides_no_key(tmp_path, key, end):
    """OpenSSH's lines end with a line feed, and not with what else Python takes for an end."""
    (tmp_path / "other").mkdir()
    make_key(tmp_path / "other" / "id")
    mine, theirs = (one.with_suffix(".pub") for one in (key, tmp_path / "other" / "id"))
    (tmp_path / "keys").write_text(f"# of the team{end}{theirs.read_text()}{mine.read_text()}")
    assert load_trusted(tmp_path / "keys") == load_trusted(mine)


def test_keys_that_cannot_sign_or_be_trusted_say_so(tmp_path):
    path = tmp_path / "key"
    path.write_bytes(private_text(ec.generate_private_key(ec.SECP256R1())))
    with pytest.raises(UsageError, match="no Ed25519"):
        load_signer(path)
    path.write_text("no key")
    with pytest.raises(UsageError, match="no private"):
        load_signer(path)
    for text in ("ssh-rsa AAAA\n", "ssh-ed25519\n", "ssh-ed25519 AAAA\n", "# none\n"):
        path.write_text(text)
        with pytest.raises(UsageError):
            load_trusted(path)
    with pytest.raises(UsageError):
        load_trusted(tmp_path / "missing")
