"""How many random cases a test tries: few every time, as many as MATVIEW_FUZZ_EXAMPLES says when asked."""

import os

EXAMPLES = int(os.environ.get("MATVIEW_FUZZ_EXAMPLES", "15"))
