"""Expressions have the values that Jinja gives them, on plain data; DIFFERENCES are the exceptions,
and the reference page has them in its table."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import jinja2.runtime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprat.machines.expression import SUMS
from sprat.machines.filters import FILTERS, FUNCTIONS, METHODS
from sprat.machines.operators import COMPARISONS
from sprat.machines.template import text
from sprat.machines.value_tests import COMPARING, TESTS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "machines.md"


class Refused(NamedTuple):
    """An expression has no value."""

    why: str


class Difference(NamedTuple):
    """One row of the page's table, and which of the cases below it excuses."""

    expression: str
    here: str
    jinja: str
    refusal: str = ""  # a pattern of what is said here, where Jinja has a value
    form: str = ""  # a pattern of expressions that Jinja refuses


DIFFERENCES = [
    Difference("'' ~ none", "''", "'None'"),
    Difference("'v=' ~ true", "'v=true'", "'v=True'"),
    Difference("[1, none] | string", "'[1,null]'", "'[1, None]'"),
    Difference("{'a': '<'} | tojson", """'{"a":"<"}'""", """'{"a": "\\\\u003c"}'"""),
    Difference("none == null", "true", "false"),
    Difference("[1, 2] == (1, 2)", "true", "false"),
    Difference("{'items': 1}.items", "1", "a method"),
    Difference("'a b' | split", "['a', 'b']", "refused"),
    Difference("[[1], [1]] | unique | list", "[[1]]", "refused"),
    Difference("1 is odd if true else 2", "true", "refused", form=r" is (not )?\w+ (if|in|not) "),
    Difference("missing | length", "refused", "0", r"not defined"),
    Difference("none.name", "refused", "none", r"has no|nothing that could have|out of reach"),
    Difference("true + 1", "refused", "2", r"true or false|only numbers|whole number"),
    Difference("'%d' % 3", "refused", "'3'", r"a text and .* cannot be divided"),
    Difference("[[1], [2]] | sum(start=[])", "refused", "[1, 2]", r"only numbers can be summed"),
    Difference("'%d' is odd", "refused", "false", r"a text cannot be divided"),
    Difference("2 ** 65", "refused", str(2**65), r"too large|at most|too much work"),
    Difference("{1: 2}", "refused", "{1: 2}", r"key of a mapping"),
]
REFUSALS = [row.refusal for row in DIFFERENCES if row.refusal]
FORMS_OF_OURS = [row.form for row in DIFFERENCES if row.form]


# -- both sides ------------------------------------------------------------------------------------


def shown(value: Any) -> str:
    """How a value is written into a text: rows 1 to 3."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, jinja2.Undefined):
        return ""
    return json.dumps(listed(value), separators=(",", ":"), ensure_ascii=False)


def listed(value: Any) -> Any:
    """A value without what only Python has: tuples, ranges, generators, undefined values."""
    if isinstance(value, jinja2.Undefined):
        return None
    if isinstance(value, dict):
        return {key: listed(inner) for key, inner in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return [listed(inner) for inner in value]


def written(name: str, texts: int) -> Callable[..., Any]:
    """A filter of Jinja whose first arguments are written into texts as here."""
    original = jinja2.filters.FILTERS[name]

    def apply(context: Any, *given: Any, **named: Any) -> Any:
        rest = (*map(shown, given[:texts]), *given[texts:])
        takes_context = hasattr(original, "jinja_pass_arg")
        return original(*((context,) if takes_context else ()), *rest, **named)

    return jinja2.pass_eval_context(apply)


@jinja2.pass_environment
def joined(environment: jinja2.Environment, value: Any, d: Any = "", attribute: Any = None) -> str:
    pick = jinja2.filters.make_attrgetter(environment, attribute)
    return shown(d).join(shown(pick(one)) for one in value)


def as_documented() -> jinja2.Environment:
    """Jinja, with what the table says about values in texts and about names that it lacks."""
    made = jinja2.Environment(finalize=shown, keep_trailing_newline=True, optimized=False)
    made.globals = {"range": range, "null": None}
    for name in ("capitalize", "lower", "string", "title", "trim", "upper", "wordcount"):
        made.filters[name] = written(name, 1)
    made.filters |= {
        "join": joined,
        "replace": written("replace", 3),
        "split": lambda value, between=None: shown(value).split(between),
        "tojson": lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False),
    }
    for name in ("lower", "upper"):
        made.tests[name] = lambda value, is_so=jinja2.tests.TESTS[name]: is_so(shown(value))
    return made


JINJA, PLAIN = as_documented(), jinja2.Environment()


@pytest.fixture(scope="module", autouse=True)
def _joined_as_documented() -> Iterator[None]:
    """`~` is a function of Jinja's runtime, and no entry of an environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jinja2.runtime, "str_join", lambda parts: "".join(map(shown, parts)))
        yield


