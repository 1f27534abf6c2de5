//! A person with a browser: clicks on `webServerUrl`, signs in, works in Airflow's own pages and signs out. And a
//! hostile author, whose DAG tries to get at the person's session on the way.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex};

use super::world::{Environment, World};
use podium_testkit::{Browser, missing_for_browser};

/// A DAG that says something, shows pictures of others in its documentation and uses what it finds of a browser's.
fn dag(pictures: &[SocketAddr]) -> String {
    let pictures: Vec<String> = pictures.iter().map(|at| format!("![x](http://{at}/picture.png)")).collect();
    format!(
        r#"
import logging, os, urllib.error, urllib.request

from airflow.decorators import dag, task


@dag(dag_id="browse", schedule=None, doc_md="The documentation {}")
def browse():
    @task
    def greet():
        # What is printed reaches the log by another way than what is logged, so it may land in a folded group.
        logging.getLogger(__name__).info("greetings for the browser")

        class Stay(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *arguments):
                return None

        opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}), Stay)
        for line in open(os.path.join(os.environ["TMPDIR"], "stolen")):
            url, cookie = line.split()
            headers = {{"Cookie": cookie, "Accept": "text/html"}}
            try:
                status = opener.open(urllib.request.Request(url, headers=headers)).status
            except urllib.error.HTTPError as error:
                status = error.code
            except urllib.error.URLError:
                status = "nothing"
            print("stolen-cookie answered", status)

    greet()


browse()
"#,
        pictures.join(" ")
    )
}

/// Somebody else's server on this machine: it notes what it is sent, and has a page with one link.
struct Elsewhere {
    address: SocketAddr,
    heard: Arc<Mutex<String>>,
}

impl Elsewhere {
    fn listen(address: &str, link: String) -> Self {
        let listener = TcpListener::bind(address).expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let heard = Arc::<Mutex<String>>::default();
        let ear = Arc::clone(&heard);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
                    head.push(byte[0]);
                }
                ear.lock().unwrap().push_str(&String::from_utf8_lossy(&head));
                let page = format!("<!doctype html><a id=\"link\" href=\"{link}\">A link in a chat</a>");
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
                    page.len()
                );
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { address, heard }
    }

    fn heard(&self) -> String {
        self.heard.lock().unwrap().clone()
    }
}

/// Everything that a person does with a browser in an environment; `dags` are those that it has.
pub(super) fn a_person_works_in_a_browser(world: &World, environment: &Environment, dags: &str) {
    let missing = missing_for_browser();
    if !missing.is_empty() {
        world
            .say(&format!("SKIPPED: nobody can look at it with a browser without {}", missing.join(" and ")));
        return;
    }
    world.say("a person clicks on webServerUrl, signs in and works in Airflow's pages");
    let url = world.web_server_url(environment);
    let (console, path) = url.split_at(url.find("/airflow/").expect("it is below the console"));
    let traps = ["127.0.0.1:0", "127.0.0.2:0"].map(|address| Elsewhere::listen(address, url.clone()));
    let source = dag(&traps.each_ref().map(|trap| trap.address));
    world.deploy(environment, &format!("{dags}\n{source}"));
    let browser = Browser::start();

    browser.open(&url);
    browser.wait_for_text("Sign in");
    assert!(browser.url().starts_with(&format!("{console}/sign-in?to={path}/")), "{}", browser.url());
    browser.click("//summary");
    browser.type_into("//input[@name='token']", &world.token());
    browser.click("//button[contains(., 'with the token')]");
    browser.wait_for_text("Dags");
    let home = browser.url();
    assert!(home.starts_with("http://127.0.0.2:") && home.ends_with(&format!("{path}/")), "{home}");
    let pass = browser.cookies().pop().expect("there is a pass");
    browser.open(&format!("{console}/sign-out"));
    let session = browser.cookies().pop().expect("there is a session");
    assert_eq!((session.0.as_str(), &session.1["sameSite"]), ("podium_session", &"Strict".into()));
    assert_eq!((&session.1["httpOnly"], &session.1["path"]), (&true.into(), &"/".into()));
    assert!(!world.token().contains(session.1["value"].as_str().expect("a value")));

    work_in_airflow(world, environment, &browser, &home, [(&home, &pass), (&format!("{url}/"), &session)]);
    gain_nothing(&traps, &session.1["value"]);

    world.say("a link in somebody else's page leads there without another sign-in");
    browser.open(&format!("http://{}/", traps[1].address));
    browser.click("//a[@id='link']");
    browser.wait("the link leads to Airflow", |browser| browser.url() == home);
    browser.wait_for_text("Dags");

    world.say("whoever logs out of Airflow is signed out");
    // Somewhere to come back to: the page that logs out takes the place of the one before it.
    browser.click("//a[normalize-space(.)='Dags']");
    browser.wait("the list of DAGs", |browser| browser.url().ends_with("/dags"));
    browser.click("//button[normalize-space(.)='User']");
    browser.click("//*[@role='menuitem'][contains(., 'Logout')]");
    browser.click("//button[@data-testid='confirmation-confirm-button']");
    browser.wait_for_text("You are signed out");
    browser.back();
    browser.wait_for_text("E-mail address");
    browser.open(&home);
    browser.wait_for_text("E-mail address");
    assert!(browser.url().starts_with(&format!("{console}/sign-in?to=")), "{}", browser.url());
}

