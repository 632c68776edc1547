//! What is made from the definition of the command line: manual pages, and completions for shells.

use std::io;

use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Cli;
use crate::exit::{Code, Failure};
use crate::print::print;

/// Prints the completions of a shell.
pub(crate) fn completions(shell: Shell) -> Result<Code, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "redlock", &mut text);
    print(&String::from_utf8_lossy(&text));
    Ok(Code::OK)
}

/// Prints the manual page of a subcommand, or that of the program.
pub(crate) fn page(subcommand: Option<&str>) -> Result<Code, Failure> {
    let mut program = Cli::command();
    program.build();
    let command = match subcommand {
        None => program,
        Some(name) => {
            let found = program.find_subcommand(name).filter(|command| !command.is_hide_set());
            let Some(command) = found else {
                return Err(Failure::usage(format!(
                    "no subcommand {name}: write run, check, status or bench"
                )));
            };
            // Built, it is called `redlock run`, and that is no name for a page.
            command.clone().display_name(format!("redlock-{name}"))
        }
    };
    let text = render(command).map_err(|error| Failure::internal("no manual page", error))?;
    print(&text);
    Ok(Code::OK)
}

fn render(command: clap::Command) -> io::Result<String> {
    let mut text = Vec::new();
    let title = command.get_display_name().unwrap_or("redlock").to_owned();
    Man::new(command).title(title).render(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
