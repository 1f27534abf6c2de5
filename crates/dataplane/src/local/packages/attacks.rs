//! Attacks of who writes packages: the real installer, and packages that nobody should trust.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Command;

use super::*;
use crate::blocking::allow_blocking;
use crate::local::host::installer;
use crate::local::options::Options;
use crate::local::runtimes::READY;

const THIS_TEST: &str = "local::packages::attacks::packages_of_strangers_run_nothing_and_write_nowhere_else";
/// Names the directory of the test for the process that has the operator's variables.
const DIRECTORY: &str = "PODIUM_TEST_DIRECTORY";

/// The plane's directory, with what resolves and installs.
struct Machine {
    root: PathBuf,
    layout: Layout,
    host: Host,
    uv: PathBuf,
    runtime: Runtime,
    packages: Packages,
}

impl Machine {
    /// `None` if there is no installer.
    async fn new(root: &Path) -> Option<Self> {
        let options = Options { directory: root.join("data"), ..Options::default() };
        let layout = allow_blocking(|| {
            let layout = Layout::make(&options.directory)?;
            layout.write_support(
                "podium_wheels.py",
                podium_airflow::support::text("podium_wheels.py").unwrap(),
            )?;
            io::Result::Ok(layout)
        })
        .unwrap();
        let host = Host::find(&options, &layout).await.unwrap();
        let uv = installer(&layout.tools(), &host.pythons).await.ok()?;
        let at = layout.runtimes().join("3.3.2");
        let mut make = Command::new(&host.python.path);
        make.args(["-m", "venv", "--without-pip", "--copies"]).arg(&at);
        assert!(make.status().unwrap().success());
        allow_blocking(|| fs::write(at.join(READY), "the seal")).unwrap();
        let packages = Packages::new(layout.clone(), 0, None);
        let runtime = Runtime::at("3.3.2".parse().unwrap(), at);
        Some(Self { root: root.to_owned(), layout, host, uv, runtime, packages })
    }

    async fn resolve(&self, name: &str) -> Result<Option<Pins>, PrepareError> {
        let requirements = Requirements::parse(name.as_bytes()).unwrap().unwrap();
        let memory = self.root.join("memory");
        self.packages.resolve(self.context(), &requirements, &memory).await
    }

    async fn install(&self, name: &str) -> Result<PathBuf, PrepareError> {
        let pins = self.resolve(name).await?.expect("the runtime does not have it");
        self.packages.install(self.context(), &pins).await
    }

    fn context(&self) -> InstallContext<'_> {
        InstallContext { host: &self.host, uv: &self.uv, runtime: &self.runtime, waiting: &|_| {} }
    }

    /// What the code of packages has done.
    fn marks(&self) -> String {
        fs::read_to_string(self.root.join("open/marks")).unwrap()
    }

    /// The files that a package has written where it should not. Directories of jobs are removed meanwhile.
    fn escaped(&self) -> Vec<PathBuf> {
        let (mut found, mut below) = (Vec::new(), vec![self.root.clone()]);
        while let Some(directory) = below.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    below.push(path);
                } else if entry.file_name().to_string_lossy().starts_with("escaped") {
                    found.push(path);
                }
            }
        }
        let layers = self.layout.layers();
        found.retain(|path| !path.starts_with(&layers));
        found
    }
}

/// Everybody may read a layer and nobody may change it, and it is made of nothing but files and directories.
fn is_sealed(layer: &Path) {
    let own = rustix::process::geteuid().as_raw();
    let mut below = vec![layer.to_owned()];
    while let Some(directory) = below.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let found = fs::symlink_metadata(&path).unwrap();
            assert!(found.is_dir() || found.is_file(), "{}", path.display());
            assert_eq!((found.uid(), found.mode() & 0o7022), (own, 0), "{}", path.display());
            if found.is_dir() {
                below.push(path);
            }
        }
    }
}

