//! The help texts: every example in them can be typed, and every endpoint of the API has a command.

use clap::{Command, CommandFactory as _, Parser as _};

use crate::Cli;

/// Every command, with the words that call it.
fn all(command: &Command, words: &[String]) -> Vec<(Vec<String>, Command)> {
    let mut found = vec![(words.to_vec(), command.clone())];
    for sub in command.get_subcommands() {
        found.extend(all(sub, &[words, &[sub.get_name().to_owned()]].concat()));
    }
    found
}

/// The words of a line as a shell sees them, up to what the shell itself does.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if open == c => quote = None,
            (None, '|' | '<' | '>') => break,
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The examples in a text: what follows `podium`, with variables in front of it left out.
fn examples(text: &str) -> Vec<Vec<String>> {
    let typed = |line: &str| {
        let line = line.trim().trim_start_matches("Example: ");
        let start = if line.starts_with("podium ") { 0 } else { line.find(" podium ")? + 1 };
        let is_variable = line[..start].split_whitespace().all(|word| word.contains('='));
        is_variable.then(|| words(&line[start..]))
    };
    text.lines().filter_map(typed).collect()
}

#[test]
fn every_example_can_be_typed() {
    let mut count = 0;
    for (path, command) in all(&Cli::command(), &[]) {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for example in examples(&text) {
            count += 1;
            if let Err(error) = Cli::try_parse_from(&example) {
                panic!("podium {}: {example:?}: {error}", path.join(" "));
            }
        }
    }
    assert!(count > 80, "{count}");
}

#[test]
fn every_command_that_is_shown_says_how_it_is_used() {
    for (path, command) in all(&Cli::command(), &[]).into_iter().filter(|(_, command)| !command.is_hide_set())
    {
        assert!(command.get_about().is_some(), "podium {}", path.join(" "));
        let has_examples = path.len() != 1 || command.get_after_help().is_some() || command.has_subcommands();
        assert!(has_examples, "podium {} has no example", path.join(" "));
    }
}

#[test]
fn the_parser_is_consistent() {
    Cli::command().debug_assert();
}

