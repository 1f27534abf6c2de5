//! Documents whose commands are typed by tests.

/// What stands in blocks of commands.
pub(crate) fn commands(guide: &str) -> String {
    let mut commands = String::new();
    let mut is_command = false;
    for line in guide.lines() {
        match line {
            "```sh" => is_command = true,
            "```" => is_command = false,
            line if is_command => {
                commands.push_str(line);
                commands.push('\n');
            }
            _ => {}
        }
    }
    commands
}
