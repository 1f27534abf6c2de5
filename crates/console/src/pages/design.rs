//! The pieces that pages are made of, on a page of their own.

use podium_api::{FieldError, Timestamp};

use super::{
    Answer, Cell, Empty, Field, FieldKind, Form, Html, Pager, Params, Problem, Result, Row, Shell, Table,
    Template, Tone, Visit, view,
};

#[derive(Template)]
#[template(path = "design.html")]
struct DesignPage {
    shell: Shell,
    statuses: Vec<Html>,
    table: Table,
    nothing: Table,
    form: Form,
}

/// The page. It shows nothing of anybody.
pub(crate) fn show(visit: &Visit<'_>) -> Result {
    let tones = [
        (Tone::Good, "Healthy"),
        (Tone::Changing, "Deploying"),
        (Tone::Warning, "Unhealthy"),
        (Tone::Failed, "Failed"),
        (Tone::Asleep, "Hibernating"),
        (Tone::Unknown, "Unknown"),
    ];
    let earlier = |minutes: i64| Timestamp::from_millis(visit.now.millis() - minutes * 60_000);
    let row = |name: &str, tone, word, minutes| Row {
        cells: vec![
            Cell::named(name, "#table".to_owned(), "a second line"),
            view::status(tone, word).into(),
            Cell::Mono("v20270115".to_owned()),
            view::time(earlier(minutes), visit.now).into(),
        ],
        actions: vec![("Edit", "#table".to_owned())],
    };
    let rows = vec![
        row("nightly", Tone::Good, "Healthy", 3),
        row("a-rather-long-name-of-a-deployment", Tone::Warning, "Unhealthy", 300),
    ];
    let columns = vec!["Name", "Status", "Version", "Changed", ""];
    let pager = Some(Pager { first: 1, last: 2, total: 12, previous: None, next: Some("#table".to_owned()) });
    let form = Form {
        action: String::new(),
        fields: vec![
            Field::text("name", "Name").required().hint("Unique in the workspace."),
            Field::text("size", "Size").of(FieldKind::Number),
            Field::choice(
                "kind",
                "Kind",
                [("A".to_owned(), "One".to_owned()), ("B".to_owned(), "Another".to_owned())],
            ),
            Field::check("secret", "Secret", true).hint("Encrypted, and never shown again."),
        ],
        more: vec![Field::text("text", "Description").of(FieldKind::Area)],
        submit: "Save the example".to_owned(),
        cancel: "#form".to_owned(),
        ..Form::default()
    };
    let wrong = vec![FieldError::new("name", "length", "must be 1 to 500 characters long")];
    let problem = Problem { status: 400, message: "The request is not valid.".to_owned(), fields: wrong };
    let page = DesignPage {
        shell: Shell {
            title: "Design".to_owned(),
            home: crate::ROOT.to_owned(),
            person: visit.person.clone(),
            ..Shell::default()
        },
        statuses: tones.map(|(tone, word)| view::status(tone, word)).to_vec(),
        table: Table { columns, rows, pager, empty: Empty::default() },
        nothing: Table {
            empty: Empty {
                title: "No deployments",
                text: "Create one, then deploy DAGs to it.",
                command: "podium deployment create NAME".to_owned(),
            },
            ..Table::default()
        },
        form: form.refused(&Params::read("size=3&kind=B&secret=on"), problem),
    };
    Answer::page(&page)
}
