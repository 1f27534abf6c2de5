//! Where the code of a deploy came from: a known provider, or any other repository.

use podium_api::deploys::{CreateDeployGitRequest, DeployGit};
use podium_api::enums::GitProvider;
use podium_api::text;

use crate::refusal::Fields;
use crate::urls;

/// Checks the origin of the code.
pub(super) fn git(fields: &mut Fields, requested: &CreateDeployGitRequest) -> DeployGit {
    let given = |text: &Option<String>| {
        text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let git = DeployGit {
        provider: requested.provider,
        commit_sha: requested.commit_sha.trim().to_owned(),
        account: given(&requested.account),
        repo: given(&requested.repo),
        branch: given(&requested.branch),
        path: given(&requested.path),
        remote_url: given(&requested.remote_url),
        commit_url: given(&requested.commit_url),
        before_commit_sha: given(&requested.before_commit_sha),
        author_name: given(&requested.author_name),
        author_username: given(&requested.author_username),
        author_url: given(&requested.author_url),
    };
    if git.commit_sha.is_empty() {
        fields.push("git.commitSha", "required", "must not be blank");
    }
    let named = [("git.account", git.account.is_some()), ("git.repo", git.repo.is_some())];
    let other = [("git.remoteUrl", git.remote_url.is_some())];
    let (required, empty): (&[_], &[_]) = match git.provider {
        GitProvider::Hosted => (&named, &other),
        GitProvider::Generic => (&other, &named),
    };
    let missing = required.iter().map(|(field, is_given)| (*field, !is_given));
    fields.push_each(missing, "required", format!("is required when the provider is {}", git.provider));
    let message = format!("must be empty when the provider is {}", git.provider);
    fields.push_each(empty.iter().copied(), "notAllowed", message);
    for (name, text) in [
        ("commitSha", Some(&git.commit_sha)),
        ("account", git.account.as_ref()),
        ("repo", git.repo.as_ref()),
        ("branch", git.branch.as_ref()),
        ("path", git.path.as_ref()),
        ("beforeCommitSha", git.before_commit_sha.as_ref()),
        ("authorName", git.author_name.as_ref()),
        ("authorUsername", git.author_username.as_ref()),
    ] {
        if let Some(c) = text.and_then(|text| text::hidden(text)) {
            fields.push(format!("git.{name}"), "format", text::complaint(c));
        }
    }
    for (name, url) in
        [("remoteUrl", &git.remote_url), ("commitUrl", &git.commit_url), ("authorUrl", &git.author_url)]
    {
        let Some(url) = url.as_deref() else { continue };
        if name == "remoteUrl" && !urls::is_remote(url) {
            let message =
                "must be the URL the repository is fetched from, such as https://git.example.com/a/b.git";
            fields.push(format!("git.{name}"), "format", message);
        } else if name != "remoteUrl" && !urls::is_web(url) {
            let message = "must be an http or https URL, such as https://git.example.com/a/b";
            fields.push(format!("git.{name}"), "format", message);
        } else if holds_a_password(url) {
            let message = "must not contain a password: everybody who can see the deploy can read it";
            fields.push(format!("git.{name}"), "secret", message);
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
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    fn requested(provider: GitProvider, [account, repo, remote_url]: [&str; 3]) -> CreateDeployGitRequest {
        let body = json!({
            "provider": provider, "commitSha": "4f1c", "account": account, "repo": repo, "remoteUrl": remote_url, "path": "",
            "authorName": " Ada ",
        });
        serde_json::from_value(body).unwrap()
    }

    fn wrong(requested: &CreateDeployGitRequest) -> Vec<String> {
        let mut fields = Fields::new();
        git(&mut fields, requested);
        fixtures::wrong(fields.into_result())
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
            assert_eq!(wrong(&requested(provider, given)), expected, "{provider} {given:?}");
        }
        let blank = CreateDeployGitRequest { commit_sha: " ".into(), ..requested(Hosted, ["a", "b", ""]) };
        assert_eq!(wrong(&blank), ["git.commitSha: required"]);
    }

    #[test]
    fn links_lead_to_the_web_and_fields_are_one_line() {
        let some = |text: &str| Some(text.to_owned());
        let base = || requested(GitProvider::Hosted, ["ada", "dags", ""]);
        let commit = |url| CreateDeployGitRequest { commit_url: some(url), ..base() };
        let author = |url| CreateDeployGitRequest { author_url: some(url), ..base() };
        let table = [
            (commit("https://git.example.com/c/4f1c"), ""),
            (commit("javascript:alert(1)"), "git.commitUrl: format"),
            (author("data:text/html,x"), "git.authorUrl: format"),
            (author("git@example.com:a"), "git.authorUrl: format"),
            (CreateDeployGitRequest { commit_sha: "4f\n1c".into(), ..base() }, "git.commitSha: format"),
            (CreateDeployGitRequest { branch: some("ma\u{200b}in"), ..base() }, "git.branch: format"),
            (CreateDeployGitRequest { author_name: some("A\u{202e}da"), ..base() }, "git.authorName: format"),
            (requested(GitProvider::Generic, ["", "", "javascript:alert(1)"]), "git.remoteUrl: format"),
            (requested(GitProvider::Generic, ["", "", "file:///srv/git"]), ""),
            (requested(GitProvider::Generic, ["", "", "git.example.com:a/b.git"]), ""),
            (requested(GitProvider::Generic, ["", "", "/srv/\u{200b}git"]), "git.remoteUrl: format"),
        ];
        for (requested, expected) in table {
            assert_eq!(wrong(&requested).join(", "), expected);
        }
    }

    #[test]
    fn empty_fields_are_left_out() {
        let kept = git(&mut Fields::new(), &requested(GitProvider::Hosted, ["ada", "dags", ""]));
        assert_eq!((kept.remote_url, kept.path, kept.author_name.as_deref()), (None, None, Some("Ada")));
    }
}
