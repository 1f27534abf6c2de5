//! `/uploads/{deployId}`: archives that are checked while they arrive.

use podium_api::DeployId;
use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join;
use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt as _, stream};
use http::{Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Body, Frame};
use podium_api::enums::OrganizationRole;
use podium_app::secrets::sha256_hex;
use podium_store::deploys;
use podium_testkit::{Answer, Engine, TestApp, archive, block_on, gzip, on_both_engines, tar};
use serde_json::json;
use tokio::sync::oneshot;

use super::{Place, described, files, id, path_of, put, url};

/// Bytes that do not compress.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// An upload whose sender sends some bytes and then nothing, and never ends.
async fn stall(app: &TestApp, url: &str, bytes: Vec<u8>) -> Answer {
    let begun = stream::iter(vec![Ok::<_, Infallible>(Frame::data(Bytes::from(bytes)))]);
    let request = Request::put(path_of(url)).body(StreamBody::new(begun.chain(stream::pending())));
    received(app.server.call(request.unwrap(), ([127, 0, 0, 1], 40_000).into()).await).await
}

/// An upload around something else: it begins before, and its bytes come after.
async fn put_around(app: &TestApp, url: &str, meanwhile: impl Future<Output = ()>) -> Answer {
    let bytes = archive(&[("a", b"b")]);
    let (begun, has_begun) = oneshot::channel();
    let (done, is_done) = oneshot::channel::<()>();
    // Asked for once the deploy was found waiting.
    let sent = stream::once(async move {
        begun.send(()).unwrap();
        is_done.await.unwrap();
        Ok::<_, Infallible>(Frame::data(Bytes::from(bytes)))
    });
    let request = Request::put(path_of(url)).body(StreamBody::new(sent)).unwrap();
    let meanwhile = async {
        has_begun.await.unwrap();
        meanwhile.await;
        done.send(()).unwrap();
    };
    let upload = app.server.call(request, ([127, 0, 0, 1], 40_000).into());
    let (response, ()) = join(upload, meanwhile).await;
    received(response).await
}

/// An answer with all of its body.
async fn received(response: Response<impl Body<Data = Bytes, Error: std::fmt::Debug>>) -> Answer {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.map(|body| body.to_bytes().to_vec()).unwrap();
    described(Answer { status: parts.status, headers: parts.headers, bytes })
}

