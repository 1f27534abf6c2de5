use podium_api::{Id, TypedId};
use std::sync::Mutex;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::PlaneFuture;
use crate::blocking::allow_blocking;

/// An archive for each version, and how often one was opened.
#[derive(Default)]
struct ArchiveFixture {
    opened: Mutex<Vec<String>>,
}

impl Archives for ArchiveFixture {
    fn open<'a>(&'a self, _: DeploymentId, version: &'a str) -> PlaneFuture<'a, Option<Archive>> {
        Box::pin(async move {
            self.opened.lock().unwrap().push(version.to_owned());
            let archive: Archive = Box::new(io::Cursor::new(archive(version)));
            Ok((version != "missing").then_some(archive))
        })
    }
}

fn archive(version: &str) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let text = format!("version = '{version}'\n");
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mode(0o600);
    header.set_mtime(1);
    tar.append_data(&mut header, "sub/hello.py", text.as_bytes()).unwrap();
    tar.into_inner().unwrap().finish().unwrap()
}

fn place(directory: &Path) -> Place {
    let place = Place { root: directory.to_owned() };
    allow_blocking(|| place.make(&super::super::isolation::Isolation::NONE)).unwrap();
    place
}

async fn install_dags(
    archives: &dyn Archives,
    id: DeploymentId,
    place: &Place,
    version: Option<&str>,
) -> Result<(), PrepareError> {
    unpack_dags(archives, id, place, version).await?;
    switch_dags(place, version).await
}

async fn install_bundles(
    archives: &dyn Archives,
    id: DeploymentId,
    place: &Place,
    bundles: &[Bundle],
) -> Result<(), PrepareError> {
    unpack_bundles(archives, id, place, bundles).await?;
    switch_bundles(place, bundles).await
}

fn refused(error: PrepareError) -> UserText {
    let PrepareError::Refused(why) = error else { panic!("it is tried again: {error:?}") };
    why.user_text().clone()
}

fn place_version(folder: &Path, version: &str, archive: Option<Archive>) {
    add(folder, version, archive).unwrap();
    switch(folder, version, CurrentFolder::Dags).unwrap();
}

fn id<I: TypedId>() -> I {
    I::from_raw(Id::from_parts(1, 2, 3))
}

fn current(place: &Place) -> String {
    fs::read_to_string(dags(place).join("current/sub/hello.py")).unwrap()
}

#[tokio::test]
async fn a_version_is_unpacked_once_and_older_ones_stay_for_their_runs() {
    let (directory, shelf) = (tempfile::tempdir().unwrap(), ArchiveFixture::default());
    let place = place(directory.path());
    install_dags(&shelf, id(), &place, None).await.unwrap();
    assert!(dags(&place).join("current").is_dir());
    for version in ["v1", "v2", "v1"] {
        install_dags(&shelf, id(), &place, Some(version)).await.unwrap();
        assert_eq!(current(&place), format!("version = '{version}'\n"));
    }
    assert_eq!(*shelf.opened.lock().unwrap(), ["v1", "v2"]);
    assert!(dags(&place).join("versions/v2/sub/hello.py").exists());
    let written = fs::metadata(dags(&place).join("versions/v2/sub/hello.py")).unwrap().modified().unwrap();
    assert!(written.elapsed().unwrap().as_secs() < 3600, "files are new to Airflow");
}

#[tokio::test]
async fn missing_code_is_reported_and_changes_nothing() {
    let (directory, shelf) = (tempfile::tempdir().unwrap(), ArchiveFixture::default());
    let place = place(directory.path());
    install_dags(&shelf, id(), &place, Some("v1")).await.unwrap();
    let error = install_dags(&shelf, id(), &place, Some("missing")).await.unwrap_err();
    let PrepareError::Wait("code", why) = error else { panic!("{error:?}") };
    assert_eq!(*why.user_text(), "the code of version missing is not in the object store");
    assert_eq!(current(&place), "version = 'v1'\n");
}

