"""Markup: whatever products, models and customers write comes out as text, and results as small tables."""

import json
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from ecomlab.markup.conversation import episode, score
from ecomlab.markup.elements import Html, element
from ecomlab.markup.record import Call, Label, Record, State, Step, steps_of
from ecomlab.markup.results import result_in_a_line, result_in_full

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\" onmouseover='alert(1)' x=\"",
    "$E = mc^2$ for $30",
    "<!-- ]]> --> {{index}} &lt;b&gt; \x00 ‮",
    "</details></li></ol></article><h1>gone</h1>",
)


class Reader(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: Sequence[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, "every element is closed where it was opened"

    def handle_data(self, text: str) -> None:
        self.text += text


def state_with(text: str) -> State:
    line = {"units": 1, "product": text, "variant": None}
    return State(
        cart=[line], returns=[line], stated=[text], revealed=[text], withheld=[text], events=[text],
        turns=1, turn_budget=9, calls=1, call_budget=9, reward=-0.9, parts={"task": -0.75},
    )  # fmt: skip


def record_with(text: str) -> Record:
    """A record that says a text wherever someone else's text can stand."""
    result = json.dumps({"results": [{"product_id": "P1", "title": text, text: 1}], "error": text})
    calls = [
        Call(text, text, text),
        Call("catalog_search", json.dumps({"query": text, text: [text]}), result),
        Call("ask_user", json.dumps({"question": text}), json.dumps({"customer": text, "notice": text})),
    ]
    steps = [
        Step(0, said=[text], state=state_with(text)),
        Step(1, text, calls, [text], state_with(text + "!")),
    ]
    return Record(
        title=text, facts={"axes": text}, correct=False, end=text, reward=-0.9, parts={text: -1.0}, why=text,
        system=text, steps=steps, labels=[Label(1, text, text)], note=text,
    )  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_stays_a_text_wherever_it_stands(text: str) -> None:
    plain, hostile = Reader(episode(record_with("harmless"))), Reader(episode(record_with(text)))
    assert hostile.tags == plain.tags and hostile.attributes == plain.attributes and not hostile.open
    assert {"script", "img", "h1"}.isdisjoint(hostile.tags)
    shown = text.replace("\x00", "�"), text
    assert (
        max(map(hostile.text.count, shown)) >= plain.text.count("harmless") - 2
    )  # two headings lose their underscores


def test_what_is_html_already_is_not_escaped_again() -> None:
    inner = element("b", "a < b", title='"')
    assert inner == '<b title="&quot;">a &lt; b</b>'
    assert element("p", inner, None, Html("<i></i>")) == f"<p>{inner}<i></i></p>"


def test_the_parts_of_a_reward_are_shown_with_what_they_add() -> None:
    page = Reader(score({"task": 0.5}, {"task": 0.75}, 0.375, "half"))
    assert "0.500" in page.text and page.text.count("+0.375") == 2 and "half" in page.text
    assert "unscored" in score({}, {}, None, "ours")


# --- results ---


def test_a_result_is_a_table_and_a_line() -> None:
    text = (
        '{"results":[{"sponsored":true,"title":"A","price":3},{"title":"B","price":4,"attributes":{"color":"Red"}}],'
        '"page":1,"pages":2,"notice":"Stock has changed."}'
    )
    assert result_in_a_line(text) == "2 results; Stock has changed."
    page = Reader(result_in_full(text))
    assert (
        page.tags >= {"table", "th", "td"} and "color: Red" in page.text and "page: 1, pages: 2" in page.text
    )
    assert page.text.index("title") < page.text.index("sponsored"), "what all rows have comes first"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"error":"no product"}', "error: no product"),
        ('{"submitted":true}', "submitted: yes"),
        ('{"line":{"id":"P1","variant_id":null}}', "line: id: P1"),
        ('{"line":{"id":"P1","title":"A Mug"}}', "line: A Mug (id: P1)"),
        ('{"results":[],"page":1,"pages":1}', "0 results"),
        ('{"orders":[{"items":[{"title":"A"}]}]}', "1 order"),
        ("not json", "not json"),
        ("[1, 2]", "[1, 2]"),
        (None, "no result"),
    ],
)
def test_every_result_fits_into_a_line(text: str | None, line: str) -> None:
    assert result_in_a_line(text) == line


# --- messages ---


def called(*names: str) -> list[dict[str, object]]:
    return [{"id": f"c{n}", "function": {"name": name, "arguments": "{}"}} for n, name in enumerate(names)]


def test_messages_are_grouped_by_turn_with_each_result_at_its_call() -> None:
    steps = steps_of(
        [
            {"role": "system", "content": "work"},
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "I look", "tool_calls": called("a", "b")},
            {"role": "tool", "tool_call_id": "c1", "name": "b", "content": "two"},
            {"role": "tool", "tool_call_id": "c0", "name": "a", "content": "one"},
            {"role": "user", "content": "wait"},
            {"role": "assistant", "content": "yes?", "tool_calls": called("a")},
        ]
    )
    assert [step.number for step in steps] == [0, 1, 2]
    assert steps[0].said == ("hello",) and steps[1].said == ("wait",) and steps[1].text == "I look"
    assert [call.result for call in steps[1].calls] == ["one", "two"] and steps[2].calls[0].result is None


def test_any_piece_of_a_conversation_can_be_shown() -> None:
    alone = steps_of([{"role": "tool", "name": "a", "tool_call_id": "c9", "content": "{}"}])
    assert alone == [Step(0, calls=(Call("a", "", "{}"),))]
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]
    assert steps_of([{"role": "assistant", "content": parts}, {"role": "assistant", "content": None}]) == [
        Step(1, "one two"),
        Step(2),
    ]
    assert steps_of([]) == []


# --- turns ---


def test_a_turn_shows_what_it_changed_and_not_what_stayed() -> None:
    before = replace(state_with("old"), events=[], reward=-0.9, parts={"task": -0.75, "efficiency": -0.15})
    after = replace(
        before, revealed=["old", "size: M"], cart=[], reward=-0.4, parts={"task": -0.25, "efficiency": -0.15}
    )
    page = Reader(episode(Record("t", steps=[Step(0, state=before), Step(1, "hm", state=after)])))
    turn = page.text[page.text.index("turn 1") :]
    assert "gained 0.500 (task +0.500)" in turn and "size: M" in turn and "cart now empty" in turn
    assert "returns as before, lines: 1" in turn and "efficiency" not in turn and turn.count("old") == 0


def test_labels_of_a_turn_that_was_cut_off_stand_last() -> None:
    """Nothing of it is recorded, but it is a mistake, and others may follow from it."""
    labels = [Label(3, "cut off"), Label(3, "missed item")]
    page = episode(Record("one", steps=[Step(1, "Hello"), Step(2, "Bye")], labels=labels))
    said = Reader(page).text
    assert said.index("Bye") < said.index("turn 3") < said.index("cut off") < said.index("missed item")