on_both_engines! {
    async fn an_archive_is_stored_under_the_version_in_its_response(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("DAG_ONLY").await;
        let bytes = archive(&[("dags/large.bin", &noise(2_000_000)), ("dags/a.py", b"print()")]);
        assert!(bytes.len() > 1024 * 1024, "larger than any other body may be");
        let answer = put(&app, url(&deploy), bytes.clone()).await;
        assert_eq!((answer.code(), answer.text().as_str()), (201, ""));
        let version = answer.header("x-ms-version-id").to_owned();
        let kept = format!("deployments/{}/{}/{version}", place.id, id(&deploy));
        assert_eq!(files(&app), [kept.as_str()]);
        assert_eq!(std::fs::read(app.app.config.files.join(&kept)).unwrap(), bytes);
        let deploy_id = id(&deploy).parse::<DeployId>().unwrap();
        let scope = app.scope();
        let rows = app.app.db(&app.system).read(None, move |conn| deploys::uploads(conn, &scope, deploy_id)).await;
        let rows: podium_db::Result<_> = rows;
        let row = &rows.unwrap()[0];
        assert_eq!((row.id.as_str(), row.object_key.as_str()), (version.as_str(), kept.as_str()));
        assert_eq!((row.bytes, &row.sha256), (bytes.len() as i64, &sha256_hex(&bytes)));
    }

    async fn bad_archives_are_refused_and_nothing_is_stored(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("DAG_ONLY").await;
        let whole = archive(&[("a", &noise(400_000))]);
        for (bytes, why) in [
            (Vec::new(), "it is not compressed with gzip"),
            (b"PK\x03\x04".to_vec(), "it is not compressed with gzip"),
            (whole[..300_000].to_vec(), "its gzip data is damaged, truncated or followed by other data"),
            (gzip(b"no archive"), "it is not a complete tar archive: it ends before its end-of-archive marker"),
            (archive(&[("/etc/passwd", b"")]), "the entry `/etc/passwd` has an absolute path: paths are relative"),
            (archive(&[("dags/../../up", b"")]), "the entry `dags/../../up` has `..` in its path"),
        ] {
            let message = put(&app, url(&deploy), bytes).await.refused(400);
            assert_eq!(message, format!("The archive was refused: {why}."));
        }
        let many: Vec<String> = (0..100_001).map(|i| format!("f{i}")).collect();
        let many: Vec<(&str, &[u8])> = many.iter().map(|name| (name.as_str(), &b""[..])).collect();
        let message = put(&app, url(&deploy), archive(&many)).await.refused(400);
        assert_eq!(message, "The archive was refused: it has more than 100000 entries.");
        assert_eq!((files(&app), app.rows("uploads").await), (vec![], 0));
        place.upload(url(&deploy)).await;
    }

    async fn an_archive_is_bounded_by_its_size_and_read_to_its_end(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("DAG_ONLY").await;
        let bomb = archive(&[("dags/zeros", &vec![0; 64 << 20])]);
        assert!(bomb.len() < 1 << 20);
        let message = put(&app, url(&deploy), bomb.clone()).await.refused(400);
        let most = bomb.len() * 200 + (32 << 20);
        let size = bomb.len();
        assert_eq!(
            message,
            format!(
                "The archive was refused: it unpacks to more than {most} bytes, the most for an archive of {size} bytes."
            )
        );
        assert_eq!(files(&app), Vec::<String>::new());
        let tar = tar(&[("dags/a.py", b"a"), ("dags/b.py", b"b")]);
        let members = [gzip(&tar[..1024]), gzip(&tar[1024..])].concat();
        let answer = put(&app, url(&deploy), members).await;
        assert_eq!(answer.code(), 201, "{}", answer.text());
        // What comes after the end of the archive would be unpacked by some programs and not by others.
        let two = [archive(&[("dags/a.py", b"a")]), archive(&[("dags/b.py", b"b")])].concat();
        let message = put(&app, url(&deploy), two).await.refused(400);
        assert!(message.contains("data follows its end-of-archive marker"), "{message}");
    }

    async fn a_url_works_by_itself_and_as_it_is(app) {
        let place = Place::new(&app).await;
        let (one, other) = (place.create("DAG_ONLY").await, place.create("DAG_ONLY").await);
        let bytes = || archive(&[("a", b"b")]);
        let good = url(&one).to_owned();
        let signature = good.split("signature=").nth(1).unwrap();
        for changed in [
            good.replace(id(&one), id(&other)),
            good.replace("kind=dags", "kind=bundle"),
            good.replace("kind=dags", "kind=x"),
            good.replace("limit=1", "limit=2"),
            good.replace("expires=1", "expires=2"),
            good.replace(signature, &"0".repeat(64)),
            good.replace(signature, ""),
            good.split('?').next().unwrap().to_owned(),
            good.replace(id(&one), "nonsense"),
        ] {
            let message = put(&app, &changed, bytes()).await.refused(403);
            assert!(message.starts_with("This is not an upload URL of this server"), "{changed}: {message}");
        }
        assert_eq!(put(&app, &format!("{good}&comp=lease"), bytes()).await.wrong_fields(), ["comp: enum"]);
        for method in ["GET", "POST", "DELETE"] {
            let answer = app.call(method, path_of(&good)).send().await;
            answer.refused(405);
            assert_eq!(answer.header("allow"), "PUT");
        }
        let version = app.call("PUT", path_of(&good)).header("x-api-version", "9").body(bytes()).send().await;
        version.refused(400);
        assert_eq!(app.call("PUT", &path_of(&good)[3..]).body(bytes()).send().await.code(), 201, "the alias");
        let named = app.call("PUT", path_of(&good)).header("x-request-id", "mine").body(bytes()).send().await;
        assert_eq!((named.code(), named.header("x-request-id")), (201, "mine"));
    }

    async fn allowed_address_ranges_do_not_cover_uploads(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("DAG_ONLY").await;
        let body = json!({ "ipAddressRange": "127.0.0.0/8" });
        app.post(&app.owner, &app.path("/allowed-ip-address-ranges"), body).await.ok();
        app.call("GET", &place.path("")).by(&app.owner).from("192.0.2.7").send().await.refused(403);
        let call = app.call("PUT", path_of(url(&deploy))).from("192.0.2.7");
        assert_eq!(call.body(archive(&[("a", b"")])).send().await.code(), 201);
    }

    async fn a_url_is_dead_once_its_deploy_is_finalized(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("DAG_ONLY").await;
        let body = json!({ "dagTarballVersion": place.upload(url(&deploy)).await });
        place.finalize(&deploy, body).await.ok();
        let message = put(&app, url(&deploy), archive(&[("a", b"")])).await.refused(403);
        assert_eq!(message, "This upload URL no longer works: its deploy has been finalized. Create another deploy.");
        assert_eq!(files(&app).len(), 1);
    }

    async fn a_url_is_dead_once_its_deploy_has_failed(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("DAG_ONLY").await;
        app.set_column("deploys", id(&deploy).parse::<DeployId>().unwrap(), "status", "'FAILED'").await;
        let message = put(&app, url(&deploy), archive(&[("a", b"")])).await.refused(403);
        assert_eq!(message, "This upload URL no longer works: its deploy has failed. Create another deploy.");
        let deploy = place.create("DAG_ONLY").await;
        app.advance(Duration::from_hours(24));
        let message = put(&app, url(&deploy), archive(&[("a", b"")])).await.refused(403);
        assert_eq!(message, "This upload URL has expired: create another deploy.");
    }

    async fn an_upload_for_a_concurrently_finalized_deploy_is_not_stored(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("IMAGE_AND_DAG").await;
        let body = json!({ "dagTarballVersion": place.upload(url(&deploy)).await });
        let finalize = async { drop(place.finalize(&deploy, body).await.ok()) };
        assert_eq!(put_around(&app, url(&deploy), finalize).await.code(), 403);
        assert_eq!(files(&app).len(), 1);
    }

    async fn an_upload_for_a_concurrently_deleted_deployment_is_not_stored(app) {
        let workspace = app.workspace("Analytics").await;
        for part in ["", "&comp=block&blockid=MDAx"] {
            let place = Place { app: &app, id: app.deployment(workspace).await };
            let url = format!("{}{part}", url(&place.create("DAG_ONLY").await));
            let delete = async {
                app.delete(&app.owner, &app.path(&format!("/deployments/{}", place.id))).await.ok();
                app.settle().await;
            };
            let message = put_around(&app, &url, delete).await.refused(403);
            assert!(message.starts_with("This upload URL no longer works: its deployment has been deleted."), "{message}");
            assert_eq!((files(&app), app.rows("uploads").await), (vec![], 0), "{part}");
            assert_eq!(put(&app, &url, archive(&[("a", b"b")])).await.code(), 403);
        }
    }

    async fn a_deploy_takes_so_many_uploads(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("DAG_ONLY").await;
        for _ in 0..20 {
            place.upload(url(&deploy)).await;
        }
        let message = put(&app, url(&deploy), archive(&[("a", b"")])).await.refused(400);
        assert_eq!(message, "A deploy takes at most 20 uploads: create another deploy.");
    }

    async fn uploads_are_counted_like_other_requests(app) {
        let place = Place::new(&app).await;
        place.upload(url(&place.create("DAG_ONLY").await)).await;
        let metrics = app.call("GET", "/metrics").send().await.text();
        assert!(metrics.contains("podium_requests_total{operation=\"UploadArchive\",status=\"2xx\"} 1"));
    }
}

