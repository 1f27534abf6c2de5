//! What Airflow answers, of either line, as far as the page shows it.

use std::fmt;
use std::marker::PhantomData;

use podium_api::{Timestamp, schedules};
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The most of anything that is kept of an answer: no page asks for more.
const MOST: usize = 100;

/// Reads the first items of a list, and no more into memory than these.
fn first<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    struct First<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for First<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
            let mut kept = Vec::new();
            while kept.len() < MOST {
                match items.next_element()? {
                    Some(item) => kept.push(item),
                    None => return Ok(kept),
                }
            }
            while items.next_element::<IgnoredAny>()?.is_some() {}
            Ok(kept)
        }
    }
    deserializer.deserialize_seq(First(PhantomData))
}

/// A page of DAGs.
#[derive(Deserialize)]
pub(super) struct Dags {
    #[serde(deserialize_with = "first")]
    pub(super) dags: Vec<Dag>,
    pub(super) total_entries: u64,
}

#[derive(Deserialize)]
pub(super) struct Dag {
    pub(super) dag_id: String,
    pub(super) description: Option<String>,
    pub(super) is_paused: Option<bool>,
    pub(super) has_import_errors: Option<bool>,
    /// A name such as `@daily`, of Airflow 3.
    timetable_summary: Option<String>,
    /// The same in words.
    timetable_description: Option<String>,
    /// The schedule of Airflow 2: an expression, or a time span.
    schedule_interval: Option<serde_json::Value>,
    next_dagrun_run_after: Option<String>,
    /// The same of Airflow 2.
    next_dagrun_create_after: Option<String>,
    #[serde(default, deserialize_with = "first")]
    pub(super) owners: Vec<String>,
    #[serde(default, deserialize_with = "first")]
    pub(super) tags: Vec<Tag>,
}

#[derive(Deserialize)]
pub(super) struct Tag {
    pub(super) name: String,
}

#[derive(Deserialize)]
pub(super) struct Runs {
    #[serde(deserialize_with = "first")]
    pub(super) dag_runs: Vec<Run>,
    pub(super) total_entries: u64,
}

#[derive(Deserialize)]
pub(super) struct Run {
    pub(super) dag_id: String,
    pub(super) dag_run_id: String,
    pub(super) state: Option<String>,
    run_after: Option<String>,
    logical_date: Option<String>,
    start_date: Option<String>,
    end_date: Option<String>,
}

/// A page of files that could not be imported.
#[derive(Deserialize)]
pub(super) struct ImportErrors {
    #[serde(deserialize_with = "first")]
    pub(super) import_errors: Vec<ImportError>,
    pub(super) total_entries: u64,
}

/// A file that could not be imported.
#[derive(Deserialize)]
pub(super) struct ImportError {
    pub(super) filename: Option<String>,
    pub(super) stack_trace: Option<String>,
    timestamp: Option<String>,
}

fn time(text: Option<&String>) -> Option<Timestamp> {
    text.and_then(|text| Timestamp::parse(text))
}

impl Dag {
    /// When it runs, in words where there are some.
    pub(super) fn schedule(&self) -> Option<String> {
        schedules::in_words(
            self.timetable_description.as_deref(),
            self.timetable_summary.as_deref(),
            self.schedule_interval.as_ref(),
        )
    }

    /// When its next run begins.
    pub(super) fn next(&self) -> Option<Timestamp> {
        time(self.next_dagrun_run_after.as_ref().or(self.next_dagrun_create_after.as_ref()))
    }
}

impl Run {
    /// When it began, or was to begin.
    pub(super) fn began(&self) -> Option<Timestamp> {
        time(self.start_date.as_ref())
            .or_else(|| time(self.run_after.as_ref().or(self.logical_date.as_ref())))
    }

    /// From when to when it ran, if it has ended.
    pub(super) fn span(&self) -> Option<(Timestamp, Timestamp)> {
        time(self.start_date.as_ref()).zip(time(self.end_date.as_ref()))
    }
}

impl ImportError {
    pub(super) fn found(&self) -> Option<Timestamp> {
        time(self.timestamp.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_kept_of_an_answer_than_a_page_shows() {
        let many =
            format!(r#"{{"dags":[{}{{"dag_id":""}}],"total_entries":1}}"#, r#"{"dag_id":""},"#.repeat(5000));
        assert_eq!(serde_json::from_str::<Dags>(&many).unwrap().dags.len(), MOST);
        let broken = many.replace(r#""total"#, r#"nonsense"#);
        assert!(serde_json::from_str::<Dags>(&broken).is_err(), "the rest is read as strictly");
    }

    #[test]
    fn both_lines_of_airflow_are_read() {
        let three = r#"{"dags":[{"dag_id":"load","is_paused":false,"timetable_summary":"@daily","timetable_description":"At 00:00",
            "next_dagrun_run_after":"2027-01-16T00:00:00Z","owners":["ada"],"tags":[{"name":"etl","dag_id":"load"}]}],"total_entries":1}"#;
        let two = r#"{"dags":[{"dag_id":"load","is_paused":true,"schedule_interval":{"__type":"CronExpression","value":"@daily"},
            "timetable_description":"At 00:00","next_dagrun_create_after":"2027-01-16T00:00:00+00:00","owners":["ada"],"tags":[]}],"total_entries":1}"#;
        for text in [three, two] {
            let read: Dags = serde_json::from_str(text).unwrap();
            let dag = &read.dags[0];
            assert_eq!(
                (dag.schedule().as_deref(), dag.next()),
                (Some("At 00:00"), Timestamp::parse("2027-01-16T00:00:00Z"))
            );
        }
        let span = r#"{"dags":[{"dag_id":"load","timetable_summary":"0:01:00","timetable_description":""}],"total_entries":1}"#;
        let read: Dags = serde_json::from_str(span).unwrap();
        assert_eq!(read.dags[0].schedule().as_deref(), Some("every minute"));
        let run = r#"{"dag_runs":[{"dag_id":"load","dag_run_id":"r","state":"success","logical_date":null,"run_after":"2027-01-15T00:00:00Z",
            "start_date":"2027-01-15T00:00:01.5Z","end_date":"2027-01-15T00:01:01.500000+00:00"}],"total_entries":1}"#;
        let runs: Runs = serde_json::from_str(run).unwrap();
        let (from, to) = runs.dag_runs[0].span().unwrap();
        assert_eq!((to.millis() - from.millis(), runs.dag_runs[0].began()), (60_000, Some(from)));
    }
}
