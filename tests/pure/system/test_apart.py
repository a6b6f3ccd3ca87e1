"""A command's files are kept apart by the places to which their names lead."""

import pytest

from ansor_deploy.errors import UsageError
from ansor_deploy.system.apart import check_apart


def test_a_link_is_the_file_to_which_it_leads(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(UsageError, match="uses it twice"):
        check_apart([tmp_path / "file"], [tmp_path / "link"], "give another name")


def test_links_in_a_circle_are_left_to_what_opens_them(tmp_path):
    """`verify` of a library with such a manifest ended with a traceback."""
    (tmp_path / "one").symlink_to(tmp_path / "other")
    (tmp_path / "other").symlink_to(tmp_path / "one")
    check_apart([tmp_path / "one"], [tmp_path / "file"], "give another name")
    check_apart([tmp_path / "file"], [tmp_path / "other"], "give another name")