@cache
def by_jinja(expression: str, environment: jinja2.Environment = JINJA) -> Callable[..., Any]:
    return environment.compile_expression(expression)


@cache
def here(expression: str) -> Callable[..., Any]:
    return text("{{ " + expression + " }}")


def outcome(evaluate: Callable[[], Any]) -> Any:
    try:
        return listed(evaluate())
    except Exception as error:  # noqa: BLE001  # Jinja hands on what Python raises
        return Refused(str(error))


def check(expression: str, names: dict[str, Any]) -> None:
    ours = outcome(lambda: here(expression)(names))
    theirs = outcome(lambda: by_jinja(expression)(names))
    if isinstance(ours, Refused):
        is_documented = any(re.search(refusal, ours.why) for refusal in REFUSALS)
        assert isinstance(theirs, Refused) or is_documented, f"{ours}, by Jinja {theirs!r}"
    elif not any(re.search(form, expression) for form in FORMS_OF_OURS):
        assert repr(ours) == repr(theirs), expression


# -- what is compared ------------------------------------------------------------------------------

FILTERED = {
    "abs": ["x | abs", "n | abs"],
    "capitalize": ["x | capitalize", "t | capitalize"],
    "count": ["x | count"],
    "d": ["missing | d", "missing | d(x)", "x | d(y, f)"],
    "default": ["missing.a | default(x)", "o.a | default(x)", "x | default(y, boolean=f)"],
    "first": ["x | first", "l | first"],
    "float": ["x | float", "t | float(y)", "n | float", "t | float(default=y)"],
    "int": ["x | int", "t | int", "t | int(y)", "t | int(y, k)", "t | int(base=k)", "n | int"],
    "items": ["o | items | list", "x | items | list"],
    "join": ["l | join", "l | join(x)", "s | join(t)", "r | join(t, attribute='a')", "x | join"],
    "last": ["x | last", "l | last"],
    "length": ["x | length"],
    "list": ["x | list"],
    "lower": ["x | lower", "t | lower"],
    "map": [
        "l | map('int') | list", "s | map('upper') | list", "s | map('int', n) | list",
        "r | map(attribute='a') | list", "r | map(attribute='a', default=x) | list",
        "r | map(attribute='b.a') | list", "l | map(attribute=0) | list", "l | map | list",
        "s | map('replace', t, 'x') | list", "r | map(attribute='a', other=1) | list",
    ],
    "max": ["l | max", "s | max", "s | max(f)", "w | max", "r | max(attribute='a')", "x | max"],
    "min": ["l | min", "s | min", "s | min(case_sensitive=f)", "w | min", "r | min(f, 'a')"],
    "reject": ["l | reject | list", "w | reject('odd') | list", "l | reject('none') | list"],
    "rejectattr": ["r | rejectattr('a') | list", "r | rejectattr('a', 'eq', x) | list"],
    "replace": ["t | replace('a', u)", "x | replace(t, u)", "t | replace(u, 'x', n)",
                "t | replace('a', y, count=k)"],
    "reverse": ["x | reverse | list", "t | reverse", "l | reverse | list"],
    "round": ["x | round", "n | round", "q | round", "q | round(k)", "q | round(n, 'floor')",
              "q | round(n, 'ceil')", "n | round(-1)", "q | round(1, 'up')", "w|map('round')|list"],
    "select": ["l | select | list", "w | select('gt', n) | list", "l | select('string') | list",
               "w | select('divisibleby', 3) | list"],
    "selectattr": ["r | selectattr('a') | list", "r | selectattr('a', 'defined') | list",
                   "r | selectattr('b.a', 'lt', n) | list", "[1] | selectattr | list"],
    "sort": ["l | sort", "s | sort", "s | sort(f)", "s | sort(f, f)", "w | sort(reverse=f)",
             "r | sort(attribute='a')", "r | sort(attribute='a,b')", "x | sort",
             "r | sort(case_sensitive=f, attribute='a')"],
    "split": ["t | split", "t | split(u)"],
    "string": ["x | string", "t | string"],
    "sum": ["w | sum", "l | sum", "r | sum(attribute='a')", "w | sum(start=n)", "w | sum('a', n)"],
    "title": ["x | title", "t | title"],
    "tojson": ["x | tojson"],
    "trim": ["t | trim", "x | trim", "t | trim(u)", "t | trim(chars='a')"],
    "unique": ["z | unique | list", "s | unique | list", "s | unique(f) | list",
               "r | unique(attribute='a') | list"],
    "upper": ["x | upper", "t | upper"],
    "wordcount": ["t | wordcount", "x | wordcount"],
}  # fmt: skip
TESTED = {name: [f"{value} is {name}" for value in ("x", "n", "t", "missing")] for name in TESTS}
TESTED |= {
    name: [f"x is {name}(y)", f"n is {name} q", f"t is {name}(u)", f"s is not {name}(l)"]
    for name in COMPARING
}
TESTED["in"] = ["x is in l", "t is in s", "t is in u", "t is not in o", "x is in y"]
OPERATED = {
    sign: [f"x {sign} y", f"n {sign} q", f"t {sign} n", f"l {sign} s", f"missing {sign} x"]
    for row in (*SUMS, ("**",), COMPARISONS)
    for sign in row
}
WORDED = [
    "not x", "x and y", "x or y", "x if y else t", "x if y", "missing or x", "not missing",
    "-x", "+x", "- -x", "-n | abs", "x == none", "missing == none", "missing != none",
    "missing == missing.a", "o.a == none", "o.a is none", "n < q < k", "n == q == x",
    "x == y != t", "x in [y, t]", "[x, y]", "{'a': x, 'b': [y]}", "(x, y) | list",
    "o.a", "o['a']", "o[t]", "l[0]", "l.0", "l[n]", "t[n]", "x[n]", "x.a", "r[0].a", "o.b.a",
    "l[n:]", "l[:n]", "l[n:k]", "l[::k]", "t[n:k:-1]", "x[1:]", "x[n:q]",
    "range(n)", "range(n, k)", "range(n, k, 2) | list", "range(0, 9, n) | sum",
]  # fmt: skip
CALLED = {
    "get": ["o.get('a')", "o.get(t)", "o.get('a', x)"],
    "items": ["o.items() | list"],
    "keys": ["o.keys() | list"],
    "values": ["o.values() | list"],
    "endswith": ["t.endswith(u)"],
    "lower": ["t.lower()"],
    "replace": ["t.replace('a', u)", "t.replace(u, 'x', n)"],
    "split": ["t.split()", "t.split('a')", "t.split(u)"],
    "startswith": ["t.startswith(u)"],
    "strip": ["t.strip()", "t.strip(u)"],
    "upper": ["t.upper()"],
}
FORMS = [
    *WORDED,
    *(
        one
        for table in (FILTERED, TESTED, OPERATED, CALLED)
        for forms in table.values()
        for one in forms
    ),
]

