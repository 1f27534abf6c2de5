//! `podium alert`: the commands of the guide, as they are written there.

use super::Desk;
use crate::documents::commands;

const MAIL_SERVER: &[&str] = &["--smtp-url", "smtp://127.0.0.1:1", "--mail-from", "podium@example.com"];

#[test]
fn the_commands_of_the_guide_work_as_they_are_written() {
    let desk = Desk::signed_in_with(MAIL_SERVER);
    desk.shown(&["workspace", "create", "Reports"]);
    let guide = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/alerts.md");
    let commands = commands(&std::fs::read_to_string(guide).unwrap());
    let mut typed = 0;
    for line in commands.lines().filter_map(|line| line.strip_prefix("podium ")) {
        let words: Vec<&str> = line.split(' ').map(|word| word.trim_matches('\'')).collect();
        desk.shown(&words);
        typed += 1;
    }
    assert_eq!(typed, 9);
    let left = desk.json(&["alert", "list"]);
    assert_eq!(left.as_array().map(Vec::len), Some(1), "{left}");
    assert_eq!(left[0]["mailAddresses"], serde_json::json!(["ops@example.com"]));
}

#[test]
fn what_is_wrong_is_said() {
    let desk = Desk::signed_in();
    let alert = ["alert", "create", "broken", "--kind", "deploy-failed"];
    let done = desk.run(&alert);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("webhookIds"), "{}", done.stderr);
    let done = desk.run(&[&alert[..], &["--mail", "ops@example.com"]].concat());
    assert!(done.stderr.contains("this server has no mail server"), "{}", done.stderr);
    let done = desk.run(&["alert", "update", "broken"]);
    assert!(done.stderr.contains("nothing to change"), "{}", done.stderr);
}
