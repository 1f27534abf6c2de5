//! `searchId`: all pages of a search show the same, whatever is written meanwhile.

use podium_api::Id;
use std::time::Duration;

use podium_api::enums::{LogSource, OrganizationRole};
use podium_testkit::{START, on_both_engines};
use serde_json::json;

use super::{line, search, texts, write};

on_both_engines! {
    async fn all_pages_of_a_search_see_the_same_snapshot(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        let number = |number: i64| line(id, START + number, LogSource::Worker, &number.to_string());
        write(&app, (0..5).map(number).collect()).await;
        app.advance(Duration::from_secs(1));
        let first = search(&app, &app.owner, id, "sources=worker&limit=2").await.ok();
        assert_eq!(texts(&first), ["4", "3"]);
        write(&app, (0..10).map(number).collect()).await;
        app.advance(Duration::from_mins(9));
        let search_id = first["searchId"].as_str().unwrap();
        let next = format!("sources=worker&limit=2&offset=2&searchId={search_id}");
        let second = search(&app, &app.owner, id, &next).await.ok();
        assert_eq!((texts(&second), &second["searchId"]), (vec!["2", "1"], &first["searchId"]));
        app.advance(Duration::from_mins(9));
        let other = format!("sources=scheduler&searchText=9&offset=4&range=60&searchId={search_id}");
        assert_eq!(texts(&search(&app, &app.owner, id, &other).await.ok()), ["0"], "the search stays the same");
        let fresh = search(&app, &app.owner, id, "sources=worker&limit=1").await.ok();
        assert_eq!(texts(&fresh), ["9"]);
        assert_ne!(fresh["searchId"], first["searchId"]);
    }

    async fn a_search_id_that_is_unknown_lapsed_or_anothers_starts_afresh(app) {
        let workspace = app.workspace("Data").await;
        let (id, elsewhere) = (app.deployment(workspace).await, app.deployment(workspace).await);
        write(&app, vec![line(id, START, LogSource::Worker, "old"), line(elsewhere, START, LogSource::Worker, "there")]).await;
        let first = search(&app, &app.owner, id, "sources=worker").await.ok();
        let search_id = first["searchId"].as_str().unwrap().to_owned();
        write(&app, vec![line(id, START, LogSource::Worker, "new")]).await;
        let again = format!("sources=worker&searchId={search_id}");
        assert_eq!(texts(&search(&app, &app.owner, id, &again).await.ok()), ["old"]);
        let colleague = app.member_as("colleague", OrganizationRole::Owner).await;
        let theirs = search(&app, &colleague, id, &again).await.ok();
        assert_eq!(texts(&theirs), ["new", "old"]);
        assert_ne!(theirs["searchId"], json!(search_id));
        assert_eq!(texts(&search(&app, &app.owner, elsewhere, &again).await.ok()), ["there"]);
        for unknown in ["", "nonsense", app.world.id::<Id>().as_str()] {
            let query = format!("sources=worker&searchId={unknown}");
            assert_eq!(texts(&search(&app, &app.owner, id, &query).await.ok()), ["new", "old"], "{unknown}");
        }
        app.advance(Duration::from_mins(10));
        let lapsed = search(&app, &app.owner, id, &again).await.ok();
        assert_eq!(texts(&lapsed), ["new", "old"]);
        assert_ne!(lapsed["searchId"], json!(search_id));
    }

    async fn a_search_ends_at_the_requested_maximum(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        write(&app, (0..30).map(|n| line(id, START, LogSource::Worker, &n.to_string())).collect()).await;
        let first = search(&app, &app.owner, id, "sources=worker&limit=8&maxNumResults=10").await.ok();
        assert_eq!((texts(&first).len(), &first["maxNumResults"]), (8, &json!(10)));
        let search_id = first["searchId"].as_str().unwrap();
        let next = format!("sources=worker&limit=8&offset=8&maxNumResults=10&searchId={search_id}");
        let second = search(&app, &app.owner, id, &next).await.ok();
        assert_eq!((texts(&second), &second["limit"]), (vec!["21", "20"], &json!(8)));
        let many = search(&app, &app.owner, id, "sources=worker&limit=9007199254740991").await.ok();
        assert_eq!((texts(&many).len(), &many["limit"]), (30, &json!(9_007_199_254_740_991_i64)));
    }
}
