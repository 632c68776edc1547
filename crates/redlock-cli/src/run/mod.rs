//! `redlock run`: a command that runs while a lease is held.

mod child;
pub(crate) mod exec;
mod session;
mod signals;
mod terminal;
mod wait;
mod watch;

use redlock_tokio::{Config, Renewal};

use session::Session;
use terminal::Terminal;

use crate::args::RunArgs;
use crate::exit::{Code, Failure};
use crate::narrate::Narrator;
use crate::nodes;
use crate::print::block_on;
use crate::status::Observer;
use crate::voice::Voice;

/// Acquires, runs the command, releases.
pub(crate) fn run(args: &RunArgs) -> Result<Code, Failure> {
    // Every mistake is found before anything is sent or run.
    let targets = nodes::targets(&args.nodes)?;
    let manager = nodes::manager(&targets, config(args)?)?;
    let mut lock = manager.lock(args.resource.as_str());
    if let Some(key) = &args.fence {
        lock = lock.fencing(key.as_str());
    }
    let timeout = lock.config()?.operation_timeout();

    // First the terminal: what it does to this thread, threads that are started later inherit.
    let terminal = Terminal::open();
    let voice = Voice::new(args.verbose);
    let narrator = Narrator::listen(voice.clone());
    let told = voice.is_verbose() || voice.is_on_terminal();
    let observer = told.then(|| Observer::new(&targets, timeout));

    let session = Session { args, manager: &manager, lock: &lock, voice: &voice, narrator: &narrator };
    let ended = block_on(session.run(terminal, observer));
    let code = ended.unwrap_or_else(|failure| {
        let line = format!("{}: {}", args.resource, failure.message);
        match failure.code {
            // That somebody else does the work is why people use this program.
            Code::TAKEN => voice.mention(line),
            _ => voice.say(line),
        }
        failure.code
    });
    voice.finish();
    Ok(code)
}

fn config(args: &RunArgs) -> Result<Config, Failure> {
    let renewal = args.renew.map_or(Renewal::ThirdOfTtl, Renewal::Every);
    let mut builder = Config::builder().ttl(args.ttl).auto_renew(renewal);
    if let Some(timeout) = args.nodes.timeout {
        builder = builder.operation_timeout(timeout);
    }
    Ok(builder.build()?)
}
