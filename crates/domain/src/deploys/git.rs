//! Where the code of a deploy came from: a provider that is known, or any other repository.

use podium_api::deploys::{CreateDeployGitRequest, DeployGit};
use podium_api::enums::GitProvider;

use crate::refusal::Fields;

/// Checks what a caller says of its code.
pub(super) fn git(fields: &mut Fields, asked: &CreateDeployGitRequest) -> DeployGit {
    let given = |text: &Option<String>| {
        text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let git = DeployGit {
        provider: asked.provider,
        commit_sha: asked.commit_sha.trim().to_owned(),
        account: given(&asked.account),
        repo: given(&asked.repo),
        branch: given(&asked.branch),
        path: given(&asked.path),
        remote_url: given(&asked.remote_url),
        commit_url: given(&asked.commit_url),
        before_commit_sha: given(&asked.before_commit_sha),
        author_name: given(&asked.author_name),
        author_username: given(&asked.author_username),
        author_url: given(&asked.author_url),
    };
    if git.commit_sha.is_empty() {
        fields.push("git.commitSha", "required", "must not be blank");
    }
    let (named, other) = ([("account", &git.account), ("repo", &git.repo)], [("remoteUrl", &git.remote_url)]);
    let (required, empty): (&[_], &[_]) = match git.provider {
        GitProvider::Hosted => (&named, &other),
        GitProvider::Generic => (&other, &named),
    };
    for (name, _) in required.iter().filter(|(_, value)| value.is_none()) {
        fields.push(
            format!("git.{name}"),
            "required",
            format!("is required where the provider is {}", git.provider),
        );
    }
    for (name, _) in empty.iter().filter(|(_, value)| value.is_some()) {
        fields.push(
            format!("git.{name}"),
            "notAllowed",
            format!("must be empty where the provider is {}", git.provider),
        );
    }
    for (name, url) in
        [("remoteUrl", &git.remote_url), ("commitUrl", &git.commit_url), ("authorUrl", &git.author_url)]
    {
        if url.as_deref().is_some_and(holds_a_password) {
            fields.push(
                format!("git.{name}"),
                "secret",
                "must not hold a password: everybody who sees the deploy reads it",
            );
        }
    }
    git
}

/// Whether a URL has `user:password@` in front of its host.
fn holds_a_password(url: &str) -> bool {
    let authority = url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
    let user = authority.and_then(|authority| authority.rsplit_once('@'));
    user.is_some_and(|(user, _)| user.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Refusal;

    fn asked(provider: GitProvider, [account, repo, remote_url]: [&str; 3]) -> CreateDeployGitRequest {
        let some = |text: &str| Some(text.to_owned());
        CreateDeployGitRequest {
            provider,
            commit_sha: "4f1c".into(),
            account: some(account),
            repo: some(repo),
            branch: None,
            path: some(""),
            remote_url: some(remote_url),
            commit_url: None,
            before_commit_sha: None,
            author_name: some(" Ada "),
            author_username: None,
            author_url: None,
        }
    }

    fn wrong(asked: &CreateDeployGitRequest) -> Vec<String> {
        let mut fields = Fields::new();
        git(&mut fields, asked);
        match fields.into_result() {
            Ok(()) => Vec::new(),
            Err(Refusal::Invalid { fields, .. }) => {
                fields.iter().map(|error| format!("{}: {}", error.field, error.code)).collect()
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_provider_takes_its_own_fields() {
        use GitProvider::{Generic, Hosted};
        let url = "https://git.example.com/a/b.git";
        let table: [(_, _, &[&str]); 9] = [
            (Hosted, ["ada", "dags", ""], &[]),
            (Hosted, ["", "dags", ""], &["git.account: required"]),
            (Hosted, [" ", "", ""], &["git.account: required", "git.repo: required"]),
            (Hosted, ["ada", "dags", url], &["git.remoteUrl: notAllowed"]),
            (Generic, ["", "", url], &[]),
            (Generic, ["", "", ""], &["git.remoteUrl: required"]),
            (Generic, ["ada", "dags", url], &["git.account: notAllowed", "git.repo: notAllowed"]),
            (Generic, ["", "", "https://ada:secret@git.example.com/a"], &["git.remoteUrl: secret"]),
            (Generic, ["", "", "git@git.example.com:a/b.git"], &[]),
        ];
        for (provider, given, expected) in table {
            assert_eq!(wrong(&asked(provider, given)), expected, "{provider} {given:?}");
        }
        let blank = CreateDeployGitRequest { commit_sha: " ".into(), ..asked(Hosted, ["a", "b", ""]) };
        assert_eq!(wrong(&blank), ["git.commitSha: required"]);
    }

    #[test]
    fn empty_fields_are_left_out() {
        let kept = git(&mut Fields::new(), &asked(GitProvider::Hosted, ["ada", "dags", ""]));
        assert_eq!((kept.remote_url, kept.path, kept.author_name.as_deref()), (None, None, Some("Ada")));
    }
}
