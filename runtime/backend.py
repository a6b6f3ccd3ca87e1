"""The build backend (PEP 517) of ansor-deploy-runtime: it makes the wheel from this checkout.

ANSOR_DEPLOY_ARCH names the architecture, if it is not this machine's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def build_wheel(
    wheel_directory: str, config_settings: object = None, metadata_directory: object = None
) -> str:
    """Write the wheel; return its file name."""
    from ansor_deploy.devices.wheels import wheels_folder
    from ansor_deploy.ship.package.wheel import write_wheel
    from ansor_deploy.system.host import architecture

    arch = os.environ.get("ANSOR_DEPLOY_ARCH") or architecture()
    return write_wheel(Path(wheel_directory), arch, wheels_folder()).name
