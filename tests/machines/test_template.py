"""Templates have native values, see only what they are given, and cannot take long or much."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from sprat.machines.filters import FILTERS
from sprat.machines.scope import TemplateError
from sprat.machines.template import condition, filled, text
from sprat.machines.value_tests import TESTS

NAMES = {
    "context": {
        "a": 1, "job": None, "jobs": [1, 2], "name": "x", "most": 3,
        "workers": [{"id": "a", "n": 1}, {"id": "b", "n": 2, "x": {"y": 5}}],
    },
    "input": {"pool_id": "papers"},
    "output": {"queue_depth": 10, "active_workers": 2},
}  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("3", 3), ("1.5", 1.5), ("1_000", 1000), ("'a'", "a"), ("\"a\\n'\"", "a\n'"),
        ("null", None), ("none", None), ("None", None), ("true", True), ("False", False),
        ("[1, 'b', null]", [1, "b", None]), ("(1, 2)", [1, 2]), ("(1)", 1), ("[]", []), ("{}", {}),
        ("{'a': {'b': 1}}", {"a": {"b": 1}}),
        ("context.a", 1), ("context['a']", 1), ("context.jobs[0]", 1), ("context.jobs[-1]", 2),
        ("context.jobs[9]", None), ("context.nothing", None), ("nothing", None),
        ("range", None), ("self", None),
        ("context.workers[1].x.y", 5), ("context.jobs[:1]", [1]), ("'abc'[::-1]", "cba"),
        ("input.max_workers | default(10)", 10), ("nothing | d('x')", "x"),
        ("context.job | default(3)", None), ("context.job | default(3, true)", 3),
        ("[output.queue_depth - output.active_workers, context.most - 2, 0] | max", 8),
        ("[3, 1, 2] | min", 1), ("[3, 1] | sum", 4), ("range(3)", [0, 1, 2]),
        ("range(1, 6, 2)", [1, 3, 5]), ("range(0)", []), ("range(-3)", []),
        ("context.jobs | length == 0", False), ("'' | length", 0), ("context | count", 6),
        ("context.job == null", True), ("nothing == null", True), ("nothing != null", False),
        ("nothing == none", False), ("null != nothing", False), ("nothing == null == 1", False),
        ("1 < 2 < 3", True), ("3 > 2 > 2", False), ("1 == 1.0", True), ("'a' < 'b'", True),
        ("2 in context.jobs", True), ("'x' not in 'abc'", True), ("'a' in context", True),
        ("1 if context.a else 2", 1), ("1 if nothing else 2", 2), ("1 if false", None),
        ("not context.a", False), ("not not 3", True), ("nothing or 5", 5), ("0 and 1/0", 0),
        ("context.a is defined", True), ("context.b is not defined", True),
        ("context.job is none", True), ("3 is odd", True), ("4 is even", True),
        ("2 + 3 * 4", 14), ("(2 + 3) * 4", 20), ("2 ** 3 ** 1", 8), ("-2 ** 2", 4), ("- -3", 3),
        ("7 / 2", 3.5), ("7 // 2", 3), ("7 % 4", 3), ("2 - 5 - 1", -4), ("'a' ~ 1 ~ null", "a1"),
        ("'a' + 'b'", "ab"), ("[1] + [2]", [1, 2]), ("'ab' * 2", "abab"), ("[0] * 3", [0, 0, 0]),
        ("context.jobs | join('-')", "1-2"), ("' a ' | trim | upper", "A"),
        ("'a-b' | replace('-', '+')", "a+b"), ("'a b' | split", ["a", "b"]),
        ("'12' | int", 12), ("'x' | int(7)", 7), ("3.9 | int", 3), ("'1.5' | float", 1.5),
        ("2.25 | round(1)", 2.2), ("2.1 | round(0, 'ceil')", 3.0),
        ("-3 | abs", 3), ("[2, 1, 2] | unique", [2, 1]), ("[2, 1] | sort", [1, 2]),
        ("[1, 2] | reverse | list", [2, 1]), ("[1, 2] | first", 1), ("[1, 2] | last", 2),
        ("context.workers | map(attribute='id') | list", ["a", "b"]),
        ("context.workers | selectattr('n', 'gt', 1) | map(attribute='id') | first", "b"),
        ("context.workers | rejectattr('x') | list | length", 1),
        ("context.workers | sum(attribute='n')", 3), ("[1, 2] | map('string') | list", ["1", "2"]),
        ("[0, 1] | select | list", [1]),
        ("context.workers | max(attribute='n')", {"id": "b", "n": 2, "x": {"y": 5}}),
        ("{'b': 1} | items", [["b", 1]]), ("[1, null] | tojson", "[1,null]"),
        ("context.get('a')", 1), ("context.get('zz', 4)", 4), ("context.name.upper()", "X"),
        ("{'b': 2}.keys()", ["b"]), ("'a.b'.split('.')", ["a", "b"]), ("'{{ 3 }}'", "{{ 3 }}"),
    ],
)  # fmt: skip
def test_an_expression_has_its_native_value(expression: str, value: Any) -> None:
    found = text("{{ " + expression + " }}")(NAMES)
    assert found == value
    assert type(found) is type(value)


def test_a_longer_text_has_its_values_written_out() -> None:
    made = text("{{ input.pool_id }}: {{ 1 + 1 }} of {{ [1, true] }}{{ null }}{{ nothing }}!")
    assert made(NAMES) == "papers: 2 of [1,true]!"
    assert text("  {{ 3 }}  ")(NAMES) == 3
    assert text("{{ '}}' }}{{ '' }}")(NAMES) == "}}"


def test_a_condition_needs_no_braces() -> None:
    assert condition("context.most > 2")(NAMES) is True
    assert condition("{{ context.most > 3 }}")(NAMES) is False
    assert not condition("context.zz")(NAMES)


def test_a_tree_is_filled_in_and_a_list_passes_through_as_it_is() -> None:
    tree = {"a": text("{{ context.jobs }}"), "b": [text("x{{ 1 }}"), 2], "c": "{{ not compiled }}"}
    found = filled(tree, NAMES)
    assert found == {"a": [1, 2], "b": ["x1", 2], "c": "{{ not compiled }}"}


ESCAPES = [
    "''.__class__", "''.__class__.__mro__[1].__subclasses__()", "context.__class__",
    "context['__class__']", "context['__cla' ~ 'ss__']", "[].__class__", "(1).__class__",
    "context.jobs.append(4)", "context.update({'a': 2})", "context.clear()", "context.pop('a')",
    "'{0.__class__}'.format(1)", "'%s' % context", "__import__('os')", "open('/etc/passwd')",
    "eval('1')", "exec('1')", "range.__globals__", "self.__init__",
    "cycler.__init__.__globals__.os.popen('id').read()", "lipsum.__globals__", "joiner()",
    "namespace()", "config.items()", "context|attr('__class__')",
    "context|map(attribute='__class__')|list",
    "context.get.__self__", "(lambda: 1)()", "x := 3", "[i for i in range(3)]",
    "import os", "print(1)",
    "context.jobs.sort(key=1)", "_", "__name__", "1; 2",
]  # fmt: skip
BOMBS = [
    "'a' * 10**9", "'a' * 1000000000", "10**9 * 'a'", "[0] * 10**9", "range(10**9)",
    "range(10**30)", "range(0, 10**18, 2)", "range(99999) * 9", "9**9**9**9", "2 ** 10000",
    "10.0 ** 400", "1e400", "9" * 50, "2**64 * 2**64", "1 / 0", "1 % 0",
    "[[[[0]*1000]*1000]*1000]*1000", "[[[['a'*9999]*999]*999]*999]*999 == 1",
    "('a'*900000)|replace('a','b'*900000)", "('a'*900000)|replace('','b'*900000)",
    "range(90000)|join('a'*90000)", "('a'*999999) ~ ('a'*999999)", "'x'|indent(10**9)",
    "'%999999999d'|format(1)", "[1]|batch(10**9)", "[1]|slice(10**9)", "'a'|center(10**9)",
    "range(90000)|map('string')|map('upper')|map('lower')|map('title')|list",
    "range(90000)|sort|sort|sort|sort|sort", "range(2000)|unique|list",
    "(" * 3000 + "1" + ")" * 3000, "[" * 3000 + "]" * 3000, "1+" * 4000 + "1", "not " * 4000 + "1",
    "{'a':" * 500 + "1" + "}" * 500, "a" + ".b" * 4000, "a" + "[0]" * 3000, "1 if " * 900 + "1",
    "1|string" + "|string" * 1500, "2" + "**2" * 2000, "x" * 20000, "'" + "a" * 20000 + "'",
    "3.0|round(10**9)", "'%999999999d' is odd", "'%9999999d' is divisibleby 2",
    "range(9000)|map('string')|sort(attribute='0,' * 90000 ~ '0')",
    "('9'*5000)|int + nothing", "range(150000)|list + range(150000)|list",
]  # fmt: skip


@pytest.mark.parametrize("expression", [*ESCAPES, *BOMBS], ids=lambda e: e[:40])
def test_no_way_out_and_no_bomb(expression: str) -> None:
    """Each is an error, at once; what it was given is as it was."""
    before = repr(NAMES)
    began = time.process_time()
    with pytest.raises(TemplateError) as error:
        text("{{ " + expression + " }}")(NAMES)
    assert time.process_time() - began < 1.0
    assert repr(NAMES) == before
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize(
    "source",
    ["{% for i in range(9**9) %}x{% endfor %}", "{% include '/etc/passwd' %}", "{% set a = 1 %}",
     "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{# #}", "{{ 1", "{{ }}",
     "{{ 'a }}", "{{{ 1 }}"],
)  # fmt: skip
def test_there_are_no_statements_and_braces_are_closed(source: str) -> None:
    with pytest.raises(TemplateError):
        text(source)(NAMES)


def test_a_template_that_is_filled_in_a_hundred_times_pays_each_time_anew() -> None:
    made = text("{{ range(90000) | sum }}")
    assert {made(NAMES) for _ in range(5)} == {sum(range(90000))}


PIECES = [
    "1", "2.5", "'a'", "context", "jobs", "nothing", ".", ",", ":", "[", "]", "(", ")", "{", "}",
    "|", "is", "not", "in", "and", "or", "if", "else", "+", "-", "*", "**", "//", "%", "~", "==",
    "<", "null", "true", "range", "attribute", "=", "9999999", "get", *FILTERS, *TESTS,
]  # fmt: skip
ARGUMENTS = [
    "1",
    "'a'",
    "attribute='n'",
    "null",
    "-5",
    "10**9",
    "[1]",
    "context",
    "'gt'",
    "nothing",
]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_written_has_a_value_or_is_a_template_error(seed: int) -> None:
    source = random.Random(seed)
    values, errors = 0, []
    for _ in range(2_000):
        made = scribble(source) if source.random() < 0.5 else pipe(source)
        try:
            text("{{ " + made + " }}")(NAMES)
            values += 1
        except TemplateError as error:
            errors.append(str(error))
    assert values > 100
    assert len(errors) > 100
    assert not any("\n" in error for error in errors)


def scribble(source: random.Random) -> str:
    return " ".join(source.choice(PIECES) for _ in range(source.randint(1, 12)))


def pipe(source: random.Random) -> str:
    made = source.choice(["context.jobs", "context.workers", "range(3)", "'a b'", "context"])
    for _ in range(source.randint(1, 3)):
        given = ", ".join(source.choice(ARGUMENTS) for _ in range(source.randint(0, 2)))
        made += f" | {source.choice(list(FILTERS))}({given})"
    return made
