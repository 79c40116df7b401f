from tests.sources.contract import Contract


class TestContract(Contract):
    pass
