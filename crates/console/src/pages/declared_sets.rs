//! Declared sets: what files of declarations own.

use podium_api::declared_sets::{self, DeclaredSet, ListDeclaredSets};

use super::{ListPage, OrganizationVisit, Result, Row, Table, view};

pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let query = ListDeclaredSets { page: visit.page().sorted_by("name"), ..ListDeclaredSets::default() };
    let found = visit.calls().find::<declared_sets::List>(visit.here(), query).await?;
    let row = |of: &DeclaredSet| {
        Row::of(vec![
            of.name.clone().into(),
            podium_api::counted(u64::try_from(of.members.len()).unwrap_or_default(), "resource").into(),
            kinds(of).into(),
            view::subject(Some(&of.updated_by)).into(),
            view::time(of.updated_at, visit.visit.now).into(),
        ])
    };
    let columns = ["Set", "Owns", "Kinds", "Applied by", "Applied"];
    let table = Table::paged(visit, columns, found.declared_sets.iter().map(row), found.total_count)
        .or(
            "No declared sets",
            "Everything here was made by hand. Files in a repository can declare it instead:",
        )
        .with_command("podium apply --help");
    let lead = "Resources that are declared in files. Applying the files again undoes changes made elsewhere, so change the files instead.";
    ListPage::new(visit.shell("Declared sets").await?.live(""), lead, table).answer()
}

/// Which kinds of resources a set has, each once.
fn kinds(of: &DeclaredSet) -> String {
    let mut kinds: Vec<String> =
        of.members.iter().map(|member| view::words(member.kind.as_str()).to_lowercase()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.join(", ")
}
