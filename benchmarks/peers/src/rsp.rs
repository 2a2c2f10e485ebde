//! rsp-rs on the pipe: its window, its queries by Oxigraph, and its rows, which it gives as text.
//!
//! Its windows begin with the first time that is not 0, so all times are moved far from it; a window is reported by a
//! later element, so the end of the input is told by its own `close_stream`. It evaluates in a thread of its own.

use std::error::Error;
use std::fmt::Write as _;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use oxigraph::io::{RdfFormat, RdfParser};
use oxigraph::model::Quad;
use rsp_rs::{BindingWithTimestamp, CSPARQLWindow, RDFStream, RSPEngine};

use crate::pipe::{Input, Peer, Task, refuse};

/// A multiple of every window's step, ms.
const EPOCH: i64 = 1_800_000_000_000;

struct Rsp {
    engine: Option<RSPEngine>,
    stream: Option<RDFStream>,
    window: Arc<Mutex<CSPARQLWindow>>,
    rows: Receiver<BindingWithTimestamp>,
    names: Vec<String>,
    until: i64,
}

/// Answer the task, or refuse it.
pub fn answer(task: &Task, input: Input) -> Result<(), Box<dyn Error>> {
    if task.semantics["name"] != "rsp-js" {
        return refuse("rsp-rs is a port of rsp-js: take its semantics, rsp-js");
    }
    let Some(text) = layout(task) else {
        return refuse("rsp-rs is given one window of seconds");
    };
    let mut engine = RSPEngine::new(text);
    engine.initialize()?;
    let rows = engine.start_processing();
    let definition = engine.parsed_query().s2r.first().ok_or("no window was read")?.clone();
    let stream = engine.get_stream(&definition.stream_name);
    let window = engine.get_window(&definition.window_name).ok_or("no window was made")?;
    let names = task.variables();
    let mut peer = Rsp { engine: Some(engine), stream, window, rows, names, until: EPOCH };
    input.serve(task, &mut peer)
}

/// The query as its parser reads it: a clause a line, no REGISTER, plain numbers, WINDOW first in its line.
fn layout(task: &Task) -> Option<String> {
    let (range, step) = task.window()?;
    let (_, selected) = task.query.split_once(" AS\n").unwrap_or(("", &task.query));
    let (head, rest) = selected.split_once("FROM NAMED WINDOW ")?;
    let (names, rest) = rest.split_once(" [RANGE ")?;
    let (_, body) = rest.split_once(']')?;
    let (window, stream) = names.split_once(" ON ")?;
    let body = body.replace("WINDOW <", "\nWINDOW <");
    let from = format!("FROM NAMED WINDOW {window} ON STREAM {stream} [RANGE {range} STEP {step}]");
    Some(format!("{}\n{from}{body}", head.trim_end()))
}

impl Peer for Rsp {
    type Element = Vec<Quad>;

    fn decode(&mut self, text: &str) -> Result<Self::Element, Box<dyn Error>> {
        let parser = RdfParser::from_format(RdfFormat::NTriples).for_slice(text.as_bytes());
        Ok(parser.collect::<Result<_, _>>()?)
    }

    fn push(&mut self, time: i64, element: Self::Element) -> Result<(), Box<dyn Error>> {
        let stream = self.stream.as_ref().ok_or("an element after the end")?;
        Ok(stream.add_quads(element, EPOCH + time)?)
    }

    fn advance(&mut self, time: i64) -> Result<(), Box<dyn Error>> {
        self.until = EPOCH + time;
        Ok(())
    }

    /// Close the stream: without anybody who could send, the window's thread ends and lets go of the window.
    fn finish(&mut self) -> Result<(), Box<dyn Error>> {
        let others = Arc::strong_count(&self.window);
        if let (Some(engine), Some(stream)) = (self.engine.take(), self.stream.take()) {
            engine.close_stream(&stream.name, self.until + 1)?;
            drop(stream);
            drop(engine);
        }
        while Arc::strong_count(&self.window) > others - 2 {
            sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Result<(), Box<dyn Error>> {
        let names = serde_json::to_string(&self.names)?;
        for row in self.rows.try_iter() {
            let found = bindings(&row.bindings)?;
            let of = |name: &String| found.iter().find(|(each, _)| each == name).map(|(_, term)| term);
            let terms: Vec<_> = self.names.iter().map(of).collect();
            out.extend(format!("{{\"vars\":{names},\"add\":[{}]}}\n", serde_json::to_string(&terms)?).bytes());
        }
        Ok(())
    }
}

/// Names and terms (N-Triples) of a row's text: `{Variable { name: "x" }: NamedNode(NamedNode { iri: "urn:a" }), ...}`.
fn bindings(text: &str) -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let (mut found, mut rest): (Vec<(String, String)>, _) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once('"') {
        let (string, next) = quoted(after)?;
        rest = next;
        let last = found.last_mut().map(|(_, term)| term);
        match (before.trim_end_matches(['(', ' ', ':']).rsplit([' ', '(', ':']).next(), last) {
            (Some("name"), _) => found.push((string, String::new())),
            (Some("iri"), Some(term)) if before.contains("datatype") => write!(term, "^^<{string}>")?,
            (Some("iri"), Some(term)) => write!(term, "<{string}>")?,
            (Some("language"), Some(term)) => write!(term, "@{string}")?,
            (Some("value" | "String"), Some(term)) => *term = serde_json::to_string(&string)?,
            _ => return Err(format!("a row that is not understood: {text}").into()),
        }
    }
    Ok(found)
}

/// A string of Rust's debug text without its escapes, from behind its first quote, and what follows its last.
fn quoted(text: &str) -> Result<(String, &str), Box<dyn Error>> {
    let mut string = String::new();
    let mut characters = text.char_indices();
    while let Some((at, each)) = characters.next() {
        match each {
            '"' => return Ok((string, &text[at + 1..])),
            '\\' => match characters.next() {
                Some((_, each @ ('"' | '\\' | '\''))) => string.push(each),
                Some((_, 'n')) => string.push('\n'),
                Some((_, 'r')) => string.push('\r'),
                Some((_, 't')) => string.push('\t'),
                other => return Err(format!("an escape that is not understood: {other:?}").into()),
            },
            _ => string.push(each),
        }
    }
    Err(format!("a string that does not end: {text}").into())
}
