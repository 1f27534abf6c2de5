"""As much of the plugin framework as the listener uses."""


class HookimplMarker:
    def __init__(self, project):
        assert project == "airflow"

    def __call__(self, function):
        function.is_hook = True
        return function
