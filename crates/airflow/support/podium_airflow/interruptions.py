"""What a task gets back that another start of its environment takes from it."""

from podium_airflow import listener


def make_up_for(instance) -> None:
    """Gives an attempt back for the one that another start takes: the task did nothing wrong, or had not even begun."""
    if instance.state in ("running", "restarting"):
        listener.interrupted(instance)
    if isinstance(instance.max_tries, int):
        instance.max_tries += 1
