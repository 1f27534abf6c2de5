//! Authors who leave files that are hard to remove, and who fill the disk.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use serde_json::json;

use super::strength;
use crate::loops::wait_until;
use crate::program::{Installation, exchange};

/// Makes directories one in another.
fn nest(directory: &Path, levels: usize) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = openat(CWD, directory, flags, Mode::empty()).expect("a directory");
    for _ in 0..levels {
        mkdirat(&at, "nested", Mode::from_raw_mode(0o755)).expect("a directory can be made");
        at = openat(&at, "nested", flags, Mode::empty()).expect("a directory");
    }
}

#[test]
fn nested_directories_are_deleted_with_few_descriptors_and_a_broken_environment_is_left_alone() {
    let mut installation = Installation::new();
    for (name, value) in [
        ("PODIUM_DATA_PLANE", "local"),
        ("PODIUM_AIRFLOW_DATABASE", "sqlite"),
        ("PODIUM_LISTEN", "127.0.0.1:0"),
    ] {
        installation.set(name, value);
    }
    installation.serve(&[]).stop();
    let environments = installation.data_dir().join("local/environments");
    let (deleted, broken) =
        (environments.join("cdeleted00000000000000001"), environments.join("cbroken000000000000000001"));
    for (environment, state) in [(&deleted, "{\"slot\":1,\"isRemoved\":true}"), (&broken, "{")] {
        fs::create_dir_all(environment.join("user")).expect("a directory can be made");
        fs::write(environment.join("state.json"), state).expect("a file can be written");
    }
    nest(&deleted.join("user"), strength(2_000, 15_000));
    // Fewer descriptors than there are levels, for the whole server.
    let program = installation.serve_after("ulimit -n 256", Stdio::null());
    let token = installation.read("owner-token");
    wait_until("it is removed", || deleted.exists(), |is_there| !is_there);
    assert!(program.said().contains("an environment cannot be taken over"), "{}", program.said());
    assert!(broken.join("state.json").exists(), "what cannot be read is not taken for nothing");
    assert!(program.organization(&token).contains("/organizations/"), "it serves");
    program.stop();
    installation.serve(&[]).stop();
}

#[test]
fn a_full_disk_accepts_no_blocks_but_allows_revoking_and_deleting() {
    let installation = Installation::new();
    let program = installation.serve(&["--disk-reserve-mib", "1000000000000"]);
    let token = installation.read("owner-token");
    let organization = program.organization(&token);
    let workspaces = program.get(&format!("{organization}/workspaces"), &token).json();
    let body = json!({ "name": "Reports", "workspaceId": workspaces["workspaces"][0]["id"] });
    let made = program.call("POST", &format!("{organization}/deployments"), &token, Some(&body)).json();
    let deployment = format!("{organization}/deployments/{}", made["id"].as_str().expect("an id"));
    let body = json!({ "type": "DAG_ONLY" });
    let deploy = program.call("POST", &format!("{deployment}/deploys"), &token, Some(&body)).json();
    let target = deploy["dagsUploadUrl"].as_str().and_then(|url| url.split_once("/v1/")).expect("a URL").1;
    let block = vec![7; 1000];
    for number in 0..strength(3, 300) {
        let head = format!(
            "PUT /v1/{target}&comp=block&blockid={number:04} HTTP/1.1\r\nHost: podium\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n",
            block.len()
        );
        let refused = exchange(program.connect(), &[head.as_bytes(), &block].concat());
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("60")));
    }
    let body = json!({ "name": "Leaked", "scope": "ORGANIZATION", "role": "ORGANIZATION_MEMBER" });
    let leaked = program.call("POST", &format!("{organization}/tokens"), &token, Some(&body)).json();
    let leaked = format!("{organization}/tokens/{}", leaked["id"].as_str().expect("an id"));
    for path in [leaked, deployment] {
        assert_eq!(program.call("DELETE", &path, &token, None).status, 204, "{path}");
    }
}