pub(super) fn on_each_engine(
    test: &impl AsyncFn(&TestApp, &Place<'_>),
    change: fn(&mut podium_app::Config, &mut podium_http::Settings),
) {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let app = block_on(async {
            let app = TestApp::start_with(engine, change).await;
            test(&app, &Place::new(&app).await).await;
            app
        });
        // The runtime has ended, and with it whatever was left to be done.
        assert_eq!(files(&app), [""; 0]);
    }
}

#[test]
fn an_archive_over_the_limit_is_refused_before_or_while_it_arrives() {
    on_each_engine(
        &async |app: &TestApp, place: &Place<'_>| {
            let deploy = place.create("DAG_ONLY").await;
            assert!(url(&deploy).contains("limit=1000&"));
            let large = archive(&[("a", &noise(5000))]);
            let why = "The archive was refused: it is larger than 1000 bytes.";
            assert_eq!(put(app, url(&deploy), large.clone()).await.refused(400), why);
            let announced = app.call("PUT", path_of(url(&deploy))).header("content-length", "1001");
            assert_eq!(announced.body(Vec::new()).send().await.refused(400), why);
            let bomb = archive(&[("zeros", &[0; 100_000])]);
            assert!(bomb.len() < 1000);
            let why = "The archive was refused: it unpacks to more than 4000 bytes.";
            assert_eq!(put(app, url(&deploy), bomb).await.refused(400), why);
        },
        |config, _| config.upload_limit = 1000,
    );
}

