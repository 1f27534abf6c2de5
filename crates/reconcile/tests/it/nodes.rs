//! Several machines on one PostgreSQL: each deployment runs on one of them, and the others leave it alone.

use std::time::Duration;

use podium_api::DeploymentId;
use podium_api::enums::DeploymentStatus::{Creating, Healthy, Unknown};
use podium_app::Error;
use podium_app::nodes::{JoinReport, NODE_TIMEOUT, Node};
use podium_store::nodes::{self, Placement};
use podium_testkit::{Engine, TestApp, block_on};

async fn two_nodes() -> [TestApp; 2] {
    let first = TestApp::start(Engine::Postgres).await.on_node("alpha").await;
    let second = first.replica().await.on_node("beta").await;
    [first, second]
}

/// Lets both nodes work until neither has anything to do.
async fn settle(nodes: &[TestApp; 2]) {
    while nodes[0].settle().await + nodes[1].settle().await > 0 {}
}

async fn forget(app: &TestApp, name: &'static str) -> usize {
    let system = app.system;
    let now = app.world.now();
    let unit = move |tx: &podium_db::Tx| {
        let node = nodes::by_name(tx, &system, name)?.expect("it is known");
        nodes::forget(tx, &system, node.id, now)
    };
    app.app.db(&app.system).write(None, unit).await.expect("it is forgotten")
}

fn everything(nodes: &[TestApp; 2]) -> [Vec<DeploymentId>; 2] {
    [nodes[0].plane.environments(), nodes[1].plane.environments()]
}

#[test]
fn new_deployments_go_to_the_node_with_the_fewest_and_run_there_only() {
    block_on(async {
        let nodes = two_nodes().await;
        let [a, b] = &nodes;
        let workspace = a.workspace("Data").await;
        let one = a.new_deployment(workspace).await;
        assert_eq!(b.settle().await, 1, "beta chooses, and leaves it to alpha");
        assert_eq!(b.status(one).await, (Creating, "Being created on node alpha.".into()));
        settle(&nodes).await;
        let two = b.new_deployment(workspace).await;
        settle(&nodes).await;
        assert_eq!(everything(&nodes), [vec![one], vec![two]]);
        for id in [one, two] {
            a.change_deployment(id, |spec| spec.description = "changed".into()).await;
        }
        assert_eq!((a.settle().await, b.settle().await), (1, 1), "each its own");
        assert_eq!(everything(&nodes), [vec![one], vec![two]]);
        for id in [one, two] {
            assert_eq!(a.status(id).await, (Healthy, String::new()));
        }
        assert_eq!(b.app.other_node_of(one).await.unwrap().as_deref(), Some("alpha"));
        assert_eq!(a.app.other_node_of(one).await.unwrap(), None);
    });
}

#[test]
fn work_for_an_offline_node_waits_for_it_even_deletions() {
    block_on(async {
        let nodes = two_nodes().await;
        let [a, b] = &nodes;
        let system = a.system;
        let workspace = a.workspace("Data").await;
        let (kept, gone) = (a.new_deployment(workspace).await, a.new_deployment(workspace).await);
        a.settle().await;
        settle(&nodes).await;
        let of_a = a.plane.environments();
        assert_eq!(of_a, [kept], "one each");
        b.change_deployment(kept, |spec| spec.description = "changed".into()).await;
        b.delete_deployment(kept).await;
        for _ in 0..5 {
            b.advance(Duration::from_hours(1));
            assert_eq!(b.settle().await, 0, "a lease that lapsed is not beta's either");
        }
        assert_eq!(a.plane.environments(), of_a);
        a.world.set(b.world.now());
        a.settle().await;
        assert_eq!(everything(&nodes), [vec![], vec![gone]]);
        assert_eq!(b.pending_work().await, []);
        let placed = a.app.db(&a.system).read(None, move |conn| nodes::placement(conn, &system, kept)).await;
        assert_eq!(placed.unwrap(), Placement::Unknown, "nothing is left of it");
    });
}

#[test]
fn a_node_that_has_not_been_seen_for_a_while_gets_no_new_deployments() {
    block_on(async {
        let nodes = two_nodes().await;
        let [a, b] = &nodes;
        b.advance(NODE_TIMEOUT + Duration::from_millis(1));
        let workspace = b.workspace("Data").await;
        let id = b.new_deployment(workspace).await;
        b.settle().await;
        assert_eq!(b.plane.environments(), [id], "alpha would have come first");
        assert_eq!(a.plane.environments(), []);
    });
}

