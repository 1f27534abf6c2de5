//! Declared sets: what files of declarations own.

use podium_api::declared_sets::{self, DeclaredSet};

use crate::answer::Result;
use crate::list::{Cell, Empty, ListPage, Pager, Row, Table};
use crate::view;
use crate::visit::OrganizationVisit;

/// The sets.
pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let found = visit.list::<declared_sets::List>(visit.here(), &[("sorts", "name:asc")]).await?;
    let row = |of: &DeclaredSet| Row {
        cells: vec![
            Cell::Text(of.name.clone()),
            podium_api::counted(u64::try_from(of.members.len()).unwrap_or_default(), "resource").into(),
            kinds(of).into(),
            view::subject(Some(&of.updated_by)).into(),
            view::time(of.updated_at, visit.visit.now).into(),
        ],
        actions: Vec::new(),
    };
    let rows: Vec<Row> = found.declared_sets.iter().map(row).collect();
    ListPage {
        shell: visit.shell("Declared sets").await?.live(""),
        lead: "Resources that are declared in files. Applying the files again undoes changes made elsewhere, so change the files instead.",
        action: None,
        filters: Vec::new(),
        table: Table {
            columns: vec!["Set", "Owns", "Kinds", "Applied by", "Applied"],
            pager: Pager::new(visit, rows.len(), found.total_count),
            rows,
            empty: Empty {
                title: "No declared sets",
                text: "Everything here was made by hand. Files in a repository can declare it instead:",
                command: "podium apply --help".to_owned(),
            },
        },
    }
    .answer()
}

/// Which kinds of resources a set has, each once.
fn kinds(of: &DeclaredSet) -> String {
    let mut kinds: Vec<String> =
        of.members.iter().map(|member| view::words(member.kind.as_str()).to_lowercase()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.join(", ")
}
