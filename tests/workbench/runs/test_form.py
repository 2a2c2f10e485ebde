"""The form of an experiment: what it shows of a file, what it writes, and where it says what is wrong."""

import re
import tomllib
from html import unescape
from importlib.resources import files

import pytest

from streamgauge.suites.experiments import read_file
from streamgauge.workbench.rooms.runs.form.fields import data_of, fields_of, without_block
from streamgauge.workbench.rooms.runs.form.pages import FIRST
from streamgauge.workbench.rooms.runs.form.problems import place_of
from streamgauge.workbench.rooms.runs.form.text import updated
from tests.suites.experiments.test_variants import FILE
from tests.workbench.runs.folders import EXPERIMENT, bench

START = (files("streamgauge.suites.experiments") / "start" / "experiment.toml").read_text(encoding="utf-8")
QUERY = "SELECT ?s FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT5S STEP PT5S] WHERE { WINDOW <urn:w> { ?s ?p ?o } }"
TEXTS = {
    "weather": EXPERIMENT,
    "start": START,
    "variants": FILE,
    "text": f"""[workload]
file = "a.nq"
[query]
text = '''
{QUERY}'''
[[engine]]
name = "live"
semantics = ["cqels"]
""",
    "unknown to the form": """memory_limit_mb = 100
[workload]
file = ["a.csv", "b.csv"]
csv_mapping = "m.json"
[query]
file = "q.rq"
[[engine]]
name = "live"
semantics = ["csparql"]
time_unit = "100ms"
options = { shards = 2 }
[feed]
output_limit_mb = 5
""",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_that_the_form_shows_and_writes_says_the_same(name):
    before = tomllib.loads(TEXTS[name])
    again = data_of(fields_of(before), before)
    engines = [{**engine, "semantics": [engine["semantics"]] if isinstance(engine["semantics"], str)
                else engine["semantics"]} for engine in before["engine"]]  # fmt: skip
    assert {**again, "engine": None} == {**before, "engine": None}
    assert [{**engine, "semantics": sorted(engine["semantics"])} for engine in again["engine"]] == [
        {**engine, "semantics": sorted(engine["semantics"])} for engine in engines
    ]  # fmt: skip
    text = updated(TEXTS[name], again)
    assert tomllib.loads(text) == again
    assert re.findall("#.*", text) == re.findall("#.*", TEXTS[name])


def test_what_changes_is_written_in_its_place_beside_the_comments():
    data = tomllib.loads(START)
    fields = {**fields_of(data), "feed.pace": "10", "query.1.file": "other.rq", "sweep.0.key": "feed.lateness",
              "sweep.0.values": "1s, 2s", "workload.time_property": ""}  # fmt: skip
    text = updated(START, data_of(fields, data))
    assert re.search(r"^pace = 10 +# or", text, re.MULTILINE)
    assert '[[query]]\nfile = "query.rq"' in text
    assert '[[query]]\nfile = "other.rq"' in text
    assert 'feed.lateness = ["1s", "2s"]' in text
    assert "time_property" not in text
    assert text.startswith("# An experiment: a stream")


def test_another_workload_keeps_nothing_of_the_one_before():
    before = tomllib.loads(EXPERIMENT)
    data = data_of({**fields_of(before), "workload.name": "", "workload.file": "a.nq"}, before)
    assert data["workload"] == {"file": "a.nq"}
    assert data_of({**fields_of(data), "workload.name": "city"}, data)["workload"] == {"name": "city"}


def test_blocks_behind_one_that_is_removed_move_up():
    fields = {"query.0.file": "a", "query.1.file": "b", "query.2.file": "c", "name": "x"}
    assert without_block(fields, "query", 1) == {"query.0.file": "a", "query.1.file": "c", "name": "x"}


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("query.file", "query.0.file"),
        ("query.1.file", "query.1.file"),
        ("query", "query.0.name"),
        ("workload.stations", "workload.weather.stations"),
        ("engine.1.semantics.0", "engine.1.semantics"),
        ("feed.pace", "sweep.0.values"),
        ("sweep.feed.pace", "sweep.0.values"),
        ("name", "name"),
    ],
)
def test_each_key_of_the_file_has_its_field(key, name):
    assert place_of(key, {"workload.name": "weather", "sweep.0.key": "feed.pace"}) == name


def shown(page):
    """The sentences at the fields of a page."""
    matches = re.findall(r'id="([^"]*)-wrong">([^<]*)</p>', page.text)
    return {name: unescape(sentence) for name, sentence in matches}


WRONG = [
    ({"workload.weather.stations": "many"}, "workload.weather.stations", "a whole number"),
    ({"repetitions": "0"}, "repetitions", "at least 1"),
    ({"feed.pace": "slow"}, "feed.pace", "'fast' or 'real time' or a number"),
    ({"max_delay": "soon"}, "max_delay", "a duration"),
    ({"query.0.name": ""}, "query.0.name", "exactly one of name, file and text"),
    ({"engine.0.semantics.csparql": ""}, "engine.0.semantics", "at least 1"),
    ({"engine.0.name": "rspjs"}, "engine.0.semantics", "engine rspjs refuses"),
    ({"sweep.0.key": "feed.pace", "sweep.0.values": "1, 1"}, "sweep.0.values", "repeats a value"),
    ({"sweep.0.key": "workload.stations", "sweep.0.values": ""}, "sweep.0.values", "expected a list"),
]


