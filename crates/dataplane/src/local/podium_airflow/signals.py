"""How a component and its supervisor tell each other what they are about: small files, which outlive either side."""

import os
import pathlib
import threading
import time

# Written by the component, below a directory of its own.
_STATUS = pathlib.Path(os.environ.get("PODIUM_STATUS", os.devnull))
# Written by the supervisor, where the component only reads.
_DRAIN = pathlib.Path(os.environ.get("PODIUM_DRAIN", os.devnull))
_PROGRESS_INTERVAL = 1.0
_READY_INTERVAL = 5.0

_last_progress = 0.0


def progress(component: str) -> None:
    """Says that a component is getting on with its work."""
    global _last_progress
    now = time.monotonic()
    if now - _last_progress >= _PROGRESS_INTERVAL:
        _last_progress = now
        _write(f"{component}.progress", "")


def ready() -> None:
    """Says that this very process serves now, again and again: the sign may get lost."""
    name = f"{os.getpid()}.ready"
    for earlier in _STATUS.glob("*.ready"):
        earlier.unlink(missing_ok=True)

    def repeat():
        while True:
            if not (_STATUS / name).exists():
                _write(name, "")
            time.sleep(_READY_INTERVAL)

    threading.Thread(target=repeat, name="podium-ready", daemon=True).start()


def drain_request() -> str | None:
    """What the supervisor calls the drain that it wants; nothing while it wants none."""
    try:
        return _DRAIN.read_text() or None
    except OSError:
        return None


def drained(request: str) -> None:
    """Says that no task runs any more, and that none will be started."""
    _write("drained", request)


def _write(name: str, text: str) -> None:
    try:
        draft = _STATUS / f".{name}.{os.getpid()}"
        draft.write_text(text)
        draft.replace(_STATUS / name)
    except OSError:
        # A full disk must not end a component; its supervisor then judges by other signs.
        pass