/// The command that reaches each endpoint; `api` where only `podium api` does.
const REACHED: &[(&str, &str)] = &[
    ("ListPermissionGroups", "role permissions"),
    ("ListOrganizations", "organization list"),
    ("GetOrganization", "organization get"),
    ("UpdateOrganization", "organization update"),
    ("GetOrganizationAuditLogs", "audit export"),
    ("ListAllowedIpAddressRanges", "ip-range list"),
    ("CreateAllowedIpAddressRange", "ip-range create"),
    ("DeleteAllowedIpAddressRange", "ip-range delete"),
    ("BulkCreateAllowedIpAddressRanges", "ip-range create"),
    ("BulkDeleteAllowedIpAddressRanges", "ip-range delete"),
    ("ListClusters", "cluster list"),
    ("CreateCluster", "cluster create"),
    ("GetCluster", "cluster get"),
    ("UpdateCluster", "cluster update"),
    ("DeleteCluster", "cluster delete"),
    ("GetDeploymentLogs", "logs"),
    ("FollowDeploymentLogs", "logs"),
    ("CountDeploymentLogs", "api"),
    ("ListEnvironmentObjects", "env list"),
    ("CreateEnvironmentObject", "env create"),
    ("GetEnvironmentObject", "env get"),
    ("UpdateEnvironmentObject", "env update"),
    ("DeleteEnvironmentObject", "env delete"),
    ("ExcludeLinkingEnvironmentObject", "env exclude"),
    ("ListDeploys", "deploy list"),
    ("CreateDeploy", "deploy"),
    ("GetDeploy", "deploy get"),
    ("UpdateDeploy", "deploy update"),
    ("FinalizeDeploy", "deploy"),
    ("DeployRollback", "deploy rollback"),
    ("CreateUserInvite", "invite create"),
    ("DeleteUserInvite", "invite delete"),
    ("CreateUserInviteLink", "invite link"),
    ("GetClusterOptions", "cluster options"),
    ("GetDeploymentOptions", "deployment options"),
    ("ListRoleTemplates", "role templates"),
    ("ListRoles", "role list"),
    ("CreateCustomRole", "role create"),
    ("GetCustomRole", "role get"),
    ("UpdateCustomRole", "role update"),
    ("DeleteCustomRole", "role delete"),
    ("ListTeams", "team list"),
    ("CreateTeam", "team create"),
    ("GetTeam", "team get"),
    ("UpdateTeam", "team update"),
    ("DeleteTeam", "team delete"),
    ("ListTeamMembers", "team member list"),
    ("AddTeamMembers", "team member add"),
    ("RemoveTeamMember", "team member remove"),
    ("UpdateTeamRoles", "team update"),
    ("ListApiTokens", "token list"),
    ("CreateApiToken", "token create"),
    ("GetApiToken", "token get"),
    ("UpdateApiToken", "token update"),
    ("DeleteApiToken", "token delete"),
    ("UpdateApiTokenRoles", "token update"),
    ("RotateApiToken", "token rotate"),
    ("ListUsers", "user list"),
    ("GetUser", "user get"),
    ("UpdateUserRoles", "user update"),
    ("ListUserTeams", "user teams"),
    ("GetSelfUser", "whoami"),
    ("ListWorkspaces", "workspace list"),
    ("CreateWorkspace", "workspace create"),
    ("GetWorkspace", "workspace get"),
    ("UpdateWorkspace", "workspace update"),
    ("DeleteWorkspace", "workspace delete"),
    ("ListDeployments", "deployment list"),
    ("CreateDeployment", "deployment create"),
    ("GetDeployment", "deployment get"),
    ("UpdateDeployment", "deployment update"),
    ("DeleteDeployment", "deployment delete"),
    ("UpdateDeploymentHibernationOverride", "deployment hibernate"),
    ("DeleteDeploymentHibernationOverride", "deployment end-override"),
    ("OpenDeployment", "open"),
    ("ListAgentTokens", "token agent list"),
    ("CreateAgentToken", "token agent create"),
    ("GetAgentToken", "token agent get"),
    ("DeleteAgentToken", "token agent delete"),
    ("SendAgentLogs", "api"),
    ("AcceptInvite", "invite accept"),
    ("SignIn", "login"),
    ("StartDeviceSignIn", "login"),
    ("FinishDeviceSignIn", "login"),
    ("DecideDeviceSignIn", "api"),
    ("RenewSession", "api"),
    ("SignOut", "logout"),
    ("ListSessions", "session list"),
    ("EndSession", "session end"),
    ("EndOtherSessions", "session end"),
    ("ChangePassword", "api"),
    ("ListOperations", "operation list"),
    ("GetOperation", "operation get"),
    ("CancelOperation", "operation cancel"),
    ("ForceOperation", "operation force"),
    ("FollowOperation", "operation follow"),
    ("ListEvents", "event list"),
    ("FollowEvents", "event follow"),
    ("GetDeployReport", "deploy report"),
    ("ListDeployFiles", "deploy diff"),
    ("ListDeploymentProcesses", "deployment processes"),
    ("ListAlerts", "alert list"),
    ("CreateAlert", "alert create"),
    ("GetAlert", "alert get"),
    ("UpdateAlert", "alert update"),
    ("DeleteAlert", "alert delete"),
    ("ListAlertFirings", "alert firings"),
    ("ListWebhooks", "webhook list"),
    ("CreateWebhook", "webhook create"),
    ("GetWebhook", "webhook get"),
    ("UpdateWebhook", "webhook update"),
    ("DeleteWebhook", "webhook delete"),
    ("RotateWebhookSecret", "webhook rotate-secret"),
    ("TestWebhook", "webhook test"),
    ("ListWebhookDeliveries", "webhook delivery list"),
    ("GetWebhookDelivery", "webhook delivery get"),
    ("RedeliverToWebhook", "webhook delivery redeliver"),
    ("CreatePlan", "plan"),
    ("ApplyPlan", "apply"),
    ("ListDeclaredSets", "apply"),
    ("CreateDeclaredSet", "apply"),
    ("GetDeclaredSet", "apply"),
    ("UpdateDeclaredSet", "apply"),
    ("DeleteDeclaredSet", "api"),
];

#[test]
fn every_endpoint_has_a_command() {
    let commands: Vec<String> =
        all(&Cli::command(), &[]).into_iter().map(|(path, _)| path.join(" ")).collect();
    let mut listed: Vec<&str> = REACHED.iter().map(|(id, _)| *id).collect();
    let mut known: Vec<&str> = podium_api::ENDPOINTS.iter().map(|endpoint| endpoint.id).collect();
    listed.sort_unstable();
    known.sort_unstable();
    assert_eq!(listed, known, "say in REACHED which command reaches it, or that only `podium api` does");
    for (id, command) in REACHED {
        assert!(commands.iter().any(|known| known == command), "{id}: there is no podium {command}");
    }
}
