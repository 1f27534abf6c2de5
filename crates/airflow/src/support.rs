//! Python modules that integrate Airflow with its plane. They are on the Python path of every process of an environment.

/// Each file with its path below [`Files::support`](crate::files::Files::support), and its text.
pub const FILES: &[(&str, &str)] = &[
    ("airflow_local_settings.py", include_str!("../support/airflow_local_settings.py")),
    ("podium_airflow/__init__.py", include_str!("../support/podium_airflow/__init__.py")),
    ("podium_airflow/auth.py", include_str!("../support/podium_airflow/auth.py")),
    ("podium_airflow/broker.py", include_str!("../support/podium_airflow/broker.py")),
    ("podium_airflow/celery_executor.py", include_str!("../support/podium_airflow/celery_executor.py")),
    ("podium_airflow/executors.py", include_str!("../support/podium_airflow/executors.py")),
    ("podium_airflow/interruptions.py", include_str!("../support/podium_airflow/interruptions.py")),
    ("podium_airflow/listener.py", include_str!("../support/podium_airflow/listener.py")),
    ("podium_airflow/signals.py", include_str!("../support/podium_airflow/signals.py")),
    ("podium_bundle.py", include_str!("../support/podium_bundle.py")),
    ("podium_check.py", include_str!("../support/podium_check.py")),
    ("podium_clean_up.py", include_str!("../support/podium_clean_up.py")),
    ("podium_database.py", include_str!("../support/podium_database.py")),
    ("podium_launch.py", include_str!("../support/podium_launch.py")),
    ("podium_wheels.py", include_str!("../support/podium_wheels.py")),
    ("webserver_config.py", include_str!("../support/webserver_config.py")),
];

/// The text of one of them, for tests of what runs it.
pub fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
