//! What is shown where a page cannot be.

use super::{Answer, Problem, Result, Shell, Template, Visit};

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    shell: Shell,
    message: String,
}

/// Explains a problem. It is shown without the navigation, which may be what cannot be read.
pub(crate) fn show(visit: &Visit<'_>, problem: Problem) -> Result {
    let title = match problem.status {
        403 => "You may not do this",
        404 => "Not found",
        409 | 412 => "Something has changed",
        429 => "Too many requests",
        500.. => "The server failed",
        _ => "This did not work",
    };
    let home =
        visit.segments().first().map_or_else(|| crate::ROOT.to_owned(), |id| format!("{}/{id}", crate::ROOT));
    let shell = Shell { title: title.to_owned(), home, person: visit.person.clone(), ..Shell::default() };
    Answer::with_status(problem.status, &ProblemPage { shell, message: problem.message })
}
