//! The lines of the pipe, and the loop that all peers have in common.

use std::borrow::Cow;
use std::error::Error;
use std::io::{BufRead, StdinLock, Write, stdout};

use serde::Deserialize;
use serde_json::{Value, json};

/// What a peer is asked: a query in RSP-QL, its semantics, options.
#[derive(Clone, Deserialize)]
pub struct Task {
    pub query: String,
    pub semantics: Value,
    #[serde(default)]
    options: Value,
}

impl Task {
    /// Range and step of the only window (ms), as the harness writes them: `[RANGE PT5S STEP PT1S]`.
    pub fn window(&self) -> Option<(i64, i64)> {
        let (_, rest) = self.query.split_once("[RANGE PT")?;
        let (range, rest) = rest.split_once("S STEP PT")?;
        let (step, _) = rest.split_once("S]")?;
        Some((milliseconds(range)?, milliseconds(step)?))
    }

    /// The names after SELECT.
    pub fn variables(&self) -> Vec<String> {
        let text = self.query.split_once("SELECT").map_or("", |(_, rest)| rest);
        let names = text.split_whitespace().map_while(|each| each.strip_prefix('?'));
        names.map(str::to_owned).collect()
    }

    fn preloads(&self) -> bool {
        self.options["preload"] == true
    }
}

fn milliseconds(seconds: &str) -> Option<i64> {
    seconds.parse::<f64>().ok().map(|each| (each * 1000.0).round() as i64)
}

/// Say that the task is refused, and why.
pub fn refuse(why: &str) -> Result<(), Box<dyn Error>> {
    Ok(writeln!(stdout(), "{}", json!({ "refused": why }))?)
}

#[derive(Deserialize)]
struct Line<'a> {
    t: Option<i64>,
    #[serde(borrow)]
    add: Option<Cow<'a, str>>,
    remove: Option<Cow<'a, str>>,
    until: Option<i64>,
    advance: Option<i64>,
    #[serde(default)]
    go: bool,
    #[serde(default)]
    close: bool,
}

enum Item<E> {
    Element(i64, E),
    Advance(i64),
    Go,
    End,
}

/// A peer: elements are decoded apart from being pushed, so that they can be held before evaluation begins.
pub trait Peer {
    type Element;

    /// The triples of an element from their N-Triples.
    fn decode(&mut self, text: &str) -> Result<Self::Element, Box<dyn Error>>;

    /// Take an element of that time (ms).
    fn push(&mut self, time: i64, element: Self::Element) -> Result<(), Box<dyn Error>>;

    /// Take that no earlier element comes.
    fn advance(&mut self, time: i64) -> Result<(), Box<dyn Error>>;

    /// Wait until everything that was pushed is evaluated.
    fn finish(&mut self) -> Result<(), Box<dyn Error>>;

    /// Write the answers that are there, a line each.
    fn write(&mut self, out: &mut Vec<u8>) -> Result<(), Box<dyn Error>>;
}

/// Standard input, line by line.
pub struct Input<'a> {
    lines: StdinLock<'a>,
    line: String,
}

impl<'a> Input<'a> {
    pub fn new(lines: StdinLock<'a>) -> Self {
        Self { lines, line: String::new() }
    }

    /// The task, which is the first line.
    pub fn task(&mut self) -> Result<Task, Box<dyn Error>> {
        self.lines.read_line(&mut self.line)?;
        Ok(serde_json::from_str(&self.line)?)
    }

    fn next<P: Peer>(&mut self, peer: &mut P) -> Result<Item<P::Element>, Box<dyn Error>> {
        self.line.clear();
        if self.lines.read_line(&mut self.line)? == 0 {
            return Ok(Item::End);
        }
        let line: Line = serde_json::from_str(&self.line)?;
        Ok(match line {
            Line { close: true, .. } => Item::End,
            Line { go: true, .. } => Item::Go,
            Line { advance: Some(time), .. } => Item::Advance(time),
            Line { remove: Some(_), .. } | Line { until: Some(_), .. } => return Err("no deletions".into()),
            Line { t: Some(time), add: Some(text), .. } => Item::Element(time, peer.decode(&text)?),
            _ => return Err(format!("not an input: {}", self.line.trim_end()).into()),
        })
    }

    /// Feed a peer to the end of the input, or of the task, and write its answers as they come.
    pub fn serve<P: Peer>(mut self, task: &Task, peer: &mut P) -> Result<(), Box<dyn Error>> {
        ready()?;
        let mut out = Vec::new();
        if task.preloads() {
            let held = self.held(peer)?;
            ready()?;
            self.next(peer)?;
            for item in held {
                take(peer, item, &mut out)?;
            }
        }
        loop {
            match self.next(peer)? {
                Item::End => break,
                item => take(peer, item, &mut out)?,
            }
        }
        peer.finish()?;
        flush(peer, &mut out)
    }

    /// Everything before `go`.
    fn held<P: Peer>(&mut self, peer: &mut P) -> Result<Vec<Item<P::Element>>, Box<dyn Error>> {
        let mut held = Vec::new();
        loop {
            match self.next(peer)? {
                Item::Go | Item::End => return Ok(held),
                item => held.push(item),
            }
        }
    }
}

fn ready() -> Result<(), Box<dyn Error>> {
    Ok(writeln!(stdout(), "{}", json!({ "ready": true }))?)
}

fn take<P: Peer>(peer: &mut P, item: Item<P::Element>, out: &mut Vec<u8>) -> Result<(), Box<dyn Error>> {
    match item {
        Item::Element(time, element) => peer.push(time, element)?,
        Item::Advance(time) => peer.advance(time)?,
        Item::Go | Item::End => {}
    }
    flush(peer, out)
}

fn flush<P: Peer>(peer: &mut P, out: &mut Vec<u8>) -> Result<(), Box<dyn Error>> {
    out.clear();
    peer.write(out)?;
    if !out.is_empty() {
        let mut output = stdout().lock();
        output.write_all(out)?;
        output.flush()?;
    }
    Ok(())
}
