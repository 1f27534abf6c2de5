use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use super::job::JobError;
use super::*;

fn unresolved_after(said: &str) -> PrepareError {
    let runtime = Runtime::at("3.3.2".parse().unwrap(), "/runtime".into());
    unresolved(&JobError::Failed { said: said.into(), status: ExitStatus::from_raw(256) }, &runtime)
}

#[test]
fn authors_read_the_words_of_the_resolver() {
    let said = "error: No solution found when resolving dependencies\n  cause: Because you require sqlalchemy==1.4.1 and \
        sqlalchemy==2.1.4, we can conclude that your requirements are unsatisfiable.\n";
    let PrepareError::Refused(why) = unresolved_after(said) else { panic!("it is the author's") };
    assert_eq!(
        *why.user_text(),
        "the packages of requirements.txt do not resolve: Because you require sqlalchemy==1.4.1 and sqlalchemy==2.1.4, we \
         can conclude that your requirements are unsatisfiable. (Apache Airflow 3.3.2 and the packages that come with it \
         keep their versions.)"
    );
    let older = "  × No solution found when resolving dependencies:\n  ╰─▶ Because docopt==0.6.2 has no usable\n      wheels, \
        it fails.\n\nhint: Wheels are required for `docopt`";
    let PrepareError::Refused(why) = unresolved_after(older) else { panic!("it is the author's") };
    let told = why.user_text().to_string();
    assert!(told.contains(": Because docopt==0.6.2 has no usable wheels, it fails. (Apache"), "{told}");
    assert!(
        told.ends_with("Only packages with wheels can be installed here: nothing is built from source."),
        "{told}"
    );
}

#[test]
fn an_index_that_is_away_is_nobodys_fault_and_tried_again() {
    let said = "error: Failed to fetch: `https://user:secret@index.example/simple/x/`\n  cause: dns error";
    let PrepareError::Wait(_, why) = unresolved_after(said) else { panic!("it is not the author's") };
    assert_eq!(*why.user_text(), "the package index cannot be reached");
}