#[tokio::test]
async fn bundles_are_at_their_mount_paths_until_they_are_removed() {
    let (directory, shelf) = (tempfile::tempdir().unwrap(), ArchiveFixture::default());
    let place = place(directory.path());
    let bundle = |version: &str| Bundle {
        mount_path: "transform/shop".into(),
        bundle_type: "plain".into(),
        version: version.into(),
        deploy_id: id(),
    };
    for version in ["b1", "b2"] {
        install_bundles(&shelf, id(), &place, &[bundle(version)]).await.unwrap();
        let text = fs::read_to_string(place.home().join("transform/shop/sub/hello.py")).unwrap();
        assert_eq!(text, format!("version = '{version}'\n"));
    }
    install_bundles(&shelf, id(), &place, &[]).await.unwrap();
    assert!(fs::symlink_metadata(place.home().join("transform/shop")).is_err());
    fs::create_dir_all(place.home().join("transform/shop")).unwrap();
    let error = install_bundles(&shelf, id(), &place, &[bundle("b1")]).await.unwrap_err();
    assert_eq!(
        refused(error),
        "the bundle at transform/shop cannot be mounted: another file or directory is already there"
    );
}

/// What bundles there are in the home: their places, and the versions at them.
fn mounted(home: &Path) -> Vec<(String, String)> {
    fn look(home: &Path, folder: &Path, found: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_symlink() {
                let text = fs::read_to_string(entry.join("sub/hello.py")).unwrap();
                let version = text.split('\'').nth(1).unwrap().to_owned();
                found.push((entry.strip_prefix(home).unwrap().display().to_string(), version));
            } else {
                look(home, &entry, found);
                assert_ne!(fs::read_dir(&entry).unwrap().count(), 0, "{} is left behind", entry.display());
            }
        }
    }
    let mut found = Vec::new();
    look(home, home, &mut found);
    found.sort();
    found
}

/// Mount paths with their versions.
type Mounts = &'static [(&'static str, &'static str)];

#[tokio::test]
async fn bundles_at_the_reference_home_are_below_the_home_here() {
    let (directory, shelf) = (tempfile::tempdir().unwrap(), ArchiveFixture::default());
    let place = place(directory.path());
    let bundle = |(path, version): &(&str, &str)| Bundle {
        mount_path: (*path).into(),
        bundle_type: "plain".into(),
        version: (*version).into(),
        deploy_id: id(),
    };
    // Each step from what the one before left: other spellings, and what lies where folders were and inside what was.
    let steps: [(Mounts, Mounts); 6] = [
        (
            &[("/usr/local/airflow/a/b", "b1"), ("/usr/local/airflow/dags", "b2")],
            &[("a/b", "b1"), ("dags", "b2")],
        ),
        (&[("a/b", "b3"), ("dags", "b2")], &[("a/b", "b3"), ("dags", "b2")]),
        (&[("/usr/local/airflow/a", "b1"), ("dags/dbt", "b2")], &[("a", "b1"), ("dags/dbt", "b2")]),
        (&[("/usr/local/airflow/a/b", "b1")], &[("a/b", "b1")]),
        (&[("a/b", "b1"), ("a/c", "b2")], &[("a/b", "b1"), ("a/c", "b2")]),
        (&[], &[]),
    ];
    for (wanted, expected) in steps {
        let bundles: Vec<Bundle> = wanted.iter().map(bundle).collect();
        install_bundles(&shelf, id(), &place, &bundles).await.unwrap();
        let expected: Vec<_> =
            expected.iter().map(|(at, what)| ((*at).to_owned(), (*what).to_owned())).collect();
        assert_eq!(mounted(&place.home()), expected, "{wanted:?}");
    }
    // What the rules would not let through does not get out of the home either.
    let outside = directory.path().join("outside");
    for path in
        [outside.to_str().unwrap(), "../outside", "a/../../outside", "/usr/local/airflow/../outside", ""]
    {
        let error = install_bundles(&shelf, id(), &place, &[bundle(&(path, "b1"))]).await.unwrap_err();
        let why = refused(error);
        assert!(why.as_str().ends_with("the path is outside the environment's home directory"), "{why}");
        assert!(fs::symlink_metadata(&outside).is_err(), "{path}");
    }
    let both = [bundle(&("a", "b1")), bundle(&("a/b", "b2"))];
    let error = install_bundles(&shelf, id(), &place, &both).await.unwrap_err();
    assert_eq!(refused(error), "the bundle at a/b cannot be mounted: the path is inside another bundle");
}

