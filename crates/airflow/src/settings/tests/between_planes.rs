use super::*;

/// A plane on which nothing is where it is on one machine.
#[test]
fn what_differs_between_planes_is_told_as_it_is_given() {
    let files = Files { dags: "/podium/code/dags".into(), drain: "/signals/drain".into(), ..files() };
    let url = secret("postgresql+psycopg2://x:pw@db/x");
    let wanted = environment();
    for (version, section) in [("3.3.2", "API"), ("2.11.2", "WEBSERVER")] {
        let context = SettingsContext {
            environment: &wanted,
            version: version.parse().unwrap(),
            files: &files,
            web_server: WebServerAddress {
                host: "0.0.0.0".into(),
                port: 8080,
                url: "http://web.calm-river:80".into(),
            },
            public_url: "https://podium.example",
            database: MetadataDatabase { url: &url, kept_connections: 1, more_connections: 4 },
            bundles: json!([{ "name": "dags", "classpath": "fetched" }]),
            tasks: &Tasks { parallelism: 2, celery: None, is_sequential: false },
            keys: EnvironmentKeys::new(|purpose| secret(&format!("key-{purpose}"))),
            project: None,
        };
        let programs = programs(&context);
        let told = program(&programs, "scheduler");
        let is = |name: &str, expected: &str| assert_eq!(value(told, name), Some(expected), "{version}");
        is("AIRFLOW__DATABASE__SQL_ALCHEMY_POOL_SIZE", "1");
        is("AIRFLOW__DATABASE__SQL_ALCHEMY_MAX_OVERFLOW", "4");
        is("AIRFLOW__CORE__DAGS_FOLDER", "/podium/code/dags/current");
        is("PODIUM_DRAIN", "/signals/drain");
        let prefix = if section == "API" { "AIRFLOW__API__" } else { "AIRFLOW__WEBSERVER__WEB_SERVER_" };
        is(&format!("{prefix}HOST"), "0.0.0.0");
        is(&format!("{prefix}PORT"), "8080");
        if section == "API" {
            let tasks = "http://web.calm-river:80/airflow/calm-river-1234/execution/";
            is("AIRFLOW__CORE__EXECUTION_API_SERVER_URL", tasks);
            let bundles = r#"[{"name":"dags","classpath":"fetched"}]"#;
            is("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST", bundles);
        }
        for (name, value) in programs.iter().flat_map(|program| &program.variables) {
            assert!(!value.reveal().contains("127.0.0.1"), "{name} in {version}");
        }
    }
}