@pytest.mark.slow
def test_an_experiment_is_made_by_the_form_and_edited_by_it(tmp_path):
    with bench(tmp_path) as client:
        assert shown(client.get("/runs/new")) == {}
        for fields, name, words in WRONG:
            page = client.post("/runs/new", do="save", **{**FIRST, **fields})
            assert page.status_code == 400, fields
            assert words in shown(page).get(name, ""), (fields, shown(page))
        assert list(tmp_path.iterdir()) == []
        checked = client.post("/runs/new", do="check", **FIRST)
        assert "Nothing is wrong. At least 1 s, and the time to make the stream: 1 run." in checked.text
        more = client.post("/runs/new", do="add-sweep", **FIRST)
        assert 'name="sweep.0.key"' in more.text
        swept = {**FIRST, "sweep.0.key": "workload.stations", "sweep.0.values": "2, 3"}
        made = client.post("/runs/new", do="save", **swept)
        assert made.headers["location"] == "/runs/experiment/my-experiment.toml"
        file = read_file(tmp_path / "my-experiment.toml")
        assert [variant.point for variant in file.variants] == [{"stations": "2"}, {"stations": "3"}]
        assert "already exists" in client.post("/runs/new", do="save", **FIRST).text
        (tmp_path / "my-experiment.toml").write_text((tmp_path / "my-experiment.toml").read_text() + "# mine\n")
        edit = client.get("/runs/edit/my-experiment.toml")
        seen = re.findall(r'name="seen" value="(\w+)"', edit.text)[0]
        saved = client.post("/runs/edit/my-experiment.toml", do="save", seen=seen, **{**swept, "seeds": "4, 5"})
        assert saved.status_code == 303, shown(saved)
        text = (tmp_path / "my-experiment.toml").read_text()
        assert "seeds = [4, 5]" in text
        assert "# mine" in text
        tried = client.post("/runs/edit/my-experiment.toml", do="check", seen=seen, **swept)
        assert f'value="{seen}"' in tried.text, "what was seen stays what was seen"
        late = client.post("/runs/edit/my-experiment.toml", do="save", seen=seen, **swept)
        assert "has changed since the form was opened" in late.text
        assert "seeds = [4, 5]" in (tmp_path / "my-experiment.toml").read_text()


@pytest.mark.parametrize(
    "text",
    ["workload = 3", "[workload]\nname = ['a']\n[sweep]\nfeed = 3", "[[workload]]", "query = [1, 2]", "engine = 'live'",
     "feed = 3", "sweep = [1]", "a = " + "[" * 2000, "[query]\nparameters = 3", "[[engine]]\nname = 'a'\nsemantics = 7",
     "[[query]]\nname = 'a'\n" * 20],
    ids=range(11),
)  # fmt: skip
def test_a_file_of_any_shape_is_shown_or_refused_in_a_sentence(tmp_path, text):
    (tmp_path / "e.toml").write_text(text)
    with bench(tmp_path) as client:
        shown_page = client.get("/runs/edit/e.toml")
        assert shown_page.status_code in (200, 400)
        assert shown_page.status_code == 200 or "edit the file itself" in shown_page.text
        assert client.post("/runs/edit/e.toml", do="save", **FIRST).status_code in (303, 400)


@pytest.mark.parametrize(
    "fields",
    [
        {"sweep.0.key": "workload", "sweep.0.values": "1", "sweep.1.key": "workload.stations", "sweep.1.values": "1"},
        {"sweep.0.key": "...", "sweep.0.values": "1, 2"},
        {f"query.{'9' * 5000}.name": "x"},
        {f"query.{number}.name": "x" for number in range(100)},
        {"query.0.parameters": "= 3\n[[\n\"\"\" = 1", "seeds": "[[1], {}]"},
        {"name": "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "feed.pace": "1e999"},
    ],
    ids=range(6),
)  # fmt: skip
def test_fields_of_any_text_are_written_or_refused(tmp_path, fields):
    with bench(tmp_path) as client:
        for do in ("check", "save", "add-query", "remove-sweep-0", "remove-x-1"):
            assert client.post("/runs/new", do=do, **{**FIRST, **fields}).status_code in (200, 303, 400)


def test_the_form_leads_to_no_file_outside_of_the_folder(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "secret.rq").write_text("SECRET of another folder")
    (tmp_path / "e.toml").write_text(EXPERIMENT)
    (home / "link.toml").symlink_to(tmp_path / "e.toml")
    with bench(home) as client:
        outside = {**FIRST, "query.0.name": "", "query.0.file": "../secret.rq"}
        for do in ("check", "save"):
            page = client.post("/runs/new", do=do, **outside)
            assert page.status_code == 400
            assert "lies outside" in page.text
            assert "SECRET" not in page.text
        for place in ("link.toml", "..%2fe.toml", "nowhere.toml"):
            assert client.get(f"/runs/edit/{place}").status_code in (400, 404)
            assert client.post(f"/runs/edit/{place}", do="save", **FIRST).status_code in (400, 404)
        made = client.post("/runs/new", do="save", **{**FIRST, "name": "../../x"})
        assert made.status_code == 400
        assert sorted(path.name for path in tmp_path.iterdir()) == ["e.toml", "home", "secret.rq"]
        script = {**FIRST, "name": "<script>alert(1)</script>", "query.0.text": "</textarea><script>alert(1)</script>"}
        assert "<script>alert" not in client.post("/runs/new", do="check", **script).text
