//! Nouns and verbs: names for ids, changes of only what is named, formats, and errors.

use serde_json::json;

use super::Desk;

#[test]
fn workspaces_are_created_changed_and_deleted_by_name() {
    let desk = Desk::signed_in();
    let made = desk.run(&["workspace", "create", "Reports", "--description", "Numbers", "--output", "name"]);
    let said = (made.code, made.stdout.as_str(), made.stderr.as_str());
    assert_eq!(said, (Some(0), "Reports\n", "Created workspace Reports.\n"));
    let listed = desk.shown(&["workspace", "list", "--sort", "name", "--columns", "name,description"]);
    assert_eq!(listed, "NAME     DESCRIPTION\nDefault  -\nReports  Numbers\n");
    let changed = desk.json(&["workspace", "update", "reports", "--name", "Figures"]);
    assert_eq!(
        (&changed["name"], &changed["description"]),
        (&json!("Figures"), &json!("Numbers")),
        "only the name"
    );
    desk.refuses(
        &["workspace", "delete", "Figures"],
        2,
        "podium: Delete workspace Figures? There is no terminal to ask on\nTo go ahead without being asked, add --yes.\n",
    );
    let deleted = desk.run(&["workspace", "delete", "Figures", "--yes"]);
    assert_eq!((deleted.code, deleted.stderr.as_str()), (Some(0), "Deleted workspace Figures.\n"));
    let gone = "podium: there is no workspace called \"Figures\"\nList them: podium workspace list\n";
    desk.refuses(&["workspace", "get", "Figures"], 3, gone);
}

#[test]
fn errors_say_what_to_do_and_have_codes() {
    let desk = Desk::signed_in();
    let unknown = "podium: there is no workspace called \"Defalt\"\nDid you mean \"Default\"?\n";
    desk.refuses(&["workspace", "get", "Defalt"], 3, unknown);
    let taken = desk.run(&["workspace", "create", "default"]);
    assert_eq!((taken.code, taken.stdout.as_str()), (Some(5), ""), "{}", taken.stderr);
    let wrong = desk.run(&["workspace", "create", ""]);
    assert_eq!(wrong.code, Some(1));
    let said = "podium: name must not be empty\n  status 400, request ID\n";
    assert_eq!(desk.plain(&wrong.stderr), said, "the field is named, and once");
    desk.refuses(
        &["workspace", "update", "Default"],
        2,
        "podium: nothing to change: give --name, --description or --cicd-enforced\n",
    );
    assert_eq!(desk.run(&["workspace", "get", "c00000000000000000000000x"]).code, Some(3));
    assert_eq!(desk.run(&["workspace", "frobnicate"]).code, Some(2));
    let member = desk.run(&["token", "create", "weak", "--role", "member"]).stdout;
    let denied = desk.run_as(&[("PODIUM_TOKEN", member.trim())], &["workspace", "create", "Mine"]);
    assert_eq!(denied.code, Some(4), "{}", denied.stderr);
}

#[test]
fn an_ambiguous_name_lists_the_candidates() {
    let desk = Desk::signed_in();
    desk.shown(&["workspace", "create", "Other"]);
    for workspace in ["Default", "Other"] {
        desk.shown(&["deployment", "create", "twin", "--workspace", workspace, "--wait"]);
    }
    let unclear = desk.run(&["deployment", "get", "twin"]);
    assert_eq!((unclear.code, unclear.stdout.as_str()), (Some(2), ""));
    assert!(unclear.stderr.starts_with("podium: 2 deployments are called \"twin\"\n"), "{}", unclear.stderr);
    assert!(
        unclear.stderr.contains("  Default\n") && unclear.stderr.contains("  Other\n"),
        "{}",
        unclear.stderr
    );
    let one = desk.json(&["deployment", "get", "twin", "--workspace", "Other"]);
    assert_eq!(one["workspaceName"], "Other");
}

