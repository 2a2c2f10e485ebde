//! Two joins written by hand for differential-dataflow, on ids: a star pattern with a FILTER, and its self-join.
//!
//! An epoch is a slide of the window: what comes in it is inserted and what leaves the window with it is removed, so
//! the rows of an epoch are those of the window that closes at its end. A triple that is twice in a window would count
//! twice, and terms are never forgotten: what any engine has to do beyond that is not in this ceiling.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::error::Error;
use std::io::{Write, stdin};
use std::rc::Rc;

use differential_dataflow::VecCollection;
use differential_dataflow::input::{Input as _, InputSession};
use rustc_hash::FxHashMap;
use timely::dataflow::ProbeHandle;
use timely::dataflow::operators::Probe;
use timely::worker::Worker;

use crate::pipe::{Input, Peer, Task, refuse};

type Id = u32;
type Rows = Vec<([Id; 4], i32)>;
/// A literal's id and the bits of its number.
type Value = (Id, u32);

const ONTOLOGY: &str = "<http://knoesis.wright.edu/ssw/ont/";
/// What is looked for, in the order of their ids.
const KNOWN: [&str; 5] = [
    "sensor-observation.owl#observedProperty>",
    "weather.owl#_AirTemperature>",
    "sensor-observation.owl#procedure>",
    "sensor-observation.owl#result>",
    "sensor-observation.owl#floatValue>",
];
const OBSERVED: Id = 0;
const TEMPERATURE: Id = 1;
const PROCEDURE: Id = 2;
const RESULT: Id = 3;
const VALUE: Id = 4;

/// Terms (N-Triples) by number, and the numbers that they mean.
#[derive(Default)]
struct Terms {
    ids: FxHashMap<Rc<str>, Id>,
    texts: Vec<Rc<str>>,
    numbers: Vec<f32>,
}

impl Terms {
    fn id(&mut self, term: &str) -> Id {
        if let Some(&id) = self.ids.get(term) {
            return id;
        }
        let (id, text) = (self.texts.len() as Id, Rc::<str>::from(term));
        self.ids.insert(Rc::clone(&text), id);
        self.texts.push(text);
        let lexical = term.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        self.numbers.push(lexical.and_then(|(number, _)| number.parse().ok()).unwrap_or(f32::NAN));
        id
    }
}

/// The collections that the joins read, and where their rows come out.
struct Dataflow {
    observed: InputSession<u32, Id, i32>,
    procedure: InputSession<u32, (Id, Id), i32>,
    result: InputSession<u32, (Id, Id), i32>,
    value: InputSession<u32, (Id, Value), i32>,
    probe: ProbeHandle<u32>,
    changes: Rc<RefCell<Rows>>,
}

/// Sensor with observation and value: the star.
type Stars<'scope> = VecCollection<'scope, u32, (Id, (Id, Value)), i32>;

fn rows_of_select<'scope>(stars: Stars<'scope>) -> VecCollection<'scope, u32, [Id; 4], i32> {
    stars.map(|(sensor, (observation, (value, _)))| [sensor, observation, value, 0])
}

fn rows_of_variation<'scope>(stars: Stars<'scope>, least: f32) -> VecCollection<'scope, u32, [Id; 4], i32> {
    let by_sensor = stars.arrange_by_key();
    by_sensor.clone().join_core(by_sensor, move |sensor, (first, (value, one)), (second, (_, other))| {
        let varies = f32::from_bits(*one) - f32::from_bits(*other) > least;
        varies.then_some([*sensor, *first, *value, *second])
    })
}

impl Dataflow {
    fn new(worker: &mut Worker, self_join: bool, least: f32) -> Self {
        worker.dataflow(|scope| {
            let (observed, observations) = scope.new_collection();
            let (procedure, sensors) = scope.new_collection();
            let (result, results) = scope.new_collection();
            let (value, values) = scope.new_collection();
            let stars = results
                .map(|(observation, result)| (result, observation))
                .join_map(values, |_, observation: &Id, value: &Value| (*observation, *value))
                .join_map(sensors, |observation, value, sensor: &Id| (*observation, (*sensor, *value)))
                .semijoin(observations)
                .map(|(observation, (sensor, value))| (sensor, (observation, value)));
            let rows = if self_join { rows_of_variation(stars, least) } else { rows_of_select(stars) };
            let changes = Rc::new(RefCell::new(Rows::new()));
            let (sink, probe) = (Rc::clone(&changes), ProbeHandle::new());
            rows.inspect(move |(row, _, change)| sink.borrow_mut().push((*row, *change))).inner.probe_with(&probe);
            Self { observed, procedure, result, value, probe, changes }
        })
    }

    fn advance_to(&mut self, epoch: u32, worker: &mut Worker) {
        self.observed.advance_to(epoch);
        self.procedure.advance_to(epoch);
        self.result.advance_to(epoch);
        self.value.advance_to(epoch);
        self.observed.flush();
        self.procedure.flush();
        self.result.flush();
        self.value.flush();
        worker.step_while(|| self.probe.less_than(&epoch));
    }
}

struct Star<'a> {
    worker: &'a mut Worker,
    flow: Dataflow,
    terms: Terms,
    names: Vec<String>,
    window: (i64, i64),
    above: Option<f32>,
    /// The triples of each slide in the window, the newest last.
    slides: VecDeque<Vec<[Id; 3]>>,
    epoch: u32,
    rows: FxHashMap<[Id; 4], i32>,
    out: Vec<u8>,
}

