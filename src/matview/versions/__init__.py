"""nVNL by Quass and Widom: how a versioned tuple is stored, changed, read and judged too old. Pure: no Spark, no Delta.

layout      the stored columns of a versioned table                                sections 3.1 and 5
tuples      one versioned tuple as a value                                         section 3
decide      Tables 1-4 as data, and what they do to one tuple                      sections 3.2, 3.3 and 5
tree        the smallest tree of tests for a decision table
setwise     the same tables as SQL over many tuples                                section 4.2
facts       what a snapshot's file statistics say about all of its tuples
rewrite     the logical relation at a version                                      section 4.1
references  the tables that a query names, and the query with readings in their place
text        Spark SQL text of such a query
predicates  what a query demands of every row of a table
pruning     files and row groups skipped by that, under the rewrite                section 4.3
expiry      when a session's version can no longer be told                         sections 3.2, 4.1 and 5
adviser     how many versions the sessions seen would need                         section 5
"""
