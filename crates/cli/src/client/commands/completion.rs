//! `podium completion`: scripts that complete commands in a shell.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::client::ending::Outcome;

/// Print a script that completes commands and flags in a shell.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium completion bash > ~/.local/share/bash-completion/completions/podium
  podium completion zsh > ~/.zfunc/_podium
  podium completion fish > ~/.config/fish/completions/podium.fish")]
pub(crate) struct Completion {
    /// The shell.
    shell: Shell,
}

impl Completion {
    pub(crate) fn run(self) -> Outcome {
        // Written in one go: the generator panics if the reader has gone.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::Cli::command(), "podium", &mut script);
        Ok(std::io::Write::write_all(&mut std::io::stdout(), &script)?)
    }
}
