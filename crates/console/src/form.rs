//! Forms: what they ask, and what was wrong with what was sent.

use askama::Template;

use crate::answer::{Answer, Result};
use crate::calls::Problem;
use crate::params::Params;
use crate::shell::Shell;
use crate::view;
use crate::visit::OrganizationVisit;

#[derive(Debug, Template)]
#[template(path = "form.html")]
pub(crate) struct FormPage {
    pub(crate) shell: Shell,
    /// What the form does, and what is lost by it.
    pub(crate) lead: String,
    pub(crate) form: Form,
}

#[derive(Debug, Default)]
pub(crate) struct Form {
    pub(crate) action: String,
    pub(crate) fields: Vec<Field>,
    /// Fields that have good defaults, folded away.
    pub(crate) more: Vec<Field>,
    /// What its button says: a verb and its object.
    pub(crate) submit: String,
    /// Whether it destroys something.
    pub(crate) is_danger: bool,
    /// Where to go instead.
    pub(crate) cancel: String,
    pub(crate) problem: Option<Problem>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) label: String,
    pub(crate) value: String,
    pub(crate) hint: String,
    pub(crate) kind: FieldKind,
    pub(crate) is_required: bool,
    pub(crate) wrong: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) enum FieldKind {
    #[default]
    Text,
    Email,
    Password,
    Number,
    Area,
    Check,
    Choice(Vec<Choice>),
    Checks(Vec<Choice>),
    Hidden,
}

#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) label: String,
    pub(crate) is_chosen: bool,
}

impl Choice {
    pub(crate) fn new(value: impl Into<String>, label: impl Into<String>, is_chosen: bool) -> Self {
        Self { value: value.into(), label: label.into(), is_chosen }
    }

    /// Words of the API, with what people read.
    pub(crate) fn words(words: impl IntoIterator<Item = &'static str>) -> Vec<(&'static str, String)> {
        words.into_iter().map(|word| (word, view::words(word))).collect()
    }
}

impl Field {
    pub(crate) fn text(name: &'static str, label: impl Into<String>) -> Self {
        Self { name, label: label.into(), ..Self::default() }
    }

    pub(crate) fn choice(
        name: &'static str,
        label: impl Into<String>,
        choices: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Self {
        let choices = choices.into_iter().map(|(value, label)| Choice::new(value, label, false));
        Self { kind: FieldKind::Choice(choices.collect()), ..Self::text(name, label) }
    }

    /// A choice that can be left open; this says what happens then.
    pub(crate) fn or_open(mut self, label: &str) -> Self {
        if let FieldKind::Choice(choices) = &mut self.kind {
            choices.insert(0, Choice::new("", label, false));
        }
        self
    }

    /// Any number of choices: values with their labels, and whether each is chosen.
    pub(crate) fn checks(
        name: &'static str,
        label: impl Into<String>,
        choices: impl IntoIterator<Item = (String, String, bool)>,
    ) -> Self {
        let choice = |(value, label, is_chosen)| Choice { value, label, is_chosen };
        Self { kind: FieldKind::Checks(choices.into_iter().map(choice).collect()), ..Self::text(name, label) }
    }

    pub(crate) fn check(name: &'static str, label: impl Into<String>, is_on: bool) -> Self {
        Self {
            kind: FieldKind::Check,
            value: if is_on { "on" } else { "" }.to_owned(),
            ..Self::text(name, label)
        }
    }

    /// A value that is sent along.
    pub(crate) fn hidden(name: &'static str, value: impl Into<String>) -> Self {
        Self { kind: FieldKind::Hidden, value: value.into(), ..Self::text(name, "") }
    }

    /// Another kind of text.
    pub(crate) fn of(self, kind: FieldKind) -> Self {
        Self { kind, ..self }
    }

    pub(crate) fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    pub(crate) fn value(self, value: impl Into<String>) -> Self {
        Self { value: value.into(), ..self }
    }

    pub(crate) fn is_checked(&self) -> bool {
        !self.value.is_empty()
    }
}

impl Form {
    /// A form: where it is sent, what its button says, and what it asks.
    pub(crate) fn new(action: String, submit: impl Into<String>, fields: Vec<Field>) -> Self {
        Self { action, submit: submit.into(), fields, ..Self::default() }
    }

    /// Where to go instead.
    pub(crate) fn or(self, cancel: String) -> Self {
        Self { cancel, ..self }
    }

