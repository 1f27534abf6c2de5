"""Registers the secret values of this environment with Airflow, so that its logs mask them, and the listener that tells the
control plane of DAG runs.

Airflow loads a module of this name at the start of every process. One that the environment has itself, for policies of
its cluster, is loaded after this one and counts as if this one were not there.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import sys

__all__ = []

# Each release line has its masker in another module, and the newest have one for the core and one for tasks. The
# first of these that exists is used: the others are older names of the same.
_MASKERS = (
    ("airflow._shared.secrets_masker", "airflow.sdk._shared.secrets_masker"),
    ("airflow.sdk.execution_time.secrets_masker",),
    ("airflow.utils.log.secrets_masker",),
)


def _values():
    for name in os.environ.get("PODIUM_SECRET_VARIABLES", "").split(","):
        value = os.environ.get(name)
        if name and value:
            yield value
            # Logs are written line by line.
            yield from (line for line in value.splitlines() if line != value)


def _mask(values):
    for places in _MASKERS:
        try:
            maskers = [importlib.import_module(place) for place in places]
        except ImportError:
            # Not in this release.
            continue
        for masker in maskers:
            _keep_over_resets(masker, values)
            try:
                for value in values:
                    masker.mask_secret(value)
            except Exception:  # noqa: BLE001, S110
                # Not yet: older releases create their masker when they set up logging.
                pass
        return


def _keep_over_resets(masker, values):
    """Masks again whenever a masker is emptied, as newer releases do before every task."""
    kind = getattr(masker, "SecretsMasker", None)
    reset = getattr(kind, "reset_masker", None)
    if reset is None or getattr(reset, "keeps_secrets", False):
        return

    def reset_masker(self):
        reset(self)
        for value in values:
            self.add_mask(value)

    reset_masker.keeps_secrets = True
    kind.reset_masker = reset_masker


def _mask_later(values):
    """Masks again once logging is set up, which happens after this module is loaded."""
    from airflow import settings

    set_up = getattr(settings, "configure_logging", None)
    if set_up is None:
        return

    def configure_logging(*args, **kwargs):
        done = set_up(*args, **kwargs)
        _mask(values)
        return done

    settings.configure_logging = configure_logging


def _load_own():
    """Loads the next module of this name on the path."""
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


def _install_listener():
    try:
        from podium_airflow import listener

        listener.install()
    except Exception as error:  # noqa: BLE001
        print(f"DAG runs of this process make no events: {error!r}", file=sys.stderr)


_install_listener()
_secret = list(_values())
if _secret:
    _mask(_secret)
    _mask_later(_secret)
_load_own()
