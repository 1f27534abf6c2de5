//! How heavy pages are, and how long they take, where there is a lot of everything.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use podium_testkit::gzip;

use super::{Site, appearance};

const DEPLOYMENTS: u32 = 10_000;
const RECORDS: u32 = 1_000_000;
/// The largest page as it is sent.
const LARGEST: usize = 100_000;
/// How long the slowest page may take, in milliseconds; of an optimized build.
const MILLIS: &str = "PODIUM_TEST_PAGE_MILLIS";
/// How often each page is read: the quickest counts, because the machine does other things, too.
const TIMES: usize = 7;

impl Site {
    /// Thousands of deployments and a million audit records of the last months.
    fn fill(&self) {
        let workspace = self.wait(self.app.workspace("Many"));
        let one = self.wait(self.app.deployment(workspace));
        self.wait(self.app.copy_deployment(one, DEPLOYMENTS));
        self.wait(self.app.fill_audit_log(RECORDS));
    }

    fn session(&self) -> String {
        let form = self.app.call("POST", "/sign-in").header("origin", &format!("http://{}", self.address));
        let answer = self.wait(form.body(format!("token={}", self.app.owner.token)).send());
        answer.header("set-cookie").split(';').next().expect("a cookie").to_owned()
    }
}

#[test]
#[ignore = "fills a large database: cargo xtask bench --console"]
#[expect(clippy::print_stdout, reason = "a person reads how long pages take")]
fn pages_are_light_and_quick_however_much_there_is() {
    let (site, [id, _]) = Site::seeded();
    site.fill();
    let most = std::env::var(MILLIS).ok().map(|text| Duration::from_millis(text.parse().expect("a number")));
    let cookie = site.session();
    let origin = format!("http://{}", site.address);
    let first = site.page(&format!("/deployments/{id}"));
    let mut waiting = VecDeque::from([first[origin.len()..].to_owned()]);
    let (mut seen, mut slow) = (BTreeSet::new(), Vec::new());
    while let Some(path) = waiting.pop_front() {
        let is_file = path.contains("/logs/download") || path.contains("/audit/export");
        if is_file || !seen.insert(appearance::kind(&path)) {
            continue;
        }
        let (mut text, mut took) = (String::new(), Duration::MAX);
        for _ in 0..TIMES {
            let started = Instant::now();
            let call = site.app.call("GET", &path).header("accept", "text/html").header("cookie", &cookie);
            let answer = site.wait(call.send());
            took = took.min(started.elapsed());
            assert_eq!(answer.code(), 200, "{path}");
            text = answer.text();
        }
        let sent = gzip(text.as_bytes()).len();
        println!("{:>8.2} ms {:>7} bytes  {}", took.as_secs_f64() * 1000.0, sent, appearance::kind(&path));
        assert!(sent < LARGEST, "{path} has {sent} bytes, compressed");
        slow.extend(most.filter(|most| took > *most).map(|_| format!("{path}: {took:?}")));
        let links = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let pages = links.filter(|to| to.starts_with("/console/") && !to.starts_with("/console/assets/"));
        waiting.extend(pages.map(|to| to.replace("&#38;", "&")));
    }
    assert!(seen.len() > 35, "{seen:?}");
    assert!(slow.is_empty(), "too slow: {}", slow.join(", "));
}
