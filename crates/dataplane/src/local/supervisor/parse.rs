//! The end of a rollout: every DAG is at the new version, and what is broken is known. Also its report.
//!
//! The DAGs of a strict release are parsed before they are live, and what has an import error that the live version
//! does not have does not go live.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use podium_airflow::api::{AirflowApi, KnownDag, KnownError};
use podium_airflow::check::{self, CheckedDags, Compared, ParserAnswer};
use podium_airflow::components::{parser, parser_variables};
use podium_airflow::parsing::{self, Parsed, Parsing, VersionFindings};
use podium_airflow::settings::SettingsContext;
use podium_api::deploy_reports::ReportedChanges;
use podium_domain::Reason;
use podium_domain::deployments::rollout::RolloutStep;
use tokio::time::Instant;

use super::Supervisor;
use super::prepare::Prepared;
use crate::blocking::blocking;
use crate::local::command::OneShotError;
use crate::local::prepare_error::PrepareError;
use crate::local::project::{self, DAGS, dag_files, is_folder};
use crate::local::{code, components};
use crate::{Environment, Line};

/// How long the web server has to say which DAGs it knows.
const LONGEST_LOOK: Duration = Duration::from_secs(20);

/// The name under which a parser is found again.
const PARSER: &str = "check";

/// A version of the DAGs that is going live.
pub(super) struct NewVersion {
    version: Option<String>,
    /// The files that differ from those that ran before, if those are still there.
    files: Option<ReportedChanges>,
    /// The DAGs that Airflow knew before.
    dags_before: Option<BTreeSet<String>>,
    parsing: Option<Parsing>,
    /// What Airflow said last.
    last: Parsed,
    /// When to ask again.
    next_look: Instant,
}

impl Supervisor {
    /// Takes note of what a release changes, while what ran before still serves.
    pub(super) async fn note_changes(&mut self, prepared: &Prepared) {
        let after = prepared.environment.spec.release.dag_version.clone();
        let live = &self.state.live().dag_version;
        let before = match *live == after {
            false => live.clone(),
            true if self.state.are_dags_new => self.state.dags_before.clone(),
            true => return self.new_version = None,
        };
        // An attempt that was interrupted knew what was there before it went live.
        let known = self.new_version.take().filter(|known| known.version == after && *live == after);
        let (old, new) =
            (code::version(&self.place, before.as_deref()), code::version(&self.place, after.as_deref()));
        let is_first = before.is_none();
        // What ran long ago may have been removed; before the first version there were no files.
        let compared = blocking(move || match old.exists() || is_first {
            true => project::changed_files(&old, &new).map(Some),
            false => Ok(None),
        });
        let files = compared.await.unwrap_or_else(|error| {
            tracing::warn!(id = %self.id, %error, "the files of two versions cannot be compared");
            None
        });
        let dags_before = match self.has_answered && known.is_none() {
            true => self.airflow(prepared).await.ok().map(|(dags, _)| dags),
            // Before the first version there were no DAGs.
            false => is_first.then(Vec::new),
        };
        let dags_before = dags_before.map(|dags| dags.into_iter().map(|dag| dag.dag_id).collect());
        let dags_before = known.map_or(dags_before, |known| known.dags_before);
        self.new_version = Some(NewVersion {
            version: after,
            files,
            dags_before,
            parsing: None,
            last: Parsed::default(),
            next_look: Instant::now(),
        });
    }

    /// Whether Airflow has read the version that went live; asks it, from time to time.
    pub(super) async fn is_parsed(&mut self, prepared: &Prepared) -> bool {
        let Some(version) = self.new_version.as_ref() else { return true };
        if version.last.is_complete {
            return true;
        }
        if version.next_look > Instant::now() {
            return false;
        }
        let looked = self.look_at_dags(prepared).await;
        let pause = self.timing().startup_poll;
        let Some(version) = self.new_version.as_mut() else { return true };
        match looked {
            Ok(parsed) => {
                // Thousands of DAGs are not asked for every second.
                let many = u32::try_from(parsed.dags.len() / 100).unwrap_or(u32::MAX);
                version.next_look = Instant::now() + pause.saturating_mul(many.saturating_add(1));
                self.view.step(RolloutStep::Parse, Some(parsed.done), None);
                version.last = parsed;
            }
            Err(why) => {
                tracing::debug!(id = %self.id, %why, "Airflow does not say which DAGs it has read");
                version.next_look = Instant::now() + pause;
                self.view.step(RolloutStep::Parse, None, None);
            }
        }
        version.last.is_complete
    }

    async fn look_at_dags(&mut self, prepared: &Prepared) -> Result<Parsed, Reason> {
        let unreadable = |error: std::io::Error| Reason::of_io("the DAGs cannot be read", &error);
        let place = self.place.clone();
        let live_at = blocking(move || code::live_since(&place)).await.map_err(unreadable)?;
        let parser = self.processes.get(parser(prepared.major));
        let live_at = parser.map_or(live_at, |kept| kept.started_at.max(live_at));
        let (dags, errors) = self.airflow(prepared).await?;
        let now = (self.plane.services.clock)();
        let (place, settles_after) = (self.place.clone(), self.timing().parse_settles);
        let Some(version) = self.new_version.as_mut() else { return Ok(Parsed::default()) };
        if version.parsing.is_none() {
            let folder = code::dags(&place).join("current");
            let files = blocking(move || project::dag_files(&folder)).await.map_err(unreadable)?;
            let name = prepared.environment.spec.release.dag_version.as_deref().unwrap_or_default();
            version.parsing = Some(Parsing::new(code::DAG_FOLDER, name, files, settles_after));
        }
        let parsing = version.parsing.as_mut();
        Ok(parsing.map(|parsing| parsing.look(&dags, &errors, live_at, now)).unwrap_or_default())
    }

