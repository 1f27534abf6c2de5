//! The tree of a deployment's processes.

use podium_dataplane::{ComponentMetrics, EnvironmentMetrics};
use podium_testkit::on_one_engine;

use super::Person;

fn component(name: &str, memory: Option<u64>, problem: Option<&'static str>) -> ComponentMetrics {
    ComponentMetrics {
        name: name.into(),
        is_up: problem.is_none(),
        problem: problem.map(Into::into),
        memory,
        ..ComponentMetrics::default()
    }
}

on_one_engine! {
    async fn the_processes_of_a_deployment_come_in_after_its_page(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        let components = vec![
            component("scheduler", Some(300 << 20), None),
            component("triggerer", None, Some("it has <b>not</b> sent a heartbeat yet")),
            component("worker-default", Some(100 << 20), None),
        ];
        app.plane.script().lock().metrics = vec![EnvironmentMetrics { id, components, disk: Some(5 << 30) }];
        let owner = Person::new(&app, &app.owner).await;
        let page = owner.page(&format!("/deployments/{id}")).await;
        assert!(page.contains(&format!("/deployments/{id}/processes\"")) && !page.contains("scheduler</th>"), "{page}");
        let part = owner.page(&format!("/deployments/{id}/processes")).await;
        for expected in [
            "400 MiB", "5.0 GiB on disk", "<th scope=\"row\">scheduler</th>", "value=\"314572800\"", "Workers",
            "it has &#60;b&#62;not&#60;/b&#62; sent a heartbeat yet",
        ] {
            assert!(part.contains(expected), "{expected}: {part}");
        }
        let waiting = owner.page(&format!("/deployments/{id}?now=1")).await;
        assert!(waiting.contains("<th scope=\"row\">worker-default</th>"), "without scripts: {waiting}");
        app.plane.script().lock().metrics = Vec::new();
        assert!(owner.page(&format!("/deployments/{id}/processes")).await.contains("No process is running."));
    }
}
