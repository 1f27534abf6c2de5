"""Who may enter: whoever the front door sends, and nobody else."""

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager


class DoorAuthManager(SimpleAuthManager):
    """Believes the tokens that the front door signs. There are no users of its own and so no passwords."""

    @staticmethod
    def get_users():
        return []

    def init(self) -> None:
        """Makes no password file."""
