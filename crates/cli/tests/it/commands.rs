//! The commands other than `serve`, and the output of `--help`.

use podium_testkit::Engine;
use serde_json::{Value, json};

use crate::program::{Installation, Program, exchange, request};

#[test]
fn an_operator_can_reset_the_address_ranges_on_the_machine_itself() {
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
fn a_lost_owner_token_can_be_replaced() {
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
fn the_operator_sets_the_owners_password_and_anybodys() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let installation = Installation::on(engine);
        let program = installation.serve(&[]);
        let token = installation.read("owner-token");
        let sign_in = |program: &Program, username: &str, password: &str| {
            let body = json!({ "username": username, "password": password });
            program.call("POST", "/v1/auth/sign-in", "", Some(&body))
        };
        let running = matches!(engine, Engine::Postgres).then_some(program);
        let set = installation.run_with(&["owner-password"], "correct horse battery staple\n");
        assert_eq!((set.code, set.stdout.as_str()), (Some(0), ""), "{}", set.stderr);
        assert!(set.stderr.contains("The password of owner@localhost is set"), "{}", set.stderr);
        assert!(!set.stderr.contains("staple"));
        let program = running.unwrap_or_else(|| installation.serve(&[]));
        let session = sign_in(&program, "owner@localhost", "correct horse battery staple").json();
        assert_eq!(program.get("/v1/users/self", &token).status, 200, "the token that never expires stays");
        let running = matches!(engine, Engine::Postgres).then_some(program);
        let made = installation.run(&["owner-password", "--email", "Owner@localhost", "--generate"]);
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        let program = running.unwrap_or_else(|| installation.serve(&[]));
        assert_eq!(sign_in(&program, "owner@localhost", "correct horse battery staple").status, 401);
        assert_eq!(sign_in(&program, "owner@localhost", made.stdout.trim_end()).status, 200);
        let old = session["token"].as_str().unwrap();
        assert_eq!(program.get("/v1/users/self", old).status, 401, "earlier sessions have ended");
        let running = matches!(engine, Engine::Postgres).then_some(program);
        for (arguments, input, expected) in [
            (
                &["owner-password"][..],
                "short\n",
                "podium: the password must have at least 12 characters, has 5\n",
            ),
            (
                &["owner-password"],
                "",
                "podium: there is no password on standard input: give one, or use --generate\n",
            ),
            (
                &["owner-password", "--email", "x@y.z"],
                "",
                "podium: there is no user with the e-mail address x@y.z\n",
            ),
        ] {
            let refused = installation.run_with(arguments, input);
            assert_eq!((refused.code, refused.stderr.as_str()), (Some(1), expected), "{arguments:?}");
        }
        drop(running);
    }
}

#[test]
fn commands_do_not_create_an_installation() {
    let installation = Installation::new();
    for command in [
        ["ip-range", "reset"],
        ["owner-token", "new"],
        ["owner-password", "--generate"],
        ["signing-key", "rotate"],
        ["work", "--json"],
    ] {
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
        (&["owner-password"], "podium owner-password --email ada@example.com < password.txt"),
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