#[test]
fn a_forgotten_node_is_replaced_and_sets_its_environments_aside_when_it_returns() {
    block_on(async {
        let nodes = two_nodes().await;
        let [a, b] = &nodes;
        let id = a.new_deployment(a.workspace("Data").await).await;
        settle(&nodes).await;
        assert_eq!(a.plane.environments(), [id]);
        a.change_deployment(id, |spec| spec.description = "changed".into()).await;
        assert_eq!(forget(b, "alpha").await, 1);
        b.settle().await;
        assert_eq!(b.plane.environments(), [id], "made from scratch");
        assert_eq!(b.status(id).await.0, Healthy);
        tokio::time::timeout(Duration::from_secs(60), a.app.send_heartbeats()).await.expect("it is told");
        let node = a.app.node().expect("it was one").clone();
        let joined = a.app.join(node, a.plane.environments()).await.unwrap();
        assert_eq!(joined, JoinReport { on_other_nodes: vec![id], unknown: vec![] });
    });
}

#[test]
fn an_unplaced_old_deployment_is_taken_only_by_the_node_that_has_it() {
    block_on(async {
        let nodes = two_nodes().await;
        let [a, b] = &nodes;
        let system = a.system;
        let workspace = a.workspace("Data").await;
        let id = a.new_deployment(workspace).await;
        settle(&nodes).await;
        a.forget_placements().await;
        a.change_deployment(id, |spec| spec.description = "changed".into()).await;
        b.settle().await;
        assert_eq!(b.plane.environments(), [], "beta does not make it again");
        let (status, reason) = b.status(id).await;
        assert_eq!(status, Unknown);
        assert!(reason.starts_with("No node reports that it runs this deployment"), "{reason}");
        let node = a.app.node().expect("it is one").clone();
        let joined = a.app.join(node, a.plane.environments()).await.unwrap();
        assert_eq!(joined, JoinReport::default());
        a.advance(Duration::from_hours(1));
        a.settle().await;
        assert_eq!(a.status(id).await.0, Healthy);
        assert_eq!(everything(&nodes), [vec![id], vec![]]);
        a.forget_placements().await;
        let now = a.world.now();
        let unknown = a.app.db(&a.system).write(None, move |tx| {
            let ids = nodes::without_placement(tx, &system)?;
            nodes::request_placement(tx, &system, &ids, now)?;
            Ok::<_, podium_db::Error>(ids)
        });
        assert_eq!(unknown.await.unwrap(), [id]);
    });
}

#[test]
fn node_names_are_unique_and_unknown_environments_are_reported() {
    block_on(async {
        let [a, b] = two_nodes().await;
        let other = Node { id: b.world.id(), name: "alpha".into() };
        let refused = b.app.join(other, vec![]).await.unwrap_err();
        let Error::Refused(refusal) = refused else { panic!("{refused}") };
        assert!(refusal.message().contains("--node-name"), "{}", refusal.message());
        let own = a.app.node().expect("it is one").clone();
        let stranger = a.world.id();
        let joined = a.app.join(own, vec![stranger]).await.unwrap();
        assert_eq!(joined, JoinReport { on_other_nodes: vec![], unknown: vec![stranger] });
    });
}

#[test]
fn with_the_embedded_database_nothing_is_placed() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await.on_node("alpha").await;
        let system = app.system;
        assert_eq!(app.app.node(), None);
        let id = app.new_deployment(app.workspace("Data").await).await;
        assert_eq!(app.settle().await, 1);
        assert_eq!(app.status(id).await, (Healthy, String::new()));
        let placed =
            app.app.db(&app.system).read(None, move |conn| nodes::placement(conn, &system, id)).await;
        assert_eq!(placed.unwrap(), Placement::Unknown);
        let renamed = Node { id: app.world.id(), name: "alpha".into() };
        app.app.join(renamed, vec![]).await.expect("whatever became of its file");
        let names = app.app.db(&app.system).scan(None, move |conn| nodes::list(conn, &system)).await.unwrap();
        assert_eq!(names.len(), 1);
    });
}
