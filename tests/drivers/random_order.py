"""A pytest plugin: the files in an order drawn by chance, and the tests of each file. SEED draws another."""

import os
import random


def pytest_collection_modifyitems(items):
    chance = random.Random(int(os.environ.get("SEED", "0")))
    places = {item.path: chance.random() for item in items}
    chance.shuffle(items)
    items.sort(key=lambda item: places[item.path])
