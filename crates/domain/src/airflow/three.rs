//! Apache Airflow 3: its public API (v2), the requests of its pages, and the pages themselves.
//!
//! Where Airflow can do something that no permission names, the nearest one that includes it is required: asset events
//! start runs, a changed XCom or state changes a task instance. Bulk calls carry ids in their bodies, which are not
//! read here: they require every permission that they could use, on the whole deployment.

use super::rules::{Rule, rules};

pub(super) const RULES: &[Rule] = rules! {
    GET    "/api/v2/version";
    GET    "/api/v2/monitor/health";

    GET    "/api/v2/assets"                                       "datasets.get";
    GET    "/api/v2/assets/aliases"                               "datasets.get";
    GET    "/api/v2/assets/aliases/{alias}"                       "datasets.get";
    GET    "/api/v2/assets/events"                                "datasets.get";
    POST   "/api/v2/assets/events"                                "datasets.get" "dagRun.create";
    GET    "/api/v2/assets/{asset}"                               "datasets.get";
    POST   "/api/v2/assets/{asset}/materialize"                   "datasets.get" "dagRun.create";
    GET    "/api/v2/assets/{asset}/queuedEvents"                  "datasets.get";
    DELETE "/api/v2/assets/{asset}/queuedEvents"                  "datasets.get" "dag.update";
    GET    "/api/v2/assets/{asset}/state-store"                   "datasets.get";
    DELETE "/api/v2/assets/{asset}/state-store"                   "datasets.get" "dag.update";
    GET    "/api/v2/assets/{asset}/state-store/{key}"             "datasets.get";
    PUT    "/api/v2/assets/{asset}/state-store/{key}"             "datasets.get" "dag.update";
    DELETE "/api/v2/assets/{asset}/state-store/{key}"             "datasets.get" "dag.update";

    GET    "/api/v2/backfills"                                    "dagRun.get" by dag_id;
    POST   "/api/v2/backfills"                                    "dagRun.create";
    POST   "/api/v2/backfills/dry_run"                            "dagRun.create";
    GET    "/api/v2/backfills/{backfill}"                         "dagRun.get";
    PUT    "/api/v2/backfills/{backfill}/pause"                   "dagRun.update";
    PUT    "/api/v2/backfills/{backfill}/unpause"                 "dagRun.update";
    PUT    "/api/v2/backfills/{backfill}/cancel"                  "dagRun.update";

    GET    "/api/v2/config"                                       "config.get";
    GET    "/api/v2/config/section/{section}/option/{option}"     "config.get";

    GET    "/api/v2/connections"                                  "connection.get";
    POST   "/api/v2/connections"                                  "connection.create";
    PATCH  "/api/v2/connections"                  "connection.create" "connection.update" "connection.delete";
    GET    "/api/v2/connections/{connection}"                     "connection.get";
    PATCH  "/api/v2/connections/{connection}"                     "connection.update";
    DELETE "/api/v2/connections/{connection}"                     "connection.delete";
    GET    "/api/v2/connections/enqueue-test"                     "connection.get";
    POST   "/api/v2/connections/enqueue-test"                     "connection.create";
    POST   "/api/v2/connections/test"                             "connection.create";
    POST   "/api/v2/connections/defaults"                         "connection.create";

    GET    "/api/v2/dags"                                         "dag.get" by tags;
    PATCH  "/api/v2/dags"                                         "dag.update";
    GET    "/api/v2/dags/{dag}"                                   "dag.get";
    PATCH  "/api/v2/dags/{dag}"                                   "dag.update";
    DELETE "/api/v2/dags/{dag}"                                   "dag.delete";
    GET    "/api/v2/dags/{dag}/details"                           "dag.get";
    POST   "/api/v2/dags/{dag}/favorite"                          "dag.get";
    POST   "/api/v2/dags/{dag}/unfavorite"                        "dag.get";
    GET    "/api/v2/dags/{dag}/tasks"                             "dag.get";
    GET    "/api/v2/dags/{dag}/tasks/{task}"                      "dag.get";
    GET    "/api/v2/dags/{dag}/dagVersions"                       "dag.get";
    GET    "/api/v2/dags/{dag}/dagVersions/{version}"             "dag.get";
    GET    "/api/v2/dags/{dag}/assets/queuedEvents"               "dag.get";
    DELETE "/api/v2/dags/{dag}/assets/queuedEvents"               "dag.update";
    GET    "/api/v2/dags/{dag}/assets/{asset}/queuedEvents"       "dag.get";
    DELETE "/api/v2/dags/{dag}/assets/{asset}/queuedEvents"       "dag.update";
    GET    "/api/v2/dagSources/{dag}"                             "dagCode.get";
    GET    "/api/v2/dagStats"                                     "dagRun.get" by dag_ids;
    GET    "/api/v2/dagTags"                                      "dag.get";
    GET    "/api/v2/dagWarnings"                                  "dag.get" by dag_id;
    PUT    "/api/v2/parseDagFile/{token}"                         "dag.update";

    GET    "/api/v2/dags/{dag}/dagRuns"                           "dagRun.get";
    POST   "/api/v2/dags/{dag}/dagRuns"                           "dagRun.create";
    PATCH  "/api/v2/dags/{any}/dagRuns"                           "dagRun.update" "dagRun.delete";
    POST   "/api/v2/dags/{any}/dagRuns/list"                      "dagRun.get";
    POST   "/api/v2/dags/{dag}/clearDagRuns"                      "dagRun.update" "taskInstance.update";
    POST   "/api/v2/dags/{dag}/clearPartitions"                   "dagRun.update" "taskInstance.update";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}"                     "dagRun.get";
    PATCH  "/api/v2/dags/{dag}/dagRuns/{run}"                     "dagRun.update";
    DELETE "/api/v2/dags/{dag}/dagRuns/{run}"                     "dagRun.delete";
    POST   "/api/v2/dags/{dag}/dagRuns/{run}/clear"               "dagRun.update" "taskInstance.update";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/wait"                "dagRun.get" "xcom.get";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/upstreamAssetEvents" "dagRun.get";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/hitlDetails"         "taskInstance.get";

    POST   "/api/v2/dags/{dag}/clearTaskInstances"                                      "taskInstance.update";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances"                             "taskInstance.get";
    PATCH  "/api/v2/dags/{any}/dagRuns/{run}/taskInstances"       "taskInstance.update" "taskInstance.delete";
    POST   "/api/v2/dags/{any}/dagRuns/{run}/taskInstances/list"                        "taskInstance.get";
    PATCH  "/api/v2/dags/{dag}/dagRuns/{run}/taskGroupInstances/{group}"                "taskInstance.update";
    PATCH  "/api/v2/dags/{dag}/dagRuns/{run}/taskGroupInstances/{group}/dry_run"        "taskInstance.update";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}"                      "taskInstance.get";
    PATCH  "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}"                      "taskInstance.update";
    DELETE "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}"                      "taskInstance.delete";
    PATCH  "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/dry_run"              "taskInstance.update";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/listMapped"           "taskInstance.get";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/dependencies"         "taskInstance.get";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/links"                "taskInstance.get";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/tries"                "taskInstance.get";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/tries/{try}"          "taskInstance.get";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/logs/{try}"           "taskLog.get";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/externalLogUrl/{try}" "taskLog.get";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/{index}"              "taskInstance.get";
    PATCH  "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/{index}"              "taskInstance.update";
    PATCH  "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/{index}/dry_run"      "taskInstance.update";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/{index}/dependencies" "taskInstance.get";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/{index}/tries"        "taskInstance.get";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/{index}/tries/{try}"  "taskInstance.get";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/{index}/hitlDetails"  "taskInstance.get";
    PATCH  "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/{index}/hitlDetails"  "taskInstance.update";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/{index}/hitlDetails/tries/{try}" "taskInstance.get";

    GET    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/state-store"          "taskInstance.get";
    DELETE "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/state-store"          "taskInstance.update";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/state-store/{key}"    "taskInstance.get";
    PUT    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/state-store/{key}"    "taskInstance.update";
    PATCH  "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/state-store/{key}"    "taskInstance.update";
    DELETE "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/state-store/{key}"    "taskInstance.update";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries"          "xcom.get";
    POST   "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries"          "xcom.get" "taskInstance.update";
    GET    "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/{key}"    "xcom.get";
    PATCH  "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/{key}"    "xcom.get" "taskInstance.update";
    DELETE "/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/{key}"    "xcom.delete";

    GET    "/api/v2/eventLogs"                                    "auditLog.get" by dag_id;
    GET    "/api/v2/eventLogs/{event}"                            "auditLog.get";
    GET    "/api/v2/importErrors"                                 "importError.get";
    GET    "/api/v2/importErrors/{error}"                         "importError.get";
    GET    "/api/v2/jobs"                                         "job.get";
    GET    "/api/v2/plugins"                                      "plugin.get";
    GET    "/api/v2/plugins/importErrors"                         "plugin.get";
    GET    "/api/v2/providers"                                    "provider.get";

    GET    "/api/v2/pools"                                        "pool.get";
    POST   "/api/v2/pools"                                        "pool.create";
    PATCH  "/api/v2/pools"                                        "pool.create" "pool.update" "pool.delete";
    GET    "/api/v2/pools/{*}"                                    "pool.get";
    PATCH  "/api/v2/pools/{*}"                                    "pool.update";
    DELETE "/api/v2/pools/{*}"                                    "pool.delete";

    GET    "/api/v2/variables"                                    "variable.get";
    POST   "/api/v2/variables"                                    "variable.create";
    PATCH  "/api/v2/variables"                    "variable.create" "variable.update" "variable.delete";
    GET    "/api/v2/variables/{*}"                                "variable.get";
    PATCH  "/api/v2/variables/{*}"                                "variable.update";
    DELETE "/api/v2/variables/{*}"                                "variable.delete";

    GET    "/ui/auth/me"                                          "website.get" by shell;
    GET    "/ui/auth/menus"                                       "website.get" by shell;
    GET    "/ui/config"                                           "website.get" by shell;
    GET    "/ui/teams"                                            "website.get" by shell;
    GET    "/ui/connections/hook_meta"                            "connection.get";
    GET    "/ui/backfills"                                        "dagRun.get" by dag_id;
    GET    "/ui/calendar/{dag}"                                   "dagRun.get";
    GET    "/ui/dags"                                             "dag.get" by dag_ids_or_tags;
    GET    "/ui/dags/{dag}/latest_run"                            "dagRun.get";
    GET    "/ui/dags/{dag}/deadlineAlerts"                        "dag.get";
    GET    "/ui/dags/{dag}/dagRuns/{run}/deadlines"               "dagRun.get";
    GET    "/ui/dags/{dag}/dagRuns/{run}/stats"                   "dagRun.get";
    GET    "/ui/dashboard/dag_stats"                              "clusterActivity.get";
    GET    "/ui/dashboard/historical_metrics_data"                "clusterActivity.get";
    GET    "/ui/dependencies"                                     "dagDependencies.get";
    GET    "/ui/gantt/{dag}/{run}"                                "taskInstance.get";
    GET    "/ui/grid/runs/{dag}"                                  "dagRun.get";
    GET    "/ui/grid/structure/{dag}"                             "dag.get";
    GET    "/ui/grid/ti_summaries/{dag}"                          "taskInstance.get";
    GET    "/ui/grid/ti_summaries/{dag}/{run}"                    "taskInstance.get";
    GET    "/ui/next_run_assets/{dag}"                            "dag.get";
    GET    "/ui/partitioned_dag_runs"                             "dagRun.get";
    GET    "/ui/pending_partitioned_dag_run/{dag}"                "dagRun.get";
    GET    "/ui/pending_partitioned_dag_run/{dag}/{key}"          "dagRun.get";
    GET    "/ui/structure/structure_data"                         "dag.get" by dag_id;

    GET    "/"                                                    "website.get" by shell;
    GET    "/static/{*}"                                          "website.get" by shell;
    GET    "/assets"                                              "website.get" by shell;
    GET    "/assets/{*}"                                          "website.get" by shell;
    GET    "/asset_events"                                        "website.get" by shell;
    GET    "/backfills"                                           "website.get" by shell;
    GET    "/configs"                                             "website.get" by shell;
    GET    "/connections"                                         "website.get" by shell;
    GET    "/dag_runs"                                            "website.get" by shell;
    GET    "/dags"                                                "website.get" by shell;
    GET    "/dags/{*}"                                            "website.get" by shell;
    GET    "/deadlines"                                           "website.get" by shell;
    GET    "/events"                                              "website.get" by shell;
    GET    "/jobs"                                                "website.get" by shell;
    GET    "/plugin/{*}"                                          "website.get" "customMenu.get";
    GET    "/plugins"                                             "website.get" by shell;
    GET    "/pools"                                               "website.get" by shell;
    GET    "/providers"                                           "website.get" by shell;
    GET    "/required_actions"                                    "website.get" by shell;
    GET    "/task_instances"                                      "website.get" by shell;
    GET    "/variables"                                           "website.get" by shell;
    GET    "/xcoms"                                               "website.get" by shell;

    GET    "/docs"                                                "docs.get";
    GET    "/redoc"                                               "docs.get";
    GET    "/openapi.json"                                        "docs.get";
};