#[test]
fn existing_directories_do_not_become_readable() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let directory = tempfile::tempdir().unwrap();
    let above = (mode(directory.path()), mode(directory.path().parent().unwrap()));
    let folder = directory.path().join("code/dags");
    place_version(&folder, "v1", None);
    assert_eq!((mode(directory.path()), mode(directory.path().parent().unwrap())), above);
    for made in ["code", "code/dags", "code/dags/versions", "code/dags/versions/v1"] {
        assert_eq!(mode(&directory.path().join(made)), 0o755, "{made}");
    }
}

#[test]
fn old_versions_are_removed_when_there_are_many() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..KEPT + 5 {
        place_version(directory.path(), &format!("v{number}"), None);
    }
    let left = fs::read_dir(directory.path().join("versions")).unwrap().count();
    assert_eq!(left, KEPT + 1);
    assert!(directory.path().join("current").is_dir());
}

/// An archive that the machine's own tar has made of a directory.
fn packed(directory: &Path, names: &[&str]) -> Vec<u8> {
    let made =
        std::process::Command::new("tar").args(["-cz", "-C"]).arg(directory).args(names).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    made.stdout
}

/// Makes a version of DAGs current; the folder that Airflow is shown.
fn shown(folder: &Path, version: &str, bytes: Vec<u8>) -> PathBuf {
    let archive: Archive = Box::new(io::Cursor::new(bytes));
    place_version(folder, version, Some(archive));
    fs::canonicalize(folder.join("current")).unwrap()
}

#[test]
fn a_folder_named_dags_is_the_root_of_the_dags() {
    let (source, plane) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let write = |name: &str| {
        let path = source.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    };
    write("dags/hello.py");
    write("dags/shared/names.py");
    write("include/query.sql");
    symlink("../include", source.path().join("dags/include")).unwrap();
    let versions = fs::canonicalize(plane.path()).unwrap().join("versions");
    let cases: [(&str, &Path, &[&str], &str); 5] = [
        ("folder", source.path(), &["dags"], "folder/dags"),
        ("dotted", source.path(), &["./dags"], "dotted/dags"),
        ("project", source.path(), &["."], "project/dags"),
        ("inside", &source.path().join("dags"), &["."], "inside"),
        ("named", &source.path().join("dags"), &["hello.py", "shared"], "named"),
    ];
    for (version, directory, names, expected) in cases {
        let root = shown(plane.path(), version, packed(directory, names));
        assert_eq!(root, versions.join(expected), "{version}");
        assert_eq!(fs::read_to_string(root.join("hello.py")).unwrap(), "dags/hello.py", "{version}");
        assert!(root.join("shared/names.py").exists(), "{version}");
    }
    let root = shown(plane.path(), "project", Vec::new());
    let query = fs::read_to_string(root.join("include/query.sql"));
    assert_eq!(query.unwrap(), "include/query.sql", "what lies beside the folder stays in reach");
    // A file or a link of that name is something else.
    let other = tempfile::tempdir().unwrap();
    fs::create_dir(other.path().join("real")).unwrap();
    symlink("real", other.path().join("dags")).unwrap();
    assert_eq!(shown(plane.path(), "link", packed(other.path(), &["."])), versions.join("link"));
}

/// What was found: the second member was checked and then not deployed.
#[test]
fn an_archive_in_several_members_is_unpacked_to_its_end() {
    let gzip = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        io::Write::write_all(&mut encoder, bytes).unwrap();
        encoder.finish().unwrap()
    };
    let mut tar = tar::Builder::new(Vec::new());
    for name in ["first.py", "second.py"] {
        let mut header = tar::Header::new_gnu();
        header.set_size(4);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, &b"pass"[..]).unwrap();
    }
    let tar = tar.into_inner().unwrap();
    let members = [gzip(&tar[..1024]), gzip(&tar[1024..])].concat();
    let plane = tempfile::tempdir().unwrap();
    let root = shown(plane.path(), "v1", members);
    assert!(root.join("first.py").exists() && root.join("second.py").exists());
}
