//! Uploads in blocks, as to Azure Blob Storage.

use podium_testkit::{TestApp, archive, on_both_engines};
use serde_json::{Value, json};

use super::{Place, files, id, put, url};

async fn put_block(app: &TestApp, deploy: &Value, block_id: &str, bytes: &[u8]) -> podium_testkit::Answer {
    put(app, &format!("{}&comp=block&blockid={block_id}", url(deploy)), bytes).await
}

async fn put_list(app: &TestApp, deploy: &Value, ids: &[&str]) -> podium_testkit::Answer {
    let latest: String = ids.iter().map(|id| format!("<Latest>{id}</Latest>")).collect();
    let xml = format!("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<BlockList>{latest}</BlockList>");
    put(app, &format!("{}&comp=blocklist", url(deploy)), xml).await
}

on_both_engines! {
    async fn an_archive_is_put_together_from_its_blocks(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("DAG_ONLY").await;
        let bytes = archive(&[("dags/a.py", b"print()"), ("dags/b.py", b"print()")]);
        let third = bytes.len() / 3;
        // Sent in another order than they belong, and one of them twice.
        for (block_id, part) in [
            ("YWI%2B", &bytes[third..2 * third]),
            ("YWE%3D", b"nonsense"),
            ("YWIv", &bytes[2 * third..]),
            ("YWE%3D", &bytes[..third]),
        ] {
            let answer = put_block(&app, &deploy, block_id, part).await;
            assert_eq!((answer.code(), answer.header("x-ms-version-id")), (201, ""));
        }
        assert_eq!(app.rows("uploads").await, 0, "blocks are no upload yet");
        let answer = put_list(&app, &deploy, &["YWE=", "YWI+", "YWIv"]).await;
        assert_eq!(answer.code(), 201, "{}", answer.text());
        let version = answer.header("x-ms-version-id").to_owned();
        let kept = format!("deployments/{}/{}/{version}", place.id, id(&deploy));
        assert_eq!(files(&app), [kept.as_str()], "the blocks are gone");
        assert_eq!(std::fs::read(app.app.config.files.join(kept)).unwrap(), bytes);
        let done = place.finalize(&deploy, json!({ "dagTarballVersion": version })).await.ok();
        assert_eq!(done["status"], "DEPLOYED");
    }

    async fn blocks_go_through_the_same_check(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("DAG_ONLY").await;
        put_block(&app, &deploy, "YQ%3D%3D", &archive(&[("../up", b"")])).await;
        let message = put_list(&app, &deploy, &["YQ=="]).await.refused(400);
        assert_eq!(message, "The archive was refused: the entry `../up` has `..` in its path.");
        assert_eq!(files(&app), [""; 0], "of a bad archive nothing is kept");
    }

    async fn wrong_blocks_and_lists_are_refused(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("DAG_ONLY").await;
        for block_id in ["", "%21", &"YWFh".repeat(30)] {
            let message = put_block(&app, &deploy, block_id, b"x").await.refused(400);
            assert_eq!(message, "The archive was refused: a block id is 1 to 64 bytes in base64.", "{block_id}");
        }
        put_block(&app, &deploy, "YQ%3D%3D", b"x").await.ok();
        let message = put_list(&app, &deploy, &["YQ==", "Yg=="]).await.refused(400);
        assert_eq!(message, "The archive was refused: the block `Yg==` of the list was not uploaded.");
        assert_eq!(files(&app).len(), 1, "what is missing can still be sent");
        for list in [&b"{}"[..], b"\xff", b"<BlockList>", &[b' '; 600_000]] {
            let list_url = format!("{}&comp=blocklist", url(&deploy));
            let message = put(&app, &list_url, list).await.refused(400);
            assert!(message.starts_with("The archive was refused: the list of blocks is not"), "{message}");
        }
    }

    async fn blocks_are_removed_when_their_deploy_is_finalized(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("DAG_ONLY").await;
        put_block(&app, &deploy, "YQ%3D%3D", b"left").await.ok();
        let version = place.upload(url(&deploy)).await;
        assert_eq!(files(&app).len(), 2);
        place.finalize(&deploy, json!({ "dagTarballVersion": version })).await.ok();
        assert_eq!(files(&app), [format!("deployments/{}/{}/{version}", place.id, id(&deploy))]);
        put_block(&app, &deploy, "YQ%3D%3D", b"late").await.refused(403);
    }
}