TEXTS = st.text("aAbB1. -'%(", max_size=5) | st.sampled_from(
    ["42.23", "it's a-test", "0x1A", "1e3", "é ß", "b\nC", "12", "-7", "%d", "ab AB"]
)
WHOLE, BROKEN = st.integers(-20, 20), st.floats(-20, 20, width=16)
SCALARS = st.none() | st.booleans() | WHOLE | BROKEN | TEXTS
KEYS = st.sampled_from(["a", "b", "A", "c d"])
PLAIN_DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
RECORDS = st.fixed_dictionaries(
    {"a": SCALARS, "b": st.dictionaries(KEYS, WHOLE, max_size=2)}
) | st.fixed_dictionaries({"a": TEXTS, "b": WHOLE})
NAMES = {
    "x": PLAIN_DATA,
    "y": PLAIN_DATA,
    "n": WHOLE,
    "k": st.sampled_from([2, 3, 8, 10, 16]),
    "q": BROKEN | WHOLE,
    "t": TEXTS,
    "u": TEXTS,
    "f": st.booleans(),
    "l": st.lists(PLAIN_DATA, max_size=3),
    "s": st.lists(TEXTS, max_size=4),
    "w": st.lists(WHOLE | BROKEN, max_size=4),
    "o": st.dictionaries(KEYS, PLAIN_DATA, max_size=3),
    "r": st.lists(RECORDS, max_size=3),
    "z": st.lists(SCALARS, max_size=4),
}
ALWAYS_THE_SAME = settings(derandomize=True, database=None, max_examples=20)


