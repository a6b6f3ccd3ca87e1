"""The project is found from below, its file is checked, and every path has one order of search."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansor_deploy.errors import UsageError
from ansor_deploy.project import Project
from ansor_deploy.system.environment import shipped


@pytest.fixture
def root(tmp_path):
    (tmp_path / "deep" / "down").mkdir(parents=True)
    return tmp_path.resolve()


def marker(root, text):
    (root / "ansor-deploy.toml").write_text(text)


def test_the_project_is_found_from_below(root):
    marker(root, 'registry = "data/team.db"\ntarget = "rpi3"\n')
    found = Project.find(root / "deep" / "down")
    assert found == Project(root, root / "data" / "team.db", "rpi3")


def test_the_working_directory_is_where_the_search_starts(root, monkeypatch):
    marker(root, "")
    monkeypatch.chdir(root / "deep")
    assert Project.find() == Project(root)


def test_no_project_is_looked_for_where_none_is_wanted(root, monkeypatch):
    marker(root, "what = 1")
    monkeypatch.setenv("ANSOR_DEPLOY_PROJECT", "none")
    assert Project.find(root) == Project()


def test_the_nearest_project_counts(root):
    marker(root, 'target = "far"')
    marker(root / "deep", 'target = "near"')
    assert Project.find(root / "deep" / "down").target == "near"


@pytest.mark.parametrize(
    ("team", "means"),
    [("records", "{root}/records"), ("/mnt/team", "/mnt/team"), ("s3://b/r", "s3://b/r")],
)
def test_where_the_team_s_records_are(root, team, means):
    marker(root, f'team = "{team}"')
    assert Project.find(root / "deep").team == means.format(root=root)


def test_a_target_s_devices(root):
    marker(root, '[target.rpi3]\ndevices = ["b", "a", "b"]\n[target."my.board"]\ndevices = []\n')
    found = Project.find(root)
    assert (found.target, found.devices) == (None, {"rpi3": ("b", "a"), "my.board": ()})
    marker(root, '[target]\ndefault = "rpi3"\n[target.rpi3]\ndevices = ["pi"]\n')
    found = Project.find(root)
    assert (found.target, found.devices) == ("rpi3", {"rpi3": ("pi",)})


def test_outside_a_project(root):
    assert Project.find(root / "deep") == Project()
    assert Project().target_path() == [shipped("targets")]


def test_the_projects_targets_come_first(root):
    marker(root, "")
    assert Project.find(root).target_path() == [root / "targets", shipped("targets")]


def test_the_order_of_registries(root, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(root / "xdg"))
    marker(root, f'registry = "{root / "abs.db"}"')
    project = Project.find(root)
    assert project.registry_path(Path("flag.db")) == Path("flag.db")
    assert project.registry_path() == root / "abs.db"
    assert Project().registry_path() == root / "xdg" / "ansor-deploy" / "registry.db"


@pytest.mark.parametrize("value", ["", "relative/path"])
def test_without_a_data_home(monkeypatch, value):
    monkeypatch.setenv("XDG_DATA_HOME", value)
    monkeypatch.setenv("HOME", "/home/someone")
    expected = Path("/home/someone/.local/share/ansor-deploy/registry.db")
    assert Project().registry_path() == expected


@pytest.mark.parametrize("value", ["", "relative/path"])
def test_a_home_that_depends_on_the_current_folder_is_none(monkeypatch, value):
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", value)
    with pytest.raises(UsageError, match=f"HOME={value} is no absolute path") as refused:
        Project().registry_path()
    assert "--registry" in refused.value.hint


def test_without_any_home():
    # A user whom the system does not know, as containers run their jobs.
    code = """if True:
        import os
        from ansor_deploy.errors import UsageError
        from ansor_deploy.project import Project
        if os.getuid() == 0:
            os.setuid(54321)
        try:
            print(Project().registry_path())
        except UsageError as error:
            print(error.message, error.hint)
    """
    done = subprocess.run(
        [sys.executable, "-c", code], env={}, capture_output=True, text=True, check=True
    )
    assert "no home directory" in done.stdout or done.stdout.startswith("/")
    if "no home" in done.stdout:
        assert "--registry" in done.stdout


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ('\ntargets = "x"\n', 2, "unknown field 'targets'"),
        ("# mine\n[tool]\nregistry = 1\n", 2, "unknown field 'tool'"),
        ("\n\nregistry = 4\n", 3, "registry must be"),
        ('target = ""\n', 1, "target must be"),
        ('target = "a\\nb"\n', 1, "target must be"),
        ("target = rpi3\n", 1, "not valid TOML"),
        ("target = 3\n", 1, "target must be"),
        ("\n[target]\ndefault = 3\n", 3, "default must be"),
        ('[target]\nrpi3 = "pi"\n', 2, "rpi3 must be a table"),
        ('[target.rpi3]\ndevice = "pi"\n', 2, "unknown field 'device' in [target.rpi3]"),
        ('[target.rpi3]\n\ndevices = "pi"\n', 3, "devices must be"),
        ('[target.rpi3]\ndevices = ["pi", 4]\n', 2, "devices must be"),
    ],
)
def test_a_wrong_file_is_pointed_at(root, text, line, problem):
    marker(root, text)
    with pytest.raises(UsageError) as caught:
        Project.find(root)
    place = root / "ansor-deploy.toml"
    assert caught.value.message.startswith(f"{place}:{line}: {problem}")
    assert caught.value.hint


@pytest.mark.parametrize("name", ["registry", "rules", "targets"])
def test_content_is_shipped(name):
    assert shipped(name).is_dir()


@pytest.fixture
def given_away(root):
    """A function that makes another user, who is not there, the owner of a path in the project."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    marker(root, "")
    (root / "rules").mkdir()
    (root / "rules" / "mine.py").touch()

    def give(name):
        os.chown(root / name, 12345, -1, follow_symlinks=False)
        return root / name

    return give


