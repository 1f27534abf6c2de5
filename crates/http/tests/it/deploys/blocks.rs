//! Uploads in blocks, as to Azure Blob Storage.

use podium_api::Id;
use podium_app::disk::Reserve;
use podium_testkit::{TestApp, archive, on_both_engines};
use serde_json::{Value, json};

use super::upload::on_each_engine;
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

/// Noise of which an archive has at most 1000 bytes: so blocks of it can wait 2000, 4000 and 16000 bytes.
const BLOCK: [u8; 900] = [7; 900];

async fn put_many(app: &TestApp, deploy: &Value, bytes: &[u8], count: usize) -> Vec<u16> {
    let mut codes = Vec::new();
    for number in 0..count {
        codes.push(
            put_block(app, deploy, &format!("YWF{}", char::from(b'A' + number as u8)), bytes).await.code(),
        );
    }
    codes
}

#[test]
fn unassembled_blocks_are_bounded_and_expire() {
    on_each_engine(
        &async |app: &TestApp, place: &Place<'_>| {
            // One deploy.
            let deploy = place.create("DAG_ONLY").await;
            assert_eq!(put_many(app, &deploy, &BLOCK, 1).await, [201]);
            put_block(app, &deploy, "YWFB", &BLOCK).await.refused(400);
            // One deployment, whatever the number of its deploys.
            for _ in 0..3 {
                assert_eq!(put_many(app, &place.create("DAG_ONLY").await, &BLOCK, 1).await, [201]);
            }
            let fifth = place.create("DAG_ONLY").await;
            let message = put_block(app, &fifth, "YWFB", &BLOCK).await.refused(413);
            assert_eq!(
                message,
                "Too many uploads are waiting to be finalized: more than 4000 bytes of deploys of this deployment \
                 would be pending. Finalize the pending deploys; the others end 24 hours after they were created."
            );
            assert_eq!(
                (files(app).len(), app.rows("staged_blocks").await),
                (4, 4),
                "what is refused is not kept"
            );
            // What is put together makes room, and so does what is finalized.
            let bytes = archive(&[("dags/a.py", b"print()")]);
            assert_eq!(put_block(app, &deploy, "YWFA", &bytes).await.code(), 201);
            let listed = put_list(app, &deploy, &["YWFA"]).await;
            assert_eq!(listed.code(), 201, "{}", listed.text());
            assert_eq!(app.rows("staged_blocks").await, 3);
            let version = listed.header("x-ms-version-id").to_owned();
            place.finalize(&deploy, json!({ "dagTarballVersion": version })).await.ok();
            assert_eq!(put_many(app, &fifth, &BLOCK, 1).await, [201]);
            // One organization.
            let mut codes = Vec::new();
            for _ in 0..4 {
                let workspace = app.workspace(app.world.id::<Id>().as_str()).await;
                let other = Place { app, id: app.deployment(workspace).await };
                for _ in 0..4 {
                    codes.extend(put_many(app, &other.create("DAG_ONLY").await, &BLOCK, 1).await);
                }
            }
            assert_eq!(codes.iter().filter(|code| **code == 201).count(), 13, "{codes:?}");
            assert_eq!(codes.last(), Some(&413));
            // Those that nobody wants any more go by themselves.
            app.advance(std::time::Duration::from_hours(25));
            app.settle().await;
            assert_eq!((files(app).len(), app.rows("staged_blocks").await), (1, 0));
            assert_eq!(put_many(app, &place.create("DAG_ONLY").await, &BLOCK, 1).await, [201]);
            app.delete(&app.owner, &app.path(&format!("/deployments/{}", place.id))).await.ok();
            assert_eq!(app.rows("staged_blocks").await, 0);
            app.settle().await;
        },
        |config, _| config.upload_limit = 1000,
    );
}

#[test]
fn a_full_disk_takes_no_blocks_and_people_can_still_clean_up() {
    on_each_engine(
        &async |app: &TestApp, place: &Place<'_>| {
            let deploy = place.create("DAG_ONLY").await;
            let full = put_block(app, &deploy, "YWFA", &BLOCK).await;
            let message = full.refused(503);
            assert!(message.starts_with("The disk is full: "), "{message}");
            assert_eq!(full.header("retry-after"), "60");
            put(app, url(&deploy), archive(&[("a", b"b")])).await.refused(503);
            assert_eq!(files(app), [""; 0]);
            let token = json!({ "name": "Leaked", "scope": "ORGANIZATION", "role": "ORGANIZATION_MEMBER" });
            let token = app.post(&app.owner, &app.path("/tokens"), token).await.ok();
            let token = token["id"].as_str().expect("an id");
            app.delete(&app.owner, &app.path(&format!("/tokens/{token}"))).await.ok();
            app.delete(&app.owner, &app.path(&format!("/deployments/{}", place.id))).await.ok();
        },
        |config, _| {
            config.reserve = Reserve { directories: vec![std::env::temp_dir()], bytes: u64::MAX };
        },
    );
}