/// Answer the task, or refuse it.
pub fn answer(task: &Task, input: Input) -> Result<(), Box<dyn Error>> {
    if task.semantics["name"] != "rspql" {
        return refuse("the joins are written for the semantics rspql");
    }
    let names = task.variables();
    let self_join = names == ["sensor", "ob1", "value1", "ob2"];
    if !self_join && names != ["sensor", "obs", "value"] {
        return refuse("there are joins for the queries select and variation only");
    }
    let (Some(window), Some(least)) = (task.window(), threshold(&task.query)) else {
        return refuse("a query has one window of seconds, and a number that a value is above");
    };
    if window.0 % window.1 != 0 {
        return refuse("a window is a multiple of its slide");
    }
    drop(input);
    let task = task.clone();
    timely::execute_directly(move |worker| {
        let flow = Dataflow::new(worker, self_join, least);
        let mut peer = Star {
            worker,
            flow,
            terms: Terms::default(),
            names,
            window,
            above: (!self_join).then_some(least),
            slides: VecDeque::from([Vec::new()]),
            epoch: 0,
            rows: FxHashMap::default(),
            out: Vec::new(),
        };
        for (at, name) in KNOWN.iter().enumerate() {
            assert_eq!(peer.terms.id(&format!("{ONTOLOGY}{name}")), at as Id);
        }
        Input::new(stdin().lock()).serve(&task, &mut peer).map_err(|error| error.to_string())
    })?;
    Ok(())
}

/// The number behind the last `>` of the FILTER.
fn threshold(query: &str) -> Option<f32> {
    let (_, text) = query.split_once("FILTER(")?;
    let (_, text) = text.split_once(" > ")?;
    text.split(')').next()?.trim().parse().ok()
}

impl Star<'_> {
    fn change(&mut self, [subject, predicate, object]: [Id; 3], change: i32) {
        match predicate {
            OBSERVED if object == TEMPERATURE => self.flow.observed.update(subject, change),
            PROCEDURE => self.flow.procedure.update((subject, object), change),
            RESULT => self.flow.result.update((subject, object), change),
            VALUE => {
                let number = self.terms.numbers[object as usize];
                if self.above.is_none_or(|least| number > least) {
                    self.flow.value.update((subject, (object, number.to_bits())), change);
                }
            }
            _ => {}
        }
    }

    /// Close the slides that end by a time (ms).
    fn close(&mut self, time: i64) -> Result<(), Box<dyn Error>> {
        while (i64::from(self.epoch) + 1) * self.window.1 <= time {
            self.flow.advance_to(self.epoch + 1, self.worker);
            for (row, change) in self.flow.changes.borrow_mut().drain(..) {
                *self.rows.entry(row).or_default() += change;
            }
            self.rows.retain(|_, count| *count != 0);
            self.epoch += 1;
            self.report()?;
            self.slides.push_back(Vec::new());
            if self.slides.len() as i64 > self.window.0 / self.window.1 {
                for triple in self.slides.pop_front().unwrap_or_default() {
                    self.change(triple, -1);
                }
            }
        }
        Ok(())
    }

    /// Write the rows of the window that closes now, if it is whole.
    fn report(&mut self) -> Result<(), Box<dyn Error>> {
        let end = i64::from(self.epoch) * self.window.1;
        let start = end - self.window.0;
        if start < 0 {
            return Ok(());
        }
        let names = serde_json::to_string(&self.names)?;
        write!(self.out, "{{\"vars\":{names},\"instant\":{end},\"scope\":[{start},{end}],\"add\":[")?;
        let whole = self.rows.iter().flat_map(|(row, count)| (0..*count).map(move |_| row));
        for (at, row) in whole.enumerate() {
            self.out.extend_from_slice(if at == 0 { b"[" } else { b",[" });
            for (place, id) in row[..self.names.len()].iter().enumerate() {
                if place > 0 {
                    self.out.push(b',');
                }
                serde_json::to_writer(&mut self.out, &*self.terms.texts[*id as usize])?;
            }
            self.out.push(b']');
        }
        Ok(self.out.extend_from_slice(b"]}\n"))
    }
}

impl Peer for Star<'_> {
    type Element = Vec<[Id; 3]>;

    fn decode(&mut self, text: &str) -> Result<Self::Element, Box<dyn Error>> {
        let triple = |line: &str| {
            let mut terms = line.strip_suffix(" .")?.splitn(3, ' ').map(|term| self.terms.id(term));
            Some([terms.next()?, terms.next()?, terms.next()?])
        };
        text.lines().map(triple).collect::<Option<_>>().ok_or_else(|| format!("no triples: {text}").into())
    }

    fn push(&mut self, time: i64, element: Self::Element) -> Result<(), Box<dyn Error>> {
        self.close(time)?;
        for triple in element {
            self.change(triple, 1);
            if let Some(newest) = self.slides.back_mut() {
                newest.push(triple);
            }
        }
        Ok(())
    }

    fn advance(&mut self, time: i64) -> Result<(), Box<dyn Error>> {
        self.close(time)
    }

    fn finish(&mut self) -> Result<(), Box<dyn Error>> {
        Ok(())
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Result<(), Box<dyn Error>> {
        out.append(&mut self.out);
        Ok(())
    }
}
