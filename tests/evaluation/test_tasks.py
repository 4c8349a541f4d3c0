"""Which tasks a run plays: collections by name or by list, axes that are checked, blocks that share nothing."""

import json
from typing import Any

import pytest

from ecomlab.difficulty import RANGES
from ecomlab.envs.registry import COLLECTIONS, moved_by
from ecomlab.evaluation import tasks
from ecomlab.seeding import EVALUATION_SEEDS, TRAINING_SEEDS
from ecomlab.training.config import ConfigError, TrainConfig, from_toml

# Collections.


def test_a_collection_is_a_name_or_a_list_of_environments():
    for name, envs in COLLECTIONS.items():
        assert tasks.environments_of(name) == envs
    assert tasks.environments_of("CART,PD") == tasks.environments_of(" CART , PD") == ("CART", "PD")
    assert tasks.environments_of("JOURNEY") == ("JOURNEY",)
    config = TrainConfig(collection="PD,CART")
    assert config.envs == ("PD", "CART") and list(config.make_schedule().to_json()["windows"]) == [
        "PD",
        "CART",
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("C7", "no collection or environment 'C7'.* there are BUNDLE, C1, C2, C4, C8, CART.*'CART,PD'"),
        ("CRAT", "did you mean 'CART'"),
        ("CART,PX", "no environment 'PX'; .*there are BUNDLE, CART.* in 'CART,PX'"),
        ("C2,PD", "not collections such as C2 in 'C2,PD'"),
        ("CART,CART", "names an environment twice"),
        ("", "no collection or environment ''"),
        ("CART,", "no environment '' .*|no environment ''; there are"),
    ],
)
def test_a_collection_that_there_is_not_is_met_with_those_that_there_are(name, words):
    with pytest.raises(ValueError, match=words):
        tasks.environments_of(name)
    with pytest.raises(ConfigError, match="collection: "):
        TrainConfig(collection=name)


# Axes.


def test_an_axis_that_moves_no_environment_of_the_run_is_refused_as_make_task_refuses_it(shop):
    from ecomlab import make_task

    still = next(name for name in RANGES if name not in (moved_by("CART") or ()))
    value = RANGES[still][0]
    with pytest.raises(ValueError, match=f"axis '{still}' does not move CART; it moves ") as theirs:
        make_task("CART", 0, 0, shop, {still: value})
    with pytest.raises(ValueError) as ours:
        tasks.check_axes({still: value}, ["CART"])
    assert str(ours.value) == str(theirs.value)
    with pytest.raises(ConfigError, match=f"axes: axis '{still}' does not move CART"):
        TrainConfig(axes={still: value})
    with pytest.raises(ConfigError, match="eval_collection"):
        TrainConfig(eval_collection="CARS")


def test_in_a_collection_it_is_a_warning_that_names_those_that_stay_as_they_are():
    axes = {"cart.items": 2, "p_missing": 0}
    assert tasks.check_axes(axes, ["CART"]) == []
    (words,) = tasks.check_axes(axes, ["CART", "PD", "SUB"])
    assert words == "axis 'cart.items' does not move PD, SUB; there it changes nothing"
    assert tasks.axes_of(axes, "PD") == {"p_missing": 0} and tasks.axes_of(axes, "CART") == axes
    assert TrainConfig(collection="CART,PD", axes=axes).warnings == [
        "axis 'cart.items' does not move PD; there it changes nothing"
    ]


def test_axes_come_from_toml_nested_or_not_and_survive_json(tmp_path):
    file = tmp_path / "train.toml"
    file.write_text('[axes]\np_missing = 0\ncart.items = 2\n"cart.p_option" = 0.5\n')
    config = from_toml(file)
    assert config.axes == {"p_missing": 0, "cart.items": 2, "cart.p_option": 0.5}
    assert TrainConfig(**json.loads(json.dumps(config.to_json()))) == config
    assert tasks.write_axes(config.axes) == "cart.items=2 cart.p_option=0.5 p_missing=0"


# Blocks.


def test_blocks_share_no_seed_with_each_other_or_with_training():
    whole = [tasks.held_out_seeds(block, tasks.TASKS_A_BLOCK) for block in (0, 1, tasks.BLOCKS - 1)]
    assert whole[0].start == EVALUATION_SEEDS.start and whole[-1].stop == EVALUATION_SEEDS.stop
    assert whole[0].stop == whole[1].start, "each begins where the one before ends"
    assert min(seeds.start for seeds in whole) >= TRAINING_SEEDS.stop
    assert tasks.held_out_seeds(0, 96) == range(EVALUATION_SEEDS.start, EVALUATION_SEEDS.start + 96)


def test_a_block_that_there_is_not_is_refused():
    for block in (-1, tasks.BLOCKS):
        with pytest.raises(ValueError, match=f"blocks 0 to {tasks.BLOCKS - 1}"):
            tasks.held_out_seeds(block, 1)
    with pytest.raises(ValueError, match="another block"):
        tasks.held_out_seeds(0, tasks.TASKS_A_BLOCK + 1)
    right: list[Any] = [3, [3], (3,)]
    for given in right:
        assert TrainConfig(eval_block=given).eval_block == (3,)
    wrong: list[Any] = [tasks.BLOCKS, [0, 0], [], -1, "0"]
    for given in wrong:
        with pytest.raises(ConfigError, match="eval_block"):
            TrainConfig(eval_block=given)