@pytest.mark.parametrize("name", ["ansor-deploy.toml", ""])
def test_another_user_s_project_is_not_obeyed_unasked(root, given_away, name, monkeypatch):
    path = given_away(name)
    with pytest.raises(UsageError) as caught:
        Project.find(root / "deep")
    assert caught.value.file == path
    assert "belongs to the user 12345" in caught.value.text
    assert f"ANSOR_DEPLOY_PROJECT={root}" in caught.value.hint
    monkeypatch.setenv("ANSOR_DEPLOY_PROJECT", str(root))
    assert Project.find(root / "deep").root == root
    assert Project.find(root / "deep").rule_files() == [root / "rules" / "mine.py"]


def test_a_link_of_another_user_to_one_s_own_project_is_not_obeyed(root, given_away):
    (root / "deep" / "ansor-deploy.toml").symlink_to(root / "ansor-deploy.toml")
    given_away("deep/ansor-deploy.toml")
    with pytest.raises(UsageError, match="belongs to"):
        Project.find(root / "deep")


@pytest.mark.parametrize("name", ["rules", "rules/mine.py"])
def test_another_user_s_rules_are_not_run_unasked(root, given_away, name):
    path = given_away(name)
    project = Project.find(root)
    with pytest.raises(UsageError, match="belongs to the user 12345") as caught:
        project.rule_files()
    assert caught.value.file == path
    assert caught.value.hint == f"if you trust it, name it: --rules {root / 'rules'}"
    assert project.rule_files([root / "rules" / "mine.py"]) == []


@pytest.mark.parametrize("name", ["rules", "rules/mine.py"])
def test_rules_that_everybody_may_change_are_not_run_unasked(root, name):
    marker(root, "")
    (root / "rules").mkdir()
    (root / "rules" / "mine.py").touch()
    (root / name).chmod(0o777)
    with pytest.raises(UsageError, match="can be changed by every user") as caught:
        Project.find(root).rule_files()
    assert f"chmod o-w {root / name}" in caught.value.hint


def test_a_folder_in_which_others_may_only_add_files_is_judged_by_its_files(root):
    marker(root, "")
    (root / "rules").mkdir()
    (root / "rules" / "mine.py").touch()
    (root / "rules").chmod(0o1777)
    assert Project.find(root).rule_files() == [root / "rules" / "mine.py"]


def test_a_named_project_is_read_from_anywhere(root, monkeypatch):
    marker(root, 'target = "rpi3"')
    monkeypatch.setenv("ANSOR_DEPLOY_PROJECT", str(root))
    monkeypatch.chdir("/")
    assert Project.find() == Project(root, target="rpi3", is_named=True)
