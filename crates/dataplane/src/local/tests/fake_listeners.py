"""Airflow's listener manager, with hooks that pass only the arguments that an implementation names."""

import inspect


class _Plugins:
    def __init__(self):
        self.plugins = []

    def is_registered(self, plugin):
        return plugin in self.plugins

    def register(self, plugin, name=None):
        self.plugins.append(plugin)

    def get_plugins(self):
        return set(self.plugins)


class ListenerManager:
    def __init__(self):
        self.pm = _Plugins()

    @property
    def has_listeners(self):
        return bool(self.pm.get_plugins())

    def hook(self, name, **arguments):
        for plugin in self.pm.plugins:
            function = getattr(plugin, name)
            assert function.is_hook
            function(**{name: arguments[name] for name in inspect.signature(function).parameters})


_manager = None


def get_listener_manager():
    global _manager
    _manager = _manager or ListenerManager()
    return _manager
