"""Shared shops: made once a test process, immutable."""

import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

# Before ecomlab is imported: tests never write into a real cache or the home directory, and use no network.
_SCRATCH = Path(tempfile.gettempdir()) / f"ecomlab-tests-{os.getuid()}"
os.environ.setdefault("ECOMLAB_CACHE", str(_SCRATCH))
os.environ.setdefault("MPLCONFIGDIR", str(_SCRATCH / "matplotlib"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
# A hundred processes are started: where the machine forbids to keep compiled modules, each would compile ecomlab anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

import pytest

SLOW_CASES = (
    "test_contract.py::TestEveryEnvironment::test_a_small_certificate_breaks_no_law[JOURNEY]",
    "test_contract.py::TestEveryEnvironment::test_what_is_withheld_shows_nowhere_until_the_customer_is_asked[JOURNEY]",
    "test_contract.py::TestEveryEnvironment::test_no_placeholder_reaches_a_message[JOURNEY]",
    "test_robustness.py::test_any_action_has_a_verdict[JOURNEY]",
    "test_verifiers.py::test_solver_and_reference_player_are_right_at_the_extremes_of_the_axes[JOURNEY",
    "are_right_at_the_extremes_of_the_axes[PD-narrow search-20000",
    "are_right_at_the_extremes_of_the_axes[PD-everything at once-20000",
    "test_events.py::test_an_event_costs_nobody_reward[JOURNEY]",
    "test_contract.py::TestEveryEnvironment::test_the_axes_that_move_it_are_those_that_were_observed",
    "test_net.py::test_what_is_seen_and_scored_is_what_it_was[JOURNEY]",
    "test_attack.py::test_one_bit_at_a_time_is_no_better_than_chance",
    "test_understood.py::test_most_questions_that_nobody_had_read_are_understood[fifth]",
    "test_robustness.py::test_adversarial_episodes_do_not_touch_each_other[JOURNEY]",
    "test_contract.py::TestEveryEnvironment::test_interleaved_and_threaded_episodes_do_not_touch_each_other[JOURNEY]",
    "test_contract.py::TestEveryEnvironment::test_ids_and_places_do_not_tell_what_is_wanted[JOURNEY]",
    "test_contract.py::TestEveryEnvironment::test_nothing_that_is_said_foretells_what_will_happen_or_is_withheld[JOURNEY]",
    "test_contract.py::TestEveryEnvironment::test_nothing_that_is_said_foretells_what_will_happen_or_is_withheld[SUB]",
    "test_contract.py::TestEveryEnvironment::test_nothing_that_is_said_foretells_what_will_happen_or_is_withheld[BUNDLE]",
    "test_contract.py::TestEveryEnvironment::test_nothing_that_is_said_foretells_what_will_happen_or_is_withheld[RETURN]",
    "test_contract.py::TestEveryEnvironment::test_tools_are_what_they_declare[JOURNEY]",
    "test_contract.py::TestEveryEnvironment::test_no_tool_shows_what_is_withheld[JOURNEY]",
    "test_lab.py::test_an_ended_ablation_leaves_no_process_and_goes_on[2]",
    "test_lab.py::test_a_failed_run_is_shown_and_the_others_go_on",
    "test_training.py::test_runs_beside_each_other_evaluate_their_starter_once",
    "test_packaging.py::test_an_installation_runs_what_it_is_for[train]",
    "test_packaging.py::test_an_installation_runs_what_it_is_for[lab]",
    "test_starters.py::test_at_the_levels_of_a_recipe_demonstrations_fit_its_length_and_what_a_policy_may_say[base]",
)
"""The costliest cases of tests whose others run in `make test`: these wait for `make certify`, as slow tests do."""

pytest.register_assert_rewrite("runs", "ecomlab.laws.contract")  # their assertions say what they compared

from ecomlab.catalog import Shop, load_shop

if find_spec("hypothesis"):  # a busy machine is no failure
    from hypothesis import settings

    settings.register_profile("patient", deadline=None)
    settings.load_profile("patient")
if find_spec("nbformat"):  # a bridge's environment has none
    import ecomlab.lab.notebooks  # noqa: F401 - nbformat, which tests import, in two seconds less


@pytest.fixture(scope="session")
def shop() -> Shop:
    """A small shop: a thousand products."""
    return load_shop(1_000)


@pytest.fixture(scope="session")
def big_shop() -> Shop:
    """The embedded default: twenty thousand products."""
    return load_shop()


@pytest.fixture(scope="session")
def real_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog of real products on disk: a shop's export with a row a variant."""
    from ingested import shop_export, shop_folder

    return shop_folder(shop_export(), tmp_path_factory.mktemp("real"))


@pytest.fixture(scope="session")
def priceless_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalog of real products without prices or ratings, on disk."""
    from ingested import priceless, shop_folder

    return shop_folder(priceless(), tmp_path_factory.mktemp("priceless"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the costliest cases as slow."""
    for item in items:
        if any(case in item.nodeid for case in SLOW_CASES):
            item.add_marker(pytest.mark.slow)
