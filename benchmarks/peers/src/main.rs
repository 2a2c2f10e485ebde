//! Peers in Rust as programs on the pipe (docs/pipe.md), for one task each.
//!
//! `peers rsp-rs` is the engine of that crate; `peers star` is no engine but two joins, written by hand for
//! differential-dataflow: the ceiling for a SELECT over a star pattern, and for its self-join.

mod pipe;
mod rsp;
mod star;

use std::env::args;
use std::error::Error;
use std::io::stdin;
use std::process::ExitCode;

fn answered() -> Result<(), Box<dyn Error>> {
    let mut input = pipe::Input::new(stdin().lock());
    let task = input.task()?;
    match args().nth(1).as_deref() {
        Some("rsp-rs") => rsp::answer(&task, input),
        Some("star") => star::answer(&task, input),
        _ => Err("name a peer: rsp-rs or star".into()),
    }
}

fn main() -> ExitCode {
    match answered() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