#[test]
fn a_deployment_is_followed_changed_and_moved() {
    let desk = Desk::signed_in();
    let made = desk.run(&["deployment", "create", "nightly", "--development", "--wait", "--output", "json"]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    assert!(made.stderr.ends_with("nightly is HEALTHY.\n"), "{}", made.stderr);
    let before: serde_json::Value = serde_json::from_str(&made.stdout).unwrap();
    assert_eq!(before["status"], "HEALTHY");
    let arguments = [
        "deployment",
        "update",
        "nightly",
        "--variable",
        "STAGE=test",
        "--secret",
        "KEY",
        "--output",
        "json",
    ];
    let changed = desk.run_as(&[("KEY", "hidden")], &arguments);
    assert_eq!(changed.code, Some(0), "{}", changed.stderr);
    desk.shown(&["deployment", "update", "nightly", "--description", "Every night", "--wait"]);
    let after = desk.json(&["deployment", "get", "nightly"]);
    assert_eq!(after["description"], "Every night");
    for field in ["executor", "workerQueues", "isDevelopmentMode", "isCicdEnforced", "schedulerSize"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    let variables: Vec<_> =
        after["environmentVariables"].as_array().unwrap().iter().map(|v| &v["key"]).collect();
    assert_eq!(variables.len(), 2, "{variables:?}");
    assert!(!after.to_string().contains("hidden"));
    let said = desk.run(&["deployment", "hibernate", "nightly", "--wait"]).stderr;
    assert!(said.starts_with("Hibernating nightly.\n"), "{said}");
    assert!(said.ends_with("nightly is HIBERNATING.\n"), "{said}");
    assert_eq!(desk.run(&["deployment", "wake", "nightly", "--wait"]).code, Some(0));
    assert_eq!(desk.run(&["deployment", "end-override", "nightly"]).code, Some(0));
    desk.shown(&["workspace", "create", "Archive"]);
    desk.shown(&["deployment", "transfer", "nightly", "--to", "Archive"]);
    let listed = desk.shown(&["deployment", "list", "--workspace", "Archive", "--output", "name"]);
    assert_eq!(listed, "nightly\n");
    assert_eq!(desk.run(&["deployment", "delete", "nightly", "-y"]).stderr, "Deleted deployment nightly.\n");
    assert!(desk.shown(&["deployment", "options"]).starts_with("RUNTIME "));
}

#[test]
fn teams_users_roles_and_tokens() {
    let desk = Desk::signed_in();
    let invited = desk.json(&["invite", "create", "ada@example.com"]);
    let invite = invited["inviteId"].as_str().unwrap();
    assert!(desk.shown(&["invite", "link", invite]).starts_with(&desk.url));
    desk.shown(&["team", "create", "Data", "--member", "ada@example.com"]);
    assert_eq!(desk.shown(&["team", "member", "list", "Data", "-o", "name"]), "ada@example.com\n");
    desk.shown(&["team", "update", "Data", "--description", "People", "--workspace-role", "Default=author"]);
    let team = desk.json(&["team", "get", "Data"]);
    assert_eq!((&team["name"], &team["description"]), (&json!("Data"), &json!("People")));
    assert_eq!(team["workspaceRoles"][0]["role"], "WORKSPACE_AUTHOR");
    assert_eq!(desk.shown(&["user", "teams", "ada@example.com", "-o", "name"]), "Data\n");
    desk.shown(&["user", "update", "ada@example.com", "--workspace-role", "Default=member"]);
    desk.shown(&["user", "update", "ada@example.com", "--role", "billing-admin"]);
    let user = desk.json(&["user", "get", "ada@example.com"]);
    assert_eq!(user["organizationRole"], "ORGANIZATION_BILLING_ADMIN");
    assert_eq!(user["workspaceRoles"][0]["role"], "WORKSPACE_MEMBER", "what is not named stays");
    desk.shown(&["team", "member", "remove", "Data", "ada@example.com"]);
    desk.shown(&["team", "member", "add", "Data", "ada@example.com"]);
    desk.shown(&["team", "delete", "Data", "--yes"]);
    desk.shown(&["invite", "delete", invite, "--yes"]);

    desk.shown(&["role", "create", "Watcher", "--permission", "deployment.get"]);
    desk.shown(&["role", "update", "Watcher", "--add-permission", "deployment.logs.get"]);
    let role = desk.json(&["role", "get", "Watcher"]);
    assert_eq!(role["permissions"], json!(["deployment.get", "deployment.logs.get"]));
    assert!(desk.shown(&["role", "permissions"]).contains("deployment.logs"));
    assert!(desk.shown(&["role", "templates", "-o", "name"]).contains("Deployment_Viewer\n"));
    desk.shown(&["role", "delete", "Watcher", "--yes"]);

    let value = desk.shown(&["token", "create", "ci", "--workspace", "Default", "--role", "operator"]);
    let listed = desk.run_as(&[("PODIUM_TOKEN", value.trim())], &["workspace", "list", "-o", "name"]);
    assert_eq!((listed.code, listed.stdout.as_str()), (Some(0), "Default\n"), "{}", listed.stderr);
    desk.shown(&["token", "update", "ci", "--description", "For CI"]);
    assert_ne!(desk.shown(&["token", "rotate", "ci", "--yes"]), value);
    assert_eq!(desk.json(&["token", "get", "ci"])["description"], "For CI");
    desk.shown(&["token", "delete", "ci", "--yes"]);
}

#[test]
fn environment_objects_clusters_ranges_and_the_audit_log() {
    let desk = Desk::signed_in();
    desk.shown(&["env", "create", "STAGE", "--value", "test", "--link-all"]);
    let secret = desk.run_as(&[("KEY", "hidden")], &["env", "create", "API_KEY", "--secret", "KEY"]);
    assert_eq!(secret.code, Some(0), "{}", secret.stderr);
    desk.shown(&["env", "update", "STAGE", "--value", "production", "--workspace", "Default"]);
    let kind = ["--workspace", "Default", "--type", "CONNECTION"];
    let fields = ["--set", "connection.type=postgres", "--set", "connection.login=reader"];
    desk.shown(&[&["env", "create", "warehouse"][..], &kind, &fields].concat());
    desk.shown(&[&["env", "update", "warehouse", "--set", "connection.host=db2"][..], &kind].concat());
    let changed = desk.json(&[&["env", "get", "warehouse"][..], &kind].concat());
    let connection = ["type", "login", "host"].map(|field| changed["connection"][field].as_str().unwrap());
    assert_eq!(connection, ["postgres", "reader", "db2"]);
    desk.shown(&[&["env", "delete", "warehouse", "--yes"][..], &kind].concat());
    let object = desk.json(&["env", "get", "STAGE", "--workspace", "Default"]);
    assert_eq!(
        (&object["environmentVariable"]["value"], &object["autoLinkDeployments"]),
        (&json!("production"), &json!(true))
    );
    let listed = desk.shown(&["env", "list", "--workspace", "Default", "--sort", "objectKey", "-o", "jsonl"]);
    assert_eq!(listed.lines().count(), 2);
    assert!(!listed.contains("hidden"));
    desk.shown(&["env", "delete", "STAGE", "API_KEY", "--workspace", "Default", "--yes"]);

    assert!(desk.shown(&["cluster", "options", "--provider", "aws"]).contains("AWS"));
    desk.shown(&[
        "cluster",
        "create",
        "main",
        "--provider",
        "aws",
        "--region",
        "us-east-1",
        "--vpc",
        "172.20.0.0/20",
    ]);
    assert_eq!(desk.json(&["cluster", "get", "main"])["region"], "us-east-1");

    assert_eq!(desk.run(&["ip-range", "list"]).stderr, "No results.\n");
    desk.shown(&["ip-range", "create", "127.0.0.0/8", "203.0.113.0/24"]);
    assert_eq!(
        desk.shown(&["ip-range", "list", "--sort", "ipAddress", "-o", "name"]),
        "127.0.0.0/8\n203.0.113.0/24\n"
    );
    desk.shown(&["ip-range", "delete", "127.0.0.0/8", "203.0.113.0/24", "--yes"]);

    desk.shown(&["organization", "update", "--name", "Analytics"]);
    assert_eq!(desk.shown(&["organization", "get", "-o", "name"]), "Analytics\n");
    let audit = desk.shown(&["audit", "export"]);
    assert!(audit.lines().all(|line| line.starts_with('{')) && audit.contains("CreateCluster"), "{audit}");
}

#[test]
fn any_path_of_the_api_can_be_called() {
    let desk = Desk::signed_in();
    let path = "/organizations/{organization}/workspaces";
    let made = desk.shown(&["api", "POST", path, "-f", "name=Raw", "-f", "cicdEnforcedDefault=true"]);
    let made: serde_json::Value = serde_json::from_str(&made).unwrap();
    assert_eq!((&made["name"], &made["cicdEnforcedDefault"]), (&json!("Raw"), &json!(true)));
    let page: serde_json::Value =
        serde_json::from_str(&desk.shown(&["api", "get", path, "-f", "limit=1"])).unwrap();
    assert_eq!((&page["totalCount"], &page["limit"]), (&json!(2), &json!(1)));
    let all = desk.shown(&["api", "GET", path, "--paginate", "--output", "name"]);
    assert_eq!(all, "Raw\nDefault\n");
    let done = desk.run_with(&["api", "POST", path, "--input", "-"], "name: From YAML\n");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(desk.run(&["api", "GET", "/nothing"]).code, Some(3));
    assert_eq!(desk.run(&["api", "GET", "http://elsewhere.test/"]).code, Some(2));
}

#[test]
fn formats_are_the_wire() {
    let desk = Desk::signed_in();
    let array = desk.json(&["workspace", "list"]);
    assert_eq!(array.as_array().unwrap().len(), 1);
    let one = desk.json(&["workspace", "get", "Default"]);
    assert_eq!(array[0], one);
    let lines = desk.shown(&["workspace", "list", "--output", "jsonl"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&lines).unwrap(), one);
    assert!(desk.shown(&["workspace", "list", "--output", "yaml"]).starts_with("- id: "));
    assert!(desk.shown(&["workspace", "get", "Default", "--output", "wide"]).contains("CREATED BY"));
    assert!(desk.shown(&["version", "--json"]).contains("\"api\": \"v1\""));
    for shell in ["bash", "zsh", "fish"] {
        assert!(desk.shown(&["completion", shell]).contains("podium"));
    }
    desk.shown(&["manual", "man"]);
    assert!(desk.folder().join("man/podium-deploy.1").exists());
}
