"""Authenticates users through the control plane only.

The web server listens where only this machine reaches it. Every request carries the header X-Podium-User: a short token,
signed with a key that only the control plane and this environment have. It names the user and the role; the user is
registered when it first comes, and has exactly that role. There are no passwords here, and no page to sign in.
"""

from __future__ import annotations

import logging
import os

import jwt
from airflow.providers.fab.auth_manager.security_manager.override import FabAirflowSecurityManagerOverride
from airflow.security import permissions
from flask import g, request
from flask_appbuilder.const import AUTH_REMOTE_USER
from flask_login import login_user, logout_user

log = logging.getLogger(__name__)

HEADER = "X-Podium-User"
KEY = os.environ["PODIUM_DOOR_KEY"]
ROLES = ("Viewer", "User", "Op", "Admin")
READ_BY_ALL = [
    (action, resource)
    for action in (permissions.ACTION_CAN_READ, permissions.ACTION_CAN_ACCESS_MENU)
    for resource in (permissions.RESOURCE_AUDIT_LOG, permissions.RESOURCE_TASK_RESCHEDULE, permissions.RESOURCE_TRIGGER)
]

AUTH_TYPE = AUTH_REMOTE_USER
AUTH_USER_REGISTRATION = False
AUTH_ROLES_SYNC_AT_LOGIN = False
# The control plane checks the origin of a request before it passes it on.
WTF_CSRF_ENABLED = True
WTF_CSRF_TIME_LIMIT = None


def visitor() -> tuple[str, str] | None:
    """The user and the role that the control plane vouches for, if it does."""
    token = request.headers.get(HEADER)
    if not token:
        return None
    try:
        claims = jwt.decode(token, KEY, algorithms=["HS256"], options={"require": ["exp", "iat", "sub"]}, leeway=10)
    except jwt.InvalidTokenError as error:
        log.warning("the header %s is not to be believed: %s", HEADER, error)
        return None
    name, role = claims.get("sub"), claims.get("role")
    return (name, role) if name and role in ROLES else None


class DoorSecurityManager(FabAirflowSecurityManagerOverride):
    """Takes users and roles from the control plane."""

    # What everyone who may read DAGs may read: the rules of the front door are stricter.
    ROLE_CONFIGS = [
        {"role": config["role"], "perms": [*config["perms"], *READ_BY_ALL] if config["role"] in ROLES else []}
        for config in FabAirflowSecurityManagerOverride.ROLE_CONFIGS
    ]

    def __init__(self, appbuilder) -> None:
        super().__init__(appbuilder)
        # Before everything else that uses the current user.
        appbuilder.get_app.before_request_funcs.setdefault(None, []).insert(0, self.recognize)

    def recognize(self) -> None:
        """Makes the user that the control plane names the user of this request, or none if it names none."""
        came = visitor()
        if came is None:
            logout_user()
            return
        user = self.known(*came)
        g.user = user
        login_user(user)

    def known(self, name: str, role_name: str):
        """The user of this name, with exactly this role."""
        role = self.find_role(role_name)
        user = self.find_user(username=name)
        if user is None:
            user = self.add_user(name, name, "", name if "@" in name else f"{name}@token.invalid", role)
        elif [held.name for held in user.roles] != [role_name]:
            user.roles = [role]
            self.update_user(user)
        return user


SECURITY_MANAGER_CLASS = DoorSecurityManager
