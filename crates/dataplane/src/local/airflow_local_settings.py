"""Tells Airflow which values of this environment are secret, so that its logs do not show them.

Airflow loads a module of this name at the start of every process. One that the environment has itself, for policies of
its cluster, is loaded after this one and counts as if this one were not there.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import sys

__all__ = []

# Each line of releases keeps its masker elsewhere; some have one for the core and one for tasks.
_MASKERS = (
    "airflow.utils.log.secrets_masker",
    "airflow.sdk.execution_time.secrets_masker",
    "airflow._shared.secrets_masker",
    "airflow.sdk._shared.secrets_masker",
)


def _values():
    for name in os.environ.get("PODIUM_SECRET_VARIABLES", "").split(","):
        value = os.environ.get(name)
        if name and value:
            yield value
            # Logs are written line by line.
            yield from (line for line in value.splitlines() if line != value)


def _mask(values):
    for place in _MASKERS:
        try:
            masker = importlib.import_module(place)
            for value in values:
                masker.mask_secret(value)
        except Exception:  # noqa: BLE001, S112
            # Not in this release.
            continue


def _load_own():
    """Loads the module of this name that is further down the path."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    found = importlib.machinery.PathFinder.find_spec(__name__, path)
    if found is None or found.loader is None:
        return
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    for name in names:
        globals()[name] = getattr(module, name)
    __all__.extend(names)


_secret = list(_values())
if _secret:
    _mask(_secret)
_load_own()
