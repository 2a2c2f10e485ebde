"""The shapes of query that faults are injected into: CSRBench's Q1 to Q7 and YABench's E1 to E4, small."""

from dataclasses import dataclass

_HOT = "?obs om-owl:observedProperty weather:_AirTemperature ; om-owl:procedure ?sensor ; om-owl:result ?res . "
_VALUE = "?res om-owl:floatValue ?value . "
_OB1 = "?ob1 om-owl:procedure ?sensor ; om-owl:observedProperty weather:_AirTemperature ; om-owl:result ?res1 . "
_VALUE1 = "?res1 om-owl:floatValue ?value1 . "
_CONST = (
    "?ob om-owl:procedure sens-obs:System_C0 ; om-owl:observedProperty weather:_AirTemperature ; om-owl:result ?res . "
)
_KEPT = "GRAPH <urn:kept> { %s } "


@dataclass(frozen=True)
class Shape:
    """A query and what it becomes under faults in its evaluation, written by hand."""

    name: str
    text: str
    size: int
    slide: int
    sensors: int = 4
    aggregate: bool = False
    matches: str = ""
    unfiltered: str | None = None
    kept: tuple[str, ...] = ()
    unconstrained: tuple[str, ...] = ()
    distinct: str | None = None
    joined: str | None = None
    unnegated: str | None = None
    branches: tuple[str, ...] = ()
    static: bool = False


def _select(columns: str, where: str) -> str:
    return f"SELECT {columns} {{ {where} }}"


def _filtered(name: str, columns: str, where: str, condition: str, size: int, slide: int, **more: object) -> Shape:
    return Shape(
        name,
        _select(columns, f"{where} FILTER({condition})"),
        size,
        slide,
        unfiltered=_select(columns, where),
        matches=_select("*", f"{where} FILTER({condition})"),
        **more,  # type: ignore[arg-type]
    )


_PAIR = "FILTER(?value1 > ?value) FILTER(?value > 75)"
_DRY = _HOT.replace("_AirTemperature", "_RelativeHumidity")
_HIGH = _HOT + _VALUE + "FILTER(?value > 80)"
_LOW = _HOT + _VALUE + "FILTER(?value < 50)"
_EITHER = "%s{ " + _HIGH + " }%s{ " + _LOW + " }%s"
SHAPES = (
    _filtered("q1", "?sensor ?obs", _HOT + _VALUE, "?value > 80", 4000, 4000),
    _filtered("q2", "?sensor ?obs", _HOT + _VALUE, "?value > 80", 1000, 1000),
    _filtered("q3", "?sensor ?obs ?value", _DRY + _VALUE, "?value < 49 && ?value > 24", 3000, 3000),
    _filtered("q4", "(AVG(?value) AS ?avg)", _HOT + _VALUE, "?value > 80", 3000, 3000, aggregate=True),
    _filtered("q5", "?sensor ?obs", _HOT + _VALUE, "?value > 80", 4000, 1000),
    Shape(
        "q6",
        _select("?sensor ?ob1 ?value1 ?obs", _OB1 + _VALUE1 + _HOT + _VALUE + _PAIR),
        3000,
        3000,
        sensors=2,
        kept=(
            _select("?sensor ?ob1 ?value1 ?obs", _KEPT % (_OB1 + _VALUE1) + _HOT + _VALUE + _PAIR),
            _select("?sensor ?ob1 ?value1 ?obs", _OB1 + _VALUE1 + _KEPT % (_HOT + _VALUE) + _PAIR),
        ),
        unconstrained=(_select("?sensor ?ob1 ?value1 ?obs", _OB1 + _VALUE1),),
        matches=_select("*", _OB1 + _VALUE1 + _HOT + _VALUE + _PAIR),
    ),
    Shape(
        "q7",
        _select("?sensor ?ob1", _CONST + _VALUE + _OB1 + _VALUE1 + "FILTER(?value1 > ?value)"),
        3000,
        3000,
        sensors=3,
        kept=(
            _select("?sensor ?ob1", _KEPT % (_CONST + _VALUE) + _OB1 + _VALUE1 + "FILTER(?value1 > ?value)"),
            _select("?sensor ?ob1", _CONST + _VALUE + _KEPT % (_OB1 + _VALUE1) + "FILTER(?value1 > ?value)"),
        ),
        unconstrained=(_select("?sensor ?ob1", _OB1 + _VALUE1),),
        unfiltered=_select("?sensor ?ob1", _CONST + _VALUE + _OB1 + _VALUE1),
        matches=_select("*", _CONST + _VALUE + _OB1 + _VALUE1 + "FILTER(?value1 > ?value)"),
    ),
    _filtered("e1", "?sensor ?obs ?value", _HOT + _VALUE, "?value > 50", 5000, 2000),
    Shape(
        "e2",
        _select("(AVG(?value) AS ?avg)", _HOT + _VALUE),
        4000,
        2000,
        aggregate=True,
        matches=_select("*", _HOT + _VALUE),
    ),
    Shape(
        "e3",
        _select("?sensor (COUNT(?obs) AS ?count)", _HOT + _VALUE) + " GROUP BY ?sensor",
        4000,
        4000,
        matches=_select("*", _HOT + _VALUE),
    ),
    Shape(
        "e4",
        "SELECT DISTINCT ?sensor { " + _HOT + _VALUE + "FILTER(?value > 50) }",
        4000,
        2000,
        sensors=3,
        distinct=_select("?sensor", _HOT + _VALUE + "FILTER(?value > 50)"),
        unfiltered="SELECT DISTINCT ?sensor { " + _HOT + _VALUE + "}",
        matches=_select("*", _HOT + _VALUE + "FILTER(?value > 50)"),
    ),
    Shape(
        "places",
        _select("?obs ?place", _HOT + _VALUE + "OPTIONAL { ?sensor <urn:place> ?place }"),
        4000,
        4000,
        joined=_select("?obs ?place", _HOT + _VALUE + "?sensor <urn:place> ?place"),
        static=True,
        matches=_select("*", _HOT + _VALUE),
    ),
    Shape(
        "minus",
        _select("?obs ?value", _HOT + _VALUE + "MINUS { ?obs om-owl:procedure sens-obs:System_C0 }"),
        4000,
        2000,
        sensors=3,
        unnegated=_select("?obs ?value", _HOT + _VALUE),
    ),
    Shape(
        "union",
        _select("?obs ?value", _EITHER % ("", " UNION ", "")),
        3000,
        3000,
        branches=(_select("?obs ?value", _HIGH), _select("?obs ?value", _LOW)),
    ),
)
