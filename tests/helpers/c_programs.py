"""C and C++ programs that run libraries, compiled as a user would."""

import subprocess
from pathlib import Path

from helpers.cli_inside import program

STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-g", "-O1")
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def hooks(kind):
    return program(Path(), "hooks", kind).stdout.strip()


def flags():
    words = ["pkg-config", f"--define-variable=site={hooks('runtime')}", "--cflags", "--libs"]
    given = subprocess.run(
        [*words, "ansor-deploy"],
        env={"PKG_CONFIG_PATH": hooks("c"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    return given.stdout.split()


def compiled(shop, compiler, *words):
    """Compile a program with the C API's source, with all warnings as errors; return its path."""
    out = shop / f"{compiler}-{Path(words[-1]).stem}"
    source = Path(hooks("c"), "ansor_deploy.c")
    command = [compiler, *STRICT, *words, source, f"-I{shop}", "-Wl,--as-needed", *flags()]
    subprocess.run([*command, "-pthread", "-o", out], check=True)
    return out
