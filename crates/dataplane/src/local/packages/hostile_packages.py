"""Makes packages that nobody should trust: `python hostile_packages.py DIRECTORY MARKER`. Whatever of their code runs appends a
line to the file MARKER.
"""

import base64
import hashlib
import io
import stat
import sys
import tarfile
import zipfile
from pathlib import Path

DIRECTORY, MARKER = Path(sys.argv[1]), sys.argv[2]


def ran(what: str) -> str:
    return f"import os; open({MARKER!r}, 'a').write({what!r} + ' as ' + str(os.getuid()) + os.linesep)\n"


def wheel(name: str, files: dict, links: dict = {}, recorded: tuple = ()) -> None:
    inside = f"{name}-1.0.dist-info"
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    kind = "Wheel-Version: 1.0\nGenerator: nobody\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {**files, f"{inside}/METADATA": about, f"{inside}/WHEEL": kind}
    lines = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},{len(text)}"
        for path, text in files.items()
    ]
    with zipfile.ZipFile(DIRECTORY / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        for path, target in links.items():
            link = zipfile.ZipInfo(path)
            link.create_system = 3
            link.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(link, target)
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{inside}/RECORD", "\n".join([*lines, *recorded, f"{inside}/RECORD,,", ""]))


def sdist(name: str, files: dict) -> None:
    files = {"PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", **files}
    with tarfile.open(DIRECTORY / f"{name}-1.0.tar.gz", "w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"{name}-1.0/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))


NAME = "podium_hostile_"
sdist(f"{NAME}setup", {"setup.py": ran("setup.py") + "from setuptools import setup; setup()\n"})
backend = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
sdist(f"{NAME}backend", {"pyproject.toml": backend, "backend.py": ran("a build backend")})
wheel(
    f"{NAME}files",
    {
        "podium_hostile_files.py": "",
        "zzz-hostile.pth": ran("a .pth file"),
        "sitecustomize.py": ran("sitecustomize"),
        "usercustomize.py": ran("usercustomize"),
        "airflow_local_settings.py": ran("airflow_local_settings"),
        "podium_airflow/__init__.py": ran("podium_airflow"),
        "podium_airflow/executors.py": ran("podium_airflow.executors"),
        "podium_launch.py": ran("podium_launch"),
        f"{NAME}files-1.0.data/scripts/hostile-tool": "#!python\n" + ran("a script"),
        f"{NAME}files-1.0.data/data/escaped-data": "",
    },
)
wheel(f"{NAME}parents", {"podium_hostile_parents.py": "", "../escaped-parent.py": "", "../../../escaped-further.py": ""})
wheel(f"{NAME}data", {"podium_hostile_data.py": "", f"{NAME}data-1.0.data/data/../../../../escaped-by-data": ""})
wheel(f"{NAME}scripts", {"podium_hostile_scripts.py": "", f"{NAME}scripts-1.0.data/scripts/../../../escaped-by-script": ""})
wheel(f"{NAME}root", {"podium_hostile_root.py": "", f"{DIRECTORY}/escaped-root.py": ""})
wheel(f"{NAME}link", {"podium_hostile_link.py": ""}, links={"secret.py": "/etc/passwd"})
wheel(
    f"{NAME}through",
    {"podium_hostile_through.py": "", "out/escaped-by-link.py": ""},
    links={"out": str(DIRECTORY)},
)
wheel(
    f"{NAME}record",
    {"podium_hostile_record.py": ""},
    recorded=("../../escaped-record.py,,", "/etc/escaped-record,,"),
)