    async fn airflow(&self, prepared: &Prepared) -> Result<(Vec<KnownDag>, Vec<KnownError>), Reason> {
        let base = self.base_url(&prepared.environment.namespace);
        let key = self.keys().token_signing;
        let api = AirflowApi {
            client: &self.plane.web_client,
            base: &base,
            line: if prepared.major < 3 { Line::Two } else { Line::Three },
            key: &key,
            now: (self.plane.services.clock)(),
        };
        // The supervisor does nothing else meanwhile, so that a slow web server must not hold it for long.
        let asked = async { Ok((api.dags().await?, api.import_errors().await?)) };
        let answered = tokio::time::timeout(LONGEST_LOOK, asked).await;
        answered.unwrap_or_else(|_| Err("it does not answer in time".into()))
    }

    /// Forgets what is known of a version that another release has taken the place of.
    pub(super) fn forget_other_version(&mut self, environment: &Environment) {
        self.new_version.take_if(|known| known.version != environment.spec.release.dag_version);
    }

    /// Publishes the findings about a rollout that has ended.
    pub(super) fn publish_report(&mut self, generation: i64) {
        let version = self.new_version.take().map(|version| VersionFindings {
            files: version.files,
            dags_before: version.dags_before,
            parsed: version.parsing.is_some().then_some(version.last),
        });
        let report = parsing::of_rollout(self.view.end_steps(), &self.import_errors, version);
        self.view.lock().report = Some((generation, report));
    }

    /// Whether the DAGs of a release have to be checked: it is strict, and not live already.
    pub(super) fn must_check(&self, environment: &Environment) -> bool {
        let live = self.state.live();
        let wanted = environment.running();
        environment.spec.release.is_strict
            && wanted.dag_version.is_some()
            && (live.dag_version != wanted.dag_version || live.runtime_version != wanted.runtime_version)
    }

    /// Refuses a release with an import error that the live version does not have.
    pub(super) async fn check_strictly(&mut self, context: &SettingsContext<'_>) -> Result<(), PrepareError> {
        self.view.wait_for("dags", "checking that every DAG can be imported");
        self.view.step(RolloutStep::Check, None, None);
        let version = context.environment.spec.release.dag_version.clone();
        let after = self.parse_aside(context, version.as_deref()).await?;
        if after.errors.is_empty() {
            return Ok(());
        }
        let live = self.state.live().clone();
        if live.dag_version.is_none() {
            return self.refuse_new_errors(check::compared(&CheckedDags::default(), after));
        }
        // In the same way, so that what cannot be parsed aside is not held against the new version.
        let (plane, project) = (Arc::clone(&self.plane), self.state.project.clone());
        let host = plane.host().await.map_err(|why| ("runtime", why))?;
        let runtime = live.runtime_version.as_deref().unwrap_or(&context.environment.spec.runtime_version);
        let runtime = plane.runtimes.ensure(host, runtime, |_| {}).await.map_err(|why| ("runtime", why))?;
        let files = components::files(&self.place, &runtime, &plane.support);
        let context = SettingsContext {
            version: runtime.version,
            files: &files,
            project: project.as_ref(),
            ..context.clone()
        };
        let before = match self.parse_aside(&context, live.dag_version.as_deref()).await {
            Ok(before) => before,
            // Nothing is known to have worked.
            Err(PrepareError::Refused(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        self.refuse_new_errors(check::compared(&before, after))
    }

    /// Refuses a release with errors that the live version does not have, and reports them before the others.
    fn refuse_new_errors(&mut self, found: Compared) -> Result<(), PrepareError> {
        let refusal = check::refusal(&found.new);
        self.import_errors = [found.new, found.known].concat();
        refusal.map_or(Ok(()), |why| Err(PrepareError::Refused(why)))
    }

    async fn parse_aside(
        &mut self,
        context: &SettingsContext<'_>,
        version: Option<&str>,
    ) -> Result<CheckedDags, PrepareError> {
        let root = code::version(&self.place, version);
        let unreadable = |error| ("dags", Reason::of_io("the DAGs cannot be read", &error));
        let at = root.clone();
        let (folder, files) = blocking(move || {
            let folder = if is_folder(&at.join(DAGS)) { at.join(DAGS) } else { at };
            dag_files(&folder).map(|files| (folder, files))
        })
        .await
        .map_err(unreadable)?;
        let variables = parser_variables(context, &root, &folder);
        let program = self.one_shot(PARSER, check::arguments(context.files, &folder), variables).await;
        // Found again and ended if the control plane dies meanwhile.
        self.state.starting = Some(PARSER.into());
        self.save_state().await;
        let parsed = program.answer::<ParserAnswer>(check::LONGEST, check::MOST_BYTES).await;
        self.state.starting = None;
        self.save_state().await;
        match parsed {
            Ok(answer) => Ok(CheckedDags { files, ..answer.checked(code::DAG_FOLDER) }),
            Err(error @ OneShotError::NotRun(_)) => {
                Err(("dags", Reason::new("the DAGs cannot be parsed now", error)).into())
            }
            Err(error) => {
                let why = match error {
                    OneShotError::TooLong(_) => "the deploy is strict, and parsing its DAGs took too long",
                    _ => "the deploy is strict, and its DAGs ended the process that parsed them",
                };
                Err(PrepareError::Refused(Reason::new(why, error)))
            }
        }
    }
}
