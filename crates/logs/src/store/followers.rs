//! Followers: each line once, in the order of writing, wherever it lies by then.

use super::*;

async fn news(store: &LogStore, follower: &mut Follower) -> Vec<String> {
    let mut texts = Vec::new();
    loop {
        let news = store.new_lines(follower).await.unwrap();
        follower.advance(&news);
        texts.extend(news.lines.into_iter().map(|line| line.entry.text));
        if !news.has_more {
            return texts;
        }
    }
}

fn follow(text: &str) -> Follow {
    Follow { deployment_id: id(1), sources: vec![LogSource::Worker], query: Query::parse(text) }
}

#[tokio::test]
async fn a_follower_sees_each_line_once_in_the_order_of_writing() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    store.append(vec![line(START, "before")]).await.unwrap();
    let mut follower = store.follow(follow(""), None);
    assert_eq!(news(&store, &mut follower).await, [] as [&str; 0]);
    store.append(vec![line(START + DAY, "a"), line(START, "b")]).await.unwrap();
    assert!(follower.woken().await);
    assert_eq!(news(&store, &mut follower).await, ["a", "b"]);
    let place = follower.seen();
    store.flush().await.unwrap();
    let long = "x".repeat(60_000);
    store.append((0..1200).map(|number| line(START - number, &number.to_string())).collect()).await.unwrap();
    store.append((0..40).map(|_| line(START, &long)).collect()).await.unwrap();
    store.append(vec![line(START, "short")]).await.unwrap();
    store.flush().await.unwrap();
    let shown = news(&store, &mut follower).await;
    assert_eq!((shown.len(), shown[1199].as_str(), shown[1240].as_str()), (1241, "1199", "short"));
    drop(store);
    let store = open(directory.path());
    let mut again = store.follow(follow("1* short*"), Some(place));
    assert_eq!(news(&store, &mut again).await, [] as [&str; 0]);
    let mut again = store.follow(follow("short"), Some(place));
    store.append(vec![line(START, "short again"), line(START, "no")]).await.unwrap();
    assert_eq!(news(&store, &mut again).await, ["short", "short again"]);
    store.remove(id(1)).await.unwrap();
    assert!(again.woken().await, "of the lines");
    assert!(!again.woken().await, "nothing comes any more");
}
