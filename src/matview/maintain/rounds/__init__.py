"""Maintenance rounds over sources (paper M, section 5.6): four steps, four functions.

query_transactions   1  fixes the state *old*: a set of committed transactions per source        steps.py
evaluate             2  what they changed, stored at the warehouse
install              3  one maintenance transaction, one version
delete_consumed      4  the delta rows of the set go, once the version is durable

ingest               a round from its first step to its last, and what others have left undone    ingest.py
load, reload         first states: a source is added, a stopped table is read whole again        load.py
Holding              a source that is one's own meanwhile                                         holding.py
look                 has a table drifted, or was capture bypassed?                                drift.py
"""
