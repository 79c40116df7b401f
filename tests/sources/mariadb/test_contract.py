"""MariaDB keeps to the contract of sources."""

from tests.sources.contract import Contract


class TestContract(Contract):
    pass
