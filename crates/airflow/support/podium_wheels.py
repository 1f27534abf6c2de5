"""Describes the packages of a runtime to a resolver: `python podium_wheels.py SITE_PACKAGES DIRECTORY`.

Writes a wheel for each installed package that contains nothing but its metadata. With these, requirements are resolved
against exactly what is installed: also for packages that have no wheel, which nobody may build again.
"""

import re
import sys
import zipfile
from pathlib import Path


def main(site_packages: str, directory: str) -> None:
    target = Path(directory)
    target.mkdir()
    for info in Path(site_packages).glob("*.dist-info"):
        metadata = info / "METADATA"
        if not metadata.is_file():
            continue
        name, version = info.name.removesuffix(".dist-info").split("-", 1)
        name = re.sub(r"[-_.]+", "_", name)
        with zipfile.ZipFile(target / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
            inside = f"{name}-{version}.dist-info"
            wheel.writestr(f"{inside}/METADATA", metadata.read_bytes())
            wheel.writestr(
                f"{inside}/WHEEL", "Wheel-Version: 1.0\nGenerator: podium\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{inside}/RECORD", "")


if __name__ == "__main__":
    main(*sys.argv[1:])
