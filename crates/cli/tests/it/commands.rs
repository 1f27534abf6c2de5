//! The commands beside `serve`, and what `--help` says.

use serde_json::{Value, json};

use crate::program::{Installation, exchange, request};

#[test]
fn a_locked_door_is_opened_on_the_machine_itself() {
    let installation = Installation::new();
    let behind_proxy = ["--trusted-proxy", "127.0.0.0/8"];
    let program = installation.serve(&behind_proxy);
    let token = installation.read("owner-token");
    let organization = program.organization(&token);
    let head =
        format!("Authorization: Bearer {token}\r\nX-Forwarded-For: 203.0.113.7\r\nConnection: close\r\n");
    let range = json!({ "ipAddressRange": "203.0.113.0/24" });
    let ranges = format!("{organization}/allowed-ip-address-ranges");
    assert_eq!(exchange(program.connect(), &request("POST", &ranges, &head, Some(&range))).status, 200);
    assert_eq!(program.get(&organization, &token).status, 403);
    program.stop();

    let reset = installation.run(&["ip-range", "reset"]);
    assert_eq!((reset.code, reset.stderr.as_str()), (Some(0), "Removed 1 allowed address ranges.\n"));
    let program = installation.serve(&behind_proxy);
    assert_eq!(program.get(&organization, &token).json()["hasAllowedIpAddressRanges"], false);
    assert_eq!(program.get(&ranges, &token).json()["totalCount"], 0);
}

#[test]
fn a_new_signing_key_leaves_old_tokens_alone() {
    let installation = Installation::new();
    let program = installation.serve(&[]);
    let token = installation.read("owner-token");
    let keys = |program: &crate::program::Program| -> Vec<Value> {
        let set = program.get("/.well-known/jwks.json", "").json();
        set["keys"].as_array().unwrap().iter().map(|key| key["kid"].clone()).collect()
    };
    let before = keys(&program);
    program.stop();
    let rotated = installation.run(&["signing-key", "rotate"]);
    assert_eq!(rotated.code, Some(0), "{}", rotated.stderr);
    let id = rotated.stderr.trim().strip_prefix("New tokens are signed with key ").unwrap();
    let id = id.trim_end_matches('.').to_owned();
    let program = installation.serve(&[]);
    let after = keys(&program);
    assert_eq!(after.len(), 2);
    assert!(after.contains(&before[0]) && after.contains(&json!(id)));
    assert_eq!(program.get("/v1/users/self", &token).status, 200);
}

#[test]
fn a_lost_token_of_the_owner_is_made_anew() {
    let installation = Installation::new();
    let program = installation.serve(&[]);
    let first = installation.read("owner-token");
    let owner = program.get("/v1/users/self", &first).json()["id"].clone();
    program.stop();
    let made = installation.run(&["owner-token", "new"]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let second = installation.read("owner-token");
    assert!(second != first && made.stderr.trim().ends_with(&second), "{}", made.stderr);
    let program = installation.serve(&[]);
    assert_eq!(program.get("/v1/users/self", &second).json()["id"], owner);
    assert_eq!(program.get("/v1/users/self", &first).status, 200, "earlier tokens stay valid");
}

#[test]
fn commands_make_no_installation_where_there_is_none() {
    let installation = Installation::new();
    for command in
        [["ip-range", "reset"], ["owner-token", "new"], ["signing-key", "rotate"], ["work", "--json"]]
    {
        let refused = installation.run(&command);
        assert_eq!(refused.code, Some(1));
        let start = format!("podium: there is no installation in {}", installation.data_dir().display());
        assert!(refused.stderr.starts_with(&start), "{}", refused.stderr);
        assert!(!installation.data_dir().exists());
    }
}

#[test]
fn help_says_what_to_type() {
    let installation = Installation::new();
    for (command, example) in [
        (&[][..], "podium serve --listen 127.0.0.1:8080 --data-dir ./podium-data"),
        (&["serve"], "podium serve --listen 0.0.0.0:8443 --tls-cert"),
        (&["ip-range", "reset"], "podium ip-range reset --data-dir ./podium-data"),
        (&["signing-key", "rotate"], "podium signing-key rotate --data-dir ./podium-data"),
        (&["work"], "podium work --kind deployments --limit 20"),
    ] {
        let help = installation.run(&[command, &["--help"]].concat());
        assert_eq!(help.code, Some(0));
        assert!(
            help.stdout.contains("Example") && help.stdout.contains(example),
            "{command:?}: {}",
            help.stdout
        );
    }
    let version = installation.run(&["--version"]);
    assert_eq!(version.stdout, format!("podium {}\n", env!("CARGO_PKG_VERSION")));
    let nothing = installation.run(&[]);
    assert_eq!(nothing.code, Some(2));
    assert!(nothing.stderr.contains("Usage: podium <COMMAND>"));
}
