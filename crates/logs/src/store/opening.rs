//! Who may open a directory, and what there is without one.

use super::*;

#[tokio::test]
async fn a_directory_is_open_once_at_a_time() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    store.append(vec![line(START, "mine")]).await.unwrap();
    let refused = LogStore::open(directory.path(), RETENTION).err().unwrap();
    assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy);
    let message = refused.to_string();
    assert!(message.contains(directory.path().to_str().unwrap()) && message.contains("stop it"), "{message}");
    store.append(vec![line(START, "too")]).await.unwrap();
    drop(store);
    assert_eq!(all(&open(directory.path())).await, ["too", "mine"]);
}

#[tokio::test]
async fn a_closed_store_has_no_lines_and_accepts_none() {
    let store = LogStore::closed();
    assert_eq!(all(&store).await, [] as [&str; 0]);
    assert!(store.append(vec![line(START, "lost")]).await.is_err());
    assert_eq!(all(&store).await, [] as [&str; 0]);
}
