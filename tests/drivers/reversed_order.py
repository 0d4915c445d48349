"""A pytest plugin: the tests of each file in the opposite order, the files too."""


def pytest_collection_modifyitems(items):
    items.reverse()
