"""Communication between a component and its supervisor: small files, which outlive either side."""

import os
import pathlib
import threading
import time

# Written by the component, below its own directory.
_STATUS = pathlib.Path(os.environ.get("PODIUM_STATUS", os.devnull))
# Written by the supervisor; the component only reads it.
_DRAIN = pathlib.Path(os.environ.get("PODIUM_DRAIN", os.devnull))
# Written by the supervisor when it starts the scheduler.
_WORKERS = _DRAIN.with_name("workers")
_PROGRESS_INTERVAL = 1.0
_READY_INTERVAL = 5.0

_MOST_WAITED_FOR = 20

_last_progress = 0.0
_last_waiting = ""


def progress(component: str) -> None:
    """Marks that a component is making progress."""
    global _last_progress
    now = time.monotonic()
    if now - _last_progress >= _PROGRESS_INTERVAL:
        _last_progress = now
        _write(f"{component}.progress", "")


def ready() -> None:
    """Marks that this process serves requests, repeatedly, because the mark may get lost."""
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
    """The id of the requested drain; ``None`` if there is none."""
    try:
        return _DRAIN.read_text() or None
    except OSError:
        return None


def workers() -> str | None:
    """Since when workers and their broker have been there; ``None`` if nobody says."""
    try:
        return _WORKERS.read_text()
    except OSError:
        return None


def drained(request: str) -> None:
    """Marks that no task is running any more, and that none will be started."""
    _write("drained", request)


def waiting(request: str, tasks: list[str]) -> None:
    """Names the task instances that a drain waits for."""
    global _last_waiting
    names = sorted(task.replace("\n", " ") for task in tasks)[:_MOST_WAITED_FOR]
    text = "\n".join([request, *names])
    if text != _last_waiting:
        _last_waiting = text
        _write("waiting", text)


def _write(name: str, text: str) -> None:
    try:
        draft = _STATUS / f".{name}.{os.getpid()}"
        draft.write_text(text)
        draft.replace(_STATUS / name)
    except OSError:
        # A full disk must not end a component; its supervisor then uses other indications.
        pass
