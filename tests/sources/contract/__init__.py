"""What every source keeps to, whatever its engine. An engine's tests inherit it, and give the fixture `lab`:

class TestContract(Contract): ...
"""

from tests.sources.contract.carried import Carried
from tests.sources.contract.common import asked, captured_from_here, consume, ids, now, read
from tests.sources.contract.first import FirstStates
from tests.sources.contract.installed import Installed
from tests.sources.contract.old import StatesOld
from tests.sources.contract.sets import Sets
from tests.sources.contract.statements import Statements

__all__ = ["Contract", "asked", "captured_from_here", "consume", "ids", "now", "read"]


class Contract(Carried, Statements, Sets, FirstStates, Installed, StatesOld):
    """All of it."""
