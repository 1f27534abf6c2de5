//! Strict releases: their DAGs are parsed before they are live, and what has an import error that the live version does
//! not have does not go live.

use std::sync::Arc;

use podium_airflow::check::{self, CheckedDags, Compared, ParserAnswer};
use podium_airflow::components::parser_variables;
use podium_airflow::settings::SettingsContext;
use podium_domain::Reason;
use podium_domain::deployments::rollout::RolloutStep;

use super::Supervisor;
use crate::Environment;
use crate::blocking::blocking;
use crate::local::code;
use crate::local::components;
use crate::local::one_shot::OneShotError;
use crate::local::prepare_error::PrepareError;
use crate::local::project::{DAGS, dag_files, is_folder};

/// The name under which a parser is found again.
const PARSER: &str = "check";

impl Supervisor {
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

    /// Parses an unpacked version.
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
