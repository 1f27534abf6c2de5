//! Attacks of an author on what environments share.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::fixture::{Fixture, eventually};

#[tokio::test]
async fn a_runtime_that_everybody_could_write_to_is_closed() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let runtime = fixture.plane().join("runtimes/3.3.2");
    let open = |name: &str| {
        let path = runtime.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "whatever an author has put there").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        path
    };
    // As the installer leaves it.
    let (lock, module) = (open(".lock"), open("lib/python3.12/site-packages/module.py"));
    std::os::unix::fs::symlink("module.py", module.with_file_name("link.py")).unwrap();
    let _plane = fixture.open();
    let mode = || fs::metadata(&module).unwrap().permissions().mode() & 0o777;
    eventually(|| !lock.exists() && mode() == 0o644).await;
    assert!(fixture.airflow("3.3.2").exists(), "everything else is as it was");
}
