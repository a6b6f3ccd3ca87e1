import warnings

from ansor_deploy.system.environment import version


def test_to_find_a_version_leaves_no_folder_open():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert version("numpy")
    assert not seen
