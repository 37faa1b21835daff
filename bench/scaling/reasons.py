"""Why targets are missed, as far as it was found out: for the page, beside those that are."""

from __future__ import annotations

import textwrap
from collections.abc import Collection

# How the names of targets begin, and why they are missed.
WHY = {
    ("W >= 2C: wait target met", "C <= W < 2C: wait target met"): """
        Wait targets above the cold start: caution is learned from late starts, once in ten minutes.
        Where W is the cold start itself (both 60 s), a launch for the first item of a burst comes
        when its time is over, and what is kept between bursts is let go before the next.
    """,
    ("W >= 2C: cost against the envelope",): """
        Cost above twice the cold start, at W = 120 s and C = 60 s: of a hundred jobs in twelve
        hours (`batches-911`, `batches-912`) little is known, and caution launches 81 and 61 workers
        where the cheapest setting does with 64 and 50. The load of `crons-912` is just below one
        worker: ours lets the last one go whenever nothing waits, and starts 335 in 16 hours where
        the cheapest has 37. Two seeds of eight families have more of that than others had.
    """,
    ("W >= 2C: cost against the best single",): """
        Cost against the best single setting: the oracle, in brackets, is what is left to gain.
        Where it is itself hardly 15 % below that setting, nobody can be.
    """,
    ("W < C: cost", "W < C: the worst"): """
        Cost below the cold start: on smooth load (`azure_llm_conv_2023`) the cheapest setting is 5
        to 10 % above the oracle, and ours, which has to learn how much to keep in the hour that it
        lasts, is 1 to 4 % dearer than that setting there. On `swim_fb2010` it costs the same. Ours
        is far cheaper where load comes in spells (`nasa_http_1995_7d`, on and off, flash crowds),
        and on most of the synthetic load: most of what is gained in all is gained there.
    """,
    ("W < C: wait target met", "W < C: met, or"): """
        Wait targets below the cold start: how much to keep is learned from late starts, once in ten
        minutes, so that 4.1 % are late; on some load that comes out as 5 to 8 %.
        `azure_llm_code_2023` is an hour long: with a longer memory half as many would be late in
        it, but which memory is the right one is not known before half of it is over.
    """,
}


def why(missed: Collection[str]) -> list[str]:
    """What there is to say about the targets of these names."""
    return [
        textwrap.fill(" ".join(text.split()), 100, initial_indent="- ", subsequent_indent="  ")
        for beginnings, text in WHY.items()
        if any(what.startswith(beginnings) for what in missed)
    ]
