"""Authentication: only requests from the front door are accepted."""

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager


class DoorAuthManager(SimpleAuthManager):
    """Accepts the tokens that the front door signs. It has no users or passwords of its own."""

    @staticmethod
    def get_users():
        return []

    def init(self) -> None:
        """Creates no password file."""