/// What a component of an environment with this layer finds under names of ours.
fn found_by_components(machine: &Machine, layer: &Path) -> BTreeSet<String> {
    let support = machine.root.join("support");
    let names = ["podium_airflow", "podium_airflow.executors", "podium_launch", "airflow_local_settings"];
    for name in names {
        let path = support.join(name.replace('.', "/"));
        let path =
            if name == "podium_airflow" { path.join("__init__.py") } else { path.with_extension("py") };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let script = format!("import {}; print(*{names:?}, sep='\\n')", names.join(", "))
        + "; import sys; "
        + "print(*(module.__file__ for name, module in sys.modules.items() if name.startswith(('podium', 'airflow'))), sep='\\n')";
    let mut python = Command::new(machine.runtime.program("python"));
    python.args(["-B", "-c", &script]);
    python.env("PYTHONPATH", format!("{}:{}", support.display(), layer.display()));
    let output = python.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    said.lines().filter(|line| line.starts_with('/')).map(str::to_owned).collect()
}

#[tokio::test]
async fn packages_of_strangers_run_nothing_and_write_nowhere_else() {
    let Some(root) = std::env::var_os(DIRECTORY) else { return run_with_the_operators_variables() };
    let root = PathBuf::from(root);
    let Some(machine) = Machine::new(&root).await else {
        eprintln!("SKIPPED: there is no installer, and it cannot be downloaded");
        return;
    };
    for name in ["setup", "backend"] {
        let why = match machine.resolve(&format!("podium-hostile-{name}")).await {
            Err(PrepareError::Refused(why)) => why,
            Err(PrepareError::Wait(_, why)) => panic!("{name}: {why}"),
            Ok(_) => panic!("{name}: it resolves"),
        };
        assert!(why.user_text().to_string().contains("nothing is built from source"), "{name}: {why}");
    }
    allow_blocking(|| assert_eq!((machine.marks(), machine.escaped()), (String::new(), vec![])));
    for name in ["parents", "data", "scripts", "root", "link", "through", "record"] {
        let installed = machine.install(&format!("podium-hostile-{name}")).await;
        allow_blocking(|| {
            if let Ok(layer) = &installed {
                eprintln!("{name}: installed without what is outside");
                is_sealed(layer);
            }
            assert_eq!((machine.marks(), machine.escaped()), (String::new(), vec![]), "{name}");
        });
    }
    let layer = machine.install("podium-hostile-files").await.unwrap();
    allow_blocking(|| {
        assert_eq!(machine.marks(), "", "nothing of it runs where it is installed");
        is_sealed(&layer);
        assert!(layer.join("zzz-hostile.pth").exists() && layer.join("bin/hostile-tool").exists());
        let support = machine.root.join("support").display().to_string();
        let found = found_by_components(&machine, &layer);
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found.iter().all(|path| path.starts_with(&support)), "{found:?}");
        let marks = machine.marks();
        assert!(
            marks.lines().all(|line| line.starts_with("sitecustomize ")),
            "as every module of it: {marks}"
        );
    });
}

/// The variables of a process are those that it was started with.
fn run_with_the_operators_variables() {
    let directory = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(directory.path()).unwrap();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
    // What runs or escapes could write there, whoever it is.
    for name in ["index", "wheels", "open"] {
        fs::create_dir(root.join(name)).unwrap();
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o777)).unwrap();
    }
    let marks = root.join("open/marks");
    fs::write(&marks, "").unwrap();
    fs::set_permissions(&marks, fs::Permissions::from_mode(0o666)).unwrap();
    let mut make = Command::new("python3");
    make.args(["-I", "-c", include_str!("hostile_packages.py")]).arg(root.join("wheels")).arg(&marks);
    assert!(make.status().expect("these tests need python3").success());
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", THIS_TEST, "--nocapture"]);
    again.env(DIRECTORY, &root).env("UV_FIND_LINKS", root.join("wheels"));
    // Nothing but what is there.
    again.env("UV_INDEX_URL", format!("file://{}", root.join("index").display()));
    assert!(again.status().unwrap().success());
}
