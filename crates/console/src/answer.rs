//! What a visit is answered with.

use askama::Template;
use podium_api::text::printable;

use crate::calls::Problem;

#[derive(Debug)]
pub enum Answer {
    Page {
        status: u16,
        html: String,
    },
    Json(String),
    File {
        name: &'static str,
        media_type: &'static str,
        text: String,
    },
    /// Another page, to be read with GET.
    Redirect {
        to: String,
    },
}

/// The result of a page: an answer, or the problem that a page of its own explains.
pub(crate) type Result<T = Answer> = std::result::Result<T, Problem>;

impl Answer {
    pub(crate) fn page(template: &impl Template) -> Result {
        Self::with_status(200, template)
    }

    pub(crate) fn with_status(status: u16, template: &impl Template) -> Result {
        let html = template.render().map_err(|_| Problem::new(500, "The page could not be rendered."))?;
        // Whatever text a page shows, it stays in its place.
        Ok(Self::Page { status, html: printable(&html).into_owned() })
    }

    /// The same page with a status.
    pub(crate) fn and_status(self, status: u16) -> Self {
        match self {
            Self::Page { html, .. } => Self::Page { status, html },
            other => other,
        }
    }

    /// Another page.
    pub(crate) fn redirect(to: impl Into<String>) -> Result {
        Ok(Self::Redirect { to: to.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Template)]
    #[template(source = "<p title=\"{{ text }}\">{{ text }}</p>\n", ext = "html")]
    struct Page<'a> {
        text: &'a str,
    }

    #[test]
    fn no_text_steers_a_page() {
        let shown = |text| match Answer::page(&Page { text }) {
            Ok(Answer::Page { html, .. }) => html,
            _ => String::new(),
        };
        assert_eq!(
            shown("a\u{1b}[2J\u{9b}\u{202e}b"),
            "<p title=\"a\u{fffd}[2J\u{fffd}\u{fffd}b\">a\u{fffd}[2J\u{fffd}\u{fffd}b</p>\n"
        );
        assert_eq!(shown("צוות\u{200f}\tنتا"), "<p title=\"צוות\u{200f}\tنتا\">צוות\u{200f}\tنتا</p>\n");
    }
}