/// Finds the DAG, triggers it, sees it succeed and reads its log.
fn work_in_airflow(
    world: &World,
    environment: &Environment,
    browser: &Browser,
    home: &str,
    stolen: [(&str, &(String, serde_json::Value)); 2],
) {
    let line = |(url, (name, cookie)): (&str, &(String, serde_json::Value))| {
        format!("{url} {name}={}\n", cookie["value"].as_str().expect("a value"))
    };
    std::fs::write(format!("{}/tmp/stolen", world.place(environment)), stolen.map(line).concat())
        .expect("it is there");
    browser.open(home);
    browser.click("//a[normalize-space(.)='Dags']");
    browser.click("//a[normalize-space(.)='browse']");
    browser.click("//button[@aria-label='Dag Docs' or contains(., 'Dag Docs')]");
    browser.wait_for_text("The documentation");
    browser.wait("the pictures are asked for", |browser| {
        browser.run(
            "return [...document.images].filter(i => i.src.includes('picture.png') && i.complete).length",
        ) == 2
    });
    browser.open(&format!("{home}dags/browse"));
    browser.click("//button[contains(., 'Trigger')]");
    browser.click("//button[@data-testid='trigger-dag-submit']");
    browser.wait("the page of the run", |browser| browser.url().contains("/dags/browse/runs/manual__"));
    browser.wait_for_text("Success");
    browser.click("//table//a[normalize-space(.)='greet']");
    browser.wait_for_text("greetings for the browser");
    world.wait_for_lines(environment, "\"greetings for the browser\"", 1);
    // In a network of its own it reaches neither. Else only users of their own tell its processes from the person's.
    if world.has_networks(environment) {
        world.wait_for_lines(environment, "\"stolen-cookie answered nothing\"", 2);
    } else if std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        world.wait_for_lines(environment, "\"stolen-cookie answered 403\"", 2);
    }
}

/// What others were sent: the pictures were asked for, and the session was not sent along.
fn gain_nothing(traps: &[Elsewhere; 2], session: &serde_json::Value) {
    for trap in traps {
        let heard = trap.heard();
        assert!(heard.contains("GET /picture.png"), "{} was not asked: {heard}", trap.address);
        assert!(!heard.contains("podium_session"), "{heard}");
        assert!(!heard.contains(session.as_str().expect("a value")), "{heard}");
    }
    assert!(!traps[0].heard().contains("podium_"), "at the console's address nothing of ours is sent");
}
