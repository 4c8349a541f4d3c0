"""How values are written: what no environment's forms can show."""

import pytest

from ecomlab.values import with_article


@pytest.mark.parametrize(
    "name", ["apple", "HDMI Cable", "LED Lamp", "MP3 Player", "HP Printer", "8GB Card", "18V Drill", "F5L011"]
)
def test_a_name_that_begins_with_the_sound_of_a_vowel_has_an(name: str) -> None:
    assert with_article(name) == f"an {name}"


@pytest.mark.parametrize(
    "name",
    ["lamp", "USB Hub", "Universal Remote", "Unicorn", "One-Touch Opener", "RAM", "110V Fan", "SMART Pen"],
)
def test_any_other_has_a(name: str) -> None:
    assert with_article(name) == f"a {name}"