def test_every_filter_test_operator_and_method_is_compared() -> None:
    assert FILTERED.keys() == FILTERS.keys()
    assert TESTED.keys() == TESTS.keys()
    assert OPERATED.keys() >= {*COMPARISONS, "+", "-", "*", "/", "//", "%", "**", "~"}
    assert CALLED.keys() == {name for table in METHODS.values() for name in table}
    assert FUNCTIONS.keys() == {"range"}


@pytest.mark.parametrize("form", FORMS)
def test_the_value_is_that_of_jinja(form: str) -> None:
    used = {name: NAMES[name] for name in re.findall(r"\b[a-z]\b", form) if name in NAMES}

    @ALWAYS_THE_SAME
    @given(names=st.fixed_dictionaries(used))
    def compare(names: dict[str, Any]) -> None:
        check(form, names)

    compare()


def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    signs = st.sampled_from(sorted({*OPERATED, "and", "or"}))
    calls = st.sampled_from(["| abs", "| int", "| string", "| length", "is odd", "is not none"])
    return st.one_of(
        st.builds("{} {} {}".format, inner, signs, inner),
        st.builds("{} if {} else {}".format, inner, inner, inner),
        st.builds("{} {}".format, inner, calls),
        st.builds("{}{}".format, st.sampled_from(["not ", "-", "+"]), inner),
        st.builds("({})".format, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("({})[{}]".format, inner, inner),
    )


LEAVES = st.sampled_from(
    [
        "0",
        "1",
        "2",
        "3.5",
        "1_0",
        "'a'",
        '"B"',
        r"'\x41\n\u00e9\'\\'",
        "true",
        "none",
        "missing",
        "[1, 2]",
    ]
)


@settings(ALWAYS_THE_SAME, max_examples=500)
@given(expression=st.recursive(LEAVES, nested, max_leaves=5))
def test_signs_and_words_bind_as_in_jinja(expression: str) -> None:
    check(expression, {})


@ALWAYS_THE_SAME
@given(x=PLAIN_DATA, y=PLAIN_DATA, t=TEXTS)
def test_a_text_with_values_in_it_is_written_as_documented(x: Any, y: Any, t: str) -> None:
    source, names = "v={{ x }} {{ t }}{{ missing }}\n{{ y }}!\n", {"x": x, "y": y, "t": t}
    assert text(source)(names) == JINJA.from_string(source).render(names)


@pytest.mark.parametrize("name", sorted(FILTERS.keys() & jinja2.filters.FILTERS.keys()))
def test_a_filter_takes_the_arguments_of_jinja(name: str) -> None:
    """By their names; of tojson, indent is refused."""
    original = jinja2.filters.FILTERS[name]
    theirs = named_arguments(original)[1 if hasattr(original, "jinja_pass_arg") else 0 :]
    ours = named_arguments(FILTERS[name])[1:]
    assert ours[1:] == ([] if name == "tojson" else theirs[1:])


def named_arguments(function: Callable[..., Any]) -> list[str]:
    found = inspect.signature(function).parameters.values()
    return [one.name for one in found if one.kind is one.POSITIONAL_OR_KEYWORD]


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: row.expression)
def test_a_documented_difference_is_one(row: Difference) -> None:
    def said(value: Any) -> Any:
        return "refused" if isinstance(value, Refused) else value

    def expected(told: str) -> Any:
        return told if told == "refused" else by_jinja(told, PLAIN)({})

    assert said(outcome(lambda: here(row.expression)({}))) == expected(row.here)
    if row.jinja != "a method":
        theirs = outcome(lambda: by_jinja(row.expression, PLAIN)({}))
        assert said(theirs) == expected(row.jinja)


def test_the_page_lists_the_differences() -> None:
    section = PAGE.read_text().split("### Differences from Jinja")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(.+)` \| (.+) \| (.+) \| .+ \|$", section, re.MULTILINE)
    assert [tuple(one.replace("\\|", "|").strip("`") for one in row) for row in rows] == [
        (row.expression, row.here, row.jinja) for row in DIFFERENCES
    ]
