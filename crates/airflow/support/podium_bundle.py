"""DAG bundles of deployments: every version in its own folder, and a link to the current one.

A run that has begun keeps its version; the next one takes the version that is current by then. The folders are made by
the control plane: nothing is fetched here.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from airflow.dag_processing.bundles.base import BaseDagBundle

try:
    from airflow.dag_processing.bundles.base import BundleVersion
except ImportError:
    # Older runtimes take plain text.
    def BundleVersion(version: str) -> str:  # noqa: N802
        return version


class VersionedBundle(BaseDagBundle):
    """Versions below one folder, with a link ``current``."""

    supports_versioning = True

    def __init__(self, *, folder: str, **kwargs) -> None:
        super().__init__(**kwargs)
        self._folder = Path(folder)

    def get_current_version(self):
        # ``versions/<version>``, or ``versions/<version>/dags``.
        name = self.version or Path(os.readlink(self._folder / "current")).parts[1]
        return BundleVersion(version=name)

    def initialize(self) -> None:
        super().initialize()
        # The dag-processor initializes versions in the process that all its parsers come from, and reads current files.
        if self.version and sys.argv[1:2] != ["dag-processor"]:
            self._import_from_version()

    def _import_from_version(self) -> None:
        """A run that has begun imports the modules of its own version of the project, not those that are current by then."""
        project, own = str(self._folder / "project"), str(self._folder / "versions" / self.version)
        sys.path[:] = [own if entry == project else entry for entry in sys.path]

    def refresh(self) -> None:
        """The control plane moves the link."""

    @property
    def path(self) -> Path:
        if self.version:
            whole = self._folder / "versions" / self.version
            dags = whole / "dags"
            return dags if dags.is_dir() and not dags.is_symlink() else whole
        return (self._folder / "current").resolve()