#[test]
fn a_stalled_upload_is_aborted() {
    on_each_engine(
        &async |app: &TestApp, place: &Place<'_>| {
            let deploy = place.create("DAG_ONLY").await;
            let half = archive(&[("a", &noise(900_000))])[..600_000].to_vec();
            let message = stall(app, url(&deploy), half).await.refused(408);
            assert_eq!(message, "The body arrived too slowly: less than 65536 bytes in 0 s.");
        },
        |_, settings| settings.upload_idle_timeout = Duration::from_millis(50),
    );
}

#[test]
fn an_abandoned_upload_leaves_no_files() {
    on_each_engine(
        &async |app: &TestApp, place: &Place<'_>| {
            let deploy = place.create("DAG_ONLY").await;
            let half = archive(&[("a", &noise(900_000))])[..600_000].to_vec();
            let abandoned = stall(app, url(&deploy), half);
            let gone = tokio::time::timeout(Duration::from_millis(200), abandoned).await;
            assert!(gone.is_err(), "the sender goes away before there is an answer");
        },
        |_, _| {},
    );
}

#[test]
fn only_so_many_uploads_are_received_at_once() {
    on_each_engine(
        &async |app: &TestApp, place: &Place<'_>| {
            let deploy = place.create("DAG_ONLY").await;
            let uploads: FuturesUnordered<_> =
                (0..65).map(|_| stall(app, url(&deploy), Vec::new())).collect();
            let first: Answer = std::pin::pin!(uploads).next().await.unwrap();
            first.refused(429);
            assert_eq!(first.header("retry-after"), "1");
        },
        |_, _| {},
    );
}

#[test]
fn slow_senders_of_one_user_leave_room_for_others() {
    on_each_engine(
        &async |app: &TestApp, place: &Place<'_>| {
            let colleague = app.member_as("colleague", OrganizationRole::Owner).await;
            let mut deploys = Vec::new();
            for _ in 0..5 {
                deploys.push(place.create("DAG_ONLY").await);
            }
            let senders = deploys.iter().flat_map(|deploy| [url(deploy); 14]);
            let mut slow: FuturesUnordered<_> = senders.map(|url| stall(app, url, Vec::new())).collect();
            let first: Answer = slow.next().await.unwrap();
            first.refused(429);
            // The others still hold on.
            let deploy = place.create_as(&colleague, json!({ "type": "DAG_ONLY" })).await.ok();
            let mut sent = std::pin::pin!(put(app, url(&deploy), b"no archive".to_vec()));
            let sent = loop {
                tokio::select! {
                    sent = &mut sent => break sent,
                    Some(other) = slow.next() => drop(other.refused(429)),
                }
            };
            assert!(sent.refused(400).contains("refused"), "it is received, and looked at");
            assert!(slow.len() >= 24, "{} of them are received", slow.len());
        },
        |_, _| {},
    );
}

#[test]
fn a_body_that_breaks_off_is_refused() {
    on_each_engine(
        &async |app: &TestApp, place: &Place<'_>| {
            let deploy = place.create("DAG_ONLY").await;
            let frames =
                [Ok(Frame::data(Bytes::from_static(b"\x1f\x8b"))), Err(std::io::Error::other("reset"))];
            let body = StreamBody::new(stream::iter(frames));
            let request = Request::put(path_of(url(&deploy))).body(body).unwrap();
            let response = app.server.call(request, ([127, 0, 0, 1], 40_000).into()).await;
            assert_eq!(response.status(), 400);
        },
        |_, _| {},
    );
}