    /// The form with what was sent, and with what was wrong at its fields. A password is never sent back.
    pub(crate) fn refused(mut self, sent: &Params, problem: Problem) -> Self {
        for field in self.fields.iter_mut().chain(&mut self.more) {
            if !matches!(field.kind, FieldKind::Password) {
                field.value = sent.get(field.name).to_owned();
            }
            if let FieldKind::Checks(choices) = &mut field.kind {
                let is_sent = |value: &str| sent.all(field.name).any(|sent| sent == value);
                choices.iter_mut().for_each(|choice| choice.is_chosen = is_sent(&choice.value));
            }
            field.wrong = problem.of_field(field.name).map(str::to_owned);
        }
        self.problem = Some(problem);
        self.settled()
    }

    /// The form as it is shown first, or after it was refused.
    pub(crate) fn after(self, visit: &OrganizationVisit<'_>) -> Self {
        match &visit.problem {
            Some(problem) => self.refused(visit.form(), problem.clone()),
            None => self.settled(),
        }
    }

    /// Marks the choices that are chosen.
    pub(crate) fn settled(mut self) -> Self {
        for field in self.fields.iter_mut().chain(&mut self.more) {
            if let FieldKind::Choice(choices) = &mut field.kind {
                choices.iter_mut().for_each(|choice| choice.is_chosen = choice.value == field.value);
            }
        }
        self
    }

    /// Errors at fields that the form does not show.
    pub(crate) fn other_errors(&self) -> Vec<String> {
        let shown = |name: &str| self.fields.iter().chain(&self.more).any(|field| field.name == name);
        let fields = self.problem.iter().flat_map(|problem| &problem.fields);
        fields
            .filter(|error| !shown(&error.field))
            .map(|error| format!("{}: {}", error.field, error.message))
            .collect()
    }
}

impl OrganizationVisit<'_> {
    /// A page with a form, below the list that it leads back to.
    pub(crate) async fn ask(
        &self,
        title: impl Into<String>,
        (above, back): (&'static str, &str),
        lead: impl Into<String>,
        form: Form,
    ) -> Result {
        let back = self.link(back);
        let form = form.or(back.clone()).after(self);
        let shell = self.shell(title).await?.below(above, back);
        FormPage { shell, lead: lead.into(), form }.answer()
    }
}

impl FormPage {
    pub(crate) fn answer(&self) -> Result {
        Answer::page(self)
    }
}

#[cfg(test)]
mod tests {
    use podium_api::FieldError;

    use super::*;

    #[test]
    fn a_refused_form_keeps_every_box_that_was_checked() {
        let boxes = [("a", false), ("b", true), ("c", false)];
        let boxes = boxes.map(|(value, is_chosen)| (value.to_owned(), value.to_owned(), is_chosen));
        let form = Form { fields: vec![Field::checks("ids", "Ids", boxes)], ..Form::default() };
        let form = form.refused(&Params::read("ids=a&ids=c"), Problem::new(400, "Wrong."));
        let FieldKind::Checks(choices) = &form.fields[0].kind else { panic!("{:?}", form.fields) };
        assert_eq!(choices.iter().map(|choice| choice.is_chosen).collect::<Vec<_>>(), [true, false, true]);
    }

    #[test]
    fn a_refused_form_keeps_what_was_sent_and_shows_what_was_wrong_but_no_password() {
        let fields = vec![
            Field::text("name", "Name"),
            Field::text("secret", "Secret").of(FieldKind::Password),
            Field::choice(
                "size",
                "Size",
                [("S".to_owned(), "Small".to_owned()), ("L".to_owned(), "Large".to_owned())],
            ),
        ];
        let sent = Params::read("name=a&secret=b&size=L");
        let fields_wrong =
            vec![FieldError::new("name", "length", "is too short"), FieldError::new("other", "x", "is odd")];
        let problem = Problem { status: 400, message: "Wrong.".into(), fields: fields_wrong };
        let form = Form { fields, ..Form::default() }.refused(&sent, problem);
        assert_eq!(form.fields[0].wrong.as_deref(), Some("is too short"));
        assert_eq!((form.fields[0].value.as_str(), form.fields[1].value.as_str()), ("a", ""));
        assert!(
            matches!(&form.fields[2].kind, FieldKind::Choice(choices) if choices[1].is_chosen && !choices[0].is_chosen)
        );
        assert_eq!(form.other_errors(), ["other: is odd"]);
    }
}
