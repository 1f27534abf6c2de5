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

/// The endpoints that each verb of a command reaches; `api` reaches those that only programs call.
const REACHED: &[(&str, &str)] = &[
    (
        "",
        "logs GetDeploymentLogs FollowDeploymentLogs, \
         api CountDeploymentLogs SendAgentLogs DecideDeviceSignIn RenewSession ChangePassword DeleteDeclaredSet, \
         deploy CreateDeploy FinalizeDeploy, whoami GetSelfUser, open OpenDeployment, \
         login SignIn StartDeviceSignIn FinishDeviceSignIn, logout SignOut, plan CreatePlan, \
         apply ApplyPlan ListDeclaredSets CreateDeclaredSet GetDeclaredSet UpdateDeclaredSet",
    ),
    (
        "alert",
        "list ListAlerts, create CreateAlert, get GetAlert, update UpdateAlert, delete DeleteAlert, \
         firings ListAlertFirings",
    ),
    ("audit", "export GetOrganizationAuditLogs"),
    (
        "cluster",
        "list ListClusters, create CreateCluster, get GetCluster, update UpdateCluster, \
         delete DeleteCluster, options GetClusterOptions",
    ),
    (
        "deploy",
        "list ListDeploys, get GetDeploy, update UpdateDeploy, rollback DeployRollback, \
         report GetDeployReport, diff ListDeployFiles",
    ),
    (
        "deployment",
        "options GetDeploymentOptions, list ListDeployments, create CreateDeployment, get GetDeployment, \
         update UpdateDeployment, delete DeleteDeployment, hibernate UpdateDeploymentHibernationOverride, \
         end-override DeleteDeploymentHibernationOverride, processes ListDeploymentProcesses",
    ),
    (
        "env",
        "list ListEnvironmentObjects, create CreateEnvironmentObject, get GetEnvironmentObject, \
         update UpdateEnvironmentObject, delete DeleteEnvironmentObject, \
         exclude ExcludeLinkingEnvironmentObject",
    ),
    ("event", "list ListEvents, follow FollowEvents"),
    (
        "invite",
        "create CreateUserInvite, delete DeleteUserInvite, link CreateUserInviteLink, accept AcceptInvite",
    ),
    (
        "ip-range",
        "list ListAllowedIpAddressRanges, \
         create CreateAllowedIpAddressRange BulkCreateAllowedIpAddressRanges, \
         delete DeleteAllowedIpAddressRange BulkDeleteAllowedIpAddressRanges",
    ),
    (
        "operation",
        "list ListOperations, get GetOperation, cancel CancelOperation, force ForceOperation, \
         follow FollowOperation",
    ),
    ("organization", "list ListOrganizations, get GetOrganization, update UpdateOrganization"),
    (
        "role",
        "permissions ListPermissionGroups, templates ListRoleTemplates, list ListRoles, \
         create CreateCustomRole, get GetCustomRole, update UpdateCustomRole, delete DeleteCustomRole",
    ),
    ("session", "list ListSessions, end EndSession EndOtherSessions"),
    (
        "team",
        "list ListTeams, create CreateTeam, get GetTeam, update UpdateTeam UpdateTeamRoles, \
         delete DeleteTeam",
    ),
    ("team member", "list ListTeamMembers, add AddTeamMembers, remove RemoveTeamMember"),
    (
        "token",
        "list ListApiTokens, create CreateApiToken, get GetApiToken, \
         update UpdateApiToken UpdateApiTokenRoles, delete DeleteApiToken, rotate RotateApiToken",
    ),
    (
        "token agent",
        "list ListAgentTokens, create CreateAgentToken, get GetAgentToken, delete DeleteAgentToken",
    ),
    ("user", "list ListUsers, get GetUser, update UpdateUserRoles, teams ListUserTeams"),
    (
        "webhook",
        "list ListWebhooks, create CreateWebhook, get GetWebhook, update UpdateWebhook, \
         delete DeleteWebhook, rotate-secret RotateWebhookSecret, test TestWebhook",
    ),
    ("webhook delivery", "list ListWebhookDeliveries, get GetWebhookDelivery, redeliver RedeliverToWebhook"),
    (
        "workspace",
        "list ListWorkspaces, create CreateWorkspace, get GetWorkspace, update UpdateWorkspace, \
         delete DeleteWorkspace",
    ),
];

#[test]
fn every_endpoint_has_a_command() {
    let commands: Vec<String> =
        all(&Cli::command(), &[]).into_iter().map(|(path, _)| path.join(" ")).collect();
    let verbs = REACHED.iter().flat_map(|(noun, verbs)| verbs.split(", ").map(move |verb| (*noun, verb)));
    let mut listed = Vec::new();
    for (noun, verb) in verbs {
        let mut words = verb.split(' ');
        let command = format!("{noun} {}", words.next().unwrap_or_default());
        let command = command.trim();
        assert!(commands.iter().any(|known| known == command), "there is no podium {command}");
        listed.extend(words);
    }
    let mut known: Vec<&str> = podium_api::ENDPOINTS.iter().map(|endpoint| endpoint.id).collect();
    listed.sort_unstable();
    known.sort_unstable();
    assert_eq!(listed, known, "say in REACHED which command reaches it, or that only `podium api` does");
}
